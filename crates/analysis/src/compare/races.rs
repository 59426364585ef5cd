//! Compares two races: each scenario and contender that both have, metric by metric.
//!
//! Owns the families that share the error rate, and which findings invalidate a comparison.

use deadheat_record::{Finding, HistogramError, Metric, Record, Severity, VerdictWord};
use deadheat_stats::holm::Holm;
use deadheat_stats::verdict::rule;
use deadheat_stats::{ENDED_BY_ITSELF, Sample, Verdict, Welch};

use super::document::{
    COMPARE_SCHEMA, Change, CompareDocument, ComparedKind, ComparedRecord, ComparedScenario,
};
use super::epochs::{Series, series};
use super::matched::{Both, Match, names, old_name, scenario_names};
use super::options::{CompareError, CompareOptions, FailIf, Named};
use super::{comparability, conditions};
use crate::error::AnalysisError;
use crate::judge::{direction, word};
use crate::report::Report;

/// Compares two races.
///
/// # Errors
/// When a record is damaged, an option has an unknown name, or the records have nothing in common.
pub fn races(
    old: &Named<'_, Record>,
    new: &Named<'_, Record>,
    asked: &CompareOptions,
) -> Result<CompareDocument, CompareError> {
    let derive = |one: &Named<'_, Record>| {
        Report::of(one.record).map_err(|source| CompareError::Report { file: one.file.clone(), source })
    };
    let (old_report, new_report) = (derive(old)?, derive(new)?);
    known(old, new, asked)?;
    consistent(asked)?;
    let matches = matches(old.record, new.record, asked)?;
    let reference =
        matches.iter().copied().find(|one| asked.reference.as_ref() == Some(name(new.record, one)));
    let both = Both { old: old.record, new: new.record, old_report, new_report, matches, reference };
    let margin = asked.margin.unwrap_or(new.record.plan.method.margin);
    let alpha = asked.alpha.unwrap_or(new.record.plan.method.alpha);
    let findings = comparability::of_records(&both, [&old.file, &new.file], asked);
    let shared = shared_scenarios(&both, asked)?;
    known_metrics(&both, &shared, asked)?;
    let mut scenarios = Vec::new();
    for scenario in shared.into_iter().filter(|one| !compared_metrics(&both, one, asked).is_empty()) {
        let rules = Rules { margin, alpha, race_findings: &findings };
        let damaged = |source| {
            let source = AnalysisError::Histogram { scenario: scenario.clone(), source };
            CompareError::Report { file: format!("{} or {}", old.file, new.file), source }
        };
        scenarios.push(compared(&both, &scenario, asked, &rules).map_err(damaged)?);
    }
    somebody(&scenarios, old, new)?;
    Ok(CompareDocument {
        schema: COMPARE_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        kind: ComparedKind::Races,
        old: side(old),
        new: side(new),
        reference: asked.reference.clone(),
        margin,
        alpha,
        conditions: conditions::of(&scenarios, &asked.conditions),
        scenarios,
        findings,
    })
}

/// Checks that no two options contradict each other.
fn consistent(asked: &CompareOptions) -> Result<(), CompareError> {
    let is_again = |at: &usize| asked.map[..*at].iter().any(|(_, new)| *new == asked.map[*at].1);
    if let Some(at) = (0..asked.map.len()).find(is_again) {
        return Err(CompareError::Twice { name: asked.map[at].1.clone() });
    }
    let reference = asked.reference.as_ref();
    match reference
        .filter(|name| !asked.contenders.is_empty() && asked.contenders.iter().all(|one| one == *name))
    {
        Some(name) => Err(CompareError::OnlyReference { name: name.clone() }),
        None => Ok(()),
    }
}

/// An error unless there is a comparison or an invalid finding, for example on a contender that was excluded from the new race.
fn somebody(
    scenarios: &[ComparedScenario],
    old: &Named<'_, Record>,
    new: &Named<'_, Record>,
) -> Result<(), CompareError> {
    let findings = || scenarios.iter().flat_map(|one| &one.findings);
    if scenarios.iter().any(|one| !one.changes.is_empty())
        || findings().any(|one| one.severity == Severity::Invalid)
    {
        return Ok(());
    }
    let mut out: Vec<String> = Vec::new();
    for one in findings().filter(|one| one.code == "not-raced").filter_map(|one| one.contender.clone()) {
        if !out.contains(&one) {
            out.push(one);
        }
    }
    Err(match out.is_empty() {
        true => CompareError::Nothing { what: "contender", old: names(old.record), new: names(new.record) },
        false => CompareError::Out { file: old.file.clone(), out },
    })
}

fn side(one: &Named<'_, Record>) -> ComparedRecord {
    ComparedRecord {
        file: one.file.clone(),
        study: one.record.plan.study.clone(),
        version: one.record.version.clone(),
        started_unix_ms: one.record.started_unix_ms,
        seed: one.record.plan.method.seed,
    }
}

fn name<'a>(new: &'a Record, one: &Match) -> &'a String {
    &new.plan.contenders[one.new].name
}

/// Checks that every name in the options exists.
fn known(
    old: &Named<'_, Record>,
    new: &Named<'_, Record>,
    asked: &CompareOptions,
) -> Result<(), CompareError> {
    let unknown = |option, name: &str, file: &str, known| {
        Err(CompareError::Unknown { option, name: name.into(), place: file.into(), known })
    };
    for (then, now) in &asked.map {
        if old.record.plan.index_of(then).is_none() {
            return unknown("--map", then, &old.file, names(old.record));
        }
        if new.record.plan.index_of(now).is_none() {
            return unknown("--map", now, &new.file, names(new.record));
        }
    }
    if let Some(one) = asked.contenders.iter().find(|one| new.record.plan.index_of(one).is_none()) {
        return unknown("--contender", one, &new.file, names(new.record));
    }
    if let Some(one) = &asked.reference {
        if new.record.plan.index_of(one).is_none() {
            return unknown("--reference", one, &new.file, names(new.record));
        }
        let then = old_name(asked, one);
        if old.record.plan.index_of(then).is_none() {
            return unknown("--reference", then, &old.file, names(old.record));
        }
    }
    for one in &asked.scenarios {
        for side in [old, new] {
            let all = scenario_names(side.record);
            if !all.contains(one) {
                return unknown("--scenario", one, &side.file, all);
            }
        }
    }
    Ok(())
}

/// Matches the contenders that are in both records.
fn matches(old: &Record, new: &Record, asked: &CompareOptions) -> Result<Vec<Match>, CompareError> {
    let all = new.plan.contenders.iter().enumerate();
    let matches: Vec<Match> = all
        .filter_map(|(now, one)| {
            Some(Match { old: old.plan.index_of(old_name(asked, &one.name))?, new: now })
        })
        .collect();
    if matches.is_empty() {
        return Err(CompareError::Nothing { what: "contender", old: names(old), new: names(new) });
    }
    Ok(matches)
}

/// The chosen scenarios that are in both records, in the new record's order.
fn shared_scenarios(both: &Both<'_>, asked: &CompareOptions) -> Result<Vec<String>, CompareError> {
    let (old, new) = (scenario_names(both.old), scenario_names(both.new));
    let chosen = |one: &&String| asked.scenarios.is_empty() || asked.scenarios.contains(one);
    let shared: Vec<String> = new.iter().filter(|one| old.contains(one)).filter(chosen).cloned().collect();
    if shared.is_empty() {
        return Err(CompareError::Nothing { what: "scenario", old, new });
    }
    Ok(shared)
}

/// The metrics of a scenario in the new record.
fn measured_in(both: &Both<'_>, scenario: &str) -> &'static [Metric] {
    both.new.plan.scenario(scenario).map_or(&[][..], |one| one.shape.metrics())
}

/// The metrics in which a scenario is compared: those in the options that it measures. If the options name none: those that every report shows,
/// those that its race compared, and those that a condition names.
fn compared_metrics(both: &Both<'_>, scenario: &str, asked: &CompareOptions) -> Vec<Metric> {
    let measured = measured_in(both, scenario).iter().copied();
    let raced = both.new.plan.metrics_of(scenario);
    let is_meant = |one: &Metric| match &asked.metrics[..] {
        [] => {
            let named = || asked.conditions.iter().any(|condition| condition.metric == Some(*one));
            one.row().always_shown || raced.contains(one) || named()
        }
        typed => typed.contains(one),
    };
    measured.filter(is_meant).collect()
}

/// Checks that every metric in the options and conditions is one that the scenarios measure.
fn known_metrics(both: &Both<'_>, scenarios: &[String], asked: &CompareOptions) -> Result<(), CompareError> {
    let unknown = |option, name: &str, place: &str, known: &[Metric]| {
        let known = known.iter().map(|one| one.word().to_owned()).collect();
        Err(CompareError::Unknown { option, name: name.into(), place: place.into(), known })
    };
    let mut known: Vec<Metric> = Vec::new();
    for metric in scenarios.iter().flat_map(|one| measured_in(both, one)) {
        if !known.contains(metric) {
            known.push(*metric);
        }
    }
    let both_measured = "what both records measured";
    if let Some(one) = asked.metrics.iter().find(|one| !known.contains(one)) {
        return unknown("--metric", one.word(), both_measured, &known);
    }
    let (left, place) = match &asked.metrics[..] {
        [] => (&known[..], both_measured),
        typed => (typed, "what --metric leaves to compare"),
    };
    let missing = |one: &&FailIf| one.metric.is_some_and(|metric| !left.contains(&metric));
    match asked.conditions.iter().find(missing) {
        Some(one) => unknown("--fail-if", &one.text, place, left),
        None => Ok(()),
    }
}

/// The settings that all families share.
struct Rules<'a> {
    margin: f64,
    alpha: f64,
    race_findings: &'a [Finding],
}

fn compared(
    both: &Both<'_>,
    scenario: &str,
    asked: &CompareOptions,
    rules: &Rules<'_>,
) -> Result<ComparedScenario, HistogramError> {
    let (racing_old, racing_new) = (both.old.racing(scenario), both.new.racing(scenario));
    let is_chosen = |one: &&Match| {
        Some(**one) != both.reference
            && (asked.contenders.is_empty() || asked.contenders.contains(name(both.new, one)))
    };
    let chosen: Vec<Match> = both.matches.iter().filter(is_chosen).copied().collect();
    let raced = |one: &&Match| racing_old.contains(&one.old) && racing_new.contains(&one.new);
    let field: Vec<Match> = chosen.iter().filter(raced).copied().collect();
    let findings = comparability::of_scenario(both, scenario, &chosen, &field);
    let mut families = Vec::new();
    for metric in compared_metrics(both, scenario, asked) {
        let mut family = family(both, scenario, &field, metric, rules)?;
        for one in &mut family {
            one.asked = !asked.metrics.is_empty() || both.new.plan.metrics_of(scenario).contains(&metric);
            take_away(one, metric, findings.iter().chain(rules.race_findings));
        }
        families.push(family);
    }
    // Order by contender; within a contender, the metrics that the race asked for come first.
    let mut changes: Vec<Change> = Vec::new();
    for at in 0..field.len() {
        let mut of_one: Vec<Change> = families.iter().map(|family| family[at].clone()).collect();
        of_one.sort_by_key(|one| !one.asked);
        changes.extend(of_one);
    }
    let plan = both.new.plan.scenario(scenario);
    let shape =
        plan.map(|plan| plan.shape.clone()).unwrap_or(deadheat_record::Experiment::Closed { connections: 0 });
    Ok(ComparedScenario { name: scenario.into(), shape, changes, findings })
}

/// Makes the verdict invalid if a finding invalidates the value of either side.
fn take_away<'a>(change: &mut Change, metric: Metric, mut findings: impl Iterator<Item = &'a Finding>) {
    if findings.any(|one| one.takes(&change.contender, Some(metric))) {
        (change.verdict, change.negligible) = (VerdictWord::Invalid, false);
    }
}

/// One metric of one scenario: all contenders of the field share the error rate.
fn family(
    both: &Both<'_>,
    scenario: &str,
    field: &[Match],
    metric: Metric,
    rules: &Rules<'_>,
) -> Result<Vec<Change>, HistogramError> {
    let mut sides = Vec::new();
    for one in field {
        let reference = (both.reference.map(|one| one.old), both.reference.map(|one| one.new));
        let old = series(both.old, scenario, one.old, metric, reference.0)?;
        let new = series(both.new, scenario, one.new, metric, reference.1)?;
        let resolution = old.resolution.max(new.resolution);
        let welch = Welch::of(&old.compared, &new.compared).map(|welch| welch.coarse(resolution));
        sides.push((old, new, welch));
    }
    let alpha = rules.alpha * share_of_alpha(both, scenario);
    let mut holm = Holm::new(field.len());
    let evidence: Vec<f64> =
        sides.iter().map(|(_, _, welch)| welch.map_or(0.0, |welch| -welch.p_value().ln())).collect();
    holm.look(&evidence, |sharing| -(alpha / sharing as f64).ln());
    let mut changes = Vec::new();
    for (at, (one, (old, new, welch))) in field.iter().zip(&sides).enumerate() {
        let judged = Judged {
            welch: *welch,
            alpha: alpha / holm.sharing(at) as f64,
            differs: holm.rejected(at),
            margin_ln: rules.margin.ln_1p(),
        };
        changes.push(change(both, one, metric, (old, new), &judged));
    }
    Ok(changes)
}

/// A race with several looks stopped depending on its data, so its comparison gets a smaller error rate.
fn share_of_alpha(both: &Both<'_>, scenario: &str) -> f64 {
    let has_looks = |record: &Record| {
        record.plan.scenario(scenario).is_some_and(|plan| record.plan.method_of(plan).looks.len() > 1)
    };
    if has_looks(both.old) || has_looks(both.new) { ENDED_BY_ITSELF } else { 1.0 }
}

/// The family's result for one contender.
struct Judged {
    welch: Option<Welch>,
    alpha: f64,
    differs: bool,
    margin_ln: f64,
}

fn change(
    both: &Both<'_>,
    one: &Match,
    metric: Metric,
    series: (&Series, &Series),
    judged: &Judged,
) -> Change {
    let (old, new) = series;
    let (then, now) = (&both.old.plan.contenders[one.old], &both.new.plan.contenders[one.new]);
    let direction = direction(metric.more_is_better());
    let interval = judged.welch.map(|welch| welch.interval(judged.alpha));
    let ruling = interval.map(|interval| rule(judged.differs, &interval, judged.margin_ln, direction));
    let mean = |values: &[f64]| Sample::of(values).map(|sample| sample.mean);
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let ratio = mean(&new.compared).zip(mean(&old.compared)).and_then(|(new, old)| finite((new - old).exp()));
    let (low, high) = interval.map_or((None, None), |interval| interval.as_ratios());
    Change {
        contender: now.name.clone(),
        old_contender: then.name.clone(),
        old_version: then.version.clone(),
        new_version: now.version.clone(),
        metric,
        more_is_better: metric.more_is_better(),
        asked: false,
        old: mean(&old.levels).and_then(|ln| finite(ln.exp())),
        new: mean(&new.levels).and_then(|ln| finite(ln.exp())),
        ratio,
        low,
        high,
        alpha: interval.map(|_| judged.alpha),
        verdict: word(ruling.map_or(Verdict::Inconclusive, |ruling| ruling.verdict)),
        negligible: ruling.is_some_and(|ruling| ruling.negligible),
        old_epochs: old.compared.len(),
        new_epochs: new.compared.len(),
        detectable_ratio: judged.welch.and_then(|welch| welch.detectable_ratio(judged.alpha)),
    }
}
