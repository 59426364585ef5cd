//! Owns: the bytes of an HTTP/1.1 request, and what they say about the connection. Must not know answers, order or
//! time.

/// Why request bytes could not be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is empty or has a character that a token must not have.
    #[error("the method {0:?} is not a token: use letters only, such as GET")]
    Method(String),
    /// The target is empty or has a space or a control character.
    #[error("the request target {0:?} is empty or holds a space or control character: percent-encode it")]
    Target(String),
    /// The host is empty or has a space or a control character.
    #[error("the host {0:?} is empty or holds a space or control character")]
    Host(String),
    /// The header's name is empty or has a character that a token must not have.
    #[error("the header name {0:?} is not a token")]
    HeaderName(String),
    /// The header's value has CR, LF or NUL.
    #[error("the value of header {name:?} holds a line break or NUL: {value:?}")]
    HeaderValue {
        /// Name of the header.
        name: String,
        /// Its value as given.
        value: String,
    },
    /// The header would change where the request ends.
    #[error("the header {0:?} is set by deadheat from the body: leave it out")]
    Framing(String),
}

/// The bytes of an HTTP/1.1 request.
///
/// `host` is the authority, with a port unless it is the default one. `Host`, `User-Agent: deadheat/<version>` and
/// `Accept: */*` are added unless `headers` has them. `Content-Length` is added for a body, and always for POST, PUT
/// and PATCH. The other headers follow `Host` in the order given.
///
/// # Errors
/// Refuses anything that could end a line early or move the end of the request; see [`RequestError`].
pub fn request_bytes(
    method: &str,
    target: &str,
    host: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<Vec<u8>, RequestError> {
    check(method, target, host, headers)?;
    let has = |name: &str| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let mut text = format!("{method} {target} HTTP/1.1\r\n");
    let mut line = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    };
    if !has("host") {
        line("Host", host);
    }
    headers.iter().for_each(|(name, value)| line(name, value));
    if !has("user-agent") {
        line("User-Agent", concat!("deadheat/", env!("CARGO_PKG_VERSION")));
    }
    if !has("accept") {
        line("Accept", "*/*");
    }
    if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
        line("Content-Length", &body.len().to_string());
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    Ok(bytes)
}

fn check(method: &str, target: &str, host: &str, headers: &[(String, String)]) -> Result<(), RequestError> {
    let visible = |text: &str| !text.is_empty() && !text.bytes().any(|b| b <= b' ' || b == 0x7f);
    if !is_token(method.as_bytes()) {
        return Err(RequestError::Method(method.to_owned()));
    }
    if !visible(target) {
        return Err(RequestError::Target(target.to_owned()));
    }
    if !visible(host) {
        return Err(RequestError::Host(host.to_owned()));
    }
    for (name, value) in headers {
        if !is_token(name.as_bytes()) {
            return Err(RequestError::HeaderName(name.clone()));
        }
        if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return Err(RequestError::HeaderValue { name: name.clone(), value: value.clone() });
        }
        if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(RequestError::Framing(name.clone()));
        }
    }
    Ok(())
}

/// Whether `bytes` are a token as HTTP defines it (RFC 9110): a method or the name of a header.
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().copied().all(is_token_byte)
}

/// Whether RFC 9110 allows `byte` in a token.
pub(super) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+')
        || matches!(byte, b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// Whether the request may be repeated without harm: RFC 9110, section 9.2.2.
pub(super) fn is_idempotent(request: &[u8]) -> bool {
    let method = request.split(|byte| *byte == b' ').next().unwrap_or_default();
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE" | b"TRACE")
}

/// Whether the request says `Connection: close`. Then no other request may follow on its connection, whatever the
/// answer says (RFC 9112, section 9.6).
pub(super) fn is_last(request: &[u8]) -> bool {
    let lines = request.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii);
    let head = lines.take_while(|line| !line.is_empty());
    head.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], &line[colon + 1..]))
    })
    .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"))
    .flat_map(|(_, value)| value.split(|byte| *byte == b','))
    .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
    }

    #[test]
    fn adds_what_is_missing() {
        let bytes = request_bytes("GET", "/a?b=1", "h:1", &headers(&[("X-A", "1")]), b"").unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let wanted = format!(
            "GET /a?b=1 HTTP/1.1\r\nHost: h:1\r\nX-A: 1\r\nUser-Agent: deadheat/{version}\r\nAccept: */*\r\n\r\n"
        );
        assert_eq!(String::from_utf8(bytes).unwrap(), wanted);
    }

    #[test]
    fn keeps_what_is_given_and_sizes_the_body() {
        let given = headers(&[("host", "x"), ("user-agent", "u"), ("ACCEPT", "text/html")]);
        let bytes = request_bytes("POST", "/", "h", &given, b"abc").unwrap();
        let wanted = "POST / HTTP/1.1\r\nhost: x\r\nuser-agent: u\r\nACCEPT: text/html\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(String::from_utf8(bytes).unwrap(), wanted);
        let empty = request_bytes("PUT", "/", "h", &[], b"").unwrap();
        assert!(String::from_utf8(empty).unwrap().contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn refuses_what_would_break_the_framing() {
        let build =
            |m: &str, t: &str, h: &str, list: &[(&str, &str)]| request_bytes(m, t, h, &headers(list), b"");
        assert!(matches!(build("GE T", "/", "h", &[]), Err(RequestError::Method(_))));
        assert!(matches!(build("", "/", "h", &[]), Err(RequestError::Method(_))));
        for target in ["", "/a b", "/\r\nX: 1", "/\0", "/\t"] {
            assert!(matches!(build("GET", target, "h", &[]), Err(RequestError::Target(_))), "{target:?}");
        }
        assert!(matches!(build("GET", "/", "h\n", &[]), Err(RequestError::Host(_))));
        assert!(matches!(build("GET", "/", "h", &[("a b", "")]), Err(RequestError::HeaderName(_))));
        for value in ["a\rb", "a\nb", "a\0b"] {
            let got = build("GET", "/", "h", &[("a", value)]);
            assert!(matches!(got, Err(RequestError::HeaderValue { .. })), "{value:?}");
        }
        assert!(matches!(build("GET", "/", "h", &[("content-Length", "1")]), Err(RequestError::Framing(_))));
    }

    #[test]
    fn what_may_be_sent_twice_is_known_by_its_method() {
        for (method, may) in [("GET", true), ("HEAD", true), ("PUT", true), ("POST", false), ("PATCH", false)]
        {
            let bytes = request_bytes(method, "/GET", "h", &[], b"").unwrap();
            assert_eq!(is_idempotent(&bytes), may, "{method}");
        }
    }

    #[test]
    fn the_last_request_of_a_connection_says_so_in_its_head() {
        for (headers_of, body, last) in [
            (&[("Connection", "close")][..], "", true),
            (&[("connection", "x, Close ")], "", true),
            (&[("connection", "keep-alive")], "", false),
            (&[("x-connection", "close")], "", false),
            (&[], "\r\nConnection: close\r\n", false),
        ] {
            let bytes = request_bytes("POST", "/close", "h", &headers(headers_of), body.as_bytes()).unwrap();
            assert_eq!(is_last(&bytes), last, "{headers_of:?} {body:?}");
        }
    }
}
