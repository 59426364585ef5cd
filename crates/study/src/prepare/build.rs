//! Runs the build command of each contender, once before the race. A failed build stops the race before it begins. In a race of revisions it only
//! excludes the contender, because revisions that do not build are not the user's mistake.

use std::time::Duration;

use deadheat_host::command::{self, Ran, SEED, ShellCommand, values_of};
use deadheat_record::{Contender, Plan};

use super::{PrepareError, Progress, RunCommand};
use crate::file::Study;

pub(super) fn all(
    study: &Study,
    plan: &Plan,
    run: RunCommand<'_>,
    limit: Duration,
    progress: Progress<'_>,
) -> Result<Vec<(String, PrepareError)>, PrepareError> {
    let mut unbuilt = Vec::new();
    for planned in &plan.contenders {
        let contender = study.contender(&planned.name);
        let Some(command) = contender.and_then(|one| one.build.as_ref()) else { continue };
        progress(&format!("building {} ...", planned.name));
        match build(command.get_ref(), planned, plan, run, limit) {
            Ok(()) => {}
            Err(error @ PrepareError::Failed { .. }) if planned.revision.is_some() => {
                unbuilt.push((planned.name.clone(), error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(unbuilt)
}

fn build(
    command: &str,
    planned: &Contender,
    plan: &Plan,
    run: RunCommand<'_>,
    limit: Duration,
) -> Result<(), PrepareError> {
    let name = &planned.name;
    let log = plan.work.join("logs").join(command::log_name("build", name));
    let mut values = values_of(planned, &command::values(plan));
    // Versions and sizes are those of one build; each epoch has its own.
    values.insert(SEED.into(), "1".into());
    let order = ShellCommand::new(command, &planned.folder, &planned.env, &values, log);
    let ended = match run(name, &order, limit) {
        Ok(Ran::Ended(status)) if status.success() => return Ok(()),
        Ok(Ran::Ended(status)) => format!("ended with {}", command::in_words(status)),
        Ok(Ran::TooLong(limit)) => {
            format!(
                "ran for over {} s, so deadheat ended it; --build-timeout sets the limit",
                limit.as_secs_f64()
            )
        }
        Ok(Ran::Interrupted) => return Err(PrepareError::Interrupted),
        Err(error) => format!("could not be run: {error}"),
    };
    let remedy = match &planned.revision {
        Some(revision) => format!("check out {} and run it there to see more", revision.name),
        None => format!(
            "run it in {} to see more, or race without this contender: --only with the others' names",
            planned.folder.display()
        ),
    };
    Err(PrepareError::Failed {
        what: format!("the build of {name}"),
        command: order.shown(),
        ended,
        tail: order.tail(),
        remedy,
    })
}
