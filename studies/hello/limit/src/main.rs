//! The native contender of the hello study: one thread for each core, epoll, and a JSON text written for each request.
//!
//! Owns the environment variable `HELLO_NAME`, and what is answered.

use std::env;
use std::error::Error;
use std::process::ExitCode;

use study_native::{Answer, Head, path_and_query, push_escaped};

const FOUND: Head = Head { status: "200 OK", headers: "content-type: application/json\r\n" };
const NOT_FOUND: Head = Head { status: "404 Not Found", ..FOUND };

/// Whoever says hello.
struct Hello<'a> {
    name: &'a str,
}

impl Answer for Hello<'_> {
    fn answer(&mut self, target: &[u8], body: &mut Vec<u8>) -> Head {
        if path_and_query(target).0 != b"/json" {
            body.extend_from_slice(b"{\"error\":\"not found\"}");
            return NOT_FOUND;
        }
        body.extend_from_slice(b"{\"message\":\"Hello from ");
        push_escaped(body, self.name.as_bytes());
        body.extend_from_slice(b"\"}");
        FOUND
    }
}

fn main() -> ExitCode {
    study_native::run("hello-limit", run)
}

fn run() -> Result<(), Box<dyn Error>> {
    let name = env::var("HELLO_NAME").map_err(|_| "HELLO_NAME is not set: who says hello")?;
    study_native::serve_on_cores(study_native::port()?, || Ok(Hello { name: &name }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_with_the_name_and_404_for_all_else() {
        let mut hello = Hello { name: "a\"b" };
        for (target, status, text) in [
            ("/json", FOUND.status, "{\"message\":\"Hello from a\\\"b\"}"),
            ("/json?x=1", FOUND.status, "{\"message\":\"Hello from a\\\"b\"}"),
            ("/json/", NOT_FOUND.status, "{\"error\":\"not found\"}"),
            ("/", NOT_FOUND.status, "{\"error\":\"not found\"}"),
        ] {
            let mut body = Vec::new();
            let head = hello.answer(target.as_bytes(), &mut body);
            assert_eq!((head.status, String::from_utf8(body).unwrap().as_str()), (status, text), "{target}");
        }
    }
}
