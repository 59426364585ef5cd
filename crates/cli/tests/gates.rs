//! Each test provokes one gate and checks it from the command line to the record.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use deadheat_host::affinity;
use deadheat_testkit::{Kit, Outcome, TestServer, server_line, skip_loudly, turn_alone, wait_until};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_deadheat");
/// Shorter than the races of other tests, because these tests only check that a reading is beyond its limit.
const SHORT: [&str; 6] = ["--warmup", "50ms", "--measure", "160ms", "--slice", "20ms"];
/// One epoch: at least one runs, whatever the budget is.
const ONE_EPOCH: [&str; 4] = ["--epochs", "3", "--budget", "1ms"];
/// These cores exist on any machine with at least two.
const CORES: [&str; 4] = ["--server-cpus", "0", "--load-cpus", "1"];
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;

fn kit() -> Kit {
    Kit::new(BINARY)
}

fn two_cores() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2)
}

/// Races a server against itself in few epochs.
fn same(kit: &Kit, server: &str) -> Outcome {
    same_in(kit, server, "3")
}

fn same_in(kit: &Kit, server: &str, epochs: &str) -> Outcome {
    let race = kit.race().contender("a", server).contender("b", server).args(SHORT);
    race.args(["--epochs", epochs, "-c", "8"]).args(CORES).run()
}

/// Keeps a core busy until it is dropped.
struct Burner {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Burner {
    fn on(core: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let burn = move || {
            affinity::pin(&[core]).unwrap();
            while !told.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        Self { stop, thread: Some(std::thread::spawn(burn)) }
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A version 1 control group. Dropping it removes the group.
struct Group(PathBuf);

impl Group {
    /// `None` if the controller has no version 1 groups, or if the test cannot create one.
    fn of(controller: &str) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // deadheat uses other names for its groups.
        let name = format!("test-of-gates-{}-{number}", std::process::id());
        let folder = Path::new("/sys/fs/cgroup").join(controller).join(name);
        std::fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }

    /// A group whose members share half a core.
    fn half_a_core() -> Option<Self> {
        let group = Self::of("cpu").filter(|group| group.0.join("cpu.cfs_quota_us").exists())?;
        group.set("cpu.cfs_quota_us", "10000");
        group.set("cpu.cfs_period_us", "20000");
        Some(group)
    }

    fn set(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A frozen thread cannot leave the group, so thaw the group first.
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
        let removed = wait_until(Duration::from_secs(5), || std::fs::remove_dir(&self.0).is_ok());
        assert!(removed || std::thread::panicking(), "{} is left behind", self.0.display());
    }
}

fn scenario(outcome: &Outcome) -> Value {
    outcome.json()["scenarios"][0].clone()
}

/// Code, severity and contender of each finding of the scenario.
fn findings(outcome: &Outcome) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |one: &Value| (text(&one["code"]), text(&one["severity"]), text(&one["contender"]));
    scenario(outcome)["findings"].as_array().unwrap().iter().map(one).collect()
}

#[track_caller]
fn assert_found(outcome: &Outcome, code: &str, severity: &str, contender: &str) {
    let wanted = (code.to_owned(), severity.to_owned(), contender.to_owned());
    assert!(findings(outcome).contains(&wanted), "no {severity} {code} of {contender:?}\n{outcome}");
}

/// Asserts that the finding exists, as a warning or worse.
#[track_caller]
fn assert_noticed(outcome: &Outcome, code: &str, contender: &str) {
    let noticed = findings(outcome).iter().any(|one| one.0 == code && one.2 == contender);
    assert!(noticed, "no {code} of {contender:?}\n{outcome}");
}

#[track_caller]
fn assert_not_found(outcome: &Outcome, code: &str) {
    assert!(findings(outcome).iter().all(|one| one.0 != code), "{code} was not asked for\n{outcome}");
}

/// Asserts that use of our cores by other programs makes the race invalid. deadheat drops rounds, or reports the other programs' share if
/// the clock is too coarse to judge single rounds.
#[track_caller]
fn assert_disturbed(outcome: &Outcome) {
    let found = findings(outcome);
    let disturbed = ["dropped-rounds", "foreign-cpu"];
    assert!(found.iter().any(|one| disturbed.contains(&one.0.as_str()) && one.1 == "invalid"), "{outcome}");
}

/// Asserts that the race gives up after this many epochs if deadheat drops every round, and only then.
#[track_caller]
fn assert_given_up(outcome: &Outcome, after: usize) {
    let epochs = outcome.json()["record"]["epochs"].as_array().unwrap().clone();
    let mut rounds = epochs.iter().flat_map(|epoch| epoch["rounds"].as_array().unwrap());
    let any_left = rounds.any(|round| round["dropped"].is_null());
    let given_up = (epochs.len(), &scenario(outcome)["ended"]) == (after, &Value::from("unavailable"));
    assert_eq!(given_up, !any_left, "{outcome}");
    if given_up {
        outcome.assert_status(3).assert_stdout_has("race again on a quieter machine");
    }
}

/// Whether deadheat dropped too many rounds because of other programs. Its figures come from undisturbed rounds only.
fn left_out(outcome: &Outcome) -> bool {
    findings(outcome).iter().any(|one| one.0 == "dropped-rounds")
}

/// Asserts that a server raced against itself gets no verdict, and that the measurement has no defect.
#[track_caller]
fn assert_nothing_claimed(outcome: &Outcome) {
    for pair in scenario(outcome)["comparisons"].as_array().unwrap() {
        let verdict = pair["verdict"].as_str().unwrap();
        assert!(matches!(verdict, "invalid" | "inconclusive"), "{verdict}\n{outcome}");
    }
    assert_not_found(outcome, "littles-law");
}

fn parts(outcome: &Outcome) -> Vec<Value> {
    let json = outcome.json();
    let epochs = json["record"]["epochs"].as_array().unwrap();
    assert!(!epochs.is_empty(), "{outcome}");
    epochs.iter().flat_map(|epoch| epoch["contenders"].as_array().unwrap()).cloned().collect()
}

#[test]
fn a_busy_server_core() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (kit(), turn_alone());
    let burner = Burner::on(SERVER_CORE);
    let outcome = same_in(&kit, &server_line(&["--json", "--spin-us", "50"]), "8");
    drop(burner);
    assert_disturbed(&outcome);
    assert_nothing_claimed(&outcome);
    assert_given_up(&outcome, 6);
}

#[test]
fn a_busy_generator_core() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (kit(), turn_alone());
    let burner = Burner::on(LOAD_CORE);
    let outcome = same(&kit, &server_line(&["--json", "--spin-us", "50"]));
    drop(burner);
    assert_disturbed(&outcome);
    assert_nothing_claimed(&outcome);
    assert_given_up(&outcome, 3);
    let (mut waited, mut elapsed) = (0, 0);
    for epoch in outcome.json()["record"]["epochs"].as_array().unwrap() {
        let rounds = epoch["rounds"].as_array().unwrap().iter();
        for slice in rounds.flat_map(|round| round["slices"].as_array().unwrap()) {
            waited += slice["load_run_delay_ns"].as_u64().unwrap();
            elapsed += slice["elapsed_ns"].as_u64().unwrap();
        }
    }
    assert!(waited * 20 > elapsed, "the generator waited for its core: {waited} of {elapsed} ns");
}

/// The id of the thread with this name in this process.
fn thread_of(pid: u32, name: &str) -> Option<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let named =
        |folder: &Path| std::fs::read_to_string(folder.join("comm")).is_ok_and(|comm| comm.trim() == name);
    let found = threads.flatten().find(|thread| named(&thread.path()))?;
    found.file_name().into_string().ok()
}

fn rounds(outcome: &Outcome) -> Vec<Value> {
    let json = outcome.json();
    let epochs = json["record"]["epochs"].as_array().unwrap();
    let rounds: Vec<Value> =
        epochs.iter().flat_map(|epoch| epoch["rounds"].as_array().unwrap()).cloned().collect();
    assert!(!rounds.is_empty(), "{outcome}");
    rounds
}

/// Imitates a hypervisor: the thread that watches a core loses a tenth of its time, although no other program uses the core.
#[test]
fn a_core_that_stands_still_now_and_then() {
    let Some(freezer) = Group::of("freezer").filter(|_| two_cores()) else {
        skip_loudly!("no freezer of version 1, or one core")
    };
    let (kit, _turn) = (kit(), turn_alone());
    let server = server_line(&["--json"]);
    let race = kit.race().contender("a", &server).contender("b", &server).args(CORES);
    let timing = ["--warmup", "100ms", "--measure", "1200ms", "--slice", "200ms"];
    let mut running = race.args(ONE_EPOCH).args(timing).args(["--rate", "9000", "--metric", "p99"]).spawn();
    let pid = running.pid();
    let watching = || thread_of(pid, &format!("stalls-{SERVER_CORE}"));
    running.wait_for("the thread that watches the core", || watching().is_some());
    freezer.set("tasks", &watching().unwrap());
    let start = Instant::now();
    while running.is_running() && start.elapsed() < Duration::from_secs(120) {
        freezer.set("freezer.state", "FROZEN");
        std::thread::sleep(Duration::from_millis(15));
        freezer.set("freezer.state", "THAWED");
        std::thread::sleep(Duration::from_millis(135));
    }
    let outcome = running.wait();
    for round in rounds(&outcome) {
        let shares = round["slices"].as_array().unwrap().iter();
        let worst = shares.map(|slice| slice["stalled_share"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!(worst > 0.02 && round["dropped"].is_string(), "{round}");
    }
    let why = |round: &Value| round["dropped"].as_str().unwrap().starts_with("a core stood still for ");
    // If other programs also use our cores, the record gives that reason first.
    let others = |round: &Value| round["dropped"].as_str().unwrap().starts_with("others used ");
    let rounds = rounds(&outcome);
    assert!(rounds.iter().any(why) || rounds.iter().all(others), "{outcome}");
    assert_found(&outcome, "stalls", "warn", "a");
    assert_found(&outcome, "dropped-rounds", "invalid", "");
    assert_nothing_claimed(&outcome);
}

/// Even root cannot watch for stalls without `CAP_SYS_NICE`. A race that reports no percentile need not watch, and has no such finding.
#[test]
fn stalls_that_nobody_sees() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (Kit::new("/usr/bin/setpriv"), turn_alone());
    let server = server_line(&["--json"]);
    let without =
        ["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", BINARY, "race", "-n", "a", "-n", "b"];
    let of = |file: &str, load: [&str; 4]| {
        let run =
            kit.deadheat(without).args(ONE_EPOCH).args(SHORT).args(CORES).args(load).args([&server, &server]);
        run.json_to(file).run()
    };
    let open = of("open.json", ["--rate", "30000", "--metric", "p50"]);
    let unknown = |outcome: &Outcome| outcome.json()["findings"].to_string().contains("\"stalls-unknown\"");
    // deadheat reports this only in a virtual machine, because only a hypervisor can cause such stalls.
    let virtual_here = open.json()["machine"]["hypervisor"].is_string();
    assert_eq!(unknown(&open), virtual_here, "{open}");
    let seen =
        |outcome: &Outcome| rounds(outcome).iter().any(|round| round.to_string().contains("stalled_share"));
    assert!(!seen(&open));
    let closed = of("closed.json", ["-c", "8", "--metric", "throughput"]);
    assert!(!unknown(&closed) && !seen(&closed), "{closed}");
}

#[test]
fn a_quota_on_deadheat_itself() {
    let Some(group) = Group::half_a_core().filter(|_| two_cores()) else {
        skip_loudly!("no control groups of version 1 with quotas, or one core")
    };
    let (kit, _turn) = (Kit::new("/bin/sh"), turn_alone());
    let server = server_line(&["--json", "--spin-us", "50"]);
    let enter = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
    let run = kit.deadheat(["-c", enter, group.0.to_str().unwrap(), BINARY, "race", "-n", "a", "-n", "b"]);
    let outcome = run
        .args(ONE_EPOCH)
        .args(SHORT)
        .args(["-c", "8"])
        .args(CORES)
        .args([&server, &server])
        .json_to("race.json")
        .run();
    kit.assert_nothing_left();
    assert_nothing_claimed(&outcome);
    if left_out(&outcome) && !findings(&outcome).iter().any(|one| one.0 == "throttled") {
        skip_loudly!("others use our cores, so that deadheat does not reach its quota")
    }
    assert_found(&outcome, "throttled", "invalid", "");
}

#[test]
fn a_quota_on_deadheat_itself_while_contenders_are_started() {
    let Some(group) = Group::half_a_core().filter(|_| two_cores()) else {
        skip_loudly!("no control groups of version 1 with quotas, or one core")
    };
    let (kit, _turn) = (Kit::new("/bin/sh"), turn_alone());
    // Each probe needs 20 ms of CPU time, and the quota allows 10 ms in each period of 20 ms.
    let server = Value::from(server_line(&["--json", "--spin-us", "20000"]));
    let contender = |name: &str| format!("[[contender]]\nname = \"{name}\"\ncommand = {server}\n");
    let rest = "[[probe]]\npath = \"/\"\n[[scenario]]\nname = \"cold\"\nstarts = 20\n";
    kit.file("study.toml", contender("a") + &contender("b") + rest);
    let enter = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
    let run =
        kit.deadheat(["-c", enter, group.0.to_str().unwrap(), BINARY, "race", ".", "--record", "r.jsonl"]);
    let outcome = run.args(CORES).json_to("race.json").run();
    outcome.assert_status(3);
    kit.assert_nothing_left();
    let found = |code: &str| {
        findings(&outcome).iter().any(|one| (one.0.as_str(), one.1.as_str()) == (code, "invalid"))
    };
    if !found("throttled") && found("foreign-cpu") {
        skip_loudly!(
            "others use our cores: epochs are left out for that, or deadheat does not reach its quota"
        )
    }
    assert_found(&outcome, "throttled", "invalid", "");
}

#[test]
fn a_server_that_sleeps() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (kit(), turn_alone());
    let outcome = same(&kit, &server_line(&["--json", "--delay-ms", "2"]));
    assert_found(&outcome, "not-server-bound", "warn", "a");
    assert_found(&outcome, "not-server-bound", "warn", "b");
    assert_not_found(&outcome, "littles-law");
}

#[test]
fn a_quota_that_nobody_asked_for() {
    let Some(group) = Group::half_a_core().filter(|_| two_cores()) else {
        skip_loudly!("no control groups of version 1 with quotas, or one core")
    };
    let (kit, _turn) = (kit(), turn_alone());
    let server = server_line(&["--json", "--spin-us", "50"]);
    let held = format!("echo $$ > {}/cgroup.procs && exec {server}", group.0.display());
    let race = kit.race().contender("free", &server).contender("held", &held);
    let outcome = race.args(ONE_EPOCH).args(SHORT).args(["-c", "8"]).args(CORES).run();
    kit.assert_nothing_left();
    assert!(!findings(&outcome).iter().any(|one| one.0 == "throttled" && one.2 != "held"), "{outcome}");
    if left_out(&outcome) {
        skip_loudly!("others use our cores, and nothing is read of an epoch without undisturbed rounds")
    }
    assert_found(&outcome, "throttled", "warn", "held");
}

/// Races one server against itself in a scenario with these `lines`.
fn limited(kit: &Kit, server: &str, lines: &str) -> Outcome {
    let command = Value::from(server);
    kit.file(
        "study.toml",
        format!(
            "[[contender]]\nname = \"a\"\ncommand = {command}\n[[contender]]\nname = \"b\"\ncommand = {command}\n\
             [[probe]]\npath = \"/\"\n[[scenario]]\nname = \"limited\"\nconnections = 8\n{lines}\n"
        ),
    );
    let run = kit.deadheat(["race", ".", "--record", "r.jsonl"]);
    run.args(ONE_EPOCH).args(SHORT).args(CORES).json_to("race.json").run()
}

#[test]
fn limits_hold_and_what_was_asked_for_is_no_finding() {
    if Group::half_a_core().is_none() || !two_cores() {
        skip_loudly!("no control groups of version 1 with quotas, or one core")
    }
    let (kit, _turn) = (kit(), turn_alone());
    let server = server_line(&["--json", "--spin-us", "50"]);
    let outcome = limited(&kit, &server, "cpus = 0.5\nmemory = \"256MB\"");
    assert_not_found(&outcome, "throttled");
    // Other programs may leave the server less than half a core. Then it does not reach its limit.
    let disturbed = left_out(&outcome);
    if !disturbed {
        assert_not_found(&outcome, "not-server-bound");
    }
    for part in parts(&outcome) {
        assert!(part["throttled"]["periods"].as_u64().unwrap() > 0 || disturbed, "{part}");
        let (used, loaded) = (part["usage"]["cpu_ns"].as_f64().unwrap(), part["loaded_ns"].as_f64().unwrap());
        // A slice can use half a core, and also quota from a period that began before the slice.
        assert!(used < loaded * 0.85, "{used} of {loaded} ns");
    }
    kit.assert_nothing_left();
}

#[test]
fn a_server_that_does_nothing_is_the_generators_ceiling() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (kit(), turn_alone());
    let null = format!("exec {BINARY} null --port {{port}}");
    // With 64 connections, the generator's own work for a request is so small that the handicap shows.
    let race = || {
        let race = kit.race().contender("a", &null).contender("b", &null).args(["-c", "64"]).args(CORES);
        // Slices of the default length: in shorter ones, noise can hide the effect of the handicap.
        let outcome = race.args(ONE_EPOCH).args(["--warmup", "100ms", "--measure", "400ms"]).run();
        assert_nothing_claimed(&outcome);
        outcome
    };
    // Another virtual machine can halve the speed of the server's core for a while. Then the server is the slower side, and the handicap
    // of the generator does not show.
    let handicaps = |outcome: &Outcome| {
        let pilot = &outcome.json()["record"]["pilots"][0];
        let handicaps = pilot["contenders"].as_array().unwrap().iter().map(|one| &one["handicap"]);
        let figures = handicaps.map(|one| ["ratio", "standard_error"].map(|key| one[key].as_f64().unwrap()));
        figures.collect::<Vec<_>>()
    };
    let is_silent = |outcome: &Outcome| {
        let is_silent = |[ratio, error]: &[f64; 2]| *error <= 0.05 && *ratio >= 0.95;
        !left_out(outcome) && handicaps(outcome).iter().any(is_silent)
    };
    let mut outcome = race();
    // So if it does not show in one race, neither of the next two may be without it.
    if is_silent(&outcome) {
        for _ in 0..2 {
            let before = handicaps(&outcome);
            outcome = race();
            assert!(!is_silent(&outcome), "{before:?}, then {:?}", handicaps(&outcome));
        }
    }
    let pilot = outcome.json()["record"]["pilots"][0].clone();
    assert!(pilot["ceiling_rps"].as_f64().unwrap() > 0.0, "{pilot}");
    if left_out(&outcome) {
        skip_loudly!("others use our cores, and what the generator reaches is not known")
    }
    // The share of the ceiling that such short slices reach varies from minute to minute, but it is always over half.
    assert_noticed(&outcome, "ceiling", "a");
    assert_noticed(&outcome, "ceiling", "b");
    // The handicap costs the generator about as much as an answer costs the server, so the rate falls by far more than 5 %.
    // Noise widens the error, and with a large error no finding is due.
    for contender in pilot["contenders"].as_array().unwrap() {
        let (name, handicap) = (contender["contender"].as_str().unwrap(), &contender["handicap"]);
        let [ratio, error] = ["ratio", "standard_error"].map(|key| handicap[key].as_f64().unwrap());
        if error > 0.05 {
            skip_loudly!("the machine is too noisy to see what the handicap does")
        }
        assert!(ratio < 0.95, "{name}: {handicap}");
        let found =
            findings(&outcome).iter().any(|one| (one.0.as_str(), one.2.as_str()) == ("handicap", name));
        assert_eq!(found, 1.0 - ratio - 2.0 * error > 0.01, "{name}\n{outcome}");
    }
}

#[test]
fn more_work_of_the_generator_does_nothing_to_a_server_at_its_limit() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (kit(), turn_alone());
    let race = || same(&kit, &server_line(&["--json", "--spin-us", "300"]));
    let pilot = |outcome: &Outcome| outcome.json()["record"]["pilots"][0]["contenders"].clone();
    // Where others use the core for a whole slice, it has no answer, and its pair is left out.
    let is_whole = |outcome: &Outcome| {
        pilot(outcome).as_array().unwrap().iter().all(|one| one["handicap"]["pairs"] == 10)
    };
    let is_judged = |outcome: &Outcome| is_whole(outcome) || !left_out(outcome);
    let outcome = std::iter::repeat_with(race).take(3).find(is_judged).unwrap_or_else(race);
    if !left_out(&outcome) {
        assert_not_found(&outcome, "handicap");
    }
    for contender in pilot(&outcome).as_array().unwrap() {
        let handicap = &contender["handicap"];
        assert_eq!((&handicap["added_ns"], &handicap["pairs"]), (&Value::from(2_000), &Value::from(10)));
        assert!(handicap["standard_error"].as_f64().unwrap() >= 0.0, "{handicap}");
    }
}

#[test]
fn a_rate_that_is_too_high_for_a_server() {
    if !two_cores() {
        skip_loudly!("one core");
    }
    let (kit, _turn) = (kit(), turn_alone());
    let server = server_line(&["--json", "--spin-us", "1000"]);
    let race = kit.race().contender("a", &server).contender("b", &server);
    // With 400 requests in a slice, the delay of the last one varies by a twentieth. Little's law must not mistake it for latency.
    let race = race.args(ONE_EPOCH).args(["--warmup", "50ms", "--measure", "600ms", "--slice", "200ms"]);
    let outcome = race.args(CORES).args(["-c", "64", "-r", "2000"]).run();
    assert_nothing_claimed(&outcome);
    if left_out(&outcome) {
        skip_loudly!("others use our cores, and what was achieved is kept of undisturbed rounds only")
    }
    assert_found(&outcome, "offered-not-achieved", "invalid", "a");
    assert_found(&outcome, "offered-not-achieved", "invalid", "b");
    assert!(parts(&outcome).iter().all(|part| part["send_lag"].is_string() && part["wait"].is_string()));
}

/// A generator that is limited to half a core sends late each request that is due while the kernel holds it back.
#[test]
fn a_generator_that_is_starved() {
    let Some(group) = Group::half_a_core().filter(|_| two_cores()) else {
        skip_loudly!("no control groups of version 1 with quotas, or one core")
    };
    let (kit, _turn) = (Kit::new("/bin/sh"), turn_alone());
    let server = server_line(&["--json"]);
    let enter = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
    let run = kit.deadheat(["-c", enter, group.0.to_str().unwrap(), BINARY, "race", "-n", "a", "-n", "b"]);
    let run = run.args(ONE_EPOCH).args([
        "--warmup",
        "50ms",
        "--measure",
        "500ms",
        "--slice",
        "125ms",
        "-c",
        "16",
        "-r",
        "2000",
    ]);
    let outcome = run.args(CORES).args([&server, &server]).json_to("race.json").run();
    assert!(parts(&outcome).iter().all(|part| part["own_lag"].is_string()), "{outcome}");
    kit.assert_nothing_left();
    if left_out(&outcome) {
        skip_loudly!("others use our cores, and times are kept of undisturbed rounds only")
    }
    assert_noticed(&outcome, "send-lag", "a");
    assert_noticed(&outcome, "send-lag", "b");
}

#[test]
fn a_lone_generator_that_is_starved() {
    let Some(group) = Group::half_a_core().filter(|_| two_cores()) else {
        skip_loudly!("no control groups of version 1 with quotas, or one core")
    };
    let (kit, _turn, server) =
        (Kit::new("/bin/sh"), turn_alone(), TestServer::start(&["--json", "--delay-ms", "0"]));
    let enter = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
    let run = kit.deadheat(["-c", enter, group.0.to_str().unwrap(), BINARY, "load", &server.url("/")]);
    let outcome = run.args(["-r", "2000", "-d", "2s", "--warmup", "0s"]).json_to("out.json").run();
    let json = outcome.json();
    let codes: Vec<&Value> = json["findings"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert!(codes.contains(&&Value::from("send-lag")), "{outcome}");
    assert!(json["generator"]["run_delay_mean_ns"].is_u64(), "{outcome}");
}
