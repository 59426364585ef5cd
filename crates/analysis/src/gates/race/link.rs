//! The gates on load hosts and on the network between them and the contenders, one function each.
//!
//! A message begins with the value that was read. Must not know limits and remedies (the table owns them), nor how findings are shown.

use deadheat_record::{ContenderEpoch, EncodedHistogram, Link, LinkReading, NetworkReading};

use super::generator::merged;
use super::scene::Scene;
use crate::gates::reading::Reading;
use crate::gates::table::{self, By};
use crate::number::{bytes, mbit, percent, time_ns, whole};
use crate::results::load_hosts;

/// Nanoseconds by which a delay may differ from what was asked for, and the share by which a rate may.
const DELAY_OFF_NS: f64 = 100_000.0;
const RATE_OFF: f64 = 0.02;
/// A normal distribution is outside this many standard deviations once in 1,000 times.
const ONCE_IN_1_000: f64 = 3.29;

/// The worst of what a scenario's link was measured to be, in multiples of what may differ; none without a link.
pub(super) fn link_differs(scene: &Scene<'_>) -> Option<Reading> {
    let asked = scene.plan.link.as_ref()?;
    let of_scenario = scene.record.links.iter().filter(|one| one.scenario == scene.plan.name);
    let worst = of_scenario.flat_map(|one| differences(asked, &one.reading));
    let (excess, message) = worst.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(table::LINK_DIFFERS.read(By::Race, excess, message))
}

/// By how many times of what may differ a link differs from what was asked for, and how, in words.
fn differences(asked: &Link, seen: &LinkReading) -> Vec<(f64, String)> {
    // The median of n round trips with two uniform jitters each is off by about jitter / sqrt(n) (half of a round trip: by half of that).
    let by_chance = 2.0 * asked.jitter_ns as f64 / (seen.round_trips.max(1) as f64).sqrt();
    let delay_ns = seen.delay_ns();
    let delay = (
        (delay_ns - asked.delay_ns as f64).abs() / (DELAY_OFF_NS + by_chance),
        format!(
            "packets are on their way for {}, and the scenario asks for {}",
            time_ns(delay_ns.max(0.0)),
            time_ns(asked.delay_ns as f64)
        ),
    );
    let rates =
        seen.rate_bits_per_s.zip(asked.rate_bits_per_s).into_iter().flat_map(|((there, back), asked)| {
            [(there, "to the contenders"), (back, "from the contenders")].map(|(rate, way)| {
                let off = (rate as f64 / asked as f64 - 1.0).abs() / RATE_OFF;
                (
                    off,
                    format!(
                        "the rate {way} is {} Mbit/s, and the scenario asks for {}",
                        mbit(rate),
                        mbit(asked)
                    ),
                )
            })
        });
    let ways = [(seen.sent.0, seen.lost.0, "to"), (seen.sent.1, seen.lost.1, "from")];
    let losses = ways.map(|(sent, lost, way)| {
        let expected = sent as f64 * asked.loss;
        // One packet more, because packets are whole.
        let allowed = ONCE_IN_1_000 * (expected * (1.0 - asked.loss)).sqrt() + 1.0;
        let off = (lost as f64 - expected).abs() / allowed;
        let message = format!(
            "{} of {} packets {way} the contenders were lost, and the scenario asks for {}",
            whole(lost),
            whole(sent),
            percent(asked.loss)
        );
        (off, message)
    });
    std::iter::once(delay).chain(rates).chain(losses).collect()
}

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
    let p99 = |all: Vec<&EncodedHistogram>| Some(merged(all)?.value_at_quantile(0.99));
    let epochs = || scene.epochs.iter().filter_map(|epoch| epoch.load_hosts.as_ref());
    let count = epochs().map(|epoch| epoch.hosts.len()).max()?;
    let delay = |index: usize| {
        let hosts: Vec<_> = epochs().filter_map(|epoch| epoch.hosts.get(index)).collect();
        let name = hosts.first()?.name.clone();
        Some((
            p99(hosts.iter().map(|host| &host.start_delay_ns).collect())?,
            format!("load host {name} began late"),
        ))
    };
    let skew = p99(epochs().filter_map(|epoch| epoch.start_skew_ns.as_ref()).collect());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst excess of a link of 100 Mbit/s, 5 ms and 1 % loss that was measured like this.
    fn excess(change: impl FnOnce(&mut LinkReading)) -> (f64, String) {
        let asked =
            Link { rate_bits_per_s: Some(100_000_000), delay_ns: 5_000_000, loss: 0.01, ..Link::default() };
        let mut seen = LinkReading {
            plain_round_trip_ns: 30_000,
            round_trip_ns: 10_050_000,
            round_trips: 100,
            rate_bits_per_s: Some((100_000_000, 99_500_000)),
            sent: (4_000, 4_000),
            lost: (40, 45),
            tunnel: None,
        };
        change(&mut seen);
        differences(&asked, &seen).into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).unwrap()
    }

    #[test]
    fn a_link_must_be_what_was_asked_for() {
        assert!(excess(|_| {}).0 < 1.0);
        let (delay, why) = excess(|seen| seen.round_trip_ns = 10_400_000);
        assert!(delay > 1.0 && why.contains("5.18 ms"), "{delay} {why}");
        let (rate, why) = excess(|seen| seen.rate_bits_per_s = Some((100_000_000, 97_000_000)));
        assert!(rate > 1.0 && why.contains("from the contenders is 97.0 Mbit/s"), "{rate} {why}");
        // 40 are expected, with a standard deviation of 6.3.
        assert!(excess(|seen| seen.lost.0 = 55).0 < 1.0);
        let (loss, why) = excess(|seen| seen.lost.0 = 70);
        assert!(loss > 1.0 && why.starts_with("70 of 4,000 packets to the contenders"), "{loss} {why}");
        assert!(excess(|seen| seen.lost = (0, 40)).0 > 1.0, "too few are as wrong as too many");
    }
}
