//! Owns: whole races on fakes, with the order of all calls to the machine. Must not know: real processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use std::net::Ipv4Addr;

use deadheat_analysis::Report;
use deadheat_load::{RecordedRequest, RecordedTimes, Recording};
use deadheat_record::{
    BodyRule, Capture, Contender, Experiment, Journal, Limits, Link, LoadFrom, LogContents, LogReading,
    Method, Metric, Objective, Pinning, Plan, Probe, Rebuild, Record, Replay, RequestLog, Rows, ScenarioPlan,
    Severity, Share, Slices, StatusRule, Traffic, Typed, ValuesFile, VerdictWord, Why, read,
};

use deadheat_host::process::profile::ProfileError;

use super::*;
use crate::fakes::{Character, FakeClock, FakeGenerator, FakeHost, FakeLink, Silence, World};

const MS: u64 = 1_000_000;

/// A race of these contenders with closed load: slices of 100 ms, two rounds, at least three epochs and at most six.
pub(crate) fn plan(folder: &Path, names: &[&str]) -> Plan {
    let contender = |name: &&str| Contender {
        name: (*name).into(),
        command: format!("exec {name}"),
        folder: folder.into(),
        ..Contender::default()
    };
    let probe = Probe {
        name: "root".into(),
        method: "GET".into(),
        path: "/".into(),
        paths: Vec::new(),
        log: None,
        values: None,
        capture: BTreeMap::new(),
        request_headers: BTreeMap::new(),
        request_body: String::new(),
        status: StatusRule::Success,
        headers: BTreeMap::new(),
        agree_headers: Vec::new(),
        body: BodyRule {
            json: Vec::new(),
            volatile: Vec::new(),
            exact: None,
            agree: true,
            ignored: Vec::new(),
        },
        under_load: true,
    };
    let scenario = ScenarioPlan {
        name: "steady".into(),
        shape: Experiment::Closed { connections: 4 },
        requests: vec![Share { probe: "root".into(), weight: 1 }],
        limits: Limits::default(),
        metrics: vec![Metric::Throughput],
        slices: None,
        sweep: None,
        ladder: None,
        link: None,
        traffic: Traffic::default(),
    };
    Plan {
        study: "made-up".into(),
        title: None,
        folder: folder.into(),
        work: folder.join("work"),
        dataset: None,
        services: Vec::new(),
        contenders: names.iter().map(contender).collect(),
        skipped: Vec::new(),
        probes: vec![probe],
        scenarios: vec![scenario],
        method: Method {
            profile: "quick".into(),
            seed: 7,
            metric: Metric::Throughput,
            baseline: names[0].into(),
            all_pairs: names.len() > 2,
            alpha: 0.025,
            margin: 0.03,
            looks: vec![4, 6],
            slice_ns: 100 * MS,
            settle_ns: 0,
            rounds: 2,
            pilot_ns: 0,
            warmup_ns: (200 * MS, 200 * MS),
            warmup_requests: 10,
            wake_ns: 0,
            cpu_latency_us: None,
            budget_ns: None,
            over_ns: 0,
            collectors_ns: 0,
            why: Why::Never,
            ready_ns: Method::READY_NS,
            timeout_ns: Method::TIMEOUT_NS,
        },
        pinning: Pinning { server_cpus: vec![0], load_cpus: vec![1] },
        claims: Vec::new(),
        edge_hit_rate: None,
        load_from: None,
        server_host: None,
        typed: Typed::default(),
    }
}

fn machine() -> deadheat_record::Machine {
    let document = include_str!("../../../record/tests/fixtures/example.json");
    serde_json::from_str::<deadheat_analysis::Report>(document).unwrap().record.machine
}

/// Runs the race of a record in a world.
fn race(
    world: &Rc<World>,
    record: Record,
    journal: Journal,
    folder: &Path,
) -> (Result<Finish, RaceError>, Record) {
    attempt(world, record, journal, folder, None)
}

/// The same, for at most this long.
fn attempt(
    world: &Rc<World>,
    record: Record,
    journal: Journal,
    folder: &Path,
    pause_after: Option<Duration>,
) -> (Result<Finish, RaceError>, Record) {
    let (host, generator) = (FakeHost(Rc::clone(world)), FakeGenerator(Rc::clone(world)));
    let clock = FakeClock(Rc::clone(world));
    let stopped = || world.stopped();
    let files = world.files.borrow().clone();
    let mut race = Race {
        record,
        journal,
        logs: folder.join("logs"),
        stopped: &stopped,
        observer: &mut Silence,
        place: Place { host: &host, generator: &generator, clock: &clock, files: &files },
        pause_after,
    };
    let finish = race.go();
    (finish, race.record)
}

/// Runs a plan from the beginning.
fn raced(world: &Rc<World>, plan: Plan, folder: &Path) -> (Finish, Record) {
    raced_within(world, plan, folder, None)
}

/// The same, for at most this long.
fn raced_within(
    world: &Rc<World>,
    plan: Plan,
    folder: &Path,
    pause_after: Option<Duration>,
) -> (Finish, Record) {
    let mut journal = Journal::create(&folder.join("race.jsonl")).unwrap();
    let record = Record::new("0.0.0".into(), 1_700_000_000_000, plan, machine());
    journal.append(&record.header()).unwrap();
    let (finish, record) = attempt(world, record, journal, folder, pause_after);
    (finish.unwrap(), record)
}

fn codes(record: &Record) -> Vec<&str> {
    record
        .findings
        .iter()
        .map(|(_, finding)| finding.code.as_str())
        .filter(|code| *code != "processors-sleep")
        .collect()
}

#[test]
fn a_race_of_two_that_differ_is_decided_at_its_first_look() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
    let (finish, record) = raced(&world, plan(folder.path(), &["a", "b"]), folder.path());
    assert_eq!(finish, Finish::Done);
    assert_eq!(record.end_of("steady"), Some(End::Decided));
    assert_eq!(record.epochs_of("steady").count(), 4, "the first look");
    assert_eq!(record.racing("steady"), [0, 1]);
}

/// A race whose load comes from another machine over this link, with slices of this length.
fn from_elsewhere(link: FakeLink, slice_ms: u64) -> (Report, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
    world.link.set(Some(link));
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.method.slice_ns = slice_ms * MS;
    plan.load_from = Some(LoadFrom { hosts: vec!["ssh://a".into()], server_address: Ipv4Addr::LOCALHOST });
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    (Report::of(&record).unwrap(), world.calls.borrow().clone())
}

/// A link over which messages take no time, and which is never busy.
const IDLE: FakeLink = FakeLink { round_trip: Duration::ZERO, bytes_per_s: 1e12, answer_bytes: 100 };

fn found(report: &Report, code: &str) -> Option<Severity> {
    report.scenarios[0].findings.iter().find(|one| one.code == code).map(|one| one.severity)
}

#[test]
fn what_load_hosts_did_is_in_the_record_and_in_the_report() {
    let link = FakeLink { round_trip: Duration::from_millis(1), ..IDLE };
    let (report, calls) = from_elsewhere(link, 100);
    let epoch = &report.record.epochs[0];
    let host = &epoch.load_hosts.as_ref().unwrap().hosts[0];
    assert_eq!((host.name.as_str(), host.connections), ("a", 2));
    assert_eq!(host.start_delay_ns.decode().unwrap().len(), 4, "two rounds of two slices");
    assert_eq!(host.external.foreign_share, Some(0.02));
    let part = epoch.of(0).unwrap();
    assert_eq!(part.load_hosts[0].requests, part.completions, "the rounds alone, without warm-up");
    assert!(part.network.is_some() && part.awake_ns.unwrap() > part.loaded_ns);
    let hosts = report.scenarios[0].load_hosts.as_ref().unwrap();
    assert_eq!(hosts.hosts[0].requests_share, Some(1.0));
    assert_eq!(hosts.hosts[0].round_trip_ns.count, 16, "four epochs");
    assert_eq!(hosts.hosts[0].epochs.len(), 4);
    assert_eq!(hosts.start_skew_p99_ns, None, "one host");
    // The bandwidth is measured after the ceiling, while all contenders are frozen.
    let at = |call: &str| calls.iter().position(|one| one.starts_with(call)).unwrap();
    assert!(at("slice the null server") < at("bandwidth of the null server"));
    assert!(at("bandwidth of the null server") < at("slice a"));
    assert!(report.record.pilots[0].link.is_some());
}

#[test]
fn a_round_in_which_a_load_host_was_silent_does_not_count_and_the_race_goes_on() {
    let after = |silent_in_slice: Option<usize>| {
        let folder = tempfile::tempdir().unwrap();
        let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
        world.link.set(Some(IDLE));
        world.silent_in_slice.set(silent_in_slice);
        let mut plan = plan(folder.path(), &["a", "b"]);
        plan.load_from =
            Some(LoadFrom { hosts: vec!["ssh://a".into()], server_address: Ipv4Addr::LOCALHOST });
        let (finish, record) = raced(&world, plan, folder.path());
        assert_eq!((finish, record.end_of("steady")), (Finish::Done, Some(End::Decided)));
        let rounds = record.epochs.iter().flat_map(|epoch| &epoch.rounds);
        let dropped: Vec<String> = rounds.filter_map(|round| round.dropped.clone()).collect();
        (dropped, world.slices.get())
    };
    let (dropped, slices) = after(None);
    assert!(dropped.is_empty(), "{dropped:?}");
    // The last slice is one of the last round.
    assert_eq!(after(Some(slices)).0, ["nothing was heard from load host a for 3.0 s"]);
}

#[test]
fn no_contender_is_out_because_a_load_host_was_lost() {
    // While the first and the second contender start, while they are compared, and later.
    for asks in [0, 1, 2, 6, 7, 8, 9] {
        let folder = tempfile::tempdir().unwrap();
        let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
        world.link.set(Some(IDLE));
        world.lost_after_asks.set(Some(asks));
        let mut plan = plan(folder.path(), &["a", "b"]);
        plan.load_from =
            Some(LoadFrom { hosts: vec!["ssh://a".into()], server_address: Ipv4Addr::LOCALHOST });
        let path = folder.path().join("race.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let record = Record::new("0.0.0".into(), 1_700_000_000_000, plan, machine());
        journal.append(&record.header()).unwrap();
        let (finish, _) = race(&world, record, journal, folder.path());
        assert!(matches!(&finish, Err(RaceError::Failed(why)) if why.contains("a was lost")), "{finish:?}");
        let record = read(&path).unwrap();
        assert!(record.out.is_empty() && record.differences.is_empty(), "{asks}");
        assert_eq!((record.end_of("steady"), codes(&record).last()), (None, Some(&"host-lost")), "{asks}");
        let asked = world.calls.borrow().iter().filter(|call| call.starts_with("ask ")).count();
        assert!(asks > 1 || asked == asks + 1, "a start waits no longer: {asked}");
    }
}

#[test]
fn a_contender_is_loaded_for_nine_tenths_of_its_time_at_a_round_trip_of_one_millisecond() {
    let after = |round_trip_ms, slice_ms| {
        let link = FakeLink { round_trip: Duration::from_millis(round_trip_ms), ..IDLE };
        let (report, _) = from_elsewhere(link, slice_ms);
        let duty = report.scenarios[0].load_hosts.as_ref().unwrap().duty.unwrap();
        (duty, found(&report, "idle-between-slices"))
    };
    let (duty, finding) = after(1, 100);
    assert!((0.985..0.995).contains(&duty) && finding.is_none(), "{duty}");
    let (duty, finding) = after(20, 100);
    assert!(duty < 0.9 && finding == Some(Severity::Warn), "{duty}");
    // As long as `lengthen_slices` makes them.
    let (duty, finding) = after(20, 240);
    assert!(duty > 0.9 && finding.is_none(), "{duty}");
}

#[test]
fn the_time_that_messages_take_warms_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
    world.link.set(Some(FakeLink { round_trip: Duration::from_millis(100), ..IDLE }));
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.method.wake_ns = 200 * MS;
    plan.load_from = Some(LoadFrom { hosts: vec!["ssh://a".into()], server_address: Ipv4Addr::LOCALHOST });
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    let calls = world.calls.borrow();
    // Two slices without a pause make a warm-up of 200 ms, and two more wake each contender.
    let in_a_row = calls.windows(2).filter(|two| *two == ["slice a 100", "slice a 100"]).count();
    assert_eq!(in_a_row, 2 * record.epochs.len(), "{calls:?}");
}

#[test]
fn a_link_that_is_busy_takes_the_verdict_away() {
    // 10,000 answers per second at 100 us each.
    let at = |bytes_per_s| {
        let (report, _) = from_elsewhere(FakeLink { bytes_per_s, ..IDLE }, 100);
        let of_a = |one: &&Finding| one.code == "link-saturated" && one.contender.as_deref() == Some("a");
        let finding = report.scenarios[0].findings.iter().find(of_a).cloned();
        (finding.map(|one| one.severity), report.scenarios[0].load_hosts.as_ref().unwrap().link.clone())
    };
    assert_eq!(at(2_200_000.0).0, None);
    assert_eq!(at(1_800_000.0).0, Some(Severity::Warn));
    let (severity, used) = at(1_200_000.0);
    assert_eq!(severity, Some(Severity::Invalid));
    assert!((0.8..0.87).contains(&used.unwrap().share));
}

/// A race whose second contender takes this long for a request; the first takes 100 us. Returns the record, and the calls of the pass.
fn profiled(why: Why, service_us: f64, refused: Option<ProfileError>) -> (Record, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(service_us))]);
    world.unprofiled.replace(refused);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.method.why = why;
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    assert!(!folder.path().join("work/profile").exists(), "nothing is left behind");
    let calls = world.calls.borrow();
    let from = calls.iter().position(|call| call.starts_with("profile")).unwrap_or(calls.len());
    (record, calls[from..].to_vec())
}

#[test]
fn each_contender_is_profiled_alone_at_the_same_rate() {
    let (record, calls) = profiled(Why::Always, 120.0, None);
    let seen: Vec<(&str, f64)> =
        record.profiles.iter().map(|one| (one.contender.as_str(), one.rate_per_s.round())).collect();
    // 70 % of what the slower contender answers.
    assert_eq!((seen.len(), seen[0].0, seen[1].0), (2, "a", "b"));
    assert!(seen[0].1 == seen[1].1 && (5_700.0..5_950.0).contains(&seen[0].1), "{seen:?}");
    assert_eq!(calls[..4], ["profile a", "thaw a", "slice a 5000", "freeze a"]);
    assert!(calls.contains(&"stop a".to_owned()) && calls.contains(&"profile b".to_owned()), "{calls:?}");
    let report = deadheat_analysis::Report::of(&record).unwrap();
    let gains = &report.scenarios[0].gains[0];
    assert_eq!((gains.contender.as_str(), gains.functions[0].function.as_str()), ("b", "serve_b"));
    assert!((19_000.0..21_000.0).contains(&gains.gained_ns), "{gains:?}");
}

#[test]
fn a_profile_may_depend_on_the_verdict() {
    assert_eq!(profiled(Why::Never, 120.0, None).0.profiles.len(), 0);
    assert_eq!(profiled(Why::Slower, 120.0, None).0.profiles.len(), 2);
    assert_eq!(profiled(Why::Slower, 80.0, None).0.profiles.len(), 0, "faster");
}

#[test]
fn without_the_right_to_sample_there_is_a_note_and_nothing_else() {
    let refused = ProfileError::NotPermitted { reason: "no".into() };
    let (record, calls) = profiled(Why::Always, 120.0, Some(refused));
    assert_eq!((record.profiles.len(), calls.len()), (0, 0));
    assert_eq!(codes(&record), ["profile-not-permitted"]);
    assert_eq!(record.end_of("steady"), Some(End::Decided));
}

#[test]
fn an_epoch_has_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(100.0))]);
    raced(&world, plan(folder.path(), &["a", "b"]), folder.path());
    let calls = world.calls.borrow();
    // The pilot starts each of the two contenders once. The next start begins the first epoch.
    let starts: Vec<usize> = (0..calls.len())
        .filter(|at| calls[*at].starts_with("start a") || calls[*at].starts_with("start b"))
        .collect();
    let epoch: Vec<&str> = calls[starts[2]..starts[4]].iter().map(String::as_str).collect();
    let kinds: Vec<&str> = epoch.iter().map(|call| call.split(' ').next().unwrap()).collect();
    let names = |kind: &str| epoch.iter().filter(|call| call.starts_with(kind)).count();
    // Each contender starts, answers and is frozen. Then all are compared twice, because the probe is used under load.
    assert_eq!(kinds[..6], ["start", "ask", "freeze", "start", "ask", "freeze"], "{epoch:?}");
    assert_eq!(kinds[6..12], ["thaw", "thaw", "ask", "ask", "freeze", "freeze"], "{epoch:?}");
    assert_eq!((epoch[8], epoch[9]), ("ask a b", "ask a b"));
    // Connections open in plan order. Each contender runs only while its own open.
    assert_eq!(epoch[12..18], ["thaw a", "open a", "freeze a", "thaw b", "open b", "freeze b"]);
    // Two slices of warm-up each, then two rounds in mirrored order.
    assert_eq!(kinds[18..26], ["thaw", "slice", "slice", "freeze", "thaw", "slice", "slice", "freeze"]);
    let rounds: Vec<&str> = epoch[26..].iter().copied().filter(|call| call.starts_with("slice")).collect();
    assert_eq!(rounds.len(), 4, "{epoch:?}");
    assert_eq!((rounds[0], rounds[1]), (rounds[3], rounds[2]), "mirrored: {rounds:?}");
    assert_eq!(kinds[kinds.len() - 2..], ["stop", "stop"]);
    assert_eq!((names("start"), names("stop"), names("open")), (2, 2, 2));
}

#[test]
fn a_build_with_a_seed_runs_before_each_start_with_another() {
    let with = |a: Character| {
        let folder = tempfile::tempdir().unwrap();
        let world = World::of(&[("a", a), ("b", Character::taking_us(100.0))]);
        let mut plan = plan(folder.path(), &["a", "b"]);
        plan.contenders[0].rebuild =
            Some(Rebuild { command: "make SEED={seed}".into(), limit_ns: 2_000 * MS });
        let (finish, record) = raced(&world, plan, folder.path());
        (finish, record, world.calls.take())
    };
    let (_, record, calls) = with(Character::taking_us(100.0));
    let own: Vec<&str> = calls
        .iter()
        .map(String::as_str)
        .filter(|call| call.contains(" a") && !call.contains("ask"))
        .collect();
    let starts: Vec<usize> = (0..own.len()).filter(|at| own[*at] == "start a").collect();
    let built: Vec<&str> = starts.iter().map(|at| own[at - 1]).collect();
    let said = |seed: u32| format!("run a: make SEED={seed}");
    let seeds: Vec<u32> = record.epochs.iter().map(|one| one.contenders[0].build_seed.unwrap()).collect();
    // The pilot's start has a build, too.
    assert_eq!(built[1..], seeds.iter().map(|seed| said(*seed)).collect::<Vec<_>>());
    assert!(seeds.len() >= 3 && seeds.windows(2).all(|two| two[0] != two[1]), "{seeds:?}");
    assert!(record.epochs.iter().all(|epoch| epoch.contenders[1].build_seed.is_none()));

    let (_, record, calls) = with(Character { builds_forever: true, ..Character::taking_us(100.0) });
    assert!(record.epochs.is_empty() && !calls.contains(&"start a".to_owned()), "{calls:?}");
    let found =
        record.findings.iter().find(|(_, one)| one.message.contains("ran for over 2 s (--build-timeout)"));
    assert_eq!(found.unwrap().1.contender.as_deref(), Some("a"));
}

#[test]
fn epochs_are_spread_over_the_time_that_is_asked_for() {
    let raced_over = |over_ns: u64, pause_after: Option<Duration>| {
        let folder = tempfile::tempdir().unwrap();
        let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(101.5))]);
        let mut plan = plan(folder.path(), &["a", "b"]);
        plan.method.looks = vec![4];
        plan.method.over_ns = over_ns;
        let (finish, record) = raced_within(&world, plan, folder.path(), pause_after);
        let first = record.epochs[0].started_unix_ms;
        (finish, record.epochs.iter().map(|epoch| epoch.started_unix_ms - first).collect::<Vec<u64>>())
    };
    let hour = 3_600_000 * MS;
    let minutes = |begun: Vec<u64>| begun.into_iter().map(|ms| ms / 60_000).collect::<Vec<u64>>();
    let (finish, begun) = raced_over(3 * hour, None);
    assert_eq!((finish, minutes(begun)), (Finish::Done, vec![0, 60, 120, 180]));
    assert_eq!(minutes(raced_over(0, None).1), [0; 4]);
    // The next epoch would begin after the pause.
    let (finish, begun) = raced_over(3 * hour, Some(Duration::from_secs(90 * 60)));
    assert_eq!((finish, minutes(begun)), (Finish::Paused, vec![0, 60]));
}

#[test]
fn a_link_is_measured_first_and_the_ceiling_is_measured_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    let link = Link { delay_ns: 5 * MS, ..Link::default() };
    let linked = ScenarioPlan { name: "far".into(), link: Some(link), ..plan.scenarios[0].clone() };
    plan.scenarios.insert(0, linked);
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    assert_eq!((record.links.len(), record.links[0].scenario.as_str()), (1, "far"));
    let notes = world.calls.borrow();
    let of_links: Vec<&str> = notes
        .iter()
        .map(String::as_str)
        .filter(|note| note.contains("link") || *note == "open the null server")
        .collect();
    // The second scenario has no link.
    assert_eq!(
        of_links,
        [
            "a link",
            "measure the link",
            "no link",
            "open the null server",
            "a link",
            "no link",
            "open the null server"
        ]
    );
    let first_start = notes.iter().position(|note| note.starts_with("start ")).unwrap();
    assert!(notes.iter().position(|note| note == "measure the link").unwrap() < first_start, "{notes:?}");
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let calls = |seed| {
        let folder = tempfile::tempdir().unwrap();
        let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(101.0))]);
        let mut plan = plan(folder.path(), &["a", "b"]);
        plan.method.seed = seed;
        raced(&world, plan, folder.path());
        world.calls.take()
    };
    assert_eq!(calls(7), calls(7));
    assert_ne!(calls(7), calls(8));
}

#[test]
fn who_dies_in_the_middle_is_out_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let mortal = Character { dies_in_slice: Some(9), ..Character::taking_us(100.0) };
    let world =
        World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(130.0)), ("c", mortal)]);
    let (finish, record) = raced(&world, plan(folder.path(), &["a", "b", "c"]), folder.path());
    assert_eq!(finish, Finish::Done);
    assert_eq!(record.racing("steady"), [0, 1]);
    assert_eq!(record.end_of("steady"), Some(End::Decided));
    let (_, out) = record.findings.iter().find(|(_, one)| one.code == "contender-out").unwrap();
    assert!(out.message.starts_with("ended with signal 9"), "{out:?}");
    let calls = world.calls.borrow();
    let count = |kind: &str| calls.iter().filter(|call| call.starts_with(kind)).count();
    assert_eq!(count("start "), count("stop "), "whatever was started is stopped");
}

#[test]
fn the_control_alone_is_no_rival() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Character { cannot_start: true, ..Character::taking_us(100.0) };
    let good = || Character::taking_us(100.0);
    let world = World::of(&[("a", good()), ("b", missing), ("control", good())]);
    let mut plan = plan(folder.path(), &["a", "b", "control"]);
    plan.method.all_pairs = false;
    plan.contenders[2].control = true;
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!((finish, record.epochs.len()), (Finish::TooFew, 0));
}

#[test]
fn one_of_two_that_cannot_start_ends_the_race() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Character { cannot_start: true, ..Character::taking_us(100.0) };
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", missing)]);
    let (finish, record) = raced(&world, plan(folder.path(), &["a", "b"]), folder.path());
    assert_eq!(finish, Finish::TooFew);
    assert_eq!(record.end_of("steady"), Some(End::Stopped));
    assert_eq!(codes(&record), ["contender-out"]);
    assert_eq!(world.slices.get(), 0, "nothing was loaded");
}

#[test]
fn who_answers_otherwise_is_out_before_anything_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let other = Character { body: "no", ..Character::taking_us(50.0) };
    let world =
        World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(130.0)), ("c", other)]);
    let (finish, record) = raced(&world, plan(folder.path(), &["a", "b", "c"]), folder.path());
    assert_eq!((finish, record.racing("steady")), (Finish::Done, vec![0, 1]));
    let calls = world.calls.borrow();
    assert!(!calls.iter().any(|call| call.starts_with("slice c")), "{calls:?}");
}

#[test]
fn a_budget_ends_a_race_that_is_not_decided() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(103.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    // The pilot's handicaps take 2 s for each contender. An epoch takes 0.8 s: two warm-ups of 0.2 s, and four slices.
    plan.method.budget_ns = Some((2 * 2_000 + 2_000) * MS);
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    assert_eq!(record.end_of("steady"), Some(End::Budget));
    assert_eq!(record.epochs_of("steady").count(), 2);
    assert!(record.epochs_of("steady").all(|epoch| epoch.took_ns == 800 * MS));
}

#[test]
fn an_interrupted_round_counts_for_nothing_and_the_race_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(120.0))]);
    // The interruption comes in the second slice after these: 2 of the ceiling, 21 of the pilot for each contender, 8 of the first epoch
    // and 4 of the second epoch's warm-up.
    world.interrupted_in_slice.set(Some(2 + 2 * 21 + 8 + 4 + 2));
    let (finish, record) = raced(&world, plan(folder.path(), &["a", "b"]), folder.path());
    assert_eq!(finish, Finish::Interrupted);
    let held = record.epochs_of("steady").count();
    assert_eq!(held, 1);
    let calls = world.calls.borrow().clone();
    let count = |calls: &[String], kind: &str| calls.iter().filter(|call| call.starts_with(kind)).count();
    assert_eq!(count(&calls, "start "), count(&calls, "stop "), "nothing lives on");
    // The file has the same contents as the record, and the race continues from there.
    let path = folder.path().join("race.jsonl");
    let mut again = read(&path).unwrap();
    assert_eq!(again.epochs_of("steady").count(), held);
    world.interrupted_in_slice.set(None);
    let mut journal = Journal::resume(&path).unwrap();
    let resumed = Line::Resumed { unix_ms: 1_700_000_100_000 };
    journal.append(&resumed).unwrap();
    again.apply(resumed);
    let (finish, record) = race(&world, again, journal, folder.path());
    assert_eq!(finish.unwrap(), Finish::Done);
    assert_eq!(record.end_of("steady"), Some(End::Decided));
    assert_eq!(record.epochs_of("steady").count(), 4);
    assert_eq!(record.pilots.len(), 1, "a pilot is held once");
}

/// A pause takes no look beside the planned ones, so the next attempt has all the alpha that they left.
#[test]
fn an_attempt_pauses_at_a_look_and_the_next_one_continues() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(100.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    // The margin is out of reach: the race goes on until its last look.
    (plan.method.looks, plan.method.margin) = (vec![4, 6, 8, 10, 12], 1e-12);
    let path = folder.path().join("race.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    let record = Record::new("0.0.0".into(), 1_700_000_000_000, plan, machine());
    journal.append(&record.header()).unwrap();
    let (mut record, mut paused_at) = (record, Vec::new());
    // An epoch takes 0.8 s: in the second attempt, there is time for the look at 6 and not for the one at 8.
    for limit in [1, 5_000, 2_000, 60_000].map(Duration::from_millis) {
        let (finish, so_far) = attempt(&world, record, journal, folder.path(), Some(limit));
        let epochs = so_far.epochs_of("steady").count();
        match finish.unwrap() {
            Finish::Paused => paused_at.push(epochs),
            finish => assert_eq!((finish, epochs), (Finish::Done, 12)),
        }
        assert_eq!(so_far.end_of("steady").is_some(), epochs == 12, "a pause is no end");
        journal = Journal::resume(&path).unwrap();
        record = so_far;
    }
    assert_eq!(paused_at, [1, 6, 8], "each attempt makes progress, and pauses at a look if it can");
    assert_eq!(record.end_of("steady"), Some(End::Maximum));
}

/// Also if one refuses what is too much, as it does while it is warmed up.
#[test]
fn a_peak_is_found_near_what_each_can_answer() {
    for refuses_full_speed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let first = Character { refuses_full_speed, ..Character::taking_us(100.0) };
        let world = World::of(&[("a", first), ("b", Character::taking_us(125.0))]);
        let mut plan = plan(folder.path(), &["a", "b"]);
        let objective = Objective { quantile: 0.99, limit_ns: 10 * MS };
        plan.scenarios[0].shape = Experiment::Peak { connections: 4, objective };
        plan.scenarios[0].metrics = vec![Metric::Peak];
        plan.scenarios[0].slices = Some(Slices { slice_ns: 1_000 * MS, rounds: 12 });
        let (finish, record) = raced(&world, plan, folder.path());
        assert_eq!((finish, record.end_of("steady")), (Finish::Done, Some(End::Decided)));
        for epoch in record.epochs_of("steady") {
            for (part, capacity) in epoch.contenders.iter().zip([10_000.0, 8_000.0]) {
                let found = part.peak.unwrap().found().unwrap();
                assert!((found / capacity - 1.0_f64).abs() < 0.05, "{found} of {capacity}");
            }
        }
        let report = Report::of(&record).unwrap();
        assert_ne!(report.scenarios[0].comparisons[0].verdict, VerdictWord::Invalid);
    }
}

#[test]
fn starts_are_timed_until_the_first_answer() {
    let folder = tempfile::tempdir().unwrap();
    let starting = |ms| Character { start: Duration::from_millis(ms), ..Character::taking_us(100.0) };
    let world = World::of(&[("a", starting(50)), ("b", starting(80))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.scenarios[0].shape = Experiment::Starts { starts: 5 };
    plan.scenarios[0].metrics = vec![Metric::ColdStart];
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    assert_eq!((record.epochs_of("steady").count(), world.slices.get()), (5, 0));
    for epoch in record.epochs_of("steady") {
        for (part, ms) in epoch.contenders.iter().zip([50.0, 80.0]) {
            let took = part.cold_start_ns as f64 / 1e6;
            // The launcher polls for readiness at intervals of 0.5 % of the time elapsed.
            assert!((1.0..1.02).contains(&(took / ms)), "{took} ms");
        }
    }
}

#[test]
fn a_rate_is_kept_by_those_that_can() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(200.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.scenarios[0].shape = Experiment::Open { connections: 4, rate_per_s: 1_000.0, poisson: true };
    plan.scenarios[0].metrics = vec![Metric::Cpu];
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!((finish, record.end_of("steady")), (Finish::Done, Some(End::Decided)));
    let rounds: Vec<_> = record.epochs_of("steady").flat_map(|epoch| &epoch.rounds).collect();
    assert!(
        rounds.iter().all(|round| round.slices[0].completions == round.slices[1].completions),
        "the same arrivals"
    );
}

#[test]
fn who_refuses_more_than_its_rate_is_warmed_up_at_it() {
    let folder = tempfile::tempdir().unwrap();
    let limited = Character { refuses_full_speed: true, ..Character::taking_us(100.0) };
    let world = World::of(&[("a", limited), ("b", Character::taking_us(100.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.scenarios[0].shape = Experiment::Open { connections: 4, rate_per_s: 1_000.0, poisson: true };
    plan.scenarios[0].metrics = vec![Metric::Cpu];
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!((finish, record.end_of("steady")), (Finish::Done, Some(End::Decided)));
    let per_s =
        |part: &deadheat_record::ContenderEpoch| part.warmup_requests as f64 * 1e9 / part.warmup_ns as f64;
    for epoch in record.epochs_of("steady") {
        let warmed: Vec<f64> = epoch.contenders.iter().map(per_s).collect();
        assert!((900.0..1_100.0).contains(&warmed[0]) && warmed[1] > 5_000.0, "{warmed:?}");
    }
}

/// A contender that needs this many slices after each start to get warm.
fn cold(service_us: f64, slices: usize) -> Character {
    Character { cold: (0.4, slices), ..Character::taking_us(service_us) }
}

/// Asserts that the first four epochs were set aside, and that all later ones were warmed up for twice as long.
fn assert_lengthened(record: &Record) {
    let chosen = record.pilots[0].warmup_ns;
    let (_, said) = record.findings.iter().find(|(_, one)| one.code == "warm-up-lengthened").unwrap();
    assert!(
        said.message.contains("a still got ") && said.message.contains("4 epochs do not count"),
        "{said:?}"
    );
    assert_eq!(record.set_aside.len(), 4);
    assert!(record.set_aside.iter().all(|epoch| epoch.contenders[0].warmup_ns < 2 * chosen));
    assert_eq!(record.warmup_ns("steady"), Some(2 * chosen));
    assert_eq!(record.end_of("steady"), Some(End::Decided));
    for epoch in record.epochs_of("steady") {
        assert!(epoch.contenders.iter().all(|part| part.warmup_ns >= 2 * chosen), "{epoch:?}");
    }
}

#[test]
fn who_climbs_in_the_first_epochs_is_warmed_up_for_longer() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", cold(100.0, 60)), ("b", Character::taking_us(120.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.method.pilot_ns = 1_000 * MS;
    plan.method.warmup_ns = (200 * MS, 10_000 * MS);
    plan.method.rounds = 20;
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    assert_lengthened(&record);

    // A budget for these epochs is enough: those that were set aside do not use it up.
    let short = tempfile::tempdir().unwrap();
    let longest = record.epochs_of("steady").map(|epoch| epoch.took_ns).max().unwrap();
    let (mut tight, mut anew) = (record.plan.clone(), record);
    anew.set_aside.clear();
    tight.method.budget_ns = Some(spent_ns(&anew, "steady") + longest);
    let (_, record) = raced(&world, tight, short.path());
    assert_lengthened(&record);

    // The same race, killed after its fourth epoch and before the check.
    let text = std::fs::read_to_string(folder.path().join("race.jsonl")).unwrap();
    let until = text.lines().take_while(|line| !line.contains("\"line\":\"anew\""));
    let until: String = until.map(|line| format!("{line}\n")).collect();
    let resumed = |name: &str, looks: &[usize]| {
        let path = folder.path().join(name);
        std::fs::write(&path, &until).unwrap();
        let mut killed = read(&path).unwrap();
        assert_eq!((killed.epochs_of("steady").count(), killed.set_aside.len()), (4, 0));
        killed.plan.method.looks = looks.to_vec();
        let (finish, record) = race(&world, killed, Journal::resume(&path).unwrap(), folder.path());
        assert_eq!(finish.unwrap(), Finish::Done);
        record
    };
    assert_lengthened(&resumed("killed.jsonl", &[4, 6]));

    // A look after the third epoch has spent alpha. A race that begins anew would spend it twice, so this one goes on to its next look.
    let record = resumed("looked.jsonl", &[3, 6]);
    assert_eq!((record.set_aside.len(), record.anew.len()), (0, 0));
    assert_eq!(record.epochs_of("steady").count(), 6);
}

#[test]
fn a_race_does_not_end_at_a_look_while_a_contender_climbs() {
    let count = |climbing: Character| {
        let folder = tempfile::tempdir().unwrap();
        let world = World::of(&[("a", Character::taking_us(100.0)), ("b", climbing)]);
        let mut plan = plan(folder.path(), &["a", "b"]);
        plan.method.rounds = 20;
        let (finish, record) = raced(&world, plan, folder.path());
        assert_eq!(finish, Finish::Done);
        record.epochs_of("steady").count()
    };
    assert_eq!((count(Character::taking_us(120.0)), count(cold(120.0, 60))), (4, 6), "its looks are 4 and 6");
}

#[test]
fn who_is_not_warm_at_a_common_rate_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(200.0)), ("b", cold(200.0, 60))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.scenarios[0].shape = Experiment::Open { connections: 4, rate_per_s: 1_000.0, poisson: true };
    plan.scenarios[0].metrics = vec![Metric::Cpu];
    plan.method.rounds = 20;
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!((finish, record.epochs_of("steady").count()), (Finish::Done, 6));
    let climbing: Vec<String> =
        deadheat_analysis::judge::climbing(&record, "steady").into_iter().map(|(name, _)| name).collect();
    assert_eq!(climbing, ["b"]);
    for part in record.epochs_of("steady").flat_map(|epoch| &epoch.contenders) {
        let per_s = part.warmup_requests as f64 * 1e9 / part.warmup_ns as f64;
        assert!(per_s > 1_200.0, "warmed up at more than the rate of what follows: {per_s}/s");
    }
}

/// A recording of a request every 10 ms, for 970 ms, by two paths in turn.
fn recording() -> Recording {
    let request = |target: &str| RecordedRequest {
        method: "GET".into(),
        target: target.into(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let times = RecordedTimes::new((0..98).map(|at| at * 10 * MS).collect()).unwrap();
    Recording {
        requests: vec![request("/a"), request("/b")],
        lines: vec![1, 2],
        order: (0..98).map(|at| at % 2).collect(),
        times: Some(Arc::new(times)),
    }
}

/// Each start answers with a token of its own. Later requests of that start contain it, and no other.
#[test]
fn contenders_are_prepared_in_each_epoch_before_they_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let body = r#"{"token":"{start}"}"#;
    let names = ["a", "b"];
    let world = World::of(&names.map(|name| (name, Character { body, ..Character::taking_us(100.0) })));
    let mut plan = plan(folder.path(), &names);
    let login = Probe {
        name: "login".into(),
        path: "/login".into(),
        capture: BTreeMap::from([("token".into(), Capture::Json("$.token".into()))]),
        under_load: false,
        ..plan.probes[0].clone()
    };
    let root = &mut plan.probes[0];
    root.request_headers.insert("authorization".into(), "Bearer {token}".into());
    // The bodies contain the token, too.
    root.body.agree = false;
    plan.probes.insert(0, login);
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!((finish, record.racing("steady").len()), (Finish::Done, 2));
    let mut tokens = std::collections::BTreeSet::new();
    for name in names {
        let requests = world.requests.borrow();
        let sent: Vec<&str> = requests.iter().filter(|one| one.0 == name).map(|one| &one.1[..]).collect();
        let starts = world.calls.borrow().iter().filter(|call| **call == format!("start {name}")).count();
        assert_eq!((starts, sent.len()), (record.epochs.len() + 1, starts * 5), "{sent:?}");
        // The login decides readiness, and prepares. Then answers are compared twice, and the load begins.
        for one in sent.chunks(5) {
            assert!(one[..2].iter().all(|text| text.starts_with("GET /login ")), "{one:?}");
            let bearer = |text: &str| {
                let (_, rest) = text.split_once("authorization: Bearer ").unwrap();
                rest.lines().next().unwrap().to_owned()
            };
            let token = bearer(one[2]);
            assert!(token.starts_with(&format!("start-of-{name}-")), "{token}");
            assert!(
                one[2..].iter().all(|text| text.starts_with("GET / ") && bearer(text) == token),
                "{one:?}"
            );
            assert!(tokens.insert(token), "every start has its own");
        }
    }
    let written = std::fs::read_to_string(folder.path().join("race.jsonl")).unwrap();
    assert!(!written.contains("start-of-") && written.contains("{token}"), "{written}");
}

#[test]
fn who_gives_no_value_is_out_and_its_requests_are_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let named = |body| Character { body, ..Character::taking_us(100.0) };
    let (good, other) = (named(r#"{"token":"{start}"}"#), named(r#"{"tokn":"{start}"}"#));
    let world = World::of(&[("a", good.clone()), ("b", good), ("c", other)]);
    let mut plan = plan(folder.path(), &["a", "b", "c"]);
    plan.probes[0].body.agree = false;
    let login = Probe {
        name: "login".into(),
        capture: BTreeMap::from([("token".into(), Capture::Json("$.token".into()))]),
        under_load: false,
        ..plan.probes[0].clone()
    };
    plan.probes[0].path = "/{token}".into();
    plan.probes.insert(0, login);
    let (finish, record) = raced(&world, plan, folder.path());
    assert_eq!((finish, record.racing("steady")), (Finish::Done, vec![0, 1]));
    let [found] = &record.differences[..] else { panic!("{:?}", record.differences) };
    assert_eq!(
        [&found.contender, &found.probe, &found.path, &found.expected, &found.got, &found.against]
            .map(String::as_str),
        ["c", "login", "$.token", "a value for {token}", r#"none; the answer is {"tokn":"…"}"#, "contract"]
    );
    let requests = world.requests.borrow();
    assert!(
        requests.iter().filter(|one| one.0 == "c").all(|one| one.1.starts_with("GET / ")),
        "{requests:?}"
    );
}

/// Rows are sent in their order, and from the first one again.
#[test]
fn each_row_makes_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(100.0))]);
    let mut plan = plan(folder.path(), &["a", "b"]);
    plan.probes[0].path = "/{id}".into();
    let rows = Rows {
        columns: vec!["id".into()],
        values: ["x y", "2", "{id}"].map(|id| vec![id.to_owned()]).to_vec(),
        lines: vec![2, 3, 4],
    };
    plan.probes[0].values = Some(ValuesFile {
        file: folder.path().join("ids.csv"),
        sha256: String::new(),
        columns: rows.columns.clone(),
        rows: 3,
    });
    let mut journal = Journal::create(&folder.path().join("missing.jsonl")).unwrap();
    let record = Record::new("0.0.0".into(), 1_700_000_000_000, plan.clone(), machine());
    journal.append(&record.header()).unwrap();
    let (finish, _) = race(&world, record, journal, folder.path());
    assert_eq!(finish.unwrap_err().to_string(), "probe root: its rows of values are missing");
    world.files.borrow_mut().rows.insert("root".into(), Arc::new(rows));
    let (finish, _) = raced(&world, plan, folder.path());
    assert_eq!(finish, Finish::Done);
    let requests = world.requests.borrow();
    let paths = requests.iter().map(|one| one.1.split(' ').nth(1).unwrap());
    let (first, compared, second) = ("/x%20y", ["/x%20y", "/2", "/%7Bid%7D"], 2);
    assert_eq!(paths.clone().take(2).collect::<Vec<_>>(), [first; 2], "the first row decides readiness");
    let twice = compared.iter().flat_map(|path| [*path; 4]);
    assert_eq!(paths.skip(second).take(12).collect::<Vec<_>>(), twice.collect::<Vec<_>>());
}

/// The plan of a race that replays the recording twice as fast.
fn replaying(folder: &Path) -> Plan {
    let mut plan = plan(folder, &["a", "b"]);
    plan.probes[0].log = Some(RequestLog {
        file: folder.join("access.log"),
        reading: LogReading::default(),
        contents: LogContents { requests: 98, distinct: 2, ..LogContents::default() },
    });
    let scenario = &mut plan.scenarios[0];
    scenario.shape = Experiment::Open { connections: 4, rate_per_s: 200.0, poisson: false };
    scenario.metrics = vec![Metric::P50];
    scenario.traffic.replay = Some(Replay::Timing { speed: 2.0 });
    plan
}

#[test]
fn recorded_timing_goes_on_from_round_to_round_and_from_epoch_to_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(300.0))]);
    world.files.borrow_mut().recordings.insert("root".into(), Arc::new(recording()));
    let (finish, record) = raced(&world, replaying(folder.path()), folder.path());
    assert_eq!(finish, Finish::Done);
    let calls = world.calls.borrow();
    let replays: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("replay ")).collect();
    // Each round has two slices, one for each contender, of 100 ms: 200 ms of the recording. It begins again after 980 ms.
    let rounds = record.epochs.len() * 2;
    let replays = &replays[replays.len() - 2 * rounds..];
    for (round, slices) in replays.chunks(2).enumerate() {
        let from_ms = 200 * round as u64;
        let wanted = format!(" from {} at 2, position {}", from_ms * MS, from_ms / 10);
        assert!(slices.iter().all(|one| one.ends_with(&wanted)), "round {round}: {slices:?}");
        let mut names: Vec<&str> = slices.iter().map(|one| &one[..1]).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b"]);
    }
    let answered = record.epochs.iter().flat_map(|epoch| &epoch.rounds).flat_map(|round| &round.slices);
    let answered: Vec<u64> = answered.map(|slice| slice.completions).collect();
    assert!(answered.iter().all(|count| (19..=20).contains(count)), "{answered:?}");
}

#[test]
fn a_race_without_its_recorded_traffic_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::of(&[("a", Character::taking_us(100.0)), ("b", Character::taking_us(300.0))]);
    let mut journal = Journal::create(&folder.path().join("race.jsonl")).unwrap();
    let record = Record::new("0.0.0".into(), 1_700_000_000_000, replaying(folder.path()), machine());
    journal.append(&record.header()).unwrap();
    let (finish, _) = race(&world, record, journal, folder.path());
    let error = finish.unwrap_err().to_string();
    assert_eq!(error, "probe root: its recorded traffic is missing");
    assert!(world.calls.borrow().is_empty(), "{:?}", world.calls.borrow());
}
