//! The controlling side of a channel: greetings and messages over an open link to an agent, and whether it is alive.
//!
//! Owns: the greeting, the pings. Must not know: what carries the link, sessions, nor what other channels do.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deadheat_load::{Progress, Times, nanos};

use crate::error::RemoteError;
use crate::frame::encode;
use crate::input::{Input, Waited};
use crate::link::{Link, LinkEnd};
use crate::message::{Order, Reply, agent_version, control_line, own_version};
use crate::ssh::{Line, Program, REFUSED_REST, installing};
use crate::writer::{Beat, Writer};

/// What carries a channel that is closed has this long to end before it is broken.
const CLOSING: Duration = Duration::from_secs(2);
/// Most bytes that a host's shell may write before the agent's first line.
const MOST_NOISE: usize = 64 * 1024;
/// The most round trips that are measured at the start, and the longest time for them.
const FIRST_PINGS: u64 = 50;
const FIRST_PINGS_FOR: Duration = Duration::from_millis(500);
/// Most round trips that are kept until they are taken. A load without a race never takes them.
const MOST_FRESH: usize = 10_000;

/// How long to wait for signs of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Time between two pings.
    pub beat: Duration,
    /// Silence that is worth a word to the user.
    pub notice: Duration,
    /// Silence after which each side takes the other one for lost. The agent then ends.
    pub deadline: Duration,
    /// Longest wait for the agent's first line, not counting the time for copying the program.
    pub greeting: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            beat: Duration::from_millis(500),
            notice: Duration::from_millis(1_500),
            deadline: Duration::from_secs(10),
            greeting: Duration::from_secs(30),
        }
    }
}

/// What went over a channel, in one direction, after the greeting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages, pings and their answers included.
    pub messages: u64,
    /// Their bytes, before ssh encrypts them.
    pub bytes: u64,
}

/// Counts [`Traffic`].
#[derive(Debug, Default)]
struct Counter {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    fn add(&self, messages: u64, bytes: usize) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn read(&self) -> Traffic {
        Traffic { messages: self.messages.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// What a channel reports.
#[derive(Debug)]
pub(crate) enum Event {
    Reply(Reply),
    /// Nothing will come any more.
    Ended(RemoteError),
}

/// A channel to an agent. Dropping it closes the channel, which ends the agent.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) name: String,
    /// `None` once the channel is closed.
    writer: Mutex<Option<Writer>>,
    end: Arc<dyn LinkEnd>,
    state: Arc<Mutex<State>>,
    sent: Arc<Counter>,
    received: Arc<Counter>,
}

/// What is known of the other side.
#[derive(Debug)]
struct State {
    heard: Instant,
    /// The longest time without a word since it was last taken.
    longest_silence: Duration,
    round_trips: Times,
    /// Their median, if it was asked for since the last of them.
    median: Option<Duration>,
    /// Round trips since they were last taken, at most [`MOST_FRESH`].
    fresh: Vec<Duration>,
    pings: HashMap<u64, Instant>,
    progress: Option<(u32, Progress)>,
}

impl State {
    fn hear(&mut self, at: Instant) {
        self.longest_silence = self.longest_silence.max(at.saturating_duration_since(self.heard));
        self.heard = at;
    }
}

impl Channel {
    /// Exchanges greetings and measures a few round trips. From then on, `events` gets all replies, with the channel's
    /// `index`.
    pub(crate) fn open(
        link: Link,
        index: usize,
        version: &str,
        patience: Patience,
        events: Sender<(usize, Event)>,
    ) -> Result<Self, RemoteError> {
        let Link { name, output, input, program, end } = link;
        let mut output = File::from(output);
        let mut start = Start { name: &name, end: &*end, input: Input::new(input) };
        let greeted = start.greet(&mut output, program.as_ref(), version, patience);
        let round_trips = match greeted.and_then(|()| start.first_pings(&mut output, patience)) {
            Ok(round_trips) => round_trips,
            Err(error) => {
                drop(output);
                end.close(Duration::ZERO);
                return Err(error);
            }
        };
        let input = start.input;
        let (fresh, pings) = (Vec::new(), HashMap::new());
        let (heard, longest_silence) = (Instant::now(), Duration::ZERO);
        let state = State { heard, longest_silence, round_trips, median: None, fresh, pings, progress: None };
        let state = Arc::new(Mutex::new(state));
        let pinging = Arc::clone(&state);
        let mut number = FIRST_PINGS;
        let (sent, received) = (Arc::<Counter>::default(), Arc::<Counter>::default());
        let beats = Arc::clone(&sent);
        let frame = Box::new(move || {
            number += 1;
            lock(&pinging).pings.insert(number, Instant::now());
            // A ping is a few bytes, which can always be encoded.
            let frame = encode(&Order::Ping(number)).unwrap_or_default();
            beats.add(1, frame.len());
            frame
        });
        let failed = |error: std::io::Error| RemoteError::no_thread(&name, &error);
        let moving = Arc::clone(&state);
        let took = Box::new(move || lock(&moving).hear(Instant::now()));
        let writer =
            Writer::start(output, Some(Beat { every: patience.beat, frame, took })).map_err(failed)?;
        let reader = Reader {
            name: name.clone(),
            index,
            input,
            state: Arc::clone(&state),
            end: Arc::clone(&end),
            received: Arc::clone(&received),
            events,
        };
        let reading = std::thread::Builder::new().name("read-channel".into()).spawn(move || reader.run());
        reading.map_err(failed)?;
        Ok(Self { name, writer: Mutex::new(Some(writer)), end, state, sent, received })
    }

    /// Sends an order.
    pub(crate) fn send(&self, order: &Order) -> Result<(), RemoteError> {
        let frame = encode(order)
            .map_err(|error| RemoteError::Channel { host: self.name.clone(), reason: error.to_string() })?;
        if let Some(writer) = &*lock(&self.writer) {
            self.sent.add(1, frame.len());
            writer.send(frame);
        }
        Ok(())
    }

    /// How long nothing has been heard.
    pub(crate) fn silence(&self) -> Duration {
        lock(&self.state).heard.elapsed()
    }

    /// The longest time without a word since the last call; it may not be over yet.
    pub(crate) fn take_longest_silence(&self) -> Duration {
        let mut state = lock(&self.state);
        let longest = state.longest_silence.max(state.heard.elapsed());
        state.longest_silence = Duration::ZERO;
        longest
    }

    /// The median of all round trips so far.
    pub(crate) fn median_round_trip(&self) -> Duration {
        let mut state = lock(&self.state);
        let State { median, round_trips, .. } = &mut *state;
        *median.get_or_insert_with(|| Duration::from_nanos(round_trips.quantile_ns(0.5).unwrap_or(0)))
    }

    /// All round trips so far.
    pub(crate) fn round_trips(&self) -> Times {
        lock(&self.state).round_trips.clone()
    }

    /// The round trips since the last call.
    pub(crate) fn take_round_trips(&self) -> Vec<Duration> {
        std::mem::take(&mut lock(&self.state).fresh)
    }

    /// What was sent and received so far.
    pub(crate) fn traffic(&self) -> (Traffic, Traffic) {
        (self.sent.read(), self.received.read())
    }

    /// What the agent last said about this session.
    pub(crate) fn progress(&self, session: u32) -> Option<Progress> {
        lock(&self.state).progress.clone().filter(|(of, _)| *of == session).map(|(_, progress)| progress)
    }

    /// What others say of the host.
    pub(crate) fn seen(&self) -> String {
        self.end.seen()
    }

    /// Breaks the channel: the host is lost.
    pub(crate) fn give_up(&self) {
        lock(&self.writer).take();
        self.end.cut();
    }
}

impl Channel {
    /// Ends the agent's input, which ends the agent, and with it what carries the link.
    pub(crate) fn end_input(&self) {
        lock(&self.writer).take();
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.end_input();
        self.end.close(CLOSING);
    }
}

/// A channel that is not open yet.
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) end: &'a dyn LinkEnd,
    pub(crate) input: Input,
}

impl Start<'_> {
    /// Copies the program if the host lacks it, and exchanges first lines. This side speaks first, as soon as there is an agent: what an
    /// agent writes before anything listens to it may never arrive.
    pub(crate) fn greet(
        &mut self,
        output: &mut dyn Write,
        program: Option<&Program>,
        version: &str,
        patience: Patience,
    ) -> Result<(), RemoteError> {
        let (mut noise, mut unsent) = (String::new(), None);
        let ours = control_line(version, patience.deadline);
        if program.is_none() {
            // If it cannot be written, what is read says why.
            let _ = output.write_all(ours.as_bytes()).and_then(|()| output.flush());
        }
        loop {
            let line =
                self.line(patience.greeting, &noise).map_err(|error| unsent.take().unwrap_or(error))?;
            let Some(line) = line else { continue };
            if let Some(theirs) = agent_version(&line) {
                let ours = own_version(version);
                if theirs != ours {
                    let (host, theirs) = (self.name.to_owned(), theirs.to_owned());
                    return Err(RemoteError::Version { host, ours, theirs });
                }
                return Ok(());
            }
            match (installing(&line), program) {
                // The host may refuse the program while it is sent: its reason is still to be read.
                (Some(Line::Send), Some(program)) => unsent = self.write(output, program.bytes()).err(),
                (Some(Line::Refused(reason)), _) => {
                    let (host, reason) = (self.name.to_owned(), self.rest(reason));
                    return Err(RemoteError::Refused { host, reason });
                }
                (Some(Line::Foreign(reason)), _) => {
                    let (host, reason) = (self.name.to_owned(), self.rest(reason));
                    return Err(RemoteError::Foreign { host, reason });
                }
                (Some(Line::Ready), Some(_)) => self.write(output, ours.as_bytes())?,
                _ => {
                    noise.push_str(&line);
                    noise.push('\n');
                    if noise.len() > MOST_NOISE {
                        return Err(self.unreachable("its shell writes text without end".into()));
                    }
                }
            }
        }
    }

    /// The next line; `None` if it is not complete yet. `noise` is what came before it and says nothing.
    fn line(&mut self, patience: Duration, noise: &str) -> Result<Option<String>, RemoteError> {
        if let Some(line) = self.input.line() {
            return Ok(Some(line));
        }
        if self.input.waiting() > MOST_NOISE {
            return Err(self.unreachable("its shell writes text without end".into()));
        }
        match self.input.wait(patience) {
            Ok(Waited::Bytes) => Ok(None),
            Ok(Waited::Nothing) => {
                let said = self.end.said(noise);
                Err(self.unreachable(format!("it did not answer within {}{said}", seconds(patience))))
            }
            Ok(Waited::End) | Err(_) => Err(self.unreachable(self.end.reason(noise))),
        }
    }

    /// A reason of several lines.
    fn rest(&mut self, first: &str) -> String {
        let mut reason = first.to_owned();
        loop {
            while let Some(line) = self.input.line() {
                reason = format!("{reason}; {line}");
            }
            if !matches!(self.input.wait(REFUSED_REST), Ok(Waited::Bytes)) {
                return reason;
            }
        }
    }

    fn write(&self, output: &mut dyn Write, bytes: &[u8]) -> Result<(), RemoteError> {
        output.write_all(bytes).and_then(|()| output.flush()).map_err(|error| {
            let reason = self.end.reason("");
            self.unreachable(format!("{error}: {reason}"))
        })
    }

    fn unreachable(&self, reason: String) -> RemoteError {
        RemoteError::Unreachable { host: self.name.to_owned(), reason, remedy: self.end.remedy() }
    }

    /// Measures round trips, one after the other.
    fn first_pings(&mut self, output: &mut dyn Write, patience: Patience) -> Result<Times, RemoteError> {
        let (begun, mut times) = (Instant::now(), Times::new());
        for number in 0..FIRST_PINGS {
            let sent = Instant::now();
            let frame = encode(&Order::Ping(number)).map_err(|error| self.unreachable(error.to_string()))?;
            self.write(output, &frame)?;
            loop {
                match self.input.message::<Reply>() {
                    Ok(Some(Reply::Pong { number: of, .. })) if of == number => break,
                    Ok(Some(_)) => continue,
                    Ok(None) => {}
                    Err(error) => return Err(self.unreachable(error.to_string())),
                }
                match self.input.wait(patience.deadline) {
                    Ok(Waited::Bytes) => {}
                    Ok(Waited::Nothing) => {
                        let seconds = seconds(patience.deadline);
                        return Err(self.unreachable(format!("it did not answer within {seconds}")));
                    }
                    Ok(Waited::End) | Err(_) => {
                        return Err(self.unreachable(self.end.reason("")));
                    }
                }
            }
            times.record(nanos(self.input.arrived() - sent));
            if begun.elapsed() > FIRST_PINGS_FOR {
                break;
            }
        }
        Ok(times)
    }
}

/// Reads replies until the channel ends.
struct Reader {
    name: String,
    index: usize,
    input: Input,
    state: Arc<Mutex<State>>,
    end: Arc<dyn LinkEnd>,
    received: Arc<Counter>,
    events: Sender<(usize, Event)>,
}

impl Reader {
    fn run(mut self) {
        let host = self.name.clone();
        let error = loop {
            let message = self.input.message::<Reply>();
            self.received.add(u64::from(matches!(message, Ok(Some(_)))), 0);
            match message {
                Ok(Some(Reply::Pong { number, progress })) => self.pong(number, progress),
                Ok(Some(reply)) => {
                    if self.events.send((self.index, Event::Reply(reply))).is_err() {
                        return;
                    }
                }
                // What ends the channel ends its input. Whoever waits for a reply looks for silent hosts.
                Ok(None) => match self.input.wait(Duration::MAX) {
                    Ok(Waited::Bytes) => {
                        lock(&self.state).hear(self.input.arrived());
                        self.received.add(0, self.input.count());
                    }
                    Ok(Waited::Nothing) => {}
                    Ok(Waited::End) | Err(_) => {
                        break RemoteError::Ended { host, reason: self.end.reason("") };
                    }
                },
                Err(error) => break RemoteError::Channel { host, reason: error.to_string() },
            }
        };
        let _ = self.events.send((self.index, Event::Ended(error)));
    }

    fn pong(&self, number: u64, progress: Option<(u32, Progress)>) {
        let mut state = lock(&self.state);
        if let Some(sent) = state.pings.remove(&number) {
            let round_trip = self.input.arrived().saturating_duration_since(sent);
            state.round_trips.record(nanos(round_trip));
            state.median = None;
            if state.fresh.len() < MOST_FRESH {
                state.fresh.push(round_trip);
            }
        }
        state.progress = progress.or(state.progress.take());
    }
}

/// A length of time in seconds, as text: `10 s`, `0.5 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_millis() as f64 / 1e3)
}

/// The value, also after a thread that held it has panicked: each change of it is complete in itself.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
