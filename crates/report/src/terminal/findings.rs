//! Findings on a terminal: one entry per code, however many contenders it is about.
//!
//! Owns: how messages of several contenders are combined in one line.

use deadheat_record::{Finding, Severity};

use super::paragraph::indented;
use crate::style::{Style, Tone};
use crate::text::plain;

/// Each finding with its remedy, the worst first.
pub(crate) fn lines(findings: &[Finding], style: &Style) -> Vec<String> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let same = |group: &&mut Vec<&Finding>| {
            let one = group[0];
            (&one.code, one.severity, &one.remedy) == (&finding.code, finding.severity, &finding.remedy)
                && one.contender.is_some()
                && finding.contender.is_some()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups.iter().flat_map(|group| entry(group, style)).collect()
}

fn entry(group: &[&Finding], style: &Style) -> Vec<String> {
    let (word, tone) = match group[0].severity {
        Severity::Invalid => ("invalid", Tone::Alarm),
        Severity::Warn => ("warning", Tone::Caution),
    };
    let text = format!("{word} {}: {}", plain(&group[0].code), said(group));
    let mut lines = indented(&text, 2, Tone::Plain, style);
    if let Some(first) = lines.first_mut() {
        *first = first.replacen(word, &style.paint(tone, word), 1);
    }
    lines.extend(indented(&format!("-> {}", plain(&group[0].remedy)), 4, Tone::Quiet, style));
    lines
}

/// If any contender's part of the message has more words than this, the common ending is not shared.
const MOST_OWN_WORDS: usize = 4;
/// Words after a figure that belong to it.
const UNITS: [&str; 9] = ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB"];

/// The combined message of several contenders, with as little repetition as possible.
fn said(group: &[&Finding]) -> String {
    let [first, rest @ ..] = group else { return String::new() };
    if rest.is_empty() {
        let who = first.contender.as_ref().map(|who| format!("{}: ", plain(who)));
        return who.unwrap_or_default() + &plain(&first.message);
    }
    let messages: Vec<Vec<&str>> = group.iter().map(|one| one.message.split(' ').collect()).collect();
    if messages.iter().all(|words| *words == messages[0]) {
        let names: Vec<String> = group.iter().map(|one| who(one)).collect();
        return format!("{}: {}", names.join(", "), plain(&first.message));
    }
    ending_alike(group, &messages).or_else(|| figures_apart(group, &messages)).unwrap_or_else(|| {
        let each = group.iter().map(|one| format!("{}: {}", who(one), plain(&one.message)));
        each.collect::<Vec<_>>().join("; ")
    })
}

fn who(one: &Finding) -> String {
    plain(one.contender.as_deref().unwrap_or_default())
}

/// `bun 71.2 %, node 84 % of its cores used`: the common ending of all messages appears once.
fn ending_alike(group: &[&Finding], messages: &[Vec<&str>]) -> Option<String> {
    let shared = messages[1..].iter().fold(messages[0].len(), |shared, words| {
        let same = messages[0].iter().rev().zip(words.iter().rev()).take_while(|(a, b)| a == b).count();
        shared.min(same)
    });
    // Keep a figure and its unit together.
    let unit = messages[0].get(messages[0].len() - shared).is_some_and(|word| UNITS.contains(word));
    let shared = shared - usize::from(unit && shared > 0);
    if messages.iter().any(|words| words.len() - shared > MOST_OWN_WORDS) {
        return None;
    }
    let own = |(one, words): (&&Finding, &Vec<&str>)| {
        format!("{} {}", who(one), plain(&words[..words.len() - shared].join(" ")))
    };
    let figures: Vec<String> = group.iter().zip(messages).map(own).collect();
    let end = plain(&messages[0][messages[0].len() - shared..].join(" "));
    Some(format!("{} {end}", figures.join(", ")).trim_end().into())
}

/// `bun: 30.2 µs of lag, 14.7 % of 205 µs (go: 26.6 µs, 12.0 %, 222 µs)`: the message of the first contender in full, and only the figures of the
/// others. None if the messages differ in more than figures.
fn figures_apart(group: &[&Finding], messages: &[Vec<&str>]) -> Option<String> {
    let first = messages[0].as_slice();
    if messages.iter().any(|words| words.len() != first.len()) {
        return None;
    }
    let bare = |word: &str| plain(word.trim_matches(['(', ')', ',', ';', ':']));
    let unit = |words: &[&str], at: usize| {
        words.get(at).map(|word| bare(word)).filter(|word| UNITS.contains(&word.as_str()))
    };
    let differs = |at: usize| messages.iter().any(|words| words[at] != first[at]);
    // A unit that differs is shown with the figure before it.
    let of_unit = |at: usize| unit(first, at + 1).is_some() && differs(at + 1);
    let apart: Vec<usize> =
        (0..first.len()).filter(|at| (differs(*at) && unit(first, *at).is_none()) || of_unit(*at)).collect();
    let is_figure = |word: &str| bare(word).starts_with(|one: char| one.is_ascii_digit());
    if apart.is_empty() || !apart.iter().all(|at| messages.iter().all(|words| is_figure(words[*at]))) {
        return None;
    }
    let figure = |words: &[&str], at: usize| {
        [Some(bare(words[at])), unit(words, at + 1)].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let others = group.iter().zip(messages).skip(1).map(|(one, words)| {
        let figures: Vec<String> = apart.iter().map(|at| figure(words, *at)).collect();
        format!("{}: {}", who(one), figures.join(", "))
    });
    let others: Vec<String> = others.collect();
    Some(format!("{}: {} ({})", who(group[0]), plain(&group[0].message), others.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_messages_have_in_common_is_said_once() {
        let of = |who: &str, message: &str| Finding::warn("x", message, "do").about(who);
        let (a, b) = (of("bun", "71.2 % of its cores used"), of("node", "84 % of its cores used"));
        assert_eq!(said(&[&a, &b]), "bun 71.2 %, node 84 % of its cores used");
        let (a, b) = (of("bun", "not warm"), of("node", "not warm"));
        assert_eq!(said(&[&a, &b]), "bun, node: not warm");
        let (a, b) = (of("bun", "not warm"), of("node", "never answered"));
        assert_eq!(said(&[&a, &b]), "bun not warm, node never answered");
        assert_eq!(said(&[&a]), "bun: not warm");
    }

    #[test]
    fn long_messages_are_said_once_and_the_other_figures_after_them() {
        let of = |who: &str, message: &str| Finding::warn("x", message, "do").about(who);
        let lag =
            |lag, share, median| format!("{lag} is the generator's lag, {share} % of the median of {median}");
        let (a, b) = (of("bun", &lag("30.2 µs", 14.7, "205 µs")), of("go", &lag("1.20 ms", 12.0, "9.90 ms")));
        let whole = "bun: 30.2 µs is the generator's lag, 14.7 % of the median of 205 µs";
        assert_eq!(said(&[&a, &b]), format!("{whole} (go: 1.20 ms, 12 %, 9.90 ms)"));
        let (c, d) = (of("a", "0.808 with all, against b"), of("c", "0.169 with all, against b"));
        assert_eq!(said(&[&c, &d]), "a 0.808, c 0.169 with all, against b");
        let (e, f) = (
            of("a", "ratio 0.794 without some of them, 0.808 with all"),
            of("c", "ratio 1.2 without some of them, 1.3 with all"),
        );
        assert_eq!(said(&[&e, &f]), "a: ratio 0.794 without some of them, 0.808 with all (c: 1.2, 1.3)");
        let ratio = |against| format!("ratio 0.7 without some of the rounds, against {against}");
        let (i, j) = (of("a", &ratio("b")), of("c", &ratio("d")));
        assert_eq!(
            said(&[&i, &j]),
            "a: ratio 0.7 without some of the rounds, against b; c: ratio 0.7 without some of the rounds, against d"
        );
        let (k, l) = (
            of("a", "failed 3 of 1,000 of its requests (timeout 3)"),
            of("c", "failed 5 of 2,000 of its requests (timeout 5)"),
        );
        assert_eq!(said(&[&k, &l]), "a: failed 3 of 1,000 of its requests (timeout 3) (c: 5, 2,000, 5)");
        let (m, n) = (
            of("a", "it waited in the mean for 1.20 ms and then for 3 s too"),
            of("c", "it waited in the mean for 1.20 µs and then for 3 s too"),
        );
        assert_eq!(said(&[&m, &n]), "a: it waited in the mean for 1.20 ms and then for 3 s too (c: 1.20 µs)");
        let (g, h) = (of("a", "one two three four five six"), of("b", "another thing that is told of it"));
        assert_eq!(said(&[&g, &h]), "a: one two three four five six; b: another thing that is told of it");
    }
}
