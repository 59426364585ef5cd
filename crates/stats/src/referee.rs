//! The referee: all epochs of a race in, what may be said of each pair and whether to go on out.
//!
//! Owns the rules of a race, what a hypothesis is and the shape of a judgement. It must not know processes, records or how a judgement is
//! shown. Runner and report both ask it, so that a race and the page made of it later never disagree: a judgement is a
//! function of the rules, the epochs and how the race stands, and of nothing else.

mod critical;
mod replay;

use thiserror::Error;

use crate::boundary::DEFAULT_PATHS;
use crate::ratio::EpochRatio;
use crate::serial::Serial;
use crate::verdict::{Direction, Verdict};
use critical::Critical;

/// What is fixed before the first epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct StoppingRules {
    /// Chance of telling apart any pair that does not differ, over all hypotheses and looks together; in (0, 0.5).
    pub alpha: f64,
    /// The ratio's distance from 1 that nobody minds: 0.03 is 3 %. Over 0 and finite; on the log scale ln(1 + margin).
    pub margin: f64,
    /// After how many epochs verdicts may be taken: strictly increasing, from at least 2 to `max_epochs`.
    pub looks: Vec<usize>,
    /// The most epochs the race may take; equal to the last look.
    pub max_epochs: usize,
    /// Seed of the boundaries' simulation. Any will do, but a race and its report must use the same.
    pub seed: u64,
}

impl Default for StoppingRules {
    /// The method's own: alpha 0.025, margin 3 %, looks at 6, 10, 15, 20, 25 and 30 epochs, seed 1.
    fn default() -> Self {
        Self { alpha: 0.025, margin: 0.03, looks: vec![6, 10, 15, 20, 25, 30], max_epochs: 30, seed: 1 }
    }
}

impl StoppingRules {
    /// StoppingRules whose race ends at its last look: what a plan says, for whoever races by it or reports on it.
    pub fn ending_at_the_last(looks: &[usize], alpha: f64, margin: f64, seed: u64) -> Self {
        let max_epochs = looks.last().copied().unwrap_or(0);
        Self { alpha, margin, looks: looks.to_vec(), max_epochs, seed }
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

/// One pair of contenders in one metric. A race judges a family of them under one alpha: several pairs, several metrics
/// of a pair, or pairs times metrics; they need not be independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hypothesis<'a> {
    /// What each epoch says of the pair in this metric, in the order in which they ran.
    pub epochs: &'a [EpochRatio],
    /// Which way the metric improves: it decides which side of 1 is faster, and nothing else.
    pub direction: Direction,
}

/// StoppingRules that no race can follow.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum RulesError {
    /// `alpha` is not a usable level.
    #[error("alpha is {found}; choose one over 0 and under 0.5, such as 0.025")]
    Alpha {
        /// As given.
        found: f64,
    },
    /// `margin` is not a usable margin.
    #[error("the margin is {found}; choose a fraction over 0, such as 0.03 for 3 %")]
    Margin {
        /// As given.
        found: f64,
    },
    /// There is no look at which a verdict could be taken.
    #[error("there are no looks; give at least one number of epochs, the last equal to the most epochs")]
    NoLooks,
    /// The first look comes before anything can be said.
    #[error("the first look is at {found} epochs; it takes at least 2 to see a spread")]
    FirstLook {
        /// As given.
        found: usize,
    },
    /// The looks do not increase.
    #[error("a look at {after} epochs follows one at {before}; looks must strictly increase")]
    Order {
        /// The earlier of the two, as given.
        before: usize,
        /// The one that follows it.
        after: usize,
    },
    /// The last look is not at the end of the race.
    #[error("the last look is at {found} epochs but the most epochs are {max_epochs}; the two must be equal")]
    LastLook {
        /// As given.
        found: usize,
        /// As given.
        max_epochs: usize,
    },
}

/// Epochs that cannot be judged under the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JudgeError {
    /// There is nothing to compare.
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
        /// That of the first.
        expected: usize,
    },
    /// The race went on beyond its rules.
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

/// How the race stands at the moment of the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// More epochs may come.
    Running,
    /// No more epochs will come, for a reason that is independent of what was measured: the plan or the time budget.
    /// If a pair is still open, the alpha that is left is spent on a last look here, planned or not. A race that is
    /// taken up again after such a look has spent its alpha: its later verdicts are no longer covered.
    Ended,
    /// A person stopped it, perhaps because of what it showed: there is no extra look, and it may be resumed.
    Interrupted,
}

/// What the race should do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Next {
    /// At least one pair is open: run until `next_look` epochs are there.
    GoOn {
        /// The next planned look, in epochs.
        next_look: usize,
    },
    /// Each pair is faster, slower or equivalent as of a look; more epochs would not be worth their time.
    Decided,
    /// No more epochs may come, and at least one pair is inconclusive.
    Exhausted,
}

/// Said at the first look: by its spread, this race would need over twice its most epochs for the margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooNoisy {
    /// The noisiest pair that is still open.
    pub pair: usize,
    /// Epochs that it would take for the margin; `None` for over a million.
    pub epochs_needed: Option<usize>,
    /// The ratio (over 1) that this race can tell apart at its most epochs; `None` if beyond a float.
    pub detectable_ratio: Option<f64>,
}

/// What may be said of one hypothesis: of one pair in one metric. All numbers are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairJudgement {
    /// Contender / baseline over all epochs: exp of the mean of the trimmed log ratios. `None` without an epoch.
    pub ratio: Option<f64>,
    /// Lower end of the interval of `ratio`; `None` with fewer than two epochs.
    pub low: Option<f64>,
    /// Upper end; `None` also if it is beyond a float.
    pub high: Option<f64>,
    /// The level that the interval has over all looks: the pair's share of the rules' alpha by Holm. It may grow from
    /// one look to the next, as other pairs are told apart, and never shrinks.
    pub alpha: f64,
    /// As of the last look; inconclusive before the first. Never invalid: gates are not seen here.
    ///
    /// Faster and slower are final. Equivalent stands too, unless the race goes on because of other pairs, and a later
    /// look tells this one apart, or its interval leaves the margin: a difference that is there is not withheld (and is then usually
    /// `negligible`), and what is said of a pair can be read off its interval.
    /// The ratio and the interval are those of all epochs, so that in rare cases the interval of a pair that an earlier
    /// look told apart reaches 1 again; the verdict holds, because alpha covers all looks together.
    pub verdict: Verdict,
    /// Told apart, but at the last look the whole interval lay inside the margin.
    pub negligible: bool,
    /// The look, in epochs, at which the present verdict was taken; `None` while inconclusive.
    pub decided_at: Option<usize>,
    /// How many epochs `ratio` and the interval are made of.
    pub epochs: usize,
    /// Standard deviation of the trimmed log ratios between epochs; `None` with fewer than two epochs.
    pub sd_log_ratio: Option<f64>,
    /// The ratio (over 1) that so many epochs tell from 1 with a chance of 90 %; see [`crate::interval`].
    pub detectable_ratio: Option<f64>,
    /// Epochs needed in all for the margin at this spread; `None` if unknown (fewer than two epochs) or over a million.
    pub epochs_needed: Option<usize>,
    /// Trimmed and total ratio differ by over two standard errors of the trimmed mean: slow slices come and go, and the
    /// trimming hides them. The trimmed mean's own standard error is the yardstick because the total's is blown up by
    /// the very slices in question: a stall in fewer than half of six epochs could never exceed two of those.
    pub intermittent: bool,
    /// How much the epochs' trimmed log ratios follow each other, from [`crate::serial::FEWEST`] epochs on. The intervals and
    /// error rates rest on epochs that do not.
    pub serial: Option<Serial>,
    /// The interval was not taken at a look and no verdict rests on it: it is the t interval at the alpha that would be
    /// spent by now, and only shows how the race narrows.
    pub provisional: bool,
    /// As `ratio`, but of the untrimmed totals.
    pub total_ratio: Option<f64>,
}

/// What may be said of a race.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// One for each hypothesis, in the order given.
    pub pairs: Vec<PairJudgement>,
    /// What the race should do now.
    pub next: Next,
    /// The last look taken, in epochs: planned, or the last one of a race that ended elsewhere. `None` before any.
    pub look: Option<usize>,
    /// Set from the first look on, as long as a pair that was too noisy then is open.
    pub too_noisy: Option<TooNoisy>,
}

/// Judges the epochs of a race under rules that were fixed before it.
#[derive(Debug)]
pub struct Referee {
    rules: StoppingRules,
    critical: Critical,
}

impl Referee {
    /// Checks the rules and computes their boundaries (a few tenths of a second).
    ///
    /// # Errors
    /// The first rule that cannot be followed, with what was found and what is allowed.
    pub fn new(rules: StoppingRules) -> Result<Self, RulesError> {
        Self::with_paths(rules, DEFAULT_PATHS)
    }

    /// As [`Referee::new`], with another number of simulated paths: fewer are quicker and make boundaries rougher and,
    /// where a tail is too thin, wider.
    ///
    /// # Errors
    /// As [`Referee::new`].
    pub fn with_paths(rules: StoppingRules, paths: usize) -> Result<Self, RulesError> {
        rules.check()?;
        let critical = Critical::new(&rules, paths);
        Ok(Self { rules, critical })
    }

    /// The rules that were given.
    pub fn rules(&self) -> &StoppingRules {
        &self.rules
    }

    /// The critical values of |t| at the planned looks, where alpha is shared by `sharing` pairs (at least 1).
    pub fn boundaries(&self, sharing: usize) -> Vec<f64> {
        (0..self.rules.looks.len()).map(|look| self.critical.planned(look, sharing.max(1))).collect()
    }

    /// Judges all epochs so far of a family of hypotheses, which share alpha by Holm.
    ///
    /// Every planned look that has been reached is taken anew, in order, each on the epochs that it had. So a race that
    /// is resumed or reported later gets the answers that it got while it ran.
    ///
    /// # Errors
    /// If there are no hypotheses, if they do not all have as many epochs, or if there are more epochs than the rules allow.
    pub fn judge(&self, family: &[Hypothesis<'_>], progress: Progress) -> Result<Judgement, JudgeError> {
        let expected = family.first().ok_or(JudgeError::NoPairs)?.epochs.len();
        let unequal = family.iter().enumerate().find(|(_, one)| one.epochs.len() != expected);
        if let Some((pair, one)) = unequal {
            return Err(JudgeError::Unequal { pair, found: one.epochs.len(), expected });
        }
        if expected > self.rules.max_epochs {
            return Err(JudgeError::TooMany { found: expected, max_epochs: self.rules.max_epochs });
        }
        Ok(replay::judge(&self.rules, &self.critical, family, progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut StoppingRules)) -> RulesError {
        let mut rules = StoppingRules::default();
        change(&mut rules);
        Referee::with_paths(rules, 10).unwrap_err()
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
        let referee = Referee::with_paths(StoppingRules::default(), 1000).unwrap();
        let epochs = |n: usize| vec![EpochRatio::single(0.0).unwrap(); n];
        let judge = |pairs: &[Vec<EpochRatio>]| {
            let family: Vec<_> = pairs
                .iter()
                .map(|epochs| Hypothesis { epochs, direction: Direction::MoreIsBetter })
                .collect();
            referee.judge(&family, Progress::Running).unwrap_err()
        };
        assert_eq!(judge(&[]), JudgeError::NoPairs);
        assert_eq!(judge(&[epochs(3), epochs(2)]), JudgeError::Unequal { pair: 1, found: 2, expected: 3 });
        assert_eq!(judge(&[epochs(31)]), JudgeError::TooMany { found: 31, max_epochs: 30 });
    }
}
