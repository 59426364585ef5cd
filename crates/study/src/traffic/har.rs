//! HAR files (HTTP archives, version 1.2), as browsers and proxies export them.

use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deadheat_record::{LogReading, percent_encoded};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::gather::Gathering;
use super::request_line::of_parts;
use super::{Entry, Line, Reason, TrafficError};

/// Headers that belong to one connection or that deadheat writes itself (RFC 9110, section 7.6.1).
const OF_THE_CONNECTION: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
];
/// Headers that identify the user.
const CREDENTIALS: [&str; 4] = ["cookie", "cookie2", "authorization", "proxy-authorization"];

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<Lenient>,
}

/// An entry, or anything else.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lenient {
    Entry(Box<HarEntry>),
    Broken(IgnoredAny),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarEntry {
    started_date_time: Option<String>,
    request: HarRequest,
    response: Option<HarResponse>,
    #[serde(rename = "_resourceType")]
    resource_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    post_data: Option<PostData>,
    body_size: Option<i64>,
}

#[derive(Deserialize)]
struct HarResponse {
    status: Option<i64>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    encoding: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

/// Reads all entries.
pub(super) fn read(
    input: &mut impl BufRead,
    reading: &LogReading,
    gathering: &mut Gathering<'_>,
) -> Result<(), TrafficError> {
    if input.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
        input.consume(3);
    }
    let archive: Archive = serde_json::from_reader(&mut *input).map_err(|error| {
        if error.is_io() {
            TrafficError::Unreadable(error.into())
        } else {
            TrafficError::Har(error.to_string())
        }
    })?;
    let lines: Vec<(String, Line)> = archive
        .log
        .entries
        .into_iter()
        .map(|one| match one {
            Lenient::Broken(_) => {
                (String::new(), Line::Broken("it is no entry with `request.method` and `request.url`".into()))
            }
            Lenient::Entry(entry) => {
                let shown = format!("{} {}", entry.request.method, entry.request.url);
                (shown, line(*entry, reading.credentials))
            }
        })
        .collect();
    // A page is loaded from its own host first, and then other hosts add what is theirs.
    let first = lines.iter().find_map(|(_, line)| match line {
        Line::Request(entry) => entry.host.clone(),
        _ => None,
    });
    gathering.keep_to(reading.host.clone().or(first));
    for (index, (shown, line)) in lines.into_iter().enumerate() {
        gathering.add(index as u64 + 1, shown.as_bytes(), line)?;
    }
    Ok(())
}

fn line(entry: HarEntry, credentials: bool) -> Line {
    let HarEntry { started_date_time, request, response, resource_type } = entry;
    let url = request.url.to_ascii_lowercase();
    let status = response.and_then(|response| response.status);
    let socket = url.starts_with("ws:") || url.starts_with("wss:");
    if socket || status == Some(101) || resource_type.is_some_and(|kind| kind == "websocket") {
        return Line::LeftOut(Reason::WebSocket);
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Line::LeftOut(Reason::OtherScheme);
    }
    // Browsers write 0 or -1 for a request that was blocked, cancelled or not answered.
    let Some(status) = status.and_then(|status| u16::try_from(status).ok()).filter(|status| *status > 0)
    else {
        return Line::LeftOut(Reason::Failed);
    };
    let body = match body(&request) {
        Ok(body) => body,
        Err(line) => return *line,
    };
    let found = of_parts(request.method.as_bytes(), request.url.as_bytes());
    let Line::Request(entry) = found else { return found };
    let kept = |one: &Pair| {
        let name = one.name.to_ascii_lowercase();
        !name.starts_with(':')
            && !OF_THE_CONNECTION.contains(&name.as_str())
            && (credentials || !CREDENTIALS.contains(&name.as_str()))
    };
    let headers = request.headers.into_iter().filter(kept).map(|one| (one.name, one.value)).collect();
    Line::Request(Entry { headers, body, status: Some(status), time: started_date_time, ..entry })
}

/// The body of a request, or what becomes of the entry without one.
fn body(request: &HarRequest) -> Result<Vec<u8>, Box<Line>> {
    let missing = || Err(Box::new(Line::LeftOut(Reason::NoBody)));
    let Some(data) = &request.post_data else {
        return if request.body_size.is_some_and(|size| size > 0) { missing() } else { Ok(Vec::new()) };
    };
    match &data.text {
        Some(text) if data.encoding.as_deref() == Some("base64") => {
            let broken = |error| Box::new(Line::Broken(format!("its body is not base64: {error}")));
            STANDARD.decode(text).map_err(broken)
        }
        Some(text) if !text.is_empty() || data.params.is_empty() => Ok(text.clone().into_bytes()),
        _ if data.mime_type.starts_with("application/x-www-form-urlencoded") => {
            // The values of parameters are already encoded in most exports. Encoding them twice would change them.
            let pair = |one: &Pair| format!("{}={}", form(&one.name), form(&one.value));
            Ok(data.params.iter().map(pair).collect::<Vec<_>>().join("&").into_bytes())
        }
        _ if data.params.is_empty() => Ok(Vec::new()),
        _ => missing(),
    }
}

/// Encodes what cannot be in a form, and keeps what is already encoded.
fn form(text: &str) -> String {
    let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic() && !b"&=#".contains(&byte);
    percent_encoded(text.as_bytes(), is_plain).replace(' ', "+")
}
