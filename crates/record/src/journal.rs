//! The journal: one JSON object per line, each on disk before the next thing starts.
//!
//! A line that a crash cut short is left out when the journal is read and cut off before it is continued, so that
//! killing the program loses at most the epoch in flight.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AUDIT_SCHEMA, CollectorPass, Contender, Difference, Epoch, Finding, LaterCeiling, Machine, Pilot, Plan,
    SCHEMA, packed,
};

/// How a race, or one part of it, came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every pair was decided at a look.
    Decided,
    /// The largest number of epochs was reached.
    Maximum,
    /// The time budget was used up.
    Budget,
    /// Parity or a gate left fewer than two contenders.
    Stopped,
    /// Nothing can be compared: too few requests in an epoch for any of its metrics, or every round disturbed in as many epochs as the first
    /// look takes.
    Unavailable,
}

/// One line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// Always the first.
    Header {
        /// [`SCHEMA`].
        schema: String,
        /// Version of the program that wrote it.
        version: String,
        /// Start in milliseconds since 1970.
        started_unix_ms: u64,
        /// What will be done.
        plan: Box<Plan>,
        /// Where.
        machine: Box<Machine>,
    },
    /// All differences that one parity check found.
    Parity {
        /// Empty when everybody agreed.
        differences: Vec<Difference>,
        /// Contenders that are not raced from here on.
        out: Vec<String>,
        /// The scenario in which that was seen; none when they are in none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scenario: Option<String>,
    },
    /// The warm-up length of a scenario was found.
    Pilot(Pilot),
    /// A session that went on with a scenario measured the generator's ceiling anew.
    Ceiling {
        /// The scenario's name.
        scenario: String,
        /// What it reached.
        #[serde(flatten)]
        ceiling: LaterCeiling,
    },
    /// An epoch was completed.
    Epoch(Box<Epoch>),
    /// Something was noticed outside an epoch.
    Finding {
        /// The scenario that it weakens; none for the whole race.
        scenario: Option<String>,
        /// What was noticed.
        finding: Finding,
    },
    /// The warm-up turned out too short: the scenario's epochs so far are set aside, and it begins anew with another.
    Anew {
        /// The scenario's name.
        scenario: String,
        /// The warm-up from here on.
        warmup_ns: u64,
        /// What was seen.
        reason: String,
    },
    /// A diagnostic pass saw the pauses of a contender's collector.
    Collector(CollectorPass),
    /// A scenario is over.
    Scenario {
        /// Its name.
        scenario: String,
        /// Why it is over.
        end: End,
    },
    /// The race was continued from this record.
    Resumed {
        /// When, in milliseconds since 1970.
        unix_ms: u64,
    },
    /// The race is over.
    Done,
}

/// A whole journal, read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// Version of the program that started it.
    pub version: String,
    /// Start in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// What was to be done.
    pub plan: Plan,
    /// Where.
    pub machine: Machine,
    /// All differences that parity checks found.
    pub differences: Vec<Difference>,
    /// Contenders that were put out of the race.
    pub out: Vec<String>,
    /// In which scenario they were, contender first: what they did in the scenarios before it stands. Those that are not
    /// listed here are in no scenario.
    #[serde(default)]
    pub out_in: Vec<(String, String)>,
    /// One pilot per scenario.
    pub pilots: Vec<Pilot>,
    /// All epochs, in time order.
    pub epochs: Vec<Epoch>,
    /// Epochs that were set aside because their warm-up was too short, in time order.
    #[serde(default)]
    pub set_aside: Vec<Epoch>,
    /// Scenarios that began anew: name, warm-up from there on in nanoseconds, what was seen.
    #[serde(default)]
    pub anew: Vec<(String, u64, String)>,
    /// Findings outside epochs: the scenario's name, or none for the whole race.
    pub findings: Vec<(Option<String>, Finding)>,
    /// What diagnostic passes saw of collectors, in time order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<CollectorPass>,
    /// Scenarios that are over, and why.
    pub ended: Vec<(String, End)>,
    /// When it was continued, in milliseconds since 1970.
    pub resumed_unix_ms: Vec<u64>,
    /// Whether the race came to its planned end.
    pub done: bool,
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line in the middle is not a line of a journal.
    #[error("{path}:{line}: not a line of a deadheat record: {source}; the file is damaged or not a record")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The file does not begin with a header.
    #[error("{path}: not a deadheat record: {found}; a record begins with a header of schema {SCHEMA}")]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What stands there.
        found: String,
    },
    /// The file is no audit.
    #[error(
        "{path}: not an audit: {found}; `deadheat audit STUDY --json FILE` writes one of schema {AUDIT_SCHEMA}"
    )]
    NotAnAudit {
        /// The file.
        path: PathBuf,
        /// What stands there.
        found: String,
    },
    /// A record of another schema.
    #[error(
        "{path}: schema {found}, and this version reads {SCHEMA}; use the version of deadheat that wrote it"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema found.
        found: String,
    },
}

/// Why a record could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file could not be opened or written.
    #[error(
        "the record {path} could not be written: {source}; free space or choose another place with --record FILE"
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A race that is running writes it.
    #[error(
        "the record {path} is being written by a race that is still running; wait for its end, or end it"
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
}

impl WriteError {
    fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// Whether a new record was to be made where there is a file already.
    pub fn already_exists(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    }
}

/// A journal that is open for writing. While it is, nobody else can open it so: the lock goes with the program, however
/// that ends.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts a journal; the file must not exist yet.
    ///
    /// # Errors
    /// When the file exists or cannot be made.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::io(path, source);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let file = OpenOptions::new().append(true).create_new(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        sync_folder(path).map_err(failed)?;
        Ok(Self { path: path.into(), file })
    }

    /// Opens a journal to continue it; a last line that was cut short is cut off. What the file says may be read only
    /// after that: until then a running race may write to it.
    ///
    /// # Errors
    /// When a running race writes it, or it cannot be opened.
    pub fn resume(path: &Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::io(path, source);
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let text = std::fs::read(path).map_err(failed)?;
        let whole = whole_lines(&text);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
            file.sync_data().map_err(failed)?;
        }
        Ok(Self { path: path.into(), file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line and waits until it is on disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, line: &Line) -> Result<(), WriteError> {
        let failed = |source| WriteError::io(&self.path, source);
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(failed)
    }
}

/// Keeps other races away from the file; where the file system knows no locks, nothing is done.
fn lock(file: &File, path: &Path) -> Result<(), WriteError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(WriteError::Busy { path: path.into() }),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(WriteError::io(path, error)),
    }
}

fn sync_folder(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Reads a record: a journal, the document that `--json` writes, or the page that holds it; packed by gzip or not.
pub fn read(path: &Path) -> Result<Record, ReadError> {
    let bytes = packed::bytes(path)?;
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(value) if value.get("line").is_none() => read_document(path, value),
        Ok(_) | Err(_) => read_journal(path, &bytes),
    }
}

/// What of a document is read: everything else in it was derived from this.
#[derive(Deserialize)]
struct Document {
    record: Record,
}

fn read_document(path: &Path, value: Value) -> Result<Record, ReadError> {
    check_schema(path, &value)?;
    match serde_json::from_value::<Document>(value) {
        Ok(document) => Ok(document.record),
        Err(error) => Err(ReadError::NotARecord { path: path.into(), found: error.to_string() }),
    }
}

/// The schema is looked at before anything else: what else a record of another schema holds is not known here.
fn check_schema(path: &Path, value: &Value) -> Result<(), ReadError> {
    match value.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => Ok(()),
        Some(other) => Err(ReadError::Schema { path: path.into(), found: other.into() }),
        None => Err(ReadError::NotARecord { path: path.into(), found: "it names no schema".into() }),
    }
}

fn read_journal(path: &Path, bytes: &[u8]) -> Result<Record, ReadError> {
    let mut lines = bytes[..whole_lines(bytes)].split(|byte| *byte == b'\n').enumerate();
    let mut record = read_header(path, lines.next().map_or(&[], |(_, line)| line))?;
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let line = serde_json::from_slice(line).map_err(|source| ReadError::Line {
            path: path.into(),
            line: index + 1,
            source,
        })?;
        record.apply(line);
    }
    Ok(record)
}

fn read_header(path: &Path, line: &[u8]) -> Result<Record, ReadError> {
    let refused = |found: String| ReadError::NotARecord { path: path.into(), found };
    let value: Value = serde_json::from_slice(line).map_err(|error| refused(error.to_string()))?;
    check_schema(path, &value)?;
    match serde_json::from_value(value).map_err(|error| refused(error.to_string()))? {
        Line::Header { version, started_unix_ms, plan, machine, .. } => {
            Ok(Record::new(version, started_unix_ms, *plan, *machine))
        }
        _ => Err(refused("another line comes first".into())),
    }
}

/// How many bytes belong to lines that were written to their end.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

impl Record {
    /// A record in which nothing has happened yet.
    pub fn new(version: String, started_unix_ms: u64, plan: Plan, machine: Machine) -> Self {
        Self {
            version,
            started_unix_ms,
            plan,
            machine,
            differences: Vec::new(),
            out: Vec::new(),
            out_in: Vec::new(),
            pilots: Vec::new(),
            epochs: Vec::new(),
            set_aside: Vec::new(),
            anew: Vec::new(),
            findings: Vec::new(),
            collectors: Vec::new(),
            ended: Vec::new(),
            resumed_unix_ms: Vec::new(),
            done: false,
        }
    }

    /// The line that a journal of this record begins with.
    pub fn header(&self) -> Line {
        Line::Header {
            schema: SCHEMA.into(),
            version: self.version.clone(),
            started_unix_ms: self.started_unix_ms,
            plan: Box::new(self.plan.clone()),
            machine: Box::new(self.machine.clone()),
        }
    }

    /// All lines of a journal that reads back as this record.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = vec![self.header()];
        if !self.differences.is_empty() || !self.out.is_empty() {
            let of_all = self.out.iter().filter(|name| self.out_in.iter().all(|(one, _)| one != *name));
            let (differences, out) = (self.differences.clone(), of_all.cloned().collect());
            lines.push(Line::Parity { differences, out, scenario: None });
        }
        lines.extend(self.out_in.iter().map(|(contender, scenario)| Line::Parity {
            differences: Vec::new(),
            out: vec![contender.clone()],
            scenario: Some(scenario.clone()),
        }));
        lines.extend(self.pilots.iter().cloned().map(Line::Pilot));
        lines.extend(self.set_aside.iter().cloned().map(|epoch| Line::Epoch(Box::new(epoch))));
        for (scenario, warmup_ns, reason) in &self.anew {
            lines.push(Line::Anew {
                scenario: scenario.clone(),
                warmup_ns: *warmup_ns,
                reason: reason.clone(),
            });
        }
        lines.extend(self.epochs.iter().cloned().map(|epoch| Line::Epoch(Box::new(epoch))));
        for (scenario, finding) in &self.findings {
            lines.push(Line::Finding { scenario: scenario.clone(), finding: finding.clone() });
        }
        lines.extend(self.collectors.iter().cloned().map(Line::Collector));
        for (scenario, end) in &self.ended {
            lines.push(Line::Scenario { scenario: scenario.clone(), end: *end });
        }
        lines.extend(self.resumed_unix_ms.iter().map(|unix_ms| Line::Resumed { unix_ms: *unix_ms }));
        if self.done {
            lines.push(Line::Done);
        }
        lines
    }

    /// Takes in one more line.
    pub fn apply(&mut self, line: Line) {
        match line {
            Line::Header { .. } => {}
            Line::Parity { differences, out, scenario } => {
                self.differences.extend(differences);
                self.out_in.extend(scenario.into_iter().flat_map(|scenario| {
                    out.iter().map(move |contender| (contender.clone(), scenario.clone()))
                }));
                self.out.extend(out);
            }
            Line::Pilot(pilot) => self.pilots.push(pilot),
            Line::Ceiling { scenario, ceiling } => {
                let pilot = self.pilots.iter_mut().find(|pilot| pilot.scenario == scenario);
                pilot.into_iter().for_each(|pilot| pilot.later_ceilings.push(ceiling));
            }
            Line::Epoch(epoch) => self.epochs.push(*epoch),
            Line::Anew { scenario, warmup_ns, reason } => {
                let (aside, kept) =
                    std::mem::take(&mut self.epochs).into_iter().partition(|one| one.scenario == scenario);
                self.epochs = kept;
                self.set_aside.extend::<Vec<Epoch>>(aside);
                self.anew.push((scenario, warmup_ns, reason));
            }
            Line::Finding { scenario, finding } => self.findings.push((scenario, finding)),
            Line::Collector(pass) => self.collectors.push(pass),
            Line::Scenario { scenario, end } => self.ended.push((scenario, end)),
            Line::Resumed { unix_ms } => {
                self.resumed_unix_ms.push(unix_ms);
                self.done = false;
            }
            Line::Done => self.done = true,
        }
    }

    /// Contenders that are in a scenario, as indices into the plan: those that were not put out in it or before it.
    pub fn racing(&self, scenario: &str) -> Vec<usize> {
        let place = |name: &str| self.plan.scenarios.iter().position(|one| one.name == name);
        let later = |name: &str| {
            let out_in = self.out_in.iter().find(|(contender, _)| contender == name);
            out_in.and_then(|(_, out_in)| place(out_in)) > place(scenario)
        };
        let planned = self.plan.scenario(scenario);
        let able = |one: &Contender| match planned.and_then(|planned| planned.shape.measure()) {
            Some(measure) => one.measures.contains_key(measure),
            None => !(one.plain_http_only && planned.is_some_and(|planned| planned.traffic.tls)),
        };
        let contenders = self.plan.contenders.iter().enumerate();
        contenders
            .filter(|(_, one)| able(one) && (!self.out.contains(&one.name) || later(&one.name)))
            .map(|(index, _)| index)
            .collect()
    }

    /// The epochs of one scenario, in time order.
    pub fn epochs_of<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Epoch> {
        self.epochs.iter().filter(move |epoch| epoch.scenario == scenario)
    }

    /// The warm-up of a scenario in nanoseconds: what its pilot found, or what it began anew with.
    pub fn warmup_ns(&self, scenario: &str) -> Option<u64> {
        let anew =
            self.anew.iter().rev().find(|(name, ..)| name == scenario).map(|(_, warmup_ns, _)| *warmup_ns);
        anew.or_else(|| {
            self.pilots.iter().find(|pilot| pilot.scenario == scenario).map(|pilot| pilot.warmup_ns)
        })
    }

    /// Why a scenario is over; none while it is not.
    pub fn end_of(&self, scenario: &str) -> Option<End> {
        self.ended.iter().rev().find(|(name, _)| name == scenario).map(|(_, end)| *end)
    }
}
