//! Reads one request from bytes. This module knows no socket and no answer.

/// The part of a request that an answer depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    /// The value of the header `Authorization`; empty without one.
    pub(crate) authorization: &'a str,
    /// Whether the client wants the connection closed afterwards.
    pub(crate) close: bool,
    /// The length of the request in bytes, including its body.
    pub(crate) length: usize,
}

/// What the bytes start with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Read<'a> {
    Complete(Request<'a>),
    Incomplete,
    Wrong,
}

const LONGEST_HEAD: usize = 64 * 1024;

/// The first byte that a client sends when it starts TLS.
const TLS_HANDSHAKE: u8 = 0x16;

/// Reads a complete request from the start of `bytes`.
pub(crate) fn read(bytes: &[u8]) -> Read<'_> {
    if bytes.first() == Some(&TLS_HANDSHAKE) {
        return Read::Wrong;
    }
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() > LONGEST_HEAD { Read::Wrong } else { Read::Incomplete };
    };
    match std::str::from_utf8(&bytes[..end]).ok().and_then(head) {
        None => Read::Wrong,
        Some((request, body)) => match (end + 4).checked_add(body) {
            Some(length) if bytes.len() >= length => Read::Complete(Request { length, ..request }),
            Some(_) => Read::Incomplete,
            None => Read::Wrong,
        },
    }
}

/// The request and the length of its body. Chunked bodies are not supported.
fn head(text: &str) -> Option<(Request<'_>, usize)> {
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target, version) = (first.next()?, first.next()?, first.next()?);
    if first.next().is_some() || method.is_empty() || !version.starts_with("HTTP/1.") {
        return None;
    }
    let mut request = Request { method, target, authorization: "", close: version == "HTTP/1.0", length: 0 };
    let mut body = 0;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            body = value.parse().ok()?;
        } else if name.eq_ignore_ascii_case("authorization") {
            request.authorization = value;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return None;
        } else if name.eq_ignore_ascii_case("connection") {
            request.close = value.eq_ignore_ascii_case("close")
                || (request.close && !value.eq_ignore_ascii_case("keep-alive"));
        }
    }
    Some((request, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_only_with_its_last_byte() {
        let bytes = b"POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Read::Incomplete, "{cut}");
        }
        let whole =
            Request { method: "POST", target: "/a?b", authorization: "", close: false, length: bytes.len() };
        assert_eq!(read(bytes), Read::Complete(whole.clone()));
        assert_eq!(read(&[bytes.as_slice(), b"GET"].concat()), Read::Complete(whole));
    }

    #[test]
    fn closing_follows_version_and_header() {
        for (text, close) in [
            ("GET / HTTP/1.1\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nconnection: Close\r\n\r\n", true),
            ("GET / HTTP/1.0\r\n\r\n", true),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
        ] {
            assert!(matches!(read(text.as_bytes()), Read::Complete(r) if r.close == close), "{text:?}");
        }
    }

    #[test]
    fn nonsense_is_wrong() {
        for text in [
            "hello\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(read(text.as_bytes()), Read::Wrong, "{text:?}");
        }
        assert_eq!(read(&vec![b'a'; LONGEST_HEAD + 1]), Read::Wrong);
        assert_eq!(read(b"\x16\x03\x01"), Read::Wrong, "no line end will ever come");
    }
}
