//! Files of requests: one path, URL or JSON object per line.
//!
//! Owns: the format of such a file, and its error messages. Must not know: flags, order, how requests are used.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deadheat_load::{StatusSet, request_bytes};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::target::Target;
use deadheat_study::choices::UsageError;
use deadheat_study::file::{shown, tamed};

/// One request of a file. `None` means that the command line decides.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestSpec {
    /// The line number, from 1.
    pub(crate) line: usize,
    /// The method, which is a token.
    pub(crate) method: Option<String>,
    /// Path and query. Begins with `/`.
    pub(crate) target: String,
    /// In order, with names as written. A name may occur several times.
    pub(crate) headers: Vec<(String, String)>,
    /// The body's bytes.
    pub(crate) body: Option<Vec<u8>>,
    /// How often the request is sent relative to the others. Finite and not negative. Default: 1.
    pub(crate) weight: f64,
    /// The accepted status codes.
    pub(crate) expect_status: Option<StatusSet>,
}

const JSON_REMEDY: &str =
    r#"a request is one object on one line: {"method":"POST","path":"/x","body":"a=b"}"#;

/// Reads the requests of a file called `file` for a server at `origin`, as [`Target::origin`] writes it.
///
/// Each line is one of these:
/// - empty, or a comment that begins with `#`
/// - a path (or a URL of `origin`), optionally followed by a tab and a weight
/// - a JSON object with `path` and optionally `method`, `headers` (an object, or a list of pairs), `body` or `body_base64`, `weight` and
///   `expect_status` (a code, or text such as `200,3xx`)
///
/// # Errors
/// Names the first wrong line, the problem and the remedy.
pub(crate) fn parse(file: &str, bytes: &[u8], origin: &str) -> Result<Vec<RequestSpec>, UsageError> {
    let place = |line: usize, mistake: UsageError| {
        UsageError::new(format!("{}:{line}: {}", shown(file), mistake.problem), mistake.remedy)
    };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut requests = Vec::new();
    let mut line = 0;
    for bytes in bytes.split(|byte| *byte == b'\n') {
        line += 1;
        let text = std::str::from_utf8(bytes);
        let text = text
            .map_err(|_| place(line, UsageError::new("this line is not UTF-8", "save the file as UTF-8")))?;
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.trim().is_empty() || text.trim_start().starts_with('#') {
            continue;
        }
        requests.push(request(text, line, origin).map_err(|mistake| place(line, mistake))?);
    }
    if requests.is_empty() {
        let mistake = UsageError::new(
            "there is no request in this file",
            "write a path such as /items?limit=9 on a line",
        );
        return Err(place(line, mistake));
    }
    if requests.iter().all(|request| request.weight == 0.0) {
        let mistake =
            UsageError::new("all weights are 0", "give one request a weight above 0, or leave weights out");
        return Err(place(line, mistake));
    }
    Ok(requests)
}

fn request(text: &str, line: usize, origin: &str) -> Result<RequestSpec, UsageError> {
    let request = match text.trim_start().as_bytes() {
        [b'{', ..] => of_json(text.trim(), line, origin),
        [b'[', ..] => {
            Err(UsageError::new("found a list", format!("leave out the brackets and commas: {JSON_REMEDY}")))
        }
        _ => of_path(text, line, origin),
    }?;
    // Run the engine's checks here, so that the error can name the line.
    let method = request.method.as_deref().unwrap_or("GET");
    let body = request.body.as_deref().unwrap_or_default();
    match request_bytes(method, &request.target, "host", &request.headers, body) {
        Ok(_) => Ok(request),
        Err(error) => Err(UsageError::new(
            tamed(&error.to_string()),
            "correct this request: deadheat sends it as it is written",
        )),
    }
}

fn of_path(text: &str, line: usize, origin: &str) -> Result<RequestSpec, UsageError> {
    let (url, number) = match text.split_once('\t') {
        Some((url, number)) => (url, Some(number)),
        None => (text, None),
    };
    let found = number.map_or(Some(1.0), |number| number.trim().parse().ok());
    let remedy = "write a weight after the tab: 0 or more, such as 3 or 0.5";
    let weight = found.and_then(weight);
    let weight =
        weight.ok_or_else(|| UsageError::new(format!("found `{}`", shown(number.unwrap_or(""))), remedy))?;
    let target = target(url.trim(), origin)?;
    Ok(RequestSpec { line, method: None, target, headers: vec![], body: None, weight, expect_status: None })
}

fn weight(weight: f64) -> Option<f64> {
    Some(weight).filter(|weight| weight.is_finite() && *weight >= 0.0)
}

/// Path and query of a path, or of a URL of `origin`.
fn target(url: &str, origin: &str) -> Result<String, UsageError> {
    let found = || format!("found `{}`", shown(url));
    if url.contains('#') {
        return Err(UsageError::new(
            found(),
            "leave out what follows #, which is never sent, or write it as %23",
        ));
    }
    if url.starts_with('/') {
        return Ok(url.to_owned());
    }
    let has_scheme = url.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', ':']));
    if !has_scheme {
        let remedy = format!("a line is a path such as /x, a URL of {}, or a JSON object", shown(origin));
        return Err(UsageError::new(found(), remedy));
    }
    match Target::split(url) {
        Ok(target) if target.origin() == origin => Ok(target.path),
        _ => {
            let remedy = format!("all requests go to {}: write the path alone", shown(origin));
            Err(UsageError::new(format!("found `{}` of another server", shown(url)), remedy))
        }
    }
}

/// A JSON request before its checks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a request")]
struct Written {
    method: Option<String>,
    path: String,
    #[serde(default)]
    headers: Headers,
    body: Option<String>,
    body_base64: Option<String>,
    weight: Option<f64>,
    expect_status: Option<Statuses>,
}

fn of_json(text: &str, line: usize, origin: &str) -> Result<RequestSpec, UsageError> {
    let written: Written = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        UsageError::new(format!("column {}: {}", error.column(), tamed(message)), JSON_REMEDY)
    })?;
    let body = match (written.body, written.body_base64) {
        (Some(_), Some(_)) => {
            return Err(UsageError::new("found both `body` and `body_base64`", "write one of them"));
        }
        (Some(body), None) => Some(body.into_bytes()),
        (None, Some(text)) => Some(STANDARD.decode(text).map_err(|error| {
            let problem = format!("`body_base64` is not base64: {error}");
            UsageError::new(problem, "write bytes in base64 with its padding, or text as `body`")
        })?),
        (None, None) => None,
    };
    let found = written.weight.unwrap_or(1.0);
    let weight = weight(found)
        .ok_or_else(|| UsageError::new(format!("found the weight {found}"), "weights are 0 or more"))?;
    Ok(RequestSpec {
        line,
        method: written.method,
        target: target(&written.path, origin)?,
        headers: written.headers.0,
        body,
        weight,
        expect_status: written.expect_status.map(|statuses| statuses.0),
    })
}

/// An object, or a list of pairs. A name may occur twice in either.
#[derive(Default)]
struct Headers(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Both;
        impl<'de> Visitor<'de> for Both {
            type Value = Headers;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("headers as {\"name\":\"value\"} or [[\"name\",\"value\"]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(header) = map.next_entry()? {
                    headers.push(header);
                }
                Ok(Headers(headers))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
                let mut headers = Vec::new();
                while let Some(header) = list.next_element()? {
                    headers.push(header);
                }
                Ok(Headers(headers))
            }
        }
        deserializer.deserialize_any(Both)
    }
}

/// A number, or text.
struct Statuses(StatusSet);

impl<'de> Deserialize<'de> for Statuses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Both;
        impl Visitor<'_> for Both {
            type Value = Statuses;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a status code, or several such as \"200,3xx\"")
            }

            fn visit_u64<E: de::Error>(self, code: u64) -> Result<Statuses, E> {
                self.visit_str(&code.to_string())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Statuses, E> {
                text.parse().map(Statuses).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Both)
    }
}

#[cfg(test)]
#[path = "request_file_tests.rs"]
mod tests;
