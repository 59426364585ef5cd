//! The referee: takes all epochs of a race, gives a verdict on each pair and says whether the race should continue.
//!
//! Owns the rules of a race, what a hypothesis is and the shape of a judgement. It must not know processes, records or how a judgement is
//! shown. Both the runner and the report use it, so that a race and its later report never disagree: a judgement depends only on the
//! rules, the epochs and the progress of the race.

mod critical;
mod replay;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::moderated;
use crate::ratio::EpochRatio;
use crate::serial::Serial;
use crate::verdict::{Direction, Verdict};
use critical::Critical;

/// The rules of a race, fixed before the first epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct StoppingRules {
    /// Chance of finding a difference in any pair that has none, over all hypotheses and looks together; in (0, 0.5).
    pub alpha: f64,
    /// The largest distance of a ratio from 1 that does not matter: 0.03 is 3 %. Over 0 and finite; on the log scale ln(1 + margin).
    pub margin: f64,
    /// The numbers of epochs after which verdicts may be taken: strictly increasing, from at least 2 to `max_epochs`.
    pub looks: Vec<usize>,
    /// The most epochs the race may take; equal to the last look.
    pub max_epochs: usize,
}

impl Default for StoppingRules {
    /// The method's defaults: alpha 0.025, margin 3 %, looks at 6, 10, 15, 20, 25 and 30 epochs.
    fn default() -> Self {
        Self { alpha: 0.025, margin: 0.03, looks: vec![6, 10, 15, 20, 25, 30], max_epochs: 30 }
    }
}

impl StoppingRules {
    /// Rules for a race that ends at its last look, from the values in a plan.
    pub fn ending_at_the_last(looks: &[usize], alpha: f64, margin: f64) -> Self {
        let max_epochs = looks.last().copied().unwrap_or(0);
        Self { alpha, margin, looks: looks.to_vec(), max_epochs }
    }

    /// The margin on the log scale: ln(1 + margin).
    pub fn margin_ln(&self) -> f64 {
        self.margin.ln_1p()
    }

    fn check(&self) -> Result<(), RulesError> {
        if !(self.alpha > 0.0 && self.alpha < 0.5) {
            return Err(RulesError::Alpha { found: self.alpha });
        }
        if !(self.margin > 0.0 && self.margin.is_finite()) {
            return Err(RulesError::Margin { found: self.margin });
        }
        let (Some(&first), Some(&last)) = (self.looks.first(), self.looks.last()) else {
            return Err(RulesError::NoLooks);
        };
        if first < 2 {
            return Err(RulesError::FirstLook { found: first });
        }
        if let Some(pair) = self.looks.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(RulesError::Order { before: pair[0], after: pair[1] });
        }
        if last != self.max_epochs {
            return Err(RulesError::LastLook { found: last, max_epochs: self.max_epochs });
        }
        Ok(())
    }
}

/// One pair of contenders in one metric. One alpha covers a whole family of hypotheses in a race: several pairs, several metrics
/// of a pair, or pairs times metrics. They need not be independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hypothesis<'a> {
    /// The two contenders, by any numbers.
    pub pair: (usize, usize),
    /// The metric, by any number. Pairs of the same metric tell each other how large a spread to expect.
    pub metric: usize,
    /// The ratio of each epoch for the pair in this metric, in time order.
    pub epochs: &'a [EpochRatio],
    /// Which way the metric improves: it only decides which side of 1 is faster.
    pub direction: Direction,
}

/// Rules that no race can follow.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum RulesError {
    /// `alpha` is out of range.
    #[error("alpha is {found}; choose one over 0 and under 0.5, such as 0.025")]
    Alpha {
        /// The value given.
        found: f64,
    },
    /// `margin` is out of range.
    #[error("the margin is {found}; choose a fraction over 0, such as 0.03 for 3 %")]
    Margin {
        /// The value given.
        found: f64,
    },
    /// There are no looks.
    #[error("there are no looks; give at least one number of epochs, the last equal to the most epochs")]
    NoLooks,
    /// The first look comes too early for a verdict.
    #[error("the first look is at {found} epochs; it takes at least 2 to see a spread")]
    FirstLook {
        /// The value given.
        found: usize,
    },
    /// The looks do not increase.
    #[error("a look at {after} epochs follows one at {before}; looks must strictly increase")]
    Order {
        /// The earlier of the two looks.
        before: usize,
        /// The look that follows it.
        after: usize,
    },
    /// The last look is not at the end of the race.
    #[error("the last look is at {found} epochs but the most epochs are {max_epochs}; the two must be equal")]
    LastLook {
        /// The last look.
        found: usize,
        /// The most epochs.
        max_epochs: usize,
    },
}

/// Why epochs cannot be judged under the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JudgeError {
    /// There are no hypotheses.
    #[error("there are no pairs; a race is judged over at least one")]
    NoPairs,
    /// An epoch counts for all hypotheses or for none.
    #[error(
        "pair {pair} has {found} epochs where the first has {expected}; an epoch counts for all pairs or for none"
    )]
    Unequal {
        /// Index of the hypothesis.
        pair: usize,
        /// Its number of epochs.
        found: usize,
        /// The first hypothesis' number of epochs.
        expected: usize,
    },
    /// The race has more epochs than its rules allow.
    #[error(
        "there are {found} epochs but the rules end at {max_epochs}; judge with the rules that the race had"
    )]
    TooMany {
        /// How many epochs there are.
        found: usize,
        /// The most that the rules allow.
        max_epochs: usize,
    },
}

/// The state of the race at the time of the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// More epochs may come.
    Running,
    /// No more epochs will come, for a reason that is independent of the measurements: the plan or the time budget.
    /// If a pair is still open, a last look here, planned or not, spends the remaining alpha. If such a race is
    /// resumed later, its alpha is already spent, and no alpha covers its later verdicts.
    Ended,
    /// The user stopped it, perhaps because of its results: there is no extra look, and it may be resumed.
    Interrupted,
}

/// What the race should do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// At least one pair is open: run until there are `next_look` epochs.
    GoOn {
        /// The next planned look, in epochs.
        next_look: usize,
    },
    /// As of a look, each pair is faster, slower or equivalent; more epochs would not be worth their time.
    Decided,
    /// No more epochs may come, and at least one pair is inconclusive.
    Exhausted,
}

/// A warning from the first look: with the spread seen there, this race would need over twice its maximum of epochs to reach the margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooNoisy {
    /// The noisiest pair that is still open.
    pub pair: usize,
    /// The number of epochs needed to reach the margin; `None` for over a million.
    pub epochs_needed: Option<usize>,
    /// The smallest ratio (over 1) that this race can detect with its maximum of epochs; `None` if beyond a float.
    pub detectable_ratio: Option<f64>,
}

/// The result for one hypothesis: one pair in one metric. All numbers are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairJudgement {
    /// Contender / baseline over all epochs: exp of the mean of the trimmed log ratios. `None` without an epoch.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`; `None` with fewer than two epochs.
    pub low: Option<f64>,
    /// Upper end; `None` also if it is beyond a float.
    pub high: Option<f64>,
    /// The level of the interval over all looks: the pair's share of the rules' alpha by Holm. It may grow from
    /// one look to the next, as other pairs are decided, and never shrinks.
    pub alpha: f64,
    /// As of the last look; inconclusive before the first. Never invalid, because the referee does not see gates.
    ///
    /// Faster and slower are final. Equivalent is final unless the race continues because of other pairs and a later look finds a
    /// difference or an interval that leaves the margin. So an earlier verdict does not hide a real difference (which is then usually
    /// `negligible`), and the verdict agrees with the interval.
    ///
    /// The ratio and the interval use all epochs. In rare cases the interval therefore includes 1 again although an earlier look
    /// found a difference; the verdict holds, because alpha covers all looks together.
    pub verdict: Verdict,
    /// The verdict is faster or slower, but at the last look the whole interval lay inside the margin.
    pub negligible: bool,
    /// The look, in epochs, that gave the present verdict; `None` while inconclusive.
    pub decided_at: Option<usize>,
    /// The number of epochs behind `ratio` and the interval.
    pub epochs: usize,
    /// Standard deviation of this pair's own trimmed log ratios between epochs; `None` with fewer than two epochs. The interval rests on one that
    /// also has what the pairs tell each other: see [`crate::moderated`].
    pub sd_log_ratio: Option<f64>,
    /// The smallest ratio (over 1) that this number of epochs detects with a chance of 90 %; see [`crate::interval`].
    pub detectable_ratio: Option<f64>,
    /// Total number of epochs needed to reach the margin at this spread; `None` if unknown (fewer than two epochs) or over a million.
    pub epochs_needed: Option<usize>,
    /// Trimmed and total ratio differ by over two standard errors of the trimmed mean: there are occasional slow slices, which
    /// trimming hides. The test uses the trimmed mean's standard error, because the same slow slices inflate the total's:
    /// a stall in fewer than half of six epochs could never exceed two standard errors of the total.
    pub intermittent: bool,
    /// In an epoch, one side answered nothing in more rounds than trimming drops: the epoch's ratio is that of all its rounds.
    pub stalled: bool,
    /// The serial correlation of the epochs' trimmed log ratios, from [`crate::serial::FEWEST`] epochs on. Intervals allow for
    /// the mean of it over the pairs of a metric: see [`crate::moderated`].
    pub serial: Option<Serial>,
    /// The interval does not come from a look and no verdict depends on it: it is the t interval at the alpha that would be
    /// spent by now, and only shows how the race narrows.
    pub provisional: bool,
    /// As `ratio`, but from the untrimmed totals.
    pub total_ratio: Option<f64>,
}

/// The result of a race.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// One for each hypothesis, in the order given.
    pub pairs: Vec<PairJudgement>,
    /// What the race should do now.
    pub next: Next,
    /// The last look taken, in epochs: a planned one, or the extra look of a race that ended elsewhere. `None` before any.
    pub look: Option<usize>,
    /// Set from the first look on, while a pair that was too noisy there is still open.
    pub too_noisy: Option<TooNoisy>,
}

/// Judges the epochs of a race under rules that were fixed in advance.
#[derive(Debug)]
pub struct Referee {
    rules: StoppingRules,
    /// By the degrees of freedom with which pairs know each other's spread.
    critical: Mutex<BTreeMap<u64, Arc<Critical>>>,
}

impl Referee {
    /// Checks the rules. The first judgement computes the boundaries.
    ///
    /// # Errors
    /// The first invalid rule, with the value found and the values allowed.
    pub fn new(rules: StoppingRules) -> Result<Self, RulesError> {
        rules.check()?;
        Ok(Self { rules, critical: Mutex::default() })
    }

    /// The rules given to [`Referee::new`].
    pub fn rules(&self) -> &StoppingRules {
        &self.rules
    }

    /// The critical values of |t| at the planned looks of a race of two, if `sharing` pairs (at least 1) share alpha: in standard errors of
    /// epochs that do not follow each other, with what an interval usually allows for in case they do.
    pub fn boundaries(&self, sharing: usize) -> Vec<f64> {
        let critical = self.critical(0.0);
        (0..self.rules.looks.len())
            .map(|look| {
                critical.planned(look, sharing.max(1)) * moderated::usual_widening(self.rules.looks[look])
            })
            .collect()
    }

    /// Judges all epochs so far of a family of hypotheses, which share alpha by Holm.
    ///
    /// It repeats every planned look that has been reached, in order, each with the epochs available at that look. So a race that
    /// is resumed or reported later gets the same answers as while it ran.
    ///
    /// # Errors
    /// If there are no hypotheses, if their numbers of epochs differ, or if there are more epochs than the rules allow.
    pub fn judge(&self, family: &[Hypothesis<'_>], progress: Progress) -> Result<Judgement, JudgeError> {
        let expected = family.first().ok_or(JudgeError::NoPairs)?.epochs.len();
        let unequal = family.iter().enumerate().find(|(_, one)| one.epochs.len() != expected);
        if let Some((pair, one)) = unequal {
            return Err(JudgeError::Unequal { pair, found: one.epochs.len(), expected });
        }
        if expected > self.rules.max_epochs {
            return Err(JudgeError::TooMany { found: expected, max_epochs: self.rules.max_epochs });
        }
        let degrees = moderated::degrees(family.iter().map(|one| one.pair));
        Ok(replay::judge(&self.rules, &self.critical(degrees), family, progress))
    }

    fn critical(&self, degrees: f64) -> Arc<Critical> {
        // Ignores poisoning: entries are inserted whole, so that a panic elsewhere cannot have left a wrong value.
        let mut all = self.critical.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Critical::new(&self.rules, degrees));
        Arc::clone(all.entry(degrees.to_bits()).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut StoppingRules)) -> RulesError {
        let mut rules = StoppingRules::default();
        change(&mut rules);
        Referee::new(rules).unwrap_err()
    }

    #[test]
    fn rules_that_cannot_be_followed_are_named() {
        assert_eq!(wrong(|r| r.alpha = 0.5), RulesError::Alpha { found: 0.5 });
        assert!(matches!(wrong(|r| r.alpha = f64::NAN), RulesError::Alpha { .. }));
        assert_eq!(wrong(|r| r.margin = 0.0), RulesError::Margin { found: 0.0 });
        assert_eq!(wrong(|r| r.looks.clear()), RulesError::NoLooks);
        assert_eq!(wrong(|r| r.looks[0] = 1), RulesError::FirstLook { found: 1 });
        assert_eq!(wrong(|r| r.looks[1] = 6), RulesError::Order { before: 6, after: 6 });
        assert_eq!(wrong(|r| r.max_epochs = 40), RulesError::LastLook { found: 30, max_epochs: 40 });
        let message = wrong(|r| r.max_epochs = 40).to_string();
        assert!(message.contains("30") && message.contains("40"), "{message}");
    }

    #[test]
    fn epochs_that_cannot_be_judged_are_named() {
        let referee = Referee::new(StoppingRules::default()).unwrap();
        let epochs = |n: usize| vec![EpochRatio::single(0.0).unwrap(); n];
        let judge = |pairs: &[Vec<EpochRatio>]| {
            let family: Vec<_> = pairs
                .iter()
                .map(|epochs| Hypothesis {
                    pair: (0, 1),
                    metric: 0,
                    epochs,
                    direction: Direction::MoreIsBetter,
                })
                .collect();
            referee.judge(&family, Progress::Running).unwrap_err()
        };
        assert_eq!(judge(&[]), JudgeError::NoPairs);
        assert_eq!(judge(&[epochs(3), epochs(2)]), JudgeError::Unequal { pair: 1, found: 2, expected: 3 });
        assert_eq!(judge(&[epochs(31)]), JudgeError::TooMany { found: 31, max_epochs: 30 });
    }
}
