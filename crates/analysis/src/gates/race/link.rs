//! The gates on load hosts and on the network between them and the contenders, one function each.
//!
//! A message begins with the value that was read. Must not know limits and remedies (the table owns them), nor how findings are shown.

use deadheat_record::{ContenderEpoch, EncodedHistogram, NetworkReading};

use super::scene::Scene;
use crate::gates::reading::Reading;
use crate::gates::table::{self, By};
use crate::number::{bytes, percent, time_ns, whole};
use crate::results::load_hosts;

/// Gates on one contender; none if the load came from its machine.
pub(super) fn of_contender(scene: &Scene<'_>, contender: usize) -> Vec<Reading> {
    let parts = scene.parts(contender);
    if parts.iter().all(|part| part.load_hosts.is_empty()) {
        return Vec::new();
    }
    let machines = machines(scene, contender);
    let gates = [
        link_saturated(scene, contender),
        dropped_packets(&machines),
        softirq(&machines),
        idle_contender(&parts),
    ];
    gates.into_iter().flatten().collect()
}

/// The gate on the whole scenario.
pub(super) fn of_scenario(scene: &Scene<'_>) -> Option<Reading> {
    late_start(scene)
}

/// The machines that took part in loading a contender, with their names and counters over all epochs.
pub(super) fn machines(scene: &Scene<'_>, contender: usize) -> Vec<(String, NetworkReading)> {
    let sum = |all: &mut dyn Iterator<Item = NetworkReading>| all.reduce(|sum, one| sum.plus(&one));
    let parts = scene.parts(contender);
    let first = scene.epochs.iter().find_map(|epoch| epoch.load_hosts.as_ref());
    let hosts = first.map_or(&[][..], |first| &first.hosts).iter().enumerate().filter_map(|(index, host)| {
        let mut of = parts.iter().filter_map(|part| part.load_hosts.get(index)).map(|share| share.network);
        Some((format!("load host {}", host.name), sum(&mut of)?))
    });
    let servers = sum(&mut parts.iter().filter_map(|part| part.network));
    servers.map(|read| ("the contenders' machine".to_owned(), read)).into_iter().chain(hosts).collect()
}

fn link_saturated(scene: &Scene<'_>, contender: usize) -> Option<Reading> {
    let used = load_hosts::link(scene.record, scene.plan, contender)?;
    let whose =
        used.host.map_or_else(|| "all load hosts together".into(), |host| format!("load host {host}"));
    let per_s = |value: f64| format!("{}/s", bytes(value as u64));
    Some(table::LINK_SATURATED.read(
        By::Race,
        used.share,
        format!(
            "{} of the bandwidth measured for {whose} in epoch {}: {} of {}",
            percent(used.share),
            used.epoch,
            per_s(used.bytes_per_s),
            per_s(used.bandwidth_bytes_per_s)
        ),
    ))
}

fn dropped_packets(machines: &[(String, NetworkReading)]) -> Option<Reading> {
    let read =
        machines.iter().filter_map(|(name, read)| Some((name, read.dropped_packets?, read.dropped_share()?)));
    let (name, count, share) = read.max_by(|one, other| one.2.total_cmp(&other.2))?;
    Some(table::DROPPED_PACKETS.read(
        By::Race,
        share,
        format!(
            "{} packets, {} of all, dropped by the network interfaces of {name}",
            whole(count),
            percent(share)
        ),
    ))
}

fn softirq(machines: &[(String, NetworkReading)]) -> Option<Reading> {
    let read = machines.iter().filter_map(|(name, read)| Some((name, read.softirq_share()?)));
    let (name, share) = read.max_by(|one, other| one.1.total_cmp(&other.1))?;
    let message =
        format!("{} of the processors' time of {name} went to handling packets (softirq)", percent(share));
    Some(table::SOFTIRQ.read(By::Race, share, message))
}

/// The time for which a contender was not frozen and not loaded.
fn idle_contender(parts: &[&ContenderEpoch]) -> Option<Reading> {
    let duty = load_hosts::duty(parts.iter().copied())?;
    let message =
        format!("{} of the time for which it was not frozen passed without load", percent(1.0 - duty));
    Some(table::IDLE_BETWEEN_SLICES.read(By::Race, 1.0 - duty, message))
}

/// How late or how far apart load hosts begin: the 99th percentile over slices, as a share of a slice.
fn late_start(scene: &Scene<'_>) -> Option<Reading> {
    let of = |all: Vec<&EncodedHistogram>| {
        let all = EncodedHistogram::merge(all).ok().flatten().filter(|all| !all.is_empty())?;
        Some(all.value_at_quantile(0.99))
    };
    let epochs = || scene.epochs.iter().filter_map(|epoch| epoch.load_hosts.as_ref());
    let count = epochs().map(|epoch| epoch.hosts.len()).max()?;
    let delay = |index: usize| {
        let hosts: Vec<_> = epochs().filter_map(|epoch| epoch.hosts.get(index)).collect();
        let name = hosts.first()?.name.clone();
        Some((
            of(hosts.iter().map(|host| &host.start_delay_ns).collect())?,
            format!("load host {name} began late"),
        ))
    };
    let skew = of(epochs().filter_map(|epoch| epoch.start_skew_ns.as_ref()).collect());
    let skew = skew.map(|ns| (ns, "load hosts began apart".to_owned()));
    let (ns, what) = (0..count).filter_map(delay).chain(skew).max_by_key(|(ns, _)| *ns)?;
    let slice_ns = scene.record.plan.slices(scene.plan).slice_ns.max(1);
    let share = ns as f64 / slice_ns as f64;
    Some(table::LATE_START.read(
        By::Race,
        share,
        format!("{} of a slice is the p99 of how {what}: {}", percent(share), time_ns(ns as f64)),
    ))
}
