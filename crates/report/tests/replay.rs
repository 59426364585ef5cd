//! Replay renders every kept record and every fixture with every renderer. `replay.sha256` has a digest of each output.
//!
//! A change that should alter no output must leave these digests as they are. `make replay` also writes the outputs to `target/replay`, so
//! that the outputs of two commits can be compared with `diff -r`. `UPDATE_REPLAY=1 cargo test -p deadheat-report --test all replay`
//! accepts what is there now.

use crate::doctor_fixture;
use crate::load_fixture;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::fixture::{Race, Racer, behind_a_cache, difference, from_load_hosts};
use deadheat_analysis::Report;
use deadheat_analysis::compare::CompareDocument;
use deadheat_analysis::compare::{CompareOptions, Named, loads, races};
use deadheat_analysis::doctor::conclude;
use deadheat_analysis::gates::load::findings;
use deadheat_record::{
    AnyRecord, DoctorRecord, LoadRecord, Metric, Record, ServerHost, read_any, read_audit,
};
use deadheat_report::{
    BENCHMARK_FILES, CSV_FILES, Style, audit, bencher, benchmark_action, comparison, csv, doctor, html, json,
    load, markdown, svg, terminal,
};
use sha2::{Digest, Sha256};

/// The digests, one on each line, as `sha256sum` writes them.
const DIGESTS: &str = "tests/replay.sha256";
const UPDATE: &str = "UPDATE_REPLAY=1 cargo test -p deadheat-report --test all replay";

/// Outputs by name. A name is a path.
type Outputs = BTreeMap<String, String>;

fn widths() -> [(&'static str, Style); 3] {
    let style = |width, unicode, color| Style { color, width, unicode };
    [
        ("terminal-80", style(80, true, false)),
        ("terminal-160", style(160, true, true)),
        ("ascii-80", style(80, false, false)),
    ]
}

fn in_terminals(outputs: &mut Outputs, name: &str, render: impl Fn(&Style) -> String) {
    for (kind, style) in widths() {
        outputs.insert(format!("{name}/{kind}.txt"), render(&style));
    }
}

fn race(outputs: &mut Outputs, name: &str, record: &Record) -> Report {
    let report = Report::of(record).unwrap();
    in_terminals(outputs, name, |style| terminal::render(&report, style));
    let mut keep = |file: &str, text: String| outputs.insert(format!("{name}/{file}"), text);
    keep("document.json", json(&report).unwrap());
    keep("page.html", html(&report, None).unwrap());
    keep("page.md", markdown(&report, None));
    for (file, text) in CSV_FILES.iter().zip(csv(&report).unwrap()) {
        keep(&format!("csv/{file}"), text);
    }
    for (file, text) in svg(&report).unwrap() {
        keep(&format!("svg/{file}"), text);
    }
    // A record without values has nothing to send to a tracker.
    if let Ok(text) = bencher(&report) {
        keep("bencher.json", text);
    }
    if let Ok(texts) = benchmark_action(&report) {
        for (file, text) in BENCHMARK_FILES.iter().zip(texts) {
            keep(&format!("benchmark-action/{file}"), text);
        }
    }
    report
}

fn compared(outputs: &mut Outputs, name: &str, document: &CompareDocument) {
    in_terminals(outputs, name, |style| terminal::comparison(document, style));
    outputs.insert(format!("{name}/page.md"), comparison::markdown(document));
    outputs.insert(format!("{name}/document.json"), json(document).unwrap());
}

fn loaded(outputs: &mut Outputs, name: &str, record: LoadRecord) {
    let record = LoadRecord { findings: findings(&record), ..record };
    in_terminals(outputs, name, |style| load::summary(&record, style));
    outputs.insert(format!("{name}/findings.txt"), format!("{:#?}", record.findings));
}

fn examined(outputs: &mut Outputs, name: &str, mut record: DoctorRecord) {
    conclude(&mut record);
    in_terminals(outputs, name, |style| doctor::summary(&record, style));
    outputs.insert(format!("{name}/findings.txt"), format!("{:#?}", record.findings));
}

fn studies() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path().join("kept"));
    folders.filter(|kept| kept.exists()).collect()
}

/// Every record beside a study, and the study's audit, alone and with each of these records.
fn kept(outputs: &mut Outputs) {
    for folder in studies() {
        let study = folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let audited = read_audit(&folder.join("audit.json")).unwrap();
        in_terminals(outputs, &format!("{study}/audit"), |style| terminal::audit(&audited, style));
        outputs.insert(format!("{study}/audit/page.md"), audit::markdown(&audited));
        outputs.insert(format!("{study}/audit/document.json"), json(&audited).unwrap());
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            let Some(name) = file.strip_suffix(".jsonl.gz") else { continue };
            let name = format!("{study}/{name}");
            let AnyRecord::Race(record) = read_any(&path).unwrap() else { panic!("{file} is of a race") };
            let report = race(outputs, &name, &record);
            outputs.insert(format!("{name}/with-audit.html"), html(&report, Some(&audited)).unwrap());
            outputs.insert(format!("{name}/with-audit.md"), markdown(&report, Some(&audited)));
            let named = Named { file: file.into(), record: &*record };
            let itself = races(&named, &named, &CompareOptions::default()).unwrap();
            compared(outputs, &format!("{name}/against-itself"), &itself);
        }
    }
}

fn fixtures(outputs: &mut Outputs) {
    let example = include_str!("../../record/tests/fixtures/example.json");
    let example: Report = serde_json::from_str(example).unwrap();
    race(outputs, "fixtures/example", &example.record);
    let racers =
        || vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0), Racer::new("go", 17_350.0)];
    let metrics = vec![Metric::Throughput, Metric::Cpu, Metric::P50, Metric::P99];
    let three = || Race { metrics: metrics.clone(), ..Race::of(racers()) };
    race(outputs, "fixtures/three", &three().record());
    race(outputs, "fixtures/one-epoch", &Race { epochs: 1, ..three() }.record());
    race(outputs, "fixtures/baseline-only", &Race { all_pairs: false, ..three() }.record());
    let mut cached = three().record();
    behind_a_cache(&mut cached);
    race(outputs, "fixtures/behind-a-cache", &cached);
    let mut from_hosts = three().record();
    from_load_hosts(&mut from_hosts);
    from_hosts.plan.server_host = Some(ServerHost {
        host: "ssh://race@<target>".into(),
        control: "laptop".into(),
        sent: "/home/me/studies".into(),
        sent_ignored: false,
        study: Some("mine".into()),
        build: None,
    });
    race(outputs, "fixtures/from-load-hosts", &from_hosts);
    let mut unlike = three().record();
    unlike.differences.push(difference("go", "$.count", "24", "25"));
    race(outputs, "fixtures/unlike", &unlike);
    let names = ["</script><img src=x onerror=a()>", "=1+1|`x`\u{202e}\u{1b}[31m"];
    let hostile = names.iter().map(|name| Racer::new(name, 11_000.0)).collect();
    race(outputs, "fixtures/hostile-names", &Race::of(hostile).record());
    loaded(outputs, "fixtures/load-closed", load_fixture::closed());
    loaded(outputs, "fixtures/load-open", load_fixture::open());
    let named = |file: &str, record| Named { file: file.into(), record };
    let (closed, open) = (load_fixture::closed(), load_fixture::open());
    let loads = loads(&named("old.json", &closed), &named("new.json", &open));
    compared(outputs, "fixtures/loads-compared", &loads);
    examined(outputs, "fixtures/doctor-calm", doctor_fixture::calm());
    examined(outputs, "fixtures/doctor-laptop", doctor_fixture::laptop());
    examined(outputs, "fixtures/doctor-floor", doctor_fixture::with_floor(0.01));
    examined(outputs, "fixtures/doctor-proof", doctor_fixture::with_proof());
}

fn digests(outputs: &Outputs) -> String {
    outputs.iter().fold(String::new(), |mut lines, (name, text)| {
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().for_each(|byte| write!(lines, "{byte:02x}").unwrap());
        writeln!(lines, "  {name}").unwrap();
        lines
    })
}

/// The names of outputs whose digests differ between two lists.
fn changed<'a>(before: &'a str, now: &'a str) -> Vec<&'a str> {
    fn by_name(list: &str) -> BTreeMap<&str, &str> {
        list.lines().filter_map(|line| line.split_once("  ")).map(|(digest, name)| (name, digest)).collect()
    }
    let (before, now) = (by_name(before), by_name(now));
    let names: std::collections::BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
    names.into_iter().filter(|name| before.get(name) != now.get(name)).collect()
}

#[test]
fn no_output_has_changed() {
    let mut outputs = Outputs::new();
    kept(&mut outputs);
    fixtures(&mut outputs);
    if let Some(folder) = std::env::var_os("REPLAY_TO") {
        for (name, text) in &outputs {
            let path = Path::new(&folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    let now = digests(&outputs);
    if std::env::var_os("UPDATE_REPLAY").is_some() {
        return fs::write(DIGESTS, now).unwrap();
    }
    let before = fs::read_to_string(DIGESTS).unwrap();
    let changed = changed(&before, &now);
    assert!(
        changed.is_empty(),
        "{} of {} outputs are not as before; if that is intended, {UPDATE} accepts them: {changed:#?}",
        changed.len(),
        outputs.len()
    );
}

#[test]
fn an_output_that_changed_came_or_went_is_named() {
    let before = "aa  one\nbb  two\ncc  three\n";
    assert_eq!(changed(before, before), Vec::<&str>::new());
    assert_eq!(changed(before, "aa  one\nbx  two\ndd  four\n"), ["four", "three", "two"]);
}
