//! Reads recorded traffic: access logs and HAR files become requests with their order and times, and an account of what was left out.
//!
//! Owns: the formats, which lines are requests, and when they were sent. Must not know: studies, contenders, how requests are sent again.

mod combined;
mod gather;
mod har;
mod json_lines;
mod pattern;
mod request_line;
mod stamp;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use deadheat_load::{Recording, StatusSetError};
use deadheat_record::{LogContents, LogFormat, LogReading, Plan};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::FileError;
use gather::Gathering;

/// Methods that are sent without permission: they change no data (RFC 9110, section 9.2.1).
pub const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
/// The meanings that a field of a log can have.
pub const FIELDS: [&str; 8] = ["request", "method", "path", "query", "status", "time", "host", "body"];
/// Words in the names of headers that identify a user or prove an identity.
const CREDENTIALS: [&str; 4] = ["auth", "authentication", "authorization", "key"];
/// What the words of such names contain.
const PARTS_OF_CREDENTIALS: [&str; 11] =
    ["apikey", "cookie", "credential", "csrf", "jwt", "nonce", "passw", "secret", "session", "token", "xsrf"];
/// Headers whose keys are none.
const NO_CREDENTIALS: [&str; 3] = ["idempotency-key", "sec-websocket-key", "surrogate-key"];
/// How many broken lines are kept to be shown.
const SHOWN: usize = 3;
/// A larger share of broken lines, in per cent, means that the file has another format.
const MOST_BROKEN: u64 = 10;
/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// The most requests of a file. Each takes 12 bytes of memory.
const MOST_REQUESTS: usize = 50_000_000;
/// The most different requests of a file. Each contender keeps a copy of them.
const MOST_DISTINCT: usize = 1 << 20;

/// Whether the header of this name may hold credentials.
pub fn is_credential(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    let names_one = |word: &str| {
        CREDENTIALS.contains(&word)
            || word.ends_with("auth")
            || PARTS_OF_CREDENTIALS.iter().any(|part| word.contains(part))
    };
    !NO_CREDENTIALS.contains(&header.as_str()) && header.split(['-', '_']).any(names_one)
}

/// The requests of a file, and what was left out.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedTraffic {
    /// The requests, their order and their times.
    pub recording: Recording,
    /// What the file contains.
    pub contents: LogContents,
    /// The first broken lines, at most three.
    pub broken: Vec<BrokenLine>,
    /// The format in which the file was read.
    pub format: LogFormat,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenLine {
    /// Its number, from 1; of a HAR file, that of the entry.
    pub line: u64,
    /// Its beginning, safe to print.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why a file of recorded requests cannot be used.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// The file could not be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is compressed.
    #[error("the file is compressed with gzip")]
    Compressed,
    /// The file is not a HAR file.
    #[error("this is not a HAR file: {0}")]
    Har(String),
    /// Too many lines are broken.
    #[error("{broken} of {lines} lines are broken:{}", listed(first))]
    Broken {
        /// How many.
        broken: u64,
        /// Lines that are not empty.
        lines: u64,
        /// The first broken ones.
        first: Vec<BrokenLine>,
    },
    /// No line is sent as a request.
    #[error("no request is left of {} lines{}", .0.lines, reasons(.0))]
    Nothing(Box<LogContents>),
    /// There are too many requests.
    #[error("there are more than {most} {what}")]
    TooMany {
        /// The limit.
        most: usize,
        /// Of what.
        what: &'static str,
    },
    /// The pattern is wrong.
    #[error("the pattern of the log: {0}")]
    Pattern(String),
    /// The pattern names no path.
    #[error("the pattern of the log has neither the group `path` nor the group `request`")]
    PatternWithoutPath,
    /// A field has a meaning that does not exist.
    #[error("a log has no field `{0}`")]
    Field(String),
    /// The format `pattern` needs a pattern.
    #[error("the format `pattern` needs a pattern")]
    NoPattern,
    /// A pattern or fields belong to another format.
    #[error("`{what}` cannot be combined with the format `{format}`")]
    Combination {
        /// What was given.
        what: &'static str,
        /// The format.
        format: &'static str,
    },
    /// The statuses are wrong.
    #[error("the statuses of the log: {0}")]
    Statuses(#[from] StatusSetError),
    /// The file has changed since the race was planned.
    #[error("the file has changed since the race was planned")]
    Changed,
}

impl TrafficError {
    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreadable(_) => "name a file that can be read".into(),
            Self::Compressed => "decompress it first: gunzip FILE".into(),
            Self::Har(_) => "export it again as HAR, or name another format".into(),
            Self::Broken { .. } => {
                "check the format: combined (nginx, Apache), json (with names of fields), har, or a pattern of \
                 your own; up to 10 % of the lines may be broken"
                    .into()
            }
            Self::Nothing(_) => {
                "allow their methods (allow_methods), statuses or host, or name another file".into()
            }
            Self::TooMany { .. } => "take a part of the file".into(),
            Self::Pattern(_) | Self::PatternWithoutPath | Self::NoPattern => {
                r#"a regular expression with named groups, such as '"(?<method>\w+) (?<path>\S+)'"#.into()
            }
            Self::Field(_) => format!("write one of {}", FIELDS.join(", ")),
            Self::Combination { .. } => {
                "fields belong to the format `json`, a pattern to the format `pattern`".into()
            }
            Self::Statuses(_) => "for example: 200-399,404".into(),
            Self::Changed => {
                "if its server still writes to it, race with a copy of it; with --resume, restore the file first".into()
            }
        }
    }
}

fn listed(lines: &[BrokenLine]) -> String {
    let line = |one: &BrokenLine| format!("\n    line {}: {}: `{}`", one.line, one.problem, one.text);
    lines.iter().map(line).collect()
}

fn reasons(contents: &LogContents) -> String {
    let left_out = contents.left_out.iter().map(|(reason, count)| format!("{count}: {reason}"));
    let broken = (contents.broken > 0).then(|| format!("{}: broken", contents.broken));
    let all: Vec<String> = left_out.chain(broken).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

impl RecordedTraffic {
    /// What was not sent, in words for the user; none if everything was.
    pub fn left_out(&self) -> Option<String> {
        let contents = &self.contents;
        let missing = contents.lines - contents.requests;
        let words = || format!("{missing} of {} lines are not sent{}", contents.lines, reasons(contents));
        // One line, because reports show it as one, and without the text: a record may be published, a log may not.
        let broken: Vec<String> = self.broken.iter().map(|one| one.line.to_string()).collect();
        let begin = match broken.len() {
            0 => String::new(),
            _ => format!("; the first broken lines: {}", broken.join(", ")),
        };
        (missing > 0).then(|| words() + &begin)
    }
}

/// Reads a log or a HAR file. Arbitrary bytes lead to requests or to an error.
///
/// # Errors
/// [`TrafficError`]: the settings are wrong, over 10 % of the lines are broken, or no request is left.
pub fn read(input: impl Read, reading: &LogReading) -> Result<RecordedTraffic, TrafficError> {
    let mut input = BufReader::with_capacity(1 << 16, Hashing { input, digest: Sha256::new() });
    let start = input.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Err(TrafficError::Compressed);
    }
    let format = match (reading.format, &reading.pattern) {
        (Some(format), _) => format,
        (None, Some(_)) => LogFormat::Pattern,
        (None, None) if !reading.fields.is_empty() => LogFormat::Json,
        (None, None) => recognise(start).unwrap_or(LogFormat::Combined),
    };
    combinable(reading, format)?;
    let mut gathering = Gathering::new(reading, format)?;
    match format {
        LogFormat::Har => har::read(&mut input, reading, &mut gathering)?,
        LogFormat::Combined => lines(&mut input, &mut gathering, combined::line)?,
        LogFormat::Json => {
            let fields = json_lines::Fields::of(&reading.fields);
            lines(&mut input, &mut gathering, |line| fields.line(line))?;
        }
        LogFormat::Pattern => {
            let pattern = pattern::Pattern::of(reading.pattern.as_deref().unwrap_or_default())?;
            lines(&mut input, &mut gathering, |line| pattern.line(line))?;
        }
    }
    io::copy(&mut input, &mut io::sink())?;
    gathering.finish(crate::hex(&input.into_inner().digest.finalize()))
}

/// Reads the file at `path`.
///
/// # Errors
/// As [`read`].
pub fn read_file(path: &Path, reading: &LogReading) -> Result<RecordedTraffic, FileError<TrafficError>> {
    let opened = File::open(path).map_err(TrafficError::from);
    opened.and_then(|file| read(file, reading)).map_err(|source| FileError { file: path.into(), source })
}

/// Reads the recorded traffic of all probes of a plan, by the probe's name.
///
/// # Errors
/// A file cannot be read, or it is not the one that the plan was made with.
pub fn recordings(plan: &Plan) -> Result<BTreeMap<String, Arc<Recording>>, FileError<TrafficError>> {
    let mut all = BTreeMap::new();
    for probe in &plan.probes {
        let Some(log) = &probe.log else { continue };
        let traffic = read_file(&log.file, &log.reading)?;
        if traffic.contents.sha256 != log.contents.sha256 {
            return Err(FileError { file: log.file.clone(), source: TrafficError::Changed });
        }
        all.insert(probe.name.clone(), Arc::new(traffic.recording));
    }
    Ok(all)
}

/// The format of a file that begins with these bytes, if it is a log or a HAR file. A HAR file begins with `"log": {`, and is no JSON with
/// further objects behind it; other objects may mean anything.
pub fn recognise(start: &[u8]) -> Option<LogFormat> {
    let start = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start).trim_ascii_start();
    if let Some(inner) = start.strip_prefix(b"{") {
        let value = inner.trim_ascii_start().strip_prefix(b"\"log\"").map(<[u8]>::trim_ascii_start);
        let object = value.and_then(|value| value.strip_prefix(b":")).map(<[u8]>::trim_ascii_start);
        let mut objects = serde_json::Deserializer::from_slice(start).into_iter::<serde::de::IgnoredAny>();
        let is_first_of_many = objects.next().is_some_and(|first| first.is_ok())
            && start[objects.byte_offset()..].trim_ascii_start().starts_with(b"{");
        let is_har = object.is_some_and(|object| object.starts_with(b"{")) && !is_first_of_many;
        return is_har.then_some(LogFormat::Har);
    }
    let mut lines = start.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.next().is_some_and(combined::is_log).then_some(LogFormat::Combined)
}

fn combinable(reading: &LogReading, format: LogFormat) -> Result<(), TrafficError> {
    if let Some(field) = reading.fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(TrafficError::Field(field.clone()));
    }
    let clash = |what| Err(TrafficError::Combination { what, format: format.word() });
    match format {
        LogFormat::Pattern if reading.pattern.is_none() => Err(TrafficError::NoPattern),
        LogFormat::Combined | LogFormat::Json | LogFormat::Har if reading.pattern.is_some() => {
            clash("pattern")
        }
        LogFormat::Combined | LogFormat::Pattern | LogFormat::Har if !reading.fields.is_empty() => {
            clash("fields")
        }
        _ => Ok(()),
    }
}

/// What a line says.
#[derive(Debug, PartialEq)]
enum Line {
    /// A request.
    Request(Entry),
    /// No request that can be sent, for this reason.
    LeftOut(Reason),
    /// Nothing that can be understood: what is wrong.
    Broken(String),
}

/// A request of a log, before deadheat decides whether to send it.
#[derive(Debug, Default, PartialEq)]
struct Entry {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    status: Option<u16>,
    /// When it was sent, as written.
    time: Option<String>,
    host: Option<String>,
}

/// Why a line that was read is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    NotHttp,
    NoPath,
    Method(String),
    Status,
    OtherHost,
    NoHost,
    WebSocket,
    Failed,
    OtherScheme,
    NoBody,
}

impl Reason {
    fn words(&self, statuses: &str) -> String {
        match self {
            Self::NotHttp => "no HTTP request".into(),
            Self::NoPath => "no path is requested".into(),
            Self::Method(method) => format!("method {method} is not in allow_methods"),
            Self::Status => format!("answered with another status than {statuses}"),
            Self::OtherHost => "sent to another host".into(),
            Self::NoHost => "the line does not say to which host it was sent".into(),
            Self::WebSocket => "a websocket".into(),
            Self::Failed => "failed when it was recorded".into(),
            Self::OtherScheme => "not http or https".into(),
            Self::NoBody => "the body is not in the file".into(),
        }
    }
}

/// Reads all lines with `understand`.
fn lines(
    input: &mut impl BufRead,
    gathering: &mut Gathering<'_>,
    understand: impl Fn(&[u8]) -> Line,
) -> Result<(), TrafficError> {
    let (mut number, mut buffer) = (0, Vec::new());
    while let Some(whole) = next_line(input, &mut buffer)? {
        number += 1;
        let line =
            if number == 1 { buffer.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&buffer) } else { &buffer };
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let found =
            if whole { understand(line) } else { Line::Broken("the line is longer than 1 MiB".into()) };
        gathering.add(number, line, found)?;
    }
    Ok(())
}

/// Reads the next line into `buffer`, without its end. Returns whether it was read whole; none at the end of the file.
fn next_line(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Option<bool>> {
    buffer.clear();
    let (mut any, mut whole) = (false, true);
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            return Ok(any.then_some(whole));
        }
        any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let room = LONGEST_LINE - buffer.len();
        whole &= part.len() <= room;
        buffer.extend_from_slice(&part[..part.len().min(room)]);
        let taken = part.len() + usize::from(end.is_some());
        input.consume(taken);
        if end.is_some() {
            return Ok(Some(whole));
        }
    }
}

/// Computes the digest of what is read.
struct Hashing<R> {
    input: R,
    digest: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.digest.update(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
