//! Owns: one worker's event loop: its connections, what happens on each, and when a slice is over. Must not know other
//! workers, channels or threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::answer::HEAD_LIMIT;
use crate::connection::{Connection, InFlight, Link};
use crate::driver::{self, Clock, Driver, Readiness, Target};
use crate::outcome::Outcome;
use crate::requests::Requests;
use crate::slice::{Slice, WorkerOrder, after};
use crate::source::Job;
use crate::tally::Tally;

/// Timeouts are checked, and connections tried again, this often.
const TICK_NS: u64 = 10_000_000;
/// After a failure a connection is not tried again before this has passed.
const BACKOFF_NS: u64 = 10_000_000;
/// Waking up takes about this long, so that the last stretch before a due time is spent awake.
const WAKE_NS: u64 = 80_000;
/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// What stays the same for all slices of a worker.
pub(crate) struct Settings {
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
    /// The body of each n-th request is kept; 0: none.
    pub(crate) sample_every: u32,
    pub(crate) stop: Arc<AtomicBool>,
}

/// One worker: its connections and the means to wait for them.
pub(crate) struct Worker {
    driver: Driver,
    target: Target,
    clock: Clock,
    settings: Settings,
    requests: Arc<Requests>,
    connections: Vec<Connection>,
    /// Connections that may be free, longest free first. Only open slices use it.
    free: VecDeque<u32>,
    /// What is read, behind what was left of the last read of the same connection.
    buffer: Vec<u8>,
    /// Requests until the next sample.
    until_sample: u32,
    connect_error: Option<Errno>,
}

impl Worker {
    pub(crate) fn new(
        target: Target,
        connections: usize,
        requests: Arc<Requests>,
        settings: Settings,
    ) -> Result<Worker, Errno> {
        Ok(Worker {
            driver: Driver::new()?,
            target,
            clock: Clock::new(),
            settings,
            requests,
            connections: (0..connections).map(|_| Connection::new()).collect(),
            free: VecDeque::with_capacity(connections),
            buffer: vec![0; HEAD_LIMIT + READ_SIZE],
            until_sample: 0,
            connect_error: None,
        })
    }

    pub(crate) fn set_requests(&mut self, requests: Arc<Requests>) {
        self.requests = requests;
    }

    /// How many connections are open, of how many, and why the last one that failed did.
    pub(crate) fn opened(&self) -> (usize, usize, Option<Errno>) {
        let open = self.connections.iter().filter(|connection| connection.link == Link::Open).count();
        (open, self.connections.len(), self.connect_error)
    }

    /// Finds out which connections the server has closed since the last slice, and opens them again; each is tried once,
    /// for at most the connect timeout. What fails is tried again by the request that wants it.
    pub(crate) fn prepare(&mut self, order: &WorkerOrder) -> Result<Tally, Errno> {
        let begun_ns = self.clock.now_ns();
        let end_ns = after(begun_ns, self.settings.connect_timeout);
        let mut slice = Slice::preparing(order, begun_ns);
        while self.poll(&mut slice, 0)? > 0 {}
        loop {
            let now_ns = self.clock.now_ns();
            let mut pending = false;
            for index in 0..self.connections.len() {
                let connection = &self.connections[index];
                if connection.link == Link::Closed && now_ns >= connection.not_before_ns {
                    self.connect(&mut slice, index, now_ns);
                }
                let connection = &self.connections[index];
                pending |= matches!(connection.link, Link::Connecting { .. })
                    || (connection.link == Link::Closed && connection.congested);
            }
            if !pending || now_ns >= end_ns {
                return Ok(slice.tally);
            }
            self.poll(&mut slice, TICK_NS / 1_000_000)?;
        }
    }

    /// Runs a slice to its end; `prepared` is what its preparation yielded.
    pub(crate) fn run(&mut self, order: &WorkerOrder, prepared: Tally) -> Result<Tally, Errno> {
        let cpu_ns = driver::thread_cpu_ns();
        let mut slice = Slice::running(order, self.settings.timeout, self.clock.now_ns());
        slice.tally.reconnects = prepared.reconnects;
        slice.tally.closed_by_server = prepared.closed_by_server;
        slice.tally.bytes_read = prepared.bytes_read;
        self.free.clear();
        let now_ns = self.clock.now_ns();
        if self.settings.stop.load(Ordering::Relaxed) {
            slice.end_at(now_ns, self.settings.timeout);
        }
        for connection in &mut self.connections {
            connection.used = true;
            connection.listed = false;
        }
        for index in 0..self.connections.len() {
            self.next(&mut slice, index, now_ns, now_ns);
        }
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= slice.next_tick_ns {
                self.tick(&mut slice, now_ns);
            }
            self.dispatch(&mut slice, now_ns);
            if slice.is_finished(now_ns) {
                break;
            }
            if now_ns >= slice.cut_ns {
                self.cut(&mut slice, now_ns);
                break;
            }
            self.wait(&mut slice, now_ns)?;
        }
        Ok(slice.finish(self.clock.now_ns(), driver::thread_cpu_ns() - cpu_ns))
    }

    /// Waits for readiness, the next due time or the next tick.
    fn wait(&mut self, slice: &mut Slice, now_ns: u64) -> Result<(), Errno> {
        let tick_ns = slice.next_tick_ns.min(slice.cut_ns).saturating_sub(now_ns);
        let mut millis = tick_ns.div_ceil(1_000_000);
        if let Some(alarm_ns) = slice.next_alarm_ns(now_ns) {
            match (alarm_ns - now_ns).checked_sub(WAKE_NS) {
                Some(in_ns) => self.driver.ring(alarm_ns, in_ns)?,
                None => millis = 0,
            }
        }
        self.poll(slice, millis)?;
        Ok(())
    }

    fn poll(&mut self, slice: &mut Slice, millis: u64) -> Result<usize, Errno> {
        let ready = self.driver.wait(millis)?;
        for index in 0..ready {
            if let Some(readiness) = self.driver.readiness(index) {
                self.ready(slice, readiness);
            }
        }
        Ok(ready)
    }

    fn ready(&mut self, slice: &mut Slice, readiness: Readiness) {
        let index = (readiness.token & 0xffff_ffff) as usize;
        let connection = &self.connections[index];
        if connection.generation != (readiness.token >> 32) as u32 {
            return;
        }
        match connection.link {
            Link::Closed => return,
            Link::Connecting { .. } if !(readiness.writable || readiness.hangup) => return,
            Link::Connecting { .. } => {
                if !self.connected(slice, index) {
                    return;
                }
            }
            Link::Open => {
                if readiness.writable {
                    self.write(slice, index);
                }
            }
        }
        let same = self.connections[index].generation == (readiness.token >> 32) as u32;
        if same && (readiness.readable || readiness.hangup) {
            self.read(slice, index, readiness.hangup);
        }
    }

    /// Open slices: hands requests that are due to free connections. Where none is open and idle, one that could not be
    /// opened takes it, so that a dead server shows as failures to connect.
    fn dispatch(&mut self, slice: &mut Slice, now_ns: u64) {
        while slice.source.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            let Some(index) = self.take_free(now_ns) else { return };
            let Some(job) = slice.source.when_due(now_ns) else { return };
            self.begin(slice, index, job, now_ns);
        }
    }

    fn take_free(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(index) = self.free.pop_front() {
            let connection = &mut self.connections[index as usize];
            connection.listed = false;
            // One that failed is tried again by the tick until then: it takes requests only if nothing else can.
            if connection.is_free() {
                return Some(index as usize);
            }
        }
        let failing =
            |c: &Connection| c.link == Link::Closed && c.request.is_none() && c.not_before_ns > now_ns;
        let any_open = self.connections.iter().any(|connection| connection.link != Link::Closed);
        if any_open { None } else { self.connections.iter().position(failing) }
    }

    /// A connection has nothing to do since `free_ns`: closed slices give it its next request.
    fn next(&mut self, slice: &mut Slice, index: usize, free_ns: u64, now_ns: u64) {
        if let Some(job) = slice.source.when_free(free_ns, now_ns) {
            return self.begin(slice, index, job, now_ns);
        }
        if !slice.source.is_open() {
            return;
        }
        let connection = &mut self.connections[index];
        if connection.is_free() {
            if !connection.listed {
                connection.listed = true;
                self.free.push_back(index as u32);
            }
        } else if connection.link == Link::Closed && now_ns >= connection.not_before_ns {
            self.connect(slice, index, now_ns);
        }
    }

    fn begin(&mut self, slice: &mut Slice, index: usize, job: Job, now_ns: u64) {
        let sample = self.settings.sample_every > 0 && self.until_sample == 0 && slice.samples_left > 0;
        if sample {
            slice.samples_left -= 1;
            self.until_sample = self.settings.sample_every;
        }
        self.until_sample = self.until_sample.saturating_sub(1);
        slice.took();
        let connection = &mut self.connections[index];
        connection.request = Some(InFlight {
            prepared: self.requests.at(job.position),
            intended_ns: job.intended_ns,
            taken_ns: now_ns,
            sent_ns: now_ns,
            sample,
            retried: false,
        });
        if connection.link == Link::Open {
            self.send(slice, index);
        } else if now_ns >= connection.not_before_ns {
            self.connect(slice, index, now_ns);
        }
    }

    /// Begins to connect. The caller has seen to it that the time for an attempt has come.
    fn connect(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        connection.congested = false;
        connection.generation = connection.generation.wrapping_add(1);
        let token = (u64::from(connection.generation) << 32) | index as u64;
        let begun = self.target.connect().and_then(|(socket, done)| {
            self.driver.watch(&socket, token)?;
            Ok((socket, done))
        });
        match begun {
            Ok((socket, done)) => {
                connection.socket = Some(socket);
                connection.link = Link::Connecting { since_ns: now_ns };
                if done {
                    self.is_open(slice, index);
                }
            }
            Err(Errno::AGAIN) => {
                self.connect_error = Some(Errno::AGAIN);
                connection.congested = true;
                connection.not_before_ns = now_ns + BACKOFF_NS;
            }
            Err(error) => self.connect_failed(slice, index, error),
        }
    }

    /// A connection that was being made is made or has failed; says which.
    fn connected(&mut self, slice: &mut Slice, index: usize) -> bool {
        let Some(socket) = &self.connections[index].socket else { return false };
        match driver::connected(socket) {
            Ok(()) => {
                self.is_open(slice, index);
                true
            }
            Err(error) => {
                self.connect_failed(slice, index, error);
                false
            }
        }
    }

    fn is_open(&mut self, slice: &mut Slice, index: usize) {
        slice.tally.reconnects += 1;
        let connection = &mut self.connections[index];
        connection.link = Link::Open;
        connection.used = false;
        if connection.request.is_some() {
            self.send(slice, index);
        } else {
            let now_ns = self.clock.now_ns();
            self.next(slice, index, now_ns, now_ns);
        }
    }

    fn connect_failed(&mut self, slice: &mut Slice, index: usize, error: Errno) {
        self.connect_error = Some(error);
        self.fail(slice, index, Outcome::Connect);
    }

    /// Ends the request on a connection, if there is one, without an answer, and closes the connection.
    fn fail(&mut self, slice: &mut Slice, index: usize, outcome: Outcome) {
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[index];
        connection.close();
        connection.not_before_ns = now_ns + BACKOFF_NS;
        if connection.request.take().is_some() {
            slice.failed(outcome);
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// Writes the request on an open connection from its beginning.
    #[inline]
    fn send(&mut self, slice: &mut Slice, index: usize) {
        let connection = &mut self.connections[index];
        let Some(request) = &mut connection.request else { return };
        let prepared = &self.requests.prepared()[request.prepared as usize];
        connection.parser.begin(prepared.head);
        connection.check.begin(&prepared.expect.body, request.sample);
        connection.rest.clear();
        connection.answering = false;
        connection.written = 0;
        request.sent_ns = self.clock.now_ns();
        self.write(slice, index);
    }

    /// Writes what is left of the request on a connection.
    #[inline]
    fn write(&mut self, slice: &mut Slice, index: usize) {
        loop {
            let connection = &mut self.connections[index];
            let (Some(request), Some(socket)) = (&connection.request, &connection.socket) else { return };
            let left = &self.requests.prepared()[request.prepared as usize].bytes[connection.written..];
            if left.is_empty() {
                return;
            }
            match driver::send(socket, left) {
                Ok(count) => {
                    connection.written += count;
                    slice.tally.bytes_written += count as u64;
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // The server may have answered and closed before it had read all: what it sent is still to be read.
                Err(_) if connection.written > 0 => return self.read(slice, index, true),
                Err(_) => return self.broken(slice, index, Outcome::Write),
            }
        }
    }

    /// Reads what has come. After a hangup everything is read up to the end.
    #[inline]
    fn read(&mut self, slice: &mut Slice, index: usize, hangup: bool) {
        loop {
            let connection = &mut self.connections[index];
            let Some(socket) = &connection.socket else { return };
            let kept = connection.rest.len();
            match driver::receive(socket, &mut self.buffer[kept..kept + READ_SIZE]) {
                Ok(0) => return self.ended(slice, index),
                Ok(count) => {
                    slice.tally.bytes_read += count as u64;
                    if !self.parse(slice, index, kept + count, hangup) || (count < READ_SIZE && !hangup) {
                        return;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => return self.broken(slice, index, Outcome::Read),
            }
        }
    }

    /// Parses the first `length` bytes of the buffer, the last of which have just been read; says whether to read on.
    #[inline]
    fn parse(&mut self, slice: &mut Slice, index: usize, length: usize, hangup: bool) -> bool {
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[index];
        if connection.request.is_none() {
            // Bytes that nobody asked for, such as a 408 before an idle connection is closed.
            self.closed_idle(slice, index, now_ns);
            return false;
        }
        let kept = connection.rest.len();
        self.buffer[..kept].copy_from_slice(&connection.rest);
        connection.rest.clear();
        connection.answering = true;
        let input = &self.buffer[..length];
        match connection.parser.advance(input, &mut connection.check) {
            Ok(step) if step.complete && step.consumed == length => {
                self.answered(slice, index, now_ns, hangup);
                false
            }
            Ok(step) if !step.complete => {
                connection.rest.extend_from_slice(&input[step.consumed..]);
                true
            }
            _ => {
                self.fail(slice, index, Outcome::Protocol);
                false
            }
        }
    }

    /// The answer on a connection is complete.
    #[inline]
    fn answered(&mut self, slice: &mut Slice, index: usize, now_ns: u64, hangup: bool) {
        let connection = &mut self.connections[index];
        let Some(request) = connection.request.take() else { return };
        slice.answered(connection, &request, &self.requests, now_ns);
        connection.used = true;
        let unsent = connection.written < self.requests.prepared()[request.prepared as usize].bytes.len();
        if hangup || unsent || !connection.parser.keep_alive() {
            connection.close();
            slice.tally.closed_by_server += 1;
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// The server closed the connection.
    fn ended(&mut self, slice: &mut Slice, index: usize) {
        let now_ns = self.clock.now_ns();
        let connection = &self.connections[index];
        if connection.request.is_none() {
            self.closed_idle(slice, index, now_ns);
        } else if connection.answering && connection.parser.ends_with_close() {
            self.answered(slice, index, now_ns, true);
        } else {
            self.broken(slice, index, Outcome::Read);
        }
    }

    /// The server is done with a connection on which nothing was owed.
    fn closed_idle(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        connection.close();
        if !connection.used {
            // Closed as soon as it was made: not to be tried without pause.
            connection.not_before_ns = now_ns + BACKOFF_NS;
        }
        slice.tally.closed_by_server += 1;
        self.next(slice, index, now_ns, now_ns);
    }

    /// The connection broke under a request: that is an error, unless the server may have closed it while idle.
    fn broken(&mut self, slice: &mut Slice, index: usize, outcome: Outcome) {
        let connection = &mut self.connections[index];
        if connection.request.is_none() {
            let now_ns = self.clock.now_ns();
            return self.closed_idle(slice, index, now_ns);
        }
        if !connection.may_retry() {
            return self.fail(slice, index, outcome);
        }
        if let Some(request) = &mut connection.request {
            request.retried = true;
        }
        connection.close();
        slice.tally.retried += 1;
        slice.tally.closed_by_server += 1;
        let now_ns = self.clock.now_ns();
        self.connect(slice, index, now_ns);
    }

    /// What need not be exact: timeouts, new attempts to connect, the wish to stop.
    fn tick(&mut self, slice: &mut Slice, now_ns: u64) {
        slice.next_tick_ns = now_ns + TICK_NS;
        if self.settings.stop.load(Ordering::Relaxed) {
            slice.end_at(now_ns, self.settings.timeout);
        }
        let patience = self.settings.timeout.saturating_mul(2).saturating_add(self.settings.connect_timeout);
        if !slice.has_deadline() && now_ns > after(slice.last_answer_ns, patience) {
            slice.tally.gave_up = true;
            slice.end_at(now_ns, self.settings.timeout);
        }
        for index in 0..self.connections.len() {
            self.tick_connection(slice, index, now_ns);
        }
    }

    fn tick_connection(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &self.connections[index];
        let late = connection.request.is_some_and(|r| now_ns >= after(r.taken_ns, self.settings.timeout));
        match connection.link {
            Link::Open if late => self.fail(slice, index, Outcome::Timeout),
            Link::Open => {}
            Link::Connecting { since_ns } => {
                if late || now_ns >= after(since_ns, self.settings.connect_timeout) {
                    self.connect_failed(slice, index, Errno::TIMEDOUT);
                }
            }
            Link::Closed if late => self.fail(slice, index, Outcome::Connect),
            Link::Closed => {
                let wanted = connection.request.is_some() || slice.source.is_open();
                if wanted && now_ns >= connection.not_before_ns {
                    self.connect(slice, index, now_ns);
                }
            }
        }
    }

    /// The slice must end: what is unanswered is cut, and its connection cannot be used any more.
    fn cut(&mut self, slice: &mut Slice, now_ns: u64) {
        self.tick(slice, now_ns);
        for connection in &mut self.connections {
            if connection.request.take().is_some() {
                connection.close();
                slice.failed(Outcome::Cut);
            }
        }
        slice.cut_waiting(now_ns);
    }
}
