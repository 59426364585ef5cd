//! The data that the gates of a race read.
//!
//! Must not know how a gate judges them.

use deadheat_record::{ContenderEpoch, Epoch, Record, Round, ScenarioPlan, Slice};

use crate::gates::table;
use crate::judge::Judged;
use crate::report::ContenderResult;

/// A scenario's data when its gates are read.
pub(crate) struct Scene<'a> {
    /// The whole record.
    pub(crate) record: &'a Record,
    /// The scenario as planned.
    pub(crate) plan: &'a ScenarioPlan,
    /// Its epochs, in time order.
    pub(crate) epochs: Vec<&'a Epoch>,
    /// One entry per contender in the race.
    pub(crate) results: &'a [ContenderResult],
    /// The contests and their judgement.
    pub(crate) judged: &'a Judged,
}

impl Scene<'_> {
    /// Whether a contender used up its cores or its CPU quota, together with the services that do part of its work on the same cores.
    pub(super) fn at_limit(&self, result: &ContenderResult) -> bool {
        // A quota applies to the contender alone.
        let services = result.services_share.filter(|_| self.plan.limits.cpus.is_none()).unwrap_or(0.0);
        result.cpu_share.is_some_and(|share| share + services >= 1.0 - table::NOT_SERVER_BOUND.warn)
    }

    /// The number of generator threads: one per reserved core, one if there are no reserved cores, on each load host if there are any, and at most one
    /// per connection.
    pub(super) fn load_threads(&self) -> usize {
        let connections = self.plan.shape.connections().max(1) as usize;
        let hosts = self.record.plan.load_from.as_ref().map_or(1, |from| from.hosts.len().max(1));
        (self.record.plan.pinning.load_cpus.len().max(1) * hosts).min(connections)
    }

    /// A contender's part of every epoch that it took part in.
    pub(super) fn parts(&self, contender: usize) -> Vec<&'_ ContenderEpoch> {
        self.epochs.iter().filter_map(|epoch| epoch.of(contender)).collect()
    }

    /// Every round, including dropped ones.
    pub(super) fn rounds(&self) -> impl Iterator<Item = &Round> {
        self.epochs.iter().flat_map(|epoch| &epoch.rounds)
    }

    /// A contender's slices of all rounds, including dropped ones.
    pub(super) fn slices(&self, contender: usize) -> impl Iterator<Item = &Slice> {
        self.rounds().flat_map(|round| &round.slices).filter(move |slice| slice.contender == contender)
    }
}
