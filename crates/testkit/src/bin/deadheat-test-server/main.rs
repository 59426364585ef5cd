//! The test server: one small HTTP/1.1 server that can misbehave in every way a race must survive.
//!
//! This file defines the order of events from start to listening. The spelling of options is in `options`,
//! the bytes of answers are in `answers`, and the sockets are in `serve`.

mod answers;
mod descendants;
mod log;
mod options;
mod request;
mod serve;
mod tls;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use options::{Options, Parsed};

fn main() -> ExitCode {
    let born = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match options::parse(&arguments) {
        Ok(Parsed::Help(text)) => {
            say_out(&text);
            ExitCode::SUCCESS
        }
        Ok(Parsed::Run(options)) => run(&options, &arguments, born).unwrap_or_else(|error| {
            say_err(&format!("deadheat-test-server: {error}"));
            ExitCode::from(70)
        }),
        Err(message) => {
            say_err(&format!("deadheat-test-server: {message}; see --help"));
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options, arguments: &[String], born: Instant) -> std::io::Result<ExitCode> {
    if options.ignore_term {
        descendants::ignore_term(arguments)?;
    }
    if let Some(text) = &options.chatty {
        say_out(&format!("{text}\x1b[2J\x1b[1;31m\x1b]0;title\x07<script>alert(1)</script>\r\x1b[0m"));
    }
    if let Some(status) = options.exit {
        say_err("deadheat-test-server: cannot open the imaginary database");
        say_err(&format!("deadheat-test-server: giving up with status {status}"));
        return Ok(ExitCode::from(status));
    }
    let deadline = born + options.lifetime;
    if options.idle {
        descendants::idle(options.place, deadline)?;
        return Ok(ExitCode::SUCCESS);
    }
    descendants::spawn(options.children)?;
    if options.burn_idle {
        std::thread::spawn(|| {
            loop {
                std::hint::black_box(answers::work(1_000));
            }
        });
    }
    std::thread::sleep(options.start_delay);
    if options.never_listen {
        sleep_until(deadline);
        return Ok(ExitCode::SUCCESS);
    }
    serve::serve(options, deadline)
}

/// Sleeps until `deadline`. Returns at once if it has passed.
fn sleep_until(deadline: Instant) {
    std::thread::sleep(deadline.saturating_duration_since(Instant::now()).max(Duration::ZERO));
}

/// Writes a line to standard output. Ignores errors, because the reader may have closed it.
fn say_out(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a line to standard error. Ignores errors, as [`say_out`] does.
fn say_err(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
