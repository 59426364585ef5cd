//! `deadheat load` with real servers: what it measures, refuses, reports and writes.
#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::time::Duration;

use deadheat_testkit::{Invocation, Kit, Outcome, Signal, TestServer, free_port, skipped, turn, wait_until};
use serde_json::Value;

fn kit() -> Kit {
    Kit::new(env!("CARGO_BIN_EXE_deadheat"))
}

/// Checks that the load was measured. Accepts status 3, because a busy machine may make the figures invalid.
fn assert_measured(outcome: &Outcome) {
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
}

fn load<'k>(kit: &'k Kit, arguments: &str, url: &str) -> Invocation<'k> {
    kit.deadheat(["load"]).args(arguments.split_whitespace()).arg(url)
}

/// The record that the run wrote. Checks that it matches the schema and that its counts add up.
fn record(outcome: &Outcome) -> Value {
    let json = outcome.json();
    let schema: Value = serde_json::from_str(include_str!("../../record/schema/load-1.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}\n{outcome}");
    assert_eq!(json["schema"], "deadheat.load/1");
    let sum = |value: &Value| value.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(number(&json, "/requests"), sum(&json["outcomes"]), "{outcome}");
    let answered = ["ok", "status", "mismatch"].map(|key| json["outcomes"][key].as_u64().unwrap());
    assert_eq!(number(&json, "/completions"), answered.iter().sum::<u64>(), "{outcome}");
    assert_eq!(number(&json, "/completions"), sum(&json["status"]), "{outcome}");
    assert!(!codes(&json).contains(&"littles-law".to_owned()), "{outcome}");
    assert!(!codes(&json).contains(&"percentiles".to_owned()), "{outcome}");
    json
}

fn number(json: &Value, pointer: &str) -> u64 {
    json.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {json:#}"))
}

fn codes(json: &Value) -> Vec<String> {
    let findings = json["findings"].as_array().unwrap();
    findings.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_closed_load_keeps_the_contract() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--json"]));
    let outcome = load(&kit, "-d600ms -c 8 -t1 --seed 5", &server.url("/x")).json_to("out.json").run();
    assert_measured(&outcome);
    let json = record(&outcome);
    assert_eq!((json["shape"].as_str(), number(&json, "/connections")), (Some("closed"), 8));
    assert_eq!((json["url"].as_str().unwrap(), number(&json, "/seed")), (server.url("/x").as_str(), 5));
    assert!(json["offered_rps"].is_null() && json["arrivals"].is_null());
    assert!(json["throughput_rps"].as_f64().unwrap() > 0.0 && json["duration_s"].as_f64().unwrap() >= 0.6);
    assert!(number(&json, "/latency_ns/p99") >= number(&json, "/latency_ns/p50"));
    assert!(number(&json, "/bytes_read") > 0 && json["generator"]["cpu_share"].as_f64().unwrap() > 0.0);
    assert_eq!(number(&json, "/checked/same"), 1);
    let hdr: deadheat_record::EncodedHistogram = serde_json::from_value(json["hdr"].clone()).unwrap();
    assert_eq!(hdr.decode().unwrap().len(), number(&json, "/completions"));
    outcome.assert_stdout_has("at saturation").assert_stdout_has("p99").assert_stdout_has("/s");
    assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stderr.contains('\u{1b}'), "{outcome}");
}

#[test]
fn json_on_standard_output_stands_alone() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
    let outcome = load(&kit, "-n 50 -c 2 --json -", &server.url("/")).run();
    assert_measured(&outcome);
    assert_eq!(number(&record(&outcome), "/requests"), 50);
    outcome.assert_stderr_has("50 answers");
}

#[test]
fn so_many_requests_are_sent_and_no_more() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
    for (arguments, requests) in
        [("-n 1 -c 64", 1), ("-n 1001 -c 7 -t 3", 1001), ("-n 300 -r 3000 -c 2", 300)]
    {
        let outcome = load(&kit, arguments, &server.url("/")).json_to("out.json").run();
        let json = record(&outcome);
        assert_eq!(number(&json, "/requests"), requests, "{outcome}");
        assert_eq!(number(&json, "/outcomes/ok"), requests, "{outcome}");
    }
}

#[test]
fn an_open_load_offers_what_was_asked_for() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
    for (arguments, due) in [
        ("-r 500 -d 1s --arrivals constant", 500..=500),
        ("-q 0..1k -d 1s --arrivals constant", 500..=501),
        ("-R 400 -d 1s --warmup 200ms --seed 3", 300..=500),
    ] {
        let outcome = load(&kit, arguments, &server.url("/")).args(["-c", "4"]).json_to("out.json").run();
        assert_measured(&outcome);
        let json = record(&outcome);
        assert_eq!(json["shape"], "open");
        assert!(due.contains(&number(&json, "/requests")), "{arguments}\n{outcome}");
        let offered = json["offered_rps"].as_f64().unwrap();
        assert!((395.0..=505.0).contains(&offered), "{offered}");
        assert!(number(&json, "/max_connections") >= 4);
        outcome.assert_stdout_has("from the time that each request was due").assert_stdout_has("service");
    }
}

#[test]
fn a_server_that_is_too_slow_for_the_rate_is_told() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--delay-ms", "100"]));
    // Two connections that take 100 ms for each answer reach at most 20 requests per second.
    let arguments = "-r 300 -d 1s -c 2 --max-connections 2 --arrivals constant";
    let outcome = load(&kit, arguments, &server.url("/")).json_to("out.json").run();
    outcome.assert_status(3);
    let json = record(&outcome);
    let codes = codes(&json);
    assert!(codes.contains(&"offered-not-achieved".into()), "{outcome}");
    assert!(codes.contains(&"connections-exhausted".into()), "{outcome}");
    let share = json["achieved_share"].as_f64().unwrap();
    assert!(share < 0.1, "{share}");
    assert!(number(&json, "/waited") > 0 && number(&json, "/wait_ns/max") > 0);
    outcome.assert_stdout_has("--max-connections");
    let enough =
        load(&kit, "-r 300 -d 1s -c 2 --arrivals constant", &server.url("/")).json_to("b.json").run();
    let json = record(&enough);
    assert!(number(&json, "/connections_used") > 2, "more connections are opened when they are needed");
    assert!(json["achieved_share"].as_f64().unwrap() > 1.5 * share, "{enough}");
}

#[test]
fn unix_sockets_names_and_ipv6() {
    let (kit, _turn) = (kit(), turn());
    let socket = kit.path().join("s.sock");
    let mut by_socket = std::process::Command::new(deadheat_testkit::server_command());
    let mut child = by_socket.arg("--socket").arg(&socket).arg("--lifetime-s").arg("60").spawn().unwrap();
    assert!(wait_until(Duration::from_secs(10), || socket.exists()));
    let outcome = load(&kit, "-n 20 -c 2", "http://anything.test/x")
        .arg("--unix-socket")
        .arg(&socket)
        .json_to("unix.json")
        .run();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_measured(&outcome);
    assert!(record(&outcome)["address"].as_str().unwrap().starts_with("unix:"));

    let server = TestServer::start(&[]);
    let outcome =
        load(&kit, "-n 20 -c 2", &format!("localhost:{}", server.port())).json_to("name.json").run();
    assert_measured(&outcome);
    assert_eq!(record(&outcome)["address"], format!("127.0.0.1:{}", server.port()));
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        skipped("unix_sockets_names_and_ipv6", "there is no IPv6 here");
        return;
    }
    let server = TestServer::start(&["--host", "::1"]);
    for url in [server.url("/x"), format!("http://localhost:{}/x", server.port())] {
        let outcome = load(&kit, "-n 20 -c 2", &url).json_to("v6.json").run();
        assert_measured(&outcome);
        assert_eq!(record(&outcome)["address"], format!("[::1]:{}", server.port()));
    }
}

#[test]
fn https_is_loaded_and_certificates_are_checked() {
    let (kit, _turn) = (kit(), turn());
    let folder = kit.path().join("tls");
    let server = TestServer::start(&["--tls-dir", folder.to_str().unwrap(), "--json"]);
    let ca = folder.join("ca.pem");
    let url = format!("https://localhost:{}/x", server.port());
    let trusted = load(&kit, "-n 200 -c 3", &url).arg("--ca").arg(&ca).json_to("ca.json").run();
    assert_measured(&trusted);
    let json = record(&trusted);
    assert_eq!((number(&json, "/outcomes/ok"), json["url"].as_str()), (200, Some(url.as_str())));
    assert_measured(&load(&kit, "-n 20 -c 3 --insecure", &url).run());
    load(&kit, "-n 20 -c 3", &url).run().assert_status(2).assert_stderr_has("--ca");
    let plain = TestServer::start(&[]);
    let url = format!("https://localhost:{}/", plain.port());
    load(&kit, "-n 20 -c 3 --insecure", &url).run().assert_status(2).assert_stderr_has("TLS");
}

#[test]
fn other_machines_are_not_loaded_unasked() {
    let kit = kit();
    let outcome = load(&kit, "-n 1", "http://192.0.2.1/").run();
    outcome.assert_status(2).assert_stderr_has("192.0.2.1").assert_stderr_has("--allow-target");
    let url = format!("127.0.0.1:{}", free_port());
    load(&kit, "-n 1", &url)
        .run()
        .assert_status(2)
        .assert_stderr_has("nothing answers")
        .assert_stderr_has(&url);
}

#[test]
fn wrong_usage_says_what_to_do() {
    let kit = kit();
    for (arguments, part) in [
        ("-r nonsense", "at character 1 of the rate"),
        ("-c 0", "0 is not in 1..=60000"),
        ("-d 10", "unit"),
        ("--arrivals constant", "--rate"),
        ("--expect-status 2x", "2xx"),
        ("--requests-file no/such/file", "no/such/file"),
        ("--cpus 4095", "may not run"),
        ("--json no/such/folder/x", "no/such/folder"),
        ("-b @no/such/file", "--body"),
    ] {
        load(&kit, arguments, "http://127.0.0.1:1/").run().assert_status(2).assert_stderr_has(part);
    }
    let mut piped = std::process::Command::new("bash");
    piped.args([
        "-c",
        "\"$0\" load -n 1 --requests-file <(echo /) http://127.0.0.1:1/",
        env!("CARGO_BIN_EXE_deadheat"),
    ]);
    kit.command(piped).run().assert_status(2).assert_stderr_has("write it to a file first");
}

#[test]
fn ctrl_c_ends_it_and_keeps_what_was_measured() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&[]));
    let mut running = load(&kit, "-d 600s -c 2 --warmup 0s", &server.url("/")).json_to("out.json").spawn();
    // The requests before the load use less CPU time than this.
    running.wait_for("the load to run", || super::null::ticks(server.pid()) >= 10);
    assert!(running.signal(Signal::INT));
    let outcome = running.wait();
    outcome.assert_status(130).assert_stdout_has("interrupted");
    let json = record(&outcome);
    assert!(json["interrupted"].as_bool().unwrap() && number(&json, "/outcomes/ok") > 0);
    assert_eq!(number(&json, "/requests"), number(&json, "/outcomes/ok"), "what was begun was waited for");
}

#[test]
fn ctrl_c_is_heeded_while_the_answer_before_the_load_is_waited_for() {
    let (kit, _turn) = (kit(), turn());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let mut running = kit.deadheat(["load", &url, "--timeout", "150s"]).spawn();
    // The first connection only checks that the server listens; a later one sends a request.
    let mut accepted = Vec::new();
    running.wait_for("a request", || {
        accepted.extend(silent.accept().ok());
        accepted.iter().any(|(stream, _)| stream.peek(&mut [0]).is_ok_and(|count| count == 1))
    });
    assert!(running.signal(Signal::INT));
    let outcome = running.wait();
    outcome.assert_status(130).assert_stderr_has("before anything was measured");
    assert!(outcome.elapsed.as_secs() < 140, "{outcome}");
}

#[test]
fn a_server_that_dies_leaves_a_record_of_it() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--exit-after", "100"]));
    let outcome = load(&kit, "-n 400 -c 4", &server.url("/")).json_to("out.json").run();
    outcome.assert_status(3).assert_stdout_has("not connected").assert_stdout_has("refused");
    let json = record(&outcome);
    assert!(codes(&json).contains(&"errors".into()), "{outcome}");
    assert!(number(&json, "/outcomes/connect") > 0);
    let faults = json["faults"].as_array().unwrap();
    assert!(faults.iter().any(|fault| fault["outcome"] == "connect" && fault["count"].as_u64() > Some(0)));
}

#[test]
fn a_server_that_never_answers_is_given_up_and_told() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--never-answer"]));
    let outcome = load(&kit, "-n 5 -c 5 --timeout 200ms", &server.url("/")).json_to("out.json").run();
    outcome.assert_status(3).assert_stdout_has("nothing-measured").assert_stdout_has("timed out");
    let json = record(&outcome);
    assert!(json["throughput_rps"].is_null() && json["latency_ns"]["p50"].is_null());
    assert!(json["checked"]["why"].as_str().unwrap().contains("no complete answer"), "{outcome}");
}

#[test]
fn wrong_answers_are_counted_and_shown() {
    let (kit, _turn) = (kit(), turn());
    let server = TestServer::start(&["--json", "--differ-under-load", "100"]);
    let outcome = load(&kit, "-n 1000 -c 2", &server.url("/x")).json_to("out.json").run();
    outcome.assert_status(3).assert_stdout_has("wrong body").assert_stdout_has("\"path\":\"/x\"");
    let json = record(&outcome);
    assert_eq!(number(&json, "/outcomes/mismatch"), 902, "two were asked for before the load");
    let sample = &json["mismatches"][0];
    assert_eq!((sample["request"].as_str(), sample["status"].as_u64()), (Some("GET /x"), Some(200)));
    assert!(sample["body"].as_str().unwrap().contains("\"path\":\"/x\""));

    let other = TestServer::start(&["--json", "--differ-under-load", "100"]);
    let lenient = load(&kit, "-n 1000 -c 2 --expect length", &other.url("/x")).json_to("b.json").run();
    assert_measured(&lenient);
    assert_eq!(number(&record(&lenient), "/outcomes/ok"), 1000);

    let changing = TestServer::start(&["--counter-token"]);
    let outcome = load(&kit, "-n 500 -c 2", &changing.url("/x")).json_to("c.json").run();
    assert_measured(&outcome);
    assert_eq!(
        number(&record(&outcome), "/checked/length"),
        1,
        "what changes by itself is checked by length"
    );
}

#[test]
fn one_wrong_answer_among_many_is_status_one() {
    let (kit, _turn) = (kit(), turn());
    let server = TestServer::start(&["--status", "404"]);
    let all = load(&kit, "-n 100 -c 2", &server.url("/")).json_to("out.json").run();
    all.assert_status(3).assert_stdout_has("wrong status").assert_stdout_has("--expect-status");
    let json = record(&all);
    assert_eq!((number(&json, "/outcomes/status"), number(&json, "/status/404")), (100, 100));
    let right = load(&kit, "-n 100 -c 2 --expect-status 404", &server.url("/")).json_to("out.json").run();
    assert_measured(&right);
    assert_eq!(number(&record(&right), "/outcomes/ok"), 100);
    let server = TestServer::start(&["--json", "--differ-every", "3000"]);
    let one = load(&kit, "-n 4000 -c 2", &server.url("/")).json_to("one.json").run();
    let json = record(&one);
    assert_eq!(number(&json, "/outcomes/mismatch"), 1);
    let invalid = json["findings"].as_array().unwrap().iter().any(|one| one["severity"] == "invalid");
    one.assert_status(if invalid { 3 } else { 1 });
}

#[test]
fn files_of_requests_have_weights_and_orders() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--json"]));
    kit.file("weights.txt", "/short\t3\n/a-path-that-is-much-longer-than-the-other-one\t1\n");
    let by_weight = load(&kit, "-n 4000 -c 2 --requests-file weights.txt --seed 1", &server.url("/"));
    let outcome = by_weight.json_to("weights.json").run();
    assert_measured(&outcome);
    let json = record(&outcome);
    assert_eq!((number(&json, "/sent/distinct"), json["sent"]["order"].as_str()), (2, Some("random")));
    assert_eq!((number(&json, "/outcomes/ok"), number(&json, "/checked/same")), (4000, 2));
    // Requests for the long path are longer, so the number of bytes written shows how many of them were sent.
    let short = load(&kit, "-n 4000 -c 2", &server.url("/short")).json_to("short.json").run();
    let more = number(&json, "/bytes_written") - number(&record(&short), "/bytes_written");
    let long = more / ("/a-path-that-is-much-longer-than-the-other-one".len() - "/short".len()) as u64;
    assert!((900..1100).contains(&long), "a quarter of 4,000: {long}");

    kit.file("list.jsonl", "{\"path\":\"/a\",\"method\":\"POST\",\"body\":\"x\"}\n/b\n/c\n");
    let zipf = load(&kit, "-n 300 -c 2 --requests-file list.jsonl --zipf 1.2", &server.url("/"));
    let outcome = zipf.json_to("zipf.json").run();
    assert_measured(&outcome);
    assert_eq!(record(&outcome)["sent"]["order"], "zipf 1.2");
    kit.file("wrong.txt", "/a\nb\n");
    let wrong = load(&kit, "-n 1 --requests-file wrong.txt", &server.url("/")).run();
    wrong.assert_status(2).assert_stderr_has("wrong.txt:2");
}

#[test]
fn the_ceiling_is_measured_when_it_is_asked_for() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--delay-ms", "100"]));
    let outcome = load(&kit, "-d 1s -c 4 --ceiling", &server.url("/")).json_to("out.json").run();
    assert_measured(&outcome);
    let json = record(&outcome);
    let share = json["ceiling"]["share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 0.1, "four connections that wait 100 ms are far from it: {share}");
    assert!(!codes(&json).contains(&"ceiling".into()));
    outcome.assert_stdout_has("against a server that does nothing");
}

#[test]
fn methods_headers_and_bodies_reach_the_server() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--json"]));
    kit.file("body.txt", "some body");
    let outcome = load(&kit, "-n 20 -c 1 -m POST -b @body.txt -H x-test:1", &server.url("/x"))
        .json_to("post.json")
        .run();
    assert_measured(&outcome);
    let json = record(&outcome);
    assert_eq!((json["sent"]["method"].as_str(), number(&json, "/outcomes/ok")), (Some("POST"), 20));
    let head = load(&kit, "-n 20 -c 1 -m HEAD", &server.url("/x")).json_to("head.json").run();
    assert_eq!(number(&record(&head), "/outcomes/ok"), 20, "{head}");
}

#[test]
fn plain_lines_are_written_where_nothing_can_be_drawn() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--delay-ms", "1"]));
    let outcome = load(&kit, "-d 5s -c 2", &server.url("/")).run();
    assert_measured(&outcome);
    outcome.assert_stderr_has("loading http://127.0.0.1:").assert_stderr_has("0:03: ");
    assert!(!outcome.stderr.contains('\r') && !outcome.stderr.contains('\u{1b}'), "{outcome}");
}

/// A line of an access log: a request at this second, and its status.
fn log_line(request: &str, status: u16, second: u32) -> String {
    format!(
        "127.0.0.1 - - [25/Nov/2026:17:58:{second:02} +0000] \"{request} HTTP/1.1\" {status} 9 \"-\" \"x\"\n"
    )
}

#[test]
fn an_access_log_is_sent_again_in_its_order_and_in_its_timing() {
    let (kit, _turn, server) = (kit(), turn(), TestServer::start(&["--json"]));
    let lines: String = (0..300)
        .map(|at| match at % 10 {
            0 => log_line("POST /form", 200, at / 10),
            1 => log_line("GET /gone", 404, at / 10),
            _ => log_line(&format!("GET /item/{}", at % 4), 200, at / 10),
        })
        .collect();
    kit.file("access.log", lines);
    let ordered = load(&kit, "-n 480 -c 2 --requests-file access.log", &server.url("/"));
    let outcome = ordered.json_to("ordered.json").run();
    assert_measured(&outcome);
    outcome.assert_stderr_has("60 of 300 lines are not sent");
    outcome.assert_stderr_has("30: method POST is not in allow_methods");
    let json = record(&outcome);
    assert_eq!((number(&json, "/sent/distinct"), json["sent"]["order"].as_str()), (4, Some("sequential")));
    assert_eq!(number(&json, "/outcomes/ok"), 480);

    // 240 requests in half a minute, sixty times as fast: about 480 a second.
    let timed = "-d 1s -c 8 --requests-file access.log --order timing --speed 60";
    let outcome = load(&kit, timed, &server.url("/")).json_to("timed.json").run();
    assert_measured(&outcome);
    let json = record(&outcome);
    assert_eq!((json["shape"].as_str(), json["arrivals"].as_str()), (Some("open"), Some("recorded")));
    assert_eq!(
        (json["sent"]["order"].as_str(), json["rate"].as_str()),
        (Some("timing"), Some("60 times as fast as recorded"))
    );
    let requests = number(&json, "/requests");
    assert!((440..=520).contains(&requests), "{requests}");
    let offered = json["offered_rps"].as_f64().unwrap();
    assert!((offered - requests as f64).abs() < 2.0, "{offered}");
    outcome.assert_stdout_has("open: 60 times as fast as recorded");
}

#[test]
fn what_is_wrong_with_a_log_is_told() {
    let kit = kit();
    let good: String = (0..8).map(|at| log_line("GET /", 200, at)).collect();
    kit.file("good.log", &good);
    kit.file("broken.log", format!("{good}one\ntwo\n"));
    kit.file("posts.log", log_line("POST /", 200, 1));
    kit.file("list.txt", "/a\n/b\n");
    kit.file("untimed.jsonl", "{\"path\":\"/a\"}\n");
    kit.file("packed.log.gz", [0x1f, 0x8b, 8, 0]);
    for (arguments, part) in [
        ("--requests-file broken.log", "2 of 10 lines are broken"),
        ("--requests-file broken.log", "line 9: there is no [time] followed by a \"request\": `one`"),
        ("--requests-file posts.log", "1: method POST is not in allow_methods"),
        ("--requests-file list.txt --allow-methods POST", "--allow-methods: the file of requests is a list"),
        ("--requests-file list.txt --order timing", "--order timing needs a log"),
        (
            "--requests-file untimed.jsonl --log-format json --order timing",
            "1 of 1 requests of the log do not say",
        ),
        ("--requests-file good.log --order timing -r 5", "--rate cannot be combined with --order timing"),
        ("--requests-file good.log --order timing --speed 0", "--speed 0"),
        ("--requests-file good.log --order random --speed 2", "--speed needs --order timing"),
        ("--requests-file good.log -m POST", "--method cannot be combined with a log"),
        ("--requests-file good.log --log-pattern (", "regex parse error"),
        ("--requests-file good.log --log-format har", "not a HAR file"),
        ("--requests-file packed.log.gz", "compressed with gzip"),
    ] {
        load(&kit, arguments, "http://127.0.0.1:1/").run().assert_status(2).assert_stderr_has(part);
    }
}
