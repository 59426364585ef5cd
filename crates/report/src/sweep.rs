//! The words of a sweep that all renderings share: its load, the summary of each pair, the law, the findings.
//!
//! Owns: the texts about all points together. Must not know: the layout. Names are unescaped here; renderers escape them.

use deadheat_analysis::number::{percent, three_digits};
use deadheat_analysis::{CollectorResult, Comparison, Figure, Fit, Report, ScenarioResult, SweepResult};
use deadheat_record::{Axis, Experiment, Finding, Metric, VerdictWord};

use deadheat_analysis::experiment::{sentence, without_connections};
use deadheat_analysis::number::amount;

/// One point: its value and its scenario.
pub(crate) type Point<'a> = (f64, &'a ScenarioResult);

/// The points of a sweep, in plan order.
pub(crate) fn points<'a>(report: &'a Report, sweep: &SweepResult) -> Vec<Point<'a>> {
    sweep.points.iter().filter_map(|(value, name)| Some((*value, report.scenario(name)?))).collect()
}

/// The load of all points, without what differs between them.
pub(crate) fn load_of(sweep: &SweepResult, shape: &Experiment) -> String {
    match sweep.axis {
        Axis::Connections => without_connections(shape),
        Axis::Cores | Axis::Cpus | Axis::LinkRate | Axis::LinkDelay => sentence(shape),
    }
}

/// The summary of each pair with the baseline: `bun against node: faster at 1, 8; inconclusive at 64 connections`.
pub(crate) fn summaries(
    report: &Report,
    sweep: &SweepResult,
    points: &[Point<'_>],
    metric: Metric,
    baseline: Option<&str>,
) -> Vec<String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let compared = points.iter().flat_map(|(_, point)| &point.comparisons);
    for one in compared.filter(|one| one.metric == metric) {
        let pair = (one.baseline.as_str(), one.contender.as_str());
        if baseline == Some(pair.0) && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let said = |(baseline, contender): (&str, &str)| {
        let at = |wanted: &VerdictWord| {
            let has = |(value, point): &Point<'_>| {
                let one = point.pair(metric, baseline, contender)?;
                (one.verdict == *wanted).then(|| value.to_string())
            };
            let values: Vec<String> = points.iter().filter_map(has).collect();
            (!values.is_empty()).then(|| format!("{} at {}", wanted.word(), values.join(", ")))
        };
        let parts: Vec<String> = VerdictWord::ALL.iter().filter_map(at).collect();
        format!("{contender} against {baseline}: {} {}", parts.join("; "), sweep.axis.title())
    };
    reach(report, sweep, points, metric).into_iter().chain(pairs.into_iter().map(said)).collect()
}

/// The comparisons of a point in one metric, without those of the control: it is the baseline once more.
fn compared<'a>(report: &Report, point: &'a ScenarioResult, metric: Metric) -> Vec<&'a Comparison> {
    let control = report.record.plan.control().map(|one| one.name.as_str());
    let is_meant = |one: &&Comparison| {
        let sides = [one.baseline.as_str(), one.contender.as_str()];
        one.metric == metric && sides.iter().all(|side| Some(*side) != control)
    };
    point.comparisons.iter().filter(is_meant).collect()
}

/// From which delay on, or up to which rate, no contender differs: `from 20 ms delay on, all 3 are within the margin of each other`, or of the baseline
/// if contenders are compared only with it. None for other sweeps, and if the slowest link does not make contenders equal.
fn reach(report: &Report, sweep: &SweepResult, points: &[Point<'_>], metric: Metric) -> Option<String> {
    let is_alike = |point: &ScenarioResult| {
        let pairs = compared(report, point, metric);
        let within = |one: &&Comparison| one.verdict == VerdictWord::Equivalent || one.negligible;
        !pairs.is_empty() && pairs.iter().all(within)
    };
    // From the slowest link to the fastest.
    let mut slowest_first: Vec<&Point<'_>> = points.iter().collect();
    slowest_first.sort_by(|one, other| one.0.total_cmp(&other.0));
    if sweep.axis == Axis::LinkDelay {
        slowest_first.reverse();
    }
    if !matches!(sweep.axis, Axis::LinkDelay | Axis::LinkRate) {
        return None;
    }
    let alike = slowest_first.iter().take_while(|(_, point)| is_alike(point)).count();
    let (value, point) = slowest_first.get(alike.checked_sub(1)?)?;
    let pairs = compared(report, point, metric);
    let control = report.record.plan.control().map(|one| one.name.as_str());
    let racing = point.results.iter().filter(|one| Some(one.contender.as_str()) != control).count();
    let (many, whom) = if pairs.len() < racing * racing.saturating_sub(1) / 2 {
        (pairs.len(), pairs.first()?.baseline.as_str())
    } else {
        (racing, "each other")
    };
    let all = if many == 2 { "both".to_owned() } else { format!("all {many}") };
    let said = format!("{all} are within the margin of {whom}");
    let unit = sweep.axis.title();
    match sweep.axis {
        _ if alike == points.len() => Some(format!("{said} at every link")),
        Axis::LinkDelay => Some(format!("from {value} {unit} on, {said}")),
        Axis::LinkRate => Some(format!("up to {value} {unit}, {said}")),
        Axis::Connections | Axis::Cores | Axis::Cpus => None,
    }
}

/// The interval's half width on the log scale: `± 1.2 %`.
pub(crate) fn within(figure: &Figure) -> Option<String> {
    let (low, high) = (figure.low?, figure.high?);
    Some(format!("± {}", percent((high / low).sqrt() - 1.0)))
}

/// A figure in the unit of its metric.
pub(crate) fn figure(one: &Figure) -> String {
    let unit = one.metric.row().unit;
    amount(unit, one.value / unit.scale())
}

/// The law of one contender's rates.
pub(crate) fn law(sweep: &SweepResult, fit: &Fit) -> String {
    let peak = match fit.peak_at {
        Some(at) => format!("highest at {} {}", three_digits(at), sweep.axis.title()),
        None => "no highest point".into(),
    };
    format!(
        "{}: a scalability law fitted: contention {}, coherency {}, {peak} (no verdict)",
        fit.contender,
        percent(fit.sigma),
        percent(fit.kappa)
    )
}

/// The results of diagnostic passes at each point. Only the first contender of a point shows the point's value.
pub(crate) fn collectors<'a>(points: &[Point<'a>]) -> Vec<(String, &'a CollectorResult)> {
    let of_point = |&(value, point): &Point<'a>| {
        let named = point.collectors.iter().enumerate();
        named.map(move |(at, one)| (if at == 0 { value.to_string() } else { String::new() }, one))
    };
    points.iter().flat_map(of_point).collect()
}

/// The findings of all points. A finding that several points share appears once, with the values of these points.
pub(crate) fn found(sweep: &SweepResult, points: &[Point<'_>]) -> Vec<Finding> {
    let mut all: Vec<(Finding, Vec<String>)> = Vec::new();
    for (value, point) in points {
        for finding in &point.findings {
            match all.iter_mut().find(|(one, _)| one == finding) {
                Some((_, values)) => values.push(value.to_string()),
                None => all.push((finding.clone(), vec![value.to_string()])),
            }
        }
    }
    let said = |(mut finding, values): (Finding, Vec<String>)| {
        if values.len() < points.len() {
            finding.message += &format!(" (at {} {})", values.join(", "), sweep.axis.title());
        }
        finding
    };
    let mut findings: Vec<Finding> = all.into_iter().map(said).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}
