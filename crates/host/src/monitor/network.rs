//! What the kernel counts of this machine's network: packets, bytes, drops, TCP segments sent again, and the CPU time of softirq.
//!
//! Owns: the files below `/proc` and how they are read. Must not know: slices, and what follows from the readings.

use std::fs;
use std::path::Path;

use deadheat_record::NetworkReading;

use super::counters::table_value;

/// The interface of a machine to itself.
const LOOPBACK: &str = "lo";

/// The counts so far, below `proc`. Counters that the machine lacks are absent.
pub(super) fn read(proc: &Path, tick_ns: u64) -> NetworkReading {
    let text = |name: &str| fs::read_to_string(proc.join(name)).ok();
    let (interfaces, processors) = (text("net/dev"), text("stat"));
    let interfaces = interfaces.as_deref().and_then(interfaces_together).unwrap_or_default();
    let (softirq, all) = processors.as_deref().and_then(softirq_ticks).unzip();
    let ns = |ticks: u64| ticks.saturating_mul(tick_ns);
    NetworkReading {
        retransmitted_segments: text("net/snmp").and_then(|text| table_value(&text, "Tcp:", "RetransSegs")),
        softirq_ns: softirq.map(ns),
        processors_ns: all.map(ns),
        ..interfaces
    }
}

/// The counters of `/proc/net/dev`, over all interfaces but the loopback. After the name, each line has eight counters for receiving and eight for
/// sending: bytes, packets, errors, drops and others.
fn interfaces_together(text: &str) -> Option<NetworkReading> {
    let interfaces = text.lines().filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<u64> = counters.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (name.trim() != LOOPBACK && counters.len() >= 12).then_some(counters)
    });
    interfaces
        .map(|of| NetworkReading {
            received_bytes: Some(of[0]),
            sent_bytes: Some(of[8]),
            packets: Some(of[1] + of[9]),
            dropped_packets: Some(of[3] + of[11]),
            // The other counters are not those of an interface; 0 leaves their sum as it is.
            retransmitted_segments: Some(0),
            softirq_ns: Some(0),
            processors_ns: Some(0),
        })
        .reduce(|sum, one| sum.plus(&one))
}

/// Clock ticks of all processors together in which they handled softirq, and all ticks: `cpu user nice system idle iowait irq softirq steal ...`.
fn softirq_ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|word| word.parse().ok()).collect();
    Some((*fields.get(6)?, fields.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo: 9000 90 0 7 0 0 0 0 9000 90 0 7 0 0 0 0\n  \
        eth0: 1000 10 0 1 0 0 0 0 500 5 0 2 0 0 0 0\nwg0:200 2 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n";

    #[test]
    fn interfaces_are_added_up_without_the_loopback() {
        let read = interfaces_together(DEV).unwrap();
        assert_eq!((read.received_bytes, read.sent_bytes), (Some(1_200), Some(600)));
        assert_eq!((read.packets, read.dropped_packets), (Some(18), Some(3)));
        let only_loopback = "Inter-|\n face |\n lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n";
        assert_eq!(interfaces_together(only_loopback), None);
    }

    #[test]
    fn softirq_is_a_part_of_all_processors_time() {
        let stat = "cpu  10 0 20 60 0 3 7 0 5 0\ncpu0 10 0 20 60 0 3 7 0 5 0\nintr 1\n";
        assert_eq!(softirq_ticks(stat), Some((7, 100)));
        assert_eq!(softirq_ticks("cpu0 1 2 3 4 5 6 7 8\n"), None);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(read(proc.path(), 1), NetworkReading::default());
        fs::create_dir(proc.path().join("net")).unwrap();
        fs::write(proc.path().join("net/dev"), DEV).unwrap();
        fs::write(proc.path().join("stat"), "cpu  10 0 20 60 0 3 7 0\n").unwrap();
        let read = read(proc.path(), 10);
        assert_eq!(
            (read.dropped_packets, read.softirq_ns, read.processors_ns),
            (Some(3), Some(70), Some(1_000))
        );
        assert_eq!(read.retransmitted_segments, None, "the file is missing");
    }
}
