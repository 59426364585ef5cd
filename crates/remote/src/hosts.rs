//! Load hosts with open channels, and what may be asked of them outside a load.
//!
//! Owns: which host is lost, and that replies are waited for no longer than a host is heard. Must not know: tallies.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use deadheat_host::monitor::NetworkReading;
use deadheat_load::{Address, Answer, NoAnswer, Progress, Tally, Times};

use crate::channel::{Channel, Event, Patience, Traffic, lock, seconds};
use crate::error::RemoteError;
use crate::link::Reach;
use crate::message::{Asked, Order, Reply, Seen, Watching};

/// How often a silent host is looked for while a reply is awaited.
const GLANCE: Duration = Duration::from_millis(50);
/// See [`lead`].
const LEAD: Duration = Duration::from_millis(2);

/// What a host did in the slices since [`LoadHosts::take_work`] was last called.
#[derive(Debug, Clone, Default)]
pub struct HostWork {
    /// Connections of the session that last ran a slice.
    pub connections: usize,
    /// Requests that were due there.
    pub requests: u64,
    /// Complete answers.
    pub completions: u64,
    /// Bytes received.
    pub bytes_read: u64,
    /// Bytes sent.
    pub bytes_written: u64,
    /// The time of its slices, from the first request to the last answer.
    pub elapsed: Duration,
    /// For each slice: how much later than ordered the host began, by its own clock.
    pub delays: Vec<Duration>,
    /// What its kernel counted of the network; none if it is not watched.
    pub network: Option<NetworkReading>,
    /// What was last seen of it; none if it is not watched.
    pub seen: Option<Seen>,
    /// The highest share of a slice for which a watched CPU stood still; none if nobody watches.
    pub stalled_share: Option<f64>,
}

impl HostWork {
    /// Adds a slice that `connections` carried.
    pub(crate) fn add(&mut self, connections: usize, tally: &Tally, late: Duration, seen: Option<Seen>) {
        self.connections = connections;
        self.requests += tally.due;
        self.completions += tally.completions;
        self.bytes_read += tally.bytes_read;
        self.bytes_written += tally.bytes_written;
        self.elapsed += Duration::from_nanos(tally.elapsed_ns);
        self.delays.push(late);
        let network = seen.map(|seen| seen.network);
        self.network =
            self.network.zip(network).map(|(sum, one)| sum.plus(&one)).or(self.network).or(network);
        self.seen = seen.or(self.seen);
        let stalled = seen.and_then(|seen| seen.stalled_share);
        self.stalled_share = self.stalled_share.into_iter().chain(stalled).reduce(f64::max);
    }
}

/// What all hosts did in the slices since [`LoadHosts::take_work`] was last called.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// One entry per host.
    pub hosts: Vec<HostWork>,
    /// For each slice on several hosts: by how much the first and the last of them began apart.
    pub start_skews: Vec<Duration>,
}

impl Work {
    fn of(hosts: usize) -> Self {
        Self { hosts: vec![HostWork::default(); hosts], start_skews: Vec::new() }
    }
}

/// With several hosts, all of them start this much later than the order takes to the farthest one, so that an order that
/// is late by chance is still in time.
pub(crate) fn lead(hosts: usize) -> Duration {
    if hosts > 1 { LEAD } else { Duration::ZERO }
}

/// Machines with an agent each. Dropping it ends the agents.
#[derive(Debug)]
pub struct LoadHosts {
    channels: Vec<Channel>,
    events: Mutex<Receiver<(usize, Event)>>,
    /// Why a host is lost; in the order of the channels.
    lost: Mutex<Vec<Option<RemoteError>>>,
    patience: Patience,
    sessions: AtomicU32,
    /// Whether what happens to the machines counts from the next slice on.
    afresh: AtomicBool,
    /// What was last seen of each machine.
    seen: Mutex<Vec<Option<Seen>>>,
    work: Mutex<Work>,
}

impl Drop for LoadHosts {
    fn drop(&mut self) {
        // All agents end at the same time, and not one after the other.
        self.channels.iter().for_each(Channel::end_input);
    }
}

impl LoadHosts {
    /// Reaches all hosts at once. `version` is that of this program; agents must have the same.
    ///
    /// # Errors
    /// A host cannot be reached. Then none is used.
    pub fn connect<H: Reach>(hosts: Vec<H>, version: &str, patience: Patience) -> Result<Self, RemoteError> {
        let (sender, events) = channel();
        let opened: Vec<Result<Channel, RemoteError>> = std::thread::scope(|scope| {
            let opening: Vec<_> = hosts
                .into_iter()
                .enumerate()
                .map(|(index, host)| {
                    let (sender, name) = (sender.clone(), host.name());
                    let open = move || Channel::open(host.reach()?, index, version, patience, sender);
                    (name, scope.spawn(open))
                })
                .collect();
            let joined = opening.into_iter().map(|(host, one)| {
                let panicked =
                    |_| Err(RemoteError::Failed { host, reason: "a defect of deadheat".into(), own: true });
                one.join().unwrap_or_else(panicked)
            });
            joined.collect()
        });
        let channels = opened.into_iter().collect::<Result<Vec<Channel>, RemoteError>>()?;
        let (lost, seen) = (Mutex::new(vec![None; channels.len()]), Mutex::new(vec![None; channels.len()]));
        let (sessions, afresh) = (AtomicU32::new(0), AtomicBool::new(true));
        let work = Mutex::new(Work::of(channels.len()));
        Ok(Self { channels, events: Mutex::new(events), lost, patience, sessions, afresh, seen, work })
    }

    /// The hosts' names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.channels.iter().map(|channel| channel.name.as_str())
    }

    /// Round trips of the host's channel so far, from a ping to its answer.
    pub fn round_trips(&self, host: usize) -> Times {
        self.channels.get(host).map_or_else(Times::default, Channel::round_trips)
    }

    /// Round trips of the host's channel since the last call, from a ping to its answer.
    pub fn take_round_trips(&self, host: usize) -> Vec<Duration> {
        self.channels.get(host).map_or_else(Vec::new, Channel::take_round_trips)
    }

    /// The median of the host's round trips so far.
    pub(crate) fn median_round_trip(&self, host: usize) -> Duration {
        self.channels.get(host).map_or(Duration::ZERO, Channel::median_round_trip)
    }

    /// The longest time for which nothing was heard from the host since the last call, if it was longer than is usual.
    pub fn take_silence(&self, host: usize) -> Option<Duration> {
        let longest = self.channels.get(host)?.take_longest_silence();
        (longest > self.patience.notice).then_some(longest)
    }

    /// What went to the host and came from it so far.
    pub fn traffic(&self, host: usize) -> (Traffic, Traffic) {
        self.channels.get(host).map_or_else(Default::default, Channel::traffic)
    }

    /// What the hosts did in all slices of all sessions since the last call.
    pub fn take_work(&self) -> Work {
        std::mem::replace(&mut *lock(&self.work), Work::of(self.count()))
    }

    /// Time that a slice takes on these hosts beside the load: orders and results travel, and several hosts wait for each other.
    pub fn order_cost(&self) -> Duration {
        let medians = self.channels.iter().map(Channel::median_round_trip);
        medians.max().unwrap_or_default() + lead(self.count())
    }

    /// Hosts that were not heard for longer than is usual, and how long. They may still come back.
    pub fn silent(&self) -> Vec<(&str, Duration)> {
        let silent = self.channels.iter().map(|channel| (channel.name.as_str(), channel.silence()));
        silent.filter(|(_, silence)| *silence > self.patience.notice).collect()
    }

    /// Why hosts are lost, in the order of the hosts.
    pub fn lost(&self) -> Vec<RemoteError> {
        lock(&self.lost).iter().flatten().cloned().collect()
    }

    /// Silence after which a host is lost.
    pub fn deadline(&self) -> Duration {
        self.patience.deadline
    }

    /// Whether something listens at the address, as the first host sees it; with the reason if not.
    ///
    /// # Errors
    /// The host is lost.
    pub fn reach(&self, address: &Address, timeout: Duration) -> Result<Result<(), String>, RemoteError> {
        match self.first(&Order::Reach { address: address.clone(), timeout })? {
            Reply::Reached(reached) => Ok(reached),
            other => Err(self.unexpected(0, &other)),
        }
    }

    /// Sends these requests from the first host at the same moment, each on a connection of its own. The answers are in the same order.
    ///
    /// # Errors
    /// The host is lost. Why the server gave no answer is no error, but the result.
    pub fn ask(
        &self,
        asked: Vec<Asked>,
        timeout: Duration,
        max_body: usize,
    ) -> Result<Vec<Result<Answer, NoAnswer>>, RemoteError> {
        let count = asked.len();
        match self.first(&Order::Ask { asked, timeout, max_body })? {
            Reply::Answered(answers) if answers.len() == count => Ok(answers),
            other => Err(self.unexpected(0, &other)),
        }
    }

    /// From now on, each host watches what other programs and the hypervisor do to these of its CPUs, or to all if none is named; with
    /// `stalls` also for how long they stand still. Returns what each host says of its machine, with its name.
    ///
    /// # Errors
    /// A host is lost.
    pub fn watch(&self, cpus: &[usize], stalls: bool) -> Result<Vec<(&str, Watching)>, RemoteError> {
        let hosts: Vec<usize> = (0..self.count()).collect();
        for host in &hosts {
            self.send(*host, &Order::Watch { cpus: cpus.to_vec(), stalls })?;
        }
        let mut all = Vec::new();
        for (host, reply) in self.gather(&hosts, &mut || {}).into_iter().enumerate() {
            match reply? {
                Reply::Watching(watching) => all.push((self.channels[host].name.as_str(), watching)),
                other => return Err(self.unexpected(host, &other)),
            }
        }
        Ok(all)
    }

    /// What was last seen of each machine: its name, and what happened to it since [`Self::count_afresh`].
    pub fn seen(&self) -> Vec<(&str, Seen)> {
        let seen = lock(&self.seen);
        let all = self.channels.iter().zip(&*seen);
        all.filter_map(|(channel, seen)| Some((channel.name.as_str(), (*seen)?))).collect()
    }

    /// What happens to the machines counts from the next slice on.
    pub fn count_afresh(&self) {
        self.afresh.store(true, Ordering::Relaxed);
    }

    /// Whether the next slice begins to count; the one after it does not.
    pub(crate) fn take_afresh(&self) -> bool {
        self.afresh.swap(false, Ordering::Relaxed)
    }

    /// Keeps what was seen of a machine.
    pub(crate) fn keep_seen(&self, host: usize, seen: Option<Seen>) {
        lock(&self.seen)[host] = seen;
    }

    /// Adds to what the hosts did.
    pub(crate) fn add_work(&self, add: impl FnOnce(&mut Work)) {
        add(&mut lock(&self.work));
    }

    /// A number for a new session.
    pub(crate) fn next_session(&self) -> u32 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }

    /// How many hosts there are, lost ones included.
    pub fn count(&self) -> usize {
        self.channels.len()
    }

    /// Sends an order to one host.
    pub(crate) fn send(&self, host: usize, order: &Order) -> Result<(), RemoteError> {
        if let Some(error) = lock(&self.lost).get(host).cloned().flatten() {
            return Err(error);
        }
        self.channels[host].send(order)
    }

    /// What all agents last said of a session.
    pub(crate) fn progress(&self, session: u32) -> Progress {
        let mut sum = Progress::default();
        self.channels.iter().filter_map(|one| one.progress(session)).for_each(|one| sum.add(&one));
        sum
    }

    /// What one agent last said of a session.
    pub(crate) fn progress_of(&self, host: usize, session: u32) -> Option<Progress> {
        self.channels.get(host)?.progress(session)
    }

    /// The reply of each of these hosts, in the same order. Calls `failed` as soon as one is lost or has failed, and then
    /// waits for the others.
    pub(crate) fn gather(
        &self,
        hosts: &[usize],
        failed: &mut dyn FnMut(),
    ) -> Vec<Result<Reply, RemoteError>> {
        let is_bad = |one: &Result<Reply, RemoteError>| matches!(one, Err(_) | Ok(Reply::Failed { .. }));
        let mut replies: Vec<Option<Result<Reply, RemoteError>>> = vec![];
        replies.extend(hosts.iter().map(|host| lock(&self.lost)[*host].clone().map(Err)));
        let mut awaited = replies.iter().filter(|one| one.is_none()).count();
        let mut any_bad = replies.iter().flatten().any(is_bad);
        let events = lock(&self.events);
        let mut told = false;
        loop {
            if any_bad && !told {
                failed();
                told = true;
            }
            if awaited == 0 {
                break;
            }
            let (index, result) = match events.recv_timeout(GLANCE) {
                Ok((index, Event::Reply(reply))) => (index, Ok(reply)),
                Ok((index, Event::Ended(error))) => (index, Err(error)),
                Err(RecvTimeoutError::Timeout) => match self.newly_silent() {
                    Some((index, error)) => (index, Err(error)),
                    None => continue,
                },
                // Every reader has ended and has said so before.
                Err(RecvTimeoutError::Disconnected) => {
                    let host = |place: usize| self.channels[hosts[place]].name.clone();
                    for (place, reply) in replies.iter_mut().enumerate().filter(|(_, one)| one.is_none()) {
                        let reason = "its channel closed".into();
                        *reply = Some(Err(RemoteError::Ended { host: host(place), reason }));
                    }
                    break;
                }
            };
            if let Err(error) = &result {
                let mut lost = lock(&self.lost);
                // What is told after the first reason only follows from it.
                if lost[index].is_none() {
                    lost[index] = Some(error.clone());
                    self.channels[index].give_up();
                }
            }
            // The reply to an order that is no longer awaited has no place.
            let place = hosts.iter().position(|host| *host == index);
            if let Some(reply) = place.map(|place| &mut replies[place]).filter(|reply| reply.is_none()) {
                awaited -= 1;
                any_bad |= is_bad(&result);
                *reply = Some(result);
            }
        }
        let unfinished = || RemoteError::Failed { host: String::new(), reason: "no reply".into(), own: true };
        let named = |(place, reply): (usize, Option<Result<Reply, RemoteError>>)| match reply {
            Some(Ok(Reply::Failed { reason, own })) => {
                Err(RemoteError::Failed { host: self.channels[hosts[place]].name.clone(), reason, own })
            }
            Some(other) => other,
            None => Err(unfinished()),
        };
        replies.into_iter().enumerate().map(named).collect()
    }

    /// The error for a reply to another order.
    pub(crate) fn unexpected(&self, host: usize, reply: &Reply) -> RemoteError {
        let kind = match reply {
            Reply::Pong { .. } => "pong",
            Reply::Reached(_) => "reached",
            Reply::Answered(_) => "answered",
            Reply::Opened { .. } => "opened",
            Reply::Done { .. } => "done",
            Reply::Watching(_) => "watching",
            Reply::Kept => "kept",
            Reply::Failed { .. } => "failed",
        };
        RemoteError::Channel {
            host: self.channels[host].name.clone(),
            reason: format!("the reply `{kind}` came out of order"),
        }
    }

    fn first(&self, order: &Order) -> Result<Reply, RemoteError> {
        self.send(0, order)?;
        let mut replies = self.gather(&[0], &mut || {});
        replies.remove(0)
    }

    /// A host that has been silent for the whole deadline and is not known to be lost.
    fn newly_silent(&self) -> Option<(usize, RemoteError)> {
        let lost = lock(&self.lost);
        let silent = |(index, channel): &(usize, &Channel)| {
            lost[*index].is_none() && channel.silence() > self.patience.deadline
        };
        let (index, channel) = self.channels.iter().enumerate().find(silent)?;
        let seconds = seconds(self.patience.deadline).trim_end_matches(" s").to_owned();
        Some((index, RemoteError::Silent { host: channel.name.clone(), seconds, seen: channel.seen() }))
    }
}
