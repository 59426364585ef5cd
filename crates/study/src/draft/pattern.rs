//! Finds a pattern for a value that changes, from the values that were seen.
//!
//! Owns: which forms of values are recognised (times, ids, numbers, texts with the same parts). A pattern matches all values that were seen, and
//! is wide enough for those that were not. Must not know: where the values were.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

/// Matches any text.
const ANYTHING: &str = "(?s)^.*$";
/// Texts with more parts or characters than this have the pattern [`ANYTHING`].
const MOST_PARTS: usize = 24;
const MOST_CHARACTERS: usize = 200;
/// A run of random characters has at least this many. A shorter one may be a word.
const RANDOM: usize = 12;
/// Ids in hexadecimal digits have at least this many. Shorter ones may lose a leading zero.
const HEX: usize = 16;
/// Times that one short run saw differ by less than this, in seconds.
const RUN_S: u64 = 3600;

/// A regular expression, anchored at both ends, that every one of `values` matches: a string by its text, anything else as JSON.
pub(super) fn pattern(values: &[&Value]) -> String {
    let text = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let given: Vec<&Value> = values.iter().copied().filter(|value| !value.is_null()).collect();
    let inner = inner(&given);
    let whole = match inner {
        Some(inner) if given.len() < values.len() => format!("^(?:null|{inner})$"),
        Some(inner) => format!("^{inner}$"),
        None => ANYTHING.into(),
    };
    let fits = Regex::new(&whole).is_ok_and(|regex| values.iter().all(|value| regex.is_match(&text(value))));
    if fits { whole } else { ANYTHING.into() }
}

/// The pattern of values that are not null, without anchors. None if they have nothing in common.
fn inner(values: &[&Value]) -> Option<String> {
    let (first, _) = values.split_first()?;
    match first {
        _ if values.iter().all(|value| value.is_boolean()) => Some("(?:true|false)".into()),
        _ if values.iter().all(|value| value.is_number()) => Some(number(values)),
        _ if values.iter().all(|value| value.is_array()) => Some(r"\[.*\]".into()),
        _ if values.iter().all(|value| value.is_object()) => Some(r"\{.*\}".into()),
        _ => {
            let texts: Vec<&str> = values.iter().map(|value| value.as_str()).collect::<Option<_>>()?;
            text(&texts)
        }
    }
}

fn number(values: &[&Value]) -> String {
    let whole: Option<Vec<u64>> = values.iter().map(|value| value.as_u64()).collect();
    if let Some(whole) = whole {
        return unix_time(&whole).unwrap_or_else(|| "[0-9]+".into());
    }
    if values.iter().all(|value| value.is_i64() || value.is_u64()) {
        return "-?[0-9]+".into();
    }
    r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?".into()
}

/// The pattern of times since 1970 in seconds, or in thousandths, millionths or billionths of a second: all lie within the same hour.
fn unix_time(values: &[u64]) -> Option<String> {
    let (least, most) = (values.iter().min()?, values.iter().max()?);
    let digits = least.to_string().len();
    let per_second = match digits {
        10 => 1,
        13 => 1_000,
        16 => 1_000_000,
        19 => 1_000_000_000,
        _ => return None,
    };
    (most - least <= RUN_S * per_second && most.to_string().len() == digits)
        .then(|| format!("[0-9]{{{digits}}}"))
}

fn text(texts: &[&str]) -> Option<String> {
    if texts.iter().any(|text| text.chars().count() > MOST_CHARACTERS) {
        return None;
    }
    known_form(texts).or_else(|| parts(texts)).or_else(|| token(texts))
}

/// The pattern of a well-known form: ids and times.
fn known_form(texts: &[&str]) -> Option<String> {
    let all = |pattern: &str| {
        let regex = Regex::new(&format!("^(?:{pattern})$")).ok()?;
        texts.iter().all(|text| regex.is_match(text)).then(|| pattern.to_owned())
    };
    let hex = |digits: &str| {
        let length = texts.first()?.len();
        (length >= HEX && length.is_multiple_of(2)).then(|| all(&format!("{digits}{{{length}}}")))?
    };
    all("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
        .or_else(|| all("[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"))
        .or_else(|| all("[0-9A-HJKMNP-TV-Z]{26}"))
        .or_else(|| iso_time(texts))
        .or_else(|| all("[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"))
        .or_else(|| all(r"-?[0-9]+(?:\.[0-9]+)?").filter(|_| texts.iter().any(|text| text.contains('.'))))
        .or_else(|| hex("[0-9a-f]"))
        .or_else(|| hex("[0-9A-F]"))
}

/// The pattern of times such as `2026-11-25T18:04:05.123Z`.
fn iso_time(texts: &[&str]) -> Option<String> {
    const SECOND: &str = "[0-9]{4}-[0-9]{2}-[0-9]{2}([T ])[0-9]{2}:[0-9]{2}:[0-9]{2}";
    let form = format!(r"^{SECOND}(\.[0-9]+)?(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?$");
    let form = Regex::new(&form).ok()?;
    let found: Vec<regex::Captures<'_>> =
        texts.iter().map(|text| form.captures(text)).collect::<Option<_>>()?;
    let group = |number: usize| -> BTreeSet<Option<&str>> {
        found.iter().map(|one| one.get(number).map(|part| part.as_str())).collect()
    };
    let between =
        if group(1).len() == 1 { found.first()?.get(1)?.as_str().to_owned() } else { "[T ]".into() };
    let zones = group(3);
    let zone = match zones.iter().next() {
        Some(None) if zones.len() == 1 => "",
        Some(Some("Z")) if zones.len() == 1 => "Z",
        _ if zones.contains(&None) => "(?:Z|[+-][0-9]{2}:?[0-9]{2})?",
        _ => "(?:Z|[+-][0-9]{2}:?[0-9]{2})",
    };
    // JavaScript always writes three digits and Python six. Others leave out zeros at the end.
    let fractions: BTreeSet<usize> =
        group(2).into_iter().map(|part| part.map_or(0, |part| part.len() - 1)).collect();
    let fraction = match (fractions.len(), fractions.first().copied().unwrap_or(0)) {
        (1, 0) => "",
        (1, 3) if zone == "Z" => r"\.[0-9]{3}",
        (1, 6) if zone != "Z" => r"\.[0-9]{6}",
        _ => r"(?:\.[0-9]+)?",
    };
    Some(format!("[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{between}[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}{fraction}{zone}"))
}

/// A text in runs of letters and digits, with what stands between them.
fn split(text: &str) -> Vec<(bool, &str)> {
    let mut parts: Vec<(bool, &str)> = Vec::new();
    let mut start = 0;
    let mut kind = None;
    for (at, character) in text.char_indices() {
        let here = character.is_ascii_alphanumeric();
        if kind.is_some_and(|kind| kind != here) {
            parts.push((!here, &text[start..at]));
            start = at;
        }
        kind = Some(here);
    }
    parts.extend(kind.map(|kind| (kind, &text[start..])));
    parts
}

/// The pattern of texts that have the same characters between their words and numbers.
fn parts(texts: &[&str]) -> Option<String> {
    let all: Vec<Vec<(bool, &str)>> = texts.iter().map(|text| split(text)).collect();
    let first = all.first()?;
    let alike = |other: &Vec<(bool, &str)>| {
        other.len() == first.len()
            && other.iter().zip(first).all(|(one, two)| one.0 == two.0 && (one.0 || one.1 == two.1))
    };
    if first.is_empty() || first.len() > MOST_PARTS || !all.iter().all(alike) {
        return None;
    }
    let part = |place: usize| {
        let seen: BTreeSet<&str> = all.iter().map(|parts| parts[place].1).collect();
        if first[place].0 { word(&seen) } else { literal(first[place].1) }
    };
    Some((0..first.len()).map(part).collect())
}

/// The pattern of one word or number. A number may change later even if it was always the same, and so may a day or a month.
fn word(seen: &BTreeSet<&str>) -> String {
    let digits = seen.iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let one = seen.first().copied().unwrap_or_default();
    let random = |text: &&str| {
        text.len() >= RANDOM
            && text.bytes().any(|byte| byte.is_ascii_uppercase())
            && text.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    match () {
        () if digits => "[0-9]+".into(),
        () if seen.len() == 1 && !is_of_calendar(one) => literal(one),
        // A part of a base64 text, in which other characters are rare.
        () if seen.iter().any(random) => "[0-9A-Za-z+/=_-]+".into(),
        () => "[0-9A-Za-z]+".into(),
    }
}

/// A pattern for exactly this text. `regex::escape` also escapes characters that have a meaning only in brackets.
fn literal(text: &str) -> String {
    let each = |character: char| match character {
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
            format!("\\{character}")
        }
        other => other.into(),
    };
    text.chars().map(each).collect()
}

fn is_of_calendar(word: &str) -> bool {
    const NAMES: [&str; 21] = [
        "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul",
        "aug", "sep", "oct", "nov", "dec", "am", "pm",
    ];
    const LONG: [&str; 19] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "sept",
    ];
    let word = word.to_ascii_lowercase();
    NAMES.contains(&word.as_str()) || LONG.contains(&word.as_str())
}

/// The pattern of texts made of letters, digits and the characters of base64.
fn token(texts: &[&str]) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    texts.iter().all(|text| !text.is_empty() && text.bytes().all(plain)).then(|| "[0-9A-Za-z+/=_-]+".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(values: &[Value]) -> String {
        pattern(&values.iter().collect::<Vec<_>>())
    }

    #[test]
    fn forms_are_recognised() {
        let uuid = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
        let second = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}";
        for (values, expected) in [
            (
                vec![
                    json!("6f9619ff-8b86-4011-b42d-00c04fc964ff"),
                    json!("00000000-0000-4000-8000-000000000000"),
                ],
                uuid.to_owned(),
            ),
            (
                vec![json!("2026-11-25T18:04:05.123Z"), json!("2026-11-25T18:04:06.000Z")],
                format!(r"{second}\.[0-9]{{3}}Z$"),
            ),
            (
                vec![json!("2026-11-25T18:04:05.123456"), json!("2026-11-25T18:04:06.000001")],
                format!(r"{second}\.[0-9]{{6}}$"),
            ),
            // Go leaves out zeros at the end.
            (
                vec![json!("2026-11-25T18:04:05.123456789Z"), json!("2026-11-25T18:04:06.123456781Z")],
                format!(r"{second}(?:\.[0-9]+)?Z$"),
            ),
            (
                vec![json!("2026-11-25T18:04:05+01:00"), json!("2026-11-25T18:04:06Z")],
                format!("{second}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})$"),
            ),
            (
                vec![json!("Wed, 25 Nov 2026 18:04:05 GMT"), json!("Wed, 25 Nov 2026 18:04:06 GMT")],
                "^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$".to_owned(),
            ),
            (vec![json!("9f86d081884c7d65"), json!("60303ae22b998861")], "^[0-9a-f]{16}$".into()),
            (vec![json!("req-17"), json!("req-18")], "^req-[0-9]+$".into()),
            (
                vec![json!("at 9:05 (Wed Nov)"), json!("at 9:06 (Wed Nov)")],
                r"^at [0-9]+:[0-9]+ \([0-9A-Za-z]+ [0-9A-Za-z]+\)$".into(),
            ),
            (vec![json!("k3j9"), json!("z81ab")], "^[0-9A-Za-z]+$".into()),
            (vec![json!("3q2-7wAb"), json!("abcd0123")], "^[0-9A-Za-z+/=_-]+$".into()),
            (vec![json!("AbCdEfGhIjKl"), json!("mNoPqRsTuVwX")], "^[0-9A-Za-z+/=_-]+$".into()),
            (vec![json!("12.5"), json!("13")], r"^-?[0-9]+(?:\.[0-9]+)?$".into()),
            (vec![json!(1), json!(20)], "^[0-9]+$".into()),
            (vec![json!(-1), json!(20)], "^-?[0-9]+$".into()),
            (vec![json!(0.25), json!(1e-9)], r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$".into()),
            (vec![json!(1_795_630_000_123_u64), json!(1_795_630_001_456_u64)], "^[0-9]{13}$".into()),
            // Far apart, so it is no time.
            (vec![json!(1_000_000_000), json!(3_999_999_999_u64)], "^[0-9]+$".into()),
            (vec![json!(true), json!(false)], "^(?:true|false)$".into()),
            (vec![json!(null), json!(7)], "^(?:null|[0-9]+)$".into()),
            (vec![json!([1]), json!([])], r"^\[.*\]$".into()),
            (vec![json!({"a": 1}), json!({})], r"^\{.*\}$".into()),
            (vec![json!("a\nb"), json!(1)], ANYTHING.into()),
            (vec![json!(""), json!("x")], ANYTHING.into()),
            (vec![json!("é".repeat(300)), json!("x")], ANYTHING.into()),
        ] {
            assert_eq!(of(&values), expected, "{values:?}");
        }
    }
}
