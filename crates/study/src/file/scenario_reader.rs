//! Reads further settings of a scenario: its metrics, its objective, its sweep, and its place on a ladder.

use deadheat_record::{Axis, Experiment, Metric, Objective, Rung};
use toml::Spanned;
use toml::de::DeTable;

use super::complaint::Complaint;
use super::contract::MOST_CONNECTIONS;
use super::fields::{Fields, number};
use super::keys;
use super::limits::{LEAST_CPUS, MOST_CPUS};
use super::model::Sweep;
use super::words::{nearest, one_of, shown};

/// Fewer fresh starts give no useful result.
const FEWEST_STARTS: u32 = 20;
const MOST_STARTS: u32 = 1_000;

/// Reads `slo`. It excludes `rate`, because deadheat searches for the highest rate.
pub(super) fn objective(fields: &Fields<'_, '_>) -> Option<Objective> {
    let text = fields.text("slo")?;
    for key in ["rate", "arrivals", "metrics"] {
        if fields.get(key).is_some() {
            let title = format!("`slo` looks for the highest rate that meets it, so `{key}` has no effect");
            let complaint = Complaint::new(fields.key_span(key), title, "this has no effect");
            fields.complain(complaint.also(text.span(), "the objective").help("keep one of the two"));
        }
    }
    match super::objective::objective(text.get_ref()) {
        Ok(objective) => Some(objective),
        Err(remedy) => {
            let title = format!("`{}` is not an objective", shown(text.get_ref()));
            fields.complain(Complaint::new(text.span(), title, "this objective").help(remedy));
            None
        }
    }
}

/// Reads `starts` or `measure`. Such a scenario has no load, so it accepts no setting of a load.
pub(super) fn without_load(fields: &Fields<'_, '_>) -> Option<Experiment> {
    let starts = fields.whole("starts", FEWEST_STARTS, MOST_STARTS);
    let measure = fields.text("measure");
    let (key, span, shape) = match (&starts, &measure) {
        (Some(starts), _) => ("starts", starts.span(), Experiment::Starts { starts: *starts.get_ref() }),
        (None, Some(measure)) => {
            ("measure", measure.span(), Experiment::Measure { measure: measure.get_ref().clone() })
        }
        (None, None) => return None,
    };
    let of_loads =
        ["connections", "rate", "arrivals", "requests", "metrics", "slo", "sweep", "link", "measure"];
    for other in of_loads.into_iter().filter(|other| *other != key && fields.get(other).is_some()) {
        let title = format!("a scenario with `{key}` has no load, so `{other}` has no effect");
        let complaint = Complaint::new(fields.key_span(other), title, "remove this");
        fields.complain(complaint.also(span.clone(), "or this").help("keep one of the two"));
    }
    Some(shape)
}

/// Reads `metrics`, the most important first. Empty if missing or invalid.
pub(super) fn metrics(fields: &Fields<'_, '_>, shape: &Experiment) -> Vec<Metric> {
    // The reader has already complained.
    if shape.objective().is_some() || !shape.is_load() {
        return Vec::new();
    }
    let Some(words) = fields.texts("metrics") else { return Vec::new() };
    if words.is_empty() {
        let place = fields.get("metrics").map_or(fields.span(), Spanned::span);
        let complaint = Complaint::new(place, "`metrics` of [[scenario]] is empty", "no metric here");
        fields.complain(complaint.help("for example: metrics = [\"p50\", \"p99\"]; or leave it out"));
    }
    let mut metrics: Vec<(Metric, &Spanned<String>)> = Vec::new();
    for word in &words {
        let Some(metric) = metric(fields, word) else { continue };
        match metrics.iter().find(|(known, _)| *known == metric) {
            Some((_, first)) => {
                let title = format!("the scenario lists the metric `{}` twice", metric.word());
                let complaint = Complaint::new(word.span(), title, "the second");
                fields.complain(complaint.also(first.span(), "the first").help("list it once"));
            }
            None => metrics.push((metric, word)),
        }
        if metric == Metric::Throughput && shape.rate_per_s().is_some() {
            let title = "at a common rate all contenders have the same throughput";
            let complaint = Complaint::new(word.span(), title, "this cannot differ");
            fields.complain(complaint.help("compare \"p50\", \"p99\" or \"cpu\"; or leave out `rate`"));
        }
    }
    metrics.into_iter().map(|(metric, _)| metric).collect()
}

/// An example for messages about an invalid sweep.
const SWEEP: &str = "sweep = { connections = [1, 8, 64] }";

/// Reads `sweep`, such as `{ connections = [1, 8, 64] }`.
pub(super) fn sweep(fields: &Fields<'_, '_>) -> Option<Sweep> {
    let table = fields.members("sweep", "a table, such as { connections = [1, 8, 64] }")?;
    // In TOML, `link.delay` is the key `delay` in a table `link`.
    if table.contains_key("link") {
        return sweep_of_links(fields, table);
    }
    let inner = fields.inner(table, fields.key_span("sweep"), &keys::SWEEP);
    let axes: Vec<Axis> = Axis::ALL.into_iter().filter(|axis| inner.get(axis.word()).is_some()).collect();
    let &[axis] = axes.as_slice() else {
        let found = if axes.is_empty() { "no setting here" } else { "more than one setting here" };
        let complaint =
            Complaint::new(fields.key_span("sweep"), "a sweep must vary exactly one setting", found);
        fields
            .complain(complaint.help(format!("write {}, for example: {SWEEP}", one_of(keys::SWEEP.words()))));
        return None;
    };
    let values = values(&inner, axis)?;
    // The setting that a sweep varies cannot also be set directly. For cores, this setting is `cpuset`.
    let key = if axis == Axis::Cores { "cpuset" } else { axis.word() };
    if fields.get(key).is_some() {
        let title = format!("`{key}` cannot be combined with a sweep over {}", axis.word());
        fields.complain(
            Complaint::new(fields.key_span(key), title, "this has no effect").help("keep one of the two"),
        );
    }
    Some(Sweep { axis, values })
}

/// Reads a sweep over a setting of the link, such as `{ link.delay = ["1ms", "20ms"] }`.
fn sweep_of_links(fields: &Fields<'_, '_>, table: &DeTable<'_>) -> Option<Sweep> {
    let example = "sweep = { link.delay = [\"1ms\", \"20ms\"] }";
    let outer = fields.inner(table, fields.key_span("sweep"), &keys::SWEEP_OF_LINKS);
    let inner_table = outer.members("link", "a table with `rate` or `delay`")?;
    let inner = outer.inner(inner_table, outer.key_span("link"), &keys::LINK_SWEEP);
    let axes: Vec<(&str, Axis)> = [("rate", Axis::LinkRate), ("delay", Axis::LinkDelay)]
        .into_iter()
        .filter(|(key, _)| inner.get(key).is_some())
        .collect();
    let &[(key, axis)] = axes.as_slice() else {
        let complaint = Complaint::new(
            fields.key_span("sweep"),
            "a sweep must vary exactly one setting",
            if axes.is_empty() { "no setting here" } else { "more than one setting here" },
        );
        fields.complain(complaint.help(format!("for example: {example}")));
        return None;
    };
    let beside = fields.members("link", "a table").is_some_and(|link| link.contains_key(key));
    if beside {
        let title = format!("`link.{key}` cannot be combined with a sweep over link.{key}");
        fields.complain(
            Complaint::new(fields.key_span("link"), title, "this has no effect").help("keep one of the two"),
        );
    }
    let mut values: Vec<f64> = Vec::new();
    for text in inner.texts(key)? {
        let read = match axis {
            Axis::LinkRate => super::link::rate(text.get_ref()).map(|rate| rate as f64 / 1e6),
            _ => super::link::delay_ns(text.get_ref()).map(|ns| ns as f64 / 1e6),
        };
        match read {
            Err(expected) => {
                let title = format!("`{}` is not a {key} of a link", shown(text.get_ref()));
                fields.complain(Complaint::new(text.span(), title, "this value").help(expected));
            }
            Ok(value) if values.contains(&value) => {
                let title = format!("the sweep has {} twice", shown(text.get_ref()));
                fields.complain(Complaint::new(text.span(), title, "the second").help("list it once"));
            }
            Ok(value) => values.push(value),
        }
    }
    if values.len() < 2 {
        let complaint =
            Complaint::new(fields.key_span("sweep"), "a sweep needs at least two values", "found fewer");
        fields.complain(complaint.help(format!("for example: {example}")));
    }
    Some(Sweep { axis, values })
}

/// The most rungs of a ladder.
const MOST_RUNGS: u32 = 100;

/// Reads `ladder` and `rung`. They need a closed load: only its rate shows how long a request takes.
pub(super) fn ladder(fields: &Fields<'_, '_>, shape: &Experiment) -> Option<Rung> {
    let place = fields.whole("rung", 1, MOST_RUNGS);
    let Some(name) = fields.text("ladder") else {
        if place.is_some() {
            let title = "`rung` needs `ladder`: the name of its ladder";
            let complaint = Complaint::new(fields.key_span("rung"), title, "this has no effect");
            fields.complain(complaint.help("for example: ladder = \"request\""));
        }
        return None;
    };
    super::values::name(fields.reading(), &name);
    if !shape.is_closed() || fields.get("sweep").is_some() {
        let title = "`ladder` cannot be used here: a rung of a ladder must be one closed load";
        let complaint = Complaint::new(fields.key_span("ladder"), title, "this has no effect");
        let help = "leave it out, or give the ladder a scenario with `connections` alone";
        fields.complain(complaint.help(help));
        return None;
    }
    Some(Rung { of: name.into_inner(), place: place.map_or(1, Spanned::into_inner) })
}

/// Reads the values of a sweep, without duplicates.
fn values(fields: &Fields<'_, '_>, axis: Axis) -> Option<Vec<f64>> {
    let key = axis.word();
    let (least, most) = match axis {
        Axis::Connections => (1.0, f64::from(MOST_CONNECTIONS)),
        Axis::Cores => (1.0, f64::from(MOST_CPUS)),
        Axis::Cpus => (LEAST_CPUS, f64::from(MOST_CPUS)),
        Axis::LinkRate | Axis::LinkDelay => {
            let complaint = Complaint::new(
                fields.key_span(key),
                format!("`{key}` is written without quotes"),
                "this key",
            );
            fields.complain(complaint.help(format!("for example: sweep = {{ {key} = [...] }}")));
            return None;
        }
    };
    let kind = if axis == Axis::Cpus { "numbers" } else { "whole numbers" };
    let expected = format!("a list of {kind} from {least} to {most}");
    let list = fields.items(key, &expected)?;
    let mut values: Vec<f64> = Vec::new();
    for item in *list.get_ref() {
        let value = number(item.get_ref()).filter(|value| axis == Axis::Cpus || value.fract() == 0.0);
        match value.filter(|value| (least..=most).contains(value)) {
            None => fields.wrong(key, &expected, item),
            Some(value) if values.contains(&value) => {
                let complaint =
                    Complaint::new(item.span(), format!("the sweep has {value} twice"), "the second");
                fields.complain(complaint.help("list it once"));
            }
            Some(value) => values.push(value),
        }
    }
    if list.get_ref().len() < 2 {
        let complaint = Complaint::new(list.span(), "a sweep needs at least two values", "found fewer");
        fields.complain(complaint.help(format!("for example: {SWEEP}")));
    }
    Some(values)
}

fn metric(fields: &Fields<'_, '_>, word: &Spanned<String>) -> Option<Metric> {
    let words = Metric::OF_LOADS.map(Metric::word);
    let found = Metric::of_word(word.get_ref()).filter(|metric| Metric::OF_LOADS.contains(metric));
    if found.is_none() {
        let title = format!("`{}` is not a metric of a load", shown(word.get_ref()));
        let complaint = Complaint::new(word.span(), title, "this word");
        let complaint = complaint.meant(nearest(word.get_ref(), words));
        fields.complain(complaint.help(format!("write {}", one_of(words))));
    }
    found
}
