//! What each rung of a ladder adds to the time of a request.
//!
//! Owns: the assignment of scenarios to ladders, and the differences between rungs. Must not know how they are shown.

use deadheat_record::Record;

use crate::report::{Climb, LadderResult, LadderStep, ScenarioResult};

/// The ladders of a record, in plan order.
pub(crate) fn all(record: &Record, scenarios: &[ScenarioResult]) -> Vec<LadderResult> {
    let mut ladders: Vec<(&str, Vec<(u32, &ScenarioResult)>)> = Vec::new();
    for (plan, scenario) in record.plan.scenarios.iter().zip(scenarios) {
        let Some(rung) = &plan.ladder else { continue };
        if !plan.shape.is_closed() {
            continue;
        }
        match ladders.iter_mut().find(|(name, _)| *name == rung.of) {
            Some((_, rungs)) => rungs.push((rung.place, scenario)),
            None => ladders.push((&rung.of, vec![(rung.place, scenario)])),
        }
    }
    let ladder = |(name, mut rungs): (&str, Vec<(u32, &ScenarioResult)>)| {
        rungs.sort_by_key(|(place, _)| *place);
        let rungs: Vec<&ScenarioResult> = rungs.into_iter().map(|(_, scenario)| scenario).collect();
        let names = record.plan.contenders.iter().map(|one| one.name.as_str());
        LadderResult {
            name: name.to_owned(),
            rungs: rungs.iter().map(|one| one.name.clone()).collect(),
            contenders: names.filter_map(|name| climb(&rungs, name)).collect(),
        }
    };
    // A single rung has no difference to show.
    ladders.into_iter().filter(|(_, rungs)| rungs.len() > 1).map(ladder).collect()
}

/// A contender's steps, up to the first rung without a rate.
fn climb(rungs: &[&ScenarioResult], contender: &str) -> Option<Climb> {
    let time_us = |rung: &&ScenarioResult| {
        let rate = rung.result(contender)?.throughput_rps?;
        (rate > 0.0).then(|| 1e6 / rate)
    };
    let mut steps: Vec<LadderStep> = Vec::new();
    for (rung, time_us) in rungs.iter().map_while(|rung| Some((rung, time_us(rung)?))) {
        let added = time_us - steps.last().map_or(0.0, |before| before.time_us);
        let scenario = rung.name.clone();
        steps.push(LadderStep { scenario, time_us, added_us: added.max(0.0), faster: added < 0.0 });
    }
    (!steps.is_empty()).then(|| Climb { contender: contender.to_owned(), steps })
}
