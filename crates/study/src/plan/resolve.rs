//! Turns the command line and the study into the plan: selection, then scenarios, then method, then cores.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::mem::discriminant;
use std::time::Duration;

use deadheat_host::command::SEED;
use deadheat_host::process::container::is_dockers;
use deadheat_load::{Rate, nanos};
use deadheat_record as record;
use deadheat_record::{
    Experiment, Finding, Limits, LoadFrom, Method, Metric, Plan, Replay, ScenarioPlan, Share, Slices, Source,
    Traffic, Typed,
};
use toml::Spanned;

use super::metrics::{in_reach, in_room, metrics};
use super::paths::Places;
use super::profiles::{Profile, QUICK};
use super::round_trip::lengthen_for_links;
use super::scaled::scale;
use super::sweep::points;
use super::topology::Topology;
use crate::choices::{Choices, LoadChoices, MethodChoices, READ_PORT, Selection, UsageError, WhyWord, YesNo};
use crate::file::{self, Contender, Service, Study, nearest, one_of, shown};
use crate::prepare::{BUILD_LIMIT, Skipped};

/// The name of the scenario in a study without scenarios.
pub(super) const STEADY: &str = "steady";
/// The name of the contender that is the baseline once more.
const CONTROL: &str = "control";
const ALPHA: f64 = 0.025;
const MARGIN: f64 = 0.03;
const READY: Duration = Duration::from_nanos(Method::READY_NS);
/// How long deadheat loads each contender again after it was frozen during the others' warm-up. For figures see docs/src/method.md.
const WAKE: Duration = Duration::from_millis(300);
/// The default duration of a measurement of a contender's first seconds.
const FIRST: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_nanos(Method::TIMEOUT_NS);

/// The code of the finding that recorded requests are not sent.
pub const LEFT_OUT: &str = "requests-left-out";

/// The purpose of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A measurement, which needs at least two contenders.
    Race,
    /// A check for parity, which needs at least one contender.
    Check,
}

/// Input that comes neither from the study nor from the command line.
#[derive(Debug)]
pub struct Setting {
    /// The cores of the machine.
    pub topology: Topology,
    /// The folders for files.
    pub places: Places,
    /// The default of `--seed`, for the race's random orders.
    pub seed: u64,
    /// The default of `--cpu-latency`: the longest wake-up time of idle processors, in microseconds.
    pub cpu_latency_us: Option<u32>,
    /// Whether this is a job of continuous integration: there, races of revisions have a control by default.
    pub in_ci: bool,
    /// The machines from which the load comes; none: this one.
    pub load_from: Option<LoadFrom>,
}

/// The plan and its findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The plan.
    pub plan: Plan,
    /// Warnings about the machine and about contenders that were left out.
    pub findings: Vec<Finding>,
}

/// A seed that differs between processes. It is below 2^32, so that every JSON reader keeps it exact.
pub fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// Makes the plan. `skipped` are the contenders that cannot run here.
///
/// # Errors
/// A name is not in the study, too few contenders are left, or the division of the cores is invalid.
pub fn resolve(
    study: &Study,
    skipped: &[Skipped],
    choices: &Choices,
    purpose: Purpose,
    setting: &Setting,
) -> Result<Resolved, UsageError> {
    let (contenders, left_out) = contenders(study, skipped, &choices.selection, purpose)?;
    let (pinning, mut findings) = match purpose {
        Purpose::Race => {
            let machine = &choices.machine;
            let (server, load) = (machine.server_cpus.as_ref(), machine.load_cpus.as_ref());
            match setting.load_from {
                None => setting.topology.divide(server, load)?,
                Some(_) => (setting.topology.for_servers(server, load)?, Vec::new()),
            }
        }
        Purpose::Check => (record::Pinning { server_cpus: Vec::new(), load_cpus: Vec::new() }, Vec::new()),
    };
    // Cores that are not divided are shared: contenders have all of them.
    let all = setting.topology.cpus();
    let is_shared = purpose == Purpose::Race && pinning.server_cpus.is_empty();
    let cores = setting.topology.spread(if is_shared { &all } else { &pinning.server_cpus });
    let mut scenarios = scenarios(study, choices, &cores, &mut findings)?;
    let services = services(study, &contenders);
    without_hindrance(&scenarios, &contenders, &services, setting)?;
    let controlled = match choices.method.control {
        _ if purpose == Purpose::Check => false,
        Some(typed) => typed == YesNo::Yes,
        None => setting.in_ci && contenders.iter().any(|one| one.revision.is_some()),
    };
    let method = method(choices, &contenders, &left_out, &scenarios, controlled, setting)?;
    findings.extend(left_out.iter().map(|skipped| skipped.finding()));
    findings.extend(study.probes.iter().filter_map(|probe| {
        let remedy = "deadheat sends what is safe and was answered; see allow_methods, statuses and host";
        Some(Finding::warn(LEFT_OUT, probe.left_out.clone()?, remedy))
    }));
    findings.extend(scenarios.iter_mut().filter_map(|scenario| scale(scenario, cores.len())));
    let work = setting.places.work(study);
    let mut plan = Plan {
        study: study.name.clone(),
        title: study.title.clone(),
        folder: study.folder.clone(),
        dataset: setting.places.dataset(study, &work),
        work,
        services: services.into_iter().map(planned_service).collect(),
        skipped: left_out.iter().map(|skipped| (skipped.name.clone(), skipped.why())).collect(),
        contenders: with_control(
            contenders.into_iter().map(|one| planned(one, choices)).collect(),
            &method.baseline,
            controlled,
        )?,
        probes: study.probes.iter().map(|probe| probe.contract.clone()).collect(),
        scenarios,
        method,
        pinning,
        claims: study.claims.iter().map(file::Claim::published).collect(),
        edge_hit_rate: choices.method.hit_rate,
        load_from: setting.load_from.clone(),
        server_host: None,
        typed: typed(study, choices),
    };
    findings.extend(lengthen_for_links(&mut plan));
    Ok(Resolved { plan, findings })
}

/// An error if a scenario has a link that requests cannot go over.
fn without_hindrance(
    scenarios: &[ScenarioPlan],
    contenders: &[&Contender],
    services: &[&Service],
    setting: &Setting,
) -> Result<(), UsageError> {
    let Some(linked) = scenarios.iter().find(|scenario| scenario.link.is_some()) else { return Ok(()) };
    let name = shown(&linked.name);
    if setting.load_from.is_some() {
        return Err(UsageError::new(
            format!("scenario {name} has a `link`, and --load-host has the network between the machines"),
            "leave out one of the two; --scenario chooses scenarios",
        ));
    }
    let of_contenders = contenders.iter().map(|one| (&one.name, &one.command));
    let mut all = of_contenders.chain(services.iter().map(|one| (&one.name, &one.command)));
    if let Some((owner, _)) = all.find(|(_, command)| is_dockers(command.get_ref())) {
        return Err(UsageError::new(
            format!(
                "scenario {name} has a `link`, and Docker starts the container of {} outside of it",
                shown(owner.get_ref())
            ),
            "run it with podman (a contender: `engine = \"podman\"`), leave it and what needs it out with --only, or choose other scenarios with --scenario",
        ));
    }
    let on_socket = contenders.iter().find(|one| *one.listen.get_ref() == record::Listen::Socket);
    if let Some(contender) = on_socket {
        return Err(UsageError::new(
            format!(
                "scenario {name} has a `link`, and contender {} listens on a Unix socket, which no network leads to",
                shown(contender.name.get_ref())
            ),
            "let it listen on {host} and {port}, leave it out with --only, or choose other scenarios with --scenario",
        ));
    }
    Ok(())
}

/// The options that override the scenarios of a study. For commands, the one scenario already contains them.
fn typed(study: &Study, choices: &Choices) -> Typed {
    let Choices { load, method, .. } = choices;
    if study.source == Source::AdHoc {
        return Typed::default();
    }
    Typed {
        connections: load.connections,
        rate_per_s: load.rate,
        objective: load.slo,
        metrics: method.metric.clone(),
        slice_ns: method.slice.map(nanos),
        measured_ns: method.measure.map(nanos),
    }
}

/// An error if one of the names typed with `option` is not in `known`.
fn all_known(option: &str, kind: &str, names: &[String], known: &[&str]) -> Result<(), UsageError> {
    let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let problem = format!("{option}: there is no {kind} `{}`", shown(unknown));
    let meant =
        nearest(unknown, known.iter().copied()).map(|word| format!("did you mean `{}`? ", shown(word)));
    let all = one_of(known.iter().copied());
    Err(UsageError::new(problem, format!("{}the {kind}s: {all}", meant.unwrap_or_default())))
}

fn contenders<'s>(
    study: &'s Study,
    skipped: &'s [Skipped],
    selection: &Selection,
    purpose: Purpose,
) -> Result<(Vec<&'s Contender>, Vec<&'s Skipped>), UsageError> {
    let known: Vec<&str> =
        study.contenders.iter().map(|contender| contender.name.get_ref().as_str()).collect();
    all_known("--only", "contender", &selection.only, &known)?;
    all_known("--baseline", "contender", selection.baseline.as_slice(), &known)?;
    let wanted = |name: &str| selection.only.is_empty() || selection.only.iter().any(|only| only == name);
    let left_out: Vec<&Skipped> = skipped.iter().filter(|skipped| wanted(&skipped.name)).collect();
    let runs = |name: &str| wanted(name) && !left_out.iter().any(|skipped| skipped.name == name);
    let chosen: Vec<&Contender> =
        study.contenders.iter().filter(|contender| runs(contender.name.get_ref())).collect();
    let fewest = if purpose == Purpose::Race { 2 } else { 1 };
    if chosen.len() >= fewest {
        return Ok((chosen, left_out));
    }
    let problem = match (purpose, chosen.len()) {
        (Purpose::Race, 1) => "one contender only: there is nothing to compare it with",
        _ => "no contender is left",
    };
    let reasons: Vec<String> =
        left_out.iter().map(|skipped| format!("{}: {}", skipped.name, skipped.why())).collect();
    let remedy = match (reasons.is_empty(), selection.only.is_empty()) {
        (false, _) => format!("these were left out:\n    {}", reasons.join("\n    ")),
        (true, false) => format!("name two or more with --only; the contenders: {}", one_of(known)),
        (true, true) => "add another [[contender]] to the study".into(),
    };
    Err(UsageError::new(problem, remedy))
}

/// Adds the baseline once more as the control, in a race that has one.
///
/// # Errors
/// The baseline has a fixed port.
fn with_control(
    mut planned: Vec<record::Contender>,
    baseline: &str,
    controlled: bool,
) -> Result<Vec<record::Contender>, UsageError> {
    let name = unused(CONTROL, &planned);
    let baseline = planned.iter().find(|one| one.name == baseline).filter(|_| controlled);
    if let Some(one) = baseline {
        if let record::Listen::Port(port) = one.listen {
            let problem = format!(
                "--control: {} always listens on port {port}, but it runs twice at the same time",
                shown(&one.name)
            );
            return Err(UsageError::new(problem, READ_PORT));
        }
        let control = record::Contender { name, control: true, ..one.clone() };
        planned.push(control);
    }
    Ok(planned)
}

/// The first of `name`, `name-2`, `name-3`, ... that no contender has.
fn unused(name: &str, contenders: &[record::Contender]) -> String {
    let names = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
    let mut free = names.filter(|name| contenders.iter().all(|one| one.name != *name));
    free.next().unwrap_or_else(|| name.to_owned())
}

/// The build of a contender, if it has a seed. The build of a revision may be kept from an earlier race, and then it need not run before this one.
fn rebuild(contender: &Contender) -> Option<&str> {
    let kept = || contender.revision.as_ref()?.build.as_deref();
    let build = contender.build.as_ref().map(|build| build.get_ref().as_str()).or_else(kept)?;
    record::command_placeholders(build).any(|(_, name)| name == SEED).then_some(build)
}

fn planned(contender: &Contender, choices: &Choices) -> record::Contender {
    let limit = choices.load.build_timeout.unwrap_or(BUILD_LIMIT);
    record::Contender {
        name: contender.name.get_ref().clone(),
        command: contender.command.get_ref().clone(),
        folder: contender.folder.clone(),
        env: plain(&contender.env),
        listen: contender.listen.get_ref().clone(),
        services: contender.services.iter().map(|name| name.get_ref().clone()).collect(),
        rebuild: rebuild(contender)
            .map(|command| record::Rebuild { command: command.into(), limit_ns: nanos(limit) }),
        plain_http_only: contender.plain_http_only,
        version: None,
        measures: plain(&contender.measures),
        artefact_bytes: None,
        container: None,
        collector: contender
            .collector
            .as_ref()
            .map(|one| record::Collector { kind: one.kind, env: plain(&one.env) }),
        revision: contender.revision.clone(),
        control: false,
    }
}

/// The services that the selected contenders use, in the study's order.
fn services<'s>(study: &'s Study, contenders: &[&Contender]) -> Vec<&'s Service> {
    let used =
        |name: &String| contenders.iter().flat_map(|c| &c.services).any(|service| service.get_ref() == name);
    study.services.iter().filter(|service| used(service.name.get_ref())).collect()
}

fn planned_service(service: &Service) -> record::Service {
    record::Service {
        name: service.name.get_ref().clone(),
        command: service.command.get_ref().clone(),
        folder: service.folder.clone(),
        env: plain(&service.env),
        listen: service.listen.get_ref().clone(),
        ready: service.ready.as_ref().map(|command| command.get_ref().clone()),
        reset: service.reset.as_ref().map(|command| command.get_ref().clone()),
        ending: service.ending.clone(),
    }
}

fn plain(
    env: &std::collections::BTreeMap<String, Spanned<String>>,
) -> std::collections::BTreeMap<String, String> {
    env.iter().map(|(name, value)| (name.clone(), value.get_ref().clone())).collect()
}

fn scenarios(
    study: &Study,
    choices: &Choices,
    cores: &[usize],
    findings: &mut Vec<Finding>,
) -> Result<Vec<ScenarioPlan>, UsageError> {
    let Choices { selection, load, .. } = choices;
    if study.scenarios.is_empty() {
        all_known("--scenario", "scenario", &selection.scenario, &[STEADY])?;
        let shape = Experiment::Closed { connections: file::CONNECTIONS };
        let asked = ScenarioOptions { shape: &shape, metrics: &[], traffic: &Traffic::default() };
        return Ok(vec![scenario(STEADY, &asked, all_probes(study), Limits::default(), choices)?]);
    }
    let known: Vec<&str> = study.scenarios.iter().map(|scenario| scenario.name.get_ref().as_str()).collect();
    all_known("--scenario", "scenario", &selection.scenario, &known)?;
    let wanted = |name: &String| selection.scenario.is_empty() || selection.scenario.contains(name);
    let mut plans = Vec::new();
    for one in study.scenarios.iter().filter(|scenario| wanted(scenario.name.get_ref())) {
        let requests = match &one.requests {
            Some(requests) => requests.iter().map(|share| share.get_ref().clone()).collect(),
            None => all_probes(study),
        };
        let asked = ScenarioOptions { shape: &one.shape, metrics: &one.metrics, traffic: &one.traffic };
        let mut planned = scenario(one.name.get_ref(), &asked, requests, one.limits.clone(), choices)?;
        planned.link = one.link;
        // Under another kind of load, rates do not show the cost of the added work.
        planned.ladder = one.ladder.clone().filter(|_| planned.shape.is_closed());
        match &one.sweep {
            Some(sweep) => plans.extend(points(&planned, sweep, load, cores, findings)?),
            None => plans.push(planned),
        }
    }
    Ok(plans)
}

/// The settings of a scenario in the study, before options override them.
struct ScenarioOptions<'s> {
    shape: &'s Experiment,
    metrics: &'s [Metric],
    traffic: &'s Traffic,
}

fn scenario(
    name: &str,
    asked: &ScenarioOptions<'_>,
    requests: Vec<Share>,
    limits: Limits,
    choices: &Choices,
) -> Result<ScenarioPlan, UsageError> {
    let Choices { load, method, .. } = choices;
    let shape = reshaped(asked.shape, load);
    let is_as_asked = discriminant(&shape) == discriminant(asked.shape);
    // The study's settings for another kind of load do not apply to this one.
    let metrics = metrics(name, &shape, &method.metric, if is_as_asked { asked.metrics } else { &[] })?;
    let mut traffic = asked.traffic.clone();
    traffic.stages.take_if(|_| load.rate.is_some() || !is_as_asked);
    traffic.cold &= is_as_asked;
    traffic
        .replay
        .take_if(|replay| matches!(replay, Replay::Timing { .. }) && (load.rate.is_some() || !is_as_asked));
    let profile = method.profile.map_or(&QUICK, Profile::of);
    let slices = match staged(&traffic) {
        // A contender's first seconds are measured in one slice.
        _ if traffic.cold => Slices { slice_ns: nanos(method.measure.unwrap_or(FIRST)), rounds: 1 },
        Some(whole) => profile.slices(&shape, &metrics, Some(whole), method.measure),
        None => profile.slices(&shape, &metrics, method.slice, method.measure),
    };
    let slices = Some(slices).filter(|_| shape.is_load());
    in_room(name, method.measure, slices, staged(&traffic).is_some())?;
    in_reach(name, &shape, &metrics, slices)?;
    Ok(ScenarioPlan {
        name: name.into(),
        shape,
        requests,
        limits,
        metrics,
        slices,
        sweep: None,
        ladder: None,
        traffic,
        link: None,
    })
}

/// The duration of a rate in stages. A slice must be at least this long.
fn staged(traffic: &Traffic) -> Option<Duration> {
    let rate = traffic.stages.as_deref()?.parse::<Rate>().ok()?;
    Some(rate.as_stages().iter().map(|stage| stage.duration).sum())
}

fn all_probes(study: &Study) -> Vec<Share> {
    study.probes_under_load().map(|probe| Share { probe: probe.contract.name.clone(), weight: 1 }).collect()
}

/// The shape after typed options override its settings.
fn reshaped(shape: &Experiment, load: &LoadChoices) -> Experiment {
    let connections = load.connections.unwrap_or(shape.connections());
    shape.clone().with_connections(connections).with_load(load.rate, load.slo)
}

fn method(
    choices: &Choices,
    contenders: &[&Contender],
    left_out: &[&Skipped],
    scenarios: &[ScenarioPlan],
    controlled: bool,
    setting: &Setting,
) -> Result<Method, UsageError> {
    let MethodChoices {
        profile,
        epochs,
        budget,
        over,
        margin,
        alpha,
        seed: typed_seed,
        warmup,
        collectors,
        why,
        ..
    } = &choices.method;
    let profile = profile.map_or(&QUICK, Profile::of);
    watchable(*collectors, contenders)?;
    // Every scenario has its own; these are the first scenario's.
    let metric = scenarios.first().and_then(|one| one.metrics.first().copied()).unwrap_or(Metric::Throughput);
    let slices: Vec<Slices> = scenarios.iter().filter_map(|one| one.slices).collect();
    let longest_ns = slices.iter().map(Slices::measured_ns).max().unwrap_or(0);
    let Slices { slice_ns, rounds } = slices.first().copied().unwrap_or(Slices { slice_ns: 0, rounds: 0 });
    let given = choices.selection.baseline.as_ref();
    let looks = epochs.map_or_else(|| profile.looks.to_vec(), |range| profile.looks_within(range));
    let longer_warmup = warmup.unwrap_or_default().saturating_sub(profile.warmup.1);
    let loaded = Duration::from_nanos(longest_ns).saturating_add(longer_warmup);
    let rebuilt = contenders.iter().any(|one| rebuild(one).is_some());
    let usual_budget = profile.budget_for(contenders.len() + usize::from(controlled), loaded, &looks);
    Ok(Method {
        profile: profile.name.into(),
        seed: typed_seed.unwrap_or(setting.seed),
        metric,
        baseline: baseline(given, contenders, left_out)?,
        all_pairs: contenders.len() > 2 && given.is_none() && !controlled,
        alpha: alpha.unwrap_or(ALPHA),
        margin: margin.unwrap_or(MARGIN),
        looks,
        slice_ns,
        settle_ns: 0,
        rounds,
        // With a warm-up of chosen length, no pilot is necessary.
        pilot_ns: warmup.map_or(nanos(profile.pilot), |_| 0),
        warmup_ns: warmup
            .map_or((nanos(profile.warmup.0), nanos(profile.warmup.1)), |one| (nanos(one), nanos(one))),
        warmup_requests: warmup.map_or(profile.warmup_requests, |_| 0),
        wake_ns: nanos(WAKE),
        cpu_latency_us: choices.machine.cpu_latency.map_or(setting.cpu_latency_us, |typed| typed.0),
        // The usual budget bounds how long a person waits. Here someone asks for a long wait, or for builds, which take any time.
        budget_ns: budget.or(usual_budget.filter(|_| over.is_none() && !rebuilt)).map(nanos),
        over_ns: over.map_or(0, nanos),
        collectors_ns: nanos(collectors.unwrap_or(profile.collectors)),
        why: when_to_profile(*why, contenders),
        ready_ns: nanos(choices.load.ready_timeout.unwrap_or(READY)),
        timeout_ns: nanos(choices.load.timeout.unwrap_or(TIMEOUT)),
    })
}

/// When contenders are profiled. This is the only place that decides the default: never, but in a race of revisions if one is slower.
fn when_to_profile(typed: Option<WhyWord>, contenders: &[&Contender]) -> record::Why {
    match typed {
        None if contenders.iter().any(|one| one.revision.is_some()) => record::Why::Slower,
        None | Some(WhyWord::Never) => record::Why::Never,
        Some(WhyWord::Slower) => record::Why::Slower,
        Some(WhyWord::Always) => record::Why::Always,
    }
}

/// An error if collectors are to be observed and no contender declares one.
fn watchable(collectors: Option<Duration>, contenders: &[&Contender]) -> Result<(), UsageError> {
    if collectors.is_none_or(|time| time.is_zero()) || contenders.iter().any(|one| one.collector.is_some()) {
        return Ok(());
    }
    let problem = "--collectors: no contender of this race declares a `collector`";
    let all = record::CollectorKind::ALL.map(record::CollectorKind::word);
    let remedy = format!("set `collector` in the study's [[contender]]: {}", one_of(all));
    Err(UsageError::new(problem, remedy))
}

fn baseline(
    given: Option<&String>,
    contenders: &[&Contender],
    left_out: &[&Skipped],
) -> Result<String, UsageError> {
    let Some(name) = given else {
        return Ok(contenders.first().map(|contender| contender.name.get_ref().clone()).unwrap_or_default());
    };
    if contenders.iter().any(|contender| contender.name.get_ref() == name) {
        return Ok(name.clone());
    }
    match left_out.iter().find(|skipped| skipped.name == *name) {
        Some(skipped) => Err(UsageError::new(
            format!("--baseline {}: it cannot run here: {}", shown(name), skipped.reason),
            &skipped.remedy,
        )),
        None => Err(UsageError::new(
            format!("--baseline {} is not among those chosen by --only", shown(name)),
            "add it to --only, or choose another baseline",
        )),
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
