//! The crate against a second implementation in another language: see `tests/reference/README.md`.
//!
//! Owns the comparison. It must not know how either side computes its figures.
// The lint lets tests unwrap, but not what they share.
#![allow(clippy::unwrap_used)]

use deadheat_stats::boundary::{DEFAULT_PATHS, Paths, quadratic_spend, spent_by};
use deadheat_stats::{mser5, student};

const REFERENCE: &str = include_str!("reference/reference.json");

/// The rows (one line each) of the list under `key`.
fn rows(key: &str) -> impl Iterator<Item = &'static str> {
    let list = REFERENCE.split_once(&format!("\"{key}\": [\n")).unwrap().1.split_once("\n  ]").unwrap().0;
    list.lines().map(str::trim)
}

/// The text of a field of a row: up to the next field, or all of a list.
fn field<'a>(row: &'a str, key: &str) -> &'a str {
    let rest = row.split_once(&format!("\"{key}\": ")).unwrap().1;
    match rest.strip_prefix('[') {
        Some(list) => list.split_once(']').unwrap().0,
        None => rest.split([',', '}']).next().unwrap(),
    }
}

fn numbers(row: &str, key: &str) -> Vec<f64> {
    field(row, key).split(',').map(|x| x.trim().parse().unwrap()).collect()
}

fn number(row: &str, key: &str) -> f64 {
    numbers(row, key)[0]
}

#[test]
fn student_quantiles() {
    let mut seen = 0;
    for row in rows("quantiles") {
        let found = student::upper_quantile(number(row, "tail"), number(row, "df") as usize);
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
fn boundaries() {
    let mut seen = 0;
    for row in rows("boundaries") {
        let looks: Vec<usize> = numbers(row, "looks").iter().map(|&n| n as usize).collect();
        let (alpha, max) = (number(row, "alpha"), number(row, "max") as usize);
        let last = *looks.last().unwrap();
        let paths = Paths::simulate(&looks, 7, DEFAULT_PATHS, alpha);
        let mut spend = quadratic_spend(&looks, max);
        let found = if last == max {
            paths.boundaries(alpha, &spend).values().to_vec()
        } else {
            // A last look that was not planned: the looks before it keep their values.
            let left = alpha * (1.0 - spent_by(looks[looks.len() - 2], max));
            let mut earlier = paths.boundaries(alpha, &spend[..spend.len() - 1]).values().to_vec();
            earlier.push(paths.last_boundary(&earlier, left));
            // Spending all at the last look must come to the same.
            *spend.last_mut().unwrap() = 1.0;
            assert_eq!(paths.boundaries(alpha, &spend).values(), earlier);
            earlier
        };
        for (value, expected) in found.iter().zip(numbers(row, "values")) {
            assert!((value / expected - 1.0).abs() < 0.015, "{found:?} against {row}");
        }
        println!("{found:.3?} against {row}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}
