//! An examination of a machine: what follows from what was measured, what is wrong, and how it is shown.
//!
//! Owns what `deadheat doctor` concludes and prints. Must not know how anything was measured, flags or files.

mod derived;
mod findings;
mod proof;
mod summary;

use deadheat_record::{DoctorRecord, Severity};

pub use findings::CODES;
pub use summary::{announcement, race_line, summary};

/// The differences for which it is said what it takes to tell them apart.
pub const DIFFERENCES: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];

/// Fills in everything that follows from what was measured: what can be told apart, the proof's rows, the findings, whether
/// the machine is fit. May be called again after more was measured.
pub fn conclude(record: &mut DoctorRecord) {
    if let Some(floor) = &mut record.floor {
        floor.sd_range = derived::sd_range(floor);
    }
    let rows = record.floor.as_ref().map(derived::rows).unwrap_or_default();
    record.resolution = rows.iter().map(|row| row.resolution).collect();
    record.sentence = record.floor.as_ref().map(|floor| derived::sentence(floor, &rows));
    if let Some(proof) = &mut record.proof {
        proof::count(proof);
    }
    record.findings = findings::of(record);
    record.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    record.fit = record.findings.iter().all(|finding| finding.severity != Severity::Invalid);
}
