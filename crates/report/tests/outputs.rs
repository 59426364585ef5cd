//! The outputs made from the document: page, Markdown, CSV, figures, and files for trackers.

use std::time::Instant;

use crate::fixture::{Race, Racer, joined};
use deadheat_analysis::number::three_digits;
use deadheat_analysis::{GateWord, Report};
use deadheat_record::{
    Collector, CollectorKind, CollectorPass, ExternalReading, Finding, Method, Metric, Objective, Pauses,
    Plan, Record, Typed, Usage,
};
use deadheat_report::{Style, bencher, benchmark_action, csv, html, json, markdown, svg, terminal};

fn two() -> Race {
    Race {
        metrics: vec![Metric::Throughput, Metric::P50],
        ..Race::of(vec![Racer::new("node", 11_400.0), Racer::new("bun", 17_300.0)])
    }
}

fn hostile() -> Race {
    let names = ["</script><img src=x onerror=a()>", "=1+1|`x`\u{202e}\u{1b}[31m"];
    Race { racers: names.iter().map(|name| Racer::new(name, 11_000.0)).collect(), ..two() }
}

/// The document embedded in a page.
fn embedded(page: &str) -> Report {
    let (_, rest) = page.split_once("id=\"document\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_page_holds_the_document_whatever_names_are() {
    for race in [two(), hostile()] {
        let record = race.record();
        let document = Report::of(&record).unwrap();
        let page = html(&document, None).unwrap();
        assert_eq!(embedded(&page), document);
        assert!(!page.contains("<img"));
        assert_eq!(page.matches("</script>").count(), 3);
    }
}

#[test]
fn the_document_says_what_the_page_shows() {
    let document = Report::of(&two().record()).unwrap();
    let scenario = &document.scenarios[0];
    assert!(scenario.rankings[0].headline.starts_with("bun is 1.5"), "{}", scenario.rankings[0].headline);
    for result in &scenario.results {
        let at = |q: f64| result.latency_curve.iter().find(|(one, _)| *one == q).map(|(_, ns)| *ns);
        assert_eq!((at(0.5), at(0.99)), (result.latency_ns.p50, result.latency_ns.p99));
        assert!(at(0.5).is_some() && result.latency_curve.is_sorted());
        let (last, _) = result.latency_curve.last().unwrap();
        assert!(result.outcomes.ok as f64 * (1.0 - last) >= 99.9, "100 requests lie beyond");
        assert_eq!(result.epochs.len(), 6);
        let mean = result.epochs.iter().filter_map(|one| one.throughput_rps).sum::<f64>() / 6.0;
        assert!((mean - result.throughput_rps.unwrap()).abs() < 1e-6);
    }
    let reproduce = &document.reproduce;
    assert!(reproduce.starts_with("deadheat race studies/trending --only node,bun "), "{reproduce}");
    assert!(reproduce.contains(" --seed 42 "), "{reproduce}");
}

#[test]
fn what_was_typed_beside_a_study_is_typed_again() {
    let again = |change: &dyn Fn(&mut Plan)| {
        let mut record = two().record();
        change(&mut record.plan);
        Report::of(&record).unwrap().reproduce
    };
    let loaded = again(&|plan| {
        let metrics = vec![Metric::P99, Metric::Cpu];
        let (connections, rate_per_s) = (Some(9), Some(700.0));
        let (slice_ns, measured_ns) = (Some(50_000_000), Some(1_000_000_000));
        plan.typed = Typed { connections, rate_per_s, metrics, slice_ns, measured_ns, objective: None };
    });
    let options =
        " --scenario closed-64 -c 9 -r 700 --metric p99,cpu --slice 50ms --measure 1s --profile full ";
    assert!(loaded.contains(options), "{loaded}");
    let sought = again(&|plan| {
        plan.typed.objective = Some(Objective { quantile: 0.999, limit_ns: 2_500_000 });
    });
    assert!(sought.contains(" --scenario closed-64 --slo 'p99.9 < 2500us' --profile full "), "{sought}");
    assert!(sought.contains(" --timeout 5s --ready-timeout 10s "), "{sought}");
    let usual = again(&|plan| {
        (plan.method.timeout_ns, plan.method.ready_ns) = (Method::TIMEOUT_NS, Method::READY_NS);
    });
    assert!(usual.contains(" --scenario closed-64 --profile full ") && !usual.contains("timeout"), "{usual}");
}

#[test]
fn a_study_is_raced_again_by_its_folder_whatever_its_name() {
    let again = |work: &str| {
        let mut record = two().record();
        record.plan.study = Plan::AD_HOC.into();
        record.plan.work = work.into();
        Report::of(&record).unwrap().reproduce
    };
    for work in ["studies/trending/work", "/tmp/deadheat-1000-0a1b2c3d"] {
        let command = again(work);
        assert!(command.starts_with("deadheat race studies/trending --only node,bun "), "{work}: {command}");
    }
    for work in ["/home/a/.cache/deadheat/ad-hoc-77", "/tmp/deadheat-1000-ad-hoc-77"] {
        let command = again(work);
        assert!(
            command.starts_with("deadheat race --url ") && command.contains(" -n node "),
            "{work}: {command}"
        );
    }
}

#[test]
fn every_gate_says_what_it_read_and_what_is_over_a_limit_is_a_finding() {
    let noisy = Race { steal_share: 0.02, ..two() };
    for (race, state) in [(two(), GateWord::Pass), (noisy, GateWord::Warn)] {
        let scenario = Report::of(&race.record()).unwrap().scenarios.remove(0);
        let gate = scenario.gates.iter().find(|one| one.code == "steal").unwrap();
        assert_eq!(gate.state, state);
        assert!(gate.reading.contains("% of the time of the race's cores taken"), "{}", gate.reading);
        let found = scenario.findings.iter().any(|one| one.code == "steal");
        assert_eq!(found, state != GateWord::Pass);
        let about = |code: &str| scenario.gates.iter().filter(|one| one.code == code).count();
        assert_eq!([about("not-server-bound"), about("mismatch"), about("few-epochs")], [2, 2, 1]);
    }
}

#[test]
fn markdown_of_a_race() {
    insta::assert_snapshot!(markdown(&Report::of(&two().record()).unwrap(), None));
}

#[test]
fn a_record_of_before_has_no_parts_and_no_switches() {
    let mut record = two().record();
    for part in record.epochs.iter_mut().flat_map(|epoch| &mut epoch.contenders) {
        let Usage { cpu_ns, cpu_source, pss_bytes, peak_pss_bytes, processes, .. } = part.usage.clone();
        part.usage = Usage { cpu_ns, cpu_source, pss_bytes, peak_pss_bytes, processes, ..Usage::default() };
    }
    for one in record.pilots.iter_mut().flat_map(|pilot| &mut pilot.contenders) {
        (one.instructions_per_request, one.instructions_source) = (None, None);
    }
    let text = json(&Report::of(&record).unwrap()).unwrap();
    for key in ["user_", "system_", "switches", "instructions", "\"memory\""] {
        assert!(!text.contains(key), "{key} is left out, and is not null");
    }
    let document: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(document.record, record);
    let row = "| `bun` | 17,200 | 3.70 ms | 5.44 ms | 56.9 µs | 61.0 MiB |";
    assert!(markdown(&document, None).contains(row), "{}", markdown(&document, None));
}

#[test]
fn many_pairs_are_folded_but_for_those_with_the_baseline() {
    let racers =
        |count: i32| (0..count).map(|n| Racer::new(&format!("c{n}"), 9_000.0 * 1.1_f64.powi(n))).collect();
    let text =
        |count| markdown(&Report::of(&Race { racers: racers(count), ..two() }.record()).unwrap(), None);
    let many = text(5);
    let (open, folded) = many.split_once("<details><summary>16 more comparisons</summary>\n\n|").unwrap();
    let rows = |text: &str| text.lines().filter(|line| line.contains(" / ")).count();
    assert_eq!((rows(open), rows(folded)), (4, 16));
    assert!(
        open.lines().filter(|line| line.contains(" / ")).all(|line| line.contains("/ `c0` | req/s |")),
        "{open}"
    );
    assert!(folded.contains("|\n\n</details>\n"), "{folded}");
    assert!(!text(4).contains("more comparisons"), "12 pairs in two metrics stand open");
}

#[test]
fn hostile_names_stay_text_everywhere() {
    let document = Report::of(&watched(&hostile())).unwrap();
    let text = markdown(&document, None);
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
    // Hostile text is harmless in the code block, so only the prose must not contain it.
    let (prose, code) = text.split_once("```sh\n").unwrap();
    assert!(!prose.contains("<img") && !prose.contains("</script"), "{prose}");
    assert_eq!(code.matches("```").count(), 1, "{code}");
    let [results, comparisons, epochs, collectors] = csv(&document).unwrap();
    assert!(results.contains("'=1+1") && comparisons.contains("'=1+1") && epochs.contains("'=1+1"));
    assert!(collectors.contains("'=1+1"), "{collectors}");
    for table in [&results, &comparisons, &epochs, &collectors] {
        assert!(!table.contains(['\u{202e}', '\u{1b}']) && table.contains("\\u{1b}[31m"), "{table}");
    }
    for (name, figure) in svg(&document).unwrap() {
        assert!(!figure.contains("<img") && !figure.contains(['\u{202e}', '\u{1b}']), "{name}");
    }
}

/// A record with garbage-collector logs: one contender has two single pauses and a sum of eight, the other has none.
fn watched(race: &Race) -> Record {
    let mut record = race.record();
    for (at, kind) in [(0, CollectorKind::V8), (1, CollectorKind::JavaScriptCore)] {
        let contender = &mut record.plan.contenders[at];
        contender.collector = Some(Collector { kind, env: [("X".to_owned(), "1".to_owned())].into() });
        let mut pauses = Pauses::default();
        if at == 0 {
            [1_500_000, 2_250_000].into_iter().for_each(|ns| pauses.add(ns));
            pauses.add_sum(8, 1_250_000, 400_000);
        }
        let (contender, log) = (contender.name.clone(), format!("logs/{at}.log").into());
        let scenario = record.plan.scenarios[0].name.clone();
        let (load_ns, requests, external) = (2_500_000_000, 25_000, ExternalReading::default());
        let pass = CollectorPass { scenario, contender, kind, load_ns, external, requests, pauses, log };
        record.collectors.push(pass);
    }
    record
}

#[test]
fn pauses_are_shown_for_each_second_of_load() {
    let record = watched(&two());
    let document = Report::of(&record).unwrap();
    let [v8, jsc] = &document.scenarios[0].collectors[..] else { panic!("{:?}", document.scenarios[0]) };
    assert_eq!((v8.contender.as_str(), v8.kind, v8.pauses), ("node", CollectorKind::V8, 10));
    assert_eq!((v8.pauses_per_s, v8.paused_ns_per_s, v8.longest_ns), (4.0, 2_000_000.0, 2_250_000));
    assert_eq!((jsc.pauses, jsc.paused_ns_per_s, jsc.requests_per_s), (0, 0.0, 10_000.0));
    let text = markdown(&document, None);
    assert!(
        text.contains(
            "| `node` | v8 | 4.00 | 2.00 ms | 2.25 ms |\n| `bun` | javascriptcore | 0 | 0 ns | 0 ns |"
        ),
        "{text}"
    );
    let text =
        terminal::render(&Report::of(&record).unwrap(), &Style { color: false, width: 80, unicode: true });
    let row = text.lines().find(|line| line.contains(" v8 ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["node", "v8", "10", "4.00", "2.00", "ms", "2.25", "ms"], "{text}");
    assert!(text.contains("from a separate diagnostic pass"), "{text}");
    assert!(document.reproduce.contains(" --collectors 0s "), "{}", document.reproduce);
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../record/schema/record-1.schema.json")).unwrap();
    let value = serde_json::to_value(&document).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value));
}

#[test]
fn tables_have_a_row_for_everything() {
    let document = Report::of(&two().record()).unwrap();
    let lines = csv(&document).unwrap().map(|table| table.lines().count());
    assert_eq!(lines, [1 + 2, 1 + 2, 1 + 2 * 6, 1]);
    let [results, ..] = csv(&document).unwrap();
    let mut rows = results.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (titles, row) = (rows.next().unwrap(), rows.next().unwrap());
    let of = |title: &str| row[titles.iter().position(|one| *one == title).unwrap()].parse::<f64>().unwrap();
    let (user, system) = (of("user_us_per_request"), of("system_us_per_request"));
    assert!(user > system && (user + system - of("cpu_us_per_request")).abs() < 1e-9);
    assert_eq!(of("instructions_per_request"), 152_500.0);
    assert!(of("switches_per_request") > 4.0 * of("involuntary_switches_per_request"));
    assert_eq!(of("rss_bytes"), f64::from(61 << 20));
    let [.., collectors] = csv(&Report::of(&watched(&two())).unwrap()).unwrap();
    assert_eq!(collectors.lines().count(), 1 + 2, "{collectors}");
}

#[test]
fn figures_are_drawn_of_the_documents_numbers() {
    let document = Report::of(&two().record()).unwrap();
    let figures = svg(&document).unwrap();
    let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ratios-closed-64-throughput.svg",
            "ratios-closed-64-p50.svg",
            "epochs-closed-64-throughput.svg",
            "epochs-closed-64-p50.svg",
            "latency-closed-64.svg",
            "time-closed-64.svg",
            "warm-up-closed-64.svg",
            "cpu-closed-64.svg",
            "cpu-parts-closed-64.svg",
            "memory-closed-64.svg",
            "memory-time-closed-64.svg",
            "cold-start-closed-64.svg",
        ]
    );
    let one = &document.scenarios[0].comparisons[0];
    let circles = [0, 2].map(|at: usize| figures[at].1.matches("<circle").count());
    assert_eq!(circles, [1, one.epoch_ratios.len()]);
    assert!(figures[0].1.contains(&format!("{:.2} (", one.ratio.unwrap())), "{}", figures[0].1);
    assert!(figures.iter().all(|(_, text)| text.starts_with("<svg ") && text.trim_end().ends_with("</svg>")));
    // The same document always gives the same figures, so that they can be committed.
    assert_eq!(svg(&document).unwrap(), figures);
}

#[test]
fn trackers_get_figures_with_their_intervals() {
    let document = Report::of(&two().record()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&bencher(&document).unwrap()).unwrap();
    let of = &value["closed-64/bun"]["throughput"];
    let figure = &document.scenarios[0].results[1].figures[0];
    assert_eq!(of["value"].as_f64(), Some(figure.value));
    assert_eq!((of["lower_value"].as_f64(), of["upper_value"].as_f64()), (figure.low, figure.high));
    let [bigger, smaller] = benchmark_action(&document).unwrap();
    let count = |text: &str| serde_json::from_str::<Vec<serde_json::Value>>(text).unwrap().len();
    assert_eq!([count(&bigger), count(&smaller)], [2, 2 * 5]);
    // A rate is no ratio: its interval keeps its numbers, however large they are.
    let ends = |at: Option<f64>| three_digits(at.unwrap());
    let extra = format!("95 % interval {} to {}", ends(figure.low), ends(figure.high));
    assert!(figure.low > Some(9_999.0) && bigger.contains(&extra), "{extra}: {bigger}");
}

/// The names of all benchmarks in Bencher's format, and of all entries in the other format.
fn tracked(record: &Record) -> [Vec<String>; 2] {
    let document = Report::of(record).unwrap();
    let all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&bencher(&document).unwrap()).unwrap();
    let entries = |text: &String| serde_json::from_str::<Vec<serde_json::Value>>(text).unwrap();
    let entries = benchmark_action(&document).unwrap().iter().flat_map(entries).collect::<Vec<_>>();
    let names = entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned());
    [all.keys().cloned().collect(), names.collect()]
}

#[test]
fn trackers_do_not_get_what_a_finding_took_away() {
    let only_node = |record: &Record| {
        let [names, entries] = tracked(record);
        assert_eq!(names, ["closed-64/node"]);
        assert!(!entries.is_empty() && entries.iter().all(|one| one.starts_with("closed-64/node: ")));
    };
    let mut race = two();
    race.racers[1].wrong = 400;
    only_node(&race.record());
    // A finding about a contender without a scenario applies to all scenarios.
    let mut record = two().record();
    record.findings.push((None, Finding::invalid("x", "y", "z").about("bun")));
    only_node(&record);
    // A finding about some metrics leaves the other metrics.
    let metrics = Metric::OF_LOADS.into_iter().filter(|one| !one.is_tail()).collect();
    record.findings = vec![(None, Finding { metrics, ..Finding::invalid("send-lag", "y", "z") })];
    let text = bencher(&Report::of(&record).unwrap()).unwrap();
    assert!(text.contains("\"latency-p99\"") && !text.contains("\"latency\""), "{text}");
    let disturbed = Race { dropped_rounds: 3, ..two() }.record();
    assert_eq!(
        tracked(&disturbed).concat(),
        Vec::<String>::new(),
        "a finding without a contender applies to all"
    );
    // A warning removes nothing.
    let mut record = two().record();
    record.findings.push((None, Finding::warn("x", "y", "z")));
    assert_eq!(tracked(&record)[0].len(), 2);
}

#[test]
fn trackers_have_a_name_of_its_own_for_everything() {
    let names = ["c", "b/c", "b%2Fc"];
    let race = || Race { racers: names.iter().map(|name| Racer::new(name, 11_000.0)).collect(), ..two() };
    let record = joined(["a/b", "a"].map(|scenario| (scenario.to_owned(), race().record())));
    let [benchmarks, mut entries] = tracked(&record);
    let wanted = ["a/b/c", "a/b/b%2Fc", "a/b/b%252Fc", "a/c", "a/b%2Fc", "a/b%252Fc"];
    assert_eq!(benchmarks, wanted);
    let count = entries.len();
    entries.sort();
    entries.dedup();
    assert_eq!(entries.len(), count);
}

/// The time limit is loose, because machines and builds differ. Run with `--nocapture` to see the time.
#[test]
fn the_page_of_a_long_race_is_written_soon() {
    let racers = (0..7).map(|n| Racer::new(&format!("contender-{n}"), 9_000.0 * 1.1_f64.powi(n))).collect();
    let record = Race { racers, epochs: 30, rounds: 20, ..two() }.record();
    let begun = Instant::now();
    let document = Report::of(&record).unwrap();
    let page = html(&document, None).unwrap();
    println!("{} bytes in {:?}", page.len(), begun.elapsed());
    assert!(begun.elapsed().as_secs() < 20 && page.len() > json(&document).unwrap().len() / 4);
}
