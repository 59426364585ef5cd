//! The long tables, which `make simulate` prints and docs/src/simulations.md contains.
//!
//! Owns which cases are simulated and how a table is written. It must not know how one race is run.

use deadheat_stats::peak::{Outcome, Peak, PeakSearch, PeakSettings};
use deadheat_stats::{Direction, EpochRatio, Hypothesis, Progress, Referee, Sample, epoch_log_ratio};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Beta, Distribution, StandardNormal};

use crate::noise::Noise;
use crate::race::{FULL, QUICK, Setup, Tally, compared_apart, tally};

/// The standard deviations of the log ratio between epochs that the tables cover.
const SPREADS: [f64; 4] = [0.007, 0.016, 0.040, 0.117];
const EVERY_NOISE: [Noise; 5] =
    [Noise::Normal, Noise::Rounds, Noise::HeavyTails, Noise::Outliers, Noise::FollowingEpochs];
const RACES: usize = 4000;

fn heading(text: &str, columns: &[&str]) {
    println!("\n### {text}\n\n| {} |", columns.join(" | "));
    println!("|{}|", vec!["---"; columns.len()].join("|"));
}

fn two_contenders(name: &str, referee: &Referee, seed: u64) {
    heading(
        &format!("Two contenders, {name} profile, {RACES} races a figure"),
        &[
            "noise",
            "s_d %",
            "false claims % (same)",
            "found % at 3 / 5 / 10 %",
            "equivalent % (same)",
            "covered % at 0 / 3 / 5 / 10 %",
            "epochs at 0 / 3 / 5 / 10 %",
        ],
    );
    for noise in EVERY_NOISE {
        for sd in SPREADS {
            let truths = [0.0, 0.03, 0.05, 0.10_f64].map(f64::ln_1p);
            let [same, three, five, ten] = truths
                .map(|truth| tally(referee, &Setup::against_baseline(noise, sd, &[truth]), RACES, seed));
            let all = |of: fn(&Tally) -> f64| {
                [same, three, five, ten].map(|one| format!("{:.1}", of(&one))).join(" / ")
            };
            println!(
                "| {} | {:.1} | {:.2} | {:.1} / {:.1} / {:.1} | {:.1} | {} | {} |",
                noise.name(),
                100.0 * sd,
                same.false_claims,
                three.power,
                five.power,
                ten.power,
                same.equivalent,
                all(|one| one.covered),
                all(|one| one.epochs),
            );
        }
    }
}

#[test]
#[ignore = "a minute in release: make simulate"]
fn a_two_contenders_full() {
    two_contenders("full", &FULL, 1);
}

#[test]
#[ignore = "a minute in release: make simulate"]
fn b_two_contenders_quick() {
    two_contenders("quick", &QUICK, 2);
}

/// Prints rows for seven contenders, in two cases: all are the same, or two of the six are 5 % faster than the baseline.
fn seven_contenders(setup: fn(Noise, f64, &[f64]) -> Setup, noises: &[Noise], spreads: &[f64], races: usize) {
    let columns = [
        "profile",
        "noise",
        "s_d %",
        "false claims %, all the same",
        "false claims %, two ahead",
        "found %, two ahead",
        "covered %, a pair",
        "covered %, all pairs",
        "epochs",
    ];
    let ahead = 0.05_f64.ln_1p();
    let pairs = setup(Noise::Normal, 1.0, &[0.0; 6]).pairs.len();
    heading(&format!("Seven contenders, {pairs} pairs, {races} races a figure"), &columns);
    for (name, referee) in [("full", &*FULL), ("quick", &*QUICK)] {
        for &noise in noises {
            for &sd in spreads {
                let same = tally(referee, &setup(noise, sd, &[0.0; 6]), races, 3);
                let some = tally(referee, &setup(noise, sd, &[ahead, ahead, 0.0, 0.0, 0.0, 0.0]), races, 4);
                println!(
                    "| {name} | {} | {:.1} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} | {:.1} |",
                    noise.name(),
                    100.0 * sd,
                    same.false_claims,
                    some.false_claims,
                    some.power,
                    some.covered,
                    some.all_covered,
                    some.epochs,
                );
            }
        }
    }
}

#[test]
#[ignore = "over a minute in release: make simulate"]
fn c_seven_contenders_with_the_baseline() {
    seven_contenders(Setup::against_baseline, &EVERY_NOISE, &[0.016, 0.040, 0.117], RACES / 2);
}

#[test]
#[ignore = "over a minute in release: make simulate"]
fn c_seven_contenders_in_all_pairs() {
    let noises = [Noise::Normal, Noise::HeavyTails, Noise::Outliers];
    seven_contenders(Setup::all_pairs, &noises, &[0.040, 0.117], RACES / 4);
}

/// Contenders that do not vary alike: the factors of seven contenders' spreads, the baseline's first.
pub(crate) const UNEQUAL: [(&str, [f64; 7]); 5] = [
    ("all alike", [1.0; 7]),
    ("one four times", [1.0, 4.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("three four times", [1.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0]),
    ("the baseline four times", [4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    ("a quarter to four times", [0.5, 0.25, 4.0, 1.0, 2.0, 1.0, 0.7]),
];

#[test]
#[ignore = "a minute in release: make simulate"]
fn c_unequal_spreads() {
    heading(
        &format!("Contenders that vary unequally, s_d 4 %, {} races a figure", RACES / 2),
        &["profile", "contenders", "noise", "spreads", "false claims %", "half-width %", "epochs"],
    );
    let noises = [Noise::Normal, Noise::FollowingEpochs];
    for (name, referee) in [("full", &*FULL), ("quick", &*QUICK)] {
        for count in [3, 7] {
            for noise in noises {
                for (spreads, factors) in UNEQUAL {
                    let setup = Setup::against_baseline(noise, 0.04, &vec![0.0; count - 1]);
                    let found = tally(referee, &setup.spread(&factors[..count]), RACES / 2, 10);
                    println!(
                        "| {name} | {count} | {} | {spreads} | {:.2} | {:.1} | {:.1} |",
                        noise.name(),
                        found.false_claims,
                        found.width,
                        found.epochs,
                    );
                }
            }
        }
    }
}

/// The result of a search. Rates are relative to the true peak, as ln(rate / truth).
struct Searched {
    estimate: f64,
    /// The rate at which the bisection ended.
    bisection: f64,
    holds: bool,
    trials: usize,
}

/// Runs one search for a peak between 3,000 and 6,000 requests per second.
fn search(start: Start, spread: f64, rng: &mut ChaCha8Rng) -> Searched {
    let truth: f64 = 3_000.0 * 2.0_f64.powf(rng.random());
    let between: f64 = StandardNormal.sample(rng);
    let settings = match start {
        Start::Cold => PeakSettings::cold(10.0, 1e6, 1_000.0),
        Start::Warm => PeakSettings::warm(10.0, 1e6, truth * (0.04 * between).exp()),
    };
    let mut search = PeakSearch::new(settings).unwrap();
    let mut place = f64::NAN;
    while let Some(trial) = search.next() {
        if trial.phase == deadheat_stats::peak::Phase::Staircase && place.is_nan() {
            place = (trial.rate_per_s / truth).ln();
        }
        let chance = 1.0 / (1.0 + ((trial.rate_per_s / truth).ln() / spread).exp());
        let outcome = if rng.random::<f64>() < chance { Outcome::Pass } else { Outcome::Fail };
        search.record(trial.rate_per_s, outcome).unwrap();
    }
    let Some(Peak::Found(found)) = search.peak() else { panic!("no peak within {settings:?}") };
    let holds = found.low_per_s <= truth && truth <= found.high_per_s;
    let estimate = (found.rate_per_s / truth).ln();
    Searched { estimate, bisection: place, holds, trials: search.tried().len() }
}

#[derive(Debug, Clone, Copy)]
enum Start {
    Cold,
    Warm,
}

#[test]
#[ignore = "half a minute in release: make simulate"]
fn d_peaks() {
    let searches = 3000;
    heading(
        &format!("Peak under an objective, {searches} searches a row"),
        &[
            "start",
            "spread s %",
            "rmse %",
            "bias %",
            "bisection alone, rmse %",
            "95 % interval covers %",
            "trials",
        ],
    );
    for start in [Start::Cold, Start::Warm] {
        for spread in [0.005, 0.01, 0.03, 0.06, 0.1] {
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let found: Vec<_> = (0..searches).map(|_| search(start, spread, &mut rng)).collect();
            let mean = |of: fn(&Searched) -> f64| found.iter().map(of).sum::<f64>() / f64::from(searches);
            println!(
                "| {start:?} | {:.1} | {:.2} | {:+.2} | {:.2} | {:.1} | {:.1} |",
                100.0 * spread,
                100.0 * mean(|one| one.estimate.powi(2)).sqrt(),
                100.0 * mean(|one| one.estimate),
                100.0 * mean(|one| one.bisection.powi(2)).sqrt(),
                100.0 * mean(|one| f64::from(u8::from(one.holds))),
                mean(|one| one.trials as f64),
            );
        }
    }
}

/// ln of the quantile `q` of `count` independent latencies with a Pareto tail of index `tail`. It derives from the order statistic of
/// uniform variables, which has a beta distribution.
fn ln_quantile(q: f64, count: u64, tail: f64, rng: &mut ChaCha8Rng) -> f64 {
    let beyond = count as f64 * (1.0 - q);
    let left = Beta::new(beyond + 1.0, count as f64 - beyond).unwrap().sample(rng);
    -left.ln() / tail
}

#[test]
#[ignore = "seconds in release: make simulate"]
fn e_quantiles() {
    let races = 4000;
    heading(
        &format!("99th percentile, twelve epochs, {races} races a row"),
        &["requests an epoch", "own s_d between epochs %", "false claims % (same)", "95 % interval covers %"],
    );
    for (count, sd) in [(10_000, 0.0), (10_000, 0.05), (100_000, 0.05), (10_000, 0.2)] {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let (mut claims, mut covered) = (0, 0);
        for _ in 0..races {
            let mut side = || -> Vec<f64> {
                let epoch = |_| {
                    let level: f64 = StandardNormal.sample(&mut rng);
                    (sd * level + ln_quantile(0.99, count, 3.0, &mut rng)).exp()
                };
                (0..12).map(epoch).collect()
            };
            let (baseline, contender) = (side(), side());
            let pairs = baseline.iter().zip(&contender);
            let epochs: Vec<EpochRatio> =
                pairs.map(|(b, c)| epoch_log_ratio(&[*b], &[*c]).unwrap()).collect();
            let latency =
                Hypothesis { pair: (0, 1), metric: 0, epochs: &epochs, direction: Direction::LessIsBetter };
            let judged = QUICK.judge(&[latency], Progress::Ended).unwrap().pairs[0];
            claims += i32::from(judged.verdict.tells_apart());
            let logs: Vec<f64> = epochs.iter().map(|epoch| epoch.trimmed()).collect();
            let interval = Sample::of(&logs).and_then(|sample| sample.t_interval(0.05)).unwrap();
            covered += i32::from(!interval.excludes_zero());
        }
        let percent = |found: i32| 100.0 * f64::from(found) / f64::from(races);
        println!("| {count} | {:.0} | {:.2} | {:.1} |", 100.0 * sd, percent(claims), percent(covered));
    }
}

#[test]
#[ignore = "seconds in release: make simulate"]
fn f_following_epochs() {
    let columns = ["profile", "noise", "one pair %", "six pairs %", "epochs"];
    heading(
        &format!(
            "Races with the warning `serial-correlation`, s_d 11.7 %, {RACES} races a figure, {} for six pairs",
            RACES / 2
        ),
        &columns,
    );
    for (name, referee) in [("full", &*FULL), ("quick", &*QUICK)] {
        for noise in EVERY_NOISE {
            let one = tally(referee, &Setup::against_baseline(noise, 0.117, &[0.0]), RACES, 7);
            let six = tally(referee, &Setup::against_baseline(noise, 0.117, &[0.0; 6]), RACES / 2, 8);
            println!(
                "| {name} | {} | {:.2} | {:.2} | {:.1} |",
                noise.name(),
                one.follow,
                six.follow,
                one.epochs
            );
        }
    }
}

#[test]
#[ignore = "over a minute in release: make simulate"]
fn g_records_compared() {
    heading(
        &format!(
            "Two records with the same true ratio, compared through their baselines, {RACES} pairs of records a figure"
        ),
        &[
            "profile",
            "noise",
            "s_d %",
            "false claims % at alpha, at 0 / 3 / 10 %",
            "at half of alpha, as `deadheat compare` does",
            "epochs at 0 / 3 / 10 %",
        ],
    );
    for (name, referee) in [("full", &*FULL), ("quick", &*QUICK)] {
        for noise in [Noise::Normal, Noise::HeavyTails, Noise::Outliers] {
            for sd in SPREADS {
                let found = [0.0, 0.03, 0.10_f64].map(|truth| {
                    compared_apart(referee, &Setup::against_baseline(noise, sd, &[truth.ln_1p()]), RACES, 9)
                });
                let all = |at: usize| found.map(|one| format!("{:.2}", one[at])).join(" / ");
                println!(
                    "| {name} | {} | {:.1} | {} | {} | {} |",
                    noise.name(),
                    100.0 * sd,
                    all(0),
                    all(1),
                    found.map(|one| format!("{:.1}", one[2])).join(" / "),
                );
            }
        }
    }
}
