//! The agent: it reads orders from its standard input, and loads servers from its machine.
//!
//! Owns: its sessions, and that it ends with its channel. Must not know: where the orders come from, and their purpose.
//!
//! It opens connections only to the addresses in its orders. It starts no other program and writes no file. The thread
//! that calls [`serve`] reads orders and watches the deadline; another one carries them out. When `serve` returns, the
//! process ends, and with it every thread and connection.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use deadheat_host::cgroup::Hierarchy;
use deadheat_host::facts::clock;
use deadheat_host::monitor::{Monitor, Snapshot};
use deadheat_load::{
    Address, Answer, NoAnswer, Pacer, ProgressHandle, RecordedTimes, Session, StopHandle, exchange,
    with_causes,
};
use serde::de::DeserializeOwned;

use crate::channel::{lock, seconds};
use crate::frame::encode;
use crate::input::{Input, Waited};
use crate::message::{Asked, Order, Reply, Seen, Unseen, Watching, agent_line, control_version, own_version};
use crate::writer::Writer;

/// The hidden command that becomes an agent.
pub const AGENT_COMMAND: &str = "agent";
/// The option of that command that names the only address which the agent may reach.
pub const ONLY_OPTION: &str = "--only";

/// Longest wait for the first line of the controlling side.
const GREETING: Duration = Duration::from_secs(30);
/// Longest first line, in bytes.
const MOST_LINE: usize = 1024;
/// Why an agent ends that can carry out no more orders.
const NO_WORKER: &str = "a defect of deadheat: the thread that carries out orders has ended";

/// Why an agent ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnd {
    /// Its input ended: the orderly end.
    Closed,
    /// Something else, in words.
    Failed(String),
}

/// Handles of the open sessions, for the thread that reads.
type Handles = Arc<Mutex<HashMap<u32, (StopHandle, ProgressHandle)>>>;

/// Carries out orders until the channel ends. `version` is that of this program. With `only`, connections are opened to this address and to
/// no other. The caller must end the process when this returns: a slice may still be running.
pub fn serve(
    input: impl Into<OwnedFd>,
    output: impl Into<OwnedFd>,
    version: &str,
    only: Option<IpAddr>,
) -> AgentEnd {
    let mut input = Input::new(input);
    let Ok(writer) = Writer::start(output, None) else {
        return AgentEnd::Failed("no thread could be started".into());
    };
    let deadline = match greeting(&mut input, &writer, version) {
        Ok(deadline) => deadline,
        Err(end) => return end,
    };
    let handles = Handles::default();
    let (sender, orders) = channel();
    let worker = Worker {
        sessions: HashMap::new(),
        times: HashMap::new(),
        handles: Arc::clone(&handles),
        writer: writer.clone(),
        running: Arc::default(),
        watch: None,
        only,
    };
    let running = Arc::clone(&worker.running);
    let working = thread::Builder::new().name("orders".into()).spawn(move || worker.run(&orders));
    let Ok(working) = working else {
        return AgentEnd::Failed("no thread could be started".into());
    };
    let reading = Reading { sender, handles, writer, running, working };
    obey(&mut input, deadline, |order, arrived| reading.receive(order, arrived))
}

/// Hands each order to `receive`, with the time at which it arrived, until the channel ends, nothing is heard for as long as `deadline`, or
/// `receive` says why the agent has to end.
pub(crate) fn obey<T: DeserializeOwned>(
    input: &mut Input,
    deadline: Duration,
    mut receive: impl FnMut(T, Instant) -> Result<(), String>,
) -> AgentEnd {
    let mut heard = Instant::now();
    loop {
        match input.message() {
            Ok(Some(order)) => {
                if let Err(reason) = receive(order, input.arrived()) {
                    return AgentEnd::Failed(reason);
                }
            }
            Ok(None) => {
                let left = deadline.saturating_sub(heard.elapsed());
                if left.is_zero() {
                    let seconds = seconds(deadline);
                    return AgentEnd::Failed(format!(
                        "nothing was heard from the controlling side for {seconds}"
                    ));
                }
                match input.wait(left) {
                    Ok(Waited::Bytes) => heard = input.arrived(),
                    Ok(Waited::Nothing) => {}
                    Ok(Waited::End) => return AgentEnd::Closed,
                    Err(error) => return AgentEnd::Failed(error.to_string()),
                }
            }
            Err(error) => return AgentEnd::Failed(error.to_string()),
        }
    }
}

/// The deadline that the controlling side names in its first line. That line is answered, whatever the versions.
pub(crate) fn greeting(input: &mut Input, writer: &Writer, version: &str) -> Result<Duration, AgentEnd> {
    let line = loop {
        if let Some(line) = input.line() {
            break line;
        }
        match input.wait(GREETING) {
            Ok(Waited::Bytes) if input.waiting() <= MOST_LINE => {}
            Ok(Waited::Bytes) => return Err(AgentEnd::Failed("the first line is too long".into())),
            Ok(Waited::End) => return Err(AgentEnd::Closed),
            Ok(Waited::Nothing) => return Err(AgentEnd::Failed("no first line came".into())),
            Err(error) => return Err(AgentEnd::Failed(error.to_string())),
        }
    };
    let ours = own_version(version);
    let read = control_version(&line);
    if read.is_some() {
        writer.send(agent_line(version).into_bytes());
    }
    match read {
        Some((theirs, deadline)) if theirs == ours => Ok(deadline),
        Some((theirs, _)) => {
            Err(AgentEnd::Failed(format!("the controlling side is of version {theirs}, and this agent of {ours}")))
        }
        None => Err(AgentEnd::Failed(
            "this command is for deadheat itself, which starts it on other machines: see `deadheat load --help`"
                .into(),
        )),
    }
}

/// The side that reads: it answers pings and stops slices at once, and passes on what takes time.
struct Reading {
    sender: Sender<(Order, Instant)>,
    handles: Handles,
    writer: Writer,
    running: Arc<Mutex<Option<u32>>>,
    /// The thread that carries out orders.
    working: JoinHandle<()>,
}

impl Reading {
    /// # Errors
    /// Orders cannot be carried out any more.
    fn receive(&self, order: Order, arrived: Instant) -> Result<(), String> {
        // It ends before this side only if it panics, and then the other side would wait for its reply for ever.
        if self.working.is_finished() {
            return Err(NO_WORKER.into());
        }
        match order {
            Order::Ping(number) => {
                let progress = (*lock(&self.running)).and_then(|session| {
                    lock(&self.handles).get(&session).map(|(_, progress)| (session, progress.read()))
                });
                reply(&self.writer, &Reply::Pong { number, progress });
            }
            Order::Stop { session } => {
                if let Some((stop, _)) = lock(&self.handles).get(&session) {
                    stop.stop();
                }
            }
            other => self.sender.send((other, arrived)).map_err(|_| NO_WORKER.to_owned())?,
        }
        Ok(())
    }
}

/// The side that carries out orders, one after the other.
struct Worker {
    sessions: HashMap<u32, Session>,
    /// The recorded times of sessions.
    times: HashMap<u32, Arc<RecordedTimes>>,
    handles: Handles,
    writer: Writer,
    /// The session that last ran a slice.
    running: Arc<Mutex<Option<u32>>>,
    watch: Option<Watch>,
    /// The only address that may be reached; none: any.
    only: Option<IpAddr>,
}

/// What watches this machine, and since when.
struct Watch {
    monitor: Monitor,
    since: Snapshot,
}

impl Worker {
    fn run(mut self, orders: &Receiver<(Order, Instant)>) {
        while let Ok((order, arrived)) = orders.recv() {
            if let Some(answer) = self.carry_out(order, arrived) {
                reply(&self.writer, &answer);
            }
        }
    }

    fn carry_out(&mut self, order: Order, arrived: Instant) -> Option<Reply> {
        if let Some(reason) = self.only.and_then(|only| refused(&order, only)) {
            return Some(Reply::failed(reason));
        }
        match order {
            // The side that reads has dealt with these.
            Order::Ping(_) | Order::Stop { .. } => None,
            Order::Reach { address, timeout } => {
                Some(Reply::Reached(address.accepts(timeout).map_err(|error| error.to_string())))
            }
            Order::Ask { asked, timeout, max_body } => Some(Reply::Answered(ask(&asked, timeout, max_body))),
            Order::Watch { cpus, stalls } => {
                let mut monitor = Monitor::new(&cpus, &[], &Hierarchy::detect());
                let unseen = if stalls { monitor.see_stalls() } else { None };
                let findings = monitor.blind().into_iter().chain(unseen);
                let unseen = findings
                    .map(|one| Unseen { code: one.code, message: one.message, remedy: one.remedy })
                    .collect();
                let clock = clock();
                let since = monitor.moment(0);
                self.watch = Some(Watch { monitor, since });
                Some(Reply::Watching(Watching { unseen, clock }))
            }
            Order::Open { session: id, config } => match Session::open(*config) {
                Ok(session) => {
                    lock(&self.handles).insert(id, (session.stop_handle(), session.progress()));
                    let opened = Reply::Opened { backend: session.backend(), workers: session.workers() };
                    self.sessions.insert(id, session);
                    Some(opened)
                }
                Err(error) => Some(Reply::Failed { reason: with_causes(&error), own: error.is_our_own() }),
            },
            Order::Times { session, times } => {
                self.times.insert(session, Arc::new(times));
                Some(Reply::Kept)
            }
            Order::Slice { session: id, mut order, start_in, afresh } => {
                if let Pacer::Recorded { times, .. } = &mut order.pacer {
                    let Some(kept) = self.times.get(&id) else {
                        return Some(Reply::failed("the order comes before its recorded times"));
                    };
                    *times = Arc::clone(kept);
                }
                let Some(session) = self.sessions.get_mut(&id) else { return Some(unknown(id)) };
                let Some(start) = arrived.checked_add(start_in) else {
                    return Some(Reply::failed("the order names no time at which a slice can start"));
                };
                *lock(&self.running) = Some(id);
                if let Some(watch) = self.watch.as_mut().filter(|_| afresh) {
                    watch.since = watch.monitor.moment(0);
                }
                let stalled = self.watch.as_ref().and_then(|watch| watch.monitor.stalled());
                let network = self.watch.as_ref().map(|watch| watch.monitor.network());
                let mut late = Duration::ZERO;
                let tally = session.slice_after(&order, || {
                    thread::sleep(start.saturating_duration_since(Instant::now()));
                    late = Instant::now().saturating_duration_since(start);
                });
                Some(match tally {
                    Ok(tally) => {
                        let seen = self.watch.as_ref().zip(network).map(|(watch, network)| {
                            let network = watch.monitor.network().since(&network);
                            let stalled_share = watch.monitor.stalled_share(stalled);
                            let now = watch.monitor.moment(0);
                            let between = watch.monitor.between(&watch.since, &now);
                            Seen {
                                steal_share: between.reading.steal_share,
                                foreign_share: between.reading.foreign_share,
                                foreign_off: between.foreign_off,
                                stalled_share,
                                network,
                            }
                        });
                        Reply::Done { tally: Box::new(tally), late, seen }
                    }
                    Err(error) => Reply::failed(with_causes(&error)),
                })
            }
            Order::Handicap { session, handicap } => {
                // If a worker is lost, the next slice fails, with the reason.
                let _ = self.sessions.get(&session).map(|session| session.set_handicap(handicap));
                None
            }
            Order::Close { session } => {
                lock(&self.handles).remove(&session);
                self.sessions.remove(&session);
                self.times.remove(&session);
                None
            }
        }
    }
}

/// Why an agent that may reach `only` this address does not carry out an order; none if it may.
fn refused(order: &Order, only: IpAddr) -> Option<String> {
    let other = |address: &&Address| !matches!(address, Address::Tcp(to) if to.ip() == only);
    let found = match order {
        Order::Reach { address, .. } => Some(address).filter(other),
        Order::Ask { asked, .. } => asked.iter().map(|one| &one.address).find(other),
        Order::Open { config, .. } => Some(&config.address).filter(other),
        _ => None,
    };
    found.map(|other| format!("this agent opens connections to {only} alone, and not to {other}"))
}

fn unknown(session: u32) -> Reply {
    Reply::failed(format!("there is no session {session}"))
}

/// Sends a reply. If it is too large for a frame, the reason goes instead.
fn reply(writer: &Writer, reply: &Reply) {
    let frame = encode(reply).or_else(|error| encode(&Reply::failed(error.to_string())));
    writer.send(frame.unwrap_or_default());
}

/// Sends all requests at once.
fn ask(asked: &[Asked], timeout: Duration, max_body: usize) -> Vec<Result<Answer, NoAnswer>> {
    let one = |asked: &Asked| {
        exchange(&asked.address, asked.tls.as_ref(), &asked.bytes, asked.head, timeout, max_body)
            .map_err(NoAnswer::from)
    };
    let lost = |_| Err(NoAnswer::plain("a defect of deadheat"));
    let no_thread = |error: &io::Error| Err(NoAnswer::plain(format!("no thread could be started: {error}")));
    thread::scope(|scope| {
        let asking: Vec<_> = asked
            .iter()
            .map(|asked| thread::Builder::new().spawn_scoped(scope, move || one(asked)))
            .collect();
        asking
            .into_iter()
            .map(|asking| match asking {
                Ok(asking) => asking.join().unwrap_or_else(lost),
                Err(error) => no_thread(&error),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_carries_out_no_orders_ends() {
        let working = thread::spawn(|| {});
        while !working.is_finished() {
            thread::yield_now();
        }
        let writer = Writer::start(io::pipe().unwrap().1, None).unwrap();
        let ((sender, _orders), running) = (channel(), Arc::default());
        let reading = Reading { sender, handles: Handles::default(), writer, running, working };
        let ended = reading.receive(Order::Ping(1), Instant::now());
        assert_eq!(ended, Err(NO_WORKER.to_owned()));
    }

    #[test]
    fn an_agent_with_one_address_reaches_no_other() {
        let tcp = |address: &str| Address::Tcp(address.parse().unwrap());
        let may = |addresses: Vec<Address>| {
            let asked = |address| Asked { address, tls: None, bytes: Vec::new(), head: false };
            let reach = addresses.iter().cloned();
            let mut orders: Vec<Order> =
                reach.map(|address| Order::Reach { address, timeout: Duration::ZERO }).collect();
            let asked = addresses.into_iter().map(asked).collect();
            orders.push(Order::Ask { asked, timeout: Duration::ZERO, max_body: 0 });
            let is_allowed = |order: &Order| refused(order, [10, 0, 0, 5].into()).is_none();
            orders.iter().map(is_allowed).collect::<Vec<bool>>()
        };
        assert_eq!(may(vec![tcp("10.0.0.5:80"), tcp("10.0.0.5:81")]), [true, true, true]);
        assert_eq!(may(vec![tcp("10.0.0.5:80"), tcp("127.0.0.1:80")]), [true, false, false]);
        assert_eq!(may(vec![Address::Unix("/run/docker.sock".into())]), [false, false]);
        assert_eq!(refused(&Order::Stop { session: 1 }, [10, 0, 0, 5].into()), None);
    }
}
