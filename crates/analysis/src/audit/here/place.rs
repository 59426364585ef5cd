//! Finds where in a race a claim can be tested, or why it cannot.
//!
//! Owns: which scenario a claim is about, and whether it was raced as published. Must not know ratios or verdicts.

use deadheat_record::{Claim, Metric, ScenarioPlan};

use super::super::figures::Run;
use super::measured::{Wanted, is_of};
use super::race::Race;
use crate::number::exact;

impl<'a> Race<'a> {
    /// The scenario that tests a claim: the one it names, otherwise the first one made for its metric, otherwise a closed load.
    ///
    /// # Errors
    /// The reason, in words, why there is none.
    pub(super) fn scenario(&self, claim: &Claim, wanted: Wanted) -> Result<&'a ScenarioPlan, String> {
        if self.raced().next().is_none() {
            return Err("nothing was raced".into());
        }
        if let Some(name) = &claim.scenario {
            return self.named(name, claim, wanted);
        }
        let found = self.made_for(&claim.metric).map_or_else(|| self.closed(claim), Ok)?;
        self.as_published(found, claim, wanted)?;
        Ok(found)
    }

    /// The scenario that a claim names.
    ///
    /// # Errors
    /// The reason, in words, why the scenario cannot test the claim.
    pub(super) fn named(
        &self,
        name: &str,
        claim: &Claim,
        wanted: Wanted,
    ) -> Result<&'a ScenarioPlan, String> {
        let found = self.raced().find(|one| one.name == name);
        let found = found.ok_or_else(|| format!("its scenario {name} was not raced"))?;
        self.as_published(found, claim, wanted)?;
        Ok(found)
    }

    /// Scenarios with at least one epoch.
    fn raced(&self) -> impl Iterator<Item = &'a ScenarioPlan> + use<'a> {
        let record = &self.report.record;
        record.plan.scenarios.iter().filter(move |one| record.epochs_of(&one.name).next().is_some())
    }

    /// The first scenario of fresh starts or of the contenders' own measure that fits the metric.
    fn made_for(&self, metric: &str) -> Option<&'a ScenarioPlan> {
        self.raced().find(|one| {
            let starts = one.shape.starts().is_some() && metric.starts_with("cold_start");
            starts || one.shape.measure().is_some_and(|measure| is_of(metric, measure))
        })
    }

    /// The first closed load with the published number of connections. Rungs of a ladder leave out work, a cold load measures the first
    /// seconds, and TLS adds work, so a claim means one of these only if it names it.
    fn closed(&self, claim: &Claim) -> Result<&'a ScenarioPlan, String> {
        if let Some(row) = &claim.row {
            return Err(format!("the study names no scenario for its run {row}"));
        }
        let published = self.connections(claim);
        let meant = |one: &&ScenarioPlan| {
            let right = published.is_none_or(|count| f64::from(one.shape.connections()) == count);
            let plain = one.ladder.is_none() && !one.traffic.cold && !one.traffic.tls;
            right && plain && one.shape.is_closed()
        };
        self.raced().find(meant).ok_or_else(|| {
            let load =
                published.map_or_else(String::new, |count| format!(" of {} connections", exact(count)));
            format!("the study names no scenario for it, and no plain closed load{load} was raced")
        })
    }

    /// The number of connections that was published with a claim.
    fn connections(&self, claim: &Claim) -> Option<f64> {
        Run::of(claim, self.claims)?.setting("connections").map(|connections| connections.is.value)
    }

    /// Checks that a scenario was raced as published in the claim.
    fn as_published(&self, one: &ScenarioPlan, claim: &Claim, wanted: Wanted) -> Result<(), String> {
        let name = &one.name;
        let throughput = matches!(wanted, Wanted::Of(Metric::Throughput));
        if throughput && one.shape.rate_per_s().is_some() {
            return Err(format!("{name} is an open load: it answers as many requests as are due"));
        }
        if (throughput || matches!(wanted, Wanted::Latency(_))) && one.shape.objective().is_some() {
            return Err(format!(
                "{name} searches for the highest rate, so its trials give no figure to compare"
            ));
        }
        if let Some(why) = self.scaled_down(one) {
            return Err(why);
        }
        let own = f64::from(one.shape.connections());
        match self.connections(claim).filter(|count| one.shape.is_load() && *count != own) {
            Some(count) => Err(format!(
                "it was measured with {} connections, but {name} had {}",
                exact(count),
                exact(own)
            )),
            None => Ok(()),
        }
    }

    /// Why a scenario cannot test a claim if contenders had fewer cores than it requests. Older records have this in a finding only.
    fn scaled_down(&self, one: &ScenarioPlan) -> Option<String> {
        if let Some(asked) = one.limits.asked_cpus {
            let had = one.limits.cpus.map_or_else(|| "fewer".into(), exact);
            return Some(format!("it asks for {} cores; contenders had {had}", exact(asked)));
        }
        let begin = format!("scenario `{}` asks for ", one.name);
        let mut told = self.report.record.findings.iter().map(|(_, finding)| finding);
        let scaled = told.any(|finding| finding.code == "fewer-cores" && finding.message.starts_with(&begin));
        scaled.then(|| "it asks for more cores than contenders had".into())
    }
}
