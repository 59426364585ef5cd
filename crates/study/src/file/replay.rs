//! Reads recorded traffic: `requests_from` of a probe, and the order in which a scenario sends it.

use std::path::Path;

use deadheat_load::StatusSet;
use deadheat_record::{Experiment, LogFormat, LogReading, Replay, RequestLog, StatusRule};
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::keys;
use super::model::{Probe, RecordedProbe};
use super::values;
use super::words::{nearest, one_of, shown};
use crate::traffic::{self, RecordedTraffic};

/// The highest rate, in requests per second. The number of due requests must stay countable, even without any answer.
pub const MOST_PER_S: f64 = 10_000_000.0;
/// The orders of recorded requests and of rows.
const ORDERS: [&str; 3] = ["sequential", "random", "timing"];

/// Reads `requests_from`: a file, or a table that says how to read one. None if it is missing or cannot be used.
pub(super) fn requests_from(fields: &Fields<'_, '_>) -> Option<RecordedProbe> {
    let key = "requests_from";
    for other in ["method", "path", "paths_from", "request_body"] {
        if fields.get(key).is_some() && fields.get(other).is_some() {
            let title = format!("`{other}` and `requests_from` exclude each other");
            let complaint = Complaint::new(fields.key_span(other), title, "this beside recorded requests");
            fields.complain(complaint.help("keep one of them"));
        }
    }
    let (file, reading) = match fields.get(key)?.get_ref().is_str() {
        true => (fields.text(key)?, LogReading::default()),
        false => {
            let expected = "a file, or a table such as { file = \"access.log\", allow_methods = [\"POST\"] }";
            let table = fields.members(key, expected)?;
            let inner = fields.inner(table, fields.key_span(key), &keys::REQUESTS_FROM);
            (inner.required_text("file", "file = \"access.log\""), reading(&inner))
        }
    };
    let path = fields.reading().path(&file, "file", Path::is_file);
    if !path.is_file() {
        return None;
    }
    match traffic::read_file(&path, &reading) {
        Ok(read) => Some(recorded(&file, path, reading, &read)),
        Err(error) => {
            let title = format!("`{}`: {}", shown(file.get_ref()), error.source);
            let complaint = Complaint::new(file.span(), title, "this file");
            fields.complain(complaint.help(error.source.remedy()));
            None
        }
    }
}

fn recorded(
    file: &Spanned<String>,
    path: std::path::PathBuf,
    reading: LogReading,
    read: &RecordedTraffic,
) -> RecordedProbe {
    let first = &read.recording.requests[read.recording.order[0] as usize];
    let reading = LogReading { format: Some(read.format), ..reading };
    RecordedProbe {
        method: first.method.clone(),
        // A query may hold what nobody else should read, and a record may be published.
        path: first.target.split('?').next().unwrap_or_default().to_owned(),
        status: status(&reading),
        left_out: read.left_out().map(|words| format!("{}: {words}", shown(file.get_ref()))),
        log: RequestLog { file: path, reading, contents: read.contents.clone() },
    }
}

/// The statuses that answers to recorded requests may have: those that requests of the log are kept with, and success.
fn status(reading: &LogReading) -> StatusRule {
    let set = |text: &str| text.parse::<StatusSet>().unwrap_or_default();
    let kept = reading.statuses.as_deref().map_or_else(StatusSet::default, set);
    let all = kept.or(set(LogReading::STATUSES));
    StatusRule::Within(all.ranges().iter().map(|range| (*range.start(), *range.end())).collect())
}

fn reading(fields: &Fields<'_, '_>) -> LogReading {
    let texts = |key| fields.texts(key).unwrap_or_default();
    let methods = texts("allow_methods");
    methods.iter().for_each(|method| values::method(fields.reading(), method));
    let map = fields.text_map("fields", false);
    LogReading {
        format: format(fields),
        fields: map.into_iter().map(|(name, value)| (name.into_inner(), value.into_inner())).collect(),
        pattern: fields.text("pattern").map(Spanned::into_inner),
        time_format: fields.text("time_format").map(Spanned::into_inner),
        allow_methods: methods.into_iter().map(Spanned::into_inner).collect(),
        statuses: fields.text("statuses").map(Spanned::into_inner),
        host: fields.text("host").map(Spanned::into_inner),
        credentials: fields.flag("credentials").is_some_and(Spanned::into_inner),
    }
}

fn format(fields: &Fields<'_, '_>) -> Option<LogFormat> {
    let word = fields.text("format")?;
    let found = LogFormat::of_word(word.get_ref());
    if found.is_none() {
        let words = LogFormat::ALL.map(LogFormat::word);
        let title = format!("`{}` is not a format of recorded requests", shown(word.get_ref()));
        let complaint = Complaint::new(word.span(), title, "this word");
        let complaint = complaint.meant(nearest(word.get_ref(), words));
        fields.complain(complaint.help(format!("write {}, or leave it out", one_of(words))));
    }
    found
}

/// Reads `order` and `speed` of a scenario that sends `requests`. With the recorded timing, also returns the mean rate.
pub(super) fn order(
    fields: &Fields<'_, '_>,
    requests: Option<&[&str]>,
    probes: &[Probe],
) -> Option<(Replay, f64)> {
    let speed = fields.number("speed");
    let Some(word) = fields.text("order") else {
        if fields.get("speed").is_some() {
            let title = "`speed` needs `order = \"timing\"`: without recorded times nothing can be faster";
            let complaint = Complaint::new(fields.key_span("speed"), title, "this has no effect");
            fields.complain(complaint.help("write order = \"timing\", or leave `speed` out"));
        }
        return None;
    };
    if !ORDERS.contains(&word.get_ref().as_str()) {
        let title = format!("`{}` is not an order of requests", shown(word.get_ref()));
        let complaint = Complaint::new(word.span(), title, "this word");
        let complaint = complaint.meant(nearest(word.get_ref(), ORDERS));
        fields.complain(complaint.help(format!("write {}", one_of(ORDERS))));
        return None;
    }
    for key in ["zipf", "starts", "measure"] {
        exclude(fields, &word, key);
    }
    let probe = only_probe(fields, &word, requests, probes)?;
    match word.get_ref().as_str() {
        "random" => Some((Replay::Random, 0.0)),
        "timing" if probe.from_rows => {
            let title = "rows of `values_from` were not sent at any time, so there is no timing to keep";
            let complaint = Complaint::new(word.span(), title, "this needs recorded requests");
            fields.complain(
                complaint.help("write \"sequential\" or \"random\", or give the scenario a `rate`"),
            );
            None
        }
        // A probe whose file is wrong has led to a complaint already.
        "timing" => timing(fields, &word, probe.contract.log.as_ref()?, speed),
        _ => None,
    }
}

fn exclude(fields: &Fields<'_, '_>, word: &Spanned<String>, key: &str) {
    if fields.get(key).is_some() {
        let title = format!("`order` and `{key}` exclude each other");
        let complaint = Complaint::new(fields.key_span(key), title, "this decides it otherwise");
        fields.complain(complaint.also(word.span(), "the order").help("keep one of the two"));
    }
}

/// The only probe that a scenario sends, if it has a file of requests or values.
fn only_probe<'p>(
    fields: &Fields<'_, '_>,
    word: &Spanned<String>,
    requests: Option<&[&str]>,
    probes: &'p [Probe],
) -> Option<&'p Probe> {
    let sent: Vec<&Probe> = match requests {
        Some(names) => probes.iter().filter(|one| names.contains(&one.contract.name.as_str())).collect(),
        None => probes.iter().filter(|one| one.contract.under_load).collect(),
    };
    if let [probe] = sent[..]
        && (probe.from_log || probe.from_rows)
    {
        return Some(probe);
    }
    let title = "`order` needs a scenario that sends one probe, with `requests_from` or `values_from`";
    let complaint = Complaint::new(word.span(), title, "this has no effect");
    fields.complain(complaint.help("name that probe alone: requests = [\"traffic\"]; or leave `order` out"));
    None
}

fn timing(
    fields: &Fields<'_, '_>,
    word: &Spanned<String>,
    log: &RequestLog,
    speed: Option<Spanned<f64>>,
) -> Option<(Replay, f64)> {
    for key in ["rate", "arrivals", "slo"] {
        exclude(fields, word, key);
    }
    let contents = &log.contents;
    let Some(span_ns) = contents.span_ns else {
        let title = match contents.untimed {
            0 => "the recorded requests were all sent at the same time, so there is no timing to keep"
                .to_owned(),
            count => {
                format!("{count} of {} recorded requests do not say when they were sent", contents.requests)
            }
        };
        let complaint = Complaint::new(word.span(), title, "this needs the time of each request");
        fields.complain(complaint.help("name the field of the time, or leave `order` out"));
        return None;
    };
    let factor = speed.as_ref().map_or(1.0, |speed| *speed.get_ref());
    let rate_per_s = (contents.requests as f64 - 1.0) * 1e9 / span_ns as f64 * factor;
    let place = speed.map_or(word.span(), |speed| speed.span());
    if !(factor > 0.0 && factor <= 1e6 && rate_per_s <= MOST_PER_S) {
        let title = format!("at this speed, {rate_per_s} requests per second are due");
        let complaint = Complaint::new(place, title, "this speed");
        fields.complain(complaint.help(format!(
            "write a number above 0, such as 2 for twice as fast; at most {MOST_PER_S} requests per second"
        )));
        return None;
    }
    Some((Replay::Timing { speed: factor }, rate_per_s))
}

/// The load of a scenario with the recorded timing.
pub(super) fn timed(connections: u32, rate_per_s: f64) -> Experiment {
    Experiment::Open { connections, rate_per_s, poisson: false }
}
