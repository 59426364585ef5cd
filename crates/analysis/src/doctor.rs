//! Examines a machine: derives results and findings from the measurements.
//!
//! Owns the conclusions of `deadheat doctor`. Must not know how anything was measured or is shown, flags or files.

mod derived;
mod findings;
mod proof;

use deadheat_record::{DoctorRecord, Severity};

pub use derived::{DIFFERENCES, Profile, Times, is_invalid};
pub use findings::{listed, named, virtual_machine};

/// Fills in what follows from the noise floor: the differences that races of two contenders can detect, with the default profile and the
/// longest one.
pub fn conclude_floor(record: &mut DoctorRecord, profiles: &[Profile; 2]) {
    let Some(floor) = &mut record.floor else { return };
    floor.sd_range = derived::sd_range(floor);
    let rows = if is_invalid(floor) { Vec::new() } else { derived::rows(floor, profiles) };
    record.resolution = rows.iter().map(|row| row.resolution).collect();
    record.sentence = Some(derived::sentence(floor, &rows, profiles));
}

/// Fills in everything else that follows from the measurements: the proof's rows, the findings, and whether the machine is fit. Call it again
/// after more measurements.
pub fn conclude(record: &mut DoctorRecord) {
    if let Some(proof) = &mut record.proof {
        proof::count(proof);
    }
    record.findings = findings::of(record);
    record.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    record.fit = record.findings.iter().all(|finding| finding.severity != Severity::Invalid);
}
