//! Owns: one worker's loop: when each request begins, on which connection, and when a slice is over. Must not know
//! other workers, channels or threads. `traffic` handles what happens on a connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use crate::connection::{Connection, InFlight, Link};
use crate::driver::{Clock, Driver, Target, Wake, os};
use crate::gauge::Gauge;
use crate::outcome::Outcome;
use crate::protocol::Protocol;
use crate::requests::Requests;
use crate::slice::{Before, Slice, WorkerOrder, after, nanos};
use crate::source::Job;
use crate::tally::{Cause, Tally};
use crate::transport::TlsSettings;

/// Interval at which timeouts are checked and connections are tried again.
const TICK_NS: u64 = 10_000_000;
/// Pause after a failed attempt to connect, before the connection is tried again.
pub(crate) const BACKOFF_NS: u64 = 10_000_000;

/// Open slices: at most this many events or sends lie between reading the clock for a due request and handing the
/// request to the kernel. A ring would otherwise keep the request back until all events were processed and all other
/// due requests were queued. That can take hundreds of microseconds, which would count as service and not as send lag,
/// although the request had not left. Handing over costs one call for this many requests, and only where there are more
/// events than that, so that a worker with little to do makes none. Closed slices gather as many sends as they can,
/// because their requests are intended when they are sent.
const SOON: u32 = 4;

/// Shortest time between two additions of connections. Each adds one in `GROWTH_SHARE` of the existing connections, and
/// at least one.
const GROWTH_NS: u64 = 1_000_000;
const GROWTH_SHARE: usize = 64;

/// The settings that are the same for all slices of a worker.
pub(crate) struct Settings {
    /// Number of connections opened before the first slice, and the maximum in open slices.
    pub(crate) connections: usize,
    pub(crate) max_connections: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) tls: Option<TlsSettings>,
    /// Keep the body of every n-th answer; 0: keep none.
    pub(crate) sample_every: u32,
    /// Whether the worker stays awake for the whole slice, so that the server does not spend time on waking it.
    pub(crate) spin: bool,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) gauge: Arc<Gauge>,
}

/// One worker, with its connections and driver.
pub(crate) struct Worker<D, P: Protocol> {
    pub(crate) driver: D,
    pub(crate) target: Target,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) requests: Arc<Requests>,
    pub(crate) shared: P::Shared,
    /// The plain bytes of the last data on an encrypted connection.
    pub(crate) plain: Vec<u8>,
    pub(crate) connections: Vec<Connection<P>>,
    /// The first `active` connections are in use. The others are opened on demand.
    pub(crate) active: usize,
    /// Number of connections that are open, and the maximum since the slice began.
    pub(crate) open: usize,
    pub(crate) most_open: usize,
    /// Connections that may be free, the longest free first. Only open slices use it.
    free: VecDeque<u32>,
    /// Requests until the next sample.
    until_sample: u32,
    /// Extra time to work on each request.
    handicap_ns: u64,
    pub(crate) connect_error: Option<Cause>,
    /// Whether the last completed attempt to connect failed.
    pub(crate) failing: bool,
}

impl<D: Driver, P: Protocol> Worker<D, P> {
    pub(crate) fn new(
        target: Target,
        requests: Arc<Requests>,
        settings: Settings,
    ) -> Result<Worker<D, P>, Errno> {
        os::sharpen_timers();
        let slots = settings.max_connections.max(settings.connections);
        Ok(Worker {
            driver: D::new(slots)?,
            target,
            clock: Clock::new(),
            shared: P::shared(requests.prepared()),
            plain: Vec::new(),
            requests,
            connections: (0..slots).map(|_| Connection::new(P::new())).collect(),
            active: settings.connections,
            open: 0,
            most_open: 0,
            settings,
            free: VecDeque::with_capacity(slots),
            until_sample: 0,
            handicap_ns: 0,
            connect_error: None,
            failing: false,
        })
    }

    pub(crate) fn set_handicap(&mut self, handicap: Duration) {
        self.handicap_ns = nanos(handicap);
    }

    /// Works for the length of the handicap; returns the time afterwards.
    #[cold]
    fn work_longer(&self) -> u64 {
        let begun_ns = self.clock.now_ns();
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns - begun_ns >= self.handicap_ns {
                return now_ns;
            }
        }
    }

    /// How many connections are open, how many were wanted, and the error of the last failed attempt.
    pub(crate) fn opened(&self) -> (usize, usize, Option<Cause>) {
        (self.open, self.settings.connections, self.connect_error.clone())
    }

    /// Finds connections that the server has closed since the last slice, and opens each again: one attempt, for at
    /// most the connect timeout. If that fails, the request that needs the connection tries again.
    pub(crate) fn prepare(&mut self, order: &WorkerOrder) -> Result<Tally, Errno> {
        let begun_ns = self.clock.now_ns();
        let end_ns = after(begun_ns, self.settings.connect_timeout);
        let mut slice = Slice::preparing(order, begun_ns);
        while self.poll(&mut slice, Wake::Now)? > 0 {}
        loop {
            let now_ns = self.clock.now_ns();
            let mut pending = false;
            for index in 0..self.active {
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
            self.poll(&mut slice, Wake::Within(TICK_NS))?;
        }
    }

    /// Runs a slice to its end; `prepared` is the tally of its preparation.
    pub(crate) fn run(&mut self, order: &WorkerOrder, prepared: Tally) -> Result<Tally, Errno> {
        let (cpu_ns, waited) = (os::thread_cpu_ns(), os::thread_run_delay());
        let gauge = self.settings.gauge.clone();
        let before = Before::of(&gauge);
        let mut slice = Slice::running(order, self.settings.timeout, self.clock.now_ns());
        slice.tally.reconnects = prepared.reconnects;
        slice.tally.closed_by_server = prepared.closed_by_server;
        slice.tally.bytes_read = prepared.bytes_read;
        slice.tally.unopened = prepared.unopened;
        slice.tally.unsolicited = prepared.unsolicited;
        self.most_open = self.open;
        self.begin_all(&mut slice);
        // Since when the worker has only looked for events and found none; `None` after anything else.
        let mut idle_since_ns = None;
        // The first look after work hands over what that work queued, so it counts as work too.
        let mut handed_over = false;
        loop {
            let now_ns = self.clock.now_ns();
            slice.tally.spin_ns += idle_since_ns.map_or(0, |since_ns| now_ns - since_ns);
            if now_ns >= slice.next_tick_ns {
                self.tick(&mut slice, now_ns);
                slice.note_backlog(now_ns);
                slice.show(&gauge, &before);
                gauge.connections.store(self.open as u64, Ordering::Relaxed);
            }
            let due = slice.tally.due;
            let now_ns = self.dispatch(&mut slice, now_ns)?;
            if slice.is_finished(now_ns) {
                break;
            }
            if now_ns >= slice.cut_ns {
                self.cut(&mut slice, now_ns);
                break;
            }
            let idle = self.wait(&mut slice, now_ns)? && slice.tally.due == due;
            idle_since_ns = (idle && handed_over).then_some(now_ns);
            handed_over = idle;
        }
        slice.show(&gauge, &before);
        let mut tally = slice.finish(self.clock.now_ns(), self.most_open);
        tally.cpu_ns = os::thread_cpu_ns().saturating_sub(cpu_ns);
        // Idle time is wall time, and includes time during which other programs had the CPU.
        tally.spin_ns = tally.spin_ns.min(tally.cpu_ns);
        let waits = waited.zip(os::thread_run_delay());
        tally.run_delay_ns = waits.map(|(before, after)| after.0.saturating_sub(before.0));
        tally.runs = waits.map(|(before, after)| after.1.saturating_sub(before.1));
        Ok(tally)
    }

    fn begin_all(&mut self, slice: &mut Slice) {
        self.free.clear();
        let now_ns = self.clock.now_ns();
        if self.settings.stop.load(Ordering::Relaxed) {
            slice.end_at(now_ns, self.settings.timeout);
        }
        for connection in &mut self.connections {
            connection.rest();
            connection.listed = false;
        }
        for index in 0..self.active {
            self.next(slice, index, now_ns, now_ns);
        }
    }

    /// Waits for events, the next due time or the next tick. Returns true if the worker stayed awake and found nothing.
    fn wait(&mut self, slice: &mut Slice, now_ns: u64) -> Result<bool, Errno> {
        if self.settings.spin {
            std::hint::spin_loop();
            return Ok(self.poll(slice, Wake::Now)? == 0);
        }
        let mut tick_ns = slice.next_tick_ns.min(slice.cut_ns).saturating_sub(now_ns);
        if slice.is_due(now_ns) && self.active < self.connections.len() {
            tick_ns = tick_ns.min(GROWTH_NS);
        }
        let alarm_ns = slice.next_alarm_ns(now_ns).filter(|at| at - now_ns < tick_ns);
        let wake =
            alarm_ns.map_or(Wake::Within(tick_ns), |due_ns| Wake::At { due_ns, in_ns: due_ns - now_ns });
        self.poll(slice, wake)?;
        Ok(false)
    }

    /// Waits as `wake` says, then processes all events; returns how many there were.
    fn poll(&mut self, slice: &mut Slice, wake: Wake) -> Result<usize, Errno> {
        self.driver.wait(wake)?;
        let open = slice.source.is_open();
        let fresh = if open { D::FRESH.min(SOON) } else { D::FRESH };
        let (mut count, mut until_fresh, mut now_ns, mut due) = (0, 0, 0, slice.tally.due);
        while let Some((index, event)) = self.driver.next() {
            if until_fresh == 0 {
                if open && slice.tally.due != due {
                    self.driver.hand_over()?;
                    due = slice.tally.due;
                }
                now_ns = self.clock.now_ns();
                until_fresh = fresh;
            }
            until_fresh -= 1;
            count += 1;
            self.happened(slice, index, event, now_ns);
            if slice.is_due(now_ns) {
                self.dispatch(slice, now_ns)?;
            }
        }
        Ok(count)
    }

    /// Open slices: gives due requests to free connections. If all connections are closed, one that failed to open
    /// takes the request, so that a dead server shows as failures to connect. Returns the time up to which it checked
    /// for due requests.
    fn dispatch(&mut self, slice: &mut Slice, mut now_ns: u64) -> Result<u64, Errno> {
        let mut begun = 0;
        while slice.is_due(now_ns) {
            if begun == SOON {
                self.driver.hand_over()?;
                (now_ns, begun) = (self.clock.now_ns(), 0);
            }
            let Some(index) = self.take_free(now_ns) else {
                slice.blocked(now_ns);
                self.grow(slice, now_ns);
                return Ok(now_ns);
            };
            let Some(job) = slice.source.when_due(now_ns) else { return Ok(now_ns) };
            self.begin(slice, index, job, now_ns);
            begun += 1;
        }
        slice.unblocked();
        Ok(now_ns)
    }

    fn take_free(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(index) = self.free.pop_front() {
            let connection = &mut self.connections[index as usize];
            connection.listed = false;
            // A connection that failed to open is left to the tick. It takes requests only if no other connection can.
            if connection.is_free() {
                return Some(index as usize);
            }
        }
        let active = &self.connections[..self.active];
        let failing =
            |c: &Connection<P>| c.link == Link::Closed && c.request.is_none() && c.not_before_ns > now_ns;
        let any_open = active.iter().any(|connection| connection.link != Link::Closed);
        if any_open { None } else { active.iter().position(failing) }
    }

    /// Opens more connections while requests wait, up to the maximum. It does not open all at once, because then a
    /// pause of the server would cause a storm of connections. It opens none while a connection attempt has failed: the
    /// tick tries that one again, and others would fail too.
    fn grow(&mut self, slice: &mut Slice, now_ns: u64) {
        if self.active == self.connections.len() || self.failing || now_ns < slice.next_growth_ns {
            return;
        }
        slice.next_growth_ns = now_ns + GROWTH_NS;
        let connecting = |c: &&Connection<P>| matches!(c.link, Link::Connecting { .. });
        let under_way = self.connections[..self.active].iter().filter(connecting).count();
        let waiting = usize::try_from(slice.source.waiting(now_ns)).unwrap_or(usize::MAX);
        let step = (self.active / GROWTH_SHARE).max(1);
        let room = self.connections.len() - self.active;
        for _ in 0..waiting.saturating_sub(under_way).min(step).min(room) {
            self.active += 1;
            self.connect(slice, self.active - 1, now_ns);
        }
    }

    /// A connection has been free since `free_ns`. In closed slices it gets its next request.
    #[inline]
    pub(crate) fn next(&mut self, slice: &mut Slice, index: usize, free_ns: u64, now_ns: u64) {
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

    #[inline]
    fn begin(&mut self, slice: &mut Slice, index: usize, job: Job, now_ns: u64) {
        let sample = self.settings.sample_every > 0 && self.until_sample == 0 && slice.samples_left > 0;
        if sample {
            slice.samples_left -= 1;
            self.until_sample = self.settings.sample_every;
        }
        self.until_sample = self.until_sample.saturating_sub(1);
        let now_ns = if self.handicap_ns > 0 { self.work_longer() } else { now_ns };
        let waited_ns = slice.waited_ns(job.intended_ns, now_ns);
        slice.took(job.intended_ns, waited_ns, now_ns);
        let connection = &mut self.connections[index];
        connection.request = Some(InFlight {
            prepared: self.requests.at(job.position),
            intended_ns: job.intended_ns,
            taken_ns: now_ns,
            sent_ns: now_ns,
            waited_ns,
            sample,
            retried: false,
        });
        if connection.link == Link::Open {
            self.send(slice, index, now_ns);
        } else if connection.link == Link::Closed && now_ns >= connection.not_before_ns {
            self.connect(slice, index, now_ns);
        }
    }

    /// Does what need not be exact: timeouts, attempts to reconnect, the stop signal.
    fn tick(&mut self, slice: &mut Slice, now_ns: u64) {
        slice.next_tick_ns = now_ns + TICK_NS;
        if self.settings.stop.load(Ordering::Relaxed) {
            slice.end_at(now_ns, self.settings.timeout);
        }
        let patience = self.settings.timeout.saturating_mul(2).saturating_add(self.settings.connect_timeout);
        if slice.silence_ns(now_ns) > nanos(patience) && !slice.has_deadline() {
            slice.tally.gave_up = true;
            slice.end_at(now_ns, self.settings.timeout);
        }
        for index in 0..self.active {
            self.tick_connection(slice, index, now_ns);
        }
    }

    fn tick_connection(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &self.connections[index];
        let late = connection.request.is_some_and(|r| now_ns >= after(r.taken_ns, self.settings.timeout));
        match connection.link {
            Link::Open if late => self.fail(slice, index, Outcome::Timeout, Cause::Time),
            Link::Open => {}
            Link::Connecting { since_ns } => {
                if late || now_ns >= after(since_ns, self.settings.connect_timeout) {
                    self.connect_failed(slice, index, Cause::Time);
                }
            }
            Link::Closed if late => self.fail(slice, index, Outcome::Connect, Cause::Time),
            Link::Closed => {
                let wanted = connection.request.is_some() || slice.source.is_open();
                if wanted && now_ns >= connection.not_before_ns {
                    self.connect(slice, index, now_ns);
                }
            }
        }
    }

    /// Ends the slice: unanswered requests are cut, and their connections cannot be used any more.
    fn cut(&mut self, slice: &mut Slice, now_ns: u64) {
        self.tick(slice, now_ns);
        for index in 0..self.connections.len() {
            if let Some(request) = self.connections[index].request.take() {
                self.close(index);
                slice.failed(&request, Outcome::Cut, Cause::Time, now_ns);
            }
        }
        slice.cut_waiting(now_ns);
    }
}

#[cfg(test)]
mod tests;
