//! Takes requests from a file: an OpenAPI description, an access log or a HAR file.
//!
//! Owns: which kind a file is, and which of its requests a draft takes. Must not know: how these kinds are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use deadheat_record::{LogFormat, LogReading};

use super::contract::grouped;
use super::openapi::{OpenApiError, described};
use super::{DraftRequest, LeftOut, MOST_WEIGHT};
use crate::traffic::{RecordedTraffic, TrafficError, is_credential, read, recognise};

/// The most requests that are taken from a log or a HAR file: the most frequent ones.
const MOST_FREQUENT: usize = 10;
/// Headers of a HAR file that may change an answer. Those that begin with `x-` are taken too, unless they may hold credentials.
const HEADERS: [&str; 3] = ["accept", "accept-encoding", "accept-language"];

/// The requests of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The requests, at least one.
    pub requests: Vec<DraftRequest>,
    /// What else the file has, and why it is not among them.
    pub left_out: Vec<LeftOut>,
}

/// Why a file gives no requests.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is not a text.
    #[error("it is not UTF-8 text")]
    NotUtf8,
    /// It cannot be read as an OpenAPI description.
    #[error(transparent)]
    OpenApi(#[from] OpenApiError),
    /// It cannot be read as a log or a HAR file.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// A description has nothing that can be requested.
    #[error("no operation of it can be requested{}", listed(.0))]
    Nothing(Vec<LeftOut>),
}

impl SourceError {
    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Traffic(error @ (TrafficError::Compressed | TrafficError::TooMany { .. })) => error.remedy(),
            Self::Traffic(TrafficError::Nothing(_)) => {
                "deadheat requests only what a GET, HEAD or OPTIONS of the file got with a status from 200 to 399; name \
                 other requests with --url"
                    .into()
            }
            Self::Nothing(_) => "add examples to the description, or name the requests with --url".into(),
            _ => "name an OpenAPI 3 description (YAML or JSON), an access log of nginx or Apache, a log of JSON lines, or \
                  a HAR file"
                .into(),
        }
    }
}

fn listed(left_out: &[LeftOut]) -> String {
    left_out.iter().map(|one| format!("\n  {}: {}", crate::file::shown(&one.what), one.why)).collect()
}

/// Reads the requests of the file at `path`, which has this content.
///
/// # Errors
/// See [`SourceError`].
pub fn requests_of(path: &Path, content: &[u8]) -> Result<Found, SourceError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(format) = log_format(path, content) else {
        let text = std::str::from_utf8(content).map_err(|_| SourceError::NotUtf8)?;
        let found = described(text)?;
        return if found.requests.is_empty() { Err(SourceError::Nothing(found.left_out)) } else { Ok(found) };
    };
    // With credentials, so that the draft says which headers it leaves out.
    let reading = LogReading { format: Some(format), credentials: true, ..LogReading::default() };
    Ok(frequent(&read(content, &reading)?, &name))
}

/// The format of a log or a HAR file. None for a description.
fn log_format(path: &Path, content: &[u8]) -> Option<LogFormat> {
    let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    if let Some(format) = recognise(content) {
        return Some(format);
    }
    let text = String::from_utf8_lossy(&content[..content.len().min(1 << 16)]);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_described = lines.clone().any(|line| line.starts_with("openapi:") || line.starts_with("swagger:"));
    let is_object = |line: &str| serde_json::from_str::<BTreeMap<String, serde_json::Value>>(line).is_ok();
    let (first, second) = (lines.next().is_some_and(is_object), lines.next().is_some_and(is_object));
    match end.as_deref() {
        Some("har") => Some(LogFormat::Har),
        Some("jsonl" | "ndjson") => Some(LogFormat::Json),
        // A description is one object.
        Some("json") if first && second => Some(LogFormat::Json),
        Some("yaml" | "yml" | "json") => None,
        _ if is_described => None,
        _ if first => Some(LogFormat::Json),
        _ => Some(LogFormat::Combined),
    }
}

/// The most frequent requests. Requests that differ only in headers or bodies count as one.
fn frequent(traffic: &RecordedTraffic, name: &str) -> Found {
    let recording = &traffic.recording;
    let counts = recording.counts();
    let mut known: Vec<(DraftRequest, u64)> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut private: BTreeSet<String> = BTreeSet::new();
    for (request, count) in recording.requests.iter().zip(&counts) {
        let place = *places.entry((request.method.as_str(), request.target.as_str())).or_insert(known.len());
        if place == known.len() {
            let mut headers = Vec::new();
            for (header, value) in &request.headers {
                let lower = header.to_ascii_lowercase();
                if lower.starts_with("x-") && is_credential(&lower) {
                    private.insert(lower);
                } else if HEADERS.contains(&lower.as_str()) || lower.starts_with("x-") {
                    headers.push((header.clone(), value.clone()));
                }
            }
            let draft = DraftRequest {
                method: request.method.clone(),
                headers,
                ..DraftRequest::get(&request.target)
            };
            known.push((draft, 0));
        }
        known[place].1 += count;
    }
    // The sort is stable: of equally frequent requests, the first in the file comes first.
    known.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let total: u64 = counts.iter().sum();
    let rest = known.split_off(known.len().min(MOST_FREQUENT));
    let most = known.first().map_or(1, |(_, count)| *count).max(1);
    let requests = known.into_iter().map(|(request, count)| {
        let scaled =
            if most > u64::from(MOST_WEIGHT) { count * u64::from(MOST_WEIGHT) / most } else { count };
        let origin =
            format!("{} of the {} requests in {name}", grouped(count as usize), grouped(total as usize));
        DraftRequest {
            weight: u32::try_from(scaled).unwrap_or(MOST_WEIGHT).max(1),
            origin: Some(origin),
            ..request
        }
    });
    let requests = requests.collect();
    let mut left_out: Vec<LeftOut> = Vec::new();
    if !rest.is_empty() {
        let requests: u64 = rest.iter().map(|(_, count)| count).sum();
        let what = format!("{} further paths of {name}", grouped(rest.len()));
        let why = format!(
            "a draft takes the {MOST_FREQUENT} most frequent; the others have {} requests",
            grouped(requests as usize)
        );
        left_out.push(LeftOut { what, why });
    }
    for (reason, count) in &traffic.contents.left_out {
        left_out.push(LeftOut { what: lines(*count, name), why: reason.clone() });
    }
    if traffic.contents.broken > 0 {
        let each: Vec<String> = traffic
            .broken
            .iter()
            .map(|one| format!("line {}: {}: `{}`", one.line, one.problem, one.text))
            .collect();
        let what = lines(traffic.contents.broken, name);
        left_out.push(LeftOut { what, why: format!("they cannot be read; {}", each.join("; ")) });
    }
    if !private.is_empty() {
        let headers: Vec<String> = private.into_iter().collect();
        let what = format!("{} in {name}", headers.join(", "));
        let why = "headers that may hold credentials; give what the service needs with -H".into();
        left_out.push(LeftOut { what, why });
    }
    Found { requests, left_out }
}

/// A number of lines of a file, in words.
fn lines(count: u64, name: &str) -> String {
    let lines = if count == 1 { "line" } else { "lines" };
    format!("{} {lines} of {name}", grouped(count as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(request: &str, status: u16) -> String {
        format!("127.0.0.1 - - [25/Nov/2026:17:58:01 +0000] \"{request}\" {status} 612 \"-\" \"curl/8\"\n")
    }

    #[test]
    fn the_most_frequent_requests_of_a_log_are_taken_with_their_counts() {
        let mut log: String = (0..12).map(|number| line(&format!("GET /p{number} HTTP/1.1"), 200)).collect();
        log += &line("GET /p7 HTTP/1.1", 200).repeat(4);
        log += &line("POST /p7 HTTP/1.1", 200);
        log += "nonsense\n";
        let found = requests_of(Path::new("logs/access.log"), log.as_bytes()).unwrap();
        let first: Vec<(&str, u32)> =
            found.requests.iter().take(2).map(|one| (one.path.as_str(), one.weight)).collect();
        assert_eq!((first, found.requests.len()), (vec![("/p7", 5), ("/p0", 1)], MOST_FREQUENT));
        assert_eq!(found.requests[0].origin.as_deref(), Some("5 of the 16 requests in access.log"));
        let left_out: Vec<String> =
            found.left_out.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
        for (one, start) in left_out.iter().zip([
            "2 further paths",
            "1 line of access.log: method POST",
            "1 line of access.log: they cannot be read; line 18",
        ]) {
            assert!(one.starts_with(start), "{left_out:#?}");
        }
        let error = requests_of(Path::new("x.log"), b"a\nb\nc\nd\n").unwrap_err();
        assert!(
            error.to_string().contains("4 of 4 lines are broken") && error.to_string().contains("line 3"),
            "{error}"
        );
    }

    #[test]
    fn a_har_file_is_known_by_its_content() {
        let entry = |url: &str, status: i32| {
            serde_json::json!({
                "startedDateTime": "2026-11-25T17:58:01.000Z",
                "request": {"method": "GET", "url": url, "headers": [
                    {"name": "Accept", "value": "text/html"}, {"name": "Cookie", "value": "secret"}, {"name": "Referer", "value": "x"}]},
                "response": {"status": status}
            })
        };
        let entries =
            [entry("http://h.test/a?b=c", 200), entry("ws://h.test/s", 101), entry("http://h.test/f", 0)];
        let har = serde_json::json!({"log": {"entries": entries}}).to_string();
        let found = requests_of(Path::new("session.json"), har.as_bytes()).unwrap();
        assert_eq!(found.requests.len(), 1);
        assert_eq!((found.requests[0].path.as_str(), found.requests[0].headers.len()), ("/a?b=c", 1));
        let reasons: Vec<&str> = found.left_out.iter().map(|one| one.why.as_str()).collect();
        assert_eq!(reasons, ["a websocket", "failed when it was recorded"]);
    }

    #[test]
    fn headers_that_may_hold_credentials_are_left_out_by_name() {
        let headers =
            ["Accept", "Cookie", "X-Auth-Token", "X-Tenant", "x-csrf-token", "X-Amz-Security-Token"];
        let pairs =
            headers.map(|name| serde_json::json!({"name": name, "value": format!("value of {name}")}));
        let request = serde_json::json!({"method": "GET", "url": "http://h.test/a", "headers": pairs});
        let entry = serde_json::json!({"request": request, "response": {"status": 200}});
        let har = serde_json::json!({"log": {"entries": [entry]}}).to_string();
        let found = requests_of(Path::new("session.har"), har.as_bytes()).unwrap();
        let taken: Vec<&str> = found.requests[0].headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(taken, ["Accept", "X-Tenant"]);
        let [left_out] = &found.left_out[..] else { panic!("{:?}", found.left_out) };
        assert_eq!(left_out.what, "x-amz-security-token, x-auth-token, x-csrf-token in session.har");
    }

    #[test]
    fn kinds_of_files_are_told_apart() {
        let of = |path: &str, text: &str| log_format(Path::new(path), text.as_bytes());
        assert_eq!(of("api.yaml", "openapi: 3.0.0"), None);
        assert_eq!(of("api", "# x\nopenapi: 3.0.0"), None);
        assert_eq!(of("api.json", "{\"openapi\": \"3.0.0\"}"), None);
        assert_eq!(of("a.log", "{\"path\": \"/\"}\n{}"), Some(LogFormat::Json));
        assert_eq!(of("a.log", &line("GET / HTTP/1.1", 200)), Some(LogFormat::Combined));
        assert_eq!(of("a.json", "{\"path\": \"/\"}\n{}\n"), Some(LogFormat::Json));
        assert_eq!(of("a.har", "nonsense"), Some(LogFormat::Har));
        assert_eq!(of("nonsense", "nonsense"), Some(LogFormat::Combined));
    }
}
