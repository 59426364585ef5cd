//! Findings on a terminal: one entry per code, however many contenders it is about.
//!
//! Owns how messages of several contenders stand on one line.

use deadheat_record::{Finding, Severity};

use super::indented;
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

/// `bun 71.2 %, node 84 % of its cores used`: what all messages end with is said once.
fn said(group: &[&Finding]) -> String {
    let [first, rest @ ..] = group else { return String::new() };
    if rest.is_empty() {
        let who = first.contender.as_ref().map(|who| format!("{}: ", plain(who)));
        return who.unwrap_or_default() + &plain(&first.message);
    }
    let messages: Vec<Vec<&str>> = group.iter().map(|one| one.message.split(' ').collect()).collect();
    let shared = messages[1..].iter().fold(messages[0].len(), |shared, words| {
        let same = messages[0].iter().rev().zip(words.iter().rev()).take_while(|(a, b)| a == b).count();
        shared.min(same)
    });
    // A figure keeps its unit.
    let unit = messages[0].get(messages[0].len() - shared).is_some_and(|word| *word == "%");
    let shared = shared - usize::from(unit && shared > 0);
    let who = |one: &Finding| plain(one.contender.as_deref().unwrap_or_default());
    if shared == messages[0].len() && messages.iter().all(|words| words.len() == shared) {
        let names: Vec<String> = group.iter().map(|one| who(one)).collect();
        return format!("{}: {}", names.join(", "), plain(&first.message));
    }
    let own = |(one, words): (&&Finding, &Vec<&str>)| {
        format!("{} {}", who(one), plain(&words[..words.len() - shared].join(" ")))
    };
    let figures: Vec<String> = group.iter().zip(&messages).map(own).collect();
    let end = plain(&messages[0][messages[0].len() - shared..].join(" "));
    format!("{} {end}", figures.join(", ")).trim_end().into()
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
}
