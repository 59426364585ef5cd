//! Where CPU time goes, in Markdown: the functions that gained most, and the counts per request.
//!
//! Owns: the form of its tables. Must not know: how the gains were found.

use deadheat_analysis::number::{percent, time_ns};
use deadheat_analysis::{FunctionGain, Gains, ScenarioResult};

use super::table;
use crate::comparison::{code, text};
use crate::profile;

/// The tables; nothing if no contender was profiled.
pub(super) fn section(scenario: &ScenarioResult) -> String {
    if scenario.profiles.is_empty() {
        return String::new();
    }
    let about = sentence(&profile::about(&scenario.profiles));
    let lower = profile::lower_rate(scenario).map(|why| format!(" {}.", sentence(why)));
    let mut out = format!("\n{about}.{}\n", lower.unwrap_or_default());
    scenario.gains.iter().for_each(|one| out += &gains(one));
    let titles: Vec<String> = scenario.profiles.iter().map(|one| code(&one.contender)).collect();
    let titles: Vec<&str> = std::iter::once("per request").chain(titles.iter().map(String::as_str)).collect();
    let rows = profile::counts(&scenario.profiles).into_iter().map(|(title, values)| {
        std::iter::once(title.to_owned()).chain(values.into_iter().map(|(text, _)| text)).collect()
    });
    out + &table(&titles, &format!("---{}", "|--:".repeat(scenario.profiles.len())), rows)
}

/// Plain words as a sentence, without its full stop.
fn sentence(words: &str) -> String {
    let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
    text(&(first.to_uppercase() + rest))
}

fn gains(one: &Gains) -> String {
    let [contender, baseline] = [&one.contender, &one.baseline].map(|name| code(name));
    let headline = format!(
        "\n{contender} takes {} than {baseline}{}.",
        text(&profile::gained(one)),
        profile::unexplained(one)
    );
    if one.functions.is_empty() {
        return headline + "\n";
    }
    let counted = sentence(profile::COUNTED);
    let row = |function: &FunctionGain| {
        vec![
            code(&profile::named(&function.function, function.file.as_deref(), function.line)),
            time_ns(function.baseline_ns),
            time_ns(function.contender_ns),
            time_ns(function.gained_ns),
            percent(function.share),
            text(&profile::called(function)),
        ]
    };
    let share = format!("of {contender}");
    let titles = ["function", &baseline, &contender, "gained/request", &share, "most of it"];
    let rows = one.functions.iter().map(row);
    format!("{headline} {counted}.\n") + &table(&titles, "---|--:|--:|--:|--:|---", rows)
}
