//! The diagnostic pass that samples where contenders spend CPU time, in separate starts that affect no other result.
//!
//! Owns: when there is such a pass, its rate and length, and how runtimes are made to describe the code that they compile. Must not know: how
//! stacks are sampled and named, and how profiles are compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_analysis::series::{Contest, rates};
use deadheat_record::{End, Experiment, Finding, Line, ProfilePass, ProfileUsage, Stacks, Why};
use deadheat_stats::average::mean;
use deadheat_stats::{Progress, Verdict};

use crate::alone::{Alone, WHEN, disturbed, failure};
use crate::epoch::{EpochError, EpochRun, dropped, lost};
use crate::loaded::{LoadTotals, LoadedContender};
use crate::parity::Parity;
use crate::race::{Race, RaceError, ScenarioError, ScenarioRun};
use deadheat_host::process::{Observe, Process};

/// How long each contender is sampled.
const LENGTH: Duration = Duration::from_secs(5);
/// The rate of the pass after a closed load, as a share of the slowest contender's: low enough that each keeps up.
const SHARE_OF_SLOWEST: f64 = 0.7;
/// A profile with a larger share of samples in code without a name does not show where time goes.
const MOST_UNNAMED: f64 = 0.5;
/// A profile with fewer samples names a function by chance.
const FEWEST_SAMPLES: u64 = 100;
/// The folder for dumps of compiled code, in the work folder.
const DUMPS: &str = "profile";
/// The script that Node.js runs before the contender's, in that folder.
const PRELOAD: &str = "preload.cjs";
/// Node.js takes these options of V8 from a script only. Functions above V8's limit for small ones stay functions of their own in the compiled
/// code, so that the profile names them. `v8` knows no option that an older version lacks; the script goes on in any case.
///
/// With `--perf-basic-prof`, V8 also begins a log of its own in the current folder, which is the user's: the script removes it.
const PRELOAD_SCRIPT: &str = "\
try {
  const { setFlagsFromString } = require('node:v8');
  setFlagsFromString('--max-inlined-bytecode-size=27');
  if (Number(process.versions.node.split('.')[0]) >= 22) setFlagsFromString('--max-maglev-inlined-bytecode-size=27');
} catch {}
try {
  const { readdirSync, unlinkSync } = require('node:fs');
  const isLog = name => name.startsWith('isolate-') && name.endsWith(`-${process.pid}-v8.log`);
  readdirSync('.').filter(isLog).forEach(name => unlinkSync(name));
} catch {}
";

impl Race<'_> {
    /// Runs the pass after a scenario is decided, if the plan wants it: profiles each contender. A failure here is a finding, and no contender
    /// drops out of the race.
    pub(crate) fn profile_contenders(
        &mut self,
        run: &ScenarioRun<'_>,
        end: End,
    ) -> Result<(), ScenarioError> {
        let scenario = run.scenario;
        if !scenario.shape.is_steady() || !self.wants_profiles(run, end)? {
            return Ok(());
        }
        if let Err(error) = self.place.host.can_profile() {
            let remedy = "race as root, or allow it with: sysctl kernel.perf_event_paranoid=2";
            let finding = Finding::warn("profile-not-permitted", format!("--why: {error}"), remedy);
            return Ok(self.note(Some(&scenario.name), finding)?);
        }
        let Some(rate_per_s) = self.rate_for_all(run) else {
            let what = "--why could not profile: no slice counts whose rate it could use";
            let remedy = "race again on a quieter machine, or at a given rate with --rate";
            let finding = Finding::warn("profile-failed", what, remedy);
            return Ok(self.note(Some(&scenario.name), finding)?);
        };
        for contender in self.record.racing(&scenario.name) {
            let one = &run.launcher.plan.contenders[contender];
            let name = one.name.clone();
            // The control is the same code as the baseline.
            if one.control || self.record.profiles_of(&scenario.name).any(|pass| pass.contender == name) {
                continue;
            }
            match self.profile(run, contender, rate_per_s) {
                Ok((pass, why)) => {
                    let what = "its functions may look slower than they are";
                    let why = why.map(|why| disturbed("profile-disturbed", &name, &why, what));
                    let findings = why.into_iter().chain(weakness(&pass.stacks).map(|one| one.about(&name)));
                    let findings: Vec<Finding> = findings.collect();
                    self.write(Line::Profile(Box::new(pass)))?;
                    for finding in findings {
                        self.note(Some(&scenario.name), finding)?;
                    }
                }
                Err(EpochError::Interrupted) => return Err(EpochError::Interrupted.into()),
                Err(broken) => self.note(Some(&scenario.name), failed(&name, &broken))?,
            }
        }
        Ok(())
    }

    fn wants_profiles(&self, run: &ScenarioRun<'_>, end: End) -> Result<bool, RaceError> {
        match run.launcher.plan.method.why {
            Why::Never => Ok(false),
            Why::Always => Ok(true),
            Why::Slower => {
                let progress = if end == End::Decided { Progress::Interrupted } else { Progress::Ended };
                let judged = run.judge.ask(&self.record, &run.scenario.name, progress)?;
                let pairs = judged.judgement.iter().flat_map(|all| &all.pairs);
                let control = |contest: &Contest| run.launcher.plan.contenders[contest.contender].control;
                Ok(judged
                    .contests
                    .iter()
                    .zip(pairs)
                    .any(|(contest, pair)| pair.verdict == Verdict::Slower && !control(contest)))
            }
        }
    }

    /// The rate at which every contender is profiled: that of the scenario, or what the slowest contender of a closed load can easily answer.
    /// None if nothing was measured.
    fn rate_for_all(&self, run: &ScenarioRun<'_>) -> Option<f64> {
        if let Experiment::Open { rate_per_s, .. } = run.scenario.shape {
            return Some(rate_per_s);
        }
        let name = &run.scenario.name;
        let rate =
            |contender: usize| mean(self.record.epochs_of(name).flat_map(|epoch| rates(epoch, contender)));
        let slowest = self.record.racing(name).into_iter().filter_map(rate).reduce(f64::min)?;
        Some(slowest * SHARE_OF_SLOWEST).filter(|rate| *rate > 0.0)
    }

    /// Profiles one contender. Returns the profile, and what disturbed it.
    fn profile(
        &mut self,
        run: &ScenarioRun<'_>,
        contender: usize,
        rate_per_s: f64,
    ) -> Result<(ProfilePass, Option<String>), EpochError> {
        let folder = run.launcher.plan.work.join(DUMPS);
        let mut last = None;
        // A runtime that does not know one of the options may refuse to start. Then the contender runs without them.
        for variables in [variables(&folder), BTreeMap::new()] {
            let dumps = Dumps::create(&folder)?;
            let start = Alone {
                contender,
                variables: &variables,
                observe: Observe::Stacks,
                log: "profile",
                doing: "sampling where CPU time goes in",
            };
            let seen = self.alone(run, &start, |epoch_run, one, parity| {
                sample(epoch_run, one, parity, rate_per_s, &dumps.folder)
            });
            match seen {
                Err(broken @ (EpochError::Out(..) | EpochError::Parity(_))) => last = Some(broken),
                other => return other,
            }
        }
        Err(last.unwrap_or(EpochError::Interrupted))
    }
}

/// Samples a warm contender under load.
fn sample(
    epoch_run: &EpochRun<'_>,
    one: &mut LoadedContender,
    parity: &Parity,
    rate_per_s: f64,
    dumps: &Path,
) -> Result<(ProfilePass, Option<String>), EpochError> {
    let failed = |error: deadheat_host::process::profile::ProfileError| EpochError::Failed(error.to_string());
    let moment = |one: &LoadedContender| epoch_run.moment_of(one);
    let (machine, before) = (moment(one), Reading::of(&*one.runner.process));
    one.runner.process.begin_profile().map_err(failed)?;
    let tally = one.trial(rate_per_s, LENGTH, 0).map_err(|error| lost(&one.runner, &error))?;
    // What the contender used is read before symbols are, because that takes a while.
    let (after, disturbance) =
        (Reading::of(&*one.runner.process), epoch_run.watch.between(&machine, &moment(one)));
    epoch_run.still_there(one, WHEN)?;
    let stacks = one.runner.process.end_profile(dumps).map_err(failed)?;
    let used = ProfileUsage {
        sent_bytes: tally.bytes_read,
        received_bytes: tally.bytes_written,
        ..after.since(&before)
    };
    let mut sum = LoadTotals::default();
    sum.add(tally);
    epoch_run.check_answers(one, &sum, parity)?;
    let pass = ProfilePass {
        scenario: epoch_run.scenario.name.clone(),
        contender: one.runner.process.name().to_owned(),
        rate_per_s,
        load_ns: sum.elapsed_ns,
        external: disturbance.reading,
        requests: sum.completions,
        used,
        stacks,
    };
    Ok((pass, dropped(&disturbance, None)))
}

/// What a contender had used by one moment.
struct Reading {
    cpu_ns: u64,
    switches: BTreeMap<i32, (u64, u64)>,
    page_faults: Option<u64>,
    system_calls: Option<u64>,
    pss_bytes: Option<u64>,
}

impl Reading {
    fn of(process: &dyn Process) -> Self {
        Self {
            cpu_ns: process.cpu_ns().0,
            switches: process.switches(),
            page_faults: process.page_faults(),
            system_calls: process.system_calls(),
            pss_bytes: process.pss_bytes(),
        }
    }

    fn since(&self, before: &Self) -> ProfileUsage {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let switches = self.switches.iter().map(|(thread, (waited, lost))| {
            let then = before.switches.get(thread).copied().unwrap_or_default();
            waited.saturating_sub(then.0) + lost.saturating_sub(then.1)
        });
        let bytes = |bytes: u64| i64::try_from(bytes).ok();
        ProfileUsage {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            switches: switches.reduce(|sum, one| sum + one),
            page_faults: grown(self.page_faults, before.page_faults),
            system_calls: grown(self.system_calls, before.system_calls),
            memory_growth_bytes: self
                .pss_bytes
                .and_then(bytes)
                .zip(before.pss_bytes.and_then(bytes))
                .map(|(now, then)| now - then),
            ..ProfileUsage::default()
        }
    }
}

/// The folder for dumps of compiled code, which exists as long as the value lives.
struct Dumps {
    folder: PathBuf,
}

impl Dumps {
    /// Creates an empty folder with the script for Node.js.
    fn create(folder: &Path) -> Result<Self, EpochError> {
        let made = Self { folder: folder.to_owned() };
        let failed = |error: std::io::Error| EpochError::Failed(format!("{}: {error}", folder.display()));
        made.remove();
        fs::create_dir_all(folder).map_err(failed)?;
        fs::write(folder.join(PRELOAD), PRELOAD_SCRIPT).map_err(failed)?;
        Ok(made)
    }

    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Dumps {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The variables with which runtimes write the names and addresses of the code that they compile. Programs of other kinds ignore them.
fn variables(folder: &Path) -> BTreeMap<String, String> {
    let preload = folder.join(PRELOAD).display().to_string().replace('\\', r"\\").replace('"', "\\\"");
    let folder = folder.display().to_string();
    // V8's own log would begin in the current folder, which is the user's. Commas end an option.
    let v8_log = if folder.contains(',') { String::new() } else { format!(",--logfile={folder}/v8.log") };
    let variables = [
        (
            "NODE_OPTIONS",
            format!("--perf-basic-prof --interpreted-frames-native-stack --require \"{preload}\""),
        ),
        (
            "DENO_V8_FLAGS",
            format!(
                "--perf-basic-prof,--interpreted-frames-native-stack,--max-inlined-bytecode-size=27,\
                 --max-maglev-inlined-bytecode-size=27{v8_log}"
            ),
        ),
        ("BUN_JSC_useJITDump", "1".to_owned()),
        ("BUN_JSC_jitDumpDirectory", folder),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Why a profile does not show where time goes.
fn weakness(stacks: &Stacks) -> Option<Finding> {
    if stacks.samples < FEWEST_SAMPLES {
        let what = format!("--why took only {} samples of its stacks", stacks.samples);
        let remedy = "race at a higher rate, so that it uses more CPU time";
        return Some(Finding::warn("profile-too-short", what, remedy));
    }
    let share = stacks.unnamed as f64 / stacks.samples as f64;
    (share > MOST_UNNAMED).then(|| {
        let files = stacks.functions.iter().filter(|one| one.name == Stacks::UNNAMED);
        let most = files.max_by_key(|one| one.own).and_then(|one| one.file.as_deref());
        let place = most.map_or_else(String::new, |file| format!(", most of them in {file}"));
        let what = format!("{:.0} % of its samples are in code without names{place}", share * 100.0);
        let remedy = "build it with symbols and do not strip them; --why names compiled JavaScript of Node.js, Deno and Bun";
        Finding::warn("profile-without-symbols", what, remedy)
    })
}

fn failed(name: &str, broken: &EpochError) -> Finding {
    let what = format!("--why could not profile it: {}", failure(name, broken));
    let remedy = "read its log of that start, or race with --why=never";
    Finding::warn("profile-failed", what, remedy).about(name)
}

#[cfg(test)]
mod tests {
    use deadheat_record::Function;

    use super::*;

    fn stacks(samples: u64, unnamed: u64) -> Stacks {
        let files = [("libx.so", 1), ("server", unnamed.saturating_sub(1))];
        let function = |(file, own): (&str, u64)| Function {
            name: Stacks::UNNAMED.into(),
            file: Some(file.into()),
            own,
            ..Function::default()
        };
        Stacks { samples, unnamed, functions: files.map(function).into(), ..Stacks::default() }
    }

    #[test]
    fn a_profile_without_symbols_is_said_to_be_one() {
        assert!(weakness(&stacks(1_000, 500)).is_none());
        let found = weakness(&stacks(1_000, 900)).unwrap();
        assert_eq!(found.code, "profile-without-symbols");
        assert_eq!(found.message, "90 % of its samples are in code without names, most of them in server");
        assert_eq!(weakness(&stacks(99, 99)).unwrap().code, "profile-too-short");
    }

    #[test]
    fn what_was_used_is_the_difference_of_two_readings() {
        let reading = |cpu_ns, switches: &[(i32, (u64, u64))], pss_bytes| Reading {
            cpu_ns,
            switches: switches.iter().copied().collect(),
            page_faults: Some(cpu_ns / 10),
            system_calls: None,
            pss_bytes,
        };
        let before = reading(100, &[(1, (5, 1)), (2, (9, 9))], Some(3_000));
        let used = reading(300, &[(1, (7, 2)), (3, (4, 0))], Some(1_000)).since(&before);
        assert_eq!((used.cpu_ns, used.switches, used.page_faults), (200, Some(3 + 4), Some(20)));
        assert_eq!((used.memory_growth_bytes, used.system_calls), (Some(-2_000), None), "unknown is not 0");
        let blind = reading(300, &[], None).since(&before);
        assert_eq!((blind.switches, blind.memory_growth_bytes), (None, None));
    }

    #[test]
    fn a_path_with_spaces_stays_one_option_of_node() {
        let variables = variables(Path::new("/srv/a \"b\""));
        assert!(variables["NODE_OPTIONS"].ends_with("--require \"/srv/a \\\"b\\\"/preload.cjs\""));
        assert!(variables["DENO_V8_FLAGS"].ends_with(",--logfile=/srv/a \"b\"/v8.log"));
        assert_eq!(variables["BUN_JSC_jitDumpDirectory"], "/srv/a \"b\"");
    }
}
