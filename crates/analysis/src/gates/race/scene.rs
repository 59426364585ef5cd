//! What the gates of a race look at, and what comes of it: the scene, a reading and its limits.
//!
//! Owns when a reading is over a limit. Must not know any gate.

use deadheat_record::{ContenderEpoch, Epoch, Finding, Metric, Record, Round, ScenarioPlan, Severity, Slice};

use crate::judge::Judged;
use crate::report::{ContenderResult, GateReading};

/// A contender that uses less of its cores than this is not at its limit.
const AT_LIMIT: f64 = 0.90;

/// What is known of a scenario when its gates are read.
pub(crate) struct Scene<'a> {
    /// The whole record.
    pub(crate) record: &'a Record,
    /// The scenario as planned.
    pub(crate) plan: &'a ScenarioPlan,
    /// Its epochs, in time order.
    pub(crate) epochs: Vec<&'a Epoch>,
    /// One per contender that is in the race.
    pub(crate) results: &'a [ContenderResult],
    /// What is compared, and what the judge says of it.
    pub(crate) judged: &'a Judged,
}

impl Scene<'_> {
    /// Index into the plan's contenders.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.record.plan.contenders.iter().position(|contender| contender.name == name)
    }

    /// Whether a contender used up its cores or its quota of them, together with the services that do a part of its work on the same cores.
    pub(super) fn at_limit(&self, result: &ContenderResult) -> bool {
        // A quota is the contender's alone.
        let services = result.services_share.filter(|_| self.plan.limits.cpus.is_none()).unwrap_or(0.0);
        result.cpu_share.is_some_and(|share| share + services >= AT_LIMIT)
    }

    /// The generator's threads: one for each of its cores, one where it has none of its own, and no more than there are connections.
    pub(super) fn load_threads(&self) -> usize {
        let connections = self.plan.shape.connections().max(1) as usize;
        self.record.plan.pinning.load_cpus.len().max(1).min(connections)
    }

    /// A contender's part of every epoch that it took part in.
    pub(super) fn parts(&self, contender: usize) -> Vec<&'_ ContenderEpoch> {
        self.epochs.iter().filter_map(|epoch| epoch.of(contender)).collect()
    }

    /// Every round, also those that were left out.
    pub(super) fn rounds(&self) -> impl Iterator<Item = &Round> {
        self.epochs.iter().flat_map(|epoch| &epoch.rounds)
    }

    /// A contender's slices of all rounds, also of those that were left out.
    pub(super) fn slices(&self, contender: usize) -> impl Iterator<Item = &Slice> {
        self.rounds().flat_map(|round| &round.slices).filter(move |slice| slice.contender == contender)
    }
}

/// What a gate read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    /// How much it weakens the number; none where it is within its limits.
    pub(super) severity: Option<Severity>,
    pub(super) code: &'static str,
    pub(super) contender: Option<String>,
    /// The metrics that it weakens; all of them where none is named.
    pub(super) metrics: Vec<Metric>,
    pub(super) message: String,
    pub(super) remedy: &'static str,
}

impl Reading {
    pub(super) fn about(self, contender: &str) -> Self {
        Self { contender: Some(contender.into()), ..self }
    }

    pub(super) fn finding(&self) -> Option<Finding> {
        Some(Finding {
            code: self.code.into(),
            severity: self.severity?,
            contender: self.contender.clone(),
            metrics: self.metrics.clone(),
            message: self.message.clone(),
            remedy: self.remedy.into(),
        })
    }

    /// As the document has it.
    pub(crate) fn shown(self) -> GateReading {
        GateReading {
            code: self.code.into(),
            contender: self.contender,
            state: self.severity.into(),
            reading: self.message,
        }
    }
}

/// Where a reading begins to warn, and where it takes the number away.
pub(super) struct Limits {
    pub(super) warn: f64,
    pub(super) invalid: f64,
}

/// For a reading that weakens nothing, however high.
pub(super) const NONE: Limits = Limits { warn: f64::INFINITY, invalid: f64::INFINITY };

impl Limits {
    /// What the gate says of the reading; a finding comes of it if that is over a limit.
    pub(super) fn judge(
        &self,
        code: &'static str,
        reading: f64,
        message: String,
        remedy: &'static str,
    ) -> Option<Reading> {
        let severity = if reading > self.invalid {
            Some(Severity::Invalid)
        } else {
            (reading > self.warn).then_some(Severity::Warn)
        };
        Some(Reading { severity, code, contender: None, metrics: Vec::new(), message, remedy })
    }
}
