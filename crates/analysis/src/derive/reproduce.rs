//! Builds the command that runs a record's plan again.
//!
//! Owns: which options express the plan, and their quoting for a shell. Must not know the results of the race.

use deadheat_record::{Contender, Method, Objective, Plan, Probe, Rebuild, Revision, ScenarioPlan, Typed};

use crate::number::quantile;

/// One line for a POSIX shell. Relative paths in commands and studies start from the folder where it runs.
pub(crate) fn command(plan: &Plan) -> String {
    let mut words = Words(vec!["deadheat".into(), "race".into()]);
    if plan.is_ad_hoc() {
        typed(plan, &mut words)
    } else {
        study(plan, &mut words)
    }
    method(plan, &mut words);
    for (option, cpus) in
        [("--server-cpus", &plan.pinning.server_cpus), ("--load-cpus", &plan.pinning.load_cpus)]
    {
        if !cpus.is_empty() {
            words.option(option, &list(cpus.iter().map(usize::to_string)));
        }
    }
    if let Some(host) = &plan.server_host {
        words.option("--server-host", &host.host);
        words.option("--send", &host.sent.display().to_string());
        if host.sent_ignored {
            words.word("--send-ignored");
        }
        if let Some(build) = &host.build {
            words.option("--build", build);
        }
    }
    if let Some(from) = &plan.load_from {
        from.hosts.iter().for_each(|host| words.option("--load-host", host));
        words.option("--server-address", &from.server_address.to_string());
    }
    words.0.join(" ")
}

/// Adds the options for the whole race.
fn method(plan: &Plan, words: &mut Words) {
    let method = &plan.method;
    if !method.all_pairs && revisions(plan).is_none() {
        words.option("--baseline", &method.baseline);
    }
    if plan.control().is_some() {
        words.word("--control");
    }
    words.option("--profile", &method.profile);
    words.option("--seed", &method.seed.to_string());
    if let (Some(first), Some(last)) = (method.looks.first(), method.looks.last()) {
        words.option("--epochs", &format!("{first}..{last}"));
    }
    words.option("--margin", &format!("{}%", shortest(method.margin * 100.0)));
    words.option("--alpha", &shortest(method.alpha));
    match method.budget_ns {
        Some(budget) => words.option("--budget", &time(budget)),
        // The plan of a race in sessions has no budget. Without this option, it would get the one of its profile.
        None if method.profile == "quick" && method.looks.len() > 1 && has_usual_budget(plan) => {
            words.option("--budget", "24h");
        }
        None => {}
    }
    if method.over_ns > 0 {
        words.option("--over", &time(method.over_ns));
    }
    let limits = plan.contenders.iter().filter_map(|one| Some(one.rebuild.as_ref()?.limit_ns));
    if let Some(limit_ns) = limits.max().filter(|limit_ns| *limit_ns != Rebuild::LIMIT_NS) {
        words.option("--build-timeout", &time(limit_ns));
    }
    if plan.contenders.iter().any(|one| one.collector.is_some()) {
        words.option("--collectors", &time(method.collectors_ns));
    }
    // Races of revisions have another default.
    if !method.why.is_never() || revisions(plan).is_some() {
        words.word(&format!("--why={}", method.why.word()));
    }
    if method.pilot_ns == 0 {
        words.option("--warmup", &time(method.warmup_ns.1));
    }
    if let Some(us) = method.cpu_latency_us {
        words.option("--cpu-latency", &time(u64::from(us) * 1_000));
    }
    if let Some(rate) = plan.edge_hit_rate {
        words.option("--hit-rate", &shortest(rate));
    }
    for (option, ns, usual) in [
        ("--timeout", method.timeout_ns, Method::TIMEOUT_NS),
        ("--ready-timeout", method.ready_ns, Method::READY_NS),
    ] {
        if ns != usual {
            words.option(option, &time(ns));
        }
    }
}

/// Whether a quick race has a budget although none is typed.
fn has_usual_budget(plan: &Plan) -> bool {
    plan.method.over_ns == 0 && plan.contenders.iter().all(|one| one.rebuild.is_none())
}

fn study(plan: &Plan, words: &mut Words) {
    // The plan's own path is the one on the server host.
    let typed = plan.server_host.as_ref().and_then(|host| Some(host.sent.join(host.study.as_ref()?)));
    words.word(&typed.as_ref().unwrap_or(&plan.folder).display().to_string());
    match revisions(plan) {
        Some((base, head)) => {
            words.option("--git", &range(base, head));
            words.option("--only", &head.contender);
        }
        None => words.option("--only", &list(raced(plan).map(|one| one.name.clone()))),
    }
    let name = |one: &ScenarioPlan| one.sweep.as_ref().map_or_else(|| one.name.clone(), |of| of.of.clone());
    let mut names: Vec<String> = plan.scenarios.iter().map(name).collect();
    names.dedup();
    words.option("--scenario", &list(names));
    load(&plan.typed, words);
}

fn typed(plan: &Plan, words: &mut Words) {
    if let Some(probe) = plan.probes.first() {
        let tls = plan.scenarios.first().is_some_and(|scenario| scenario.traffic.tls);
        request(probe, tls, words);
    }
    if let Some(scenario) = plan.scenarios.first() {
        load(&spelt_out(plan, scenario), words);
    }
    if let Some((base, head)) = revisions(plan) {
        words.option("--git", &range(base, head));
        if let Some(build) = &head.build {
            words.option("--build", build);
        }
        if let Some(one) = plan.contenders.first() {
            words.word(&one.command);
        }
        return;
    }
    let build = raced(plan).find_map(|one| one.rebuild.as_ref()).filter(|_| plan.server_host.is_none());
    if let Some(build) = build {
        words.option("--build", &build.command);
    }
    for one in raced(plan) {
        words.option("-n", &one.name);
    }
    for one in raced(plan) {
        words.word(&one.command);
    }
}

/// The contenders without the control.
fn raced(plan: &Plan) -> impl Iterator<Item = &Contender> {
    plan.contenders.iter().filter(|one| !one.control)
}

/// The two revisions of a race of revisions, the baseline first.
fn revisions(plan: &Plan) -> Option<(&Revision, &Revision)> {
    let mut all = raced(plan).filter_map(|one| one.revision.as_ref());
    all.next().zip(all.next())
}

/// The value of `--git`, with commits, because the names of branches move.
fn range(base: &Revision, head: &Revision) -> String {
    if head.uncommitted { base.commit.clone() } else { format!("{}..{}", base.commit, head.commit) }
}

fn request(probe: &Probe, tls: bool, words: &mut Words) {
    let scheme = if tls { "https" } else { "http" };
    words.option("--url", &format!("{scheme}://127.0.0.1:{{port}}{}", probe.path));
    if probe.method != "GET" {
        words.option("-m", &probe.method);
    }
    for (name, value) in &probe.request_headers {
        words.option("-H", &format!("{name}: {value}"));
    }
    if !probe.request_body.is_empty() {
        words.option("-b", &probe.request_body);
    }
    for header in probe.headers_that_may_differ() {
        words.option("--ignore-header", header);
    }
    for path in &probe.body.ignored {
        words.option("--ignore-json", path);
    }
}

/// The scenario of an ad-hoc race, as if every option had been given.
fn spelt_out(plan: &Plan, scenario: &ScenarioPlan) -> Typed {
    // Only studies have scenarios without a load, and the command names those instead of spelling them out.
    let (rate_per_s, objective) = (scenario.shape.rate_per_s(), scenario.shape.objective());
    let slices = plan.slices(scenario);
    Typed {
        connections: Some(scenario.shape.connections()),
        rate_per_s,
        objective,
        // A peak search always compares the peak, and can compare nothing else.
        metrics: if objective.is_some() { Vec::new() } else { plan.metrics(scenario) },
        slice_ns: Some(slices.slice_ns),
        measured_ns: Some(slices.measured_ns()),
    }
}

fn load(typed: &Typed, words: &mut Words) {
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.option(name, &value);
        }
    };
    let metrics = list(typed.metrics.iter().map(|one| one.word().to_owned()));
    option("-c", typed.connections.map(|count| count.to_string()));
    option("-r", typed.rate_per_s.map(shortest));
    option("--slo", typed.objective.as_ref().map(slo));
    option("--metric", Some(metrics).filter(|words| !words.is_empty()));
    option("--slice", typed.slice_ns.map(time));
    option("--measure", typed.measured_ns.map(time));
}

fn slo(objective: &Objective) -> String {
    format!("{} < {}", quantile(objective.quantile), time(objective.limit_ns))
}

/// A command line under construction.
struct Words(Vec<String>);

impl Words {
    fn word(&mut self, text: &str) {
        self.0.push(quoted(text));
    }

    fn option(&mut self, name: &str, value: &str) {
        self.0.push(name.into());
        self.word(value);
    }
}

/// Quotes a text as one word of a POSIX shell.
pub(super) fn quoted(text: &str) -> String {
    let harmless = |one: char| one.is_ascii_alphanumeric() || "-_./:=,%@+".contains(one);
    if !text.is_empty() && text.chars().all(harmless) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn list(words: impl IntoIterator<Item = String>) -> String {
    words.into_iter().collect::<Vec<_>>().join(",")
}

/// A number without the rounding noise of binary fractions.
fn shortest(value: f64) -> String {
    let text = format!("{value:.9}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.iter().find(|(size, _)| ns.is_multiple_of(*size));
    whole.map_or_else(
        || format!("{}us", shortest(ns as f64 / 1e3)),
        |(size, unit)| format!("{}{unit}", ns / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("a/b-1.2"), "a/b-1.2");
        assert_eq!(quoted("node a.mjs"), "'node a.mjs'");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn numbers_and_times_are_typed_as_flags_read_them() {
        assert_eq!([shortest(0.03 * 100.0), shortest(0.025), shortest(2_000.0)], ["3", "0.025", "2000"]);
        assert_eq!([time(500_000_000), time(3_000_000_000), time(1_500)], ["500ms", "3s", "1.5us"]);
    }
}
