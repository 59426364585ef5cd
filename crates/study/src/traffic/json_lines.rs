//! Logs with a JSON object on each line.

use std::collections::BTreeMap;

use serde_json::Value;

use super::request_line::{of_parts, request};
use super::{Entry, Line};

/// Names under which servers write each field. A name with dots leads into inner objects.
const USUAL: [(&str, &[&str]); 8] = [
    ("request", &["request", "request_line"]),
    (
        "method",
        &[
            "method",
            "request_method",
            "http_method",
            "verb",
            "RequestMethod",
            "request.method",
            "http.request.method",
            "httpRequest.requestMethod",
        ],
    ),
    (
        "path",
        &[
            "path",
            "uri",
            "url",
            "request_uri",
            "target",
            "RequestPath",
            "request.uri",
            "request.url",
            "request.path",
            "url.original",
            "httpRequest.requestUrl",
        ],
    ),
    ("query", &["query", "args", "query_string", "request.query"]),
    (
        "status",
        &[
            "status",
            "status_code",
            "response_status",
            "DownstreamStatus",
            "response.status",
            "http.response.status_code",
            "httpRequest.status",
        ],
    ),
    (
        "time",
        &["time", "ts", "timestamp", "@timestamp", "time_local", "time_iso8601", "msec", "StartUTC", "date"],
    ),
    ("host", &["host", "http_host", "server_name", "RequestHost", "request.host"]),
    ("body", &["request_body"]),
];

/// Where each field is.
pub(super) struct Fields(BTreeMap<&'static str, Vec<String>>);

impl Fields {
    /// The given names, and the usual ones of all other fields.
    pub(super) fn of(given: &BTreeMap<String, String>) -> Self {
        let names = USUAL.iter().map(|(field, usual)| match given.get(*field) {
            Some(name) => (*field, vec![name.clone()]),
            None => (*field, usual.iter().map(|&name| name.to_owned()).collect()),
        });
        // A named method or path means that no other field holds the whole request.
        let names = names.filter(|(field, _)| {
            *field != "request" || given.contains_key("request") || !given.contains_key("path")
        });
        Self(names.collect())
    }

    /// Reads one line.
    pub(super) fn line(&self, line: &[u8]) -> Line {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => return Line::Broken("it is no JSON object".into()),
            Err(error) => return Line::Broken(format!("it is no JSON: {error}")),
        };
        let text = |field| self.find(&value, field).and_then(text);
        let found = match (text("request"), text("method"), text("path")) {
            (Some(whole), ..) if whole.contains(' ') || whole == "-" => request(whole.as_bytes()),
            (_, method, Some(path)) => {
                let query =
                    text("query").filter(|query| !matches!(query.as_str(), "" | "-") && !path.contains('?'));
                let target =
                    query.map_or(path.clone(), |query| format!("{path}?{}", query.trim_start_matches('?')));
                of_parts(
                    method.map_or("GET".into(), |method| method.to_ascii_uppercase()).as_bytes(),
                    target.as_bytes(),
                )
            }
            _ => return Line::Broken("it has neither a request nor a path".into()),
        };
        let Line::Request(entry) = found else { return found };
        let status = text("status").filter(|status| status != "-");
        let status = match status.map(|status| status.parse::<u16>()) {
            Some(Err(_)) => return Line::Broken("its status is no number".into()),
            Some(Ok(status)) => Some(status),
            None => None,
        };
        Line::Request(Entry {
            status,
            time: self.find(&value, "time").and_then(time),
            host: entry.host.clone().or_else(|| text("host")),
            body: text("body").filter(|body| body != "-").map(String::into_bytes).unwrap_or_default(),
            ..entry
        })
    }

    fn find<'v>(&self, value: &'v Value, field: &str) -> Option<&'v Value> {
        let names = self.0.get(field)?;
        names.iter().find_map(|name| at(value, name).filter(|found| is_plain(found)))
    }
}

/// The value of this name, or at this way of names with dots between them.
fn at<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).or_else(|| name.split('.').try_fold(value, |value, part| value.get(part)))
}

/// A time as text. A number has lost the zeros at its end: a fraction is exact to a millisecond at least.
fn time(value: &Value) -> Option<String> {
    let text = text(value)?;
    let decimals =
        text.split_once('.').filter(|_| value.is_number()).map_or(0, |(_, fraction)| fraction.len());
    Some(if decimals == 0 { text } else { text + &"0".repeat(3_usize.saturating_sub(decimals)) })
}

fn is_plain(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
