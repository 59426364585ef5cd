//! Tests the load generator when the machine runs out of something. Each test starts this program again with a lower limit.

use std::process::Command;
use std::time::Duration;

use crate::kit::*;
use deadheat_load::*;

/// Runs an ignored test in a new process, after a line of shell that sets a limit.
fn inside(test: &str, shell: &str) {
    let own = std::env::current_exe().unwrap();
    let line = format!("{shell} && exec \"$0\" --exact shortages::{test} --ignored --nocapture");
    let output = Command::new("sh").arg("-c").arg(line).arg(own).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The error numbers with which connections could not be opened.
fn causes(tally: &Tally) -> Vec<i32> {
    let number = |fault: &Fault| match fault.cause {
        Cause::System(number) if fault.outcome == Outcome::Connect && fault.count > 0 => number,
        _ => panic!("{fault:?}"),
    };
    tally.unopened.iter().map(number).collect()
}

#[test]
fn file_descriptors_run_out() {
    inside("with_few_file_descriptors", "ulimit -n 100");
}

#[test]
#[ignore = "run by file_descriptors_run_out"]
fn with_few_file_descriptors() {
    for backend in [Backend::Epoll, Backend::Uring] {
        // Each backend gets a new listener, because connections left over from the first session would disturb the second.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let error = Session::open(SessionConfig { backend, ..config(address.clone(), 500) }).unwrap_err();
        let OpenError::Connect { opened, wanted: 500, source, .. } = error else { panic!("{error:?}") };
        assert!((20..100).contains(&opened), "{opened}");
        assert_eq!(source.raw_os_error(), Some(24), "{source}");
        // The session begins with a few less than the limit allows, and may open up to 500. No request times out before that many are due,
        // even on a busy machine.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let few = SessionConfig {
            backend,
            max_connections: 500,
            timeout: Duration::from_secs(1),
            ..config(address, opened - 8)
        };
        let mut session = Session::open(few).unwrap();
        let tally =
            session.slice(&order(constant(2_000.0), Limit::duration(Duration::from_millis(300)))).unwrap();
        check(&tally);
        assert_eq!(tally.due, 600);
        assert!((opened - 7..100).contains(&tally.connections) && tally.waited > 0, "{}", tally.connections);
        assert_eq!(causes(&tally), [24]);
    }
}

#[test]
fn ephemeral_ports_run_out() {
    let ports = "echo '40000 40049' > /proc/sys/net/ipv4/ip_local_port_range";
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !root {
        eprintln!("SKIPPED: ephemeral_ports_run_out needs root, to create a network namespace");
        return;
    }
    let own = format!("ip link set lo up && {ports}");
    inside(
        "with_few_ports",
        &format!(
            "[ -n \"$IN_OWN_NET\" ] || exec env IN_OWN_NET=1 unshare -n sh -c '{}' \"$0\"",
            format!("{own} && exec \"$0\" --exact shortages::with_few_ports --ignored --nocapture")
                .replace('\'', "'\\''")
        ),
    );
}

#[test]
#[ignore = "run by ephemeral_ports_run_out"]
fn with_few_ports() {
    let duration = Limit::duration(Duration::from_millis(300));
    for (backend, port) in [(Backend::Epoll, 50_000), (Backend::Uring, 50_001)] {
        // Each session connects to another port: closed connections keep their local port busy for a while, but only for one server port.
        let listener = std::net::TcpListener::bind(("127.0.0.1", port + 2)).unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let few = SessionConfig {
            backend,
            max_connections: 80,
            timeout: Duration::from_secs(1),
            ..config(address, 40)
        };
        let tally = Session::open(few).unwrap().slice(&order(constant(2_000.0), duration)).unwrap();
        check(&tally);
        assert!((41..=50).contains(&tally.connections), "{}", tally.connections);
        assert_eq!(causes(&tally), [99]);
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let error = Session::open(SessionConfig { backend, ..config(address.clone(), 80) }).unwrap_err();
        let OpenError::Connect { opened, wanted: 80, source, .. } = error else { panic!("{error:?}") };
        assert!((1..=50).contains(&opened), "{opened}: {source}");
        assert_eq!(source.kind(), std::io::ErrorKind::AddrNotAvailable, "{source}");
    }
}
