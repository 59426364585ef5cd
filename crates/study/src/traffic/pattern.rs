//! Logs of a format of one's own: a regular expression with named groups.

use regex::bytes::Regex;

use super::request_line::{of_parts, request, unescaped};
use super::{Entry, FIELDS, Line, TrafficError};

/// A pattern whose groups are fields.
pub(super) struct Pattern(Regex);

impl Pattern {
    /// # Errors
    /// It is no regular expression, or its groups are no fields or include no path.
    pub(super) fn of(text: &str) -> Result<Self, TrafficError> {
        let regex = Regex::new(text).map_err(|error| TrafficError::Pattern(error.to_string()))?;
        if let Some(unknown) = regex.capture_names().flatten().find(|name| !FIELDS.contains(name)) {
            return Err(TrafficError::Field(unknown.to_owned()));
        }
        if !regex.capture_names().flatten().any(|name| matches!(name, "request" | "path")) {
            return Err(TrafficError::PatternWithoutPath);
        }
        Ok(Self(regex))
    }

    /// Reads one line.
    pub(super) fn line(&self, line: &[u8]) -> Line {
        let Some(groups) = self.0.captures(line) else {
            return Line::Broken("the pattern does not match it".into());
        };
        let group = |name| groups.name(name).map(|found| found.as_bytes());
        // Servers write `-` where there is nothing.
        let some = |name| group(name).filter(|found| *found != b"-");
        let text = |name| some(name).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let found = match (group("request"), group("path")) {
            (Some(whole), _) => request(&unescaped(whole)),
            (None, Some(path)) => {
                let query = some("query").filter(|query| !query.is_empty());
                let mut target = unescaped(path).into_owned();
                if let Some(query) = query.filter(|_| !path.contains(&b'?')) {
                    target.push(b'?');
                    target.extend_from_slice(&unescaped(query));
                }
                of_parts(&group("method").unwrap_or(b"GET").to_ascii_uppercase(), &target)
            }
            (None, None) => return Line::Broken("the pattern found no path in it".into()),
        };
        let Line::Request(entry) = found else { return found };
        let status = match text("status").map(|status| status.parse::<u16>()) {
            Some(Err(_)) => return Line::Broken("its status is no number".into()),
            Some(Ok(status)) => Some(status),
            None => None,
        };
        let body = some("body").map(|body| unescaped(body).into_owned()).unwrap_or_default();
        let host = entry.host.clone().or_else(|| text("host"));
        Line::Request(Entry { status, time: text("time"), host, body, ..entry })
    }
}
