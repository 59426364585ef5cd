//! Writes strings, JSON values and comments in TOML, whatever they contain.

use serde_json::Value;

/// The number of characters of a string that a comment shows.
const SHOWN: usize = 100;

/// A TOML string on one line. With backslashes or quotes it is a literal string if that is possible, because that is easier to read.
pub(super) fn quoted(text: &str) -> String {
    let literal = text.contains(['\\', '"']) && !text.contains('\'') && !text.chars().any(must_be_escaped);
    if literal {
        return format!("'{text}'");
    }
    let escaped: String = text.chars().map(escaped).collect();
    format!("\"{escaped}\"")
}

fn escaped(character: char) -> String {
    match character {
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        other if must_be_escaped(other) => match u32::from(other) {
            code @ ..=0xffff => format!("\\u{code:04X}"),
            code => format!("\\U{code:08X}"),
        },
        other => other.into(),
    }
}

/// Whether a character is a control character, or changes the direction of the writing or the order of what a reader sees.
fn must_be_escaped(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A JSON value that TOML can express: no null, no number beyond 64 bits.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            if text.contains(['.', 'e', 'E']) { text } else { format!("{text}.0") }
        }
        other => other.to_string(),
    }
}

/// Text for a comment: on one line, without control characters, and shortened.
pub(super) fn in_comment(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' => "\\n".into(),
        other if must_be_escaped(other) => escaped(other),
        other => other.to_string(),
    };
    let mut out: String = text.chars().take(SHOWN).map(shown).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_back_as_they_were() {
        for (text, expected) in [
            ("npm start", r#""npm start""#),
            (r"^\d+$", r"'^\d+$'"),
            (r#"{"a":1}"#, r#"'{"a":1}'"#),
            (r#"'"'"#, r#""'\"'""#),
            ("a\nb\t\u{1b}[31m\u{202e}\u{7f}\0", r#""a\nb\t\u001B[31m\u202E\u007F\u0000""#),
            ("", r#""""#),
        ] {
            assert_eq!(quoted(text), expected);
            let table: toml::Table = format!("x = {}", quoted(text)).parse().unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
        }
    }

    #[test]
    fn comments_stay_on_their_line() {
        assert_eq!(in_comment("a\nb\r\u{1b}é"), "a\\nb\\r\\u001Bé");
        assert_eq!(in_comment(&"x".repeat(200)).chars().count(), SHOWN + 1);
    }
}
