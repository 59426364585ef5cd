//! The journal: one JSON object per line. Each line is on disk before the next step starts.
//!
//! If a crash truncates the last line, reading ignores that line and resuming removes it. Killing the program therefore loses at most the epoch in
//! progress.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    AUDIT_SCHEMA, CollectorPass, Contender, Difference, Epoch, Finding, LaterCeiling, Machine, Pilot, Plan,
    ProfilePass, SCHEMA, ScenarioLink, packed,
};

/// Why a race, or one part of it, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every pair had a verdict at a look.
    Decided,
    /// The largest number of epochs was reached.
    Maximum,
    /// The time budget was used up.
    Budget,
    /// Parity or a gate excluded contenders until fewer than two were left.
    Stopped,
    /// Nothing can be compared: an epoch has too few requests for all of its metrics, or every round was disturbed in as many epochs as the first
    /// look needs.
    Unavailable,
}

/// One line of the journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// The first line of every journal.
    Header {
        /// [`SCHEMA`].
        schema: String,
        /// Version of the program that wrote it.
        version: String,
        /// Start in milliseconds since 1970.
        started_unix_ms: u64,
        /// The plan.
        plan: Box<Plan>,
        /// The machine.
        machine: Box<Machine>,
    },
    /// All differences that one parity check found.
    Parity {
        /// Empty if all contenders agreed.
        differences: Vec<Difference>,
        /// Contenders that are excluded from now on.
        out: Vec<String>,
        /// The scenario in which this was observed; absent if the contenders are excluded from all scenarios.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scenario: Option<String>,
    },
    /// The warm-up length of a scenario was found.
    Pilot(Pilot),
    /// A session that continued a scenario measured the generator's ceiling again.
    Ceiling {
        /// The scenario's name.
        scenario: String,
        /// The ceiling.
        #[serde(flatten)]
        ceiling: LaterCeiling,
    },
    /// The link of a scenario was made and measured.
    Link(ScenarioLink),
    /// An epoch was completed.
    Epoch(Box<Epoch>),
    /// A finding outside an epoch.
    Finding {
        /// The scenario that the finding weakens; absent for the whole race.
        scenario: Option<String>,
        /// The finding.
        finding: Finding,
    },
    /// The warm-up was too short. The scenario starts again with a longer one, and its epochs so far do not count.
    Anew {
        /// The scenario's name.
        scenario: String,
        /// Length of the new warm-up, in nanoseconds.
        warmup_ns: u64,
        /// What was observed.
        reason: String,
    },
    /// A diagnostic pass observed the pauses of a contender's garbage collector.
    Collector(CollectorPass),
    /// A diagnostic pass sampled where a contender spends CPU time.
    Profile(Box<ProfilePass>),
    /// A scenario ended.
    Scenario {
        /// The scenario's name.
        scenario: String,
        /// Why it ended.
        end: End,
    },
    /// The race was continued from this record.
    Resumed {
        /// Time, in milliseconds since 1970.
        unix_ms: u64,
    },
    /// The race ended.
    Done,
}

/// A complete journal after reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Record {
    /// Version of the program that started it.
    pub version: String,
    /// Start in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub machine: Machine,
    /// All differences that parity checks found.
    pub differences: Vec<Difference>,
    /// Contenders that were excluded from the race.
    pub out: Vec<String>,
    /// The scenario in which a contender was excluded, as pairs of contender and scenario. Its results in earlier scenarios remain valid. Contenders
    /// in `out` that are not listed here are in no scenario.
    #[serde(default)]
    pub out_in: Vec<(String, String)>,
    /// One pilot per scenario.
    pub pilots: Vec<Pilot>,
    /// What was measured of the scenarios' links, in time order: once before each scenario with a link, and again when the race was continued in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<ScenarioLink>,
    /// All epochs, in time order.
    pub epochs: Vec<Epoch>,
    /// Epochs that do not count because their warm-up was too short, in time order.
    #[serde(default)]
    pub set_aside: Vec<Epoch>,
    /// Scenarios that started again with another warm-up: name, new warm-up in nanoseconds, reason.
    #[serde(default)]
    pub anew: Vec<(String, u64, String)>,
    /// Findings outside epochs: the scenario's name, or none for the whole race.
    pub findings: Vec<(Option<String>, Finding)>,
    /// Diagnostic passes of garbage collectors, in time order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectors: Vec<CollectorPass>,
    /// Diagnostic passes that sampled where contenders spend CPU time, in time order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfilePass>,
    /// Scenarios that ended, and why.
    pub ended: Vec<(String, End)>,
    /// Times at which the race was continued, in milliseconds since 1970.
    pub resumed_unix_ms: Vec<u64>,
    /// Whether the race reached its planned end.
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
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line other than the last is not a valid journal line.
    #[error("{path}:{line}: not a line of a deadheat record: {source}; the file is damaged or not a record")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The file does not begin with a header.
    #[error("{path}: not a deadheat record: {found}; a record begins with a header of schema {SCHEMA}")]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What the file contains instead.
        found: String,
    },
    /// The file is not an audit.
    #[error(
        "{path}: not an audit: {found}; `deadheat audit STUDY --json FILE` writes one of schema {AUDIT_SCHEMA}"
    )]
    NotAnAudit {
        /// The file.
        path: PathBuf,
        /// What the file contains instead.
        found: String,
    },
    /// The record has another schema.
    #[error(
        "{path}: schema {found}, and this version reads {SCHEMA}; use the version of deadheat that wrote it"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema of the record.
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
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A running race is writing the record.
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

    /// Whether the error is that a new record was requested and the file already exists.
    pub fn already_exists(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
    }
}

/// A journal that is open for writing. A lock keeps other processes from opening it for writing, and is released when the program ends for any
/// reason.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Starts a journal. The file must not exist yet, or be [`blank`].
    ///
    /// # Errors
    /// When the file exists or cannot be created.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::io(path, source);
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        // A file that another race has just made, and has locked, exists as any other does.
        let locked = |file: File| match lock(&file, path) {
            Err(WriteError::Busy { .. }) => Err(failed(ErrorKind::AlreadyExists.into())),
            locked => locked.map(|()| file),
        };
        let file = match OpenOptions::new().append(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && blank(path) => {
                let file = locked(OpenOptions::new().append(true).open(path).map_err(failed)?)?;
                // The other race may be over by now.
                if !blank(path) {
                    return Err(failed(error));
                }
                file.set_len(0).map_err(failed)?;
                file
            }
            opened => locked(opened.map_err(failed)?)?,
        };
        sync_folder(path).map_err(failed)?;
        Ok(Self { path: path.into(), file })
    }

    /// Opens a journal to continue it, and removes a truncated last line. Read the file only after this call: before it, a running race may still
    /// write to the file.
    ///
    /// # Errors
    /// When a running race is writing the file, when it cannot be opened, or when it is no journal: then it stays as it is.
    pub fn resume(path: &Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::io(path, source);
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let text = std::fs::read(path).map_err(failed)?;
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let header: Option<Value> = serde_json::from_slice(first).ok();
        if header.is_none_or(|header| header["line"] != "header") {
            return Err(failed(std::io::Error::other("it is not a journal of a race")));
        }
        let whole = whole_lines(&text);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
            file.sync_data().map_err(failed)?;
        }
        Ok(Self { path: path.into(), file })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes lines that another process has written to its own journal of the same race, and waits until they are on disk. The caller makes sure that
    /// they are complete.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_text(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let failed = |source| WriteError::io(&self.path, source);
        self.file.write_all(lines).and_then(|()| self.file.sync_data()).map_err(failed)
    }

    /// Writes a line and waits until it is on disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, line: &Line) -> Result<(), WriteError> {
        let mut text = serde_json::to_vec(line).map_err(|error| WriteError::io(&self.path, error.into()))?;
        text.push(b'\n');
        self.append_text(&text)
    }
}

/// Locks the file against other races. Does nothing if the file system does not support locks.
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

/// Reads a record from a journal, from the document that `--json` writes, or from an HTML report. Each may be compressed with gzip.
pub fn read(path: &Path) -> Result<Record, ReadError> {
    let bytes = packed::bytes(path)?;
    let value = serde_json::from_slice(&bytes).ok();
    read_unpacked(path, &bytes, value)
}

/// As [`read`], from the file's unpacked bytes, and from their JSON value if they are one.
pub(crate) fn read_unpacked(path: &Path, bytes: &[u8], value: Option<Value>) -> Result<Record, ReadError> {
    match value {
        Some(value) if value.get("line").is_none() => read_document(path, value),
        Some(_) | None => read_journal(path, bytes),
    }
}

/// The part of a document that is read. Everything else in the document is derived from it.
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

/// Schemas of files that are no record.
const OTHER_KINDS: [&str; 3] = ["deadheat.audit/", "deadheat.compare/", "deadheat.doctor/"];

/// Checks the schema before anything else, because the content of other schemas is unknown.
fn check_schema(path: &Path, value: &Value) -> Result<(), ReadError> {
    match value.get("schema").and_then(Value::as_str) {
        Some(SCHEMA) => Ok(()),
        Some(other)
            if other == crate::LOAD_SCHEMA || OTHER_KINDS.iter().any(|kind| other.starts_with(kind)) =>
        {
            Err(ReadError::NotARecord { path: path.into(), found: format!("it has the schema {other}") })
        }
        Some(other) => Err(ReadError::Schema { path: path.into(), found: other.into() }),
        None => Err(ReadError::NotARecord { path: path.into(), found: "it names no schema".into() }),
    }
}

fn read_journal(path: &Path, bytes: &[u8]) -> Result<Record, ReadError> {
    let mut lines = bytes[..whole_lines(bytes)].split(|byte| *byte == b'\n').enumerate();
    let mut record = read_header(path, lines.next().map_or(&[], |(_, line)| line))?;
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let damaged = |source| ReadError::Line { path: path.into(), line: index + 1, source };
        let line = serde_json::from_slice(line).map_err(damaged)?;
        if let Some(problem) = record.contradicted_by(&line) {
            return Err(damaged(serde::de::Error::custom(problem)));
        }
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

/// Whether this is a file in which nothing is lost if a new record begins there: an empty one, or one that ends in the middle of a record's first line, for
/// example because the disk was full.
pub fn blank(path: &Path) -> bool {
    /// How a journal begins.
    const BEGINNING: &[u8] = b"{\"line\":\"header\",\"schema\":\"deadheat.record/";
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let Ok(bytes) = (if is_file { std::fs::read(path) } else { return false }) else { return false };
    let has_begun = bytes.starts_with(BEGINNING) || BEGINNING.starts_with(&bytes);
    has_begun && whole_lines(&bytes) == 0
}

/// Number of bytes up to the end of the last complete line.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

impl Record {
    /// A record of a race before its first event.
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
            links: Vec::new(),
            epochs: Vec::new(),
            set_aside: Vec::new(),
            anew: Vec::new(),
            findings: Vec::new(),
            collectors: Vec::new(),
            profiles: Vec::new(),
            ended: Vec::new(),
            resumed_unix_ms: Vec::new(),
            done: false,
        }
    }

    /// The first line of a journal of this record.
    pub fn header(&self) -> Line {
        Line::Header {
            schema: SCHEMA.into(),
            version: self.version.clone(),
            started_unix_ms: self.started_unix_ms,
            plan: Box::new(self.plan.clone()),
            machine: Box::new(self.machine.clone()),
        }
    }

    /// All lines of a journal that yields this record when it is read.
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
        lines.extend(self.links.iter().cloned().map(Line::Link));
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
        lines.extend(self.profiles.iter().cloned().map(Box::new).map(Line::Profile));
        for (scenario, end) in &self.ended {
            lines.push(Line::Scenario { scenario: scenario.clone(), end: *end });
        }
        lines.extend(self.resumed_unix_ms.iter().map(|unix_ms| Line::Resumed { unix_ms: *unix_ms }));
        if self.done {
            lines.push(Line::Done);
        }
        lines
    }

    /// Why a line cannot follow in the journal of one race: two journals may have been joined. None if it can.
    fn contradicted_by(&self, line: &Line) -> Option<&'static str> {
        match line {
            Line::Header { .. } => Some("a second header, of another race"),
            Line::Epoch(new) => {
                let is_same = |one: &Epoch| (one.number, &one.scenario) == (new.number, &new.scenario);
                self.epochs.iter().rev().any(is_same).then_some("an epoch that is there already")
            }
            _ => None,
        }
    }

    /// Applies one more line.
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
                if let Some(pilot) = self.pilots.iter_mut().find(|pilot| pilot.scenario == scenario) {
                    pilot.later_ceilings.push(ceiling);
                }
            }
            Line::Link(link) => self.links.push(link),
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
            Line::Profile(pass) => self.profiles.push(*pass),
            Line::Scenario { scenario, end } => self.ended.push((scenario, end)),
            Line::Resumed { unix_ms } => {
                self.resumed_unix_ms.push(unix_ms);
                self.done = false;
            }
            Line::Done => self.done = true,
        }
    }

    /// Contenders that race in a scenario, as indices into the plan: those that were not excluded in this scenario or an earlier one.
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

    /// What was measured of a scenario's link before the last epochs; none without a link.
    pub fn link_of(&self, scenario: &str) -> Option<&ScenarioLink> {
        self.links.iter().rfind(|one| one.scenario == scenario)
    }

    /// The warm-up of a scenario in nanoseconds: the one that its pilot found, or the later one with which it started again.
    pub fn warmup_ns(&self, scenario: &str) -> Option<u64> {
        let anew =
            self.anew.iter().rev().find(|(name, ..)| name == scenario).map(|(_, warmup_ns, _)| *warmup_ns);
        anew.or_else(|| {
            self.pilots.iter().find(|pilot| pilot.scenario == scenario).map(|pilot| pilot.warmup_ns)
        })
    }

    /// Why a scenario ended; none while it has not ended.
    pub fn end_of(&self, scenario: &str) -> Option<End> {
        self.ended.iter().rev().find(|(name, _)| name == scenario).map(|(_, end)| *end)
    }
}
