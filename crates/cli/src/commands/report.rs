//! `deadheat report`: a record shown again.

use deadheat_report::terminal;

use super::{Failure, write_atomically};
use crate::console::Console;
use crate::flags::{Output, ReportFlags};

/// Shows a record, or writes it as JSON.
pub(crate) fn report(flags: &ReportFlags, console: &mut Console) -> Result<u8, Failure> {
    let record = deadheat_record::read(&flags.record)?;
    let json = || deadheat_report::json(&record);
    match &flags.json {
        Some(Output::Standard) => console.data(&json()?)?,
        Some(Output::File(path)) => write_atomically(path, &json()?).map_err(|source| Failure::File {
            path: path.clone(),
            option: "--json",
            source,
        })?,
        None => console.result(&terminal::render(&deadheat_report::view(&record)?, &console.output)),
    }
    Ok(0)
}
