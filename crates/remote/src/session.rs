//! A session of load that several hosts carry together.
//!
//! Owns: how connections and requests are divided, how tallies are merged, and when the hosts start. Must not know: how
//! a host is reached.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deadheat_load::{
    Backend, LoadSession, Pacer, ProgressHandle, RecordedTimes, SessionConfig, SessionError, SliceOrder,
    StopHandle, Tally, WorkerRange, share,
};

use crate::error::RemoteError;
use crate::hosts::{LoadHosts, lead};
use crate::message::{Order, Reply, Seen};

/// What one host carries of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Connections that it opens before the first slice.
    pub connections: usize,
    /// Up to so many connections in an open slice.
    pub max_connections: usize,
    /// Its workers, which take every n-th request: n are the workers of all hosts.
    pub workers: WorkerRange,
    /// How many workers it has.
    pub threads: usize,
}

/// Divides a load over hosts. Connections are divided as evenly as possible and add up to the whole. Each host has
/// `threads` workers, or one for each of its connections if those are fewer. Requests are divided over all workers, so
/// that each request of the whole load is sent by exactly one of them, and at its time.
///
/// # Errors
/// There are fewer connections than hosts.
pub fn divide(
    connections: usize,
    max_connections: usize,
    threads: usize,
    hosts: usize,
) -> Result<Vec<Part>, RemoteError> {
    if connections < hosts || hosts == 0 {
        return Err(RemoteError::TooFewConnections { connections, hosts });
    }
    let max_connections = max_connections.max(connections);
    let mut parts: Vec<Part> = (0..hosts)
        .map(|host| {
            let connections = share(connections, host, hosts);
            Part {
                connections,
                max_connections: share(max_connections, host, hosts),
                workers: WorkerRange { first: 0, of: 0 },
                threads: threads.clamp(1, connections),
            }
        })
        .collect();
    let of = parts.iter().map(|part| part.threads).sum();
    let mut first = 0;
    for part in &mut parts {
        part.workers = WorkerRange { first, of };
        first += part.threads;
    }
    Ok(parts)
}

/// What came of a slice on one host.
#[derive(Debug)]
pub struct HostSlice {
    /// Its tally, or why there is none.
    pub result: Result<Tally, RemoteError>,
    /// How much later than ordered the host began, by its own account.
    pub late: Duration,
    /// When it began, counted from when the first order was sent, on this machine's clock. The order's way to the host
    /// counts as half of the median round trip, so it is off by at most half of the round trip that the order made.
    pub begun: Duration,
    /// Answers that the host had reported when it was lost; 0 if it was not.
    pub last_report: u64,
    /// What was seen of its machine; none if it is not watched or was lost.
    pub seen: Option<Seen>,
}

/// By how much the first and the last host began apart; `None` with fewer than two that were not lost.
pub fn start_skew(slices: &[HostSlice]) -> Option<Duration> {
    let begun = || slices.iter().filter(|slice| slice.result.is_ok()).map(|slice| slice.begun);
    let (first, last) = (begun().min()?, begun().max()?);
    (begun().count() > 1).then(|| last - first)
}

/// The tallies of all hosts together: counts and histograms add up, cell by cell.
pub fn merge<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    tallies
        .into_iter()
        .cloned()
        .reduce(|mut sum, one| {
            sum.merge(one);
            sum
        })
        .unwrap_or_default()
}

/// Connections of several hosts to one server. Dropping it closes them.
#[derive(Debug)]
pub struct RemoteSession {
    hosts: Arc<LoadHosts>,
    id: u32,
    /// The hosts that carry it, by their place among all hosts.
    on: Vec<usize>,
    /// In the order of `on`.
    parts: Vec<Part>,
    backends: Vec<Backend>,
    /// The recorded times that the hosts keep.
    times: Option<Arc<RecordedTimes>>,
}

impl RemoteSession {
    /// Opens all connections of a session, divided over all hosts. `config` is the whole: its `part` is not looked at.
    ///
    /// # Errors
    /// A host could not open its connections, or is lost. Then none keeps any.
    pub fn open(hosts: Arc<LoadHosts>, config: &SessionConfig) -> Result<Self, RemoteError> {
        let all = (0..hosts.count()).collect();
        Self::open_on(hosts, all, config)
    }

    /// As [`Self::open`], on some of the hosts: `on` has their places among all hosts.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(
        hosts: Arc<LoadHosts>,
        on: Vec<usize>,
        config: &SessionConfig,
    ) -> Result<Self, RemoteError> {
        let parts = divide(config.connections, config.max_connections, config.threads, on.len())?;
        // From here on, what was opened is closed again by its drop.
        let (id, backends) = (hosts.next_session(), Vec::new());
        let mut session = Self { id, hosts, on, parts, backends, times: None };
        for (host, part) in session.on.iter().zip(&session.parts) {
            let config = SessionConfig {
                connections: part.connections,
                max_connections: part.max_connections,
                threads: part.threads,
                part: Some(part.workers),
                ..config.clone()
            };
            session.hosts.send(*host, &Order::Open { session: session.id, config: Box::new(config) })?;
        }
        let replies = session.hosts.gather(&session.on, &mut || {});
        for (host, reply) in session.on.iter().zip(replies) {
            match reply? {
                Reply::Opened { backend, .. } => session.backends.push(backend),
                other => return Err(session.hosts.unexpected(*host, &other)),
            }
        }
        Ok(session)
    }

    /// What each host carries, in the order of the hosts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The interface to the operating system on each host.
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// The order without its recorded times, if it has any. Sends them before, unless the hosts have them.
    fn without_times(&mut self, order: &SliceOrder) -> SliceOrder {
        let mut order = order.clone();
        let Pacer::Recorded { times, .. } = &mut order.pacer else { return order };
        if !self.times.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, times)) {
            let sent = |host: &usize| {
                let times = times.as_ref().clone();
                self.hosts.send(*host, &Order::Times { session: self.id, times }).is_ok()
            };
            let asked: Vec<usize> = self.on.iter().copied().filter(sent).collect();
            // A host that is lost now is missing in the slice, too.
            self.hosts.gather(&asked, &mut || {});
            // What kept the times from a host keeps the whole order from it, and says why.
            if asked.len() < self.on.len() {
                return order;
            }
            self.times = Some(Arc::clone(times));
        }
        *times = Arc::new(RecordedTimes::shortest());
        order
    }

    /// A handle to end slices early from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        let (hosts, session) = (Arc::clone(&self.hosts), self.id);
        StopHandle::new(move || stop(&hosts, session))
    }

    /// A handle to read the progress of slices from another thread, as the hosts last told it.
    pub fn progress(&self) -> ProgressHandle {
        let (hosts, session) = (Arc::clone(&self.hosts), self.id);
        ProgressHandle::new(move || hosts.progress(session))
    }

    /// Runs one slice on all hosts of the session at once. When one of them is lost, the others end the slice early.
    pub fn slice_on_hosts(&mut self, order: &SliceOrder) -> Vec<HostSlice> {
        let order = self.without_times(order);
        // Half a round trip: how long an order takes to its host.
        let ways: Vec<Duration> =
            self.on.iter().map(|host| self.hosts.median_round_trip(*host) / 2).collect();
        let farthest = ways.iter().copied().max().unwrap_or_default();
        let lead = lead(self.on.len());
        let afresh = self.hosts.take_afresh();
        let begun = Instant::now();
        let sent: Vec<Sent> = self
            .on
            .iter()
            .zip(ways)
            .map(|(host, way)| {
                let (session, order, start_in) = (self.id, order.clone(), farthest - way + lead);
                let sent = begun.elapsed();
                let error = self.hosts.send(*host, &Order::Slice { session, order, start_in, afresh }).err();
                Sent { host: *host, due: sent + way + start_in, error }
            })
            .collect();
        if sent.iter().any(|one| one.error.is_some()) {
            stop(&self.hosts, self.id);
        }
        let asked: Vec<usize> = sent.iter().filter(|one| one.error.is_none()).map(|one| one.host).collect();
        let mut replies = self.hosts.gather(&asked, &mut || stop(&self.hosts, self.id)).into_iter();
        let of = |Sent { host, due, error }: Sent| {
            let reply = match error {
                Some(error) => Err(error),
                None => replies.next().unwrap_or_else(|| {
                    Err(RemoteError::Failed { host: String::new(), reason: "no reply".into(), own: true })
                }),
            };
            let (result, late, seen) = match reply {
                Ok(Reply::Done { tally, late, seen }) => {
                    self.hosts.keep_seen(host, seen);
                    (Ok(*tally), late, seen)
                }
                Ok(other) => (Err(self.hosts.unexpected(host, &other)), Duration::ZERO, None),
                Err(error) => (Err(error), Duration::ZERO, None),
            };
            let last_report = match &result {
                Ok(_) => 0,
                Err(_) => self.hosts.progress_of(host, self.id).map_or(0, |last| last.completions),
            };
            HostSlice { result, late, begun: due.saturating_add(late), last_report, seen }
        };
        sent.into_iter().map(of).collect()
    }
}

/// An order that was sent.
struct Sent {
    host: usize,
    /// When the host is to begin, counted from when the first order was sent.
    due: Duration,
    error: Option<RemoteError>,
}

impl LoadSession for RemoteSession {
    fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError> {
        let slices = self.slice_on_hosts(order);
        self.hosts.add_work(|work| {
            work.start_skews.extend(start_skew(&slices));
            for ((host, part), slice) in self.on.iter().zip(&self.parts).zip(&slices) {
                let done = work.hosts.get_mut(*host).zip(slice.result.as_ref().ok());
                if let Some((host, tally)) = done {
                    host.add(part.connections, tally, slice.late, slice.seen);
                }
            }
        });
        let tallies = slices.into_iter().map(|slice| slice.result);
        let tallies = tallies.collect::<Result<Vec<Tally>, RemoteError>>();
        tallies.map(|tallies| merge(&tallies)).map_err(|error| SessionError::Elsewhere(Box::new(error)))
    }

    fn set_handicap(&self, handicap: Duration) -> Result<(), SessionError> {
        self.on
            .iter()
            .try_for_each(|host| self.hosts.send(*host, &Order::Handicap { session: self.id, handicap }))
            .map_err(|error| SessionError::Elsewhere(Box::new(error)))
    }
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        for host in &self.on {
            // A lost host has no connections left.
            let _ = self.hosts.send(*host, &Order::Close { session: self.id });
        }
    }
}

/// Ends a session's slices on all hosts that are left.
fn stop(hosts: &LoadHosts, session: u32) {
    for host in 0..hosts.count() {
        let _ = hosts.send(host, &Order::Stop { session });
    }
}

#[cfg(test)]
mod tests {
    use deadheat_load::Times;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_host_gets_a_connection_or_the_load_is_refused() {
        let error = divide(2, 2, 1, 3).unwrap_err();
        assert!(error.to_string().contains("2 connections cannot be divided over 3 load hosts"), "{error}");
        let parts = divide(7, 10, 4, 3).unwrap();
        let counts: Vec<_> =
            parts.iter().map(|one| (one.connections, one.max_connections, one.threads)).collect();
        assert_eq!(counts, [(3, 4, 3), (2, 3, 2), (2, 3, 2)]);
        let workers: Vec<_> = parts.iter().map(|one| (one.workers.first, one.workers.of)).collect();
        assert_eq!(workers, [(0, 7), (3, 7), (5, 7)]);
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(hosts in 1..20usize, more in 0..500usize, beyond in 0..500usize, threads in 1..9usize) {
            let connections = hosts + more;
            let parts = divide(connections, connections + beyond, threads, hosts).unwrap();
            prop_assert_eq!(parts.iter().map(|one| one.connections).sum::<usize>(), connections);
            prop_assert_eq!(parts.iter().map(|one| one.max_connections).sum::<usize>(), connections + beyond);
            let mut next = 0;
            for part in &parts {
                prop_assert!(part.connections >= 1 && part.max_connections >= part.connections);
                prop_assert!((1..=part.connections).contains(&part.threads));
                prop_assert_eq!(part.workers.first, next);
                next += part.threads;
            }
            prop_assert!(parts.iter().all(|part| part.workers.of == next));
        }

        /// As it happens on the way from an agent: encoded, decoded, and merged.
        #[test]
        fn merged_tallies_are_the_tally_of_all(
            times in prop::collection::vec((0..3usize, 0..5_000_000_000u64), 1..300),
        ) {
            let mut whole = Times::new();
            let mut tallies = [Tally::default(), Tally::default(), Tally::default()];
            for (host, ns) in &times {
                whole.record(*ns);
                tallies[*host].latency.record(*ns);
                tallies[*host].due += 1;
            }
            let sent: Vec<Tally> = tallies
                .iter()
                .map(|one| postcard::from_bytes(&postcard::to_stdvec(one).unwrap()).unwrap())
                .collect();
            let merged = merge(&sent);
            prop_assert_eq!(merged.latency.histogram(), whole.histogram());
            let cells = |times: &Times| -> Vec<(u64, u64)> {
                let all = times.histogram().iter_recorded();
                all.map(|cell| (cell.value_iterated_to(), cell.count_at_value())).collect()
            };
            prop_assert_eq!(cells(&merged.latency), cells(&whole));
            prop_assert_eq!(merged.due, times.len() as u64);
        }
    }

    #[test]
    fn the_skew_is_between_the_first_and_the_last_that_began() {
        let slice = |begun_ms: u64, lost: bool| HostSlice {
            result: match lost {
                false => Ok(Tally::default()),
                true => Err(RemoteError::Ended { host: "a".into(), reason: "killed".into() }),
            },
            late: Duration::ZERO,
            begun: Duration::from_millis(begun_ms),
            last_report: 0,
            seen: None,
        };
        let skew = |slices: &[HostSlice]| start_skew(slices);
        assert_eq!(
            skew(&[slice(5, false), slice(7, false), slice(100, true)]),
            Some(Duration::from_millis(2))
        );
        assert_eq!(skew(&[slice(5, false), slice(100, true)]), None);
        assert_eq!(skew(&[]), None);
    }
}
