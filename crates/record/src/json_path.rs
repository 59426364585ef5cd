//! Paths into JSON: `$`, `.name`, `["odd name"]`, `[0]`, `[*]`.
//!
//! Owns: their syntax, and whether a concrete place matches one. Must not know: what is compared at that place.

use std::fmt;

/// One step of a concrete place in a JSON value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A member of an object.
    Name(String),
    /// An element of an array.
    Index(usize),
}

/// A place as text: `$.items[0].id`.
pub fn place(steps: &[Step]) -> String {
    steps.iter().fold("$".to_owned(), |mut text, step| {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Name(name) if is_plain(name) => text.push_str(&format!(".{name}")),
            Step::Name(name) => text.push_str(&format!("[{}]", serde_json::Value::from(name.as_str()))),
        }
        text
    })
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exact(Step),
    EveryElement,
}

/// A pattern of places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    patterns: Vec<Pattern>,
}

/// Why a text is not a valid JSON path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a JSON path: {reason} at character {at}; allowed are $, .name, [\"name\"], [0] and [*], as in $.items[*].id"
)]
pub struct JsonPathError {
    /// The text.
    pub text: String,
    /// Position of the error, starting at 1.
    pub at: usize,
    /// The error.
    pub reason: &'static str,
}

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// When the text does not have the syntax above.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let fail = |rest: &str, reason| {
            let at = text[..text.len() - rest.len()].chars().count() + 1;
            Err(JsonPathError { text: text.into(), at, reason })
        };
        let Some(mut rest) = text.strip_prefix('$') else { return fail(text, "a path begins with $") };
        let mut patterns = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if !is_plain(&after[..end]) {
                    return fail(after, "a name of letters, digits, _ and - is expected");
                }
                patterns.push(Pattern::Exact(Step::Name(after[..end].into())));
                rest = &after[end..];
            } else if let Some(after) = rest.strip_prefix("[*]") {
                patterns.push(Pattern::EveryElement);
                rest = after;
            } else if let Some(after) = rest.strip_prefix("[\"") {
                let Some((name, after_name)) = quoted(&rest[1..]) else {
                    return fail(after, "the name has no end");
                };
                let Some(after_name) = after_name.strip_prefix(']') else {
                    return fail(after_name, "] is expected");
                };
                patterns.push(Pattern::Exact(Step::Name(name)));
                rest = after_name;
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = after.find(']').unwrap_or(after.len());
                let Ok(index) = after[..end].parse() else {
                    return fail(after, "a number, * or \"name\" is expected");
                };
                let Some(after_index) = after[end..].strip_prefix(']') else {
                    return fail(&after[end..], "] is expected");
                };
                patterns.push(Pattern::Exact(Step::Index(index)));
                rest = after_index;
            } else {
                return fail(rest, ". or [ is expected");
            }
        }
        Ok(Self { text: text.into(), patterns })
    }

    /// The path as text, with `[*]` for every position in a list.
    pub fn of_every_element(&self) -> String {
        self.patterns.iter().fold("$".to_owned(), |text, pattern| match pattern {
            Pattern::Exact(name @ Step::Name(_)) => text + &place(std::slice::from_ref(name))[1..],
            Pattern::Exact(Step::Index(_)) | Pattern::EveryElement => text + "[*]",
        })
    }

    /// Whether the path matches a concrete place.
    pub fn matches(&self, steps: &[Step]) -> bool {
        self.patterns.len() == steps.len()
            && self.patterns.iter().zip(steps).all(|(pattern, step)| match pattern {
                Pattern::Exact(exact) => exact == step,
                Pattern::EveryElement => matches!(step, Step::Index(_)),
            })
    }

    /// Every place in `value` that the path matches, with the value there.
    pub fn select<'a>(&self, value: &'a serde_json::Value) -> Vec<(Vec<Step>, &'a serde_json::Value)> {
        self.patterns.iter().fold(vec![(Vec::new(), value)], |places, pattern| {
            places.into_iter().flat_map(|(steps, value)| follow(pattern, &steps, value)).collect()
        })
    }

    /// Whether the path leads to no place because the lists for one of its `[*]` are there and empty.
    pub fn meets_empty_lists(&self, value: &serde_json::Value) -> bool {
        let mut places = vec![(Vec::new(), value)];
        for pattern in &self.patterns {
            let is_empty = |(_, value): &(_, &serde_json::Value)| value.as_array().is_some_and(Vec::is_empty);
            if *pattern == Pattern::EveryElement && !places.is_empty() && places.iter().all(is_empty) {
                return true;
            }
            places = places.into_iter().flat_map(|(steps, value)| follow(pattern, &steps, value)).collect();
        }
        false
    }
}

fn follow<'a>(
    pattern: &Pattern,
    steps: &[Step],
    value: &'a serde_json::Value,
) -> Vec<(Vec<Step>, &'a serde_json::Value)> {
    let deeper = |step: Step| [steps, &[step]].concat();
    match pattern {
        Pattern::Exact(Step::Name(name)) => {
            value.get(name).map(|inner| (deeper(Step::Name(name.clone())), inner)).into_iter().collect()
        }
        Pattern::Exact(Step::Index(index)) => {
            value.get(index).map(|inner| (deeper(Step::Index(*index)), inner)).into_iter().collect()
        }
        Pattern::EveryElement => {
            let elements = value.as_array().map(Vec::as_slice).unwrap_or_default();
            elements.iter().enumerate().map(|(index, inner)| (deeper(Step::Index(index)), inner)).collect()
        }
    }
}

/// Parses the JSON string at the start of `text`. Also returns the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let name = stream.next()?.ok()?;
    let end = stream.byte_offset();
    Some((name, &text[end..]))
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_select_and_match() {
        let value = json!({"items": [{"id": 1}, {"id": 2}], "odd name": {"x": [true]}});
        let ids = JsonPath::parse("$.items[*].id").unwrap();
        let found: Vec<String> = ids.select(&value).iter().map(|(steps, _)| place(steps)).collect();
        assert_eq!(found, ["$.items[0].id", "$.items[1].id"]);
        assert!(ids.matches(&ids.select(&value)[1].0));
        let odd = JsonPath::parse("$[\"odd name\"].x[0]").unwrap();
        assert_eq!(place(&odd.select(&value)[0].0), "$[\"odd name\"].x[0]");
        assert_eq!(JsonPath::parse("$").unwrap().select(&value).len(), 1);
        assert!(JsonPath::parse("$.items[7]").unwrap().select(&value).is_empty());
    }

    #[test]
    fn wrong_paths_say_where() {
        for (text, at) in
            [("token", 1), ("$token", 2), ("$.", 3), ("$.a[", 5), ("$.a[x]", 5), ("$[\"a", 4), ("$.a b", 3)]
        {
            assert_eq!(JsonPath::parse(text).unwrap_err().at, at, "{text}");
        }
    }
}
