//! Recorded traffic: a file of requests that clients once sent, how deadheat reads it, and what it contains.
//!
//! Owns: these nouns. The requests stay in the file; a record names the file by its digest. Must not know: formats of logs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::is_default;

/// A file of requests that clients once sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestLog {
    /// The file, as an absolute path. Resuming a race reads it again.
    pub file: PathBuf,
    /// How to read it.
    pub reading: LogReading,
    /// What it contains.
    pub contents: LogContents,
}

/// How to read a file of recorded requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogReading {
    /// The format. Default: deadheat recognises it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<LogFormat>,
    /// For JSON lines: names of fields, by their meaning (`path`, `time`, ...). Default: usual names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// For lines of another format: a regular expression whose named groups have the meanings of `fields`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// How times are written, in the syntax of `strptime`. Default: usual forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_format: Option<String>,
    /// Methods that are sent in addition to GET, HEAD and OPTIONS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_methods: Vec<String>,
    /// Only requests that were answered with one of these statuses are sent. Default: [`LogReading::STATUSES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statuses: Option<String>,
    /// Only requests to this host are sent. Default: all; of a HAR file, those to the host of its first request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether cookies and authorization of a HAR file are sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub credentials: bool,
}

impl LogReading {
    /// The default of `statuses`, and of the statuses that are right for requests of a log.
    pub const STATUSES: &str = "200-399";
}

/// The format of a file of recorded requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// The access log of nginx and Apache, common or combined.
    Combined,
    /// A JSON object on each line.
    Json,
    /// Lines that a pattern matches.
    Pattern,
    /// An HTTP archive, as browsers export it.
    Har,
}

impl LogFormat {
    /// All formats.
    pub const ALL: [LogFormat; 4] = [Self::Combined, Self::Json, Self::Pattern, Self::Har];

    /// The word that options and studies use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Json => "json",
            Self::Pattern => "pattern",
            Self::Har => "har",
        }
    }

    /// The format with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// What a file of recorded requests contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogContents {
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// Lines that are not empty; of a HAR file, its entries.
    pub lines: u64,
    /// Lines that are sent as requests.
    pub requests: u64,
    /// Number of different requests.
    pub distinct: u64,
    /// Lines that are sent as requests and do not say when the request was sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub untimed: u64,
    /// Time from the first request to the last, in nanoseconds. Absent if not all times are known, or all are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// Lines that could not be read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub broken: u64,
    /// Lines that were read and are not sent, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
}
