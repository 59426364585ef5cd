//! How a search reacts to each answer, and what it finds when answers are random.
//!
//! Owns the tests of the search and of the posterior. It must not know their internals.

use super::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn cold() -> PeakSettings {
    PeakSettings::cold(10.0, 1e6, 1_000.0)
}

/// Runs a search to its end; returns the result and the trials.
fn run(settings: PeakSettings, mut answer: impl FnMut(&Trial) -> Outcome) -> (Peak, Vec<Trial>) {
    let mut search = PeakSearch::new(settings).unwrap();
    let mut asked = Vec::new();
    while let Some(trial) = search.next() {
        asked.push(trial);
        search.record(trial.rate_per_s, answer(&trial)).unwrap();
    }
    (search.peak().unwrap(), asked)
}

fn sharp(peak: f64) -> impl Fn(&Trial) -> Outcome {
    move |trial| if trial.rate_per_s <= peak { Outcome::Pass } else { Outcome::Fail }
}

fn found(peak: Peak) -> PeakEstimate {
    let Peak::Found(estimate) = peak else { panic!("{peak:?}") };
    estimate
}

fn rates(asked: &[Trial], phase: Phase) -> Vec<f64> {
    asked.iter().filter(|trial| trial.phase == phase).map(|trial| trial.rate_per_s).collect()
}

#[test]
fn the_way_to_a_sharp_peak() {
    let (peak, asked) = run(cold(), sharp(5_000.0));
    assert_eq!(rates(&asked, Phase::Bracket), [1_000.0, 2_000.0, 4_000.0, 8_000.0]);
    let bisection = rates(&asked, Phase::Bisection);
    assert!((bisection[0] - 32e6_f64.sqrt()).abs() < 1e-6, "{bisection:?}");
    assert_eq!(bisection.len(), 4, "a factor of 2 halved four times is 4.4 %: {bisection:?}");
    let staircase = rates(&asked, Phase::Staircase);
    assert_eq!(staircase.len(), 10);
    for pair in staircase.windows(2) {
        let expected = if pair[0] <= 5_000.0 { 1.03 } else { 1.0 / 1.03 };
        assert!((pair[1] / pair[0] - expected).abs() < 1e-12, "{staircase:?}");
    }
    let estimate = found(peak);
    assert!((estimate.rate_per_s / 5_000.0 - 1.0).abs() < 0.015, "{estimate:?}");
    assert!(estimate.low_per_s < 5_000.0 && 5_000.0 < estimate.high_per_s, "{estimate:?}");
    assert_eq!(estimate.trials, asked.len());
}

/// A wrong fail in the first trial sends the bisection far below the peak, and a wrong pass far above it.
#[test]
fn one_slip_on_the_way_does_not_decide() {
    for (peak, wrong) in [(5_000.0, 0), (700.0, 0), (5_000.0, 2)] {
        let mut trials = 0..;
        let (end, asked) = run(cold(), |trial| {
            let right = sharp(peak)(trial);
            match (trials.next() == Some(wrong), right) {
                (true, Outcome::Pass) => Outcome::Fail,
                (true, _) => Outcome::Pass,
                (false, right) => right,
            }
        });
        let estimate = found(end);
        assert!((estimate.rate_per_s / peak - 1.0).abs() < 0.05, "{peak}: {estimate:?}");
        assert!(estimate.low_per_s < peak && peak < estimate.high_per_s, "{peak}: {estimate:?}");
        assert!(asked.len() <= 50, "{}", asked.len());
    }
    // If every trial but the first passes, the search ends at the bound.
    let mut first = true;
    let always = |_: &Trial| if std::mem::take(&mut first) { Outcome::Fail } else { Outcome::Pass };
    assert_eq!(run(PeakSettings::cold(10.0, 2_000.0, 1_000.0), always).0, Peak::AtLeast(2_000.0));
}

#[test]
fn a_warm_start_takes_fewer_trials() {
    let (_, from_afar) = run(cold(), sharp(5_000.0));
    for earlier in [4_800.0, 5_200.0] {
        let (peak, asked) = run(PeakSettings::warm(10.0, 1e6, earlier), sharp(5_000.0));
        assert!(asked.len() <= 13 && asked.len() + 4 < from_afar.len(), "{asked:?}");
        assert!((found(peak).rate_per_s / 5_000.0 - 1.0).abs() < 0.015);
    }
    // The search still finds a peak that has moved, in growing steps.
    let (peak, asked) = run(PeakSettings::warm(10.0, 1e6, 1_000.0), sharp(5_000.0));
    let bracket = rates(&asked, Phase::Bracket);
    let expected = [1_000.0, 1_100.0, 1_331.0, 1_948.7, 3_897.0, 7_794.0];
    assert!(bracket.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 0.001), "{bracket:?}");
    assert!((found(peak).rate_per_s / 5_000.0 - 1.0).abs() < 0.015);
}

#[test]
fn bounds_end_the_search() {
    let settings = PeakSettings::cold(500.0, 3_000.0, 1_000.0);
    let (peak, asked) = run(settings, |_| Outcome::Pass);
    assert_eq!(peak, Peak::AtLeast(3_000.0));
    assert_eq!(rates(&asked, Phase::Bracket), [1_000.0, 2_000.0, 3_000.0, 3_000.0]);
    let (peak, asked) = run(settings, |_| Outcome::Fail);
    assert_eq!(peak, Peak::Below(500.0));
    assert_eq!(rates(&asked, Phase::Bracket), [1_000.0, 500.0, 500.0]);
    // A guess beyond a bound starts at that bound.
    let (_, asked) = run(PeakSettings { start_per_s: 1e9, ..settings }, |_| Outcome::Pass);
    assert_eq!(rates(&asked, Phase::Bracket), [3_000.0; 2]);
}

#[test]
fn a_bound_that_answers_both_ways_is_sampled() {
    // One lucky pass at the highest rate, then a peak of 2,800.
    let mut lucky = true;
    let settings = PeakSettings::cold(500.0, 3_000.0, 3_000.0);
    let (peak, asked) =
        run(settings, |trial| if std::mem::take(&mut lucky) { Outcome::Pass } else { sharp(2_800.0)(trial) });
    assert_eq!(rates(&asked, Phase::Bracket), [3_000.0; 2]);
    assert!((found(peak).rate_per_s / 2_800.0 - 1.0).abs() < 0.03, "{peak:?}");
    // One unlucky fail at the highest rate, which the staircase then contradicts.
    let mut unlucky = true;
    let (peak, _) =
        run(settings, |_| if std::mem::take(&mut unlucky) { Outcome::Fail } else { Outcome::Pass });
    assert_eq!(peak, Peak::AtLeast(3_000.0));
}

#[test]
fn an_invalid_trial_is_repeated_and_not_failed() {
    let mut count = 0;
    let (peak, asked) = run(cold(), |trial| {
        count += 1;
        if count % 3 == 0 { Outcome::Invalid } else { sharp(5_000.0)(trial) }
    });
    let (undisturbed, plain) = run(cold(), sharp(5_000.0));
    assert_eq!(peak, undisturbed);
    assert!(asked.len() > plain.len());
    let repeated = asked.windows(2).filter(|pair| pair[1].repeats == 1);
    assert!(
        repeated.clone().count() > 5 && repeated.clone().all(|pair| pair[0].rate_per_s == pair[1].rate_per_s)
    );
    let (peak, asked) = run(cold(), |_| Outcome::Invalid);
    assert_eq!(peak, Peak::GaveUp { rate_per_s: 1_000.0, invalid: 4 });
    assert_eq!(asked.len(), 4);
}

#[test]
fn an_answer_that_was_not_asked_for_changes_nothing() {
    let mut search = PeakSearch::new(cold()).unwrap();
    let wrong = search.record(999.0, Outcome::Pass);
    assert_eq!(wrong, Err(PeakError::NotAsked { asked: 1_000.0, found: 999.0 }));
    assert_eq!(search.next().unwrap().rate_per_s, 1_000.0);
    for _ in 0..4 {
        search.record(1_000.0, Outcome::Invalid).unwrap();
    }
    assert_eq!((search.record(1_000.0, Outcome::Pass), search.next()), (Err(PeakError::Ended), None));
}

#[test]
fn settings_without_meaning_are_named() {
    let wrong = |change: &dyn Fn(&mut PeakSettings)| {
        let mut settings = cold();
        change(&mut settings);
        PeakSearch::new(settings).unwrap_err().to_string()
    };
    assert_eq!(wrong(&|s| s.lowest_per_s = 0.0), "the lowest rate is 0; it must be over 0");
    assert_eq!(wrong(&|s| s.highest_per_s = 10.0), "the highest rate is 10; it must be over the lowest");
    assert!(wrong(&|s| s.highest_per_s = f64::INFINITY).contains("highest"));
    assert!(wrong(&|s| s.start_per_s = f64::NAN).contains("first"));
    assert!(wrong(&|s| s.factor = 1.0).contains("factor"));
    assert!(wrong(&|s| s.narrow = 1.0).contains("bisection"));
    assert!(wrong(&|s| s.step = 0.0).contains("step"));
    assert!(wrong(&|s| s.alpha = 1.0).contains("level"));
}

#[test]
fn one_disturbed_trial_does_not_drag_the_estimate_along() {
    // A trial far below fails because of a passing disturbance, and stays in the likelihood.
    let clean: Vec<Tried> = [4_700.0, 4_850.0, 5_000.0, 5_150.0, 5_300.0]
        .map(|r| Tried { rate_per_s: r, pass: r < 5_050.0 })
        .to_vec();
    let mut disturbed = clean.clone();
    disturbed.push(Tried { rate_per_s: 3_000.0, pass: false });
    let (a, b) = (posterior(&clean, 5_000.0, 0.05), posterior(&disturbed, 5_000.0, 0.05));
    println!("{} beside {}", a.rate_per_s, b.rate_per_s);
    assert!((a.rate_per_s / b.rate_per_s - 1.0).abs() < 0.03, "{a:?} {b:?}");
}

#[test]
fn the_error_of_the_method_is_reached() {
    // Trials pass with the chance of a logistic of spread 0.03; the peak, and the grid of rates with it, is at a random place.
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (runs, spread) = (400, 0.03);
    let (mut squares, mut covered, mut bisection) = (0.0, 0, 0.0);
    for _ in 0..runs {
        let peak = 3_000.0 * 2.0_f64.powf(rng.random());
        let chance = |rate: f64| 1.0 / (1.0 + ((rate / peak).ln() / spread).exp());
        let (end, asked) = run(cold(), |t| {
            if rng.random::<f64>() < chance(t.rate_per_s) { Outcome::Pass } else { Outcome::Fail }
        });
        let estimate = found(end);
        squares += (estimate.rate_per_s / peak).ln().powi(2) / f64::from(runs);
        covered += i32::from(estimate.low_per_s <= peak && peak <= estimate.high_per_s);
        let place = asked.iter().find(|t| t.phase == Phase::Staircase).unwrap().rate_per_s;
        bisection += (place / peak).ln().powi(2) / f64::from(runs);
    }
    let (rmse, alone) = (squares.sqrt(), bisection.sqrt());
    let coverage = f64::from(covered) / f64::from(runs);
    println!("rmse {rmse:.4}, by bisection alone {alone:.4}, coverage {coverage:.3}");
    assert!((0.015..0.023).contains(&rmse), "{rmse}");
    assert!(alone > 1.5 * rmse, "{alone} against {rmse}");
    assert!((0.92..=0.99).contains(&coverage), "{coverage}");
}

fn some_settings() -> impl Strategy<Value = PeakSettings> {
    let bounds = (1e-3_f64..1e6, 1.0001_f64..1e5, 1e-4_f64..1e9);
    (bounds, 1.001_f64..=2.0, 1.001_f64..3.0, 0.001_f64..=1.0, 0_usize..15, 0_usize..4).prop_map(
        |((lowest_per_s, times, start_per_s), factor, narrow, step, steps, most_repeats)| PeakSettings {
            lowest_per_s,
            highest_per_s: lowest_per_s * times,
            start_per_s,
            factor,
            narrow,
            step,
            steps,
            most_repeats,
            alpha: 0.05,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_answers_come_to_an_end_within_the_bounds(settings in some_settings(), seed: u64, kind in 0..4) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (chance, invalid) = (rng.random::<f64>(), if kind == 0 { 0.5 } else { 0.0 });
        let peak = settings.lowest_per_s * (settings.highest_per_s / settings.lowest_per_s).powf(rng.random());
        let (end, asked) = run(settings, |trial| match kind {
            _ if rng.random::<f64>() < invalid => Outcome::Invalid,
            1 => sharp(peak)(trial),
            _ if rng.random::<f64>() < chance => Outcome::Pass,
            _ => Outcome::Fail,
        });
        // At most 17 doublings, 14 halvings of ln 2 or of the whole range, and the staircase, each of them repeated.
        prop_assert!(asked.len() <= (60 + settings.steps) * (settings.most_repeats + 1), "{}", asked.len());
        for trial in &asked {
            prop_assert!(trial.rate_per_s >= settings.lowest_per_s && trial.rate_per_s <= settings.highest_per_s);
        }
        if let Peak::Found(estimate) = end {
            prop_assert!(estimate.rate_per_s >= settings.lowest_per_s && estimate.rate_per_s <= settings.highest_per_s);
            prop_assert!(estimate.low_per_s <= estimate.rate_per_s && estimate.rate_per_s <= estimate.high_per_s);
        }
    }

    #[test]
    fn the_unit_of_the_rate_does_not_matter(peak in 100.0_f64..1e5, unit in 1e-3_f64..1e3) {
        let scaled = PeakSettings::cold(10.0 * unit, 1e6 * unit, 1_000.0 * unit);
        let (one, other) = (run(cold(), sharp(peak)).0, run(scaled, sharp(peak * unit)).0);
        prop_assert!((found(one).rate_per_s * unit / found(other).rate_per_s - 1.0).abs() < 0.02);
    }
}
