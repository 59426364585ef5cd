//! Checks parity: every contender meets the contract, and all agree with each other.
//!
//! Owns: sending every probe, choosing the reference answer, listing all differences, and what to expect of each contender under load.
//! Must not know: the schedule and the record's file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use deadheat_analysis::gates::table::{self, By};
use deadheat_load::{
    Address, Answer, Expectation, NoAnswer, Prepared, RecordedRequest, Recording, Sample, StatusSet,
    TlsSettings, digest,
};
use deadheat_record::{BodyRule, Capture, Difference, Finding, Probe, Rows, StatusRule};

use crate::ask::Question;
use crate::capture::{Captured, capture, hidden, values_in};
use crate::compare::{BodyDifference, BodyRules, BodyRulesError};
use crate::encoding;
pub use crate::question::QuestionError;
use crate::question::{Filling, question};

/// Number of attempts for answers that must agree at the same moment: the value may change between two answers.
const TRIES: usize = 3;

/// A probe that stands for many requests sends this many of them, evenly spread over its list.
const SAMPLE: usize = 64;

/// What the files contain that probes name, by the name of the probe.
#[derive(Debug, Clone, Default)]
pub struct ProbeFiles {
    /// Recorded traffic.
    pub recordings: BTreeMap<String, Arc<Recording>>,
    /// Rows of values.
    pub rows: BTreeMap<String, Arc<Rows>>,
}

/// A contract, ready for use.
#[derive(Debug, Clone)]
pub(crate) struct Contract {
    /// The requests to send. A probe that stands for many is represented by a sample, with a separate probe for each request.
    asked: Vec<AskedProbe>,
    /// Probes that stand for many requests.
    many: Vec<Many>,
    timeout: Duration,
    /// The largest total size of the requests that the rows of one probe make, in bytes.
    most_row_bytes: usize,
    /// The TLS settings for contenders; none for plain HTTP.
    tls: Option<TlsSettings>,
}

/// A probe that is sent as one request.
#[derive(Debug, Clone)]
struct AskedProbe {
    probe: Probe,
    rules: BodyRules,
    /// The recorded request that is sent; none if the probe itself says what is sent.
    recorded: Option<RecordedRequest>,
    /// The row of values that the request contains.
    row: Option<(Arc<Rows>, usize)>,
}

/// A probe that stands for many requests.
#[derive(Debug, Clone)]
struct Many {
    probe: Probe,
    rules: BodyRules,
    source: ManySource,
}

/// Where the requests of a probe come from that stands for many.
#[derive(Debug, Clone)]
enum ManySource {
    /// The probe's list of paths.
    Paths,
    /// Recorded traffic.
    Recording(Arc<Recording>),
    /// Rows of values: one request for each.
    Rows(Arc<Rows>),
}

impl Many {
    /// How many requests there are.
    fn len(&self) -> usize {
        match &self.source {
            ManySource::Paths => self.probe.paths.len(),
            ManySource::Recording(recording) => recording.requests.len(),
            ManySource::Rows(rows) => rows.values.len(),
        }
    }

    /// The name of one of the requests.
    fn key(&self, index: usize) -> String {
        match &self.source {
            ManySource::Paths => key(&self.probe, &self.probe.paths[index]),
            ManySource::Recording(recording) => {
                let RecordedRequest { method, target, .. } = &recording.requests[index];
                let path = target.split('?').next().unwrap_or_default();
                format!("{} line {}: {method} {path}", self.probe.name, recording.lines[index])
            }
            // Values and queries may be secret, so they are not part of the name.
            ManySource::Rows(rows) => format!("{} line {}", self.probe.name, rows.lines[index]),
        }
    }

    /// A sample of the requests, each as a separate probe: evenly spread, with the first one, without duplicates.
    fn sample(&self) -> Vec<AskedProbe> {
        let mut seen = BTreeSet::new();
        let is_new = |index: &usize| match self.source {
            ManySource::Paths => seen.insert(&self.probe.paths[*index]),
            ManySource::Recording(_) | ManySource::Rows(_) => true,
        };
        let distinct: Vec<usize> = (0..self.len()).filter(is_new).collect();
        let (count, most) = (distinct.len(), distinct.len().min(SAMPLE));
        (0..most).map(|place| self.one(distinct[place * count / most])).collect()
    }

    /// One of the requests as a separate probe.
    fn one(&self, index: usize) -> AskedProbe {
        let mut probe = Probe { name: self.key(index), paths: Vec::new(), ..self.probe.clone() };
        let (mut recorded, mut row) = (None, None);
        match &self.source {
            ManySource::Paths => probe.path.clone_from(&self.probe.paths[index]),
            ManySource::Recording(recording) => {
                let request = recording.requests[index].clone();
                (probe.method, probe.path) = (request.method.clone(), request.target.clone());
                recorded = Some(request);
            }
            ManySource::Rows(rows) => row = Some((Arc::clone(rows), index)),
        }
        AskedProbe { probe, rules: self.rules.clone(), recorded, row }
    }

    /// How often each request is sent relative to the others.
    fn weights(&self) -> Vec<f64> {
        match &self.source {
            ManySource::Recording(recording) => {
                recording.counts().into_iter().map(|count| count as f64).collect()
            }
            ManySource::Paths | ManySource::Rows(_) => vec![1.0; self.len()],
        }
    }
}

impl AskedProbe {
    fn filling<'a>(&'a self, captured: Option<&'a Captured>) -> Filling<'a> {
        let row = self.row.as_ref().map(|(rows, row)| (&**rows, *row));
        Filling { recorded: self.recorded.as_ref(), row, captured }
    }
}

/// Why a contract cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// The rules of a probe are wrong.
    #[error("probe {probe}: {source}")]
    Rules {
        /// The probe's name.
        probe: String,
        /// The cause.
        source: BodyRulesError,
    },
    /// The recorded traffic of a probe was not read.
    #[error("probe {probe}: its recorded traffic is missing")]
    Recording {
        /// The probe's name.
        probe: String,
    },
    /// The rows of values of a probe were not read.
    #[error("probe {probe}: its rows of values are missing")]
    Rows {
        /// The probe's name.
        probe: String,
    },
}

/// A contender that receives probes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeTarget<'a> {
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
    /// Each contender's answers to the probes that are used under load: by contender, then by probe.
    pub answers: BTreeMap<String, BTreeMap<String, Vec<Vec<u8>>>>,
    /// The statuses of those answers, by contender and probe; none if they differ.
    pub statuses: BTreeMap<(String, String), Option<u16>>,
    /// How their bodies are encoded (`gzip`), by contender and probe. Those that are sent as they are have no entry.
    pub encodings: BTreeMap<(String, String), String>,
    /// The values that each contender's answers contained, by contender.
    pub captured: BTreeMap<String, Captured>,
    /// Names and values that any answer contained where a value is captured, also a wrong answer. Nothing that is written contains them.
    pub seen: BTreeSet<(String, String)>,
}

type Answers = Vec<Result<Answer, NoAnswer>>;

/// Sends requests to several addresses at once, each with a time limit. Returns none if the user interrupts.
pub(crate) type AskAll<'a> = dyn Fn(&[(&Address, &Question)], Duration) -> Option<Answers> + 'a;

/// The request of a probe for each contender, by name. Those for which no request could be made have none.
type Questions<'a> = BTreeMap<&'a str, Question>;

/// The contenders that received a probe, and their answers in the same order, with decoded bodies.
#[derive(Debug, Default)]
struct Round<'a> {
    asked: Vec<ProbeTarget<'a>>,
    answers: Answers,
    /// The bodies as they were sent; none where that is the body of the answer.
    encoded: Vec<Option<Vec<u8>>>,
}

/// The contenders that still receive probes. A contender that lets one request time out receives no more, and neither does one whose answer
/// lacks a value that later requests need.
struct Asking<'a, 's> {
    asked: Vec<ProbeTarget<'a>>,
    timeout: Duration,
    ask: &'s AskAll<'s>,
    /// What becomes [`Parity::seen`].
    seen: BTreeSet<(String, String)>,
}

impl Contract {
    /// Prepares the probes' rules.
    ///
    /// # Errors
    /// When a path or pattern is invalid, or the contents of a file are missing.
    pub(crate) fn new(
        probes: &[Probe],
        files: &ProbeFiles,
        timeout: Duration,
    ) -> Result<Self, ContractError> {
        let most_row_bytes = Rows::MOST_REQUEST_BYTES;
        let mut contract = Self { asked: Vec::new(), many: Vec::new(), timeout, most_row_bytes, tls: None };
        for probe in probes {
            let name = || probe.name.clone();
            let rules = BodyRules::new(&comparable(probe))
                .map_err(|source| ContractError::Rules { probe: name(), source })?;
            let source = if probe.log.is_some() {
                let found = files.recordings.get(&probe.name).cloned();
                ManySource::Recording(found.ok_or_else(|| ContractError::Recording { probe: name() })?)
            } else if probe.values.is_some() {
                let found = files.rows.get(&probe.name).cloned();
                ManySource::Rows(found.ok_or_else(|| ContractError::Rows { probe: name() })?)
            } else if !probe.paths.is_empty() {
                ManySource::Paths
            } else {
                let probe = probe.clone();
                contract.asked.push(AskedProbe { probe, rules, recorded: None, row: None });
                continue;
            };
            let many = Many { probe: probe.clone(), rules, source };
            contract.asked.extend(many.sample());
            contract.many.push(many);
        }
        Ok(contract)
    }

    /// The same contract over TLS.
    pub(crate) fn over(&self, tls: TlsSettings) -> Self {
        Self { tls: Some(tls), ..self.clone() }
    }

    /// The TLS settings for contenders; none for plain HTTP.
    pub(crate) fn tls(&self) -> Option<&TlsSettings> {
        self.tls.as_ref()
    }

    /// The first probe's request, which decides readiness. No value was captured before it.
    ///
    /// # Errors
    /// When it cannot be written as an HTTP request.
    pub(crate) fn first_request(&self) -> Result<Question, QuestionError> {
        match self.asked.first() {
            Some(one) => self.question(one, None),
            None => Ok(Question { tls: self.tls.clone(), ..question(None, Filling::default())? }),
        }
    }

    /// The request of a probe without a file and without captured values.
    ///
    /// # Errors
    /// When it cannot be written as an HTTP request.
    pub(crate) fn question_of(&self, probe: &Probe) -> Result<Question, QuestionError> {
        Ok(Question { tls: self.tls.clone(), ..question(Some(probe), Filling::default())? })
    }

    fn question(&self, one: &AskedProbe, captured: Option<&Captured>) -> Result<Question, QuestionError> {
        Ok(Question { tls: self.tls.clone(), ..question(Some(&one.probe), one.filling(captured))? })
    }

    /// What is wrong with an answer to the first probe, by the contract alone; none if nothing is.
    pub(crate) fn wrong_at_first(&self, answer: &Answer) -> Option<String> {
        let AskedProbe { probe, rules, .. } = self.asked.first()?;
        let decoded = encoding::of(answer).map(|_| {
            let mut decoded = answer.clone();
            decode(&mut decoded);
            decoded
        });
        let answer = decoded.as_ref().unwrap_or(answer);
        let found = wrong_by_contract(probe, rules, answer);
        let first = found.first()?;
        let more = if found.len() > 1 { format!(" (and {} more)", found.len() - 1) } else { String::new() };
        let (path, got, expected) = (&first.path, &first.got, &first.expected);
        let wrong = format!("its answer to {} has {path} {got} instead of {expected}{more}", probe.name);
        let values: Captured = values_in(&probe.capture, answer).collect();
        Some(hidden(&wrong, &values))
    }

    /// Sends every probe to every contender and lists all differences. Takes the values that later probes need from the answers. Returns none
    /// if the user interrupts.
    ///
    /// # Errors
    /// When a probe cannot be written as an HTTP request.
    pub(crate) fn check(
        &self,
        contenders: &[ProbeTarget<'_>],
        when: &str,
        ask: &AskAll<'_>,
    ) -> Result<Option<Parity>, QuestionError> {
        let mut parity = Parity::default();
        let (asked, timeout) = (contenders.to_vec(), self.timeout);
        let mut circle = Asking { asked, timeout, ask, seen: BTreeSet::new() };
        for one in &self.asked {
            let (probe, rules) = (&one.probe, &one.rules);
            let questions = self.questions(one, &mut circle, &mut parity, when)?;
            // Probes that are used under load are sent twice: both answers together decide what to expect under load.
            for _ in 0..if probe.under_load { 2 } else { 1 } {
                let Some((found, round)) = circle.settle(probe, rules, &questions, when) else {
                    return Ok(None);
                };
                if !probe.capture.is_empty() {
                    circle.capture(probe, &round, &found, &mut parity, when);
                }
                parity.add(found);
                parity.learn(probe, round);
            }
        }
        parity.seen = circle.seen;
        parity.differences = without_values(parity.differences, &parity.seen);
        Ok(Some(parity))
    }

    /// The request of a probe for each contender. A contender whose captured values cannot be part of it receives no more probes.
    fn questions<'a>(
        &self,
        one: &AskedProbe,
        circle: &mut Asking<'a, '_>,
        parity: &mut Parity,
        when: &str,
    ) -> Result<Questions<'a>, QuestionError> {
        let mut questions = Questions::new();
        for asked in &circle.asked {
            match self.question(one, parity.captured.get(asked.name)) {
                Ok(question) => drop(questions.insert(asked.name, question)),
                Err(QuestionError::Value(error)) => {
                    let wrong = plain("request", "values that it can contain", &error.to_string());
                    parity.add(vec![named(asked.name, &one.probe, &wrong, "contract", when)]);
                }
                Err(error) => return Err(error),
            }
        }
        circle.asked.retain(|asked| questions.contains_key(asked.name));
        Ok(questions)
    }

    /// One contender's requests of a probe under load, in the order of its list, with the expected answers.
    ///
    /// # Errors
    /// When a probe cannot be written as an HTTP request, or its requests take too much memory.
    pub(crate) fn prepared(
        &self,
        contender: &str,
        probe: &str,
        parity: &Parity,
    ) -> Result<Vec<Prepared>, QuestionError> {
        let captured = parity.captured.get(contender);
        let one = |key: &str,
                   probe: Option<&Probe>,
                   rules: Option<&BodyRules>,
                   filling: Filling<'_>|
         -> Result<Prepared, QuestionError> {
            let Question { bytes, head, .. } = question(probe, Filling { captured, ..filling })?;
            // Without `agree`, only the contract's own rules bind a body: answers that came at the same moment may be the same by chance.
            let may_change = probe.is_some_and(|probe| !probe.body.agree && probe.body.exact.is_none());
            let mut expect = parity.expectation(contender, key, rules);
            if may_change {
                expect.body = deadheat_load::BodyRule::Any;
            }
            if let (deadheat_load::StatusRule::Any, Some(probe)) = (expect.status, probe) {
                expect.status = allowed(&probe.status);
            }
            Ok(Prepared { bytes: bytes.to_vec(), head, expect })
        };
        let Some(many) = self.many_of(probe) else {
            let found = self.asked.iter().find(|one| one.probe.name == probe);
            let (asked, rules) = (found.map(|one| &one.probe), found.map(|one| &one.rules));
            return Ok(vec![one(probe, asked, rules, Filling::default())?]);
        };
        let rules = Some(&many.rules);
        let mut bare = Probe { paths: Vec::new(), ..many.probe.clone() };
        let (mut all, mut bytes) = (Vec::with_capacity(many.len()), 0);
        for index in 0..many.len() {
            let filling = match &many.source {
                ManySource::Paths => {
                    bare.path.clone_from(&many.probe.paths[index]);
                    Filling::default()
                }
                ManySource::Recording(recording) => {
                    Filling { recorded: recording.requests.get(index), ..Filling::default() }
                }
                ManySource::Rows(rows) => Filling { row: Some((rows, index)), ..Filling::default() },
            };
            let prepared = one(&many.key(index), Some(&bare), rules, filling)?;
            bytes += prepared.bytes.len();
            if matches!(many.source, ManySource::Rows(_)) && bytes > self.most_row_bytes {
                let (probe, count, most_bytes) = (probe.to_owned(), many.len(), self.most_row_bytes);
                return Err(QuestionError::TooLarge { probe, count, most_bytes });
            }
            all.push(prepared);
        }
        Ok(all)
    }

    fn many_of(&self, probe: &str) -> Option<&Many> {
        self.many.iter().find(|many| many.probe.name == probe)
    }

    /// How often each request of [`Self::prepared`] is sent relative to the others of the probe.
    pub(crate) fn weights(&self, probe: &str) -> Vec<f64> {
        self.many_of(probe).map_or_else(|| vec![1.0], Many::weights)
    }

    /// The recorded traffic that a probe stands for.
    pub(crate) fn recording(&self, probe: &str) -> Option<&Arc<Recording>> {
        match &self.many_of(probe)?.source {
            ManySource::Recording(recording) => Some(recording),
            ManySource::Paths | ManySource::Rows(_) => None,
        }
    }

    /// The names of these probes' requests, in the order of [`Self::prepared`].
    pub(crate) fn keys<'p>(&self, probes: impl Iterator<Item = &'p str>) -> Vec<String> {
        let keys = |probe: &'p str| match self.many_of(probe) {
            Some(many) => (0..many.len()).map(|index| many.key(index)).collect(),
            None => vec![probe.to_owned()],
        };
        probes.flat_map(keys).collect()
    }

    /// Finds a probe by name, or the probe with many requests that the name belongs to.
    fn known_as(&self, name: &str) -> Option<(&Probe, &BodyRules)> {
        let of_many = |many: &&Many| {
            let rest = name.strip_prefix(&many.probe.name);
            rest.is_some_and(|rest| rest.starts_with(" /") || rest.starts_with(" line "))
        };
        let asked = self.asked.iter().find(|one| one.probe.name == name).map(|one| (&one.probe, &one.rules));
        asked.or_else(|| self.many.iter().find(of_many).map(|many| (&many.probe, &many.rules)))
    }

    /// Compares the full answers kept under load with the contender's own earlier answers.
    pub(crate) fn check_samples(
        &self,
        contender: &str,
        probes: &[String],
        samples: &[Sample],
        parity: &Parity,
    ) -> Vec<Difference> {
        let (mut found, mut seen): (Vec<Difference>, _) = (Vec::new(), parity.seen.clone());
        for sample in samples.iter().filter(|sample| !sample.truncated) {
            let Some(name) = probes.get(sample.request as usize) else { continue };
            // What has another status has another body, and counts as a wrong answer already.
            let status = parity.statuses.get(&(contender.to_owned(), name.clone())).copied();
            if status.flatten().is_some_and(|status| status != sample.status) {
                continue;
            }
            let Some((probe, rules)) = self.known_as(name) else { continue };
            let known = parity.answers.get(contender).and_then(|answers| answers.get(name));
            let encoding = parity.encodings.get(&(contender.to_owned(), name.clone()));
            let plain = |body| encoding::decoded(encoding.map(String::as_str), body);
            let known: Option<Vec<Cow<'_, [u8]>>> =
                known.map(|known| known.iter().map(|one| plain(one)).collect());
            let body = plain(&sample.body);
            let mut here = match known.as_deref() {
                None | Some([]) if self.many_of(&probe.name).is_none() => continue,
                // This request was not in the sample, so only the contract's own rules apply.
                None | Some([]) => Vec::new(),
                // A body without any rule may change from answer to answer, and so may that of an answer that changes its status.
                Some(_) if !probe.body.agree || status == Some(None) => Vec::new(),
                Some([known, ..]) => rules.between(known, &body),
            };
            here.extend(rules.against_contract(&body));
            let headers = Vec::new();
            let answer = Answer { status: sample.status, headers, body: body.into_owned(), keep_alive: true };
            seen.extend(values_in(&probe.capture, &answer));
            for one in here {
                let difference =
                    named(contender, probe, &one, "its own answer before the load", "under load");
                if !found.iter().any(|other| other.probe == difference.probe && other.path == difference.path)
                {
                    found.push(difference);
                }
            }
        }
        without_values(found, &seen)
    }
}

impl<'a> Asking<'a, '_> {
    /// Sends one probe until all answers agree: up to [`TRIES`] times if places must agree at the same moment, otherwise once. Returns
    /// the differences that every attempt showed, and the last answers; none if the user interrupts.
    fn settle(
        &mut self,
        probe: &Probe,
        rules: &BodyRules,
        questions: &Questions<'_>,
        when: &str,
    ) -> Option<(Vec<Difference>, Round<'a>)> {
        let mut lasting: Option<Vec<Difference>> = None;
        let mut round = Round::default();
        let tries = if rules.has_agreeing() { TRIES } else { 1 };
        for _ in 0..tries {
            round = self.ask(questions)?;
            let answers = round.answers.iter().flatten();
            self.seen.extend(answers.flat_map(|answer| values_in(&probe.capture, answer)));
            let found = differences(probe, rules, &round.asked, &round.answers, when);
            let mut still = lasting.unwrap_or_else(|| found.clone());
            // A contender that receives no more probes keeps its earlier differences.
            still
                .retain(|one| !round.has(&one.contender) || found.iter().any(|other| same_place(one, other)));
            let silent = |one: &&Difference| self.asked.iter().all(|asked| asked.name != one.contender);
            for one in found.iter().filter(silent) {
                if !still.iter().any(|other| same_place(one, other)) {
                    still.push(one.clone());
                }
            }
            lasting = Some(still);
            if found.is_empty() {
                break;
            }
        }
        Some((lasting.unwrap_or_default(), round))
    }

    /// Takes the values of a probe from the answers that are right. A contender without them receives no more probes.
    fn capture(
        &mut self,
        probe: &Probe,
        round: &Round<'_>,
        wrong: &[Difference],
        parity: &mut Parity,
        when: &str,
    ) {
        for (asked, answer) in round.asked.iter().zip(&round.answers) {
            let is_wrong = wrong.iter().any(|one| one.contender == asked.name);
            let captured = match answer {
                Ok(answer) if !is_wrong => capture(&probe.capture, answer),
                // The difference that is already listed says why.
                Ok(_) | Err(_) => Err(Vec::new()),
            };
            match captured {
                Ok(values) => parity.captured.entry(asked.name.to_owned()).or_default().extend(values),
                Err(missing) => {
                    let missing = missing.iter().map(|one| named(asked.name, probe, one, "contract", when));
                    parity.add(missing.collect());
                    self.asked.retain(|one| one.name != asked.name);
                }
            }
        }
    }

    fn ask(&mut self, questions: &Questions<'_>) -> Option<Round<'a>> {
        let known = self.asked.iter().filter_map(|one| Some((*one, questions.get(one.name)?)));
        let known: Vec<(ProbeTarget<'a>, &Question)> = known.collect();
        let addressed: Vec<(&Address, &Question)> =
            known.iter().map(|(one, question)| (one.address, *question)).collect();
        let mut answers = (self.ask)(&addressed, self.timeout)?;
        let asked: Vec<ProbeTarget<'a>> = known.into_iter().map(|(one, _)| one).collect();
        let silent = |answer: &Result<Answer, NoAnswer>| answer.as_ref().is_err_and(|error| error.timed_out);
        let talking = asked.iter().zip(&answers).filter(|(_, answer)| !silent(answer));
        self.asked = talking.map(|(one, _)| *one).collect();
        let encoded = answers.iter_mut().map(|answer| decode(answer.as_mut().ok()?)).collect();
        Some(Round { asked, answers, encoded })
    }
}

impl Round<'_> {
    fn has(&self, contender: &str) -> bool {
        self.asked.iter().any(|one| one.name == contender)
    }
}

fn same_place(one: &Difference, other: &Difference) -> bool {
    (&one.contender, &one.probe, &one.path) == (&other.contender, &other.probe, &other.path)
}

impl Parity {
    /// The finding that contenders encode their answers to one of these probes differently; to any probe if the list is empty.
    pub(crate) fn different_encodings(&self, probes: &[String]) -> Option<Finding> {
        let mut of_probes: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
        for key in self.statuses.keys().filter(|(_, probe)| probes.is_empty() || probes.contains(probe)) {
            let encoding = self.encodings.get(key).map_or("none", String::as_str);
            of_probes.entry(&key.1).or_default().entry(encoding).or_default().push(&key.0);
        }
        let groups = of_probes.values().find(|groups| groups.len() > 1)?;
        let of = |(encoding, names): (&&str, &Vec<&str>)| format!("{encoding} from {}", names.join(" and "));
        let found: Vec<String> = groups.iter().map(of).collect();
        let message = format!("{}: the contenders do different work", found.join(", "));
        Some(table::DIFFERENT_ENCODINGS.warning(By::Race, message))
    }

    /// Adds differences at places that are not listed yet.
    fn add(&mut self, found: Vec<Difference>) {
        for one in found {
            if !self.differences.iter().any(|other| same_place(&one, other)) {
                self.differences.push(one);
            }
        }
    }

    fn learn(&mut self, probe: &Probe, round: Round<'_>) {
        for ((asked, answer), encoded) in round.asked.iter().zip(round.answers).zip(round.encoded) {
            let Ok(answer) = answer else { continue };
            let key = (asked.name.to_owned(), probe.name.clone());
            self.encodings.extend(encoding::of(&answer).map(|encoding| (key.clone(), encoding)));
            let status = self.statuses.entry(key).or_insert(Some(answer.status));
            *status = status.filter(|status| *status == answer.status);
            let known = self.answers.entry(asked.name.into()).or_default();
            known.entry(probe.name.clone()).or_default().push(encoded.unwrap_or(answer.body));
        }
    }

    /// What a contender's answers to a probe must look like under load. The status must be that of its answers, if these had the same one. The bytes must be
    /// the same if two answers were the same and no place is volatile. Otherwise the length must be the same if two answers had the same length and the rules allow no other.
    /// Otherwise only the status counts, and the answers kept in full show what the bodies contain.
    fn expectation(&self, contender: &str, probe: &str, rules: Option<&BodyRules>) -> Expectation {
        let key = (contender.to_owned(), probe.to_owned());
        let status = self
            .statuses
            .get(&key)
            .copied()
            .flatten()
            .map_or(deadheat_load::StatusRule::Any, deadheat_load::StatusRule::Exact);
        let bodies = self.answers.get(contender).and_then(|answers| answers.get(probe));
        let volatile = rules.is_some_and(BodyRules::has_volatile);
        // Two values of the same length may be compressed to different lengths.
        let fixed_length =
            rules.is_some_and(BodyRules::has_fixed_length) && !self.encodings.contains_key(&key);
        let body = match bodies.map(Vec::as_slice) {
            // Answers with different statuses have different bodies.
            _ if self.statuses.get(&key) == Some(&None) => deadheat_load::BodyRule::Any,
            Some([one, two])
                if one == two
                    && !volatile
                    && deadheat_load::holds_time(one, self.encodings.get(&key).map(String::as_str)) =>
            {
                deadheat_load::BodyRule::Length(one.len() as u64)
            }
            Some([one, two]) if one == two && !volatile => {
                deadheat_load::BodyRule::Digest { length: one.len() as u64, xxh3: digest(one) }
            }
            Some([one, two]) if fixed_length && one.len() == two.len() => {
                deadheat_load::BodyRule::Length(one.len() as u64)
            }
            _ => deadheat_load::BodyRule::Any,
        };
        Expectation { status, body }
    }
}

/// The same differences without these values: reports and records do not contain them.
fn without_values(mut differences: Vec<Difference>, seen: &BTreeSet<(String, String)>) -> Vec<Difference> {
    for difference in &mut differences {
        for text in [&mut difference.expected, &mut difference.got] {
            *text = hidden(text, seen.iter().map(|(name, value)| (name, value)));
        }
    }
    differences
}

/// Decodes an answer's body. Returns the body as it was sent, if it was encoded.
pub(crate) fn decode(answer: &mut Answer) -> Option<Vec<u8>> {
    let encoding = encoding::of(answer)?;
    let plain = encoding::decoded(Some(&encoding), &answer.body).into_owned();
    Some(std::mem::replace(&mut answer.body, plain))
}

/// The name of one request of a probe with many paths.
fn key(probe: &Probe, path: &str) -> String {
    format!("{} {path}", probe.name)
}

/// Converts the contract's rule for statuses into the engine's.
fn allowed(rule: &StatusRule) -> deadheat_load::StatusRule {
    match rule {
        StatusRule::OneOf(list) if list.len() == 1 => deadheat_load::StatusRule::Exact(list[0]),
        StatusRule::OneOf(list) => deadheat_load::StatusRule::Set(list.iter().copied().collect()),
        StatusRule::Success => deadheat_load::StatusRule::Set(StatusSet::range(StatusRule::SUCCESS)),
        StatusRule::Within(ranges) => {
            let ranges = ranges.iter().map(|(from, to)| StatusSet::range(*from..=*to));
            deadheat_load::StatusRule::Set(ranges.fold(StatusSet::default(), StatusSet::or))
        }
    }
}

/// The rules for a probe's body. Captured values may differ between contenders.
fn comparable(probe: &Probe) -> BodyRule {
    let mut rule = probe.body.clone();
    rule.ignored.extend(probe.capture.values().filter_map(|from| match from {
        Capture::Json(path) => Some(path.clone()),
        Capture::Header(_) | Capture::Cookie(_) => None,
    }));
    rule
}

/// Whether a probe takes a value from the header of this name.
fn is_captured(probe: &Probe, header: &str) -> bool {
    probe.capture.values().any(|from| match from {
        Capture::Header(name) => name.eq_ignore_ascii_case(header),
        Capture::Cookie(_) => header.eq_ignore_ascii_case("set-cookie"),
        Capture::Json(_) => false,
    })
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
    rules: &BodyRules,
    contenders: &[ProbeTarget<'_>],
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

fn against_contract(
    probe: &Probe,
    rules: &BodyRules,
    answer: &Result<Answer, NoAnswer>,
) -> Vec<BodyDifference> {
    match answer {
        Ok(answer) => wrong_by_contract(probe, rules, answer),
        Err(error) => vec![plain("answer", "an answer", &error.reason)],
    }
}

fn wrong_by_contract(probe: &Probe, rules: &BodyRules, answer: &Answer) -> Vec<BodyDifference> {
    let mut found = Vec::new();
    if !probe.status.allows(answer.status) {
        let expected = match &probe.status {
            StatusRule::Success => {
                format!("{} to {}", StatusRule::SUCCESS.start(), StatusRule::SUCCESS.end())
            }
            StatusRule::OneOf(list) => list.iter().map(u16::to_string).collect::<Vec<_>>().join(" or "),
            StatusRule::Within(ranges) => {
                let words = |(from, to): &(u16, u16)| format!("{from} to {to}");
                ranges.iter().map(words).collect::<Vec<_>>().join(" or ")
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

fn between(probe: &Probe, rules: &BodyRules, expected: &Answer, got: &Answer) -> Vec<BodyDifference> {
    let mut found = Vec::new();
    if expected.status != got.status {
        found.push(plain("status", &expected.status.to_string(), &got.status.to_string()));
    }
    for name in probe.agree_headers.iter().filter(|name| !is_captured(probe, name)) {
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

/// The value of an answer's header. Several values are joined by commas. Content types are compared without regard to case and spaces.
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

/// A header's value in the form used for comparison.
fn normal(name: &str, value: &str) -> String {
    if name == "content-type" { value.to_ascii_lowercase().replace("; ", ";") } else { value.into() }
}

/// Chooses the reference answer. Among the answers that meet the contract (or all, if none does), it is the one that most others agree
/// with. On a tie, the first one wins.
fn measure(
    rules: &BodyRules,
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
#[path = "parity_tests.rs"]
pub(crate) mod tests;
