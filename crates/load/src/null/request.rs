//! Owns: where requests end and what their answers depend on, from bytes in pieces of any size. It keeps only a line
//! that is not yet complete. Must not know answers or sockets.

use crate::protocol::http1::is_token;

/// Longest line of a head, in bytes.
const LONGEST_LINE: usize = 8 * 1024;
/// Longest head, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;

/// What the reader found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// A whole request.
    Request(Request),
    /// A head whose client waits for permission to send the body.
    Waits,
    /// Not HTTP/1.x; the reader stops.
    Malformed,
    /// A head that is too long; the reader stops.
    TooLarge,
}

/// What an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Request {
    /// Whether the answer has no body.
    pub(super) head: bool,
    /// Whether the connection is closed afterwards; the reader stops.
    pub(super) close: bool,
    /// Whether the request has a body.
    pub(super) body: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    FirstLine,
    Headers,
    /// Bytes left of a body, or of a chunk.
    Body(u64),
    Chunk(u64),
    ChunkEnd,
    ChunkSize,
    Trailers,
    Over,
}

/// Reads the requests of one connection.
#[derive(Debug)]
pub(super) struct Reader {
    stage: Stage,
    /// The beginning of a line that is not yet complete.
    line: Vec<u8>,
    /// Bytes of complete lines of this head, or of its trailers.
    head_bytes: usize,
    request: Request,
    old: bool,
    length: Option<u64>,
    chunked: bool,
    waits: bool,
}

impl Reader {
    pub(super) fn new() -> Reader {
        Reader {
            stage: Stage::FirstLine,
            line: Vec::new(),
            head_bytes: 0,
            request: Request::default(),
            old: false,
            length: None,
            chunked: false,
            waits: false,
        }
    }

    /// Whether the next byte is the first of a request.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.stage == Stage::FirstLine && self.head_bytes == 0 && self.line.is_empty()
    }

    /// Whether the reader has stopped.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Reads up to the next event and advances `data` past it; `None` when it needs more bytes.
    pub(super) fn next(&mut self, data: &mut &[u8]) -> Option<Read> {
        while !data.is_empty() {
            let read = match self.stage {
                Stage::Over => {
                    *data = &[];
                    return None;
                }
                Stage::Body(left) => {
                    let left = skip(data, left);
                    self.stage = Stage::Body(left);
                    if left == 0 { Some(self.complete()) } else { None }
                }
                Stage::Chunk(left) => {
                    let left = skip(data, left);
                    self.stage = if left == 0 { Stage::ChunkEnd } else { Stage::Chunk(left) };
                    None
                }
                _ => self.read_line(data),
            };
            if read.is_some() {
                return read;
            }
        }
        None
    }

    fn read_line(&mut self, data: &mut &[u8]) -> Option<Read> {
        let Some(end) = data.iter().position(|byte| *byte == b'\n') else {
            if self.line.len() + data.len() > LONGEST_LINE {
                return Some(self.end(Read::TooLarge));
            }
            self.line.extend_from_slice(data);
            *data = &[];
            return None;
        };
        let (more, rest) = data.split_at(end + 1);
        *data = rest;
        self.head_bytes += self.line.len() + more.len();
        if self.line.len() + more.len() > LONGEST_LINE || self.head_bytes > LONGEST_HEAD {
            return Some(self.end(Read::TooLarge));
        }
        if self.line.is_empty() {
            return self.line(more);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(more);
        self.line(&line)
    }

    /// Takes one line, with its line end.
    fn line(&mut self, line: &[u8]) -> Option<Read> {
        let line = &line[..line.len() - 1];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let understood = match self.stage {
            // A server should ignore empty lines before a request (RFC 9112, section 2.2).
            Stage::FirstLine if line.is_empty() => {
                self.head_bytes = 0;
                Some(())
            }
            Stage::FirstLine => self.first_line(line),
            Stage::Headers if line.is_empty() => return self.head_ends(),
            Stage::Headers => self.header(line),
            Stage::ChunkSize => self.chunk_size(line),
            Stage::ChunkEnd => line.is_empty().then(|| self.stage = Stage::ChunkSize),
            Stage::Trailers if line.is_empty() => return Some(self.complete()),
            Stage::Trailers | Stage::Body(_) | Stage::Chunk(_) | Stage::Over => Some(()),
        };
        if understood.is_none() { Some(self.end(Read::Malformed)) } else { None }
    }

    fn first_line(&mut self, line: &[u8]) -> Option<()> {
        let mut words = line.split(|byte| *byte == b' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let minor = version.strip_prefix(b"HTTP/1.").filter(|minor| minor.len() == 1)?[0];
        let shown = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        if !is_token(method)
            || target.is_empty()
            || !target.iter().all(shown)
            || !minor.is_ascii_digit()
            || words.next().is_some()
        {
            return None;
        }
        self.old = minor == b'0';
        self.request = Request { head: method == b"HEAD", close: self.old, body: false };
        (self.length, self.chunked, self.waits) = (None, false, false);
        self.stage = Stage::Headers;
        Some(())
    }

    fn header(&mut self, line: &[u8]) -> Option<()> {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) || value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value, 10)?;
            if self.length.is_some_and(|other| other != length) {
                return None;
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // The reader understands no other coding.
            if self.old || self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            let mut options = value.split(|byte| *byte == b',');
            self.request.close |= options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
        } else if name.eq_ignore_ascii_case(b"expect") {
            self.waits = !self.old && value.eq_ignore_ascii_case(b"100-continue");
        }
        Some(())
    }

    fn head_ends(&mut self) -> Option<Read> {
        self.head_bytes = 0;
        self.stage = match (self.chunked, self.length) {
            // Such a request is ambiguous (RFC 9112, section 6.3).
            (true, Some(_)) => return Some(self.end(Read::Malformed)),
            (true, None) => Stage::ChunkSize,
            (false, None | Some(0)) => return Some(self.complete()),
            (false, Some(length)) => Stage::Body(length),
        };
        self.request.body = true;
        self.waits.then_some(Read::Waits)
    }

    fn chunk_size(&mut self, line: &[u8]) -> Option<()> {
        self.head_bytes = 0;
        let size = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
        self.stage = match number(size, 16)? {
            0 => Stage::Trailers,
            size => Stage::Chunk(size),
        };
        Some(())
    }

    fn complete(&mut self) -> Read {
        self.head_bytes = 0;
        self.stage = if self.request.close { Stage::Over } else { Stage::FirstLine };
        Read::Request(self.request)
    }

    fn end(&mut self, read: Read) -> Read {
        self.stage = Stage::Over;
        self.line = Vec::new();
        read
    }
}

/// Advances `data` by at most `left` bytes; returns how many are left then.
fn skip(data: &mut &[u8], left: u64) -> u64 {
    let count = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
    *data = &data[count..];
    left - count as u64
}

/// Parses digits only, without a sign.
fn number(bytes: &[u8], radix: u32) -> Option<u64> {
    let digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(bytes).ok().filter(|_| digits)?;
    u64::from_str_radix(text, radix).ok()
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
