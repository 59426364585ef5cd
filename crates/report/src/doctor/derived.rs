//! What can be told apart on a machine, from how a server differed from itself.
//!
//! Owns the way from a spread to epochs, minutes and a sentence. Must not know the machine.

use deadheat_record::{NoiseFloor, Resolution};
use deadheat_stats::{interval, spread};

use super::DIFFERENCES;
use crate::number::{percent, whole};

/// No race ends before its first look.
const FEWEST_EPOCHS: usize = 4;
/// A race that may stop at several looks takes so many times the epochs of one that is looked at once: it sees about a tenth less far
/// (`deadheat_stats::interval::detectable_ratio`), and epochs go with the square.
const LOOKS: f64 = 1.21;
/// What a person waits for without going away.
const PATIENCE_MINUTES: f64 = 3.0;
/// The chance with which the true spread lies in its range.
const LEVEL: f64 = 0.9;

pub(super) fn sd_range(floor: &NoiseFloor) -> Option<(f64, f64)> {
    spread::sd_interval(floor.sd_log_ratio?, floor.epochs, LEVEL)
}

pub(super) fn resolution(floor: &NoiseFloor) -> Vec<Resolution> {
    let Some(sd) = floor.sd_log_ratio else { return Vec::new() };
    let one = |difference: f64| {
        let needed = interval::epochs_needed(sd, floor.alpha, difference.ln_1p());
        let epochs = needed.map(|epochs| ((epochs as f64 * LOOKS).ceil() as usize).max(FEWEST_EPOCHS));
        Resolution { difference, epochs, minutes: epochs.map(|epochs| epochs as f64 * floor.epoch_s / 60.0) }
    };
    DIFFERENCES.map(one).into()
}

/// The least that can be told apart without much waiting; else the most, with its time.
pub(super) fn sentence(resolution: &[Resolution]) -> String {
    let soon = |one: &&Resolution| one.minutes.is_some_and(|minutes| minutes <= PATIENCE_MINUTES);
    let said = |one: &Resolution| {
        let minutes = one.minutes?;
        let shown = if minutes < 10.0 { format!("{minutes:.1}") } else { whole(minutes.round() as u64) };
        let what = percent(one.difference);
        Some(format!("on this machine, now, {what} can be told apart in {shown} minutes"))
    };
    let best = resolution.iter().find(soon).or(resolution.last());
    best.and_then(said).unwrap_or_else(|| match resolution.last() {
        Some(largest) => {
            format!("on this machine, now, not even {} can be told apart", percent(largest.difference))
        }
        None => "what can be told apart on this machine is not known: too few epochs".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(difference: f64, epochs: Option<usize>, minutes: Option<f64>) -> Resolution {
        Resolution { difference, epochs, minutes }
    }

    #[test]
    fn the_sentence_names_the_least_that_does_not_take_long() {
        let quiet =
            [at(0.01, Some(60), Some(6.0)), at(0.02, Some(17), Some(1.74)), at(0.1, Some(4), Some(0.4))];
        assert_eq!(sentence(&quiet), "on this machine, now, 2 % can be told apart in 1.7 minutes");
        let noisy = [at(0.01, None, None), at(0.1, Some(700), Some(71.4))];
        assert_eq!(sentence(&noisy), "on this machine, now, 10 % can be told apart in 71 minutes");
        assert_eq!(sentence(&[at(0.1, None, None)]), "on this machine, now, not even 10 % can be told apart");
        assert!(sentence(&[]).contains("not known"));
    }
}
