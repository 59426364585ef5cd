//! Axes: their ends and round ticks.
//!
//! Owns: which numbers are round. Must not know: what is measured, or how wide a drawing is.

use deadheat_analysis::number::time_ns;

use super::model::Axis;

impl Axis {
    /// An axis from 0 to slightly above the highest value, with about `most` ticks at round multiples of the unit.
    pub(super) fn from_zero(
        values: impl IntoIterator<Item = f64>,
        (unit, most): (f64, f64),
        label: impl Into<String>,
        format: impl Fn(f64) -> String,
    ) -> Self {
        let high = values.into_iter().fold(0.0, f64::max) * 1.06;
        let high = if high > 0.0 { high } else { unit };
        let ticks = zero_ticks(high / unit, most).into_iter().map(|at| at * unit);
        Self { label: label.into(), log: false, domain: (0.0, high), ticks: labelled(ticks, format) }
    }

    /// A logarithmic axis of times, extended by the factor `room` at each end.
    pub(super) fn of_times(values: impl IntoIterator<Item = f64>, room: f64, label: &str) -> Self {
        let (low, high) = ends(values).unwrap_or((1.0, 10.0));
        let room = room.max((high / low).powf(0.05));
        let (low, high) = (low / room, high * room);
        let ticks = labelled(log_ticks(low, high), |ns| tick(&time_ns(ns)));
        Self { label: label.into(), log: true, domain: (low, high), ticks }
    }
}

/// The smallest and the largest of the positive numbers; none if there are none.
pub(super) fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let positive = values.into_iter().filter(|one| *one > 0.0 && one.is_finite());
    positive.fold(None, |found, one| {
        let (low, high) = found.unwrap_or((one, one));
        Some((low.min(one), high.max(one)))
    })
}

pub(super) fn labelled(
    ticks: impl IntoIterator<Item = f64>,
    format: impl Fn(f64) -> String,
) -> Vec<(f64, String)> {
    let label = |at: f64| (at, if at == 0.0 { "0".into() } else { format(at) });
    ticks.into_iter().map(label).collect()
}

/// The text of a tick: `20 ms` for `20.0 ms`.
pub(crate) fn tick(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let short =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{short} {unit}").trim_end().to_owned()
}

/// The smallest round step that divides a length into at most `most` parts.
fn round_step(length: f64, most: f64) -> f64 {
    let power = 10_f64.powf(length.log10().floor());
    let steps = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0].map(|step| step * power);
    steps.into_iter().find(|step| length / step <= most).unwrap_or(power * 10.0)
}

/// Round numbers from 0 to at most `high`. There are at most about `most` of them.
fn zero_ticks(high: f64, most: f64) -> Vec<f64> {
    if !(high > 0.0 && high.is_finite()) {
        return vec![0.0];
    }
    let step = round_step(high, most);
    (0..).map(|at| f64::from(at) * step).take_while(|tick| *tick <= high * 1.0001).collect()
}

/// Round numbers between two numbers. There are at most about `most` of them, and at least a third as many.
pub(super) fn between(low: f64, high: f64, most: f64) -> Vec<f64> {
    let step = round_step(high - low, most);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|tick| *tick <= high).collect()
}

/// The multiples of each power of ten that lie between two numbers.
pub(crate) fn of_powers(low: f64, high: f64, multiples: &[f64]) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| multiples.iter().map(move |one| one * 10_f64.powi(power)));
    all.filter(|one| (low..=high).contains(one)).collect()
}

/// The multiples of a power of ten that are nearly evenly spaced on a logarithmic axis.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];
const ALL: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

/// Round numbers between two numbers on a logarithmic axis: 1, 2 and 5 of each power of ten. If these are too many, only the powers. If there are
/// fewer than three, 1 to 9 of each power. If there are still fewer than three, round steps. Both ends are positive, and the higher is at least 1.16
/// times the lower.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let powers = of_powers(low, high, &[1.0]);
    let mut finer = [&ROUND[..], &ALL[..]].into_iter().map(|multiples| of_powers(low, high, multiples));
    match finer.find(|ticks| ticks.len() >= 3) {
        Some(ticks) if ticks.len() > 9 && powers.len() >= 3 => powers,
        Some(ticks) => ticks,
        None => between(low, high, 8.0),
    }
}

/// About eight round ratios between two ratios.
pub(super) fn ratio_ticks(low: f64, high: f64) -> Vec<f64> {
    if high / low > 4.0 {
        return log_ticks(low, high);
    }
    let steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    let step = steps.into_iter().find(|step| (high - low) / step <= 9.0).unwrap_or(1.0);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|one| *one <= high).collect()
}

#[cfg(test)]
mod tests {
    use deadheat_analysis::number::ratio;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_from_zero_are_round_and_few() {
        assert_eq!(zero_ticks(17_300.0, 3.0), [0.0, 10_000.0]);
        assert_eq!(zero_ticks(85.8, 7.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(zero_ticks(0.0, 7.0), [0.0]);
        assert_eq!(
            ["20.0 ms", "1.25 s", "100 ms", "0", "11,400"].map(tick),
            ["20 ms", "1.25 s", "100 ms", "0", "11,400"]
        );
    }

    #[test]
    fn ticks_of_ratios_are_round_and_few() {
        let shown = |low, high| ratio_ticks(low, high).iter().map(|one| ratio(*one, 2)).collect::<Vec<_>>();
        assert_eq!(shown(0.93, 1.12), ["0.95", "1.00", "1.05", "1.10"]);
        assert_eq!(shown(0.4, 12.0), ["0.50", "1.00", "2.00", "5.00", "10.0"]);
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_are_as_round_as_there_is_room() {
        let shown = |low, high| log_ticks(low, high).iter().map(|ns| tick(&time_ns(*ns))).collect::<Vec<_>>();
        assert_eq!(shown(0.9e6, 1.1e7), ["1 ms", "2 ms", "5 ms", "10 ms"]);
        assert_eq!(shown(5.1e6, 9.9e6), ["6 ms", "7 ms", "8 ms", "9 ms"]);
        assert_eq!(shown(3.3e6, 9.0e6), ["4 ms", "5 ms", "6 ms", "7 ms", "8 ms", "9 ms"]);
        assert_eq!(shown(5.1e6, 6.2e6), ["5.2 ms", "5.4 ms", "5.6 ms", "5.8 ms", "6 ms", "6.2 ms"]);
        assert_eq!(shown(0.9e3, 1.1e7), ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
    }

    proptest! {
        /// The room that a figure leaves around its times makes the higher end at least 1.16 times the lower one.
        #[test]
        fn a_logarithmic_axis_has_labels(low in 0.9..1e11_f64, decades in 0.066..9.0_f64) {
            let high = low * 10_f64.powf(decades);
            let ticks = log_ticks(low, high);
            prop_assert!(ticks.len() >= 3 && ticks.len() <= 10, "{ticks:?}");
            prop_assert!(ticks.iter().all(|one| (low..=high).contains(one)), "{ticks:?}");
            let labels: Vec<String> = ticks.iter().map(|ns| tick(&time_ns(*ns))).collect();
            prop_assert!(labels.windows(2).all(|two| two[0] != two[1]), "{labels:?}");
        }
    }
}
