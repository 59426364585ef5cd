//! Reads what fills in a probe's request: `values_from` and `capture`, and checks the placeholders that use it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::path::Path;

use deadheat_load::is_token;
use deadheat_record as record;
use deadheat_record::{Capture, Rows, ValuePlace, ValuesFile, fill, placeholders};
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::values::{header_name, json_path};
use super::words::{nearest, one_of, shown};
use crate::rows;

/// In a body, a placeholder that is similar to a known one is a mistake from this length on.
const SURELY_MEANT: usize = 4;

/// The names that probes capture, each with the place of its probe among the probes.
pub(super) type CapturedNames = BTreeMap<String, usize>;

/// Gathers the names that the probes capture.
pub(super) fn captured_names(probes: &[Fields<'_, '_>]) -> CapturedNames {
    let mut names = CapturedNames::new();
    for (at, fields) in probes.iter().enumerate() {
        let table = fields.get("capture").and_then(|value| value.get_ref().as_table());
        for name in table.into_iter().flat_map(|table| table.keys()) {
            match names.entry(name.get_ref().to_string()) {
                Entry::Vacant(free) => drop(free.insert(at)),
                Entry::Occupied(taken) => {
                    let title = format!("two probes capture `{}`", shown(taken.key()));
                    let complaint = Complaint::new(name.span(), title, "the second");
                    fields.complain(complaint.help("give each captured value a different name"));
                }
            }
        }
    }
    names
}

/// Reads `capture`, such as `{ token = "$.access_token", id = "header x-id", sid = "cookie sid" }`.
pub(super) fn capture(fields: &Fields<'_, '_>) -> BTreeMap<String, Capture> {
    let map = fields.text_map("capture", false);
    if !map.is_empty() {
        for other in ["paths_from", "requests_from", "values_from"] {
            exclude(fields, "capture", other, "a value comes from the answer to one request");
        }
        if fields.get("under_load").is_some_and(|value| value.get_ref().as_bool() == Some(true)) {
            let title = "a probe with `capture` prepares contenders, so it cannot be loaded";
            let complaint = Complaint::new(fields.key_span("under_load"), title, "this has no effect");
            fields.complain(
                complaint.help("remove it; to load with the same request, add a probe without `capture`"),
            );
        }
    }
    let mut captures = BTreeMap::new();
    for (name, from) in map {
        let is_name = placeholders(&format!("{{{}}}", name.get_ref())).next().is_some();
        if !is_name {
            let title = format!("`{}` cannot be used as a placeholder", shown(name.get_ref()));
            let complaint = Complaint::new(name.span(), title, "this name");
            fields.complain(complaint.help("use letters, digits, `_`, `-` and `.` only"));
        }
        captures.extend(from_answer(fields, &from).map(|from| (name.into_inner(), from)));
    }
    captures
}

fn from_answer(fields: &Fields<'_, '_>, from: &Spanned<String>) -> Option<Capture> {
    let text = from.get_ref().trim();
    match text.split_once(char::is_whitespace).map(|(kind, name)| (kind, name.trim())) {
        Some(("header", name)) => {
            header_name(fields.reading(), name, from.span());
            Some(Capture::Header(name.to_lowercase()))
        }
        Some(("cookie", name)) if is_token(name.as_bytes()) => Some(Capture::Cookie(name.into())),
        _ if text.starts_with('$') => {
            json_path(fields.reading(), text, from.span());
            Some(Capture::Json(text.into()))
        }
        _ => {
            let title = format!("`{}` does not say where the value is in the answer", shown(text));
            let complaint = Complaint::new(from.span(), title, "this value of `capture`");
            fields.complain(complaint.help(
                "write a JSON path such as \"$.access_token\", \"header x-csrf-token\" or \"cookie session\"",
            ));
            None
        }
    }
}

/// Reads the file of `values_from`. None if it is missing or cannot be used.
pub(super) fn values_from(fields: &Fields<'_, '_>) -> Option<(ValuesFile, Rows)> {
    let file = fields.text("values_from")?;
    for other in ["paths_from", "requests_from"] {
        exclude(fields, "values_from", other, "each of them makes the requests of the probe");
    }
    let path = fields.reading().path(&file, "file", Path::is_file);
    if !path.is_file() {
        return None;
    }
    match rows::read_file(&path) {
        Ok(read) => Some(read),
        Err(error) => {
            let title = format!("`{}`: {error}", shown(file.get_ref()));
            fields.complain(Complaint::new(file.span(), title, "this file").help(error.remedy()));
            None
        }
    }
}

fn exclude(fields: &Fields<'_, '_>, key: &str, other: &str, why: &str) {
    if fields.get(other).is_some() {
        let title = format!("`{key}` and `{other}` exclude each other: {why}");
        let complaint = Complaint::new(fields.key_span(other), title, "this");
        fields.complain(complaint.also(fields.key_span(key), "beside this").help("keep one of the two"));
    }
}

/// A text of the file that becomes a part of the request, and its place in the file.
struct Part {
    place: ValuePlace,
    text: String,
    span: Range<usize>,
}

fn parts(fields: &Fields<'_, '_>, probe: &record::Probe) -> Vec<Part> {
    let text = |key: &str, place| {
        let value = fields.get(key)?;
        Some(Part { place, text: value.get_ref().as_str()?.to_owned(), span: value.span() })
    };
    let headers = fields.get("request_headers").and_then(|value| value.get_ref().as_table());
    let headers = headers.into_iter().flat_map(|table| table.values()).filter_map(|value| {
        let text = value.get_ref().as_str()?.to_owned();
        Some(Part { place: ValuePlace::Header, text, span: value.span() })
    });
    let body = text("request_body", probe.body_place());
    text("path", ValuePlace::Target).into_iter().chain(headers).chain(body).collect()
}

/// Checks that each placeholder of the probe at place `at` has a value when its request is sent, and that each row makes a request.
pub(super) fn check(
    fields: &Fields<'_, '_>,
    (at, probe): (usize, &record::Probe),
    rows: Option<&Rows>,
    captured: &CapturedNames,
) {
    let columns = rows.map_or(&[][..], |rows| &rows.columns);
    let unusable = fields.get("values_from").is_some() && rows.is_none();
    // There is a complaint about an unusable file already.
    if captured.is_empty() && columns.is_empty() || unusable {
        return;
    }
    let before = captured.iter().filter(|(_, of)| **of < at).map(|(name, _)| name.as_str());
    let known: Vec<&str> = columns.iter().map(String::as_str).chain(before).collect();
    let parts = parts(fields, probe);
    let mut all_known = true;
    for part in &parts {
        for (_, name) in placeholders(&part.text).filter(|(_, name)| !known.contains(name)) {
            all_known &= !complains(fields, part, name, &known, captured);
        }
    }
    if let Some(name) = columns.iter().find(|column| captured.contains_key(*column)) {
        let title = format!("`{}` is a column of the file and also a captured value", shown(name));
        let complaint = Complaint::new(fields.key_span("values_from"), title, "this file");
        fields.complain(complaint.help("give the captured value another name"));
    }
    rows.filter(|_| all_known).into_iter().for_each(|rows| each_row(fields, &parts, rows));
}

/// Complains about a placeholder without a value, unless it may be meant for the server. Returns whether it complained.
fn complains(
    fields: &Fields<'_, '_>,
    part: &Part,
    name: &str,
    known: &[&str],
    captured: &CapturedNames,
) -> bool {
    let place = fields.reading().part_of(&part.span, &format!("{{{name}}}"));
    let title = format!("{{{}}} has no value here", shown(name));
    if captured.contains_key(name) {
        let complaint = Complaint::new(place, title, "it is captured from this answer or a later one");
        fields.complain(
            complaint
                .help("move the probe that captures it up: deadheat sends probes in the order of the file"),
        );
        return true;
    }
    let meant = nearest(name, known.iter().copied());
    // Bodies contain braces of their own, such as those of GraphQL. Short names are similar by chance.
    let in_body = !matches!(part.place, ValuePlace::Target | ValuePlace::Header);
    if in_body && (meant.is_none() || name.len() < SURELY_MEANT) {
        return false;
    }
    let complaint = Complaint::new(place, title, "neither a column nor captured before").meant(meant);
    fields.complain(complaint.help(format!("available here: {}", one_of(known.iter().copied()))));
    true
}

/// Checks that every row can be written into the request, that rows make different requests, and that all of them fit into memory.
fn each_row(fields: &Fields<'_, '_>, parts: &[Part], rows: &Rows) {
    let Some(file) = fields.get("values_from") else { return };
    let complain = |title: String, help: &str| {
        fields.complain(Complaint::new(file.span(), title, "this file").help(help));
    };
    let name = shown(file.get_ref().as_str().unwrap_or_default());
    let is_usable =
        |column: &&String| placeholders(&format!("{{{column}}}")).any(|(_, name)| name == *column);
    let unusable = rows.columns.iter().filter(|column| !is_usable(column));
    for column in unusable {
        if let Some(part) = parts.iter().find(|part| part.text.contains(&format!("{{{column}}}"))) {
            let place = fields.reading().part_of(&part.span, &format!("{{{column}}}"));
            let title = format!("the column `{}` of `{name}` cannot be used as a placeholder", shown(column));
            let complaint = Complaint::new(place, title, "sent as it is");
            fields
                .complain(complaint.help("give the column a name of letters, digits, `_`, `-` and `.` only"));
            return;
        }
    }
    let uses =
        |part: &Part| placeholders(&part.text).any(|(_, name)| rows.columns.iter().any(|one| one == name));
    if !parts.iter().any(uses) {
        let title = format!("the request uses no column of `{name}`, so all rows make the same request");
        complain(
            title,
            &format!(
                "use one of {} in braces, such as {{{}}}",
                one_of(rows.columns.iter().filter(is_usable).map(String::as_str)),
                rows.columns.iter().find(is_usable).map_or("COLUMN".into(), |column| shown(column))
            ),
        );
        return;
    }
    let mut bytes = 0;
    for (row, line) in rows.lines.iter().enumerate() {
        for part in parts {
            match fill(&part.text, part.place, &|column| rows.value(row, column)) {
                Ok(filled) => bytes += filled.len(),
                Err(error) => {
                    complain(
                        format!("`{name}` line {line}: {error}"),
                        "change the value, or use it elsewhere in the request",
                    );
                    return;
                }
            }
        }
    }
    if bytes > Rows::MOST_REQUEST_BYTES {
        let title = format!(
            "the {} rows of `{name}` make {} MiB of requests for each contender; at most {} MiB fit",
            rows.lines.len(),
            bytes >> 20,
            Rows::MOST_REQUEST_BYTES >> 20
        );
        complain(title, "take fewer rows, or a shorter request");
    }
}
