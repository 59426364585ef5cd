//! The View: everything that any renderer shows, derived from the record alone.
//!
//! Owns the View's shape and the order in which it is derived. Must not know terminals, pages or files.

use deadheat_record::{
    Comparison, ContenderResult, ContenderSummary, Difference, End, Finding, HistogramError, LadderResult,
    Limits, Machine, Metric, Pinning, Ranked, Ranking, Record, ScenarioPlan, ScenarioResult, Shape,
    SweepResult,
};
use deadheat_stats::{JudgeError, Referee, RulesError};

use crate::{collector, compare, edge, findings, headline, ladder, reproduce, results, sweep, transport};

/// Everything that is shown of a race. Texts are as the record has them: renderers escape.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The study's name.
    pub study: String,
    /// One line about the study.
    pub title: Option<String>,
    /// Version of the program that measured.
    pub version: String,
    /// Start in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// `quick` or `full`.
    pub profile: String,
    /// Every random order comes from it.
    pub seed: u64,
    /// Ratios within 1 +- margin count as equivalent.
    pub margin: f64,
    /// Two-sided error rate of each scenario.
    pub alpha: f64,
    /// The most epochs that the race may take.
    pub max_epochs: usize,
    /// Where it was measured.
    pub machine: Machine,
    /// Which cores belong to whom.
    pub pinning: Pinning,
    /// Everybody in the plan, in plan order, raced or not.
    pub contenders: Vec<ContenderSummary>,
    /// Who was not raced, and why with the remedy.
    pub not_raced: Vec<(String, String)>,
    /// Every difference that a parity check found.
    pub differences: Vec<Difference>,
    /// One per scenario of the plan, in plan order.
    pub scenarios: Vec<ScenarioView>,
    /// Sweeps, whose points are among the scenarios, in plan order.
    pub sweeps: Vec<SweepResult>,
    /// Ladders, whose rungs are among the scenarios, in plan order.
    pub ladders: Vec<LadderResult>,
    /// Findings that are not about one scenario.
    pub findings: Vec<Finding>,
    /// Whether the race came to its planned end.
    pub complete: bool,
    /// The command that runs the same plan again, ready for a shell.
    pub reproduce: String,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioView {
    /// Results, comparisons and findings, as the JSON document has them.
    pub result: ScenarioResult,
    /// What each contender was held to.
    pub limits: Limits,
    /// How its requests reach contenders, in words; none of plain HTTP on connections that stay.
    pub transport: Option<String>,
    /// The verdict in the first metric as a sentence.
    pub headline: String,
    /// Indices into the results, best first in the first metric.
    pub order: Vec<usize>,
    /// One per metric that was asked for, what matters most first; never empty.
    pub metrics: Vec<MetricView>,
    /// The name that the others are compared with; none when nobody is compared.
    pub baseline: Option<String>,
    /// Epochs that verdicts rest on; the result's are all that were measured.
    pub counted: usize,
}

impl ScenarioView {
    /// Epochs that were measured and count for nothing.
    pub fn left_out(&self) -> usize {
        self.result.epochs.saturating_sub(self.counted)
    }
}

/// How the contenders of a scenario stand in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricView {
    /// What is compared.
    pub metric: Metric,
    /// The verdict as a sentence.
    pub headline: String,
    /// Indices into the results, best first.
    pub order: Vec<usize>,
    /// Compact letters of each result, in their order; empty unless every pair was compared.
    pub letters: Vec<String>,
}

/// Why a record could not be made into a View.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A histogram in the record is damaged.
    #[error("the record's scenario {scenario} cannot be reported: {source}; the record is damaged")]
    Histogram {
        /// The scenario.
        scenario: String,
        /// What is wrong.
        source: HistogramError,
    },
    /// The plan's method cannot be followed.
    #[error("the record's method cannot be followed: {0}")]
    Rules(#[from] RulesError),
    /// The record has epochs that its own rules do not allow.
    #[error("the record's scenario {scenario} cannot be judged: {source}")]
    Judge {
        /// The scenario.
        scenario: String,
        /// What is wrong.
        source: JudgeError,
    },
    /// The record of another study than the one that is audited.
    #[error("the record is of the study {found}, and not of {wanted}; give a record of {wanted}")]
    OtherStudy {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// The document could not be written as JSON.
    #[error("the report could not be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A table could not be written as CSV.
    #[error("the report could not be written as CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A figure could not be drawn.
    #[error("the figure {figure} could not be drawn: {problem}")]
    Figure {
        /// Its file.
        figure: String,
        /// What went wrong.
        problem: String,
    },
}

/// Derives everything from the record.
///
/// # Errors
/// When the record is damaged: a histogram that cannot be read, rules that cannot be followed, more epochs than its
/// rules allow.
pub fn view(record: &Record) -> Result<View, ReportError> {
    let method = &record.plan.method;
    let referee = Referee::new(compare::rules(method))?;
    let race_findings = findings::of_race(record);
    let scenarios = record.plan.scenarios.iter();
    let scenarios: Vec<ScenarioView> = scenarios
        .map(|scenario| scenario_view(record, scenario, &referee, &race_findings))
        .collect::<Result<_, _>>()?;
    let results: Vec<&ScenarioResult> = scenarios.iter().map(|one| &one.result).collect();
    Ok(View {
        study: record.plan.study.clone(),
        title: record.plan.title.clone(),
        version: record.version.clone(),
        started_unix_ms: record.started_unix_ms,
        profile: method.profile.clone(),
        seed: method.seed,
        margin: method.margin,
        alpha: method.alpha,
        max_epochs: referee.rules().max_epochs,
        machine: record.machine.clone(),
        pinning: record.plan.pinning.clone(),
        contenders: contenders(record),
        not_raced: not_raced(record),
        differences: record.differences.clone(),
        sweeps: sweep::all(record, &results),
        ladders: ladder::all(record, &results),
        scenarios,
        findings: race_findings,
        complete: record.done,
        reproduce: reproduce::command(&record.plan),
    })
}

fn scenario_view(
    record: &Record,
    scenario: &ScenarioPlan,
    referee: &Referee,
    race_findings: &[Finding],
) -> Result<ScenarioView, ReportError> {
    let name = &scenario.name;
    let own = match scenario.shape {
        Shape::Starts { .. } => Some(Referee::new(compare::rules(&record.plan.method_of(scenario)))?),
        _ => None,
    };
    let referee = own.as_ref().unwrap_or(referee);
    let damaged = |source| ReportError::Histogram { scenario: name.clone(), source };
    let contests = record.contests(name);
    let mut results = results::of(record, name).map_err(damaged)?;
    let epochs = compare::epoch_ratios(record, name, &contests).map_err(damaged)?;
    let judgement = compare::judge(record, name, referee, &contests, &epochs)?;
    let (findings, gates) = findings::of_scenario(record, scenario, &results, &contests, judgement.as_ref());
    let invalid = |contender: &str, metric: Metric| {
        findings.iter().chain(race_findings).any(|one| one.takes(contender, Some(metric)))
    };
    let comparisons = compare::comparisons(record, &contests, &epochs, judgement.as_ref(), &invalid);
    let rankings = record.plan.metrics(scenario).into_iter();
    let rankings: Vec<Standing> = rankings.map(|metric| standing(metric, &results, &comparisons)).collect();
    if let Some(first) = rankings.first() {
        results
            .iter_mut()
            .zip(&first.letters)
            .for_each(|(result, letters)| result.letters.clone_from(letters));
    }
    let mut result = ScenarioResult {
        name: name.clone(),
        shape: scenario.shape.clone(),
        epochs: record.epochs_of(name).count(),
        rankings: rankings.iter().map(|one| one.ranking(&results)).collect(),
        results,
        comparisons,
        findings,
        gates: gates.into_iter().map(findings::Reading::shown).collect(),
        edge_cache: edge::of(record, scenario).map_err(damaged)?,
        collectors: collector::of(record, name),
        ended: ended(record.end_of(name)).into(),
    };
    let margin = record.plan.method.margin;
    let metric = |Standing { metric, order, letters }: Standing| {
        let headline = headline::of(&result, metric, &order, &letters, margin, race_findings);
        MetricView { metric, headline, order, letters }
    };
    let metrics: Vec<MetricView> = rankings.into_iter().map(metric).collect();
    for (ranking, metric) in result.rankings.iter_mut().zip(&metrics) {
        ranking.headline.clone_from(&metric.headline);
    }
    let (headline, order) =
        metrics.first().map(|first| (first.headline.clone(), first.order.clone())).unwrap_or_default();
    let baseline = record.pairs(name).first().map(|(one, _)| record.plan.contenders[*one].name.clone());
    let counted = compare::counted(record, name, judgement.as_ref());
    let (limits, transport) = (scenario.limits.clone(), transport::about(&record.plan, scenario));
    Ok(ScenarioView { result, limits, transport, headline, order, metrics, baseline, counted })
}

/// Who is how good in one metric.
struct Standing {
    metric: Metric,
    order: Vec<usize>,
    letters: Vec<String>,
}

impl Standing {
    fn ranking(&self, results: &[ContenderResult]) -> Ranking {
        let ranked = |index: &usize| Ranked {
            contender: results[*index].contender.clone(),
            letters: self.letters[*index].clone(),
        };
        let contenders = self.order.iter().map(ranked).collect();
        Ranking { metric: self.metric, contenders, headline: String::new() }
    }
}

fn standing(metric: Metric, results: &[ContenderResult], comparisons: &[Comparison]) -> Standing {
    let in_metric: Vec<&Comparison> = comparisons.iter().filter(|one| one.metric == metric).collect();
    let order = results::order(results, metric, &in_metric);
    let letters = compare::letters(results, &order, &in_metric);
    Standing { metric, order, letters }
}

fn ended(end: Option<End>) -> &'static str {
    match end {
        Some(End::Decided) => "decided",
        Some(End::Maximum) => "maximum",
        Some(End::Budget) => "budget",
        Some(End::Stopped) => "stopped",
        Some(End::Unavailable) => "unavailable",
        None => "unfinished",
    }
}

/// Everybody in the plan and those that were left out of it.
fn contenders(record: &Record) -> Vec<ContenderSummary> {
    let raced = record.plan.contenders.iter().map(|one| ContenderSummary {
        name: one.name.clone(),
        version: one.version.clone(),
        command: one.command.clone(),
        status: if record.out.contains(&one.name) { out_reason(record, &one.name) } else { "raced".into() },
    });
    let skipped = record.plan.skipped.iter().map(|(name, why)| ContenderSummary {
        name: name.clone(),
        version: None,
        command: String::new(),
        status: why.clone(),
    });
    raced.chain(skipped).collect()
}

fn not_raced(record: &Record) -> Vec<(String, String)> {
    let out = record.out.iter().map(|name| (name.clone(), out_reason(record, name)));
    record.plan.skipped.iter().cloned().chain(out).collect()
}

fn out_reason(record: &Record, name: &str) -> String {
    let first = record.plan.scenarios.first().map(|scenario| &scenario.name);
    let later = record.out_in.iter().find(|(one, scenario)| one == name && Some(scenario) != first);
    let from = later.map_or_else(String::new, |(_, scenario)| format!("from scenario {scenario} on: "));
    from + &match record.differences.iter().filter(|one| one.contender == name).count() {
        0 => "put out of the race; its findings say why".into(),
        1 => "answers differently in 1 place; make it answer like the others".into(),
        n => format!("answers differently in {n} places; make it answer like the others"),
    }
}
