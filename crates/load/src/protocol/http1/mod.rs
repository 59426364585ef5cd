//! Owns: HTTP/1.1 on one connection: one request at a time, and its answer. Must not know transports, sockets or time.

mod answer;
mod memo;
mod request;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use answer::HEAD_LIMIT;
pub use answer::Wrong;
pub(crate) use answer::{Parser, Sink};
pub use request::{RequestError, is_token, request_bytes};

use super::body::BodyCheck;
use super::{Answered, Asked, Body, Ended, Protocol};
use crate::outcome::Outcome;
use crate::request::Prepared;
use memo::Memo;

/// One connection.
pub(crate) struct Http1 {
    /// Number of bytes of the request taken for sending.
    taken: usize,
    /// Whether any byte of the answer has come.
    answering: bool,
    parser: Parser,
    check: BodyCheck,
    /// Received bytes that could not be parsed yet: part of a line.
    rest: Vec<u8>,
}

/// The state shared by a worker's connections.
pub(crate) struct Shared {
    memo: Memo,
    /// For each request, whether it is the last one on its connection.
    last: Vec<bool>,
}

impl Http1 {
    /// Checks the complete answer.
    #[inline]
    fn judge(&self, shared: &Shared, asked: Asked<'_>) -> Answered {
        let status = self.parser.status();
        Answered {
            status,
            outcome: self.check.judge(&asked.request.expect, status),
            // If the request asked to close the connection, it is not used again, even if the server would keep it
            // open.
            reusable: self.parser.keep_alive() & !shared.last[asked.index as usize],
        }
    }

    /// Parses more of the answer; `whole` means that `bytes` may be the complete answer and that it is not a sample.
    fn parse(
        &mut self,
        shared: &mut Shared,
        asked: Asked<'_>,
        bytes: &[u8],
        whole: bool,
    ) -> Result<Option<Answered>, Wrong> {
        if !self.answering {
            self.parser.begin(asked.request.head);
            self.check.begin(&asked.request.expect.body, asked.sample);
            self.answering = true;
        }
        let input = if self.rest.is_empty() {
            bytes
        } else {
            self.rest.extend_from_slice(bytes);
            self.rest.as_slice()
        };
        let step = self.parser.advance(input, &mut self.check)?;
        if !step.complete {
            if self.rest.is_empty() {
                self.rest.extend_from_slice(&bytes[step.consumed..]);
            } else {
                self.rest.drain(..step.consumed);
            }
            return Ok(None);
        }
        if step.consumed < input.len() {
            return Err(Wrong::Surplus);
        }
        let mut answered = self.judge(shared, asked);
        if whole && answered.outcome == Outcome::Ok && answered.reusable {
            shared.memo.keep(asked.index, bytes, answered.status);
        }
        answered.reusable &= self.is_sent(asked.request);
        Ok(Some(answered))
    }

    /// Whether the whole request was taken for sending.
    #[inline]
    fn is_sent(&self, request: &Prepared) -> bool {
        self.taken == request.bytes.len()
    }
}

impl Protocol for Http1 {
    type Shared = Shared;

    fn shared(requests: &[Prepared]) -> Shared {
        let last = requests.iter().map(|prepared| request::is_last(&prepared.bytes)).collect();
        Shared { memo: Memo::new(requests.len()), last }
    }

    fn new() -> Http1 {
        let (parser, check) = (Parser::new(), BodyCheck::new());
        Http1 { taken: 0, answering: false, parser, check, rest: Vec::new() }
    }

    #[inline]
    fn start(&mut self, _: &Prepared) {
        self.taken = 0;
        self.answering = false;
        self.rest.clear();
    }

    #[inline]
    fn unsent<'a>(&'a self, request: Option<&'a Prepared>) -> &'a [u8] {
        request.map_or(&[], |request| &request.bytes[self.taken..])
    }

    #[inline]
    fn took(&mut self, count: usize) {
        self.taken += count;
    }

    #[inline]
    fn receive(
        &mut self,
        shared: &mut Shared,
        asked: Asked<'_>,
        bytes: &[u8],
    ) -> Result<Option<Answered>, Wrong> {
        if asked.early {
            return Err(Wrong::Surplus);
        }
        let whole = !self.answering && !asked.sample;
        if whole && let Some(status) = shared.memo.same(asked.index, bytes) {
            shared.memo.worked(asked.index);
            let reusable = self.is_sent(asked.request);
            return Ok(Some(Answered { status, outcome: Outcome::Ok, reusable }));
        }
        self.parse(shared, asked, bytes, whole)
    }

    /// A 408 says that the connection was idle for too long (RFC 9110, section 15.5.9).
    fn is_farewell(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"HTTP/1.1 408")
    }

    fn ended(&mut self, shared: &Shared, asked: Asked<'_>) -> Ended {
        match self.answering {
            false => Ended::Nothing,
            true if self.parser.ends_with_close() => Ended::Complete(self.judge(shared, asked)),
            true => Ended::Partial,
        }
    }

    fn may_repeat(&self, request: &Prepared) -> bool {
        !self.answering && request::is_idempotent(&request.bytes)
    }

    fn body<'a>(&'a mut self, bytes: &'a [u8]) -> Body<'a> {
        let input = if self.rest.is_empty() { bytes } else { &self.rest };
        Body {
            length: self.check.length(),
            digest: self.check.digest(),
            copy: self.check.take_copy(),
            last: self.check.last_piece(input),
        }
    }
}

impl Sink for BodyCheck {
    #[inline]
    fn body(&mut self, piece: &[u8]) {
        self.take(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{BodyRule, Expectation, StatusRule};

    const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    /// A connection whose request was sent, and its shared state.
    fn asking(request: &Prepared) -> (Http1, Shared) {
        let mut http = Http1::new();
        http.start(request);
        assert_eq!(http.unsent(Some(request)), request.bytes);
        http.took(request.bytes.len());
        assert!(http.unsent(Some(request)).is_empty() && http.unsent(None).is_empty());
        (http, Http1::shared(std::slice::from_ref(request)))
    }

    fn get() -> Prepared {
        let bytes = request_bytes("GET", "/", "h", &[], b"").unwrap();
        let expect = Expectation { status: StatusRule::Exact(200), body: BodyRule::exactly(b"hello") };
        Prepared { bytes, head: false, expect }
    }

    fn asked(request: &Prepared) -> Asked<'_> {
        Asked { request, index: 0, sample: false, early: false }
    }

    const RIGHT: Answered = Answered { status: 200, outcome: Outcome::Ok, reusable: true };

    #[test]
    fn an_answer_is_the_same_whether_it_is_parsed_or_known() {
        let request = get();
        let (mut http, mut shared) = asking(&request);
        for _ in 0..2 {
            assert_eq!(http.receive(&mut shared, asked(&request), HELLO), Ok(Some(RIGHT)));
            http.start(&request);
            // The server has answered before it can have read the whole request.
            let unread = Answered { reusable: false, ..RIGHT };
            assert_eq!(http.receive(&mut shared, asked(&request), HELLO), Ok(Some(unread)));
            http.start(&request);
            http.took(request.bytes.len());
        }
        let (early, surplus) = (Asked { early: true, ..asked(&request) }, [HELLO, b"!"].concat());
        assert_eq!(http.receive(&mut shared, early, HELLO), Err(Wrong::Surplus));
        assert_eq!(http.receive(&mut shared, asked(&request), &surplus), Err(Wrong::Surplus));
    }

    #[test]
    fn a_request_is_not_repeated_once_its_answer_has_begun() {
        let request = get();
        let (mut http, mut shared) = asking(&request);
        assert!(http.may_repeat(&request));
        assert_eq!(http.ended(&shared, asked(&request)), Ended::Nothing);
        for piece in [&HELLO[..3], &HELLO[3..20], &HELLO[20..42]] {
            assert_eq!(http.receive(&mut shared, asked(&request), piece), Ok(None));
            assert!(!http.may_repeat(&request));
            assert_eq!(http.ended(&shared, asked(&request)), Ended::Partial);
        }
        assert_eq!(http.receive(&mut shared, asked(&request), &HELLO[42..]), Ok(Some(RIGHT)));
        let body = http.body(&HELLO[42..]);
        assert_eq!((body.length, body.copy), (5, None));
        http.start(&request);
        let sample = Asked { sample: true, ..asked(&request) };
        assert_eq!(http.receive(&mut shared, sample, b"HTTP/1.1 200 OK\r\n\r\nhello"), Ok(None));
        let complete = Ended::Complete(Answered { reusable: false, ..RIGHT });
        assert_eq!(http.ended(&shared, sample), complete);
        assert_eq!(http.body(b"").copy, Some(b"hello".to_vec()));
    }
}
