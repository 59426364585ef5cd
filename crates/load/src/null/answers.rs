//! Owns: the bytes of every answer, made once and shared by all threads, and the work of each answer. Must not know
//! requests or sockets.

use std::ops::Range;

use super::spin::Spin;

/// The text of a 13-byte body. Longer bodies repeat it.
const TEXT: &[u8] = b"Hello, world!\n";
/// Answers to pipelined requests are sent together, up to about this many bytes.
const TOGETHER: usize = 16 * 1024;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const MALFORMED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// Head and body of an answer after which the connection stays open.
    Full,
    /// The head alone of such an answer.
    Head,
    /// The head of an answer after which the connection is closed.
    LastHead,
    /// The body alone.
    Body,
    /// The interim answer to a client that waits before it sends its body.
    Continue,
    /// The answer to a malformed request; the connection is closed.
    Malformed,
    /// The answer to a request whose head is too long; the connection is closed.
    TooLarge,
}

/// All answers, in one block of memory.
pub(super) struct Answers {
    bytes: Box<[u8]>,
    /// Lengths of the head, and of head and body, of an answer after which the connection stays open. `bytes` begins
    /// with copies of it.
    head: usize,
    full: usize,
    copies: u32,
    last_head: Range<usize>,
    go_on: Range<usize>,
    malformed: Range<usize>,
    too_large: Range<usize>,
    spin: Spin,
}

impl Answers {
    /// Answers with bodies of `body_bytes` bytes, each after the work `spin`.
    pub(super) fn new(body_bytes: usize, spin: Spin) -> Answers {
        let head = |more: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\nContent-Type: text/plain\r\n{more}\r\n"
            )
        };
        let stays = head("");
        let full = stays.len() + body_bytes;
        let copies = (TOGETHER / full).max(1);
        let mut bytes = Vec::with_capacity(copies * full + 1024);
        for _ in 0..copies {
            bytes.extend_from_slice(stays.as_bytes());
            bytes.extend(TEXT.iter().cycle().take(body_bytes));
        }
        let mut add = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            bytes.len() - piece.len()..bytes.len()
        };
        let last_head = add(head("Connection: close\r\n").as_bytes());
        let (go_on, malformed, too_large) = (add(CONTINUE), add(MALFORMED), add(TOO_LARGE));
        let copies = copies as u32;
        let bytes = bytes.into_boxed_slice();
        Answers { bytes, head: stays.len(), full, copies, last_head, go_on, malformed, too_large, spin }
    }

    /// The bytes of `count` times a piece, or of as many as are sent at once, and how many these are.
    #[inline]
    pub(super) fn find(&self, piece: Piece, count: u32) -> (Range<usize>, u32) {
        let range = match piece {
            Piece::Full => {
                let count = count.min(self.copies);
                return (0..self.full * count as usize, count);
            }
            Piece::Head => 0..self.head,
            Piece::Body => self.head..self.full,
            Piece::LastHead => self.last_head.clone(),
            Piece::Continue => self.go_on.clone(),
            Piece::Malformed => self.malformed.clone(),
            Piece::TooLarge => self.too_large.clone(),
        };
        (range, 1)
    }

    /// Does the work of `count` times a piece. Only a head costs work: a body alone is part of an answer already worked
    /// for.
    #[inline]
    pub(super) fn work(&self, piece: Piece, count: u32) {
        match piece {
            Piece::Full | Piece::Head | Piece::LastHead => self.spin.run(count),
            Piece::Body | Piece::Continue | Piece::Malformed | Piece::TooLarge => {}
        }
    }

    /// Whether answers cost work.
    #[inline]
    pub(super) fn cost_work(&self) -> bool {
        self.spin != Spin::default()
    }

    #[inline]
    pub(super) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_stands_where_it_is_looked_for() {
        for body in [0, 1, 13, 100, 6_000, 100_000] {
            let answers = Answers::new(body, Spin::default());
            let text = |piece, count| {
                let (range, found) = answers.find(piece, count);
                (String::from_utf8(answers.bytes(&range).to_vec()).unwrap(), found)
            };
            let (full, one) = text(Piece::Full, 1);
            assert_eq!(one, 1);
            let (head, said) = full.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && said.len() == body);
            assert!(head.contains(&format!("\r\nContent-Length: {body}\r\nContent-Type: text/plain")));
            assert_eq!(text(Piece::Head, 1).0, format!("{head}\r\n\r\n"));
            assert_eq!(text(Piece::Body, 9), (said.to_owned(), 1));
            assert_eq!(text(Piece::LastHead, 1).0, format!("{head}\r\nConnection: close\r\n\r\n"));
            let (many, count) = text(Piece::Full, 1_000_000);
            assert_eq!(many, full.repeat(count as usize));
            assert!(count == 1 || many.len() <= TOGETHER);
            for (piece, status) in
                [(Piece::Malformed, "400"), (Piece::TooLarge, "431"), (Piece::Continue, "100")]
            {
                assert!(text(piece, 1).0.starts_with(&format!("HTTP/1.1 {status} ")));
            }
        }
        assert!(
            Answers::new(13, Spin::default())
                .bytes
                .windows(17)
                .any(|found| found == b"\r\n\r\nHello, world!")
        );
    }
}
