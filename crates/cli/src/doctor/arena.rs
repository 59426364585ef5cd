//! Races that doctor holds: the machinery of `deadheat race`, with its record in a folder that goes away afterwards.
//!
//! Owns: that folder, and the way from a plan to what came of it. Must not know: which races are held.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::Instant;

use deadheat_record::{Comparison, ContenderResult, Finding, Journal, Machine, Pinning, Record};
use deadheat_report::View;
use deadheat_runner::{Event, Finish, Hierarchy, Observer, Race, RunId, unix_ms};

use crate::commands::Failure;
use crate::console::{Console, lines_plain};
use crate::flags::{AdHoc, Choices, UsageError};
use crate::interrupt::Interrupt;
use crate::live::{Live, Shown};
use crate::plan::{self, Places, Purpose, Setting, Topology, resolve};

/// Where doctor's races are held.
pub(crate) struct Arena<'a> {
    pub(crate) console: &'a Console,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) run: &'a RunId,
    pub(crate) hierarchy: &'a Hierarchy,
    pub(crate) machine: &'a Machine,
    /// The cores as they were before this process bound itself to some of them.
    pub(crate) topology: &'a Topology,
    pub(crate) pinning: &'a Pinning,
    pub(crate) folder: Folder,
}

/// A folder of this process alone; removed with all that is in it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it.
    ///
    /// # Errors
    /// When the system does not let it.
    pub(crate) fn make() -> std::io::Result<Self> {
        let places = Places::of_process();
        let path = places.temporary.join(format!("deadheat-{}-doctor-{}", places.user, places.process));
        // What an earlier process of the same number left.
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What came of a race.
pub(crate) struct Ended {
    pub(crate) record: Record,
    pub(crate) view: View,
    pub(crate) took_s: f64,
    pub(crate) interrupted: bool,
}

impl Ended {
    /// The only pair; none before its first epoch.
    pub(crate) fn pair(&self) -> Option<&Comparison> {
        self.view.scenarios.first()?.result.comparisons.first()
    }

    /// What the two did, in the order in which they were given.
    pub(crate) fn results(&self) -> &[ContenderResult] {
        self.view.scenarios.first().map_or(&[], |scenario| &scenario.result.results)
    }

    /// Everything that was complained of.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let of_scenario = self.view.scenarios.first().map(|scenario| scenario.result.findings.clone());
        of_scenario.into_iter().flatten().chain(self.view.findings.clone()).collect()
    }

    /// The mean time of an epoch, in seconds; 0 before the first.
    pub(crate) fn epoch_s(&self) -> f64 {
        let took_ns: u64 = self.record.epochs.iter().map(|epoch| epoch.took_ns).sum();
        took_ns as f64 / 1e9 / self.record.epochs.len().max(1) as f64
    }
}

impl Arena<'_> {
    /// Races two commands. `loud`: without a terminal, every epoch gets its line.
    ///
    /// # Errors
    /// When the race fails, or one of the two falls out of it.
    pub(crate) fn race(
        &self,
        pair: &AdHoc,
        choices: &Choices,
        seed: u64,
        loud: bool,
    ) -> Result<Ended, Failure> {
        let study = plan::study_of(pair, &std::env::current_dir()?)?;
        let setting = Setting { topology: self.topology.clone(), places: Places::of_process(), seed };
        let mut plan = resolve(&study, &[], choices, Purpose::Race, &setting)?.plan;
        plan.work = self.folder.0.join("work");
        let record = Record::new(env!("CARGO_PKG_VERSION").into(), unix_ms(), plan, self.machine.clone());
        let path = self.folder.0.join("race.jsonl");
        let mut journal = Journal::create(&path)?;
        journal.append(&record.header())?;
        let start = Instant::now();
        let names = record.plan.contenders.iter().map(|one| one.name.clone()).collect();
        let mut live = Live::new(&record, self.console.progress, self.console.live, None);
        let mut shown = Shown { live: &mut live, names };
        let mut quiet = Quiet(self.console);
        let observer: &mut dyn Observer = if loud || self.console.live { &mut shown } else { &mut quiet };
        let stopped = || self.interrupt.asked();
        let logs = self.folder.0.join("logs");
        let mut race = Race {
            record,
            journal,
            logs,
            stopped: &stopped,
            observer,
            run: self.run,
            hierarchy: self.hierarchy,
        };
        let finish = race.go();
        let record = race.record;
        live.finish();
        fs::remove_file(&path)?;
        let finish = finish?;
        if finish == Finish::TooFew {
            let problem = "the server fell out of the race against itself; what it said stands above";
            return Err(UsageError::new(
                problem,
                "try its command by hand, with PORT set, and ask it for the URL",
            )
            .into());
        }
        let view = deadheat_report::view(&record)?;
        let interrupted = finish == Finish::Interrupted;
        Ok(Ended { record, view, took_s: start.elapsed().as_secs_f64(), interrupted })
    }
}

/// Shows of a race only what stops it.
struct Quiet<'a>(&'a Console);

impl Observer for Quiet<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Out { reason, .. } = event {
            self.0.note(&lines_plain(&format!("out of the race: {reason}")));
        }
    }
}
