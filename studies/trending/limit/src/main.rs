//! The native contender of the trending study: one thread, epoll, SQLite, and the same work for every request as the
//! other contenders do. Nothing is kept from one answer for the next.
//!
//! Owns the environment variables `PORT` and `TRENDING_DB`; everything else lives in the modules.

mod answer;
mod contract;
mod date;
mod http;
mod json;
mod server;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::{env, io};

use rusqlite::{Connection, OpenFlags};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even this cannot be written, the exit status still tells.
            let _ = writeln!(io::stderr(), "trending-limit: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let port = env::var("PORT").map_err(|_| "PORT is not set: the port to serve on")?.parse::<u16>()?;
    let path = env::var_os("TRENDING_DB").ok_or("TRENDING_DB is not set: the path of the dataset")?;
    let database = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    database.pragma_update(None, "query_only", true)?;
    database.pragma_update(None, "mmap_size", 256 * 1024 * 1024)?;
    let mut trending = answer::Trending::new(&database)?;
    server::serve(port, &mut trending)?;
    Ok(())
}
