//! Quantiles of Student's t distribution, by tail probability.
//!
//! Owns the only place in the crate that gets a quantile from `statrs`. It must not know what the quantile is for.

use std::cell::RefCell;
use std::collections::HashMap;

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

thread_local! {
    /// Quantiles that are known already, by the bits of tail and degrees: a judgement asks for the same few again and again.
    static KNOWN: RefCell<HashMap<[u64; 2], f64>> = RefCell::default();
}

/// The number of quantiles at which all are forgotten.
const MOST_KNOWN: usize = 4096;

/// The value that a Student t variable with `degrees` degrees of freedom exceeds with probability `tail`.
///
/// `tail` in (0, 0.5] and `degrees` of at least 1, which need not be whole, as in Welch's test. A `tail` of 0 or less, or
/// `degrees` under 1, gives infinity (a bound that nothing passes), a `tail` over 0.5 gives 0. The argument is the tail
/// and not its complement, because 1 - 0.00001 has lost digits that the tail still has.
pub fn upper_quantile(tail: f64, degrees: f64) -> f64 {
    if tail <= 0.0 || tail.is_nan() || degrees.is_nan() || degrees < 1.0 {
        return f64::INFINITY;
    }
    if tail >= 0.5 {
        return 0.0;
    }
    let question = [tail.to_bits(), degrees.to_bits()];
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST_KNOWN && !known.contains_key(&question) {
            known.clear();
        }
        *known.entry(question).or_insert_with(|| by_newton(tail, degrees))
    })
}

/// `tail` in (0, 0.5), `degrees` at least 1.
fn by_newton(tail: f64, degrees: f64) -> f64 {
    let (Ok(student), Ok(normal)) = (StudentsT::new(0.0, 1.0, degrees), Normal::new(0.0, 1.0)) else {
        return f64::INFINITY;
    };
    // Newton's method, because `StudentsT::inverse_cdf` loses digits for many degrees of freedom. The tail is convex in
    // t and the normal quantile lies below t's, so that each step goes up and none overshoots. The distribution is
    // symmetric, and the code uses its lower tail, which keeps its digits.
    let mut t = -normal.inverse_cdf(tail);
    loop {
        let step = (student.cdf(-t) - tail) / student.pdf(t);
        if !step.is_finite() {
            return f64::INFINITY;
        }
        t += step;
        if step <= 1e-13 * t {
            return t;
        }
    }
}

/// P(|T| > t) for a Student t variable with `degrees` degrees of freedom, at least 1: 0 for an infinite t, 1 for 0.
pub fn two_sided_tail(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    StudentsT::new(0.0, 1.0, degrees).map_or(1.0, |student| (2.0 * student.cdf(-t.abs())).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from a printed t table: (tail, degrees, t).
    const PRINTED: [(f64, f64, f64); 12] = [
        (0.025, 1.0, 12.706),
        (0.025, 2.0, 4.303),
        (0.025, 5.0, 2.571),
        (0.025, 9.0, 2.262),
        (0.025, 29.0, 2.045),
        (0.05, 4.0, 2.132),
        (0.1, 5.0, 1.476),
        (0.1, 29.0, 1.311),
        (0.005, 7.0, 3.499),
        (0.005, 120.0, 2.617),
        (0.0005, 5.0, 6.869),
        (0.001, 5.0, 5.893),
    ];

    #[test]
    fn agrees_with_printed_tables() {
        for (tail, degrees, expected) in PRINTED {
            let found = upper_quantile(tail, degrees);
            assert!(
                (found - expected).abs() <= 0.0006,
                "tail {tail}, {degrees} degrees: {found} is not {expected}"
            );
        }
    }

    #[test]
    fn closed_forms_for_one_and_two_degrees() {
        for tail in [0.4, 0.1, 0.01, 1e-4, 1e-7] {
            let cauchy = 1.0 / (std::f64::consts::PI * tail).tan();
            assert!((upper_quantile(tail, 1.0) / cauchy - 1.0).abs() < 1e-9);
            let two: f64 = (1.0 - 2.0 * tail) / (2.0 * tail * (1.0 - tail)).sqrt();
            assert!((upper_quantile(tail, 2.0) / two - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn inverts_the_distribution_function() {
        for degrees in [1.0, 2.0, 5.0, 29.0, 1e3, 1e6] {
            for tail in [0.3, 0.0125, 1e-6] {
                let student = StudentsT::new(0.0, 1.0, degrees).unwrap();
                let back = student.cdf(-upper_quantile(tail, degrees));
                assert!((back / tail - 1.0).abs() < 1e-8, "{degrees} degrees, {tail}: {back}");
            }
        }
    }

    #[test]
    fn limits_are_sane() {
        assert_eq!(upper_quantile(0.0, 5.0), f64::INFINITY);
        assert_eq!(upper_quantile(0.5, 5.0), 0.0);
        assert_eq!(upper_quantile(0.1, 0.0), f64::INFINITY);
    }
}
