//! Groups published values by run, and reads and formats them.
//!
//! Owns the names of the metrics that an audit knows, and which settings apply to which run. Must not know checks.
//!
//! | metric | what it is |
//! |---|---|
//! | `throughput_rps` | complete answers per second |
//! | `latency_mean_ms`, `latency_min_ms`, `latency_max_ms`, `latency_p50_ms`, `latency_p99_9_ms` | latency; also in `_s`, `_us`, `_ns` |
//! | `connections`, `connect_errors`, `requests`, `timeouts` | counts |
//! | `duration_s`, `warmup_s` | length of the run, and how long the program is slow at first |
//! | `warmup_before_s` | warm-up before the run, not included in any of its values |
//! | `rate_rps` | requests due per second, under an open load |
//! | `X_ratio` | contender divided by baseline, of the values `X_…` |

use deadheat_record::Claim;
use deadheat_stats::Published;

use crate::number::exact;

/// Units of time at the end of a metric's name, with their size in seconds.
const TIMES: [(&str, f64); 5] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)];

/// A value in requests per second, in seconds, or without a unit, with how it was published.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) is: Published,
    /// `29.13 ms`, `2 to 3 s`.
    pub(super) shown: String,
}

/// The kind of latency. All kinds except the mean are in the order in which they must rise.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum Place {
    Min,
    /// A share of all requests, in (0, 1).
    Quantile(f64),
    Max,
    Mean,
}

/// The time unit in a metric's name: its size in seconds, and its name.
pub(super) fn time_unit(metric: &str) -> Option<(f64, &'static str)> {
    let (_, unit) = metric.rsplit_once('_')?;
    TIMES.into_iter().find(|(name, _)| *name == unit).map(|(name, size)| (size, name))
}

/// The kind of latency of a metric; none for other metrics.
pub(super) fn latency(metric: &str) -> Option<Place> {
    let (name, _) = metric.rsplit_once('_').filter(|_| time_unit(metric).is_some())?;
    let of = name.strip_prefix("latency_").unwrap_or(name);
    match of {
        "min" | "fastest" if of != name => Some(Place::Min),
        "max" | "slowest" if of != name => Some(Place::Max),
        "mean" | "avg" | "average" if of != name => Some(Place::Mean),
        _ => {
            let percent: f64 = of.strip_prefix('p')?.replace('_', ".").parse().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(Place::Quantile(percent / 100.0))
        }
    }
}

/// The value of a claim; none if it has neither a value nor a range.
pub(super) fn figure(claim: &Claim) -> Option<Figure> {
    let (size, unit) = time_unit(&claim.metric).unwrap_or((1.0, ""));
    let per_second = if claim.metric.ends_with("_rps") { "/s" } else { "" };
    let unit = if unit.is_empty() { per_second.to_owned() } else { format!(" {unit}") };
    match (claim.value, claim.low.zip(claim.high)) {
        (Some(value), _) => Some(Figure {
            is: Published::rounded(value, claim.half_digit).scaled(size),
            shown: format!("{}{unit}", exact(value)),
        }),
        (None, Some((low, high))) => Some(Figure {
            is: Published::range(low, high).scaled(size),
            shown: format!("{} to {}{unit}", exact(low), exact(high)),
        }),
        (None, None) => None,
    }
}

/// The value of a claim that was chosen and not measured, so it has no rounding error.
fn exactly(claim: &Claim) -> Option<Figure> {
    figure(&Claim { half_digit: 0.0, ..claim.clone() })
}

/// The published values of one contender in one run.
#[derive(Debug, Clone)]
pub(super) struct Run<'a> {
    pub(super) row: Option<&'a str>,
    pub(super) contender: &'a str,
    all: &'a [Claim],
}

/// Every run of every contender, in the order of their first values.
pub(super) fn runs(claims: &[Claim]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for claim in claims.iter().filter(|claim| claim.baseline.is_none()) {
        let Some(contender) = claim.contender.as_deref() else { continue };
        let row = claim.run();
        if !runs.iter().any(|run| (run.row, run.contender) == (row, contender)) {
            runs.push(Run { row, contender, all: claims });
        }
    }
    runs
}

impl<'a> Run<'a> {
    /// The run that a claim belongs to; none if the claim is about no contender.
    pub(super) fn of(claim: &'a Claim, all: &'a [Claim]) -> Option<Self> {
        Some(Self { row: claim.run(), contender: claim.contender.as_deref()?, all })
    }

    /// The measured value of a metric in this run. If several claims have the metric, the first counts.
    pub(super) fn own(&self, metric: &str) -> Option<Figure> {
        self.claims().find(|claim| claim.metric == metric).and_then(figure)
    }

    /// The claims about this run.
    pub(super) fn claims(&self) -> impl Iterator<Item = &'a Claim> {
        let (row, contender) = (self.row, self.contender);
        let of = move |claim: &&Claim| claim.baseline.is_none() && claim.run() == row;
        self.all.iter().filter(of).filter(move |claim| claim.contender.as_deref() == Some(contender))
    }

    /// A setting of this run, without rounding error: the claim about this run, otherwise about the contender, otherwise about the row,
    /// otherwise about everything.
    pub(super) fn setting(&self, metric: &str) -> Option<Figure> {
        let places =
            [(self.row, Some(self.contender)), (None, Some(self.contender)), (self.row, None), (None, None)];
        let of = |(row, contender): (Option<&str>, Option<&str>)| {
            let all = self.all.iter().filter(|one| one.metric == metric && one.baseline.is_none());
            all.filter(|one| (one.run(), one.contender.as_deref()) == (row, contender)).find_map(exactly)
        };
        places.into_iter().find_map(of)
    }

    /// The warm-up that the source reports, and its contender: the one of this run, otherwise the first of any contender.
    pub(super) fn warm_up(&self) -> Option<(Figure, &'a str)> {
        if let Some(own) = self.setting("warmup_s") {
            return Some((own, ""));
        }
        let anybodys = self.all.iter().find(|one| one.metric == "warmup_s")?;
        Some((figure(anybodys)?, anybodys.contender.as_deref().unwrap_or_default()))
    }

    /// The latencies of this run in seconds, each kind once.
    pub(super) fn latencies(&self) -> Vec<(Place, Figure, &'a str)> {
        let mut all: Vec<(Place, Figure, &'a str)> = Vec::new();
        for claim in self.claims() {
            if let (Some(place), Some(figure)) = (latency(&claim.metric), figure(claim))
                && !all.iter().any(|(known, ..)| *known == place)
            {
                all.push((place, figure, &claim.metric));
            }
        }
        all.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal));
        all
    }
}

/// The published number of connections; none if it was not published or differs between runs.
pub fn published_connections(claims: &[Claim]) -> Option<u32> {
    published_count(claims, "connections")
}

/// The published value of a count; none if it was not published or differs between runs.
pub(super) fn published_count(claims: &[Claim], metric: &str) -> Option<u32> {
    let mut all = claims.iter().filter(|one| one.metric == metric).filter_map(|one| one.value);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first as u32).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_latencies() {
        let places = ["latency_p50_ms", "latency_p99_9_s", "p99_us", "latency_mean_ms", "latency_slowest_s"];
        let places = places.map(|metric| latency(metric).unwrap());
        let share = |at| Place::Quantile(at);
        assert_eq!(places, [share(0.5), share(99.9 / 100.0), share(0.99), Place::Mean, Place::Max]);
        for metric in
            ["throughput_rps", "cold_start_ms", "max_ms", "latency_p50", "latency_p0_ms", "warmup_s"]
        {
            assert_eq!(latency(metric), None, "{metric}");
        }
    }

    #[test]
    fn the_nearest_setting_counts() {
        let claim = |contender: Option<&str>, row: Option<&str>, metric: &str, value: f64| Claim {
            contender: contender.map(Into::into),
            row: row.map(Into::into),
            metric: metric.into(),
            value: Some(value),
            ..Claim::default()
        };
        let claims = [
            claim(None, None, "connections", 1.0),
            claim(None, Some("a"), "connections", 2.0),
            claim(Some("x"), None, "connections", 3.0),
            claim(Some("x"), Some("a"), "connections", 4.0),
            claim(Some("y"), Some("a"), "throughput_rps", 10.0),
            claim(Some("y"), Some("b"), "throughput_rps", 10.0),
            claim(Some("x"), Some("b"), "throughput_rps", 10.0),
        ];
        let found: Vec<(&str, Option<&str>, f64)> = runs(&claims)
            .iter()
            .map(|run| (run.contender, run.row, run.setting("connections").unwrap().is.value))
            .collect();
        let expected = [
            ("x", None, 3.0),
            ("x", Some("a"), 4.0),
            ("y", Some("a"), 2.0),
            ("y", Some("b"), 1.0),
            ("x", Some("b"), 3.0),
        ];
        assert_eq!(found, expected);
    }
}
