//! Compares claims with a race on this machine and with a generator's ceiling, and computes what users see behind an edge cache.

use crate::fixture::{Race, Racer};
use deadheat_analysis::audit::{add_generator, add_race, published_connections, self_test};
use deadheat_analysis::number::three_digits;
use deadheat_analysis::{AnalysisError, Report};
use deadheat_record::{
    AuditRecord, Claim, ClaimHere, ClaimVerdict, Experiment, GeneratorAudit, Metric, Record, VerdictWord,
};
use deadheat_report::audit::markdown;
use deadheat_report::{Style, json, terminal};
use serde_json::Value;

const WIDE: Style = Style { color: false, width: 120, unicode: true };

fn claim(contender: &str, metric: &str, value: f64) -> Claim {
    let (contender, baseline) = contender.split_once('/').unwrap_or((contender, ""));
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Claim {
        source: "article".into(),
        contender: some(contender),
        baseline: some(baseline),
        metric: metric.into(),
        value: Some(value),
        ..Claim::default()
    }
}

/// bun at 14,000/s, node at 10,000/s, limit at 40,000/s.
fn race() -> Race {
    let racers =
        vec![Racer::new("node", 10_000.0), Racer::new("bun", 14_000.0), Racer::new("limit", 40_000.0)];
    Race { epochs: 10, ..Race::of(racers) }
}

fn audited(claims: &[Claim], record: &Record) -> AuditRecord {
    let mut audit = self_test("trending", None, 1, claims);
    add_race(&mut audit, "race.jsonl", &Report::of(record).unwrap()).unwrap();
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/audit-1.schema.json")).unwrap();
    let value: Value = serde_json::from_str(&json(&audit).unwrap()).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&value).map(|one| one.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    audit
}

fn says(claim: Claim) -> ClaimHere {
    let audit = audited(&[claim], &race().record());
    assert_eq!(audit.here.len(), 1, "{:?}", audit.here);
    audit.here[0].clone()
}

#[test]
fn a_stated_ratio_is_reproduced_or_not_or_contradicted() {
    let verdict = |ratio| says(claim("bun/node", "throughput_ratio", ratio)).verdict;
    assert_eq!(verdict(1.39), ClaimVerdict::Reproduced);
    assert_eq!(verdict(1.42), ClaimVerdict::Reproduced);
    assert_eq!(verdict(1.6), ClaimVerdict::NotReproduced);
    assert_eq!(verdict(1.1), ClaimVerdict::NotReproduced);
    assert_eq!(verdict(0.9), ClaimVerdict::Contradicted);
    // The inverse ratio is the same claim.
    assert_eq!(says(claim("node/bun", "throughput_ratio", 1.0 / 1.39)).verdict, ClaimVerdict::Reproduced);
    assert_eq!(says(claim("node/bun", "throughput_ratio", 1.39)).verdict, ClaimVerdict::Contradicted);
    let one = says(claim("bun/node", "throughput_ratio", 1.39));
    let (low, here, high) = (one.low.unwrap(), one.here.unwrap(), one.high.unwrap());
    assert!(low < here && here < high && (here - 1.4).abs() < 0.03, "{low} {here} {high}");
}

/// A noisy race has a wide interval, which contains many ratios. That does not reproduce a claim.
#[test]
fn what_a_noisy_race_holds_is_not_reproduced() {
    let racers = vec![Racer::new("node", 10_000.0), Racer::new("bun", 11_000.0)];
    let record = Race { noise: (0.2, 0.02), ..Race::of(racers) }.record();
    for ratio in [1.2, 0.99] {
        let one = audited(&[claim("bun/node", "throughput_ratio", ratio)], &record).here[0].clone();
        let (low, high) = (one.low.unwrap(), one.high.unwrap());
        assert!(low < 0.9 && high > 1.25, "{low} to {high}");
        assert_eq!(one.verdict, ClaimVerdict::NotTestable, "{ratio}");
        assert!(one.note.unwrap().contains("inconclusive"));
    }
}

#[test]
fn absolute_figures_are_compared_as_ratios_only() {
    // The article's machine was four times as fast, but the ratio is the same. node is only the divisor, so it gets no line.
    let claims = [claim("bun", "throughput_rps", 56_000.0), claim("node", "throughput_rps", 40_000.0)];
    let audit = audited(&claims, &race().record());
    assert_eq!(audit.here.len(), 1);
    let one = &audit.here[0];
    assert_eq!((one.verdict, one.baseline.as_deref()), (ClaimVerdict::Reproduced, Some("node")));
    assert_eq!(one.claims, [0, 1]);
    assert!((one.published.unwrap().0 - 1.4).abs() < 1e-9);
    // Percentiles, memory and cold starts are compared as ratios too, although this race did not judge them.
    for (metric, of_bun, of_node) in
        [("latency_p99_ms", 1.0, 1.4), ("rss_mb", 70.0, 70.0), ("cold_start_ms", 50.0, 50.0)]
    {
        let audit =
            audited(&[claim("bun", metric, of_bun), claim("node", metric, of_node)], &race().record());
        assert_eq!(audit.here[0].verdict, ClaimVerdict::Reproduced, "{metric}: {:?}", audit.here);
    }
}

#[test]
fn what_cannot_be_tested_says_why() {
    let why = |one: Claim| {
        let one = says(one);
        assert_eq!((one.verdict, one.here), (ClaimVerdict::NotTestable, None));
        one.note.unwrap()
    };
    assert_eq!(
        why(claim("bun", "throughput_rps", 5.0)),
        "no figure of another contender was published to divide it by"
    );
    assert_eq!(why(claim("bun/php", "throughput_ratio", 2.0)), "php was not raced");
    assert_eq!(why(claim("bun/node", "happiness_ratio", 2.0)), "deadheat does not measure this");
    let elsewhere = Claim { scenario: Some("cloud".into()), ..claim("bun/node", "throughput_ratio", 2.0) };
    assert_eq!(why(elsewhere), "its scenario cloud was not raced");
    let php = [claim("bun", "throughput_rps", 5.0), claim("php", "throughput_rps", 5.0)];
    let notes = audited(&php, &race().record()).here.into_iter().map(|one| one.note.unwrap());
    assert_eq!(
        notes.collect::<Vec<_>>(),
        ["no other contender with a published figure was raced", "php was not raced"]
    );
    let settings = [claim("", "connections", 64.0), claim("bun", "cpus", 4.0), claim("", "processes", 1.0)];
    assert_eq!(audited(&settings, &race().record()).here, []);
}

/// A published result that no race compares gets a line that says why.
#[test]
fn what_was_published_and_is_not_compared_says_why() {
    for (metric, word) in [
        ("warmup_s", "pilot"),
        ("timeouts", "one run"),
        ("connect_errors", "could not open"),
        ("edge_cache_hit_rate", "assumption about users"),
    ] {
        let one = says(claim("bun", metric, 2.0));
        assert_eq!(one.verdict, ClaimVerdict::NotTestable, "{metric}");
        assert!(one.note.unwrap().contains(word), "{metric}");
    }
}

/// An epoch of 10,000 requests has only 10 above p99.9.
#[test]
fn a_percentile_with_too_few_requests_beyond_it_says_how_many() {
    let one = says(claim("bun/node", "latency_p99_9_ratio", 2.0));
    assert_eq!(one.verdict, ClaimVerdict::NotTestable);
    let why = "too few requests beyond it: 10 of 50 needed in an epoch; measure longer";
    assert_eq!(one.note.as_deref(), Some(why));
    let mut record = race().record();
    for part in record.epochs.iter_mut().flat_map(|epoch| &mut epoch.contenders) {
        part.latency = deadheat_record::EncodedHistogram::default();
    }
    let none = audited(&[claim("bun/node", "latency_p99_9_ratio", 2.0)], &record);
    assert_eq!(none.here[0].note.as_deref(), Some("closed-64 does not measure it"));
}

/// The audit shows the study's note about a claim, whatever the verdict.
#[test]
fn a_claims_own_note_is_shown() {
    let noted = |claim: Claim, note: &str| Claim { note: Some(note.into()), ..claim };
    let claims = [
        noted(claim("bun/node", "throughput_ratio", 1.4), "in the text only"),
        noted(claim("bun/node", "happiness_ratio", 1.4), "by a poll"),
    ];
    let audit = audited(&claims, &race().record());
    assert_eq!(audit.here[0].verdict, ClaimVerdict::Reproduced);
    assert_eq!(audit.here[0].note.as_deref(), Some("in the text only"));
    assert_eq!(audit.here[1].note.as_deref(), Some("deadheat does not measure this (by a poll)"));
    let (shown, page) = (terminal::audit(&audit, &WIDE), markdown(&audit));
    for text in [shown, page] {
        assert!(text.contains("in the text only") && text.contains("(by a poll)"), "{text}");
    }
}

/// A claim such as `doubled latency` compares a contender with itself in another scenario. Their epochs do not form pairs.
#[test]
fn a_ratio_of_two_scenarios_is_taken_from_both() {
    let half = |seed: u64| Race {
        seed,
        epochs: 8,
        ..Race::of(vec![Racer::new("node", 5_000.0), Racer::new("bun", 9_000.0)])
    };
    let record = |slow: Race| {
        crate::fixture::joined([("lookup".to_owned(), race().record()), ("anew".to_owned(), slow.record())])
    };
    let ratio = |value: f64| Claim {
        scenario: Some("anew".into()),
        baseline_scenario: Some("lookup".into()),
        ..claim("node", "throughput_ratio", value)
    };
    let all = record(half(7));
    let one = audited(&[ratio(0.5)], &all).here[0].clone();
    assert_eq!(one.verdict, ClaimVerdict::Reproduced);
    assert_eq!((one.baseline.as_deref(), one.baseline_scenario.as_deref()), (Some("node"), Some("lookup")));
    let (low, here, high) = (one.low.unwrap(), one.here.unwrap(), one.high.unwrap());
    assert!(
        low < here && here < high && (here - 0.5).abs() < 0.03 && high / low < 1.1,
        "{low} {here} {high}"
    );
    assert!(one.note.unwrap().contains("Welch"));
    let verdict = |value: f64| audited(&[ratio(value)], &all).here[0].verdict;
    assert_eq!((verdict(0.8), verdict(2.0)), (ClaimVerdict::NotReproduced, ClaimVerdict::Contradicted));
    assert!(terminal::audit(&audited(&[ratio(0.5)], &all), &WIDE).contains("anew / lookup"));
    // With a baseline, the ratio is to the baseline's value in the other scenario: 5,000/s over 14,000/s.
    let other = Claim { baseline: Some("bun".into()), ..ratio(0.357) };
    assert_eq!(audited(&[other], &all).here[0].verdict, ClaimVerdict::Reproduced);
    let single = record(Race { epochs: 1, ..half(7) });
    let one = audited(&[ratio(0.5)], &single).here[0].clone();
    assert_eq!((one.verdict, one.low), (ClaimVerdict::NotTestable, None));
    assert!(one.here.is_some() && one.note.unwrap().starts_with("fewer than two epochs"));
    let elsewhere = Claim { baseline_scenario: Some("none".into()), ..ratio(0.5) };
    let note = audited(&[elsewhere], &all).here[0].note.clone();
    assert_eq!(note.as_deref(), Some("its scenario none was not raced"));
}

/// If the machine matches, the audit also compares absolute values, including the value that others are divided by.
#[test]
fn figures_are_compared_as_they_are_where_the_machine_matches() {
    let record = race().record();
    let held = |claims: &[Claim], machine_matches: bool| {
        let mut audit = AuditRecord { machine_matches, ..self_test("trending", None, 1, claims) };
        add_race(&mut audit, "race.jsonl", &Report::of(&record).unwrap()).unwrap();
        audit.here
    };
    let claims = [claim("bun", "throughput_rps", 28_000.0), claim("node", "throughput_rps", 10_100.0)];
    assert_eq!(held(&claims, false).len(), 1);
    let here = held(&claims, true);
    let told: Vec<_> = here
        .iter()
        .map(|one| (one.contender.as_deref().unwrap(), one.baseline.as_deref(), one.verdict))
        .collect();
    let expected = [
        ("bun", Some("node"), ClaimVerdict::NotReproduced),
        // bun reaches half of the published value. That is no contradiction, because an absolute value has no direction.
        ("bun", None, ClaimVerdict::NotReproduced),
        ("node", None, ClaimVerdict::Reproduced),
    ];
    assert_eq!(told, expected);
    assert_eq!((here[2].published, here[2].claims.as_slice()), (Some((10_100.0, 10_100.0)), &[1][..]));
    let (low, node, high) = (here[2].low.unwrap(), here[2].here.unwrap(), here[2].high.unwrap());
    assert!(low < node && node < high && (node / 10_000.0 - 1.0).abs() < 0.03, "{low} {node} {high}");
    // The comparison uses the claim's unit: the median of 64 connections at 10,000/s, in milliseconds and in seconds.
    for (metric, value) in [("latency_p50_ms", 6.4), ("latency_p50_s", 0.0064)] {
        let here = held(&[claim("node", metric, value)], true);
        assert_eq!((here.len(), here[0].verdict), (1, ClaimVerdict::Reproduced), "{metric}: {here:?}");
        assert_eq!(held(&[claim("node", metric, value * 2.0)], true)[0].verdict, ClaimVerdict::NotReproduced);
    }
    // A ratio is still compared only as a ratio.
    assert_eq!(held(&[claim("bun/node", "throughput_ratio", 1.4)], true).len(), 1);
}

/// Only a ratio can be too large to be worth a number.
#[test]
fn a_plain_figure_is_shown_with_both_ends_of_its_interval() {
    let range = Claim { value: None, low: Some(26_000.0), ..claim("bun", "throughput_rps", 0.0) };
    let claims = [Claim { high: Some(30_000.0), ..range }];
    let mut audit = AuditRecord { machine_matches: true, ..self_test("trending", None, 1, &claims) };
    add_race(&mut audit, "race.jsonl", &Report::of(&race().record()).unwrap()).unwrap();
    let [one] = &audit.here[..] else { panic!("{:?}", audit.here) };
    let [here, low, high] = [one.here, one.low, one.high].map(|value| three_digits(value.unwrap()));
    for text in [terminal::audit(&audit, &WIDE), markdown(&audit)] {
        assert!(text.contains("26,000 to 30,000"), "{text}");
        assert!(text.contains(&format!("{here} ({low} to {high})")), "{text}");
    }
}

/// If the study names no scenario for a claim's run, the audit compares the claim with none and gives this reason.
#[test]
fn a_claim_is_held_against_no_scenario_that_it_is_not_about() {
    let with_row = |scenario: Option<&str>| Claim {
        row: Some("vpn-4".into()),
        scenario: scenario.map(Into::into),
        ..claim("bun/node", "throughput_ratio", 1.4)
    };
    assert_eq!(says(with_row(Some("closed-64"))).verdict, ClaimVerdict::Reproduced);
    let one = says(with_row(None));
    assert_eq!((one.verdict, one.scenario), (ClaimVerdict::NotTestable, None));
    assert_eq!(one.note.unwrap(), "the study names no scenario for its run vpn-4");
    // The number of connections must equal the published one, whether or not the claim names a scenario.
    for scenario in [None, Some("closed-64".to_owned())] {
        let of = |connections: f64| {
            let ratio = Claim { scenario: scenario.clone(), ..claim("bun/node", "throughput_ratio", 1.4) };
            let audit = audited(&[ratio, claim("", "connections", connections)], &race().record());
            (audit.here[0].verdict, audit.here[0].note.clone().unwrap_or_default())
        };
        assert_eq!(of(64.0).0, ClaimVerdict::Reproduced);
        let (verdict, why) = of(200.0);
        assert_eq!(verdict, ClaimVerdict::NotTestable);
        assert!(why.contains("200 connections"), "{why}");
    }
}

/// An open load answers only what was due, and a ladder's rungs leave out work. Neither can test a claim about a closed load.
#[test]
fn no_load_of_another_kind_stands_for_a_closed_one() {
    let (plain, mut record) = (claim("bun/node", "throughput_ratio", 1.4), race().record());
    let named = Claim { scenario: Some("closed-64".into()), ..plain.clone() };
    let latency = Claim { metric: "latency_p99_ratio".into(), ..named.clone() };
    let says = |claim: &Claim, record: &Record| {
        let one = audited(std::slice::from_ref(claim), record).here[0].clone();
        (one.verdict, one.note.unwrap_or_default())
    };
    let untestable = |why: &str| (ClaimVerdict::NotTestable, why.to_owned());
    let none = untestable("the study names no scenario for it, and no plain closed load was raced");
    record.plan.scenarios[0].traffic.cold = true;
    assert_eq!(says(&plain, &record), none);
    record.plan.scenarios[0].traffic.cold = false;
    record.plan.scenarios[0].ladder = Some(deadheat_record::Rung { of: "request".into(), place: 1 });
    assert_eq!(says(&plain, &record), none);
    assert_eq!(says(&named, &record).0, ClaimVerdict::Reproduced, "it was asked for by name");
    record.plan.scenarios[0].ladder = None;
    record.plan.scenarios[0].shape = Experiment::Open { connections: 64, rate_per_s: 2_000.0, poisson: true };
    assert_eq!(says(&plain, &record), none);
    let open = untestable("closed-64 is an open load: it answers as many requests as are due");
    assert_eq!(says(&named, &record), open);
    assert!(!says(&latency, &record).1.contains("open load"), "a latency under a rate is one");
}

/// A scenario for four cores that was scaled down to one core says nothing about four.
#[test]
fn a_scenario_that_was_scaled_down_tests_nothing() {
    let ratio = Claim { scenario: Some("closed-64".into()), ..claim("bun/node", "throughput_ratio", 9.0) };
    let why = |record: &Record| {
        let one = audited(std::slice::from_ref(&ratio), record).here[0].clone();
        (one.verdict, one.note.unwrap_or_default())
    };
    let mut record = race().record();
    assert_eq!(why(&record).0, ClaimVerdict::NotReproduced);
    let finding = deadheat_record::Finding::warn(
        "fewer-cores",
        "scenario `closed-64` asks for 4 cores and contenders have 1 here: it was scaled down to that",
        "race it on a machine with more cores",
    );
    // Older records have this finding instead.
    record.findings.push((None, finding));
    let older = "it asks for more cores than contenders had".to_owned();
    assert_eq!(why(&record), (ClaimVerdict::NotTestable, older));
    let limits = &mut record.plan.scenarios[0].limits;
    (limits.cpus, limits.asked_cpus) = (Some(1.0), Some(4.0));
    let asked = "it asks for 4 cores; contenders had 1".to_owned();
    assert_eq!(why(&record), (ClaimVerdict::NotTestable, asked));
}

#[test]
fn an_invalid_race_tests_nothing_and_another_studys_record_is_refused() {
    let mut record = Race { steal_share: 0.09, ..race() }.record();
    let audit = audited(&[claim("bun/node", "throughput_ratio", 0.5)], &record);
    assert_eq!(audit.here[0].verdict, ClaimVerdict::NotTestable);
    assert!(!audit.contradicts());
    record.plan.study = "another".into();
    let before = self_test("trending", None, 1, &[claim("bun/node", "throughput_ratio", 0.5)]);
    let mut audit = before.clone();
    let refused = add_race(&mut audit, "x", &Report::of(&record).unwrap()).unwrap_err();
    assert!(matches!(refused, AnalysisError::OtherStudy { .. }), "{refused}");
    assert_eq!(audit, before, "nothing of it is filled in");
}

#[test]
fn one_table_in_the_terminal_and_in_markdown() {
    let claims = [
        claim("bun", "throughput_rps", 58_200.0),
        claim("node", "throughput_rps", 41_900.0),
        claim("bun/node", "latency_p99_ratio", 2.0),
        claim("bun/node", "latency_p50_ratio", 0.2),
        claim("bun/php", "throughput_ratio", 2.0),
    ];
    let audit = audited(&claims, &race().record());
    insta::assert_snapshot!(terminal::audit(&audit, &WIDE));
    insta::assert_snapshot!(markdown(&audit));
}

fn generator(runs: &[f64], published: bool) -> GeneratorAudit {
    let mean = runs.iter().sum::<f64>() / runs.len().max(1) as f64;
    GeneratorAudit {
        name: "httpx".into(),
        command: "python httpx_load.py".into(),
        published,
        connections: 64,
        duration_s: 3.0,
        cpus: vec![1],
        runs_rps: runs.to_vec(),
        throughput_rps: (!runs.is_empty()).then_some(mean),
        low: (runs.len() > 1).then_some(mean * 0.97),
        high: (runs.len() > 1).then_some(mean * 1.03),
        server_share: Some(0.41),
        skipped: runs.is_empty().then(|| "there is no venv: run `make setup`".into()),
        beyond: vec![],
        text: String::new(),
    }
}

#[test]
fn a_generator_that_is_slower_than_what_was_published_cannot_have_driven_it() {
    let claims = [
        claim("bun", "throughput_rps", 58_200.0),
        claim("node", "throughput_rps", 510.0),
        claim("", "connections", 64.0),
    ];
    let concluded = |generator| {
        let mut audit = self_test("trending", None, 1, &claims);
        add_generator(&mut audit, generator);
        (audit.generators[0].text.clone(), audit.contradicts())
    };
    assert_eq!(concluded(generator(&[495.0, 500.0, 505.0], true)), (
        "reaches 500/s (485 to 515, 3 runs) here with 64 connections against a server that does nothing on core 1, and \
         cannot have driven 58,200/s on a machine like this one: that is 116 times as much".into(),
        true
    ));
    let (text, contradicts) = concluded(generator(&[90_000.0, 91_000.0], true));
    assert!(text.ends_with("; none of the published throughputs is beyond it") && !contradicts, "{text}");
    let (text, contradicts) = concluded(generator(&[100.0, 101.0], false));
    assert!(text.ends_with("; no published figure was measured with it") && !contradicts, "{text}");
    // If the null server used nine tenths of its cores, it was the limit, not the generator.
    let slow = |server_share| GeneratorAudit { server_share, ..generator(&[495.0, 500.0, 505.0], true) };
    let (text, contradicts) = concluded(slow(Some(0.93)));
    assert!(text.contains("the null server was the limit (93 % of its cores)") && !contradicts, "{text}");
    for share in [Some(0.89), None] {
        assert!(concluded(slow(share)).1, "{share:?}");
    }
    let (text, contradicts) = concluded(generator(&[], true));
    assert_eq!((text.as_str(), contradicts), ("not measured: there is no venv: run `make setup`", false));
    assert_eq!(published_connections(&claims), Some(64));
    assert_eq!(published_connections(&[claims[2].clone(), claim("", "connections", 9.0)]), None);
}

/// If the article's generator had more threads than this one has cores, the audit allows each thread the speed of a core here.
#[test]
fn a_generator_is_granted_the_threads_that_it_had() {
    let claims = [
        claim("bun", "throughput_rps", 201_346.62),
        claim("node", "throughput_rps", 80_333.19),
        claim("", "generator_threads", 12.0),
    ];
    let concluded = |generator| {
        let mut audit = self_test("compiled", None, 1, &claims);
        add_generator(&mut audit, generator);
        (audit.generators[0].beyond.clone(), audit.generators[0].text.clone())
    };
    let (beyond, text) = concluded(generator(&[60_000.0, 60_000.0], true));
    assert_eq!(beyond, Vec::<usize>::new(), "{text}");
    assert!(
        text.ends_with(
            "; none of the published throughputs is beyond it (for the article's 12 threads, \
             deadheat allows 12.0 times as much)"
        ),
        "{text}"
    );
    let (beyond, text) = concluded(generator(&[10_000.0, 10_000.0], true));
    assert_eq!(beyond, [0], "{text}");
    assert!(text.ends_with("allows 12.0 times as much, which is not enough)"), "{text}");
    // With as many cores as the article's generator had threads, there is no such allowance.
    let whole = GeneratorAudit { cpus: (0..12).collect(), ..generator(&[60_000.0, 60_000.0], true) };
    let (beyond, text) = concluded(whole);
    assert!(beyond == [0, 1] && !text.contains("allows"), "{beyond:?} {text}");
}

#[test]
fn behind_an_edge_cache_little_is_left_of_the_origins_difference() {
    let mut record = race().record();
    assert_eq!(Report::of(&record).unwrap().scenarios[0].edge_cache, None, "no hit rate is named");
    record.plan.claims = vec![claim("", "edge_cache_hit_rate", 0.92), claim("", "edge_latency_ms", 20.0)];
    let seen = Report::of(&record).unwrap();
    let cache = seen.scenarios[0].edge_cache.clone().unwrap();
    assert_eq!((cache.hit_rate, cache.edge_latency_ns, cache.users.len()), (0.92, 20_000_000, 3));
    for user in &cache.users {
        assert_eq!(user.p50_ns, 20_000_000, "a hit");
        assert!(user.p95_ns > 20_000_000 && user.p95_ns < 20_000_000 + user.origin_p50_ns);
        assert!(
            user.p99_ns < 20_000_000 + user.origin_p95_ns && user.p99_ns > 20_000_000 + user.origin_p50_ns
        );
        let mean = 20e6 + 0.08 * user.origin_mean_ns as f64;
        assert!((user.mean_ns as f64 - mean).abs() < 2.0);
    }
    let text = terminal::render(&seen, &WIDE);
    assert!(
        text.contains("92 % hits, which take 20.0 ms, and misses, which also wait for the origin"),
        "{text}"
    );
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    let value = serde_json::to_value(Report::of(&record).unwrap()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value));
    assert_eq!(value["scenarios"][0]["edge_cache"]["hit_rate"], 0.92);
    // The hit rate that the user asks for overrides the study's hit rate.
    record.plan.edge_hit_rate = Some(0.5);
    let asked = Report::of(&record).unwrap();
    assert_eq!(asked.scenarios[0].edge_cache.as_ref().unwrap().hit_rate, 0.5);
    assert!(asked.reproduce.contains("--hit-rate 0.5"), "{}", asked.reproduce);
    assert!(terminal::render(&asked, &WIDE).contains("50 % hits, which take 20.0 ms"));
    record.plan.claims.clear();
    assert!(Report::of(&record).unwrap().scenarios[0].edge_cache.is_some(), "also where the study has none");
}

/// A race of cold starts, or of values that contenders measure themselves. It has one value per epoch and no load.
fn single(shape: Experiment, metric: Metric, disturbed: usize) -> Record {
    let mut racers = vec![Racer::new("node", 10_000.0), Racer::new("bun", 14_000.0)];
    racers[1].cold_start_ns = 20_000_000;
    let mut record = Race {
        shape: Experiment::Closed { connections: 1 },
        metrics: vec![metric],
        epochs: 20,
        ..Race::of(racers)
    }
    .record();
    record.plan.scenarios[0].shape = shape;
    for (at, epoch) in record.epochs.iter_mut().enumerate() {
        epoch.rounds.truncate(1);
        epoch.rounds[0].slices.clear();
        epoch.rounds[0].dropped = (at < disturbed).then(|| "steal 9 %".into());
        for part in &mut epoch.contenders {
            part.latency = deadheat_record::EncodedHistogram::default();
            part.measured = Some(1.5e9 - 1e9 * part.contender as f64 + 1e6 * at as f64);
        }
    }
    for one in &mut record.plan.contenders {
        one.measures.insert("serialize".into(), "x".into());
        one.artefact_bytes = Some(5 << 20);
    }
    record
}

#[test]
fn fresh_starts_are_judged_once_and_disturbed_ones_left_out() {
    let record = single(Experiment::Starts { starts: 20 }, Metric::ColdStart, 0);
    let seen = Report::of(&record).unwrap();
    let result = &seen.scenarios[0];
    let pair = &result.comparisons[0];
    assert_eq!((pair.verdict, pair.epochs, pair.metric), (VerdictWord::Faster, 20, Metric::ColdStart));
    assert!(pair.ratio.unwrap() < 0.5 && pair.high.unwrap() < 0.5);
    assert_eq!(result.results[1].cold_starts_ns.len(), 20);
    assert_eq!(result.results[1].throughput_rps, None);
    insta::assert_snapshot!(terminal::render(&seen, &WIDE));
    let fewer = Report::of(&single(Experiment::Starts { starts: 20 }, Metric::ColdStart, 5)).unwrap();
    let result = &fewer.scenarios[0];
    assert_eq!((result.results[0].cold_starts_ns.len(), result.comparisons[0].epochs), (15, 15));
    let text = terminal::render(&fewer, &WIDE);
    assert!(text.contains("; 15 epochs, 5 more left out, "), "{text}");
    let audit = audited(&[claim("bun/node", "cold_start_ratio", 0.43)], &record);
    assert_eq!((audit.here[0].verdict, audit.here[0].low), (ClaimVerdict::Reproduced, pair.low));
}

#[test]
fn what_contenders_measure_themselves_is_compared_like_anything_else() {
    let record = single(Experiment::Measure { measure: "serialize".into() }, Metric::Measure, 0);
    let seen = Report::of(&record).unwrap();
    let pair = &seen.scenarios[0].comparisons[0];
    assert_eq!((pair.verdict, pair.metric), (VerdictWord::Faster, Metric::Measure));
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    let value = serde_json::to_value(Report::of(&record).unwrap()).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value));
    assert_eq!(value["scenarios"][0]["comparisons"][0]["metric"], "measure");
    // The article reports 1.28 s for bun and 1.95 s for node. Here bun takes a third of node's time.
    let claims = [claim("bun", "serialize_million_s", 1.28), claim("node", "serialize_million_s", 1.95)];
    let audit = audited(&claims, &record);
    assert_eq!(audit.here[0].verdict, ClaimVerdict::NotReproduced);
    // A contender without the command does not take part in the scenario.
    let mut record = record;
    record.plan.contenders[1].measures.clear();
    assert_eq!(record.racing("closed-64"), [0]);
}
