//! Parity: every contender meets the contract, and all agree with each other.
//!
//! Owns: asking every probe, choosing whose answer is the measure, listing all differences, and what may be expected
//! of each contender under load. Must not know: the schedule and the record's file.

use std::collections::BTreeMap;
use std::time::Duration;

use deadheat_load::{
    Address, Answer, Expectation, Prepared, RequestError, Sample, digest, exchange, request_bytes,
};
use deadheat_record::{Difference, Probe};

use crate::compare::{BodyDifference, Rules, RulesError};

/// The largest body that parity reads.
const MAX_BODY: usize = 64 << 20;
/// Answers that must agree at the same moment are asked for again so often: the moment may have passed between two.
const TRIES: usize = 3;

/// A contract, ready for use.
#[derive(Debug)]
pub(crate) struct Contract {
    probes: Vec<(Probe, Rules)>,
    timeout: Duration,
}

/// Why a contract cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("probe {probe}: {source}")]
pub struct ContractError {
    /// The probe's name.
    pub probe: String,
    /// What is wrong with it.
    pub source: RulesError,
}

/// One contender that is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it listens.
    pub address: &'a Address,
}

/// What a parity check found.
#[derive(Debug, Default)]
pub(crate) struct Parity {
    /// All differences of all contenders.
    pub differences: Vec<Difference>,
    /// Each contender's own answers to the probes that are used under load: by contender, then by probe.
    pub answers: BTreeMap<String, BTreeMap<String, Vec<Vec<u8>>>>,
    /// Status of those answers.
    pub statuses: BTreeMap<(String, String), u16>,
}

type Answers = Vec<Result<Answer, String>>;

impl Contract {
    /// Makes the probes' rules ready for use.
    ///
    /// # Errors
    /// When a path or pattern cannot be read.
    pub(crate) fn new(probes: &[Probe], timeout: Duration) -> Result<Self, ContractError> {
        let ready = probes.iter().map(|probe| {
            let rules = Rules::new(&probe.body)
                .map_err(|source| ContractError { probe: probe.name.clone(), source })?;
            Ok((probe.clone(), rules))
        });
        Ok(Self { probes: ready.collect::<Result<_, ContractError>>()?, timeout })
    }

    /// The first probe's request: what readiness is told by.
    ///
    /// # Errors
    /// When it cannot be written as an HTTP request.
    pub(crate) fn first_request(&self) -> Result<Vec<u8>, RequestError> {
        self.probes.first().map_or_else(|| request(None), |(probe, _)| request(Some(probe)))
    }

    /// Asks every contender every probe, and lists all differences.
    pub(crate) fn check(&self, contenders: &[Asked<'_>], when: &str) -> Parity {
        let mut parity = Parity::default();
        for (probe, rules) in &self.probes {
            let mut found = Vec::new();
            let mut answers = Vec::new();
            for _ in 0..TRIES {
                answers = self.ask(probe, contenders);
                found = differences(probe, rules, contenders, &answers, when);
                if found.is_empty() || !rules.has_agreeing() {
                    break;
                }
            }
            parity.differences.extend(found);
            if probe.under_load {
                let again = self.ask(probe, contenders);
                parity.learn(probe, contenders, [answers, again]);
            }
        }
        parity
    }

    fn ask(&self, probe: &Probe, contenders: &[Asked<'_>]) -> Answers {
        let bytes = request(Some(probe)).map_err(|error| error.to_string());
        contenders
            .iter()
            .map(|asked| {
                let bytes = bytes.as_ref().map_err(String::clone)?;
                exchange(asked.address, bytes, probe.method == "HEAD", self.timeout, MAX_BODY)
                    .map_err(|error| error.to_string())
            })
            .collect()
    }

    /// One contender's requests under load, in the plan's order of probes, with what it must answer.
    ///
    /// # Errors
    /// When a probe cannot be written as an HTTP request.
    pub(crate) fn prepared(
        &self,
        contender: &str,
        probe: &str,
        parity: &Parity,
    ) -> Result<Prepared, RequestError> {
        let found = self.probes.iter().find(|(one, _)| one.name == probe);
        let bytes = request(found.map(|(probe, _)| probe))?;
        let head = found.is_some_and(|(probe, _)| probe.method == "HEAD");
        let volatile = found.is_some_and(|(_, rules)| rules.has_volatile());
        Ok(Prepared { bytes, head, expect: parity.expectation(contender, probe, volatile) })
    }

    /// Differences of whole answers kept under load from what the contender itself answered before.
    pub(crate) fn check_samples(
        &self,
        contender: &str,
        probes: &[String],
        samples: &[Sample],
        parity: &Parity,
    ) -> Vec<Difference> {
        let mut found: Vec<Difference> = Vec::new();
        for sample in samples.iter().filter(|sample| !sample.truncated) {
            let Some(name) = probes.get(sample.request as usize) else { continue };
            let Some((probe, rules)) = self.probes.iter().find(|(one, _)| &one.name == name) else {
                continue;
            };
            let known = parity
                .answers
                .get(contender)
                .and_then(|answers| answers.get(name))
                .and_then(|all| all.first());
            let Some(known) = known else { continue };
            let mut here = rules.between(known, &sample.body);
            here.extend(rules.against_contract(&sample.body));
            for one in here {
                let difference =
                    named(contender, probe, &one, "its own answer before the load", "under load");
                if !found.iter().any(|other| other.probe == difference.probe && other.path == difference.path)
                {
                    found.push(difference);
                }
            }
        }
        found
    }
}

impl Parity {
    fn learn(&mut self, probe: &Probe, contenders: &[Asked<'_>], answers: [Answers; 2]) {
        for (index, asked) in contenders.iter().enumerate() {
            let bodies: Vec<Vec<u8>> = answers
                .iter()
                .filter_map(|all| all[index].as_ref().ok())
                .map(|answer| answer.body.clone())
                .collect();
            if let Ok(answer) = &answers[0][index] {
                self.statuses.insert((asked.name.into(), probe.name.clone()), answer.status);
            }
            self.answers.entry(asked.name.into()).or_default().insert(probe.name.clone(), bodies);
        }
    }

    /// What a contender's answers to a probe must look like under load: the same bytes where two answers were the
    /// same and no place is volatile, else the same length where two answers had it, else the status alone.
    fn expectation(&self, contender: &str, probe: &str, volatile: bool) -> Expectation {
        let status = self
            .statuses
            .get(&(contender.to_owned(), probe.to_owned()))
            .map_or(deadheat_load::StatusRule::Any, |status| deadheat_load::StatusRule::Exact(*status));
        let bodies = self.answers.get(contender).and_then(|answers| answers.get(probe));
        let body = match bodies.map(Vec::as_slice) {
            Some([one, two]) if one == two && !volatile => {
                deadheat_load::BodyRule::Digest { length: one.len() as u64, xxh3: digest(one) }
            }
            Some([one, two]) if one.len() == two.len() => deadheat_load::BodyRule::Length(one.len() as u64),
            _ => deadheat_load::BodyRule::Any,
        };
        Expectation { status, body }
    }
}

/// A probe as the bytes of an HTTP request; without a probe, `GET /`.
fn request(probe: Option<&Probe>) -> Result<Vec<u8>, RequestError> {
    let Some(probe) = probe else { return request_bytes("GET", "/", "localhost", &[], b"") };
    let headers: Vec<(String, String)> =
        probe.request_headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    request_bytes(&probe.method, &probe.path, "localhost", &headers, probe.request_body.as_bytes())
}

fn named(contender: &str, probe: &Probe, body: &BodyDifference, against: &str, when: &str) -> Difference {
    Difference {
        contender: contender.into(),
        probe: probe.name.clone(),
        path: body.path.clone(),
        expected: body.expected.clone(),
        got: body.got.clone(),
        against: against.into(),
        when: when.into(),
    }
}

/// All differences in the answers to one probe.
fn differences(
    probe: &Probe,
    rules: &Rules,
    contenders: &[Asked<'_>],
    answers: &Answers,
    when: &str,
) -> Vec<Difference> {
    let contract: Vec<Vec<BodyDifference>> =
        answers.iter().map(|answer| against_contract(probe, rules, answer)).collect();
    let measure = measure(rules, answers, &contract, probe);
    let mut all = Vec::new();
    for (index, asked) in contenders.iter().enumerate() {
        all.extend(contract[index].iter().map(|one| named(asked.name, probe, one, "contract", when)));
        let (Some(measure), Ok(got)) = (measure, &answers[index]) else { continue };
        let Ok(expected) = &answers[measure] else { continue };
        let between = between(probe, rules, expected, got);
        let fresh = between.iter().filter(|one| !contract[index].iter().any(|other| other.path == one.path));
        all.extend(fresh.map(|one| named(asked.name, probe, one, contenders[measure].name, when)));
    }
    all
}

fn plain(path: &str, expected: &str, got: &str) -> BodyDifference {
    BodyDifference { path: path.into(), expected: expected.into(), got: got.into() }
}

fn against_contract(probe: &Probe, rules: &Rules, answer: &Result<Answer, String>) -> Vec<BodyDifference> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(reason) => return vec![plain("answer", "an answer", reason)],
    };
    let mut found = Vec::new();
    if !probe.status.allows(answer.status) {
        let expected = match &probe.status {
            deadheat_record::StatusRule::Success => "200 to 399".to_owned(),
            deadheat_record::StatusRule::OneOf(list) => {
                list.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ")
            }
        };
        found.push(plain("status", &expected, &answer.status.to_string()));
    }
    for (name, expected) in &probe.headers {
        let got = header(answer, name);
        if got != Some(normal(name, expected)) {
            found.push(plain(&format!("header {name}"), expected, got.as_deref().unwrap_or("(absent)")));
        }
    }
    found.extend(rules.against_contract(&answer.body));
    found
}

fn between(probe: &Probe, rules: &Rules, expected: &Answer, got: &Answer) -> Vec<BodyDifference> {
    let mut found = Vec::new();
    if expected.status != got.status {
        found.push(plain("status", &expected.status.to_string(), &got.status.to_string()));
    }
    for name in &probe.agree_headers {
        let (left, right) = (header(expected, name), header(got, name));
        if left != right {
            let text = |side: Option<String>| side.unwrap_or_else(|| "(absent)".into());
            found.push(plain(&format!("header {name}"), &text(left), &text(right)));
        }
    }
    if probe.body.agree {
        found.extend(rules.between_at_once(&expected.body, &got.body));
    }
    found
}

/// An answer's header, several joined by a comma; content types are compared without regard to case and spaces.
fn header(answer: &Answer, name: &str) -> Option<String> {
    let values: Vec<String> = answer
        .headers
        .iter()
        .filter(|(one, _)| one.eq_ignore_ascii_case(name))
        .map(|(_, value)| String::from_utf8_lossy(value).trim().to_owned())
        .collect();
    let joined = (!values.is_empty()).then(|| values.join(", "))?;
    Some(normal(name, &joined))
}

/// A header's value as it is compared.
fn normal(name: &str, value: &str) -> String {
    if name == "content-type" { value.to_ascii_lowercase().replace("; ", ";") } else { value.into() }
}

/// Whose answer is the measure: of those that meet the contract (or else of all), the one with which most agree; among
/// equals the first.
fn measure(
    rules: &Rules,
    answers: &Answers,
    contract: &[Vec<BodyDifference>],
    probe: &Probe,
) -> Option<usize> {
    let answered: Vec<(usize, &Answer)> = answers
        .iter()
        .enumerate()
        .filter_map(|(index, answer)| Some((index, answer.as_ref().ok()?)))
        .collect();
    let good: Vec<(usize, &Answer)> =
        answered.iter().copied().filter(|(index, _)| contract[*index].is_empty()).collect();
    let candidates = if good.is_empty() { answered } else { good };
    let agreeing = |one: &Answer| {
        candidates.iter().filter(|(_, other)| between(probe, rules, one, other).is_empty()).count()
    };
    candidates.iter().max_by_key(|(index, one)| (agreeing(one), usize::MAX - index)).map(|(index, _)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadheat_record::{BodyRule, StatusRule};

    fn probe(json: &[(&str, serde_json::Value)]) -> Probe {
        let json = json
            .iter()
            .map(|(path, value)| deadheat_record::JsonRule { path: (*path).into(), value: value.clone() });
        Probe {
            name: "p".into(),
            method: "GET".into(),
            path: "/".into(),
            request_headers: BTreeMap::new(),
            request_body: String::new(),
            status: StatusRule::OneOf(vec![200]),
            headers: BTreeMap::from([("cache-control".into(), "public".into())]),
            agree_headers: vec!["content-type".into()],
            body: BodyRule { json: json.collect(), volatile: vec![], exact: None, agree: true },
            under_load: true,
        }
    }

    fn answer(status: u16, cache: Option<&str>, body: &str) -> Result<Answer, String> {
        let mut headers = vec![("Content-Type".to_owned(), b"application/json; charset=utf-8".to_vec())];
        headers.extend(cache.map(|value| ("Cache-Control".to_owned(), value.as_bytes().to_vec())));
        Ok(Answer { status, headers, body: body.into(), keep_alive: true })
    }

    fn run(probe: &Probe, answers: Answers) -> Vec<(String, String, String)> {
        let address = Address::Unix("/nowhere".into());
        let names = ["a", "b", "c", "d"];
        let asked: Vec<Asked<'_>> =
            names.iter().take(answers.len()).map(|name| Asked { name, address: &address }).collect();
        let rules = Rules::new(&probe.body).unwrap();
        differences(probe, &rules, &asked, &answers, "before")
            .into_iter()
            .map(|one| (one.contender, one.path, one.against))
            .collect()
    }

    fn row(contender: &str, path: &str, against: &str) -> (String, String, String) {
        (contender.into(), path.into(), against.into())
    }

    #[test]
    fn all_differences_of_all_contenders_are_listed() {
        let found = run(
            &probe(&[]),
            vec![
                answer(200, Some("public"), r#"{"n":1}"#),
                answer(500, Some("public"), r#"{"n":1}"#),
                answer(200, None, r#"{"n":2}"#),
                Err("connection refused".into()),
            ],
        );
        let expected = [
            row("b", "status", "contract"),
            row("c", "header cache-control", "contract"),
            row("c", "$.n", "a"),
            row("d", "answer", "contract"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_majority_is_the_measure() {
        let body = |n: u32| answer(200, Some("public"), &format!("{{\"n\":{n}}}"));
        assert_eq!(run(&probe(&[]), vec![body(2), body(1), body(1)]), [row("a", "$.n", "b")]);
        assert_eq!(run(&probe(&[]), vec![body(2), body(1)]), [row("b", "$.n", "a")]);
    }

    #[test]
    fn who_breaks_the_contract_is_never_the_measure() {
        let body = |n: u32| answer(200, Some("public"), &format!("{{\"n\":{n}}}"));
        let probe = probe(&[("$.n", serde_json::json!(1))]);
        let found = run(&probe, vec![body(2), body(2), body(1)]);
        assert_eq!(found, [row("a", "$.n", "contract"), row("b", "$.n", "contract")]);
    }

    #[test]
    fn what_is_expected_under_load_follows_from_two_answers() {
        let mut parity = Parity::default();
        let mut learn = |name: &str, one: &str, two: &str| {
            let answers =
                BTreeMap::from([("p".to_owned(), vec![one.as_bytes().to_vec(), two.as_bytes().to_vec()])]);
            parity.answers.insert(name.into(), answers);
            parity.statuses.insert((name.into(), "p".into()), 200);
        };
        learn("same", "x1", "x1");
        learn("length", "x1", "x2");
        learn("any", "x1", "x22");
        let body = |name: &str, volatile| parity.expectation(name, "p", volatile).body;
        assert!(matches!(body("same", false), deadheat_load::BodyRule::Digest { length: 2, .. }));
        assert!(matches!(body("same", true), deadheat_load::BodyRule::Length(2)));
        assert!(matches!(body("length", false), deadheat_load::BodyRule::Length(2)));
        assert!(matches!(body("any", false), deadheat_load::BodyRule::Any));
    }
}
