//! Searches for each contender's highest rate that meets the objective, with one trial of each contender after the other.
//!
//! Owns: how a trial runs, how long it lasts, and how it passes or fails. Must not know: which rate comes next (`stats` decides), or how
//! peaks are compared.

use std::time::Duration;

use deadheat_load::Tally;
use deadheat_record::{BEYOND, Objective, PeakEnd, PeakSeen, Round, Slices, Trial, TrialEnd};
use deadheat_stats::peak::{Outcome, Peak, PeakError, PeakSearch, PeakSettings};

use crate::epoch::{EpochError, EpochRun, PlayedRound, PlayedSlice, dropped, lost, stood_still};
use crate::events::{Event, Observer};
use crate::loaded::{LoadTotals, LoadedContender, outcomes};
use crate::readings::ContenderReadings;
use crate::schedule;

/// Maximum share of a trial's requests that may fail.
const MOST_FAILED: f64 = 0.001;
/// Minimum share of the due requests that the contender must complete.
const LEAST_ACHIEVED: f64 = 0.99;
/// A trial is long enough for this many times the requests that its quantile needs, but at most `LONGEST`.
const ROOM: f64 = 1.2;
const LONGEST: Duration = Duration::from_secs(10);
/// The lowest rate of a search has this many requests beyond the quantile in a trial of the longest length.
const FEWEST_BEYOND: f64 = 10.0;
/// The highest rate that a search tries, in requests per second.
const HIGHEST_PER_S: f64 = 1e7;
/// A search starts at this share of the rate that the contender reaches when every connection is busy.
const FIRST_SHARE: f64 = 0.8;
/// The factor of the first step from there; later steps are longer.
const FIRST_FACTOR: f64 = 1.25;
/// Number of disturbed trials in a row that are repeated before a search is given up.
const MOST_REPEATS: usize = 8;
/// If the generator is busier than this share of its time, a failed trial is invalid and does not count against the contender.
const BUSY: f64 = 0.85;

impl EpochRun<'_> {
    /// Searches the peaks of all contenders side by side. Each unfinished search gets one trial per round.
    ///
    /// # Errors
    /// When a contender drops out, or the generator fails.
    pub(crate) fn search(
        &self,
        loaded: &mut [LoadedContender],
        warmups: &[LoadTotals],
        objective: &Objective,
        epoch_start: Duration,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<Round>, Vec<ContenderReadings>), EpochError> {
        let failed = |error: PeakError| EpochError::Failed(format!("the search for a peak: {error}"));
        let slices = self.launcher.plan.slices(self.scenario);
        let slice_length = Duration::from_nanos(slices.slice_ns);
        let mut measured = self.begin(loaded, epoch_start);
        let settings =
            loaded.iter().zip(warmups).map(|(one, warmup)| self.settings(one, warmup, objective, slices));
        let searches: Result<Vec<PeakSearch>, PeakError> = settings.map(PeakSearch::new).collect();
        let (mut searches, mut rounds) = (searches.map_err(failed)?, Vec::new());
        // By contender: number of trials at the current rate that overloaded the generator.
        let mut overworked = vec![0; loaded.len()];
        loop {
            let open: Vec<usize> =
                (0..loaded.len()).filter(|place| searches[*place].next().is_some()).collect();
            if open.is_empty() {
                break;
            }
            observer.event(&Event::Doing(&format!("looking for the peak: trial {}", rounds.len() + 1)));
            let order = schedule::shuffled(&open, schedule::derive_seed(self.seed, rounds.len(), 1));
            let PlayedRound { slices: played, seen, silent } = self.round(
                (loaded, &mut measured),
                (rounds.len(), &order),
                epoch_start,
                &mut |place, one, position| {
                    let Some(trial) = searches[place].next() else { return Ok(Vec::new()) };
                    let length = trial_length(trial.rate_per_s, objective.quantile, slice_length);
                    let start_ns = self.since(epoch_start).as_nanos() as u64;
                    let tally = one.trial(trial.rate_per_s, length, position);
                    Ok(vec![(start_ns, tally.map_err(|error| lost(&one.runner, &error))?)])
                },
            )?;
            let dropped = silent.or_else(|| dropped(&seen, None));
            let mut slices = Vec::new();
            for PlayedSlice { place, tally, mut slice } in played {
                let Some(trial) = searches[place].next() else { continue };
                let seen = judged(&tally, trial.rate_per_s, objective);
                let tired = is_overworked(&seen, slice.stalled_share, objective);
                let mut trial = excused(seen, slice.stalled_share, objective);
                if let Some(why) = &dropped {
                    (trial.end, trial.invalid) = (TrialEnd::Invalid, Some(why.clone()));
                }
                overworked[place] = match trial.end {
                    TrialEnd::Invalid => overworked[place] + usize::from(tired && dropped.is_none()),
                    TrialEnd::Pass | TrialEnd::Fail => 0,
                };
                searches[place].record(trial.rate_per_s, outcome(trial.end)).map_err(failed)?;
                measured[place].sum.add_if(tally, false);
                slice.trial = Some(trial);
                slices.push(slice);
            }
            rounds.push(Round { slices, external: seen.reading, dropped });
        }
        self.end(loaded, &mut measured, epoch_start);
        for (place, search) in searches.iter().enumerate() {
            let peak = search.peak().map(|peak| record_of(peak, search.tried().len(), overworked[place]));
            measured[place].peak = peak;
        }
        Ok((rounds, measured))
    }

    /// Where a contender's search starts: at the peak of the previous epoch, or else near the rate that its warm-up reached.
    fn settings(
        &self,
        one: &LoadedContender,
        warmup: &LoadTotals,
        objective: &Objective,
        slices: Slices,
    ) -> PeakSettings {
        let lowest = FEWEST_BEYOND / ((1.0 - objective.quantile) * LONGEST.as_secs_f64());
        let (steps, most_repeats) = (slices.rounds as usize, MOST_REPEATS);
        if let Some(earlier) = self.peaks.get(&one.runner.contender) {
            let warm = PeakSettings::warm(lowest, HIGHEST_PER_S, *earlier);
            return PeakSettings { steps, most_repeats, ..warm };
        }
        let reached = self.served(warmup) as f64 * 1e9 / warmup.elapsed_ns.max(1) as f64;
        let guess = (reached * FIRST_SHARE).max(lowest);
        let cold = PeakSettings::cold(lowest, HIGHEST_PER_S, guess);
        PeakSettings { steps, most_repeats, factor: FIRST_FACTOR, ..cold }
    }
}

/// The length of a trial: long enough for the quantile at this rate, within bounds.
fn trial_length(rate_per_s: f64, quantile: f64, least: Duration) -> Duration {
    let needed_s = ROOM * BEYOND / (rate_per_s * (1.0 - quantile));
    Duration::from_secs_f64(needed_s.min(LONGEST.as_secs_f64())).max(least)
}

/// Judges a trial by its tally.
fn judged(tally: &Tally, rate_per_s: f64, objective: &Objective) -> Trial {
    let all = tally.latency.histogram();
    let at = |quantile: f64| (!all.is_empty()).then(|| all.value_at_quantile(quantile));
    let (outcomes, quantile_ns) = (outcomes(tally), at(objective.quantile));
    let failed_share = outcomes.failed() as f64 / outcomes.total().max(1) as f64;
    let achieved_share = tally.achieved_share().unwrap_or(0.0);
    let met = quantile_ns.is_some_and(|ns| ns <= objective.limit_ns)
        && failed_share <= MOST_FAILED
        && achieved_share >= LEAST_ACHIEVED;
    let busy = tally.cpu_ns.saturating_sub(tally.spin_ns) as f64 / tally.wall_ns.max(1) as f64;
    // Without the generator's own delay, the trial might have met the objective.
    let own_ns = tally.own_lag.histogram().value_at_quantile(objective.quantile);
    let late =
        quantile_ns.is_some_and(|ns| (objective.limit_ns + 1..=objective.limit_ns + own_ns).contains(&ns));
    let ours = if met {
        None
    } else if busy > BUSY {
        Some(format!("the generator was busy for {:.0} % of its time", busy * 100.0))
    } else if late {
        Some(format!("the generator itself was {:.3} ms late", own_ns as f64 / 1e6))
    } else {
        None
    };
    let end = match (met, &ours) {
        (true, _) => TrialEnd::Pass,
        (false, None) => TrialEnd::Fail,
        (false, Some(_)) => TrialEnd::Invalid,
    };
    Trial { rate_per_s, quantile_ns, achieved_share, failed_share, end, invalid: ours }
}

/// Whether a trial, as returned by [`judged`], is invalid because it overloaded the generator and not because a core stalled.
fn is_overworked(trial: &Trial, stalled_share: Option<f64>, objective: &Objective) -> bool {
    trial.end == TrialEnd::Invalid && stalled(stalled_share, objective).is_none()
}

/// Makes a trial invalid if it failed by its quantile alone, and a core stalled long enough to account for that quantile. A trial that
/// met the objective despite a stall still passes.
fn excused(trial: Trial, stalled_share: Option<f64>, objective: &Objective) -> Trial {
    let by_quantile_alone = trial.end == TrialEnd::Fail
        && trial.failed_share <= MOST_FAILED
        && trial.achieved_share >= LEAST_ACHIEVED;
    match stalled(stalled_share, objective).filter(|_| by_quantile_alone) {
        Some(why) => Trial { end: TrialEnd::Invalid, invalid: Some(why), ..trial },
        None => trial,
    }
}

/// Why a trial may have failed without the contender's fault: a core stalled for a larger share than lies beyond the objective's quantile.
fn stalled(share: Option<f64>, objective: &Objective) -> Option<String> {
    stood_still(share?, 1.0 - objective.quantile)
}

fn outcome(end: TrialEnd) -> Outcome {
    match end {
        TrialEnd::Pass => Outcome::Pass,
        TrialEnd::Fail => Outcome::Fail,
        TrialEnd::Invalid => Outcome::Invalid,
    }
}

/// The result of a search. `overworked` is how many of its last invalid trials overloaded the generator.
fn record_of(peak: Peak, trials: usize, overworked: usize) -> PeakSeen {
    let at = |end, rate_per_s| PeakSeen { end, rate_per_s, low_per_s: None, high_per_s: None, trials };
    match peak {
        Peak::Found(one) => PeakSeen {
            low_per_s: Some(one.low_per_s),
            high_per_s: Some(one.high_per_s),
            ..at(PeakEnd::Found, one.rate_per_s)
        },
        Peak::AtLeast(rate_per_s) => at(PeakEnd::AtLeast, rate_per_s),
        Peak::Below(rate_per_s) => at(PeakEnd::Below, rate_per_s),
        Peak::GaveUp { rate_per_s, invalid } if overworked * 2 > invalid => {
            at(PeakEnd::Generator, rate_per_s)
        }
        Peak::GaveUp { rate_per_s, .. } => at(PeakEnd::GaveUp, rate_per_s),
    }
}

#[cfg(test)]
mod tests {
    use deadheat_load::Behind;

    use super::*;

    #[test]
    fn trials_are_long_enough_for_their_quantile_within_bounds() {
        let length =
            |rate_per_s, quantile| trial_length(rate_per_s, quantile, Duration::from_secs(1)).as_secs_f64();
        assert!((length(4_000.0, 0.99) - 3.0).abs() < 1e-9);
        assert!((length(100_000.0, 0.99) - 1.0).abs() < 1e-9);
        assert!((length(500.0, 0.99) - 10.0).abs() < 1e-9);
        assert!((length(100.0, 0.5) - 2.4).abs() < 1e-9);
    }

    #[test]
    fn a_trial_fails_by_latency_by_failures_and_by_what_it_owes() {
        let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
        let of = |slow: u64, timeouts: u64, cpu_ns: u64, behind: f64| {
            let mut tally = Tally {
                due: 1_000,
                behind: Some(Behind { requests: behind, of: 500.0 }),
                completions: 1_000 - timeouts,
                cpu_ns,
                wall_ns: 1_000,
                ..Tally::default()
            };
            tally.elapsed_ns = 1_000_500_000;
            tally.outcomes.ok = 1_000 - timeouts;
            tally.outcomes.timeout = timeouts;
            (0..1_000 - timeouts)
                .for_each(|at| tally.latency.record(if at < slow { 20_000_000 } else { 1_000_000 }));
            judged(&tally, 1_000.0, &objective).end
        };
        assert_eq!(of(9, 0, 0, 0.0), TrialEnd::Pass);
        assert_eq!(of(20, 0, 0, 0.0), TrialEnd::Fail);
        assert_eq!(of(0, 2, 0, 0.0), TrialEnd::Fail);
        assert_eq!(of(20, 0, 900, 0.0), TrialEnd::Invalid, "the generator may have been it");
        assert_eq!(of(0, 0, 900, 0.0), TrialEnd::Pass);
        assert_eq!(of(0, 0, 0, 50.0), TrialEnd::Fail, "a tenth of what was due has piled up");
    }

    #[test]
    fn a_search_that_the_generator_ended_is_told_from_one_that_was_disturbed() {
        let ended =
            |overworked| record_of(Peak::GaveUp { rate_per_s: 50_000.0, invalid: 9 }, 12, overworked).end;
        assert_eq!((ended(9), ended(5)), (PeakEnd::Generator, PeakEnd::Generator));
        assert_eq!((ended(4), ended(0)), (PeakEnd::GaveUp, PeakEnd::GaveUp));
        let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
        let trial = |end| Trial {
            rate_per_s: 1_000.0,
            quantile_ns: None,
            achieved_share: 0.5,
            failed_share: 0.0,
            end,
            invalid: None,
        };
        let of = |end, stalled_share| is_overworked(&trial(end), stalled_share, &objective);
        assert!(of(TrialEnd::Invalid, None) && of(TrialEnd::Invalid, Some(0.001)));
        assert!(!of(TrialEnd::Pass, None), "met all the same");
        assert!(!of(TrialEnd::Invalid, Some(0.02)));
    }

    #[test]
    fn a_core_that_stood_still_fails_nobody_whose_quantile_it_may_be() {
        let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
        let trial = |end, achieved_share| Trial {
            rate_per_s: 1_000.0,
            quantile_ns: Some(12_000_000),
            achieved_share,
            failed_share: 0.0,
            end,
            invalid: None,
        };
        let of = |end, achieved_share, stalled_share| {
            let trial = excused(trial(end, achieved_share), stalled_share, &objective);
            assert_eq!(trial.end == TrialEnd::Invalid, trial.invalid.is_some());
            trial.end
        };
        assert_eq!(of(TrialEnd::Fail, 1.0, Some(0.02)), TrialEnd::Invalid);
        assert_eq!(of(TrialEnd::Fail, 1.0, Some(0.009)), TrialEnd::Fail);
        assert_eq!(of(TrialEnd::Fail, 1.0, None), TrialEnd::Fail);
        assert_eq!(of(TrialEnd::Fail, 0.9, Some(0.02)), TrialEnd::Fail, "it was not kept up with");
        assert_eq!(of(TrialEnd::Pass, 1.0, Some(0.02)), TrialEnd::Pass);
    }

    #[test]
    fn a_generator_that_was_late_itself_fails_nobody() {
        let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
        let of = |latency_ns: u64, own_lag_ns: u64| {
            let behind = Some(Behind::default());
            let mut tally = Tally { due: 100, completions: 100, wall_ns: 1_000, behind, ..Tally::default() };
            (tally.elapsed_ns, tally.outcomes.ok) = (1_000_500_000, 100);
            for _ in 0..100 {
                tally.latency.record(latency_ns);
                tally.own_lag.record(own_lag_ns);
            }
            judged(&tally, 100.0, &objective).end
        };
        assert_eq!(of(12_000_000, 3_000_000), TrialEnd::Invalid);
        assert_eq!(of(12_000_000, 1_000_000), TrialEnd::Fail, "too late anyway");
        assert_eq!(of(9_000_000, 8_000_000), TrialEnd::Pass);
    }
}
