//! Owns: properties that must hold for any bytes parsed as an answer, and for any text parsed as a rate. The tests and
//! `fuzz/` call it; it is not part of the library's interface. Must not know where the bytes come from.

use std::time::Duration;

use crate::pacer::{Arrivals, Pacer, Rate};
use crate::protocol::http1::{HEAD_LIMIT, Parser, Sink, Wrong};
use crate::request::digest;
use crate::status::StatusSet;

/// What a parser reported about an answer.
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

/// The result of parsing an answer in pieces: the end, how many bytes were used, what was reported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) end: Result<bool, Wrong>,
    pub(crate) used: usize,
    pub(crate) status: u16,
    pub(crate) keep_alive: bool,
    pub(crate) until_close: bool,
    pub(crate) seen: Seen,
}

/// Passes `pieces` to the parser one after the other, and after each calls it again without new bytes, until the answer
/// is complete or wrong. `head` says that it answers a HEAD request.
///
/// # Panics
/// If the parser consumes more than it was given, advances without input, or leaves more than a line unconsumed.
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
        // What was consumed and reported before an error depends on the pieces, and no caller uses it.
        (seen, used) = (Seen::default(), 0);
    }
    Parsed { end, used, status: parser.status(), keep_alive: parser.keep_alive(), until_close, seen }
}

/// Checks that any bytes give the same result for every split: in one piece, byte by byte, or cut at places derived
/// from the bytes themselves.
///
/// # Panics
/// If a property does not hold.
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
            // Short pieces are more frequent than long ones.
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

/// Checks that a text is either refused as a rate, or can be parsed, written and parsed again with the same result. The
/// due times of the rate never fall, and any number of them can be skipped. As a set of status codes, the text is
/// either refused, or can be parsed and written.
///
/// # Panics
/// If a property does not hold.
pub fn check_written(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(set) = text.parse::<StatusSet>() {
        assert_eq!(set.to_string().parse(), Ok(set));
        assert_ne!(set, StatusSet::default());
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
