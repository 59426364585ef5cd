//! Tests of the report: it derives from the record alone, fits its schema and agrees with the referee.

use std::path::Path;

use crate::fixture::{Race, Racer};
use deadheat_analysis::compare::{Condition, ConditionKind, FailIf, race_conditions};
use deadheat_analysis::gates::table::{self, By};
use deadheat_analysis::series::rates;
use deadheat_analysis::{Comparison, Report, ScenarioResult};
use deadheat_record::{
    End, Epoch, Experiment, ExternalReading, Finding, LoadFrom, Metric, QUANTILES, Rebuild, Record, Revision,
    ScenarioPlan, ServerHost, Severity, Throttling, VerdictWord,
};
use serde_json::Value;

fn two() -> Race {
    Race::of(vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0)])
}

/// The report in the form that `race --json` writes.
fn json(report: &Report) -> String {
    serde_json::to_string_pretty(report).unwrap() + "\n"
}

fn codes(record: &Record) -> Vec<(String, Severity)> {
    let document = Report::of(record).unwrap();
    let findings =
        document.scenarios.into_iter().flat_map(|scenario| scenario.findings).chain(document.findings);
    findings.map(|finding| (finding.code, finding.severity)).collect()
}

fn only(record: &Record) -> Comparison {
    let mut document = Report::of(record).unwrap();
    assert_eq!(document.scenarios[0].comparisons.len(), 1);
    document.scenarios.remove(0).comparisons.remove(0)
}

/// Checks that the race has exactly one finding, with this code and severity.
fn expect(race: &Race, code: &str, severity: Severity) {
    assert_eq!(codes(&race.record()), [(code.to_owned(), severity)]);
    assert!(table::codes(By::Race).any(|one| one == code));
}

#[test]
fn the_example_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/fixtures/example.json");
    let made = json(&Report::of(&Race { rounds: 4, ..two() }.record()).unwrap());
    if std::env::var_os("UPDATE_EXAMPLE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "{} differs from what is written now; rewrite it with UPDATE_EXAMPLE=1 cargo test -p deadheat-analysis",
        path.display()
    );
}

#[test]
fn documents_fit_the_schema_and_read_back() {
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let unmeasured = Race { epochs: 0, end: None, ..two() };
    let alone = Race::of(vec![Racer::new("node", 11_400.0)]);
    for race in [two(), unmeasured, alone] {
        let record = race.record();
        let document = Report::of(&record).unwrap();
        let text = json(&document);
        let value: Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), document);
    }
}

#[test]
fn results_are_sums_means_and_medians_of_the_record() {
    let record = two().record();
    let document = Report::of(&record).unwrap();
    let result = &document.scenarios[0].results[1];
    let parts: Vec<_> = record.epochs.iter().map(|epoch| &epoch.contenders[1]).collect();
    let completions: u64 = parts.iter().map(|part| part.completions).sum();
    let cpu_ns: u64 = parts.iter().map(|part| part.usage.cpu_ns).sum();
    assert_eq!(result.outcomes.ok, completions);
    assert_eq!(result.status[&200], completions);
    assert_eq!(result.cpu_us_per_request, Some(cpu_ns as f64 / completions as f64 / 1e3));
    // The kernel's ticks miss some CPU time. The report splits all CPU time in proportion to them, so the parts add up to the whole.
    let (user, system) = (result.user_us_per_request.unwrap(), result.system_us_per_request.unwrap());
    assert!((user / system - 63.0 / 36.0).abs() < 1e-6);
    assert!((user + system - result.cpu_us_per_request.unwrap()).abs() < 1e-9);
    assert!((result.switches_per_request.unwrap() - 0.625).abs() < 1e-3);
    assert!((result.involuntary_switches_per_request.unwrap() - 0.125).abs() < 1e-3);
    assert!((result.cpu_share.unwrap() - 0.98).abs() < 1e-6);
    assert_eq!(result.cold_start_ns, Some(48_300_000 + 525_000));
    assert_eq!((result.processes, result.throttled), (Some(1), None));
    // Each of the six epochs has one second of load.
    assert!((result.received_bytes_per_s.unwrap() - completions as f64 * 250.0 / 6.0).abs() < 1e-6);
    let mut held = record.clone();
    for (epoch, periods) in held.epochs.iter_mut().zip(1..) {
        epoch.contenders[1].throttled = Some(Throttling { periods, ns: 1_000 });
    }
    let result = Report::of(&held).unwrap().scenarios.remove(0).results.remove(1);
    assert_eq!(result.throttled, Some(Throttling { periods: 21, ns: 6_000 }));
    assert_eq!((result.rss_bytes, result.peak_rss_bytes), (Some(61 << 20), Some(70 << 20)));
    let epochs = record.epochs.iter().map(|epoch| rates(epoch, 1).iter().sum::<f64>() / 10.0);
    assert!((result.throughput_rps.unwrap() - epochs.sum::<f64>() / 6.0).abs() < 1e-6);
    assert_eq!(QUANTILES.len(), 7);
    assert!(result.latency_ns.p99.is_some() && result.latency_ns.p99_99.is_none());
}

#[test]
fn verdicts() {
    let faster = only(&two().record());
    assert_eq!(
        (faster.verdict, faster.baseline.as_str(), faster.contender.as_str()),
        (VerdictWord::Faster, "node", "bun")
    );
    assert!(faster.low.unwrap() > 1.4 && faster.high.unwrap() < 1.65 && !faster.provisional);
    assert_eq!((faster.epochs, faster.epoch_ratios.len()), (6, 6));
    let mean = faster.epoch_ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / 6.0;
    assert!((mean.exp() - faster.ratio.unwrap()).abs() < 1e-12);
    let running = Race { epochs: 5, end: None, ..two() };
    let open = only(&running.record());
    assert_eq!((open.verdict, open.provisional), (VerdictWord::Inconclusive, true));
    let ended = Race { end: Some(End::Budget), ..running };
    assert_eq!(only(&ended.record()).verdict, VerdictWord::Faster);
}

#[test]
fn for_latency_and_cpu_less_is_better() {
    for metric in [Metric::Cpu, Metric::P50, Metric::P99] {
        let comparison = only(&Race { metrics: vec![metric], ..two() }.record());
        assert!(comparison.ratio.unwrap() < 0.7, "{metric:?}");
        assert_eq!((comparison.metric, comparison.verdict), (metric, VerdictWord::Faster));
    }
}

#[test]
fn memory_is_compared_like_any_other_metric() {
    let mut record = Race { metrics: vec![Metric::Memory], ..two() }.record();
    for epoch in &mut record.epochs {
        for part in &mut epoch.contenders {
            let mib = [64, 32][part.contender] + epoch.number as u64 % 2;
            part.usage.pss_bytes = Some(mib << 20);
        }
    }
    let report = Report::of(&record).unwrap();
    assert_eq!(only(&record).verdict, VerdictWord::Faster);
    let headline = &report.scenarios[0].rankings[0].headline;
    assert!(headline.starts_with("bun uses 0.50x the memory of node ("), "{headline}");
    record.epochs[2].contenders[0].usage.pss_bytes = None;
    assert_eq!(only(&record).epochs, 5, "an epoch in which one was not read is left out for both");
}

#[test]
fn latencies_are_compared_at_each_share_of_requests_if_they_came_at_a_given_rate() {
    let open = Experiment::Open { connections: 64, rate_per_s: 8_000.0, poisson: true };
    let shifts =
        |shape| Report::of(&Race { shape, ..two() }.record()).unwrap().scenarios.remove(0).latency_shifts;
    assert_eq!(shifts(two().shape), [], "a closed load has no latency of a user");
    let [only] = &shifts(open)[..] else { panic!("one pair") };
    assert_eq!((only.baseline.as_str(), only.contender.as_str()), ("node", "bun"));
    let shares: Vec<f64> = only.points.iter().map(|point| point.share).collect();
    assert!(shares.is_sorted() && shares.contains(&0.5), "{shares:?}");
    for point in &only.points {
        let (low, high) = (point.low.unwrap(), point.high.unwrap());
        assert!(low <= point.ratio && point.ratio <= high, "{point:?}");
        assert!(
            (point.ratio / (11_400.0 / 17_300.0) - 1.0).abs() < 0.02,
            "both have the same distribution: {point:?}"
        );
    }
}

#[test]
fn all_metrics_of_a_scenario_are_judged_together_and_ranked_apart() {
    let racers = vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0), Racer::new("go", 42_000.0)];
    let metrics = vec![Metric::Throughput, Metric::P99];
    let scenario = Report::of(&Race { racers, metrics, ..two() }.record()).unwrap().scenarios.remove(0);
    assert_eq!(scenario.comparisons.len(), 6);
    assert!(
        scenario.comparisons.iter().all(|one| one.verdict == VerdictWord::Faster),
        "more is better, and less"
    );
    let ratios: Vec<bool> = scenario.comparisons.iter().map(|one| one.ratio.unwrap() > 1.0).collect();
    assert_eq!(ratios, [true, true, true, false, false, false]);
    for ranking in &scenario.rankings {
        let ranked: Vec<(&str, &str)> =
            ranking.contenders.iter().map(|one| (one.contender.as_str(), one.letters.as_str())).collect();
        assert_eq!(ranked, [("go", "a"), ("bun", "b"), ("node", "c")], "{:?}", ranking.metric);
    }
    let alone = only(&Race { metrics: vec![Metric::P99], ..two() }.record());
    let with_another = Race { metrics: vec![Metric::P99, Metric::P50], epochs: 5, end: None, ..two() };
    let pair = Report::of(&with_another.record()).unwrap().scenarios.remove(0).comparisons;
    assert!((pair[0].alpha - alone.alpha / 2.0).abs() < 1e-12, "they share the error rate");
}

#[test]
fn a_metric_that_cannot_be_compared_is_said() {
    let racers = vec![Racer::new("a", 5_000.0), Racer::new("b", 9_000.0)];
    let race = |metrics: Vec<Metric>| Race { racers: racers.clone(), metrics, ..two() };
    expect(&race(vec![Metric::P50, Metric::P99]), "metric-unavailable", Severity::Warn);
    let left = Report::of(&race(vec![Metric::P50, Metric::P99]).record()).unwrap().scenarios.remove(0);
    assert_eq!((left.comparisons.len(), left.comparisons[0].metric), (1, Metric::P50));
    assert_eq!(left.rankings.len(), 2);
    expect(&race(vec![Metric::P99]), "metric-unavailable", Severity::Invalid);
}

#[test]
fn the_verdict_on_two_revisions_is_about_the_second() {
    let headline = |rates: [f64; 2], metric: Metric, revisions: bool| {
        let racers = vec![Racer::new("main~2", rates[0]), Racer::new("main~1", rates[1])];
        let mut record = Race { metrics: vec![metric], ..Race::of(racers) }.record();
        for one in record.plan.contenders.iter_mut().filter(|_| revisions) {
            one.revision = Some(revision(&one.name, "aaa"));
        }
        Report::of(&record).unwrap().scenarios.remove(0).rankings.remove(0).headline
    };
    let (slower, faster) = ([17_300.0, 11_400.0], [11_400.0, 17_300.0]);
    let said = headline(slower, Metric::Throughput, true);
    assert!(said.starts_with("main~1 is slower: 0.6") && said.contains("x as fast as main~2 (0.6"), "{said}");
    let said = headline(slower, Metric::P99, true);
    assert!(
        said.starts_with("main~1 is slower: 1.5") && said.contains("x the p99 latency of main~2 ("),
        "{said}"
    );
    let said = headline(faster, Metric::Throughput, true);
    assert!(said.starts_with("main~1 is 1.5"), "{said}");
    let said = headline(slower, Metric::Throughput, false);
    assert!(
        said.starts_with("main~2 is 1.5"),
        "without revisions, the sentence is about the faster one: {said}"
    );
}

#[test]
fn an_invalid_finding_takes_the_verdicts_of_those_it_is_about() {
    let racers = vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0), Racer::new("go", 42_000.0)];
    let mut record = Race::of(racers).record();
    let finding = Finding::invalid("mismatch", "wrong answers", "look");
    record.findings.push((Some("closed-64".into()), finding.clone().about("bun")));
    let scenario = Report::of(&record).unwrap().scenarios.remove(0);
    for one in &scenario.comparisons {
        let about = one.baseline == "bun" || one.contender == "bun";
        assert_eq!(one.verdict == VerdictWord::Invalid, about, "{} {}", one.baseline, one.contender);
    }
    let letters: Vec<&str> = scenario.results.iter().map(|result| result.letters.as_str()).collect();
    assert_eq!(letters, ["b", "ab", "a"]);
    record.findings.push((None, finding));
    let all = Report::of(&record).unwrap().scenarios.remove(0).comparisons;
    assert!(all.iter().all(|one| one.verdict == VerdictWord::Invalid));
}

#[test]
fn a_clean_race_has_no_findings() {
    assert_eq!(codes(&two().record()), []);
}

/// A race of `node`, `bun` and the control, which is `node` again at `control_rate`.
fn controlled(control_rate: f64) -> Record {
    let racers = [("node", 11_400.0), ("bun", 17_300.0), ("control", control_rate)];
    let racers = racers.map(|(name, rate)| Racer::new(name, rate)).to_vec();
    let mut record = Race { all_pairs: false, ..Race::of(racers) }.record();
    record.plan.contenders[2].control = true;
    record
}

#[test]
fn a_control_says_how_much_identical_code_differs() {
    let report = Report::of(&controlled(11_400.0)).unwrap();
    let scenario = &report.scenarios[0];
    let headline = &scenario.rankings[0].headline;
    assert!(headline.starts_with("bun is 1.5") && !headline.contains("control"), "{headline}");
    assert!(headline.contains("; identical code differed by at most "), "{headline}");
    assert!(scenario.findings.is_empty(), "{:?}", scenario.findings);
    assert_eq!(scenario.comparisons.len(), 2);
    assert!(report.reproduce.contains(" --control ") && !report.reproduce.contains(",control"));

    let report = Report::of(&controlled(8_000.0)).unwrap();
    let scenario = &report.scenarios[0];
    let found: Vec<_> = scenario.findings.iter().map(|one| (one.code.as_str(), one.severity)).collect();
    assert_eq!(found, [("control-differs", Severity::Invalid)]);
    assert!(scenario.comparisons.iter().all(|one| one.verdict == VerdictWord::Invalid));
    assert!(scenario.rankings[0].headline.starts_with("no verdict"));
}

#[test]
fn a_condition_does_not_apply_to_the_control() {
    let condition = Condition { claim: ConditionKind::Slower(0.03), maybe: false };
    let slower = FailIf { text: "slower by 3%".into(), metric: None, condition };
    let mut record = controlled(8_000.0);
    let held = |record: &Record| {
        race_conditions(&Report::of(record).unwrap(), std::slice::from_ref(&slower)).remove(0)
    };
    let result = held(&record);
    assert!(!result.holds && result.of.is_empty(), "{result:?}");
    record.plan.contenders[2].control = false;
    assert!(held(&record).holds);
}

#[test]
fn a_condition_on_an_invalid_comparison_is_unknown() {
    let condition = Condition { claim: ConditionKind::Slower(0.03), maybe: false };
    let slower = |metric: Option<Metric>| FailIf { text: "slower by 3%".into(), metric, condition };
    let mut record = Race { metrics: vec![Metric::Throughput, Metric::P50], ..two() }.record();
    let metrics = vec![Metric::Throughput];
    record.findings.push((None, Finding { metrics, ..Finding::invalid("test", "x", "y") }));
    let asked = [None, Some(Metric::P50), Some(Metric::Throughput)].map(slower);
    let results = race_conditions(&Report::of(&record).unwrap(), &asked);
    let unknown: Vec<bool> = results.iter().map(|one| one.is_unknown()).collect();
    assert_eq!(unknown, [true, false, true], "{results:?}");
    let [place] = &results[0].unknown[..] else { panic!("{results:?}") };
    assert_eq!((place.contender.as_str(), place.metric), ("bun", Metric::Throughput));
}

/// There is no epoch that counts.
#[test]
fn a_condition_on_a_race_without_results_is_unknown() {
    let condition = Condition { claim: ConditionKind::Slower(0.03), maybe: false };
    let slower = FailIf { text: "slower by 3%".into(), metric: None, condition };
    let mut record = two().record();
    record.epochs.clear();
    let results = race_conditions(&Report::of(&record).unwrap(), &[slower]);
    assert!(results[0].is_unknown(), "{results:?}");
}

fn revision(name: &str, commit: &str) -> Revision {
    Revision {
        name: name.into(),
        commit: commit.into(),
        subject: "a change".into(),
        uncommitted: false,
        repository: "/r".into(),
        checkout: "/c/0123".into(),
        folder: "/c/0123/tree/api".into(),
        contender: "api".into(),
        build: Some("npm ci".into()),
    }
}

#[test]
fn a_race_with_load_from_other_machines_can_be_repeated() {
    let mut record = two().record();
    assert!(!Report::of(&record).unwrap().reproduce.contains("--load-host"));
    let hosts = vec!["ssh://me@a".into(), "ssh://b:2222".into()];
    record.plan.load_from = Some(LoadFrom { hosts, server_address: [10, 0, 0, 5].into() });
    let again = Report::of(&record).unwrap().reproduce;
    let options = "--load-host ssh://me@a --load-host ssh://b:2222 --server-address 10.0.0.5";
    assert!(again.ends_with(options), "{again}");
}

#[test]
fn a_race_on_another_machine_can_be_repeated() {
    let mut record = two().record();
    record.plan.study = "mine".into();
    record.plan.server_host = Some(ServerHost {
        host: "ssh://me@target".into(),
        control: "laptop".into(),
        sent: "/home/me/studies".into(),
        sent_ignored: true,
        study: Some("mine".into()),
        build: None,
    });
    let again = Report::of(&record).unwrap().reproduce;
    assert!(again.starts_with("deadheat race /home/me/studies/mine "), "{again}");
    let options = " --server-host ssh://me@target --send /home/me/studies --send-ignored";
    assert!(again.ends_with(options), "{again}");
}

#[test]
fn a_race_of_revisions_can_be_repeated() {
    let mut record = two().record();
    record.plan.contenders[0].revision = Some(revision("main", "aaa"));
    record.plan.contenders[1].revision = Some(revision("HEAD", "bbb"));
    let again = Report::of(&record).unwrap().reproduce;
    assert!(again.contains(" --git aaa..bbb --only api "), "{again}");
    assert!(!again.contains("--baseline"), "{again}");
    record.plan.contenders[1].revision.as_mut().unwrap().uncommitted = true;
    let again = Report::of(&record).unwrap().reproduce;
    assert!(again.contains(" --git aaa --only api "), "{again}");
}

#[test]
fn a_race_over_hours_with_a_build_for_each_epoch_can_be_repeated() {
    let mut record = two().record();
    record.plan.method.profile = "quick".into();
    assert!(Report::of(&record).unwrap().reproduce.contains(" --budget 24h"));
    record.plan.method.over_ns = 8 * 3_600 * 1_000_000_000;
    let rebuild = |limit_ns| Rebuild { command: "make {seed}".into(), limit_ns };
    record.plan.contenders.iter_mut().for_each(|one| one.rebuild = Some(rebuild(Rebuild::LIMIT_NS)));
    let again = Report::of(&record).unwrap().reproduce;
    assert!(again.contains(" --over 28800s") && !again.contains("--budget"), "{again}");
    assert!(!again.contains("--build-timeout"), "{again}");
    record.plan.contenders[0].rebuild = Some(rebuild(2_000_000_000_000));
    let again = Report::of(&record).unwrap().reproduce;
    assert!(again.contains(" --build-timeout 2000s"), "{again}");
}

#[test]
fn gates_of_the_machine() {
    expect(&Race { steal_share: 0.02, ..two() }, "steal", Severity::Warn);
    expect(&Race { dropped_rounds: 3, ..two() }, "dropped-rounds", Severity::Invalid);
    assert_eq!(codes(&Race { dropped_rounds: 2, ..two() }.record()), []);
    // Percentiles at a given rate may lose up to half of their rounds.
    let shape = Experiment::Open { connections: 64, rate_per_s: 8_000.0, poisson: true };
    for (metric, dropped_rounds, severity) in [
        (Metric::P99, 2, None),
        (Metric::P99, 3, Some(Severity::Warn)),
        (Metric::P99, 6, Some(Severity::Invalid)),
        (Metric::Cpu, 3, Some(Severity::Invalid)),
    ] {
        let race = Race { dropped_rounds, shape: shape.clone(), metrics: vec![metric], ..two() };
        let found = codes(&race.record()).into_iter().find(|(code, _)| code == "dropped-rounds");
        assert_eq!(found.map(|(_, severity)| severity), severity, "{metric:?} {dropped_rounds}");
    }
    let mut record = two().record();
    let rounds = record.epochs.iter_mut().flat_map(|epoch| &mut epoch.rounds);
    rounds.for_each(|round| round.external.foreign_share = Some(0.03));
    assert_eq!(codes(&record), [("foreign-cpu".to_owned(), Severity::Warn)]);
    let mut record = two().record();
    record.plan.pinning.server_cpus.clear();
    assert_eq!(codes(&record), [("not-pinned".to_owned(), Severity::Warn)]);
}

/// As in a record from the runner, the most disturbed rounds (here two of ten) are left out, and the rest are quiet.
#[test]
fn rounds_that_were_left_out_say_how_noisy_the_machine_is() {
    for (steal_share, foreign_share, expected) in [
        (0.2, 0.004, ("steal", Severity::Warn)),
        (0.3, 0.004, ("steal", Severity::Invalid)),
        (0.001, 0.3, ("foreign-cpu", Severity::Warn)),
        (0.001, 0.6, ("foreign-cpu", Severity::Invalid)),
    ] {
        let mut record = Race { dropped_rounds: 2, ..two() }.record();
        let rounds = record.epochs.iter_mut().flat_map(|epoch| &mut epoch.rounds);
        for round in rounds.filter(|round| round.dropped.is_some()) {
            round.external = ExternalReading { steal_share, foreign_share: Some(foreign_share) };
        }
        let (code, severity) = expected;
        assert_eq!(codes(&record), [(code.to_owned(), severity)], "{steal_share} {foreign_share}");
    }
}

#[test]
fn gates_of_the_generator() {
    let idle = |load_cpu_share| {
        let mut race = Race { load_cpu_share, ..two() };
        race.racers[1].cpu_share = 0.7;
        race
    };
    expect(&idle(0.5), "not-server-bound", Severity::Warn);
    let both = |share| codes(&idle(share).record());
    let bound = ("not-server-bound".to_owned(), Severity::Warn);
    let saturated = |severity| ("generator-saturated".to_owned(), severity);
    assert_eq!(both(0.8), [bound.clone(), saturated(Severity::Warn)]);
    assert_eq!(both(0.9), [saturated(Severity::Invalid), bound.clone()]);
    // A server at its limit sets the rate, so a busy generator does not matter.
    assert_eq!(codes(&Race { load_cpu_share: 0.99, ..two() }.record()), []);
    // Services share the contender's cores, so their CPU time counts towards its limit. A CPU quota applies to the contender alone.
    let mut served = idle(0.8).record();
    for part in served.epochs.iter_mut().map(|epoch| &mut epoch.contenders[1]) {
        part.usage.services_cpu_ns = Some(part.loaded_ns / 4);
    }
    let result = Report::of(&served).unwrap().scenarios.remove(0).results.remove(1);
    let alone = result.cpu_us_per_request.unwrap();
    assert!((result.services_share.unwrap() - 0.25).abs() < 1e-9);
    assert!((result.services_us_per_request.unwrap() / alone - 0.25 / 0.7).abs() < 1e-3);
    assert_eq!(codes(&served), []);
    served.plan.scenarios[0].limits.cpus = Some(1.0);
    assert!(codes(&served).contains(&bound), "{:?}", codes(&served));
    // An open load has a fixed rate, so a server below its limit is not a finding.
    let open = Experiment::Open { connections: 64, rate_per_s: 100.0, poisson: true };
    assert_eq!(codes(&Race { shape: open, ..idle(0.5) }.record()), []);
}

#[test]
fn gates_of_the_answers() {
    let with = |change: &dyn Fn(&mut Racer)| {
        let mut race = two();
        change(&mut race.racers[1]);
        race
    };
    expect(&with(&|racer| racer.wrong = 1), "mismatch", Severity::Warn);
    expect(&with(&|racer| racer.wrong = 30), "mismatch", Severity::Invalid);
    expect(&with(&|racer| racer.timeouts = 1), "errors", Severity::Warn);
    expect(&with(&|racer| racer.timeouts = 30), "errors", Severity::Invalid);
    expect(&with(&|racer| racer.closed_by_server = 200), "no-keep-alive", Severity::Warn);
    expect(&with(&|racer| racer.climb = 0.25), "no-steady-state", Severity::Invalid);
    expect(&with(&|racer| racer.climb = -0.25), "no-steady-state", Severity::Warn);
    // The gate has no reading with fewer than four epochs, because the race first checks it then.
    for (epochs, readings) in [(3, 0), (4, 2)] {
        let race = Race { epochs, ..with(&|racer| racer.climb = 0.25) };
        let scenario = Report::of(&race.record()).unwrap().scenarios.remove(0);
        let read = scenario.gates.iter().filter(|gate| gate.code == "no-steady-state").count();
        let said = scenario.findings.iter().filter(|one| one.code == "no-steady-state").count();
        assert_eq!((read, said), (readings, readings / 2), "{epochs} epochs");
    }
}

#[test]
fn gates_of_the_epochs() {
    expect(&Race { epochs: 4, ..two() }, "few-epochs", Severity::Warn);
    for (end, remedy) in [(None, "--resume"), (Some(End::Budget), "--budget")] {
        let scenario = Report::of(&Race { epochs: 4, end, ..two() }.record()).unwrap().scenarios.remove(0);
        let few = scenario.findings.iter().find(|one| one.code == "few-epochs").unwrap();
        let options: Vec<&str> = few.remedy.split([' ', ',']).filter(|one| one.starts_with("--")).collect();
        assert_eq!(options, [remedy], "what ended is not gone on with: {end:?}");
    }
    for end in [End::Unavailable, End::Maximum] {
        let few_of = |record: &Record| {
            let findings = Report::of(record).unwrap().scenarios.remove(0).findings;
            findings.into_iter().find(|one| one.code == "few-epochs").unwrap()
        };
        let few = few_of(&Race { epochs: 4, end: Some(end), ..two() }.record());
        assert!(few.remedy.starts_with("fix the other findings first"), "nothing disturbed it: {few:?}");
        let mut record = Race { end: Some(end), ..two() }.record();
        let all = record.epochs.iter_mut().flat_map(|epoch| &mut epoch.rounds);
        all.for_each(|round| round.dropped = Some("steal of 9 %".into()));
        let few = few_of(&record);
        assert!(
            few.remedy.starts_with("race again on a quieter machine"),
            "more time does not help: {few:?}"
        );
        assert!(few.message.ends_with("6 more left out: nothing can be compared"), "{few:?}");
    }
    // One of six epochs is disturbed from its first round to its last.
    let mut record = two().record();
    record.epochs[1].rounds.iter_mut().for_each(|round| round.dropped = Some("steal of 9 %".into()));
    assert_eq!(codes(&record), [("few-epochs".to_owned(), Severity::Warn)]);
    let said = Report::of(&record).unwrap().scenarios.remove(0).findings.remove(0).message;
    assert!(
        said.starts_with("5 of the 6 epochs that the first look needs were measured, 1 more left out: "),
        "{said}"
    );
    for (noise, more_helps) in [(0.09, true), (0.6, false)] {
        let noisy = Race::of(vec![Racer::new("a", 1e4), Racer::new("b", 1e4)]);
        let race = Race { noise: (noise, 0.02), epochs: 6, end: Some(End::Budget), ..noisy };
        expect(&race, "too-noisy", Severity::Warn);
        let findings = Report::of(&race.record()).unwrap().scenarios.remove(0).findings;
        let said = findings.iter().find(|one| one.code == "too-noisy").unwrap();
        assert_eq!(
            said.remedy.contains("--epochs"),
            more_helps,
            "no more than 200 can be asked for: {said:?}"
        );
    }
}

#[test]
fn a_stalling_contender_is_named() {
    let mut record = two().record();
    for epoch in &mut record.epochs {
        let slices =
            epoch.rounds[epoch.number * 3 % 10].slices.iter_mut().filter(|slice| slice.contender == 1);
        slices.for_each(|slice| slice.rate_per_s = slice.rate_per_s.map(|rate| rate * 0.02));
    }
    assert_eq!(codes(&record), [("intermittent-slow-slices".to_owned(), Severity::Warn)]);
}

#[test]
fn what_a_record_may_not_hold_is_said() {
    let mut record = two().record();
    record.epochs[1].contenders[0].latency.0 = "damaged".into();
    let error = Report::of(&record).unwrap_err().to_string();
    assert!(error.contains("closed-64") && error.contains("damaged"), "{error}");
    let mut record = two().record();
    record.plan.method.looks = vec![];
    assert!(Report::of(&record).unwrap_err().to_string().contains("no looks"));
    let record = Race { epochs: 31, rounds: 2, ..two() }.record();
    assert!(Report::of(&record).unwrap_err().to_string().contains("31 epochs"));
}

#[test]
fn what_follows_from_a_part_of_a_record_followed_from_the_whole() {
    let (mut record, other) = (two().record(), Race { seed: 7, ..two() }.record());
    let plan = ScenarioPlan { name: "other".into(), ..record.plan.scenarios[0].clone() };
    record.plan.scenarios.push(plan);
    record.epochs.extend(other.epochs.into_iter().map(|epoch| Epoch { scenario: "other".into(), ..epoch }));
    record.ended.push(("other".into(), End::Decided));
    let whole = Report::of(&record).unwrap();
    assert_ne!(whole.scenarios[0].results, whole.scenarios[1].results);
    for one in &whole.scenarios {
        let part = Report::of(&record.clone().only(&[&one.name])).unwrap();
        assert_eq!(part.scenarios.as_slice(), std::slice::from_ref(one));
        assert!(part.reproduce.contains(&format!("--scenario {}", one.name)), "{}", part.reproduce);
    }
}

/// One in ten slices of b is slow. This lowers its mean but does not change its verdict, and the ranking follows the verdict.
#[test]
fn who_was_told_apart_stands_on_the_right_side() {
    let racers = [("a", 10_000.0), ("b", 10_300.0), ("c", 8_000.0)];
    let racers = racers.map(|(name, rate)| Racer::new(name, rate)).to_vec();
    let mut record = Race { noise: (0.001, 0.001), ..Race::of(racers) }.record();
    for (index, epoch) in record.epochs.iter_mut().enumerate() {
        // The slow round is sometimes early and sometimes late, so that the rate does not climb within epochs.
        let round = [0, 9, 4, 5, 8, 1][index];
        for slice in epoch.rounds[round].slices.iter_mut().filter(|slice| slice.contender == 1) {
            slice.rate_per_s = slice.rate_per_s.map(|rate| rate * 0.3);
        }
    }
    let scenario = Report::of(&record).unwrap().scenarios.remove(0);
    let mean = |index: usize| scenario.results[index].throughput_rps.unwrap();
    assert!(mean(1) < mean(0), "{} {}", mean(0), mean(1));
    let ranked: Vec<(&str, &str)> =
        scenario.rankings[0].contenders.iter().map(|one| (&*one.contender, &*one.letters)).collect();
    assert_eq!(ranked, [("b", "a"), ("a", "b"), ("c", "c")]);
    let headline = &scenario.rankings[0].headline;
    assert!(headline.starts_with("b is first of 3: it is 1.03"), "{headline}");
}

/// A slice without any answer counts as a rate of 0: it lowers the ratio of the totals and causes a finding.
#[test]
fn a_slice_without_an_answer_is_not_left_out() {
    let racers = vec![Racer::new("a", 10_000.0), Racer::new("b", 10_000.0)];
    let mut record = Race { noise: (0.001, 0.001), ..Race::of(racers) }.record();
    for epoch in &mut record.epochs {
        for slice in epoch.rounds[3].slices.iter_mut().filter(|slice| slice.contender == 1) {
            slice.rate_per_s = Some(0.0);
        }
    }
    let scenario = Report::of(&record).unwrap().scenarios.remove(0);
    let pair = &scenario.comparisons[0];
    assert!(
        (pair.ratio.unwrap() - 1.0).abs() < 0.01 && (pair.total_ratio.unwrap() - 0.9).abs() < 0.01,
        "{pair:?}"
    );
    let said = |scenario: &ScenarioResult| {
        let all = scenario.findings.iter().find(|one| one.code == "intermittent-slow-slices");
        all.expect("slow slices").message.clone()
    };
    assert!(said(&scenario).contains(" without the slowest and the fastest fifth of rounds, 0.9"));

    // Trimming drops two rounds of ten. With three that stall, there is no ratio without them.
    for epoch in &mut record.epochs {
        for round in &mut epoch.rounds[4..6] {
            round
                .slices
                .iter_mut()
                .filter(|slice| slice.contender == 1)
                .for_each(|slice| slice.rate_per_s = Some(0.0));
        }
    }
    let scenario = Report::of(&record).unwrap().scenarios.remove(0);
    let message = said(&scenario);
    assert!(message.contains("answered nothing in over a fifth of the rounds, and these count"), "{message}");
    assert!(!message.contains("without the slowest"), "{message}");
}
