//! Lines of access logs in the common or combined format, as nginx and Apache write them.

use super::request_line::{request, unescaped};
use super::{Entry, Line};

/// The parts of a line that deadheat reads.
struct Parts<'l> {
    time: &'l [u8],
    /// The request line, with escapes.
    request: &'l [u8],
    status: Option<u16>,
    /// The virtual host in front of the client, as Apache's `vhost_combined` writes it.
    host: Option<String>,
}

/// Reads `HOST IDENT USER [TIME] "REQUEST" STATUS ...`. What is in front of the time may have any form, because users and virtual hosts may
/// contain spaces and brackets.
pub(super) fn line(line: &[u8]) -> Line {
    let parts = match parts(line) {
        Ok(parts) => parts,
        Err(problem) => return Line::Broken(problem.into()),
    };
    match request(&unescaped(parts.request)) {
        Line::Request(entry) => {
            let time = String::from_utf8_lossy(parts.time).into_owned();
            let host = entry.host.clone().or(parts.host);
            Line::Request(Entry { status: parts.status, time: Some(time), host, ..entry })
        }
        other => other,
    }
}

/// Whether a line has this format.
pub(super) fn is_log(line: &[u8]) -> bool {
    parts(line).is_ok()
}

fn parts(line: &[u8]) -> Result<Parts<'_>, &'static str> {
    let (mut from, mut close) = (0, 0);
    while let Some(open) = find(line, b'[', from) {
        from = open + 1;
        // The same bracket closes for all that open before it: it is looked for once.
        if close < open {
            let Some(next) = find(line, b']', open) else { break };
            close = next;
        }
        let Some(quoted) = line[close + 1..].strip_prefix(b" \"").filter(|_| open > 0) else { continue };
        let end = closing_quote(quoted).ok_or("the request has no closing quote")?;
        let status = quoted[end + 1..].trim_ascii_start();
        let status = status.split(|byte| *byte == b' ').next().unwrap_or_default();
        let status = match status {
            b"-" => None,
            digits => {
                let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 3);
                Some(
                    digits
                        .and_then(|digits| digits.parse().ok())
                        .ok_or("there is no status after the request")?,
                )
            }
        };
        let host = virtual_host(&line[..open]);
        return Ok(Parts { time: &line[open + 1..close], request: &quoted[..end], status, host });
    }
    Err("there is no [time] followed by a \"request\"")
}

/// The host of `HOST:PORT CLIENT IDENT USER `, which is in front of the time. Other formats have three words there, or a client first.
fn virtual_host(front: &[u8]) -> Option<String> {
    let front = std::str::from_utf8(front).ok()?;
    let word = front.split_ascii_whitespace().next()?;
    let (host, port) = word.split_once(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = host.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_port && is_name && front.split_ascii_whitespace().count() > 3).then(|| word.to_owned())
}

fn find(line: &[u8], byte: u8, from: usize) -> Option<usize> {
    line[from..].iter().position(|one| *one == byte).map(|at| from + at)
}

/// The place of the first quote that no backslash precedes.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })
}
