//! The native contender of the ssr study: a thread and a database connection for each core; for every request it reads all
//! users, computes their ages and writes the page.
//!
//! Owns the environment variable `SSR_DB_PORT`; everything else lives in the modules.

mod database;
mod page;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use study_native::{Answer, Head, path_and_query};

use crate::database::Database;
use crate::page::Page;

const FOUND: Head = Head { status: "200 OK", headers: "content-type: text/html; charset=utf-8\r\n" };
const NOT_FOUND: Head = Head { status: "404 Not Found", ..FOUND };
const FAILED: Head = Head { status: "500 Internal Server Error", ..FOUND };

/// What one thread serves with.
struct Ssr {
    database: Database,
    page: Page,
}

impl Answer for Ssr {
    fn answer(&mut self, target: &[u8], body: &mut Vec<u8>) -> Head {
        if path_and_query(target).0 != b"/" {
            return NOT_FOUND;
        }
        self.page.clear();
        match self.database.users(|user| self.page.add(user)) {
            Ok(()) => {
                self.page.push(body);
                FOUND
            }
            Err(_) => FAILED,
        }
    }
}

fn main() -> ExitCode {
    study_native::run("ssr-limit", run)
}

fn run() -> Result<(), Box<dyn Error>> {
    let database = env::var("SSR_DB_PORT").map_err(|_| "SSR_DB_PORT is not set: the port of the database")?;
    let database = database.parse::<u16>()?;
    study_native::serve_on_cores(study_native::port()?, || {
        Ok(Ssr { database: Database::connect(database)?, page: Page::default() })
    })?;
    Ok(())
}
