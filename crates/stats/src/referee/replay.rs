//! Repeats the looks of a race, in order, over epochs that are all available already.
//!
//! Owns how verdicts are taken at a look and what is reported between looks. It must not know how critical values are
//! computed.

use std::collections::{BTreeMap, BTreeSet};

use super::critical::Critical;
use super::{Hypothesis, Judgement, Next, PairJudgement, Progress, StoppingRules, TooNoisy};
use crate::holm::Holm;
use crate::interval::{Sample, detectable_ratio, epochs_needed};
use crate::moderated::{self, Shared};
use crate::serial::Serial;
use crate::verdict::{Verdict, rule};

/// Estimates closer than this on the log scale differ because of rounding and not because of slow slices.
const ROUNDING: f64 = 1e-9;

/// A pair is intermittent if trimmed and total ratio differ by more than this many standard errors.
const INTERMITTENT: f64 = 2.0;

/// A first look is too noisy if the margin would need more than this multiple of the most epochs.
const TOO_MANY_TIMES: usize = 2;

/// Judges a family of hypotheses. There is at least one, all have the same number of epochs, and at most the most epochs.
pub(super) fn judge(
    rules: &StoppingRules,
    critical: &Critical,
    family: &[Hypothesis<'_>],
    progress: Progress,
) -> Judgement {
    let epochs = family[0].epochs.len();
    let mut race = Replay::new(rules, critical, family);
    for (look, &n) in rules.looks.iter().enumerate().take_while(|(_, n)| **n <= epochs) {
        race.take_look(n, |sharing| critical.planned(look, sharing));
        if look == 0 {
            race.weigh_noise(n);
        }
    }
    // Also if all pairs were decided and the race continued: the verdict of a pair must agree with the interval shown.
    let open = !race.all_decided() || race.look != Some(epochs);
    if progress == Progress::Ended && epochs >= 2 && epochs < rules.max_epochs && open {
        race.take_look(epochs, |sharing| critical.last(epochs, sharing));
    }
    Judgement {
        pairs: race
            .samples(epochs)
            .into_iter()
            .enumerate()
            .map(|(i, sample)| race.judgement(i, sample))
            .collect(),
        next: race.next(epochs, progress),
        look: race.look,
        too_noisy: race.too_noisy(),
    }
}

/// The result of the looks so far for a pair.
#[derive(Clone)]
struct Standing {
    verdict: Verdict,
    negligible: bool,
    decided_at: Option<usize>,
    /// Factor of the standard error at the last look.
    critical: f64,
    /// Standard deviation at the first look, if the pair was too noisy there.
    noisy_sd: Option<f64>,
}

struct Replay<'a> {
    rules: &'a StoppingRules,
    critical: &'a Critical,
    family: &'a [Hypothesis<'a>],
    /// `[hypothesis][epoch]`: the trimmed log ratios.
    trimmed: Vec<Vec<f64>>,
    /// Degrees of freedom with which pairs know each other's spread.
    degrees: f64,
    holm: Holm,
    standings: Vec<Standing>,
    look: Option<usize>,
}

impl<'a> Replay<'a> {
    fn new(rules: &'a StoppingRules, critical: &'a Critical, family: &'a [Hypothesis<'a>]) -> Self {
        let open = Standing {
            verdict: Verdict::Inconclusive,
            negligible: false,
            decided_at: None,
            critical: f64::INFINITY,
            noisy_sd: None,
        };
        let trimmed = family.iter().map(|one| one.epochs.iter().map(|e| e.trimmed()).collect()).collect();
        let (holm, standings) = (Holm::new(family.len()), vec![open; family.len()]);
        let degrees = moderated::degrees(family.iter().map(|one| one.pair));
        Self { rules, critical, family, trimmed, degrees, holm, standings, look: None }
    }

    /// How far all values of a pair's first `n` epochs may be off in the same direction: the finest resolution of these.
    fn resolution(&self, pair: usize, n: usize) -> f64 {
        let epochs = &self.family[pair].epochs[..n];
        epochs.iter().map(|epoch| epoch.resolution()).min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// The first `n` epochs of each hypothesis, with what all of the same metric tell about each other.
    fn samples(&self, n: usize) -> Vec<Option<Sample>> {
        let shared = |metric: usize| {
            let alike = self.family.iter().zip(&self.trimmed).filter(|(one, _)| one.metric == metric);
            let series: Vec<&[f64]> = alike.map(|(_, values)| &values[..n]).collect();
            Shared::of(&series, self.degrees)
        };
        let metrics: BTreeSet<usize> = self.family.iter().map(|one| one.metric).collect();
        let shared: BTreeMap<usize, Shared> =
            metrics.into_iter().map(|metric| (metric, shared(metric))).collect();
        let each = self.family.iter().zip(&self.trimmed);
        each.map(|(one, values)| Sample::of(&values[..n]).map(|own| shared[&one.metric].applied(own)))
            .collect()
    }

    /// One look after `n` epochs; `boundary` gives the critical value for the number of pairs that share alpha.
    fn take_look(&mut self, n: usize, boundary: impl Fn(usize) -> f64) {
        let samples = self.samples(n);
        let against = |(pair, sample): (usize, &Option<Sample>)| {
            sample.and_then(|sample| sample.abs_t_beyond(self.resolution(pair, n))).unwrap_or(0.0)
        };
        let evidence: Vec<f64> = samples.iter().enumerate().map(against).collect();
        self.holm.look(&evidence, &boundary);
        for (pair, sample) in samples.iter().enumerate() {
            let critical = boundary(self.holm.sharing(pair));
            self.standings[pair].critical = critical;
            if let Some(sample) = sample {
                self.stand(pair, sample, critical);
            }
        }
        self.look = Some(n);
    }

    /// The verdict on one pair at a look. Faster and slower are final. Equivalent stays unless this look finds a difference, or the interval
    /// no longer lies within the margin, which withdraws the verdict and costs no alpha.
    fn stand(&mut self, pair: usize, sample: &Sample, critical: f64) {
        let Some(interval) = sample.interval(critical) else { return };
        let interval = interval.widened(self.resolution(pair, sample.n));
        let differs = self.holm.rejected(pair);
        let ruling = rule(differs, &interval, self.rules.margin_ln(), self.family[pair].direction);
        let standing = &mut self.standings[pair];
        standing.negligible = ruling.negligible;
        let is_news = match standing.verdict {
            Verdict::Inconclusive => ruling.verdict.is_decided(),
            Verdict::Equivalent => ruling.verdict != Verdict::Equivalent,
            _ => false,
        };
        if is_news {
            standing.verdict = ruling.verdict;
            standing.decided_at = ruling.verdict.is_decided().then_some(sample.n);
        }
    }

    /// At the first look: finds the pairs that will not reach the margin.
    fn weigh_noise(&mut self, n: usize) {
        let most = TOO_MANY_TIMES * self.rules.max_epochs;
        for (pair, sample) in self.samples(n).into_iter().enumerate() {
            let sd = sample.and_then(|sample| sample.sd);
            let too_noisy = |sd: &f64| self.needed(pair, *sd, n).is_none_or(|epochs| epochs > most);
            self.standings[pair].noisy_sd = sd.filter(too_noisy);
        }
    }

    /// Epochs needed to reach the margin at the spread and the resolution of `n` epochs; `None` if there are too many, or if the resolution alone fills
    /// the margin.
    fn needed(&self, pair: usize, sd: f64, n: usize) -> Option<usize> {
        epochs_needed(sd, self.alpha(pair), self.rules.margin_ln() - self.resolution(pair, n))
    }

    /// The smallest ratio that `n` epochs detect, including what the values' resolution hides.
    fn detectable(&self, pair: usize, sd: f64, n: usize) -> Option<f64> {
        let known = moderated::known(n, self.degrees);
        let ratio = detectable_ratio(sd, n, self.alpha(pair), known)?
            * self.resolution(pair, self.family[pair].epochs.len()).exp();
        Some(ratio).filter(|ratio| ratio.is_finite())
    }

    /// The noisiest of the open pairs that were too noisy at the first look.
    fn too_noisy(&self) -> Option<TooNoisy> {
        let open = self.standings.iter().enumerate().filter(|(_, s)| !s.verdict.is_decided());
        let (pair, sd) =
            open.filter_map(|(pair, s)| Some((pair, s.noisy_sd?))).max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(TooNoisy {
            pair,
            epochs_needed: self.needed(pair, sd, self.family[pair].epochs.len()),
            detectable_ratio: self.detectable(pair, sd, self.rules.max_epochs),
        })
    }

    fn alpha(&self, pair: usize) -> f64 {
        self.rules.alpha / self.holm.sharing(pair) as f64
    }

    fn all_decided(&self) -> bool {
        self.standings.iter().all(|s| s.verdict.is_decided())
    }

    fn next(&self, epochs: usize, progress: Progress) -> Next {
        if self.all_decided() {
            return Next::Decided;
        }
        match self.rules.looks.iter().find(|&&look| look > epochs) {
            Some(&next_look) if progress != Progress::Ended => Next::GoOn { next_look },
            _ => Next::Exhausted,
        }
    }

    fn judgement(&self, pair: usize, sample: Option<Sample>) -> PairJudgement {
        let epochs = self.family[pair].epochs;
        let own = Sample::of(&self.trimmed[pair]);
        let totals: Vec<f64> = epochs.iter().map(|e| e.total()).collect();
        let total = Sample::of(&totals);
        let standing = &self.standings[pair];
        let n = epochs.len();
        let provisional = self.look != Some(n);
        let (sd, alpha) = (sample.and_then(|s| s.sd), self.alpha(pair));
        let interval = sample.filter(|s| s.n >= 2).and_then(|s| {
            s.interval(if provisional {
                self.critical.provisional(n, self.holm.sharing(pair))
            } else {
                standing.critical
            })
        });
        let interval = interval.map(|interval| interval.widened(self.resolution(pair, n)));
        let (low, high) = interval.map_or((None, None), |i| i.as_ratios());
        PairJudgement {
            ratio: sample.and_then(as_ratio),
            low,
            high,
            alpha,
            verdict: standing.verdict,
            negligible: standing.negligible,
            decided_at: standing.decided_at,
            epochs: n,
            sd_log_ratio: own.and_then(|own| own.sd),
            detectable_ratio: sd.and_then(|sd| self.detectable(pair, sd, n)),
            epochs_needed: sd.and_then(|sd| self.needed(pair, sd, n)),
            intermittent: own.zip(total).is_some_and(|(s, t)| is_intermittent(&s, &t)),
            stalled: epochs.iter().any(|epoch| epoch.is_stalled()),
            serial: Serial::of(&self.trimmed[pair]),
            provisional,
            total_ratio: total.and_then(as_ratio),
        }
    }
}

fn as_ratio(sample: Sample) -> Option<f64> {
    Some(sample.mean.exp()).filter(|ratio| ratio.is_finite())
}

/// See [`PairJudgement::intermittent`] for the choice of standard error.
fn is_intermittent(trimmed: &Sample, total: &Sample) -> bool {
    let apart = (trimmed.mean - total.mean).abs();
    trimmed.standard_error().is_some_and(|se| apart > INTERMITTENT * se + ROUNDING)
}
