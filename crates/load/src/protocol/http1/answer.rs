//! Owns: where an HTTP/1.x answer ends, and what its head says. Sans-I/O and incremental: bytes in, progress out. It
//! must not know sockets, time or expectations. Bodies are passed on as slices of the input, never copied.
//!
//! It follows RFC 9112 and is strict wherever the RFC leaves a choice about where an answer ends. It accepts one
//! `Content-Length` only, and refuses repeated or listed ones even if equal. `chunked` may occur once, without
//! parameters and last. `Transfer-Encoding` must not come together with a length or with HTTP/1.0. Refused are also
//! folded headers, control characters other than a tab in any line, and white space before a colon.
//!
//! It accepts what section 2.2 allows and old servers do: a bare LF at the end of lines of the head (not in the chunked
//! coding), a status line that ends after the code, and white space after a chunk's size. It skips interim answers
//! (1xx). Head, trailers and interim answers share one limit.

use memchr::memchr;

use super::request::is_token_byte;

/// Most bytes of status line, headers, interim answers and trailers together.
pub(crate) const HEAD_LIMIT: usize = 64 * 1024;
/// Longest line with a chunk's size and extensions, in bytes.
const CHUNK_LINE_LIMIT: usize = 4 * 1024;
/// Longest body accepted, in bytes.
const BODY_LIMIT: u64 = 1 << 53;

/// Why bytes are not an HTTP/1.x answer to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum Wrong {
    /// The first line is not `HTTP/1.0` or `HTTP/1.1` with a three-digit status, or it holds a control character.
    #[error("the status line is malformed")]
    StatusLine,
    /// A header line has no colon, a name that is not a token, a folded line or a control character.
    #[error("a header line is malformed")]
    Header,
    /// Status line, headers, interim answers and trailers exceed 64 KiB.
    #[error("the head is longer than 64 KiB")]
    HeadTooLong,
    /// `Content-Length` is not a number from 0 to 2^53.
    #[error("Content-Length is malformed or beyond 2^53")]
    ContentLength,
    /// `Content-Length` came more than once.
    #[error("Content-Length came more than once")]
    DuplicateLength,
    /// `Content-Length` and `Transfer-Encoding` came together.
    #[error("Content-Length and Transfer-Encoding came together")]
    LengthAndEncoding,
    /// `Transfer-Encoding` is repeated, empty, came with HTTP/1.0, or does not have `chunked` exactly once, without
    /// parameters and last.
    #[error("Transfer-Encoding is malformed, repeated or came with HTTP/1.0")]
    TransferEncoding,
    /// The server switched protocols although the request did not ask for it.
    #[error("the server switched protocols without being asked")]
    Upgrade,
    /// A chunk's size is not hexadecimal or too large, or its line is too long, holds a control character or ends in a
    /// bare LF.
    #[error("the size of a chunk is malformed or too large")]
    ChunkSize,
    /// A chunk is not followed by CR LF.
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    /// Bytes followed the end of the answer.
    #[error("bytes came after the end of the answer")]
    Surplus,
}

/// Receives headers and body.
pub(crate) trait Sink {
    /// A header line; the value has no surrounding white space.
    fn header(&mut self, _name: &[u8], _value: &[u8]) {}
    /// The headers so far belong to an interim answer: forget them.
    fn interim(&mut self) {}
    /// The next piece of the decoded body.
    fn body(&mut self, piece: &[u8]);
}

/// The parser's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Bytes of the input that are processed. The caller must pass the rest again, followed by more bytes.
    pub(crate) consumed: usize,
    /// Whether the answer is complete.
    pub(crate) complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    StatusLine,
    Headers,
    Fixed(u64),
    UntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    Done,
}

/// The contents of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Head {
    status: u16,
    old: bool,
    length: Option<u64>,
    encoded: bool,
    chunked: bool,
    close: bool,
    keep: bool,
}

/// Parses one answer after another.
#[derive(Debug, Clone)]
pub(crate) struct Parser {
    state: State,
    head: Head,
    answers_head_request: bool,
    head_bytes: usize,
    body_bytes: u64,
    scanned: usize,
}

impl Parser {
    pub(crate) fn new() -> Parser {
        Parser {
            state: State::StatusLine,
            head: Head::default(),
            answers_head_request: false,
            head_bytes: 0,
            body_bytes: 0,
            scanned: 0,
        }
    }

    /// Starts the next answer, which is to a HEAD request or not.
    #[inline]
    pub(crate) fn begin(&mut self, head_request: bool) {
        *self = Parser { answers_head_request: head_request, ..Parser::new() };
    }

    /// The status code; 0 before the status line is parsed.
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    /// Whether the connection can carry another answer after this one. Call it when the answer is complete.
    pub(crate) fn keep_alive(&self) -> bool {
        let asked = if self.head.old { self.head.keep } else { true };
        asked && !self.head.close && self.state == State::Done
    }

    /// Parses `input`: the bytes not consumed last time, followed by new ones.
    pub(crate) fn advance(&mut self, input: &[u8], sink: &mut impl Sink) -> Result<Step, Wrong> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            match self.state {
                State::Done => return Ok(Step { consumed, complete: true }),
                State::Fixed(_) | State::Chunk(_) | State::UntilClose => {
                    if rest.is_empty() {
                        return Ok(Step { consumed, complete: false });
                    }
                    consumed += self.body(rest, sink);
                }
                _ => match self.find_line(rest)? {
                    None => return Ok(Step { consumed, complete: false }),
                    Some(line) => {
                        self.line(&line, sink)?;
                        consumed += line.length;
                    }
                },
            }
        }
    }

    /// Whether the answer is complete when the server closes the connection now.
    pub(crate) fn ends_with_close(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Passes body bytes on; returns how many.
    fn body(&mut self, rest: &[u8], sink: &mut impl Sink) -> usize {
        let (left, after) = match self.state {
            State::Fixed(left) => (left, State::Done),
            State::Chunk(left) => (left, State::ChunkEnd),
            _ => (u64::MAX, State::UntilClose),
        };
        let taken = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        sink.body(&rest[..taken]);
        let left = left - taken as u64;
        self.state = match self.state {
            State::Fixed(_) if left > 0 => State::Fixed(left),
            State::Chunk(_) if left > 0 => State::Chunk(left),
            _ => after,
        };
        taken
    }

    /// The first line of `rest`, or `None` if its end has not come yet.
    #[inline]
    fn find_line<'a>(&mut self, rest: &'a [u8]) -> Result<Option<Line<'a>>, Wrong> {
        // Bytes that were searched once are not searched again when more come.
        let line = if self.scanned == 0 { Line::clean(rest) } else { None };
        let line = line.or_else(|| Line::any(rest, self.scanned));
        let length = line.as_ref().map_or(rest.len(), |line| line.length);
        if matches!(self.state, State::ChunkSize | State::ChunkEnd) {
            if length > CHUNK_LINE_LIMIT {
                return Err(Wrong::ChunkSize);
            }
        } else if self.head_bytes + length > HEAD_LIMIT {
            return Err(Wrong::HeadTooLong);
        } else if line.is_some() {
            self.head_bytes += length;
        }
        self.scanned = if line.is_some() { 0 } else { rest.len() };
        Ok(line)
    }

    #[inline]
    fn line(&mut self, line: &Line<'_>, sink: &mut impl Sink) -> Result<(), Wrong> {
        match self.state {
            State::StatusLine => self.status_line(line),
            State::Headers if line.text.is_empty() => self.end_of_head(sink),
            State::Headers => self.header(line, sink),
            State::ChunkSize => self.chunk_size(line),
            State::ChunkEnd if line.text.is_empty() && line.crlf => {
                self.state = State::ChunkSize;
                Ok(())
            }
            State::ChunkEnd => Err(Wrong::ChunkEnd),
            _ if line.text.is_empty() => {
                self.state = State::Done;
                Ok(())
            }
            // A trailer: its form is checked and its content ignored.
            _ => split_header(line).map(|_| ()),
        }
    }

    fn status_line(&mut self, line: &Line<'_>) -> Result<(), Wrong> {
        if line.has_control() {
            return Err(Wrong::StatusLine);
        }
        let (version, rest) = match line.text {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', version @ (b'0' | b'1'), b' ', rest @ ..] => {
                (version, rest)
            }
            _ => return Err(Wrong::StatusLine),
        };
        let status = match rest {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => [a, b, c],
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] => [a, b, c],
            _ => return Err(Wrong::StatusLine),
        };
        self.head.old = *version == b'0';
        self.head.status = status.iter().fold(0, |sum, digit| sum * 10 + u16::from(**digit - b'0'));
        self.state = State::Headers;
        Ok(())
    }

    #[inline]
    fn header(&mut self, line: &Line<'_>, sink: &mut impl Sink) -> Result<(), Wrong> {
        let (name, value) = split_header(line)?;
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for token in tokens(value) {
                    self.head.close |= token.eq_ignore_ascii_case(b"close");
                    self.head.keep |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let earlier = self.head.length.replace(decimal(value)?);
                earlier.map_or(Ok(()), |_| Err(Wrong::DuplicateLength))?;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.head.encoded {
                    return Err(Wrong::TransferEncoding);
                }
                self.head.encoded = true;
                self.head.chunked = ends_chunked(value)?;
            }
            _ => {}
        }
        sink.header(name, value);
        Ok(())
    }

    fn end_of_head(&mut self, sink: &mut impl Sink) -> Result<(), Wrong> {
        let head = self.head;
        if head.status == 101 {
            return Err(Wrong::Upgrade);
        }
        if head.status < 200 {
            self.head = Head::default();
            self.state = State::StatusLine;
            sink.interim();
            return Ok(());
        }
        if head.encoded && head.length.is_some() {
            return Err(Wrong::LengthAndEncoding);
        }
        if head.encoded && head.old {
            return Err(Wrong::TransferEncoding);
        }
        let bodiless = self.answers_head_request || matches!(head.status, 204 | 304);
        self.state = match head.length {
            _ if bodiless => State::Done,
            Some(0) => State::Done,
            Some(length) => State::Fixed(length),
            None if head.chunked => State::ChunkSize,
            None => State::UntilClose,
        };
        Ok(())
    }

    fn chunk_size(&mut self, line: &Line<'_>) -> Result<(), Wrong> {
        let text = line.text;
        let end = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
        let (digits, extension) = text.split_at(end);
        let extension = extension.trim_ascii_start();
        let extends = extension.first().is_none_or(|byte| *byte == b';');
        if digits.is_empty() || digits.len() > 14 || !extends || !line.crlf || line.has_control() {
            return Err(Wrong::ChunkSize);
        }
        let size = digits.iter().fold(0, |sum, &digit| sum * 16 + u64::from(hex(digit)));
        self.body_bytes += size;
        if self.body_bytes > BODY_LIMIT {
            return Err(Wrong::ChunkSize);
        }
        self.state = if size == 0 { State::Trailers } else { State::Chunk(size) };
        Ok(())
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn decimal(value: &[u8]) -> Result<u64, Wrong> {
    let digits = !value.is_empty() && value.len() <= 17 && value.iter().all(u8::is_ascii_digit);
    let length =
        value.iter().fold(0u64, |sum, &digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit & 15)));
    if digits && length <= BODY_LIMIT { Ok(length) } else { Err(Wrong::ContentLength) }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// Whether the last coding is `chunked`. It may not occur elsewhere, nor have parameters.
fn ends_chunked(value: &[u8]) -> Result<bool, Wrong> {
    let mut chunked = None;
    for coding in tokens(value) {
        let name = coding.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii_end();
        if chunked == Some(true) || (name.len() < coding.len() && name.eq_ignore_ascii_case(b"chunked")) {
            return Err(Wrong::TransferEncoding);
        }
        chunked = Some(name.eq_ignore_ascii_case(b"chunked"));
    }
    chunked.ok_or(Wrong::TransferEncoding)
}

#[inline]
fn split_header<'a>(line: &Line<'a>) -> Result<(&'a [u8], &'a [u8]), Wrong> {
    let end = line.text.iter().position(|&byte| !TOKEN[usize::from(byte)]).unwrap_or(line.text.len());
    let (name, rest) = line.text.split_at(end);
    match rest {
        [b':', value @ ..] if !name.is_empty() && !line.has_control() => Ok((name, value.trim_ascii())),
        _ => Err(Wrong::Header),
    }
}

/// A line of an answer.
#[derive(Debug)]
struct Line<'a> {
    /// Without the line end.
    text: &'a [u8],
    /// With the line end.
    length: usize,
    /// Whether it ends with CR LF, not with LF alone.
    crlf: bool,
    /// Whether the line certainly has no control character, not even a tab.
    clean: bool,
}

impl<'a> Line<'a> {
    /// The first line, if its end is the first control character in `bytes`: one pass then finds the end and shows that
    /// the line is valid.
    #[inline]
    fn clean(bytes: &'a [u8]) -> Option<Line<'a>> {
        let end = first_control(bytes)?;
        let (text, rest) = bytes.split_at(end);
        match rest {
            [b'\r', b'\n', ..] => Some(Line { text, length: end + 2, crlf: true, clean: true }),
            [b'\n', ..] => Some(Line { text, length: end + 1, crlf: false, clean: true }),
            _ => None,
        }
    }

    /// The first line, whose end is not in the first `scanned` bytes.
    fn any(bytes: &'a [u8], scanned: usize) -> Option<Line<'a>> {
        let end = memchr(b'\n', &bytes[scanned..])? + scanned;
        let text = &bytes[..end];
        let stripped = text.strip_suffix(b"\r");
        Some(Line { text: stripped.unwrap_or(text), length: end + 1, crlf: stripped.is_some(), clean: false })
    }

    /// Whether it holds a control character other than a tab.
    #[inline]
    fn has_control(&self) -> bool {
        let control = |byte: u8| ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f);
        // No early exit, so that the compiler can process several bytes at a time.
        !self.clean && self.text.iter().fold(false, |found, &byte| found | control(byte))
    }
}

/// The index of the first byte below 0x20 or equal to 0x7f. It tests eight bytes at a time: lines are too short for a
/// library search with wider registers to be faster.
#[inline]
fn first_control(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The top bit of each byte that is below 0x20 or equal to 0x7f. Bits above the first such byte may be wrong.
        let delete = word ^ (ONES * 0x7f);
        let below = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (below | (delete.wrapping_sub(ONES) & !delete)) & (ONES * 0x80);
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let start = bytes.len() - rest.len();
    rest.iter().position(|&byte| byte < b' ' || byte == 0x7f).map(|index| start + index)
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_token_byte(byte as u8);
        byte += 1;
    }
    table
};

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
