//! Runs one warm-up slice and one closed slice, and prints what came of it:
//! `slice ADDRESS PATH CONNECTIONS SECONDS [RATE] [CPU,...] [uring|epoll]` (RATE -: closed; else as `100..5000:2s,5k`).
#![allow(clippy::print_stdout, reason = "an example's output is its purpose")]

use std::time::Duration;

use deadheat_load::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, connections, seconds, more @ ..] = arguments.as_slice() else {
        return Err("usage: slice ADDRESS PATH CONNECTIONS SECONDS [RATE] [CPU,...] [uring|epoll]".into());
    };
    let cpus: Vec<usize> =
        more.get(1).map_or(Ok(vec![]), |list| list.split(',').map(str::parse).collect())?;
    let backend = match more.get(2).map(String::as_str) {
        Some("uring") => Backend::Uring,
        Some("epoll") => Backend::Epoll,
        _ => Backend::Auto,
    };
    let to = Address::Tcp(address.parse()?);
    let timeout = Duration::from_secs(5);
    let bytes = request_bytes("GET", path, address, &[], b"")?;
    let probe = exchange(&to, None, &bytes, false, timeout, 1 << 24)?;
    let expect =
        Expectation { status: StatusRule::Exact(probe.status), body: BodyRule::exactly(&probe.body) };
    let mut session = Session::open(SessionConfig {
        max_connections: 1000,
        spin: true,
        backend,
        cpus,
        ..SessionConfig::to(to, connections.parse()?, Requests::one(Prepared { bytes, head: false, expect }))
    })?;
    let duration = Duration::from_secs_f64(seconds.parse()?);
    let pacer = match more.first().map(String::as_str) {
        None | Some("-") => Pacer::Closed,
        Some(rate) => Pacer::Open { rate: Rate::parse(rate, Some(duration))?, arrivals: Arrivals::Constant },
    };
    let limit = Limit::duration(duration);
    let order = SliceOrder { pacer, limit, settle: Duration::from_millis(10), start: 0 };
    let warm_up = SliceOrder { limit: Limit::duration(Duration::from_millis(200)), ..order.clone() };
    session.slice(&warm_up)?;
    let tally = session.slice(&order)?;
    println!("rate {:.1}/s  completions {}", tally.rate_per_s().unwrap_or(0.0), tally.completions);
    for (name, times) in
        [("latency", &tally.latency), ("service", &tally.service), ("send lag", &tally.send_lag)]
    {
        let micros = |q| times.quantile_ns(q).unwrap_or(0) as f64 / 1e3;
        println!("{name:>8} us: p50 {:.1} p99 {:.1} p99.9 {:.1}", micros(0.5), micros(0.99), micros(0.999));
    }
    let in_flight = tally.rate_per_s().unwrap_or(0.0) * tally.latency.mean_ns().unwrap_or(0.0) / 1e9;
    println!("rate * mean latency = {in_flight:.2}  CPU share {:.3}", tally.cpu_share().unwrap_or(0.0));
    println!(
        "{}  CPU {:.2} us per request, {:.2} of it looking out; Little {:?}; connections {} waited {}",
        session.backend().name(),
        tally.cpu_ns as f64 / 1e3 / tally.completions as f64,
        tally.spin_ns as f64 / 1e3 / tally.completions as f64,
        tally.littles_law(),
        tally.connections,
        tally.waited,
    );
    println!("{:?}  reconnects {}  retried {}", tally.outcomes, tally.reconnects, tally.retried);
    Ok(())
}
