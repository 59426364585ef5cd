//! Words and numbers about profiles that terminal, Markdown and page share.
//!
//! Owns: which counts are shown, and how a function is named. Must not know: where they are shown.

use deadheat_analysis::number::{self, three_digits, time_ns};
use deadheat_analysis::{FunctionGain, Gains, ProfileResult, ScenarioResult};
use deadheat_record::Experiment;

/// The source of the numbers.
pub(crate) const ABOUT: &str = "where CPU time goes, from a separate diagnostic pass with each contender alone; all other figures were measured without it";

/// The conditions of the pass.
pub(crate) fn about(profiles: &[ProfileResult]) -> String {
    let Some(first) = profiles.first() else { return ABOUT.into() };
    let only = if profiles.iter().any(|one| one.user_only) { "; without the kernel's code" } else { "" };
    format!("{ABOUT}; {}{only}", rate(first))
}

/// The rate of the pass.
pub(crate) fn rate(one: &ProfileResult) -> String {
    format!("{} requests/s", three_digits(one.rate_per_s))
}

/// Why the CPU time of the pass is not that of the scenario, for a scenario that loads each contender as much as it can answer.
pub(crate) fn lower_rate(scenario: &ScenarioResult) -> Option<&'static str> {
    matches!(scenario.shape, Experiment::Closed { .. }).then_some(
        "at this rate, below full load, a contender wakes up more often for the same requests, so neither its CPU time per request nor the difference is \
         that of the table above",
    )
}

/// How much more CPU time a contender takes for a request.
pub(crate) fn gained(one: &Gains) -> String {
    let more = if one.gained_ns < 0.0 { "less" } else { "more" };
    format!("{} {more} CPU time per request", time_ns(one.gained_ns.abs()))
}

/// What follows if no function gained time.
pub(crate) fn unexplained(one: &Gains) -> &'static str {
    if one.functions.is_empty() { "; no function gained more than chance explains" } else { "" }
}

/// What the times of the functions that gained most include.
pub(crate) const COUNTED: &str = "a function of your own code counts with the runtime, libraries and kernel that it calls; any other function counts alone";

/// The called function in which most of a gain is, and how much; empty if more of it is in the function itself.
pub(crate) fn called(one: &FunctionGain) -> String {
    let called = one.called.as_ref();
    called.map_or_else(String::new, |called| format!("{} in {}", time_ns(called.gained_ns), called.function))
}

/// The place of a function in the source, or the file of code without a name; empty if unknown.
pub(crate) fn place(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        _ => String::new(),
    }
}

/// A function with its place.
pub(crate) fn named(function: &str, file: Option<&str>, line: Option<u32>) -> String {
    format!("{function} {}", place(file, line)).trim_end().to_owned()
}

/// A count: how it is shown, and its value.
pub(crate) type Count = (String, Option<f64>);

/// The counts per request that are known of at least one contender: title and one value for each contender.
pub(crate) fn counts(profiles: &[ProfileResult]) -> Vec<(&'static str, Vec<Count>)> {
    /// A title, the value of a profile, and how it is shown.
    type Row = (&'static str, fn(&ProfileResult) -> Option<f64>, fn(f64) -> String);
    let rows: [Row; 7] = [
        ("CPU time", |one| Some(one.cpu_ns_per_request), time_ns),
        ("system calls", |one| one.system_calls_per_request, three_digits),
        ("page faults", |one| one.page_faults_per_request, three_digits),
        ("context switches", |one| one.switches_per_request, three_digits),
        ("sent", |one| Some(one.sent_bytes_per_request), bytes),
        ("received", |one| Some(one.received_bytes_per_request), bytes),
        ("memory growth", |one| one.memory_growth_bytes_per_request, bytes),
    ];
    let row = |(title, of, show): Row| {
        let value = |one: &ProfileResult| {
            let value = of(one);
            (value.map_or_else(|| "–".to_owned(), show), value)
        };
        (title, profiles.iter().map(value).collect::<Vec<Count>>())
    };
    let known = |(_, values): &(&str, Vec<Count>)| values.iter().any(|(_, value)| value.is_some());
    rows.into_iter().map(row).filter(known).collect()
}

/// Bytes, also negative ones.
fn bytes(value: f64) -> String {
    let sign = if value < -0.5 { "-" } else { "" };
    format!("{sign}{}", number::bytes(value.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_with_its_place() {
        assert_eq!(named("slow", Some("s.mjs"), Some(3)), "slow s.mjs:3");
        assert_eq!(named("[no symbols]", Some("server"), None), "[no symbols] server");
        assert_eq!(named("main.slow", None, None), "main.slow");
    }

    #[test]
    fn memory_may_shrink() {
        assert!(bytes(-2_048.0).starts_with('-') && !bytes(0.0).starts_with('-'));
    }
}
