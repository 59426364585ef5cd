//! Studies from their file to an exit status: what reaches a contender, and the messages for a wrong file and a dead contender.
#![allow(clippy::unwrap_used)]

use deadheat_testkit::{Kit, server_line, skip_loudly};
use serde_json::Value;

fn kit() -> Kit {
    Kit::new(env!("CARGO_BIN_EXE_deadheat"))
}

/// A table of the study file with a name and a command.
fn table(kind: &str, name: &str, command: &str) -> String {
    format!("[[{kind}]]\nname = \"{name}\"\ncommand = {}\n", Value::from(command))
}

/// Contenders get the port on which a service listens, as a placeholder and as a variable.
#[test]
fn a_service_is_found_by_its_port() {
    let kit = kit();
    let db = format!("printf %s {{port}} > db.txt; exec {} --port {{port}}", server_line(&[]));
    let by_placeholder =
        format!("test {{db.port}} = \"$(cat db.txt)\" && exec {} --body {{db.port}}", server_line(&[]));
    let by_variable =
        format!("test \"$DB_PORT\" = \"$(cat db.txt)\" && exec {} --body \"$DB_PORT\"", server_line(&[]));
    let study = [
        table("service", "db", &db),
        table("contender", "placeholder", &by_placeholder) + "services = [\"db\"]\n",
        table("contender", "variable", &by_variable) + "services = [\"db\"]\n",
        "[[probe]]\npath = \"/\"\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let outcome = kit.deadheat(["check", ".", "--ready-timeout", "60s"]).run();
    outcome.assert_status(0).assert_stdout_has("2 of 2 contenders meet the contract");
    kit.assert_nothing_left();
}

/// A service is ready when its `ready` command succeeds, not when it listens. deadheat ends it with the study's signal or command.
#[test]
fn a_service_says_when_it_is_ready_and_how_it_ends() {
    let kit = kit();
    let server = server_line(&[]);
    let slow = format!(
        "trap 'echo usr1 >> ended.txt; kill $pid; exit' USR1; {server} --port {{port}} & pid=$!; sleep 0.3; touch up-$PORT; wait"
    );
    let told = format!("echo $$ > told.pid; exec {server} --port {{port}}");
    let contender = |name: &str| {
        let command = format!("test -e up-{{slow.port}} && exec {server}");
        table("contender", name, &command) + "services = [\"slow\", \"told\"]\n"
    };
    let study = [
        table("service", "slow", &slow)
            + "ready = \"test -e up-{port}\"\nsignal = \"USR1\"\ngrace = \"5s\"\n",
        table("service", "told", &told) + "stop = \"echo {port} > told.txt; kill $(cat told.pid)\"\n",
        contender("a"),
        contender("b"),
        "[[probe]]\npath = \"/\"\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let outcome = kit.deadheat(["check", ".", "--ready-timeout", "60s"]).run();
    outcome.assert_status(0).assert_stdout_has("2 of 2 contenders meet the contract");
    assert_eq!(kit.read("ended.txt"), "usr1\n");
    assert!(kit.read("told.txt").trim().parse::<u16>().is_ok());
    kit.assert_nothing_left();
}

/// Contenders and the load generator may open as many connections as the system allows, and not only a shell's default.
#[test]
fn the_limit_of_open_files_is_raised() {
    let kit = Kit::new("/bin/sh");
    let server = format!("test $(ulimit -Sn) = $(ulimit -Hn) && exec {}", server_line(&["--json"]));
    let study = [
        table("contender", "a", &server),
        table("contender", "b", &server),
        "[[probe]]\npath = \"/\"\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let low = "ulimit -Sn 256; exec \"$0\" check .";
    kit.deadheat(["-c", low, env!("CARGO_BIN_EXE_deadheat")]).run().assert_status(0);
    kit.assert_nothing_left();
}

#[test]
fn a_contender_that_dies_fails_the_check_with_its_last_words() {
    let kit = kit();
    let study = [
        table("contender", "good", &server_line(&["--json"])),
        table("contender", "dead", "echo no licence >&2; exit 9"),
        "[[probe]]\npath = \"/\"\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let outcome = kit.deadheat(["check", "."]).run();
    outcome
        .assert_status(1)
        .assert_stderr_has("dead ended with exit status 9")
        .assert_stderr_has("no licence");
    kit.assert_nothing_left();
    assert!(
        outcome.elapsed.as_secs() < 15,
        "deadheat sees the exit long before the time to answer is over\n{outcome}"
    );
}

#[test]
fn a_wrong_study_is_refused_with_file_and_line_before_anything_starts() {
    let kit = kit();
    let good = table("contender", "a", "touch started; exit 1");
    kit.file(
        "study.toml",
        format!("{good}[[contender]]\nname = \"b\"\ncomand = \"x\"\n[[probe]]\npath = \"/\"\n"),
    );
    for command in ["race", "check"] {
        let outcome = kit.deadheat([command, "."]).run();
        outcome.assert_status(2).assert_stderr_has("study.toml:6").assert_stderr_has("comand");
        outcome.assert_stderr_has("command");
        assert_eq!(outcome.stdout, "");
    }
    assert!(!kit.path().join("started").exists());
    assert!(!kit.path().join("deadheat-records").exists(), "no record of a race that never was");
}

#[test]
fn a_choice_of_contenders_that_are_not_there_is_refused() {
    let kit = kit();
    let server = server_line(&["--json"]);
    let study = [table("contender", "alpha", &server), table("contender", "beta", &server)].concat();
    kit.file("study.toml", study + "[[probe]]\npath = \"/\"\n");
    kit.deadheat(["check", ".", "--only", "alpah"]).run().assert_status(2).assert_stderr_has("alpha");
    kit.deadheat(["race", ".", "--scenario", "nowhere"]).run().assert_status(2).assert_stderr_has("nowhere");
    assert!(kit.leftovers().is_empty());
}

/// A log is raced with its timing. The data of a service is the same at the beginning of each epoch, and a build with a seed has another one.
#[test]
fn a_log_is_raced_with_services_reset_and_a_build_with_seeds() {
    let (kit, _turn) = (kit(), deadheat_testkit::turn());
    let line = |at: usize| {
        let (second, path) = (at / 20, if at.is_multiple_of(2) { "/a" } else { "/b?c" });
        format!("h - - [25/Nov/2026:17:58:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 1 \"-\" \"-\"\n")
    };
    kit.file("access.log", (0..400).map(line).chain(["broken\n".to_owned()]).collect::<String>());
    let server = server_line(&["--json"]);
    let contender = |name: &str| table("contender", name, &server) + "services = [\"db\"]\n";
    let study = [
        table("service", "db", &format!("exec {} --port {{port}}", server_line(&[])))
            + "reset = \"echo {port} >> resets.txt\"\n",
        contender("a"),
        contender("b") + "build = \"echo {seed} >> seeds.txt\"\n",
        "[[probe]]\nname = \"traffic\"\nrequests_from = \"access.log\"\n".to_owned(),
        "[[scenario]]\nname = \"users\"\nconnections = 8\norder = \"timing\"\nspeed = 10\n".to_owned(),
    ];
    kit.file("study.toml", study.concat());
    let race = ["race", ".", "--record", "r.jsonl", "--epochs", "3", "--measure", "1200ms"];
    let short = ["--slice", "100ms", "--warmup", "50ms", "--metric", "p50"];
    let outcome = kit.deadheat(race).args(short).json_to("race.json").run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    outcome.assert_stderr_has("1 of 401 lines are not sent");
    let json = outcome.json();
    let epochs = json["record"]["epochs"].as_array().unwrap().len();
    // One reset for each epoch, and one for the pilot.
    assert_eq!(kit.read("resets.txt").lines().count(), epochs + 1, "{outcome}");
    let seeds: Vec<u64> = kit.read("seeds.txt").lines().map(|line| line.parse().unwrap()).collect();
    let kept = json["record"]["epochs"].as_array().unwrap().iter();
    let kept: Vec<u64> = kept.map(|epoch| epoch["contenders"][1]["build_seed"].as_u64().unwrap()).collect();
    // One build before the race, and one for the pilot.
    assert_eq!((seeds[0], &seeds[2..]), (1, &kept[..]));
    assert!(kept.windows(2).all(|two| two[0] != two[1]), "{kept:?}");
    let log = &json["record"]["plan"]["probes"][0]["log"]["contents"];
    assert_eq!(
        (log["requests"].as_u64(), log["distinct"].as_u64(), log["broken"].as_u64()),
        (Some(400), Some(2), Some(1))
    );
    assert_eq!(json["record"]["plan"]["scenarios"][0]["traffic"]["replay"]["timing"]["speed"], 10.0);
    outcome.assert_stdout_has("timing as recorded, 10 times as fast");
    // Another file cannot continue the race.
    let whole = kit.read("r.jsonl");
    let begun: Vec<&str> =
        whole.lines().filter(|line| !line.contains("\"done\"") && !line.contains("\"end\"")).collect();
    kit.file("begun.jsonl", begun.join("\n") + "\n");
    kit.file("access.log", line(0));
    let resumed = kit.deadheat(["race", "--resume", "begun.jsonl"]).run();
    resumed.assert_status(2).assert_stderr_has("the file has changed since the race was planned");
    kit.assert_nothing_left();
}

/// Two contenders whose token differs in each start, and requests that need it, with a row of values each.
fn with_login(kit: &Kit, token: &str) {
    kit.file("items.csv", "id,note\n1,plain\n2,\"a \"\"b\"\", c\"\n3,x&y=z\n");
    let server = server_line(&["--login"]);
    let study = [
        table("contender", "a", &server),
        table("contender", "b", &server),
        format!(
            "[[probe]]\nname = \"login\"\nmethod = \"POST\"\npath = \"/login\"\ncapture = {{ token = \"{token}\" }}\n"
        ),
        "[[probe]]\nname = \"item\"\npath = \"/items/{id}?note={note}\"\nvalues_from = \"items.csv\"\n\
         request_headers = { authorization = \"Bearer {token}\" }\n"
            .to_owned(),
    ];
    kit.file("study.toml", study.concat());
}

#[test]
fn contenders_are_raced_with_the_token_of_each_start() {
    let (kit, _turn) = (kit(), deadheat_testkit::turn());
    with_login(&kit, "$.access_token");
    let race = ["race", ".", "--record", "r.jsonl", "--epochs", "3", "--measure", "600ms"];
    let outcome =
        kit.deadheat(race).args(["--slice", "100ms", "--warmup", "50ms"]).json_to("race.json").run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    let json = outcome.json();
    crate::common::assert_valid(&json, include_str!("../../record/schema/record-1.schema.json"));
    let record = &json["record"];
    assert!(record["epochs"].as_array().unwrap().len() >= 3, "{outcome}");
    for epoch in record["epochs"].as_array().unwrap() {
        for slice in
            epoch["rounds"].as_array().unwrap().iter().flat_map(|one| one["slices"].as_array().unwrap())
        {
            // Without the token of this start, every answer is 401.
            assert_eq!(slice["failed"].as_u64(), Some(0), "{slice}");
            assert!(slice["completions"].as_u64().unwrap() > 0, "{slice}");
        }
    }
    let probes = &record["plan"]["probes"];
    assert_eq!(probes[0]["capture"]["token"]["json"], "$.access_token");
    assert_eq!(
        (probes[0]["under_load"].as_bool(), probes[1]["values"]["rows"].as_u64()),
        (Some(false), Some(3))
    );
    assert_eq!(probes[1]["values"]["columns"], serde_json::json!(["id", "note"]));
    let row = kit.read("r.jsonl");
    assert!(!row.contains("x&y=z") && !row.contains("x%26y"), "the values stay in the file");
    // Another file cannot continue the race.
    let begun: Vec<&str> =
        row.lines().filter(|line| !line.contains("\"done\"") && !line.contains("\"end\"")).collect();
    kit.file("begun.jsonl", begun.join("\n") + "\n");
    kit.file("items.csv", "id,note\n9,other\n");
    let resumed = kit.deadheat(["race", "--resume", "begun.jsonl"]).run();
    resumed.assert_status(2).assert_stderr_has("items.csv: the file has changed since the race was planned");
    kit.assert_nothing_left();
}

#[test]
fn a_capture_that_finds_nothing_is_told_with_what_the_answer_has() {
    let kit = kit();
    with_login(&kit, "$.accesstoken");
    let outcome = kit.deadheat(["check", ".", "--ready-timeout", "60s"]).run();
    outcome.assert_status(1).assert_stdout_has("0 of 2 contenders meet the contract");
    outcome.assert_stdout_has("$.accesstoken").assert_stdout_has("a value for {token}");
    outcome.assert_stdout_has(r#"{"access_token":"…","expires_in":3600}"#);
    with_login(&kit, "$.access_token");
    kit.deadheat(["check", ".", "--ready-timeout", "60s"]).run().assert_status(0);
    kit.assert_nothing_left();
}

#[test]
fn an_unusable_file_of_values_is_refused_with_its_line() {
    let kit = kit();
    with_login(&kit, "$.access_token");
    kit.file("items.csv", "id,note\n1,a\n2\n");
    for command in ["race", "check"] {
        let outcome = kit.deadheat([command, "."]).run();
        outcome.assert_status(2).assert_stderr_has("study.toml:");
        outcome
            .assert_stderr_has("`items.csv`: line 3: the number of values is 1, and line 1 names 2 columns");
    }
}

#[test]
fn limits_that_cannot_be_set_are_refused_before_anything_starts() {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        skip_loudly!("one core")
    }
    let kit = kit();
    let command = Value::from(server_line(&["--json"]));
    kit.file(
        "study.toml",
        format!(
            "[[contender]]\nname = \"a\"\ncommand = {command}\n[[contender]]\nname = \"b\"\ncommand = {command}\n\
             [[probe]]\npath = \"/\"\n[[scenario]]\nname = \"limited\"\nconnections = 8\ncpuset = [1]\n"
        ),
    );
    let outcome = kit.deadheat(["race", ".", "--server-cpus", "0", "--load-cpus", "1"]).run();
    outcome.assert_status(2).assert_stderr_has("processor 1, which the load generator runs on");
    outcome.assert_stderr_has("--load-cpus").assert_stderr_has("limited");
    kit.assert_nothing_left();
}
