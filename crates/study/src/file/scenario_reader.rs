//! Reads further settings of a scenario: its metrics, its objective, its sweep, and its place on a ladder.

use deadheat_record::{Axis, Experiment, Metric, Objective, Rung};
use toml::Spanned;
use toml::de::DeValue;

use super::complaint::Complaint;
use super::contract::MOST_CONNECTIONS;
use super::fields::{Fields, number};
use super::keys;
use super::limits::{LEAST_CPUS, MOST_CPUS};
use super::link;
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
    let of_loads = [
        "connections",
        "rate",
        "arrivals",
        "requests",
        "metrics",
        "slo",
        "sweep",
        "link",
        "measure",
        "zipf",
        "warm_up",
    ];
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

/// Reads `sweep`, such as `{ connections = [1, 8, 64] }` or `{ link.delay = ["1ms", "20ms"] }`.
pub(super) fn sweep(fields: &Fields<'_, '_>) -> Option<Sweep> {
    let table = fields.members("sweep", "a table, such as { connections = [1, 8, 64] }")?;
    let inner = fields.inner(table, fields.key_span("sweep"), &keys::SWEEP);
    // In TOML, `link.delay` is the key `delay` in a table `link`.
    let of_links = inner.table("link", &keys::SWEEP_OF_LINKS);
    let settings = Axis::ALL.into_iter().filter_map(|axis| match axis.word().strip_prefix("link.") {
        Some(key) => of_links.as_ref().map(|link| (axis, link, key)),
        None => Some((axis, &inner, axis.word())),
    });
    let settings: Vec<_> = settings.filter(|(_, holder, key)| holder.get(key).is_some()).collect();
    let &[(axis, holder, key)] = settings.as_slice() else {
        let found = if settings.is_empty() { "no setting here" } else { "more than one setting here" };
        let complaint =
            Complaint::new(fields.key_span("sweep"), "a sweep must vary exactly one setting", found);
        fields
            .complain(complaint.help(format!("write {}, for example: {SWEEP}", one_of(keys::SWEEP.words()))));
        return None;
    };
    let values = values(holder, key, axis)?;
    // The setting that a sweep varies cannot also be set directly. For cores, this setting is `cpuset`.
    let set = match axis {
        Axis::Cores => fields.get("cpuset").map(|_| "cpuset"),
        Axis::LinkRate | Axis::LinkDelay => {
            let link = fields.get("link").and_then(|link| link.get_ref().as_table());
            link.filter(|link| link.contains_key(key)).map(|_| "link")
        }
        Axis::Connections | Axis::Cpus => fields.get(key).map(|_| key),
    };
    if let Some(set) = set {
        let twice = if set == "link" { axis.word() } else { set };
        let title = format!("`{twice}` cannot be combined with a sweep over {}", axis.word());
        fields.complain(
            Complaint::new(fields.key_span(set), title, "this has no effect").help("keep one of the two"),
        );
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
fn values(fields: &Fields<'_, '_>, key: &str, axis: Axis) -> Option<Vec<f64>> {
    let (least, most) = match axis {
        Axis::Connections => (1.0, f64::from(MOST_CONNECTIONS)),
        Axis::Cores => (1.0, f64::from(MOST_CPUS)),
        Axis::Cpus => (LEAST_CPUS, f64::from(MOST_CPUS)),
        // The reader of a link knows the limits.
        Axis::LinkRate | Axis::LinkDelay => (0.0, f64::INFINITY),
    };
    let expected = match axis {
        Axis::LinkRate => format!("a list of rates: {}", link::RATES),
        Axis::LinkDelay => format!("a list of times: {}", link::DELAYS),
        Axis::Cpus => format!("a list of numbers from {least} to {most}"),
        Axis::Connections | Axis::Cores => format!("a list of whole numbers from {least} to {most}"),
    };
    let value = |item: &DeValue<'_>| match axis {
        Axis::LinkRate => Some(link::rate(item.as_str()?)? as f64 / 1e6),
        Axis::LinkDelay => Some(link::delay_ns(item.as_str()?)? as f64 / 1e6),
        Axis::Cpus => number(item),
        Axis::Connections | Axis::Cores => number(item).filter(|value| value.fract() == 0.0),
    };
    let list = fields.items(key, &expected)?;
    let mut values: Vec<f64> = Vec::new();
    for item in *list.get_ref() {
        match value(item.get_ref()).filter(|value| (least..=most).contains(value)) {
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
