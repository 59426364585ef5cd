//! Owns: answers that were parsed and found right, kept so that an answer of the same bytes need not be parsed again.
//! This is safe because the result depends on the bytes alone. Must not know sockets or time.

/// Longest answer that is kept, in bytes.
const MAX_ANSWER: usize = 16 * 1024;
/// Largest number of requests for which answers are kept.
const MAX_REQUESTS: usize = 256;
/// After this many answers in a row that each differ from the one before, stop keeping answers to the request.
const PATIENCE: u32 = 64;

/// The last right answer to each request.
#[derive(Default)]
pub(crate) struct Memo {
    answers: Vec<Kept>,
}

#[derive(Default, Clone)]
struct Kept {
    bytes: Vec<u8>,
    status: u16,
    strikes: u32,
}

impl Memo {
    /// An empty memo for `requests` requests.
    pub(crate) fn new(requests: usize) -> Memo {
        Memo { answers: vec![Kept::default(); if requests <= MAX_REQUESTS { requests } else { 0 }] }
    }

    /// The status of the answer if its bytes equal those of the last right answer kept.
    #[inline]
    pub(crate) fn same(&self, request: u32, answer: &[u8]) -> Option<u16> {
        let kept = self.answers.get(request as usize)?;
        (kept.status != 0 && kept.bytes == answer).then_some(kept.status)
    }

    /// Keeps an answer that came in one piece, is complete and right, and leaves the connection open.
    pub(crate) fn keep(&mut self, request: u32, answer: &[u8], status: u16) {
        let Some(kept) = self.answers.get_mut(request as usize) else { return };
        if kept.strikes >= PATIENCE || answer.len() > MAX_ANSWER {
            return;
        }
        kept.strikes += 1;
        kept.bytes.clear();
        if kept.strikes == PATIENCE {
            kept.status = 0;
            return;
        }
        kept.bytes.extend_from_slice(answer);
        kept.status = status;
    }

    /// Records that keeping the answer helped: the next one was the same.
    #[inline]
    pub(crate) fn worked(&mut self, request: u32) {
        if let Some(kept) = self.answers.get_mut(request as usize) {
            kept.strikes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_known_again_and_no_others() {
        let mut memo = Memo::new(2);
        assert_eq!(memo.same(0, b""), None);
        memo.keep(0, b"answer", 200);
        assert_eq!(memo.same(0, b"answer"), Some(200));
        assert_eq!(
            (memo.same(0, b"answes"), memo.same(0, b"answer!"), memo.same(1, b"answer")),
            (None, None, None)
        );
        memo.keep(0, b"other", 204);
        assert_eq!((memo.same(0, b"answer"), memo.same(0, b"other")), (None, Some(204)));
        memo.keep(9, b"beyond", 200);
        assert_eq!(memo.same(9, b"beyond"), None);
    }

    #[test]
    fn answers_that_always_change_are_given_up() {
        let mut memo = Memo::new(1);
        for k in 0..PATIENCE {
            memo.keep(0, &k.to_le_bytes(), 200);
        }
        assert_eq!(memo.same(0, &(PATIENCE - 1).to_le_bytes()), None);
        let mut memo = Memo::new(1);
        for k in 0..10 * PATIENCE {
            memo.keep(0, &k.to_le_bytes(), 200);
            assert_eq!(memo.same(0, &k.to_le_bytes()), Some(200));
            memo.worked(0);
        }
    }
}
