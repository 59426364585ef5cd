//! Checks across the parts of a study: names are unique, references resolve, nothing is unused.

use std::collections::HashMap;
use std::ops::Range;

use deadheat_host::process::container::container_of;
use deadheat_record::Listen;
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::StudyReader;
use super::model::{Contender, Probe, Scenario, Study};
use super::placeholder::{self, Context};
use super::words::{nearest, one_of, shown};

pub(super) fn check(study: &Study, reading: &StudyReader<'_>) {
    unique(reading, "service", study.services.iter().map(|service| &service.name));
    unique(reading, "contender", study.contenders.iter().map(|contender| &contender.name));
    unique(reading, "probe", study.probes.iter().map(|probe| &probe.name));
    unique(reading, "scenario", study.scenarios.iter().map(|scenario| &scenario.name));
    unique(reading, "generator", study.generators.iter().map(|generator| &generator.name));
    fixed_ports(study, reading);
    references(study, reading);
    loads(study, reading);
    placeholders(study, reading);
}

fn unique<'s>(reading: &StudyReader<'_>, kind: &str, names: impl Iterator<Item = &'s Spanned<String>>) {
    let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
    for name in names.filter(|name| !name.get_ref().is_empty()) {
        let Some(first) = seen.get(name.get_ref().as_str()) else {
            seen.insert(name.get_ref(), name.span());
            continue;
        };
        let title = format!("two {kind}s are called `{}`", shown(name.get_ref()));
        let complaint = Complaint::new(name.span(), title, "the second").also(first.clone(), "the first");
        reading.complain(complaint.help(format!("give each {kind} a different `name`")));
    }
}

/// Checks that no two contenders or services use the same port, because all of them run at the same time.
fn fixed_ports(study: &Study, reading: &StudyReader<'_>) {
    let mut seen: HashMap<u16, Range<usize>> = HashMap::new();
    let services = study.services.iter().map(|service| &service.listen);
    for listen in services.chain(study.contenders.iter().map(|contender| &contender.listen)) {
        let Listen::Port(port) = *listen.get_ref() else { continue };
        let Some(first) = seen.get(&port) else {
            seen.insert(port, listen.span());
            continue;
        };
        let title =
            format!("port {port} is given twice, and all contenders and services run at the same time");
        let complaint = Complaint::new(listen.span(), title, "the second").also(first.clone(), "the first");
        reading.complain(
            complaint.help("leave `port` out: deadheat then gives each a free port, in {port} and in PORT"),
        );
    }
}

fn references(study: &Study, reading: &StudyReader<'_>) {
    let services: Vec<&str> = study.services.iter().map(|service| service.name.get_ref().as_str()).collect();
    let contenders: Vec<&str> =
        study.contenders.iter().map(|contender| contender.name.get_ref().as_str()).collect();
    let scenarios: Vec<&str> =
        study.scenarios.iter().map(|scenario| scenario.name.get_ref().as_str()).collect();
    let used = study.contenders.iter().flat_map(|contender| &contender.services);
    used.for_each(|name| refers(reading, name, "service", &services));
    for claim in &study.claims {
        let named = claim.contender.iter().chain(&claim.baseline);
        named.for_each(|name| refers(reading, name, "contender", &contenders));
        let named = claim.scenario.iter().chain(&claim.baseline_scenario);
        named.for_each(|name| refers(reading, name, "scenario", &scenarios));
    }
}

fn refers(reading: &StudyReader<'_>, name: &Spanned<String>, kind: &str, known: &[&str]) {
    let word = name.get_ref().as_str();
    if word.is_empty() || known.contains(&word) {
        return;
    }
    let complaint = Complaint::new(name.span(), format!("there is no {kind} `{}`", shown(word)), "this name");
    let complaint = complaint.meant(nearest(word, known.iter().copied()));
    reading.complain(complaint.help(format!("the study's {kind}s: {}", one_of(known.iter().copied()))));
}

/// Checks that scenarios use only probes that exist and may be loaded, and that each such probe is used.
fn loads(study: &Study, reading: &StudyReader<'_>) {
    let probes: Vec<&str> = study.probes.iter().map(|probe| probe.contract.name.as_str()).collect();
    study.scenarios.iter().for_each(|scenario| load(study, scenario, &probes, reading));
    popularity(study, reading);
    rungs(study, reading);
    measures(study, reading);
    over_tls(study, reading);
    let loads_all =
        study.scenarios.is_empty() || study.scenarios.iter().any(|scenario| scenario.requests.is_none());
    if loads_all && !study.probes.is_empty() && study.probes_under_load().next().is_none() {
        let title = "every probe has under_load = false, so there is nothing to load";
        let complaint =
            Complaint::new(study.probes[0].name.span(), title, "this one and all others: under_load = false");
        reading.complain(
            complaint.help("remove `under_load = false` from the probe that contenders are loaded with"),
        );
    }
    let none_loads = study.scenarios.iter().all(|scenario| !scenario.shape.is_load());
    if loads_all || none_loads {
        return;
    }
    let used = |name: &str| name.is_empty() || requests(study).any(|request| request.get_ref().probe == name);
    for probe in study.probes_under_load().filter(|probe| !used(&probe.contract.name)) {
        let title = format!("no scenario uses the probe `{}`", shown(&probe.contract.name));
        let complaint = Complaint::new(probe.name.span(), title, "this probe");
        reading.complain(complaint.help("add it to `requests` of a scenario, or set under_load = false in the probe to check it without load"));
    }
}

/// Checks that no two scenarios are the same rung of a ladder.
fn rungs(study: &Study, reading: &StudyReader<'_>) {
    let mut seen: HashMap<(&str, u32), Range<usize>> = HashMap::new();
    for scenario in &study.scenarios {
        let Some(rung) = &scenario.ladder else { continue };
        let place = scenario.name.span();
        if let Some(first) = seen.insert((&rung.of, rung.place), place.clone()) {
            let title = format!("two scenarios are rung {} of the ladder `{}`", rung.place, shown(&rung.of));
            let complaint = Complaint::new(place, title, "the second").also(first, "the first");
            reading.complain(complaint.help("number the rungs from the bottom: rung = 1, rung = 2"));
        }
    }
}

/// Checks that `zipf` has several requests to order by popularity, and that no weights contradict it.
fn popularity(study: &Study, reading: &StudyReader<'_>) {
    for scenario in study.scenarios.iter().filter(|scenario| scenario.traffic.zipf.is_some()) {
        let shares = scenario.requests.iter().flatten();
        if let Some(weighted) = shares.clone().find(|share| share.get_ref().weight != 1) {
            let title = "`zipf` says how often each request is sent, so a `weight` has no effect";
            let complaint = Complaint::new(weighted.span(), title, "this weight");
            reading.complain(complaint.help("leave out `zipf` or the weights"));
        }
        let named: Vec<&str> = match &scenario.requests {
            Some(_) => shares.map(|share| share.get_ref().probe.as_str()).collect(),
            None => study.probes_under_load().map(|probe| probe.contract.name.as_str()).collect(),
        };
        let is_named = |probe: &&Probe| named.contains(&probe.contract.name.as_str());
        let probes: Vec<&Probe> = study.probes.iter().filter(is_named).collect();
        if let [one] = probes[..]
            && !(one.from_log || one.from_rows || one.contract.paths.len() > 1)
        {
            let title = "`zipf` has no effect, because this scenario has only one request";
            let complaint = Complaint::new(scenario.name.span(), title, "this scenario");
            reading.complain(
                complaint.help(
                    "give its probe `paths_from`, `requests_from` or `values_from`, or leave `zipf` out",
                ),
            );
        }
    }
}

/// Checks that at least two contenders offer a scenario's measure.
fn measures(study: &Study, reading: &StudyReader<'_>) {
    for scenario in &study.scenarios {
        let Some(measure) = scenario.shape.measure() else { continue };
        let able = study.contenders.iter().filter(|one| one.measures.contains_key(measure)).count();
        if able < 2 {
            let title =
                format!("fewer than two contenders have a command for the measure `{}`", shown(measure));
            let complaint = Complaint::new(scenario.name.span(), title, "nothing can be compared here");
            reading.complain(complaint.help(format!(
                "give at least two contenders measures = {{ {} = \"COMMAND\" }}",
                shown(measure)
            )));
        }
    }
}

/// Checks that at least two contenders can use TLS if a scenario does.
fn over_tls(study: &Study, reading: &StudyReader<'_>) {
    let able = study.contenders.iter().filter(|one| !one.plain_http_only).count();
    let one = study.scenarios.iter().find(|scenario| scenario.traffic.tls);
    if let Some(scenario) = one.filter(|_| able < 2 && study.contenders.len() > 1) {
        let title = "fewer than two contenders can listen with TLS";
        let complaint = Complaint::new(scenario.name.span(), title, "nothing can be compared here");
        reading.complain(complaint.help("remove `tls = false` from contenders that can listen with TLS"));
    }
}

fn requests(study: &Study) -> impl Iterator<Item = &Spanned<deadheat_record::Share>> {
    study.scenarios.iter().filter_map(|scenario| scenario.requests.as_ref()).flatten()
}

fn load(study: &Study, scenario: &Scenario, probes: &[&str], reading: &StudyReader<'_>) {
    let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
    for request in scenario.requests.iter().flatten() {
        let name = request.get_ref().probe.as_str();
        refers(reading, &Spanned::new(request.span(), name.to_owned()), "probe", probes);
        if let Some(first) = seen.insert(name, request.span()) {
            let title = format!("the scenario lists the probe `{}` twice", shown(name));
            let complaint = Complaint::new(request.span(), title, "the second").also(first, "the first");
            reading.complain(
                complaint.help(format!("list it once: {{ probe = \"{}\", weight = 2 }}", shown(name))),
            );
        }
        let idle =
            study.probes.iter().find(|probe| probe.contract.name == name && !probe.contract.under_load);
        if let Some(idle) = idle {
            let title = format!("a scenario uses the probe `{}`, which has under_load = false", shown(name));
            let complaint =
                Complaint::new(request.span(), title, "used here").also(idle.name.span(), "the probe");
            reading.complain(complaint.help("remove one of the two"));
        }
    }
}

fn placeholders(study: &Study, reading: &StudyReader<'_>) {
    let dataset = study.dataset.is_some();
    let listens: Vec<(&str, &Listen)> = study
        .services
        .iter()
        .map(|service| (service.name.get_ref().as_str(), service.listen.get_ref()))
        .collect();
    let up = |used: &dyn Fn(&str) -> bool| -> Vec<(&str, &Listen, bool)> {
        listens.iter().map(|(name, listen)| (*name, *listen, used(name))).collect()
    };
    let none_up = up(&|_| false);
    let idle = Context { listen: None, dataset, output: false, build: false, tls: false, services: &none_up };
    let tls = study.scenarios.iter().any(|scenario| scenario.traffic.tls);
    if let Some(dataset) = &study.dataset {
        placeholder::check(reading, &dataset.command, &Context { output: true, dataset: false, ..idle });
    }
    let null = Context { listen: Some(&Listen::FreePort), ..idle };
    study.generators.iter().for_each(|generator| placeholder::check(reading, &generator.command, &null));
    for service in &study.services {
        let context = Context { listen: Some(service.listen.get_ref()), ..idle };
        let texts = std::iter::once(&service.command)
            .chain(service.env.values())
            .chain(&service.ready)
            .chain(&service.reset);
        texts.for_each(|text| placeholder::check(reading, text, &context));
    }
    for contender in &study.contenders {
        let services = up(&|name| contender.services.iter().any(|service| service.get_ref() == name));
        let tls = tls && !contender.plain_http_only;
        let context = Context { listen: Some(contender.listen.get_ref()), services: &services, tls, ..idle };
        contender_placeholders(contender, &context, &idle, reading);
    }
}

fn contender_placeholders(
    contender: &Contender,
    running: &Context<'_>,
    idle: &Context<'_>,
    reading: &StudyReader<'_>,
) {
    let logging = contender.collector.iter().flat_map(|collector| collector.env.values());
    let started =
        std::iter::once(&contender.command).chain(contender.env.values()).chain(contender.measures.values());
    let started = started.chain(logging);
    started.for_each(|text| placeholder::check(reading, text, running));
    contender.version.iter().for_each(|text| placeholder::check(reading, text, idle));
    // The image of a container is in the record, so there is one for the whole race.
    let building = Context { build: container_of(contender.command.get_ref()).is_none(), ..*idle };
    contender.build.iter().for_each(|text| placeholder::check(reading, text, &building));
}
