//! Version commands: what is raced should be known, yet a race does not fail for want of it.

use std::time::Duration;

use deadheat_record::{Finding, Plan};

use super::command::{self, Order};
use crate::study::{Contender, Study};

/// A version command that takes longer is given up.
const LIMIT: Duration = Duration::from_secs(10);
/// So much of its first line is kept.
const LENGTH: usize = 200;

/// Asks each contender of the plan for its version.
pub(super) fn all(study: &Study, plan: &mut Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    for index in 0..plan.contenders.len() {
        let name = &plan.contenders[index].name;
        let asked = study.contenders.iter().find(|contender| contender.name.get_ref() == name);
        match asked.and_then(|contender| ask(contender, plan, LIMIT)) {
            Some(Ok(version)) => plan.contenders[index].version = Some(version),
            Some(Err(reason)) => {
                let message = format!("the version of {name} is not known: {reason}");
                let remedy = "mend `version` of that [[contender]]: it prints one line and exits with 0";
                findings.push(Finding::warn("no-version", message, remedy).about(name));
            }
            None => {}
        }
    }
    findings
}

/// None where it has no version command.
pub(super) fn ask(contender: &Contender, plan: &Plan, limit: Duration) -> Option<Result<String, String>> {
    let command = contender.version.as_ref()?;
    let log = plan.work.join("logs").join(command::log_name("version", contender.name.get_ref()));
    let order = Order::new(command.get_ref(), &contender.folder, &contender.env, &command::values(plan), log);
    Some(match order.run_within(limit) {
        Err(error) => Err(format!("`{}` could not be run: {error}", order.shown())),
        Ok(None) => Err(format!("`{}` took over {} s", order.shown(), limit.as_secs_f64())),
        Ok(Some(status)) if !status.success() => {
            Err(format!("`{}` {}", order.shown(), command::ended(status)))
        }
        Ok(Some(_)) => {
            first_line(&order.output()).ok_or_else(|| format!("`{}` printed nothing", order.shown()))
        }
    })
}

fn first_line(output: &str) -> Option<String> {
    let line = output.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(command::printable(line).chars().take(LENGTH).collect())
}
