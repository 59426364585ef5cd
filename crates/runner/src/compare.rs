//! Compares answers: JSON by structure, without volatile places, and everything else by bytes.
//!
//! Owns: what counts as a difference between two bodies. Must not know: which contender answered, and when.

use deadheat_record::{BodyRule, Difference};
use regex::Regex;
use serde_json::Value;

use crate::fixed_length::fixed_length;
use deadheat_record::{JsonPath, JsonPathError, Step, place};

/// Maximum number of characters shown of a value.
const SHOWN: usize = 120;

/// One difference between two bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyDifference {
    /// The JSON path, or `body` with the position of the first different byte.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

/// A volatile place, with its path and patterns parsed.
#[derive(Debug, Clone)]
struct Volatile {
    path: JsonPath,
    pattern: Regex,
    not: Option<Regex>,
    agree: bool,
    own: bool,
}

/// The rules for a probe's body, with paths and patterns parsed.
#[derive(Debug, Clone)]
pub struct BodyRules {
    json: Vec<(JsonPath, Value)>,
    volatile: Vec<Volatile>,
    exact: Option<String>,
    ignored: Vec<JsonPath>,
    fixed_length: bool,
}

/// Why rules are invalid.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BodyRulesError {
    /// A path is not a JSON path.
    #[error(transparent)]
    Path(#[from] JsonPathError),
    /// A pattern is not a regular expression.
    #[error(transparent)]
    Pattern(#[from] regex::Error),
}

impl BodyRules {
    /// Parses a probe's rules.
    ///
    /// # Errors
    /// When a path or a pattern is invalid.
    pub fn new(rule: &BodyRule) -> Result<Self, BodyRulesError> {
        let json = rule.json.iter().map(|one| Ok((JsonPath::parse(&one.path)?, one.value.clone())));
        let volatile = rule.volatile.iter().map(|one| {
            let not = one.not.as_deref().map(Regex::new).transpose()?;
            let path = JsonPath::parse(&one.path)?;
            Ok(Volatile { path, pattern: Regex::new(&one.pattern)?, not, agree: one.agree, own: one.own })
        });
        Ok(Self {
            json: json.collect::<Result<_, BodyRulesError>>()?,
            volatile: volatile.collect::<Result<_, BodyRulesError>>()?,
            exact: rule.exact.clone(),
            ignored: rule.ignored.iter().map(|path| JsonPath::parse(path)).collect::<Result<_, _>>()?,
            fixed_length: rule.ignored.is_empty()
                && (rule.agree || rule.exact.is_some())
                && rule.volatile.iter().all(|one| fixed_length(&one.pattern).is_some()),
        })
    }

    /// Whether any place may differ between answers of the same contender.
    pub fn has_volatile(&self) -> bool {
        !self.ignored.is_empty() || self.volatile.iter().any(|one| !one.own)
    }

    /// Whether all bodies of one contender that meet these rules have the same length: only places whose patterns allow a single length
    /// may change.
    pub fn has_fixed_length(&self) -> bool {
        self.fixed_length
    }

    /// Whether contenders must agree on a volatile place if they receive the request at the same moment.
    pub fn has_agreeing(&self) -> bool {
        self.volatile.iter().any(|one| one.agree)
    }

    /// Checks a body against the contract itself.
    pub fn against_contract(&self, body: &[u8]) -> Vec<BodyDifference> {
        let parsed: Result<Value, _> = serde_json::from_slice(body);
        let wants_json = !self.json.is_empty() || !self.volatile.is_empty();
        let mut found = match (&parsed, wants_json) {
            (Ok(value), _) => self.json_against_contract(value),
            (Err(error), true) => vec![BodyDifference {
                path: "body".into(),
                expected: "JSON".into(),
                got: format!("{} ({error})", shown_bytes(body)),
            }],
            (Err(_), false) => Vec::new(),
        };
        if let Some(exact) = &self.exact {
            found.extend(self.between(exact.as_bytes(), body));
        }
        found.truncate(Difference::MOST);
        found
    }

    fn json_against_contract(&self, value: &Value) -> Vec<BodyDifference> {
        let mut found = Vec::new();
        for (path, wanted) in &self.json {
            let places = path.select(value);
            if places.is_empty() && !path.meets_empty_lists(value) {
                found.push(difference(path.to_string(), &shown(wanted), "(absent)"));
            }
            for (steps, got) in places.into_iter().filter(|(_, got)| !same(wanted, got)) {
                found.push(difference(place(&steps), &shown(wanted), &shown(got)));
            }
        }
        for volatile in &self.volatile {
            let places = volatile.path.select(value);
            if places.is_empty() && !volatile.path.meets_empty_lists(value) {
                let wanted = format!("a value that matches /{}/", volatile.pattern);
                found.push(difference(volatile.path.to_string(), &wanted, "(absent)"));
            }
            for (steps, got) in places {
                let text = got.as_str().map_or_else(|| got.to_string(), str::to_owned);
                if !volatile.pattern.is_match(&text) {
                    let wanted = format!("a value that matches /{}/", volatile.pattern);
                    found.push(difference(place(&steps), &wanted, &shown(got)));
                } else if let Some(not) = volatile.not.as_ref().filter(|not| not.is_match(&text)) {
                    found.push(difference(
                        place(&steps),
                        &format!("a value that does not match /{not}/"),
                        &shown(got),
                    ));
                }
            }
        }
        found
    }

    /// Differences of `got` from `expected`, without volatile places.
    pub fn between(&self, expected: &[u8], got: &[u8]) -> Vec<BodyDifference> {
        self.compare(expected, got, false)
    }

    /// Differences of `got` from `expected`, two answers from the same moment. This also compares the volatile places that must agree.
    pub fn between_at_once(&self, expected: &[u8], got: &[u8]) -> Vec<BodyDifference> {
        self.compare(expected, got, true)
    }

    fn compare(&self, expected: &[u8], got: &[u8], at_once: bool) -> Vec<BodyDifference> {
        if expected == got || self.skips(&[], at_once) {
            return Vec::new();
        }
        match (serde_json::from_slice::<Value>(expected), serde_json::from_slice::<Value>(got)) {
            (Ok(left), Ok(right)) => {
                let mut walk = Walk { rules: self, at_once, found: Vec::new() };
                walk.values(&mut Vec::new(), &left, &right);
                walk.found
            }
            _ => vec![bytes_difference(expected, got)],
        }
    }

    fn ignores(&self, steps: &[Step]) -> bool {
        self.ignored.iter().any(|path| path.matches(steps))
    }

    fn skips(&self, steps: &[Step], at_once: bool) -> bool {
        self.ignores(steps)
            || self.volatile.iter().any(|one| one.path.matches(steps) && !(at_once && one.agree))
    }
}

/// A walk over two JSON values at once.
struct Walk<'a> {
    rules: &'a BodyRules,
    at_once: bool,
    found: Vec<BodyDifference>,
}

impl Walk<'_> {
    fn values(&mut self, steps: &mut Vec<Step>, expected: &Value, got: &Value) {
        if self.found.len() >= Difference::MOST || self.rules.skips(steps, self.at_once) {
            return;
        }
        match (expected, got) {
            (Value::Object(left), Value::Object(right)) => {
                let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
                for name in names {
                    self.member(steps, Step::Name(name.clone()), left.get(name), right.get(name));
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                for index in 0..left.len().max(right.len()) {
                    self.member(steps, Step::Index(index), left.get(index), right.get(index));
                }
            }
            _ if same(expected, got) => {}
            _ => self.found.push(difference(place(steps), &shown(expected), &shown(got))),
        }
    }

    fn member(&mut self, steps: &mut Vec<Step>, step: Step, expected: Option<&Value>, got: Option<&Value>) {
        steps.push(step);
        match (expected, got) {
            (Some(left), Some(right)) => self.values(steps, left, right),
            _ if self.found.len() >= Difference::MOST || self.rules.ignores(steps) => {}
            (left, right) => {
                let text = |side: Option<&Value>| side.map_or_else(|| "(absent)".to_owned(), shown);
                self.found.push(difference(place(steps), &text(left), &text(right)));
            }
        }
        steps.pop();
    }
}

/// Equality of JSON values. Numbers are compared by value, so 1 equals 1.0.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        // Integers of 64 bits are compared exactly: beyond 2^53 different ones share a float, as larger ones do here.
        (Value::Number(left), Value::Number(right)) => {
            left == right || ((left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn difference(path: String, expected: &str, got: &str) -> BodyDifference {
    BodyDifference { path, expected: expected.into(), got: got.into() }
}

fn shown(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.into();
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start}… ({} characters)", text.chars().count())
}

fn shown_bytes(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "(empty)".into();
    }
    cut(&String::from_utf8_lossy(bytes))
}

/// The first place where two byte strings differ, with the bytes around it.
fn bytes_difference(expected: &[u8], got: &[u8]) -> BodyDifference {
    let at = expected.iter().zip(got).take_while(|(left, right)| left == right).count();
    let around = |bytes: &[u8]| {
        let from = at.saturating_sub(10).min(bytes.len());
        shown_bytes(&bytes[from..bytes.len().min(at + 50)])
    };
    let lengths = if expected.len() == got.len() { String::new() } else { format!(" ({} bytes)", got.len()) };
    difference(
        format!("body, byte {at}"),
        &format!("{} ({} bytes)", around(expected), expected.len()),
        &format!("{}{lengths}", around(got)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadheat_record::{JsonRule, Volatile as VolatileRule};
    use serde_json::json;

    fn rules(json: Vec<(&str, Value)>, volatile: Vec<VolatileRule>) -> BodyRules {
        let json = json.into_iter().map(|(path, value)| JsonRule { path: path.into(), value }).collect();
        BodyRules::new(&BodyRule { json, volatile, exact: None, agree: true, ignored: vec![] }).unwrap()
    }

    fn token(agree: bool) -> VolatileRule {
        VolatileRule {
            path: "$.token".into(),
            pattern: "^t[0-9]+$".into(),
            not: Some("9$".into()),
            agree,
            own: false,
        }
    }

    fn paths(found: &[BodyDifference]) -> Vec<&str> {
        found.iter().map(|one| one.path.as_str()).collect()
    }

    #[test]
    fn structure_counts_and_order_of_keys_and_form_of_numbers_do_not() {
        let rules = rules(vec![], vec![]);
        assert!(rules.between(br#"{"a":1,"b":[1,2]}"#, br#"{ "b":[1.0,2], "a":1 }"#).is_empty());
        assert_eq!(paths(&rules.between(b"9007199254740993", b"9007199254740992")), ["$"]);
        let found = rules.between(br#"{"a":1,"b":[1,2],"c":null}"#, br#"{"a":2,"b":[1,2,3],"d":0}"#);
        assert_eq!(paths(&found), ["$.a", "$.b[2]", "$.c", "$.d"]);
        assert_eq!((found[1].expected.as_str(), found[1].got.as_str()), ("(absent)", "3"));
    }

    #[test]
    fn ignored_places_may_differ_or_be_absent() {
        let ignoring = |paths: &[&str]| {
            let ignored = paths.iter().map(|&path| path.to_owned()).collect();
            BodyRules::new(&BodyRule { json: vec![], volatile: vec![], exact: None, agree: true, ignored })
                .unwrap()
        };
        let places = |rules: &BodyRules, left: &str, right: &str| -> Vec<String> {
            let found = rules.between(left.as_bytes(), right.as_bytes());
            found.into_iter().map(|one| one.path).collect()
        };
        let rules = ignoring(&["$.a[*].t"]);
        let (left, right) = (r#"{"a":[{"t":1},{"t":2}]}"#, r#"{"a":[{"t":3},{}]}"#);
        assert!(places(&rules, left, right).is_empty());
        assert_eq!(places(&ignoring(&["$.a[0].t"]), left, right), ["$.a[1].t"]);
        assert_eq!(places(&rules, r#"{"a":[],"n":1}"#, r#"{"a":[],"n":2}"#), ["$.n"]);
        assert!(places(&ignoring(&["$"]), "no JSON", r#"{"a":1}"#).is_empty(), "the whole body");
        // What may differ between contenders may differ between two answers of one contender too.
        assert!(rules.has_volatile() && !rules.has_fixed_length());
    }

    #[test]
    fn a_list_may_be_empty_but_not_absent() {
        let mut token = token(false);
        token.path = "$.items[*].token".into();
        let rules = rules(vec![("$.items[*].ok", Value::from(true))], vec![token]);
        let found = |body: &str| rules.against_contract(body.as_bytes()).len();
        assert_eq!(found(r#"{"items":[]}"#), 0);
        assert_eq!(found("{}"), 2);
        assert_eq!(found(r#"{"items":[{}]}"#), 2);
        assert_eq!(found(r#"{"items":[{"ok":true,"token":"t1"}]}"#), 0);
    }

    #[test]
    fn volatile_places_are_left_out_unless_they_must_agree() {
        let loose = rules(vec![], vec![token(true)]);
        let (left, right) = (br#"{"token":"t1"}"#, br#"{"token":"t2"}"#);
        assert!(loose.between(left, right).is_empty());
        assert_eq!(paths(&loose.between_at_once(left, right)), ["$.token"]);
    }

    #[test]
    fn the_contract_is_checked_by_value_pattern_and_anti_pattern() {
        let rules = rules(vec![("$.n", json!(24))], vec![token(false)]);
        assert!(rules.against_contract(br#"{"n":24,"token":"t1"}"#).is_empty());
        assert_eq!(paths(&rules.against_contract(br#"{"n":25,"token":"x"}"#)), ["$.n", "$.token"]);
        assert!(rules.against_contract(br#"{"n":24,"token":"t9"}"#)[0].expected.contains("does not match"));
        assert_eq!(paths(&rules.against_contract(br#"{}"#)), ["$.n", "$.token"]);
        assert_eq!(rules.against_contract(b"<html>")[0].expected, "JSON");
    }

    #[test]
    fn other_bodies_are_compared_by_bytes() {
        let rules = rules(vec![], vec![]);
        let found = rules.between(b"hello world", b"hello mars");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "body, byte 6");
        assert!(found[0].got.contains("10 bytes"));
    }

    #[test]
    fn long_values_and_long_lists_are_cut() {
        let rules = rules(vec![], vec![]);
        let long = serde_json::to_vec(&vec!["x".repeat(500); 100]).unwrap();
        let found = rules.between(b"[]", &long);
        assert_eq!(found.len(), Difference::MOST);
        assert!(found[0].got.chars().count() < 160);
    }
}
