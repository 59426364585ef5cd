//! The plan of a load: all options with their defaults, checked together.
//!
//! Owns: defaults and combinations. Must not know: the engine's session, the results.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deadheat_host::affinity::listed;
use deadheat_load::{Arrivals, Backend, Limit, Pacer, Rate, RecordedTimes, StatusSet, TlsTrust};
use deadheat_remote::SshTarget;
use deadheat_remote::kubernetes::JobSettings;

use super::target::Target;
use super::wire::{Order, Wires};
use crate::elsewhere::named_once;
use crate::flags::{ArrivalsFlag, ExpectFlag, LoadFlags};
use deadheat_study::choices::UsageError;
use deadheat_study::file::{MOST_PER_S, shown};

const CONNECTIONS: u32 = 64;
const MAX_CONNECTIONS: u32 = 1024;
const DURATION: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(10);
/// The default time limit of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Memory of a pod, as Kubernetes writes it.
const POD_MEMORY: &str = "512Mi";
/// All pods must run within this time.
const PODS_READY: Duration = Duration::from_secs(60);
/// The longest that a load from pods may take if it has no given duration.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What the checks before a load and the results after it may take, besides what waits for answers.
const AROUND: Duration = Duration::from_secs(60);
/// Files that the process has open besides its connections.
const OTHER_FILES: u64 = 64;

/// When requests are due.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// Each connection waits for its answer.
    Closed,
    /// At a rate.
    Open {
        /// The rate in requests per second.
        rate: Rate,
        /// The rate as typed.
        text: String,
        /// Whether arrivals are independent of each other (otherwise they are evenly spaced).
        poisson: bool,
    },
    /// When the requests were recorded.
    Recorded {
        /// The recorded times.
        times: Arc<RecordedTimes>,
        /// How many times as fast.
        speed: f64,
    },
}

/// All settings of a load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoadPlan {
    pub(crate) target: Target,
    pub(crate) unix_socket: Option<PathBuf>,
    pub(crate) allowed: Vec<String>,
    pub(crate) trust: TlsTrust,
    pub(crate) wires: Wires,
    pub(crate) status: StatusSet,
    pub(crate) expect: Option<ExpectFlag>,
    pub(crate) shape: Shape,
    pub(crate) connections: usize,
    pub(crate) max_connections: usize,
    pub(crate) duration: Option<Duration>,
    pub(crate) requests: Option<u64>,
    pub(crate) warmup: Duration,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) cpus: Vec<usize>,
    pub(crate) backend: Backend,
    pub(crate) ceiling: bool,
    /// The machines that send the load. If empty, this one does.
    pub(crate) hosts: Vec<SshTarget>,
    /// The pods that send the load instead.
    pub(crate) pods: Option<JobSettings>,
}

/// Input of the plan besides the command line.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The default seed.
    pub(crate) seed: u64,
    /// Logical processors that this process may use.
    pub(crate) cpus: Vec<usize>,
    /// Whether this process was restricted to them, for example with `taskset`, while the first process of the system may use others as well.
    pub(crate) cpus_chosen: bool,
    /// How many files this process may have open. `None`: no limit.
    pub(crate) open_files: Option<u64>,
}

impl LoadPlan {
    /// Makes the plan.
    ///
    /// # Errors
    /// An option is invalid, or this machine does not support it.
    pub(crate) fn of(flags: &LoadFlags, here: &Surroundings) -> Result<Self, UsageError> {
        let target = Target::parse(&flags.url)?;
        let status = flags.answer.expect_status.unwrap_or_else(|| StatusSet::range(200..=399));
        let wires = Wires::of(&flags.request, &target, status)?;
        let amount = &flags.amount;
        let stages = amount.rate.as_deref().and_then(stages_last);
        if let Some(((stages, is_whole), given)) = stages.zip(amount.duration)
            && (given < stages || given == stages && !is_whole)
        {
            let problem = match is_whole {
                true => {
                    format!("--duration {given:?} ends before the stages of --rate, which last {stages:?}")
                }
                false => format!(
                    "--duration {given:?} ends before the last stage of --rate; those before it last {stages:?}"
                ),
            };
            return Err(UsageError::new(problem, "leave --duration out, or make the stages shorter"));
        }
        // A last stage without a duration lasts as long as a steady rate.
        let of_stages = stages.map(|(stages, is_whole)| if is_whole { stages } else { stages + DURATION });
        let usual = amount.requests.is_none().then_some(of_stages.unwrap_or(DURATION));
        let duration = amount.duration.or(usual);
        let shape = shape(flags, duration, &wires)?;
        let (connections, max_connections) = connections(flags, &shape, here)?;
        let timeout = flags.answer.timeout.unwrap_or(TIMEOUT);
        let threads = flags.generator.threads.unwrap_or(1) as usize;
        let requests = wires.all.len();
        let plan = Self {
            unix_socket: flags.connection.unix_socket.clone(),
            allowed: flags.connection.allow_target.clone(),
            trust: match &flags.connection.ca {
                _ if flags.connection.insecure => TlsTrust::Insecure,
                Some(path) => TlsTrust::File(path.clone()),
                None => TlsTrust::System,
            },
            wires,
            status,
            expect: flags.answer.expect,
            shape,
            connections,
            max_connections,
            duration,
            requests: amount.requests,
            warmup: amount.warmup.unwrap_or(Duration::ZERO),
            timeout,
            connect_timeout: flags.answer.connect_timeout.unwrap_or(timeout.min(CONNECT_TIMEOUT)),
            seed: amount.seed.unwrap_or(here.seed),
            threads,
            cpus: cpus(flags, threads, here)?,
            backend: flags.generator.backend.unwrap_or(Backend::Auto),
            ceiling: flags.generator.ceiling,
            hosts: flags.hosts.load_host.clone(),
            pods: pods(flags, threads, duration, (requests, timeout), here),
            target,
        };
        plan.combinations(flags)?;
        Ok(plan)
    }

    /// Rejects options that have no effect in this combination.
    fn combinations(&self, flags: &LoadFlags) -> Result<(), UsageError> {
        let wrong = |problem: &str, remedy: &str| Err(UsageError::new(problem, remedy));
        if matches!(self.shape, Shape::Recorded { .. }) && flags.amount.arrivals.is_some() {
            return wrong("--arrivals cannot be combined with --order timing", "keep one of the two");
        }
        if flags.request.speed.is_some() && !matches!(self.shape, Shape::Recorded { .. }) {
            return wrong("--speed needs --order timing", "add it, or set a rate with --rate instead");
        }
        if self.shape == Shape::Closed && flags.amount.arrivals.is_some() {
            return wrong(
                "--arrivals needs --rate: without it, each connection waits for its answer",
                "add --rate, such as -r 2000",
            );
        }
        if self.shape == Shape::Closed && flags.amount.max_connections.is_some() {
            let problem = "--max-connections needs --rate; without it, -c sets the number of connections";
            return wrong(problem, "add --rate, such as -r 2000, or leave --max-connections out");
        }
        if !self.target.tls && (flags.connection.insecure || flags.connection.ca.is_some()) {
            return wrong(
                "--insecure and --ca need https, but the URL is http",
                "write https:// or leave them out",
            );
        }
        if self.pods.is_some() && flags.generator.cpus.is_some() {
            let problem = "--cpus names CPUs of a machine, but the cluster chooses those of a pod";
            return wrong(problem, "leave --cpus out; --worker-cpu says how many a pod gets");
        }
        if self.ceiling && (!self.hosts.is_empty() || self.pods.is_some()) {
            let problem =
                "--ceiling measures the generator on this machine, but the load comes from another one";
            return wrong(problem, "leave --ceiling out, or run it on the load host");
        }
        if let Err(twice) = named_once(&self.hosts) {
            return wrong(&twice.problem, "name each host once; -t gives a host more threads");
        }
        if self.ceiling && self.target.tls {
            return wrong("--ceiling cannot measure over TLS, but the URL is https", "leave --ceiling out");
        }
        Ok(())
    }

    /// The due times of the load's requests. Those of the `warmup` use another seed.
    pub(crate) fn pacer(&self, warmup: bool) -> Pacer {
        let seed = self.seed.wrapping_add(u64::from(warmup));
        match &self.shape {
            Shape::Closed => Pacer::Closed,
            Shape::Open { rate, poisson, .. } => Pacer::Open {
                rate: rate.clone(),
                arrivals: if *poisson { Arrivals::Poisson { seed } } else { Arrivals::Constant },
            },
            Shape::Recorded { times, speed } => {
                let from_ns = if warmup { 0 } else { self.warmed_up_ns(*speed) };
                Pacer::Recorded { times: times.clone(), from_ns, speed: *speed }
            }
        }
    }

    /// The position of the first request of the load or its `warmup`. The load takes recorded traffic from where the warm-up ended.
    pub(crate) fn start(&self, warmup: bool) -> u64 {
        match &self.shape {
            Shape::Recorded { times, speed } if !warmup => times.position_at(self.warmed_up_ns(*speed)),
            _ => 0,
        }
    }

    fn warmed_up_ns(&self, speed: f64) -> u64 {
        (self.warmup.as_nanos() as f64 * speed).round() as u64
    }

    /// The end of the load.
    pub(crate) fn limit(&self) -> Limit {
        Limit { duration: self.duration, requests: self.requests }
    }

    /// Whether each worker has a separate CPU, so that it may stay awake on it.
    pub(crate) fn spin(&self) -> bool {
        self.cpus.len() >= self.threads
    }
}

/// How long the stages of a rate last together, and whether the last one says how long it lasts. None for a steady rate.
fn stages_last(rate: &str) -> Option<(Duration, bool)> {
    let rate = rate.parse::<Rate>().ok()?;
    let stages = rate.as_stages();
    let sum: Duration = stages.iter().map(|stage| stage.duration).sum();
    // Behind the last request, nothing is left to wait for.
    let is_whole = stages.last().is_some_and(|stage| !stage.duration.is_zero() || stage.to_per_s == 0.0);
    (!sum.is_zero()).then_some((sum, is_whole))
}

fn shape(flags: &LoadFlags, duration: Option<Duration>, wires: &Wires) -> Result<Shape, UsageError> {
    let times = wires.recording.as_ref().and_then(|recording| recording.times.clone());
    if let (Order::Timing(speed), Some(times)) = (wires.order, times) {
        return recorded(flags, times, speed);
    }
    let Some(text) = &flags.amount.rate else { return Ok(Shape::Closed) };
    let rate = Rate::parse(text, duration).map_err(|error| {
        let problem = format!("--rate {}: {error}", shown(text));
        UsageError::new(problem, "for example: -r 2000, -r 20k, -r 100..5000, -r 1000:10s,2000:10s")
    })?;
    if let Some(stage) =
        rate.as_stages().iter().find(|stage| stage.from_per_s.max(stage.to_per_s) > MOST_PER_S)
    {
        let highest = stage.from_per_s.max(stage.to_per_s);
        let problem = format!(
            "--rate {}: {highest} requests per second are more than any machine can send",
            shown(text)
        );
        return Err(UsageError::new(problem, format!("ask for at most {MOST_PER_S}")));
    }
    let poisson = flags.amount.arrivals.is_none_or(|arrivals| arrivals == ArrivalsFlag::Poisson);
    Ok(Shape::Open { rate, text: text.clone(), poisson })
}

fn recorded(flags: &LoadFlags, times: Arc<RecordedTimes>, speed: f64) -> Result<Shape, UsageError> {
    if flags.amount.rate.is_some() {
        let problem = "--rate cannot be combined with --order timing: the log says when requests are due";
        return Err(UsageError::new(problem, "keep one of the two; --speed changes the rate of a log"));
    }
    let rate_per_s = times.rate_per_s() * speed;
    if !(speed > 0.0 && speed.is_finite() && rate_per_s <= MOST_PER_S) {
        let problem = format!("--speed {speed}: {rate_per_s:.0} requests per second are due");
        let remedy = format!(
            "write a number above 0, such as 2 for twice as fast; at most {MOST_PER_S} requests per second"
        );
        return Err(UsageError::new(problem, remedy));
    }
    Ok(Shape::Recorded { times, speed })
}

/// The machines that send the load.
#[derive(PartialEq)]
enum Senders {
    ThisMachine,
    LoadHosts(u32),
    Pods(u32),
}

fn senders(flags: &LoadFlags) -> Senders {
    if flags.kubernetes.load_kubernetes.is_some() {
        return Senders::Pods(flags.kubernetes.load_workers.unwrap_or(1));
    }
    match u32::try_from(flags.hosts.load_host.len()).unwrap_or(u32::MAX) {
        0 => Senders::ThisMachine,
        hosts => Senders::LoadHosts(hosts),
    }
}

/// The pods that send the load, if pods send it.
fn pods(
    flags: &LoadFlags,
    threads: usize,
    duration: Option<Duration>,
    (requests, timeout): (usize, Duration),
    here: &Surroundings,
) -> Option<JobSettings> {
    let typed = &flags.kubernetes;
    let (namespace, Senders::Pods(workers)) = (typed.load_kubernetes.clone()?, senders(flags)) else {
        return None;
    };
    let warmup = flags.amount.warmup.unwrap_or(Duration::ZERO);
    let asked = u32::try_from(requests).unwrap_or(u32::MAX);
    Some(JobSettings {
        // Not the seed that was typed: two loads at the same time have two names.
        name: format!("deadheat-load-{:08x}", here.seed & 0xffff_ffff),
        namespace,
        workers: workers as usize,
        image: typed.image.clone()?,
        pull_secret: typed.image_pull_secret.clone(),
        cpu: typed.worker_cpu.clone().unwrap_or_else(|| threads.to_string()),
        memory: typed.worker_memory.clone().unwrap_or_else(|| POD_MEMORY.into()),
        ready_timeout: typed.ready_timeout.unwrap_or(PODS_READY),
        // The deadline is only a safety net: each request that is asked before the load may take as long as it is allowed to.
        longest: warmup
            + duration.unwrap_or(LONGEST)
            + 4 * timeout
            + AROUND
            + timeout.saturating_mul(asked.saturating_mul(2)).min(LONGEST),
        grace: timeout + Duration::from_secs(5),
    })
}

/// The number of connections, and its upper limit.
fn connections(flags: &LoadFlags, shape: &Shape, here: &Surroundings) -> Result<(usize, usize), UsageError> {
    let connections = flags.amount.connections.unwrap_or(CONNECTIONS);
    let (hosts, kind, fewer) = match senders(flags) {
        Senders::ThisMachine => (0, "", ""),
        Senders::LoadHosts(hosts) => (hosts, "load hosts", "name fewer load hosts"),
        Senders::Pods(pods) => (pods, "pods", "ask for fewer --load-workers"),
    };
    if connections < hosts {
        let problem = format!(
            "{connections} connections cannot be divided over {hosts} {kind}: each needs at least one"
        );
        return Err(UsageError::new(problem, format!("raise -c to at least {hosts}, or {fewer}")));
    }
    // The limit of this machine does not apply to a load host. Its agent reports if its own limit is reached.
    let open_files = here.open_files.filter(|_| hosts == 0);
    let room = open_files.map_or(u64::from(u32::MAX), |files| files.saturating_sub(OTHER_FILES).max(1));
    let fits = |option: &str, value: u32| {
        let problem = format!("{option} {value}: this process may open only {room} connections");
        let remedy = format!("raise the limit of open files (ulimit -n), or ask for at most {room}");
        if u64::from(value) > room { Err(UsageError::new(problem, remedy)) } else { Ok(value) }
    };
    fits("--connections", connections)?;
    if flags.generator.ceiling && u64::from(connections) > room / 2 {
        let problem = format!(
            "--ceiling needs two open files for each of the {connections} connections, but this process may open only {room}"
        );
        return Err(UsageError::new(
            problem,
            "raise the limit of open files (ulimit -n), or leave --ceiling out",
        ));
    }
    if let Some(threads) =
        flags.generator.threads.filter(|threads| threads.saturating_mul(hosts.max(1)) > connections)
        && hosts > 1
    {
        let problem = format!(
            "-t {threads}: there are only {connections} connections for {hosts} {kind}, and each thread needs one"
        );
        let least = threads.saturating_mul(hosts);
        return Err(UsageError::new(
            problem,
            format!("raise -c to at least {least}, or ask for fewer threads"),
        ));
    }
    if let Some(threads) = flags.generator.threads.filter(|threads| *threads > connections) {
        let problem =
            format!("-t {threads}: there are only {connections} connections, and each thread needs one");
        return Err(UsageError::new(
            problem,
            format!("raise -c to at least {threads}, or ask for fewer threads"),
        ));
    }
    if *shape == Shape::Closed {
        return Ok((connections as usize, connections as usize));
    }
    let most = match flags.amount.max_connections {
        Some(most) if most < connections => {
            let problem = format!(
                "--max-connections {most} is below the {connections} connections that deadheat opens at the start"
            );
            return Err(UsageError::new(problem, format!("raise it, or lower -c to at most {most}")));
        }
        Some(most) => fits("--max-connections", most)?,
        None => connections.max(MAX_CONNECTIONS).min(u32::try_from(room).unwrap_or(u32::MAX)),
    };
    Ok((connections as usize, most as usize))
}

/// The CPUs to which workers are pinned: those of `--cpus`. Default: the CPUs to which this process was restricted, if there are as many as
/// workers. With more CPUs, the same restriction may also apply to the server.
fn cpus(flags: &LoadFlags, threads: usize, here: &Surroundings) -> Result<Vec<usize>, UsageError> {
    let Some(list) = &flags.generator.cpus else {
        let from_here = senders(flags) == Senders::ThisMachine;
        let own = here.cpus_chosen && here.cpus.len() == threads && from_here;
        return Ok(if own { here.cpus.clone() } else { Vec::new() });
    };
    if senders(flags) != Senders::ThisMachine {
        // They are CPUs of the load hosts, whose agents say if one cannot be used.
        return Ok(list.0.clone());
    }
    match list.0.iter().find(|cpu| !here.cpus.contains(cpu)) {
        None => Ok(list.0.clone()),
        Some(missing) => {
            let problem = format!("--cpus names CPU {missing}, on which this process may not run");
            let may = listed(&here.cpus);
            Err(UsageError::new(problem, format!("choose from the CPUs that it may use: {may}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn plan_in(line: &str, open_files: u64) -> Result<LoadPlan, UsageError> {
        let cli = Cli::try_parse_from(
            ["deadheat", "load", "localhost:8080"].into_iter().chain(line.split_whitespace()),
        );
        let Command::Load(flags) = cli.unwrap_or_else(|error| panic!("{line}: {error}")).command else {
            panic!("load")
        };
        let here =
            Surroundings { seed: 7, cpus: vec![0, 1], cpus_chosen: false, open_files: Some(open_files) };
        LoadPlan::of(&flags, &here)
    }

    fn plan(line: &str) -> LoadPlan {
        plan_in(line, 10_000).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn what_is_not_typed_has_a_default() {
        let plan = plan("");
        assert_eq!((plan.connections, plan.max_connections, plan.threads, plan.seed), (64, 64, 1, 7));
        assert_eq!(plan.limit(), Limit::duration(DURATION));
        assert_eq!((plan.timeout, plan.connect_timeout, plan.warmup), (TIMEOUT, TIMEOUT, Duration::ZERO));
        assert_eq!(
            (plan.pacer(false), plan.spin(), plan.status.to_string().as_str()),
            (Pacer::Closed, false, "200-399")
        );
    }

    /// As with `taskset`.
    #[test]
    fn cpus_chosen_for_the_process_are_the_workers_own() {
        let cpus = |line: &str, cpus: Vec<usize>, cpus_chosen| {
            let cli =
                Cli::try_parse_from(["deadheat", "load", "localhost:80"].into_iter().chain(line.split(' ')));
            let Command::Load(flags) = cli.unwrap().command else { panic!("load") };
            let here = Surroundings { seed: 7, cpus, cpus_chosen, open_files: None };
            let plan = LoadPlan::of(&flags, &here).unwrap();
            (plan.cpus.clone(), plan.spin())
        };
        assert_eq!(cpus("-t 1", vec![1], true), (vec![1], true));
        assert_eq!(cpus("-t 2", vec![1, 3], true), (vec![1, 3], true));
        assert_eq!(cpus("-t 2", vec![1], true), (vec![], false), "one CPU for two workers");
        assert_eq!(
            cpus("-t 1", vec![1, 3], true),
            (vec![], false),
            "the server may have been given the same two"
        );
        assert_eq!(cpus("-t 1", vec![0, 1], false), (vec![], false), "the server may use them as well");
        assert_eq!(cpus("-t 1 --cpus 0", vec![0, 1], true), (vec![0], true));
    }

    #[test]
    fn a_load_lasts_as_long_as_the_stages_of_its_rate() {
        let lasts = |line: &str| plan(line).limit();
        assert_eq!(lasts("-r 1k:10s,2k:10s"), Limit::duration(Duration::from_secs(20)));
        assert_eq!(lasts("-r 100..5000:30s"), Limit::duration(Duration::from_secs(30)));
        assert_eq!(lasts("-r 100..5000"), Limit::duration(DURATION));
        assert_eq!(lasts("-r 1k:10s,2k:10s -d 30s"), Limit::duration(Duration::from_secs(30)));
        assert_eq!(lasts("-r 1k:10s,2k:10s -n 7"), Limit::requests(7));
        let error = plan_in("-r 1k:10s,2k:10s -d 15s", 10_000).unwrap_err().to_string();
        assert!(error.contains("ends before the stages of --rate, which last 20s"), "{error}");
        assert_eq!(lasts("-r 1k:10s,2k"), Limit::duration(Duration::from_secs(10) + DURATION));
        assert_eq!(lasts("-r 1k:10s,0"), Limit::duration(Duration::from_secs(10)));
        assert_eq!(lasts("-r 1k:10s,2k -d 12s"), Limit::duration(Duration::from_secs(12)));
        let error = plan_in("-r 1k:10s,2k -d 10s", 10_000).unwrap_err().to_string();
        assert!(error.contains("those before it last 10s"), "{error}");
    }

    #[test]
    fn options_change_it() {
        assert_eq!(plan("-n 5").limit(), Limit::requests(5));
        let both = plan("-n 5 -d 2s").limit();
        assert_eq!((both.requests, both.duration), (Some(5), Some(Duration::from_secs(2))));
        assert_eq!(plan("--timeout 1s").connect_timeout, Duration::from_secs(1));
        assert_eq!(plan("--timeout 1m").connect_timeout, CONNECT_TIMEOUT);
        assert!(plan("--cpus 0,1 -t 2").spin() && !plan("--cpus 0 -t 2").spin());
        let open = plan("-r 100..200 -d 4s --seed 9");
        assert_eq!((open.connections, open.max_connections), (64, 1024));
        let Shape::Open { rate, .. } = &open.shape else { panic!("open") };
        assert_eq!(rate.to_string(), "100..200:4s");
        assert_ne!(open.pacer(false), open.pacer(true));
        assert_eq!(plan("-r 5 -c 2000").max_connections, 2000);
        assert_eq!(plan_in("-r 5", 512).unwrap().max_connections, 448);
    }

    /// This machine's limits and CPUs are not those of the load hosts.
    #[test]
    fn load_hosts_share_the_load() {
        let plan = plan_in("-c 3000 -t 2 --cpus 6,7 --load-host ssh://a --load-host ssh://b", 512).unwrap();
        assert_eq!(
            (plan.connections, plan.cpus.clone(), plan.spin(), plan.hosts.len()),
            (3000, vec![6, 7], true, 2)
        );
    }

    #[test]
    fn pods_get_what_the_load_needs() {
        let pods = |line: &str| plan(line).pods.unwrap();
        let usual = pods("--load-kubernetes n --image i");
        assert_eq!((usual.workers, usual.cpu.as_str(), usual.memory.as_str()), (1, "1", "512Mi"));
        assert_eq!((usual.name.as_str(), usual.grace), ("deadheat-load-00000007", Duration::from_secs(15)));
        assert_eq!(usual.longest, Duration::from_secs(10 + 40 + 60 + 20));
        let all = pods(
            "-t 2 -n 5 -c 6 --load-kubernetes n --image i --load-workers 3 --worker-memory 1Gi --seed 9",
        );
        assert_eq!((all.workers, all.cpu.as_str(), all.memory.as_str()), (3, "2", "1Gi"));
        assert_eq!(all.name, usual.name, "the typed seed does not matter");
        assert!(all.longest > LONGEST, "its end is not known");
        assert_eq!(plan("").pods, None);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (line, part) in [
            ("-r nonsense", "at character 1"),
            ("-r 0", "0 all the time"),
            ("-r 100..200 -n 5", "at character 9"),
            ("--arrivals constant", "--arrivals needs --rate"),
            ("--max-connections 100", "--max-connections needs --rate"),
            ("-r 5 -c 100 --max-connections 99", "below the 100"),
            ("-c 500", "only 448 connections"),
            ("-r 5 --max-connections 449", "only 448 connections"),
            ("--cpus 1,2", "CPU 2"),
            ("--insecure", "the URL is http"),
            ("-c 1 --load-host ssh://a --load-host ssh://b", "cannot be divided over 2 load hosts"),
            ("-c 3 -t 2 --load-host ssh://a --load-host ssh://b", "only 3 connections for 2 load hosts"),
            ("--load-host ssh://a --load-host ssh://a", "named twice"),
            ("--ceiling --load-host ssh://a", "on this machine"),
            ("-c 2 --load-kubernetes n --image i --load-workers 3", "divided over 3 pods"),
            ("--cpus 0 --load-kubernetes n --image i", "the cluster chooses"),
            ("--ceiling --load-kubernetes n --image i", "on this machine"),
            ("-b @no/such", "--body no/such"),
        ] {
            let error = plan_in(line, 512).expect_err(line);
            assert!(error.problem.contains(part), "{line}: {error}");
            assert!(!error.remedy.is_empty(), "{line}");
        }
    }
}
