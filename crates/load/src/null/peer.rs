//! Owns: one connection's state apart from its socket: its requests, and what it is still owed. A client may send any
//! number of requests without reading: the server counts the owed answers and does not store them. Must not know
//! sockets.

use std::collections::VecDeque;
use std::ops::Range;

use super::answers::{Answers, Piece};
use super::request::{Read, Reader, Request};

/// A client that does not read is disconnected when its owed answers form this many runs of different pieces.
const MOST_RUNS: usize = 1024;
/// Longest request that is recognised by its bytes.
const LONGEST_KNOWN: usize = 4 * 1024;

/// The last plain request of any connection. Load repeats the same bytes, which then need no parsing.
#[derive(Debug, Default)]
pub(super) struct Known(Vec<u8>);

/// The client must be disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flood;

/// One connection.
#[derive(Debug)]
pub(super) struct Peer {
    reader: Reader,
    /// Pieces to send, and how often each.
    owed: VecDeque<(Piece, u32)>,
    /// The part that is being sent and may be incomplete: a range of the answers' bytes.
    pub(super) sending: Range<usize>,
}

impl Peer {
    pub(super) fn new() -> Peer {
        Peer { reader: Reader::new(), owed: VecDeque::new(), sending: 0..0 }
    }

    /// Processes received bytes.
    ///
    /// # Errors
    /// When the client must be disconnected.
    #[inline]
    pub(super) fn take(&mut self, mut data: &[u8], known: &mut Known) -> Result<(), Flood> {
        loop {
            let fresh = self.reader.is_fresh();
            if fresh && !known.0.is_empty() {
                let mut count = 0;
                while let Some(rest) = data.strip_prefix(known.0.as_slice()) {
                    data = rest;
                    count += 1;
                }
                self.owe(Piece::Full, count)?;
                if data.is_empty() {
                    return Ok(());
                }
            }
            let before = data;
            let Some(read) = self.reader.next(&mut data) else { return Ok(()) };
            let plain = Read::Request(Request::default());
            if fresh && read == plain && before.len() - data.len() <= LONGEST_KNOWN {
                known.0.clear();
                known.0.extend_from_slice(&before[..before.len() - data.len()]);
            }
            self.answer(read)?;
        }
    }

    fn answer(&mut self, read: Read) -> Result<(), Flood> {
        match read {
            Read::Request(Request { head: false, close: false, .. }) => self.owe(Piece::Full, 1),
            Read::Request(Request { head: true, close: false, .. }) => self.owe(Piece::Head, 1),
            Read::Request(Request { head: true, close: true, .. }) => self.owe(Piece::LastHead, 1),
            Read::Request(Request { head: false, close: true, .. }) => {
                self.owe(Piece::LastHead, 1)?;
                self.owe(Piece::Body, 1)
            }
            Read::Waits => self.owe(Piece::Continue, 1),
            Read::Malformed => self.owe(Piece::Malformed, 1),
            Read::TooLarge => self.owe(Piece::TooLarge, 1),
        }
    }

    #[inline]
    fn owe(&mut self, piece: Piece, count: u32) -> Result<(), Flood> {
        if count == 0 {
            return Ok(());
        }
        if let Some((last, owed)) = self.owed.back_mut()
            && *last == piece
        {
            *owed = owed.checked_add(count).ok_or(Flood)?;
            return Ok(());
        }
        if self.owed.len() == MOST_RUNS {
            return Err(Flood);
        }
        self.owed.push_back((piece, count));
        Ok(())
    }

    /// Whether there is anything to send beyond [`Peer::sending`].
    #[inline]
    pub(super) fn is_owed(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Does the work of the next piece and puts it in [`Peer::sending`]; false when nothing is owed.
    #[inline]
    pub(super) fn advance(&mut self, answers: &Answers) -> bool {
        let Some((piece, owed)) = self.owed.front_mut() else { return false };
        let (range, count) = answers.find(*piece, *owed);
        answers.work(*piece, count);
        *owed -= count;
        if *owed == 0 {
            self.owed.pop_front();
        }
        self.sending = range;
        true
    }

    /// Whether to close the connection once everything is sent.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.reader.is_over()
    }

    /// Drops everything owed.
    pub(super) fn forget(&mut self) {
        self.owed = VecDeque::new();
        self.sending = 0..0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    fn said(peer: &mut Peer, answers: &Answers) -> String {
        let mut said = Vec::new();
        while peer.advance(answers) {
            said.extend_from_slice(answers.bytes(&peer.sending));
        }
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn requests_that_are_known_are_answered_as_those_that_are_read() {
        let (answers, mut known) = (Answers::new(3, Default::default()), Known::default());
        let mut peer = Peer::new();
        let post = b"POST / HTTP/1.1\r\nContent-Length: 28\r\n\r\n";
        let mut one = String::new();
        // The body has the same bytes as the known request, and must not count as one.
        for (data, count) in
            [(GET.to_vec(), 1), (GET.repeat(3), 3), ([&post[..], GET, &GET[..9]].concat(), 1)]
        {
            peer.take(&data, &mut known).unwrap();
            let said = said(&mut peer, &answers);
            if one.is_empty() {
                one = said.clone();
            }
            assert_eq!(said, one.repeat(count));
        }
        peer.take(&GET[9..], &mut known).unwrap();
        assert_eq!(said(&mut peer, &answers), one);
    }

    #[test]
    fn what_is_known_is_a_plain_request_alone() {
        for other in [
            "HEAD / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
            "nonsense\r\n",
        ] {
            let mut known = Known::default();
            Peer::new().take(other.as_bytes(), &mut known).unwrap();
            assert!(known.0.is_empty(), "{other:?}");
        }
        let mut known = Known::default();
        let mut peer = Peer::new();
        peer.take(&GET[..5], &mut known).unwrap();
        peer.take(&GET[5..], &mut known).unwrap();
        assert!(known.0.is_empty());
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let (mut peer, mut known) = (Peer::new(), Known::default());
        for _ in 0..100_000 {
            peer.take(GET, &mut known).unwrap();
        }
        assert_eq!(peer.owed.len(), 1);
        let turns = [GET, b"HEAD / HTTP/1.1\r\n\r\n"].concat();
        let mut peer = Peer::new();
        let cut = (0..MOST_RUNS).find(|_| peer.take(&turns, &mut known).is_err());
        assert_eq!((cut, peer.owed.len()), (Some(MOST_RUNS / 2), MOST_RUNS));
    }
}
