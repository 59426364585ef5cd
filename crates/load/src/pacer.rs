//! Owns: when requests are due. Pure values without clock or sockets; times are nanoseconds after the slice's start.

mod parse;
mod rate;
mod recorded;

use std::iter::FusedIterator;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use rate::Piece;
pub use rate::{Rate, RateError, Stage};
pub use recorded::{RecordedTimes, RecordedTimesError};

/// When requests are due.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
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
    /// Requests are due independently of the server, when clients once sent them.
    Recorded {
        /// When they were sent.
        #[serde(with = "crate::shared")]
        times: Arc<RecordedTimes>,
        /// The recorded time at which the slice begins. The slice's first request is the one at
        /// [`RecordedTimes::position_at`] this time.
        from_ns: u64,
        /// How many times as fast as they were sent; above 0 and finite.
        speed: f64,
    },
}

/// How the due times of an open pacer are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
        let kind = match self {
            Pacer::Closed => return None,
            Pacer::Open { rate, arrivals: Arrivals::Constant } => {
                Kind::Constant { offered: Offered::of(rate), index: 0 }
            }
            Pacer::Open { rate, arrivals: Arrivals::Poisson { seed } } => Kind::Poisson {
                offered: Offered::of(rate),
                count: 0.0,
                random: Box::new(ChaCha8Rng::seed_from_u64(*seed)),
            },
            Pacer::Recorded { times, from_ns, speed } => Kind::Recorded {
                position: times.position_at(*from_ns),
                times: times.clone(),
                from_ns: *from_ns,
                speed: *speed,
            },
        };
        Some(DueTimes(kind))
    }

    /// How many requests are due until `t_s` seconds after the start; 0 for [`Pacer::Closed`].
    pub fn expected(&self, t_s: f64) -> f64 {
        match self {
            Pacer::Closed => 0.0,
            Pacer::Open { rate, .. } => rate.expected(t_s),
            Pacer::Recorded { times, from_ns, speed } => times.count_within(*from_ns, t_s * speed),
        }
    }

    /// Requests per second that are due at `t_s` seconds after the start; 0 for [`Pacer::Closed`]. Of recorded times:
    /// the mean over the second around it.
    pub fn rate_at(&self, t_s: f64) -> f64 {
        match self {
            Pacer::Closed => 0.0,
            Pacer::Open { rate, .. } => rate.at(t_s),
            Pacer::Recorded { .. } => {
                let (from_s, until_s) = ((t_s - 0.5).max(0.0), t_s + 0.5);
                (self.expected(until_s) - self.expected(from_s)) / (until_s - from_s)
            }
        }
    }

    /// Mean requests per second over a run of this length, in seconds above 0; 0 for [`Pacer::Closed`].
    pub fn mean_over(&self, length_s: f64) -> f64 {
        if length_s > 0.0 { self.expected(length_s) / length_s } else { self.rate_at(0.0) }
    }
}

/// The due times of an open pacer, in nanoseconds after the start, in ascending order. They end only if a rate ends at
/// 0; recorded times begin again after the last one.
///
/// Let Λ(t) be the number of requests offered until t ([`Rate::expected`]). For constant arrivals the due times are Λ⁻¹
/// of 0, 1, 2, ... For a Poisson process they are Λ⁻¹ of the arrivals of a process of rate 1 (E. Çinlar, Introduction
/// to Stochastic Processes, 1975, chapter 4, section 7: T are the arrivals of a process with expectation Λ if and only
/// if Λ(T) are the arrivals of a stationary process of rate 1).
#[derive(Debug, Clone)]
pub struct DueTimes(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Constant { offered: Offered, index: u64 },
    Poisson { offered: Offered, count: f64, random: Box<ChaCha8Rng> },
    Recorded { times: Arc<RecordedTimes>, position: u64, from_ns: u64, speed: f64 },
}

/// The number of requests that a rate offers, over time.
#[derive(Debug, Clone)]
struct Offered {
    pieces: Box<[Piece]>,
    current: usize,
    last_ns: u64,
}

impl Offered {
    fn of(rate: &Rate) -> Offered {
        Offered { pieces: rate.pieces().collect(), current: 0, last_ns: 0 }
    }

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

    /// Constant and recorded arrivals can be skipped at no cost; for a Poisson process every gap must be drawn.
    #[inline]
    fn nth(&mut self, skip: usize) -> Option<u64> {
        match &mut self.0 {
            Kind::Constant { offered, index } => {
                let count = index.saturating_add(skip as u64);
                *index = count.saturating_add(1);
                offered.due_ns(count as f64)
            }
            Kind::Poisson { offered, count, random } => {
                for _ in 0..=skip {
                    let gap: f64 = Exp1.sample(random);
                    *count += gap;
                }
                offered.due_ns(*count)
            }
            Kind::Recorded { times, position, from_ns, speed } => {
                let here = position.saturating_add(skip as u64);
                *position = here.saturating_add(1);
                let since_ns = times.at_ns(here).saturating_sub(*from_ns);
                Some((since_ns as f64 / *speed).round() as u64)
            }
        }
    }
}

impl FusedIterator for DueTimes {}

#[cfg(test)]
#[path = "pacer/tests.rs"]
mod tests;
