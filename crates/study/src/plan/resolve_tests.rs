//! Tests of the resolution, on a study with services, a dataset and two scenarios.

use std::path::Path;

use super::*;
use crate::choices::{CpuLatency, ProfileWord};
use crate::values::{CpuList, EpochRange};

const STUDY: &str = "
name = \"s\"
[dataset]
command = \"make {output}\"
output = \"d.db\"
[[service]]
name = \"db\"
command = \"db {port}\"
[[service]]
name = \"idle\"
command = \"idle {port}\"
[[contender]]
name = \"a\"
command = \"a {db.port}\"
services = [\"db\"]
env = { N = 1 }
[[contender]]
name = \"b\"
command = \"b\"
port = 8081
[[contender]]
name = \"c\"
command = \"c\"
[[probe]]
name = \"p\"
path = \"/p\"
[[probe]]
name = \"q\"
path = \"/q\"
[[probe]]
name = \"odd\"
path = \"/odd\"
under_load = false
[[scenario]]
name = \"closed\"
requests = [\"p\", { probe = \"q\", weight = 3 }]
[[scenario]]
name = \"open\"
rate = 500
arrivals = \"constant\"
connections = 8
";

fn study() -> Study {
    file::parse(STUDY, "study.toml", Path::new("/s"))
        .unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn setting() -> Setting {
    let places = Places { cache: None, temporary: "/tmp".into(), memory: None, user: 1, process: 2 };
    Setting {
        load_from: None,
        topology: Topology::read(Path::new("/nowhere"), &[0, 1]),
        places,
        seed: 42,
        cpu_latency_us: Some(0),
        in_ci: false,
    }
}

fn resolved(choices: &Choices) -> Result<Plan, UsageError> {
    resolve(&study(), &[], choices, Purpose::Race, &setting()).map(|resolved| resolved.plan)
}

fn selecting(change: impl Fn(&mut Selection)) -> Choices {
    let mut choices = Choices::default();
    change(&mut choices.selection);
    choices
}

fn skipped(name: &str) -> Skipped {
    Skipped { name: name.into(), reason: "no bun".into(), remedy: "npm ci".into() }
}

#[test]
fn a_study_resolves_into_a_plan() {
    let plan = resolved(&Choices::default()).unwrap();
    assert_eq!((plan.folder.as_path(), plan.work.as_path()), (Path::new("/s"), Path::new("/s/work")));
    assert_eq!(plan.dataset.as_deref(), Some(Path::new("/s/work/d.db")));
    assert_eq!(plan.contenders.len(), 3);
    assert_eq!(plan.contenders[0].env["N"], "1");
    assert_eq!(plan.contenders[0].folder, Path::new("/s"));
    assert_eq!(plan.contenders[1].listen, record::Listen::Port(8081));
    assert_eq!(plan.services.iter().map(|service| service.name.as_str()).collect::<Vec<_>>(), ["db"]);
    let share = |probe: &str, weight| Share { probe: probe.into(), weight };
    assert_eq!(plan.scenarios[0].requests, [share("p", 1), share("q", 3)]);
    assert_eq!(plan.scenarios[1].requests, [share("p", 1), share("q", 1)], "all that are under load");
    assert_eq!(
        plan.scenarios[1].shape,
        Experiment::Open { connections: 8, rate_per_s: 500.0, poisson: false }
    );
    assert_eq!((plan.pinning.server_cpus, plan.pinning.load_cpus), (vec![0], vec![1]));
}

#[test]
fn the_quick_profile_is_the_default() {
    let method = resolved(&Choices::default()).unwrap().method;
    assert_eq!(method.profile, "quick");
    assert_eq!((method.baseline.as_str(), method.all_pairs, method.seed), ("a", true, 42));
    assert_eq!((method.slice_ns, method.rounds, method.settle_ns), (100_000_000, 30, 0));
    assert_eq!(method.looks, [4, 6, 8, 10, 12]);
    assert_eq!((method.warmup_ns, method.wake_ns), ((1_000_000_000, 5_000_000_000), 300_000_000));
    assert_eq!(method.cpu_latency_us, Some(0), "what suits the machine");
    assert_eq!(method.budget_ns, Some(180_000_000_000));
    assert_eq!(method.collectors_ns, 0, "no pass");
    assert_eq!((method.alpha, method.margin), (0.025, 0.03));
    let budget = |contenders| QUICK.budget_for(contenders, QUICK.measured, QUICK.looks).unwrap().as_secs();
    assert_eq!([2, 5, 7].map(budget), [180, 180, 252]);
}

#[test]
fn a_budget_has_room_for_the_first_look_and_exactly_so_many_epochs_have_none() {
    let budget_s = |fewest, most, warmup: Option<u64>| {
        let mut choices = Choices::default();
        choices.method.warmup = warmup.map(Duration::from_secs);
        choices.method.epochs = Some(EpochRange { fewest, most });
        resolved(&choices).unwrap().method.budget_ns.map(|budget| budget / 1_000_000_000)
    };
    assert_eq!(budget_s(4, 12, None), Some(180));
    // Three contenders, each measured for 4 s at the rate of one scenario, plus 6 s for start, warm-up and end.
    assert_eq!(
        budget_s(20, 40, None),
        Some(20 * 3 * (4 + 6)),
        "the first look takes more than three minutes"
    );
    let longer = budget_s(20, 40, Some(30));
    assert_eq!(longer, Some(20 * 3 * (4 + 6 + 25)), "a warm-up of 30 s, and not of at most 5");
    assert_eq!(budget_s(20, 40, Some(2)), budget_s(20, 40, None), "a short one");
    assert_eq!(budget_s(16, 16, None), None);
}

#[test]
fn a_collector_and_how_it_logs_are_in_the_plan() {
    let text = STUDY
        .replace(
            "command = \"b\"",
            "command = \"b\"\ncollector = { kind = \"v8\", env = { X = \"{study}\" } }",
        )
        .replace("command = \"c\"", "command = \"c\"\ncollector = \"go\"");
    let study = file::parse(&text, "study.toml", Path::new("/s"))
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    let mut choices = Choices::default();
    choices.method.profile = Some(ProfileWord::Full);
    let plan = resolve(&study, &[], &choices, Purpose::Race, &setting()).unwrap().plan;
    let told =
        |index: usize| plan.contenders[index].collector.as_ref().map(|one| (one.kind, one.env.clone()));
    let env =
        |name: &str, value: &str| std::collections::BTreeMap::from([(name.to_owned(), value.to_owned())]);
    assert_eq!(told(0), None);
    assert_eq!(told(1), Some((record::CollectorKind::V8, env("X", "{study}"))));
    assert_eq!(told(2), Some((record::CollectorKind::Go, env("GODEBUG", "gctrace=1"))));
    assert_eq!(plan.method.collectors_ns, 5_000_000_000);
    choices.method.collectors = Some(Duration::from_secs(3));
    let plan = resolve(&study, &[], &choices, Purpose::Race, &setting()).unwrap().plan;
    assert_eq!(plan.method.collectors_ns, 3_000_000_000);
    let error = resolved(&choices).unwrap_err();
    assert!(error.problem.starts_with("--collectors: "), "{error}");
}

#[test]
fn what_was_typed_comes_first() {
    let method = MethodChoices {
        metric: vec![Metric::P99],
        profile: Some(ProfileWord::Full),
        epochs: Some(EpochRange { fewest: 10, most: 10 }),
        budget: Some(Duration::from_secs(1)),
        margin: Some(0.01),
        alpha: Some(0.05),
        over: None,
        seed: Some(7),
        slice: None,
        warmup: Some(Duration::from_secs(3)),
        measure: Some(Duration::from_secs(8)),
        collectors: None,
        why: None,
        control: None,
        hit_rate: Some(0.9),
    };
    let mut choices = Choices { method, ..Choices::default() };
    choices.load.rate = Some(2_000.0);
    choices.load.connections = Some(9);
    choices.machine.server_cpus = Some(CpuList(vec![1]));
    choices.machine.cpu_latency = Some(CpuLatency(None));
    let plan = resolved(&choices).unwrap();
    assert_eq!((plan.method.looks, plan.method.seed, plan.method.slice_ns), (vec![10], 7, 1_000_000_000));
    assert_eq!((plan.method.rounds, plan.method.budget_ns), (8, Some(1_000_000_000)));
    assert_eq!((plan.method.pilot_ns, plan.method.warmup_ns), (0, (3_000_000_000, 3_000_000_000)));
    assert_eq!((plan.edge_hit_rate, plan.method.cpu_latency_us), (Some(0.9), None));
    assert_eq!(
        plan.scenarios[0].shape,
        Experiment::Open { connections: 9, rate_per_s: 2_000.0, poisson: true }
    );
    assert_eq!(
        plan.scenarios[1].shape,
        Experiment::Open { connections: 9, rate_per_s: 2_000.0, poisson: false }
    );
    assert_eq!((plan.pinning.server_cpus, plan.pinning.load_cpus), (vec![1], vec![0]));
    let typed = Typed {
        connections: Some(9),
        rate_per_s: Some(2_000.0),
        metrics: vec![Metric::P99],
        measured_ns: Some(8_000_000_000),
        ..Typed::default()
    };
    assert_eq!(plan.typed, typed, "so that it can be typed again");
}

#[test]
fn every_scenario_has_metrics_and_slices_of_its_own() {
    let plan = resolved(&Choices::default()).unwrap();
    let of = |index: usize| (plan.scenarios[index].metrics.clone(), plan.scenarios[index].slices.unwrap());
    assert_eq!(of(0), (vec![Metric::Throughput], Slices { slice_ns: 100_000_000, rounds: 30 }));
    assert_eq!(of(1), (vec![Metric::P50, Metric::P99], Slices { slice_ns: 1_000_000_000, rounds: 4 }));
    let typed = |metric: Metric, rate: Option<f64>, scenario: &str| {
        let method = MethodChoices { metric: vec![metric], ..MethodChoices::default() };
        let mut choices = Choices { method, ..Choices::default() };
        (choices.load.rate, choices.selection.scenario) = (rate, vec![scenario.into()]);
        resolved(&choices).map(|plan| plan.scenarios[0].metrics.clone())
    };
    assert_eq!(typed(Metric::Cpu, Some(100.0), "closed"), Ok(vec![Metric::Cpu]));
    assert_eq!(typed(Metric::P50, None, "closed"), Ok(vec![Metric::P50]));
    let error = typed(Metric::Throughput, None, "open").unwrap_err();
    assert!(error.problem.contains("scenario `open`"), "{error}");
}

#[test]
fn a_sweep_is_one_scenario_for_each_value() {
    let text = format!("{STUDY}[[scenario]]\nname = \"more\"\nsweep = {{ connections = [1, 64] }}\n");
    let study = file::parse(&text, "study.toml", Path::new("/s"))
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    let mut choices = selecting(|s| s.scenario = vec!["more".into()]);
    let plan = resolve(&study, &[], &choices, Purpose::Race, &setting()).unwrap().plan;
    let names: Vec<&str> = plan.scenarios.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["more/connections=1", "more/connections=64"]);
    assert_eq!(plan.scenarios[1].shape, Experiment::Closed { connections: 64 });
    let point = record::SweepPoint { of: "more".into(), axis: record::Axis::Connections, value: 64.0 };
    assert_eq!(plan.scenarios[1].sweep, Some(point));
    choices.load.connections = Some(8);
    let error = resolve(&study, &[], &choices, Purpose::Race, &setting()).unwrap_err();
    assert!(error.problem.contains("`more` sweeps over connections"), "{error}");
}

#[test]
fn sweeps_go_over_cores_and_quotas() {
    let sweep = |axis: &str, machine: fn(&mut Choices)| {
        let text = format!("{STUDY}[[scenario]]\nname = \"more\"\nsweep = {{ {axis} }}\n");
        let study = file::parse(&text, "study.toml", Path::new("/s"))
            .unwrap_or_else(|error| panic!("{}", error.render(false)));
        let mut choices = selecting(|s| s.scenario = vec!["more".into()]);
        machine(&mut choices);
        let setting = Setting { topology: Topology::read(Path::new("/nowhere"), &[0, 1, 2]), ..setting() };
        resolve(&study, &[], &choices, Purpose::Race, &setting).unwrap()
    };
    let quotas = sweep("cpus = [0.5, 1]", |_| ());
    let limits: Vec<Option<f64>> = quotas.plan.scenarios.iter().map(|one| one.limits.cpus).collect();
    assert_eq!(limits, [Some(0.5), Some(1.0)]);
    assert_eq!(quotas.plan.scenarios[0].name, "more/cpus=0.5");
    let own = sweep("cores = [1, 2, 64]", |choices| {
        choices.machine.server_cpus = Some(CpuList(vec![0, 1]));
        choices.machine.load_cpus = Some(CpuList(vec![2]));
    });
    let cpusets: Vec<&[usize]> = own.plan.scenarios.iter().map(|one| &one.limits.cpuset[..]).collect();
    assert_eq!(cpusets, [&[0][..], &[0, 1]]);
    assert!(own.findings.iter().any(|finding| finding.code == "fewer-cores"), "{:?}", own.findings);
    let most = sweep("cores = [32, 64]", |choices| {
        choices.machine.server_cpus = Some(CpuList(vec![0, 1]));
        choices.machine.load_cpus = Some(CpuList(vec![2]));
    });
    assert_eq!(most.plan.scenarios.len(), 1, "all the cores there are");
    assert_eq!(most.plan.scenarios[0].limits.cpuset, [0, 1]);
}

/// With one core, contenders and generator share it. More would be measured under a false name.
#[test]
fn one_core_is_not_called_more() {
    let text = format!(
        "{STUDY}[[scenario]]\nname = \"more\"\nsweep = {{ cores = [1, 2, 4] }}\n[[scenario]]\nname = \"four\"\ncpus = 4\n"
    );
    let study = file::parse(&text, "study.toml", Path::new("/s")).unwrap();
    let setting = Setting { topology: Topology::read(Path::new("/nowhere"), &[3]), ..setting() };
    let resolved = resolve(&study, &[], &Choices::default(), Purpose::Race, &setting).unwrap();
    let [.., sweep, four] = &resolved.plan.scenarios[..] else { panic!("{:?}", resolved.plan.scenarios) };
    assert_eq!((sweep.name.as_str(), &sweep.limits.cpuset[..]), ("more/cores=1", &[3][..]));
    assert_eq!((four.limits.cpus, four.limits.asked_cpus), (Some(1.0), Some(4.0)));
    assert_eq!(resolved.findings.iter().filter(|one| one.code == "fewer-cores").count(), 2);
}

/// The contenders get four processors on two cores, however the kernel numbers siblings. The generator gets two more.
#[test]
fn a_sweep_over_cores_takes_one_thread_of_each_first() {
    for (siblings, expected) in [
        (["0-1", "0-1", "2-3", "2-3"], [&[0, 2][..], &[0, 1, 2]]),
        (["0,2", "1,3", "0,2", "1,3"], [&[0, 1][..], &[0, 1, 2]]),
    ] {
        let root = tempfile::tempdir().unwrap();
        for (cpu, list) in siblings.into_iter().chain(["4-5", "4-5"]).enumerate() {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("thread_siblings_list"), list).unwrap();
        }
        let text = format!("{STUDY}[[scenario]]\nname = \"more\"\nsweep = {{ cores = [2, 3] }}\n");
        let study = file::parse(&text, "study.toml", Path::new("/s")).unwrap();
        let mut choices = selecting(|s| s.scenario = vec!["more".into()]);
        choices.machine.server_cpus = Some(CpuList(vec![0, 1, 2, 3]));
        let setting = Setting { topology: Topology::read(root.path(), &[0, 1, 2, 3, 4, 5]), ..setting() };
        let plan = resolve(&study, &[], &choices, Purpose::Race, &setting).unwrap().plan;
        let cpusets: Vec<&[usize]> = plan.scenarios.iter().map(|one| &one.limits.cpuset[..]).collect();
        assert_eq!(cpusets, expected, "{siblings:?}");
    }
}

#[test]
fn an_objective_looks_for_the_peak() {
    let objective = record::Objective { quantile: 0.99, limit_ns: 5_000_000 };
    let mut choices = Choices::default();
    choices.load.slo = Some(objective);
    let plan = resolved(&choices).unwrap();
    for (scenario, connections) in plan.scenarios.iter().zip([64, 8]) {
        assert_eq!(scenario.shape, Experiment::Peak { connections, objective });
        assert_eq!(scenario.metrics, [Metric::Peak]);
        assert_eq!(scenario.slices, Some(Slices { slice_ns: 1_000_000_000, rounds: 10 }));
    }
}

#[test]
fn selections_keep_the_studys_order() {
    let plan = resolved(&selecting(|s| s.only = vec!["c".into(), "b".into()])).unwrap();
    let names: Vec<&str> = plan.contenders.iter().map(|contender| contender.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!((plan.method.baseline.as_str(), plan.method.all_pairs), ("b", false));
    assert!(plan.services.is_empty(), "none of them uses a service");
    let plan = resolved(&selecting(|s| s.scenario = vec!["open".into()])).unwrap();
    assert_eq!(plan.scenarios.len(), 1);
    let plan = resolved(&selecting(|s| s.baseline = Some("c".into()))).unwrap();
    assert_eq!((plan.method.baseline.as_str(), plan.method.all_pairs), ("c", false));
}

#[test]
fn unknown_names_are_told_with_the_right_ones() {
    let told = |choices: &Choices| resolved(choices).unwrap_err().to_string();
    let only = told(&selecting(|s| s.only = vec!["a".into(), "x\u{1b}".into()]));
    assert_eq!(only, "--only: there is no contender `x\\u{1b}`\n  the contenders: `a`, `b` or `c`");
    let scenario = told(&selecting(|s| s.scenario = vec!["opne".into()]));
    assert!(scenario.contains("did you mean `open`?"), "{scenario}");
    let baseline = told(&selecting(|s| {
        s.only = vec!["a".into(), "b".into()];
        s.baseline = Some("c".into());
    }));
    assert!(baseline.contains("not among those chosen by --only"), "{baseline}");
    assert!(told(&selecting(|s| s.only = vec!["a".into()])).contains("one contender only"));
}

#[test]
fn who_is_skipped_is_named() {
    let left_out = [skipped("a")];
    let resolve = |choices: &Choices| resolve(&study(), &left_out, choices, Purpose::Race, &setting());
    let Resolved { plan, findings } = resolve(&Choices::default()).unwrap();
    assert_eq!(plan.skipped, [("a".to_owned(), "no bun: npm ci".to_owned())]);
    assert_eq!((plan.method.baseline.as_str(), plan.method.all_pairs), ("b", false));
    assert_eq!((findings[0].code.as_str(), findings[0].remedy.as_str()), ("skipped", "npm ci"));
    let error = resolve(&selecting(|s| s.baseline = Some("a".into()))).unwrap_err();
    assert_eq!(
        (error.problem.as_str(), error.remedy.as_str()),
        ("--baseline a: it cannot run here: no bun", "npm ci")
    );
    let error = resolve(&selecting(|s| s.only = vec!["a".into(), "b".into()])).unwrap_err();
    assert!(error.remedy.contains("a: no bun: npm ci"), "{error}");
}

#[test]
fn a_study_may_have_the_name_that_commands_are_given() {
    let of = |study: &Study, places: Places| {
        let setting = Setting { places, ..setting() };
        resolve(study, &[], &Choices::default(), Purpose::Race, &setting).unwrap().plan
    };
    let commands = crate::plan::AdHoc {
        commands: vec!["a".into(), "b".into()],
        path: "/".into(),
        method: "GET".into(),
        ..crate::plan::AdHoc::default()
    };
    let commands = super::super::study_of(&commands, Path::new("/here")).unwrap();
    let long = format!("/{}", "x".repeat(90));
    let elsewhere = Source::Study(long.as_str().into());
    let named = Study { name: Plan::AD_HOC.into(), ..study() };
    for cache in [None, Some("/home/a/.cache".into()), Some(long.as_str().into())] {
        let places = || Places { cache: cache.clone(), ..setting().places };
        assert!(of(&commands, places()).is_ad_hoc(), "{cache:?}");
        assert!(!of(&named, places()).is_ad_hoc(), "{cache:?}");
        let far = Study { folder: long.as_str().into(), source: elsewhere.clone(), ..named.clone() };
        assert!(!of(&far, places()).is_ad_hoc(), "{cache:?}");
    }
}

#[test]
fn one_contender_is_enough_for_a_check() {
    let choices = selecting(|s| s.only = vec!["c".into()]);
    let resolved = resolve(&study(), &[], &choices, Purpose::Check, &setting()).unwrap();
    assert_eq!(resolved.plan.contenders.len(), 1);
    assert!(resolved.plan.pinning.server_cpus.is_empty());
}

#[test]
fn seeds_differ_and_fit_into_json() {
    let seeds: Vec<u64> = (0..4).map(|_| fresh_seed()).collect();
    assert!(seeds.iter().all(|seed| *seed < 1 << 32));
    assert!(seeds.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn rates_in_stages_and_cold_loads_have_slices_of_their_own() {
    let more = "[[scenario]]\nname = \"spike\"\nrate = \"100:1s,400:500ms,100:1s\"\nmetrics = [\"cpu\"]\n\
                [[scenario]]\nname = \"cold\"\nwarm_up = false\nzipf = 1.0\n";
    let study = file::parse(&format!("{STUDY}{more}"), "study.toml", Path::new("/s")).unwrap();
    let planned = |choices: &Choices| {
        let plan = resolve(&study, &[], choices, Purpose::Race, &setting()).unwrap().plan;
        (plan.scenarios[2].clone(), plan.scenarios[3].clone())
    };
    let (spike, cold) = planned(&Choices::default());
    assert_eq!(spike.shape, Experiment::Open { connections: 64, rate_per_s: 160.0, poisson: true });
    assert_eq!(spike.traffic.stages.as_deref(), Some("100:1s,400:500ms,100:1s"));
    assert_eq!(spike.slices, Some(Slices { slice_ns: 2_500_000_000, rounds: 4 }));
    assert_eq!(cold.slices, Some(Slices { slice_ns: 10_000_000_000, rounds: 1 }));
    assert_eq!(cold.traffic, Traffic { zipf: Some(1.0), cold: true, ..Traffic::default() });
    let mut choices = Choices::default();
    choices.load.rate = Some(700.0);
    let (spike, cold) = planned(&choices);
    assert_eq!(spike.shape, Experiment::Open { connections: 64, rate_per_s: 700.0, poisson: true });
    assert_eq!((spike.traffic.stages, cold.traffic.cold), (None, false), "another load was typed");
}

#[test]
fn a_scenario_is_over_tls_and_a_contender_may_have_none() {
    let last = "name = \"c\"\ncommand = \"c\"\n";
    let text = STUDY.replace(last, &format!("{last}tls = false\n")) + "tls = true\n";
    let study = file::parse(&text, "study.toml", Path::new("/s")).unwrap();
    let plan = resolve(&study, &[], &Choices::default(), Purpose::Race, &setting()).unwrap().plan;
    let over_tls: Vec<bool> = plan.scenarios.iter().map(|one| one.traffic.tls).collect();
    let plain: Vec<bool> = plan.contenders.iter().map(|one| one.plain_http_only).collect();
    assert_eq!((over_tls, plain), (vec![false, true], vec![false, false, true]));
}

#[test]
fn the_control_is_the_baseline_once_more() {
    let mut choices = Choices::default();
    let names = |plan: &Plan| plan.contenders.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let without = resolved(&choices).unwrap();
    choices.method.control = Some(YesNo::Yes);
    let plan = resolved(&choices).unwrap();
    let control = plan.control().unwrap();
    assert_eq!(control.name, "control");
    assert_eq!(control.command, plan.contenders[0].command);
    assert_eq!(names(&plan)[..names(&without).len()], names(&without));
    assert!(!plan.method.all_pairs, "each contender is compared with the baseline");
    let checked = resolve(&study(), &[], &choices, Purpose::Check, &setting()).unwrap().plan;
    assert!(checked.control().is_none(), "a check measures nothing");

    let mut study = study();
    study.contenders[1].name = toml::Spanned::new(0..0, "control".into());
    let plan = resolve(&study, &[], &choices, Purpose::Race, &setting()).unwrap().plan;
    assert_eq!(plan.control().unwrap().name, "control-2");
}

#[test]
fn a_baseline_with_a_fixed_port_has_no_control() {
    let mut choices = selecting(|selection| selection.baseline = Some("b".into()));
    assert!(resolved(&choices).is_ok());
    choices.method.control = Some(YesNo::Yes);
    let error = resolved(&choices).unwrap_err();
    assert_eq!(error.problem, "--control: b always listens on port 8081, but it runs twice at the same time");
    assert_eq!(error.remedy, "let it read its port from PORT or {port}, and remove `port` from the study");
    choices.selection.baseline = None;
    assert!(resolved(&choices).unwrap().control().is_some(), "only the baseline runs twice");
}

#[test]
fn a_race_of_revisions_has_a_control_in_continuous_integration() {
    let mut study = study();
    let has_control = |study: &Study, in_ci: bool, typed: Option<YesNo>| {
        let mut choices = Choices::default();
        choices.method.control = typed;
        let setting = Setting { in_ci, ..setting() };
        resolve(study, &[], &choices, Purpose::Race, &setting).unwrap().plan.control().is_some()
    };
    assert!(!has_control(&study, true, None), "not a race of revisions");
    study.contenders[0].revision = Some(revision());
    assert!(has_control(&study, true, None));
    assert!(!has_control(&study, false, None));
    assert!(!has_control(&study, true, Some(YesNo::No)));
}

#[test]
fn a_race_of_revisions_is_profiled_if_one_is_slower() {
    let mut study = study();
    let why = |study: &Study, typed: Option<WhyWord>| {
        let mut choices = Choices::default();
        choices.method.why = typed;
        resolve(study, &[], &choices, Purpose::Race, &setting()).unwrap().plan.method.why
    };
    assert_eq!(why(&study, None), record::Why::Never);
    assert_eq!(why(&study, Some(WhyWord::Slower)), record::Why::Slower);
    study.contenders[0].revision = Some(revision());
    assert_eq!(why(&study, None), record::Why::Slower);
    assert_eq!(why(&study, Some(WhyWord::Always)), record::Why::Always);
    assert_eq!(why(&study, Some(WhyWord::Never)), record::Why::Never);
}

fn revision() -> record::Revision {
    record::Revision {
        name: "main".into(),
        commit: "0".into(),
        subject: "first".into(),
        uncommitted: false,
        repository: "/r".into(),
        checkout: "/c".into(),
        folder: "/c/tree".into(),
        contender: "a".into(),
        build: None,
    }
}

#[test]
fn a_build_with_a_seed_is_for_each_epoch() {
    let mut study = study();
    let rebuild = |study: &Study, limit: Option<u64>| {
        let mut choices = Choices::default();
        choices.load.build_timeout = limit.map(Duration::from_secs);
        let plan = resolve(study, &[], &choices, Purpose::Race, &setting()).unwrap().plan;
        plan.contenders[0].rebuild.as_ref().map(|one| (one.command.clone(), one.limit_ns / 1_000_000_000))
    };
    study.contenders[0].build = Some(Spanned::new(0..0, "make".into()));
    assert_eq!(rebuild(&study, None), None);
    study.contenders[0].build = Some(Spanned::new(0..0, "make {seed}".into()));
    assert_eq!(rebuild(&study, None), Some(("make {seed}".into(), 900)));
    assert_eq!(rebuild(&study, Some(60)), Some(("make {seed}".into(), 60)));
    let plan =
        |study: &Study| resolve(study, &[], &Choices::default(), Purpose::Race, &setting()).unwrap().plan;
    assert_eq!(plan(&study).method.budget_ns, None, "builds take any time");
    // A kept build does not run before the race.
    study.contenders[0].build = None;
    study.contenders[0].revision = Some(record::Revision { build: Some("make {seed}".into()), ..revision() });
    assert_eq!(rebuild(&study, None), Some(("make {seed}".into(), 900)));
}

#[test]
fn a_race_over_hours_has_no_usual_budget() {
    let mut choices = Choices::default();
    choices.method.over = Some(Duration::from_secs(8 * 3_600));
    let method = resolved(&choices).unwrap().method;
    assert_eq!((method.over_ns, method.budget_ns), (28_800_000_000_000, None));
    choices.method.budget = Some(Duration::from_secs(60));
    assert_eq!(resolved(&choices).unwrap().method.budget_ns, Some(60_000_000_000));
}

#[test]
fn slices_are_long_enough_for_what_an_order_to_load_hosts_costs() {
    let after = |cost_us: u64| {
        let mut plan = resolved(&Choices::default()).unwrap();
        let finding = crate::plan::lengthen_slices(&mut plan, Duration::from_micros(cost_us));
        let slices = plan.scenarios.iter().map(|one| plan.slices(one));
        let slices: Vec<(u64, u32)> = slices.map(|one| (one.slice_ns / 1_000_000, one.rounds)).collect();
        (slices, plan.method.slice_ns / 1_000_000, finding)
    };
    let (usual, method_ms, finding) = after(3_000);
    assert_eq!((usual[0], method_ms, finding), ((100, 30), 100, None), "1 ms to and fro, and several hosts");
    let (slices, method_ms, finding) = after(22_000);
    assert_eq!((slices[0], method_ms), ((270, 12), 270), "as much time is measured");
    assert_eq!(slices[1], usual[1], "already long enough");
    let finding = finding.unwrap();
    assert_eq!(finding.code, "slices-lengthened");
    assert_eq!(
        finding.message,
        "slices last 270 ms and not 100 ms: an order to the load hosts and its results take 22 ms on their way"
    );
    let (slices, ..) = after(500_000);
    assert_eq!(slices, [(6_000, 4), (6_000, 4)], "at least the fewest rounds");
}
