//! Owns: tests of parity, with constructed answers and small servers. Must not know the schedule.

use super::*;
use deadheat_record::BodyRule;

pub(crate) fn probe(json: &[(&str, serde_json::Value)]) -> Probe {
    let json = json
        .iter()
        .map(|(path, value)| deadheat_record::JsonRule { path: (*path).into(), value: value.clone() });
    Probe {
        name: "p".into(),
        method: "GET".into(),
        path: "/".into(),
        paths: vec![],
        log: None,
        values: None,
        capture: BTreeMap::new(),
        request_headers: BTreeMap::new(),
        request_body: String::new(),
        status: StatusRule::OneOf(vec![200]),
        headers: BTreeMap::from([("cache-control".into(), "public".into())]),
        agree_headers: vec!["content-type".into()],
        body: BodyRule { json: json.collect(), volatile: vec![], exact: None, agree: true, ignored: vec![] },
        under_load: true,
    }
}

fn answer(status: u16, cache: Option<&str>, body: &str) -> Result<Answer, NoAnswer> {
    let mut headers = vec![("Content-Type".to_owned(), b"application/json; charset=utf-8".to_vec())];
    headers.extend(cache.map(|value| ("Cache-Control".to_owned(), value.as_bytes().to_vec())));
    Ok(Answer { status, headers, body: body.into(), keep_alive: true })
}

fn run(probe: &Probe, answers: Answers) -> Vec<(String, String, String)> {
    let address = Address::Unix("/nowhere".into());
    let names = ["a", "b", "c", "d"];
    let asked: Vec<ProbeTarget<'_>> =
        names.iter().take(answers.len()).map(|name| ProbeTarget { name, address: &address }).collect();
    let rules = BodyRules::new(&probe.body).unwrap();
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
            Err(NoAnswer::plain("connection refused")),
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

/// This also holds under load, where most paths of a probe with many paths were not checked before.
#[test]
fn a_redirect_is_right_only_where_the_contract_names_it() {
    let named = |statuses: &[u16]| StatusRule::OneOf(statuses.to_vec());
    for (status, code, right) in [
        (StatusRule::Success, 204, true),
        (StatusRule::Success, 301, false),
        (StatusRule::Success, 399, false),
        (named(&[301]), 301, true),
        (named(&[200, 301]), 301, true),
        (named(&[200, 301]), 500, false),
    ] {
        let probe = Probe { status: status.clone(), ..probe(&[]) };
        let found = run(&probe, vec![answer(code, Some("public"), "{}")]);
        assert_eq!(found.is_empty(), right, "{status:?} {code}: {found:?}");
        assert_eq!(allowed(&status).admits(code), right, "{status:?} {code} under load");
    }
    let moved = answer(301, Some("public"), "{}").unwrap();
    let probe = Probe { status: StatusRule::Success, ..probe(&[]) };
    let wrong = wrong_by_contract(&probe, &BodyRules::new(&probe.body).unwrap(), &moved);
    assert_eq!((wrong[0].expected.as_str(), wrong[0].got.as_str()), ("200 to 299", "301"));
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

use crate::ask::tests::server;

/// A contract with one probe whose `$.t` must be the same for all contenders that receive it at the same moment.
fn agreeing(under_load: bool) -> Contract {
    let volatile = deadheat_record::Volatile {
        path: "$.t".into(),
        pattern: "^[0-9]+$".into(),
        not: None,
        agree: true,
        own: false,
    };
    let body = BodyRule { volatile: vec![volatile], ..probe(&[]).body };
    let (headers, agree_headers) = (BTreeMap::new(), vec![]);
    let probe = Probe { body, headers, agree_headers, under_load, ..probe(&[]) };
    Contract::new(&[probe], &ProbeFiles::default(), Duration::from_secs(20)).unwrap()
}

fn check(contract: &Contract, servers: &[(&str, Address)]) -> Vec<(String, String)> {
    let asked: Vec<ProbeTarget<'_>> =
        servers.iter().map(|(name, address)| ProbeTarget { name, address }).collect();
    let parity = contract
        .check(&asked, "before", &|all, patience| crate::ask::ask_all(all, patience, &|| false))
        .unwrap()
        .unwrap();
    parity.differences.into_iter().map(|one| (one.contender, one.path)).collect()
}

fn at(minute: usize) -> Option<String> {
    Some(format!("{{\"t\":{minute}}}"))
}

#[test]
fn a_minute_that_passes_between_answers_puts_nobody_out() {
    let steady = || ("steady", server(|_| at(5)));
    let late = ("late", server(|number| at(if number == 1 { 4 } else { 5 })));
    assert_eq!(check(&agreeing(false), &[steady(), steady(), late]), []);
    let wrong = ("wrong", server(|_| at(4)));
    assert_eq!(check(&agreeing(false), &[steady(), steady(), wrong]), [("wrong".into(), "$.t".into())]);
    // Each contender differs in some attempt, but none in every attempt.
    let now_and_then = |odd| move |number| at(if number == odd { 4 } else { 5 });
    let first = ("first", server(now_and_then(1)));
    let third = ("third", server(now_and_then(3)));
    assert_eq!(check(&agreeing(false), &[steady(), steady(), steady(), first, third]), []);
}

#[test]
fn whoever_stays_silent_is_put_out_alone_and_asked_once() {
    let (count, counted) = std::sync::mpsc::channel();
    let hung = server(move |number| {
        count.send(number).unwrap();
        None
    });
    let mut contract = agreeing(true);
    contract.timeout = Duration::from_millis(500);
    // The minute of the others advances with every request. They would differ if they did not receive the probe together.
    let ticking = || server(at);
    let found = check(&contract, &[("a", ticking()), ("hung", hung), ("b", ticking()), ("c", ticking())]);
    assert_eq!(found, [("hung".into(), "answer".into())]);
    assert_eq!(counted.try_iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn the_second_answers_are_compared_too() {
    let plain = Probe { headers: BTreeMap::new(), agree_headers: vec![], ..probe(&[]) };
    let contract = Contract::new(&[plain], &ProbeFiles::default(), Duration::from_secs(20)).unwrap();
    let good = || server(|_| at(1));
    let servers =
        [("a", good()), ("b", good()), ("fickle", server(|number| at(if number == 2 { 7 } else { 1 })))];
    assert_eq!(check(&contract, &servers), [("fickle".into(), "$.t".into())]);
}

#[test]
fn readiness_asks_as_the_first_probe_does() {
    let head = Probe { method: "HEAD".into(), ..probe(&[]) };
    let first =
        Contract::new(&[head], &ProbeFiles::default(), Duration::ZERO).unwrap().first_request().unwrap();
    assert!(first.head && first.bytes.starts_with(b"HEAD / "));
    assert!(!agreeing(true).first_request().unwrap().head);
}

#[test]
fn readiness_is_an_answer_that_meets_the_contract() {
    let contract =
        Contract::new(&[probe(&[("$.n", 1.into())])], &ProbeFiles::default(), Duration::ZERO).unwrap();
    let wrong = |answer: Result<Answer, NoAnswer>| contract.wrong_at_first(&answer.unwrap());
    assert_eq!(wrong(answer(200, Some("public"), r#"{"n":1}"#)), None);
    let status = wrong(answer(404, Some("public"), r#"{"n":1}"#)).unwrap();
    assert_eq!(status, "its answer to p has status 404 instead of 200");
    let body = wrong(answer(200, Some("public"), r#"{"n":2}"#)).unwrap();
    assert_eq!(body, "its answer to p has $.n 2 instead of 1");
    let all = wrong(answer(404, None, "starting")).unwrap();
    assert!(all.starts_with("its answer to p has status 404") && all.ends_with("(and 2 more)"), "{all}");
    let nothing_asked = Contract::new(&[], &ProbeFiles::default(), Duration::ZERO).unwrap();
    assert_eq!(nothing_asked.wrong_at_first(&answer(404, None, "").unwrap()), None);
}

#[test]
fn what_is_expected_under_load_follows_from_two_answers() {
    let mut parity = Parity::default();
    let mut learn = |name: &str, one: &str, two: &str| {
        let answers =
            BTreeMap::from([("p".to_owned(), vec![one.as_bytes().to_vec(), two.as_bytes().to_vec()])]);
        parity.answers.insert(name.into(), answers);
        parity.statuses.insert((name.into(), "p".into()), Some(200));
    };
    learn("same", "x1", "x1");
    learn("length", "x1", "x2");
    learn("any", "x1", "x22");
    let rules = |agree, pattern: Option<&str>| {
        let volatile = pattern.map(|pattern| deadheat_record::Volatile {
            path: "$.t".into(),
            pattern: pattern.into(),
            not: None,
            agree: false,
            own: pattern.contains("name"),
        });
        let volatile = volatile.into_iter().collect();
        BodyRules::new(&BodyRule { json: vec![], volatile, exact: None, agree, ignored: vec![] }).unwrap()
    };
    let (plain, free) = (rules(true, None), rules(false, None));
    let (token, uptime) = (rules(true, Some("^[0-9a-f]{8}$")), rules(true, Some("^[0-9]+$")));
    let name = rules(true, Some("^my name$"));
    let body = |name: &str, rules| parity.expectation(name, "p", Some(rules)).body;
    // A contender's own name is the same in all its answers.
    assert!(matches!(body("same", &name), deadheat_load::BodyRule::Digest { length: 2, .. }));
    assert!(matches!(body("same", &plain), deadheat_load::BodyRule::Digest { length: 2, .. }));
    assert!(matches!(body("same", &token), deadheat_load::BodyRule::Length(2)));
    assert!(matches!(body("length", &plain), deadheat_load::BodyRule::Length(2)));
    assert!(matches!(body("any", &token), deadheat_load::BodyRule::Any));
    // An uptime of 9 in two answers may be 10 under load. A body without rules may be anything.
    assert!(matches!(body("same", &uptime), deadheat_load::BodyRule::Any));
    assert!(matches!(body("length", &free), deadheat_load::BodyRule::Any));
}

#[test]
fn answers_kept_under_load_are_held_against_those_of_before() {
    let sample = |body: &str| Sample { request: 0, status: 200, body: body.into(), truncated: false };
    let mut parity = Parity::default();
    let known = |one: &str, two: &str| BTreeMap::from([("p".to_owned(), vec![one.into(), two.into()])]);
    parity.answers.insert("up".into(), known(r#"{"n":1,"t":8}"#, r#"{"n":1,"t":9}"#));
    let contract = agreeing(true);
    let differences = |body| contract.check_samples("up", &["p".into()], &[sample(body)], &parity);
    assert_eq!(differences(r#"{"n":1,"t":10}"#), []);
    assert_eq!(differences(r#"{"n":2,"t":10}"#)[0].path, "$.n");
    assert_eq!(differences(r#"{"n":1,"t":"x"}"#)[0].path, "$.t");

    let body = BodyRule { agree: false, ..probe(&[]).body };
    let free =
        Contract::new(&[Probe { body, ..probe(&[]) }], &ProbeFiles::default(), Duration::ZERO).unwrap();
    assert_eq!(free.check_samples("up", &["p".into()], &[sample("other")], &parity), []);
    // Also if two answers that came at the same moment were the same.
    let (same, key) = (known("now", "now"), ("up".to_owned(), "p".to_owned()));
    parity.answers.insert("up".into(), same);
    parity.statuses.insert(key.clone(), Some(200));
    let expect = |contract: &Contract| contract.prepared("up", "p", &parity).unwrap().remove(0).expect;
    assert_eq!(expect(&free).body, deadheat_load::BodyRule::Any);
    assert!(matches!(
        expect(&contract).body,
        deadheat_load::BodyRule::Length(_) | deadheat_load::BodyRule::Any
    ));
    assert_eq!(free.check_samples("up", &["p".into()], &[sample("later")], &parity), []);

    // A wrong status is counted where all answers are. Its body is not held against that of a right one.
    let refused = Sample { status: 503, ..sample("too busy") };
    assert_eq!(contract.check_samples("up", &["p".into()], &[refused], &parity), []);

    // Answers that had different statuses may have any that the contract allows.
    parity.statuses.insert(key, None);
    let expect = contract.prepared("up", "p", &parity).unwrap().remove(0).expect;
    assert_eq!(expect.status, super::allowed(&probe(&[]).status));
}

#[test]
fn of_many_requests_a_sample_is_asked_and_all_are_loaded() {
    let paths: Vec<String> = (0..1_000).map(|n| format!("/?id={n}")).collect();
    let many = Probe { name: "m".into(), path: paths[0].clone(), paths, ..probe(&[]) };
    let contract = Contract::new(&[many], &ProbeFiles::default(), Duration::ZERO).unwrap();
    let asked: Vec<&str> = contract.asked.iter().map(|one| one.probe.path.as_str()).collect();
    assert_eq!(
        (asked.len(), asked[0], asked[1], asked[SAMPLE - 1]),
        (SAMPLE, "/?id=0", "/?id=15", "/?id=984")
    );
    let twice = Probe { name: "t".into(), paths: vec!["/a".into(), "/b".into(), "/a".into()], ..probe(&[]) };
    let asked = Contract::new(&[twice], &ProbeFiles::default(), Duration::ZERO).unwrap();
    assert_eq!(asked.asked.iter().map(|one| one.probe.path.as_str()).collect::<Vec<_>>(), ["/a", "/b"]);
    let mut parity = Parity::default();
    let key = "m /?id=15".to_owned();
    parity.statuses.insert(("up".into(), key.clone()), Some(200));
    let bodies = BTreeMap::from([(key.clone(), vec![b"x".to_vec(), b"x".to_vec()])]);
    parity.answers.insert("up".into(), bodies);
    let prepared = contract.prepared("up", "m", &parity).unwrap();
    assert_eq!(prepared.len(), 1_000);
    assert!(String::from_utf8_lossy(&prepared[16].bytes).starts_with("GET /?id=16 "));
    assert!(matches!(prepared[15].expect.body, deadheat_load::BodyRule::Digest { length: 1, .. }));
    assert_eq!(prepared[16].expect.body, deadheat_load::BodyRule::Any);
    let keys = contract.keys(["m"].into_iter());
    assert_eq!((keys.len(), &keys[15]), (1_000, &key));
    let sample = |request, body: &str| Sample { request, status: 200, body: body.into(), truncated: false };
    let wrong = contract.check_samples("up", &keys, &[sample(15, "y"), sample(16, "y")], &parity);
    assert_eq!(wrong.iter().map(|one| one.probe.as_str()).collect::<Vec<_>>(), [key.as_str()]);
}

/// A recording of these requests, by method, target and body, each once.
fn recording(requests: &[(&str, &str, &str)]) -> Arc<Recording> {
    let request = |(method, target, body): &(&str, &str, &str)| RecordedRequest {
        method: (*method).into(),
        target: (*target).into(),
        headers: vec![("Accept".into(), "text/html".into())],
        body: (*body).into(),
    };
    Arc::new(Recording {
        requests: requests.iter().map(request).collect(),
        lines: (0..requests.len() as u64).map(|at| 10 + at).collect(),
        order: (0..requests.len() as u32).collect(),
        times: None,
    })
}

#[test]
fn recorded_requests_are_asked_and_loaded_as_they_were_recorded() {
    let log = deadheat_record::RequestLog {
        file: "/access.log".into(),
        reading: Default::default(),
        contents: Default::default(),
    };
    let headers = [("accept", "x"), ("X-Added", "y")].map(|(name, value)| (name.into(), value.into()));
    let status = StatusRule::Within(vec![(200, 399), (404, 404)]);
    let probe =
        Probe { name: "log".into(), log: Some(log), request_headers: headers.into(), status, ..probe(&[]) };
    let known =
        recording(&[("GET", "/a", ""), ("POST", "/a", "b=c"), ("HEAD", "/", ""), ("POST", "/a", "d=e")]);
    let recordings = BTreeMap::from([("log".to_owned(), known)]);
    let files = ProbeFiles { recordings, ..ProbeFiles::default() };
    let contract = Contract::new(std::slice::from_ref(&probe), &files, Duration::ZERO).unwrap();
    let names: Vec<&str> = contract.asked.iter().map(|one| one.probe.name.as_str()).collect();
    let wanted =
        ["log line 10: GET /a", "log line 11: POST /a", "log line 12: HEAD /", "log line 13: POST /a"];
    assert_eq!(names, wanted);
    let prepared = contract.prepared("up", "log", &Parity::default()).unwrap();
    let text = |index: usize| String::from_utf8_lossy(&prepared[index].bytes).into_owned();
    assert!(
        text(0).starts_with("GET /a HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nX-Added: y\r\n"),
        "{}",
        text(0)
    );
    assert!(text(1).starts_with("POST /a ") && text(1).ends_with("\r\n\r\nb=c"), "{}", text(1));
    assert!(prepared[2].head && !prepared[3].head);
    for (status, right) in [(200, true), (304, true), (404, true), (403, false), (500, false)] {
        assert_eq!(prepared[0].expect.status.admits(status), right, "{status}");
        assert_eq!(probe.status.allows(status), right, "{status}");
    }
    // The name of a request that was not in the sample leads to its probe.
    let (found, _) = contract.known_as("log line 99: GET /z").unwrap();
    assert_eq!(found.name, "log");
    assert_eq!(contract.first_request().unwrap().bytes.to_vec(), prepared[0].bytes);
    assert!(matches!(
        Contract::new(&[probe], &ProbeFiles::default(), Duration::ZERO),
        Err(ContractError::Recording { .. })
    ));
}

/// The same answer, compressed.
fn zipped(body: &str) -> Answer {
    use std::io::Write as _;
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    to.write_all(body.as_bytes()).unwrap();
    let mut zipped = answer(200, Some("public"), "").unwrap();
    zipped.headers.push(("Content-Encoding".into(), b"gzip".to_vec()));
    Answer { body: to.finish().unwrap(), ..zipped }
}

#[test]
fn compressed_answers_are_compared_by_what_they_say() {
    let answers =
        [zipped(r#"{"n":1}"#), answer(200, Some("public"), r#"{"n":1}"#).unwrap(), zipped(r#"{"n":2}"#)];
    let address = Address::Unix("/nowhere".into());
    let asked = ["a", "b", "c"].map(|name| ProbeTarget { name, address: &address });
    let contract =
        Contract::new(&[probe(&[("$.n", 1.into())])], &ProbeFiles::default(), Duration::from_secs(1))
            .unwrap();
    let parity = contract.check(&asked, "before", &|_, _| Some(answers.iter().cloned().map(Ok).collect()));
    let parity = parity.unwrap().unwrap();
    let found: Vec<(&str, &str)> =
        parity.differences.iter().map(|one| (one.contender.as_str(), one.path.as_str())).collect();
    assert_eq!(found, [("c", "$.n")]);
    assert_eq!(contract.wrong_at_first(&answers[0]), None);
    assert!(contract.wrong_at_first(&answers[2]).is_some());
    let finding = parity.different_encodings(&["p".into()]).unwrap();
    assert!(finding.message.starts_with("gzip from a and c, none from b: "), "{finding:?}");
    assert_eq!(parity.different_encodings(&["another".into()]), None);
    // Under load, bytes are held against the bytes that were sent.
    let expect = parity.expectation("a", "p", None);
    let sent = &answers[0].body;
    let digest = deadheat_load::BodyRule::Digest { length: sent.len() as u64, xxh3: digest(sent) };
    assert_eq!(expect.body, digest);
    // gzip may hold the time at which it was compressed.
    let mut dated = answers[0].clone();
    dated.body[4..8].copy_from_slice(&1_700_000_000_u32.to_le_bytes());
    let address = Address::Unix("/nowhere".into());
    let asked = [ProbeTarget { name: "a", address: &address }];
    let parity_of_dated = contract.check(&asked, "before", &|_, _| Some(vec![Ok(dated.clone())]));
    let expect = parity_of_dated.unwrap().unwrap().expectation("a", "p", None);
    assert_eq!(expect.body, deadheat_load::BodyRule::Length(sent.len() as u64));
    let sample =
        |body: &Answer| Sample { request: 0, status: 200, body: body.body.clone(), truncated: false };
    let kept = |body: &Answer| {
        let found = contract.check_samples("a", &["p".into()], &[sample(body)], &parity);
        found.into_iter().map(|one| one.path).collect::<Vec<_>>()
    };
    assert_eq!((kept(&answers[0]), kept(&answers[2])), (vec![], vec!["$.n".to_owned()]));
}

#[test]
fn an_answer_without_a_body_may_name_an_encoding() {
    let mut head = Answer { body: Vec::new(), ..zipped("") };
    assert_eq!((decode(&mut head), &head.body), (Some(Vec::new()), &Vec::new()));
    assert_eq!(run(&probe(&[]), vec![Ok(head.clone()), Ok(head)]), []);
}

/// Captured values may differ, and nothing that is written contains them.
#[test]
fn captured_values_are_compared_by_no_one_and_shown_to_no_one() {
    let login = |token: &'static str| server(move |_| Some(format!("{{\"token\":\"{token}\",\"n\":1}}")));
    let free = || Probe { headers: BTreeMap::new(), agree_headers: vec![], under_load: false, ..probe(&[]) };
    let capture = BTreeMap::from([("token".to_owned(), Capture::Json("$.token".into()))]);
    let probes =
        [Probe { name: "login".into(), capture, ..free() }, Probe { path: "/{token}".into(), ..free() }];
    let contract = Contract::new(&probes, &ProbeFiles::default(), Duration::from_secs(20)).unwrap();
    let servers = [("a", login("aaaa-1111-secret")), ("b", login("bbbb-2222-hidden"))];
    let asked: Vec<ProbeTarget<'_>> =
        servers.iter().map(|(name, address)| ProbeTarget { name, address }).collect();
    let parity =
        contract.check(&asked, "before", &|all, patience| crate::ask::ask_all(all, patience, &|| false));
    let parity = parity.unwrap().unwrap();
    // The second probe does not say that its token may differ.
    let [found] = &parity.differences[..] else { panic!("{:?}", parity.differences) };
    assert_eq!((found.probe.as_str(), found.path.as_str()), ("p", "$.token"));
    assert_eq!((found.expected.as_str(), found.got.as_str()), ("\"{token}\"", "\"{token}\""));
    assert_eq!(parity.captured["b"]["token"], "bbbb-2222-hidden");
    let sent = contract.prepared("b", "p", &parity).unwrap();
    assert!(sent[0].bytes.starts_with(b"GET /bbbb-2222-hidden HTTP/1.1\r\n"));
}

/// A wrong answer leads to no captured value, and what is written about it contains none either.
#[test]
fn values_of_wrong_answers_are_shown_to_no_one() {
    let body = |value: &str| format!(r#"{{"token":"{value}","again":"{value}"}}"#);
    let capture = BTreeMap::from([("token".to_owned(), Capture::Json("$.token".into()))]);
    let free = || Probe { headers: BTreeMap::new(), agree_headers: vec![], under_load: false, ..probe(&[]) };
    let login = Probe { name: "login".into(), capture, ..free() };
    let contract =
        Contract::new(std::slice::from_ref(&login), &ProbeFiles::default(), Duration::from_secs(20)).unwrap();
    let good = server(|_| Some(r#"{"token":"aaaa-1111-secret"}"#.into()));
    let servers = [("a", good), ("b", server(move |_| Some(body("bbbb-2222-hidden"))))];
    let asked: Vec<ProbeTarget<'_>> =
        servers.iter().map(|(name, address)| ProbeTarget { name, address }).collect();
    let parity =
        contract.check(&asked, "before", &|all, patience| crate::ask::ask_all(all, patience, &|| false));
    let parity = parity.unwrap().unwrap();
    let [found] = &parity.differences[..] else { panic!("{:?}", parity.differences) };
    assert_eq!((found.contender.as_str(), found.path.as_str()), ("b", "$.again"));
    assert!(found.got.contains("{token}") && !found.got.contains("2222"), "{found:?}");
    assert!(!parity.captured.contains_key("b"));

    let body = body("cccc-3333-hidden").into_bytes();
    let sample = Sample { request: 0, status: 200, body: body.clone(), truncated: false };
    let found = contract.check_samples("a", &["login".into()], &[sample], &parity);
    let [found] = &found[..] else { panic!("{found:?}") };
    assert!(found.got.contains("{token}") && !found.got.contains("3333"), "{found:?}");

    let rules = probe(&[("$.again", "x".into())]).body;
    let first = [Probe { body: rules, ..login }];
    let contract = Contract::new(&first, &ProbeFiles::default(), Duration::ZERO).unwrap();
    let answer = Answer { status: 200, headers: vec![], body, keep_alive: true };
    let wrong = contract.wrong_at_first(&answer).unwrap();
    assert!(wrong.contains("{token}") && !wrong.contains("3333"), "{wrong}");
}

#[test]
fn a_value_that_cannot_be_sent_puts_its_contender_out_alone() {
    let login = |token: &'static str| server(move |_| Some(format!("{{\"token\":\"{token}\"}}")));
    let free = || Probe { headers: BTreeMap::new(), agree_headers: vec![], under_load: false, ..probe(&[]) };
    let capture = BTreeMap::from([("token".to_owned(), Capture::Json("$.token".into()))]);
    let mut second = free();
    second.request_headers.insert("x-token".into(), "{token}".into());
    second.body.agree = false;
    let probes = [Probe { name: "login".into(), capture, ..free() }, second];
    let contract = Contract::new(&probes, &ProbeFiles::default(), Duration::from_secs(20)).unwrap();
    let found =
        check(&contract, &[("a", login("good")), ("b", login("two\\r\\nlines")), ("c", login("fine"))]);
    assert_eq!(found, [("b".into(), "request".into())]);
}

#[test]
fn requests_of_rows_that_take_too_much_memory_are_refused() {
    let (columns, lines) = (vec!["id".to_owned()], vec![2, 3, 4, 5]);
    let values = ["1", "2", "3", "4"].map(|id| vec![id.to_owned()]).to_vec();
    let rows = BTreeMap::from([("p".to_owned(), Arc::new(Rows { columns: columns.clone(), values, lines }))]);
    let file =
        deadheat_record::ValuesFile { file: "/ids.csv".into(), sha256: String::new(), columns, rows: 4 };
    let probe = Probe { path: "/{id}".into(), values: Some(file), ..probe(&[]) };
    let files = ProbeFiles { rows, ..ProbeFiles::default() };
    let mut contract = Contract::new(&[probe], &files, Duration::ZERO).unwrap();
    let all = contract.prepared("a", "p", &Parity::default()).unwrap();
    contract.most_row_bytes = all.iter().map(|one| one.bytes.len()).sum();
    assert!(contract.prepared("a", "p", &Parity::default()).is_ok(), "just enough");
    contract.most_row_bytes -= 1;
    let refused = contract.prepared("a", "p", &Parity::default()).unwrap_err().to_string();
    assert!(refused.starts_with("probe p: its 4 requests take more than "), "{refused}");
}
