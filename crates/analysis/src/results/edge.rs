//! What users see behind an edge cache: a model based on the measured latencies.
//!
//! Owns the model's assumptions and which values of the record it uses. Must not know how it is shown.

use deadheat_record::{ContenderEpoch, EncodedHistogram, HistogramError, Record, ScenarioPlan};
use deadheat_stats::mixture;

use crate::report::{EdgeCache, EdgeUser};

/// The round trip to the edge if the study does not set it: to an edge in the same town.
const EDGE_NS: f64 = 10e6;
/// A histogram with fewer requests has no reliable tail.
const FEWEST: u64 = 10_000;

/// The model for a scenario; none without a hit rate (from the study or the user) or without latencies.
pub(crate) fn of(record: &Record, scenario: &ScenarioPlan) -> Result<Option<EdgeCache>, HistogramError> {
    let claimed = |metric: &str| {
        let claim = record.plan.claims.iter().find(|one| one.metric == metric)?;
        claim.value.or(claim.low.zip(claim.high).map(|(low, high)| f64::midpoint(low, high)))
    };
    let hit_rate = record.plan.edge_hit_rate.or_else(|| claimed("edge_cache_hit_rate"));
    let hit_rate = hit_rate.filter(|share| (0.0..1.0).contains(share));
    let loads = scenario.shape.is_steady();
    let Some(hit_rate) = hit_rate.filter(|_| loads) else { return Ok(None) };
    let edge_ns = claimed("edge_latency_ms").map_or(EDGE_NS, |ms| ms * 1e6);
    let mut users = Vec::new();
    for contender in record.racing(&scenario.name) {
        let parts = record.epochs_of(&scenario.name).filter_map(|epoch| epoch.of(contender));
        let parts: Vec<&ContenderEpoch> = parts.collect();
        let Some(origin) = EncodedHistogram::merge(parts.iter().map(|part| &part.latency))? else { continue };
        if origin.len() < FEWEST {
            continue;
        }
        let at =
            |q: f64| mixture::quantile(q, hit_rate, edge_ns, |share| origin.value_at_quantile(share) as f64);
        users.push(EdgeUser {
            contender: record.plan.contenders[contender].name.clone(),
            mean_ns: mixture::mean(hit_rate, edge_ns, origin.mean()) as u64,
            p50_ns: at(0.50) as u64,
            p95_ns: at(0.95) as u64,
            p99_ns: at(0.99) as u64,
            origin_mean_ns: origin.mean() as u64,
            origin_p50_ns: origin.value_at_quantile(0.50),
            origin_p95_ns: origin.value_at_quantile(0.95),
            origin_p99_ns: origin.value_at_quantile(0.99),
        });
    }
    Ok((!users.is_empty()).then_some(EdgeCache { hit_rate, edge_latency_ns: edge_ns as u64, users }))
}
