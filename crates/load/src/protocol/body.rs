//! Owns: the check of an answer's body as it arrives: length, digest, and a copy if needed. Must not know framing or
//! sockets.

use xxhash_rust::xxh3::Xxh3Default;

use crate::outcome::Outcome;
use crate::request::{BodyRule, Expectation};
use crate::tally::MAX_SAMPLE_BODY;

/// Checks one answer after another.
pub(crate) struct BodyCheck {
    length: u64,
    hashing: bool,
    hasher: Box<Xxh3Default>,
    copy: Option<Vec<u8>>,
    /// Address and length of the last piece in the input.
    last: (usize, usize),
}

impl BodyCheck {
    pub(crate) fn new() -> BodyCheck {
        BodyCheck {
            length: 0,
            hashing: false,
            hasher: Box::new(Xxh3Default::new()),
            copy: None,
            last: (0, 0),
        }
    }

    /// Starts a new body, to be checked against `rule` and copied if it is a sample.
    #[inline]
    pub(crate) fn begin(&mut self, rule: &BodyRule, sample: bool) {
        self.length = 0;
        self.hashing = matches!(rule, BodyRule::Digest { .. });
        if self.hashing {
            self.hasher.reset();
        }
        self.copy = sample.then(Vec::new);
        self.last = (0, 0);
    }

    /// The outcome of a complete answer with this status.
    #[inline]
    pub(crate) fn judge(&self, expect: &Expectation, status: u16) -> Outcome {
        if !expect.status.admits(status) {
            return Outcome::Status;
        }
        let right = match expect.body {
            BodyRule::Any => true,
            BodyRule::Length(length) => length == self.length,
            BodyRule::Digest { length, xxh3 } => length == self.length && xxh3 == self.hasher.digest(),
        };
        if right { Outcome::Ok } else { Outcome::Mismatch }
    }

    /// Length of the body so far, in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Digest of the body, if the rule requires computing it.
    pub(crate) fn digest(&self) -> Option<u64> {
        self.hashing.then(|| self.hasher.digest())
    }

    /// The last piece of the body within `input`, which must be the input processed last.
    pub(crate) fn last_piece<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        let (address, length) = self.last;
        let start = address.wrapping_sub(input.as_ptr() as usize);
        start.checked_add(length).and_then(|end| input.get(start..end)).unwrap_or(&[])
    }

    /// The copy, if one was made.
    pub(crate) fn take_copy(&mut self) -> Option<Vec<u8>> {
        self.copy.take()
    }

    /// Adds the next piece of the body.
    #[inline]
    pub(crate) fn take(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        self.last = (piece.as_ptr() as usize, piece.len());
        if self.hashing {
            self.hasher.update(piece);
        }
        if let Some(copy) = &mut self.copy {
            let room = MAX_SAMPLE_BODY - copy.len();
            copy.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::StatusRule;

    #[test]
    fn judges_status_first_then_the_body() {
        let (exact, any) = (StatusRule::Exact(200), StatusRule::Any);
        let digest = BodyRule::exactly(b"hello");
        for (status_rule, rule, pieces, status, wanted) in [
            (exact, digest, ["hel", "lo"], 200, Outcome::Ok),
            (exact, digest, ["hel", "lo"], 500, Outcome::Status),
            (any, digest, ["hel", "lo"], 500, Outcome::Ok),
            (exact, digest, ["hel", "l0"], 200, Outcome::Mismatch),
            (exact, digest, ["hel", ""], 200, Outcome::Mismatch),
            (exact, BodyRule::Length(5), ["xxxx", "x"], 200, Outcome::Ok),
            (exact, BodyRule::Length(5), ["xxxx", ""], 200, Outcome::Mismatch),
            (exact, BodyRule::Any, ["xxxx", ""], 200, Outcome::Ok),
        ] {
            let mut check = BodyCheck::new();
            for _ in 0..2 {
                check.begin(&rule, false);
                pieces.iter().for_each(|piece| check.take(piece.as_bytes()));
                let got = check.judge(&Expectation { status: status_rule, body: rule }, status);
                assert_eq!(got, wanted, "{rule:?} {pieces:?} {status}");
            }
        }
    }

    #[test]
    fn copies_only_samples() {
        let mut check = BodyCheck::new();
        check.begin(&BodyRule::Any, true);
        check.take(b"ab");
        check.take(b"c");
        assert_eq!((check.take_copy(), check.digest()), (Some(b"abc".to_vec()), None));
        check.begin(&BodyRule::Any, false);
        check.take(b"ab");
        assert_eq!(check.take_copy(), None);
    }
}
