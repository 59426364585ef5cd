//! Owns: what must hold of any bytes that are taken for an answer, and of any text that is taken for a rate. Called by
//! the tests and by `fuzz/`; no part of the library's interface. Must not know where the bytes come from.

use std::time::Duration;

use crate::pacer::{Arrivals, Pacer, Rate};
use crate::protocol::http1::{HEAD_LIMIT, Parser, Sink, Wrong};
use crate::request::digest;
use crate::status::StatusSet;

/// What a parser told of an answer.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) headers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Sink for Seen {
    fn header(&mut self, name: &[u8], value: &[u8]) {
        self.headers.push((name.to_vec(), value.to_vec()));
    }

    fn interim(&mut self) {
        self.headers.clear();
    }

    fn body(&mut self, piece: &[u8]) {
        self.body.extend_from_slice(piece);
    }
}

/// What came of offering an answer piece by piece: the end, how many bytes were used, what was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) end: Result<bool, Wrong>,
    pub(crate) used: usize,
    pub(crate) status: u16,
    pub(crate) keep_alive: bool,
    pub(crate) until_close: bool,
    pub(crate) seen: Seen,
}

/// Offers `pieces` one after the other, and after each of them nothing more, until the answer is complete or wrong.
/// `head` says that it is the answer to a HEAD request.
///
/// # Panics
/// When the parser claims more than it was given, goes on without input, or wants more kept than a line.
pub(crate) fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, head: bool) -> Parsed {
    let (mut parser, mut seen, mut kept, mut used) = (Parser::new(), Seen::default(), Vec::new(), 0);
    parser.begin(head);
    let mut end = Ok(false);
    for piece in pieces {
        kept.extend_from_slice(piece);
        match parser.advance(&kept, &mut seen) {
            Ok(step) => {
                assert!(step.consumed <= kept.len());
                kept.drain(..step.consumed);
                used += step.consumed;
                assert!(step.complete || kept.len() <= HEAD_LIMIT, "no more is kept than a line");
                let before = (seen.headers.len(), seen.body.len());
                let again = parser.advance(&kept, &mut seen);
                assert_eq!(again.map(|again| (again.consumed, again.complete)), Ok((0, step.complete)));
                assert_eq!((seen.headers.len(), seen.body.len()), before);
                end = Ok(step.complete);
            }
            Err(wrong) => end = Err(wrong),
        }
        if end != Ok(false) {
            break;
        }
    }
    let until_close = parser.ends_with_close();
    assert!(!(until_close && end == Ok(true)));
    if end.is_err() {
        // How much was consumed and passed on before an error depends on the pieces, and nobody uses it.
        (seen, used) = (Seen::default(), 0);
    }
    Parsed { end, used, status: parser.status(), keep_alive: parser.keep_alive(), until_close, seen }
}

/// Any bytes lead to the same end whatever the pieces they come in: all at once, one by one, or cut at places that
/// follow from the bytes themselves.
///
/// # Panics
/// When something does not hold.
pub fn check_answer(bytes: &[u8]) {
    for head in [false, true] {
        let whole = parse([bytes], head);
        assert!(whole.used <= bytes.len() && whole.seen.body.len() <= bytes.len());
        assert_eq!(whole.status >= 100 && whole.status <= 999, whole.status != 0);
        assert!(!head || whole.seen.body.is_empty(), "an answer to HEAD has no body");
        if bytes.is_empty() {
            continue;
        }
        assert_eq!(parse(bytes.chunks(1), head), whole, "byte by byte");
        let mut random = digest(bytes);
        for _ in 0..3 {
            // Pieces of lengths that are small more often than not.
            let mut rest = bytes;
            let pieces = std::iter::from_fn(|| {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let length = match random >> 61 {
                    0..=3 => random >> 40 & 3,
                    4..=6 => random >> 40 & 63,
                    _ => random >> 40 & 4095,
                };
                let (piece, after) = rest.split_at((length as usize + 1).min(rest.len()));
                rest = after;
                (!piece.is_empty()).then_some(piece)
            });
            let pieces: Vec<&[u8]> = pieces.collect();
            assert_eq!(parse(pieces.iter().copied(), head), whole, "{pieces:?}");
        }
    }
}

/// A text is refused as a rate, or read, written and read again as the same one, with due times that never fall and of
/// which as many can be skipped as wanted. The same text as a set of status codes is refused, or read and written.
///
/// # Panics
/// When something does not hold.
pub fn check_written(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(set) = text.parse::<StatusSet>() {
        assert_eq!(set.to_string().parse(), Ok(set));
        assert!(!set.is_empty());
    }
    for run in [None, Some(Duration::from_secs(10))] {
        let Ok(rate) = Rate::parse(text, run) else { continue };
        assert_eq!(rate.to_string().parse().as_ref(), Ok(&rate));
        assert!(rate.mean_over(Duration::from_secs(1)) >= 0.0 && rate.expected(1e9).is_finite());
        for arrivals in [Arrivals::Constant, Arrivals::Poisson { seed: 1 }] {
            let due = || Pacer::Open { rate: rate.clone(), arrivals }.due_times().into_iter().flatten();
            let each: Vec<u64> = due().take(60).collect();
            assert!(each.is_sorted());
            let third: Vec<u64> = due().step_by(3).take(20).collect();
            assert!(third.iter().eq(each.iter().step_by(3)));
        }
    }
}
