//! The latency that users see behind a cache: quantiles of a mixture of hits and misses.
//!
//! Owns the model's arithmetic: a hit takes the edge's time, a miss the edge's plus the origin's. It must not know how the
//! origin's latencies were measured.

/// The time within which a share `q` of all users have their answer, in the unit of `edge`. A hit takes `edge`, a miss `edge` plus
/// the origin's time. `q` and `hit_rate` in [0, 1); `origin` gives the origin's quantile at a share in [0, 1].
pub fn quantile(q: f64, hit_rate: f64, edge: f64, origin: impl Fn(f64) -> f64) -> f64 {
    if q <= hit_rate { edge } else { edge + origin(((q - hit_rate) / (1.0 - hit_rate)).clamp(0.0, 1.0)) }
}

/// The mean over all users, in the unit of `edge`.
pub fn mean(hit_rate: f64, edge: f64, origin_mean: f64) -> f64 {
    edge + (1.0 - hit_rate) * origin_mean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        // An origin that is uniform over 0 to 100: of 92 % hits, p95 is its quantile at 3/8, p99 that at 7/8.
        let at = |q| quantile(q, 0.92, 10.0, |share| share * 100.0);
        assert_eq!((at(0.5), at(0.92)), (10.0, 10.0));
        assert!((at(0.95) - 47.5).abs() < 1e-9 && (at(0.99) - 97.5).abs() < 1e-9);
        assert!((mean(0.92, 10.0, 50.0) - 14.0).abs() < 1e-12);
        assert_eq!(quantile(0.5, 0.0, 0.0, |share| share), 0.5);
    }

    proptest! {
        /// Compares with drawn values: `hits` hits, and the origin's values for the rest.
        #[test]
        fn quantiles_of_the_mixture_are_those_of_a_drawn_one(
            mut origin in prop::collection::vec(0.0_f64..100.0, 50..200), hits in 0_usize..500, q in 0.01_f64..0.99
        ) {
            origin.sort_by(f64::total_cmp);
            let n = origin.len();
            let at = |share: f64| origin[((share * n as f64).ceil() as usize).clamp(1, n) - 1];
            let hit_rate = hits as f64 / (hits + n) as f64;
            let mut drawn: Vec<f64> = vec![5.0; hits];
            drawn.extend(origin.iter().map(|value| 5.0 + value));
            drawn.sort_by(f64::total_cmp);
            let place = ((q * drawn.len() as f64).ceil() as usize).clamp(1, drawn.len());
            let found = quantile(q, hit_rate, 5.0, at);
            // A share on the border between two values may select either.
            let near = [place.saturating_sub(2), place - 1, place.min(drawn.len() - 1)].map(|index| drawn[index]);
            prop_assert!(near.iter().any(|one| (one - found).abs() < 1e-9), "{found} {near:?}");
        }
    }
}
