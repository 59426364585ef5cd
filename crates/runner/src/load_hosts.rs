//! What the machines that the load comes from did in the rounds of an epoch.
//!
//! Owns: how slices add up to an epoch. Must not know: how a machine is reached and read, and what follows from the readings.

use std::time::Duration;

use deadheat_load::{Times, nanos};
use deadheat_record::{
    EncodedHistogram, ExternalReading, HistogramError, LoadHostEpoch, LoadHostShare, LoadHostsEpoch,
};
use deadheat_stats::average::mean;

/// What the load hosts did since they were last asked for it, in the order of the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadHostsWork {
    /// One entry per load host.
    pub hosts: Vec<LoadHostWork>,
    /// For each slice on several hosts: the time between the first and the last start.
    pub start_skews: Vec<Duration>,
}

/// What one load host did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadHostWork {
    /// Its name.
    pub name: String,
    /// Its connections to the contender.
    pub connections: u64,
    /// Its part of the load.
    pub share: LoadHostShare,
    /// Round trips between deadheat and the host.
    pub round_trips: Vec<Duration>,
    /// For each slice: how much later than ordered it began.
    pub start_delays: Vec<Duration>,
    /// Its disturbance since the round began; none if it is not known.
    pub external: Option<ExternalReading>,
    /// The largest share of a slice for which one of its cores stood still; none if nobody watches.
    pub stalled_share: Option<f64>,
    /// The longest time for which nothing was heard from it; none if it was as usual.
    pub silence: Option<Duration>,
}

/// What the load hosts did in the slices of one contender.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadHostsReadings {
    hosts: Vec<HostReadings>,
    start_skews: Vec<Duration>,
}

#[derive(Debug, Clone, Default)]
struct HostReadings {
    /// The sum of all slices, but for `external`, which is that of the last one.
    sum: LoadHostWork,
    /// The disturbance of each round that ended with a slice of this contender.
    rounds: Vec<ExternalReading>,
}

impl LoadHostsWork {
    /// Why a round with this work is left out: what a load host did while it was cut off is not known, and its requests may have gone over the same
    /// network.
    pub(crate) fn silent(&self) -> Option<String> {
        let longest = self.hosts.iter().filter_map(|host| Some((host.silence?, &host.name))).max()?;
        Some(format!("nothing was heard from load host {} for {:.1} s", longest.1, longest.0.as_secs_f64()))
    }
}

impl LoadHostsReadings {
    /// Adds a slice.
    pub(crate) fn add(&mut self, work: LoadHostsWork) {
        self.hosts.resize_with(work.hosts.len().max(self.hosts.len()), HostReadings::default);
        for (host, work) in self.hosts.iter_mut().zip(work.hosts) {
            let sum = &mut host.sum;
            sum.round_trips.extend(work.round_trips);
            // Without a slice, nothing was counted.
            if work.start_delays.is_empty() {
                continue;
            }
            // The first slice is taken as it is: an unknown counter makes every sum unknown.
            sum.share = if sum.start_delays.is_empty() { work.share } else { sum.share.plus(&work.share) };
            (sum.name, sum.connections) = (work.name, work.connections);
            sum.start_delays.extend(work.start_delays);
            sum.external = work.external;
            sum.stalled_share = sum.stalled_share.into_iter().chain(work.stalled_share).reduce(f64::max);
        }
        self.start_skews.extend(work.start_skews);
    }

    /// The slice that was added last was the last one of its round.
    pub(crate) fn end_round(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.rounds.extend(host.sum.external.take()));
    }

    /// Each host's part of the load.
    pub(crate) fn shares(&self) -> Vec<LoadHostShare> {
        self.hosts.iter().map(|host| host.sum.share).collect()
    }

    /// The record of an epoch in which these are the readings of all contenders; none if the load came from this machine.
    pub(crate) fn epoch(all: &[&Self]) -> Result<Option<LoadHostsEpoch>, HistogramError> {
        let count = all.iter().map(|one| one.hosts.len()).max().unwrap_or(0);
        if count == 0 {
            return Ok(None);
        }
        let host = |index: usize| -> Result<LoadHostEpoch, HistogramError> {
            let of = || all.iter().filter_map(|one| one.hosts.get(index));
            let first = of().map(|one| &one.sum).next();
            let trips: Vec<Duration> = of().flat_map(|one| one.sum.round_trips.clone()).collect();
            let delays: Vec<Duration> = of().flat_map(|one| one.sum.start_delays.clone()).collect();
            let rounds: Vec<ExternalReading> = of().flat_map(|one| one.rounds.clone()).collect();
            Ok(LoadHostEpoch {
                name: first.map(|one| one.name.clone()).unwrap_or_default(),
                connections: first.map_or(0, |one| one.connections),
                round_trip_ns: if trips.is_empty() { None } else { Some(encoded(&trips)?) },
                start_delay_ns: encoded(&delays)?,
                external: mean_of(&rounds),
                stalled_share: of().filter_map(|one| one.sum.stalled_share).reduce(f64::max),
            })
        };
        let skews: Vec<Duration> = all.iter().flat_map(|one| one.start_skews.clone()).collect();
        Ok(Some(LoadHostsEpoch {
            hosts: (0..count).map(host).collect::<Result<_, _>>()?,
            start_skew_ns: if skews.is_empty() { None } else { Some(encoded(&skews)?) },
        }))
    }
}

fn encoded(all: &[Duration]) -> Result<EncodedHistogram, HistogramError> {
    let mut times = Times::new();
    all.iter().for_each(|one| times.record(nanos(*one)));
    EncodedHistogram::encode(times.histogram())
}

/// The mean over rounds. The share of other programs is that of the rounds in which it could be read.
fn mean_of(rounds: &[ExternalReading]) -> ExternalReading {
    ExternalReading {
        steal_share: mean(rounds.iter().map(|one| one.steal_share)).unwrap_or(0.0),
        foreign_share: mean(rounds.iter().filter_map(|one| one.foreign_share)),
    }
}

#[cfg(test)]
mod tests {
    use deadheat_record::NetworkReading;

    use super::*;

    fn work(requests: u64, foreign: f64, late_us: u64) -> LoadHostsWork {
        let network = NetworkReading { dropped_packets: Some(1), ..NetworkReading::default() };
        let host = LoadHostWork {
            name: "a".into(),
            connections: 3,
            share: LoadHostShare { requests, network, ..LoadHostShare::default() },
            start_delays: vec![Duration::from_micros(late_us)],
            external: Some(ExternalReading { steal_share: 0.0, foreign_share: Some(foreign) }),
            stalled_share: Some(foreign),
            ..LoadHostWork::default()
        };
        LoadHostsWork { hosts: vec![host], start_skews: vec![Duration::from_micros(late_us)] }
    }

    #[test]
    fn slices_add_up_and_each_round_counts_once() {
        let (mut one, mut other) = (LoadHostsReadings::default(), LoadHostsReadings::default());
        // Two rounds; the second one in the reverse order.
        one.add(work(10, 0.1, 100));
        other.add(work(20, 0.2, 200));
        other.end_round();
        other.add(work(30, 0.3, 300));
        one.add(work(40, 0.4, 400));
        // A search for a peak that is over has no slice.
        one.add(LoadHostsWork { hosts: vec![LoadHostWork::default()], start_skews: vec![] });
        one.end_round();
        assert_eq!((one.shares()[0].requests, one.shares()[0].network.dropped_packets), (50, Some(2)));
        assert_eq!(other.shares()[0].network.dropped_packets, Some(2));
        let epoch = LoadHostsReadings::epoch(&[&one, &other]).unwrap().unwrap();
        let host = &epoch.hosts[0];
        assert_eq!((host.name.as_str(), host.connections, host.stalled_share), ("a", 3, Some(0.4)));
        assert!((host.external.foreign_share.unwrap() - 0.3).abs() < 1e-12, "the mean of 0.2 and 0.4");
        assert_eq!(host.round_trip_ns, None);
        assert_eq!(host.start_delay_ns.decode().unwrap().len(), 4);
        assert_eq!(epoch.start_skew_ns.unwrap().decode().unwrap().max() / 1_000, 400);
    }

    #[test]
    fn load_from_this_machine_leaves_no_trace() {
        let nothing = LoadHostsReadings::default();
        assert!(LoadHostsReadings::epoch(&[&nothing]).unwrap().is_none() && nothing.shares().is_empty());
    }
}
