//! Results of diagnostic passes on garbage collectors, per second of load.
//!
//! Owns the division by the time of the load. Must not know how pauses were read or how they are shown.

use deadheat_record::{CollectorPass, Record};

use crate::report::CollectorResult;

/// One entry per contender whose collector was observed under a scenario's load, in plan order.
pub(crate) fn of(record: &Record, scenario: &str) -> Vec<CollectorResult> {
    let seen = |name: &str| record.collectors_of(scenario).find(|pass| pass.contender == name);
    record.plan.contenders.iter().filter_map(|one| result(seen(&one.name)?)).collect()
}

fn result(pass: &CollectorPass) -> Option<CollectorResult> {
    let load_s = pass.load_ns as f64 / 1e9;
    (load_s > 0.0).then(|| CollectorResult {
        contender: pass.contender.clone(),
        kind: pass.kind,
        pauses: pass.pauses.count,
        pauses_per_s: pass.pauses.count as f64 / load_s,
        paused_ns_per_s: pass.pauses.total_ns as f64 / load_s,
        longest_ns: pass.pauses.longest_ns,
        requests_per_s: pass.requests as f64 / load_s,
    })
}
