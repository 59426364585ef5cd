//! A bench, and no part of `make test`: what it costs to control three load hosts that are network namespaces of one machine, by ssh.
//!
//! `cargo test --release -p deadheat --test program -- --ignored --nocapture what_control_of` prints two tables. It needs root and a quiet
//! machine. Here, hosts and controlling side share their processors, so starts are further apart than on separate machines.
//! The second table is of up to a hundred agents on this machine, which hardly load: what this side needs for each of them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadheat_load::{
    Address, Arrivals, Expectation, LoadSession as _, Pacer, Prepared, Rate, Requests, SessionConfig,
    SliceOrder, request_bytes,
};
use deadheat_remote::{HostCommand, LoadHosts, Patience, RemoteSession, start_skew};
use deadheat_testkit::{TestServer, bed_or_skip, processes_with_env, turn, wait_until};

use crate::common::{BINARY, kit};

const WORKERS: usize = 3;
/// In ten of these, the hosts start further apart than in the p99.
const SLICES: usize = 1_000;
/// Slices with each number of agents.
const SLICES_OF_MANY: usize = 100;
const LENGTH: Duration = Duration::from_millis(100);
/// A slice during which the controlling side only waits.
const LONG: Duration = Duration::from_secs(5);
const PORT: u16 = 8080;

/// How long a thread computes after its start, about as a load host does until it waits for its first answers.
const WORK: Duration = Duration::from_millis(2);

/// The p99 of the distance between the first and the last start of as many threads as there are load hosts. They sleep until the same moment, and then
/// compute: what this machine makes of equal starts without any network.
fn starts_of_sleepers(work: Duration) -> Duration {
    let begin = Instant::now() + LENGTH;
    let late = move || {
        (0..SLICES as u32).map(move |number| {
            let due = begin + LENGTH / 5 * number;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let started = Instant::now();
            while started.elapsed() < work {}
            started - due
        })
    };
    let threads: Vec<_> =
        (0..WORKERS).map(|_| std::thread::spawn(move || late().collect::<Vec<_>>())).collect();
    let late: Vec<Vec<Duration>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let apart = |slice: usize| {
        let starts = late.iter().map(|one| one[slice]);
        starts.clone().max().unwrap() - starts.min().unwrap()
    };
    let mut apart: Vec<Duration> = (0..SLICES).map(apart).collect();
    apart.sort_unstable();
    apart[SLICES * 99 / 100 - 1]
}

/// CPU time of a process with a single thread, in nanoseconds.
fn used_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// CPU time of this process, in nanoseconds.
fn own_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
#[ignore = "a bench"]
fn what_control_of_three_load_hosts_costs() {
    let (bed, kit, _turn) = (bed_or_skip!(4), kit(), turn());
    let server = bed.host(WORKERS + 1);
    let mut null = server.exec(BINARY);
    null.args(["__null", "13", "1"]).env("HOST", server.address().to_string()).env("PORT", PORT.to_string());
    let mut null = null.stdin(Stdio::null()).spawn().unwrap();
    let address = SocketAddr::from((server.address(), PORT));
    let up = || bed.run_inside(|| std::net::TcpStream::connect(address).is_ok());
    assert!(wait_until(Duration::from_secs(10), up));

    let (key, value) = kit.mark();
    let host = |number: usize| {
        let mut command = bed.inside("ssh");
        command.args(["-T", &bed.host(number).ssh_target(), &format!("exec '{BINARY}' agent")]);
        command.env(key, value);
        HostCommand { name: format!("h{number}"), command, program: None }
    };
    let patience = Patience::default();
    let hosts = (1..=WORKERS).map(host).collect();
    let hosts = Arc::new(LoadHosts::connect(hosts, env!("CARGO_PKG_VERSION"), patience).unwrap());
    hosts.watch(&[], false).unwrap();
    let config = config(address, 30);
    let mut session = RemoteSession::open(Arc::clone(&hosts), &config).unwrap();
    let order = SliceOrder::closed(LENGTH);
    let ssh: Vec<u32> = processes_with_env(key, value).into_iter().map(|one| one.pid).collect();
    let controlling_ns = || own_ns() + ssh.iter().map(|pid| used_ns(*pid)).sum::<u64>();

    let (traffic, used, begun) = (total(&hosts), controlling_ns(), Instant::now());
    let (mut skews, mut answers) = (Vec::new(), 0);
    for _ in 0..SLICES {
        let slices = session.slice_on_hosts(&order);
        answers += slices.iter().map(|one| one.result.as_ref().unwrap().completions).sum::<u64>();
        skews.push(start_skew(&slices).unwrap());
    }
    let (took, used) = (begun.elapsed(), controlling_ns() - used);
    let now = total(&hosts);
    let during = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            std::thread::sleep(LONG / 5);
            let (before, begun) = (controlling_ns(), Instant::now());
            std::thread::sleep(LONG / 5 * 3);
            (controlling_ns() - before) as f64 / begun.elapsed().as_nanos() as f64
        });
        session.slice_on_hosts(&SliceOrder::closed(LONG));
        watching.join().unwrap()
    });
    drop(session);
    let [alone, working] = [Duration::ZERO, WORK].map(starts_of_sleepers);
    null.kill().unwrap();
    null.wait().unwrap();

    skews.sort_unstable();
    let each = (SLICES * WORKERS) as f64;
    println!("{WORKERS} load hosts by ssh, {SLICES} slices of {} ms, {answers} answers", LENGTH.as_millis());
    println!(
        "start skew                     p50 {:?}, p99 {:?}",
        skews[SLICES / 2],
        skews[SLICES * 99 / 100 - 1]
    );
    println!(
        "as many threads that sleep      p99 {alone:?}; if they compute for {WORK:?} then: p99 {working:?}"
    );
    println!(
        "messages per slice and host    {:.2} there, {:.2} back",
        per(now[0] - traffic[0], each),
        per(now[2] - traffic[2], each)
    );
    println!(
        "bytes per slice and host       {:.0} there, {:.0} back",
        per(now[1] - traffic[1], each),
        per(now[3] - traffic[3], each)
    );
    println!(
        "CPU of the controlling side    {:.2} ms per slice and host, ssh included",
        used as f64 / 1e6 / each
    );
    println!("while a slice runs             {:.2} % of one processor", 100.0 * during);
    println!(
        "loaded                         {:.1} % of the time",
        100.0 * (LENGTH * SLICES as u32).as_secs_f64() / took.as_secs_f64()
    );
}

/// A session with this number of connections to this address.
fn config(address: SocketAddr, connections: usize) -> SessionConfig {
    let bytes = request_bytes("GET", "/", "test", &[], b"").unwrap();
    let request = Prepared { bytes, head: false, expect: Expectation::ANY };
    SessionConfig::to(Address::Tcp(address), connections, Requests::one(request))
}

/// Resident memory of this process, in bytes.
fn own_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// Prints what this side needs for 1 to 100 agents. The table shows whether the cost of each agent stays the same.
#[test]
#[ignore = "a bench"]
fn what_control_of_many_agents_costs() {
    let (kit, _turn) = (kit(), turn());
    let server = TestServer::start(&[]);
    let (key, value) = kit.mark();
    println!("agents  connected in  messages/slice  CPU/slice  idle: CPU      memory");
    for count in [1, 10, 30, 100] {
        let before = own_bytes();
        let host = |number: usize| {
            let mut command = std::process::Command::new(BINARY);
            command.arg("agent").env(key, value);
            HostCommand { name: format!("h{number}"), command, program: None }
        };
        let begun = Instant::now();
        let hosts = (0..count).map(host).collect();
        let hosts = LoadHosts::connect(hosts, env!("CARGO_PKG_VERSION"), Patience::default()).unwrap();
        let (hosts, connected) = (Arc::new(hosts), begun.elapsed());
        hosts.watch(&[], false).unwrap();
        let mut session = RemoteSession::open(Arc::clone(&hosts), &config(server.address(), count)).unwrap();
        let pacer =
            Pacer::Open { rate: Rate::constant(10.0 * count as f64).unwrap(), arrivals: Arrivals::Constant };
        let order = SliceOrder { pacer, ..SliceOrder::closed(LENGTH) };
        let sent = || (0..count).map(|host| hosts.traffic(host).0.messages).sum::<u64>();
        let (used, messages) = (own_ns(), sent());
        for _ in 0..SLICES_OF_MANY {
            session.slice(&order).unwrap();
        }
        let (used, messages) = (own_ns() - used, sent() - messages);
        let idle = own_ns();
        std::thread::sleep(LONG);
        let idle = (own_ns() - idle) as f64 / LONG.as_nanos() as f64;
        println!(
            "{count:6}  {connected:10.0?}  {:14.2}  {:6.2} ms  {:6.2} %  {:6.1} MB",
            per(messages, SLICES_OF_MANY as f64),
            used as f64 / 1e6 / SLICES_OF_MANY as f64,
            100.0 * idle,
            own_bytes().saturating_sub(before) as f64 / 1e6
        );
        drop(session);
        drop(hosts);
    }
    kit.assert_nothing_left();
}

fn per(count: u64, each: f64) -> f64 {
    count as f64 / each
}

/// Messages and bytes that were sent to all hosts, and those that came.
fn total(hosts: &LoadHosts) -> [u64; 4] {
    (0..WORKERS).map(|host| hosts.traffic(host)).fold([0; 4], |sum, (sent, received)| {
        [sum[0] + sent.messages, sum[1] + sent.bytes, sum[2] + received.messages, sum[3] + received.bytes]
    })
}
