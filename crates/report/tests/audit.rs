//! Checks the published figures of five articles for contradictions, by arithmetic alone.

use deadheat_analysis::audit::self_test;
use deadheat_record::{AuditRecord, CheckKind, CheckOutcome, Claim, PublishedCheck};
use deadheat_report::audit::markdown;
use deadheat_report::{Style, json, terminal};
use serde_json::Value;

const WIDE: Style = Style { color: false, width: 120, unicode: true };

/// Parses `row
/// contender
/// metric=value,metric=value`. Empty fields are absent. The decimals as written set the precision.
fn claims(lines: &[&str]) -> Vec<Claim> {
    let mut all = Vec::new();
    for line in lines {
        let [row, contender, figures]: [&str; 3] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (contender, baseline) = contender.split_once('/').unwrap_or((contender, ""));
        for one in figures.split(',') {
            let (metric, figure) = one.split_once('=').unwrap();
            let range =
                figure.split_once("..").map(|(low, high)| (low.parse().unwrap(), high.parse().unwrap()));
            let decimals = figure.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
            all.push(Claim {
                source: "article".into(),
                contender: some(contender),
                baseline: some(baseline),
                row: some(row),
                metric: metric.into(),
                value: range.is_none().then(|| figure.parse().unwrap()),
                half_digit: if range.is_none() { 0.5 * 10_f64.powi(-decimals) } else { 0.0 },
                low: range.map(|range| range.0),
                high: range.map(|range| range.1),
                ..Claim::default()
            });
        }
    }
    all
}

fn audited(lines: &[&str]) -> AuditRecord {
    let audit = self_test("study", Some("An article"), 1, &claims(lines));
    let schema: Value =
        serde_json::from_str(include_str!("../../record/schema/audit-1.schema.json")).unwrap();
    let value: Value = serde_json::from_str(&json(&audit).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    audit
}

fn of<'a>(audit: &'a AuditRecord, kind: CheckKind, row: &str, contender: &str) -> &'a PublishedCheck {
    let found = audit.checks.iter().find(|one| {
        (one.kind, one.row.as_deref().unwrap_or_default(), one.contender.as_deref())
            == (kind, row, Some(contender))
    });
    found.unwrap_or_else(|| panic!("no {kind:?} of {contender} in {row}: {:#?}", audit.checks))
}

/// The row, contender and computed value of each check of this kind that contradicts.
fn contradictions(audit: &AuditRecord, kind: CheckKind) -> Vec<(&str, &str, i64)> {
    let of = audit.checks.iter().filter(|one| one.kind == kind && one.outcome == CheckOutcome::Contradicts);
    let row = |one: &'_ PublishedCheck| one.found.unwrap().round() as i64;
    of.map(|one| (one.row.as_deref().unwrap_or_default(), one.contender.as_deref().unwrap(), row(one)))
        .collect()
}

const SSR: [&str; 8] = [
    "50||connections=50",
    "500||connections=500",
    "50|node|throughput_rps=209.88,latency_max_s=2.0525,latency_min_s=0.1749,latency_mean_s=0.2378,latency_p50_s=0.2327,latency_p90_s=0.27,latency_p99_s=0.3366,latency_p99_9_s=0.7095,latency_p99_99_s=1.9395",
    "50|deno|throughput_rps=276.06,latency_max_s=1.2845,latency_min_s=0.054,latency_mean_s=0.1808,latency_p50_s=0.1803,latency_p90_s=0.218,latency_p99_s=0.2663,latency_p99_9_s=0.3595,latency_p99_99_s=0.4277",
    "50|bun|throughput_rps=347.06,latency_max_s=0.45,latency_min_s=0.0405,latency_mean_s=0.1439,latency_p50_s=0.1283,latency_p90_s=0.2234,latency_p99_s=0.2484,latency_p99_9_s=0.2649,latency_p99_99_s=0.299",
    "500|node|throughput_rps=207.76,latency_max_s=59.4963,latency_min_s=0.0402,latency_mean_s=1.1007,latency_p50_s=0.7929,latency_p90_s=1.0357,latency_p99_s=12.0869,latency_p99_9_s=54.2449,latency_p99_99_s=58.9672",
    "500|deno|throughput_rps=253.31,latency_max_s=3.5783,latency_min_s=0.1689,latency_mean_s=1.9409,latency_p50_s=1.9567,latency_p90_s=2.049,latency_p99_s=2.5692,latency_p99_9_s=3.456,latency_p99_99_s=3.5783",
    "500|bun|throughput_rps=297.33,latency_max_s=3.1352,latency_min_s=0.0553,latency_mean_s=1.6546,latency_p50_s=1.6272,latency_p90_s=2.3518,latency_p99_s=2.8396,latency_p99_9_s=2.9298,latency_p99_99_s=2.9808",
];

#[test]
fn ssr_at_500_connections_has_229_of_nodes_in_flight() {
    let audit = audited(&SSR);
    assert_eq!(contradictions(&audit, CheckKind::LittlesLaw), [("500", "node", 229)]);
    let node = of(&audit, CheckKind::LittlesLaw, "500", "node");
    assert_eq!(node.expected, Some(500.0));
    assert!(
        node.text.contains("the other 271 (54.3 %) waited for requests that were never counted"),
        "{}",
        node.text
    );
    let others = [("50", "node"), ("50", "deno"), ("50", "bun"), ("500", "deno"), ("500", "bun")];
    for (row, contender) in others {
        assert_eq!(
            of(&audit, CheckKind::LittlesLaw, row, contender).outcome,
            CheckOutcome::Sound,
            "{row} {contender}"
        );
    }
    let orders = audit.checks.iter().filter(|one| one.kind == CheckKind::Order);
    assert!(orders.clone().count() == 6 && orders.into_iter().all(|one| one.outcome == CheckOutcome::Sound));
    insta::assert_snapshot!(terminal::audit(&audit, &WIDE));
    insta::assert_snapshot!(markdown(&audit));
}

const COMPILED: [&str; 6] = [
    "||connections=400,connect_errors=155",
    "|node|throughput_rps=80333.19,latency_mean_ms=3.00,latency_max_ms=27.28",
    "|bun|throughput_rps=201346.62,latency_mean_ms=1.19,latency_max_ms=11.61",
    "|node-sea|throughput_rps=77023.24,latency_mean_ms=3.13,latency_max_ms=21.10",
    "|bun-compiled|throughput_rps=200285.12,latency_mean_ms=1.18,latency_max_ms=8.22",
    "|bun/node|throughput_ratio=2.5",
];

#[test]
fn compiled_was_a_load_of_240_connections_and_not_of_400() {
    let audit = audited(&COMPILED);
    let all = [("", "node", 241), ("", "bun", 240), ("", "node-sea", 241), ("", "bun-compiled", 236)];
    assert_eq!(contradictions(&audit, CheckKind::LittlesLaw), all);
    let bun = of(&audit, CheckKind::LittlesLaw, "", "bun");
    assert!(
        bun.text.ends_with(
            "of 400 connections: 155 of them failed, which leaves 245: only these carried the load"
        ),
        "{}",
        bun.text
    );
    let compiled = of(&audit, CheckKind::LittlesLaw, "", "bun-compiled");
    assert!(compiled.text.ends_with("which leaves 245, still 3.1 % off"), "{}", compiled.text);
    assert_eq!(contradictions(&audit, CheckKind::ConnectErrors).len(), 4);
    let ratio = of(&audit, CheckKind::Ratio, "", "bun");
    assert_eq!(
        (ratio.outcome, ratio.text.as_str()),
        (CheckOutcome::Sound, "throughput over node: 201,346.62/s / 80,333.19/s = 2.51, and 2.5 is stated",)
    );
}

const HELLO: [&str; 12] = [
    "||connections=200,duration_s=30",
    "vpn|node|throughput_rps=7954,latency_mean_ms=26.79,latency_max_ms=864.53",
    "vpn|bun|throughput_rps=12519,latency_mean_ms=16.49,latency_max_ms=163.24",
    "vpn|go|throughput_rps=12873,latency_mean_ms=15.69,latency_max_ms=152.21",
    "cloud 1 CPU|node|throughput_rps=11705,latency_mean_ms=29.13,latency_max_ms=2000,timeouts=60",
    "cloud 1 CPU|go|throughput_rps=13935,latency_mean_ms=22.83,latency_max_ms=135.97",
    "cloud 1 CPU|bun|throughput_rps=25444,latency_mean_ms=7.89,latency_max_ms=93.27",
    "cloud 4 CPU|node|throughput_rps=31025,latency_mean_ms=8.62,latency_max_ms=641.25",
    "cloud 4 CPU|go|throughput_rps=37617,latency_mean_ms=5.79,latency_max_ms=218.91",
    "cloud 4 CPU|bun|throughput_rps=53446,latency_mean_ms=4.04,latency_max_ms=76.54",
    "localhost 1 core|node|throughput_rps=14000",
    "localhost 1 core|bun|throughput_rps=28000",
];

#[test]
fn hello_has_more_in_flight_than_connections() {
    let audit = audited(&HELLO);
    let expected = [
        ("vpn", "node", 213),
        ("vpn", "bun", 206),
        ("cloud 1 CPU", "node", 341),
        ("cloud 1 CPU", "go", 318),
        ("cloud 4 CPU", "node", 267),
        ("cloud 4 CPU", "go", 218),
        ("cloud 4 CPU", "bun", 216),
    ];
    assert_eq!(contradictions(&audit, CheckKind::LittlesLaw), expected);
    assert_eq!(of(&audit, CheckKind::LittlesLaw, "cloud 1 CPU", "bun").outcome, CheckOutcome::Sound);
    assert_eq!(of(&audit, CheckKind::LittlesLaw, "vpn", "go").outcome, CheckOutcome::Sound);
    let timeouts = of(&audit, CheckKind::Timeouts, "cloud 1 CPU", "node");
    assert_eq!(timeouts.outcome, CheckOutcome::Weakened);
    assert!(timeouts.text.contains("the maximum of 2,000 ms is where counting ended"), "{}", timeouts.text);
    // A row with throughput alone has no other figure to check it against.
    assert!(audit.checks.iter().all(|one| one.row.as_deref() != Some("localhost 1 core")));
}

const METADATA: [&str; 6] = [
    "||connections=60,requests=30000",
    "|bun|throughput_rps=58000,latency_p50_ms=0.92,latency_p99_ms=2.7",
    "|node-better-sqlite3|throughput_rps=41000,latency_p50_ms=1.34,latency_p99_ms=4.1",
    "|php|throughput_rps=33000,latency_p50_ms=1.6,latency_p99_ms=6.0",
    "|node-better-sqlite3|warmup_s=2..3",
    "|bun/node-better-sqlite3|throughput_ratio=1.40",
];

#[test]
fn metadatas_runs_are_shorter_than_its_warm_up() {
    let audit = audited(&METADATA);
    let short = audit.checks.iter().filter(|one| one.kind == CheckKind::RunLength);
    let short: Vec<&PublishedCheck> = short.collect();
    assert!(short.len() == 3 && short.iter().all(|one| one.outcome == CheckOutcome::Contradicts));
    let bun = of(&audit, CheckKind::RunLength, "", "bun");
    assert!((bun.found.unwrap() - 30.0 / 58.0).abs() < 1e-9 && bun.expected == Some(2.0));
    assert_eq!(
        bun.text,
        "30,000 requests at 58,000/s last 0.517 s, less than the warm-up of 2 to 3 s that is reported for \
         node-better-sqlite3: it may be the warm-up that was measured"
    );
    // By the percentiles alone, 60 requests in flight are possible.
    assert_eq!(of(&audit, CheckKind::LittlesLaw, "", "bun").outcome, CheckOutcome::Sound);
    assert_eq!(of(&audit, CheckKind::Ratio, "", "bun").outcome, CheckOutcome::Sound);
}

/// Five half-second runs after one start: the audit computes their spread, and notes that it says nothing about other starts.
#[test]
fn a_spread_of_one_starts_runs_is_weak_however_small() {
    let spread = |stated: &str, rows: &[&str]| {
        let stated = format!("lookup|bun|throughput_cv={stated}");
        let lines = [&["||requests=30000", stated.as_str()], rows].concat();
        of(&audited(&lines), CheckKind::Spread, "lookup", "bun").clone()
    };
    let runs = [
        "lookup, run 1|bun|throughput_rps=57900",
        "lookup, run 2|bun|throughput_rps=58400",
        "lookup, run 3|bun|throughput_rps=57600",
        "lookup, run 4|bun|throughput_rps=58800",
        "lookup, run 5|bun|throughput_rps=58100",
        // A run of another contender and a run of another row do not count.
        "lookup, run 1|node|throughput_rps=100",
        "search, run 1|bun|throughput_rps=100",
    ];
    let one = spread("0..0.05", &runs);
    // The mean is 58,160 and the sum of squares 852,000, so the standard deviation is 461.5.
    assert_eq!((one.outcome, one.expected), (CheckOutcome::Weakened, Some(0.05)));
    assert!((one.found.unwrap() - 461.519_2 / 58_160.0).abs() < 1e-8, "{:?}", one.found);
    assert!(
        one.text.starts_with(
            "the 5 runs vary by 0.79 %, and less than 5 % is stated: successive runs of 0.516 s each of one start"
        ),
        "{}",
        one.text
    );
    assert_eq!(spread("0..0.005", &runs).outcome, CheckOutcome::Contradicts);
    assert_eq!(spread("0.02..0.05", &runs).outcome, CheckOutcome::Contradicts);
    assert_eq!(spread("0..0.05", &runs[..1]).outcome, CheckOutcome::Untestable);
}

/// A warm-up before the run adds to the run's length, which must together exceed the reported warm-up.
#[test]
fn a_warm_up_before_the_run_is_no_part_of_it() {
    let run = |settings: &str| {
        let audit = audited(&[settings, "|node|throughput_rps=200"]);
        audit.checks.into_iter().find(|one| one.kind == CheckKind::RunLength)
    };
    assert_eq!(run("||duration_s=20,warmup_before_s=30"), None);
    let sound = run("||duration_s=20,warmup_before_s=30,warmup_s=40").unwrap();
    assert_eq!((sound.outcome, sound.found), (CheckOutcome::Sound, Some(50.0)));
    assert_eq!(sound.text, "the run lasts 20 s after 30 s of warm-up, and the warm-up that is reported 40 s");
    let short = run("||duration_s=20,warmup_before_s=10,warmup_s=40").unwrap();
    assert_eq!(short.outcome, CheckOutcome::Contradicts);
    assert!(
        short
            .text
            .starts_with("the run lasts 20 s after 10 s of warm-up, together less than the warm-up of 40 s"),
        "{}",
        short.text
    );
}

#[test]
fn trendings_figures_do_not_contradict_each_other() {
    let audit = audited(&[
        "||connections=64,duration_s=20",
        "|bun|throughput_rps=58200,latency_p50_ms=1.02,latency_p95_ms=1.71,latency_p99_ms=2.34,latency_max_ms=19",
        "|node|throughput_rps=41900,latency_p50_ms=1.46,latency_p95_ms=2.58,latency_p99_ms=4.10,latency_max_ms=41",
        "|bun/node|throughput_ratio=1.39,latency_p99_ratio=0.55..0.60",
    ]);
    assert!(audit.checks.len() == 6 && !audit.contradicts(), "{:#?}", audit.checks);
    let bun = of(&audit, CheckKind::LittlesLaw, "", "bun");
    assert!(bun.text.contains("between 31.9 and 91.6 requests were in flight"), "{}", bun.text);
}

#[test]
fn each_check_can_fail_and_can_be_sound() {
    let row = "||connections=100,requests=1000000,duration_s=10";
    let first = |figures: &str, kind| {
        let figures = format!("|x|{figures}");
        of(&audited(&[row, &figures]), kind, "", "x").outcome
    };
    use CheckKind::{LittlesLaw, Order, Requests};
    use CheckOutcome::{Contradicts, Sound};
    assert_eq!(
        first("throughput_rps=100000,latency_p50_ms=1.0,latency_p99_ms=3.0,latency_mean_ms=1.00", Requests),
        Sound
    );
    assert_eq!(first("throughput_rps=97000,latency_mean_ms=1.00", Requests), Contradicts);
    assert_eq!(first("throughput_rps=100000,latency_p50_ms=3.1,latency_p99_ms=3.0", Order), Contradicts);
    assert_eq!(first("throughput_rps=100000,latency_p50_ms=3.0,latency_max_ms=3.0", Order), Sound);
    // Half of all requests took over 3 ms, so the mean cannot be 1 ms.
    assert_eq!(first("throughput_rps=100000,latency_p50_ms=3.0,latency_mean_ms=1.0", Order), Contradicts);
    assert_eq!(first("throughput_rps=100000,latency_mean_ms=3.0,latency_max_ms=2.0", Order), Contradicts);
    // Half of all requests took over 3 ms, so at least 150 were in flight, on 100 connections.
    assert_eq!(first("throughput_rps=100000,latency_p50_ms=3.0", LittlesLaw), Contradicts);
    // No request took over 0.5 ms, so at most 50 were in flight.
    assert_eq!(first("throughput_rps=100000,latency_p50_ms=0.2,latency_max_ms=0.5", LittlesLaw), Contradicts);
    let ratio = |stated: &str| {
        let stated = format!("|x/y|throughput_ratio={stated}");
        let audit = audited(&["|x|throughput_rps=200", "|y|throughput_rps=100", &stated]);
        of(&audit, CheckKind::Ratio, "", "x").outcome
    };
    assert_eq!((ratio("2.0"), ratio("2.10"), ratio("1.5..1.9")), (Sound, Contradicts, Contradicts));
    let alone = audited(&["|x/y|throughput_ratio=2.0", "|x|throughput_rps=10,latency_mean_ms=1.0"]);
    assert!(alone.checks.iter().all(|one| one.outcome == CheckOutcome::Untestable));
    assert_eq!(alone.checks.len(), 2);
}

#[test]
fn an_open_load_has_no_connections_to_fill() {
    let audit = audited(&["||connections=100,rate_rps=1000", "|x|throughput_rps=1000,latency_mean_ms=1.0"]);
    assert_eq!(audit.checks, []);
}

#[test]
fn what_comes_from_outside_is_shown_as_what_it_is() {
    let mut all = claims(&["||connections=10", "|x|throughput_rps=100,latency_mean_ms=900"]);
    all[1].contender = Some("a|b\u{1b}[2J<i>".into());
    all[2].contender = all[1].contender.clone();
    let audit = self_test("s\u{7}", None, 1, &all);
    let shown = terminal::audit(&audit, &WIDE);
    assert!(shown.contains("a|b\\u{1b}[2J<i>") && !shown.contains(['\u{1b}', '\u{7}']), "{shown}");
    let page = markdown(&audit);
    assert!(!page.contains("<i>") && !page.contains(['\u{1b}', '\u{7}']), "{page}");
    let narrow = terminal::audit(&audit, &Style { width: 40, ..WIDE });
    assert!(narrow.lines().all(|line| line.chars().count() <= 44), "{narrow}");
}
