//! Owns: when requests are due. A pure value: no clock, no sockets; times are nanoseconds after the slice's start.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

/// When requests are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacer {
    /// A connection sends its next request as soon as it has its answer.
    Closed,
    /// Request k is due k / rate after the start, whatever the server does.
    Constant {
        /// Requests per second over all connections; above 0.
        rate_per_s: f64,
    },
    /// Gaps between due times are exponential with mean 1 / rate: users who know nothing of each other.
    Poisson {
        /// Mean requests per second over all connections; above 0.
        rate_per_s: f64,
        /// Decides the due times; the same seed gives the same times whatever the number of workers.
        seed: u64,
    },
}

impl Pacer {
    /// The due times of an open pacer; `None` for [`Pacer::Closed`], which has none.
    pub fn arrivals(self) -> Option<Arrivals> {
        match self {
            Pacer::Closed => None,
            Pacer::Constant { rate_per_s } => {
                Some(Arrivals { rate_per_s, kind: Kind::Constant { index: 0 } })
            }
            Pacer::Poisson { rate_per_s, seed } => {
                let random = Box::new(ChaCha8Rng::seed_from_u64(seed));
                Some(Arrivals { rate_per_s, kind: Kind::Poisson { at_s: 0.0, random } })
            }
        }
    }

    /// Requests offered per second, or `None` where the server decides.
    pub fn rate_per_s(self) -> Option<f64> {
        match self {
            Pacer::Closed => None,
            Pacer::Constant { rate_per_s } | Pacer::Poisson { rate_per_s, .. } => Some(rate_per_s),
        }
    }
}

/// The due times of an open pacer, in nanoseconds after the start, without end and never falling.
#[derive(Debug, Clone)]
pub struct Arrivals {
    rate_per_s: f64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Constant { index: u64 },
    Poisson { at_s: f64, random: Box<ChaCha8Rng> },
}

impl Iterator for Arrivals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let due_s = match &mut self.kind {
            Kind::Constant { index } => {
                let due_s = *index as f64 / self.rate_per_s;
                *index += 1;
                due_s
            }
            Kind::Poisson { at_s, random } => {
                let gap: f64 = Exp1.sample(random);
                *at_s += gap / self.rate_per_s;
                *at_s
            }
        };
        Some((due_s * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_due_times() {
        for (rate_per_s, wanted) in [
            (1.0, [0, 1_000_000_000, 2_000_000_000, 3_000_000_000]),
            (1000.0, [0, 1_000_000, 2_000_000, 3_000_000]),
            (3.0, [0, 333_333_333, 666_666_667, 1_000_000_000]),
            (0.5, [0, 2_000_000_000, 4_000_000_000, 6_000_000_000]),
        ] {
            let due: Vec<u64> = Pacer::Constant { rate_per_s }.arrivals().unwrap().take(4).collect();
            assert_eq!(due, wanted, "{rate_per_s}");
        }
    }

    #[test]
    fn constant_does_not_drift() {
        let last = Pacer::Constant { rate_per_s: 30_000.0 }.arrivals().unwrap().nth(3_000_000);
        assert_eq!(last, Some(100_000_000_000));
    }

    #[test]
    fn poisson_has_exponential_gaps() {
        let due: Vec<u64> =
            Pacer::Poisson { rate_per_s: 1e4, seed: 7 }.arrivals().unwrap().take(100_000).collect();
        let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!((mean / 1e5 - 1.0).abs() < 0.02, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation}");
        let beyond = gaps.iter().filter(|&&g| g > 1e5).count() as f64 / n;
        assert!((beyond - (-1.0f64).exp()).abs() < 0.01, "{beyond}");
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| -> Vec<u64> {
            Pacer::Poisson { rate_per_s: 100.0, seed }.arrivals().unwrap().take(50).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn closed_has_no_due_times() {
        assert!(Pacer::Closed.arrivals().is_none());
        assert_eq!(Pacer::Closed.rate_per_s(), None);
        assert_eq!(Pacer::Constant { rate_per_s: 5.0 }.rate_per_s(), Some(5.0));
    }
}
