//! Compares the crate with a second implementation in another language: see `tests/reference/README.md`.
//!
//! Owns the comparison. It must not know how either side computes its figures.

use deadheat_stats::boundary::{SequentialT, quadratic_spend};
use deadheat_stats::holm::Holm;
use deadheat_stats::interval::{detectable_ratio, epochs_needed};
use deadheat_stats::peak::{Tried, posterior};
use deadheat_stats::{STEADY, Sample, Welch, climbs, compact_letters, epoch_log_ratio, mser5, student, usl};

const REFERENCE: &str = include_str!("reference/reference.json");

/// The rows (one line each) of the list under `key`.
fn rows(key: &str) -> impl Iterator<Item = &'static str> {
    let list = REFERENCE.split_once(&format!("\"{key}\": [\n")).unwrap().1.split_once("\n  ]").unwrap().0;
    list.lines().map(str::trim)
}

/// The text of a row's field: a whole list, or everything up to the next field.
fn field<'a>(row: &'a str, key: &str) -> &'a str {
    let rest = row.split_once(&format!("\"{key}\": ")).unwrap().1;
    match rest.strip_prefix('[') {
        Some(list) => list.split_once(']').unwrap().0,
        None => rest.split([',', '}']).next().unwrap(),
    }
}

fn numbers(row: &str, key: &str) -> Vec<f64> {
    field(row, key).split(',').map(str::trim).filter(|x| !x.is_empty()).map(|x| x.parse().unwrap()).collect()
}

fn number(row: &str, key: &str) -> f64 {
    numbers(row, key)[0]
}

/// Checks that each figure equals the row's value under its key, to within one part in a billion.
#[track_caller]
fn assert_near<const N: usize>(row: &str, keys: [&str; N], found: [f64; N]) {
    for (key, value) in keys.into_iter().zip(found) {
        assert!((value / number(row, key) - 1.0).abs() < 1e-9, "{key}: {value} against {row}");
    }
}

#[test]
fn student_quantiles() {
    let mut seen = 0;
    for row in rows("quantiles") {
        let found = student::upper_quantile(number(row, "tail"), number(row, "df"));
        assert!((found / number(row, "t") - 1.0).abs() < 1e-9, "{found} against {row}");
        seen += 1;
    }
    assert_eq!(seen, 54);
}

#[test]
fn warm_up_cuts() {
    let mut seen = 0;
    for row in rows("warmups") {
        assert_eq!(mser5(&numbers(row, "series")), Some(number(row, "cut") as usize), "{row}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn welch_intervals() {
    let mut seen = 0;
    for row in rows("welches") {
        let welch = Welch::of(&numbers(row, "old"), &numbers(row, "new")).unwrap();
        let interval = welch.interval(number(row, "alpha"));
        let found = [welch.degrees, interval.low, interval.high, welch.p_value()];
        assert_near(row, ["df", "low", "high", "p"], found);
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn resolutions() {
    let mut seen = 0;
    for row in rows("resolutions") {
        let (sd, alpha, n) = (number(row, "sd"), number(row, "alpha"), number(row, "n") as usize);
        assert_near(row, ["detectable"], [detectable_ratio(sd, n, alpha, 0.0).unwrap()]);
        let needed = epochs_needed(sd, alpha, number(row, "margin").ln_1p());
        assert_eq!(needed, Some(number(row, "needed") as usize), "{row}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn boundaries() {
    let mut seen = 0;
    for row in rows("boundaries") {
        let looks: Vec<usize> = numbers(row, "looks").iter().map(|&n| n as usize).collect();
        let (alpha, max) = (number(row, "alpha"), number(row, "max") as usize);
        let spend = quadratic_spend(&looks, max, alpha);
        let found = SequentialT::new(2, max, 0.0).boundaries(&looks, &spend);
        // The reference is simulated.
        for (value, expected) in found.iter().zip(numbers(row, "values")) {
            assert!((value / expected - 1.0).abs() < 0.015, "{found:?} against {row}");
        }
        println!("{found:.3?} against {row}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn scalability_laws() {
    let mut seen = 0;
    for row in rows("usl") {
        let points: Vec<(f64, f64)> = numbers(row, "n").into_iter().zip(numbers(row, "x")).collect();
        let found = usl::fit(&points).unwrap();
        println!("{found:?} against {row}");
        assert!((found.lambda / number(row, "lambda") - 1.0).abs() < 1e-6, "{found:?} against {row}");
        assert!((found.sigma - number(row, "sigma")).abs() < 1e-6, "{found:?} against {row}");
        assert!((found.kappa - number(row, "kappa")).abs() < 1e-6, "{found:?} against {row}");
        assert!((found.r2.unwrap() - number(row, "r2")).abs() < 1e-9, "{found:?} against {row}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn posteriors_of_a_staircase() {
    let mut seen = 0;
    for row in rows("posteriors") {
        let tried: Vec<Tried> = numbers(row, "rates")
            .into_iter()
            .zip(numbers(row, "passes"))
            .map(|(rate_per_s, pass)| Tried { rate_per_s, pass: pass == 1.0 })
            .collect();
        let found = posterior(&tried, number(row, "around"), number(row, "alpha"));
        // The crate's cells are 0.2 % wide, and the posterior varies slightly within a cell.
        for (value, key) in [(found.rate_per_s, "rate"), (found.low_per_s, "low"), (found.high_per_s, "high")]
        {
            assert!((value / number(row, key) - 1.0).abs() < 2e-4, "{key}: {found:?} against {row}");
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn holm_over_looks_is_the_closed_test() {
    let (mut seen, mut rejected) = (0, 0);
    for row in rows("holm") {
        let (looks, expected) = (numbers(row, "looks"), numbers(row, "rejected_at"));
        let (evidence, bounds, pairs) = (numbers(row, "evidence"), numbers(row, "bounds"), expected.len());
        let mut holm = Holm::new(pairs);
        let mut found = vec![0.0; pairs];
        for (look, n) in looks.iter().enumerate() {
            let of_look = look * pairs;
            holm.look(&evidence[of_look..of_look + pairs], |sharing| bounds[of_look + sharing - 1]);
            for (pair, at) in found.iter_mut().enumerate().filter(|(_, at)| **at == 0.0) {
                *at = if holm.rejected(pair) { *n } else { 0.0 };
            }
        }
        assert_eq!(found, expected, "{row}");
        rejected += found.iter().filter(|at| **at > 0.0).count();
        seen += 1;
    }
    assert!(seen == 12 && (15..57).contains(&rejected), "{rejected} of 72 were rejected");
}

#[test]
fn letters_are_the_largest_sets_that_are_not_told_apart() {
    let mut seen = 0;
    for row in rows("letters") {
        let whole = |key| -> Vec<usize> { numbers(row, key).iter().map(|&x| x as usize).collect() };
        let apart: Vec<(usize, usize)> = whole("apart").chunks(2).map(|pair| (pair[0], pair[1])).collect();
        let expected: Vec<&str> = field(row, "letters").split(", ").map(|x| x.trim_matches('"')).collect();
        assert_eq!(compact_letters(&whole("order"), &apart).unwrap(), expected, "{row}");
        seen += 1;
    }
    assert_eq!(seen, 12);
}

#[test]
fn ratios_of_quantiles() {
    let mut seen = 0;
    for row in rows("quantile_ratios") {
        let pairs = numbers(row, "baseline").into_iter().zip(numbers(row, "contender"));
        let logs: Vec<f64> = pairs.map(|(b, c)| epoch_log_ratio(&[b], &[c]).unwrap().trimmed()).collect();
        let sample = Sample::of(&logs).unwrap();
        let (low, high) = sample.t_interval(number(row, "alpha")).unwrap().as_ratios();
        assert_near(row, ["ratio", "low", "high"], [sample.mean.exp(), low.unwrap(), high.unwrap()]);
        seen += 1;
    }
    assert_eq!(seen, 3);
}

#[test]
fn climbs_within_epochs() {
    let mut seen = 0;
    for row in rows("slopes") {
        let mut rates = numbers(row, "rates").into_iter();
        let epochs: Vec<Vec<f64>> =
            numbers(row, "lengths").into_iter().map(|n| rates.by_ref().take(n as usize).collect()).collect();
        let found = climbs(&epochs, STEADY, number(row, "alpha")).unwrap();
        assert_near(row, ["change", "low", "high"], [found.change, found.low, found.high]);
        seen += 1;
    }
    assert_eq!(seen, 4);
}
