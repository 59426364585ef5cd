//! A worker with a protocol and a driver that differ greatly from the real ones.

use super::*;
use crate::address::Address;
use crate::driver::Event;
use crate::limit::Limit;
use crate::outcome::Outcomes;
use crate::pacer::Pacer;
use crate::protocol::body::BodyCheck;
use crate::protocol::http1::Wrong;
use crate::protocol::{Answered, Asked, Body, Ended, Protocol};
use crate::request::{BodyRule, Expectation, Prepared, StatusRule};

/// What the server asks before it answers, and the reply that it expects.
const ENQUIRY: u8 = 5;
const ACKNOWLEDGEMENT: u8 = 6;

/// Requests are lines, answers are five bytes long.
struct Lines {
    out: Vec<u8>,
    left: usize,
    check: BodyCheck,
}

impl Protocol for Lines {
    /// The number of answers so far.
    type Shared = u16;

    fn shared(_: &[Prepared]) -> u16 {
        0
    }

    fn new() -> Lines {
        Lines { out: vec![], left: 5, check: BodyCheck::new() }
    }

    fn start(&mut self, request: &Prepared) {
        self.out.clone_from(&request.bytes);
        self.left = 5;
        self.check.begin(&request.expect.body, false);
    }

    fn unsent<'a>(&'a self, _: Option<&'a Prepared>) -> &'a [u8] {
        &self.out
    }

    fn took(&mut self, count: usize) {
        self.out.drain(..count);
    }

    fn receive(
        &mut self,
        answers: &mut u16,
        asked: Asked<'_>,
        bytes: &[u8],
    ) -> Result<Option<Answered>, Wrong> {
        if bytes == [ENQUIRY] {
            self.out.push(ACKNOWLEDGEMENT);
            return Ok(None);
        }
        self.left = self.left.checked_sub(bytes.len()).ok_or(Wrong::Surplus)?;
        self.check.take(bytes);
        if self.left > 0 {
            return Ok(None);
        }
        *answers += 1;
        let outcome = self.check.judge(&asked.request.expect, *answers);
        Ok(Some(Answered { status: *answers, outcome, reusable: true }))
    }

    fn is_farewell(&self, _: &[u8]) -> bool {
        false
    }

    fn ended(&mut self, _: &u16, _: Asked<'_>) -> Ended {
        if self.left < 5 { Ended::Partial } else { Ended::Nothing }
    }

    fn may_repeat(&self, _: &Prepared) -> bool {
        self.left == 5
    }

    fn body<'a>(&'a mut self, bytes: &'a [u8]) -> Body<'a> {
        Body { length: 5, digest: self.check.digest(), last: bytes, copy: None }
    }
}

/// A server in memory that takes three bytes at a time.
struct Memory {
    events: VecDeque<(usize, Event, &'static [u8])>,
    last: (Event, &'static [u8]),
    line: Vec<u8>,
    lines: usize,
}

impl Memory {
    fn say(&mut self, slot: usize, pieces: &[&'static [u8]]) {
        self.events.extend(pieces.iter().map(|piece| (slot, Event::Data, *piece)));
    }

    fn heard(&mut self, slot: usize, byte: u8) {
        match byte {
            ACKNOWLEDGEMENT => self.say(slot, &[b"hello"]),
            b'\n' => {
                assert_eq!(std::mem::take(&mut self.line), b"how are you?");
                self.lines += 1;
                match self.lines {
                    2 => self.say(slot, &[b"he", b"llo"]),
                    3 => self.say(slot, &[&[ENQUIRY]]),
                    4 => self.say(slot, &[b"hullo"]),
                    5 => self.say(slot, &[b"hello!"]),
                    6 => self.say(slot, &[b"he"]),
                    8 => {}
                    _ => self.say(slot, &[b"hello"]),
                }
                if matches!(self.lines, 6 | 8) {
                    self.events.push_back((slot, Event::Ended, b""));
                }
            }
            _ => self.line.push(byte),
        }
    }
}

impl Driver for Memory {
    const NAME: &'static str = "memory";
    const FRESH: u32 = 1;

    fn new(_: usize) -> Result<Memory, Errno> {
        Ok(Memory { events: VecDeque::new(), last: (Event::Data, b""), line: vec![], lines: 0 })
    }

    fn connect(&mut self, slot: usize, _: &Target) -> Result<(), Errno> {
        self.events.push_back((slot, Event::Connected, b""));
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let count = bytes.len().min(3);
        if count < bytes.len() {
            self.events.push_back((slot, Event::Writable, b""));
        }
        bytes[..count].iter().for_each(|byte| self.heard(slot, *byte));
        Ok(count)
    }

    /// Every end of a connection counts as sent before the last request arrived.
    fn overtaken(&mut self, _: usize) -> bool {
        self.last.0 == Event::Ended
    }

    fn close(&mut self, slot: usize) {
        self.events.retain(|(other, ..)| *other != slot);
        self.line.clear();
    }

    fn hand_over(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn wait(&mut self, _: Wake) -> Result<(), Errno> {
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        let (slot, event, data) = self.events.pop_front()?;
        self.last = (event, data);
        Some((slot, event))
    }

    fn data(&self) -> &[u8] {
        self.last.1
    }
}

#[test]
fn any_protocol_runs_on_any_driver() {
    let target = Target::new(&Address::Unix("/nowhere".into())).unwrap();
    let expect = Expectation { status: StatusRule::Any, body: BodyRule::exactly(b"hello") };
    let bytes = b"how are you?\n".to_vec();
    let requests = Arc::new(Requests::one(Prepared { bytes, head: false, expect }));
    let settings = Settings {
        connections: 1,
        max_connections: 1,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(5),
        tls: None,
        sample_every: 0,
        spin: true,
        stop: Arc::default(),
        gauge: Arc::new(Gauge::new()),
    };
    let mut worker = Worker::<Memory, Lines>::new(target, requests, settings).unwrap();
    let order = WorkerOrder {
        pacer: Pacer::Closed,
        limit: Limit::requests(9),
        settle: Duration::ZERO,
        first: 0,
        index: 0,
        workers: 1,
        max_samples: 0,
    };
    let prepared = worker.prepare(&order).unwrap();
    assert_eq!(worker.opened(), (1, 1, None));
    let tally = worker.run(&order, prepared).unwrap();
    let wanted = Outcomes { ok: 6, mismatch: 1, protocol: 1, read: 1, ..Outcomes::default() };
    assert_eq!((tally.due, tally.outcomes), (9, wanted), "{:?}", tally.faults);
    let statuses: Vec<(u16, u64)> = tally.status.iter().collect();
    assert_eq!(statuses, (1..=7).map(|count| (count, 1)).collect::<Vec<_>>());
    assert_eq!((tally.mismatches.len(), tally.mismatches[0].body.as_slice()), (1, b"hullo".as_slice()));
    assert_eq!((tally.retried, tally.closed_by_server, tally.reconnects), (1, 1, 4));
    // Ten lines, one of them repeated, and an acknowledgement.
    assert_eq!((tally.bytes_written, worker.driver.lines), (10 * 13 + 1, 10));
}
