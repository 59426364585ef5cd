//! Compares two records: the verdicts, what cannot be compared, and hostile names.

use crate::fixture::{Race, Racer};
use crate::load_fixture::{closed, open};
use deadheat_analysis::compare::{Change, CompareDocument};
use deadheat_analysis::compare::{
    CompareError, CompareOptions, Condition, ConditionKind, FailIf, Named, loads, races,
};
use deadheat_analysis::gates::table::{By, codes};
use deadheat_analysis::series::rates;
use deadheat_record::{
    EncodedHistogram, Epoch, Experiment, Finding, Link, LoadFrom, LoadRecord, MachineDetails, Metric,
    Objective, PeakEnd, PeakSeen, Record, Service, Severity, VerdictWord,
};
use deadheat_report::comparison::markdown;
use deadheat_report::{Style, json, terminal};
use serde_json::Value;

const WIDE: Style = Style { color: false, width: 120, unicode: true };

/// A race of the reference `limit` and of `api`, on a machine of relative speed `machine`.
fn race(api: f64, machine: f64, seed: u64) -> Race {
    let racers = vec![Racer::new("limit", 40_000.0 * machine), Racer::new("api", api * machine)];
    Race { seed, epochs: 10, all_pairs: false, ..Race::of(racers) }
}

/// The record of another revision, measured a day later.
fn later(race: &Race) -> Record {
    let mut record = race.record();
    record.started_unix_ms += 86_400_000;
    record
}

fn named<'a, R>(file: &str, record: &'a R) -> Named<'a, R> {
    Named { file: file.into(), record }
}

fn compared_as(old: &Record, new: &Record, asked: &CompareOptions) -> CompareDocument {
    let document = races(&named("main.jsonl", old), &named("branch.jsonl", new), asked).unwrap();
    fits_the_schema(&document);
    document
}

fn compared(old: &Record, new: &Record) -> CompareDocument {
    compared_as(old, new, &CompareOptions::default())
}

fn fits_the_schema(document: &CompareDocument) {
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/compare-1.schema.json")).unwrap();
    let value: Value = serde_json::from_str(&json(document).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(value["schema"], "deadheat.compare/1");
}

fn of<'a>(document: &'a CompareDocument, contender: &str, metric: &str) -> &'a Change {
    let all = document.scenarios.iter().flat_map(|one| &one.changes);
    let found: Vec<&Change> =
        all.filter(|one| one.contender == contender && one.metric.word() == metric).collect();
    assert_eq!(found.len(), 1, "{contender} {metric}");
    found[0]
}

fn findings(document: &CompareDocument) -> Vec<(&str, Severity)> {
    let all = document.findings.iter().chain(document.scenarios.iter().flat_map(|one| &one.findings));
    all.map(|one| (one.code.as_str(), one.severity)).collect()
}

/// Checks which finding a change of the new record causes, besides the warning that the records were measured apart.
fn expect(change: impl FnOnce(&mut Record), code: &str, severity: Severity) {
    let old = race(10_000.0, 1.0, 1).record();
    let mut new = later(&race(10_000.0, 1.0, 2));
    change(&mut new);
    let document = compared(&old, &new);
    let mut found = findings(&document);
    found.retain(|(code, _)| *code != "measured-apart");
    assert_eq!(found, [(code, severity)]);
    assert!(codes(By::Compare).any(|one| one == code));
    assert_eq!(document.is_invalid(), severity == Severity::Invalid);
    let invalid = |one: &Change| one.verdict == VerdictWord::Invalid;
    let all = &document.scenarios[0].changes;
    assert!(!all.is_empty() && all.iter().all(|one| invalid(one) == document.is_invalid()));
}

#[test]
fn a_slower_revision_is_told_from_its_predecessor() {
    let document = compared(&race(10_000.0, 1.0, 1).record(), &later(&race(9_000.0, 1.0, 2)));
    let one = of(&document, "api", "throughput");
    assert_eq!((one.verdict, one.old_epochs, one.new_epochs, one.asked), (VerdictWord::Slower, 10, 10, true));
    let (ratio, low, high) = (one.ratio.unwrap(), one.low.unwrap(), one.high.unwrap());
    assert!(low < 0.9 && 0.9 < high && high < 1.0 && low < ratio && ratio < high, "{low} {ratio} {high}");
    assert!((one.new.unwrap() / one.old.unwrap() / ratio - 1.0).abs() < 1e-12);
    // These races had several looks, so their contenders share half of the error rate.
    // The first verdict must hold at half of that share. The last one may use all of it.
    assert_eq!((document.alpha, one.alpha), (0.025, Some(0.00625)));
    assert_eq!(of(&document, "limit", "throughput").verdict, VerdictWord::Equivalent);
    assert_eq!(of(&document, "limit", "throughput").alpha, Some(0.0125));
    assert!(!of(&document, "api", "p99").asked);
    assert_eq!(findings(&document), [("measured-apart", Severity::Warn)]);
    insta::assert_snapshot!(terminal::comparison(&document, &WIDE));
    insta::assert_snapshot!(markdown(&document));
}

/// Computes the whole interval again, by hand, from the record's values.
#[test]
fn the_interval_is_welchs_of_the_epochs_trimmed_means() {
    let (old, new) = (race(10_000.0, 1.0, 3).record(), later(&race(10_300.0, 1.0, 4)));
    let levels = |record: &Record| -> Vec<f64> {
        let mean = |epoch: &deadheat_record::Epoch| {
            let mut logs: Vec<f64> = rates(epoch, 1).iter().map(|rate| rate.ln()).collect();
            logs.sort_by(f64::total_cmp);
            logs[2..8].iter().sum::<f64>() / 6.0
        };
        record.epochs.iter().map(mean).collect()
    };
    let moments = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / 10.0;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 9.0 / 10.0)
    };
    let ((then, v_then), (now, v_now)) = (moments(&levels(&old)), moments(&levels(&new)));
    let degrees = (v_then + v_now).powi(2) / ((v_then.powi(2) + v_now.powi(2)) / 9.0);
    let asked =
        CompareOptions { contenders: vec!["api".into()], alpha: Some(0.05), ..CompareOptions::default() };
    let document = compared_as(&old, &new, &asked);
    let one = of(&document, "api", "throughput");
    assert!((one.ratio.unwrap() - (now - then).exp()).abs() < 1e-12);
    let half = (one.high.unwrap() / one.low.unwrap()).ln() / 2.0;
    let quantile = half / (v_then + v_now).sqrt();
    // With 9 to 18 degrees of freedom, t(0.0125) falls from 2.685 to 2.445.
    assert!(degrees > 9.0 && degrees < 18.0 + 1e-9 && quantile > 2.444 && quantile < 2.686, "{quantile}");
    assert_eq!(one.alpha, Some(0.025), "half of what was asked for: these races had several looks");
    let at_once = |record: &Record| {
        let mut record = record.clone();
        record.plan.method.looks = vec![10];
        record
    };
    let document = compared_as(&at_once(&old), &at_once(&new), &asked);
    assert_eq!(of(&document, "api", "throughput").alpha, Some(0.05), "these ended when they were meant to");
}

/// Between the records the machine became 8 % slower, and the service did not.
#[test]
fn a_reference_cancels_what_the_machine_did() {
    let (old, new) = (race(10_000.0, 1.0, 5).record(), later(&race(10_000.0, 0.92, 6)));
    assert_eq!(of(&compared(&old, &new), "api", "throughput").verdict, VerdictWord::Slower);
    let asked = CompareOptions { reference: Some("limit".into()), ..CompareOptions::default() };
    let document = compared_as(&old, &new, &asked);
    let one = of(&document, "api", "throughput");
    assert_eq!(one.verdict, VerdictWord::Equivalent, "{one:?}");
    assert!((one.new.unwrap() / one.old.unwrap() - 0.92).abs() < 0.02, "values stay as they were measured");
    assert!(document.scenarios[0].changes.iter().all(|one| one.contender == "api"));
    assert_eq!(findings(&document), []);
    insta::assert_snapshot!(terminal::comparison(&document, &WIDE));
    let slower = later(&race(9_000.0, 0.92, 6));
    assert_eq!(of(&compared_as(&old, &slower, &asked), "api", "throughput").verdict, VerdictWord::Slower);
}

#[test]
fn a_reference_that_changed_is_none() {
    let (old, mut new) = (race(10_000.0, 1.0, 5).record(), later(&race(10_000.0, 1.0, 6)));
    let asked = CompareOptions { reference: Some("limit".into()), ..CompareOptions::default() };
    new.plan.contenders[0].command = "limit server --port 1".into();
    let document = compared_as(&old, &new, &asked);
    assert_eq!(findings(&document), [("different-reference", Severity::Warn)]);
    new.plan.contenders[0].version = Some("limit 2".into());
    let document = compared_as(&old, &new, &asked);
    assert_eq!(findings(&document), [("different-reference", Severity::Invalid)]);
    assert!(document.is_invalid());
}

#[test]
fn what_differs_is_found() {
    use Severity::{Invalid, Warn};
    expect(|new| new.machine.cpu_model = Some("Other CPU".into()), "different-machine", Invalid);
    expect(|new| new.machine.cpus = 4, "different-machine", Invalid);
    expect(|new| new.machine.memory_bytes = Some(16 << 30), "different-machine", Invalid);
    expect(|new| new.machine.kernel = Some("6.6".into()), "different-system", Warn);
    expect(|new| new.plan.method.cpu_latency_us = Some(0), "different-system", Warn);
    expect(|new| new.plan.pinning.server_cpus = vec![2], "different-cores", Warn);
    expect(|new| new.plan.pinning.load_cpus = vec![1, 2], "different-cores", Invalid);
    let elsewhere = || LoadFrom { hosts: vec!["ssh://a".into()], server_address: [10, 0, 0, 5].into() };
    expect(|new| new.plan.load_from = Some(elsewhere()), "different-cores", Invalid);
    expect(
        |new| new.plan.scenarios[0].shape = Experiment::Closed { connections: 8 },
        "different-load",
        Invalid,
    );
    expect(|new| new.plan.probes[0].path = "/other".into(), "different-load", Invalid);
    let link = Link { delay_ns: 5_000_000, ..Link::default() };
    expect(|new| new.plan.scenarios[0].link = Some(link), "different-load", Invalid);
    expect(|new| new.plan.scenarios[0].limits.cpus = Some(0.5), "different-limits", Invalid);
    expect(|new| new.plan.scenarios[0].limits.memory_bytes = Some(1 << 30), "different-limits", Invalid);
    expect(|new| new.plan.probes[0].body.agree = false, "different-contract", Warn);
    expect(|new| new.plan.method.slice_ns *= 2, "different-slices", Warn);
    expect(|new| new.pilots[0].warmup_ns *= 3, "different-warm-up", Warn);
    expect(|new| new.plan.method.wake_ns = 0, "different-warm-up", Warn);
    expect(|new| new.version = "9.9.9".into(), "different-version", Warn);
    expect(|new| new.done = false, "warnings-in-record", Warn);
    let same = |new: &mut Record| {
        new.started_unix_ms -= 86_400_000;
        new.plan.method.seed = 1;
    };
    expect(same, "same-record", Invalid);
    let service = Service {
        name: "db".into(),
        command: "db".into(),
        folder: ".".into(),
        env: Default::default(),
        listen: deadheat_record::Listen::FreePort,
        ready: None,
        reset: None,
        ending: Default::default(),
    };
    expect(|new| new.plan.services.push(service), "different-services", Warn);
}

#[test]
fn settings_of_a_machine_are_compared_where_both_records_know_them() {
    let details = |spectre: &str| MachineDetails {
        transparent_huge_pages: Some("madvise".into()),
        address_randomization: Some(2),
        mitigations: Some([("mds", "Not affected"), ("spectre_v2", spectre)].map(owned).into()),
        microcode: Some("0xf6".into()),
        numa_balancing: Some(0),
        memory_nodes: Some(vec![vec![0], vec![1]]),
        ..MachineDetails::default()
    };
    let known = details("Mitigation: Retpolines");
    let differ = |old: &MachineDetails, new: &MachineDetails| {
        let (mut then, mut now) = (race(10_000.0, 1.0, 1).record(), later(&race(10_000.0, 1.0, 2)));
        (then.machine.details, now.machine.details) = (old.clone(), new.clone());
        let document = compared(&then, &now);
        assert!(!document.is_invalid());
        let mut found = document.findings.into_iter().filter(|one| one.code != "measured-apart");
        let first = found.next().map(|one| (one.code, one.severity, one.message));
        assert_eq!(found.next(), None);
        first
    };
    let warned = |message: &str| Some(("different-machine".into(), Severity::Warn, message.into()));
    assert_eq!(differ(&known, &known), None);
    for (change, message) in [
        (
            MachineDetails { transparent_huge_pages: Some("always".into()), ..known.clone() },
            "transparent huge pages madvise then, always now",
        ),
        (
            MachineDetails { address_randomization: Some(0), ..known.clone() },
            "kernel.randomize_va_space 2 then, 0 now",
        ),
        (
            details("Vulnerable"),
            "mitigations spectre_v2 (Mitigation: Retpolines) then, spectre_v2 (Vulnerable) now",
        ),
        (MachineDetails { microcode: Some("0xf8".into()), ..known.clone() }, "microcode 0xf6 then, 0xf8 now"),
        (MachineDetails { numa_balancing: Some(1), ..known.clone() }, "kernel.numa_balancing 0 then, 1 now"),
    ] {
        assert_eq!(differ(&known, &change), warned(message));
        assert_eq!(differ(&MachineDetails::default(), &change), None, "a record of before knows none of it");
    }
    let newer =
        [("mds", "Not affected"), ("spectre_v2", "Mitigation: Retpolines"), ("vmscape", "Vulnerable")];
    let newer = MachineDetails { mitigations: Some(newer.map(owned).into()), ..known.clone() };
    assert_eq!(differ(&known, &newer), None, "a vulnerability that one kernel does not know");
    let small = |numa| MachineDetails { numa_balancing: Some(numa), memory_nodes: None, ..known.clone() };
    assert_eq!(differ(&small(0), &small(1)), None, "there are no nodes to move memory between");
}

fn owned((name, text): (&str, &str)) -> (String, String) {
    (name.into(), text.into())
}

#[test]
fn memory_that_a_kernel_keeps_makes_no_other_machine() {
    let (old, mut new) = (race(10_000.0, 1.0, 1).record(), later(&race(10_000.0, 1.0, 2)));
    new.machine.memory_bytes = new.machine.memory_bytes.map(|bytes| bytes - (64 << 20));
    assert_eq!(findings(&compared(&old, &new)), [("measured-apart", Severity::Warn)]);
}

#[test]
fn what_is_invalid_in_either_record_stays_invalid() {
    let old = race(10_000.0, 1.0, 1).record();
    let mut wrong = race(9_000.0, 1.0, 2);
    wrong.racers[1].wrong = 400;
    let document = compared(&old, &later(&wrong));
    assert_eq!(of(&document, "api", "throughput").verdict, VerdictWord::Invalid);
    assert_eq!(of(&document, "limit", "throughput").verdict, VerdictWord::Equivalent);
    assert!(findings(&document).contains(&("mismatch", Severity::Invalid)));
    let mut old = race(10_000.0, 1.0, 1).record();
    old.findings.push((None, Finding::invalid("steal", "9 % stolen", "wait")));
    let document = compared(&old, &later(&race(9_000.0, 1.0, 2)));
    assert!(document.scenarios[0].changes.iter().all(|one| one.verdict == VerdictWord::Invalid));
    assert!(document.findings[0].message.starts_with("then: "));
}

/// 0.2 % of one epoch's requests got no answer: p99 is known, p99.9 is not.
#[test]
fn a_percentile_among_requests_without_an_answer_is_not_compared() {
    let of_open = |seed| {
        let shape = Experiment::Open { connections: 64, rate_per_s: 2e5, poisson: true };
        Race { shape, metrics: vec![Metric::P99], ..race(6e4, 3.0, seed) }.record()
    };
    let asked = CompareOptions { metrics: vec![Metric::P99, Metric::P999], ..CompareOptions::default() };
    let compare = |lost: u64| {
        let (old, mut new) = (of_open(1), of_open(2));
        new.epochs[3].contenders[1].outcomes.timeout = lost;
        let own = new.epochs[3].rounds[0].slices.iter_mut().find(|slice| slice.contender == 1);
        own.unwrap().failed = lost;
        let report = deadheat_analysis::Report::of(&new).unwrap();
        let shift = report.scenarios[0].latency_shifts[0].points.last().unwrap().share;
        (compared_as(&old, &new, &asked), shift)
    };
    let (document, shift) = compare(0);
    assert_eq!((of(&document, "api", "p99_9").new_epochs, shift), (10, 0.999));
    let (document, shift) = compare(400);
    assert_eq!((of(&document, "api", "p99").new_epochs, shift), (10, 0.99));
    let lost = of(&document, "api", "p99_9");
    assert_eq!((lost.verdict, lost.new_epochs, lost.low), (VerdictWord::Inconclusive, 0, None));
    let text = terminal::comparison(&document, &WIDE);
    assert!(text.contains("too little is known of its p99.9 latency"), "{text}");
}

/// A contender that the new race excluded must not pass as one that did not get slower.
#[test]
fn who_was_put_out_is_told() {
    let (old, mut new) = (race(10_000.0, 1.0, 1).record(), later(&race(10_000.0, 1.0, 2)));
    new.out.push("api".into());
    let document = compared(&old, &new);
    assert!(document.is_invalid());
    assert!(findings(&document).contains(&("not-raced", Severity::Invalid)), "{:?}", findings(&document));
    assert_eq!(of(&document, "limit", "throughput").verdict, VerdictWord::Equivalent);
    let asked = CompareOptions { contenders: vec!["api".into()], ..CompareOptions::default() };
    let alone = compared_as(&old, &new, &asked);
    assert!(alone.is_invalid() && alone.scenarios[0].changes.is_empty());
    assert!(terminal::comparison(&alone, &WIDE).contains("api: it was excluded from the new race"));
    // A contender that the old race excluded has nothing to compare with. The others are compared.
    let (mut old, new) = (race(10_000.0, 1.0, 1).record(), later(&race(10_000.0, 1.0, 2)));
    old.out.push("api".into());
    let document = compared(&old, &new);
    assert!(!document.is_invalid() && findings(&document).contains(&("not-raced", Severity::Warn)));
    let error = races(&named("main.jsonl", &old), &named("b", &new), &asked).unwrap_err().to_string();
    assert_eq!(error, "main.jsonl: no contender is left to compare with; excluded from that race: api");
}

/// Without the reference there is no ratio to it, and so no verdict.
#[test]
fn a_reference_that_was_put_out_takes_all_with_it() {
    let (old, mut new) = (race(10_000.0, 1.0, 1).record(), later(&race(10_000.0, 1.0, 2)));
    new.out.push("limit".into());
    let (reference, contenders) = (Some("limit".into()), vec!["api".into()]);
    let document =
        compared_as(&old, &new, &CompareOptions { reference, contenders, ..CompareOptions::default() });
    assert!(document.scenarios[0].changes.iter().all(|one| one.verdict == VerdictWord::Invalid));
    assert!(document.is_invalid() && findings(&document).contains(&("not-raced", Severity::Invalid)));
}

/// The text of a load is rounded, but the comparison uses the exact rate.
#[test]
fn rates_that_read_alike_are_not_alike() {
    let open = |rate_per_s, seed| {
        let shape = Experiment::Open { connections: 64, rate_per_s, poisson: true };
        Race { shape, ..race(10_000.0, 1.0, seed) }
    };
    let document = compared(&open(10_000.0, 1).record(), &later(&open(10_040.0, 2)));
    assert!(
        findings(&document).contains(&("different-load", Severity::Invalid)),
        "{:?}",
        findings(&document)
    );
}

/// A finding that invalidates the reference invalidates all ratios to it.
/// A finding about a contender that is not compared has no effect.
#[test]
fn whose_invalidity_it_is_matters() {
    let mut wrong = race(9_000.0, 1.0, 2);
    wrong.racers[0].wrong = 400;
    let (old, new) = (race(10_000.0, 1.0, 1).record(), later(&wrong));
    let asked = CompareOptions { reference: Some("limit".into()), ..CompareOptions::default() };
    assert_eq!(of(&compared_as(&old, &new, &asked), "api", "throughput").verdict, VerdictWord::Invalid);
    let asked = CompareOptions { contenders: vec!["api".into()], ..CompareOptions::default() };
    assert_eq!(of(&compared_as(&old, &new, &asked), "api", "throughput").verdict, VerdictWord::Slower);
    // The old record's finding has the contender's old name, and names no scenario.
    let (mut old, mut new) = (race(10_000.0, 1.0, 1).record(), later(&race(9_000.0, 1.0, 2)));
    new.plan.contenders[1].name = "api-2".into();
    old.findings.push((None, Finding::invalid("leak", "it grows", "look").about("api")));
    let map = vec![("api".to_owned(), "api-2".to_owned())];
    let document = compared_as(&old, &new, &CompareOptions { map, ..CompareOptions::default() });
    assert_eq!(of(&document, "api-2", "throughput").verdict, VerdictWord::Invalid);
    assert_eq!(of(&document, "limit", "throughput").verdict, VerdictWord::Equivalent);
}

#[test]
fn names_are_matched_mapped_and_chosen() {
    let (old, mut new) = (race(10_000.0, 1.0, 1).record(), later(&race(10_000.0, 1.0, 2)));
    new.plan.contenders[1].name = "api-2".into();
    let document = compared(&old, &new);
    assert_eq!(document.scenarios[0].changes.len(), 5, "only limit, in five metrics");
    let unmatched = findings(&document).iter().filter(|(code, _)| *code == "unmatched-contender").count();
    assert_eq!(unmatched, 2);
    let map = vec![("api".to_owned(), "api-2".to_owned())];
    let document = compared_as(&old, &new, &CompareOptions { map: map.clone(), ..CompareOptions::default() });
    assert_eq!(of(&document, "api-2", "throughput").old_contender, "api");
    assert_eq!(findings(&document), [("measured-apart", Severity::Warn)]);
    let refused = |asked: &CompareOptions| {
        races(&named("main.jsonl", &old), &named("branch.jsonl", &new), asked).unwrap_err().to_string()
    };
    let asked = CompareOptions { map: vec![("x".into(), "api-2".into())], ..CompareOptions::default() };
    assert_eq!(refused(&asked), "--map x: not in main.jsonl, which has limit, api");
    let asked = CompareOptions { contenders: vec!["api".into()], ..CompareOptions::default() };
    assert_eq!(refused(&asked), "--contender api: not in branch.jsonl, which has limit, api-2");
    let asked = CompareOptions { reference: Some("api-2".into()), ..CompareOptions::default() };
    assert_eq!(refused(&asked), "--reference api-2: not in main.jsonl, which has limit, api");
    let asked = CompareOptions { scenarios: vec!["x".into()], ..CompareOptions::default() };
    assert_eq!(refused(&asked), "--scenario x: not in main.jsonl, which has closed-64");
    new.plan.contenders[0].name = "limit-2".into();
    let error = races(&named("a", &old), &named("b", &new), &CompareOptions::default()).unwrap_err();
    assert!(matches!(error, CompareError::Nothing { what: "contender", .. }));
    new.plan.scenarios[0].name = "other".into();
    let error =
        races(&named("a", &old), &named("b", &new), &CompareOptions { map, ..CompareOptions::default() })
            .unwrap_err();
    assert!(matches!(error, CompareError::Nothing { what: "scenario", .. }), "{error}");
}

#[test]
fn one_epoch_says_nothing() {
    let old = race(10_000.0, 1.0, 1).record();
    let new = later(&Race { epochs: 1, ..race(5_000.0, 1.0, 2) });
    let document = compared(&old, &new);
    let one = of(&document, "api", "throughput");
    assert_eq!((one.verdict, one.low, one.alpha), (VerdictWord::Inconclusive, None, None));
    assert!(one.ratio.is_some());
    assert!(
        terminal::comparison(&document, &WIDE).contains("can't tell whether api changed: too few epochs")
    );
}

fn fail_if(text: &str, metric: Option<Metric>, claim: ConditionKind, maybe: bool) -> FailIf {
    FailIf { text: text.into(), metric, condition: Condition { claim, maybe } }
}

#[test]
fn conditions_speak_of_what_was_asked_unless_they_name_a_metric() {
    let by = |percent: f64| (percent / 100.0).ln_1p();
    let conditions = vec![
        fail_if("slower by 3%", None, ConditionKind::Slower(by(3.0)), false),
        fail_if("slower by 30%", None, ConditionKind::Slower(by(30.0)), false),
        fail_if("cpu slower by 3%", Some(Metric::Cpu), ConditionKind::Slower(by(3.0)), false),
        fail_if("faster", None, ConditionKind::Faster(0.0), false),
        fail_if("inconclusive", None, ConditionKind::Inconclusive, false),
    ];
    let asked = CompareOptions { conditions: conditions.clone(), ..CompareOptions::default() };
    let (old, new) = (race(10_000.0, 1.0, 1).record(), later(&race(9_000.0, 1.0, 2)));
    let document = compared_as(&old, &new, &asked);
    let holds: Vec<bool> = document.conditions.iter().map(|one| one.holds).collect();
    assert_eq!(holds, [true, false, true, false, false]);
    assert_eq!(document.conditions[0].of.len(), 1);
    assert_eq!(document.conditions[0].of[0].contender, "api");
    let text = terminal::comparison(&document, &WIDE);
    assert!(text.contains("fail if 'slower by 3%': holds: api in closed-64 (throughput)\n"), "{text}");
    let asked = CompareOptions { metrics: vec![Metric::P99], conditions, ..CompareOptions::default() };
    let error = races(&named("a", &old), &named("b", &new), &asked).unwrap_err().to_string();
    assert!(error.starts_with("--fail-if cpu slower by 3%: not in what --metric leaves"), "{error}");
}

/// An epoch of 500 requests has only five above p99.
#[test]
fn a_percentile_of_too_few_requests_is_neither_slower_nor_not() {
    let few = |seed| race(500.0, 1.0, seed);
    let asked = |text: &str, metric| {
        let conditions = vec![fail_if(text, metric, ConditionKind::Slower(0.1), false)];
        CompareOptions { conditions, contenders: vec!["api".into()], ..CompareOptions::default() }
    };
    let (old, new) = (few(1).record(), later(&few(2)));
    let document = compared_as(&old, &new, &asked("p99 slower by 10%", Some(Metric::P99)));
    let one = of(&document, "api", "p99");
    assert_eq!((one.old, one.ratio, one.verdict), (None, None, VerdictWord::Inconclusive));
    assert!(document.conditions[0].is_unknown() && !document.is_invalid());
    let (text, page) = (terminal::comparison(&document, &WIDE), markdown(&document));
    let said = "fail if 'p99 slower by 10%': unknown, because there is no valid comparison: api in closed-64 (p99)\n";
    assert!(text.contains(said), "{text}");
    assert!(
        page.contains("**unknown**, because there is no valid comparison: `api` in `closed-64` (`p99`)"),
        "{page}"
    );
    assert!(!compared_as(&old, &new, &asked("slower by 10%", None)).conditions[0].is_unknown());
}

/// Ten epochs with one value each: `api` takes this many times the value of `limit`.
fn alone(shape: &Experiment, metric: Metric, api: f64, seed: u64) -> Record {
    let mut record = later(&race(10_000.0, 1.0, seed));
    record.plan.scenarios[0].shape = shape.clone();
    record.plan.scenarios[0].metrics = vec![metric];
    for contender in &mut record.plan.contenders {
        contender.measures.insert("serialize".into(), "measure".into());
    }
    record.pilots.clear();
    let mut numbers = crate::fixture::Numbers(seed);
    for epoch in &mut record.epochs {
        epoch.rounds.truncate(1);
        epoch.rounds[0].slices.clear();
        for part in &mut epoch.contenders {
            let times = if part.contender == 1 { api } else { 1.0 };
            let value = 5e7 * times * (0.01 * numbers.normal()).exp();
            (part.cold_start_ns, part.measured) = (value as u64, Some(value));
            let (end, trials) = (PeakEnd::Found, 17);
            part.peak =
                Some(PeakSeen { end, rate_per_s: 5e11 / value, low_per_s: None, high_per_s: None, trials });
            part.latency = EncodedHistogram::default();
        }
    }
    record
}

#[test]
fn starts_measures_and_peaks_are_compared_in_what_they_measure() {
    let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
    let serialize = Experiment::Measure { measure: "serialize".into() };
    for (shape, metric, title) in [
        (Experiment::Starts { starts: 10 }, Metric::ColdStart, "cold start"),
        (serialize, Metric::Measure, "measured value"),
        (Experiment::Peak { connections: 64, objective }, Metric::Peak, "peak rate under the objective"),
    ] {
        let word = metric.word();
        let (mut old, new) = (alone(&shape, metric, 1.0, 1), alone(&shape, metric, 1.2, 2));
        old.started_unix_ms -= 86_400_000;
        let condition = |metric, claim| fail_if("as asked", metric, claim, false);
        let conditions = vec![
            condition(None, ConditionKind::Slower(0.03)),
            condition(Some(metric), ConditionKind::Slower(0.03)),
            condition(Some(metric), ConditionKind::Faster(0.0)),
        ];
        let asked = CompareOptions { conditions, ..CompareOptions::default() };
        let document = compared_as(&old, &new, &asked);
        assert_eq!(document.scenarios[0].changes.len(), 2, "{word}: one of each contender");
        let api = of(&document, "api", word);
        assert_eq!((api.verdict, api.asked, api.new_epochs), (VerdictWord::Slower, true, 10), "{api:?}");
        assert_eq!(api.more_is_better, metric == Metric::Peak);
        assert_eq!(of(&document, "limit", word).verdict, VerdictWord::Equivalent);
        let holds: Vec<bool> = document.conditions.iter().map(|one| one.holds).collect();
        assert_eq!(holds, [true, true, false]);
        assert_eq!((document.conditions[0].of.len(), document.conditions[0].of[0].metric.word()), (1, word));
        assert_eq!(findings(&document), [("measured-apart", Severity::Warn)]);
        let text = terminal::comparison(&document, &WIDE);
        assert!(
            text.contains("api is slower: ") && text.contains(&format!("x the {title} it had")),
            "{text}"
        );
        let refused = |asked: &CompareOptions| {
            races(&named("a", &old), &named("b", &new), asked).unwrap_err().to_string()
        };
        let there = format!("not in what both records measured, which has {word}");
        let asked = CompareOptions { metrics: vec![Metric::P99], ..CompareOptions::default() };
        assert_eq!(refused(&asked), format!("--metric p99: {there}"));
        let conditions = vec![fail_if("p99 slower", Some(Metric::P99), ConditionKind::Slower(0.0), false)];
        assert_eq!(
            refused(&CompareOptions { conditions, ..CompareOptions::default() }),
            format!("--fail-if p99 slower: {there}")
        );
    }
}

/// If you name a metric, the comparison leaves out the scenarios that do not measure it.
#[test]
fn a_metric_chooses_among_the_scenarios() {
    let both = |seed| {
        let mut record = later(&race(10_000.0, 1.0, seed));
        let starts = alone(&Experiment::Starts { starts: 10 }, Metric::ColdStart, 1.0, seed);
        let mut scenario = starts.plan.scenarios[0].clone();
        scenario.name = "starts".into();
        record.plan.scenarios.push(scenario);
        let named = |epoch: Epoch| Epoch { scenario: "starts".into(), ..epoch };
        record.epochs.extend(starts.epochs.into_iter().map(named));
        record.ended.push(("starts".into(), deadheat_record::End::Maximum));
        record
    };
    let (mut old, new) = (both(1), both(2));
    old.started_unix_ms -= 86_400_000;
    let scenarios = |metrics: &[Metric]| {
        let document = compared_as(
            &old,
            &new,
            &CompareOptions { metrics: metrics.to_vec(), ..CompareOptions::default() },
        );
        let of = |one: deadheat_analysis::compare::ComparedScenario| (one.name, one.changes.len());
        document.scenarios.into_iter().map(of).collect::<Vec<_>>()
    };
    let (load, starts) = ("closed-64".to_owned(), "starts".to_owned());
    assert_eq!(scenarios(&[]), [(load.clone(), 10), (starts.clone(), 2)]);
    assert_eq!(scenarios(&[Metric::ColdStart]), [(starts, 2)]);
    assert_eq!(scenarios(&[Metric::P99]), [(load, 2)]);
}

#[test]
fn hostile_names_are_data() {
    let bad = "\u{1b}[31m|`<img src=x onerror=alert(1)>@all #1 [a](http://b.c)\n| --- |\u{202e}";
    let (mut old, mut new) = (race(10_000.0, 1.0, 1).record(), later(&race(9_000.0, 1.0, 2)));
    for (record, version) in [(&mut old, "1"), (&mut new, "2")] {
        record.plan.contenders[1].name = bad.into();
        record.plan.contenders[1].version = Some(format!("{bad}{version}"));
        record.plan.scenarios[0].name = bad.into();
        record.epochs.iter_mut().for_each(|epoch| epoch.scenario = bad.into());
        record.findings.push((None, Finding::invalid(bad, bad, bad).about(bad)));
        record.ended = vec![(bad.into(), deadheat_record::End::Decided)];
    }
    new.machine.kernel = Some(bad.into());
    let asked = CompareOptions {
        conditions: vec![fail_if("not equivalent", None, ConditionKind::NotEquivalent, false)],
        ..CompareOptions::default()
    };
    let document = races(&named(bad, &old), &named(bad, &new), &asked).unwrap();
    let (text, page) = (terminal::comparison(&document, &WIDE), markdown(&document));
    let acts = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!text.contains(acts) && !page.contains(acts));
    assert!(
        !page.contains("<img") && !page.contains("@all") && !page.contains("](") && !page.contains("http://")
    );
    // Every row of the table has six cells.
    for line in page.lines().filter(|line| line.starts_with('|')) {
        assert_eq!(line.matches('|').count(), 7, "{line}");
    }
    assert_eq!(page.lines().filter(|line| line.starts_with('|')).count(), 12);
    insta::assert_snapshot!(page);
}

#[test]
fn no_line_is_too_wide() {
    let document = compared(&race(10_000.0, 1.0, 1).record(), &later(&race(9_000.0, 1.0, 2)));
    for width in [40, 80, 100, 160] {
        for unicode in [true, false] {
            let text = terminal::comparison(&document, &Style { color: false, width, unicode });
            for line in text.lines() {
                // The four columns that are never left out need this width.
                let limit = width.max(72);
                assert!(unicode_width::UnicodeWidthStr::width(line) <= limit, "{width}: {line:?}");
                assert!(!line.ends_with(' '), "{line:?}");
            }
            assert!(unicode || text.is_ascii(), "{text}");
        }
    }
}

fn two_loads(old: &LoadRecord, new: &LoadRecord) -> CompareDocument {
    let document = loads(&named("old.json", old), &named("new.json", new));
    fits_the_schema(&document);
    document
}

#[test]
fn two_loads_are_held_side_by_side_and_nothing_follows() {
    let new = LoadRecord {
        started_unix_ms: closed().started_unix_ms + 1,
        url: closed().url.replace("8080", "9090"),
        throughput_rps: Some(10_000.0),
        ..closed()
    };
    let document = two_loads(&closed(), &new);
    let one = &document.scenarios[0].changes[0];
    assert_eq!((one.metric.word(), one.low, one.verdict), ("throughput", None, VerdictWord::Inconclusive));
    assert!((one.ratio.unwrap() - 10_000.0 / 19_994.0).abs() < 1e-12);
    assert!(document.scenarios[0].changes.iter().all(|one| one.verdict == VerdictWord::Inconclusive));
    assert_eq!(findings(&document), [("one-run-each", Severity::Warn)], "another port is no other load");
    insta::assert_snapshot!(terminal::comparison(&document, &WIDE));
    insta::assert_snapshot!(markdown(&document));
}

#[test]
fn loads_that_cannot_be_held_against_each_other() {
    let invalid = |new: &LoadRecord, code: &str| {
        let document = two_loads(&closed(), new);
        assert!(findings(&document).contains(&(code, Severity::Invalid)), "{code}");
        assert!(document.is_invalid());
    };
    invalid(&closed(), "same-record");
    let later = LoadRecord { started_unix_ms: 1, ..closed() };
    invalid(&LoadRecord { started_unix_ms: 1, ..open() }, "different-load");
    invalid(&LoadRecord { connections: 8, ..later.clone() }, "different-load");
    invalid(&LoadRecord { url: "http://127.0.0.1:8080/other".into(), ..later.clone() }, "different-load");
    let errors = vec![Finding::invalid("errors", "9 % failed", "look")];
    invalid(&LoadRecord { findings: errors, ..later.clone() }, "errors");
    let mut other = later;
    other.generator.backend = "epoll".into();
    assert!(findings(&two_loads(&closed(), &other)).contains(&("different-cores", Severity::Warn)));
}
