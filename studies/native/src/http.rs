//! Requests out of bytes, heads into bytes: as much of HTTP/1.1 as a `GET` without a body needs. Opens no socket.

/// What the front of a buffer holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// The head has no end yet.
    Incomplete,
    /// No `GET` of HTTP/1: the connection cannot go on.
    Wrong,
    /// A request of `length` bytes.
    Complete(Request<'a>),
}

/// A request, pointing into the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// Path and query, as sent.
    pub(crate) target: &'a [u8],
    /// Whether the connection stays open after the answer.
    pub(crate) keep_alive: bool,
    /// Bytes of the buffer that belong to the request.
    pub(crate) length: usize,
}

/// Parses the request at the front of `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Parsed<'_> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Parsed::Incomplete };
    let mut lines =
        bytes[..end].split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let Some((target, minor)) = lines.next().and_then(request_line) else { return Parsed::Wrong };
    let mut keep_alive = minor == b'1';
    for value in lines.filter_map(connection_header) {
        keep_alive = !value.eq_ignore_ascii_case(b"close")
            && (keep_alive || value.eq_ignore_ascii_case(b"keep-alive"));
    }
    Parsed::Complete(Request { target, keep_alive, length: end + 4 })
}

/// The target and the minor version's digit.
fn request_line(line: &[u8]) -> Option<(&[u8], u8)> {
    let rest = line.strip_prefix(b"GET ")?;
    let (head, minor) = rest.split_last().map(|(minor, head)| (head, *minor))?;
    let target = head.strip_suffix(b" HTTP/1.")?;
    (target.starts_with(b"/") && !target.contains(&b' ') && matches!(minor, b'0' | b'1'))
        .then_some((target, minor))
}

fn connection_header(line: &[u8]) -> Option<&[u8]> {
    let (name, value) = line.split_at_checked(b"connection:".len())?;
    name.eq_ignore_ascii_case(b"connection:").then(|| value.trim_ascii())
}

/// A target cut at its first question mark.
pub fn path_and_query(target: &[u8]) -> (&[u8], &[u8]) {
    match target.iter().position(|&byte| byte == b'?') {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Parsed, Request, parse, path_and_query};

    const REQUEST: &[u8] = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n";

    #[test]
    fn every_prefix_is_incomplete_and_what_follows_is_left() {
        for length in 0..REQUEST.len() {
            assert_eq!(parse(&REQUEST[..length]), Parsed::Incomplete, "{length}");
        }
        let expected = Request { target: b"/a?b=c", keep_alive: true, length: REQUEST.len() };
        assert_eq!(parse(&[REQUEST, REQUEST].concat()), Parsed::Complete(expected));
    }

    #[test]
    fn connections_stay_open_as_version_and_header_say() {
        for (head, expected) in [
            ("GET / HTTP/1.1\r\nConnection: close", false),
            ("GET / HTTP/1.1\r\nconnection:Keep-Alive", true),
            ("GET / HTTP/1.0", false),
            ("GET / HTTP/1.0\r\nConnection: keep-alive", true),
        ] {
            let bytes = format!("{head}\r\n\r\n");
            assert!(
                matches!(parse(bytes.as_bytes()), Parsed::Complete(Request { keep_alive, .. }) if keep_alive == expected),
                "{head}"
            );
        }
    }

    #[test]
    fn other_methods_versions_and_targets_are_wrong() {
        for line in [
            "POST / HTTP/1.1",
            "GET /",
            "GET / HTTP/2.0",
            "GET / HTTP/1.2",
            "GET x HTTP/1.1",
            "",
            "GET / / HTTP/1.1",
        ] {
            assert_eq!(parse(format!("{line}\r\n\r\n").as_bytes()), Parsed::Wrong, "{line}");
        }
    }

    #[test]
    fn a_target_is_cut_at_its_first_question_mark() {
        assert_eq!(path_and_query(b"/a?b?c"), (&b"/a"[..], &b"b?c"[..]));
        assert_eq!(path_and_query(b"/a"), (&b"/a"[..], &b""[..]));
    }
}
