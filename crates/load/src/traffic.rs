//! Owns: what happens on a worker's connections: connecting, sending, receiving, and what happens to a request after a
//! failure. Must not know when requests are due.

use rustix::io::Errno;

use crate::connection::{InFlight, Link};
use crate::driver::{Driver, Event};
use crate::outcome::Outcome;
use crate::protocol::http1::Wrong;
use crate::protocol::{Answered, Asked, Ended, Protocol};
use crate::requests::Requests;
use crate::slice::Slice;
use crate::tally::{Cause, MAX_MISMATCH_BODY, MAX_MISMATCHES, Mismatch, Sample};
use crate::transport::{Received, TlsFailure, Transport};
use crate::worker::{BACKOFF_NS, Worker};

impl<D: Driver, P: Protocol> Worker<D, P> {
    /// Handles an event.
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

    /// Begins to connect. The caller makes sure that an attempt is allowed now.
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

    /// Closes a connection, but keeps any request on it.
    pub(crate) fn close(&mut self, index: usize) {
        self.driver.close(index);
        self.open -= usize::from(self.connections[index].link == Link::Open);
        self.connections[index].link = Link::Closed;
        self.connections[index].transport = Transport::Plain;
    }

    /// The connection is made; its transport may still need a handshake.
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

    /// Ends the request on a connection, if any, without an answer, and closes the connection.
    pub(crate) fn fail(&mut self, slice: &mut Slice, index: usize, outcome: Outcome, cause: Cause) {
        let now_ns = self.clock.now_ns();
        self.close(index);
        let connection = &mut self.connections[index];
        // Pause only if the server takes no connections or answers none. Otherwise the pause would add to the latency of the next request.
        if outcome == Outcome::Connect || !connection.used {
            connection.not_before_ns = now_ns + BACKOFF_NS;
        }
        if let Some(request) = connection.request.take() {
            slice.failed(&request, outcome, cause, now_ns);
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// Sends the request on an open connection from its beginning.
    #[inline]
    pub(crate) fn send(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        let Some(request) = &mut connection.request else { return };
        request.sent_ns = now_ns;
        connection.protocol.start(&self.requests.prepared()[request.prepared as usize]);
        self.flush(slice, index);
    }

    /// Passes the unsent bytes of a connection to the driver, as many as it takes.
    #[inline]
    fn flush(&mut self, slice: &mut Slice, index: usize) {
        let connection = &mut self.connections[index];
        let request = connection.request.as_ref();
        let request = request.map(|request| &self.requests.prepared()[request.prepared as usize]);
        let unsent = if connection.link == Link::Open { connection.protocol.unsent(request) } else { &[] };
        // The server may have answered and closed before it read everything. Its answer may still come.
        let mut failed = false;
        let taken = connection.transport.send(unsent, |wire| match self.driver.send(index, wire) {
            Ok(count) => {
                slice.tally.bytes_written += count as u64;
                count
            }
            Err(_) => {
                failed = true;
                0
            }
        });
        connection.unsendable |= failed | taken.is_err();
        connection.protocol.took(taken.unwrap_or(0));
    }

    /// Processes received bytes.
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

    /// Processes received bytes of an encrypted connection: first the decrypted bytes, then the new state of the
    /// connection.
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
                // Processing the bytes closed the connection, which may already be connecting again.
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

    /// Passes received bytes to the protocol; `early` says that they were sent before the request on the connection can
    /// have arrived.
    #[inline]
    fn take_in(&mut self, slice: &mut Slice, index: usize, early: bool, now_ns: u64) {
        let connection = &mut self.connections[index];
        let Some(request) = &connection.request else {
            return self.unasked(slice, index, now_ns);
        };
        let bytes = connection.transport.received(self.driver.data(), &self.plain);
        let asked = asked(&self.requests, request, early);
        match connection.protocol.receive(&mut self.shared, asked, bytes) {
            Ok(Some(answered)) => self.answered(slice, index, answered, now_ns),
            // The protocol may have bytes to send in reply.
            Ok(None) => self.flush(slice, index),
            Err(wrong) => self.fail(slice, index, Outcome::Protocol, Cause::Answer(wrong)),
        }
    }

    /// The answer on a connection is complete.
    #[inline]
    fn answered(&mut self, slice: &mut Slice, index: usize, answered: Answered, now_ns: u64) {
        let connection = &mut self.connections[index];
        let Some(request) = connection.request.take() else { return };
        slice.answered(&request, answered.outcome, answered.status, now_ns, &self.settings.gauge);
        connection.heard(&request, now_ns);
        let mismatch = answered.outcome != Outcome::Ok && slice.tally.mismatches.len() < MAX_MISMATCHES;
        if mismatch || request.sample {
            self.keep_body(slice, index, &request, answered.status, mismatch);
        }
        let connection = &mut self.connections[index];
        if !answered.reusable || connection.unsendable {
            self.close(index);
            slice.tally.closed_by_server += 1;
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// Keeps the body of an answer that is a `mismatch` or a sample, for the tally.
    #[cold]
    fn keep_body(
        &mut self,
        slice: &mut Slice,
        index: usize,
        request: &InFlight,
        status: u16,
        mismatch: bool,
    ) {
        let connection = &mut self.connections[index];
        let bytes = connection.transport.received(self.driver.data(), &self.plain);
        let body = connection.protocol.body(bytes);
        if mismatch {
            slice.tally.mismatches.push(Mismatch {
                request: request.prepared,
                expected: self.requests.prepared()[request.prepared as usize].expect,
                status,
                length: body.length,
                digest: body.digest,
                body: body.last[..body.last.len().min(MAX_MISMATCH_BODY)].to_vec(),
            });
        }
        if let Some(copy) = body.copy {
            let truncated = copy.len() as u64 != body.length;
            slice.tally.samples.push(Sample { request: request.prepared, status, body: copy, truncated });
        }
    }

    /// The server sends nothing more.
    fn ended(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &mut self.connections[index];
        let cut_off = connection.transport.can_be_cut_off();
        if connection.link != Link::Open {
            let cause = if cut_off { Cause::Tls(TlsFailure::Ended.to_string()) } else { Cause::Closed };
            return self.connect_failed(slice, index, cause);
        }
        let Some(request) = &connection.request else {
            return self.closed_idle(slice, index, now_ns);
        };
        let ended = connection.protocol.ended(&self.shared, asked(&self.requests, request, false));
        let outcome = match ended {
            Ended::Complete(answered) if !cut_off => return self.answered(slice, index, answered, now_ns),
            Ended::Nothing if connection.unsendable => Outcome::Write,
            _ => Outcome::Read,
        };
        self.broken(slice, index, outcome, Cause::Closed);
    }

    /// Handles bytes that answer no request. A message that explains why the server closes an idle connection is in
    /// order. Otherwise the connection is closed, because the next bytes might be mistaken for the answer to another
    /// request.
    fn unasked(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        let connection = &self.connections[index];
        let bytes = connection.transport.received(self.driver.data(), &self.plain);
        if connection.protocol.is_farewell(bytes) {
            return self.closed_idle(slice, index, now_ns);
        }
        slice.tally.unsolicited += 1;
        self.connect_error = Some(Cause::Answer(Wrong::StatusLine));
        self.done_with(slice, index, now_ns);
    }

    /// The server has closed a connection on which no answer was owed.
    fn closed_idle(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        slice.tally.closed_by_server += 1;
        if !self.connections[index].used {
            self.connect_error = Some(Cause::Closed);
        }
        self.done_with(slice, index, now_ns);
    }

    /// Closes a connection on which no answer is owed, and makes it available again.
    fn done_with(&mut self, slice: &mut Slice, index: usize, now_ns: u64) {
        self.close(index);
        let connection = &mut self.connections[index];
        if !connection.used {
            // The server closed the connection right after it was made: pause before the next attempt.
            connection.not_before_ns = now_ns + BACKOFF_NS;
        }
        self.next(slice, index, now_ns, now_ns);
    }

    /// The connection broke during a request. That is an error, unless the server may have closed it before it read the
    /// request, and the request may be sent again.
    fn broken(&mut self, slice: &mut Slice, index: usize, outcome: Outcome, cause: Cause) {
        let now_ns = self.clock.now_ns();
        let connection = &mut self.connections[index];
        if connection.link != Link::Open {
            return self.connect_failed(slice, index, cause);
        }
        let Some(request) = &connection.request else {
            return self.closed_idle(slice, index, now_ns);
        };
        let prepared = &self.requests.prepared()[request.prepared as usize];
        let overtaken = self.driver.overtaken(index);
        if !connection.protocol.may_repeat(prepared) || !connection.may_retry(overtaken, now_ns) {
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

/// What a protocol needs to know about the request on a connection.
#[inline]
fn asked<'a>(requests: &'a Requests, request: &InFlight, early: bool) -> Asked<'a> {
    let index = request.prepared;
    Asked { request: &requests.prepared()[index as usize], index, sample: request.sample, early }
}

fn system(error: Errno) -> Cause {
    Cause::System(error.raw_os_error())
}
