//! A distribution of times, drawn as columns over a logarithmic axis.
//!
//! Owns: which time falls into which column, and where the axis has ticks. Must not know: what the times belong to.

use deadheat_analysis::number::time_ns;
use deadheat_record::EncodedHistogram;

use crate::figures::{of_powers, tick};
use crate::style::{Style, Tone};
use crate::text::columns;

/// Minimum ratio of the axis' ends, so that a tick of 1, 2 or 5 lies on it.
const LEAST_RATIO: f64 = 6.0;
/// The shortest time that can be drawn; the engine's histograms do not distinguish shorter ones.
const SHORTEST_NS: f64 = 256.0;
/// Columns between two labels.
const GAP: usize = 2;

/// The size and scale of a drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chart {
    /// Columns.
    pub(super) width: usize,
    /// Height of the columns in lines; axis, labels and marks take three more.
    pub(super) height: usize,
}

/// The times of a histogram by column.
struct Bins {
    low_ns: f64,
    high_ns: f64,
    counts: Vec<f64>,
}

impl Chart {
    /// The drawing in `height + 3` lines, none wider than `width`. Empty if the histogram is empty or cannot be read. `marks` are names and times to
    /// point at.
    pub(super) fn lines(
        &self,
        histogram: &EncodedHistogram,
        marks: &[(&str, u64)],
        style: &Style,
    ) -> Vec<String> {
        let Some(bins) = Bins::of(histogram, self.width) else { return Vec::new() };
        let mut lines = bars(&bins.counts, self.height, style);
        let (axis, labels) = bins.axis(style);
        lines.push(style.paint(Tone::Quiet, &axis));
        lines.push(style.paint(Tone::Quiet, &labels));
        let arrow = if style.unicode { '▲' } else { '^' };
        let mut row = Row::new(self.width);
        for (name, ns) in marks {
            let at = bins.place(*ns as f64);
            let left = format!("{name} {arrow}");
            // At the right end, the name is to the left of its arrow.
            let _ = row.put(at, &format!("{arrow} {name}"), 0) || row.put(at, &left, columns(&left) - 1);
        }
        lines.push(row.text());
        lines
    }
}

impl Bins {
    fn of(encoded: &EncodedHistogram, width: usize) -> Option<Self> {
        let histogram = encoded.decode().ok().filter(|histogram| !histogram.is_empty() && width > 0)?;
        let (low, high) = ((histogram.min() as f64).max(SHORTEST_NS), histogram.max() as f64 + 1.0);
        let high = high.max(low);
        let more = (LEAST_RATIO / (high / low)).max(1.0).sqrt();
        let (low_ns, high_ns) = ((low / more).max(SHORTEST_NS), high * more);
        let mut bins = Self { low_ns, high_ns, counts: vec![0.0; width] };
        for value in histogram.iter_recorded() {
            let ns = value.value_iterated_to();
            let (from, to) = (histogram.lowest_equivalent(ns), histogram.next_non_equivalent(ns));
            bins.spread(from as f64, to as f64, value.count_at_value() as f64);
        }
        Some(bins)
    }

    /// Column of a time, with its fraction.
    fn position(&self, ns: f64) -> f64 {
        let share = (ns.max(self.low_ns) / self.low_ns).ln() / (self.high_ns / self.low_ns).ln();
        share.min(1.0) * self.counts.len() as f64
    }

    fn place(&self, ns: f64) -> usize {
        (self.position(ns) as usize).min(self.counts.len() - 1)
    }

    /// Spreads the count of one histogram step over all columns that the step covers. Otherwise columns narrower than a step would turn a smooth
    /// curve into a comb.
    fn spread(&mut self, from: f64, to: f64, count: f64) {
        let (start, end) = (self.position(from), self.position(to));
        let (first, last) = (self.place(from), self.place(to));
        if first == last || end - start < 1e-9 {
            self.counts[first] += count;
            return;
        }
        for column in first..=last {
            let covered = end.min(column as f64 + 1.0) - start.max(column as f64);
            self.counts[column] += count * covered.max(0.0) / (end - start);
        }
    }

    /// The axis with its ticks, and their labels: at 1, 2 and 5 of every decade if there is room, otherwise at 1.
    fn axis(&self, style: &Style) -> (String, String) {
        let [line, mark] = if style.unicode { ['─', '┬'] } else { ['-', '+'] };
        let draw = |steps: &[f64]| {
            let (mut axis, mut row) = (vec![line; self.counts.len()], Row::new(self.counts.len()));
            let mut all = true;
            for ns in of_powers(self.low_ns, self.high_ns, steps) {
                let (at, label) = (self.place(ns), style.spell(&tick(&time_ns(ns))));
                let fits = row.put(at, &label, columns(&label) / 2);
                // A label that has no room at either end is not required.
                all &= fits || at < columns(&label) || at + columns(&label) > self.counts.len();
                if fits {
                    axis[at] = mark;
                }
            }
            (all, axis.into_iter().collect::<String>(), row.text())
        };
        let (all, axis, labels) = draw(&[1.0, 2.0, 5.0]);
        if all {
            return (axis, labels);
        }
        let (all, decades, labels_of_decades) = draw(&[1.0]);
        // Within one decade there may be no tick at 1.
        if all && decades.contains(mark) { (decades, labels_of_decades) } else { (axis, labels) }
    }
}

/// Lines from the top. Every column that is not empty is visible.
fn bars(counts: &[f64], height: usize, style: &Style) -> Vec<String> {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().fold(0.0, f64::max);
    let eighths = |count: f64| {
        let scaled = (count / most * height as f64 * 8.0).round() as usize;
        if count > 0.0 { scaled.max(1) } else { 0 }
    };
    let cell = |count: f64, floor: usize| {
        let filled = eighths(count).saturating_sub(floor * 8).min(8);
        match (style.unicode, filled) {
            (true, filled) => EIGHTHS[filled],
            (false, 0) => ' ',
            (false, 1..=4) => '.',
            (false, _) => '#',
        }
    };
    let line = |floor: usize| counts.iter().map(|count| cell(*count, floor)).collect::<String>();
    (0..height).rev().map(|floor| line(floor).trim_end().to_owned()).collect()
}

/// A line for labels, each placed only if there is room.
struct Row {
    cells: Vec<char>,
    used: usize,
}

impl Row {
    fn new(width: usize) -> Self {
        Self { cells: vec![' '; width], used: 0 }
    }

    /// Places a label so that its character number `anchor` is at `at`. Call it for labels from left to right. Returns whether there was room.
    fn put(&mut self, at: usize, label: &str, anchor: usize) -> bool {
        let length = label.chars().count();
        let Some(start) = at.checked_sub(anchor) else { return false };
        if start < self.used || start + length > self.cells.len() {
            return false;
        }
        self.cells.splice(start..start + length, label.chars());
        self.used = start + length + GAP;
        true
    }

    fn text(&self) -> String {
        self.cells.iter().collect::<String>().trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::load::load_fixture::{calm, empty, same};

    const STYLE: Style = Style { color: false, width: 80, unicode: true };

    fn drawn(histogram: &hdrhistogram::Histogram<u64>, width: usize, style: &Style) -> Vec<String> {
        let encoded = EncodedHistogram::encode(histogram).unwrap();
        Chart { width, height: 4 }.lines(&encoded, &[("p50", histogram.value_at_quantile(0.5))], style)
    }

    #[test]
    fn one_time_is_one_column() {
        let lines = drawn(&same(1_000_000, 5), 31, &STYLE);
        assert_eq!(lines.len(), 7);
        assert_eq!(lines[3].trim(), "█");
        assert!(lines[4].contains('┬') && lines[5].contains("1 ms"), "{lines:#?}");
        let column = lines[3].chars().position(|c| c == '█').unwrap();
        assert_eq!(lines[6].chars().position(|c| c == '▲').unwrap(), column);
    }

    #[test]
    fn every_time_is_in_some_column() {
        for count in [1, 10, 1_000, 200_000] {
            let encoded = EncodedHistogram::encode(&calm(count)).unwrap();
            for width in [1, 7, 60, 200] {
                let bins = Bins::of(&encoded, width).unwrap();
                let sum: f64 = bins.counts.iter().sum();
                assert!((sum / count as f64 - 1.0).abs() < 1e-9, "{count} {width}: {sum}");
            }
        }
    }

    #[test]
    fn a_smooth_curve_is_no_comb() {
        // 20 to 60 us, where the histogram's steps are half a microsecond.
        let mut histogram = empty();
        (20_000..60_000).for_each(|ns| histogram.record(ns).unwrap());
        let bins = Bins::of(&EncodedHistogram::encode(&histogram).unwrap(), 120).unwrap();
        let (first, last) = (bins.place(22_000.0), bins.place(58_000.0));
        let pairs = bins.counts[first..=last].windows(2);
        assert!(pairs.into_iter().all(|pair| (pair[1] / pair[0] - 1.0).abs() < 0.15), "{:?}", bins.counts);
    }

    #[test]
    fn one_of_a_million_is_seen() {
        let mut histogram = same(1_000_000, 1_000_000);
        histogram.record(1_000_000_000).unwrap();
        let lines = drawn(&histogram, 60, &STYLE);
        assert!(lines[3].ends_with('▁'), "{lines:#?}");
        let ascii = drawn(&histogram, 60, &Style { unicode: false, ..STYLE });
        assert!(ascii[3].ends_with('.') && ascii.concat().is_ascii(), "{ascii:#?}");
    }

    #[test]
    fn nothing_is_wider_than_it_may_be() {
        for width in [1, 4, 9, 40, 77] {
            for histogram in [calm(1_000), same(600, 1), same(3_600_000_000_000, 1), same(0, 1)] {
                let lines = drawn(&histogram, width, &STYLE);
                assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:#?}");
            }
        }
        assert_eq!(drawn(&empty(), 40, &STYLE), Vec::<String>::new());
    }
}
