//! Owns: which prepared request is at which position. Must not know the content of requests, nor when they are sent.

use rand::SeedableRng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use rand_chacha::ChaCha8Rng;
use rand_distr::Zipf;

use crate::request::Prepared;

/// A sequence of prepared requests, repeated without end. A position means the same request for every server.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "(Vec<Prepared>, Vec<u32>)", into = "(Vec<Prepared>, Vec<u32>)")]
pub struct Requests {
    prepared: Vec<Prepared>,
    order: Vec<u32>,
}

impl From<Requests> for (Vec<Prepared>, Vec<u32>) {
    fn from(requests: Requests) -> Self {
        (requests.prepared, requests.order)
    }
}

impl TryFrom<(Vec<Prepared>, Vec<u32>)> for Requests {
    type Error = RequestsError;

    fn try_from((prepared, order): (Vec<Prepared>, Vec<u32>)) -> Result<Requests, RequestsError> {
        Requests::ordered(prepared, order)
    }
}

/// Why a sequence of requests could not be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestsError {
    /// There is no request, or the order has no positions.
    #[error("a sequence needs at least one request and one position")]
    Empty,
    /// The order names a request that does not exist.
    #[error("position {position} of the order names request {index}, but there are only {count}")]
    Index {
        /// Position in the order.
        position: usize,
        /// The index found at that position.
        index: u32,
        /// How many requests there are.
        count: usize,
    },
    /// A weight is negative or not finite, or all are zero.
    #[error("weights must be finite and not negative, and at least one must be above zero")]
    Weights,
    /// The exponent of a Zipf distribution is negative or not finite.
    #[error("the exponent of a Zipf distribution must be finite and not negative, such as 1")]
    Exponent,
}

impl Requests {
    /// The same request, repeated.
    pub fn one(prepared: Prepared) -> Requests {
        Requests { prepared: vec![prepared], order: vec![0] }
    }

    /// Each request once, in the order given, then from the beginning again.
    ///
    /// # Errors
    /// [`RequestsError::Empty`] if there is no request.
    pub fn in_turn(prepared: Vec<Prepared>) -> Result<Requests, RequestsError> {
        let order = (0..prepared.len() as u32).collect();
        Requests::ordered(prepared, order)
    }

    /// The requests in an explicit order: each entry is an index into `prepared`.
    ///
    /// # Errors
    /// [`RequestsError::Empty`] or [`RequestsError::Index`].
    pub fn ordered(prepared: Vec<Prepared>, order: Vec<u32>) -> Result<Requests, RequestsError> {
        if prepared.is_empty() || order.is_empty() {
            return Err(RequestsError::Empty);
        }
        let count = prepared.len();
        match order.iter().position(|&index| index as usize >= count) {
            Some(position) => Err(RequestsError::Index { position, index: order[position], count }),
            None => Ok(Requests { prepared, order }),
        }
    }

    /// `length` positions drawn independently, each request with a probability proportional to its weight. The same
    /// seed gives the same order on every machine.
    ///
    /// # Errors
    /// [`RequestsError::Empty`] or [`RequestsError::Weights`].
    pub fn weighted(
        weighted: Vec<(Prepared, f64)>,
        length: usize,
        seed: u64,
    ) -> Result<Requests, RequestsError> {
        if weighted.is_empty() || length == 0 {
            return Err(RequestsError::Empty);
        }
        let (prepared, weights): (Vec<_>, Vec<_>) = weighted.into_iter().unzip();
        if !weights.iter().all(|w| w.is_finite()) {
            return Err(RequestsError::Weights);
        }
        let draw = WeightedIndex::new(weights).map_err(|_| RequestsError::Weights)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let order = (0..length).map(|_| draw.sample(&mut random) as u32).collect();
        Requests::ordered(prepared, order)
    }

    /// `length` positions drawn independently from a Zipf distribution: the k-th request of the list, from 1, with a
    /// probability proportional to k^-`exponent`. With 0 all are equally likely; the popularity of pages and files
    /// often has an exponent near 1. The same seed gives the same order.
    ///
    /// # Errors
    /// [`RequestsError::Empty`] or [`RequestsError::Exponent`].
    pub fn zipf(
        prepared: Vec<Prepared>,
        exponent: f64,
        length: usize,
        seed: u64,
    ) -> Result<Requests, RequestsError> {
        if prepared.is_empty() || length == 0 {
            return Err(RequestsError::Empty);
        }
        // The general formula divides by the exponent's distance from 1, and is imprecise close to it.
        let exponent = if (exponent - 1.0).abs() < 1e-9 { 1.0 } else { exponent };
        let draw = Zipf::new(prepared.len() as f64, exponent).ok().filter(|_| exponent.is_finite());
        let draw = draw.ok_or(RequestsError::Exponent)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let most = prepared.len() as u32 - 1;
        // Ranks are integers from 1 to the length of the list.
        let order =
            (0..length).map(|_| (draw.sample(&mut random) as u32).saturating_sub(1).min(most)).collect();
        Requests::ordered(prepared, order)
    }

    /// The distinct requests. Samples and mismatches refer to them by index.
    pub fn prepared(&self) -> &[Prepared] {
        &self.prepared
    }

    /// Number of positions before the sequence repeats; at least 1.
    pub fn cycle(&self) -> u64 {
        self.order.len() as u64
    }

    /// Index into [`Requests::prepared`] of the request at `position`, which may have any value because the sequence
    /// repeats.
    pub fn at(&self, position: u64) -> u32 {
        if self.order.len() == 1 { self.order[0] } else { self.order[(position % self.cycle()) as usize] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Expectation;

    fn named(name: u8) -> Prepared {
        Prepared { bytes: vec![name], head: false, expect: Expectation::ANY }
    }

    fn first(requests: &Requests, count: u64) -> Vec<u32> {
        (0..count).map(|position| requests.at(position)).collect()
    }

    #[test]
    fn sequences_are_cycled() {
        assert_eq!(first(&Requests::one(named(0)), 3), [0, 0, 0]);
        let turn = Requests::in_turn(vec![named(0), named(1), named(2)]).unwrap();
        assert_eq!(first(&turn, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(turn.at(u64::MAX), (u64::MAX % 3) as u32);
    }

    #[test]
    fn weights_hold_and_the_seed_decides() {
        let make =
            |seed| Requests::weighted(vec![(named(0), 3.0), (named(1), 1.0), (named(2), 0.0)], 8000, seed);
        let (a, b, c) = (make(1).unwrap(), make(1).unwrap(), make(2).unwrap());
        assert_eq!(a.order, b.order);
        assert_ne!(a.order, c.order);
        let ones = a.order.iter().filter(|&&i| i == 1).count();
        assert!((1800..2200).contains(&ones), "{ones}");
        assert!(!a.order.contains(&2));
        // Pinned: if this sequence changed, old and new records would not be comparable.
        assert_eq!(first(&a, 16), PINNED);
    }

    const PINNED: [u32; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn a_zipf_list_falls_off_as_its_exponent_says() {
        let list = |count: u8| (0..count).map(named).collect::<Vec<_>>();
        for exponent in [0.0, 0.8, 1.0, 2.0] {
            let order = Requests::zipf(list(100), exponent, 200_000, 7).unwrap().order;
            let mut counts = [0u32; 100];
            order.iter().for_each(|&index| counts[index as usize] += 1);
            let weights: Vec<f64> = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).collect();
            let unit = order.len() as f64 / weights.iter().sum::<f64>();
            // Pearson's statistic: with 99 degrees of freedom it exceeds 160 in only one of 10,000 cases.
            let terms = counts
                .iter()
                .zip(&weights)
                .map(|(count, weight)| (f64::from(*count) - weight * unit).powi(2) / (weight * unit));
            let distance: f64 = terms.sum();
            assert!(distance < 160.0, "{exponent}: {distance}");
        }
        let make = |seed| Requests::zipf(list(5), 1.0, 100, seed).unwrap();
        assert_eq!(make(1).order, make(1).order);
        assert_ne!(make(1).order, make(2).order);
        assert_eq!(first(&Requests::zipf(list(1), 1.5, 3, 1).unwrap(), 3), [0, 0, 0]);
        // Pinned: if this sequence changed, old and new records would not be comparable.
        assert_eq!(first(&make(1), 16), [1, 1, 0, 1, 3, 1, 0, 1, 4, 4, 0, 1, 0, 1, 0, 4]);
        assert_eq!(Requests::zipf(list(5), 1.0 + f64::EPSILON, 100, 1).unwrap().order, make(1).order);
        for exponent in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Requests::zipf(list(2), exponent, 5, 1).unwrap_err(), RequestsError::Exponent);
        }
        assert_eq!(Requests::zipf(vec![], 1.0, 5, 1).unwrap_err(), RequestsError::Empty);
        assert_eq!(Requests::zipf(list(2), 1.0, 0, 1).unwrap_err(), RequestsError::Empty);
    }

    #[test]
    fn refuses_nonsense() {
        assert_eq!(Requests::in_turn(vec![]).unwrap_err(), RequestsError::Empty);
        assert_eq!(Requests::weighted(vec![(named(0), 1.0)], 0, 1).unwrap_err(), RequestsError::Empty);
        for weights in [[0.0, 0.0], [-1.0, 2.0], [f64::NAN, 1.0], [f64::INFINITY, 1.0]] {
            let list = weights.iter().map(|&w| (named(0), w)).collect();
            assert_eq!(Requests::weighted(list, 5, 1).unwrap_err(), RequestsError::Weights, "{weights:?}");
        }
        let wrong = Requests::ordered(vec![named(0)], vec![0, 1]).unwrap_err();
        assert_eq!(wrong, RequestsError::Index { position: 1, index: 1, count: 1 });
    }
}
