//! Diagnostic passes: a contender runs once more, alone, in a separate start that affects no other result.
//!
//! Owns: that start, its warm-up and its environment. Must not know: what a pass observes.

use std::collections::BTreeMap;
use std::time::Duration;

use deadheat_host::process::Observe;
use deadheat_record::{Contender, Finding};

use crate::epoch::{EpochError, EpochRun, contenders_of};
use crate::events::Event;
use crate::launcher::{Launcher, stop_all};
use crate::loaded::LoadedContender;
use crate::parity::Parity;
use crate::race::{Race, ScenarioRun};

/// The moment of a pass, in messages about a contender that fails in it.
pub(crate) const WHEN: &str = "in the diagnostic pass";
/// Variables that hold lists of options, each with its separator. The options that a contender already has there stay.
const LISTS: [(&str, &str); 4] =
    [("NODE_OPTIONS", " "), ("DENO_V8_FLAGS", ","), ("GODEBUG", ","), ("LD_PRELOAD", ":")];

/// A start of one contender alone.
pub(crate) struct Alone<'a> {
    /// Index into the plan's contenders.
    pub contender: usize,
    /// Variables that are added to its environment.
    pub variables: &'a BTreeMap<String, String>,
    /// What the kernel observes of it.
    pub observe: Observe,
    /// Its place in the names of log files.
    pub log: &'a str,
    /// What the pass does, in a few words.
    pub doing: &'a str,
}

impl Race<'_> {
    /// Starts the contender, warms it up as in the scenario, lets `load` load it, and stops it.
    ///
    /// # Errors
    /// When it fails, or the user interrupts.
    pub(crate) fn alone<T>(
        &mut self,
        run: &ScenarioRun<'_>,
        start: &Alone<'_>,
        load: impl FnOnce(&EpochRun<'_>, &mut LoadedContender, &Parity) -> Result<T, EpochError>,
    ) -> Result<T, EpochError> {
        let mut plan = run.launcher.plan.clone();
        let one = &mut plan.contenders[start.contender];
        one.env = with_variables(one, start.variables, &|name| std::env::var(name).ok());
        let launcher = Launcher { plan: &plan, ..run.launcher.clone() };
        let run = ScenarioRun { launcher: &launcher, ..*run };
        let warmup = Duration::from_nanos(self.record.warmup_ns(&run.scenario.name).unwrap_or(0));
        let mut epoch_run = run.epoch_run(vec![start.contender], warmup, 0, plan.method.seed);
        epoch_run.observe = start.observe;
        let ready = epoch_run.start_all(&format!("{}-{}", start.log, run.index + 1), WHEN, self.observer)?;
        let (mut loaded, parity) = epoch_run.open_all(ready)?;
        let warm = epoch_run.warm_up(&mut loaded, &parity, self.observer);
        let seen = warm.and_then(|_| {
            let one =
                loaded.first_mut().ok_or_else(|| EpochError::Failed("no contender was started".into()))?;
            self.observer.event(&Event::Doing(&format!("{} {}", start.doing, one.runner.process.name())));
            load(&epoch_run, one, &parity)
        });
        stop_all(contenders_of(loaded).collect());
        seen
    }
}

/// The environment of a contender with additional variables. `here` is the environment that it inherits.
fn with_variables(
    contender: &Contender,
    variables: &BTreeMap<String, String>,
    here: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let mut env = contender.env.clone();
    for (name, value) in variables {
        let had = env.get(name).cloned().or_else(|| here(name)).filter(|had| !had.is_empty());
        let between = LISTS.iter().find(|(list, _)| list == name).map(|(_, between)| between);
        let value = match (had, between) {
            (Some(had), Some(between)) => format!("{had}{between}{value}"),
            _ => value.clone(),
        };
        env.insert(name.clone(), value);
    }
    env
}

/// Why a pass failed, without the contender's name in front.
pub(crate) fn failure(name: &str, broken: &EpochError) -> String {
    let why = match broken {
        // The first line says what happened. The last lines of the contender's log stay in the log.
        EpochError::Out(_, why) | EpochError::Failed(why) => {
            why.lines().next().unwrap_or_default().to_owned()
        }
        EpochError::Parity(differences) => {
            let first = differences.first().map(|one| format!(": {} is {}", one.path, one.got));
            format!("it answers differently in this pass{}", first.unwrap_or_default())
        }
        EpochError::Interrupted => "interrupted".into(),
    };
    why.strip_prefix(name).map_or(why.as_str(), str::trim_start).to_owned()
}

/// Something else used the machine during the pass of a contender, which `what` follows from.
pub(crate) fn disturbed(code: &str, name: &str, why: &str, what: &str) -> Finding {
    let remedy = "stop other programs, or use a machine that is not shared";
    Finding::warn(code, format!("{why} during its diagnostic pass: {what}"), remedy).about(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_added_to_those_that_a_contender_has() {
        let variables = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let contender = Contender {
            env: variables(&[("GODEBUG", "madvdontneed=1"), ("LEVEL", "3")]),
            ..Contender::default()
        };
        let added = variables(&[
            ("GODEBUG", "x=1"),
            ("NODE_OPTIONS", "x=1"),
            ("LEVEL", "x=1"),
            ("LD_PRELOAD", "/a.so"),
        ]);
        let here = |name: &str| match name {
            "NODE_OPTIONS" => Some("--no-warnings".to_owned()),
            "GODEBUG" => Some("its own comes first".to_owned()),
            _ => Some(String::new()),
        };
        let env = with_variables(&contender, &added, &here);
        assert_eq!(env["GODEBUG"], "madvdontneed=1,x=1");
        assert_eq!(env["NODE_OPTIONS"], "--no-warnings x=1");
        assert_eq!((env["LEVEL"].as_str(), env["LD_PRELOAD"].as_str()), ("x=1", "/a.so"));
    }
}
