//! Counters of the kernel for the whole machine: full listen queues, retransmitted TCP segments, swapping, pressure, throttling.
//!
//! Owns: the files below `/proc` and how they are read. Must not know: slices, and what follows from the readings.

use std::fs;
use std::path::{Path, PathBuf};

use deadheat_record::HostReading;

use crate::cgroup::throttle::Groups;

/// Reads the machine's counters.
#[derive(Debug, Clone)]
pub struct Counters {
    proc: PathBuf,
    own: Groups,
}

impl Counters {
    /// Reads below `proc`; `own` are the groups of this process.
    pub fn new(proc: &Path, own: Groups) -> Self {
        Self { proc: proc.into(), own }
    }

    /// The counts so far. Counters that the machine lacks, or that may not be read, are absent.
    pub fn read(&self) -> HostReading {
        let text = |name: &str| fs::read_to_string(self.proc.join(name)).ok();
        let (netstat, snmp, vmstat) = (text("net/netstat"), text("net/snmp"), text("vmstat"));
        let network = |text: &Option<String>, table, name| table_value(text.as_deref()?, table, name);
        let memory = |name| line_value(vmstat.as_deref()?, name);
        let pressure = |name: &str| stalled_ns(&text(&format!("pressure/{name}"))?);
        HostReading {
            listen_overflows: network(&netstat, "TcpExt:", "ListenOverflows"),
            listen_drops: network(&netstat, "TcpExt:", "ListenDrops"),
            retransmitted_segments: network(&snmp, "Tcp:", "RetransSegs"),
            swapped_in_pages: memory("pswpin"),
            swapped_out_pages: memory("pswpout"),
            cpu_pressure_ns: pressure("cpu"),
            memory_pressure_ns: pressure("memory"),
            io_pressure_ns: pressure("io"),
            throttled: self.own.read(),
        }
    }
}

/// A counter of `/proc/net/netstat` or `/proc/net/snmp`: a line of names and a line of values, both starting with the table's name.
pub(super) fn table_value(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(table)).then_some(words)
    });
    let place = lines.next()?.position(|one| one == name)?;
    lines.next()?.nth(place)?.parse().ok()
}

/// A counter in a file with a name and a value on each line.
fn line_value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The time during which some task was delayed, from a file in `/proc/pressure`.
fn stalled_ns(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let micros: u64 = line.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()?;
    Some(micros * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadheat_record::Throttling;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPHPHits\n\
        TcpExt: 86 52 55 9\nMPTcpExt: A ListenOverflows\nMPTcpExt: 1 7\n";
    const SNMP: &str = "Icmp: InMsgs\nIcmp: 3\nTcp: RtoAlgorithm MaxConn RetransSegs InErrs\nTcp: 1 -1 9673 5\n\
        Udp: InDatagrams RetransSegs\nUdp: 4 8\n";

    #[test]
    fn tables_are_read_by_name() {
        assert_eq!(table_value(NETSTAT, "TcpExt:", "ListenOverflows"), Some(52));
        assert_eq!(table_value(NETSTAT, "TcpExt:", "ListenDrops"), Some(55));
        assert_eq!(table_value(SNMP, "Tcp:", "RetransSegs"), Some(9673));
        assert_eq!(table_value(SNMP, "Tcp:", "NoSuchCounter"), None);
        assert_eq!(table_value(SNMP, "TcpExt:", "ListenOverflows"), None);
        assert_eq!(table_value("Tcp: RetransSegs\n", "Tcp:", "RetransSegs"), None, "a file cut short");
    }

    #[test]
    fn a_machine_that_counts_is_read_and_one_that_does_not_is_unknown() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let counters = |own| Counters::new(root.path(), own);
        assert_eq!(counters(Groups::default()).read(), HostReading::default());
        write("net/netstat", NETSTAT);
        write("net/snmp", SNMP);
        write("vmstat", "nr_free_pages 5\npswpin 12\npswpout 13\npswpout_more 99\n");
        write(
            "pressure/cpu",
            "some avg10=4.73 avg60=3.68 avg300=3.32 total=158\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
        );
        write("group/cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 700\n");
        let read = counters(Groups::of(vec![root.path().join("group")])).read();
        let known = HostReading {
            listen_overflows: Some(52),
            listen_drops: Some(55),
            retransmitted_segments: Some(9673),
            swapped_in_pages: Some(12),
            swapped_out_pages: Some(13),
            cpu_pressure_ns: Some(158_000),
            memory_pressure_ns: None,
            io_pressure_ns: None,
            throttled: Some(Throttling { periods: 2, ns: 700 }),
        };
        assert_eq!(read, known);
    }

    #[test]
    fn this_machine_can_be_read() {
        let read = Counters::new(Path::new("/proc"), Groups::default()).read();
        assert!(read.retransmitted_segments.is_some() && read.swapped_in_pages.is_some(), "{read:?}");
    }
}
