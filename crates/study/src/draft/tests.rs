//! Golden drafts, and that the study reader accepts every draft.

use std::collections::BTreeMap;
use std::path::Path;

use deadheat_load::Answer;
use deadheat_record::Experiment;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::file;

fn answers(status: u16, content_type: &str, bodies: &[Vec<u8>]) -> Vec<Answer> {
    let headers = vec![("Content-Type".to_owned(), content_type.as_bytes().to_vec())];
    let answer =
        |body: &Vec<u8>| Answer { status, headers: headers.clone(), body: body.clone(), keep_alive: true };
    bodies.iter().map(answer).collect()
}

fn probe(request: DraftRequest, starts: &[Vec<Answer>]) -> DraftProbe {
    DraftProbe { request, seen: Contract::of(starts) }
}

fn draft(probes: Vec<DraftProbe>) -> Draft {
    Draft {
        name: "my-service".into(),
        contender: DraftContender {
            command: "npm start".into(),
            node_env_is_set: false,
            build: None,
            usual_build: None,
            env: BTreeMap::new(),
            folder: None,
            port: None,
        },
        tls: false,
        probes,
        load: Some(SeenLoad { rate_per_s: 37_412.6, connections: 64 }),
        left_out: Vec::new(),
    }
}

fn items(time: u32, boot: &str) -> Vec<u8> {
    json!({
        "count": 2,
        "generatedAt": format!("2026-11-25T18:04:{time:02}.123Z"),
        "boot": boot,
        "items": [{"id": 1, "name": "A \"quoted\" 'name'"}, {"id": 2, "name": "B"}],
    })
    .to_string()
    .into()
}

fn items_probe(request: DraftRequest) -> DraftProbe {
    let kind = "application/json; charset=utf-8";
    let first = answers(200, kind, &[items(1, "9f86d081884c7d65"), items(2, "9f86d081884c7d65")]);
    let second = answers(200, kind, &[items(3, "60303ae22b998861"), items(4, "60303ae22b998861")]);
    probe(request, &[first, second])
}

/// The draft without the `# ` before its second contender.
fn with_second(text: &str) -> String {
    let mut inside = false;
    let line = |line: &str| {
        inside = if line == "# [[contender]]" { true } else { inside && line.starts_with("# ") };
        let shown = if inside { &line[2..] } else { line };
        format!("{shown}\n")
    };
    text.lines().map(line).collect()
}

#[track_caller]
fn read(text: &str) -> file::Study {
    let parsed = file::parse(text, "study.toml", Path::new("/"));
    parsed.unwrap_or_else(|error| panic!("{}\n{text}", error.render(false)))
}

#[test]
fn a_draft_of_one_request() {
    let draft = draft(vec![items_probe(DraftRequest::get("/api/items?limit=2"))]);
    insta::assert_snapshot!(draft.text());
    let study = read(&draft.text());
    let shapes: Vec<&Experiment> = study.scenarios.iter().map(|one| &one.shape).collect();
    let open = Experiment::Open { connections: 64, rate_per_s: 10_000.0, poisson: true };
    assert_eq!(shapes, [&Experiment::Closed { connections: 64 }, &open]);
    assert_eq!(read(&with_second(&draft.text())).contenders.len(), 2);
}

#[test]
fn a_draft_says_how_to_set_node_env_if_nothing_sets_it() {
    let text = |command: &str, node_env_is_set: bool| {
        let mut draft = draft(vec![items_probe(DraftRequest::get("/"))]);
        (draft.contender.command, draft.contender.node_env_is_set) = (command.into(), node_env_is_set);
        draft.text()
    };
    let line = "\n# env = { NODE_ENV = \"production\" } #";
    for command in ["npm start", "exec /usr/bin/node server.mjs", "cd api && yarn serve"] {
        let text = text(command, false);
        assert_eq!(text.matches("NODE_ENV").count(), 1, "in one line, and not set: {text}");
        assert!(read(&text).contenders[0].env.is_empty());
        let set = read(&text.replace(line, &line.replace("# env", "env")));
        assert_eq!(set.contenders[0].env["NODE_ENV"].get_ref(), "production");
    }
    for command in ["NODE_ENV=test npm start", "exec ./server", "./nodes"] {
        assert!(!text(command, false).contains(line), "{command}");
    }
    assert!(!text("npm start", true).contains("NODE_ENV"));
}

#[test]
fn a_draft_of_everything() {
    let texts = |texts: [&str; 2]| texts.map(|text| text.as_bytes().to_vec());
    let redirect = Answer {
        status: 302,
        headers: vec![("location".into(), b"/login".to_vec())],
        body: Vec::new(),
        keep_alive: true,
    };
    let post = DraftRequest {
        method: "POST".into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: "{\"q\": 1}".into(),
        weight: 5,
        origin: Some("1,234 requests in access.log".into()),
        ..DraftRequest::get("/search")
    };
    let draft = Draft {
        name: "a/b, c".into(),
        contender: DraftContender {
            command: "./serve --cert {cert} --key {key}".into(),
            node_env_is_set: false,
            usual_build: None,
            env: BTreeMap::from([("LEVEL".into(), "a \"b\"".into()), ("no.bare key".into(), String::new())]),
            build: Some("make \"all\"\nmake check".into()),
            folder: Some("/".into()),
            port: Some(8080),
        },
        tls: true,
        load: Some(SeenLoad { rate_per_s: 812.0, connections: 64 }),
        left_out: vec![LeftOut { what: "GET /x\ny".into(), why: "it answered 500".into() }],
        ..draft(vec![
            items_probe(post),
            probe(DraftRequest::get("/"), &[answers(200, "text/plain", &texts(["hello\n", "hello\n"]))]),
            probe(DraftRequest::get("/page"), &[answers(200, "text/html", &texts(["<p>1", "<p>2"]))]),
            probe(
                DraftRequest::get("/page?big"),
                &[answers(404, "text/html", &[vec![b'x'; 5000], vec![b'x'; 5000]])],
            ),
            probe(DraftRequest::get("/old"), &[vec![redirect.clone(), redirect]]),
        ])
    };
    insta::assert_snapshot!(draft.text());
    let study = read(&draft.text());
    assert_eq!(study.name, "a-b- c");
    assert_eq!(read(&with_second(&draft.text())).contenders.len(), 2);
}

#[test]
fn a_slow_service_gets_no_rate_at_which_nothing_can_be_compared() {
    let of = |rate_per_s| {
        let draft = Draft {
            load: Some(SeenLoad { rate_per_s, connections: 64 }),
            ..draft(vec![items_probe(DraftRequest::get("/"))])
        };
        read(&draft.text());
        draft.open_rate().map(|(rate, metrics)| (rate, metrics.len(), metrics.last().map(|one| one.word())))
    };
    assert_eq!(of(37_000.0), Some((10_000.0, 2, Some("p99"))));
    assert_eq!(of(3_400.0), Some((1_000.0, 2, Some("p99"))));
    assert_eq!(of(1_000.0), Some((300.0, 2, Some("p90"))));
    assert_eq!(of(100.0), Some((30.0, 1, Some("p50"))));
    assert_eq!(of(5.0), None);
    assert_eq!(of(0.0), None);
}

#[test]
fn rates_are_round_and_not_higher() {
    for (rate, round) in
        [(11_100.0, 10_000.0), (12_000.0, 12_000.0), (0.5, 0.5), (0.99, 0.8), (7.9, 5.0), (1.0, 1.0)]
    {
        assert_eq!(round_down(rate), Some(round));
    }
    assert_eq!((round_down(0.0), round_down(f64::NAN)), (None, None));
    assert_eq!((significant(37_412.6), significant(3.4)), (37_000.0, 3.0));
}

#[test]
fn before_the_service_was_asked_a_draft_is_a_study_too() {
    let draft =
        Draft { load: None, ..draft(vec![DraftProbe { request: DraftRequest::get("/a,b"), seen: None }]) };
    let study = read(&draft.text());
    assert_eq!((study.probes.len(), study.scenarios.len()), (1, 1));
    assert_eq!(study.probes[0].contract.name, "a-b");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z0-9]{1,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]|.{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => any_json().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => ".{0,30}".prop_map(String::into_bytes),
    ]
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let header = prop::collection::vec(any::<u8>(), 0..12);
    let name = prop_oneof![Just("content-type"), Just("Location"), Just("x")];
    (200_u16..600, prop::collection::vec((name, header), 0..3), any_body()).prop_map(
        |(status, headers, body)| Answer {
            status,
            headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body,
            keep_alive: true,
        },
    )
}

fn any_probe() -> impl Strategy<Value = DraftProbe> {
    let path = "/[!-\"$-~]{0,12}";
    let headers = prop::collection::vec(("[a-zA-Z-]{1,6}", "[ -~é]{0,8}"), 0..3);
    // Often the same answer again, so that much of it stays the same.
    let starts = (
        any_answer(),
        prop::collection::vec(prop::collection::vec(prop::option::of(any_answer()), 0..3), 0..3),
    )
        .prop_map(|(usual, starts)| {
            let answers = |start: Vec<Option<Answer>>| {
                start.into_iter().map(|one| one.unwrap_or_else(|| usual.clone())).collect()
            };
            starts.into_iter().map(answers).collect::<Vec<Vec<Answer>>>()
        });
    (
        path,
        "[A-Z]{1,5}",
        headers,
        any::<String>(),
        0_u32..2_000_000,
        prop::option::of(any::<String>()),
        starts,
    )
        .prop_map(|(path, method, headers, body, weight, origin, starts)| DraftProbe {
            request: DraftRequest { method, path, headers, body, weight, origin },
            seen: Contract::of(&starts),
        })
}

proptest! {
    /// Braces are left out of commands, because a misspelled placeholder is a mistake that the reader reports.
    #[test]
    fn the_reader_accepts_every_draft(
        name in any::<String>(),
        command in "[^{]{1,40}",
        build in prop::option::of("[^{ ][^{]{0,40}"),
        env in prop::collection::btree_map("[A-Za-z_.]{1,8}", "[^{\0]{0,20}", 0..3),
        port in prop::option::of(1_u16..),
        tls in any::<bool>(),
        probes in prop::collection::vec(any_probe(), 1..4),
        load in prop::option::of((any::<f64>(), 1_u32..60_000)),
        left_out in prop::collection::vec((any::<String>(), any::<String>()), 0..3),
    ) {
        let draft = Draft {
            name,
            contender: DraftContender { command: command.clone(), node_env_is_set: false, build: build.clone(), usual_build: Some("npm ci".into()), env: env.clone(), folder: Some("/".into()), port },
            tls,
            probes,
            load: load.map(|(rate_per_s, connections)| SeenLoad { rate_per_s, connections }),
            left_out: left_out.into_iter().map(|(what, why)| LeftOut { what, why }).collect(),
        };
        let text = draft.text();
        let study = file::parse(&text, "study.toml", Path::new("/"));
        let study = study.map_err(|error| TestCaseError::fail(format!("{}\n{text}", error.render(false))))?;
        prop_assert_eq!(study.contenders[0].command.get_ref(), &command);
        prop_assert_eq!(study.contenders[0].build.as_ref().map(|one| one.get_ref()), build.as_ref());
        let kept: BTreeMap<String, String> = study.contenders[0].env.iter().map(|(name, value)| (name.clone(), value.get_ref().clone())).collect();
        prop_assert_eq!(kept, env);
        prop_assert_eq!(study.probes.len(), draft.probes.len());
        for (read, drafted) in study.probes.iter().zip(&draft.probes) {
            prop_assert_eq!(&read.contract.path, &drafted.request.path);
            prop_assert_eq!(&read.contract.request_body, &drafted.request.body);
            let Some(Contract { body: Body::Json { values, changing }, .. }) = &drafted.seen else { continue };
            prop_assert_eq!(read.contract.body.json.len(), values.len());
            for (rule, (path, value)) in read.contract.body.json.iter().zip(values) {
                prop_assert_eq!((&rule.path, &rule.value), (path, value));
            }
            for (rule, one) in read.contract.body.volatile.iter().zip(changing) {
                prop_assert_eq!((&rule.path, &rule.pattern), (&one.path, &one.pattern));
            }
        }
        prop_assert!(file::parse(&with_second(&text), "study.toml", Path::new("/")).is_ok(), "{}", with_second(&text));
    }
}
