//! The table of all differences that a parity check found.
//!
//! Owns: the table of `check`. Must not know: how answers are compared.

use deadheat_record::Difference;

use crate::style::{Style, Tone};
use crate::text::{columns, count, left, plain, shorten_end, shorten_middle, wrap};

/// The differences grouped by contender, then by probe, with their count in the last line.
pub fn parity(differences: &[Difference], style: &Style) -> String {
    let mut lines = Vec::new();
    for (name, of_contender) in grouped(differences.iter().collect(), |one| &one.contender) {
        lines.extend(wrap(&plain(name), style.width).iter().map(|line| style.paint(Tone::Strong, line)));
        for (probe, of_probe) in grouped(of_contender, |one| &one.probe) {
            lines.extend(of_one_probe(probe, &of_probe, style));
        }
        lines.push(String::new());
    }
    lines.push(total(differences));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Groups in the order in which their names first appear.
fn grouped(all: Vec<&Difference>, name: fn(&Difference) -> &String) -> Vec<(&str, Vec<&Difference>)> {
    let mut groups: Vec<(&str, Vec<&Difference>)> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|(group, _)| group == name(one)) {
            Some((_, group)) => group.push(one),
            None => groups.push((name(one), vec![one])),
        }
    }
    groups
}

/// One line per difference if both values fit next to the path, otherwise three.
fn of_one_probe(probe: &str, differences: &[&Difference], style: &Style) -> Vec<String> {
    let mark = style.spell("…");
    let inner = style.width.saturating_sub(4);
    let texts = |value: fn(&Difference) -> &String| -> Vec<String> {
        differences.iter().map(|one| plain(value(one))).collect()
    };
    let (paths, expected) = (texts(|one| &one.path), texts(|one| &one.expected));
    let (got, against) = (texts(|one| &one.got), texts(|one| &one.against));
    let widest = |texts: &[String], title: &str| {
        texts.iter().map(|text| columns(text)).fold(columns(title), usize::max)
    };
    let path_width = widest(&paths, "path").min(inner / 3);
    let value_most = inner.saturating_sub(path_width + 4) / 2;
    let expected_width = widest(&expected, "expected").min(value_most);
    let got_most = inner.saturating_sub(path_width + expected_width + 4);
    let title = format!("  {}", shorten_end(&plain(probe), style.width.saturating_sub(2), &mark));
    let line = |path: &str, expected: &str, got: &str| {
        format!("    {}  {}  {got}", left(path, path_width), left(expected, expected_width))
            .trim_end()
            .to_owned()
    };
    let mut lines = vec![title, style.paint(Tone::Quiet, &line("path", "expected", "got"))];
    for index in 0..differences.len() {
        let got_text = shorten_middle(&got[index], got_most, &mark);
        let expected_text = shorten_middle(&expected[index], expected_width, &mark);
        lines.push(line(&shorten_middle(&paths[index], path_width, &mark), &expected_text, &got_text));
        let both = expected_width.min(got_most);
        let alike = |text: &str| shorten_middle(text, both, &mark);
        if got[index] != expected[index] && alike(&got[index]) == alike(&expected[index]) {
            lines.extend(hidden(&expected[index], &got[index], inner, &mark));
        }
        let source = source(&against[index], &differences[index].when);
        if let Some(source) = source {
            lines
                .push(style.paint(Tone::Quiet, &format!("      {}", shorten_end(&source, inner - 2, &mark))));
        }
    }
    lines
}

/// Both values around the position where they start to differ, if shortening removed it.
fn hidden(expected: &str, got: &str, width: usize, mark: &str) -> [String; 2] {
    let same = expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(12);
    let around = |text: &str| {
        let rest: String = text.chars().skip(from).collect();
        shorten_end(&format!("{mark}{rest}"), width.saturating_sub(12), mark)
    };
    [format!("      expected  {}", around(expected)), format!("      got       {}", around(got))]
}

/// The place and time of a difference, if worth showing. The contract before the race is not.
fn source(against: &str, when: &str) -> Option<String> {
    let compared = match against {
        "contract" => None,
        "its own answer before the load" => Some(format!("compared with {against}")),
        other => Some(format!("compared with the answer of {other}")),
    };
    let moment = (when != "before").then(|| plain(when));
    let parts: Vec<String> = compared.into_iter().chain(moment).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn total(differences: &[Difference]) -> String {
    let mut names: Vec<&str> = differences.iter().map(|one| one.contender.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    match differences.len() {
        0 => "parity: every contender answers alike".into(),
        n => {
            format!("parity: {} in {}", count(n as u64, "difference"), count(names.len() as u64, "contender"))
        }
    }
}
