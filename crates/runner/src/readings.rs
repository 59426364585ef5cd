//! The readings of one contender's rounds, from before its first slice until after its last.
//!
//! Owns: what is read before and after the rounds, and the contender's part of an epoch's record. Must not know: the order of slices.

use std::time::Duration;

use deadheat_load::Tally;
use deadheat_record::{
    ContenderEpoch, EncodedHistogram, HistogramError, HostReading, NetworkReading, PeakSeen, Slice,
    Throttling, Usage,
};
use hdrhistogram::Histogram;

use crate::load_hosts::{LoadHostsReadings, LoadHostsWork};
use crate::loaded::{LoadTotals, LoadedContender, outcomes};
use deadheat_host::cgroup::throttle::Groups;
use deadheat_host::monitor::Monitor;
use deadheat_host::usage::Meter;

/// The readings of one contender's rounds.
pub(crate) struct ContenderReadings {
    /// Totals over all slices.
    pub sum: LoadTotals,
    /// The result of a peak search, if there was one.
    pub peak: Option<PeakSeen>,
    /// What the load hosts did; empty if the load comes from this machine.
    pub load_hosts: LoadHostsReadings,
    /// Counters of this machine's network, if the load comes from other machines.
    network: Option<NetworkReading>,
    /// Time for which the contender was not frozen, if the load comes from other machines.
    awake: Option<Duration>,
    meter: Meter,
    usage: Usage,
    services_ns: Option<u64>,
    host: Option<HostReading>,
    groups: Groups,
    throttled: Option<Throttling>,
}

impl ContenderReadings {
    /// Reads what the contender has used before its first slice. `at` is the time since the epoch began, here and below.
    pub(crate) fn begin(one: &LoadedContender, watch: &Monitor, at: Duration) -> Self {
        let running = &*one.runner.process;
        let groups = watch.groups_of(&running.processes());
        Self {
            sum: LoadTotals::default(),
            peak: None,
            load_hosts: LoadHostsReadings::default(),
            network: None,
            awake: None,
            meter: Meter::begin(running, at),
            usage: Usage::default(),
            services_ns: None,
            host: None,
            throttled: groups.read(),
            groups,
        }
    }

    /// Adds what the machine counted during a slice.
    pub(crate) fn see_host(&mut self, during: HostReading) {
        self.host = Some(self.host.map_or(during, |sum| sum.plus(&during)));
    }

    /// Adds what the load hosts did in a slice, the counters of this machine's network during it, and the time for which the contender was not frozen.
    pub(crate) fn see_load_hosts(&mut self, work: LoadHostsWork, network: NetworkReading, awake: Duration) {
        self.load_hosts.add(work);
        self.network = Some(self.network.map_or(network, |sum| sum.plus(&network)));
        self.awake = Some(self.awake.unwrap_or_default() + awake);
    }

    /// Adds the CPU time of the services, from their totals before and after a slice.
    pub(crate) fn see_services(&mut self, used: Option<(u64, u64)>) {
        let during_ns = used.map(|(before, after)| after.saturating_sub(before));
        self.services_ns = during_ns.map(|ns| self.services_ns.unwrap_or(0) + ns).or(self.services_ns);
    }

    /// Reads the contender's usage between two rounds.
    pub(crate) fn between_rounds(&mut self, one: &LoadedContender, at: Duration) {
        self.meter.between_rounds(&*one.runner.process, at);
    }

    pub(crate) fn end(&mut self, one: &LoadedContender, at: Duration) {
        self.usage = Usage { services_cpu_ns: self.services_ns, ..self.meter.end(&*one.runner.process, at) };
        self.throttled = self.throttled.zip(self.groups.read()).map(|(before, after)| after.since(before));
    }

    /// The contender's part of the epoch's record, with the results of its warm-up.
    pub(crate) fn into_record(
        self,
        one: &LoadedContender,
        warmup: &LoadTotals,
        closed: bool,
    ) -> Result<ContenderEpoch, HistogramError> {
        let latency = match &self.sum.latency {
            Some(histogram) => EncodedHistogram::encode(histogram)?,
            None => EncodedHistogram(String::new()),
        };
        let of_open = |times: &Option<Histogram<u64>>| {
            times.as_ref().filter(|_| !closed).map(EncodedHistogram::encode).transpose()
        };
        Ok(ContenderEpoch {
            contender: one.runner.contender,
            cold_start_ns: one.runner.cold_start.as_nanos() as u64,
            build_seed: one.runner.build_seed,
            warmup_requests: warmup.completions,
            warmup_ns: warmup.elapsed_ns,
            completions: self.sum.completions,
            loaded_ns: self.sum.elapsed_ns,
            outcomes: self.sum.outcomes,
            status: self.sum.status,
            reconnects: self.sum.reconnects,
            closed_by_server: self.sum.closed_by_server,
            bytes_read: Some(self.sum.bytes_read),
            latency,
            send_lag: of_open(&self.sum.send_lag)?,
            wait: of_open(&self.sum.wait)?,
            own_lag: of_open(&self.sum.own_lag)?,
            in_flight_ns: Some(self.sum.in_flight_ns),
            usage: self.usage,
            host: self.host.unwrap_or_default(),
            throttled: self.throttled,
            load_hosts: self.load_hosts.shares(),
            network: self.network,
            awake_ns: self.awake.map(|time| time.as_nanos() as u64),
            peak: self.peak,
            measured: None,
            measured_step: None,
            log: one.runner.process.log().into(),
        })
    }
}

/// A slice in the form of the record.
pub(crate) fn slice_record(
    contender: usize,
    start_ns: u64,
    tally: &Tally,
    cpu_ns: Option<u64>,
    stalled_share: Option<f64>,
) -> Slice {
    Slice {
        contender,
        start_ns,
        elapsed_ns: tally.elapsed_ns,
        rate_per_s: tally.rate_per_s(),
        completions: tally.completions,
        cpu_ns,
        load_cpu_ns: tally.cpu_ns,
        load_spin_ns: Some(tally.spin_ns),
        load_run_delay_ns: tally.run_delay_ns,
        load_runs: tally.runs,
        failed: outcomes(tally).failed(),
        stalled_share,
        trial: None,
    }
}
