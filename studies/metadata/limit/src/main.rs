//! The native contender of the metadata study: one thread, epoll, SQLite, and the same work for every request as the other
//! contenders do. Nothing is kept from one answer for the next but statements.
//!
//! Owns the environment variable `METADATA_DB`; everything else lives in the modules.

mod answer;
mod contract;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use rusqlite::{Connection, OpenFlags};

fn main() -> ExitCode {
    study_native::run("metadata-limit", run)
}

fn run() -> Result<(), Box<dyn Error>> {
    let port = study_native::port()?;
    let path = env::var_os("METADATA_DB").ok_or("METADATA_DB is not set: the path of the dataset")?;
    let database = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    database.pragma_update(None, "query_only", true)?;
    database.pragma_update(None, "mmap_size", 256 * 1024 * 1024)?;
    study_native::serve(port, &mut answer::Metadata::new(&database)?)?;
    Ok(())
}
