//! Derives the contract of one request from the answers that a service gave to it.
//!
//! Owns: what all answers have in common, and what changes between them. Must not know: TOML, how the answers were received.

use std::collections::{BTreeMap, BTreeSet};

use deadheat_load::Answer;
use deadheat_record::{JsonPath, Step};
use serde_json::Value;

use super::pattern::pattern;

/// A contract lists at most this many places that change. If there are more, it lists the objects and lists that contain them.
const MOST_CHANGING: usize = 20;
/// A contract lists at most this many values, from objects nested at most this deep.
const MOST_VALUES: usize = 6;
const DEEPEST: usize = 3;
/// Longer texts, in characters, are not listed as values.
const LONGEST_TEXT: usize = 60;
/// A body of text up to this length, in bytes, is a part of the contract.
const LONGEST_BODY: usize = 100;
/// Whole numbers from here on may be times or counters, so they are not listed as values.
const LARGE: i64 = 1_000_000_000;
/// Headers that a contract names if their values are always the same.
const HEADERS: [&str; 2] = ["content-type", "location"];

/// What all answers to one request have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Contract {
    /// Number of answers.
    pub answers: usize,
    /// Number of starts of the service in which it gave them.
    pub starts: usize,
    /// The statuses, in ascending order.
    pub statuses: Vec<u16>,
    /// Names, in lower case, and values of headers.
    pub headers: Vec<(String, String)>,
    /// Whether the content type differs between answers.
    pub content_type_changes: bool,
    /// Length of the shortest and of the longest body, in bytes.
    pub body_bytes: (usize, usize),
    /// What the bodies have in common.
    pub body: Body,
}

/// What the bodies of all answers have in common.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// All are empty.
    Empty,
    /// All are JSON.
    Json {
        /// Some of the values that are the same in every body, by JSON path.
        values: Vec<(String, Value)>,
        /// What changes.
        changing: Vec<Changing>,
    },
    /// All have the same bytes, which are not JSON.
    Same {
        /// The whole body, if it is a short text.
        text: Option<String>,
    },
    /// They differ, and not all are JSON.
    Different,
}

/// A place in JSON with a value that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changing {
    /// Its JSON path.
    pub path: String,
    /// A pattern for its values.
    pub pattern: String,
    /// Whether it is the same in all answers of one start of the service.
    pub own: bool,
    /// A value that was seen.
    pub example: String,
}

impl Contract {
    /// Derives the contract from the answers of each start, with decoded bodies. None without any answer.
    pub fn of(starts: &[Vec<Answer>]) -> Option<Self> {
        let answers: Vec<&Answer> = starts.iter().flatten().collect();
        let first = *answers.first()?;
        let statuses: BTreeSet<u16> = answers.iter().map(|answer| answer.status).collect();
        let lengths = answers.iter().map(|answer| answer.body.len());
        let (least, most) =
            lengths.fold((usize::MAX, 0), |(least, most), one| (least.min(one), most.max(one)));
        let header = |name: &&str| Some(((*name).to_owned(), same_header(&answers, name)??));
        Some(Self {
            answers: answers.len(),
            starts: starts.iter().filter(|answers| !answers.is_empty()).count(),
            statuses: statuses.into_iter().collect(),
            headers: HEADERS.iter().filter_map(header).collect(),
            content_type_changes: answers
                .iter()
                .any(|one| one.header("content-type") != first.header("content-type")),
            body_bytes: (least, most),
            body: body(starts),
        })
    }

    /// The contract in a few words: `200, application/json, 1,234 bytes`.
    pub fn summary(&self) -> String {
        let statuses: Vec<String> = self.statuses.iter().map(u16::to_string).collect();
        let mut parts = vec![statuses.join(" or ")];
        let kind = self.headers.iter().find(|(name, _)| name == "content-type");
        parts.extend(kind.map(|(_, value)| value.split(';').next().unwrap_or_default().trim().to_owned()));
        parts.push(match self.body_bytes {
            (_, 0) => "no body".into(),
            (least, most) if least == most => format!("{} bytes", grouped(most)),
            (least, most) => format!("{} to {} bytes", grouped(least), grouped(most)),
        });
        parts.join(", ")
    }
}

/// A whole number with its digits in groups of three.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// The value of a header that is the same in all answers and can be written into a study. `Some(None)` if it cannot, `None` if it differs or is
/// missing.
fn same_header(answers: &[&Answer], name: &str) -> Option<Option<String>> {
    let value = answers.first()?.header(name)?;
    let count =
        |answer: &Answer| answer.headers.iter().filter(|(one, _)| one.eq_ignore_ascii_case(name)).count();
    let same = answers.iter().all(|answer| answer.header(name) == Some(value) && count(answer) == 1);
    let text = std::str::from_utf8(value).ok().filter(|text| !text.chars().any(char::is_control))?;
    // A redirect to the address of this start leads elsewhere after the next one.
    let fixed = name != "location" || !text.contains("127.0.0.1") && !text.contains("localhost");
    same.then(|| fixed.then(|| text.to_owned()))
}

fn body(starts: &[Vec<Answer>]) -> Body {
    let bodies: Vec<&[u8]> = starts.iter().flatten().map(|answer| answer.body.as_slice()).collect();
    if bodies.iter().all(|body| body.is_empty()) {
        return Body::Empty;
    }
    let parse = |answer: &Answer| serde_json::from_slice::<Value>(&answer.body).ok();
    let parsed: Option<Vec<Vec<Value>>> =
        starts.iter().map(|answers| answers.iter().map(parse).collect()).collect();
    match (parsed, bodies.split_first()) {
        (Some(parsed), _) => json(&parsed),
        (None, Some((first, rest))) if rest.iter().all(|body| body == first) => {
            Body::Same { text: short_text(first) }
        }
        _ => Body::Different,
    }
}

fn short_text(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok().filter(|text| text.len() <= LONGEST_BODY)?;
    let plain = |character: char| !character.is_control() || matches!(character, '\n' | '\t');
    text.chars().all(plain).then(|| text.to_owned())
}

/// One step of a pattern of places.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Name(String),
    Index(usize),
    EveryElement,
}

type Place = Vec<At>;

fn json(starts: &[Vec<Value>]) -> Body {
    let all: Vec<&Value> = starts.iter().flatten().collect();
    let mut changed = BTreeSet::new();
    if let Some((first, rest)) = all.split_first() {
        rest.iter().for_each(|other| differences(&mut Vec::new(), first, other, &mut changed));
    }
    let places = few(generalised(changed, all.first().copied().unwrap_or(&Value::Null)));
    let changing = places.iter().map(|place| changing(place, starts)).collect();
    let mut values = Vec::new();
    if let Some(first) = all.first() {
        stable(&mut Vec::new(), first, &places, &mut values);
    }
    Body::Json { values, changing }
}

/// Collects the places at which two values differ. If a member or an element is missing in one of them, the place is the object or list.
fn differences(steps: &mut Place, one: &Value, other: &Value, found: &mut BTreeSet<Place>) {
    match (one, other) {
        (Value::Object(left), Value::Object(right))
            if left.len() == right.len() && left.keys().all(|name| right.contains_key(name)) =>
        {
            for (name, value) in left {
                steps.push(At::Name(name.clone()));
                differences(steps, value, &right[name], found);
                steps.pop();
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                steps.push(At::Index(index));
                differences(steps, left, right, found);
                steps.pop();
            }
        }
        _ if one == other => {}
        _ => {
            found.insert(steps.clone());
        }
    }
}

/// Whether every place that `inner` stands for is one of `outer`, or inside of one.
fn covers(outer: &[At], inner: &[At]) -> bool {
    let same = |(outer, inner): (&At, &At)| match (outer, inner) {
        (At::EveryElement, At::Index(_) | At::EveryElement) => true,
        _ => outer == inner,
    };
    outer.len() <= inner.len() && outer.iter().zip(inner).all(same)
}

/// Removes places inside of others.
fn outermost(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by_key(Vec::len);
    let mut kept: Vec<Place> = Vec::new();
    for place in places {
        if !kept.iter().any(|outer| covers(outer, &place)) {
            kept.push(place);
        }
    }
    kept.sort();
    kept
}

/// Writes `[*]` for the positions in lists where at least half of the elements change.
fn generalised(changed: BTreeSet<Place>, example: &Value) -> Vec<Place> {
    let every = |place: &Place| -> Place {
        let step = |at: &At| if matches!(at, At::Index(_)) { At::EveryElement } else { at.clone() };
        place.iter().map(step).collect()
    };
    let mut groups: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
    for place in changed {
        groups.entry(every(&place)).or_default().push(place);
    }
    let mut places = Vec::new();
    for (group, members) in groups {
        if members.len() * 2 >= selected(&group, example).len() {
            places.push(group);
        } else {
            places.extend(members);
        }
    }
    outermost(places)
}

/// Replaces the deepest places by what contains them until there are few.
fn few(mut places: Vec<Place>) -> Vec<Place> {
    while places.len() > MOST_CHANGING {
        let deepest = places.iter().map(Vec::len).max().unwrap_or(0);
        places.iter_mut().filter(|place| place.len() == deepest).for_each(|place| {
            place.pop();
        });
        places = outermost(places);
    }
    places
}

fn text(place: &[At]) -> String {
    place.iter().fold("$".to_owned(), |text, at| {
        let step = match at {
            At::Name(name) => Step::Name(name.clone()),
            At::Index(index) => Step::Index(*index),
            At::EveryElement => return text + "[*]",
        };
        text + &deadheat_record::place(std::slice::from_ref(&step))[1..]
    })
}

fn selected<'v>(place: &[At], value: &'v Value) -> Vec<&'v Value> {
    let path = JsonPath::parse(&text(place));
    path.map(|path| path.select(value).into_iter().map(|(_, value)| value).collect()).unwrap_or_default()
}

fn changing(place: &[At], starts: &[Vec<Value>]) -> Changing {
    let of = |answers: &'_ Vec<Value>| -> Vec<Vec<Value>> {
        answers.iter().map(|answer| selected(place, answer).into_iter().cloned().collect()).collect()
    };
    let by_start: Vec<Vec<Vec<Value>>> = starts.iter().map(of).collect();
    let steady = |answers: &Vec<Vec<Value>>| answers.windows(2).all(|pair| pair[0] == pair[1]);
    let repeated = by_start.iter().all(|answers| answers.len() > 1);
    let values: Vec<&Value> = by_start.iter().flatten().flatten().collect();
    let example = values.first().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    Changing {
        path: text(place),
        pattern: pattern(&values),
        own: repeated && by_start.len() > 1 && by_start.iter().all(steady),
        example: example.unwrap_or_default(),
    }
}

/// Collects values that are the same in all answers, in the order of the body. Of a list, only the first element counts.
fn stable(steps: &mut Place, value: &Value, changing: &[Place], found: &mut Vec<(String, Value)>) {
    let covered = changing.iter().any(|place| covers(place, steps));
    if found.len() >= MOST_VALUES || covered || steps.len() > DEEPEST {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                steps.push(At::Name(name.clone()));
                stable(steps, inner, changing, found);
                steps.pop();
            }
        }
        Value::Array(elements) => {
            if let Some(inner) = elements.first() {
                steps.push(At::Index(0));
                stable(steps, inner, changing, found);
                steps.pop();
            }
        }
        _ if is_lasting(value) => found.push((text(steps), value.clone())),
        _ => {}
    }
}

/// Whether a value probably stays the same for a long time, and can be written in TOML.
fn is_lasting(value: &Value) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.abs() < LARGE,
            None => number.is_f64(),
        },
        Value::String(text) => {
            let date = text.len() >= 10 && text.is_char_boundary(10) && is_date(&text[..10]);
            !date && text.chars().count() <= LONGEST_TEXT && !text.chars().any(char::is_control)
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether a text has the form `2026-11-25`.
fn is_date(text: &str) -> bool {
    let fits =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    pub(super) fn answer(body: impl Into<Vec<u8>>) -> Answer {
        let headers = vec![("Content-Type".to_owned(), b"application/json".to_vec())];
        Answer { status: 200, headers, body: body.into(), keep_alive: true }
    }

    fn starts(bodies: &[&[Value]]) -> Vec<Vec<Answer>> {
        let start = |bodies: &&[Value]| bodies.iter().map(|body| answer(body.to_string())).collect();
        bodies.iter().map(start).collect()
    }

    /// Paths with the value that was always the same, and paths that changed with whether that was only between starts.
    type Seen = (Vec<(String, Value)>, Vec<(String, bool)>);

    fn seen(bodies: &[&[Value]]) -> Seen {
        match Contract::of(&starts(bodies)).unwrap().body {
            Body::Json { values, changing } => {
                (values, changing.into_iter().map(|one| (one.path, one.own)).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    fn paths(bodies: &[&[Value]]) -> Vec<String> {
        seen(bodies).1.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn values_of_an_answer_of_a_start_and_of_all_answers_are_told_apart() {
        let body = |time: u32, boot: u32| json!({"time": time, "boot": boot, "count": 3, "ok": true});
        let (values, changing) = seen(&[&[body(1, 7), body(2, 7)], &[body(3, 8), body(4, 8)]]);
        assert_eq!(values, [("$.count".into(), json!(3)), ("$.ok".into(), json!(true))]);
        assert_eq!(changing, [("$.boot".into(), true), ("$.time".into(), false)]);
        // One answer after a start cannot show that a value stays the same.
        assert!(!seen(&[&[body(1, 7), body(1, 7)], &[body(1, 8)]]).1[0].1);
    }

    #[test]
    fn elements_of_lists_are_named_together_if_half_of_them_change() {
        let list = |times: [u32; 4]| json!({"items": times.map(|time| json!({"id": 1, "t": time}))});
        assert_eq!(paths(&[&[list([1, 2, 3, 4]), list([5, 6, 3, 4])]]), ["$.items[*].t"]);
        assert_eq!(paths(&[&[list([1, 2, 3, 4]), list([5, 2, 3, 4])]]), ["$.items[0].t"]);
        assert_eq!(paths(&[&[json!([1, 2]), json!([1, 2, 3])]]), ["$"]);
        assert_eq!(paths(&[&[json!({"a": {"b": 1}}), json!({"a": {}})]]), ["$.a"]);
        assert_eq!(
            paths(&[&[json!({"odd name": 1, "": 2}), json!({"odd name": 2, "": 3})]]),
            ["$[\"\"]", "$[\"odd name\"]"]
        );
    }

    #[test]
    fn many_places_that_change_become_few() {
        let body = |base: usize| {
            let member = |number: usize| (format!("k{number}"), json!({"x": base + number, "same": 1}));
            json!({"all": (0..30).map(member).collect::<serde_json::Map<_, _>>(), "t": base})
        };
        assert_eq!(paths(&[&[body(0), body(100)]]), ["$.all", "$.t"]);
    }

    #[test]
    fn values_that_may_change_tomorrow_are_not_listed() {
        let body = json!({"at": "2026-11-25", "ns": 1_795_630_000_123_i64, "n": null, "long": "x".repeat(80), "tag": "a"});
        assert_eq!(seen(&[&[body]]).0, [("$.tag".into(), json!("a"))]);
    }

    #[test]
    fn other_bodies_are_the_same_or_differ() {
        let of = |bodies: &[&str]| {
            Contract::of(&[bodies.iter().map(|body| answer(*body)).collect()]).unwrap().body
        };
        assert_eq!(of(&["hello", "hello"]), Body::Same { text: Some("hello".into()) });
        assert_eq!(of(&["<p>1", "<p>2"]), Body::Different);
        assert_eq!(of(&["{}", "<p>2"]), Body::Different);
        assert_eq!(of(&["", ""]), Body::Empty);
        let binary = answer(vec![0xff, 0xfe]);
        assert_eq!(Contract::of(&[vec![binary]]).unwrap().body, Body::Same { text: None });
        assert_eq!(Contract::of(&[vec![]]), None);
    }

    #[test]
    fn headers_are_listed_if_they_stay_the_same() {
        let redirect = |to: &str| Answer {
            status: 302,
            headers: vec![("Location".into(), to.into()), ("Date".into(), b"x".to_vec())],
            body: Vec::new(),
            keep_alive: true,
        };
        let headers = |to: &str| Contract::of(&[vec![redirect(to), redirect(to)]]).unwrap().headers;
        assert_eq!(headers("/login"), [("location".into(), "/login".into())]);
        assert_eq!(headers("http://127.0.0.1:20001/login"), []);
        let other = Contract::of(&[vec![answer("1"), Answer { headers: vec![], ..answer("1") }]]).unwrap();
        assert!(other.content_type_changes && other.headers.is_empty());
    }

    #[test]
    fn a_summary_fits_into_a_line() {
        let contract = Contract::of(&[vec![answer("x".repeat(1234)), answer("x".repeat(7))]]).unwrap();
        assert_eq!(contract.summary(), "200, application/json, 7 to 1,234 bytes");
    }
}
