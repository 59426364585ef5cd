//! Parity alone: every contender is started once and asked every probe; nothing is measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_record::{Difference, Limits, Plan};

use crate::events::{Event, Observer};
use crate::field::{Gate, Until, fresh_logs, stop_all};
use crate::parity::{Asked, Contract};
use crate::race::{Place, RaceError};
use deadheat_host::process::StartError;

/// What a check found.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Checked {
    /// All differences of all contenders.
    pub differences: Vec<Difference>,
    /// Contenders that did not start or answer, and why.
    pub failed: Vec<(String, String)>,
    /// Contenders that were compared.
    pub compared: Vec<String>,
    /// Probes that each was asked.
    pub probes: usize,
    /// Whether a person asked for the end.
    pub interrupted: bool,
}

/// Placeholders that do not depend on a start.
pub(crate) fn values(plan: &Plan) -> BTreeMap<String, String> {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut values =
        BTreeMap::from([("work".into(), text(&plan.work)), ("study".into(), text(&plan.folder))]);
    values.extend(plan.dataset.as_deref().map(|path| ("dataset".to_owned(), text(path))));
    values
}

/// Starts every contender of the plan, compares all answers, and stops all.
///
/// # Errors
/// When the contract cannot be used, a folder cannot be made or a service does not start.
pub fn check(
    plan: &Plan,
    logs: PathBuf,
    place: Place<'_>,
    stopped: &dyn Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<Checked, RaceError> {
    let failed = |path: &Path, source| RaceError::Folder { path: path.into(), source };
    fresh_logs(&logs).map_err(|source| failed(&logs, source))?;
    std::fs::create_dir_all(&plan.work).map_err(|source| failed(&plan.work, source))?;
    let contract = Contract::new(&plan.probes, Duration::from_nanos(plan.method.timeout_ns))?;
    let (request, values) = (contract.first_request()?, values(plan));
    let Place { host, generator, clock } = place;
    let mut gate = Gate { plan, host, generator, clock, logs, contract: &contract, request, values, stopped };
    let mut checked = Checked { probes: plan.probes.len(), ..Checked::default() };
    let _services = match gate.start_services() {
        Err(StartError::Interrupted) => return Ok(Checked { interrupted: true, ..checked }),
        other => other.map_err(RaceError::Service)?,
    };
    let mut runners = Vec::new();
    for (index, contender) in plan.contenders.iter().enumerate() {
        observer.event(&Event::Doing(&format!("starting {}", contender.name)));
        match gate.start(index, &Limits::default(), Until::Parity, "check", false) {
            Ok(runner) => runners.push(runner),
            Err(StartError::Interrupted) => {
                stop_all(runners);
                return Ok(Checked { interrupted: true, ..checked });
            }
            Err(error) => {
                let reason = error.to_string();
                observer.event(&Event::Out { contender: &contender.name, reason: &reason });
                checked.failed.push((contender.name.clone(), reason));
            }
        }
    }
    observer.event(&Event::Doing("comparing answers"));
    for runner in &runners {
        runner.running.thaw().map_err(|error| RaceError::Failed(error.to_string()))?;
    }
    let asked: Vec<Asked<'_>> = runners
        .iter()
        .map(|runner| Asked { name: runner.running.name(), address: runner.running.address() })
        .collect();
    checked.compared = asked.iter().map(|one| one.name.to_owned()).collect();
    let found = contract
        .check(&asked, "before the race", &|all, question, patience| gate.ask_all(all, question, patience));
    stop_all(runners);
    host.take_left_behind().iter().for_each(|finding| observer.event(&Event::Finding(finding)));
    match found? {
        Some(parity) => Ok(Checked { differences: parity.differences, ..checked }),
        None => Ok(Checked { interrupted: true, ..checked }),
    }
}
