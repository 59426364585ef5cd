//! Checks of single values: names, ports and sockets, header names, patterns, JSON paths, JSON values.

use std::ops::Range;

use deadheat_load::is_token;
use deadheat_record::JsonPath;
use deadheat_record::Listen;
use regex::Regex;
use serde_json::Value;
use toml::Spanned;
use toml::de::DeValue;

use super::complaint::Complaint;
use super::fields::{Fields, StudyReader, number, whole};
use super::words::shown;
use crate::values::usual_method;

/// The longest name that still fits into a table and a file name.
const NAME_LENGTH: usize = 60;

/// Checks that a name is usable in flags, tables and names of log files.
pub(super) fn name(reading: &StudyReader<'_>, name: &Spanned<String>) {
    let text = name.get_ref();
    let problem = if text.trim() != text {
        "begins or ends with a space"
    } else if text.chars().count() > NAME_LENGTH {
        "is longer than 60 characters"
    } else if text.contains(',') {
        "has a comma in it, which separates names in --only"
    } else if text.chars().any(char::is_control) {
        "has a control character in it"
    } else {
        return;
    };
    let complaint = Complaint::new(name.span(), format!("the name `{}` {problem}", shown(text)), "this name");
    reading.complain(complaint);
}

/// Checks a service's name, which becomes a part of placeholders and environment variables.
pub(super) fn service_name(reading: &StudyReader<'_>, name: &Spanned<String>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.get_ref().bytes().all(plain) {
        let title =
            format!("the service's name `{}` cannot be used in `{{NAME.port}}`", shown(name.get_ref()));
        let complaint = Complaint::new(name.span(), title, "this name");
        reading.complain(complaint.help("use letters, digits, `_` and `-` only"));
    }
}

/// Reads `port = N` or `socket = true`. Default: a free port.
pub(super) fn listen(fields: &Fields<'_, '_>) -> Spanned<Listen> {
    let port = fields.whole("port", 1, 65_535);
    let socket = fields.flag("socket").filter(|socket| *socket.get_ref());
    match (port, socket) {
        (Some(port), Some(socket)) => {
            let title = "`port` and `socket = true` exclude each other";
            let complaint =
                Complaint::new(socket.span(), title, "a socket here").also(port.span(), "and a port here");
            fields.complain(complaint.help(
                "keep the one that the program listens on; with neither, deadheat gives it a free port",
            ));
            Spanned::new(socket.span(), Listen::Socket)
        }
        (Some(port), None) => Spanned::new(port.span(), Listen::Port(*port.get_ref() as u16)),
        (None, Some(socket)) => Spanned::new(socket.span(), Listen::Socket),
        (None, None) => Spanned::new(fields.span(), Listen::FreePort),
    }
}

/// Checks that a header's name is a token.
pub(super) fn header_name(reading: &StudyReader<'_>, name: &str, place: Range<usize>) {
    if !is_token(name.as_bytes()) {
        let title = format!("`{}` is not a valid header name", shown(name));
        let complaint = Complaint::new(place, title, "this header");
        reading.complain(complaint.help("for example: \"cache-control\""));
    }
}

/// Checks that a header's value contains no line break.
pub(super) fn header_value(reading: &StudyReader<'_>, value: &Spanned<String>) {
    if value.get_ref().chars().any(|character| character.is_control() && character != '\t') {
        let title = "a header's value cannot contain line breaks or control characters";
        reading.complain(Complaint::new(
            value.span(),
            title,
            format!("found \"{}\"", shown(value.get_ref())),
        ));
    }
}

/// Checks a method such as GET.
pub(super) fn method(reading: &StudyReader<'_>, method: &Spanned<String>) {
    let text = method.get_ref();
    if !is_token(text.as_bytes()) {
        let title = format!("`{}` is not an HTTP method", shown(text));
        reading.complain(
            Complaint::new(method.span(), title, "this method").help("for example: method = \"GET\""),
        );
    } else if let Some(upper) = usual_method(text).filter(|upper| upper != text) {
        let title = format!("HTTP methods are case-sensitive: `{text}` is not `{upper}`");
        reading.complain(Complaint::new(method.span(), title, "this method").meant(Some(upper)));
    }
}

/// Why `path` cannot be used in a request line. `None` if it can.
pub fn path_problem(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        return Some("it must begin with `/`");
    }
    if path.contains('#') {
        return Some("what follows `#` never reaches a server");
    }
    let sendable = |byte: u8| (0x21..0x7f).contains(&byte);
    (!path.bytes().all(sendable))
        .then_some("spaces and letters beyond ASCII must be percent-encoded, such as %20")
}

/// Checks a request's path and query.
pub(super) fn path(reading: &StudyReader<'_>, path: &Spanned<String>) {
    if let Some(problem) = path_problem(path.get_ref()).filter(|_| !path.get_ref().is_empty()) {
        let title = format!("`{}` is not a path that can be requested: {problem}", shown(path.get_ref()));
        let complaint = Complaint::new(path.span(), title, "this path");
        reading.complain(complaint.help("path and query only, for example: path = \"/api/items?limit=10\""));
    }
}

/// Checks a regular expression.
pub(super) fn pattern(reading: &StudyReader<'_>, pattern: &Spanned<String>) {
    let Err(error) = Regex::new(pattern.get_ref()) else { return };
    let message = error.to_string();
    let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let title = format!("this regular expression cannot be used: {last}");
    let complaint = Complaint::new(pattern.span(), title, "this pattern");
    let help = if last.starts_with("look-around") {
        "leave out the look-around: `pattern` says what must match, `not` what must not"
    } else {
        "write it in single quotes, so that backslashes stay: pattern = '^\\d+$'"
    };
    reading.complain(complaint.help(help));
}

/// Checks a JSON path.
pub(super) fn json_path(reading: &StudyReader<'_>, path: &str, place: Range<usize>) {
    if let Err(error) = JsonPath::parse(path) {
        let label = format!("{} at character {}", error.reason, error.at);
        let complaint = Complaint::new(place, format!("`{}` is not a JSON path", shown(path)), label);
        reading.complain(
            complaint.help("for example: $.region, $.items[0].id, $.items[*].id or $[\"odd name\"]"),
        );
    }
}

/// Converts a value of the file to JSON. Complains about dates and about numbers that JSON cannot express.
pub(super) fn json(reading: &StudyReader<'_>, found: &Spanned<DeValue<'_>>) -> Value {
    let value = match found.get_ref() {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Boolean(flag) => Some(Value::from(*flag)),
        value @ DeValue::Integer(_) => whole(value).map(Value::from),
        value @ DeValue::Float(_) => number(value).map(Value::from),
        DeValue::Array(items) => Some(items.iter().map(|item| json(reading, item)).collect()),
        DeValue::Table(members) => {
            let members =
                members.iter().map(|(key, value)| (key.get_ref().to_string(), json(reading, value)));
            Some(Value::Object(members.collect()))
        }
        DeValue::Datetime(_) => None,
    };
    value.unwrap_or_else(|| {
        let complaint = Complaint::new(
            found.span(),
            "this value cannot occur in a JSON answer",
            "JSON has neither dates nor nan, inf or integers beyond 64 bits",
        );
        reading.complain(complaint.help("write a date as a string, as it is in the answer"));
        Value::Null
    })
}
