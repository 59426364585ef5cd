//! The diagnostic pass: measures how long garbage collectors pause contenders, in separate starts that affect no other result.
//!
//! Owns: how a contender is made to log, when it is loaded, and which part of the log counts. Must not know: how a verdict is reached,
//! and how pauses are shown. Each collector's format has its own reader, which turns text into pauses.

mod go;
mod jsc;
mod v8;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use deadheat_record::{Collector, CollectorKind, CollectorPass, Finding, Line, Pauses, Plan, ScenarioPlan};

use crate::alone::{Alone, WHEN, disturbed, failure};
use crate::epoch::{EpochError, EpochRun, dropped, lost};
use crate::loaded::{LoadTotals, LoadedContender, SliceStart};
use crate::parity::Parity;
use crate::race::{Race, ScenarioError, ScenarioRun};
use deadheat_host::command::line_buffering;
use deadheat_host::monitor::Disturbance;
use deadheat_host::process::Observe;

impl Race<'_> {
    /// Runs the diagnostic pass after a scenario is decided: starts each contender that declares a collector once more, alone and with
    /// its logging on, and loads it as in the scenario. A failure here is a finding, and no contender drops out of the race.
    pub(crate) fn watch_collectors(&mut self, run: &ScenarioRun<'_>) -> Result<(), ScenarioError> {
        let (plan, scenario) = (run.launcher.plan, run.scenario);
        if !is_watched(plan, scenario) {
            return Ok(());
        }
        for contender in self.record.racing(&scenario.name) {
            let one = &plan.contenders[contender];
            let seen = self.record.collectors_of(&scenario.name).any(|pass| pass.contender == one.name);
            let Some(collector) = one.collector.as_ref().filter(|_| !seen) else { continue };
            let finding = match self.watch_collector(run, contender, collector) {
                Ok(Some((pass, why))) => {
                    self.write(Line::Collector(pass))?;
                    let Some(why) = why else { continue };
                    disturbed("collector-disturbed", &one.name, &why, "pauses may be shorter than they look")
                }
                Ok(None) => silent(&one.name, collector.kind),
                Err(EpochError::Interrupted) => return Err(EpochError::Interrupted.into()),
                Err(broken) => unseen(&one.name, &broken),
            };
            self.note(Some(&scenario.name), finding)?;
        }
        Ok(())
    }

    /// Runs the pass of one contender. Returns the pass and what disturbed it; none if the log has no line of a collector.
    fn watch_collector(
        &mut self,
        run: &ScenarioRun<'_>,
        contender: usize,
        collector: &Collector,
    ) -> Result<Option<(CollectorPass, Option<String>)>, EpochError> {
        let mut variables = collector.env.clone();
        variables.extend(line_by_line(collector.kind));
        let start = Alone {
            contender,
            variables: &variables,
            observe: Observe::Nothing,
            log: "collector",
            doing: "watching the collector of",
        };
        let loaded = self.alone(run, &start, |epoch_run, one, parity| {
            Ok((load(epoch_run, one, parity)?, one.runner.process.log().to_owned()))
        });
        let (Load { window, sum, seen }, log) = loaded?;
        let text = fs::read(&log).map_err(|error| unreadable(&log, &error))?;
        let reading = read(collector.kind, &text, &window);
        let pass = CollectorPass {
            scenario: run.scenario.name.clone(),
            contender: run.launcher.plan.contenders[contender].name.clone(),
            kind: collector.kind,
            load_ns: sum.elapsed_ns,
            external: seen.reading,
            requests: sum.completions,
            pauses: reading.pauses,
            log,
        };
        Ok(reading.heard.then(|| (pass, dropped(&seen, None))))
    }
}

/// Whether the scenario has a diagnostic pass. A peak search has none: it consists of many different loads.
fn is_watched(plan: &Plan, scenario: &ScenarioPlan) -> bool {
    plan.method.collectors_ns > 0 && scenario.shape.is_steady()
}

/// The result of a load on one contender.
struct Load {
    /// The range of bytes that the log grew by during the load.
    window: Range<u64>,
    /// The contender's answers.
    sum: LoadTotals,
    /// The disturbances on the machine.
    seen: Disturbance,
}

/// Loads a warm contender.
fn load(epoch_run: &EpochRun<'_>, one: &mut LoadedContender, parity: &Parity) -> Result<Load, EpochError> {
    let (plan, scenario) = (epoch_run.launcher.plan, epoch_run.scenario);
    let log = one.runner.process.log().to_owned();
    let size = || fs::metadata(&log).map(|facts| facts.len()).map_err(|error| unreadable(&log, &error));
    // A slice always contains all stages of a rate, whatever its length.
    let length_ns = match scenario.traffic.stages {
        Some(_) => plan.slices(scenario).slice_ns,
        None => plan.method.collectors_ns,
    };
    let moment = |one: &LoadedContender| epoch_run.moment_of(one);
    let (start, before) = (size()?, moment(one));
    let tally = one.slice(Duration::from_nanos(length_ns), SliceStart::Time(0));
    let tally = tally.map_err(|error| lost(&one.runner, &error))?;
    let (window, seen) = (start..size()?, epoch_run.watch.between(&before, &moment(one)));
    epoch_run.still_there(one, WHEN)?;
    let mut sum = LoadTotals::default();
    sum.add(tally);
    epoch_run.check_answers(one, &sum, parity)?;
    Ok(Load { window, sum, seen })
}

fn unreadable(log: &Path, error: &std::io::Error) -> EpochError {
    EpochError::Failed(format!("its log {}: {error}", log.display()))
}

/// The variables that a contender needs besides its own so that each line reaches the log immediately. V8 logs to standard output, and
/// Deno, unlike Node.js, leaves the buffering of standard output to the C library.
fn line_by_line(kind: CollectorKind) -> BTreeMap<String, String> {
    if kind == CollectorKind::V8 { line_buffering() } else { BTreeMap::new() }
}

fn silent(name: &str, kind: CollectorKind) -> Finding {
    let what = format!("the log of its diagnostic pass contains no collection by {}", kind.word());
    let remedy = "check that `collector` names its runtime and that every process of the contender gets the variables in its `env`; Deno's log needs `stdbuf`, which comes with coreutils";
    Finding::warn("collector-silent", what, remedy).about(name)
}

fn unseen(name: &str, broken: &EpochError) -> Finding {
    let why = failure(name, broken);
    let what = format!("its collector could not be watched: {why}");
    let remedy = "read its log of that start, or leave the pass out with --collectors 0";
    Finding::warn("collector-unseen", what, remedy).about(name)
}

/// The contents of a log.
struct GcLog {
    /// Pauses in the window.
    pauses: Pauses,
    /// Whether a collector wrote anything at all. If so, its logging is on, and an empty window really has no pauses.
    heard: bool,
}

/// Reads a whole log. A line belongs to the window if it starts there. Other programs' lines are skipped.
fn read(kind: CollectorKind, log: &[u8], window: &Range<u64>) -> GcLog {
    let take = match kind {
        CollectorKind::V8 => v8::line,
        CollectorKind::JavaScriptCore => jsc::line,
        CollectorKind::Go => go::line,
    };
    let mut reading = GcLog { pauses: Pauses::default(), heard: false };
    let mut before = Pauses::default();
    let mut at = 0_u64;
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let pauses = if window.contains(&at) { &mut reading.pauses } else { &mut before };
        reading.heard |= take(text.trim_end(), pauses);
        at += line.len() as u64;
    }
    reading
}

/// Parses a time in milliseconds; none if the text is not a time.
fn ns_of_ms(text: &str) -> Option<u64> {
    let ms = text.parse::<f64>().ok().filter(|ms| (0.0..=1e9).contains(ms))?;
    Some((ms * 1e6).round() as u64)
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
