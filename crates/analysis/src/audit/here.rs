//! This machine's values for published claims, taken from the record of a race.
//!
//! Owns: which part of the record can test which claim, and the resulting verdict. A value from a different machine is compared as a ratio
//! between two contenders; if the machines match, deadheat also compares the value itself. Must not know how anything was measured.

mod looked;
mod measured;
mod place;
mod race;

use deadheat_record::{AuditRecord, Claim, ClaimHere, ClaimVerdict, FEWEST_BEYOND, HistogramError, Metric};
use deadheat_stats::Published;

use super::figures::{Figure, figure, time_unit};
use crate::error::AnalysisError;
use crate::report::Report;
use looked::{Found, Looked};
use measured::{Wanted, is_of, unit, wanted};
use race::{Race, Side};

/// Settings of a published run, and other values that are not results of a contender: a race cannot test them.
const SETTINGS: [&str; 11] = [
    "connections",
    "requests",
    "duration_s",
    "warmup_before_s",
    "rate_rps",
    "cpus",
    "processes",
    "runs",
    "discarded_runs",
    "generator_threads",
    "edge_latency_ms",
];
/// Published values that are not settings and that no race compares, each with the reason.
const UNCOMPARED: [(&str, &str); 4] = [
    ("warmup_s", "a race measures the warm-up in its pilot and excludes it from what it compares"),
    (
        "timeouts",
        "a count from one run, which depends on its length and on its client's timeout: it cannot be compared between machines",
    ),
    (
        "connect_errors",
        "connections that the article's client could not open; the check of connections above uses them",
    ),
    (
        "edge_cache_hit_rate",
        "an assumption about users, which no race measures: the model of an edge cache uses it",
    ),
];

/// Adds the verdict of this machine's race on each claim.
///
/// # Errors
/// When the record is of another study, or has a damaged histogram. The audit is then unchanged.
pub fn add_race(audit: &mut AuditRecord, file: &str, report: &Report) -> Result<(), AnalysisError> {
    let record = &report.record;
    if record.plan.study != audit.study {
        return Err(AnalysisError::OtherStudy {
            found: record.plan.study.clone(),
            wanted: audit.study.clone(),
        });
    }
    let race = Race { report, claims: &audit.claims };
    let matches = audit.machine_matches;
    let mut here = Vec::new();
    for (at, claim) in audit.claims.iter().enumerate() {
        if SETTINGS.contains(&claim.metric.as_str()) {
            continue;
        }
        let (said, own) = (race.says(at, claim)?, if matches { race.own_figure(at, claim)? } else { None });
        // If the claim's own value can be compared, a ratio that is not testable is of no interest.
        here.extend(said.filter(|one| own.is_none() || one.verdict != ClaimVerdict::NotTestable));
        here.extend(own);
    }
    audit.here = here;
    audit.record = Some(file.into());
    audit.machine = Some(record.machine.clone());
    Ok(())
}

/// The outcome of testing a claim against a race.
enum Held {
    /// The verdict is recorded.
    Told,
    /// The claim cannot be tested, for this reason.
    Untestable(String),
    /// The other claims of its row are divided by this one.
    Divisor,
}

/// The subject of a claim.
struct About<'c> {
    side: Side<'c>,
    stated: Figure,
    wanted: Wanted,
}

/// The published ratio.
struct Stated<'c> {
    ratio: Published,
    base: Side<'c>,
}

impl<'a> Race<'a> {
    /// The race's verdict on a claim; none for the claim that the others of its row are divided by.
    fn says(&self, at: usize, claim: &Claim) -> Result<Option<ClaimHere>, AnalysisError> {
        let mut one = blank(at, claim);
        match self.held(&mut one, claim)? {
            Held::Told => {}
            Held::Untestable(why) => one.note = Some(why),
            Held::Divisor => return Ok(None),
        }
        Ok(Some(noted(one, claim)))
    }

    /// Compares a claim's value itself, on a machine that matches the published one; none if the claim is a ratio or the race has no such
    /// value.
    fn own_figure(&self, at: usize, claim: &Claim) -> Result<Option<ClaimHere>, AnalysisError> {
        let (Ok(About { side, stated, wanted }), false) =
            (self.about(claim), claim.metric.ends_with("_ratio") || claim.baseline.is_some())
        else {
            return Ok(None);
        };
        let Some(unit) = unit(&claim.metric, wanted).filter(|_| self.missing(side).is_none()) else {
            return Ok(None);
        };
        let found = self.own(side, wanted, unit).map_err(|source| damaged(side.scenario, source))?;
        let Some(found) = found else { return Ok(None) };
        let mut one = blank(at, claim);
        one.scenario = Some(side.scenario.into());
        // The claim in the unit in which it was written, not in seconds.
        let published = stated.is.scaled(1.0 / time_unit(&claim.metric).map_or(1.0, |(size, _)| size));
        one.published = Some((published.low, published.high));
        judged(&mut one, published, &found, self.report.record.plan.method.margin);
        if one.verdict == ClaimVerdict::Contradicted {
            // A single value has no direction to contradict.
            one.verdict = ClaimVerdict::NotReproduced;
        }
        Ok(Some(noted(one, claim)))
    }

    fn held(&self, one: &mut ClaimHere, claim: &Claim) -> Result<Held, AnalysisError> {
        let untestable = |why: String| Ok(Held::Untestable(why));
        let About { side, stated, wanted } = match self.about(claim) {
            Ok(about) => about,
            Err(why) => return untestable(why),
        };
        one.scenario = Some(side.scenario.into());
        if let Some(why) = self.missing(side) {
            return untestable(why);
        }
        let stated = if claim.metric.ends_with("_ratio") {
            match self.base(claim, side, wanted) {
                Ok(base) => Stated { ratio: stated.is, base },
                Err(why) => return untestable(why),
            }
        } else {
            match self.divided_by(claim, side) {
                Partner::Itself => return Ok(Held::Divisor),
                Partner::Nobody(why) => return untestable(why.into()),
                Partner::Of(index, name, figure) => {
                    one.claims.push(index);
                    let base = Side { contender: name, scenario: side.scenario };
                    Stated { ratio: stated.is.over(figure.is), base }
                }
            }
        };
        one.baseline = Some(stated.base.contender.into());
        if stated.base.scenario != side.scenario {
            one.baseline_scenario = Some(stated.base.scenario.into());
        }
        one.published = Some((stated.ratio.low, stated.ratio.high));
        if let Some(why) = self.missing(stated.base) {
            return untestable(why);
        }
        let looked = self.looked(side, stated.base, wanted);
        match looked.map_err(|source| damaged(side.scenario, source))? {
            Looked::Found(found) => {
                let margin = self.report.record.plan.method.margin;
                judged(one, stated.ratio, &found, margin);
                let reproduced = one.verdict == ClaimVerdict::Reproduced;
                if let Some(why) = cannot_tell(stated.ratio, &found, margin).filter(|_| reproduced) {
                    (one.verdict, one.note) = (ClaimVerdict::NotTestable, Some(why.into()));
                }
                Ok(Held::Told)
            }
            Looked::TooFew(count) => untestable(format!(
                "too few requests beyond it: {count} of {FEWEST_BEYOND} needed in an epoch; measure longer"
            )),
            Looked::Nothing => untestable(format!("{} does not measure it", side.scenario)),
        }
    }

    /// The contender and the value that a claim is about, and where the race has them.
    fn about<'c>(&self, claim: &'c Claim) -> Result<About<'c>, String>
    where
        'a: 'c,
    {
        if let Some((_, why)) = UNCOMPARED.iter().find(|(metric, _)| *metric == claim.metric) {
            return Err((*why).into());
        }
        if claim.metric.ends_with("_cv") {
            return Err("it describes runs within one start, but intervals here are over fresh starts".into());
        }
        let wanted = self.wanted(&claim.metric).ok_or("deadheat does not measure this")?;
        let named = claim.contender.as_deref().zip(figure(claim));
        let (contender, stated) = named.ok_or("it names no contender")?;
        let scenario = self.scenario(claim, wanted)?.name.as_str();
        Ok(About { side: Side { contender, scenario }, stated, wanted })
    }

    /// The other side of a stated ratio: its baseline, or the same contender in another scenario.
    fn base<'c>(&self, claim: &'c Claim, side: Side<'c>, wanted: Wanted) -> Result<Side<'c>, String>
    where
        'a: 'c,
    {
        let Some(name) = &claim.baseline_scenario else {
            let contender = claim.baseline.as_deref().ok_or("it names no contender to divide by")?;
            return Ok(Side { contender, scenario: side.scenario });
        };
        let scenario = self.named(name, claim, wanted)?.name.as_str();
        Ok(Side { contender: claim.baseline.as_deref().unwrap_or(side.contender), scenario })
    }

    /// What to read from the record for a metric. A value that contenders measure themselves is identified by its name.
    fn wanted(&self, metric: &str) -> Option<Wanted> {
        let mut measures = self.report.record.plan.scenarios.iter().filter_map(|one| one.shape.measure());
        let own = measures.any(|measure| is_of(metric, measure));
        if own { Some(Wanted::Of(Metric::Measure)) } else { wanted(metric) }
    }

    /// The claim of the same row by which a claim's value is divided: that of the race's baseline if it was published and raced, otherwise
    /// the first one that was.
    fn divided_by(&self, claim: &Claim, side: Side<'_>) -> Partner<'a> {
        let alike =
            |one: &Claim| one.metric == claim.metric && one.run() == claim.run() && one.baseline.is_none();
        let mut known: Vec<(usize, &str, Figure)> = Vec::new();
        let mut others = false;
        for (at, one) in self.claims.iter().enumerate().filter(|(_, one)| alike(one)) {
            let Some((name, figure)) = one.contender.as_deref().zip(figure(one)) else { continue };
            others |= name != side.contender;
            if !known.iter().any(|(_, other, _)| *other == name)
                && self.missing(Side { contender: name, ..side }).is_none()
            {
                known.push((at, name, figure));
            }
        }
        let baseline = self.report.baseline(side.scenario);
        let chosen = known.iter().position(|(_, name, _)| Some(*name) == baseline).unwrap_or(0);
        match known.get(chosen) {
            Some((_, name, _)) if *name == side.contender && known.len() > 1 => Partner::Itself,
            Some((at, name, figure)) if *name != side.contender => Partner::Of(*at, name, figure.clone()),
            _ if others => Partner::Nobody("no other contender with a published figure was raced"),
            _ => Partner::Nobody("no figure of another contender was published to divide it by"),
        }
    }
}

/// The result for a claim before any look-up.
fn blank(at: usize, claim: &Claim) -> ClaimHere {
    ClaimHere {
        claims: vec![at],
        metric: claim.metric.clone(),
        row: claim.run().map(Into::into),
        contender: claim.contender.clone(),
        baseline: claim.baseline.clone(),
        scenario: None,
        baseline_scenario: None,
        published: None,
        here: None,
        low: None,
        high: None,
        verdict: ClaimVerdict::NotTestable,
        note: None,
    }
}

/// Appends the study's note on the claim to the note from the race.
fn noted(mut one: ClaimHere, claim: &Claim) -> ClaimHere {
    if let Some(own) = &claim.note {
        one.note = Some(one.note.map_or_else(|| own.clone(), |note| format!("{note} ({own})")));
    }
    one
}

/// The claim that a value is divided by.
enum Partner<'a> {
    /// The claim itself is the divisor of the others.
    Itself,
    /// There is no divisor, for this reason.
    Nobody(&'static str),
    /// The index of the claim, its contender and its value.
    Of(usize, &'a str, Figure),
}

fn damaged(scenario: &str, source: HistogramError) -> AnalysisError {
    AnalysisError::Histogram { scenario: scenario.into(), source }
}

/// Why a wide interval that contains the published ratio does not reproduce it. If the claim is a difference, the interval must exclude 1, or
/// not even the direction is certain. If the claim is no difference, the whole interval must lie around the published ratio, within the
/// margin on both sides.
fn cannot_tell(published: Published, found: &Found, margin: f64) -> Option<&'static str> {
    let (low, high) = found.interval?;
    let alike = (1.0 / (1.0 + margin)..=1.0 + margin).contains(&published.value);
    let (apart, none) = (
        "inconclusive: the interval contains the published ratio, but also 1, which is no difference",
        "inconclusive: the interval contains the published ratio, but also ratios beyond the margin",
    );
    match alike {
        false if low <= 1.0 && high >= 1.0 => Some(apart),
        true if low < published.low / (1.0 + margin) || high > published.high * (1.0 + margin) => Some(none),
        _ => None,
    }
}

/// The verdict is "reproduced" if the published value lies within the interval, widened by the margin.
fn judged(one: &mut ClaimHere, published: Published, found: &Found, margin: f64) {
    one.here = Some(found.value);
    let Some((low, high)) = found.interval else {
        one.note = Some("fewer than two epochs: there is no interval to compare it with".into());
        return;
    };
    (one.low, one.high) = (Some(low), Some(high));
    if found.invalid {
        one.note = Some("the race's comparison is invalid: its findings say why".into());
        return;
    }
    let within = published.high >= low / (1.0 + margin) && published.low <= high * (1.0 + margin);
    let other_way = (published.high < 1.0 && low > 1.0) || (published.low > 1.0 && high < 1.0);
    one.verdict = match (within, other_way) {
        (true, _) => ClaimVerdict::Reproduced,
        (false, true) => ClaimVerdict::Contradicted,
        (false, false) => ClaimVerdict::NotReproduced,
    };
    if one.baseline_scenario.is_some() {
        let note = "two scenarios, raced one after the other: their epochs are not pairs, so the interval is Welch's";
        one.note = Some(note.into());
    }
}
