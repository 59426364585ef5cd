//! Gathers the requests of a file: which are sent, which are the same, in which order, and when.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use deadheat_load::{RecordedRequest, RecordedTimes, Recording, StatusSet, request_bytes};
use deadheat_record::{LogContents, LogFormat, LogReading};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::stamp::Stamp;
use super::{
    BrokenLine, Entry, Line, MOST_BROKEN, MOST_DISTINCT, MOST_REQUESTS, Reason, RecordedTraffic,
    SAFE_METHODS, SHOWN, TrafficError,
};
use crate::file::{shown, tamed};

/// Most different methods that an account lists.
const MOST_METHODS: usize = 20;
/// Determines how requests spread over the unit of their times. It is fixed, so that the same log always gives the same arrivals.
const SEED: u64 = 1;

/// The requests so far.
pub(super) struct Gathering<'r> {
    reading: &'r LogReading,
    format: LogFormat,
    statuses: StatusSet,
    host: Option<String>,
    known: HashMap<RecordedRequest, u32>,
    lines: Vec<u64>,
    order: Vec<u32>,
    /// When each request of `order` was sent. Shorter if some did not say.
    stamps: Vec<Stamp>,
    /// The last time as written, and what it means: many lines have the same.
    last_time: Option<(String, Stamp)>,
    contents: LogContents,
    broken: Vec<BrokenLine>,
}

impl<'r> Gathering<'r> {
    /// Nothing so far.
    pub(super) fn new(reading: &'r LogReading, format: LogFormat) -> Result<Self, TrafficError> {
        Ok(Self {
            reading,
            format,
            statuses: reading.statuses.as_deref().unwrap_or(LogReading::STATUSES).parse()?,
            host: reading.host.clone(),
            known: HashMap::new(),
            lines: Vec::new(),
            order: Vec::new(),
            stamps: Vec::new(),
            last_time: None,
            contents: LogContents::default(),
            broken: Vec::new(),
        })
    }

    /// Leaves out requests to other hosts.
    pub(super) fn keep_to(&mut self, host: Option<String>) {
        self.host = host;
    }

    /// Adds what line `number` says; `text` is the line.
    pub(super) fn add(&mut self, number: u64, text: &[u8], line: Line) -> Result<(), TrafficError> {
        self.contents.lines += 1;
        match line {
            Line::Request(entry) => self.request(number, text, entry)?,
            Line::LeftOut(reason) => self.leave_out(&reason),
            Line::Broken(problem) => self.break_off(number, text, problem),
        }
        Ok(())
    }

    fn leave_out(&mut self, reason: &Reason) {
        let words = reason.words(self.reading.statuses.as_deref().unwrap_or(LogReading::STATUSES));
        let left_out = &mut self.contents.left_out;
        let full = left_out.len() >= MOST_METHODS && !left_out.contains_key(&words);
        *left_out.entry(if full { "other reasons".into() } else { words }).or_default() += 1;
    }

    fn break_off(&mut self, line: u64, text: &[u8], problem: String) {
        self.contents.broken += 1;
        if self.broken.len() < SHOWN {
            let text = shown(&String::from_utf8_lossy(&text[..text.len().min(400)]));
            // An error can contain text of the file.
            self.broken.push(BrokenLine { line, text, problem: tamed(&problem) });
        }
    }

    fn request(&mut self, number: u64, text: &[u8], entry: Entry) -> Result<(), TrafficError> {
        if let Some(reason) = self.unwanted(&entry) {
            self.leave_out(&reason);
            return Ok(());
        }
        let stamp = match &entry.time {
            None => None,
            Some(time) => match self.stamp(time) {
                Some(stamp) => Some(stamp),
                None => {
                    self.break_off(number, text, format!("its time `{}` cannot be read", shown(time)));
                    return Ok(());
                }
            },
        };
        let Entry { method, target, headers, body, .. } = entry;
        let request = RecordedRequest { method, target, headers, body };
        let index = match self.known.get(&request) {
            Some(index) => *index,
            None => {
                let RecordedRequest { method, target, headers, body } = &request;
                if let Err(error) = request_bytes(method, target, "host", headers, body) {
                    self.break_off(number, text, error.to_string());
                    return Ok(());
                }
                if self.lines.len() == MOST_DISTINCT {
                    return Err(TrafficError::TooMany { most: MOST_DISTINCT, what: "different requests" });
                }
                let index = self.lines.len() as u32;
                self.known.insert(request, index);
                self.lines.push(number);
                index
            }
        };
        if self.order.len() == MOST_REQUESTS {
            return Err(TrafficError::TooMany { most: MOST_REQUESTS, what: "requests" });
        }
        self.order.push(index);
        match stamp {
            Some(stamp) => self.stamps.push(stamp),
            None => self.contents.untimed += 1,
        }
        Ok(())
    }

    fn unwanted(&self, entry: &Entry) -> Option<Reason> {
        let allowed = |method: &String| {
            SAFE_METHODS.contains(&method.as_str()) || self.reading.allow_methods.contains(method)
        };
        let there = |wanted: &str, found: &str| {
            let without_port = found.rsplit_once(':').map_or(found, |(host, _)| host);
            wanted.eq_ignore_ascii_case(found) || wanted.eq_ignore_ascii_case(without_port)
        };
        if !allowed(&entry.method) {
            return Some(Reason::Method(entry.method.clone()));
        }
        match (self.host.as_deref(), entry.host.as_deref()) {
            (Some(_), None) => return Some(Reason::NoHost),
            (Some(wanted), Some(found)) if !there(wanted, found) => return Some(Reason::OtherHost),
            _ => {}
        }
        entry.status.filter(|status| !self.statuses.contains(*status)).map(|_| Reason::Status)
    }

    fn stamp(&mut self, time: &str) -> Option<Stamp> {
        if let Some((_, stamp)) = self.last_time.as_ref().filter(|(last, _)| last == time) {
            return Some(*stamp);
        }
        let stamp = Stamp::parse(time, self.reading.time_format.as_deref())?;
        self.last_time = Some((time.to_owned(), stamp));
        Some(stamp)
    }

    /// All requests; `sha256` is the digest of the file.
    pub(super) fn finish(mut self, sha256: String) -> Result<RecordedTraffic, TrafficError> {
        if self.contents.broken * 100 > self.contents.lines * MOST_BROKEN {
            let (broken, lines) = (self.contents.broken, self.contents.lines);
            return Err(TrafficError::Broken { broken, lines, first: self.broken });
        }
        self.contents.sha256 = sha256;
        self.contents.requests = self.order.len() as u64;
        self.contents.distinct = self.lines.len() as u64;
        if self.order.is_empty() {
            return Err(TrafficError::Nothing(Box::new(self.contents)));
        }
        let timed = self.stamps.len() == self.order.len();
        let times = if timed { by_time(&mut self.order, &self.stamps) } else { None };
        self.contents.span_ns = times.as_ref().map(|times| times.at_ns(times.len() - 1));
        // The map's order is random: sort the requests by their index.
        let requests: BTreeMap<u32, RecordedRequest> =
            self.known.into_iter().map(|(request, index)| (index, request)).collect();
        let recording = Recording {
            requests: requests.into_values().collect(),
            lines: self.lines,
            order: self.order,
            times: times.map(Arc::new),
        };
        Ok(RecordedTraffic { recording, contents: self.contents, broken: self.broken, format: self.format })
    }
}

/// Sorts the order by time, because servers write a line when the request ends, and several processes write to one log. Returns the times;
/// none if all are the same.
fn by_time(order: &mut [u32], stamps: &[Stamp]) -> Option<RecordedTimes> {
    let mut all: Vec<(Stamp, u32)> = stamps.iter().copied().zip(order.iter().copied()).collect();
    all.sort_by_key(|(stamp, _)| stamp.ns);
    order.iter_mut().zip(&all).for_each(|(place, (_, index))| *place = *index);
    let times = spread(all.iter().map(|(stamp, _)| *stamp).collect());
    RecordedTimes::new(times).ok()
}

/// The times in nanoseconds. Requests with the same time were sent at any time within its unit: they spread over it at random, as those of
/// independent users. Otherwise a log with whole seconds would become a burst every second.
fn spread(stamps: Vec<Stamp>) -> Vec<u64> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let first_ns = stamps.first().map_or(0, |stamp| stamp.ns);
    let mut times: Vec<u64> = stamps
        .iter()
        .map(|stamp| {
            let since_ns = stamp.ns.saturating_sub(first_ns).unsigned_abs();
            let within_ns = if stamp.unit_ns > 1 { random.random_range(0..stamp.unit_ns as u64) } else { 0 };
            since_ns.saturating_add(within_ns)
        })
        .collect();
    times.sort_unstable();
    times
}
