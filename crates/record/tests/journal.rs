//! Journals and documents as files: what was written reads back, and the reader reports damage.

use std::path::{Path, PathBuf};

use crate::fixture::{Race, Racer, difference};
use deadheat_record::*;

fn full_record() -> Record {
    let mut record = Race::of(vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0)]).record();
    record.differences.push(difference("php", "$.name", "\"café\"", "\"cafe\""));
    record.out.extend(["php".into(), "deno".into()]);
    record.out_in.push(("deno".into(), "closed-64".into()));
    let aside = record.epochs.remove(0);
    record.set_aside.push(aside);
    record.anew.push(("closed-64".into(), 4_000_000_000, "the rate still climbs".into()));
    let finding = Finding::warn("steal", "1.2 % of the time stolen", "use a quieter machine");
    record.findings.push((None, finding.clone()));
    record.findings.push((Some("closed-64".into()), finding.about("bun")));
    let env = [("GODEBUG".to_owned(), "gctrace=1".to_owned())].into();
    record.plan.contenders[1].collector = Some(Collector { kind: CollectorKind::Go, env });
    record.plan.method.collectors_ns = 5_000_000_000;
    let mut pauses = Pauses::default();
    [120_000, 90_000].into_iter().for_each(|ns| pauses.add(ns));
    pauses.add_sum(3, 40_000, 20_000);
    record.collectors.push(CollectorPass {
        scenario: "closed-64".into(),
        contender: "bun".into(),
        kind: CollectorKind::Go,
        load_ns: 5_000_000_000,
        external: ExternalReading { steal_share: 0.01, foreign_share: None },
        requests: 71_000,
        pauses,
        log: "logs/1-bun-collector-1.log".into(),
    });
    record
}

fn write(folder: &Path, record: &Record) -> PathBuf {
    let path = folder.join("deep/race.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    record.lines().iter().for_each(|line| journal.append(line).unwrap());
    path
}

/// A document contains a record and the results derived from it. The reader ignores the results.
fn document(record: &Record) -> serde_json::Value {
    serde_json::json!({ "schema": SCHEMA, "seed": record.plan.method.seed, "scenarios": [], "record": record })
}

#[test]
fn every_line_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let record = full_record();
    let path = write(folder.path(), &record);
    assert_eq!(read(&path).unwrap(), record);
    assert_eq!(Journal::resume(&path).unwrap().path(), path);
}

#[test]
fn a_ceiling_holds_from_its_session_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = full_record();
    let path = write(folder.path(), &record);
    let mut journal = Journal::resume(&path).unwrap();
    for (unix_ms, ceiling_rps) in [(2_000, Some(50_000.0)), (3_000, None)] {
        let ceiling = LaterCeiling { unix_ms, ceiling_rps, link: None };
        let line = Line::Ceiling { scenario: "closed-64".into(), ceiling };
        journal.append(&line).unwrap();
        record.apply(line);
    }
    drop(journal);
    assert_eq!(read(&path).unwrap(), record);
    record.pilots[0].ceiling_rps = Some(60_000.0);
    let at = |unix_ms| record.pilots[0].ceiling_at(unix_ms);
    assert_eq!([at(1_999), at(2_000), at(2_999)], [Some(60_000.0), Some(50_000.0), Some(50_000.0)]);
    assert_eq!(at(3_000), None, "it could not be measured any more");
}

#[test]
fn a_journal_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &full_record());
    let error = Journal::create(&path).unwrap_err();
    assert!(error.to_string().contains("race.jsonl"), "{error}");
}

/// Only a journal is cut back to its last whole line. Anything else would be destroyed.
#[test]
fn what_is_no_journal_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("race.jsonl.gz");
    for bytes in [
        &b"\x1f\x8b\x08\0 packed \n more"[..],
        b"{\"schema\":\"deadheat.record/1\"}\n ",
        b"of the user\nmine",
    ] {
        std::fs::write(&path, bytes).unwrap();
        assert!(Journal::resume(&path).unwrap_err().to_string().contains("it is not a journal"));
        assert!(Journal::create(&path).unwrap_err().already_exists());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

/// Another program may have written it again.
#[test]
fn a_journal_may_be_spelled_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &full_record());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("{\"line\":\"header\"", "{ \"line\" : \"header\"", 1)).unwrap();
    assert!(Journal::resume(&path).is_ok());
}

/// Two races that begin in the same file at the same moment: one of them has it.
#[test]
fn a_file_that_holds_nothing_becomes_the_journal_of_one_race() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("race.jsonl");
    std::fs::write(&path, "{\"line\":\"header\",\"schema\":\"deadheat.rec").unwrap();
    let mut first = Journal::create(&path).unwrap();
    assert!(Journal::create(&path).unwrap_err().already_exists());
    let record = full_record();
    record.lines().iter().for_each(|line| first.append(line).unwrap());
    assert_eq!(read(&path).unwrap(), record);
}

#[test]
fn a_continued_race_is_not_done_until_it_says_so_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &full_record());
    let mut journal = Journal::resume(&path).unwrap();
    journal.append(&Line::Resumed { unix_ms: 5 }).unwrap();
    let read_back = read(&path).unwrap();
    assert_eq!((read_back.done, read_back.resumed_unix_ms), (false, vec![5]));
    journal.append(&Line::Done).unwrap();
    assert!(read(&path).unwrap().done);
}

#[test]
fn who_falls_out_keeps_what_it_did_in_earlier_scenarios() {
    let racers = ["a", "b", "c"].map(|name| Racer::new(name, 1_000.0));
    let mut record = Race::of(racers.into()).record();
    let first = record.plan.scenarios[0].clone();
    record.plan.scenarios =
        ["one", "two", "three"].map(|name| ScenarioPlan { name: name.into(), ..first.clone() }).into();
    let out = |name: &str, scenario: Option<&str>| Line::Parity {
        differences: vec![],
        out: vec![name.into()],
        scenario: scenario.map(str::to_owned),
    };
    record.apply(out("b", Some("two")));
    let racing = |record: &Record| ["one", "two", "three"].map(|name| record.racing(name));
    assert_eq!(racing(&record), [vec![0, 1, 2], vec![0, 2], vec![0, 2]]);
    // Lines of older journals name no scenario: the contender is then out of all scenarios.
    record.apply(out("c", None));
    assert_eq!(racing(&record), [vec![0, 1], vec![0], vec![0]]);
}

#[test]
fn who_speaks_plain_http_only_is_not_raced_over_tls() {
    let racers = ["a", "b", "c"].map(|name| Racer::new(name, 1_000.0));
    let mut record = Race::of(racers.into()).record();
    let mut over_tls = ScenarioPlan { name: "over-tls".into(), ..record.plan.scenarios[0].clone() };
    over_tls.traffic.tls = true;
    record.plan.scenarios.push(over_tls);
    record.plan.contenders[1].plain_http_only = true;
    let plain = record.plan.scenarios[0].name.clone();
    assert_eq!((record.racing(&plain), record.racing("over-tls")), (vec![0, 1, 2], vec![0, 2]));
}

#[test]
fn a_scenario_connects_anew_where_its_requests_end_their_connections() {
    let mut plan = Race::of(vec![Racer::new("a", 1_000.0)]).record().plan;
    for (name, value, anew) in
        [("connection", "keep-alive", false), ("Connection", "x, Close", true), ("x", "close", false)]
    {
        plan.probes[0].request_headers = [(name.to_owned(), value.to_owned())].into();
        assert_eq!(plan.connects_anew(&plan.scenarios[0]), anew, "{name}: {value}");
    }
}

#[test]
fn a_journal_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("race.jsonl");
    let record = full_record();
    let mut running = Journal::create(&path).unwrap();
    record.lines().iter().for_each(|line| running.append(line).unwrap());
    let torn = "{\"line\":\"resu";
    let append = |text: &str| {
        use std::io::Write as _;
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
    };
    append(torn);
    let error = Journal::resume(&path).unwrap_err();
    assert!(matches!(error, WriteError::Busy { .. }), "{error:?}");
    assert!(
        error.to_string().contains("race.jsonl") && error.to_string().contains("still running"),
        "{error}"
    );
    assert!(
        std::fs::read_to_string(&path).unwrap().ends_with(torn),
        "nothing is cut off while it is written"
    );
    drop(running);
    let mut resumed = Journal::resume(&path).unwrap();
    assert!(matches!(Journal::resume(&path), Err(WriteError::Busy { .. })));
    // The next line goes to the end of the file, even if another program has appended to it.
    append("\n");
    resumed.append(&Line::Resumed { unix_ms: 7 }).unwrap();
    assert_eq!(read(&path).unwrap().resumed_unix_ms, [7]);
}

#[test]
fn a_torn_last_line_is_left_out_and_cut_off_wherever_it_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    let mut record = full_record();
    (record.done, record.ended, record.epochs) = (false, vec![], vec![]);
    (record.set_aside, record.anew) = (vec![], vec![]);
    let path = write(folder.path(), &record);
    let whole = std::fs::read(&path).unwrap();
    let line =
        serde_json::to_vec(&Line::Finding { scenario: None, finding: Finding::warn("a", "café", "b") })
            .unwrap();
    for torn in 1..=line.len() {
        std::fs::write(&path, [&whole[..], &line[..torn]].concat()).unwrap();
        assert_eq!(read(&path).unwrap(), record, "torn after {torn} bytes");
        let mut journal = Journal::resume(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        journal.append(&Line::Done).unwrap();
        assert!(read(&path).unwrap().done);
    }
}

#[test]
fn a_damaged_middle_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &full_record());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> =
        text.lines().enumerate().map(|(at, l)| if at == 3 { &l[..l.len() / 2] } else { l }).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, ReadError::Line { line: 4, .. }), "{error}");
    assert!(error.to_string().contains("race.jsonl:4: not a line"), "{error}");
}

/// Two races in one file would count as one race with twice as many epochs.
#[test]
fn joined_journals_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &full_record());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().count();
    std::fs::write(&path, text.repeat(2)).unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, ReadError::Line { line, .. } if line == lines + 1), "{error}");
    assert!(error.to_string().contains("a second header"), "{error}");
    let epoch = text.lines().rfind(|line| line.starts_with("{\"line\":\"epoch\"")).unwrap();
    std::fs::write(&path, format!("{text}{epoch}\n")).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.to_string().contains("an epoch that is there already"), "{error}");
}

#[test]
fn files_of_deadheat_that_are_no_records_are_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.json");
    std::fs::write(&path, "{\"schema\": \"deadheat.compare/1\"}").unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, ReadError::NotARecord { .. }), "{error}");
}

#[test]
fn another_schema_is_refused_whatever_else_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    for text in [
        "{\"line\":\"header\",\"schema\":\"deadheat.record/2\",\"new\":1}\n{\"line\":\"done\"}\n",
        "{\"line\":\"header\",\"schema\":\"deadheat.record/2\",\"new\":1}\n",
        "{\"schema\":\"deadheat.record/2\",\"everything\":\"else\"}",
    ] {
        std::fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(&error, ReadError::Schema { found, .. } if found == "deadheat.record/2"), "{error}");
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    assert!(matches!(read(&path), Err(ReadError::Io { .. })));
    for text in
        ["", "\n", "hello\n", "{}", "[1]", "{\"line\":\"done\"}\n", "{\"schema\":\"deadheat.record/1\"}"]
    {
        std::fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, ReadError::NotARecord { .. }), "{text:?}: {error:?}");
    }
}

#[test]
fn a_document_reads_back_as_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("race.json");
    let record = full_record();
    for text in [serde_json::to_string(&document(&record)), serde_json::to_string_pretty(&document(&record))]
    {
        std::fs::write(&path, text.unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), record);
    }
}

#[test]
fn a_packed_record_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let (record, path) = (full_record(), folder.path().join("race.jsonl.gz"));
    let packed = record.packed().unwrap();
    std::fs::write(&path, &packed).unwrap();
    assert_eq!(read(&path).unwrap(), record);
    assert_eq!(read_any(&path).unwrap(), AnyRecord::Race(Box::new(record.clone())));
    assert_eq!(record.packed().unwrap(), packed, "twice the same is the same");
    std::fs::write(&path, &packed[..packed.len() - 20]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("race.jsonl.gz: "), "{error}");
}

#[test]
fn a_part_of_a_record_is_that_of_its_scenarios() {
    let mut record = full_record();
    let [plan] = record.plan.scenarios.as_slice() else { panic!("one scenario") };
    let named = |name: &str| ScenarioPlan { name: name.into(), ..plan.clone() };
    record.plan.scenarios = ["a", "b", "c"].map(named).to_vec();
    record.out = ["php", "deno", "go"].map(String::from).to_vec();
    record.out_in = [("php", "b"), ("go", "c")].map(|(who, scenario)| (who.into(), scenario.into())).to_vec();
    for (at, epoch) in record.epochs.iter_mut().enumerate() {
        epoch.scenario = ["a", "b", "c"][at % 3].into();
    }
    record.ended = ["a", "b"].map(|name| (name.to_owned(), End::Decided)).to_vec();
    record.findings[1].0 = Some("b".into());
    record.collectors[0].scenario = "a".into();
    let part = |names: &[&str]| record.clone().only(names);
    let out = |names: &[&str]| (part(names).out, part(names).out_in);
    let all = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
    let pairs = |list: &[(&str, &str)]| {
        list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>()
    };
    // A part keeps exclusions that happened before its scenarios, and leaves out those that happened in later scenarios.
    assert_eq!(out(&["a"]), (all(&["deno"]), vec![]));
    assert_eq!(out(&["c"]), (all(&["php", "deno", "go"]), pairs(&[("php", "c"), ("go", "c")])));
    assert_eq!(out(&["a", "b"]), (all(&["php", "deno"]), pairs(&[("php", "b")])));
    assert_eq!(part(&["a", "b", "c", "d"]).epochs, record.epochs);
    let b = part(&["b"]);
    assert!(b.epochs.len() == 2 && b.epochs.iter().all(|epoch| epoch.scenario == "b"), "{}", b.epochs.len());
    assert_eq!((b.ended.len(), b.findings.len(), b.set_aside.len(), b.anew.len()), (1, 2, 0, 0));
    assert_eq!((part(&["a"]).collectors.len(), b.collectors.len()), (1, 0));
    assert_eq!((part(&["c"]).findings.len(), b.plan.scenarios.len()), (1, 1));
}

#[test]
fn a_record_that_is_kept_says_nothing_of_the_folders_where_it_was_made() {
    let mut record = full_record();
    record.plan.folder = "/home/someone/deadheat/studies/trending".into();
    record.plan.contenders[0].folder = "/home/someone/deadheat/studies/trending".into();
    record.plan.contenders[0].command =
        "exec /home/someone/deadheat/target/limit --log /var/home/someone/deadheat/x".into();
    let seen = record.clone().seen_from(std::path::Path::new("/home/someone/deadheat")).unwrap();
    assert_eq!(seen.plan.folder, std::path::Path::new("studies/trending"));
    assert_eq!(seen.plan.contenders[0].command, "exec target/limit --log /var/home/someone/deadheat/x");
    assert!(record.clone().seen_from(std::path::Path::new("/")).is_none());
    assert_eq!(seen.epochs, record.epochs);
}
