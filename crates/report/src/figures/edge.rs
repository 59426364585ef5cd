//! Figures of the latency that users see behind an edge cache, according to a model.
//!
//! Owns: these figures. Must not know: how the users' numbers are computed; the report contains them. The page can move the curves to other hit
//! rates.

use deadheat_analysis::number::{percent, quantile, time_ns};
use deadheat_analysis::{EdgeCache, EdgeUser, ScenarioResult};

use super::latency::{Curve, LABEL, curve, plot};
use super::model::{Axis, Cell, Dot, Drawing, Figure, Row, Section, Table};
use super::{Group, Scope, Set, values};

fn cache(scenario: &ScenarioResult) -> Option<&EdgeCache> {
    scenario.edge_cache.as_ref().filter(|cache| !cache.users.is_empty())
}

/// For each scenario, the users' curves, and their percentiles next to those of the origin alone.
pub(super) fn behind(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| cache(scenario).map_or(0, |cache| cache.users.len()));
    let figures = |set: &Set<'_>| {
        let cache = cache(set.scenarios[0])?;
        Some(curves(scope, set, cache).into_iter().chain([users(scope, set, cache)]))
    };
    sets.iter().filter_map(figures).flatten().collect()
}

/// The quantiles of a user behind a cache. A hit takes the edge's time; a miss takes the edge's and the origin's.
fn of_user(cache: &EdgeCache, origin: &Curve) -> Curve {
    let (hits, edge_ns) = (cache.hit_rate, cache.edge_latency_ns as f64);
    let hit = if hits > 0.0 { vec![(0.0, edge_ns), (hits, edge_ns)] } else { Vec::new() };
    let miss = origin.iter().map(|(at, ns)| (hits + (1.0 - hits) * at, edge_ns + ns));
    hit.into_iter().chain(miss).collect()
}

/// Latency of users at the hit rate of the study.
fn curves(scope: &Scope<'_>, set: &Set<'_>, cache: &EdgeCache) -> Option<Figure> {
    let scenario = set.scenarios[0];
    let is_user = |name: &str| cache.users.iter().any(|user| user.contender == name);
    let origins = scenario.results.iter().filter(|one| one.latency_curve.len() > 1);
    let origins: Vec<(&str, Curve)> = origins
        .filter(|one| is_user(&one.contender))
        .map(|one| (one.contender.as_str(), curve(one)))
        .collect();
    let curves: Vec<(&str, Curve)> =
        origins.iter().map(|(name, origin)| (*name, of_user(cache, origin))).collect();
    let drawn = curves.iter().map(|(name, curve)| (*name, scope.color(name), curve)).collect();
    let label = format!("{LABEL}; {} hits", percent(cache.hit_rate));
    let closed = scenario.shape.is_closed();
    let saturated = if closed { ", which is its latency at saturation" } else { "" };
    let edge_ns = cache.edge_latency_ns as f64;
    let note = format!(
        "A model: hits take {}, and misses take that plus the measured latency of the origin{saturated}. Where curves meet, users notice no \
         difference between origins.",
        time_ns(edge_ns)
    );
    let (legend, says) =
        (scope.legend(curves.iter().map(|(name, _)| *name)), cache.users.iter().map(says).collect());
    let table = Table::of_record("Latency of the origin", &["contender", "#quantile", "#time"]);
    let (title, drawing) =
        (set.title("Latency behind an edge cache"), Drawing::Plot(plot(drawn, Some(edge_ns), &label)));
    let figure = Figure::new(("edge-cache", Section::EdgeCache), &scenario.name, title, drawing, table);
    (!curves.is_empty()).then_some(Figure { note, legend, says, ..figure })
}

fn says(user: &EdgeUser) -> String {
    let times = PERCENTILES.map(|(at, seen, _)| format!("{} {}", quantile(at), time_ns(seen(user) as f64)));
    format!("{}: {}", user.contender, times.join(", "))
}

/// A quantile, the user's value, and the origin's value.
type Percentile = (f64, fn(&EdgeUser) -> u64, fn(&EdgeUser) -> u64);
const PERCENTILES: [Percentile; 3] = [
    (0.5, |one| one.p50_ns, |one| one.origin_p50_ns),
    (0.95, |one| one.p95_ns, |one| one.origin_p95_ns),
    (0.99, |one| one.p99_ns, |one| one.origin_p99_ns),
];

/// Latency of users at the hit rate of the study, next to that of the origin alone.
fn users(scope: &Scope<'_>, set: &Set<'_>, cache: &EdgeCache) -> Figure {
    let groups: Vec<Group> = PERCENTILES.iter().map(|told| group(scope, cache, told)).collect();
    let x = Axis::of_times(values(&groups), 1.2, "time until the answer; shorter is better");
    let cells = |user: &EdgeUser| {
        let name = user.contender.clone();
        PERCENTILES.map(move |(at, seen, origin)| {
            let times = [seen(user), origin(user)].map(|ns| Cell::number(Some(ns as f64), time_ns));
            [Cell::text(&name), Cell::text(quantile(at))].into_iter().chain(times).collect()
        })
    };
    let hits = percent(cache.hit_rate);
    let edge = time_ns(cache.edge_latency_ns as f64);
    Figure {
        note: "Filled: what users see behind the cache, a model. Hollow: the origin alone.".into(),
        ..Figure::new(
            ("edge-users", Section::EdgeCache),
            set.scenarios[0].name.clone(),
            set.title(&format!("What is left of a difference at {hits} hits of {edge}")),
            Drawing::rows(x, groups),
            Table::new(
                format!("{}: users at {hits} hits, and the origin alone", set.scenarios[0].name),
                &["contender", "quantile", "#users", "#origin"],
                cache.users.iter().flat_map(cells),
            ),
        )
    }
}

fn group(scope: &Scope<'_>, cache: &EdgeCache, (at, seen, origin): &Percentile) -> Group {
    let time = |ns: u64| time_ns(ns as f64);
    let at = quantile(*at);
    let row = |user: &EdgeUser| {
        let [seen, origin] = [seen(user), origin(user)];
        let dot = |ns: u64, of: &str| Dot::new(ns.max(1) as f64, format!("{at} {of}: {}", time(ns)));
        let alone = Dot { hollow: true, ..dot(origin, "of the origin") };
        Row {
            aside: format!("{}, origin {}", time(seen), time(origin)),
            dots: vec![alone, dot(seen, "of users")],
            ..Row::new(&user.contender, scope.color(&user.contender))
        }
    };
    Group { title: Some(at.clone()), rows: cache.users.iter().map(row).collect() }
}
