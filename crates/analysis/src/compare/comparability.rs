//! Decides whether two records can be compared: which conditions differed, and which findings either record has on itself.
//!
//! Owns the messages. Must not know how findings are shown.
//!
//! A finding that a record's own report marks invalid is invalid here too, under its own code.

use std::collections::BTreeMap;

use deadheat_record::{
    Experiment, Finding, Limits, Machine, MachineDetails, Plan, Probe, Record, Replay, ScenarioPlan,
    Severity, Slices,
};

use super::matched::{Both, Match, names, scenario_names};
use super::options::CompareOptions;
use crate::experiment::{link, sentence};
use crate::gates::table::{self, By};
use crate::number::{bytes, clock, time_ns};
use crate::report::Report;

/// Memory sizes may differ by this share, which a kernel may keep for itself.
const SAME_MEMORY: f64 = 0.03;
/// Warm-ups found by a pilot may differ by this factor.
const SAME_WARM_UP: f64 = 2.0;

/// One setting that may differ between the records: its name, its old value and its new value.
pub(super) type Unlike = (&'static str, String, String);

/// Describes the differences: `kernel 6.1.0 then, 6.5.0 now`; none if there are none.
pub(super) fn unlike(all: impl IntoIterator<Item = Unlike>) -> Option<String> {
    let told: Vec<String> = all
        .into_iter()
        .filter(|(_, then, now)| then != now)
        .map(|(what, then, now)| format!("{what} {then} then, {now} now"))
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Findings on both records as a whole. `files`: the names of the old file and the new file.
pub(super) fn of_records(both: &Both<'_>, files: [&str; 2], asked: &CompareOptions) -> Vec<Finding> {
    let (old, new) = (both.old, both.new);
    let mut all: Vec<Finding> = Vec::new();
    all.extend(same_record(old, new));
    all.extend(machine(&old.machine, &new.machine));
    all.extend(cores(old, new));
    all.extend(reference(both));
    all.extend(own_invalid(both, &both.matches, &|report| report.findings.clone()));
    all.extend(measured_apart(both));
    all.extend(system(old, new));
    all.extend(waits(old, new));
    all.extend(services(old, new));
    all.extend(version(old, new));
    all.extend(unmatched(both, asked));
    all.extend(own_warnings(&both.old_report, "old", files[0]));
    all.extend(own_warnings(&both.new_report, "new", files[1]));
    all.sort_by_key(|one| std::cmp::Reverse(one.severity));
    all
}

/// Findings on one scenario and the contenders chosen in it. `field`: those of them that raced in both records.
pub(super) fn of_scenario(
    both: &Both<'_>,
    scenario: &str,
    chosen: &[Match],
    field: &[Match],
) -> Vec<Finding> {
    let plans = both.old.plan.scenario(scenario).zip(both.new.plan.scenario(scenario));
    let Some((then, now)) = plans else { return Vec::new() };
    let mut all: Vec<Finding> = Vec::new();
    all.extend(load(both, then, now));
    all.extend(limits(&then.limits, &now.limits));
    all.extend(chosen.iter().filter_map(|one| not_raced(both, scenario, one)));
    all.extend(both.reference.iter().filter_map(|one| not_raced(both, scenario, one)).map(|finding| {
        // A ratio to a reference that was not raced is invalid, too.
        let name = finding.contender.unwrap_or_default();
        Finding::invalid(&finding.code, format!("the reference {name}: {}", finding.message), &finding.remedy)
    }));
    all.extend(own_invalid(both, field, &|report| {
        report.scenario(scenario).map_or_else(Vec::new, |one| one.findings.clone())
    }));
    all.extend(contract(both, then, now));
    all.extend(slices(both.old.plan.slices(then), both.new.plan.slices(now)));
    all.extend(warm_up(both, scenario));
    all.sort_by_key(|one| std::cmp::Reverse(one.severity));
    all
}

fn same_record(old: &Record, new: &Record) -> Option<Finding> {
    let start = |record: &Record| (record.started_unix_ms, record.plan.method.seed);
    (start(old) == start(new) && old.machine == new.machine).then(|| {
        table::SAME_RECORD.finding(
            By::Compare,
            Severity::Invalid,
            "both files are records of the same race, so there is nothing to compare",
        )
    })
}

fn measured_apart(both: &Both<'_>) -> Option<Finding> {
    if both.reference.is_some() {
        return None;
    }
    let (then, now) = (both.old.started_unix_ms, both.new.started_unix_ms);
    let order = if now >= then { "after" } else { "before" };
    let message = format!(
        "the new race started {} {order} the old one; changes of the machine in between (heat, neighbours, updates) are part of every ratio, and no interval covers them",
        clock(then.abs_diff(now) / 1000)
    );
    Some(table::MEASURED_APART.warning(By::Compare, message))
}

/// Describes what makes the machines different, each as it was then and is now: processor, number of processors, memory, hypervisor, and
/// settings that change how fast the same processor is. None if they are the same machine.
pub fn other_machine(then: &Machine, now: &Machine) -> Option<String> {
    unlike(hardware(then, now).into_iter().chain(settings(&then.details, &now.details)))
}

fn hardware(then: &Machine, now: &Machine) -> [Unlike; 5] {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let memory = |machine: &Machine| machine.memory_bytes.unwrap_or(0);
    let (most, least) = (memory(then).max(memory(now)), memory(then).min(memory(now)));
    let same_memory = (most - least) as f64 <= SAME_MEMORY * most as f64;
    let shown = |machine: &Machine| if same_memory { String::new() } else { bytes(memory(machine)) };
    [
        ("processor", text(&then.cpu_model), text(&now.cpu_model)),
        ("logical processors", then.cpus.to_string(), now.cpus.to_string()),
        ("shared cores", format!("{:?}", then.siblings), format!("{:?}", now.siblings)),
        ("memory", shown(then), shown(now)),
        ("hypervisor", text(&then.hypervisor), text(&now.hypervisor)),
    ]
}

/// Compares only settings that both records have: earlier versions of deadheat did not read them.
fn settings(then: &MachineDetails, now: &MachineDetails) -> Vec<Unlike> {
    let has_nodes = |details: &MachineDetails| details.memory_nodes.as_ref().is_some_and(|all| all.len() > 1);
    let balancing = |details: &MachineDetails| details.numa_balancing.filter(|_| has_nodes(details));
    let number = |value: Option<u8>| value.map(|value| value.to_string());
    let [then_known, now_known] = [then, now].map(|details| {
        [
            ("microcode", details.microcode.clone()),
            ("transparent huge pages", details.transparent_huge_pages.clone()),
            ("kernel.randomize_va_space", number(details.address_randomization)),
            ("kernel.numa_balancing", number(balancing(details))),
        ]
    });
    let both = then_known.into_iter().zip(now_known);
    let both = both.filter_map(|((what, then), (_, now))| Some((what, then?, now?)));
    both.chain(mitigations(then, now)).collect()
}

/// Vulnerabilities that both kernels list and mitigate differently.
fn mitigations(then: &MachineDetails, now: &MachineDetails) -> Option<Unlike> {
    let (then, now) = (then.mitigations.as_ref()?, now.mitigations.as_ref()?);
    let differ = then.keys().filter(|name| now.get(*name).is_some_and(|text| *text != then[*name]));
    let differ: Vec<&String> = differ.collect();
    let told = |all: &BTreeMap<String, String>| {
        let one = |name: &&String| format!("{name} ({})", all[*name]);
        differ.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    Some(("mitigations", told(then), told(now)))
}

fn machine(then: &Machine, now: &Machine) -> Option<Finding> {
    let message = other_machine(then, now)?;
    Some(if unlike(hardware(then, now)).is_some() {
        table::DIFFERENT_MACHINE.finding(By::Compare, Severity::Invalid, message)
    } else {
        table::DIFFERENT_MACHINE.warning(By::Compare, message)
    })
}

fn system(old: &Record, new: &Record) -> Option<Finding> {
    let (then, now) = (&old.machine, &new.machine);
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let latency = |record: &Record| match record.plan.method.cpu_latency_us {
        Some(us) => format!("at most {us} us"),
        None => "any".into(),
    };
    let message = unlike([
        ("kernel", text(&then.kernel), text(&now.kernel)),
        ("system", text(&then.os), text(&now.os)),
        ("clock source", text(&then.clock_source), text(&now.clock_source)),
        ("frequency governor", text(&then.governor), text(&now.governor)),
        ("control groups", format!("{:?}", then.cgroup), format!("{:?}", now.cgroup)),
        ("time to wake up a processor", latency(old), latency(new)),
    ])?;
    Some(table::DIFFERENT_SYSTEM.warning(By::Compare, message))
}

fn cores(old: &Record, new: &Record) -> Option<Finding> {
    let (then, now) = (&old.plan.pinning, &new.plan.pinning);
    let message = unlike([
        ("contenders on cores", list(&then.server_cpus), list(&now.server_cpus)),
        ("generator on cores", list(&then.load_cpus), list(&now.load_cpus)),
        ("load from", load_from(&old.plan), load_from(&new.plan)),
    ])?;
    let as_many =
        then.server_cpus.len() == now.server_cpus.len() && then.load_cpus.len() == now.load_cpus.len();
    Some(if as_many && old.plan.load_from == new.plan.load_from {
        table::DIFFERENT_CORES.warning(By::Compare, message)
    } else {
        table::DIFFERENT_CORES.finding(By::Compare, Severity::Invalid, message)
    })
}

/// The machines from which the load comes.
fn load_from(plan: &Plan) -> String {
    plan.load_from.as_ref().map_or_else(|| "the same machine".into(), |from| from.hosts.join(", "))
}

fn list(cpus: &[usize]) -> String {
    let all: Vec<String> = cpus.iter().map(usize::to_string).collect();
    if all.is_empty() { "of all".into() } else { all.join(",") }
}

fn waits(old: &Record, new: &Record) -> Option<Finding> {
    let (then, now) = (&old.plan.method, &new.plan.method);
    let time = |ns: u64| time_ns(ns as f64);
    let message = unlike([
        ("settling", time(then.settle_ns), time(now.settle_ns)),
        ("timeout", time(then.timeout_ns), time(now.timeout_ns)),
    ])?;
    Some(table::DIFFERENT_SLICES.warning(By::Compare, message))
}

fn slices(then: Slices, now: Slices) -> Option<Finding> {
    let time = |ns: u64| time_ns(ns as f64);
    let message = unlike([("slices of", time(then.slice_ns), time(now.slice_ns))])?;
    Some(table::DIFFERENT_SLICES.warning(By::Compare, message))
}

fn services(old: &Record, new: &Record) -> Option<Finding> {
    let commands = |record: &Record| {
        let all = record.plan.services.iter().map(|one| format!("{} `{}`", one.name, one.command));
        all.collect::<Vec<_>>().join(", ")
    };
    let dataset = |record: &Record| {
        let name = record.plan.dataset.as_ref().and_then(|path| path.file_name());
        name.map_or_else(|| "none".into(), |name| name.to_string_lossy().into_owned())
    };
    let message =
        unlike([("services", commands(old), commands(new)), ("dataset", dataset(old), dataset(new))])?;
    Some(table::DIFFERENT_SERVICES.warning(By::Compare, message))
}

fn version(old: &Record, new: &Record) -> Option<Finding> {
    let message = unlike([("measured by deadheat", old.version.clone(), new.version.clone())])?;
    Some(table::DIFFERENT_VERSION.warning(By::Compare, message))
}

fn reference(both: &Both<'_>) -> Option<Finding> {
    let one = both.reference?;
    let (then, now) = (&both.old.plan.contenders[one.old], &both.new.plan.contenders[one.new]);
    let version = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    if let Some(message) = unlike([("version", version(&then.version), version(&now.version))]) {
        return Some(table::DIFFERENT_REFERENCE.finding(
            By::Compare,
            Severity::Invalid,
            format!("{}: {message}", now.name),
        ));
    }
    let message = unlike([("command", then.command.clone(), now.command.clone())])?;
    Some(table::DIFFERENT_REFERENCE.warning(By::Compare, format!("{}: {message}", now.name)))
}

fn unmatched(both: &Both<'_>, asked: &CompareOptions) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut tell = |gate: &table::Gate, what: &str, alone: Vec<String>, when: &str| {
        if !alone.is_empty() {
            let message = format!("{what} only in the {when} record: {}; not compared", alone.join(", "));
            all.push(gate.warning(By::Compare, message));
        }
    };
    let named = |record: &Record, taken: &dyn Fn(usize) -> bool| -> Vec<String> {
        names(record).into_iter().enumerate().filter(|(at, _)| !taken(*at)).map(|(_, name)| name).collect()
    };
    if asked.contenders.is_empty() {
        let old = named(both.old, &|at| both.matches.iter().any(|one| one.old == at));
        let new = named(both.new, &|at| both.matches.iter().any(|one| one.new == at));
        tell(&table::UNMATCHED_CONTENDER, "contenders", old, "old");
        tell(&table::UNMATCHED_CONTENDER, "contenders", new, "new");
    }
    if asked.scenarios.is_empty() {
        let (then, now) = (scenario_names(both.old), scenario_names(both.new));
        let without = |all: &[String], others: &[String]| -> Vec<String> {
            all.iter().filter(|one| !others.contains(one)).cloned().collect()
        };
        tell(&table::UNMATCHED_SCENARIO, "scenarios", without(&then, &now), "old");
        tell(&table::UNMATCHED_SCENARIO, "scenarios", without(&now, &then), "new");
    }
    all
}

/// Lists the codes of the warnings in the record itself.
fn own_warnings(report: &Report, which: &str, file: &str) -> Option<Finding> {
    let findings = report.findings.iter().chain(report.scenarios.iter().flat_map(|one| &one.findings));
    let mut codes: Vec<&str> = Vec::new();
    for one in findings.filter(|one| one.severity == Severity::Warn) {
        if !codes.contains(&one.code.as_str()) {
            codes.push(&one.code);
        }
    }
    if !report.complete {
        codes.push("unfinished");
    }
    (!codes.is_empty()).then(|| {
        let message = format!("the {which} record has warnings: {}", codes.join(", "));
        Finding {
            remedy: format!("read them with: deadheat report {file}"),
            ..table::WARNINGS_IN_RECORD.warning(By::Compare, message)
        }
    })
}

/// Findings of either record's own report that invalidate values compared here, with the contender's name in the new record. A finding on the
/// reference applies to every value that is divided by it.
fn own_invalid(both: &Both<'_>, field: &[Match], findings: &dyn Fn(&Report) -> Vec<Finding>) -> Vec<Finding> {
    let mut all = Vec::new();
    for (report, when) in [(&both.old_report, "then"), (&both.new_report, "now")] {
        let index = |one: &Match| if when == "then" { one.old } else { one.new };
        for finding in findings(report).into_iter().filter(|one| one.severity == Severity::Invalid) {
            let message = format!("{when}: {}", finding.message);
            let Some(name) = finding.contender.clone() else {
                all.push(Finding { message, ..finding });
                continue;
            };
            let is = |one: &&Match| report.record.plan.contenders[index(one)].name == name;
            if both.reference.as_ref().is_some_and(|one| is(&one)) {
                let message = format!("the reference {name}, {message}");
                all.push(Finding { contender: None, message, ..finding });
            } else if let Some(one) = field.iter().find(is) {
                let contender = Some(both.new.plan.contenders[one.new].name.clone());
                all.push(Finding { contender, message, ..finding });
            }
        }
    }
    all
}

fn load(both: &Both<'_>, then: &ScenarioPlan, now: &ScenarioPlan) -> Option<Finding> {
    let requests = |record: &Record, scenario: &ScenarioPlan| -> String {
        let one = |share: &deadheat_record::Share| match probe(record, &share.probe) {
            Some(probe) => format!("{} {}", share.weight, request(probe)),
            None => format!("{} {}", share.weight, share.probe),
        };
        scenario.requests.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let message = unlike([
        ("load", exact(&then.shape), exact(&now.shape)),
        ("requests", requests(both.old, then), requests(both.new, now)),
        ("traffic", traffic(then), traffic(now)),
        ("network", network(then), network(now)),
    ])?;
    Some(table::DIFFERENT_LOAD.finding(By::Compare, Severity::Invalid, message))
}

/// The network between load and contenders, as far as deadheat makes it.
fn network(scenario: &ScenarioPlan) -> String {
    scenario.link.as_ref().map_or_else(|| "no link".to_owned(), link)
}

/// Describes a load, with a rate or an objective to the last digit, because the words alone would round it.
fn exact(load: &Experiment) -> String {
    let digits = load.rate_per_s().map(|rate| format!(" ({rate}/s)"));
    let digits = digits.or_else(|| Some(format!(" ({} ns)", load.objective()?.limit_ns)));
    sentence(load) + &digits.unwrap_or_default()
}

/// The limits of the contenders: a different quota makes a different server of the same program.
fn limits(then: &Limits, now: &Limits) -> Option<Finding> {
    let cpus = |one: &Limits| match (one.cpus, one.asked_cpus) {
        (None, _) => "none".to_owned(),
        (Some(cpus), None) => format!("{cpus} cores"),
        (Some(cpus), Some(asked)) => format!("{cpus} cores (of {asked})"),
    };
    // Only the number counts here: the function `cores` reports different cores of the same number.
    let cores = |one: &Limits| match one.cpuset.len() {
        0 => "all of the contenders'".to_owned(),
        count => count.to_string(),
    };
    let memory =
        |one: &Limits| one.memory_bytes.map_or_else(|| "not limited".into(), |it| format!("{it} bytes"));
    let message = unlike([
        ("quota", cpus(then), cpus(now)),
        ("cores", cores(then), cores(now)),
        ("memory", memory(then), memory(now)),
    ])?;
    Some(table::DIFFERENT_LIMITS.finding(By::Compare, Severity::Invalid, message))
}

/// A contender that was excluded from either race cannot be compared. Without this finding, its absence would look as if nothing were wrong.
fn not_raced(both: &Both<'_>, scenario: &str, one: &Match) -> Option<Finding> {
    let is_out = |record: &Record, index: usize| {
        let name = &record.plan.contenders[index].name;
        record.out.contains(name) && !record.racing(scenario).contains(&index)
    };
    let name = &both.new.plan.contenders[one.new].name;
    let about = |finding: Finding| Some(finding.about(name));
    if is_out(both.new, one.new) {
        let message = "it was excluded from the new race, so there is no verdict on it";
        about(table::NOT_RACED.finding(By::Compare, Severity::Invalid, message))
    } else if is_out(both.old, one.old) {
        let message = "it was excluded from the old race, so there is nothing to compare it with";
        about(table::NOT_RACED.warning(By::Compare, message))
    } else {
        None
    }
}

fn traffic(scenario: &ScenarioPlan) -> String {
    let deadheat_record::Traffic { zipf, stages, cold, replay, tls } = &scenario.traffic;
    let words = [
        zipf.map(|exponent| format!("popularity by Zipf {exponent}")),
        stages.as_ref().map(|stages| format!("rate {stages}")),
        cold.then(|| "nothing warmed up".to_owned()),
        replay.map(|replay| match replay {
            Replay::Random => "recorded requests in random order".to_owned(),
            Replay::Timing { speed: 1.0 } => "recorded timing".to_owned(),
            Replay::Timing { speed } => format!("recorded timing at speed {speed}"),
        }),
        tls.then(|| "over TLS".to_owned()),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn probe<'a>(record: &'a Record, name: &str) -> Option<&'a Probe> {
    record.plan.probes.iter().find(|one| one.name == name)
}

/// Describes a request with everything that it sends.
fn request(probe: &Probe) -> String {
    let headers: String =
        probe.request_headers.iter().map(|(name, value)| format!(" [{name}: {value}]")).collect();
    let body = if probe.request_body.is_empty() { String::new() } else { format!(" {}", probe.request_body) };
    let more = match probe.paths.len() {
        0 => String::new(),
        _ => format!(" and {}", probe.paths[1..].join(" ")),
    };
    // The same file, read in the same way, gives the same requests.
    let log = probe.log.as_ref().map(|log| {
        let all = &log.contents;
        let sha256: String = all.sha256.chars().take(12).collect();
        format!(
            " and {} recorded requests, {} of them different, of a file {sha256}",
            all.requests, all.distinct
        )
    });
    let rows = probe.values.as_ref().map(|values| {
        let sha256: String = values.sha256.chars().take(12).collect();
        format!(" with {} rows of a file {sha256}", values.rows)
    });
    let files = log.or(rows).unwrap_or_default();
    format!("{} {}{more}{files}{headers}{body}", probe.method, probe.path)
}

/// The contract that the answers of a scenario had to meet.
fn contract(both: &Both<'_>, then: &ScenarioPlan, now: &ScenarioPlan) -> Option<Finding> {
    let rules = |record: &Record, scenario: &ScenarioPlan| -> Vec<Probe> {
        let all = scenario.requests.iter().filter_map(|share| probe(record, &share.probe)).cloned();
        // The name of a probe and what it sends are not part of the contract.
        let bare = |one: Probe| Probe {
            name: String::new(),
            method: String::new(),
            path: String::new(),
            paths: Vec::new(),
            log: None,
            values: None,
            request_headers: Default::default(),
            request_body: String::new(),
            ..one
        };
        all.map(bare).collect()
    };
    (rules(both.old, then) != rules(both.new, now)).then(|| {
        table::DIFFERENT_CONTRACT.warning(By::Compare, "the two races checked answers by different contracts")
    })
}

fn warm_up(both: &Both<'_>, scenario: &str) -> Option<Finding> {
    let (then, now) = (both.old.warmup_ns(scenario)?, both.new.warmup_ns(scenario)?);
    let (longest, shortest) = (then.max(now) as f64, then.min(now) as f64);
    let found = |message| Some(table::DIFFERENT_WARM_UP.warning(By::Compare, message));
    if longest > SAME_WARM_UP * shortest {
        let message = format!("warm-up {} then, {} now", time_ns(then as f64), time_ns(now as f64));
        return found(message);
    }
    let woken = |record: &Record| match record.plan.method.wake_ns {
        0 => "none".to_owned(),
        long => time_ns(long as f64),
    };
    let (then, now) = (woken(both.old), woken(both.new));
    let message = format!("wake-up load of frozen contenders before the rounds: {then} then, {now} now");
    (then != now).then(|| found(message)).flatten()
}
