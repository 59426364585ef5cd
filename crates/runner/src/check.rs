//! Checks parity alone: starts every contender once and sends it every probe, without measuring anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_record::{Contender, Difference, Limits, Plan};

use crate::authority::Authority;
use crate::events::{Event, Observer};
use crate::launcher::{Launcher, Until, fresh_logs, stop_all};
use crate::parity::{Contract, ProbeTarget};
use crate::race::{Place, RaceError};
use deadheat_host::command;
use deadheat_host::process::{Observe, StartError};

/// The result of a check.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Checked {
    /// All differences of all contenders.
    pub differences: Vec<Difference>,
    /// Contenders that did not start or did not answer, and why.
    pub failed: Vec<(String, String)>,
    /// Contenders whose answers were compared, in plain HTTP, over TLS, or both.
    pub compared: Vec<String>,
    /// Number of probes that each contender received.
    pub probes: usize,
    /// Whether the user interrupted the check.
    pub interrupted: bool,
}

/// Starts every contender of the plan, compares all answers, and stops all contenders. Repeats this over TLS if any scenario uses it.
///
/// # Errors
/// When the contract is invalid, a folder cannot be created or a service does not start.
pub fn check(
    plan: &Plan,
    logs: PathBuf,
    place: Place<'_>,
    stopped: &dyn Fn() -> bool,
    observer: &mut dyn Observer,
) -> Result<Checked, RaceError> {
    let failed = |path: &Path, source| RaceError::Folder { path: path.into(), source };
    fresh_logs(&logs, plan).map_err(|source| failed(&logs, source))?;
    std::fs::create_dir_all(&plan.work).map_err(|source| failed(&plan.work, source))?;
    let contract = Contract::new(&plan.probes, place.files, Duration::from_nanos(plan.method.timeout_ns))?;
    let (request, values) = (contract.first_request()?, command::values(plan));
    let Place { host, generator, clock, .. } = place;
    let mut launcher =
        Launcher { plan, host, generator, clock, logs, contract: &contract, request, values, stopped };
    let mut checked = Checked { probes: plan.probes.len(), ..Checked::default() };
    let _services = match launcher.start_services() {
        Err(StartError::Interrupted) => return Ok(Checked { interrupted: true, ..checked }),
        other => other.map_err(RaceError::Service)?,
    };
    let authority = Authority::of(plan)?;
    let over_tls = authority.as_ref().map(|authority| (contract.over(authority.settings()), authority));
    if over_tls.is_some() {
        launcher.without_certificate();
    }
    let secured =
        over_tls.as_ref().map(|(contract, authority)| launcher.over_tls(contract, authority)).transpose()?;
    let in_plain = plan.scenarios.is_empty() || plan.scenarios.iter().any(|one| !one.traffic.tls);
    let plain = |one: &Contender| in_plain || one.plain_http_only;
    let mut go_on = checked.round(&launcher, &plain, observer)?;
    if let Some(launcher) = secured.as_ref().filter(|_| go_on) {
        go_on = checked.round(launcher, &|one| !one.plain_http_only, observer)?;
    }
    let failed = |name: &str| checked.failed.iter().any(|(failed, _)| failed == name);
    let names = plan.contenders.iter().map(|one| one.name.clone());
    let compared = names.filter(|name| !failed(name)).collect();
    Ok(Checked { compared, interrupted: !go_on, ..checked })
}

impl Checked {
    /// Starts the contenders selected by `asked` that have no failure or difference yet, compares their answers, and stops them. Returns
    /// false if the user interrupts.
    fn round(
        &mut self,
        launcher: &Launcher<'_>,
        asked: &dyn Fn(&Contender) -> bool,
        observer: &mut dyn Observer,
    ) -> Result<bool, RaceError> {
        let (log, when) = match launcher.contract.tls() {
            None => ("check", "before the race"),
            Some(_) => ("check-over-tls", "before the race, over TLS"),
        };
        let mut runners = Vec::new();
        for (index, contender) in launcher.plan.contenders.iter().enumerate() {
            let wrong = self.failed.iter().any(|(name, _)| *name == contender.name)
                || self.differences.iter().any(|one| one.contender == contender.name);
            if wrong || !asked(contender) {
                continue;
            }
            observer.event(&Event::Doing(&format!("starting {}", contender.name)));
            match launcher.start(index, &Limits::default(), Until::Parity, log, Observe::Nothing, observer) {
                Ok(runner) => runners.push(runner),
                Err(StartError::Interrupted) => {
                    stop_all(runners);
                    return Ok(false);
                }
                Err(error) => {
                    let reason = error.to_string();
                    observer.event(&Event::Out { contender: &contender.name, reason: &reason });
                    self.failed.push((contender.name.clone(), reason));
                }
            }
        }
        if runners.is_empty() {
            return Ok(true);
        }
        observer.event(&Event::Doing("comparing answers"));
        for runner in &runners {
            runner.process.thaw().map_err(|error| RaceError::Failed(error.to_string()))?;
        }
        let asked: Vec<ProbeTarget<'_>> = runners
            .iter()
            .map(|runner| ProbeTarget { name: runner.process.name(), address: runner.process.address() })
            .collect();
        let found = launcher.parity(&asked, when);
        stop_all(runners);
        launcher.host.take_left_behind().iter().for_each(|finding| observer.event(&Event::Finding(finding)));
        let found = found?;
        let go_on = found.is_some();
        let encodings = found.as_ref().and_then(|parity| parity.different_encodings(&[]));
        encodings.iter().for_each(|finding| observer.event(&Event::Finding(finding)));
        self.differences.extend(found.map(|parity| parity.differences).unwrap_or_default());
        Ok(go_on)
    }
}
