//! A part of a record: some of its scenarios, with all observations in them.
//!
//! Owns: what belongs to a scenario. Must not know: what follows from it.

use std::path::Path;

use serde_json::Value;

use crate::Record;

impl Record {
    /// The record with the paths in its plan that are below `root` made relative to `root`, so that it does not reveal the folders of the machine.
    /// None if `root` is the root folder.
    #[must_use]
    pub fn seen_from(mut self, root: &Path) -> Option<Self> {
        root.parent()?;
        let mut plan = serde_json::to_value(&self.plan).ok()?;
        strip(&mut plan, &format!("{}/", root.display()));
        self.plan = serde_json::from_value(plan).ok()?;
        Some(self)
    }

    /// The record reduced to some of its scenarios. It keeps what was planned, observed and decided in them, so that the same results follow. Names
    /// that are not in the plan are ignored.
    #[must_use]
    pub fn only(mut self, scenarios: &[&str]) -> Self {
        let kept = |name: &str| scenarios.contains(&name);
        let plan: Vec<String> = self.plan.scenarios.iter().map(|one| one.name.clone()).collect();
        // A contender that was excluded in a dropped scenario is excluded from the next kept scenario on. If there is none, it raced in all kept
        // scenarios.
        let next = |name: &str| plan.iter().skip_while(|one| *one != name).find(|one| kept(one)).cloned();
        let (out_in, raced): (Vec<_>, Vec<_>) = self
            .out_in
            .into_iter()
            .map(|(who, scenario)| (who, next(&scenario)))
            .partition(|(_, next)| next.is_some());
        self.out.retain(|who| raced.iter().all(|(one, _)| one != who));
        self.out_in = out_in.into_iter().filter_map(|(who, next)| Some((who, next?))).collect();
        self.plan.scenarios.retain(|one| kept(&one.name));
        self.pilots.retain(|one| kept(&one.scenario));
        self.epochs.retain(|one| kept(&one.scenario));
        self.set_aside.retain(|one| kept(&one.scenario));
        self.anew.retain(|(scenario, ..)| kept(scenario));
        self.findings.retain(|(scenario, _)| scenario.as_deref().is_none_or(kept));
        self.collectors.retain(|one| kept(&one.scenario));
        self.profiles.retain(|one| kept(&one.scenario));
        self.ended.retain(|(scenario, _)| kept(scenario));
        self
    }
}

/// Removes `prefix` from every string, wherever a path in it begins with `prefix`.
fn strip(value: &mut Value, prefix: &str) {
    match value {
        Value::String(text) if text.contains(prefix) => {
            let within = |one: char| one.is_alphanumeric() || "._-/".contains(one);
            let mut parts = text.split(prefix);
            let mut stripped = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                if stripped.chars().next_back().is_some_and(within) {
                    stripped += prefix;
                }
                stripped += part;
            }
            *text = stripped;
        }
        Value::Array(all) => all.iter_mut().for_each(|one| strip(one, prefix)),
        Value::Object(all) => all.values_mut().for_each(|one| strip(one, prefix)),
        _ => {}
    }
}
