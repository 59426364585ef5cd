//! Owns: the state of one connection and of the request on it, for any protocol. Must not know what comes next or how
//! things are counted.

use crate::transport::Transport;

/// If a connection ends within this time after a request was sent, the end may have been on its way before.
const UNDER_WAY_NS: u64 = 1_000_000;
/// A server may close a connection for being idle after this time.
const IDLE_NS: u64 = 100_000_000;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Closed,
    /// Being opened since this time, including the TLS handshake.
    Connecting {
        since_ns: u64,
    },
    Open,
}

/// A request from when a connection takes it up until its outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    /// Index into the prepared requests.
    pub(crate) prepared: u32,
    pub(crate) intended_ns: u64,
    /// When the connection took it; timeouts count from here.
    pub(crate) taken_ns: u64,
    /// When it was last handed to the driver.
    pub(crate) sent_ns: u64,
    /// How long it waited because no connection was free.
    pub(crate) waited_ns: u64,
    pub(crate) sample: bool,
    pub(crate) retried: bool,
}

/// One connection. Times are on the worker's clock.
pub(crate) struct Connection<P> {
    pub(crate) link: Link,
    /// Do not try to connect before this time.
    pub(crate) not_before_ns: u64,
    /// The last attempt found the server's queue full. That is not an error; the worker only tries again.
    pub(crate) congested: bool,
    /// Whether the server has shown that it accepts requests on this connection: it has carried an answer, or is older
    /// than the slice.
    pub(crate) used: bool,
    /// When the connection was made or its last answer came; 0 if that was before the slice.
    pub(crate) heard_ns: u64,
    /// Time from sending to the last answer; 0 before the slice's first answer.
    pub(crate) service_ns: u64,
    /// Whether the connection is in the worker's list of free connections.
    pub(crate) listed: bool,
    pub(crate) request: Option<InFlight>,
    /// Sending has failed. If the other side then sends nothing more, the write counts as the failure.
    pub(crate) unsendable: bool,
    pub(crate) protocol: P,
    pub(crate) transport: Transport,
}

impl<P> Connection<P> {
    pub(crate) fn new(protocol: P) -> Connection<P> {
        Connection {
            link: Link::Closed,
            not_before_ns: 0,
            congested: false,
            used: false,
            heard_ns: 0,
            service_ns: 0,
            listed: false,
            request: None,
            unsendable: false,
            protocol,
            transport: Transport::Plain,
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.request.is_none() && self.link == Link::Open
    }

    /// A complete answer to `request` has come.
    #[inline]
    pub(crate) fn heard(&mut self, request: &InFlight, now_ns: u64) {
        self.used = true;
        self.heard_ns = now_ns;
        self.service_ns = now_ns.saturating_sub(request.sent_ns);
    }

    /// Prepares for a new slice. Earlier events no longer count, because the server may have been stopped since.
    pub(crate) fn rest(&mut self) {
        self.used = true;
        (self.heard_ns, self.service_ns) = (0, 0);
    }

    /// Whether the server may have ended the connection, which ends at `now_ns`, before it read the request on it. RFC
    /// 9112, section 9.3.1, allows no more than a guess. It requires that no byte of an answer has come, and that the
    /// connection has carried an answer before or is older than the slice. In addition, one of these must hold:
    ///
    /// - the end has certainly `overtaken` the request,
    /// - the request is the connection's first one in the slice: a server that was stopped may close the connection
    ///   when it resumes,
    /// - the server may have closed the connection as idle just when the request was sent: it had been idle for 100 ms,
    ///   and the end came within 1 ms,
    /// - the server may have closed it right after its last answer: the end came within 1 ms, and sooner than that
    ///   answer.
    ///
    /// A server that reads a request and closes instead of answering needs about as long as for an answer. So at most
    /// about half of such failures look like the last case. Two other servers count as failed: one that waits longer
    /// before it closes after an answer, and a distant one that closes idle connections. A request is repeated at most
    /// once, and each repetition is counted.
    pub(crate) fn may_retry(&self, overtaken: bool, now_ns: u64) -> bool {
        let Some(request) = self.request.filter(|request| !request.retried) else { return false };
        if !self.used {
            return false;
        }
        let idle_ns = request.sent_ns.saturating_sub(self.heard_ns);
        let within_ns = if idle_ns >= IDLE_NS { UNDER_WAY_NS } else { self.service_ns.min(UNDER_WAY_NS) };
        overtaken || self.heard_ns == 0 || now_ns.saturating_sub(request.sent_ns) < within_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_only_where_the_end_may_have_been_under_way() {
        let request = InFlight {
            prepared: 0,
            intended_ns: 0,
            taken_ns: 0,
            sent_ns: 0,
            waited_ns: 0,
            sample: false,
            retried: false,
        };
        // When the last answer came, how long it took, when the request was sent, and when the end came.
        let may = |heard_ns, service_ns, sent_ns, now_ns, overtaken| {
            let again = Some(InFlight { sent_ns, retried: true, ..request });
            let request = Some(InFlight { sent_ns, ..request });
            let connection = Connection { used: true, heard_ns, service_ns, request, ..Connection::new(()) };
            let unused = Connection { used: false, request, ..Connection::new(()) };
            let repeated = Connection { used: true, request: again, ..Connection::new(()) };
            let never = [unused, repeated, Connection::new(())];
            assert!(!never.iter().any(|connection| connection.may_retry(true, now_ns)));
            connection.may_retry(overtaken, now_ns)
        };
        let (us, ms, at) = (1_000, 1_000_000, 5_000_000_000);
        assert!(may(at, 50 * us, at, at + 20 * us, false), "sooner than an answer");
        assert!(!may(at, 50 * us, at, at + 60 * us, false), "as late as an answer");
        assert!(may(at, 50 * us, at, at + 60 * us, true), "known to have been before");
        assert!(!may(at, 20 * ms, at, at + 2 * ms, false), "sooner than a slow answer, but too late");
        assert!(!may(at, 50 * us, at + 50 * ms, at + 50 * ms + 60 * us, false), "not idle for long");
        assert!(may(at, 50 * us, at + 150 * ms, at + 150 * ms + 60 * us, false), "idle for long");
        assert!(!may(at, 50 * us, at + 150 * ms, at + 152 * ms, false), "idle for long, but too late");
        assert!(may(0, 0, at, at + 20 * ms, false), "older than the slice");
    }
}
