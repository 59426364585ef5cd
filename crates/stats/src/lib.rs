//! Numbers in, numbers out: how deadheat turns paired observations into a verdict.
//!
//! Owns the estimators, the intervals, the stopping boundaries and their power, the verdicts, the warm-up cut, the ranking,
//! the search for a peak and the law of scaling. It must not know the metric, the machine or the programs behind the numbers. It reads
//! no clock, file, environment or thread-local randomness: the caller passes a seed.
//!
//! [`referee`] is the entry point for a race; the other modules are its parts, each usable alone.
//!
//! ```
//! use deadheat_stats::{Direction, EpochRatio, Hypothesis, Progress, Referee, StoppingRules, Verdict};
//!
//! let referee = Referee::new(StoppingRules::default())?;
//! // One pair of contenders, six epochs, the contender about 10 % ahead in each.
//! let epochs: Vec<_> =
//!     [1.09_f64, 1.11, 1.10, 1.12, 1.10, 1.09].iter().filter_map(|r| EpochRatio::single(r.ln())).collect();
//! let throughput = Hypothesis { pair: (0, 1), metric: 0, epochs: &epochs, direction: Direction::MoreIsBetter };
//! let judgement = referee.judge(&[throughput], Progress::Running)?;
//! assert_eq!(judgement.pairs[0].verdict, Verdict::Faster);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

pub mod average;
pub mod boundary;
pub mod condition;
pub mod groups;
pub mod holm;
pub mod interval;
pub mod letters;
pub mod mixture;
pub mod moderated;
pub mod peak;
pub mod power;
pub mod published;
pub mod ratio;
pub mod referee;
pub mod serial;
pub mod slope;
pub mod spread;
pub mod student;
pub mod usl;
pub mod verdict;
pub mod warmup;
pub mod welch;

pub use boundary::SequentialT;
pub use condition::{Compared, Condition, ConditionKind};
pub use groups::TwoGroups;
pub use interval::{LogInterval, Sample};
pub use letters::compact_letters;
pub use peak::{Peak, PeakEstimate, PeakSearch, PeakSettings};
pub use published::{Published, mean_bounds};
pub use ratio::{EpochRatio, epoch_log_ratio};
pub use referee::{
    Hypothesis, JudgeError, Judgement, Next, PairJudgement, Progress, Referee, RulesError, StoppingRules,
    TooNoisy,
};
pub use serial::Serial;
pub use slope::{Climb, FEWEST_SLOPES, STEADY, STEADY_ALPHA, Slope, climbs, slope};
pub use usl::Usl;
pub use verdict::{Direction, Ruling, Verdict};
pub use warmup::{WarmupLimits, mser5, pilot_cut, warmup_length_s};
pub use welch::{ENDED_BY_ITSELF, Welch, epoch_log_level};
