//! Request lines as logs write them: escapes, method, target, version.

use std::borrow::Cow;

use deadheat_record::percent_encoded;

use super::{Entry, Line, Reason};

/// Replaces the escapes of nginx (`\x22`) and Apache (`\"`, `\n`, `\x09`) by the bytes that they stand for. Keeps a backslash that begins no
/// escape.
pub(super) fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let escape = if first == b'\\' { escape(after) } else { None };
        match escape {
            Some((byte, length)) => {
                plain.push(byte);
                rest = &after[length..];
            }
            None => plain.push(first),
        }
    }
    Cow::Owned(plain)
}

/// The byte that an escape stands for, and the escape's length after its backslash.
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    let byte = match *after.first()? {
        b'x' => {
            let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
            let value = digit(after.get(1))? * 16 + digit(after.get(2))?;
            return Some((value as u8, 3));
        }
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        quoted @ (b'"' | b'\\' | b'/') => quoted,
        _ => return None,
    };
    Some((byte, 1))
}

/// The request of a line such as `GET /x HTTP/1.1`, without escapes.
pub(super) fn request(line: &[u8]) -> Line {
    let Some((method, rest)) = split(line) else { return Line::LeftOut(Reason::NotHttp) };
    let rest = rest.trim_ascii();
    let version =
        rest.iter().rposition(|byte| *byte == b' ').filter(|at| rest[at + 1..].starts_with(b"HTTP/"));
    let target = version.map_or(rest, |at| &rest[..at]);
    // HTTP/0.9 has no version. Without one, only a path is certain to be a request.
    if version.is_none() && !target.starts_with(b"/") {
        return Line::LeftOut(Reason::NotHttp);
    }
    of_parts(method, target)
}

fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[..at], &line[at + 1..]))
}

/// The request with this method and target, as written in a log.
pub(super) fn of_parts(method: &[u8], target: &[u8]) -> Line {
    let method = std::str::from_utf8(method).ok().filter(|method| is_method(method));
    let Some(method) = method else { return Line::LeftOut(Reason::NotHttp) };
    match path(target.trim_ascii()) {
        Some((target, host)) => {
            Line::Request(Entry { method: method.into(), target, host, ..Entry::default() })
        }
        None => Line::LeftOut(Reason::NoPath),
    }
}

/// Whether this is the name of a method: capital letters, and `-` or `_` within.
fn is_method(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'));
    letters && (1..=32).contains(&text.len()) && text.starts_with(|first: char| first.is_ascii_uppercase())
}

/// Path and query of a path or URL, ready to send, and the host of a URL. Leaves out the fragment, which is never sent, and encodes bytes that
/// no request may contain.
pub(super) fn path(target: &[u8]) -> Option<(String, Option<String>)> {
    let lower = target[..target.len().min(8)].to_ascii_lowercase();
    let scheme = [&b"http://"[..], b"https://"].into_iter().find(|scheme| lower.starts_with(scheme));
    let (host, target) = match scheme {
        None => (None, target),
        Some(scheme) => {
            let rest = &target[scheme.len()..];
            let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
            let authority = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
            let host = authority.rsplit('@').next().unwrap_or_default().to_owned();
            (Some(host), &rest[end..])
        }
    };
    let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
    let target = &target[..end];
    let slash = match target.first() {
        Some(b'/') => "",
        None | Some(b'?') if host.is_some() => "/",
        _ => return None,
    };
    let sent = percent_encoded(target, |byte| byte.is_ascii_graphic());
    Some((slash.to_owned() + &sent, host))
}
