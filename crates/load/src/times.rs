//! Owns: the distribution of one kind of time. Must not know what the time means.

use std::sync::OnceLock;

use hdrhistogram::Histogram;

/// Resolution at the bottom of the range. The histogram's cells are a power of two wide; the bottom 2,048 cells have
/// the largest such width that is at most this. From 8 us on, cells are narrower than a thousandth of the value. With
/// cells of half a microsecond, one cell would be 2.5 % of a null server's answer.
const LOWEST_NS: u64 = 8;
/// Top of the range: one hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A distribution of times in nanoseconds, precise to 0.1 % from 8 us to 1 h. Shorter times have a resolution of 8 ns.
/// Longer times are recorded as 1 h and counted as clamped. It never panics. The default is empty, and takes its memory
/// when it is first used.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(from = "Cells", into = "Cells")]
pub struct Times {
    /// Not there until it is needed: a histogram takes a quarter of a megabyte. The cells that come from another
    /// machine take a few hundred bytes.
    histogram: OnceLock<Histogram<u64>>,
    /// What came from another machine; of no use once the histogram is there.
    received: Vec<Cell>,
    clamped: u64,
}

/// The distance of a cell's highest time from that of the cell before, in nanoseconds, and its count.
type Cell = (u64, u64);

/// The cells of [`Times`] that are not empty: what is sent to another machine.
#[derive(serde::Serialize, serde::Deserialize)]
struct Cells {
    /// Ascending.
    cells: Vec<Cell>,
    clamped: u64,
}

impl From<Times> for Cells {
    fn from(times: Times) -> Cells {
        let mut before = 0;
        let cells = times.histogram().iter_recorded().map(|cell| {
            let distance = cell.value_iterated_to() - before;
            before = cell.value_iterated_to();
            (distance, cell.count_at_value())
        });
        Cells { cells: cells.collect(), clamped: times.clamped }
    }
}

impl From<Cells> for Times {
    fn from(Cells { cells, clamped }: Cells) -> Times {
        Times { histogram: OnceLock::new(), received: cells, clamped }
    }
}

fn empty() -> Histogram<u64> {
    // This cannot fail: the bounds are constants, and every test uses them.
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, 3).expect("valid bounds")
}

fn add_cells(cells: &[Cell], sum: &mut Histogram<u64>) {
    let mut ns = 0u64;
    for (distance, count) in cells {
        ns = ns.saturating_add(*distance);
        sum.saturating_record_n(ns, *count);
    }
}

impl Times {
    /// An empty distribution that has its memory already, so that the first time is recorded as fast as the others.
    pub fn new() -> Times {
        Times { histogram: OnceLock::from(empty()), received: Vec::new(), clamped: 0 }
    }

    /// Records one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if ns > HIGHEST_NS {
            self.clamped += 1;
        }
        self.histogram_mut().saturating_record(ns.min(HIGHEST_NS));
    }

    /// Records the same time `count` times.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if ns > HIGHEST_NS {
            self.clamped += count;
        }
        self.histogram_mut().saturating_record_n(ns.min(HIGHEST_NS), count);
    }

    /// Adds another distribution.
    pub fn merge(&mut self, other: &Times) {
        self.clamped += other.clamped;
        let sum = self.histogram_mut();
        match other.histogram.get() {
            None => add_cells(&other.received, sum),
            Some(theirs) => {
                // Both have the same bounds, so the sum cannot fail.
                let added = sum.add(theirs);
                debug_assert!(added.is_ok());
            }
        }
    }

    /// How many times were recorded, including clamped ones.
    pub fn count(&self) -> u64 {
        self.histogram().len()
    }

    /// How many times were above 1 h and recorded as 1 h.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// The smallest time at or below which the share `quantile` (0 to 1) of all times lies, or `None` if empty. In
    /// nanoseconds, with the precision of [`Times`].
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram().value_at_quantile(quantile))
    }

    /// Mean in nanoseconds, or `None` if empty.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram().mean())
    }

    /// The histogram itself, for encoding and for values that this type does not offer.
    pub fn histogram(&self) -> &Histogram<u64> {
        self.histogram.get_or_init(|| {
            let mut histogram = empty();
            add_cells(&self.received, &mut histogram);
            histogram
        })
    }

    #[inline]
    fn histogram_mut(&mut self) -> &mut Histogram<u64> {
        self.histogram();
        self.histogram.get_mut().expect("it was made just now")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_at_the_top_and_counts_it() {
        let mut times = Times::new();
        for ns in [0, 1, HIGHEST_NS, HIGHEST_NS + 1, u64::MAX] {
            times.record(ns);
        }
        assert_eq!((times.count(), times.clamped()), (5, 2));
        assert!(times.quantile_ns(1.0).unwrap() >= HIGHEST_NS);
    }

    #[test]
    fn keeps_three_digits() {
        for ns in [8_000_u64, 9_001, 20_123, 57_331, 400_009, 5_000_011] {
            let mut times = Times::new();
            times.record(ns);
            let got = times.quantile_ns(0.5).unwrap();
            assert!(got >= ns && (got - ns) as f64 <= 0.001 * ns as f64, "{ns}: {got}");
        }
        let mut times = Times::new();
        (1..=10_000u64).for_each(|k| times.record(k * 10_000));
        for (quantile, wanted) in [(0.5, 50e6), (0.9, 90e6), (0.99, 99e6), (1.0, 100e6)] {
            let got = times.quantile_ns(quantile).unwrap() as f64;
            assert!((got / wanted - 1.0).abs() < 0.001, "{quantile}: {got}");
        }
        assert!((times.mean_ns().unwrap() / 50_005_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn its_cells_are_all_that_another_machine_needs() {
        let mut times = Times::new();
        for ns in [0, 3, 9, 8_000, 8_001, 57_331, 5_000_011, 5_000_011, HIGHEST_NS, u64::MAX] {
            times.record(ns);
        }
        let mut copy = Times::from(Cells::from(times.clone()));
        assert_eq!(copy.histogram(), times.histogram());
        assert_eq!((copy.clamped(), copy.quantile_ns(0.0)), (1, times.quantile_ns(0.0)));
        assert_eq!(
            (copy.histogram().min(), copy.histogram().max()),
            (times.histogram().min(), times.histogram().max())
        );
        // Merged into the received times and from them, before a histogram was made.
        let received = || Times::from(Cells::from(times.clone()));
        copy.merge(&received());
        let mut other = received();
        other.merge(&times);
        let mut twice = times.clone();
        twice.merge(&times);
        for (sum, clamped) in [(&copy, copy.clamped()), (&other, other.clamped())] {
            assert_eq!((sum.histogram(), clamped), (twice.histogram(), 2));
        }
        let mut one_more = received();
        one_more.record(9);
        assert_eq!(one_more.count(), times.count() + 1);
        // A cell that no sender would name.
        let far = Times::from(Cells { cells: vec![(u64::MAX, 2), (u64::MAX, u64::MAX)], clamped: 0 });
        assert!(far.count() > 0);
    }

    #[test]
    fn empty_has_no_quantiles_and_merging_adds() {
        let (mut a, mut b) = (Times::default(), Times::new());
        assert_eq!((a.quantile_ns(0.5), a.mean_ns()), (None, None));
        b.record(5_000_000);
        b.record(u64::MAX);
        a.merge(&b);
        a.merge(&b);
        assert_eq!((a.count(), a.clamped()), (4, 2));
    }
}
