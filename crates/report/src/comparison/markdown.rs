//! A comparison as Markdown, suitable for a comment on a pull request.
//!
//! Owns: the table's columns and the escaping: names, versions and messages come from outside and must remain plain text. Must not know: how numbers
//! are computed.

use std::fmt::Write as _;

use deadheat_analysis::compare::{Change, CompareDocument, ComparedKind, ComparedScenario};
use deadheat_analysis::number::percent;
use deadheat_record::{Finding, VerdictWord};

use super::words::{label, outcome, quotient, sentence, shape, value};
use crate::markdown::{finding, table};
use crate::text::plain;

/// The whole comparison.
pub fn markdown(document: &CompareDocument) -> String {
    let mut out =
        format!("### deadheat: {} against {}\n\n", code(&document.new.file), code(&document.old.file));
    for line in headlines(document) {
        out += &format!("- {line}\n");
    }
    for scenario in &document.scenarios {
        out += &changes(document, scenario);
    }
    let findings = document.findings.iter();
    let findings: Vec<&Finding> =
        findings.chain(document.scenarios.iter().flat_map(|scenario| &scenario.findings)).collect();
    if !findings.is_empty() {
        out += "\n";
        findings.iter().for_each(|one| out += &finding(one));
    }
    if !document.conditions.is_empty() {
        out += "\n";
        for one in &document.conditions {
            let (word, rest) = outcome(one, &code);
            let word = if one.holds || one.is_unknown() { format!("**{word}**") } else { word.into() };
            out += &format!("- fail if {}: {word}{rest}\n", code(&one.condition));
        }
    }
    out += &foot(document);
    out
}

/// One sentence for each requested comparison; if there are many, only a count.
fn headlines(document: &CompareDocument) -> Vec<String> {
    if document.kind == ComparedKind::Loads {
        return vec!["one run each: no interval, no verdict".into()];
    }
    let mut lines = Vec::new();
    let many = document.scenarios.len() > 1;
    for scenario in &document.scenarios {
        let place = if many { format!("{}: ", code(&scenario.name)) } else { String::new() };
        for one in scenario.changes.iter().filter(|one| one.asked) {
            let said = sentence(one, document.margin, document.reference.as_deref(), &code);
            lines.push(format!("{place}{said}"));
        }
    }
    lines
}

fn changes(document: &CompareDocument, scenario: &ComparedScenario) -> String {
    let mut out = String::new();
    if document.kind == ComparedKind::Races {
        out += &format!("\n**{}**: {}\n", code(&scenario.name), text(&shape(&scenario.shape)));
    }
    let by = document.reference.as_ref().map_or_else(String::new, |one| format!(" by {}", code(one)));
    let titles = ["contender", "metric", "old", "new", &format!("new/old{by}"), "verdict"];
    let row = |(at, one): (usize, &Change)| {
        // Show a name once for all its metrics.
        let first = at == 0 || scenario.changes[at - 1].contender != one.contender;
        vec![
            if first { contender(one) } else { String::new() },
            label(one.metric, &scenario.shape),
            value(one.metric, one.old),
            value(one.metric, one.new),
            quotient(one),
            match one.verdict {
                VerdictWord::Slower | VerdictWord::Invalid if !one.negligible => {
                    format!("**{}**", one.verdict.word())
                }
                other => other.word().into(),
            },
        ]
    };
    out + &table(&titles, "---|---|--:|--:|---|---", scenario.changes.iter().enumerate().map(row))
}

/// The name, with its versions if they differ.
fn contender(one: &Change) -> String {
    let name = if one.contender == one.old_contender {
        code(&one.contender)
    } else {
        format!("{} (was {})", code(&one.contender), code(&one.old_contender))
    };
    match (&one.old_version, &one.new_version) {
        (Some(old), Some(new)) if old != new => format!("{name} {} → {}", code(old), code(new)),
        _ => name,
    }
}

fn foot(document: &CompareDocument) -> String {
    let how = match (&document.reference, document.kind) {
        (_, ComparedKind::Loads) => return String::new(),
        (Some(one), _) => format!("each epoch divided by {}", code(one)),
        (None, _) => "records measured apart".into(),
    };
    format!(
        "\n<sub>Intervals are Welch's at alpha {} per metric and scenario, half of it where a race had several looks; margin {}; {how}.</sub>\n",
        document.alpha,
        percent(document.margin)
    )
}

/// A name as code, so that nothing in it becomes a link, a mention, the end of a cell or HTML.
pub(crate) fn code(name: &str) -> String {
    let name = plain(name);
    let harmless = |one: char| one.is_ascii_alphanumeric() || " ._/:@#+=,~%()'\"-?&!*;".contains(one);
    if !name.is_empty() && name.chars().all(harmless) && name.trim() == name {
        return format!("`{name}`");
    }
    // Inside a table, a code span cannot hold every text. HTML with numeric character references can.
    let mut out = String::from("<code>");
    for one in name.chars() {
        if one.is_ascii() && !one.is_ascii_alphanumeric() && one != ' ' {
            // Writing to a String cannot fail.
            let _ = write!(out, "&#{};", one as u32);
        } else {
            out.push(one);
        }
    }
    out + "</code>"
}

/// Prose that contains names, with every character escaped that Markdown interprets.
pub(crate) fn text(prose: &str) -> String {
    let mut out = String::new();
    for one in plain(prose).replace("://", ":\u{0}//").replace("www.", "www\u{0}.").chars() {
        match one {
            // A zero-width space keeps the text from becoming a link.
            '\u{0}' => out.push_str("&#8203;"),
            // Mentions and issue links are recognized after character references are decoded.
            '@' | '#' => {
                let _ = write!(out, "&#{};&#8203;", one as u32);
            }
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '!' | '$' => {
                let _ = write!(out, "&#{};", one as u32);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_code() {
        assert_eq!(code("node 24.1"), "`node 24.1`");
        assert_eq!(code("@team #12 https://example.org"), "`@team #12 https://example.org`");
    }

    #[test]
    fn what_would_end_a_cell_or_a_span_is_spelt_out() {
        assert_eq!(code("a|b`c<i>"), "<code>a&#124;b&#96;c&#60;i&#62;</code>");
        assert_eq!(code("a\nb\\|"), "<code>a&#92;nb&#92;&#124;</code>");
        assert_eq!(code(""), "<code></code>");
        assert_eq!(code(" a"), "<code> a</code>");
    }

    #[test]
    fn prose_neither_links_nor_mentions() {
        assert_eq!(
            text("see https://a.b, @all #1 *x* <img>"),
            "see https:&#8203;//a.b, &#64;&#8203;all &#35;&#8203;1 &#42;x&#42; &#60;img&#62;"
        );
        assert_eq!(text("a\n| b"), "a&#92;n&#124; b");
    }
}
