//! Runs the races of doctor with the code of `deadheat race`. The record is in a temporary folder.
//!
//! Owns: the way from a plan to its results. Must not know: which races to run.

use std::fs;
use std::time::Instant;

use deadheat_analysis::{Comparison, ContenderResult, Report};
use deadheat_host::LocalHost;
use deadheat_host::clock::SystemClock;
use deadheat_host::clock::unix_ms;
use deadheat_host::monitor::awake::usual_cpu_latency_us;
use deadheat_record::{Finding, Journal, Machine, Pinning, Record};
use deadheat_runner::{Event, Finish, LoadGenerator, LocalGenerator, Observer, Place, ProbeFiles, Race};

use crate::commands::Failure;
use crate::console::{Console, lines_plain};
use crate::elsewhere::Elsewhere;
use crate::folder::Folder;
use crate::interrupt::Interrupt;
use crate::live::{Live, Shown};
use deadheat_study::choices::{Choices, UsageError};
use deadheat_study::plan::AdHoc;
use deadheat_study::plan::{self, Places, Purpose, Setting, Topology, resolve};

/// The environment of doctor's races.
pub(crate) struct Arena<'a> {
    pub(crate) console: &'a Console,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) host: &'a LocalHost<'a>,
    pub(crate) machine: &'a Machine,
    /// The cores as they were before this process pinned itself to some of them.
    pub(crate) topology: &'a Topology,
    pub(crate) pinning: &'a Pinning,
    pub(crate) folder: Folder,
    /// The machines that the load comes from, if they are others than this one.
    pub(crate) elsewhere: Option<&'a Elsewhere>,
}

impl Arena<'_> {
    /// The cores on which the built-in server is measured before it races. Both sides are here then, also if the load of races comes from other machines.
    ///
    /// # Errors
    /// The cores cannot be divided.
    pub(crate) fn cores_here(&self) -> Result<Pinning, UsageError> {
        match self.elsewhere {
            None => Ok(self.pinning.clone()),
            Some(_) => Ok(self.topology.divide(None, None)?.0),
        }
    }
}

/// The results of a race.
pub(crate) struct Ended {
    pub(crate) record: Record,
    pub(crate) report: Report,
    pub(crate) took_s: f64,
    pub(crate) interrupted: bool,
}

impl Ended {
    /// The only comparison. `None` before the first epoch.
    pub(crate) fn pair(&self) -> Option<&Comparison> {
        self.report.scenarios.first()?.comparisons.first()
    }

    /// The results of the two contenders, in the given order.
    pub(crate) fn results(&self) -> &[ContenderResult] {
        self.report.scenarios.first().map_or(&[], |scenario| &scenario.results)
    }

    /// All findings of the race.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let of_scenario = self.report.scenarios.first().map(|scenario| scenario.findings.clone());
        of_scenario.into_iter().flatten().chain(self.report.findings.clone()).collect()
    }

    /// The mean time of an epoch, in seconds; 0 before the first.
    pub(crate) fn epoch_s(&self) -> f64 {
        let took_ns: u64 = self.record.epochs.iter().map(|epoch| epoch.took_ns).sum();
        took_ns as f64 / 1e9 / self.record.epochs.len().max(1) as f64
    }
}

impl Arena<'_> {
    /// Races two commands. If `loud`, each epoch prints a line when there is no terminal.
    ///
    /// # Errors
    /// The race fails, or a contender is excluded from it.
    pub(crate) fn race(
        &self,
        pair: &AdHoc,
        choices: &Choices,
        seed: u64,
        loud: bool,
    ) -> Result<Ended, Failure> {
        let study = plan::study_of(pair, &std::env::current_dir()?)?;
        let (topology, places) = (self.topology.clone(), Places::of_process());
        let setting = Setting {
            topology,
            places,
            seed,
            cpu_latency_us: usual_cpu_latency_us(),
            in_ci: false,
            load_from: self.elsewhere.map(|elsewhere| elsewhere.from().clone()),
        };
        let mut plan = resolve(&study, &[], choices, Purpose::Race, &setting)?.plan;
        if let Some(elsewhere) = self.elsewhere {
            plan::lengthen_slices(&mut plan, elsewhere.order_cost());
        }
        let generator: &dyn LoadGenerator = match self.elsewhere {
            None => &LocalGenerator,
            Some(elsewhere) => elsewhere,
        };
        plan.work = self.folder.path().join("work");
        let record = Record::new(env!("CARGO_PKG_VERSION").into(), unix_ms(), plan, self.machine.clone());
        let path = self.folder.path().join("race.jsonl");
        let mut journal = Journal::create(&path)?;
        journal.append(&record.header())?;
        let start = Instant::now();
        let names = record.plan.contenders.iter().map(|one| one.name.clone()).collect();
        let mut live = Live::new(&record, self.console.progress, self.console.live, None);
        let mut shown = Shown { live: &mut live, names };
        let mut quiet = Quiet(self.console);
        let observer: &mut dyn Observer = if loud || self.console.live { &mut shown } else { &mut quiet };
        let stopped = || self.interrupt.asked();
        let logs = self.folder.path().join("logs");
        let mut race = Race {
            record,
            journal,
            logs,
            stopped: &stopped,
            observer,
            place: Place {
                host: self.host,
                generator,
                clock: &SystemClock::start(),
                files: &ProbeFiles::default(),
            },
            pause_after: None,
        };
        let finish = race.go();
        let record = race.record;
        live.finish();
        fs::remove_file(&path)?;
        let finish = finish?;
        if finish == Finish::TooFew {
            let problem = "the server was excluded from the race against itself; the reason is above";
            return Err(UsageError::new(
                problem,
                "run its command by hand with PORT set, and request the URL",
            )
            .into());
        }
        let report = Report::of(&record)?;
        let interrupted = finish == Finish::Interrupted;
        Ok(Ended { record, report, took_s: start.elapsed().as_secs_f64(), interrupted })
    }
}

/// Shows only what stops the race.
struct Quiet<'a>(&'a Console);

impl Observer for Quiet<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Out { reason, .. } = event {
            self.0.note(&lines_plain(&format!("out of the race: {reason}")));
        }
    }
}
