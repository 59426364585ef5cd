//! The highest rate at which a contender meets an objective: which rate to try next, and the estimate from the trials.
//!
//! Owns the search (bracket, bisection, staircase), its bounds and its end. It must not know what a trial consists of,
//! how long it takes or which objective it has: a rate goes out, pass, fail or invalid comes in. No clock, no randomness.
//!
//! Near the peak a trial passes or fails by chance. A bisection never repeats a question, so that any wrong answer would make it wrong.
//! The bisection therefore only finds the place, and a staircase (Dixon and Mood, "A method for
//! obtaining and analyzing sensitivity data", Journal of the American Statistical Association 43, 1948) samples around
//! it. The estimate is the posterior median of a logistic curve over all trials, see [`posterior`]. If all steps of a staircase go the
//! same way, it has not reached the peak, and the search brackets again from there.

use thiserror::Error;

pub use posterior::{PeakEstimate, Tried, posterior};

mod posterior;

/// The largest factor of one bracketing step.
const LARGEST_FACTOR: f64 = 2.0;
/// A staircase with fewer steps may go one way by chance.
const FEWEST_STEPS: usize = 6;
/// The most times that a search brackets again after a one-sided staircase.
const MOST_BRACKETS: usize = 2;

/// The settings of a search, fixed before the first trial. Rates are in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakSettings {
    /// The lowest rate to try; over 0.
    pub lowest_per_s: f64,
    /// The highest rate to try; over `lowest_per_s`.
    pub highest_per_s: f64,
    /// The first rate to try; clamped to the bounds.
    pub start_per_s: f64,
    /// The factor of the first bracketing step; over 1 and at most 2. Each step squares it, up to 2.
    pub factor: f64,
    /// The bisection ends when failed rate / passed rate is at most this; over 1.
    pub narrow: f64,
    /// A step of the staircase, as a fraction of the rate; over 0 and at most 1.
    pub step: f64,
    /// How many trials the staircase has.
    pub steps: usize,
    /// How many invalid trials in a row may be repeated before the search gives up.
    pub most_repeats: usize,
    /// Two-sided level of the credible interval, in (0, 1).
    pub alpha: f64,
}

impl PeakSettings {
    /// Settings for a first search from a guess: doubling or halving, bisection to 5 %, ten steps of 3 %, three repeats,
    /// a 95 % interval.
    pub fn cold(lowest_per_s: f64, highest_per_s: f64, guess_per_s: f64) -> Self {
        Self {
            lowest_per_s,
            highest_per_s,
            start_per_s: guess_per_s,
            factor: LARGEST_FACTOR,
            narrow: 1.05,
            step: 0.03,
            steps: 10,
            most_repeats: 3,
            alpha: 0.05,
        }
    }

    /// Settings for when an earlier epoch found the peak at `earlier_per_s`: the bracket begins there with 10 %. This only shortens the
    /// way to the staircase. The earlier estimate does not enter the new one, because epochs are replicates.
    pub fn warm(lowest_per_s: f64, highest_per_s: f64, earlier_per_s: f64) -> Self {
        Self { factor: 1.1, ..Self::cold(lowest_per_s, highest_per_s, earlier_per_s) }
    }

    fn check(&self) -> Result<(), PeakError> {
        let wrong = |field, found, allowed| Err(PeakError::Setting { field, found, allowed });
        let within = |x: f64, low: f64, high: f64| x > low && x <= high && x.is_finite();
        if !within(self.lowest_per_s, 0.0, f64::MAX) {
            return wrong("lowest rate", self.lowest_per_s, "over 0");
        }
        if !within(self.highest_per_s, self.lowest_per_s, f64::MAX) {
            return wrong("highest rate", self.highest_per_s, "over the lowest");
        }
        if !within(self.start_per_s, 0.0, f64::MAX) {
            return wrong("first rate", self.start_per_s, "over 0");
        }
        if !within(self.factor, 1.0, LARGEST_FACTOR) {
            return wrong("bracket's factor", self.factor, "over 1 and at most 2");
        }
        if !within(self.narrow, 1.0, f64::MAX) {
            return wrong("bisection's end", self.narrow, "over 1");
        }
        if !within(self.step, 0.0, 1.0) {
            return wrong("staircase's step", self.step, "over 0 and at most 1");
        }
        if !(self.alpha > 0.0 && self.alpha < 1.0) {
            return wrong("interval's level", self.alpha, "over 0 and under 1");
        }
        Ok(())
    }
}

/// Errors in the settings or in the use of a search.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum PeakError {
    /// A setting is out of range.
    #[error("the {field} is {found}; it must be {allowed}")]
    Setting {
        /// The setting's name.
        field: &'static str,
        /// The value given.
        found: f64,
        /// The values allowed.
        allowed: &'static str,
    },
    /// An outcome for another rate than the one requested.
    #[error("a trial at {found}/s was reported where one at {asked}/s was asked for")]
    NotAsked {
        /// The rate of [`PeakSearch::next`].
        asked: f64,
        /// The rate reported.
        found: f64,
    },
    /// The search has already ended.
    #[error("a trial was reported after the search had ended")]
    Ended,
}

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The objective was met.
    Pass,
    /// The objective was not met.
    Fail,
    /// A gate failed, so that the trial says nothing about the contender. It is repeated.
    Invalid,
}

/// The purpose of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Looking for a rate that passes and a higher one that fails.
    Bracket,
    /// Halving the range between the two.
    Bisection,
    /// Up 3 % after a pass, down 3 % after a fail.
    Staircase,
}

/// A rate to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Requests per second, within the bounds.
    pub rate_per_s: f64,
    /// The purpose of the trial.
    pub phase: Phase,
    /// How many trials of this rate in a row were invalid; 0 for a first attempt.
    pub repeats: usize,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Peak {
    /// The peak lies within the bounds.
    Found(PeakEstimate),
    /// The objective is met at the highest permitted rate, in requests per second: the peak is there or higher.
    AtLeast(f64),
    /// The objective is not met even at the lowest permitted rate, in requests per second.
    Below(f64),
    /// Too many trials in a row were invalid. The machine or the generator cannot give an answer at this rate.
    GaveUp {
        /// That rate, in requests per second.
        rate_per_s: f64,
        /// How often it was tried.
        invalid: usize,
    },
}

/// A search for a peak: ask for a trial, run it, record its outcome, and repeat until there is no next trial.
///
/// ```
/// use deadheat_stats::peak::{Outcome, Peak, PeakSearch, PeakSettings};
///
/// let mut search = PeakSearch::new(PeakSettings::cold(10.0, 100_000.0, 1_000.0))?;
/// while let Some(trial) = search.next() {
///     // A server whose latency goes out of bounds at 7,000 requests per second.
///     let outcome = if trial.rate_per_s < 7_000.0 { Outcome::Pass } else { Outcome::Fail };
///     search.record(trial.rate_per_s, outcome)?;
/// }
/// let Some(Peak::Found(estimate)) = search.peak() else { panic!("the peak lies within the bounds") };
/// assert!((estimate.rate_per_s / 7_000.0 - 1.0).abs() < 0.02);
/// # Ok::<(), deadheat_stats::peak::PeakError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PeakSearch {
    settings: PeakSettings,
    tried: Vec<Tried>,
    state: State,
    /// Number of invalid trials in a row at the current rate.
    repeats: usize,
    /// How many times the search has left a staircase for another bracket.
    brackets: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The next rate, the factor of the step after it, and the bounds of the peak so far.
    Bracket {
        at: f64,
        factor: f64,
        passed: Option<f64>,
        failed: Option<f64>,
    },
    Bisection {
        passed: f64,
        failed: f64,
    },
    Staircase {
        at: f64,
        left: usize,
    },
    Over(Peak),
}

impl PeakSearch {
    /// Starts a search.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn new(settings: PeakSettings) -> Result<Self, PeakError> {
        settings.check()?;
        let at = settings.start_per_s.clamp(settings.lowest_per_s, settings.highest_per_s);
        let state = State::Bracket { at, factor: settings.factor, passed: None, failed: None };
        Ok(Self { settings, tried: Vec::new(), state, repeats: 0, brackets: 0 })
    }

    /// The next trial; `None` when the search has ended. Calling this again changes nothing.
    pub fn next(&self) -> Option<Trial> {
        let (rate_per_s, phase) = match self.state {
            State::Bracket { at, .. } => (at, Phase::Bracket),
            State::Bisection { passed, failed } => (self.middle(passed, failed), Phase::Bisection),
            State::Staircase { at, .. } => (at, Phase::Staircase),
            State::Over(_) => return None,
        };
        Some(Trial { rate_per_s, phase, repeats: self.repeats })
    }

    /// Records the outcome of the trial from [`PeakSearch::next`]; `rate_per_s` must be that trial's rate.
    ///
    /// # Errors
    /// If another rate or no rate was requested. The search is then unchanged.
    pub fn record(&mut self, rate_per_s: f64, outcome: Outcome) -> Result<(), PeakError> {
        let asked = self.next().ok_or(PeakError::Ended)?.rate_per_s;
        if asked != rate_per_s {
            return Err(PeakError::NotAsked { asked, found: rate_per_s });
        }
        if outcome == Outcome::Invalid {
            self.repeats += 1;
            if self.repeats > self.settings.most_repeats {
                self.state = State::Over(Peak::GaveUp { rate_per_s, invalid: self.repeats });
            }
            return Ok(());
        }
        self.repeats = 0;
        let pass = outcome == Outcome::Pass;
        self.tried.push(Tried { rate_per_s, pass });
        self.state = match self.state {
            State::Bracket { factor, passed, failed, .. } if pass => {
                self.bracket(rate_per_s, factor, Some(rate_per_s), failed, passed)
            }
            State::Bracket { factor, passed, failed, .. } => {
                self.bracket(rate_per_s, factor, passed, Some(rate_per_s), failed)
            }
            State::Bisection { failed, .. } if pass => self.bisect(rate_per_s, failed),
            State::Bisection { passed, .. } => self.bisect(passed, rate_per_s),
            State::Staircase { left, .. } => self.climb(rate_per_s, pass, left),
            over @ State::Over(_) => over,
        };
        Ok(())
    }

    /// The result of the search; `None` before it has ended.
    pub fn peak(&self) -> Option<Peak> {
        match self.state {
            State::Over(peak) => Some(peak),
            _ => None,
        }
    }

    /// The trials that count, in time order: all except invalid ones.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The state after a trial at `at`, which is now one of `passed` and `failed`; `before` is the previous value of that side.
    ///
    /// At a bound the search cannot move on, so that it tries the same rate once more: the same answer twice ends the search.
    fn bracket(
        &self,
        at: f64,
        factor: f64,
        passed: Option<f64>,
        failed: Option<f64>,
        before: Option<f64>,
    ) -> State {
        let PeakSettings { lowest_per_s, highest_per_s, .. } = self.settings;
        let (next, bound, end) = match (passed, failed) {
            (Some(passed), Some(failed)) => return self.bisect(passed, failed),
            (Some(_), None) => {
                ((at * factor).min(highest_per_s), highest_per_s, Peak::AtLeast(highest_per_s))
            }
            _ => ((at / factor).max(lowest_per_s), lowest_per_s, Peak::Below(lowest_per_s)),
        };
        if at == bound && before == Some(bound) {
            return State::Over(end);
        }
        State::Bracket { at: next, factor: (factor * factor).min(LARGEST_FACTOR), passed, failed }
    }

    fn bisect(&self, passed: f64, failed: f64) -> State {
        let middle = self.middle(passed, failed);
        // The bisection also ends at the resolution of floats.
        if failed / passed > self.settings.narrow && passed < middle && middle < failed {
            return State::Bisection { passed, failed };
        }
        self.staircase(middle, self.settings.steps)
    }

    fn climb(&mut self, at: f64, pass: bool, left: usize) -> State {
        if left == 1 && self.is_one_sided() && self.brackets < MOST_BRACKETS {
            self.brackets += 1;
            let (passed, failed) = if pass { (Some(at), None) } else { (None, Some(at)) };
            return self.bracket(at, self.settings.factor, passed, failed, None);
        }
        let factor = 1.0 + self.settings.step;
        let next = if pass { at * factor } else { at / factor };
        self.staircase(next.clamp(self.settings.lowest_per_s, self.settings.highest_per_s), left - 1)
    }

    /// Whether all steps of the staircase went the same way. Then one trial of the bracket had a wrong outcome, the peak is elsewhere, and
    /// the estimate would only be the place that the staircase has reached.
    fn is_one_sided(&self) -> bool {
        let steps = &self.tried[self.tried.len().saturating_sub(self.settings.steps)..];
        steps.len() >= FEWEST_STEPS && steps.windows(2).all(|pair| pair[0].pass == pair[1].pass)
    }

    fn staircase(&self, at: f64, left: usize) -> State {
        if left > 0 {
            return State::Staircase { at, left };
        }
        let PeakSettings { lowest_per_s, highest_per_s, alpha, .. } = self.settings;
        State::Over(match posterior(&self.tried, at, alpha) {
            found if found.rate_per_s > highest_per_s => Peak::AtLeast(highest_per_s),
            found if found.rate_per_s < lowest_per_s => Peak::Below(lowest_per_s),
            found => Peak::Found(found),
        })
    }

    /// The geometric mean, clamped to the bounds because of rounding.
    fn middle(&self, passed: f64, failed: f64) -> f64 {
        (passed.sqrt() * failed.sqrt()).clamp(self.settings.lowest_per_s, self.settings.highest_per_s)
    }
}

#[cfg(test)]
#[path = "peak/tests.rs"]
mod tests;
