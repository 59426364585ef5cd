//! The report page: one HTML file that contains the record, its figures and the code that shows them.
//!
//! Owns: how the document is embedded in the page, so that the browser treats it only as data. Must not know: what the page shows. Its source is in
//! `web/`, built into `assets/report.html`.

use std::collections::BTreeMap;
use std::io;

use deadheat_analysis::Report;
use deadheat_analysis::experiment::of_scenario;
use deadheat_record::{AuditRecord, METRICS};
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::figures::{Figure, Scope};
use crate::{ReportError, plain};

/// The page without data; `npm run build` in `web/` generates it.
const PAGE: &str = include_str!("../assets/report.html");
/// Placeholder for the document: the whole content of a `<script type="application/json">`.
const DATA: &str = "__DEADHEAT_DOCUMENT__";
/// Placeholder for the figures: the whole content of another such element.
const FIGURES: &str = "__DEADHEAT_FIGURES__";
/// Placeholder for the page's title.
const TITLE: &str = "__DEADHEAT_TITLE__";

/// The data in the page: the document, and an audit of its study if there is one, next to the document's keys.
#[derive(Serialize)]
struct Embedded<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<&'a AuditRecord>,
}

/// Texts in addition to the document, so that the page does not duplicate them.
#[derive(Serialize)]
struct Shown<'a> {
    figures: Vec<Figure>,
    /// Titles of metrics.
    titles: BTreeMap<&'static str, &'static str>,
    /// Description of the experiment of each scenario.
    loads: BTreeMap<&'a str, String>,
}

/// The page of a race, with an audit of the same study if there is one. It opens from disk and loads nothing from the network.
///
/// # Errors
/// None in practice: every document can be written as JSON.
pub fn html(report: &Report, audit: Option<&AuditRecord>) -> Result<String, ReportError> {
    let data = harmless(&Embedded { report, audit })?;
    let loads = report.record.plan.scenarios.iter().map(|one| (one.name.as_str(), of_scenario(one)));
    let figures = harmless(&Shown {
        figures: Scope::page(report).figures(),
        titles: METRICS.iter().map(|row| (row.word, row.title)).collect(),
        loads: loads.collect(),
    })?;
    let title = escaped(&plain(&report.study));
    // Replace placeholders from start to end, so that a name that looks like a placeholder is not replaced.
    let (mut page, mut rest) = (String::new(), PAGE);
    for (place, text) in [(TITLE, title), (DATA, data), (FIGURES, figures)] {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        page += before;
        page += &text;
        rest = after;
    }
    Ok(page + rest)
}

fn harmless(data: &impl Serialize) -> Result<String, ReportError> {
    let mut json = Vec::new();
    data.serialize(&mut Serializer::with_formatter(&mut json, Harmless(CompactFormatter)))?;
    Ok(String::from_utf8_lossy(&json).into_owned())
}

/// Writes JSON in which no character can end the element that contains it, or a line of a script. Such characters are escaped, so the JSON keeps its
/// meaning.
struct Harmless(CompactFormatter);

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            self.0.write_string_fragment(writer, &rest[..at])?;
            let found = rest[at..].chars().next().unwrap_or_default();
            write!(writer, "\\u{:04x}", found as u32)?;
            rest = &rest[at + found.len_utf8()..];
        }
        self.0.write_string_fragment(writer, rest)
    }
}

/// The text, escaped for an element of HTML or XML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_place_for_each_thing() {
        let places = [TITLE, DATA, FIGURES];
        assert_eq!(places.map(|place| PAGE.matches(place).count()), [1; 3]);
        assert!(places.map(|place| PAGE.find(place)).is_sorted());
        assert!(PAGE.len() < 1_000_000, "{}", PAGE.len());
        assert!(PAGE.contains("Content-Security-Policy") && !PAGE.contains("unsafe-"));
    }

    #[test]
    fn nothing_ends_the_data_but_its_end() {
        let text = "</script><!--<script>&\u{2028}\u{2029}\"\\\n__DEADHEAT_DOCUMENT__ é";
        let data = harmless(&text).unwrap();
        assert!(!data.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{data}");
        assert_eq!(serde_json::from_str::<String>(&data).unwrap(), text);
    }
}
