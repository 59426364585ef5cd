//! Real links of this machine. Without root, they are skipped loudly.

use std::fs;
use std::net::{TcpListener, TcpStream};

use deadheat_record::Link;
use deadheat_testkit::skip_loudly;

use super::*;
use crate::cgroup::Hierarchy;
use crate::process::run::RunId;

/// The namespace of the calling thread.
fn here() -> std::path::PathBuf {
    fs::read_link("/proc/thread-self/ns/net").unwrap()
}

/// The example plan, with a work folder.
fn plan(work: &std::path::Path) -> Plan {
    let document = include_str!("../../../record/tests/fixtures/example.json");
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    let plan: Plan = serde_json::from_value(document["record"]["plan"].clone()).unwrap();
    let pinning = deadheat_record::Pinning { server_cpus: Vec::new(), load_cpus: Vec::new() };
    Plan { work: work.into(), pinning, ..plan }
}

#[test]
fn a_link_is_as_slow_as_asked_and_nothing_of_the_machine_changes() {
    let Ok(networks) = Networks::make() else { skip_loudly!("links need root") };
    let (home, settings) = (here(), || fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap());
    let forwarding = settings();
    let folder = tempfile::tempdir().unwrap();
    let (run, hierarchy, plan) = (RunId::current(), Hierarchy::detect(), plan(folder.path()));
    let host = LocalHost { run: &run, hierarchy: &hierarchy };

    let link = Link { rate_bits_per_s: Some(20_000_000), ..Link::default() };
    networks.set(&link, &plan, &host).unwrap();
    let seen = networks.measure(&link).unwrap();
    // Beside other programs, less may be sent than the link takes.
    let (there, back) = seen.rate_bits_per_s.unwrap();
    assert!((2_000_000..22_000_000).contains(&there) && (2_000_000..22_000_000).contains(&back), "{seen:?}");
    assert!(seen.sent.0 >= 300 && seen.round_trips >= 11 && seen.round_trip_ns > 0, "{seen:?}");

    // Both ends are in other networks, and the thread comes back from both.
    let entered = networks.enter().unwrap();
    let listener = TcpListener::bind((Link::SERVERS, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (servers, load) = (here(), networks.at_load(here).unwrap());
    assert!(servers != home && load != home && load != servers);
    assert!(networks.at_load(|| TcpStream::connect(address)).unwrap().is_ok());
    drop(entered);
    assert_eq!(here(), home);
    assert!(TcpStream::connect_timeout(&address, std::time::Duration::from_millis(200)).is_err());
    assert_eq!(settings(), forwarding);
}

#[test]
fn what_the_kernel_lacks_is_refused_with_the_remedy() {
    let Ok(networks) = Networks::make() else { skip_loudly!("links need root") };
    let slow = Link { delay_ns: 2_000_000, ..Link::default() };
    match networks.slow_down(&slow) {
        // The kernel has netem: the delay is there.
        Ok(()) => {
            let trip = measure::round_trips(&networks.load, &networks.servers).unwrap();
            assert!(trip.0 >= 4_000_000, "{trip:?}");
        }
        Err(error) => {
            assert!(error.problem.contains("sch_netem") && error.remedy.contains("modprobe"), "{error:?}");
        }
    }
    // Whatever was refused, the link still works.
    networks.slow_down(&Link::default()).unwrap();
    assert!(measure::round_trips(&networks.load, &networks.servers).is_ok());
}
