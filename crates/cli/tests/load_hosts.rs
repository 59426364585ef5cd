//! Load from other machines: agents as real processes over pipes, and `deadheat load --load-host` with a stand-in for ssh.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadheat_load::{
    Address, Arrivals, Expectation, Limit, LoadSession as _, NullConfig, NullServer, Pacer, Prepared, Rate,
    RecordedTimes, Requests, Session, SessionConfig, SliceOrder, request_bytes,
};
use deadheat_remote::frame::{Decoder, encode};
use deadheat_remote::message::{Order, PROTOCOL, Reply, control_line};
use deadheat_remote::{
    HostCommand, LoadHosts, Patience, Program, RemoteError, RemoteSession, SshTarget, merge, start_skew,
};
use deadheat_testkit::{
    Host, Invocation, Kit, Outcome, Process, SHORT_RACE, Signal, TestServer, bed_or_skip, kill_9,
    processes_with_env, send_signal, server_line, turn, wait_until,
};
use serde_json::Value;

use crate::common::{BINARY, assert_measured, assert_valid, epochs, kit};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Short enough for a test, and long enough for a busy machine.
const PATIENCE: Patience = Patience {
    beat: Duration::from_millis(100),
    notice: Duration::from_millis(300),
    deadline: Duration::from_secs(3),
    greeting: Duration::from_secs(60),
};

fn agent(name: &str) -> HostCommand {
    let mut command = Command::new(BINARY);
    command.arg("agent");
    HostCommand { name: name.into(), command, program: None }
}

fn shell(name: &str, script: &str) -> HostCommand {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    HostCommand { name: name.into(), command, program: None }
}

fn connect(hosts: Vec<HostCommand>) -> Result<LoadHosts, RemoteError> {
    LoadHosts::connect(hosts, VERSION, PATIENCE)
}

fn three_agents() -> Arc<LoadHosts> {
    Arc::new(connect(["a", "b", "c"].map(agent).into()).unwrap())
}

fn config(server: &NullServer, connections: usize, threads: usize) -> SessionConfig {
    let bytes = request_bytes("GET", "/", "test", &[], b"").unwrap();
    let request = Prepared { bytes, head: false, expect: Expectation::ANY };
    SessionConfig {
        threads,
        connect_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        ..SessionConfig::to(server.address().clone(), connections, Requests::one(request))
    }
}

fn order(pacer: Pacer, limit: Limit) -> SliceOrder {
    SliceOrder { pacer, limit, settle: Duration::ZERO, start: 0 }
}

#[test]
fn three_agents_send_exactly_what_one_session_would() {
    let (_turn, server) = (turn(), NullServer::start(NullConfig::default()).unwrap());
    let hosts = three_agents();
    let mut there = RemoteSession::open(Arc::clone(&hosts), &config(&server, 7, 2)).unwrap();
    let connections: Vec<usize> = there.parts().iter().map(|part| part.connections).collect();
    assert_eq!(connections, [3, 2, 2]);

    let tally = there.slice(&order(Pacer::Closed, Limit::requests(1001))).unwrap();
    assert_eq!(
        (tally.due, tally.outcomes.ok, tally.latency.count(), tally.connections),
        (1001, 1001, 1001, 7)
    );
    assert_eq!(tally.rates.len(), 6, "two workers on each");

    let poisson =
        Pacer::Open { rate: Rate::constant(800.0).unwrap(), arrivals: Arrivals::Poisson { seed: 7 } };
    let open = order(poisson, Limit::duration(Duration::from_secs(1)));
    let mut here = Session::open(config(&server, 7, 1)).unwrap();
    let whole = here.slice(&open).unwrap();
    let slices = there.slice_on_hosts(&open);
    let tallies: Vec<_> = slices.iter().map(|slice| slice.result.as_ref().unwrap()).collect();
    let merged = merge(tallies.iter().copied());
    assert_eq!(merged.due, whole.due, "the same arrivals, divided");
    assert!(tallies.iter().all(|one| one.due > whole.due / 5), "each has its share");
    let cells = |tally: &deadheat_load::Tally| {
        tally.latency.histogram().iter_recorded().map(|cell| cell.count_at_value()).sum::<u64>()
    };
    assert_eq!(cells(&merged), tallies.iter().map(|one| cells(one)).sum::<u64>());
    assert!(start_skew(&slices).unwrap() < Duration::from_secs(1));
    assert!((0..3).all(|host| hosts.round_trips(host).count() >= 1));
}

#[test]
fn a_slice_takes_one_order_and_one_reply_and_what_hosts_did_adds_up() {
    let (_turn, server) = (turn(), NullServer::start(NullConfig::default()).unwrap());
    // So seldom that no ping is sent while the test counts.
    let calm = Patience { beat: Duration::from_secs(600), deadline: Duration::from_secs(1_200), ..PATIENCE };
    let hosts = Arc::new(LoadHosts::connect(["a", "b"].map(agent).into(), VERSION, calm).unwrap());
    let mut session = RemoteSession::open(Arc::clone(&hosts), &config(&server, 5, 1)).unwrap();
    let messages = || {
        let of = |host| {
            let (sent, received) = hosts.traffic(host);
            (sent.messages, received.messages)
        };
        [of(0), of(1)]
    };
    // The first ping is sent by its own thread.
    assert!(wait_until(Duration::from_secs(30), || messages() == [(2, 2), (2, 2)]), "{:?}", messages());
    hosts.take_work();
    for _ in 0..2 {
        session.slice(&order(Pacer::Closed, Limit::requests(501))).unwrap();
    }
    assert_eq!(messages(), [(4, 4), (4, 4)]);
    let (_, received) = hosts.traffic(0);
    assert!((1..2 << 16).contains(&received.bytes), "{received:?}");
    // Recorded times travel once: 100,000 requests, sent within 10 s; the slices replay 100 ms of them, from another place each time.
    let times: Vec<u64> = (0..100_000).map(|at| at * 100_000).collect();
    let times = Arc::new(RecordedTimes::new(times).unwrap());
    let mut before = hosts.traffic(0).0;
    for (from_ns, orders) in [(0, 2), (7_000_000_000, 1)] {
        let pacer = Pacer::Recorded { times: Arc::clone(&times), from_ns, speed: 1.0 };
        let tally = session.slice(&order(pacer, Limit::duration(Duration::from_millis(100)))).unwrap();
        assert_eq!(tally.due, 1_000, "each request is due once");
        let now = hosts.traffic(0).0;
        let (messages, bytes) = (now.messages - before.messages, now.bytes - before.bytes);
        assert_eq!((messages, bytes > 100_000), (orders, orders > 1), "{bytes} bytes");
        before = now;
    }
    hosts.take_work();
    for _ in 0..2 {
        session.slice(&order(Pacer::Closed, Limit::requests(501))).unwrap();
    }
    let work = hosts.take_work();
    assert_eq!(work.hosts.iter().map(|host| host.requests).sum::<u64>(), 2 * 501);
    let each: Vec<_> = work.hosts.iter().map(|host| (host.connections, host.delays.len())).collect();
    assert_eq!((each, work.start_skews.len()), (vec![(3, 2), (2, 2)], 2));
    assert!(work.hosts.iter().all(|host| host.bytes_read > 0 && host.network.is_none()), "nobody watches");
    assert!(hosts.take_work().hosts.iter().all(|host| host.requests == 0), "it was taken");
    assert!(hosts.order_cost() > Duration::from_millis(2));
    // One of the hosts alone.
    let mut alone = RemoteSession::open_on(Arc::clone(&hosts), vec![1], &config(&server, 2, 1)).unwrap();
    hosts.watch(&[], false).unwrap();
    alone.slice(&order(Pacer::Closed, Limit::requests(10))).unwrap();
    let work = hosts.take_work();
    assert_eq!((work.hosts[0].requests, work.hosts[1].requests, work.start_skews.len()), (0, 10, 0));
    assert!(work.hosts[1].network.is_some());
}

#[test]
fn stopping_ends_the_slice_on_all_hosts() {
    let (_turn, server) = (turn(), NullServer::start(NullConfig::default()).unwrap());
    let hosts = three_agents();
    let mut session = RemoteSession::open(hosts, &config(&server, 6, 1)).unwrap();
    let (stop, progress) = (session.stop_handle(), session.progress());
    let stopping = std::thread::spawn(move || {
        assert!(wait_until(Duration::from_secs(30), || progress.read().completions > 0), "progress is told");
        stop.stop();
    });
    let tally = session.slice(&order(Pacer::Closed, Limit::duration(Duration::from_secs(600)))).unwrap();
    stopping.join().unwrap();
    assert!(tally.outcomes.ok > 0 && tally.loading_ns < 300_000_000_000);
}

/// A host whose agent a test can find.
fn marked(kit: &Kit, name: &str) -> HostCommand {
    let mut host = agent(name);
    let (key, value) = kit.mark();
    host.command.env(key, format!("{value}-{name}"));
    host
}

fn agent_of(kit: &Kit, name: &str) -> u32 {
    let (key, value) = kit.mark();
    let mut found = processes_with_env(key, &format!("{value}-{name}"));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).pid
}

#[test]
fn what_the_others_did_is_kept_when_an_agent_is_killed_or_silent() {
    for stopped in [false, true] {
        let (kit, _turn, server) = (kit(), turn(), NullServer::start(NullConfig::default()).unwrap());
        let hosts = Arc::new(connect(vec![marked(&kit, "a"), marked(&kit, "b")]).unwrap());
        let mut session = RemoteSession::open(Arc::clone(&hosts), &config(&server, 4, 1)).unwrap();
        let (victim, progress) = (agent_of(&kit, "b"), session.progress());
        let killing = std::thread::spawn(move || {
            assert!(wait_until(Duration::from_secs(30), || progress.read().completions > 0));
            assert!(if stopped { send_signal(victim, Signal::STOP) } else { kill_9(victim) });
        });
        let slices = session.slice_on_hosts(&order(Pacer::Closed, Limit::duration(Duration::from_secs(600))));
        killing.join().unwrap();
        assert!(slices[0].result.as_ref().unwrap().outcomes.ok > 0, "{:?}", slices[0]);
        let error = slices[1].result.as_ref().unwrap_err();
        assert!(error.is_loss() && error.to_string().contains("load host b was lost"), "{error}");
        assert_eq!(matches!(error, RemoteError::Silent { .. }), stopped, "{error}");
        assert_eq!(hosts.lost(), std::slice::from_ref(error));
        let again = session.slice(&order(Pacer::Closed, Limit::requests(1))).unwrap_err();
        assert!(again.to_string().contains("load host b was lost"), "{again}");
        kill_9(victim);
        drop(session);
        drop(hosts);
        let gone = || processes_with_env(kit.mark().0, &format!("{}-a", kit.mark().1)).is_empty();
        assert!(wait_until(Duration::from_secs(10), gone), "the other agent ends with its channel");
    }
}

#[test]
fn a_silence_is_known_when_it_is_over() {
    let (kit, _turn) = (kit(), turn());
    let hosts = connect(vec![marked(&kit, "a")]).unwrap();
    let agent = agent_of(&kit, "a");
    assert!(send_signal(agent, Signal::STOP));
    assert!(wait_until(Duration::from_secs(30), || !hosts.silent().is_empty()), "it is stopped");
    assert!(send_signal(agent, Signal::CONT));
    assert!(wait_until(Duration::from_secs(30), || hosts.silent().is_empty()), "it goes on");
    assert!(hosts.take_silence(0).unwrap() > PATIENCE.notice);
    assert!(hosts.lost().is_empty());
}

#[test]
fn hosts_that_cannot_be_used_say_why() {
    let refused = |host: HostCommand| connect(vec![host]).unwrap_err();
    let version = refused(shell("a", "echo 'deadheat agent 2 9.9.9'; cat > /dev/null"));
    assert_eq!(
        version,
        RemoteError::Version {
            host: "a".into(),
            ours: format!("{PROTOCOL} {VERSION}"),
            theirs: "2 9.9.9".into()
        }
    );
    let ssh = refused(shell("a", "echo 'ssh: connect to host a port 22: Connection refused' >&2; exit 255"));
    let text = ssh.to_string();
    assert!(
        text.starts_with("cannot reach the host a") && text.contains("port 22: Connection refused"),
        "{text}"
    );
    assert!(text.contains("its channel ended with exit status 255"), "{text}");
    let missing = HostCommand { name: "a".into(), command: Command::new("/no/such/ssh"), program: None };
    assert!(refused(missing).to_string().contains("cannot start `/no/such/ssh`"));
    let greeting =
        format!("echo 'deadheat agent {PROTOCOL} {VERSION}'; printf '\\377\\377\\377\\377'; cat > /dev/null");
    assert!(refused(shell("a", &greeting)).to_string().contains("too large"));
    let endless = refused(shell("a", "while :; do echo noise; done"));
    assert!(endless.to_string().contains("writes text without end"), "{endless}");
    let mute = Patience { greeting: Duration::from_millis(200), ..PATIENCE };
    let mute =
        LoadHosts::connect(vec![shell("a", "echo 'Enter code:' >&2; sleep 60")], VERSION, mute).unwrap_err();
    let text = mute.to_string();
    assert!(text.contains("did not answer within 0.2 s; it said: Enter code:"), "{text}");
    for error in [version, ssh, endless, mute] {
        assert!(!error.is_loss() && !error.remedy().is_empty());
    }
}

#[test]
fn what_a_shell_says_before_the_agent_is_passed_over() {
    let host = shell("a", &format!("echo 'Welcome to a'; echo; exec '{BINARY}' agent"));
    let hosts = connect(vec![host]).unwrap();
    assert_eq!(hosts.names().collect::<Vec<_>>(), ["a"]);
}

/// An agent without a controlling side: the test writes to it.
fn lone_agent(first: &[u8]) -> Child {
    let pipes = |command: &mut Command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = pipes(Command::new(BINARY).arg("agent"));
    child.stdin.as_mut().unwrap().write_all(first).unwrap();
    child
}

/// The status of an agent that ends although its input is still open, and what it said.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let stdin = child.stdin.take();
    assert!(wait_until(Duration::from_secs(60), || child.try_wait().unwrap().is_some()), "it ends");
    drop(stdin);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
fn an_agent_ends_with_its_channel() {
    let greeting = control_line(VERSION, Duration::from_secs(600));
    let mut closed = lone_agent(greeting.as_bytes());
    drop(closed.stdin.take());
    assert!(
        wait_until(Duration::from_secs(60), || closed.try_wait().unwrap().is_some()),
        "its input has ended"
    );
    assert_eq!(closed.wait().unwrap().code(), Some(0));

    let (status, said) = ended(lone_agent(control_line(VERSION, Duration::from_millis(300)).as_bytes()));
    assert_eq!(status, Some(2));
    assert!(said.contains("nothing was heard from the controlling side for 0.3 s"), "{said}");

    let (status, said) = ended(lone_agent(control_line("9.9.9", Duration::from_secs(600)).as_bytes()));
    assert!(status == Some(2) && said.contains(&format!("is of version {PROTOCOL} 9.9.9")), "{said}");

    let (status, said) = ended(lone_agent(b"hello\n"));
    assert!(status == Some(2) && said.contains("deadheat load --help"), "{said}");

    let (status, said) = ended(lone_agent(&[greeting.as_bytes(), &[255; 8]].concat()));
    assert!(status == Some(2) && said.contains("too large"), "{said}");
}

#[test]
fn an_order_that_fails_is_answered_with_its_reason() {
    let greeting = control_line(VERSION, Duration::from_secs(600));
    let order = order(Pacer::Closed, Limit::requests(1));
    let slice = Order::Slice { session: 9, order, start_in: Duration::ZERO, afresh: true };
    let slice = encode(&slice).unwrap();
    let mut child = lone_agent(&[greeting.as_bytes(), &slice].concat());
    let (mut decoder, mut piece) = (Decoder::default(), [0; 100]);
    let mut output = child.stdout.take().unwrap();
    let mut line = None;
    let reply = loop {
        let count = output.read(&mut piece).unwrap();
        assert!(count > 0, "the agent has ended");
        decoder.push(&piece[..count]);
        line = line.or_else(|| decoder.line());
        if line.is_some()
            && let Some(reply) = decoder.message::<Reply>().unwrap()
        {
            break reply;
        }
    };
    assert_eq!(line, Some(format!("deadheat agent {PROTOCOL} {VERSION}")));
    assert!(
        matches!(&reply, Reply::Failed { reason, own: true } if reason == "there is no session 9"),
        "{reply:?}"
    );
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// A stand-in for ssh: it starts the command in a shell of this machine, whose home is a folder of the kit.
fn stand_in(kit: &Kit) {
    let home = kit.path().join("home");
    fs::create_dir_all(&home).unwrap();
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n\
         [ \"$2\" != nowhere ] || {{ echo 'ssh: connect to host nowhere port 22: No route to host' >&2; exit 255; }}\n\
         unset XDG_CACHE_HOME\nHOME='{}' HOST=\"$2\" exec sh -c \"$3\"\n",
        home.display()
    );
    let path = kit.file("ssh", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn load<'k>(kit: &'k Kit, arguments: &str, url: &str) -> Invocation<'k> {
    stand_in(kit);
    kit.deadheat(["load"])
        .args(arguments.split_whitespace())
        .arg(url)
        .env("DEADHEAT_SSH", kit.path().join("ssh"))
}

fn record(outcome: &Outcome) -> Value {
    let json = outcome.json();
    assert_valid(&json, include_str!("../../record/schema/load-1.schema.json"));
    json
}

fn number(json: &Value, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {json:#}"))
}

/// The copies of the program that the hosts of this kit have.
fn copies(kit: &Kit) -> Vec<fs::DirEntry> {
    let agents = kit.path().join("home/.cache/deadheat/agents");
    let folders = fs::read_dir(agents).unwrap().map(|folder| folder.unwrap().path());
    folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(Result::unwrap).collect()
}

#[test]
fn two_hosts_share_a_load_and_keep_one_copy_of_the_program() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--json"]));
    let arguments = "-n 1001 -c 5 --load-host ssh://me@a --load-host ssh://b:2222";
    let outcome = load(&kit, arguments, &server.url("/x")).json_to("out.json").run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    let json = record(&outcome);
    assert_eq!((number(&json, "/requests"), number(&json, "/outcomes/ok")), (1001, 1001));
    let names = [&json["hosts"][0]["name"], &json["hosts"][1]["name"]];
    assert_eq!(names, ["me@a", "b:2222"]);
    let sum =
        |key: &str| [0, 1].map(|host| number(&json, &format!("/hosts/{host}/{key}"))).iter().sum::<u64>();
    assert_eq!((sum("connections"), sum("requests"), sum("completions")), (5, 1001, 1001));
    assert_eq!((number(&json, "/generator/threads"), number(&json, "/checked/same")), (2, 1));
    assert!(number(&json, "/hosts/1/round_trip_ns/p50") > 0 && json["hosts"][0]["lost"].is_null());
    assert!(json["start_skew_ns"].is_u64() && json["hosts"][0]["start_delay_ns"].is_u64());
    outcome.assert_stdout_has("load host").assert_stdout_has("me@a: 3 connections, 1 thread");
    outcome.assert_stderr_has("reaching me@a, b:2222 by ssh");
    kit.assert_nothing_left();

    let first = copies(&kit);
    assert!(first.len() == 1 && first[0].file_name() == "deadheat", "{first:?}");
    let mode = first[0].metadata().unwrap().mode() & 0o777;
    assert_eq!(mode, 0o700);
    // Shown again, it says the same; and nothing is copied a second time.
    let shown = kit.deadheat(["report", "out.json"]).run();
    shown.assert_stdout_has("me@a: 3 connections, 1 thread");
    let again = load(&kit, "-n 10 -c 1 --load-host ssh://a", &server.url("/x")).json_to("again.json").run();
    assert_eq!(number(&record(&again), "/outcomes/ok"), 10, "{again}");
    assert!(again.json()["start_skew_ns"].is_null(), "one host has no skew");
    assert_eq!(copies(&kit)[0].metadata().unwrap().ino(), first[0].metadata().unwrap().ino());
    // A copy that was changed is replaced.
    fs::write(first[0].path(), "#!/bin/sh\necho hello\n").unwrap();
    let repaired = load(&kit, "-n 10 -c 1 --load-host ssh://a", &server.url("/x")).json_to("c.json").run();
    assert_eq!(number(&record(&repaired), "/outcomes/ok"), 10, "{repaired}");
}

#[test]
fn an_open_load_with_a_warm_up_comes_from_two_hosts() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
    let arguments =
        "-r 400 -d 1s --warmup 200ms --arrivals constant -c 4 --load-host ssh://a --load-host ssh://b";
    let outcome = load(&kit, arguments, &server.url("/")).json_to("out.json").run();
    let json = record(&outcome);
    assert_eq!(number(&json, "/requests"), 400, "{outcome}");
    assert_eq!([0, 1].map(|host| number(&json, &format!("/hosts/{host}/requests"))), [200, 200]);
    kit.assert_nothing_left();
}

/// The agents of a kit that run, by the name of their host.
fn agents(kit: &Kit, host: &str) -> Vec<Process> {
    let named = processes_with_env("HOST", host);
    let ours = kit.leftovers();
    named.into_iter().filter(|one| ours.contains(one) && one.command.ends_with(" agent")).collect()
}

#[test]
fn a_lost_host_ends_the_load_and_what_the_other_did_is_kept() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
    let arguments = "-d 10m -c 4 --load-host ssh://a --load-host ssh://b";
    let mut running = load(&kit, arguments, &server.url("/")).json_to("out.json").spawn();
    let said = running.stderr_path();
    let said = move || fs::read_to_string(&said).unwrap_or_default();
    running.wait_for("a line of progress", || said().contains(" errors"));
    let killed = Instant::now();
    assert!(kill_9(agents(&kit, "b")[0].pid));
    running.wait_for("a word", || said().contains("load host b was lost"));
    assert!(killed.elapsed() < Duration::from_secs(30), "within 2 s on a quiet machine");
    let outcome = running.wait();
    outcome.assert_status(3);
    let json = record(&outcome);
    assert_eq!(json["findings"][0]["code"], "host-lost", "{outcome}");
    assert!(
        number(&json, "/completions") > 0
            && number(&json, "/hosts/0/completions") == number(&json, "/completions")
    );
    assert!(
        json["hosts"][1]["lost"].as_str().unwrap().contains("its channel ended with signal 9"),
        "{outcome}"
    );
    assert!(number(&json, "/hosts/1/reported_when_lost") > 0, "{outcome}");
    kit.assert_nothing_left();
}

#[test]
fn nothing_is_left_after_ctrl_c_or_kill_9() {
    for kill in [false, true] {
        let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
        let arguments = "-d 10m -c 4 --load-host ssh://a --load-host ssh://b";
        let mut running = load(&kit, arguments, &server.url("/")).json_to("out.json").spawn();
        let said = running.stderr_path();
        running.wait_for("a line of progress", || {
            fs::read_to_string(&said).unwrap_or_default().contains(" errors")
        });
        assert_eq!((agents(&kit, "a").len(), agents(&kit, "b").len()), (1, 1));
        if kill {
            running.kill_9();
        } else {
            running.signal(Signal::INT);
            let outcome = running.wait();
            outcome.assert_status(130);
            let json = record(&outcome);
            assert!(json["interrupted"] == true && number(&json, "/hosts/1/completions") > 0, "{outcome}");
        }
        assert!(
            wait_until(Duration::from_secs(20), || kit.leftovers().is_empty()),
            "left: {:?}",
            kit.leftovers()
        );
    }
}

#[test]
fn what_cannot_be_done_from_load_hosts_is_told() {
    let kit = kit();
    let url = "http://192.0.2.1/";
    load(&kit, "-n 1 -c 1 --load-host ssh://nowhere", url)
        .run()
        .assert_status(2)
        .assert_stderr_has("cannot reach the host nowhere")
        .assert_stderr_has("No route to host")
        .assert_stderr_has("ssh HOST true");
    let outcome = load(&kit, "-n 1 -c 1 --load-host ssh://a", url).run();
    outcome
        .assert_status(2)
        .assert_stderr_has("is not the load host's loopback")
        .assert_stderr_has("--allow-target");
    let url = format!("http://127.0.0.1:{}/", deadheat_testkit::free_port());
    let outcome = load(&kit, "-n 1 -c 1 --load-host ssh://a", &url).run();
    outcome.assert_status(2).assert_stderr_has("as load host a sees it");
    kit.assert_nothing_left();
}

#[test]
fn a_program_that_does_not_run_there_is_refused_and_removed() {
    let kit = kit();
    stand_in(&kit);
    let program = Program::of(b"#!/bin/sh\necho 'GLIBC_2.99 not found'\n".to_vec(), VERSION);
    let target: SshTarget = "ssh://a".parse().unwrap();
    let arguments: Vec<_> = target.command(&program).get_args().map(ToOwned::to_owned).collect();
    let mut command = Command::new(kit.path().join("ssh"));
    command.args(arguments);
    let host = HostCommand { name: "a".into(), command, program: Some(program) };
    let error = connect(vec![host]).unwrap_err();
    assert!(
        matches!(&error, RemoteError::Foreign { reason, .. } if reason.contains("GLIBC_2.99")),
        "{error:?}"
    );
    assert!(error.remedy().contains("linux-musl"));
    assert!(copies(&kit).is_empty(), "{:?}", copies(&kit));
}

#[test]
fn load_from_a_cluster_that_is_not_there_is_refused() {
    let kit = kit();
    let arguments = ["load", "--load-kubernetes", "load", "--image", "i", "http://127.0.0.1:1/"];
    let outcome = kit.deadheat(arguments).env("KUBECONFIG", kit.path().join("none")).run();
    outcome.assert_status(2);
    if cfg!(feature = "kubernetes") {
        outcome.assert_stderr_has("the kubeconfig cannot be used").assert_stderr_has("kubectl get pods");
    } else {
        outcome
            .assert_stderr_has("this build of deadheat cannot send load from Kubernetes")
            .assert_stderr_has("cargo build --release --features kubernetes");
    }
}

/// A race of two servers whose load comes from two hosts, which are this machine.
fn race<'k>(kit: &'k Kit, contenders: [(&str, String); 2]) -> Invocation<'k> {
    stand_in(kit);
    let hosts = ["--load-host", "ssh://a", "--load-host", "ssh://b", "--server-address", "127.0.0.1"];
    let mut race = kit.deadheat(["race", "--record", "r.jsonl"]).args(hosts);
    for (name, command) in contenders {
        race = race.args(["-n", name, &command]);
    }
    race.env("DEADHEAT_SSH", kit.path().join("ssh"))
}

#[test]
fn the_load_of_a_race_comes_from_two_hosts() {
    let (kit, _turn) = (kit(), turn());
    let slow = format!("[ \"$HOST\" = 127.0.0.1 ] && {}", server_line(&["--json", "--spin-us", "2000"]));
    let race = race(&kit, [("fast", server_line(&["--json"])), ("slow", slow)]);
    let outcome = race.args(SHORT_RACE).json_to("race.json").run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    let from = &json["record"]["plan"]["load_from"];
    assert_eq!(
        (&from["hosts"], &from["server_address"]),
        (&serde_json::json!(["ssh://a", "ssh://b"]), &"127.0.0.1".into())
    );
    assert!(outcome.stderr.contains("reaching a, b by ssh"), "{outcome}");
    let epoch = &json["record"]["epochs"][0];
    let hosts = &epoch["load_hosts"]["hosts"];
    assert_eq!((&hosts[0]["name"], &hosts[1]["name"]), (&"a".into(), &"b".into()));
    let part = &epoch["contenders"][0];
    let requests = [0, 1].map(|host| number(part, &format!("/load_hosts/{host}/requests")));
    assert!(requests.iter().all(|count| *count > 0), "{part:#}");
    assert_eq!(requests.iter().sum::<u64>(), outcomes(part), "{part:#}");
    assert!(number(part, "/awake_ns") > number(part, "/loaded_ns"));
    let link = &json["record"]["pilots"][0]["link"];
    assert_eq!(link["hosts"].as_array().unwrap().len(), 2);
    assert!(link["together"]["payload_bytes_per_s"].as_f64().unwrap() > 1e6, "{link}");
    outcome.assert_stdout_has("load from a (").assert_stdout_has("apart (p99)");
    let rounds = json["record"]["epochs"][0]["rounds"].as_array().unwrap();
    assert!(rounds.iter().any(|round| round["external"]["steal_share"].is_f64()), "{rounds:?}");
    kit.assert_nothing_left();
}

/// All requests of a contender in an epoch, however they ended.
fn outcomes(part: &Value) -> u64 {
    part["outcomes"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn a_race_that_loses_a_load_host_can_be_continued() {
    let (kit, _turn) = (kit(), turn());
    let contenders = [("one", server_line(&["--json"])), ("other", server_line(&["--json"]))];
    let race = race(&kit, contenders).args(&SHORT_RACE[2..]).args(["--epochs", "150"]);
    let mut running = race.spawn();
    let record = kit.path().join("r.jsonl");
    running.wait_for("an epoch", || epochs(&record) > 0);
    let said = running.stderr_path();
    assert!(kill_9(agents(&kit, "b")[0].pid));
    // Before all contenders have stopped.
    running.wait_for("a word", || fs::read_to_string(&said).unwrap_or_default().contains("; the race ends"));
    let outcome = running.wait();
    let noted = fs::read_to_string(&record).unwrap();
    assert!(noted.contains("\"host-lost\""), "the record says why it ends here: {noted}");
    outcome.assert_status(3).assert_stderr_has("load host b was lost").assert_stderr_has("--resume");
    kit.assert_nothing_left();
    let again = kit.deadheat(["race", "--resume", "r.jsonl", "--pause-after", "1ms"]);
    let again = again.env("DEADHEAT_SSH", kit.path().join("ssh")).run();
    again.assert_stderr_has("reaching a, b by ssh").assert_stderr_has("paused before the next look");
    kit.assert_nothing_left();
}

#[test]
fn a_check_asks_from_a_load_host() {
    let (kit, _turn) = (kit(), turn());
    stand_in(&kit);
    let study = |address: &str| {
        let contender = |name: &str| {
            let command = format!("[ \\\"$HOST\\\" = {address} ] && {}", server_line(&["--json"]));
            format!("[[contender]]\nname = \"{name}\"\ncommand = \"{command} --host {address}\"\n")
        };
        let probe = "[[probe]]\nname = \"root\"\npath = \"/\"\n";
        kit.file("mine/study.toml", format!("{probe}{}{}", contender("one"), contender("other")));
    };
    let check = |from: &[&str]| {
        kit.deadheat(["check", "mine"]).args(from).env("DEADHEAT_SSH", kit.path().join("ssh")).run()
    };
    study("127.0.0.2");
    let outcome = check(&["--load-host", "ssh://a", "--server-address", "127.0.0.2"]);
    outcome.assert_status(0).assert_stdout_has("2 of 2 contenders meet the contract and agree on 1 probe\n");
    outcome.assert_stderr_has("reaching a by ssh");
    kit.assert_nothing_left();
    // The name of a load host tells at which address it reaches this machine.
    study("127.0.0.1");
    let outcome = check(&["--load-host", "ssh://127.0.0.1"]);
    outcome.assert_status(0).assert_stderr_has("the load hosts reach the contenders at 127.0.0.1");
    kit.assert_nothing_left();
    let outcome = kit.deadheat(["check", "mine", "--load-host", "ssh://nowhere.invalid"]).run();
    outcome.assert_status(2).assert_stderr_has("--server-address 10.0.0.5");
}

#[test]
fn doctor_examines_the_network_to_the_load_hosts() {
    let (kit, _turn) = (kit(), turn());
    stand_in(&kit);
    let from = ["--load-host", "ssh://a", "--load-host", "ssh://b", "--server-address", "127.0.0.1"];
    let quick =
        ["--epochs", "3", "--warmup", "20ms", "--measure", "60ms", "--slice", "10ms", "--json", "d.json"];
    let doctor = kit.deadheat(["doctor"]).args(from).args(quick);
    let outcome = doctor.env("DEADHEAT_SSH", kit.path().join("ssh")).run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    outcome.assert_stderr_has("reaching a, b by ssh");
    outcome.assert_stdout_has("a: round trip").assert_stdout_has("all at once");
    let json: Value = serde_json::from_str(&fs::read_to_string(kit.path().join("d.json")).unwrap()).unwrap();
    for (host, name) in ["a", "b"].into_iter().enumerate() {
        let trips = &json["link"]["hosts"][host];
        assert_eq!(trips["name"], name);
        let clock = &trips["clock"];
        assert!(clock["source"].is_string() && clock["read_ns"].as_f64().unwrap() > 0.0, "{clock}");
        let [count, min, p50, p99] =
            ["count", "min_ns", "p50_ns", "p99_ns"].map(|key| trips[key].as_u64().unwrap());
        assert!(count > 0 && 0 < min && min <= p50 && p50 <= p99, "{trips}");
        let received = &json["link"]["bandwidth"]["hosts"][host]["payload_bytes_per_s"];
        assert!(received.as_f64().unwrap() > 1e6, "{received}");
    }
    assert!(json["ceiling"]["throughput_rps"].as_f64().unwrap() > 0.0, "{}", json["ceiling"]);
    let command = json["floor"]["command"].as_str().unwrap();
    assert!(command.contains(" --host 127.0.0.1 "), "{command}");
    kit.assert_nothing_left();
}

#[test]
fn a_load_host_that_is_lost_ends_an_examination() {
    let (kit, _turn) = (kit(), turn());
    stand_in(&kit);
    // Eight epochs, each with a warm-up of a second.
    let words = ["doctor", "--load-host", "ssh://a", "--server-address", "127.0.0.1", "--measure", "100ms"];
    let doctor = kit.deadheat(words).args(["--json", "d.json"]);
    let mut running = doctor.env("DEADHEAT_SSH", kit.path().join("ssh")).spawn();
    let said = running.stderr_path();
    let said = move || fs::read_to_string(&said).unwrap_or_default();
    running.wait_for("the race", || said().contains("noise floor"));
    assert!(kill_9(agents(&kit, "a")[0].pid));
    let outcome = running.wait();
    outcome.assert_status(3).assert_stderr_has("load host a was lost");
    let json: Value = serde_json::from_str(&fs::read_to_string(kit.path().join("d.json")).unwrap()).unwrap();
    assert!(json["ceiling"].is_object(), "what was measured before is kept: {json}");
    kit.assert_nothing_left();
}

#[test]
fn a_race_from_load_hosts_needs_an_address() {
    let kit = kit();
    let outcome = kit.deadheat(["race", "--load-host", "ssh://nowhere.invalid", "true", "false"]).run();
    outcome.assert_status(2).assert_stderr_has("--server-address 10.0.0.5");
    let outcome = kit.deadheat(["race", "--server-address", "10.0.0.5", "true", "false"]).run();
    outcome.assert_status(2).assert_stderr_has("--load-host");
}

/// A server on a host of a bed, at this address.
fn serving(host: &Host, address: Ipv4Addr) -> (NullServer, u16) {
    let server = host.run_inside(|| {
        let address = Address::Tcp(SocketAddr::from((address, 0)));
        NullServer::start(NullConfig { address, ..NullConfig::default() }).unwrap()
    });
    let Address::Tcp(at) = server.address().clone() else { panic!("TCP") };
    (server, at.port())
}

fn agents_on(host: &Host) -> Vec<Process> {
    host.processes().into_iter().filter(|one| one.command.ends_with("/deadheat agent")).collect()
}

#[test]
fn load_comes_from_hosts_by_ssh_and_goes_where_it_is_allowed_to() {
    let (bed, kit, _turn) = (bed_or_skip!(3), kit(), turn());
    let [first, second, third] = bed.hosts() else { panic!("three hosts") };
    let (_server, port) = serving(third, third.address());
    let url = format!("http://{}:{port}/", third.address());
    let load = |more: &[&str], url: &str| {
        let run =
            kit.deadheat_inside(&bed, ["load", "-n", "2001", "-c", "6", "--load-host", "ssh://root@h1"]);
        run.args(more).arg(url).json_to("out.json").run()
    };
    let both = ["--load-host", "ssh://h2", "--allow-target", &third.address().to_string()];
    let outcome = load(&both, &url);
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    let json = record(&outcome);
    assert_eq!(
        (number(&json, "/outcomes/ok"), number(&json, "/hosts/1/connections")),
        (2001, 3),
        "{outcome}"
    );
    assert!(wait_until(Duration::from_secs(10), || [first, second]
        .iter()
        .all(|host| agents_on(host).is_empty())));
    load(&both[..2], &url).assert_status(2).assert_stderr_has("is not the load host's loopback");
    // The loopback of the load host, which nothing but the load host reaches.
    let (_own, port) = serving(first, Ipv4Addr::LOCALHOST);
    let outcome = load(&[], &format!("http://localhost:{port}/"));
    assert_eq!(number(&record(&outcome), "/outcomes/ok"), 2001, "{outcome}");
}

#[test]
fn a_host_that_loses_its_sshd_or_its_network_ends_the_load() {
    let (bed, kit, _turn) = (bed_or_skip!(3), kit(), turn());
    let [first, second, third] = bed.hosts() else { panic!("three hosts") };
    let (_server, port) = serving(third, third.address());
    let url = format!("http://{}:{port}/", third.address());
    for cut in [false, true] {
        let victim = if cut { second } else { first };
        let run = kit.deadheat_inside(&bed, ["load", "-d", "10m", "-c", "4"]);
        let hosts = ["--load-host", "ssh://h1", "--load-host", "ssh://h2"];
        // The listening sshd of h1 is gone after the first round.
        let run = run.args(if cut { &hosts[2..] } else { &hosts[..] });
        let run = run.args(["--allow-target", &third.address().to_string()]).arg(&url).json_to("out.json");
        let mut running = run.spawn();
        let said = running.stderr_path();
        let said = move || fs::read_to_string(&said).unwrap_or_default();
        running.wait_for("a line of progress", || said().contains(" errors"));
        assert_eq!(agents_on(victim).len(), 1, "{:?}", victim.processes());
        if cut {
            victim.cut_link()
        } else {
            victim.kill_sshd()
        }
        running.wait_for("a word", || said().contains("load host h"));
        let outcome = running.wait();
        outcome.assert_status(3);
        assert_eq!(record(&outcome)["findings"][0]["code"], "host-lost", "{outcome}");
        assert_eq!(outcome.stderr.contains("nothing was heard from load host h2"), cut, "{outcome}");
        let gone = || [first, second].iter().all(|host| agents_on(host).is_empty());
        assert!(
            wait_until(Duration::from_secs(15), gone),
            "left: {:?} {:?}",
            agents_on(first),
            agents_on(second)
        );
    }
}

#[test]
fn a_slow_link_takes_the_verdict_away() {
    let (bed, kit, _turn) = (bed_or_skip!(1), kit(), turn());
    // The test server listens nowhere but on the loopback.
    let server = format!("exec '{BINARY}' __null 20000 1");
    let hosts = ["--load-host", "ssh://h1", "--server-address", "10.30.0.250"];
    let race = kit.deadheat_inside(&bed, ["race"]).args(hosts);
    let race = race.args(["-n", "one", &server, "-n", "other", &server]);
    let mut running = race.args(SHORT_RACE).json_to("race.json").spawn();
    let said = running.stderr_path();
    // The program has been copied by then. 40 Mbit/s is far less than a server on this machine can send.
    running.wait_for("the race", || fs::read_to_string(&said).unwrap_or_default().contains("record: "));
    bed.host(1).shape_link(40_000_000);
    let outcome = running.wait();
    outcome.assert_status(3);
    let json = outcome.json();
    let together =
        json.pointer("/record/pilots/0/link/together/payload_bytes_per_s").unwrap().as_f64().unwrap();
    assert!((3e6..5.2e6).contains(&together), "{together} bytes per second over 40 Mbit/s");
    let findings = json["scenarios"][0]["findings"].as_array().unwrap();
    let saturated = findings.iter().find(|one| one["code"] == "link-saturated").unwrap();
    assert_eq!(saturated["severity"], "invalid", "{findings:#?}");
    kit.assert_nothing_left();
}
