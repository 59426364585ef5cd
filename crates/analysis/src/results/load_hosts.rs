//! What the machines of a scenario did whose load came from load hosts.
//!
//! Owns: how slices and epochs add up, and the use of the network. Must not know: limits, and how anything is shown.

use deadheat_record::{
    Bandwidth, ContenderEpoch, EncodedHistogram, Epoch, HistogramError, LoadHostShare, NetworkReading,
    Record, RoundTrips, ScenarioPlan,
};
use deadheat_stats::average::mean;
use hdrhistogram::Histogram;

use crate::report::{EpochReadings, LinkUse, LoadHostResult, LoadHostsResult, MachineReadings};

/// None if the load came from the contenders' machine.
pub(crate) fn of(
    record: &Record,
    scenario: &ScenarioPlan,
) -> Result<Option<LoadHostsResult>, HistogramError> {
    let epochs: Vec<&Epoch> = record.epochs_of(&scenario.name).collect();
    let Some(first) = epochs.iter().find_map(|epoch| epoch.load_hosts.as_ref()) else { return Ok(None) };
    let hosts = (0..first.hosts.len()).map(|index| host(&epochs, index)).collect::<Result<_, _>>()?;
    let parts = || epochs.iter().flat_map(|epoch| &epoch.contenders);
    let skews = epochs.iter().filter_map(|epoch| epoch.load_hosts.as_ref()?.start_skew_ns.as_ref());
    let all_uses = record.racing(&scenario.name).into_iter().filter_map(|one| link(record, scenario, one));
    Ok(Some(LoadHostsResult {
        hosts,
        servers: network(parts().filter_map(|part| part.network)),
        start_skew_p99_ns: p99(EncodedHistogram::merge(skews)?.as_ref()),
        link: all_uses.max_by(|one, other| one.share.total_cmp(&other.share)),
        duty: duty(parts()),
    }))
}

/// Loaded time as a share of the time for which contenders were not frozen; none if that was not measured.
pub(crate) fn duty<'a>(parts: impl Iterator<Item = &'a ContenderEpoch>) -> Option<f64> {
    let times = parts.filter_map(|part| Some((part.loaded_ns, part.awake_ns?)));
    let (loaded_ns, awake_ns) = times.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (awake_ns > 0).then(|| loaded_ns as f64 / awake_ns as f64)
}

/// The epoch in which a contender used the network most. Each load host is compared with its own bandwidth, and all together with theirs. None if
/// no bandwidth was measured.
pub(crate) fn link(record: &Record, scenario: &ScenarioPlan, contender: usize) -> Option<LinkUse> {
    let pilot = record.pilots.iter().find(|pilot| pilot.scenario == scenario.name)?;
    let of_epoch = |epoch: &Epoch| -> Option<LinkUse> {
        let (link, part) = (pilot.link_at(epoch.started_unix_ms)?, epoch.of(contender)?);
        let names = &epoch.load_hosts.as_ref()?.hosts;
        let each = part
            .load_hosts
            .iter()
            .zip(&link.hosts)
            .zip(names)
            .map(|((share, bandwidth), host)| (Some(host.name.clone()), used(share, bandwidth)));
        // The hosts load a contender at the same time, so the rates add up; their loaded times do not.
        let rates = part.load_hosts.iter().map(Rates::of).reduce(|sum, one| sum.plus(&one));
        let together = rates.and_then(|rates| rates.of_bandwidth(&link.together));
        let uses = each.chain([(None, together)]).filter_map(|(host, used)| Some((host, used?)));
        let (host, (bytes_per_s, bandwidth_bytes_per_s)) =
            uses.max_by(|(_, one), (_, other)| (one.0 / one.1).total_cmp(&(other.0 / other.1)))?;
        Some(LinkUse {
            contender: record.plan.contenders[contender].name.clone(),
            epoch: epoch.number,
            host,
            bytes_per_s,
            bandwidth_bytes_per_s,
            share: bytes_per_s / bandwidth_bytes_per_s,
        })
    };
    let uses = record.epochs_of(&scenario.name).filter_map(of_epoch);
    uses.max_by(|one, other| one.share.total_cmp(&other.share))
}

fn used(share: &LoadHostShare, bandwidth: &Bandwidth) -> Option<(f64, f64)> {
    Rates::of(share).of_bandwidth(bandwidth)
}

/// Bytes per second in the direction that carried more, counted in two ways.
#[derive(Clone, Copy)]
struct Rates {
    payload: f64,
    interface: Option<f64>,
}

impl Rates {
    fn of(share: &LoadHostShare) -> Self {
        let per_s = |bytes: u64| bytes as f64 * 1e9 / share.loaded_ns.max(1) as f64;
        let network = &share.network;
        Self {
            payload: per_s(share.bytes_read.max(share.bytes_written)),
            interface: network.received_bytes.zip(network.sent_bytes).map(|(in_, out)| per_s(in_.max(out))),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let interface = self.interface.zip(other.interface).map(|(mine, theirs)| mine + theirs);
        Self { payload: self.payload + other.payload, interface }
    }

    /// The rate and the bandwidth of the way of counting that uses more of the bandwidth: small answers need more bytes on the wire than in the load.
    fn of_bandwidth(&self, bandwidth: &Bandwidth) -> Option<(f64, f64)> {
        let payload = (self.payload, bandwidth.payload_bytes_per_s);
        let interface = self.interface.zip(bandwidth.interface_bytes_per_s);
        let known = [Some(payload), interface].into_iter().flatten().filter(|(_, most)| *most > 0.0);
        known.max_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)))
    }
}

fn host(epochs: &[&Epoch], index: usize) -> Result<LoadHostResult, HistogramError> {
    let of =
        || epochs.iter().filter_map(|epoch| Some((*epoch, epoch.load_hosts.as_ref()?.hosts.get(index)?)));
    let last = of().next_back().map(|(_, host)| host);
    let shares = |epoch: &Epoch| -> Vec<LoadHostShare> {
        epoch.contenders.iter().filter_map(|part| part.load_hosts.get(index).copied()).collect()
    };
    let requests = |epoch: &Epoch, of: &dyn Fn(usize) -> bool| -> u64 {
        let each = epoch.contenders.iter().flat_map(|part| part.load_hosts.iter().enumerate());
        each.filter(|(place, _)| of(*place)).map(|(_, share)| share.requests).sum()
    };
    let own: u64 = epochs.iter().map(|epoch| requests(epoch, &|place| place == index)).sum();
    let all: u64 = epochs.iter().map(|epoch| requests(epoch, &|_| true)).sum();
    let each: Vec<EpochReadings> = of()
        .map(|(epoch, host)| EpochReadings {
            epoch: epoch.number,
            readings: MachineReadings {
                steal_share: Some(host.external.steal_share),
                foreign_share: host.external.foreign_share,
                stalled_share: host.stalled_share,
                ..network(shares(epoch).into_iter().map(|share| share.network))
            },
        })
        .collect();
    let over =
        |value: fn(&MachineReadings) -> Option<f64>| mean(each.iter().filter_map(|one| value(&one.readings)));
    let trips = EncodedHistogram::merge(of().filter_map(|(_, host)| host.round_trip_ns.as_ref()))?;
    let delays = EncodedHistogram::merge(of().map(|(_, host)| &host.start_delay_ns))?;
    Ok(LoadHostResult {
        name: last.map(|host| host.name.clone()).unwrap_or_default(),
        connections: last.map_or(0, |host| host.connections),
        requests_share: (all > 0).then(|| own as f64 / all as f64),
        round_trip_ns: RoundTrips {
            count: trips.as_ref().map_or(0, Histogram::len),
            p50: trips.as_ref().map(|trips| trips.value_at_quantile(0.5)),
            p99: p99(trips.as_ref()),
        },
        start_delay_p99_ns: p99(delays.as_ref()),
        readings: MachineReadings {
            steal_share: over(|read| read.steal_share),
            foreign_share: over(|read| read.foreign_share),
            stalled_share: each.iter().filter_map(|one| one.readings.stalled_share).reduce(f64::max),
            ..network(epochs.iter().flat_map(|epoch| shares(epoch)).map(|share| share.network))
        },
        epochs: each,
    })
}

fn p99(all: Option<&Histogram<u64>>) -> Option<u64> {
    all.filter(|all| !all.is_empty()).map(|all| all.value_at_quantile(0.99))
}

/// What the counters of the network give for a machine.
fn network(all: impl Iterator<Item = NetworkReading>) -> MachineReadings {
    let sum = all.reduce(|sum, one| sum.plus(&one)).unwrap_or_default();
    MachineReadings {
        softirq_share: sum.softirq_share(),
        retransmitted_segments: sum.retransmitted_segments,
        dropped_packets: sum.dropped_packets,
        ..MachineReadings::default()
    }
}
