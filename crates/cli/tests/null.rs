//! `deadheat null`: where it listens, how it ends, and that clients cannot make its memory grow or its CPU spin.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use deadheat_testkit::{Client, Kit, Running, Signal, wait_until};

const BACKENDS: [&str; 2] = ["io_uring", "epoll"];
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn kit() -> Kit {
    Kit::new(env!("CARGO_BIN_EXE_deadheat"))
}

/// Waits until the server prints its address and returns the port.
fn port(running: &mut Running) -> u16 {
    let found = |text: String| text.split_once("http://127.0.0.1:")?.1.split_once('/')?.0.parse().ok();
    loop {
        if let Some(port) = found(running.stdout()) {
            return port;
        }
        assert!(running.is_running(), "{}", running.stderr());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Resident bytes of a process.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Ticks of CPU time that a process has used; there are 100 in a second.
pub(crate) fn ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn it_says_where_it_listens_answers_and_ends_when_asked() {
    for signal in [Signal::INT, Signal::TERM] {
        for backend in BACKENDS {
            let kit = kit();
            let line = ["null", "--port", "0", "--bytes", "100", "--threads", "2", "--backend", backend];
            let mut running = kit.deadheat(line).spawn();
            let mut client = Client::connect(port(&mut running)).unwrap();
            let reply = client.get("/whatever").unwrap();
            assert_eq!((reply.status, reply.body.len()), (200, 100));
            assert_eq!(reply.header("content-type"), Some("text/plain"));
            assert!(client.head("/").unwrap().body.is_empty());
            assert!(running.signal(signal));
            let outcome = running.wait();
            outcome.assert_status(0).assert_stdout_has(&format!("/ ({backend})\n"));
            assert_eq!((outcome.stdout.lines().count(), outcome.stderr.as_str()), (1, ""));
        }
    }
}

#[test]
fn a_port_or_socket_that_is_taken_is_wrong_usage_with_a_remedy() {
    let kit = kit();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome = kit.deadheat(["null", "--port", &port]).run();
    outcome.assert_status(2).assert_stderr_has("choose another --port, or 0 for any free one");
    outcome.assert_stderr_has(&format!("cannot listen on 127.0.0.1:{port}: Address already in use"));

    let path = kit.file("there", "");
    let outcome = kit.deadheat(["null", "--unix-socket"]).arg(&path).run();
    outcome.assert_status(2).assert_stderr_has("choose another --unix-socket");
    assert!(path.exists());
    for wrong in [
        "--backend=x",
        "--cpus=9999",
        "--bytes=-1",
        "--threads=0",
        "--unix-socket=x --port=1",
        "--spin=40",
        "--spin=1us --spin-steps=5",
    ] {
        kit.deadheat(["null", "--port", "0"]).args(wrong.split(' ')).run().assert_status(2);
    }
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let kit = kit();
    let path = kit.path().join("null.sock");
    let mut running = kit.deadheat(["null", "--unix-socket"]).arg(&path).spawn();
    assert!(wait_until(Duration::from_secs(20), || running.stdout().contains("unix:")));
    assert_eq!(Client::connect_unix(&path).unwrap().get("/").unwrap().text(), "Hello, world!");
    assert!(running.signal(Signal::TERM));
    running.wait().assert_status(0);
    assert!(!path.exists());
}

#[test]
fn without_descriptors_it_waits_and_does_not_spin() {
    for backend in BACKENDS {
        let kit = Kit::new("/bin/sh");
        let script = "ulimit -n 64; exec \"$0\" \"$@\"";
        let line =
            ["-c", script, env!("CARGO_BIN_EXE_deadheat"), "null", "--port", "0", "--backend", backend];
        let mut running = kit.deadheat(line).spawn();
        let port = port(&mut running);
        let clients: Vec<TcpStream> =
            (0..200).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        thread::sleep(Duration::from_millis(200));
        let before = ticks(running.pid());
        thread::sleep(Duration::from_millis(1_000));
        let spent = ticks(running.pid()) - before;
        assert!(spent < 30, "{backend}: {spent} ticks in a second");
        drop(clients);
        let answered = || {
            let reply = Client::connect(port).and_then(|mut client| client.get("/"));
            reply.is_ok_and(|reply| reply.status == 200)
        };
        assert!(wait_until(Duration::from_secs(20), answered), "{backend}");
    }
}

#[test]
fn no_client_makes_it_grow() {
    for backend in BACKENDS {
        let kit = kit();
        let mut running = kit.deadheat(["null", "--port", "0", "--backend", backend]).spawn();
        let port = port(&mut running);
        let connect = || {
            let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream
        };
        let round = |flood: usize| {
            // The first client never reads its answers; the others never finish their requests.
            let mut streams: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
            for (number, stream) in streams.iter_mut().enumerate() {
                match number {
                    0 => stream.write_all(&GET.repeat(flood)).unwrap(),
                    _ => stream
                        .write_all(format!("GET / HTTP/1.1\r\na: {}", "x".repeat(number)).as_bytes())
                        .unwrap(),
                }
            }
            // One client sends a request head of 10 MB.
            let mut stream = connect();
            (0..1_000).for_each(|_| stream.write_all(&[b'x'; 10_000]).unwrap());
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 431");
        };
        round(1_000);
        let before = resident(running.pid());
        (0..5).for_each(|_| round(100_000));
        for _ in 0..2_000 {
            let mut stream = connect();
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
            assert!(stream.read_to_end(&mut Vec::new()).unwrap() > 13);
        }
        let grown = resident(running.pid()).saturating_sub(before);
        assert!(grown < 2 << 20, "{backend}: {before} bytes and {grown} more");
    }
}
