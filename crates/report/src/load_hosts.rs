//! The machines of a scenario whose load came from load hosts: one table, and what holds for all of them.
//!
//! Owns: the columns and the wording. Must not know: where they are shown. It escapes nothing.

use deadheat_analysis::number::{bytes, percent, time_ns, whole};
use deadheat_analysis::{LoadHostsResult, MachineReadings};

/// The titles of [`rows`].
pub(crate) const TITLES: [&str; 12] = [
    "machine",
    "connections",
    "requests",
    "round trip p50",
    "p99",
    "began late (p99)",
    "other programs",
    "steal",
    "longest stall",
    "softirq",
    "sent again",
    "dropped",
];

/// One line for each load host, and one for the contenders' machine.
pub(crate) fn rows(of: &LoadHostsResult) -> Vec<[Option<String>; 12]> {
    let hosts = of.hosts.iter().map(|host| {
        let [foreign, steal, stall, softirq, again, dropped] = read(&host.readings);
        [
            Some(host.name.clone()),
            Some(whole(host.connections)),
            host.requests_share.map(percent),
            host.round_trip_ns.p50.map(time),
            host.round_trip_ns.p99.map(time),
            host.start_delay_p99_ns.map(time),
            foreign,
            steal,
            stall,
            softirq,
            again,
            dropped,
        ]
    });
    let [foreign, steal, stall, softirq, again, dropped] = read(&of.servers);
    let name = Some("the contenders' machine".to_owned());
    let servers = [name, None, None, None, None, None, foreign, steal, stall, softirq, again, dropped];
    hosts.chain([servers]).collect()
}

fn read(of: &MachineReadings) -> [Option<String>; 6] {
    [
        // Two clocks of different precision may give a little less than nothing.
        of.foreign_share.map(|share| percent(share.max(0.0))),
        of.steal_share.map(percent),
        of.stalled_share.map(percent),
        of.softirq_share.map(percent),
        of.retransmitted_segments.map(whole),
        of.dropped_packets.map(whole),
    ]
}

/// Who sent the load: `load from a (3 connections, 50.0 % of the requests, round trip p50 0.2 ms, p99 0.5 ms)`.
pub(crate) fn who(of: &LoadHostsResult) -> String {
    let each = of.hosts.iter().map(|host| {
        let mut parts = vec![format!("{} connections", whole(host.connections))];
        parts.extend(host.requests_share.map(|share| format!("{} of the requests", percent(share))));
        let trips = &host.round_trip_ns;
        parts.extend(
            trips
                .p50
                .zip(trips.p99)
                .map(|(p50, p99)| format!("round trip p50 {}, p99 {}", time(p50), time(p99))),
        );
        format!("{} ({})", host.name, parts.join(", "))
    });
    format!("load from {}", each.collect::<Vec<_>>().join("; "))
}

/// What holds for all machines together; empty if nothing is known.
pub(crate) fn together(of: &LoadHostsResult) -> String {
    let mut parts = Vec::new();
    parts.extend(of.start_skew_p99_ns.map(|ns| format!("load hosts began at most {} apart (p99)", time(ns))));
    parts.extend(of.link.as_ref().map(|link| {
        format!(
            "at most {} of the network's bandwidth of {}/s used",
            percent(link.share),
            bytes(link.bandwidth_bytes_per_s as u64)
        )
    }));
    parts.extend(
        of.duty.map(|duty| format!("loaded for {} of the time for which contenders ran", percent(duty))),
    );
    parts.join("; ")
}

fn time(ns: u64) -> String {
    time_ns(ns as f64)
}
