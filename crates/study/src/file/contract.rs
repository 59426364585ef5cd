//! Reads probes, scenarios and claims.

use std::fs;
use std::ops::Range;

use deadheat_load::{RequestError, request_bytes};
use deadheat_record as record;
use deadheat_record::{BodyRule, Experiment, JsonRule, Replay, Share, StatusRule, Volatile};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::complaint::Complaint;
use super::fields::{Fields, whole};
use super::keys;
use super::limits::limits;
use super::link;
use super::model::{Claim, Probe, PublishedValue, RecordedProbe, Scenario};
use super::replay;
use super::request_values::{self, CapturedNames};
use super::scenario_reader;
use super::traffic::{self, Written};
use super::values;
use super::words::{nearest, one_of, shown};

/// The default number of connections of a load.
pub const CONNECTIONS: u32 = 64;
/// The most connections of a load, because each needs a separate port.
pub(crate) const MOST_CONNECTIONS: u32 = 60_000;

pub(super) fn probes(all: &[Fields<'_, '_>]) -> Vec<Probe> {
    let captured = request_values::captured_names(all);
    all.iter().enumerate().map(|(at, fields)| probe(fields, at, &captured)).collect()
}

fn probe(fields: &Fields<'_, '_>, at: usize, captured: &CapturedNames) -> Probe {
    let reading = fields.reading();
    let from_log = fields.get("requests_from").is_some();
    let recorded = replay::requests_from(fields);
    let paths = traffic::paths(fields);
    let path = path(fields, &paths, recorded.as_ref());
    let method = fields.text("method");
    method.iter().for_each(|method| values::method(reading, method));
    let (values, rows) = request_values::values_from(fields).unzip();
    let capture = request_values::capture(fields);
    let name = match fields.get("paths_from").or_else(|| fields.get("requests_from")) {
        Some(_) => fields.required_text("name", "name = \"lookup\""),
        None => fields.text("name").unwrap_or_else(|| path.clone()),
    };
    if fields.get("name").is_some() {
        values::name(reading, &name);
    }
    let contract = record::Probe {
        name: name.get_ref().clone(),
        method: match &recorded {
            Some(recorded) => recorded.method.clone(),
            None => method.map_or_else(|| "GET".into(), Spanned::into_inner),
        },
        path: path.into_inner(),
        paths,
        log: recorded.as_ref().map(|recorded| recorded.log.clone()),
        values,
        request_headers: headers(fields, "request_headers").collect(),
        request_body: fields.text("request_body").map(Spanned::into_inner).unwrap_or_default(),
        status: match &recorded {
            Some(recorded) if fields.get("status").is_none() => recorded.status.clone(),
            _ => status(fields),
        },
        headers: headers(fields, "headers").map(|(name, value)| (name.to_lowercase(), value)).collect(),
        agree_headers: agree_headers(fields),
        body: body(fields),
        under_load: fields.flag("under_load").is_none_or(Spanned::into_inner) && capture.is_empty(),
        capture,
    };
    request_values::check(fields, (at, &contract), rows.as_ref(), captured);
    let from_rows = fields.get("values_from").is_some();
    Probe { name, contract, from_log, from_rows, left_out: recorded.and_then(|recorded| recorded.left_out) }
}

/// `path`, or the first path of `paths_from` or `requests_from`.
fn path(fields: &Fields<'_, '_>, paths: &[String], recorded: Option<&RecordedProbe>) -> Spanned<String> {
    if let Some(from) = fields.get("requests_from") {
        return Spanned::new(from.span(), recorded.map_or_else(|| "/".into(), |one| one.path.clone()));
    }
    let Some(from) = fields.get("paths_from") else {
        let path = fields.required_text("path", "path = \"/api/items?limit=10\"");
        values::path(fields.reading(), &path);
        return path;
    };
    if fields.get("path").is_some() {
        let title = "`path` and `paths_from` exclude each other";
        let complaint = Complaint::new(fields.key_span("path"), title, "a path beside a list of paths");
        fields.complain(complaint.help("keep one of them"));
    }
    Spanned::new(from.span(), paths.first().cloned().unwrap_or_else(|| "/".into()))
}

fn headers(fields: &Fields<'_, '_>, key: &str) -> impl Iterator<Item = (String, String)> + use<> {
    let map = fields.text_map(key, false);
    let mut known: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    for (name, value) in &map {
        values::header_name(fields.reading(), name.get_ref(), name.span());
        values::header_value(fields.reading(), value);
        let lower = name.get_ref().to_ascii_lowercase();
        if let Some((_, first)) = known.iter().find(|(other, _)| *other == lower) {
            let title = format!("`{key}` has the header `{}` twice", shown(&lower));
            let complaint = Complaint::new(name.span(), title, "the second").also(first.clone(), "the first");
            fields.complain(
                complaint.help("the case of letters does not matter in names of headers: keep one"),
            );
        }
        known.push((lower, name.span()));
        let header = [(name.get_ref().clone(), value.get_ref().clone())];
        if let Err(error @ RequestError::Framing(_)) = request_bytes("GET", "/", "host", &header, b"")
            && key == "request_headers"
        {
            fields.complain(Complaint::new(name.span(), error.to_string(), "this header"));
        }
    }
    map.into_iter().map(|(name, value)| (name.into_inner(), value.into_inner()))
}

fn agree_headers(fields: &Fields<'_, '_>) -> Vec<String> {
    let Some(names) = fields.texts("agree_headers") else {
        return record::Probe::AGREE_HEADERS.iter().map(|&name| name.to_owned()).collect();
    };
    names.iter().for_each(|name| values::header_name(fields.reading(), name.get_ref(), name.span()));
    names.iter().map(|name| name.get_ref().to_lowercase()).collect()
}

fn status(fields: &Fields<'_, '_>) -> StatusRule {
    let expected = "a status from 200 to 599 or a list of them, such as [200, 304]";
    let read = |value: &Spanned<DeValue<'_>>| {
        let status = whole(value.get_ref()).filter(|status| (200..600).contains(status));
        if status.is_none() {
            fields.wrong("status", expected, value);
        }
        status.map(|status| status as u16)
    };
    let Some(found) = fields.get("status") else { return StatusRule::Success };
    let Some(list) = found.get_ref().as_array() else {
        return StatusRule::OneOf(read(found).into_iter().collect());
    };
    if list.is_empty() {
        fields.wrong("status", expected, found);
    }
    StatusRule::OneOf(list.iter().filter_map(read).collect())
}

fn body(fields: &Fields<'_, '_>) -> BodyRule {
    BodyRule {
        json: json_rules(fields),
        volatile: volatile(fields),
        exact: exact(fields),
        agree: fields.flag("agree").is_none_or(Spanned::into_inner),
        // A study says with `volatile` how a value may vary.
        ignored: Vec::new(),
    }
}

fn json_rules(fields: &Fields<'_, '_>) -> Vec<JsonRule> {
    let expected = "a table of JSON paths and values, such as { \"$.count\" = 24 }";
    let members = fields.members("json", expected).into_iter().flatten();
    let rule = |(path, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let path: &Spanned<toml::de::DeString<'_>> = path;
        values::json_path(fields.reading(), path.get_ref(), path.span());
        JsonRule { path: path.get_ref().to_string(), value: values::json(fields.reading(), value) }
    };
    members.map(rule).collect()
}

fn volatile(fields: &Fields<'_, '_>) -> Vec<Volatile> {
    let expected = "a list such as [{ path = \"$.token\", pattern = '^[0-9a-f]+$' }]";
    let Some(list) = fields.items("volatile", expected) else { return Vec::new() };
    let read = |item: &Spanned<DeValue<'_>>| {
        let table = item.get_ref().as_table();
        if table.is_none() {
            fields.wrong("volatile", expected, item);
        }
        table.map(|table| volatile_entry(fields, table, item.span()))
    };
    list.get_ref().iter().filter_map(read).collect()
}

fn volatile_entry(parent: &Fields<'_, '_>, table: &DeTable<'_>, span: Range<usize>) -> Volatile {
    let fields = parent.inner(table, span, &keys::VOLATILE);
    let path = fields.required_text("path", "path = \"$.token\"");
    if !path.get_ref().is_empty() {
        values::json_path(fields.reading(), path.get_ref(), path.span());
    }
    let pattern = fields.required_text("pattern", "pattern = '^[0-9a-f]{16}$'");
    let not = fields.text("not");
    [Some(&pattern), not.as_ref()]
        .into_iter()
        .flatten()
        .for_each(|text| values::pattern(fields.reading(), text));
    Volatile {
        path: path.into_inner(),
        pattern: pattern.into_inner(),
        not: not.map(Spanned::into_inner),
        agree: fields.flag("agree").is_some_and(Spanned::into_inner),
        own: fields.flag("own").is_some_and(Spanned::into_inner),
    }
}

/// The whole expected body, from the study or from a file next to it.
fn exact(fields: &Fields<'_, '_>) -> Option<String> {
    let (body, file) = (fields.text("body"), fields.text("body_file"));
    if let (Some(body), Some(file)) = (&body, &file) {
        let title = "`body` and `body_file` exclude each other";
        let complaint =
            Complaint::new(file.span(), title, "the file here").also(body.span(), "and the text here");
        fields.complain(complaint.help("keep one of them"));
    }
    let Some(file) = file else { return body.map(Spanned::into_inner) };
    let path = fields.reading().path(&file, "file", std::path::Path::is_file);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(_) if !path.is_file() => None,
        Err(error) => {
            let title = format!("cannot read `{}` as UTF-8 text: {error}", shown(file.get_ref()));
            fields.complain(Complaint::new(file.span(), title, "this file"));
            None
        }
    }
}

/// Reads a scenario of a study with these probes.
pub(super) fn scenario(fields: &Fields<'_, '_>, probes: &[Probe]) -> Scenario {
    let name = fields.required_text("name", "name = \"steady\"");
    values::name(fields.reading(), &name);
    let rate = traffic::rate(fields);
    let stages = match &rate {
        Some(Written::Stages(_, stages)) => Some(stages.clone()),
        _ => None,
    };
    let without_load = scenario_reader::without_load(fields);
    let requests = if without_load.is_some() { Some(Vec::new()) } else { requests(fields) };
    let names: Option<Vec<&str>> =
        requests.as_ref().map(|all| all.iter().map(|share| share.get_ref().probe.as_str()).collect());
    let replay = replay::order(fields, names.as_deref(), probes);
    let shape = match (without_load, replay) {
        (Some(shape), _) => shape,
        (None, Some((Replay::Timing { .. }, rate_per_s))) => replay::timed(connections(fields), rate_per_s),
        (None, _) => shape(fields, rate),
    };
    let metrics = scenario_reader::metrics(fields, &shape);
    Scenario {
        name,
        metrics,
        ladder: scenario_reader::ladder(fields, &shape),
        shape,
        requests,
        limits: limits(fields),
        link: link::link(fields),
        sweep: scenario_reader::sweep(fields),
        traffic: traffic::traffic(fields, stages, replay.map(|(replay, _)| replay)),
    }
}

fn shape(fields: &Fields<'_, '_>, rate: Option<Written>) -> Experiment {
    let connections = connections(fields);
    let poisson = arrivals(fields);
    if let Some(objective) = scenario_reader::objective(fields) {
        return Experiment::Peak { connections, objective };
    }
    let Some(rate) = rate else {
        if fields.get("arrivals").is_some() && fields.get("rate").is_none() {
            let title = "`arrivals` needs `rate`: without a rate each connection waits for its answer";
            let complaint = Complaint::new(fields.key_span("arrivals"), title, "this has no effect");
            fields.complain(complaint.help("for example: rate = 2000"));
        }
        return Experiment::Closed { connections };
    };
    let rate_per_s = match rate {
        Written::Steady(rate) => rate.into_inner(),
        Written::Stages(mean, _) => mean,
    };
    Experiment::Open { connections, rate_per_s, poisson }
}

fn connections(fields: &Fields<'_, '_>) -> u32 {
    fields.whole("connections", 1, MOST_CONNECTIONS).map_or(CONNECTIONS, Spanned::into_inner)
}

fn arrivals(fields: &Fields<'_, '_>) -> bool {
    let kinds = ["poisson", "constant"];
    let Some(arrivals) = fields.text("arrivals") else { return true };
    if !kinds.contains(&arrivals.get_ref().as_str()) {
        let title = format!("`{}` is not a kind of arrivals", shown(arrivals.get_ref()));
        let complaint = Complaint::new(arrivals.span(), title, "this word");
        fields.complain(
            complaint.meant(nearest(arrivals.get_ref(), kinds)).help(format!("write {}", one_of(kinds))),
        );
    }
    arrivals.get_ref() != "constant"
}

fn requests(fields: &Fields<'_, '_>) -> Option<Vec<Spanned<Share>>> {
    let expected = "a list of probes, such as [\"items\", { probe = \"search\", weight = 5 }]";
    let list = fields.items("requests", expected)?;
    if list.get_ref().is_empty() {
        let complaint = Complaint::new(list.span(), "`requests` of [[scenario]] is empty", "no probe here");
        fields.complain(complaint.help("leave it out to load with every probe that is under load"));
    }
    let read = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
        DeValue::String(probe) => {
            Some(Spanned::new(item.span(), Share { probe: probe.to_string(), weight: 1 }))
        }
        DeValue::Table(table) => Some(request(fields, table, item.span())),
        _ => {
            fields.wrong("requests", expected, item);
            None
        }
    };
    Some(list.get_ref().iter().filter_map(read).collect())
}

fn request(parent: &Fields<'_, '_>, table: &DeTable<'_>, span: Range<usize>) -> Spanned<Share> {
    let fields = parent.inner(table, span, &keys::REQUEST);
    let probe = fields.required_text("probe", "{ probe = \"search\", weight = 5 }");
    let weight = fields.whole("weight", 1, 1_000_000).map_or(1, Spanned::into_inner);
    Spanned::new(probe.span(), Share { probe: probe.into_inner(), weight })
}

pub(super) fn claim(fields: &Fields<'_, '_>) -> Claim {
    let source = fields.required_text("source", "source = \"https://example.org/post, table 2\"");
    let metric = fields.required_text("metric", "metric = \"throughput_rps\"");
    let (contender, baseline) = (fields.text("contender"), fields.text("baseline"));
    if let (None, Some(baseline)) = (&contender, &baseline) {
        let complaint = Complaint::new(
            baseline.span(),
            "a claim with `baseline` needs `contender`",
            "which contender has this baseline?",
        );
        fields.complain(complaint.help("a ratio is contender / baseline"));
    }
    let baseline_scenario = fields.text("baseline_scenario");
    if let Some(other) = &baseline_scenario
        && (contender.is_none() || fields.get("scenario").is_none())
    {
        let title = "a claim with `baseline_scenario` needs `contender` and `scenario`";
        let complaint =
            Complaint::new(other.span(), title, "the figure that is divided by this one is missing");
        fields.complain(
            complaint.help(
                "the ratio is contender in scenario / baseline (default: contender) in baseline_scenario",
            ),
        );
    }
    let figure = figure(fields);
    if metric.get_ref() == "edge_cache_hit_rate" {
        share(fields, figure);
    }
    Claim {
        source: source.into_inner(),
        contender,
        baseline,
        row: fields.text("row").map(Spanned::into_inner),
        metric: metric.into_inner(),
        figure,
        unit: fields.text("unit").map(Spanned::into_inner),
        scenario: fields.text("scenario"),
        baseline_scenario,
        note: fields.text("note").map(Spanned::into_inner),
    }
}

/// Reads `value`, or `low` and `high`.
fn figure(fields: &Fields<'_, '_>) -> PublishedValue {
    let range = fields.get("low").is_some() || fields.get("high").is_some();
    if !range {
        fields.require("value", "value = 41900; or low = 40000 and high = 42000");
        let half = fields.get("value").map_or(0.0, |value| half_digit(value.get_ref()));
        return PublishedValue::Value(fields.number("value").map_or(0.0, Spanned::into_inner), half);
    }
    if fields.get("value").is_some() {
        let title = "a claim is either a `value` or a range from `low` to `high`";
        fields.complain(Complaint::new(fields.key_span("value"), title, "a value beside a range"));
    }
    fields.require("low", "low = 40000");
    fields.require("high", "high = 42000");
    let (low, high) = (fields.number("low"), fields.number("high"));
    if let (Some(low), Some(high)) = (&low, &high)
        && low.get_ref() > high.get_ref()
    {
        let complaint = Complaint::new(high.span(), "`high` is below `low`", "the higher end")
            .also(low.span(), "the lower end");
        fields.complain(complaint);
    }
    PublishedValue::Range(low.map_or(0.0, Spanned::into_inner), high.map_or(0.0, Spanned::into_inner))
}

/// Checks that a hit rate is a share. A cache model cannot use `92`, or a cache that never misses.
fn share(fields: &Fields<'_, '_>, figure: PublishedValue) {
    let ends = match figure {
        PublishedValue::Value(value, _) => [("value", value), ("value", value)],
        PublishedValue::Range(low, high) => [("low", low), ("high", high)],
    };
    let Some((key, found)) = ends.into_iter().find(|(_, one)| !(0.0..1.0).contains(one)) else { return };
    let title = "`edge_cache_hit_rate` must be a share from 0 to below 1";
    let complaint = Complaint::new(fields.key_span(key), title, format!("found {found}"));
    fields.complain(complaint.help("for 92 %, write value = 0.92"));
}

/// Half a unit of the last written digit: 0.005 for `1.50`, 0.5 for `200`. 0 for a number with an exponent, whose last digit is unclear.
fn half_digit(value: &DeValue<'_>) -> f64 {
    let Some(float) = value.as_float() else { return 0.5 };
    let text = float.as_str();
    if text.contains(['e', 'E']) {
        return 0.0;
    }
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 * 10_f64.powi(-i32::try_from(decimals).unwrap_or(0))
}
