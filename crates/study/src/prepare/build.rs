//! Runs the build command of each contender, once before the race. A failed build stops the race before it begins.

use deadheat_record::Plan;

use super::{PrepareError, Progress};
use crate::file::{Contender, Study};
use deadheat_host::command::{self, ShellCommand};

pub(super) fn all(study: &Study, plan: &Plan, progress: Progress<'_>) -> Result<(), PrepareError> {
    let raced =
        |contender: &&Contender| plan.contenders.iter().any(|raced| raced.name == *contender.name.get_ref());
    study.contenders.iter().filter(raced).try_for_each(|contender| build(contender, plan, progress))
}

fn build(contender: &Contender, plan: &Plan, progress: Progress<'_>) -> Result<(), PrepareError> {
    let Some(command) = &contender.build else { return Ok(()) };
    let name = contender.name.get_ref();
    progress(&format!("building {name} ..."));
    let log = plan.work.join("logs").join(command::log_name("build", name));
    let env = contender.env.iter().map(|(name, value)| (name, value.get_ref()));
    let order = ShellCommand::new(command.get_ref(), &contender.folder, env, &command::values(plan), log);
    let ended = match order.run() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => command::ended(status),
        Err(error) => format!("could not be run: {error}"),
    };
    Err(PrepareError::Failed {
        what: format!("the build of {name}"),
        command: order.shown(),
        ended,
        tail: order.tail(),
        remedy: format!(
            "run it in {} to see more, or race without this contender: --only with the others' names",
            contender.folder.display()
        ),
    })
}
