//! Contenders that fail as users' contenders do: deadheat prints a clear error with a remedy, exits with the right status and leaves
//! nothing behind.
#![allow(clippy::unwrap_used)]

use std::net::TcpListener;

use deadheat_testkit::{Kit, Outcome, SHORT_RACE, bed_or_skip, server_line, skip_loudly, turn};
use serde_json::Value;

use crate::common::{assert_measured, is_disturbed, kit};

/// How long deadheat waits for contenders that never answer.
const PATIENCE: [&str; 4] = ["--ready-timeout", "12s", "--timeout", "4s"];

/// Runs all cases in parallel, because most of them only wait. No case needs a quiet machine.
fn all_at_once<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        let running: Vec<_> = cases.iter().map(|case| scope.spawn(|| check(case))).collect();
        for one in running {
            one.join().unwrap();
        }
    });
}

/// Races a good server against `command`.
fn against(kit: &Kit, command: &str) -> Outcome {
    let outcome = kit
        .race()
        .contender("good", &server_line(&["--json"]))
        .contender("bad", command)
        .args(SHORT_RACE)
        .args(PATIENCE)
        .run();
    kit.assert_nothing_left();
    outcome
}

#[test]
fn those_that_do_not_start_are_told_apart() {
    let cases = [
        ("no-such-program --x".to_owned(), &["bad ended with exit status 127", "not found"][..]),
        (server_line(&["--exit", "3"]), &["bad ended with exit status 3", "its last lines"]),
        (
            server_line(&["--never-listen"]),
            &["bad did not answer within 12 s", "(", ") sleeps", "printed nothing"],
        ),
        (
            server_line(&["--json", "--port", "0"]),
            &[
                "note: bad does not answer yet: it listens on port ",
                "bad did not answer within 12 s",
                ", not on ",
                "sleeps",
            ],
        ),
        (server_line(&["--never-answer"]), &["bad did not answer within 12 s"]),
        (
            server_line(&["--close-without-answer"]),
            &["bad did not answer within 12 s", "clos|no complete answer"],
        ),
        (server_line(&["--garbage"]), &["bad did not answer within 12 s"]),
    ];
    all_at_once(&cases, |(command, words)| {
        let kit = kit();
        let outcome = against(&kit, command);
        outcome.assert_status(2);
        for words in *words {
            // Either text is right, because the time limit may cut off the last attempt.
            assert!(words.split('|').any(|word| outcome.stderr.contains(word)), "{words}\n{outcome}");
        }
    });
}

#[test]
fn those_that_answer_otherwise_are_not_raced() {
    let _turn = turn();
    // More answers than a start and parity take, and fewer than the load takes on a starved core.
    let cases = [
        (server_line(&["--json", "--status", "500"]), &["status", "200", "500"][..]),
        (server_line(&["--body", "other"]), &["bad"]),
        (server_line(&["--json", "--differ-under-load", "20"]), &["under load", "answers differ"]),
        (server_line(&["--json", "--shorter-under-load", "20"]), &["under load", "answers differ"]),
        (server_line(&["--json", "--status-under-load", "20", "503"]), &["under load", "answers differ"]),
    ];
    all_at_once(&cases, |(command, words)| {
        let kit = kit();
        let outcome = against(&kit, command);
        outcome.assert_status(1);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        for word in *words {
            assert!(said.contains(word), "{word} is missing in:\n{outcome}");
        }
        let parity = outcome.json()["parity"].clone();
        assert!(parity.as_array().unwrap().iter().all(|one| one["contender"] == "bad"), "{parity}");
        assert!(!parity.as_array().unwrap().is_empty());
    });
}

#[test]
fn those_that_answer_otherwise_are_raced_with_the_options_that_the_error_names() {
    let (kit, _turn) = (kit(), turn());
    let race = |more: &[&str]| {
        let race = kit.race().contender("a", &server_line(&["--body", r#"{"t":1}"#]));
        let other = server_line(&["--body", r#"{"t":2}"#, "--header", "content-type: text/json"]);
        let race = race.contender("b", &other);
        race.args(SHORT_RACE).args(more).run()
    };
    let refused = race(&[]);
    refused.assert_status(1);
    let options = "--ignore-header content-type --ignore-json '$.t'";
    refused.assert_stdout_has(&format!("to race them all the same, add:\n  {options}\n"));
    let accepted = race(&["--ignore-header", "content-type", "--ignore-json", "$.t"]);
    let json = accepted.json();
    assert_measured(&accepted, &json);
    assert_eq!(json["parity"], serde_json::json!([]));
    let again = json["reproduce"].as_str().unwrap();
    assert!(again.contains(options), "{again}");
    accepted.assert_stdout_has("parity-relaxed").assert_stdout_has("content-type, $.t");
    let whole = race(&["--parity", "status"]);
    assert_measured(&whole, &whole.json());
    whole.assert_stdout_has("answers may differ in content-type, the whole body");
    kit.assert_nothing_left();
}

/// The bodies are equal, and the work is not.
#[test]
fn one_that_compresses_is_raced_against_one_that_does_not_and_said_to() {
    let (kit, _turn) = (kit(), turn());
    kit.file(
        "server.py",
        "import gzip, http.server, os, sys\n\
         body = b'{\"n\": [' + b'1, ' * 100 + b'1]}'\n\
         zipped = sys.argv[1:] == ['gzip']\n\
         class Server(http.server.BaseHTTPRequestHandler):\n    \
             protocol_version = 'HTTP/1.1'\n    \
             def do_GET(self):\n        \
                 sent = gzip.compress(body, mtime=0) if zipped else body\n        \
                 encoding = b'content-encoding: gzip\\r\\n' if zipped else b''\n        \
                 length = b'content-length: %d\\r\\n' % len(sent)\n        \
                 self.wfile.write(b'HTTP/1.1 200 OK\\r\\n' + encoding + length + b'\\r\\n' + sent)\n\
         http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Server).serve_forever()\n",
    );
    let server =
        |how: &str| format!("exec python3 {} {how} 2> /dev/null", kit.path().join("server.py").display());
    let race = kit.race().contender("plain", &server("")).contender("zipped", &server("gzip"));
    let outcome = race.args(SHORT_RACE).args(["--ready-timeout", "150s"]).run();
    let json = outcome.json();
    // Whether the machine is quiet enough for a verdict does not matter here.
    assert!(!json["record"]["epochs"].as_array().unwrap().is_empty(), "{outcome}");
    assert_eq!(json["parity"], serde_json::json!([]), "{outcome}");
    outcome.assert_stdout_has("different-encodings").assert_stdout_has("gzip from zipped, none from plain");
    kit.assert_nothing_left();
}

/// deadheat keeps waiting for a contender whose first answers are wrong.
#[test]
fn wrong_answers_at_first_are_waited_out() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    let failing = server_line(&["--json", "--status", "500", "--lifetime-s", "0.5"]);
    let race = kit.race().contender("good", &server).contender("late", &format!("{failing}; exec {server}"));
    let outcome = race.args(SHORT_RACE).args(["--ready-timeout", "60s"]).run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    let starts = |contender: usize| {
        let epochs = json["record"]["epochs"].as_array().unwrap().iter();
        epochs
            .map(|epoch| epoch["contenders"][contender]["cold_start_ns"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert!(starts(1).iter().all(|ns| *ns >= 500_000_000), "{:?}", starts(1));
    let disturbed = is_disturbed(&json["scenarios"][0]);
    let slowest = if disturbed { starts(0).into_iter().min() } else { starts(0).into_iter().max() };
    assert!(slowest < starts(1).into_iter().min(), "{:?} {:?}", starts(0), starts(1));
    kit.assert_nothing_left();
}

#[test]
fn one_that_dies_in_the_race_is_named_with_its_last_words() {
    let (kit, _turn) = (kit(), turn());
    let outcome = against(&kit, &server_line(&["--json", "--exit-after", "60"]));
    outcome.assert_status(2).assert_stderr_has("bad ended with exit status 1");
}

#[test]
fn one_that_closes_after_every_answer_is_raced_and_said_to() {
    let (kit, _turn) = (kit(), turn());
    let outcome = against(&kit, &server_line(&["--json", "--close-each"]));
    assert_measured(&outcome, &outcome.json());
    outcome.assert_stdout_has("no-keep-alive");
}

#[test]
fn a_taken_port_is_named_with_its_holder() {
    let (kit, _turn) = (kit(), turn());
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let text = |command: String| Value::from(command).to_string();
    kit.file(
        "study.toml",
        format!(
            "[[contender]]\nname = \"a\"\ncommand = {}\n[[contender]]\nname = \"fixed\"\ncommand = {}\nport = {port}\n\
             [[probe]]\npath = \"/\"\n",
            text(server_line(&["--json"])),
            text(server_line(&["--json"])),
        ),
    );
    let race = ["race", ".", "--json", "race.json"];
    let outcome = kit.deadheat(race).args(SHORT_RACE).args(PATIENCE).run();
    outcome.assert_status(2).assert_stderr_has(&format!("port {port} is taken by {}", std::process::id()));
    // A finding names its contender apart from its message.
    let document = kit.read("race.json");
    assert!(document.contains(&format!("\"cannot start: port {port} is taken")), "{document}");
    kit.assert_nothing_left();
}

#[test]
fn a_port_that_a_firewall_leads_elsewhere_is_passed_over_or_named() {
    let (bed, kit) = (bed_or_skip!(1), kit());
    // An engine that is killed leaves such rules for the ports of its containers. Here, all but the last of every hundred ports have one, and
    // of every tenth hundred also the last: deadheat tries a hundred neighbouring ports before it takes another hundred.
    let rule = |first: u32| {
        let last = if first.is_multiple_of(1_000) { first + 99 } else { first + 98 };
        format!("-A OUTPUT -p tcp -d 127.0.0.1 --dport {first}:{last} -j DNAT --to-destination 127.0.0.1:9\n")
    };
    let rules: String = (20_000..30_000).step_by(100).map(rule).collect();
    kit.file("rules", format!("*nat\n{rules}COMMIT\n"));
    let rules = kit.path().join("rules");
    let made =
        bed.inside("iptables-restore").args(["--noflush".as_ref(), rules.as_os_str()]).output().unwrap();
    if !made.status.success() {
        skip_loudly!("no rule can be made: {}", String::from_utf8_lossy(&made.stderr));
    }
    let check = |more: &str| {
        let command = Value::from(server_line(&["--json"]));
        let contender = format!("[[contender]]\nname = \"a\"\ncommand = {command}\n{more}");
        kit.file("study.toml", format!("{contender}\n[[probe]]\npath = \"/\"\n"));
        kit.deadheat_inside(&bed, ["check", "."]).run()
    };
    check("").assert_status(0);
    check("port = 28000").assert_status(1).assert_stderr_has("127.0.0.1:28000 does not arrive there");
    kit.assert_nothing_left();
}

#[test]
fn with_enough_others_the_race_goes_on_without_it() {
    let (kit, _turn) = (kit(), turn());
    let good = server_line(&["--json"]);
    let outcome = kit
        .race()
        .contender("one", &good)
        .contender("bad", &server_line(&["--exit", "3"]))
        .contender("two", &good)
        .args(SHORT_RACE)
        .args(["--ready-timeout", "150s"])
        .run();
    let disturbed = is_disturbed(&outcome.json()["scenarios"][0]);
    outcome.assert_status(if disturbed { 3 } else { 1 });
    outcome.assert_stdout_has("one").assert_stdout_has("two");
    assert_eq!(outcome.json()["scenarios"][0]["results"].as_array().unwrap().len(), 2);
    kit.assert_nothing_left();
}

#[test]
fn what_was_measured_before_it_fell_out_stands() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    // The contender refuses to start once the first scenario is in the record.
    let fickle = format!("grep -q '\"line\":\"scenario\"' r.jsonl && exit 3; exec {server}");
    let text = |command: &str| Value::from(command).to_string();
    kit.file(
        "study.toml",
        format!(
            "[[contender]]\nname = \"good\"\ncommand = {}\n[[contender]]\nname = \"fickle\"\ncommand = {}\n\
             [[probe]]\nname = \"p\"\npath = \"/\"\n\
             [[scenario]]\nname = \"one\"\nconnections = 4\n\
             [[scenario]]\nname = \"two\"\nconnections = 8\n",
            text(&server),
            text(&fickle)
        ),
    );
    let race =
        kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(&SHORT_RACE[..10]).json_to("race.json");
    let outcome = race.run();
    let json = outcome.json();
    let scenario = |index: usize| json["scenarios"][index].clone();
    assert_eq!(scenario(0)["results"].as_array().unwrap().len(), 2, "{outcome}");
    assert_eq!(scenario(0)["comparisons"].as_array().unwrap().len(), 1, "{outcome}");
    assert_eq!(scenario(1)["results"].as_array().unwrap().len(), 1, "{outcome}");
    assert!(
        json["contenders"][1]["status"].as_str().unwrap().starts_with("from scenario two on"),
        "{outcome}"
    );
    kit.assert_nothing_left();
}

/// Only the measure's own output counts, and only if the measure succeeds. A value that another scenario left in a log does not count.
#[test]
fn measures_that_fail_have_no_value() {
    let (_turn, value) = (turn(), "echo '{\"value\": 2, \"unit\": \"s\"}'");
    for (second, words) in [
        ("true".to_owned(), "`two` ended with exit status 0 and printed no value"),
        (format!("{value}; exit 3"), "`two` ended with exit status 3"),
    ] {
        let kit = kit();
        let contender = |name: &str, second: &str| {
            let [server, one, two] =
                [server_line(&["--json"]).as_str(), value, second].map(|text| Value::from(text).to_string());
            format!(
                "[[contender]]\nname = \"{name}\"\ncommand = {server}\nmeasures = {{ one = {one}, two = {two} }}\n"
            )
        };
        let scenarios = "[[scenario]]\nname = \"first\"\nmeasure = \"one\"\n[[scenario]]\nname = \"second\"\nmeasure = \"two\"\n";
        let probe = "[[probe]]\npath = \"/\"\n".to_owned();
        let study = [contender("good", value), contender("bad", &second), probe, scenarios.to_owned()];
        kit.file("study.toml", study.concat());
        let outcome = kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(&SHORT_RACE[..10]).run();
        outcome.assert_status(1).assert_stderr_has(words);
        kit.assert_nothing_left();
    }
}

#[test]
fn last_words_are_this_runs() {
    let (kit, _turn) = (kit(), turn());
    kit.file("r.logs/1-bad-pilot.log", "old words\n");
    let own = ["r.logs/prod.log", "r.logs/1-2026.log"];
    for file in own {
        kit.file(file, "of the user");
    }
    let outcome = kit
        .race()
        .contender("good", &server_line(&["--json"]))
        .contender("bad", "echo new words; exit 3")
        .args(SHORT_RACE)
        .args(["--record", "r.jsonl"])
        .run();
    outcome.assert_status(2).assert_stderr_has("| new words");
    assert!(!outcome.stderr.contains("old words"), "{outcome}");
    assert_eq!(kit.read("r.logs/1-bad-pilot.log"), "new words\n");
    own.iter().for_each(|file| assert_eq!(kit.read(file), "of the user"));
}

#[test]
fn hostile_words_reach_no_terminal() {
    let (kit, _turn) = (kit(), turn());
    let escape = "\u{1b}]0;owned\u{7}\u{1b}[31m";
    let outcome = against(&kit, &format!("printf '{escape}\\n'; exit 9"));
    outcome.assert_status(2);
    assert!(!outcome.stderr.contains('\u{1b}') && !outcome.stdout.contains('\u{1b}'), "{outcome}");
}

#[test]
fn wrong_usage_says_what_to_type() {
    let (kit, _turn) = (kit(), turn());
    for (arguments, word) in [
        (&["race", "one-command"][..], "two"),
        (&["race", "--url", "http://127.0.0.1:8080/", "a", "b"], "{port}"),
        (&["race", "--url", "http://example.com:{port}/", "a", "b"], "example.com"),
        (&["race", "--epochs", "many", "a", "b"], "many"),
        (&["race", "./no-such-study"], "no-such-study"),
        (&["race", "--server-cpus", "0", "--load-cpus", "0", "a", "b"], "0"),
        (&["race", "--html", ".", "a", "b"], "cannot write .: is a directory"),
    ] {
        let outcome = kit.deadheat(arguments.iter().copied()).run();
        outcome.assert_status(2).assert_stderr_has(word);
    }
}

/// The finding of the first scenario that has this code and is about this contender, if there is one.
fn finding(outcome: &Outcome, code: &str, contender: &str) -> Option<Value> {
    let json = outcome.json();
    let all = json["scenarios"][0]["findings"].as_array().unwrap();
    all.iter().find(|one| one["code"] == code && one["contender"] == contender).cloned()
}

#[test]
fn answers_that_differ_now_and_then_are_found_under_load() {
    let (kit, _turn) = (kit(), turn());
    let race = kit.race().contender("good", &server_line(&["--json"]));
    let race = race.contender("fickle", &server_line(&["--json", "--differ-every", "50"]));
    let outcome = race.args(SHORT_RACE).run();
    // If a parity check samples one of the different answers, deadheat removes the contender from the race.
    let differences = outcome.json()["parity"].as_array().unwrap().clone();
    let named = |one: &Value| one["contender"] == "fickle";
    let seen = finding(&outcome, "mismatch", "fickle").is_some();
    assert!(seen || (!differences.is_empty() && differences.iter().all(named)), "{outcome}");
}

/// Each answer closes its connection, up to eight new connections arrive at once, and two can wait. The others try again after a second.
#[test]
fn a_listener_that_is_full_is_found() {
    let (kit, _turn) = (kit(), turn());
    let full = server_line(&["--json", "--spin-us", "3000", "--close-each", "--backlog", "1"]);
    let race = kit.race().contender("roomy", &server_line(&["--json"])).contender("full", &full);
    let timing = ["--epochs", "3", "--budget", "1ms", "--warmup", "50ms", "--measure", "400ms"];
    let race = race.args(timing).args(["--slice", "100ms"]);
    let outcome = race.args(["-c", "8", "-r", "600", "--timeout", "1s"]).run();
    for code in ["listen-overflows", "no-keep-alive"] {
        let found = finding(&outcome, code, "full");
        assert_eq!(found.expect(code)["severity"], "warn", "{outcome}");
    }
    // The second attempt can fall in either contender's slice.
    assert!(["roomy", "full"].iter().any(|one| finding(&outcome, "retransmits", one).is_some()), "{outcome}");
}
