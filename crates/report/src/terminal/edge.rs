//! The model of an edge cache on a terminal: one table below a scenario's own.
//!
//! Owns: its columns, and the sentence that states its assumptions.

use deadheat_analysis::number::{percent, three_digits, time_ns};
use deadheat_analysis::{EdgeCache, EdgeUser};

use super::paragraph::indented;
use super::table::{self, Column};
use crate::style::{Style, Tone};
use crate::text::plain;

/// What the model assumes.
pub(crate) fn behind(cache: &EdgeCache, closed: bool) -> String {
    let saturation = if closed { ", with the origin's latencies at saturation" } else { "" };
    format!(
        "a model of users behind an edge cache: {} hits, which take {}, and misses, which also wait for the origin{saturation}",
        percent(cache.hit_rate),
        time_ns(cache.edge_latency_ns as f64)
    )
}

/// A time as a multiple of another.
pub(crate) fn over(one: u64, other: u64) -> Option<String> {
    (other > 0).then(|| three_digits(one as f64 / other as f64))
}

/// The table, with an empty line before it. Ratios are relative to `baseline`.
pub(super) fn lines(cache: &EdgeCache, baseline: Option<&str>, closed: bool, style: &Style) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(indented(&behind(cache, closed), 2, Tone::Quiet, style));
    let base = cache.users.iter().find(|one| Some(one.contender.as_str()) == baseline);
    let column = |group: &'static str, title: &str, keep: Option<u8>, cell: &dyn Fn(&EdgeUser) -> String| {
        Column { group, ..Column::of(&cache.users, title, keep, false, cell) }
    };
    let time = |ns: u64| time_ns(ns as f64);
    let over = |one: u64, other: Option<u64>| other.and_then(|other| over(one, other)).unwrap_or_default();
    let columns = vec![
        Column::of(&cache.users, "contender", None, true, |one| plain(&one.contender)),
        column("user", "p50", Some(7), &|one| time(one.p50_ns)),
        column("user", "p95", None, &|one| time(one.p95_ns)),
        column("user", "p99", None, &|one| time(one.p99_ns)),
        column("user, of baseline's", "p95 ", Some(5), &|one| over(one.p95_ns, base.map(|base| base.p95_ns))),
        column("user, of baseline's", "p99 ", Some(6), &|one| over(one.p99_ns, base.map(|base| base.p99_ns))),
        column("origin, of baseline's", " p95", Some(3), &|one| {
            over(one.origin_p95_ns, base.map(|base| base.origin_p95_ns))
        }),
        column("origin, of baseline's", " p99", Some(4), &|one| {
            over(one.origin_p99_ns, base.map(|base| base.origin_p99_ns))
        }),
    ];
    lines.extend(table::lines(columns, 0, 2, style));
    lines
}
