//! The terminal output after a race, as golden files. To accept a change: `cargo insta review`, or `INSTA_UPDATE=always cargo test`.

use crate::fixture::{Race, Racer, difference, from_load_hosts, joined};
use deadheat_analysis::Report;
use deadheat_record::{
    Axis, End, Experiment, ExternalReading, Finding, Function, Link, LinkReading, Metric, Objective, PeakEnd,
    PeakSeen, ProfilePass, ProfileUsage, Record, Rung, ScenarioLink, Stacks, SweepPoint, Tunnel, VerdictWord,
};
use deadheat_report::{Style, html, markdown, terminal};

const NARROW: Style = Style { color: false, width: 80, unicode: true };
const WIDE: Style = Style { width: 160, ..NARROW };

/// The output at both widths. At every width, no line is too wide and none ends in a space.
fn both(record: &Record) -> String {
    let report = Report::of(record).unwrap();
    for width in [40, 60, 80, 100, 120, 160] {
        for unicode in [true, false] {
            let text = terminal::render(&report, &Style { color: false, width, unicode });
            // The four columns that are never left out need this width.
            let limit = width.max(72);
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= limit, "{width}: {line:?}");
                assert!(!line.ends_with(' '), "{line:?}");
            }
            assert!(unicode || !text.contains(['│', '…', 'µ', '●', '±']), "{text}");
        }
    }
    format!("{}{}\n{}", terminal::render(&report, &NARROW), "=".repeat(80), terminal::render(&report, &WIDE))
}

fn two() -> Race {
    Race::of(vec![Racer::new("node", 11_400.0), Racer { pss_bytes: 38 << 20, ..Racer::new("bun", 17_300.0) }])
}

fn seven() -> Race {
    let rates = [
        ("node", 11_400.0),
        ("node-cluster-with-a-very-long-name", 11_450.0),
        ("bun", 17_300.0),
        ("deno", 14_200.0),
        ("go", 42_700.0),
        ("php-fpm", 3_120.0),
        ("php-swoole", 14_300.0),
    ];
    let racers = rates.iter().enumerate().map(|(index, (name, rate))| Racer {
        pss_bytes: (20 + 11 * index as u64) << 20,
        cold_start_ns: 20_000_000 * (index as u64 + 1),
        ..Racer::new(name, *rate)
    });
    Race::of(racers.collect())
}

fn apart(a: f64, b: f64, noise: f64, epochs: usize, end: End) -> Race {
    let racers = vec![Racer::new("main", a), Racer::new("branch", b)];
    Race { noise: (noise, 0.02), epochs, end: Some(end), ..Race::of(racers) }
}

#[test]
fn a_link_with_what_was_measured_of_it() {
    let mut record = two().record();
    let scenario = &mut record.plan.scenarios[0];
    scenario.link = Some(Link {
        rate_bits_per_s: Some(100_000_000),
        delay_ns: 5_000_000,
        jitter_ns: 1_000_000,
        loss: 0.001,
        tunnel: Some(Tunnel::Wireguard),
    });
    let reading = LinkReading {
        plain_round_trip_ns: 62_000,
        round_trip_ns: 10_100_000,
        round_trips: 100,
        rate_bits_per_s: Some((99_950_000, 99_970_000)),
        sent: (4_000, 4_000),
        lost: (3, 5),
        tunnel: Some("wireguard-go 0.0.20230223".to_owned()),
    };
    let of_another = ScenarioLink { scenario: "other".to_owned(), unix_ms: 2, reading: reading.clone() };
    let of_this = ScenarioLink { scenario: scenario.name.clone(), unix_ms: 1, reading };
    record.links = vec![of_this, of_another];
    insta::assert_snapshot!(both(&record));
    let markdown = markdown(&Report::of(&record).unwrap(), None);
    let sentence = "The link, measured before the race: round trip 10.1 ms, 100 Mbit/s to the contenders and 100 Mbit/s back, \
                    3 of 4,000 and 5 of 4,000 packets lost, encrypted by wireguard-go 0.0.20230223.";
    assert_eq!(markdown.matches(sentence).count(), 1, "{markdown}");
    let only_delayed = &mut record.links[0].reading;
    (only_delayed.rate_bits_per_s, only_delayed.lost, only_delayed.tunnel) = (None, (0, 0), None);
    let text = terminal::render(&Report::of(&record).unwrap(), &WIDE);
    assert!(text.contains("the link, measured before the race: round trip 10.1 ms\n"), "{text}");
}

#[test]
fn load_from_two_hosts() {
    let mut record = two().record();
    from_load_hosts(&mut record);
    insta::assert_snapshot!(both(&record));
    let report = Report::of(&record).unwrap();
    insta::assert_snapshot!(markdown(&report, None));
    let hostile = &mut record.epochs.last_mut().unwrap().load_hosts.as_mut().unwrap().hosts[0];
    hostile.name = "\u{1b}[31m|<b>".into();
    let report = Report::of(&record).unwrap();
    assert!(!terminal::render(&report, &WIDE).contains('\u{1b}'));
    assert!(!markdown(&report, None).contains("|<b>"), "{}", markdown(&report, None));
}

#[test]
fn two_contenders() {
    insta::assert_snapshot!(both(&two().record()));
}

#[test]
fn two_contenders_in_colour() {
    let text = terminal::render(&Report::of(&two().record()).unwrap(), &Style { color: true, ..NARROW });
    assert!(text.contains("\u{1b}[32mfaster\u{1b}[0m"), "{text}");
    insta::assert_snapshot!(text.replace('\u{1b}', "ESC"));
}

#[test]
fn two_contenders_in_ascii() {
    let style = Style { unicode: false, width: 120, ..NARROW };
    insta::assert_snapshot!(terminal::render(&Report::of(&two().record()).unwrap(), &style));
}

#[test]
fn seven_contenders() {
    let mut record = seven().record();
    record
        .plan
        .skipped
        .push(("frankenphp".into(), "frankenphp is not installed; https://frankenphp.dev".into()));
    insta::assert_snapshot!(both(&record));
}

#[test]
fn seven_contenders_against_the_baseline_only() {
    insta::assert_snapshot!(both(&Race { all_pairs: false, ..seven() }.record()));
}

#[test]
fn a_dead_heat() {
    insta::assert_snapshot!(both(&apart(11_400.0, 11_420.0, 0.004, 10, End::Decided).record()));
}

#[test]
fn inconclusive_although_spread_over_hours() {
    let mut record = apart(11_400.0, 11_500.0, 0.06, 30, End::Maximum).record();
    record.plan.method.over_ns = 8 * 3_600 * 1_000_000_000;
    insta::assert_snapshot!(both(&record));
}

#[test]
fn interrupted_before_the_first_look() {
    let mut record = apart(11_400.0, 12_900.0, 0.01, 3, End::Budget).record();
    (record.ended, record.done) = (vec![], false);
    insta::assert_snapshot!(both(&record));
}

#[test]
fn invalid() {
    let mut race = two();
    for racer in &mut race.racers {
        racer.cpu_share *= 0.7;
    }
    race.racers[1].wrong = 40;
    race.racers[0].timeouts = 2;
    (race.load_cpu_share, race.steal_share) = (0.93, 0.021);
    let mut record = race.record();
    record.epochs[2].findings.push(Finding::warn(
        "listen-overflow",
        "3 connections refused",
        "raise somaxconn",
    ));
    record.plan.pinning.load_cpus = vec![1];
    insta::assert_snapshot!(both(&record));
}

#[test]
fn one_of_several_is_invalid() {
    let mut race = Race { racers: seven().racers.into_iter().take(4).collect(), ..seven() };
    race.racers[3].wrong = 40;
    insta::assert_snapshot!(both(&race.record()));
}

#[test]
fn latency_under_an_open_load() {
    let mut race = two();
    race.shape = Experiment::Open { connections: 64, rate_per_s: 5_000.0, poisson: true };
    race.metrics = vec![Metric::P99];
    insta::assert_snapshot!(both(&race.record()));
}

#[test]
fn several_metrics_at_a_common_rate() {
    let shape = Experiment::Open { connections: 64, rate_per_s: 12_000.0, poisson: true };
    let metrics = vec![Metric::P50, Metric::P99, Metric::Cpu];
    let mut two = Race { shape: shape.clone(), metrics: metrics.clone(), ..two() };
    two.racers[0].rate_per_s = 11_900.0;
    insta::assert_snapshot!("several_metrics_of_two", both(&two.record()));
    let seven = Race { shape, metrics, ..seven() };
    insta::assert_snapshot!("several_metrics_of_seven", both(&seven.record()));
}

#[test]
fn no_metric_that_can_be_compared() {
    let shape = Experiment::Open { connections: 64, rate_per_s: 1_000.0, poisson: true };
    let racers = vec![Racer::new("main", 1_000.0), Racer::new("branch", 1_000.0)];
    let metrics = vec![Metric::P99];
    let end = Some(End::Unavailable);
    insta::assert_snapshot!(both(&Race { shape, metrics, epochs: 1, end, ..Race::of(racers) }.record()));
}

/// Several races as scenarios of one record: the points of a sweep.
fn sweep(axis: Axis, points: &[(u32, Race)]) -> Record {
    let each = points.iter().map(|(value, race)| {
        let mut record = race.record();
        record.plan.scenarios[0].sweep =
            Some(SweepPoint { of: "more".into(), axis, value: f64::from(*value) });
        (format!("more/{}={value}", axis.word()), record)
    });
    joined(each)
}

#[test]
fn a_sweep_over_links_says_where_a_faster_server_stops_to_matter() {
    let at = |value: u32, rates: [f64; 3]| {
        let names = ["node", "bun", "go"].into_iter().zip(rates);
        let racers = names.map(|(name, rate)| Racer::new(name, rate)).collect();
        (value, Race { seed: u64::from(value), noise: (0.001, 0.001), ..Race::of(racers) })
    };
    let said = |axis: Axis, points: &[(u32, Race)]| {
        let text = both(&sweep(axis, points));
        text.lines().find(|line| line.contains("are within the margin")).map(|line| line.trim().to_owned())
    };
    let (same, different) = ([900.0, 900.0, 900.0], [9_000.0, 14_000.0, 12_000.0]);
    let rates = [at(10, same), at(100, same), at(1_000, different)];
    assert_eq!(
        said(Axis::LinkRate, &rates).as_deref(),
        Some("up to 100 Mbit/s, all 3 are within the margin of each other")
    );
    let delays = [at(1, different), at(20, same), at(100, same)];
    assert_eq!(
        said(Axis::LinkDelay, &delays).as_deref(),
        Some("from 20 ms delay on, all 3 are within the margin of each other")
    );
    let everywhere = [at(1, same), at(20, same)];
    assert_eq!(
        said(Axis::LinkDelay, &everywhere).as_deref(),
        Some("all 3 are within the margin of each other at every link")
    );
    // A difference at the slowest link, and equal contenders at others: that is not a link's doing.
    let odd = [at(1, same), at(20, different)];
    assert_eq!(said(Axis::LinkDelay, &odd), None);
    assert_eq!(said(Axis::Connections, &rates), None);
}

/// Contenders that are compared only with a baseline may differ from each other by more than the margin. The control is no contender of its own.
#[test]
fn a_sweep_over_links_says_whom_contenders_are_compared_with() {
    let at = |value: u32, rates: [f64; 3]| {
        let names = ["node", "bun", "go"].into_iter().zip(rates);
        let racers = names.map(|(name, rate)| Racer::new(name, rate)).collect();
        let race = Race { seed: u64::from(value), noise: (0.001, 0.001), ..Race::of(racers) };
        (value, Race { all_pairs: false, ..race })
    };
    let said = |record: &Record| {
        let text = both(record);
        text.lines().find(|line| line.contains("are within the margin")).map(|line| line.trim().to_owned())
    };
    let different = at(1, [9_000.0, 14_000.0, 12_000.0]);
    let mut record = sweep(Axis::LinkDelay, &[different.clone(), at(20, [900.0; 3]), at(100, [900.0; 3])]);
    assert_eq!(said(&record).as_deref(), Some("from 20 ms delay on, both are within the margin of node"));
    record.plan.contenders[2].control = true;
    let alike = "from 20 ms delay on, both are within the margin of each other";
    assert_eq!(said(&record).as_deref(), Some(alike));
    // A difference that is told apart but negligible is within the margin, too.
    let record = sweep(Axis::LinkDelay, &[different, at(20, [900.0, 913.5, 900.0])]);
    let report = Report::of(&record).unwrap();
    let negligible = report.scenarios[1].comparisons.iter().filter(|one| one.negligible).count();
    assert!(negligible > 0, "{:?}", report.scenarios[1].comparisons);
    assert_eq!(said(&record).as_deref(), Some("from 20 ms delay on, both are within the margin of node"));
}

#[test]
fn a_sweep_over_connections() {
    let at = |connections: u32, node: f64, bun: f64| {
        let racers = vec![Racer::new("node", node), Racer::new("bun", bun)];
        (
            connections,
            Race {
                shape: Experiment::Closed { connections },
                seed: u64::from(connections),
                ..Race::of(racers)
            },
        )
    };
    let mut points = [
        at(1, 3_000.0, 4_100.0),
        at(8, 9_800.0, 14_000.0),
        at(64, 11_400.0, 17_300.0),
        at(512, 10_900.0, 10_950.0),
    ];
    points[3].1.racers[0].cpu_share = 0.6;
    insta::assert_snapshot!(both(&sweep(Axis::Connections, &points)));
}

#[test]
fn a_ladder_says_what_each_rung_adds() {
    let race = |rate: f64| Race::of(vec![Racer::new("node", rate), Racer::new("bun", 16_000.0)]);
    let rungs = [("whole", 3, race(8_000.0)), ("nothing", 1, race(20_000.0)), ("json", 2, race(10_000.0))];
    let each = rungs.into_iter().map(|(name, place, race)| {
        let mut record = race.record();
        record.plan.scenarios[0].ladder = Some(Rung { of: "request".into(), place });
        (name.to_owned(), record)
    });
    let mut record = joined(each);
    let ladders = Report::of(&record).unwrap().ladders;
    assert_eq!(
        (ladders.len(), ladders[0].rungs.as_slice()),
        (1, ["nothing", "json", "whole"].map(String::from).as_slice())
    );
    let node = &ladders[0].contenders[0].steps;
    let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.05;
    assert!(
        near(node[0].added_us, 50.0) && near(node[1].added_us, 50.0) && near(node[2].added_us, 25.0),
        "{node:?}"
    );
    assert!(near(node[2].time_us, 125.0) && node.iter().all(|step| !step.faster));
    let text = terminal::render(&Report::of(&record).unwrap(), &NARROW);
    let (_, shown) = text.split_once("ladder request: ").unwrap();
    assert!(shown.contains("nothing") && shown.contains("per request"), "{shown}");
    // With the first two rungs swapped, the second one is faster. It adds nothing, and the output reports it as faster.
    for (scenario, place) in record.plan.scenarios.iter_mut().zip([3, 2, 1]) {
        scenario.ladder.as_mut().unwrap().place = place;
    }
    let report = Report::of(&record).unwrap();
    let step = &report.ladders[0].contenders[0].steps[1];
    assert_eq!((step.scenario.as_str(), step.added_us, step.faster), ("nothing", 0.0, true));
    assert!(terminal::render(&report, &NARROW).contains("0, is faster"));
    both(&record);
}

#[test]
fn peak_rates_under_an_objective() {
    let objective = Objective { quantile: 0.99, limit_ns: 10_000_000 };
    let shape = Experiment::Peak { connections: 64, objective };
    let mut record = Race { shape, metrics: vec![Metric::Peak], ..two() }.record();
    for (number, epoch) in record.epochs.iter_mut().enumerate() {
        for (part, rate_per_s) in epoch.contenders.iter_mut().zip([9_100.0, 14_000.0]) {
            let rate_per_s = rate_per_s + 40.0 * (number as f64 * 2.3).sin();
            let (low_per_s, high_per_s) = (Some(rate_per_s * 0.98), Some(rate_per_s * 1.02));
            part.peak = Some(PeakSeen { end: PeakEnd::Found, rate_per_s, low_per_s, high_per_s, trials: 17 });
        }
    }
    insta::assert_snapshot!("peak_rates", both(&record));
    let below =
        PeakSeen { end: PeakEnd::Below, rate_per_s: 100.0, low_per_s: None, high_per_s: None, trials: 5 };
    let mut later = record.clone();
    later.epochs[2].contenders[1].peak = Some(below);
    let scenario = Report::of(&later).unwrap().scenarios.remove(0);
    let told: Vec<_> = scenario.findings.iter().map(|one| (one.code.as_str(), one.severity)).collect();
    // Without this epoch, fewer epochs count than the first look needs.
    let warned = |code| (code, deadheat_record::Severity::Warn);
    assert_eq!(told, [("peak-not-found", deadheat_record::Severity::Invalid), warned("few-epochs")]);
    assert!(scenario.findings[0].message.starts_with("in epoch 3: "), "{:?}", scenario.findings);
    assert_eq!(scenario.comparisons[0].verdict, VerdictWord::Invalid, "the good epochs alone would judge it");
    later.epochs[2].contenders[1].peak = Some(PeakSeen { end: PeakEnd::GaveUp, ..below });
    let scenario = Report::of(&later).unwrap().scenarios.remove(0);
    let told: Vec<_> = scenario.findings.iter().map(|one| (one.code.as_str(), one.severity)).collect();
    assert_eq!(told, [warned("few-epochs"), warned("peak-not-found")]);
    assert!(scenario.findings[1].message.starts_with("epoch 3 is left out"), "{:?}", scenario.findings);
    later.epochs[2].contenders[1].peak = Some(PeakSeen { end: PeakEnd::Generator, ..below });
    let scenario = Report::of(&later).unwrap().scenarios.remove(0);
    let told = &scenario.findings[0];
    assert_eq!((told.code.as_str(), told.severity), ("peak-not-found", deadheat_record::Severity::Invalid));
    assert!(told.message.contains("the generator could not keep up"), "{told:?}");
    record.epochs.truncate(1);
    record.epochs[0].contenders[1].peak = Some(below);
    record.ended = vec![("closed-64".into(), End::Unavailable)];
    insta::assert_snapshot!("a_peak_that_was_not_found", both(&record));
}

#[test]
fn a_parity_failure() {
    let mut record = seven().record();
    record.differences.push(difference("php-fpm", "status", "200", "404"));
    let (long, other) = ("x".repeat(150), format!("{}y{}", "x".repeat(70), "x".repeat(79)));
    record.differences.push(difference("php-fpm", "$.items[12].description", &long, &other));
    let mut under_load = difference("deno", "header cache-control", "no-store", "(absent)");
    (under_load.against, under_load.when, under_load.probe) =
        ("node".into(), "epoch 3".into(), "list".into());
    record.differences.push(under_load);
    record.out = vec!["php-fpm".into(), "deno".into()];
    for epoch in &mut record.epochs {
        epoch.contenders.retain(|part| ![3, 5].contains(&part.contender));
        epoch
            .rounds
            .iter_mut()
            .for_each(|round| round.slices.retain(|slice| ![3, 5].contains(&slice.contender)));
    }
    insta::assert_snapshot!(both(&record));
}

#[test]
fn parity_of_everybody() {
    assert_eq!(terminal::parity(&[], &NARROW), "parity: every contender answers alike\n");
}

#[test]
fn hostile_names_are_data() {
    let mut race = two();
    race.racers[0].name = "<img src=x onerror=alert(1)>".into();
    race.racers[1].name = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}nub\r\n".into();
    race.racers[1].version = Some("1.0\u{1b}[31m\u{200b}".into());
    let mut record = race.record();
    let bad = "\u{1b}[31m\u{9b}2J\u{2066}\n";
    record.differences.push(difference(bad, bad, bad, bad));
    record.findings.push((None, Finding::warn(bad, bad, bad).about(bad)));
    record.plan.skipped.push((bad.into(), bad.into()));
    record.plan.title = Some(bad.into());
    let text = both(&record);
    let acts =
        |c: char| c != '\n' && (c.is_control() || ('\u{2066}'..='\u{2069}').contains(&c) || c == '\u{202e}');
    assert!(!text.contains(acts), "{text:?}");
    insta::assert_snapshot!(text);
}

/// A pass of 1,000 requests in which each sample is 1 us of CPU time. `handle` calls the runtime; `planted` does so only if it has samples.
fn profile(contender: &str, planted: u64) -> ProfilePass {
    let function = |name: &str, own: u64, line: Option<u32>| Function {
        name: name.into(),
        file: line.map(|_| "server.mjs".into()),
        line,
        own,
        library: line.is_none(),
    };
    let samples = 9_000 + planted;
    let functions = vec![
        function("handle", 2_000, Some(9)),
        function("Builtin_JsonParse", 3_000 + planted / 10 * 9, None),
        function("epoll_wait", 4_000, None),
        function("planted", planted / 10, Some(3)),
    ];
    let calls = vec![
        (None, 0, 5_000 + planted),
        (Some(0), 1, 3_000),
        (None, 2, 4_000),
        (Some(0), 3, planted),
        (Some(3), 1, planted / 10 * 9),
    ];
    ProfilePass {
        scenario: "closed-64".into(),
        contender: contender.into(),
        rate_per_s: 200.0,
        load_ns: 5_000_000_000,
        external: ExternalReading::default(),
        requests: 1_000,
        used: ProfileUsage { cpu_ns: samples * 1_000, ..ProfileUsage::default() },
        stacks: Stacks { event: "cycles".into(), samples, functions, calls, ..Stacks::default() },
    }
}

#[test]
fn where_cpu_time_goes() {
    let mut record = two().record();
    record.profiles = vec![profile("node", 0), profile("bun", 8_000)];
    insta::assert_snapshot!(both(&record));
    let text = markdown(&Report::of(&record).unwrap(), None);
    let row =
        "| `planted server.mjs:3` | 0 ns | 8.00 µs | 8.00 µs | 47.1 % | 7.20 µs in Builtin&#95;JsonParse |";
    assert!(text.contains(row), "{text}");
    assert!(
        text.contains(
            " At this rate, below full load, a contender wakes up more often for the same requests, "
        ),
        "{text}"
    );
    let report = Report::of(&record).unwrap();
    let page = html(&report, None).unwrap();
    assert!(
        page.contains("Counts per request in this pass at 200 requests/s; at this rate, below full load"),
        "the page says it"
    );
    record.plan.scenarios[0].shape = Experiment::Open { connections: 64, rate_per_s: 200.0, poisson: true };
    let text = markdown(&Report::of(&record).unwrap(), None);
    assert!(text.contains("Where CPU time goes"), "{text}");
    assert!(!text.contains("below full load"), "an open load has the same rate: {text}");
}
