//! Reads rows of values: a CSV file whose first line names its columns.
//!
//! Owns: the format, and what makes a file unusable. Must not know: studies, requests, how values are written into them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use csv::{ErrorKind, ReaderBuilder, StringRecord};
use deadheat_record::{Plan, Rows, ValuesFile};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::FileError;

/// The largest file, in bytes.
const MOST_BYTES: u64 = 128 << 20;
/// The most rows of a file. Each contender keeps a request for each of them.
const MOST_ROWS: usize = 1 << 20;

/// Why a file of values cannot be used.
#[derive(Debug, Error)]
pub enum RowsError {
    /// The file could not be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is too large.
    #[error("the file is larger than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    /// There are too many rows.
    #[error("there are more than {MOST_ROWS} rows")]
    TooMany,
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// There is nothing below the first line.
    #[error("line 1 names the columns, and no row follows")]
    NoRows,
    /// A column has no name, or the name of another one.
    #[error("line 1: column {place} {problem}")]
    Column {
        /// Which column, from 1.
        place: usize,
        /// What is wrong with its name.
        problem: String,
    },
    /// A row has more or fewer values than there are columns.
    #[error("line {line}: the number of values is {found}, and line 1 names {columns} columns")]
    Ragged {
        /// The number of the line at which the row begins, from 1.
        line: u64,
        /// Its number of values.
        found: u64,
        /// The number of columns.
        columns: u64,
    },
    /// A row is not UTF-8.
    #[error("line {0}: this is not UTF-8")]
    NotUtf8(u64),
    /// The file has changed since the race was planned.
    #[error("the file has changed since the race was planned")]
    Changed,
}

impl RowsError {
    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreadable(_) => "name a file that can be read".into(),
            Self::TooLarge | Self::TooMany => "take a part of the file".into(),
            Self::Empty | Self::NoRows | Self::Column { .. } => {
                "write the names of the columns into the first line and a row into each other line, such as \
                 id,name and 7,Ada"
                    .into()
            }
            Self::Ragged { .. } => {
                "give each row a value for each column; write a value with a comma in double quotes".into()
            }
            Self::NotUtf8(_) => "save the file as UTF-8".into(),
            Self::Changed => "restore the file, or race again without --resume".into(),
        }
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// [`RowsError`].
pub fn read_file(path: &Path) -> Result<(ValuesFile, Rows), RowsError> {
    if fs::metadata(path)?.len() > MOST_BYTES {
        return Err(RowsError::TooLarge);
    }
    let bytes = fs::read(path)?;
    let rows = read(&bytes)?;
    let file = ValuesFile {
        file: path.into(),
        sha256: crate::hex(&Sha256::digest(&bytes)),
        columns: rows.columns.clone(),
        rows: rows.values.len() as u64,
    };
    Ok((file, rows))
}

/// Reads the rows of all probes of a plan, by the probe's name.
///
/// # Errors
/// A file cannot be read, or it is not the one that the plan was made with.
pub fn of_plan(plan: &Plan) -> Result<BTreeMap<String, Arc<Rows>>, FileError<RowsError>> {
    let mut all = BTreeMap::new();
    for probe in &plan.probes {
        let Some(values) = &probe.values else { continue };
        let failed = |source| FileError { file: values.file.clone(), source };
        let (found, rows) = read_file(&values.file).map_err(failed)?;
        if found.sha256 != values.sha256 {
            return Err(failed(RowsError::Changed));
        }
        all.insert(probe.name.clone(), Arc::new(rows));
    }
    Ok(all)
}

/// Reads the text of a file. Arbitrary bytes lead to rows or to an error.
fn read(bytes: &[u8]) -> Result<Rows, RowsError> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        return Err(RowsError::Empty);
    }
    let mut reader = ReaderBuilder::new().from_reader(bytes);
    let columns = columns(reader.headers().map_err(|error| unreadable(error, &mut Lines::of(bytes)))?)?;
    let mut rows = Rows { columns, ..Rows::default() };
    let (mut row, mut lines) = (StringRecord::new(), Lines::of(bytes));
    while reader.read_record(&mut row).map_err(|error| unreadable(error, &mut lines))? {
        if rows.values.len() == MOST_ROWS {
            return Err(RowsError::TooMany);
        }
        rows.lines.push(lines.of_record(row.position()));
        rows.values.push(row.iter().map(str::to_owned).collect());
    }
    if rows.values.is_empty() { Err(RowsError::NoRows) } else { Ok(rows) }
}

fn columns(names: &StringRecord) -> Result<Vec<String>, RowsError> {
    let mut columns: Vec<String> = Vec::new();
    for (at, name) in names.iter().map(str::trim).enumerate() {
        let problem = match columns.iter().position(|known| known == name) {
            _ if name.is_empty() => "has no name".to_owned(),
            Some(first) => format!("has the same name as column {}", first + 1),
            None => {
                columns.push(name.to_owned());
                continue;
            }
        };
        return Err(RowsError::Column { place: at + 1, problem });
    }
    Ok(columns)
}

/// Counts lines. The crate's own count is of the end of the record before, which may be before empty lines and half a line break.
struct Lines<'b> {
    bytes: &'b [u8],
    at: usize,
    line: u64,
}

impl<'b> Lines<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// The number of the line at which a record begins. Records are asked for in their order.
    fn of_record(&mut self, position: Option<&csv::Position>) -> u64 {
        let end = position.map_or(0, |position| position.byte() as usize);
        while let Some(byte) = self.bytes.get(self.at).filter(|byte| self.at < end || b"\r\n".contains(byte))
        {
            self.line += u64::from(*byte == b'\n');
            self.at += 1;
        }
        self.line
    }
}

fn unreadable(error: csv::Error, lines: &mut Lines<'_>) -> RowsError {
    let line = lines.of_record(error.position());
    match error.into_kind() {
        ErrorKind::Io(error) => RowsError::Unreadable(error),
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            RowsError::Ragged { line, found: len, columns: expected_len }
        }
        ErrorKind::Utf8 { .. } => RowsError::NotUtf8(line),
        other => RowsError::Unreadable(io::Error::other(format!("{other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_values_and_lines() {
        let text = "\u{feff}id, name\r\n1,Ada\r\n\r\n2,\"a, \"\"b\"\"\nc\"\r\n3, x \r\n";
        let rows = read(text.as_bytes()).unwrap();
        assert_eq!(rows.columns, ["id", "name"]);
        assert_eq!(rows.values, [["1", "Ada"], ["2", "a, \"b\"\nc"], ["3", " x "]]);
        assert_eq!(rows.lines, [2, 4, 6]);
    }

    #[test]
    fn unusable_files_are_refused_with_the_line() {
        for (text, message) in [
            (&b""[..], "the file is empty"),
            (b" \n\n", "the file is empty"),
            (b"id,name\n", "line 1 names the columns, and no row follows"),
            (b"id,,x\n1,2,3\n", "line 1: column 2 has no name"),
            (b"id,x,id\n1,2,3\n", "line 1: column 3 has the same name as column 1"),
            (b"id,x\n1,2\n\n3\n", "line 4: the number of values is 1, and line 1 names 2 columns"),
            (b"id,x\n1,2\n3,4,5\n", "line 3: the number of values is 3, and line 1 names 2 columns"),
            (b"id\n1\n\xff\n", "line 3: this is not UTF-8"),
            (b"\xff\n1\n", "line 1: this is not UTF-8"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.to_string(), message, "{}", String::from_utf8_lossy(text));
            assert!(!error.remedy().is_empty());
        }
        let many = "x\n".repeat(MOST_ROWS + 2);
        assert!(matches!(read(many.as_bytes()), Err(RowsError::TooMany)));
    }
}
