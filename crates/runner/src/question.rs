//! Makes a request of a probe: as it is written, with a recorded request, with a row of values, and with values of earlier answers.
//!
//! Owns: what of these goes where in the request. Must not know: to whom it is sent, and what the answer must be.

use deadheat_load::{RecordedRequest, RequestError, request_bytes};
use deadheat_record::{Probe, Rows, ValueError, ValuePlace, fill};

use crate::ask::Question;
use crate::capture::Captured;

/// Why a request cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// It is no HTTP request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A value cannot be written where it stands.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The requests of a probe take too much memory.
    #[error(
        "probe {probe}: its {count} requests take more than {most_bytes} bytes for each contender; use fewer rows or shorter requests"
    )]
    TooLarge {
        /// The probe's name.
        probe: String,
        /// How many requests it stands for.
        count: usize,
        /// How many bytes they may take.
        most_bytes: usize,
    },
}

/// What is sent in addition to, or instead of, what the probe itself says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filling<'a> {
    /// The recorded request that is sent. It takes the probe's headers where it has none of that name.
    pub recorded: Option<&'a RecordedRequest>,
    /// The row whose values the placeholders stand for.
    pub row: Option<(&'a Rows, usize)>,
    /// The values that the contender's earlier answers contained.
    pub captured: Option<&'a Captured>,
}

impl<'a> Filling<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        let of_row = self.row.and_then(|(rows, row)| rows.value(row, name));
        of_row.or_else(|| self.captured?.get(name).map(String::as_str))
    }
}

/// A probe as a plain HTTP request; `GET /` without a probe.
///
/// # Errors
/// When it is no HTTP request, or a value cannot be written where it stands.
pub(crate) fn question(probe: Option<&Probe>, filling: Filling<'_>) -> Result<Question, QuestionError> {
    let Some(probe) = probe else {
        let bytes = request_bytes("GET", "/", "localhost", &[], b"")?.into();
        return Ok(Question { bytes, head: false, tls: None });
    };
    let value = |name: &str| filling.value(name);
    let own = filling.recorded.map_or(&[][..], |recorded| &recorded.headers);
    let mut headers: Vec<(String, String)> = own.to_vec();
    for (name, text) in &probe.request_headers {
        if own.iter().all(|(one, _)| !one.eq_ignore_ascii_case(name)) {
            headers.push((name.clone(), fill(text, ValuePlace::Header, &value)?));
        }
    }
    let question = |method: &str, path: &str, body: &[u8]| {
        let bytes = request_bytes(method, path, "localhost", &headers, body)?.into();
        Ok(Question { bytes, head: method == "HEAD", tls: None })
    };
    match filling.recorded {
        // Braces in what clients once sent are data.
        Some(recorded) => question(&recorded.method, &recorded.target, &recorded.body),
        None => {
            let body = fill(&probe.request_body, probe.body_place(), &value)?;
            question(&probe.method, &fill(&probe.path, ValuePlace::Target, &value)?, body.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::parity::tests::probe;

    fn text(probe: &Probe, filling: Filling<'_>) -> String {
        String::from_utf8_lossy(&question(Some(probe), filling).unwrap().bytes).into_owned()
    }

    #[test]
    fn rows_and_captured_values_fill_path_headers_and_body() {
        let probe = Probe {
            method: "POST".into(),
            path: "/items/{id}?by={user}".into(),
            request_headers: BTreeMap::from([("authorization".into(), "Bearer {token}".into())]),
            request_body: r#"{"name":"{user}","id":{id},"other":"{other}"}"#.into(),
            ..probe(&[])
        };
        let rows = Rows {
            columns: vec!["id".into(), "user".into()],
            values: vec![vec!["1".into(), "a".into()], vec!["7".into(), "{token} \"x\"".into()]],
            lines: vec![2, 3],
        };
        let captured = Captured::from([("token".to_owned(), "{id}+".to_owned())]);
        let filling = Filling { row: Some((&rows, 1)), captured: Some(&captured), recorded: None };
        let sent = text(&probe, filling);
        assert!(sent.starts_with("POST /items/7?by=%7Btoken%7D%20%22x%22 HTTP/1.1\r\n"), "{sent}");
        assert!(sent.contains("authorization: Bearer {id}+\r\n"), "{sent}");
        assert!(
            sent.ends_with("\r\n\r\n{\"name\":\"{token} \\\"x\\\"\",\"id\":7,\"other\":\"{other}\"}"),
            "{sent}"
        );
        let split = Captured::from([("token".to_owned(), "a\r\nx: y".to_owned())]);
        let refused = question(Some(&probe), Filling { captured: Some(&split), ..filling });
        assert_eq!(refused.unwrap_err(), QuestionError::Value(ValueError::Header("token".into())));
    }

    #[test]
    fn recorded_requests_get_captured_values_in_the_headers_of_the_probe_only() {
        let recorded = RecordedRequest {
            method: "GET".into(),
            target: "/{token}".into(),
            headers: vec![("x-old".into(), "{token}".into())],
            body: b"{token}".to_vec(),
        };
        let headers = BTreeMap::from([("cookie".to_owned(), "sid={token}".to_owned())]);
        let probe = Probe { request_headers: headers, ..probe(&[]) };
        let captured = Captured::from([("token".to_owned(), "abc".to_owned())]);
        let sent = text(&probe, Filling { recorded: Some(&recorded), captured: Some(&captured), row: None });
        assert!(sent.starts_with("GET /{token} HTTP/1.1\r\n") && sent.ends_with("\r\n\r\n{token}"), "{sent}");
        assert!(sent.contains("x-old: {token}\r\ncookie: sid=abc\r\n"), "{sent}");
    }
}
