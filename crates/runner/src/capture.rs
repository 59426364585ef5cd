//! Takes values from answers, such as the token of a login, and keeps them out of everything that is written.
//!
//! Owns: what counts as a value, and what is shown where there is none. Must not know: requests, and which contender answered.

use std::collections::BTreeMap;

use deadheat_load::Answer;
use deadheat_record::{Capture, JsonPath};
use serde_json::Value;

use crate::compare::BodyDifference;

/// The values that the answers of one contender contained, by name.
pub(crate) type Captured = BTreeMap<String, String>;

/// The most characters that are shown of an answer without the value.
const SHOWN: usize = 200;
/// A stretch of this many characters that also occurs in a captured value is not written. Shorter values count as a whole, from `SHORTEST` on.
const STRETCH: usize = 8;
const SHORTEST: usize = 4;

/// Takes the values from an answer with a decoded body.
///
/// # Errors
/// One difference for each value that the answer does not contain.
pub(crate) fn capture(
    captures: &BTreeMap<String, Capture>,
    answer: &Answer,
) -> Result<Captured, Vec<BodyDifference>> {
    let (mut captured, mut missing) = (Captured::new(), Vec::new());
    for (name, from) in captures {
        match value(from, answer).filter(|value| !value.is_empty()) {
            Some(value) => drop(captured.insert(name.clone(), value)),
            None => missing.push(BodyDifference {
                path: from.to_string(),
                expected: format!("a value for {{{name}}}"),
                got: format!("none; {}", seen(from, answer)),
            }),
        }
    }
    if missing.is_empty() { Ok(captured) } else { Err(missing) }
}

/// The names and values that an answer with a decoded body contains, right or wrong.
pub(crate) fn values_in(
    captures: &BTreeMap<String, Capture>,
    answer: &Answer,
) -> impl Iterator<Item = (String, String)> {
    captures.iter().filter_map(move |(name, from)| {
        let value = value(from, answer).filter(|value| !value.is_empty())?;
        Some((name.clone(), value))
    })
}

fn value(from: &Capture, answer: &Answer) -> Option<String> {
    match from {
        Capture::Json(path) => {
            let body = serde_json::from_slice(&answer.body).ok()?;
            match JsonPath::parse(path).ok()?.select(&body).into_iter().next()?.1 {
                Value::String(text) => Some(text.clone()),
                scalar @ (Value::Number(_) | Value::Bool(_)) => Some(scalar.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            }
        }
        Capture::Header(name) => {
            answer.header(name).and_then(|value| std::str::from_utf8(value).ok()).map(str::to_owned)
        }
        Capture::Cookie(name) => {
            // A browser keeps the last of several.
            cookies(answer).filter(|(one, _)| one == name).last().map(|(_, value)| value.to_owned())
        }
    }
}

/// The names and values of the cookies that an answer sets.
fn cookies(answer: &Answer) -> impl Iterator<Item = (&str, &str)> {
    let set = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    set.filter_map(|(_, value)| {
        let pair = std::str::from_utf8(value).ok()?.split(';').next()?;
        let (name, value) = pair.split_once('=')?;
        Some((name.trim(), value.trim()))
    })
}

/// What an answer contains where a value was looked for. The value may be there under another name, so names are shown and no values that could
/// be secret.
fn seen(from: &Capture, answer: &Answer) -> String {
    let listed = |kind: &str, names: Vec<&str>| match names.is_empty() {
        true => format!("the answer has no {kind}s"),
        false => format!("the answer has the {kind}s {}", names.join(", ")),
    };
    let text = match from {
        Capture::Header(_) => {
            listed("header", answer.headers.iter().map(|(name, _)| name.as_str()).collect())
        }
        Capture::Cookie(_) => listed("cookie", cookies(answer).map(|(name, _)| name).collect()),
        Capture::Json(_) => match serde_json::from_slice(&answer.body) {
            Ok(body) => format!("the answer is {}", masked(body)),
            Err(_) => format!("the answer is not JSON: {}", String::from_utf8_lossy(&answer.body)),
        },
    };
    shortened(&text)
}

/// JSON in which texts without a space, such as tokens, are replaced by an ellipsis. Sentences, such as messages about errors, stay.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) if !text.contains(' ') => "…".into(),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, masked(value))).collect(),
        other => other,
    }
}

fn shortened(text: &str) -> String {
    let plain = |one: char| if one.is_control() { ' ' } else { one };
    let mut short: String = text.chars().map(plain).take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// `text` with `{name}` in place of each captured value. A text may contain only a part of a value, because texts are shortened, so each stretch
/// of [`STRETCH`] characters counts.
pub(crate) fn hidden<'c>(text: &str, captured: impl IntoIterator<Item = (&'c String, &'c String)>) -> String {
    captured.into_iter().fold(text.to_owned(), |text, (name, value)| without(&text, name, value))
}

fn without(text: &str, name: &str, value: &str) -> String {
    let length = value.chars().count().min(STRETCH);
    let characters: Vec<char> = text.chars().collect();
    if length < SHORTEST || characters.len() < length {
        return text.to_owned();
    }
    let mut secret = vec![false; characters.len()];
    for (at, stretch) in characters.windows(length).enumerate() {
        if value.contains(&stretch.iter().collect::<String>()) {
            secret[at..at + length].fill(true);
        }
    }
    let (mut out, mut inside) = (String::with_capacity(text.len()), false);
    for (character, secret) in characters.into_iter().zip(secret) {
        match (secret, inside) {
            (true, false) => out.push_str(&format!("{{{name}}}")),
            (true, true) => {}
            (false, _) => out.push(character),
        }
        inside = secret;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&str, &str)], body: &str) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
        Answer { status: 200, headers: headers.collect(), body: body.into(), keep_alive: true }
    }

    fn one(from: Capture, answer: &Answer) -> Result<String, (String, String)> {
        let found = capture(&BTreeMap::from([("v".to_owned(), from)]), answer);
        found.map(|mut all| all.remove("v").unwrap()).map_err(|missing| {
            assert_eq!((missing.len(), missing[0].expected.as_str()), (1, "a value for {v}"));
            (missing[0].path.clone(), missing[0].got.clone())
        })
    }

    #[test]
    fn values_come_from_json_headers_and_cookies() {
        let removed = ("Set-Cookie", "sid=; Max-Age=0");
        let set =
            [("Set-Cookie", "a=1; Path=/"), removed, ("set-cookie", "sid=x=y; HttpOnly"), ("X-Csrf", "k")];
        let answer = answer(&set, r#"{"token":"t","n":7,"list":[{"id":"first"},{"id":"second"}]}"#);
        for (from, value) in [
            (Capture::Json("$.token".into()), "t"),
            (Capture::Json("$.n".into()), "7"),
            (Capture::Json("$.list[*].id".into()), "first"),
            (Capture::Header("x-csrf".into()), "k"),
            (Capture::Cookie("sid".into()), "x=y"),
        ] {
            assert_eq!(one(from.clone(), &answer).unwrap(), value, "{from}");
        }
    }

    #[test]
    fn a_value_that_is_not_there_is_told_with_what_is_there_and_without_secrets() {
        let body = r#"{"accessToken":"secret-1","error":"wrong password","n":1,"empty":"","gone":null}"#;
        let answer = answer(&[("Content-Type", "x"), ("Set-Cookie", "session=secret-2; Path=/")], body);
        for path in ["$.access_token", "$.empty", "$.gone", "$"] {
            let (at, got) = one(Capture::Json(path.into()), &answer).unwrap_err();
            assert_eq!(at, path);
            assert!(got.contains(r#""accessToken":"…""#) && got.contains("wrong password"), "{got}");
            assert!(!got.contains("secret"), "{got}");
        }
        let (at, got) = one(Capture::Header("x-token".into()), &answer).unwrap_err();
        assert_eq!(
            (at.as_str(), got.as_str()),
            ("header x-token", "none; the answer has the headers Content-Type, Set-Cookie")
        );
        let (at, got) = one(Capture::Cookie("sid".into()), &answer).unwrap_err();
        assert_eq!((at.as_str(), got.as_str()), ("cookie sid", "none; the answer has the cookies session"));
        let long = self::answer(&[], &"<p>\u{1b}".repeat(100));
        let (_, got) = one(Capture::Json("$.x".into()), &long).unwrap_err();
        assert!(got.starts_with("none; the answer is not JSON: <p> <p>") && got.ends_with('…'), "{got}");
    }

    #[test]
    fn captured_values_are_not_shown_even_in_part() {
        let captured = Captured::from([
            ("token".to_owned(), "abcdefghijklmnop".to_owned()),
            ("pin".to_owned(), "4711".to_owned()),
            ("n".to_owned(), "1".to_owned()),
        ]);
        for (text, shown) in [
            ("Bearer abcdefghijklmnop!", "Bearer {token}!"),
            ("starts abcdefghijk…", "starts {token}…"),
            ("…ghijklmnop ends", "…{token} ends"),
            ("abcdefg", "abcdefg"),
            ("pin 4711 of 1", "pin {pin} of 1"),
        ] {
            assert_eq!(hidden(text, &captured), shown);
        }
    }
}
