//! Markdown, tables and terminal output for each kind of scenario: each shows its own values, and loses none of them.

use crate::fixture::{Race, Racer, behind_a_cache, joined};
use deadheat_analysis::Report;
use deadheat_record::{
    Axis, CollectorKind, CollectorPass, ContenderEpoch, Experiment, ExternalReading, Metric, Objective,
    Pauses, PeakEnd, PeakSeen, Record, Rung, SweepPoint, Throttling,
};
use deadheat_report::{Style, bencher, csv, markdown, terminal};

const WIDE: Style = Style { color: false, width: 160, unicode: true };

fn two() -> Race {
    Race::of(vec![
        Racer::new("node", 11_400.0),
        Racer { cold_start_ns: 20_000_000, ..Racer::new("bun", 17_300.0) },
    ])
}

/// A race without a load: each epoch has one value for each contender.
fn single(shape: &Experiment, metric: Metric) -> Record {
    let mut record = Race { metrics: vec![metric], ..two() }.record();
    record.plan.scenarios[0].shape = shape.clone();
    for (at, epoch) in record.epochs.iter_mut().enumerate() {
        epoch.rounds.truncate(1);
        epoch.rounds[0].slices.clear();
        for part in &mut epoch.contenders {
            let (contender, cold_start_ns) = (part.contender, part.cold_start_ns);
            *part = ContenderEpoch { contender, ..ContenderEpoch::default() };
            match shape {
                Experiment::Measure { .. } => {
                    part.measured = Some(1.5e9 - 7e8 * contender as f64 + 1e6 * at as f64);
                }
                _ => part.cold_start_ns = cold_start_ns,
            }
        }
    }
    for one in &mut record.plan.contenders {
        if let Experiment::Measure { measure } = shape {
            one.measures.insert(measure.clone(), "x".into());
        }
        one.artefact_bytes = shape.starts().is_some().then_some(5 << 20);
    }
    record
}

fn serialize() -> Experiment {
    Experiment::Measure { measure: "serialize".into() }
}

/// The cells of the Markdown line that begins with this contender.
fn cells(text: &str, contender: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(&format!("| `{contender}` |")));
    let cells = line
        .unwrap_or_else(|| panic!("no {contender} in {text}"))
        .split('|')
        .map(|cell| cell.trim().to_owned());
    cells.filter(|cell| !cell.is_empty()).collect()
}

/// The values of a contender in the column with this title, line by line.
fn column(table: &str, title: &str, contender: &str) -> Vec<String> {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let place =
        titles.iter().position(|one| *one == title).unwrap_or_else(|| panic!("no {title} in {titles:?}"));
    lines.filter(|cells| cells[1] == contender).map(|cells| cells[place].to_owned()).collect()
}

#[test]
fn fresh_starts_have_their_figures_and_no_others() {
    let mut record = single(&Experiment::Starts { starts: 6 }, Metric::ColdStart);
    // One start took much longer, which does not change the median.
    let longest = record.epochs.iter_mut().flat_map(|epoch| &mut epoch.contenders);
    longest.filter(|part| part.contender == 1).max_by_key(|part| part.cold_start_ns).unwrap().cold_start_ns =
        60_000_000;
    let document = Report::of(&record).unwrap();
    let text = markdown(&document, None);
    assert!(
        text.contains("| contender | cold start | geometric mean | 95 % interval | starts | artefact |\n"),
        "{text}"
    );
    let row = cells(&text, "bun");
    assert_eq!([&row[1], &row[2], &row[4], &row[5]], ["20.5 ms", "24.5 ms", "6", "5.00 MiB"], "{text}");
    assert!(row[3].starts_with("15.") && row[3].contains(" ms to 3"), "{text}");
    let [results, _, epochs, _] = csv(&document).unwrap();
    assert_eq!(column(&results, "artefact_bytes", "bun"), [(5 << 20).to_string()]);
    let starts = column(&epochs, "cold_start_ns", "bun");
    assert_eq!((starts.len(), starts[0].as_str()), (6, "20150000"));
}

#[test]
fn a_measure_keeps_its_number() {
    let mut record = single(&serialize(), Metric::Measure);
    record.epochs[1].rounds[0].dropped = Some("steal 9 %".into());
    let document = Report::of(&record).unwrap();
    let text = markdown(&document, None);
    let about = "serialize as each measures it itself, a fresh process each time; 5 epochs, 1 more left out";
    assert!(text.lines().any(|line| line == about), "{text}");
    assert!(text.contains("| contender | measured | 95 % interval |\n|---|--:|--:|\n"), "{text}");
    assert_eq!([&cells(&text, "node")[1], &cells(&text, "bun")[1]], ["1.50 s", "803 ms"], "{text}");
    let [results, _, epochs, _] = csv(&document).unwrap();
    let measured: f64 = column(&results, "measured", "node")[0].parse().unwrap();
    assert!((measured / 1.5028e9 - 1.0).abs() < 1e-4, "{measured}");
    assert_eq!(column(&epochs, "measured", "node")[..2], ["1500000000", "1501000000"]);
    assert_eq!(column(&epochs, "left_out", "node")[..3], ["false", "true", "false"]);
    let mut never_started = document.clone();
    for one in
        never_started.scenarios.iter_mut().flat_map(|one| &mut one.results).flat_map(|one| &mut one.epochs)
    {
        one.cold_start_ns = 0;
    }
    let [_, _, epochs, _] = csv(&never_started).unwrap();
    assert_eq!(column(&epochs, "cold_start_ns", "node")[..2], ["", ""]);
    let tracked: serde_json::Value = serde_json::from_str(&bencher(&document).unwrap()).unwrap();
    let of = &tracked["closed-64/bun"];
    assert_eq!(of.as_object().unwrap().keys().collect::<Vec<_>>(), ["measure"]);
    assert!(of["measure"]["lower_value"].as_f64() < of["measure"]["value"].as_f64(), "{of}");
}

#[test]
fn epochs_that_do_not_count_are_left_out_of_their_number() {
    let lines = |record: &Record| {
        let text = markdown(&Report::of(record).unwrap(), None);
        text.lines().filter(|line| line.contains("64 connections; ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut record = two().record();
    assert_eq!(lines(&record), ["closed load, 64 connections; 6 epochs"]);
    record.epochs[1].rounds.iter_mut().for_each(|round| round.dropped = Some("steal 9 %".into()));
    assert_eq!(lines(&record), ["closed load, 64 connections; 5 epochs, 1 more left out"]);
    record.ended.clear();
    assert_eq!(lines(&record), ["closed load, 64 connections; 5 epochs, 1 more left out, unfinished"]);
    // At the points of a sweep, too.
    let mut record = whole();
    let of_point = |epoch: &&mut deadheat_record::Epoch| epoch.scenario == "more/connections=8";
    let epoch = record.epochs.iter_mut().find(of_point).unwrap();
    epoch.rounds.iter_mut().for_each(|round| round.dropped = Some("steal 9 %".into()));
    let text = markdown(&Report::of(&record).unwrap(), None);
    let point = text.lines().find(|line| line.starts_with("| 8 | `node` |") && line.contains("baseline"));
    assert!(point.unwrap().ends_with(" | 5 epochs, 1 more left out |"), "{text}");
}

#[test]
fn the_name_of_a_measure_is_text() {
    let measure = "a|`b`<i>".to_owned();
    let text =
        markdown(&Report::of(&single(&Experiment::Measure { measure }, Metric::Measure)).unwrap(), None);
    assert!(text.contains("\na&#124;&#96;b&#96;&#60;i&#62; as each measures it itself"), "{text}");
}

#[test]
fn a_peak_has_no_latencies_and_an_open_load_what_it_kept_up_with() {
    let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
    let shape = Experiment::Peak { connections: 64, objective };
    let mut record = Race { metrics: vec![Metric::Peak], shape, ..two() }.record();
    for part in record.epochs.iter_mut().flat_map(|epoch| &mut epoch.contenders) {
        let rate_per_s = [9_100.0, 14_000.0][part.contender];
        let (low_per_s, high_per_s) = (Some(rate_per_s * 0.98), Some(rate_per_s * 1.02));
        part.peak = Some(PeakSeen { end: PeakEnd::Found, rate_per_s, low_per_s, high_per_s, trials: 17 });
    }
    let text = markdown(&Report::of(&record).unwrap(), None);
    assert!(
        text.contains(
            "| contender | peak/s | CPU/req | user + system (CPU time) | instructions/req | switches/req |"
        ),
        "{text}"
    );
    assert_eq!(cells(&text, "bun")[1], "14,000");
    let shape = Experiment::Open { connections: 64, rate_per_s: 20_000.0, poisson: true };
    let text = markdown(&Report::of(&Race { shape, ..two() }.record()).unwrap(), None);
    assert!(
        text.contains("| contender | req/s | of offered | p50 | p99 | CPU/req | user + system (CPU time) |"),
        "{text}"
    );
}

/// The scenario limits each contender to one core, and every output shows the effect.
#[test]
fn a_quota_is_told_with_what_it_did() {
    let mut race = two();
    race.racers[1].timeouts = 2;
    let mut record = race.record();
    let plain = markdown(&Report::of(&record).unwrap(), None);
    assert!(!plain.contains("was limited to"), "{plain}");
    let limits = &mut record.plan.scenarios[0].limits;
    (limits.cpus, limits.memory_bytes) = (Some(1.0), Some(512 << 20));
    for part in record.epochs.iter_mut().flat_map(|epoch| &mut epoch.contenders) {
        part.throttled = Some(Throttling { periods: 40, ns: 300_000_000 });
        part.usage.processes = 3;
    }
    let document = Report::of(&record).unwrap();
    let text = markdown(&document, None);
    let (_, quota) = text.split_once("\nEach contender was limited to 1 core and 512 MiB:\n").unwrap();
    assert!(
        quota.starts_with(
            "\n| contender | processes | of quota | throttled periods | timeouts | slowest | received |\n"
        ),
        "{quota}"
    );
    let row = cells(quota, "bun");
    assert_eq!([&row[1], &row[3], &row[4]], ["3", "240", "12"], "{quota}");
    assert!(row[2].starts_with("98") && row[5].ends_with(" ms"), "{quota}");
    assert!(row[6].starts_with("4.") && row[6].ends_with(" MiB/s"), "{quota}");
    let shown = terminal::render(&Report::of(&record).unwrap(), &WIDE);
    let (_, below) = shown.split_once("each contender was limited to 1 core and 512 MiB\n").unwrap();
    let line = below.lines().nth(1).unwrap();
    assert_eq!(line.split_whitespace().take(2).collect::<Vec<_>>(), ["bun", "3"], "{shown}");
    for cell in &row[2..] {
        assert!(line.contains(cell), "{cell} in {line}");
    }
    let [results, ..] = csv(&document).unwrap();
    let of = |title: &str| column(&results, title, "bun").remove(0).parse::<f64>().unwrap();
    assert_eq!([of("processes"), of("throttled_periods"), of("throttled_ns")], [3.0, 240.0, 1.8e9]);
    assert_eq!(of("timeouts"), 12.0);
    assert!((of("cpu_share") - 0.98).abs() < 1e-6 && of("latency_max_ns") > of("latency_p99_ns"));
    let per_answer = of("received_bytes_per_s") / of("throughput_rps");
    assert!((per_answer / 250.0 - 1.0).abs() < 0.01, "{per_answer}");
}

/// A record with a ladder of two rungs, a sweep over four numbers of connections, a cache, and collector logs of three scenarios.
fn whole() -> Record {
    let loads = [
        ("nothing", 30_000.0, 64),
        ("json", 15_000.0, 64),
        ("more/connections=1", 3_000.0, 1),
        ("more/connections=8", 9_800.0, 8),
        ("more/connections=64", 11_400.0, 64),
        ("more/connections=512", 10_900.0, 512),
    ];
    let each = loads.into_iter().zip(1..).map(|((name, rate, connections), at)| {
        let racers = vec![Racer::new("node", rate), Racer::new("bun", 1.4 * rate)];
        let shape = Experiment::Closed { connections };
        let mut record = Race { shape, rounds: 4, seed: u64::from(at), ..Race::of(racers) }.record();
        let plan = &mut record.plan.scenarios[0];
        if name.starts_with("more") {
            let value = f64::from(connections);
            plan.sweep = Some(SweepPoint { of: "more".into(), axis: Axis::Connections, value });
        } else {
            plan.ladder = Some(Rung { of: "request".into(), place: at });
        }
        (name.to_owned(), record)
    });
    let mut record = joined(each);
    behind_a_cache(&mut record);
    for scenario in ["json", "more/connections=8", "more/connections=64"] {
        for (contender, kind) in [("node", CollectorKind::V8), ("bun", CollectorKind::JavaScriptCore)] {
            let mut pauses = Pauses::default();
            [1_500_000, 2_250_000].into_iter().for_each(|ns| pauses.add(ns));
            record.collectors.push(CollectorPass {
                scenario: scenario.into(),
                contender: contender.into(),
                kind,
                load_ns: 2_500_000_000,
                external: ExternalReading::default(),
                requests: 25_000,
                pauses,
                log: "x.log".into(),
            });
        }
    }
    record
}

#[test]
fn sweeps_ladders_and_the_cache_are_in_markdown() {
    let text = markdown(&Report::of(&whole()).unwrap(), None);
    // The points of a sweep have no separate sections.
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(headings, ["### `nothing`", "### `json`", "### `more`", "### Ladder `request`"]);
    insta::assert_snapshot!(text);
}

#[test]
fn what_collectors_did_at_a_sweeps_points_is_on_the_terminal() {
    let record = whole();
    for width in [80, 160] {
        let text = terminal::render(&Report::of(&record).unwrap(), &Style { width, ..WIDE });
        let (_, sweep) = text.split_once("\nmore: closed load, over connections\n").unwrap();
        let (_, table) = sweep.split_once("  pauses of garbage collectors, ").unwrap();
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let rows: Vec<Vec<&str>> =
            rows.skip_while(|words| words.first() != Some(&"connections")).take(5).collect();
        assert_eq!(rows[0][..4], ["connections", "contender", "collector", "pauses"], "{text}");
        assert_eq!(rows[1], ["8", "node", "v8", "2", "0.800", "1.50", "ms", "2.25", "ms"], "{text}");
        assert_eq!((rows[2][0], rows[3][..2].join(" ")), ("bun", "64 node".to_owned()), "{text}");
    }
}
