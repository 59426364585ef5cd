//! Reads a scenario's limits for contenders: a CPU quota, cores, memory.

use deadheat_record::Limits;
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::{Fields, whole};
use super::words::shown;

/// With a quota below this share of a core, a contender gets less than a millisecond in most periods.
pub(super) const LEAST_CPUS: f64 = 0.01;
/// No machine has more processors.
pub(super) const MOST_CPUS: u32 = 1024;
/// No server fits into less memory than this.
const LEAST_MEMORY: u64 = 1 << 20;
/// Units of memory, by their letters.
const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Reads `cpus`, `cpuset` and `memory` of a scenario.
pub(super) fn limits(fields: &Fields<'_, '_>) -> Limits {
    Limits { cpus: cpus(fields), cpuset: cpuset(fields), memory_bytes: memory(fields), ..Limits::default() }
}

pub(super) fn cpus(fields: &Fields<'_, '_>) -> Option<f64> {
    let cpus = fields.number("cpus")?;
    let count = *cpus.get_ref();
    if !(LEAST_CPUS..=f64::from(MOST_CPUS)).contains(&count) {
        let title =
            format!("`cpus` of {} must be from {LEAST_CPUS} to {MOST_CPUS} cores", fields.table_name());
        let complaint = Complaint::new(cpus.span(), title, format!("found {count}"));
        fields.complain(complaint.help("a quota of CPU time, for example: cpus = 0.5"));
    }
    Some(count)
}

pub(super) fn cpuset(fields: &Fields<'_, '_>) -> Vec<usize> {
    let expected = "a list of processors, such as [0, 1]";
    let Some(list) = fields.items("cpuset", expected) else { return Vec::new() };
    if list.get_ref().is_empty() {
        let complaint = Complaint::new(
            list.span(),
            format!("`cpuset` of {} is empty", fields.table_name()),
            "no processor here",
        );
        fields.complain(complaint.help("leave it out to give contenders all of their cores"));
    }
    let mut cpus = Vec::new();
    for item in list.get_ref().iter() {
        match whole(item.get_ref()).and_then(|number| usize::try_from(number).ok()) {
            Some(cpu) if cpu < MOST_CPUS as usize && !cpus.contains(&cpu) => cpus.push(cpu),
            _ => fields.wrong("cpuset", "a list of different processors, such as [0, 1]", item),
        }
    }
    cpus
}

pub(super) fn memory(fields: &Fields<'_, '_>) -> Option<u64> {
    let memory = fields.text("memory")?;
    match bytes(memory.get_ref()) {
        Some(bytes) if bytes >= LEAST_MEMORY => Some(bytes),
        found => complain_of_memory(fields, &memory, found),
    }
}

fn complain_of_memory(fields: &Fields<'_, '_>, memory: &Spanned<String>, found: Option<u64>) -> Option<u64> {
    let (title, label) = match found {
        None => (format!("`{}` is not an amount of memory", shown(memory.get_ref())), "this amount"),
        Some(_) => {
            (format!("`memory` of {} must be at least 1MiB", fields.table_name()), "too little for a server")
        }
    };
    let complaint = Complaint::new(memory.span(), title, label);
    fields.complain(
        complaint.help("a number and kB, MB, GB, KiB, MiB or GiB, for example: memory = \"512MB\""),
    );
    None
}

/// The number of bytes of an amount such as `512MB` or `1.5 GiB`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    let bytes = number.parse::<f64>().ok()? * *factor as f64;
    (bytes < 1e18).then_some(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_unit() {
        for (text, expected) in [
            ("512MB", Some(512_000_000)),
            ("1.5 GiB", Some(1_610_612_736)),
            ("64KiB", Some(65_536)),
            ("7B", Some(7)),
            ("512", None),
            ("512mb", None),
            ("MB", None),
            ("1.2.3MB", None),
            ("-1MB", None),
            ("99999999999GB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
