//! Tests the messages for mistakes in `study.toml` against golden outputs, and checks that correct studies load. `tests/studies` has one
//! folder for each kind of mistake. To accept a change: `INSTA_UPDATE=always cargo test -p deadheat-study`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use deadheat_study::file as study;

use study::Study;

fn studies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/studies")
}

/// The message for that study, without the path of the folder that contains all studies.
fn complaints(name: &str) -> String {
    let error = study::load(&studies().join(name)).expect_err("a study with mistakes");
    error.render(false).replace(&studies().display().to_string(), "studies")
}

fn loaded(path: &Path) -> Study {
    study::load(path).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

macro_rules! mistakes {
    ($($name:ident),* $(,)?) => {
        const MISTAKES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                let mut settings = insta::Settings::clone_current();
                settings.set_snapshot_path("studies/expected");
                settings.set_prepend_module_to_snapshot(false);
                settings.set_omit_expression(true);
                settings.bind(|| insta::assert_snapshot!(stringify!($name), complaints(stringify!($name))));
            }
        )*
    };
}

mistakes!(
    bad_limits,
    bad_numbers,
    bad_rules,
    claims,
    collectors,
    containers,
    duplicate_names,
    either_or,
    empty,
    escapes,
    hosts,
    key_twice,
    links,
    metrics,
    missing_files,
    missing_parts,
    no_dataset,
    not_utf8,
    nothing_under_load,
    objectives,
    one_table,
    over_tls,
    placeholders,
    recorded,
    request_values,
    requests,
    same_port,
    sweeps,
    syntax,
    traffic,
    unknown_keys,
    unknown_names,
    unused_probes,
    without_load,
    wrong_types,
);

#[test]
fn every_folder_is_a_test() {
    let folders =
        fs::read_dir(studies()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let folders: BTreeSet<String> = folders.collect();
    let tests = MISTAKES.iter().copied().chain(["ten_lines", "everything", "expected"]);
    assert_eq!(folders, tests.map(str::to_owned).collect());
}

#[test]
fn what_is_shown_cannot_be_obeyed_by_a_terminal() {
    for name in MISTAKES {
        let shown = complaints(name);
        let obeyed =
            shown.chars().find(|&c| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c));
        assert_eq!(obeyed, None, "{name}: {shown}");
    }
}

#[test]
fn ten_lines_are_a_study() {
    let path = studies().join("ten_lines");
    assert_eq!(fs::read_to_string(path.join("study.toml")).unwrap().lines().count(), 10);
    let study = loaded(&path);
    assert_eq!((study.name.as_str(), study.contenders.len(), study.scenarios.len()), ("ten_lines", 2, 0));
    assert!(!study.machine_matches);
    assert_eq!(study.probes[0].contract.name, "/api/items?limit=10");
    assert_eq!(study.probes[0].contract.agree_headers, ["content-type"]);
    assert!(study.probes[0].contract.body.agree && study.probes[0].contract.under_load);
}

#[test]
fn every_key_is_read() {
    use deadheat_record::{Listen, StatusRule};
    let study = loaded(&studies().join("everything/study.toml"));
    let folder = studies().join("everything");
    assert_eq!((study.name.as_str(), study.folder.as_path()), ("all", folder.as_path()));
    assert_eq!(study.dataset.as_ref().unwrap().inputs, [folder.join("rows.csv")]);
    assert_eq!(study.services[1].listen.get_ref(), &Listen::Socket);
    let (db, cache) = (&study.services[0], &study.services[1]);
    assert_eq!(db.ready.as_ref().unwrap().get_ref(), "db ping {port}");
    assert_eq!(db.reset.as_ref().unwrap().get_ref(), "db reset {port}");
    assert_eq!((db.ending.signal.as_deref(), db.ending.grace_ns), (Some("INT"), Some(2_500_000_000)));
    assert_eq!((cache.ending.command.as_deref(), cache.ending.grace_ns), (Some("cache stop"), None));
    assert!(study.dataset.as_ref().unwrap().tmpfs);
    let first = &study.contenders[0];
    assert_eq!((first.folder.as_path(), first.needs.len()), (folder.join("sub").as_path(), 2));
    let env: Vec<&str> = first.env.values().map(|value| value.get_ref().as_str()).collect();
    assert_eq!(env, ["false", "production", "4"]);
    assert_eq!(study.contenders[1].name.get_ref(), "server");
    let items = &study.probes[0].contract;
    assert_eq!(items.status, StatusRule::OneOf(vec![200, 304]));
    assert_eq!(
        (items.headers["cache-control"].as_str(), items.agree_headers[1].as_str()),
        ("no-store", "etag")
    );
    assert_eq!(items.request_headers["Accept"], "application/json");
    assert_eq!(items.body.json[1].value, serde_json::json!({ "id": 1, "tags": ["a"], "price": 1.5 }));
    assert!(items.body.volatile[0].agree && items.body.volatile[0].not.is_some());
    let many = &study.probes[1].contract;
    assert_eq!(
        (many.path.as_str(), &many.paths[1][..], many.paths.len()),
        ("/items?limit=1", "/items?limit=2", 2)
    );
    let exact = &study.probes[2].contract;
    assert_eq!((exact.body.exact.as_deref(), exact.body.agree), (Some("{\"ok\":true}\n"), false));
}

#[test]
fn recorded_requests_are_read_with_their_order() {
    use deadheat_record::{Experiment, LogFormat, LogReading, Replay, StatusRule};
    let study = loaded(&studies().join("everything/study.toml"));
    let probe = |name: &str| study.probes.iter().find(|one| one.contract.name == name).unwrap();
    let (log, plain) = (probe("log"), probe("plain log"));
    let (source, contract) = (log.contract.log.as_ref().unwrap(), &log.contract);
    let reading = LogReading {
        format: Some(LogFormat::Combined),
        time_format: Some("%d/%b/%Y:%H:%M:%S %z".into()),
        allow_methods: vec!["POST".into()],
        statuses: Some("200-299,404".into()),
        host: Some("x.test".into()),
        credentials: true,
        ..LogReading::default()
    };
    assert_eq!((&source.reading, source.file.file_name().unwrap().to_str()), (&reading, Some("access.log")));
    assert_eq!((contract.method.as_str(), contract.path.as_str()), ("GET", "/a"), "without its query");
    assert_eq!(contract.status, StatusRule::Within(vec![(200, 399), (404, 404)]));
    assert_eq!((source.contents.lines, source.contents.requests, source.contents.distinct), (4, 3, 2));
    assert!(log.left_out.as_ref().unwrap().starts_with("access.log: 1 of 4 lines are not sent"));
    assert_eq!(plain.contract.status, StatusRule::Within(vec![(200, 399)]));
    assert_eq!(plain.contract.log.as_ref().unwrap().reading.format, Some(LogFormat::Combined));
    let scenario = |name: &str| study.scenarios.iter().find(|one| one.name.get_ref() == name).unwrap();
    let replayed = scenario("replayed");
    assert_eq!(replayed.traffic.replay, Some(Replay::Timing { speed: 2.0 }));
    let Experiment::Open { connections: 9, rate_per_s, poisson: false } = replayed.shape else {
        panic!("open")
    };
    // Three requests in three to five seconds, twice as fast.
    assert!((0.8..=1.4).contains(&rate_per_s), "{rate_per_s}");
    let frequent = scenario("frequent");
    assert_eq!((frequent.traffic.replay, frequent.shape.is_closed()), (Some(Replay::Random), true));
}

#[test]
fn values_of_answers_and_of_rows_are_read() {
    use deadheat_record::{Capture, Replay};
    let folder = studies().join("everything");
    let study = loaded(&folder.join("study.toml"));
    let probe = |name: &str| &study.probes.iter().find(|one| one.contract.name == name).unwrap().contract;
    let login = probe("login");
    let captured: Vec<(&str, &Capture)> =
        login.capture.iter().map(|(name, from)| (&name[..], from)).collect();
    let wanted = [
        ("csrf", &Capture::Header("x-csrf-token".into())),
        ("sid", &Capture::Cookie("sid".into())),
        ("token", &Capture::Json("$.access_token".into())),
    ];
    assert_eq!((captured, login.under_load), (wanted.to_vec(), false));
    let values = probe("users").values.as_ref().unwrap();
    assert_eq!((&values.file, values.rows, values.sha256.len()), (&folder.join("users.csv"), 2, 64));
    assert_eq!(values.columns, ["id", "name"]);
    let drawn = study.scenarios.iter().find(|one| one.name.get_ref() == "drawn").unwrap();
    assert_eq!(drawn.traffic.replay, Some(Replay::Random));
}

#[test]
fn every_key_of_a_scenario_is_read() {
    use deadheat_record::{Experiment, Limits, Metric, Objective};
    let study = loaded(&studies().join("everything/study.toml"));
    assert_eq!(study.scenarios[0].requests.as_ref().unwrap()[1].get_ref().weight, 5);
    assert_eq!(
        study.scenarios[1].shape,
        Experiment::Open { connections: 64, rate_per_s: 2000.0, poisson: false }
    );
    let limits = &study.scenarios[1].limits;
    assert_eq!(
        (limits.cpus, &limits.cpuset[..], limits.memory_bytes),
        (Some(1.5), &[0, 2][..], Some(512_000_000))
    );
    assert_eq!(study.scenarios[0].limits, Limits::default());
    assert_eq!(study.scenarios[1].metrics, [Metric::P99, Metric::Cpu]);
    let popular = &study.scenarios[2].traffic;
    assert_eq!((popular.zipf, popular.cold, popular.stages.as_deref()), (Some(0.9), true, None));
    let spike = &study.scenarios[3];
    // One second at 100/s, then half a second at a mean of 250/s.
    let mean = (100.0 + 125.0) / 1.5;
    assert_eq!(spike.shape, Experiment::Open { connections: 64, rate_per_s: mean, poisson: true });
    assert_eq!(spike.traffic.stages.as_deref(), Some("100:1s,100..400:500ms"));
    let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
    assert_eq!(study.scenarios[4].shape, Experiment::Peak { connections: 8, objective });
    assert_eq!(study.scenarios[5].sweep.as_ref().unwrap().values, [1.0, 64.0]);
    assert_eq!(study.scenarios[6].shape, Experiment::Starts { starts: 20 });
    assert_eq!(study.scenarios[7].shape, Experiment::Measure { measure: "parse".into() });
    assert_eq!(study.scenarios[7].requests.as_deref(), Some(&[][..]));
    let rung = study.scenarios[8].ladder.as_ref().unwrap();
    assert_eq!((rung.of.as_str(), rung.place), ("request", 2));
    assert!(study.scenarios[..8].iter().all(|one| one.ladder.is_none()));
    let over_tls: Vec<bool> = study.scenarios.iter().map(|one| one.traffic.tls).collect();
    assert_eq!(over_tls.iter().position(|tls| *tls), Some(9), "the last one");
    assert!(study.contenders.iter().all(|one| !one.plain_http_only));
}

#[test]
fn what_a_contender_offers_and_what_was_published_is_read() {
    use deadheat_record::CollectorKind;
    let study = loaded(&studies().join("everything/study.toml"));
    let folder = studies().join("everything");
    let first = &study.contenders[0];
    assert!(study.machine_matches);
    assert_eq!(study.claims[0].published().value, Some(41_900.0));
    assert_eq!(study.claims[0].published().half_digit, 0.5);
    assert_eq!(study.claims[0].row.as_deref(), Some("first"));
    assert_eq!(study.claims[1].published().baseline_scenario.as_deref(), Some("popular"));
    let second = &study.contenders[1];
    assert_eq!(second.measures["parse"].get_ref(), "./sub/bin/server parse");
    assert_eq!(second.artefacts, [folder.join("rows.csv"), folder.join("sub")]);
    let collector = |contender: &study::Contender| {
        let collector = contender.collector.clone().unwrap();
        let env = collector.env.into_iter().map(|(name, value)| format!("{name}={}", value.into_inner()));
        (collector.kind, env.collect::<Vec<_>>())
    };
    let own = ["LEVEL=2".to_owned(), "NODE_OPTIONS=--require {study}/trace.cjs".to_owned()];
    assert_eq!(collector(first), (CollectorKind::V8, own.to_vec()));
    assert_eq!(collector(second), (CollectorKind::Go, vec!["GODEBUG=gctrace=1".to_owned()]));
    let generator = &study.generators[0];
    assert_eq!((generator.connections, generator.duration_s, generator.body_bytes), (Some(32), 1.5, 900));
    assert_eq!((generator.reads, generator.published, generator.needs.len()), (study::Reads::Text, false, 1));
}

#[test]
fn the_shipped_studies_load() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    for entry in fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        if path.join("study.toml").is_file() {
            assert!(!loaded(&path).contenders.is_empty(), "{}", path.display());
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = study::load(&studies().join("none")).expect_err("no such study").render(false);
    let shown = error.replace(&studies().display().to_string(), "studies");
    assert_eq!(
        shown,
        "error: cannot read studies/none: No such file or directory (os error 2)\n  \
         a study is a folder with a study.toml, or that file itself"
    );
}

#[test]
fn a_container_is_built_after_what_its_image_contains() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[contender]]\nname = \"one\"\ncontainerfile = \"study.toml\"\nengine = \"podman\"\nbuild = \"echo made > root # once\"\n\
                [[contender]]\nname = \"other\"\ncommand = \"server\"\n[[probe]]\npath = \"/\"\n";
    fs::write(folder.path().join("study.toml"), text).unwrap();
    let study = loaded(folder.path());
    let build = study.contenders[0].build.as_ref().unwrap().get_ref();
    // What stands in for the engine copies what it finds.
    let engine = "podman() { cp root image; }\n";
    let built = |build: &str| {
        let line = format!("{engine}{build}");
        std::process::Command::new("sh")
            .args(["-c", &line])
            .current_dir(folder.path())
            .status()
            .unwrap()
            .success()
    };
    assert!(built(build));
    assert_eq!(fs::read_to_string(folder.path().join("image")).unwrap(), "made\n");
    fs::remove_file(folder.path().join("image")).unwrap();
    assert!(!built(&build.replace("echo made", "false")), "{build}");
    assert!(!folder.path().join("image").exists(), "no image of a build that failed");
}
