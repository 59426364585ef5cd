//! The conclusions and output of an examination, as golden files.

use std::sync::LazyLock;

use crate::doctor_fixture::{calm, laptop, with_floor, with_proof};
use deadheat_analysis::doctor::{Profile, Times};
use deadheat_analysis::gates::table::{By, codes as codes_of};
use deadheat_record::*;
use deadheat_report::{Style, doctor};

const NARROW: Style = Style { color: false, width: 80, unicode: true };

/// Concludes as `deadheat doctor` does, with the times of its profiles.
fn conclude(record: &mut DoctorRecord) {
    static PROFILES: LazyLock<[Profile; 2]> = LazyLock::new(|| {
        let quick = Times { before: 12.0, longer: 0.0, budget: 180.0 };
        let full = Times { before: 44.0, longer: 2.0, budget: f64::INFINITY };
        [
            Profile::new(None, &[4, 6, 8, 10, 12], quick, 0.025),
            Profile::new(Some("--profile full"), &[6, 10, 15, 20, 25, 30], full, 0.025),
        ]
    });
    deadheat_analysis::doctor::conclude_floor(record, &PROFILES);
    deadheat_analysis::doctor::conclude(record);
}

/// The output at 80 columns. At every width, no line is too wide.
fn shown(mut record: DoctorRecord) -> String {
    conclude(&mut record);
    for width in [80, 100, 160] {
        for unicode in [true, false] {
            let text = doctor::summary(&record, &Style { color: false, width, unicode });
            for line in text.lines() {
                assert!(unicode_width::UnicodeWidthStr::width(line) <= width, "{width}: {line:?}");
                assert!(!line.ends_with(' '), "{line:?}");
            }
            assert!(unicode || text.is_ascii(), "{text}");
        }
    }
    doctor::summary(&record, &NARROW)
}

fn codes(mut record: DoctorRecord) -> Vec<(String, Severity)> {
    conclude(&mut record);
    record.findings.into_iter().map(|finding| (finding.code, finding.severity)).collect()
}

#[test]
fn a_quiet_machine_has_nothing_wrong() {
    assert_eq!(codes(calm()), []);
    insta::assert_snapshot!(shown(calm()));
}

#[test]
fn the_network_to_load_hosts_has_a_line_for_each() {
    let clock = |source: &str, read_ns| {
        Some(Clock { source: Some(source.into()), sources: vec!["tsc".into(), "hpet".into()], read_ns })
    };
    let trips = |name: &str, p50_ns, clock| DoctorLinkHost {
        name: name.into(),
        count: 9_000,
        min_ns: 31_000,
        p50_ns,
        p99_ns: 4 * p50_ns,
        clock,
    };
    let bandwidth = |bytes| Bandwidth { payload_bytes_per_s: bytes, interface_bytes_per_s: None };
    let mut record = calm();
    record.pinning = Pinning { server_cpus: vec![0, 1], load_cpus: vec![] };
    record.link = Some(DoctorLink {
        hosts: vec![
            trips("me@a", 48_000, clock("tsc", 21.0)),
            trips("b\u{1b}[2J", 52_000, clock("hpet", 1_430.0)),
            trips("old", 52_000, None),
        ],
        bandwidth: LinkBandwidth {
            hosts: vec![bandwidth(1.2e9), bandwidth(1.1e9), bandwidth(1.1e9)],
            together: bandwidth(1.3e9),
        },
    });
    // A core of a load host may have the number of one here.
    let with_cores = |link: Option<DoctorLink>| {
        let mut laptop = laptop();
        laptop.link = link;
        codes(laptop).iter().any(|(code, _)| code == "shared-siblings")
    };
    assert!(with_cores(None) && !with_cores(record.link.clone()));
    let text = shown(record);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("link") || line.contains("receive")).collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert!(text.contains("servers 0,1; the load comes from others"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("the clock of load host b\\u{1b}[2J is hpet, and takes 1.43 µs to read"),
        "{text}"
    );
}

#[test]
fn a_laptop_on_which_everything_is_wrong() {
    let codes = codes(laptop());
    let invalid: Vec<&str> =
        codes.iter().filter(|(_, one)| *one == Severity::Invalid).map(|(code, _)| code.as_str()).collect();
    assert_eq!(invalid, ["foreign-cpu"]);
    for code in [
        "shared-siblings",
        "cpu-quota",
        "governor",
        "energy-preference",
        "turbo",
        "thermal-throttling",
        "battery",
        "virtual-machine",
        "clock-source",
        "memory-nodes",
        "swap-in-use",
        "no-freezer",
        "no-io-uring",
        "huge-pages",
        "fixed-addresses",
        "numa-balancing",
        "open-files",
        "few-ports",
        "listen-backlog",
        "steal",
    ] {
        assert!(codes.contains(&(code.into(), Severity::Warn)), "{code}: {codes:?}");
    }
    assert!(codes.iter().all(|(code, _)| codes_of(By::Doctor).any(|one| one == code)));
    insta::assert_snapshot!(shown(laptop()));
}

#[test]
fn a_noise_floor_says_what_can_be_told_apart() {
    insta::assert_snapshot!(shown(with_floor(0.006)));
    let mut record = with_floor(0.016);
    conclude(&mut record);
    // If epochs differ by 1.6 %, about ten of them decide a difference of 3 %.
    let three = record.resolution.iter().find(|one| one.difference == 0.03).unwrap();
    assert!((6..=12).contains(&three.epochs.unwrap()), "{three:?}");
    assert!(record.fit && record.sentence.unwrap().starts_with("on this machine, now, "));
}

/// A race can end only at a look, so the number of epochs must be a look of the quick or the full profile.
#[test]
fn what_can_be_told_apart_takes_as_many_epochs_as_a_race_may_have() {
    for sd in [0.002, 0.006, 0.013, 0.02] {
        let mut record = with_floor(sd);
        conclude(&mut record);
        let epochs: Vec<usize> = record.resolution.iter().filter_map(|one| one.epochs).collect();
        let looks = [4, 6, 8, 10, 12, 15, 20, 25, 30];
        assert!(epochs.iter().all(|epochs| looks.contains(epochs) || *epochs > 30), "{sd}: {epochs:?}");
        assert!(epochs.len() == 5 && epochs.is_sorted_by(|more, fewer| more >= fewer), "{sd}: {epochs:?}");
    }
}

#[test]
fn of_an_invalid_race_with_itself_nothing_is_concluded() {
    let mut record = with_floor(0.006);
    let floor = record.floor.as_mut().unwrap();
    floor.verdict = VerdictWord::Invalid;
    floor.findings = vec![Finding::invalid("no-steady-state", "it climbs", "wait")];
    conclude(&mut record);
    let sentence = record.sentence.clone().unwrap();
    assert!(sentence.contains("is not known") && !record.fit, "{sentence}");
    assert_eq!(record.resolution, []);
    let text = shown(record);
    assert!(text.contains("climbs") && text.contains("is not known"), "{text}");
    assert!(!text.contains("a race detects") && !text.contains("to see"), "{text}");
}

#[test]
fn too_much_noise_is_unfit() {
    assert_eq!(codes(with_floor(0.02)), []);
    assert_eq!(codes(with_floor(0.06)), [("noise-floor".to_owned(), Severity::Warn)]);
    assert_eq!(codes(with_floor(0.3)), [("noise-floor".to_owned(), Severity::Invalid)]);
}

#[test]
fn limits_are_where_they_are_said_to_be() {
    let with = |change: &dyn Fn(&mut DoctorRecord)| {
        let mut record = calm();
        change(&mut record);
        codes(record)
    };
    let one = |code: &str, severity| vec![(code.to_owned(), severity)];
    use Severity::{Invalid, Warn};
    for (steal, expected) in [(0.01, vec![]), (0.011, one("steal", Warn)), (0.051, one("steal", Invalid))] {
        assert_eq!(with(&|record| record.noise.steal_share = steal), expected);
    }
    for (stalled, expected) in [(0.005, vec![]), (0.006, one("stalls", Warn)), (0.2, one("stalls", Warn))] {
        assert_eq!(with(&|record| record.noise.stalled_share = Some(stalled)), expected);
    }
    let mut unseen = calm();
    unseen.noise.stalled_share = None;
    assert!(shown(unseen).contains("stalls unknown"));
    for (foreign, expected) in
        [(0.02, vec![]), (0.03, one("foreign-cpu", Warn)), (0.11, one("foreign-cpu", Invalid))]
    {
        assert_eq!(with(&|record| record.noise.foreign_share = Some(foreign)), expected);
    }
    assert_eq!(
        with(&|record| record.machine.details.open_files_most = Some(100)),
        one("open-files", Invalid)
    );
    let nobody = Pinning { server_cpus: vec![], load_cpus: vec![] };
    assert_eq!(with(&|record| record.pinning = nobody.clone()), one("one-core", Invalid));
    assert_eq!(
        with(&|record| record.machine.clock_source = Some("jiffies".into())),
        one("clock-source", Warn)
    );
    for (source, read_ns, expected) in [
        ("kvm-clock", 40.0, vec![]),
        ("hyperv_clocksource_tsc_page", 40.0, vec![]),
        ("kvm-clock", 900.0, one("clock-source", Warn)),
    ] {
        let found = with(&|record| {
            (record.machine.clock_source, record.noise.clock_read_ns) = (Some(source.into()), read_ns);
        });
        assert_eq!(found, expected, "{source}");
    }
    assert_eq!(
        with(&|record| record.machine.details.memory_available_bytes = Some(1 << 20)),
        one("little-memory", Warn)
    );
    for (pages, expected) in [("never", vec![]), ("madvise", vec![]), ("always", one("huge-pages", Warn))] {
        let found = with(&|record| record.machine.details.transparent_huge_pages = Some(pages.into()));
        assert_eq!(found, expected, "{pages}");
    }
    for (level, expected) in [(0, one("fixed-addresses", Warn)), (1, vec![]), (2, vec![])] {
        assert_eq!(with(&|record| record.machine.details.address_randomization = Some(level)), expected);
    }
    for (mode, nodes, expected) in [
        (1, vec![(0..8).collect()], vec![]),
        (0, vec![vec![0, 1, 4, 5], vec![2, 3, 6, 7]], vec![]),
        (1, vec![vec![0, 1, 4, 5], vec![2, 3, 6, 7]], one("numa-balancing", Warn)),
    ] {
        let found = with(&|record| {
            record.machine.details.numa_balancing = Some(mode);
            record.machine.details.memory_nodes = Some(nodes.clone());
        });
        assert_eq!(found, expected, "{mode} {nodes:?}");
    }
    assert_eq!(
        with(&|record| record.machine.details = MachineDetails::default()),
        [],
        "nothing known, nothing guessed"
    );
}

#[test]
fn what_the_race_with_itself_complains_of_is_passed_on_once() {
    let mut record = with_floor(0.006);
    record.noise.steal_share = 0.02;
    let floor = record.floor.as_mut().unwrap();
    floor.verdict = VerdictWord::Slower;
    floor.findings = vec![
        Finding::invalid("dropped-rounds", "30 % dropped", "wait"),
        Finding::warn("steal", "1.2 % stolen", "wait"),
        Finding::warn("few-epochs", "3 epochs", "more"),
    ];
    let found = codes(record);
    let found: Vec<&str> = found.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(found, ["dropped-rounds", "steal", "false-claim"]);
}

#[test]
fn a_race_of_which_nothing_is_left_says_why() {
    let mut record = with_floor(0.006);
    let floor = record.floor.as_mut().unwrap();
    (floor.epochs, floor.sd_log_ratio, floor.ratio, floor.low, floor.high) = (0, None, None, None, None);
    floor.findings = vec![Finding::invalid("dropped-rounds", "all rounds dropped", "wait")];
    conclude(&mut record);
    assert!(!record.fit && record.resolution.is_empty());
    assert!(record.sentence.as_ref().unwrap().contains("not known"), "{:?}", record.sentence);
    let text = doctor::summary(&record, &Style { width: 160, ..NARROW });
    assert!(text.contains("no epoch could be used") && text.contains("all rounds dropped"), "{text}");
}

#[test]
fn a_proof_counts_its_races() {
    let mut record = with_proof();
    conclude(&mut record);
    let rows = &record.proof.as_ref().unwrap().rows;
    assert_eq!(
        (rows[0].races, rows[0].faster, rows[0].equivalent, rows[0].median_verdict_s),
        (3, 1, 2, Some(27.0))
    );
    assert_eq!((rows[1].slower, rows[1].inconclusive, rows[1].median_verdict_s), (1, 1, Some(26.5)));
    assert!((rows[2].true_ratio.unwrap() - (1.0 / 0.952 + 1.0 / 0.951) / 2.0).abs() < 1e-12);
    insta::assert_snapshot!(shown(with_proof()));
    let proof = record.proof.unwrap();
    let lines: Vec<String> =
        (0..2).map(|at| doctor::race_line(&proof, &proof.results[at], at + 1, &NARROW)).collect();
    assert_eq!(lines[1], "2/9 3 % more work      slower        0.971 (0.963 to 0.979)  4 epochs, 0:27");
}

#[test]
fn a_proof_without_a_valid_race_proves_nothing() {
    let mut record = with_proof();
    conclude(&mut record);
    assert!(record.fit, "{:?}", record.findings);
    let results = &mut record.proof.as_mut().unwrap().results;
    results.iter_mut().for_each(|race| race.verdict = VerdictWord::Invalid);
    conclude(&mut record);
    let found: Vec<(&str, Severity)> =
        record.findings.iter().map(|one| (one.code.as_str(), one.severity)).collect();
    assert_eq!(found, [("invalid-races", Severity::Invalid); 3]);
    assert!(!record.fit);
}

#[test]
fn what_comes_from_outside_cannot_act_on_the_terminal() {
    let mut record = with_floor(0.006);
    record.noise.busiest = vec![BusyProcess { pid: 1, name: "\u{1b}[2J".into(), cores: 1.0 }];
    record.noise.foreign_share = Some(0.5);
    record.machine.cpu_model = Some("\u{1b}[31mred".into());
    record.floor =
        record.floor.map(|floor| NoiseFloor { command: "\u{7}x".into(), built_in: false, ..floor });
    assert!(!shown(record).contains(['\u{1b}', '\u{7}']));
}
