//! Scenarios without load: fresh starts, and commands that make contenders measure something themselves. Each epoch is one round, with
//! one value for each contender.
//!
//! Owns: the run of such a round, and how the output line of a command is read. Must not know: how values are judged.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use deadheat_analysis::judge::{AskError, Judge};
use deadheat_record::{ContenderEpoch, End, Ending, Epoch, Listen, Round};
use serde_json::Value;

use crate::epoch::{EpochError, EpochRun, dropped, out};
use crate::events::{Event, Observer};
use crate::launcher::{Until, stop_all};
use crate::parity::ProbeTarget;
use crate::race::{Race, RaceError, ScenarioError, ScenarioRun};
use crate::schedule;
use deadheat_host::command::values_of;
use deadheat_host::process::{Observe, ProcessSpec};
use deadheat_host::usage;

/// Maximum run time of a command that measures something.
const PATIENCE: Duration = Duration::from_secs(180);
/// Interval between checks whether the command has ended.
const GLANCE: Duration = Duration::from_millis(5);
/// Units of time, in nanoseconds.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

impl Race<'_> {
    /// Runs rounds of single values until the judge decides. Before fresh starts, it compares the answers of all contenders once, side by
    /// side.
    pub(crate) fn values(&mut self, run: &ScenarioRun<'_>) -> Result<End, ScenarioError> {
        let method = run.launcher.plan.method_of(run.scenario);
        let judge = Judge::new(&method).map_err(|error| RaceError::from(AskError::from(error)))?;
        let run = ScenarioRun { judge: &judge, ..*run };
        if run.scenario.shape.starts().is_some() {
            let racing = self.record.racing(&run.scenario.name);
            let epoch_run = run.epoch_run(racing, Duration::ZERO, 0, method.seed);
            let ready = epoch_run.start_all("before", "before the starts", self.observer)?;
            self.give_way_to(&ready, &run)?;
            self.note_encodings(&ready, &run)?;
            stop_all(ready.runners);
        }
        let mut has_run = false;
        loop {
            if let Some(end) = self.is_over(&run)? {
                return Ok(end);
            }
            if has_run && self.is_time_to_pause(&run)? {
                return Err(ScenarioError::Paused);
            }
            self.epoch(&run)?;
            has_run = true;
        }
    }
}

impl EpochRun<'_> {
    /// Starts every contender once, in random order, each alone on the cores. After its first answer, each contender gets every probe and
    /// must meet the contract.
    ///
    /// # Errors
    /// When a contender does not start, or its answers are wrong.
    pub(crate) fn start_each(&self, observer: &mut dyn Observer) -> Result<Epoch, EpochError> {
        self.one_value_each(observer, &|contender, observer| {
            let log = format!("start-{}", self.number);
            let name = self.launcher.plan.contenders[contender].name.clone();
            let started = self.launcher.start(
                contender,
                &self.scenario.limits,
                Until::Right,
                &log,
                Observe::Nothing,
                observer,
            );
            let runner = started.map_err(|error| out(&name, error))?;
            let checked =
                runner.process.thaw().map_err(|error| EpochError::Failed(error.to_string())).and_then(|()| {
                    let asked = [ProbeTarget { name: &name, address: runner.process.address() }];
                    let checked = self.launcher.parity(&asked, &format!("start {}", self.number));
                    checked
                        .map_err(|error| EpochError::Failed(error.to_string()))?
                        .ok_or(EpochError::Interrupted)
                });
            let part = ContenderEpoch {
                contender,
                cold_start_ns: runner.cold_start.as_nanos() as u64,
                usage: usage::since_start(&*runner.process),
                log: runner.process.log().into(),
                ..ContenderEpoch::default()
            };
            stop_all(vec![runner]);
            match checked? {
                parity if parity.differences.is_empty() => Ok(part),
                parity => Err(EpochError::Parity(parity.differences)),
            }
        })
    }

    /// Runs the command `measure` of every contender once, in random order.
    ///
    /// # Errors
    /// When a command fails or prints no value.
    pub(crate) fn measure_each(
        &self,
        measure: &str,
        observer: &mut dyn Observer,
    ) -> Result<Epoch, EpochError> {
        self.one_value_each(observer, &|contender, _| self.measured(contender, measure))
    }

    fn one_value_each(
        &self,
        observer: &mut dyn Observer,
        value: &dyn Fn(usize, &mut dyn Observer) -> Result<ContenderEpoch, EpochError>,
    ) -> Result<Epoch, EpochError> {
        self.reset_services()?;
        let clock = self.launcher.clock;
        let (started, started_unix_ms) = (clock.now(), clock.unix_ms());
        let order = schedule::shuffled(&self.racing, self.seed);
        // Builds come first: what they use is no reading of a contender.
        let build = |contender: &usize| {
            let built = self.build(*contender, observer);
            built.map_err(|error| out(&self.launcher.plan.contenders[*contender].name, error))
        };
        let seeds = order.iter().map(build).collect::<Result<Vec<_>, _>>()?;
        let services = || self.services.iter().map(|one| one.cpu_ns().0).sum::<u64>();
        let before = self.watch.moment(services());
        let mut contenders = Vec::new();
        for (place, contender) in order.iter().enumerate() {
            let name = &self.launcher.plan.contenders[*contender].name;
            let doing = format!("round {}: {name} ({} of {})", self.number, place + 1, order.len());
            observer.event(&Event::Doing(&doing));
            let host = self.watch.host();
            let part = value(*contender, observer)?;
            let host = self.watch.host().since(&host);
            contenders.push(ContenderEpoch { host, build_seed: seeds[place], ..part });
        }
        // Ended processes are in no cgroup any more. The readings of the contenders before their end are precise. Their last moments and
        // the processes that watched them are only in the coarser total of what this process has waited for.
        let used: u64 = contenders.iter().map(|part| part.usage.cpu_ns).sum();
        let used = used.max(self.watch.ended_since(&before));
        let seen = self.watch.between(&before, &self.watch.moment(services() + used));
        contenders.sort_by_key(|part| part.contender);
        let round = Round { slices: Vec::new(), external: seen.reading, dropped: dropped(&seen, None) };
        Ok(self.record(started_unix_ms, started, contenders, vec![round]))
    }

    /// Runs a contender's command until it ends, on the contenders' cores and within the scenario's limits.
    fn measured(&self, contender: usize, measure: &str) -> Result<ContenderEpoch, EpochError> {
        let one = &self.launcher.plan.contenders[contender];
        let command = one.measures.get(measure).map_or("", String::as_str);
        let log = self.launcher.log(contender, &format!("measure-{}-{}", self.number, self.scenario.name));
        // Output of an earlier attempt at this epoch does not belong to this one.
        without(&log).map_err(|error| EpochError::Failed(format!("{}: {error}", log.display())))?;
        let values = values_of(one, &self.launcher.values);
        let start = ProcessSpec {
            name: &one.name,
            command,
            folder: &one.folder,
            env: &one.env,
            listen: &Listen::FreePort,
            ending: &Ending::default(),
            cpus: &self.launcher.plan.pinning.server_cpus,
            limits: &self.scenario.limits,
            log: log.clone(),
            values: &values,
            sockets: &self.launcher.plan.work,
            observe: Observe::Nothing,
        };
        let process = self.launcher.host.start(&start).map_err(|error| out(&one.name, error))?;
        let (clock, begun) = (self.launcher.clock, self.launcher.clock.now());
        while process.exited().is_none() {
            if (self.launcher.stopped)() {
                process.stop();
                return Err(EpochError::Interrupted);
            }
            if clock.now() - begun > PATIENCE {
                let why = format!("{}: `{measure}` took over {} s", one.name, PATIENCE.as_secs());
                process.stop();
                return Err(EpochError::Out(one.name.clone(), why));
            }
            // If no cgroup counts it, the CPU time of an ended process is lost, so it is read while the process runs.
            process.cpu_ns();
            clock.sleep(GLANCE);
        }
        let usage = usage::since_start(&*process);
        let (ended, tail) = (process.exited().unwrap_or_default(), process.tail());
        let well = process.ended().is_some_and(|status| status.success());
        process.stop();
        let printed = fs::read_to_string(&log).unwrap_or_default();
        let Some((value, step)) = value(&printed).filter(|_| well) else {
            let what = if well { " and printed no value" } else { "" };
            let why = format!("{}: `{measure}` ended with {ended}{what}{tail}", one.name);
            return Err(EpochError::Out(one.name.clone(), why));
        };
        let (measured, measured_step) = (Some(value), Some(step));
        Ok(ContenderEpoch { contender, measured, measured_step, usage, log, ..ContenderEpoch::default() })
    }
}

/// Removes a file if there is one.
fn without(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads the value on the last line, `{"value": 1.28, "unit": "s"}`, and one unit of its last digit. Times are in nanoseconds, other
/// values unchanged. The value is above 0 and finite.
fn value(printed: &str) -> Option<(f64, f64)> {
    let line = printed.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let line: Value = serde_json::from_str(line).ok()?;
    let unit = line.get("unit").and_then(Value::as_str).unwrap_or_default();
    let size = UNITS.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, size)| *size);
    let number = line.get("value")?;
    let value = number.as_f64()? * size;
    (value.is_finite() && value > 0.0).then(|| (value, last_digit(&number.to_string()) * size))
}

/// One unit in the last digit of a number as JSON writes it: 0.01 for `1.28`, 1 for `12`, 100 for `1.5e3`.
fn last_digit(number: &str) -> f64 {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    // A whole number written as 12.0 has a precision of tenths.
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let exponent = exponent.parse::<i32>().unwrap_or(0);
    10_f64.powi(exponent.saturating_sub(decimals as i32))
}

#[cfg(test)]
mod tests {
    use super::{last_digit, value};

    #[test]
    fn the_last_line_has_the_value() {
        assert_eq!(value("warm\n{\"value\": 1.5, \"unit\": \"s\"}\n\n"), Some((1.5e9, 1e8)));
        assert_eq!(value("{\"value\": 2, \"unit\": \"us\"}"), Some((2_000.0, 1_000.0)));
        assert_eq!(value("{\"value\": 7}"), Some((7.0, 1.0)));
        for printed in [
            "",
            "1.5",
            "{\"value\": \"1\"}",
            "{\"value\": 0, \"unit\": \"s\"}",
            "{\"value\": -1}",
            "{}\nError: x",
        ] {
            assert_eq!(value(printed), None, "{printed}");
        }
    }

    #[test]
    fn what_is_finer_than_the_last_digit_nobody_knows() {
        let near = |number: &str, wanted: f64| (last_digit(number) / wanted - 1.0).abs() < 1e-12;
        for (number, wanted) in [("12", 1.0), ("12.0", 0.1), ("1.28", 0.01), ("1.5e3", 100.0), ("2e-7", 1e-7)]
        {
            assert!(near(number, wanted), "{number}: {}", last_digit(number));
        }
    }
}
