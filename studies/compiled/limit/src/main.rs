//! The native contender of the compiled study: one thread for each core, epoll, and the same text for everybody.
//!
//! Owns what is answered.

use std::error::Error;
use std::process::ExitCode;

use study_native::{Answer, Head};

const BODY: &[u8] = b"Hello, World!";
const HEAD: Head = Head { status: "200 OK", headers: "content-type: text/plain; charset=utf-8\r\n" };

struct Text;

impl Answer for Text {
    fn answer(&mut self, _target: &[u8], body: &mut Vec<u8>) -> Head {
        body.extend_from_slice(BODY);
        HEAD
    }
}

fn main() -> ExitCode {
    study_native::run("compiled-limit", run)
}

fn run() -> Result<(), Box<dyn Error>> {
    study_native::serve_on_cores(study_native::port()?, || Ok(Text))?;
    Ok(())
}
