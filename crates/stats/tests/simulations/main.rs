//! Simulates races and judges them as the runner does: how many claims are false, how many differences are missed, and how long races
//! take.
//!
//! Owns the comparison with the expected figures. All seeds are fixed. `make simulate` prints the long tables of
//! docs/src/simulations.md, which are in `long`.
// The lints allow `unwrap` and printing in tests, but not in the helpers that they share.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod long;
mod noise;
mod race;

use deadheat_stats::TwoGroups;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal, StudentT};

use noise::Noise;
use race::{FULL, QUICK, Setup, compared_apart, tally, tally_within};

/// Alpha of the rules, in percent.
const ALPHA: f64 = 2.5;

/// Three standard errors of a share of `percent` among this number of races, in percent.
fn three_errors(percent: f64, races: usize) -> f64 {
    3.0 * (percent * (100.0 - percent) / races as f64).sqrt()
}

#[test]
fn the_expectations_of_the_method_hold() {
    // Columns: s_d, true log ratio, percentages of races (differs, equivalent, inconclusive), and mean number of epochs. At s_d 4 %, a
    // race that knew its spread and that its 30 epochs are independent would find equivalence with the chance of
    // |z| < ln(1.03) * sqrt(30) / 0.04 - 2.598 = 1.45, about 85 %. Allowing for epochs that follow each other takes 14 % of it.
    let table = [
        (0.007, 0.00, [0.0, 100.0, 0.0, 6.7]),
        (0.007, 0.03, [100.0, 0.0, 0.0, 6.4]),
        (0.016, 0.00, [0.2, 99.8, 0.0, 12.3]),
        (0.016, 0.03, [100.0, 0.0, 0.0, 10.8]),
        (0.040, 0.00, [1.8, 71.7, 26.5, 26.6]),
        (0.040, 0.03, [87.0, 0.5, 12.5, 22.6]),
        (0.040, 0.05, [99.9, 0.0, 0.1, 15.0]),
        (0.117, 0.00, [1.2, 0.0, 98.8, 30.0]),
        (0.117, 0.10, [95.1, 0.0, 4.9, 20.5]),
    ];
    for (row, (sd, truth, expected)) in table.into_iter().enumerate() {
        let setup = Setup::against_baseline(Noise::Normal, sd, &[truth]);
        let found = tally(&FULL, &setup, 1500, row as u64);
        let differs = 100.0 - found.equivalent - found.inconclusive;
        let shares = [differs, found.equivalent, found.inconclusive];
        println!("s_d {sd}, truth {truth}: {shares:.1?} after {:.1} against {expected:?}", found.epochs);
        for (value, wanted) in shares.iter().zip(expected) {
            assert!(
                (value - wanted).abs() <= 3.0,
                "s_d {sd}, truth {truth}: {shares:?} against {expected:?}"
            );
        }
        assert!((found.epochs - expected[3]).abs() <= 1.6, "s_d {sd}, truth {truth}: {found:?}");
    }
}

#[test]
fn one_group_is_seldom_taken_for_two() {
    let mut rng = ChaCha8Rng::seed_from_u64(89);
    let t3 = StudentT::new(3.0).unwrap();
    let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
    for count in [6, 8, 12, 30] {
        let mut taken = [0; 4];
        for _ in 0..20_000 {
            let mut series = |of: &dyn Fn(&mut ChaCha8Rng) -> f64| {
                let values: Vec<f64> = (0..count).map(|_| of(&mut rng)).collect();
                usize::from(TwoGroups::of(&values).is_some())
            };
            taken[0] += series(&normal);
            taken[1] += series(&|rng| t3.sample(rng));
            taken[2] += series(&|rng| Exp1.sample(rng));
            taken[3] += series(&|rng| normal(rng) * if rng.random_bool(0.1) { 5.0 } else { 1.0 });
        }
        println!("two groups seen in {taken:?} of 20,000 series of {count} values of one");
        // One in 1,000, and three standard errors.
        assert!(taken.iter().all(|taken| *taken <= 34), "{count} values: {taken:?}");
    }
}

#[test]
fn power_at_the_spread_of_a_quiet_machine() {
    let setup = Setup::against_baseline(Noise::Normal, 0.016, &[0.03_f64.ln_1p()]);
    let (full, quick) = (tally(&FULL, &setup, 1500, 100), tally(&QUICK, &setup, 1500, 101));
    assert!(full.power >= 97.0, "{full:?}");
    assert!(quick.power >= 80.0, "{quick:?}");
}

#[test]
fn false_claims_when_the_budget_ends_anywhere() {
    let (races, budgets) = (2400, [4, 8, 10, 13, 18, 27]);
    // The spread far exceeds the margin, so equivalence does not end races early. This is the worst case for alpha.
    let setup = Setup::against_baseline(Noise::Normal, 0.1, &[0.0]);
    let found = tally_within(&FULL, &setup, races, 12, |i| budgets[i % budgets.len()]);
    println!("with early ends: {found:.2?}");
    assert!(
        found.false_claims <= ALPHA + three_errors(ALPHA, races) && found.false_claims >= 0.7,
        "{found:?}"
    );
}

#[test]
fn false_claims_and_coverage_under_every_noise() {
    let races = 1000;
    for (row, noise) in Noise::INDEPENDENT.into_iter().enumerate() {
        for (referee, name) in [(&FULL, "full"), (&QUICK, "quick")] {
            let same = Setup::against_baseline(noise, 0.1, &[0.0]);
            let found = tally(referee, &same, races, 20 + row as u64);
            println!("{name}, {}: {found:.2?}", noise.name());
            assert!(found.false_claims <= ALPHA + three_errors(ALPHA, races), "{name} {noise:?}: {found:?}");
            assert!(
                found.covered >= 100.0 - ALPHA - three_errors(ALPHA, races),
                "{name} {noise:?}: {found:?}"
            );
        }
        let differs = Setup::against_baseline(noise, 0.04, &[0.05]);
        let found = tally(&FULL, &differs, races / 2, 40 + row as u64);
        // Slow epochs add to the spread. They cost power, but cause no false claims.
        let fewest = if noise == Noise::Outliers { 72.0 } else { 97.0 };
        assert!(found.power >= fewest && found.covered >= 98.0, "{noise:?}: {found:?}");
        assert!(found.false_claims < 0.5, "{noise:?}: {found:?}");
    }
    // Normal epochs use up alpha. This shows that the bound above does not hold only because the referee makes no claims.
    let spent = tally(&FULL, &Setup::against_baseline(Noise::Normal, 0.1, &[0.0]), 4000, 11);
    assert!(
        spent.false_claims >= 0.8 && spent.false_claims <= ALPHA + three_errors(ALPHA, 4000),
        "{spent:?}"
    );
}

#[test]
fn records_that_ended_by_themselves_are_compared_at_half_of_alpha() {
    let pairs = 800;
    for (referee, sd, truth) in [(&FULL, 0.117, 0.03_f64), (&QUICK, 0.117, 0.10), (&QUICK, 0.016, 0.03)] {
        let setup = Setup::against_baseline(Noise::Normal, sd, &[truth.ln_1p()]);
        let [whole, taken, _] = compared_apart(referee, &setup, pairs, 60);
        println!("s_d {sd}, truth {truth}: {whole:.2} % at alpha, {taken:.2} % at half of it");
        assert!(taken <= ALPHA + three_errors(ALPHA, pairs) && taken < whole, "{taken} {whole}");
    }
}

#[test]
fn false_claims_over_a_family_of_pairs() {
    // First, no contender of seven differs. Then, three differ clearly and pass on their shares of alpha.
    let races = 400;
    let most = ALPHA + three_errors(ALPHA, races);
    for (seed, ratios) in [(13, [0.0; 6]), (14, [0.3, 0.3, 0.3, 0.0, 0.0, 0.0])] {
        for referee in [&FULL, &QUICK] {
            let found = tally(referee, &Setup::against_baseline(Noise::Normal, 0.1, &ratios), races, seed);
            println!("a family {ratios:?}: {found:.2?}");
            assert!(found.false_claims <= most && found.covered >= 97.0, "{ratios:?}: {found:?}");
        }
    }
    let all = tally(&FULL, &Setup::all_pairs(Noise::Normal, 0.1, &[0.0; 6]), races / 4, 15);
    assert!(all.false_claims <= ALPHA + three_errors(ALPHA, races / 4), "{all:?}");
}

#[test]
fn false_claims_of_contenders_that_vary_unequally() {
    let races = 400;
    let most = ALPHA + three_errors(ALPHA, races);
    for (row, (name, factors)) in long::UNEQUAL.into_iter().enumerate() {
        for count in [3, 7] {
            let setup = Setup::against_baseline(Noise::Normal, 0.1, &vec![0.0; count - 1]);
            let found = tally(&QUICK, &setup.spread(&factors[..count]), races, 70 + row as u64);
            println!("{count}, {name}: {found:.2?}");
            assert!(found.false_claims <= most, "{count}, {name}: {found:?}");
        }
    }
}

#[test]
fn false_claims_if_each_epoch_is_like_the_one_before() {
    let (races, most) = (800, 2.0 * ALPHA);
    for count in [2, 7] {
        let setup = Setup::against_baseline(Noise::FollowingEpochs, 0.1, &vec![0.0; count - 1]);
        let found = tally(&QUICK, &setup, races, 80);
        println!("{count}: {found:.2?}");
        assert!(found.false_claims <= most + three_errors(most, races), "{count}: {found:?}");
    }
}

/// Seven contenders know more about each other's spread than two.
#[test]
fn more_contenders_sharpen_early_intervals() {
    let width = |count: usize| {
        let setup = Setup::against_baseline(Noise::Normal, 0.04, &vec![0.0; count - 1]);
        tally_within(&QUICK, &setup, 200, 90, |_| 4).width
    };
    let (two, seven) = (width(2), width(7));
    // Six pairs share alpha. If each had only its own spread, that alone would make their intervals 1.8 times as wide.
    assert!(seven < 1.1 * two, "{two} {seven}");
}

#[test]
fn independent_epochs_are_seldom_said_to_follow_each_other() {
    let (races, most) = (1500, 100.0 * deadheat_stats::serial::ALARM);
    for (seed, noise) in [(50, Noise::Normal), (51, Noise::HeavyTails), (52, Noise::Outliers)] {
        for (referee, name) in [(&FULL, "full"), (&QUICK, "quick")] {
            let found = tally(referee, &Setup::against_baseline(noise, 0.1, &[0.0]), races, seed);
            println!("{name}, {}: said to follow {:.2} %", noise.name(), found.follow);
            assert!(found.follow <= most + three_errors(most, races), "{name} {noise:?}: {found:?}");
        }
        let family = tally(&FULL, &Setup::against_baseline(noise, 0.1, &[0.0; 6]), races / 3, seed);
        assert!(family.follow <= most + three_errors(most, races / 3), "{noise:?}: {family:?}");
    }
    // The warning appears more often if epochs do follow each other, but not always: thirty epochs are few.
    let found = tally(&FULL, &Setup::against_baseline(Noise::FollowingEpochs, 0.1, &[0.0]), races, 53);
    println!("full, {}: said to follow {:.2} %", Noise::FollowingEpochs.name(), found.follow);
    assert!(found.follow >= 20.0, "{found:?}");
}
