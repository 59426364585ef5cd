//! Checks each option of the test server through a plain socket.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use deadheat_testkit::{
    Client, Kit, Signal, TestServer, descendants, is_alive, kill_9, line_count, send_signal, server_command,
    wait_until,
};

const SERVER: &str = env!("CARGO_BIN_EXE_deadheat-test-server");
const LIMIT: Duration = Duration::from_secs(60);

fn texts(arguments: &[&str], count: usize) -> Vec<String> {
    let server = TestServer::start(arguments);
    let mut client = server.client();
    (0..count).map(|_| client.get("/x").unwrap().text()).collect()
}

/// The user and system time of a process in ticks of the kernel (100 a second).
fn cpu_ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn the_harness_finds_the_server_that_cargo_built() {
    assert_eq!(server_command().file_name(), Path::new(SERVER).file_name());
    assert!(server_command().exists());
}

#[test]
fn a_good_server_answers_alike_on_one_connection() {
    let server = TestServer::start(&["--body", "hi", "--header", "x-a: 1", "--header", "x-a: 2"]);
    let mut client = server.client();
    let first = client.get("/").unwrap();
    assert_eq!((first.status, first.text().as_str(), first.header("content-length")), (200, "hi", Some("2")));
    let repeated: Vec<_> = first.headers.iter().filter(|(name, _)| name == "x-a").collect();
    assert_eq!(repeated.len(), 2);
    for path in ["/", "/other?x=1"] {
        assert_eq!(client.get(path).unwrap(), first);
    }
    let head = client.head("/").unwrap();
    assert_eq!((head.header("content-length"), head.body.len()), (Some("2"), 0));
}

#[test]
fn pipelined_and_split_requests_are_answered_in_order() {
    let server = TestServer::start(&["--json"]);
    let mut client = server.client();
    let request = |n: usize| format!("POST /{n} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab");
    let all: String = (0..20).map(request).collect();
    let (start, rest) = all.split_at(all.len() / 2 + 7);
    client.send(start.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    client.send(rest.as_bytes()).unwrap();
    for n in 0..20 {
        let text = client.reply(false).unwrap().text();
        assert_eq!(
            text,
            format!(r#"{{"path":"/{n}","method":"POST","n":1,"ok":true,"items":["a","b","c"]}}"#)
        );
    }
}

#[test]
fn a_body_larger_than_the_socket_arrives_whole() {
    let body = "0123456789".repeat(12_000);
    let server = TestServer::start(&["--body", &body]);
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\n\r\n".repeat(100).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..100 {
        assert_eq!(client.reply(false).unwrap().text(), body);
    }
}

#[test]
fn status_and_type_can_be_chosen() {
    let server = TestServer::start(&["--status", "503", "--header", "Content-Type: text/html"]);
    let reply = server.client().get("/").unwrap();
    assert_eq!((reply.status, reply.header("content-type")), (503, Some("text/html")));
    let empty = TestServer::start(&["--status", "204"]);
    let mut client = empty.client();
    assert_eq!((client.get("/").unwrap().status, client.get("/").unwrap().body.len()), (204, 0));
}

#[test]
fn answers_go_wrong_as_told() {
    assert_eq!(texts(&["--body", "abc", "--differ-under-load", "2"], 4), ["abc", "abc", "abX", "abX"]);
    assert_eq!(texts(&["--body", "abc", "--differ-every", "2"], 4), ["abc", "abX", "abc", "abX"]);
    assert_eq!(texts(&["--body", "abcd", "--shorter-under-load", "1"], 2), ["abcd", "ab"]);
    let tokens = texts(&["--counter-token"], 3);
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2] && tokens[0].len() == tokens[2].len());
    let failing = TestServer::start(&["--status-under-load", "1", "500"]);
    let mut client = failing.client();
    assert_eq!([client.get("/").unwrap().status, client.get("/").unwrap().status], [200, 500]);
}

#[test]
fn the_count_goes_over_all_connections() {
    let server = TestServer::start(&["--body", "abc", "--differ-every", "2"]);
    assert_eq!(server.client().get("/").unwrap().text(), "abc");
    assert_eq!(server.client().get("/").unwrap().text(), "abX");
}

#[test]
fn connections_end_as_told() {
    let each = TestServer::start(&["--close-each"]);
    let mut client = each.client();
    let reply = client.get("/").unwrap();
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    assert!(client.is_closed().unwrap());

    let asked = TestServer::start(&[]);
    let mut client = asked.client();
    client.send(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
    assert_eq!(client.reply(false).unwrap().status, 200);
    assert!(client.is_closed().unwrap());

    let silent = TestServer::start(&["--close-without-answer"]);
    assert_eq!(silent.client().get("/").unwrap_err().kind(), ErrorKind::UnexpectedEof);

    let truncated = TestServer::start(&["--truncate"]);
    assert_eq!(truncated.client().get("/").unwrap_err().kind(), ErrorKind::UnexpectedEof);

    let garbage = TestServer::start(&["--garbage"]);
    assert_eq!(garbage.client().get("/").unwrap_err().kind(), ErrorKind::InvalidData);

    let mut client = asked.client();
    client.send(b"nonsense\r\n\r\n").unwrap();
    assert_eq!(client.reply(false).unwrap().status, 400);
}

#[test]
fn a_server_that_never_answers_keeps_the_connection() {
    let server = TestServer::start(&["--never-answer"]);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // A signal to this process, from another test, ends the wait early.
    let error = loop {
        match std::io::Read::read(&mut stream, &mut [0; 1]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
}

#[test]
fn delays_are_at_least_as_long_as_told_and_do_not_add_up() {
    let server = TestServer::start(&["--delay-ms", "400"]);
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    let start = Instant::now();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    }
    clients.iter_mut().for_each(|client| assert_eq!(client.reply(false).unwrap().status, 200));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(400), "{took:?}");
    assert!(
        took < Duration::from_millis(400 * 20),
        "{took:?}: the delays were waited for one after the other"
    );
    assert!(cpu_ticks(server.pid()) < 20, "a delay burns nothing");
}

#[test]
fn spinning_and_stalling_take_their_time() {
    let spin = TestServer::start(&["--spin-us", "2000"]);
    let mut client = spin.client();
    let start = Instant::now();
    (0..20).for_each(|_| assert_eq!(client.get("/").unwrap().status, 200));
    assert!(start.elapsed() >= Duration::from_millis(40));

    let stalling = TestServer::start(&["--stall-ms", "60", "100"]);
    let mut client = stalling.client();
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < Duration::from_millis(400) {
        let sent = Instant::now();
        assert_eq!(client.get("/").unwrap().status, 200);
        longest = longest.max(sent.elapsed());
    }
    assert!(longest >= Duration::from_millis(40), "{longest:?}");
}

#[test]
fn work_costs_time_in_proportion() {
    let ticks = |rounds: &str| {
        let server = TestServer::start(&["--work", rounds]);
        let mut client = server.client();
        (0..40).for_each(|_| assert_eq!(client.get("/").unwrap().status, 200));
        cpu_ticks(server.pid())
    };
    let (little, much) = (ticks("1000"), ticks("3000000"));
    assert!(much > little + 5, "{little} and {much} ticks");
}

#[test]
fn a_server_leaves_as_told() {
    let exit = Command::new(SERVER).args(["--exit", "7"]).output().unwrap();
    let lines = String::from_utf8(exit.stderr).unwrap().lines().count();
    assert_eq!((exit.status.code(), lines), (Some(7), 2));

    let mut dying = TestServer::start(&["--exit-after", "3"]);
    let mut client = dying.client();
    client.send("GET / HTTP/1.1\r\n\r\n".repeat(5).as_bytes()).unwrap();
    (0..3).for_each(|_| assert_eq!(client.reply(false).unwrap().status, 200));
    assert!(client.reply(false).is_err());
    assert!(wait_until(LIMIT, || !dying.is_running()));

    let wrong = Command::new(SERVER).arg("--nonsense").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let homeless = Command::new(SERVER).env_remove("PORT").env_remove("SOCKET").output().unwrap();
    assert_eq!(homeless.status.code(), Some(70));
    let brief = Command::new(SERVER).args(["--never-listen", "--lifetime-s", "0.05"]).output().unwrap();
    assert_eq!(brief.status.code(), Some(0));
}

#[test]
fn the_place_to_listen_comes_from_the_environment() {
    let kit = Kit::new(SERVER);
    let path = kit.path().join("server.sock");
    let _running = kit.deadheat(["--body", "over a unix socket"]).env("SOCKET", &path).spawn();
    assert!(wait_until(LIMIT, || Client::connect_unix(&path).is_ok()));
    assert_eq!(Client::connect_unix(&path).unwrap().get("/").unwrap().text(), "over a unix socket");

    let port = deadheat_testkit::free_port();
    let start = Instant::now();
    let _running = kit.deadheat(["--start-delay-ms", "200"]).env("PORT", port.to_string()).spawn();
    assert!(wait_until(LIMIT, || Client::connect(port).is_ok()));
    assert!(start.elapsed() >= Duration::from_millis(200));

    let mut deaf = kit.deadheat(["--never-listen", "--port-file", "port"]).env("PORT", "0").spawn();
    std::thread::sleep(Duration::from_millis(100));
    assert!(
        deaf.is_running() && line_count(&kit.path().join("port")) == 0 && !kit.path().join("port").exists()
    );
}

#[test]
fn a_chatty_server_writes_escapes() {
    let kit = Kit::new(SERVER);
    let outcome = kit.deadheat(["--chatty", "look:", "--exit", "1"]).run();
    assert_eq!(outcome.status(), Some(1));
    assert!(outcome.stdout.starts_with("look:\x1b[2J"), "{outcome}");
}

#[test]
fn an_idle_burner_burns() {
    let server = TestServer::start(&["--burn-idle"]);
    assert!(wait_until(LIMIT, || cpu_ticks(server.pid()) >= 10));
}

#[test]
fn sigterm_ends_a_server_unless_it_is_ignored() {
    let mut ordinary = TestServer::start(&[]);
    assert!(send_signal(ordinary.pid(), Signal::TERM));
    assert!(wait_until(LIMIT, || !ordinary.is_running()));

    let mut stubborn = TestServer::start(&["--ignore-term", "--body", "still here"]);
    assert!(send_signal(stubborn.pid(), Signal::TERM));
    std::thread::sleep(Duration::from_millis(50));
    assert!(stubborn.is_running());
    assert_eq!(stubborn.client().get("/").unwrap().text(), "still here");
}

#[test]
fn children_take_all_places_and_outlive_sigterm_and_their_parent() {
    let kit = Kit::new(SERVER);
    let port_file = kit.path().join("port");
    let running = kit.deadheat(["--children", "4", "--port", "0", "--port-file"]).arg(&port_file).spawn();
    assert!(wait_until(LIMIT, || port_file.exists()));
    let all = kit.leftovers();
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(descendants(running.pid()).len(), 3, "the fourth is an orphan");
    let idle: Vec<u32> = all.iter().map(|process| process.pid).filter(|&pid| pid != running.pid()).collect();

    let ids = |pid: u32| -> (i32, i32) {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[2].parse().unwrap(), fields[3].parse().unwrap())
    };
    let (group, session) = ids(running.pid());
    let own_group = idle.iter().filter(|&&pid| ids(pid).0 == pid as i32).count();
    let own_session = idle.iter().filter(|&&pid| ids(pid).1 == pid as i32).count();
    let same = idle.iter().filter(|&&pid| ids(pid) == (group, session)).count();
    assert_eq!((same, own_group, own_session), (1, 3, 2));

    idle.iter().for_each(|&pid| assert!(send_signal(pid, Signal::TERM)));
    running.kill_9();
    std::thread::sleep(Duration::from_millis(50));
    assert!(idle.iter().all(|&pid| is_alive(pid)));
    idle.iter().for_each(|&pid| assert!(kill_9(pid)));
    kit.assert_nothing_left();
}

#[test]
fn the_log_has_a_line_for_each_answer_as_the_server_saw_it() {
    let kit = Kit::new(SERVER);
    let path = kit.path().join("log");
    let log = path.to_str().unwrap();
    let times = || -> Vec<(f64, f64)> {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let pair = |line: &str| {
            let (came, took) = line.split_once(' ').unwrap();
            (came.parse().unwrap(), took.parse().unwrap())
        };
        text.lines().map(pair).collect()
    };
    for (more, longest_us) in [(vec![], 0.0), (vec!["--delay-ms", "1", "--slow-ms", "20", "0.5"], 20_000.0)] {
        let server = TestServer::start(&[vec!["--log", log], more].concat());
        let mut client = server.client();
        (0..10).for_each(|_| assert_eq!(client.get("/").unwrap().status, 200));
        assert!(wait_until(LIMIT, || line_count(&path) == 10), "{} lines", line_count(&path));
        let times = times();
        assert!(times.is_sorted_by(|one, next| one.0 + one.1 <= next.0 + 0.2), "{times:?}");
        let longest = times.iter().map(|(_, took)| *took).fold(0.0, f64::max);
        assert!(longest >= longest_us && times.iter().any(|(_, took)| *took < 20_000.0), "{times:?}");
    }
}
