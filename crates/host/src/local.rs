//! This machine as the host of a race.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use deadheat_record::{Ending, Finding, Limits, Listen, Plan, ScenarioPlan};

use crate::affinity;
use crate::cgroup::Hierarchy;
use crate::cgroup::delegation::{self, DelegatedGroup};
use crate::cgroup::limits;
use crate::command::{Ran, ShellCommand};
use crate::monitor::Monitor;
use crate::monitor::awake::Awake;
use crate::process::container::container_of;
use crate::process::profile::{self, ProfileError};
use crate::process::run::RunId;
use crate::process::{LocalProcess, Observe, Process, ProcessSpec, StartError};
use crate::{Host, LimitsError};

/// This machine.
#[derive(Debug, Clone, Copy)]
pub struct LocalHost<'a> {
    /// The current run of deadheat.
    pub run: &'a RunId,
    /// Where to make control groups.
    pub hierarchy: &'a Hierarchy,
}

/// The controllers of version 2 that engines use for containers.
const CONTROLLERS_OF_ENGINES: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];
/// How often to look whether a command has ended.
const GLANCE: Duration = Duration::from_millis(10);

impl Host for LocalHost<'_> {
    fn start(&self, spec: &ProcessSpec<'_>) -> Result<Box<dyn Process>, StartError> {
        Ok(Box::new(LocalProcess::start(spec, self.run)?))
    }

    fn run(
        &self,
        name: &str,
        command: &ShellCommand,
        cpus: &[usize],
        limit: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Ran, StartError> {
        // A process appends to its log, and what an earlier run printed does not belong to this one.
        let _ = std::fs::remove_file(&command.log);
        let env = command.env.iter().cloned().collect();
        let process = LocalProcess::start(
            &ProcessSpec {
                name,
                command: &command.command,
                folder: &command.folder,
                env: &env,
                listen: &Listen::FreePort,
                cpus,
                limits: &Limits::default(),
                ending: &Ending::default(),
                log: command.log.clone(),
                values: &BTreeMap::new(),
                sockets: &command.folder,
                observe: Observe::Nothing,
            },
            self.run,
        )?;
        let begin = Instant::now();
        let ran = loop {
            match process.ended() {
                Some(status) => break Ran::Ended(status),
                None if stopped() => break Ran::Interrupted,
                None if begin.elapsed() >= limit => break Ran::TooLong(limit),
                None => std::thread::sleep(GLANCE),
            }
        };
        Box::new(process).stop();
        Ok(ran)
    }

    fn pin(&self, cpus: &[usize]) -> io::Result<()> {
        affinity::pin(cpus)
    }

    fn keep_awake(&self, latency_us: u32, cpus: &[usize]) -> io::Result<Awake> {
        Awake::hold(latency_us, cpus)
    }

    fn hold_to_limits(&self, plan: &Plan) -> Result<Option<DelegatedGroup>, LimitsError> {
        let refused =
            |scenario: &ScenarioPlan, reason: String| LimitsError { scenario: scenario.name.clone(), reason };
        let find = |controllers: &[&str]| {
            DelegatedGroup::find(self.hierarchy, &|| self.run.next_group(), controllers)
        };
        // Without these, some engines refuse to start a container, and others do without.
        let has_containers = plan.contenders.iter().any(|one| container_of(&one.command).is_some());
        let mut group = has_containers.then(|| find(&CONTROLLERS_OF_ENGINES).ok().flatten()).flatten();
        if let Some(first) = plan.scenarios.iter().find(|one| one.limits.need_groups())
            && group.is_none()
        {
            let controllers = limits::controllers(plan.scenarios.iter().map(|one| &one.limits));
            group =
                find(&controllers).map_err(|error| refused(first, limits::not_here(&error.to_string())))?;
        }
        let base = group.as_ref().map(DelegatedGroup::base);
        let hierarchy = base.map_or_else(|| self.hierarchy.clone(), |base| self.hierarchy.based(base));
        for scenario in &plan.scenarios {
            delegation::check(&hierarchy, &self.run.next_group(), &scenario.limits, plan.load_cpus_here())
                .map_err(|reason| refused(scenario, reason))?;
        }
        self.run.make_groups_in(base);
        Ok(group)
    }

    fn monitor(&self, cpus: &[usize], generator: &[usize]) -> Monitor {
        Monitor::new(cpus, generator, self.hierarchy)
    }

    fn can_profile(&self) -> Result<(), ProfileError> {
        profile::can_be_sampled()
    }

    fn take_left_behind(&self) -> Vec<Finding> {
        self.run.take_left_behind()
    }
}
