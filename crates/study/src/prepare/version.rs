//! Runs version commands. A record should contain the versions, but a missing version does not make a race fail. A resumed race runs the commands
//! again.

use std::time::Duration;

use deadheat_record::{Contender, Finding, Plan};

use super::Progress;
use crate::file::Study;
use deadheat_host::command::{self, ShellCommand, values_of};

/// deadheat stops a version command that takes longer than this.
const LIMIT: Duration = Duration::from_secs(10);
/// The number of characters of the first line that are kept.
const LENGTH: usize = 200;

/// A contender whose version differs from the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The name of the contender.
    pub name: String,
    /// The version in the plan.
    pub then: String,
    /// The version that its command prints now.
    pub now: String,
}

/// Asks for the version of each contender in the plan.
pub(super) fn all(study: &Study, plan: &mut Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for index in 0..plan.contenders.len() {
        let planned = &plan.contenders[index];
        let name = &planned.name;
        let asked = study.contender(name);
        let Some(command) = asked.and_then(|contender| contender.version.as_ref()) else { continue };
        match ask(command.get_ref(), planned, plan, LIMIT) {
            Ok(version) => plan.contenders[index].version = Some(version),
            Err(reason) => {
                let message = format!("the version of {name} is not known: {reason}");
                let remedy = "fix `version` of that [[contender]]: its command must print one line and exit with status 0";
                findings.push(Finding::warn("no-version", message, remedy).about(name));
            }
        }
    }
    findings
}

/// Asks again for the versions in the plan, except for contenders that are `out` and for the control, which is the baseline again. An unknown version is reported to `progress` and does not count
/// as a change.
pub(super) fn changed(study: &Study, plan: &Plan, out: &[String], progress: Progress<'_>) -> Vec<Changed> {
    let mut changed = Vec::new();
    let counts = |one: &&Contender| {
        !out.contains(&one.name) && one.revision.is_none() && one.container.is_none() && !one.control
    };
    for planned in plan.contenders.iter().filter(counts) {
        let (name, Some(then)) = (&planned.name, &planned.version) else { continue };
        match again(study, planned, plan) {
            Ok(now) if now == *then => {}
            Ok(now) => changed.push(Changed { name: name.clone(), then: then.clone(), now }),
            Err(reason) => {
                progress(&format!(
                    "note: deadheat cannot check whether {name} still has version {then}: {reason}"
                ));
            }
        }
    }
    changed
}

/// The version of a contender that still has the command of the plan. If the study has a different command now, its version would belong to another
/// program.
fn again(study: &Study, planned: &Contender, plan: &Plan) -> Result<String, String> {
    let asked = study.contender(&planned.name);
    let asked = asked.ok_or("the study no longer has it")?;
    if *asked.command.get_ref() != planned.command {
        return Err("the study now starts it with another command".into());
    }
    let command = asked.version.as_ref().ok_or("the study no longer has its `version` command")?;
    ask(command.get_ref(), planned, plan, LIMIT)
}

/// Runs a version command in the contender's folder and environment. The error says why there is no version.
pub(super) fn ask(
    command: &str,
    contender: &Contender,
    plan: &Plan,
    limit: Duration,
) -> Result<String, String> {
    let log = plan.work.join("logs").join(command::log_name("version", &contender.name));
    let order = ShellCommand::new(
        command,
        &contender.folder,
        &contender.env,
        &values_of(contender, &command::values(plan)),
        log,
    );
    match order.run_within(limit) {
        Err(error) => Err(format!("`{}` could not be run: {error}", order.shown())),
        Ok(None) => Err(format!("`{}` took over {} s", order.shown(), limit.as_secs_f64())),
        Ok(Some(status)) if !status.success() => {
            Err(format!("`{}` ended with {}", order.shown(), command::in_words(status)))
        }
        Ok(Some(_)) => {
            first_line(&order.output()).ok_or_else(|| format!("`{}` printed nothing", order.shown()))
        }
    }
}

fn first_line(output: &str) -> Option<String> {
    let line = output.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(command::printable(line).chars().take(LENGTH).collect())
}
