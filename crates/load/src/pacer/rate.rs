//! Owns: a rate as a function of time, and the number of requests that it offers. Must not know its text form, nor
//! clocks.

use std::time::Duration;

/// The highest rate, in requests per second, because due times are whole nanoseconds.
pub(super) const HIGHEST_PER_S: f64 = 1e9;

/// Requests per second as a function of the time since the start, given as consecutive stages. The final rate of the
/// last stage continues without end; if it is 0, no more requests are offered.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<Stage>", into = "Vec<Stage>")]
pub struct Rate {
    stages: Vec<Stage>,
}

impl From<Rate> for Vec<Stage> {
    fn from(rate: Rate) -> Self {
        rate.stages
    }
}

impl TryFrom<Vec<Stage>> for Rate {
    type Error = RateError;

    fn try_from(stages: Vec<Stage>) -> Result<Rate, RateError> {
        Rate::stages(stages)
    }
}

/// A period in which the rate is constant or changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stage {
    /// Length of the stage. It may be 0 only for a steady last stage, which continues without end anyway.
    pub duration: Duration,
    /// Requests per second at its beginning, from 0 to 10^9.
    pub from_per_s: f64,
    /// Requests per second at its end, from 0 to 10^9.
    pub to_per_s: f64,
}

/// Why a rate is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RateError {
    /// There is no stage.
    #[error("a rate needs at least one stage, such as 2000 or 100..5000:10s")]
    NoStage,
    /// A stage begins or ends with a value that is not a rate.
    #[error("stage {stage}: {found} is not a rate: allowed are 0 to 1000000000 requests per second")]
    Value {
        /// Number of the stage, from 1.
        stage: usize,
        /// The value.
        found: f64,
    },
    /// A stage has no duration and is not the last, or is a ramp.
    #[error("stage {stage} lasts no time: give it a duration above 0; only a steady last stage may lack it")]
    NoDuration {
        /// Number of the stage, from 1.
        stage: usize,
    },
    /// All stages have rate 0.
    #[error("the rate is 0 all the time: at least one stage must offer requests")]
    Nothing,
    /// A text does not have the form of a rate.
    #[error("at character {position} of the rate: found {found}; allowed is {allowed}")]
    Syntax {
        /// Position in characters, from 1.
        position: usize,
        /// The text found there.
        found: String,
        /// The text allowed there.
        allowed: &'static str,
    },
}

impl Rate {
    /// A constant rate, in requests per second.
    ///
    /// # Errors
    /// [`RateError`] unless the rate is above 0 and at most 10^9.
    pub fn constant(rate_per_s: f64) -> Result<Rate, RateError> {
        Rate::stages(vec![Stage { duration: Duration::ZERO, from_per_s: rate_per_s, to_per_s: rate_per_s }])
    }

    /// A rate of consecutive stages.
    ///
    /// # Errors
    /// [`RateError`] unless all rates are from 0 to 10^9, at least one is above 0, and all stages have a duration. A
    /// steady last stage needs none.
    pub fn stages(stages: Vec<Stage>) -> Result<Rate, RateError> {
        if stages.is_empty() {
            return Err(RateError::NoStage);
        }
        for (index, stage) in stages.iter().enumerate() {
            let allowed = |rate: &f64| (0.0..=HIGHEST_PER_S).contains(rate);
            if let Some(found) = [stage.from_per_s, stage.to_per_s].into_iter().find(|rate| !allowed(rate)) {
                return Err(RateError::Value { stage: index + 1, found });
            }
            let endless = index + 1 == stages.len() && stage.is_steady();
            if stage.duration.is_zero() && !endless {
                return Err(RateError::NoDuration { stage: index + 1 });
            }
        }
        if stages.iter().all(|stage| stage.from_per_s == 0.0 && stage.to_per_s == 0.0) {
            return Err(RateError::Nothing);
        }
        Ok(Rate { stages })
    }

    /// The stages, in order; at least one.
    pub fn as_stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Requests per second at `t_s` seconds after the start; between two stages, the initial rate of the later one.
    pub fn at(&self, t_s: f64) -> f64 {
        self.piece_at(t_s).map_or(0.0, |piece| piece.rate_per_s(t_s.max(0.0)))
    }

    /// Number of requests offered until `t_s` seconds after the start.
    pub fn expected(&self, t_s: f64) -> f64 {
        let all = || self.pieces().last().map_or(0.0, |piece| piece.end_count);
        self.piece_at(t_s).map_or_else(all, |piece| piece.count(t_s.max(0.0)))
    }

    /// Mean requests per second over a run of this length; for a run of length 0, the initial rate.
    pub fn mean_over(&self, duration: Duration) -> f64 {
        let duration_s = duration.as_secs_f64();
        if duration_s > 0.0 { self.expected(duration_s) / duration_s } else { self.at(0.0) }
    }

    fn piece_at(&self, t_s: f64) -> Option<Piece> {
        self.pieces().find(|piece| t_s < piece.end_s)
    }

    /// The stages as pieces. If the rate does not end at 0, a last piece covers the rest of time.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let last = self.stages.last();
        // The final piece replaces a steady last stage, so that a constant rate is a single piece.
        let steady = last.is_some_and(Stage::is_steady);
        let staged = &self.stages[..self.stages.len() - usize::from(steady)];
        let (mut at_s, mut count) = (0.0, 0.0);
        let rest = last.filter(|stage| stage.to_per_s > 0.0);
        let rest = rest.map(|stage| (f64::INFINITY, stage.to_per_s, stage.to_per_s));
        let finite =
            staged.iter().map(|stage| (stage.duration.as_secs_f64(), stage.from_per_s, stage.to_per_s));
        finite.chain(rest).map(move |(duration_s, from_per_s, to_per_s)| {
            let piece = Piece {
                start_s: at_s,
                end_s: at_s + duration_s,
                start_count: count,
                end_count: count + (from_per_s + to_per_s) / 2.0 * duration_s,
                from_per_s,
                slope: (to_per_s - from_per_s) / duration_s,
            };
            (at_s, count) = (piece.end_s, piece.end_count);
            piece
        })
    }
}

impl Stage {
    /// Whether the rate is constant during the stage.
    pub(super) fn is_steady(&self) -> bool {
        self.from_per_s == self.to_per_s
    }
}

/// A stage with its position in time and in the count of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    start_s: f64,
    end_s: f64,
    start_count: f64,
    /// Requests offered until the end of this piece.
    pub(super) end_count: f64,
    from_per_s: f64,
    /// Requests per second, per second.
    slope: f64,
}

impl Piece {
    fn rate_per_s(&self, t_s: f64) -> f64 {
        self.from_per_s + self.slope * (t_s - self.start_s)
    }

    fn count(&self, t_s: f64) -> f64 {
        let since_s = t_s - self.start_s;
        self.start_count + since_s * (self.from_per_s + self.slope / 2.0 * since_s)
    }

    /// When `count` requests are offered. That must happen within this piece.
    #[inline]
    pub(super) fn time_s(&self, count: f64) -> f64 {
        let more = count - self.start_count;
        if self.slope == 0.0 {
            return self.start_s + more / self.from_per_s;
        }
        // The root of slope / 2 t^2 + from t = more, in the form that stays precise when the slope is small.
        let root = (self.from_per_s * self.from_per_s + 2.0 * self.slope * more).max(0.0).sqrt();
        let sum = self.from_per_s + root;
        // Both are 0 only at the beginning of a ramp from 0.
        if sum > 0.0 { (self.start_s + 2.0 * more / sum).min(self.end_s) } else { self.start_s }
    }
}
