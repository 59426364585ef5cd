//! This machine's figures for what was published, taken from the record of a race.
//!
//! Owns: which claims can be held against which part of the record, and what is said then. A figure of another machine is
//! compared as a ratio between two contenders only. Must not know how anything was measured.

mod measured;
mod place;

use deadheat_record::{
    AuditRecord, Claim, ClaimHere, ClaimVerdict, HistogramError, Metric, Record, Shape, VerdictWord,
};
use deadheat_stats::{EpochRatio, LogInterval, Published, Sample, epoch_log_ratio};

use super::figures::{Figure, Place, figure};
use crate::{ReportError, View};
use measured::{Wanted, is_of, values, wanted};

/// Settings of a published run, and what is no result of a contender: nothing to be found here.
const SETTINGS: [&str; 13] = [
    "connections",
    "connect_errors",
    "requests",
    "duration_s",
    "warmup_s",
    "warmup_before_s",
    "timeouts",
    "rate_rps",
    "cpus",
    "runs",
    "generator_threads",
    "edge_cache_hit_rate",
    "edge_latency_ms",
];
/// The interval of a ratio that the race itself did not compare.
const ALPHA: f64 = 0.05;

/// Adds what this machine's race says of each claim.
///
/// # Errors
/// When the record is of another study, or a histogram in it is damaged; the audit is as it was then.
pub fn add_race(
    audit: &mut AuditRecord,
    file: &str,
    record: &Record,
    view: &View,
) -> Result<(), ReportError> {
    if record.plan.study != audit.study {
        return Err(ReportError::OtherStudy {
            found: record.plan.study.clone(),
            wanted: audit.study.clone(),
        });
    }
    let race = Race { record, view, claims: &audit.claims };
    let mut here = Vec::new();
    for (at, claim) in audit.claims.iter().enumerate() {
        if SETTINGS.contains(&claim.metric.as_str()) {
            continue;
        }
        here.extend(race.says(at, claim)?);
    }
    audit.here = here;
    audit.record = Some(file.into());
    audit.machine = Some(record.machine.clone());
    Ok(())
}

struct Race<'a> {
    record: &'a Record,
    view: &'a View,
    claims: &'a [Claim],
}

/// A ratio of this machine.
struct Found {
    ratio: f64,
    interval: Option<(f64, f64)>,
    invalid: bool,
}

impl Race<'_> {
    /// What the race says of a claim; nothing of the one that the others of its row are divided by.
    fn says(&self, at: usize, claim: &Claim) -> Result<Option<ClaimHere>, ReportError> {
        let mut one = ClaimHere {
            claims: vec![at],
            metric: claim.metric.clone(),
            row: claim.run().map(Into::into),
            contender: claim.contender.clone(),
            baseline: claim.baseline.clone(),
            scenario: None,
            published: None,
            here: None,
            low: None,
            high: None,
            verdict: ClaimVerdict::NotTestable,
            note: None,
        };
        let untestable = |mut one: ClaimHere, why: String| {
            one.note = Some(why);
            Ok(Some(one))
        };
        let Some(wanted) = self.wanted(&claim.metric) else {
            return untestable(one, "deadheat does not measure this".into());
        };
        let Some((contender, stated)) = claim.contender.as_deref().zip(figure(claim)) else {
            return untestable(one, "it names no contender".into());
        };
        let scenario = match self.scenario(claim, wanted) {
            Ok(scenario) => scenario.name.as_str(),
            Err(why) => return untestable(one, why),
        };
        one.scenario = Some(scenario.into());
        let (published, baseline) = if claim.metric.ends_with("_ratio") {
            let Some(baseline) = claim.baseline.clone() else {
                return untestable(one, "it names nobody that it is a ratio to".into());
            };
            (stated.is, baseline)
        } else {
            match self.divided_by(claim, contender, scenario) {
                Partner::Itself => return Ok(None),
                Partner::Nobody => {
                    let why = "no other contender's figure was published that it could be divided by".into();
                    return untestable(one, why);
                }
                Partner::Of(index, name, figure) => {
                    one.claims.push(index);
                    (stated.is.over(figure.is), name)
                }
            }
        };
        one.baseline = Some(baseline.clone());
        one.published = Some((published.low, published.high));
        for name in [contender, baseline.as_str()] {
            if let Some(why) = self.missing(name, scenario) {
                return untestable(one, why);
            }
        }
        match self
            .found(scenario, contender, &baseline, wanted)
            .map_err(|source| damaged(scenario, source))?
        {
            None => untestable(one, format!("{scenario} does not measure it")),
            Some(found) => Ok(Some(judged(one, published, &found, self.record.plan.method.margin))),
        }
    }

    /// What is taken from the record for a metric: what contenders measure themselves is known by its name.
    fn wanted(&self, metric: &str) -> Option<Wanted> {
        let measures = self.record.plan.scenarios.iter().filter_map(|one| match &one.shape {
            Shape::Measure { measure } => Some(measure),
            _ => None,
        });
        let own = measures.into_iter().any(|measure| is_of(metric, measure));
        if own { Some(Wanted::Of(Metric::Measure)) } else { wanted(metric) }
    }

    /// By whose figure of the same row a figure is divided: the race's baseline's if that was published and raced, else the
    /// first one's that was.
    fn divided_by(&self, claim: &Claim, contender: &str, scenario: &str) -> Partner {
        let alike =
            |one: &Claim| one.metric == claim.metric && one.run() == claim.run() && one.baseline.is_none();
        let mut known: Vec<(usize, &str, Figure)> = Vec::new();
        for (at, one) in self.claims.iter().enumerate().filter(|(_, one)| alike(one)) {
            if let Some((name, figure)) = one.contender.as_deref().zip(figure(one))
                && !known.iter().any(|(_, other, _)| *other == name)
                && self.missing(name, scenario).is_none()
            {
                known.push((at, name, figure));
            }
        }
        let raced = self.view.scenarios.iter().find(|one| one.result.name == scenario);
        let baseline = raced.and_then(|one| one.baseline.as_deref());
        let chosen = known.iter().position(|(_, name, _)| Some(*name) == baseline).unwrap_or(0);
        match known.get(chosen) {
            Some((_, name, _)) if *name == contender && known.len() > 1 => Partner::Itself,
            Some((_, name, _)) if *name == contender => Partner::Nobody,
            Some((at, name, figure)) => Partner::Of(*at, (*name).to_owned(), figure.clone()),
            None => Partner::Nobody,
        }
    }

    /// Why a contender has no figures in a scenario.
    fn missing(&self, name: &str, scenario: &str) -> Option<String> {
        if let Some((_, why)) = self.view.not_raced.iter().find(|(one, _)| one == name) {
            return Some(format!("{name} was not raced: {why}"));
        }
        self.index(name, scenario).is_none().then(|| format!("{name} was not raced"))
    }

    fn index(&self, name: &str, scenario: &str) -> Option<usize> {
        let of = |index: &usize| self.record.plan.contenders[*index].name == name;
        self.record.racing(scenario).into_iter().find(of)
    }

    /// The ratio as the race itself compared it, else over its epochs.
    fn found(
        &self,
        scenario: &str,
        contender: &str,
        baseline: &str,
        wanted: Wanted,
    ) -> Result<Option<Found>, HistogramError> {
        if let Some(compared) = self.compared(scenario, contender, baseline, wanted) {
            return Ok(Some(compared));
        }
        let sides = self.index(baseline, scenario).zip(self.index(contender, scenario));
        let Some((base, other)) = sides else { return Ok(None) };
        let mut logs = Vec::new();
        for epoch in self.record.epochs_of(scenario) {
            let (base, other) = (values(epoch, base, wanted)?, values(epoch, other, wanted)?);
            logs.extend(epoch_log_ratio(&base, &other).map(EpochRatio::trimmed));
        }
        let Some(sample) = Sample::of(&logs) else { return Ok(None) };
        let interval = sample.t_interval(ALPHA).and_then(ratios);
        Ok(Some(Found { ratio: sample.mean.exp(), interval, invalid: self.invalid(scenario) }))
    }

    fn compared(&self, scenario: &str, contender: &str, baseline: &str, wanted: Wanted) -> Option<Found> {
        let metric = match wanted {
            Wanted::Of(metric) => metric,
            Wanted::ColdStart => Metric::ColdStart,
            Wanted::Latency(Place::Quantile(at)) => Metric::ALL
                .into_iter()
                .find(|one| one.quantile().is_some_and(|share| (share - at).abs() < 1e-9))?,
            _ => return None,
        };
        let view = self.view.scenarios.iter().find(|one| one.result.name == scenario)?;
        let of = |one: &&deadheat_record::Comparison| {
            let names = [one.contender.as_str(), one.baseline.as_str()];
            one.metric == metric && (names == [contender, baseline] || names == [baseline, contender])
        };
        let found = view.result.comparisons.iter().find(of)?;
        let (ratio, interval) = (found.ratio?, found.low.zip(found.high));
        let turned = found.contender != contender;
        Some(Found {
            ratio: if turned { 1.0 / ratio } else { ratio },
            interval: if turned { interval.map(|(low, high)| (1.0 / high, 1.0 / low)) } else { interval },
            invalid: found.verdict == VerdictWord::Invalid,
        })
    }

    fn invalid(&self, scenario: &str) -> bool {
        let view = self.view.scenarios.iter().find(|one| one.result.name == scenario);
        let here = view.iter().flat_map(|one| &one.result.findings);
        here.chain(&self.view.findings)
            .any(|one| one.severity == deadheat_record::Severity::Invalid && one.contender.is_none())
    }
}

/// Who a figure is divided by.
enum Partner {
    /// It is the one that the others are divided by.
    Itself,
    Nobody,
    /// Its claim, its name and its figure.
    Of(usize, String, Figure),
}

fn damaged(scenario: &str, source: HistogramError) -> ReportError {
    ReportError::Histogram { scenario: scenario.into(), source }
}

fn ratios(interval: LogInterval) -> Option<(f64, f64)> {
    let (low, high) = interval.as_ratios();
    low.zip(high)
}

/// Reproduced if the published ratio lies within the interval, widened by the margin.
fn judged(mut one: ClaimHere, published: Published, found: &Found, margin: f64) -> ClaimHere {
    one.here = Some(found.ratio);
    let Some((low, high)) = found.interval else {
        one.note = Some("fewer than two epochs: there is no interval to hold it against".into());
        return one;
    };
    (one.low, one.high) = (Some(low), Some(high));
    if found.invalid {
        one.note = Some("the race's comparison is invalid: its findings say why".into());
        return one;
    }
    let within = published.high >= low / (1.0 + margin) && published.low <= high * (1.0 + margin);
    let other_way = (published.high < 1.0 && low > 1.0) || (published.low > 1.0 && high < 1.0);
    one.verdict = match (within, other_way) {
        (true, _) => ClaimVerdict::Reproduced,
        (false, true) => ClaimVerdict::Contradicted,
        (false, false) => ClaimVerdict::NotReproduced,
    };
    one
}
