//! Owns: what happens on a worker's connections: connecting, sending, receiving, and what becomes of a request when
//! something fails. Must not know when requests are due.

use rustix::io::Errno;

use crate::answer::Wrong;
use crate::connection::{InFlight, Link};
use crate::driver::{Driver, Event};
use crate::outcome::Outcome;
use crate::slice::Slice;
use crate::tally::{Cause, MAX_MISMATCH_BODY, MAX_MISMATCHES, Mismatch, Sample};
use crate::transport::{Received, TlsFailure, Transport};
use crate::worker::{BACKOFF_NS, Worker};

impl<D: Driver> Worker<D> {
    /// Does what an event asks for.
    #[inline]
    pub(crate) fn happened(&mut self, slice: &mut Slice, index: usize, event: Event, now_ns: u64) {
        match event {
            Event::Data => self.data(slice, index, now_ns),
            Event::Connected => self.connected(slice, index, now_ns),
            Event::Refused(error) => self.connect_failed(slice, index, system(error)),
            Event::Writable => self.flush(slice, index),
            Event::Unsendable => self.connections[index].unsendable = true,
            Event::Ended => self.ended(slice, index, now_ns),
            Event::Broken(error) => {
                let write = self.connections[index].unsendable;
                self.broken(slice, index, if write { Outcome::Write } else { Outcome::Read }, system(error));
            }
        }
    }

    /// Begins to connect. The caller has seen to it that the time for an attempt has come.
    pub(crate) fn connect(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        connection.congested = false;
        match self.driver.connect(index, &self.target) {
            Ok(()) => connection.link = Link::Connecting { since_ns: now_ns },
            Err(Errno::AGAIN) => {
                self.connect_error = Some(system(Errno::AGAIN));
                self.failing = true;
                connection.congested = true;
                connection.not_before_ns = now_ns + BACKOFF_NS;
                if connection.request.is_none() {
                    slice.tally.not_opened(system(Errno::AGAIN));
                }
            }
            Err(error) => self.connect_failed(slice, index, system(error)),
        }
    }

    /// Closes a connection; the request on it, if any, stays.
    pub(crate) fn close(&mut self, index: usize) {
        self.driver.close(index);
        self.open -= usize::from(self.connections[index].link == Link::Open);
        self.connections[index].link = Link::Closed;
        self.connections[index].transport = Transport::Plain;
    }

    /// The connection is made; its transport may need a handshake yet.
    fn connected(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        connection.unsendable = false;
        match Transport::new(self.settings.tls.as_ref()) {
            Ok(transport) => connection.transport = transport,
            Err(failure) => return self.connect_failed(slice, index, Cause::Tls(failure.to_string())),
        }
        if connection.transport.is_handshaking() {
            self.flush(slice, index);
        } else {
            self.is_open(slice, index, now_ns);
        }
    }

    fn is_open(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        slice.tally.reconnects += 1;
        self.failing = false;
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
        let connection = &mut self.connections[index];
        connection.link = Link::Open;
        connection.used = false;
        connection.heard_ns = now_ns;
        if connection.request.is_some() {
            self.send(slice, index, now_ns);
        } else {
            self.next(slice, index, now_ns, now_ns);
        }
    }

    pub(crate) fn connect_failed(&mut self, slice: &mut Slice, index: usize, cause: Cause) {
        self.connect_error = Some(cause.clone());
        self.failing = true;
        if self.connections[index].request.is_none() {
            slice.tally.not_opened(cause.clone());
        }
        self.fail(slice, index, Outcome::Connect, cause);
    }

    /// Ends the request on a connection, if there is one, without an answer, and closes the connection.
    pub(crate) fn fail(&mut self, slice: &mut Slice, index: usize, outcome: Outcome, cause: Cause) {
        let now_ns = self.clock.now_ns();
        self.close(index);
        let connection = &mut self.connections[index];
        connection.not_before_ns = now_ns + BACKOFF_NS;
        if let Some(request) = connection.request.take() {
            slice.failed(&request, outcome, cause, now_ns);
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// Writes the request on an open connection from its beginning.
    #[inline]
    pub(crate) fn send(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        let Some(request) = &mut connection.request else { return };
        connection.rest.clear();
        connection.answering = false;
        connection.written = 0;
        request.sent_ns = now_ns;
        self.flush(slice, index);
    }

    /// Hands what is left to be written on a connection to the driver, as much as it takes.
    #[inline]
    fn flush(&mut self, slice: &mut Slice, index: usize) {
        let connection = &mut self.connections[index];
        let left = match &connection.request {
            Some(request) if connection.link == Link::Open => {
                &self.requests.prepared()[request.prepared as usize].bytes[connection.written..]
            }
            _ => &[],
        };
        // The server may have answered and closed before it had read all: what it sent is still to come.
        let mut failed = false;
        let written = connection.transport.send(left, |wire| match self.driver.send(index, wire) {
            Ok(count) => {
                slice.tally.bytes_written += count as u64;
                count
            }
            Err(_) => {
                failed = true;
                0
            }
        });
        connection.unsendable |= failed | written.is_err();
        connection.written += written.unwrap_or(0);
    }

    /// Takes in bytes that have come.
    #[inline]
    fn data(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        slice.tally.bytes_read += self.driver.data().len() as u64;
        let early = self.driver.overtaken(index);
        if self.connections[index].transport.is_plain() {
            self.take_in(slice, index, early, now_ns)
        } else {
            self.decrypt(slice, index, early, now_ns)
        }
    }

    /// Takes in bytes that do not pass as they are: what they say, then what they do to the connection.
    fn decrypt(&mut self, slice: &mut Slice, index: usize, early: bool, now_ns: u64) {
        let connection = &mut self.connections[index];
        self.plain.clear();
        let received = connection.transport.receive(self.driver.data(), &mut self.plain);
        self.flush(slice, index);
        if matches!(received, Ok(Received { established: true, .. }))
            && matches!(self.connections[index].link, Link::Connecting { .. })
        {
            self.is_open(slice, index, now_ns);
        }
        let open = self.connections[index].link == Link::Open;
        if open && !self.plain.is_empty() {
            self.take_in(slice, index, early, now_ns);
            if self.connections[index].link != Link::Open {
                // Closed by what came, and perhaps being made again.
                return;
            }
        }
        match received {
            Err(failure) if open => self.broken(slice, index, Outcome::Read, Cause::Tls(failure.to_string())),
            Err(failure) => self.connect_failed(slice, index, Cause::Tls(failure.to_string())),
            Ok(Received { closed: true, .. }) if open => self.ended(slice, index, now_ns),
            Ok(_) => {}
        }
    }

    /// Takes in bytes of an answer, unless they came too `early` to be one to the request on the connection.
    #[inline]
    fn take_in(&mut self, slice: &mut Slice, index: usize, early: bool, now_ns: u64) {
        let connection = &mut self.connections[index];
        let data = connection.transport.received(self.driver.data(), &self.plain);
        let Some(request) = &connection.request else {
            return self.unasked(slice, index, now_ns);
        };
        if early {
            return self.fail(slice, index, Outcome::Protocol, Cause::Answer(Wrong::Surplus));
        }
        let whole = !connection.answering && !request.sample;
        if whole && let Some(status) = self.memo.same(request.prepared, data) {
            return self.answered_as_before(slice, index, status, now_ns);
        }
        if !connection.answering {
            let prepared = &self.requests.prepared()[request.prepared as usize];
            connection.parser.begin(prepared.head);
            connection.check.begin(&prepared.expect.body, request.sample);
            connection.answering = true;
        }
        let input = if connection.rest.is_empty() {
            data
        } else {
            connection.rest.extend_from_slice(data);
            connection.rest.as_slice()
        };
        match connection.parser.advance(input, &mut connection.check) {
            Ok(step) if step.complete && step.consumed == input.len() => {
                self.answered(slice, index, now_ns, whole);
            }
            Ok(step) if !step.complete => {
                if connection.rest.is_empty() {
                    connection.rest.extend_from_slice(&data[step.consumed..]);
                } else {
                    connection.rest.drain(..step.consumed);
                }
            }
            Ok(_) => self.fail(slice, index, Outcome::Protocol, Cause::Answer(Wrong::Surplus)),
            Err(wrong) => self.fail(slice, index, Outcome::Protocol, Cause::Answer(wrong)),
        }
    }

    /// The answer on a connection is complete, and the same as one that was right.
    #[inline]
    fn answered_as_before(&mut self, slice: &mut Slice, index: usize, status: u16, now_ns: u64) {
        let connection = &mut self.connections[index];
        let Some(request) = connection.request.take() else { return };
        self.memo.worked(request.prepared);
        slice.answered(&request, Outcome::Ok, status, now_ns, &self.settings.gauge);
        connection.heard(&request, now_ns);
        self.after_answer(slice, index, &request, true, now_ns);
    }

    /// The answer on a connection is complete; `whole` says that its bytes are all that came last.
    #[inline]
    fn answered(&mut self, slice: &mut Slice, index: usize, now_ns: u64, whole: bool) {
        let connection = &mut self.connections[index];
        let Some(request) = connection.request.take() else { return };
        let expect = self.requests.prepared()[request.prepared as usize].expect;
        // A connection whose request asked for its end is not used again, even where the server would keep it.
        let keep = connection.parser.keep_alive() & !self.requests.is_last(request.prepared);
        let status = connection.parser.status();
        let outcome = connection.check.judge(&expect, status);
        slice.answered(&request, outcome, status, now_ns, &self.settings.gauge);
        connection.heard(&request, now_ns);
        let data = connection.transport.received(self.driver.data(), &self.plain);
        if outcome == Outcome::Ok {
            if whole && keep {
                self.memo.keep(request.prepared, data, status);
            }
        } else if slice.tally.mismatches.len() < MAX_MISMATCHES {
            let input = if connection.rest.is_empty() { data } else { &connection.rest };
            let piece = connection.check.last_piece(input);
            slice.tally.mismatches.push(Mismatch {
                request: request.prepared,
                expected: expect,
                status,
                length: connection.check.length(),
                digest: connection.check.digest(),
                body: piece[..piece.len().min(MAX_MISMATCH_BODY)].to_vec(),
            });
        }
        if let Some(body) = connection.check.take_copy() {
            let truncated = body.len() as u64 != connection.check.length();
            slice.tally.samples.push(Sample { request: request.prepared, status, body, truncated });
        }
        self.after_answer(slice, index, &request, keep, now_ns);
    }

    /// Closes the connection if it cannot be used again, and goes on with it.
    #[inline]
    fn after_answer(&mut self, slice: &mut Slice, index: usize, request: &InFlight, keep: bool, now_ns: u64) {
        let connection = &mut self.connections[index];
        let unsent = connection.written < self.requests.prepared()[request.prepared as usize].bytes.len();
        if unsent || !keep || connection.unsendable {
            self.close(index);
            slice.tally.closed_by_server += 1;
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// The server sends no more.
    fn ended(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &self.connections[index];
        let cut_off = connection.transport.can_be_cut_off();
        if connection.link != Link::Open {
            let cause = if cut_off { Cause::Tls(TlsFailure::Ended.to_string()) } else { Cause::Closed };
            self.connect_failed(slice, index, cause);
        } else if connection.request.is_none() {
            self.closed_idle(slice, index, now_ns);
        } else if connection.answering && connection.parser.ends_with_close() && !cut_off {
            self.answered(slice, index, now_ns, false);
        } else {
            let outcome =
                if connection.unsendable && !connection.answering { Outcome::Write } else { Outcome::Read };
            self.broken(slice, index, outcome, Cause::Closed);
        }
    }

    /// Bytes came that nobody had asked for. One that says why an idle connection is closed is in order; whatever else it
    /// is, the next bytes might be taken for an answer to another request.
    fn unasked(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &self.connections[index];
        let data = connection.transport.received(self.driver.data(), &self.plain);
        if data.starts_with(b"HTTP/1.1 408") {
            return self.closed_idle(slice, index, now_ns);
        }
        slice.tally.unsolicited += 1;
        self.done_with(slice, index, now_ns);
    }

    /// The server is done with a connection on which nothing was owed.
    fn closed_idle(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        slice.tally.closed_by_server += 1;
        self.done_with(slice, index, now_ns);
    }

    /// Closes a connection on which nothing is owed, and goes on with it.
    fn done_with(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        self.close(index);
        let connection = &mut self.connections[index];
        if !connection.used {
            // Closed as soon as it was made: not to be tried without pause.
            connection.not_before_ns = now_ns + BACKOFF_NS;
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// The connection broke under a request: that is an error, unless the server may have closed it before it read the
    /// request, and may be asked again.
    fn broken(&mut self, slice: &mut Slice, index: usize, outcome: Outcome, cause: Cause) {
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[index];
        if connection.link != Link::Open {
            return self.connect_failed(slice, index, cause);
        }
        let Some(request) = &connection.request else {
            return self.closed_idle(slice, index, now_ns);
        };
        let idempotent = self.requests.prepared()[request.prepared as usize].is_idempotent();
        let overtaken = self.driver.overtaken(index);
        if !idempotent || !connection.may_retry(overtaken, now_ns) {
            return self.fail(slice, index, outcome, cause);
        }
        if let Some(request) = &mut connection.request {
            request.retried = true;
        }
        self.close(index);
        slice.tally.retried += 1;
        slice.tally.closed_by_server += 1;
        self.connect(slice, index, now_ns);
    }
}

fn system(error: Errno) -> Cause {
    Cause::System(error.raw_os_error())
}
