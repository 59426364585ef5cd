//! Owns: when requests are due. Pure values without clock or sockets; times are nanoseconds after the slice's start.

mod parse;
mod rate;

use std::iter::FusedIterator;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use rate::Piece;
pub use rate::{Rate, RateError, Stage};

/// When requests are due.
#[derive(Debug, Clone, PartialEq)]
pub enum Pacer {
    /// A connection sends its next request as soon as it has received its answer.
    Closed,
    /// Requests are due independently of the server.
    Open {
        /// Requests per second over all connections, as a function of the time since the slice's start.
        rate: Rate,
        /// How the due times are distributed.
        arrivals: Arrivals,
    },
}

/// How the due times of an open pacer are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly: the k-th request, from 0, is due as soon as more than k are offered; at a steady rate, at k / rate.
    Constant,
    /// A Poisson process with the rate as its intensity: independent users.
    Poisson {
        /// Determines the due times. The same seed gives the same times for any number of workers.
        seed: u64,
    },
}

impl Pacer {
    /// The due times of an open pacer; `None` for [`Pacer::Closed`].
    pub fn due_times(&self) -> Option<DueTimes> {
        let Pacer::Open { rate, arrivals } = self else { return None };
        let kind = match arrivals {
            Arrivals::Constant => Kind::Constant { index: 0 },
            Arrivals::Poisson { seed } => {
                Kind::Poisson { count: 0.0, random: Box::new(ChaCha8Rng::seed_from_u64(*seed)) }
            }
        };
        Some(DueTimes { pieces: rate.pieces().collect(), current: 0, last_ns: 0, kind })
    }
}

/// The due times of an open pacer, in nanoseconds after the start, in ascending order. They end only if the rate ends
/// at 0.
///
/// Let Λ(t) be the number of requests offered until t ([`Rate::expected`]). For constant arrivals the due times are Λ⁻¹
/// of 0, 1, 2, ... For a Poisson process they are Λ⁻¹ of the arrivals of a process of rate 1 (E. Çinlar, Introduction
/// to Stochastic Processes, 1975, chapter 4, section 7: T are the arrivals of a process with expectation Λ if and only
/// if Λ(T) are the arrivals of a stationary process of rate 1).
#[derive(Debug, Clone)]
pub struct DueTimes {
    pieces: Box<[Piece]>,
    current: usize,
    last_ns: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Constant { index: u64 },
    Poisson { count: f64, random: Box<ChaCha8Rng> },
}

impl DueTimes {
    /// When more than `count` requests are offered. `count` must not fall from call to call.
    #[inline]
    fn due_ns(&mut self, count: f64) -> Option<u64> {
        let piece = loop {
            let piece = self.pieces.get(self.current)?;
            if count < piece.end_count {
                break piece;
            }
            self.current += 1;
        };
        // Rounding in a ramp could make the last bit fall.
        self.last_ns = self.last_ns.max((piece.time_s(count) * 1e9).round() as u64);
        Some(self.last_ns)
    }
}

impl Iterator for DueTimes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.nth(0)
    }

    /// Constant arrivals can be skipped at no cost; for a Poisson process every gap must be drawn.
    #[inline]
    fn nth(&mut self, skip: usize) -> Option<u64> {
        let count = match &mut self.kind {
            Kind::Constant { index } => {
                let count = index.saturating_add(skip as u64);
                *index = count.saturating_add(1);
                count as f64
            }
            Kind::Poisson { count, random } => {
                for _ in 0..=skip {
                    let gap: f64 = Exp1.sample(random);
                    *count += gap;
                }
                *count
            }
        };
        self.due_ns(count)
    }
}

impl FusedIterator for DueTimes {}

#[cfg(test)]
#[path = "pacer/tests.rs"]
mod tests;
