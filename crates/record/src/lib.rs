//! The nouns of a race as deadheat writes them to disk, and the two kinds of file that hold them.
//!
//! Owns: the plan, the machine's facts, epochs, slices, findings; the journal (append-safe, one line per event), and where the record
//! stands in the document (`deadheat.record/1`, the public JSON contract).
//! Must not know: how anything is measured, derived, decided or shown.
#![warn(missing_docs)]

mod any;
mod audit;
mod claim;
mod collector;
mod doctor;
mod epoch;
mod experiment;
mod finding;
mod histogram;
mod journal;
mod json_path;
mod link;
mod load;
mod load_hosts;
mod machine;
mod metric;
mod packed;
mod page;
mod part;
mod peak;
mod plan;
mod profile;
mod readings;
mod request_log;
mod request_values;
mod scenario;
mod verdict;

pub use any::{AnyRecord, read_any, read_audit};
pub use audit::{
    AUDIT_SCHEMA, AuditRecord, CheckKind, CheckOutcome, ClaimHere, ClaimVerdict, GeneratorAudit,
    PublishedCheck,
};
pub use claim::Claim;
pub use collector::{Collector, CollectorKind, CollectorPass, Pauses};
pub use doctor::{
    BusyProcess, Clock, DOCTOR_SCHEMA, DoctorCeiling, DoctorLink, DoctorLinkHost, DoctorMode, DoctorRecord,
    Noise, NoiseFloor, Plant, Proof, ProofRace, ProofRow, Resolution,
};
pub use epoch::{
    ContenderEpoch, Difference, Epoch, ExternalReading, LaterCeiling, MemoryPoint, Outcomes, Pilot,
    PilotContender, Round, Slice, Usage,
};
pub use experiment::Experiment;
pub use finding::{Finding, Severity};
pub use histogram::{
    BEYOND, EncodedHistogram, FEWEST_BEYOND, HistogramError, QUANTILES, Quantiles, beyond, curve,
};
pub use journal::{End, Journal, Line, ReadError, Record, WriteError, blank, read};
pub use json_path::{JsonPath, JsonPathError, Step, place};
pub use link::{Link, LinkReading, ScenarioLink, Tunnel};
pub use load::{
    ArrivalsWord, Ceiling, Checked, Generator, LOAD_SCHEMA, LittlesLaw, LoadFault, LoadHost, LoadLimits,
    LoadMismatch, LoadRecord, LoadShape, LoadTimes, RoundTrips, Sent,
};
pub use load_hosts::{Bandwidth, LinkBandwidth, LoadHostEpoch, LoadHostShare, LoadHostsEpoch};
pub use machine::{CgroupKind, Machine, MachineDetails, Pinning};
pub use metric::{METRICS, Metric, MetricRow, Unit};
pub use peak::{Objective, PeakEnd, PeakSeen, Trial, TrialEnd};
pub use plan::Container;
pub use plan::{
    BodyRule, Contender, Ending, JsonRule, Limits, Listen, LoadFrom, Method, Plan, Probe, Rebuild, Replay,
    Revision, ScenarioPlan, ServerHost, Service, Share, Source, StatusRule, Traffic, Typed, Volatile,
};
pub use profile::{Function, ProfilePass, ProfileUsage, Stacks, Why};
pub use readings::{Handicap, HostReading, NetworkReading, Throttling};
pub use request_log::{LogContents, LogFormat, LogReading, RequestLog};
pub use request_values::{
    Capture, Rows, ValueError, ValuePlace, ValuesFile, command_placeholders, fill, is_unreserved,
    percent_encoded, placeholders,
};
pub use scenario::{Axis, Rung, Slices, SweepPoint};
pub use verdict::VerdictWord;

/// The schema that this version reads and writes. Keys do not change within this number.
pub const SCHEMA: &str = "deadheat.record/1";
