//! Values in requests: `{name}` stands for a value of a file's row, or for one that an earlier answer contained.
//!
//! Owns: these nouns, and how a value is written where it stands. Must not know: formats of files, and which contender a value belongs to.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a value is in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// At this JSON path of the body, such as `$.access_token`. If several places match, the first one counts.
    Json(String),
    /// In the header of this name.
    Header(String),
    /// In the cookie of this name.
    Cookie(String),
}

impl fmt::Display for Capture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(path) => write!(out, "{path}"),
            Self::Header(name) => write!(out, "header {name}"),
            Self::Cookie(name) => write!(out, "cookie {name}"),
        }
    }
}

/// A CSV file whose rows fill in a request: each row makes one request. The values stay in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValuesFile {
    /// The file, as an absolute path. Resuming a race reads it again.
    pub file: PathBuf,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
    /// The names of its columns, from its first line.
    pub columns: Vec<String>,
    /// Number of rows after the first line.
    pub rows: u64,
}

/// The rows of a [`ValuesFile`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The values of each row, in the order of `columns`.
    pub values: Vec<Vec<String>>,
    /// The number of the line at which each row begins, from 1.
    pub lines: Vec<u64>,
}

impl Rows {
    /// The largest total size of the requests that the rows of one probe make, in bytes. Each contender has its own copy of them.
    pub const MOST_REQUEST_BYTES: usize = 256 << 20;

    /// The value of a row in this column; none if there is no such row or column.
    pub fn value(&self, row: usize, column: &str) -> Option<&str> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.values.get(row)?.get(at).map(String::as_str)
    }
}

/// Where a placeholder stands in a request. It decides how a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuePlace {
    /// In the path or query: percent-encoded.
    Target,
    /// In the value of a header: as it is, without control characters.
    Header,
    /// In a JSON body: escaped within quotes; outside of them only a number, `true`, `false` or `null`.
    Json,
    /// In the body of a form: percent-encoded.
    Form,
    /// In any other body: as it is.
    Text,
}

impl ValuePlace {
    /// The place of placeholders in `body`: `content_type` decides, and without one the first character of the body.
    pub fn of_body(content_type: Option<&str>, body: &str) -> Self {
        let kind = content_type.map(str::to_ascii_lowercase);
        match kind.as_deref() {
            Some(kind) if kind.contains("json") => Self::Json,
            Some(kind) if kind.contains("x-www-form-urlencoded") => Self::Form,
            None if body.trim_start().starts_with(['{', '[']) => Self::Json,
            Some(_) | None => Self::Text,
        }
    }
}

/// Why a value cannot be written where it stands. The message does not contain the value, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A header cannot contain the value.
    #[error(
        "the value of {{{0}}} contains a line break or another control character, which a header cannot contain"
    )]
    Header(String),
    /// JSON cannot contain the value outside of quotes.
    #[error(
        "{{{0}}} stands outside of quotes in a JSON body, and its value is no number, true, false or null; write \"{{{0}}}\" for a text"
    )]
    Json(String),
}

/// All `{name}` in `text`, in order, with their places in it. Names consist of letters, digits, `_`, `-` and `.`.
pub fn placeholders(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    text.match_indices('{').filter_map(move |(at, _)| {
        let (name, _) = text[at + 1..].split_once('}')?;
        let is_name = !name.is_empty() && name.bytes().all(plain);
        is_name.then(|| (at..at + name.len() + 2, name))
    })
}

/// The [`placeholders`] of a shell command. `${name}` is the shell's, and none of them.
pub fn command_placeholders(command: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    placeholders(command).filter(|(span, _)| !command[..span.start].ends_with('$'))
}

/// `text` with the value of each placeholder, written as `place` needs it. A placeholder without a value stays as it is. Values are data:
/// a placeholder in a value is not replaced.
///
/// # Errors
/// When a value cannot be written at its place.
pub fn fill<'v>(
    text: &str,
    place: ValuePlace,
    value: &dyn Fn(&str) -> Option<&'v str>,
) -> Result<String, ValueError> {
    let (mut filled, mut done) = (String::with_capacity(text.len()), 0);
    for (span, name) in placeholders(text) {
        let Some(value) = value(name) else { continue };
        filled.push_str(&text[done..span.start]);
        match place {
            ValuePlace::Target | ValuePlace::Form => {
                filled.push_str(&percent_encoded(value.as_bytes(), is_unreserved));
            }
            ValuePlace::Header if value.chars().any(|one| one.is_control() && one != '\t') => {
                return Err(ValueError::Header(name.into()));
            }
            ValuePlace::Json if is_quoted(&text[..span.start]) => {
                let escaped = serde_json::Value::from(value).to_string();
                filled.push_str(&escaped[1..escaped.len() - 1]);
            }
            ValuePlace::Json if !is_scalar(value) => return Err(ValueError::Json(name.into())),
            ValuePlace::Header | ValuePlace::Json | ValuePlace::Text => filled.push_str(value),
        }
        done = span.end;
    }
    filled.push_str(&text[done..]);
    Ok(filled)
}

/// The bytes as text, where `%` and two hexadecimal digits stand for each byte that is not plain. `is_plain` accepts ASCII only.
pub fn percent_encoded(bytes: &[u8], is_plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if is_plain(byte) { text.push(byte.into()) } else { text.push_str(&format!("%{byte:02X}")) }
    }
    text
}

/// Whether a byte never needs to be encoded in a URL (RFC 3986, section 2.3).
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Whether the JSON text that follows `before` is within quotes.
fn is_quoted(before: &str) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    for byte in before.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    quoted
}

/// Whether a text is a JSON number, `true`, `false` or `null`.
fn is_scalar(text: &str) -> bool {
    let value = serde_json::from_str::<serde_json::Value>(text);
    value.is_ok_and(|value| !value.is_string() && !value.is_array() && !value.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, place: ValuePlace, value: &str) -> Result<String, ValueError> {
        fill(text, place, &|name| (name == "v").then_some(value))
    }

    #[test]
    fn values_are_data_wherever_they_stand() {
        for (place, text, value, expected) in [
            (
                ValuePlace::Target,
                "/a/{v}?q={v}",
                "x/y?&ü {v}",
                "/a/x%2Fy%3F%26%C3%BC%20%7Bv%7D?q=x%2Fy%3F%26%C3%BC%20%7Bv%7D",
            ),
            (ValuePlace::Target, "/{w}/{v}/{ v }", "a-b_c.d~e", "/{w}/a-b_c.d~e/{ v }"),
            (ValuePlace::Form, "a={v}&b=1", "1&b=2", "a=1%26b%3D2&b=1"),
            (ValuePlace::Header, "Bearer {v}", "a b=\t{v}", "Bearer a b=\t{v}"),
            (ValuePlace::Json, r#"{"a":"x{v}"}"#, "\"\n\\", r#"{"a":"x\"\n\\"}"#),
            (ValuePlace::Json, r#"{"a\"":{v}}"#, "-1.5e3", r#"{"a\"":-1.5e3}"#),
            (ValuePlace::Json, r#"{"a":{v},"b":"{v}"}"#, "true", r#"{"a":true,"b":"true"}"#),
            (ValuePlace::Text, "<v>{v}</v>", "a&b", "<v>a&b</v>"),
        ] {
            assert_eq!(filled(text, place, value).unwrap(), expected, "{place:?} {text} {value}");
        }
    }

    #[test]
    fn values_that_would_end_their_place_are_refused() {
        for value in ["a\r\nx: y", "a\nb", "\0", "\u{7f}"] {
            assert_eq!(filled("{v}", ValuePlace::Header, value), Err(ValueError::Header("v".into())));
        }
        for value in ["x", "1,\"admin\":true", "{}", "[]", "\"x\"", "", "NaN"] {
            let refused = filled(r#"{"a":{v}}"#, ValuePlace::Json, value);
            assert_eq!(refused, Err(ValueError::Json("v".into())), "{value}");
        }
    }

    #[test]
    fn the_content_type_decides_how_a_body_is_written() {
        for (kind, body, place) in [
            (Some("Application/JSON"), "x", ValuePlace::Json),
            (Some("application/ld+json; charset=utf-8"), "x", ValuePlace::Json),
            (Some("application/x-www-form-urlencoded"), "{}", ValuePlace::Form),
            (Some("text/plain"), "{}", ValuePlace::Text),
            (None, " [1]", ValuePlace::Json),
            (None, "a=b", ValuePlace::Text),
        ] {
            assert_eq!(ValuePlace::of_body(kind, body), place, "{kind:?} {body}");
        }
    }

    #[test]
    fn a_row_has_the_values_of_its_columns() {
        let rows = Rows {
            columns: vec!["id".into(), "name".into()],
            values: vec![vec!["1".into(), "a".into()], vec!["2".into(), "b".into()]],
            lines: vec![2, 3],
        };
        assert_eq!(
            (rows.value(1, "name"), rows.value(2, "name"), rows.value(0, "x")),
            (Some("b"), None, None)
        );
    }
}
