//! The words of a comparison that its renderings share.
//!
//! Owns: sentences, labels and units. Must not know: terminals or Markdown. `name` formats the names in sentences.

use deadheat_analysis::compare::Change;
use deadheat_analysis::number::{self, amount, interval, percent, ratio_within};
use deadheat_analysis::{ConditionPlace, ConditionResult};
use deadheat_record::{Experiment, Metric, Unit, VerdictWord};

use crate::text::plain;

/// A load in words, with text from outside escaped.
pub(crate) fn shape(of: &Experiment) -> String {
    plain(&deadheat_analysis::experiment::sentence(of))
}

/// A metric as a table names it. Latencies of a closed load are those of a server at saturation.
pub(crate) fn label(metric: Metric, of: &Experiment) -> String {
    match metric.quantile() {
        Some(_) if of.is_closed() => format!("{} at saturation", metric.row().column),
        Some(_) => metric.row().column.into(),
        None => metric.word().replace('_', " "),
    }
}

/// A value in its unit.
pub(crate) fn value(metric: Metric, value: Option<f64>) -> String {
    let unit = metric.row().unit;
    let per_second = if unit == Unit::Rate { "/s" } else { "" };
    value.map_or_else(|| "?".into(), |value| amount(unit, value) + per_second)
}

/// The ratio with its interval: `0.956 (0.944 to 0.969)`.
pub(crate) fn quotient(one: &Change) -> String {
    one.ratio.map_or_else(|| "?".into(), |value| number::quotient(value, one.low, one.high))
}

/// The outcome of a condition: its word, and what follows the word. `name` formats a name.
pub(crate) fn outcome(one: &ConditionResult, name: &dyn Fn(&str) -> String) -> (&'static str, String) {
    let place = |one: &ConditionPlace| {
        format!("{} in {} ({})", name(&one.contender), name(&one.scenario), name(one.metric.word()))
    };
    let places = |all: &[ConditionPlace]| all.iter().map(place).collect::<Vec<_>>().join(", ");
    match one.holds {
        true if one.unknown.is_empty() => ("holds", format!(": {}", places(&one.of))),
        true => (
            "holds",
            format!(": {}; and there is no valid comparison: {}", places(&one.of), places(&one.unknown)),
        ),
        false if one.is_unknown() => {
            ("unknown", format!(", because there is no valid comparison: {}", places(&one.unknown)))
        }
        false => ("does not hold", String::new()),
    }
}

/// A title within a sentence: "Cold start" as "cold start", but "CPU time" as it is.
fn in_a_sentence(title: &str) -> String {
    let is_word = title.chars().nth(1).is_some_and(char::is_lowercase);
    let (first, rest) = title.split_at(title.chars().next().map_or(0, char::len_utf8));
    if is_word { first.to_lowercase() + rest } else { title.into() }
}

/// The sentence about one contender in one metric. `name` formats a name.
pub(crate) fn sentence(
    one: &Change,
    margin: f64,
    reference: Option<&str>,
    name: &dyn Fn(&str) -> String,
) -> String {
    let who = name(&one.contender);
    let times = one.ratio.map_or_else(|| "?".into(), |value| ratio_within(value, one.low, one.high));
    let what = match one.metric.quantile() {
        Some(_) => format!("{} latency", one.metric.row().column),
        None => in_a_sentence(one.metric.row().title),
    };
    let against = reference.map_or_else(String::new, |one| format!(" against {}", name(one)));
    let within = interval(one.low, one.high);
    let figures = format!("{times}x the {what} it had{against} ({within})");
    let margin = percent(margin);
    match one.verdict {
        VerdictWord::Invalid => format!("no verdict on {who}: the comparison is invalid"),
        VerdictWord::Equivalent => format!("{who} is equivalent, within {margin}: {figures}"),
        VerdictWord::Inconclusive if one.old.is_none() || one.new.is_none() => {
            format!("can't tell whether {who} changed: too little is known of its {what}")
        }
        VerdictWord::Inconclusive if one.low.is_none() => {
            format!("can't tell whether {who} changed: too few epochs")
        }
        VerdictWord::Inconclusive => {
            let seen = one
                .detectable_ratio
                .map(|seen| format!("; a change of {} could have been detected", percent(seen - 1.0)));
            format!("can't tell whether {who} changed: {figures}{}", seen.unwrap_or_default())
        }
        VerdictWord::Faster | VerdictWord::Slower => {
            let aside = if one.negligible {
                format!(", a negligible difference (within {margin})")
            } else {
                String::new()
            };
            format!("{who} is {}: {figures}{aside}", one.verdict.word())
        }
    }
}
