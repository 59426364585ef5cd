//! Races of commands and of studies, from the command line to the record.
#![allow(clippy::unwrap_used)]

use deadheat_testkit::{SHORT_RACE, server_line, turn};
use serde_json::Value;

use crate::common::{assert_measured, is_disturbed, kit, undisturbed};

fn assert_valid(document: &Value) {
    crate::common::assert_valid(document, include_str!("../../record/schema/record-1.schema.json"));
}

/// Checks that user and system time add up to the CPU time, and that memory has one reading more than there are rounds.
fn assert_usage(usage: &Value, rounds: usize) {
    let number = |key: &str| usage[key].as_u64().unwrap_or_else(|| panic!("no {key} in {usage}"));
    let (cpu_ns, parts_ns) = (number("cpu_ns"), number("user_ns") + number("system_ns"));
    // The kernel counts in ticks of up to 10 ms, so a difference of five ticks can be chance.
    let off_ns = cpu_ns / 5 + 50_000_000;
    assert!(cpu_ns.abs_diff(parts_ns) <= off_ns, "{usage}");
    assert!(number("voluntary_switches") + number("involuntary_switches") > 0, "{usage}");
    let memory = usage["memory"].as_array().unwrap();
    assert_eq!(memory.len(), rounds + 1, "{usage}");
    let of = |key: &str| memory.iter().map(|point| point[key].as_u64().unwrap()).collect::<Vec<_>>();
    let (at_ns, sizes) = (of("at_ns"), of("pss_bytes"));
    assert!(at_ns.windows(2).all(|two| two[0] < two[1]), "in time order: {at_ns:?}");
    assert_eq!(sizes.last(), Some(&number("pss_bytes")));
    assert_eq!(sizes.iter().max(), Some(&number("peak_pss_bytes")));
}

#[test]
fn two_commands_race_and_the_record_keeps_the_contract() {
    let (kit, _turn) = (kit(), turn());
    let outcome = kit
        .race()
        .url("http://127.0.0.1:{port}/x")
        .contender("plain", &server_line(&["--json"]))
        .contender("slowed", &server_line(&["--json", "--spin-us", "2000"]))
        .args(SHORT_RACE)
        .args(["--record", "r.jsonl", "--metric", "throughput,cpu"])
        .run();
    assert!(
        !outcome.stdout.contains('\u{1b}') && !outcome.stderr.contains('\u{1b}'),
        "no escapes without a terminal"
    );
    outcome.assert_stderr_has(" of at most 3 epochs");
    let json = outcome.json();
    assert_measured(&outcome, &json);
    assert_valid(&json);
    assert_eq!(json["schema"], "deadheat.record/1");
    for epoch in json["record"]["epochs"].as_array().unwrap() {
        let rounds = epoch["rounds"].as_array().unwrap().len();
        for part in epoch["contenders"].as_array().unwrap() {
            assert_usage(&part["usage"], rounds);
            // The head of an answer alone is longer than 30 bytes.
            let (bytes, answers) = (part["bytes_read"].as_u64(), part["completions"].as_u64().unwrap());
            assert!(answers > 0 && bytes.unwrap() > 30 * answers, "{part}");
        }
    }
    for one in json["record"]["pilots"][0]["contenders"].as_array().unwrap() {
        // The record has instruction counts only if the processor can count them.
        let counted = deadheat_host::process::instructions::can_be_counted();
        assert_eq!(
            (one["instructions_per_request"].is_number(), one["instructions_source"].is_string()),
            (counted, counted)
        );
    }
    kit.assert_nothing_left();
    let pair = &json["scenarios"][0]["comparisons"][0];
    assert_eq!((&pair["baseline"], &pair["contender"]), (&Value::from("plain"), &Value::from("slowed")));
    if !is_disturbed(&json["scenarios"][0]) {
        assert_eq!(pair["verdict"], "slower", "a request of the second takes 2 ms longer: {pair}");
        assert!(pair["ratio"].as_f64().unwrap() < 0.5, "{pair}");
    }
    // The CPU time of a request does not depend on what else runs, so the test treats every round as undisturbed.
    let told = undisturbed(&kit, "r.jsonl");
    let scenario = &told["scenarios"][0];
    let pair = &scenario["comparisons"][1];
    assert_eq!((&pair["metric"], &pair["verdict"]), (&Value::from("cpu"), &Value::from("slower")), "{pair}");
    assert!(pair["ratio"].as_f64().unwrap() > 2.0, "{pair}");
    let slowed = &scenario["results"][1];
    let of = |key: &str| slowed[key].as_f64().unwrap();
    assert!(of("user_us_per_request") > of("system_us_per_request"), "it spins in user mode: {slowed}");
    for result in scenario["results"].as_array().unwrap() {
        let keys = ["throughput_rps", "cpu_us_per_request", "rss_bytes", "peak_rss_bytes", "cold_start_ns"];
        for key in keys.into_iter().chain(["received_bytes_per_s", "processes"]) {
            assert!(result[key].as_f64().unwrap() > 0.0, "{key}");
        }
        // Only undisturbed rounds keep their latencies.
        assert!(result["latency_ns"]["p50"].as_u64() > Some(0) || is_disturbed(&json["scenarios"][0]));
        assert!(result["outcomes"]["ok"].as_u64().unwrap() > 0);
    }
}

#[test]
fn json_on_standard_output_stands_alone() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    let race = kit.deadheat(["race", "--json", "-"]).env("XDG_CACHE_HOME", kit.path().join("cache"));
    let outcome = race.args(SHORT_RACE).args([&server, &server]).run();
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_measured(&outcome, &document);
    assert_valid(&document);
    assert_eq!(document["study"], "ad-hoc");
    outcome.assert_stderr_has("record: deadheat-records/");
    assert_eq!(kit.read("deadheat-records/.gitignore"), "*\n", "git ignores the records");
    let names: Vec<&str> =
        document["contenders"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_ne!(names[0], names[1], "the same command twice gets two names");
    let kept = std::fs::read_dir(kit.path().join("cache/deadheat")).unwrap().count();
    assert_eq!(kept, 0, "an empty work folder stays in the cache");
}

/// The budget applies even before the minimum of four epochs: a short budget must not lead to a long wait.
#[test]
fn no_epoch_starts_that_would_end_after_the_budget() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    let race = kit.race().contender("a", &server).contender("b", &server).args(&SHORT_RACE[2..]);
    let outcome = race.args(["--epochs", "4..8", "--budget", "1ms"]).run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    let scenario = &json["scenarios"][0];
    assert_eq!((&scenario["epochs"], &scenario["ended"]), (&Value::from(1), &Value::from("budget")));
    outcome.assert_stdout_has("time budget used up").assert_stdout_has("few-epochs");
}

#[test]
fn a_study_in_ten_lines_races() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    let study = format!(
        "name = \"mine\"\n\n[[contender]]\nname = \"a\"\ncommand = {}\n\n[[contender]]\nname = \"b\"\ncommand = {}\n\n[[probe]]\npath = \"/x\"\n",
        Value::from(server.clone()),
        Value::from(server)
    );
    assert!(study.lines().filter(|line| !line.is_empty()).count() <= 10);
    kit.file("study.toml", study);
    let outcome =
        kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE).json_to("race.json").run();
    assert_measured(&outcome, &outcome.json());
    outcome.assert_stdout_has("mine");
    let again = kit.deadheat(["report", "r.jsonl"]).run();
    assert_eq!(again.stdout, outcome.stdout, "a report says what the race said");
    let taken = kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE).run();
    taken.assert_status(2).assert_stderr_has("r.jsonl").assert_stderr_has("--resume");
}

#[test]
fn sockets_services_datasets_and_needs() {
    let (kit, _turn) = (kit(), turn());
    let service = server_line(&["--body", "service"]);
    let by_socket = format!("{} --socket \"$SOCKET\"", server_line(&["--json"]));
    let by_port = format!("test -n \"$DB_PORT\" && test -s \"$DATASET\" && {}", server_line(&["--json"]));
    let text = |command: &str| Value::from(command).to_string();
    kit.file("input.txt", "one\n");
    kit.file(
        "study.toml",
        format!(
            "[dataset]\ncommand = \"echo made >> made.log; cp input.txt {{output}}\"\ninputs = [\"input.txt\"]\noutput = \"data.txt\"\n\
             [[service]]\nname = \"db\"\ncommand = {}\n\
             [[contender]]\nname = \"socket\"\ncommand = {}\nsocket = true\n\
             [[contender]]\nname = \"port\"\ncommand = {}\nservices = [\"db\"]\n\
             [[contender]]\nname = \"absent\"\ncommand = \"absent\"\nneeds = [ {{ program = \"no-such-program\", remedy = \"install it\" }} ]\n\
             [[probe]]\npath = \"/x\"\n",
            text(&service),
            text(&by_socket),
            text(&by_port)
        ),
    );
    let outcome = kit.deadheat(["race", "."]).args(SHORT_RACE).json_to("out.json").run();
    assert_measured(&outcome, &outcome.json());
    outcome.assert_stderr_has("absent").assert_stderr_has("install it");
    let checked = kit.deadheat(["check", "."]).run();
    checked.assert_status(0);
    assert_eq!(kit.read("made.log"), "made\n", "the dataset is made once");
    kit.file("input.txt", "two\n");
    kit.deadheat(["check", "."]).run().assert_status(0);
    assert_eq!(kit.read("made.log"), "made\nmade\n", "and again when an input changed");
    kit.assert_nothing_left();
}

/// A round has consecutive windows of a quarter of a second. Their mean is the value that deadheat compares.
#[test]
fn first_seconds_are_kept_window_by_window() {
    let (kit, _turn) = (kit(), turn());
    let command = |arguments: &[&str]| Value::from(server_line(arguments)).to_string();
    kit.file(
        "study.toml",
        format!(
            "[[contender]]\nname = \"a\"\ncommand = {}\n[[contender]]\nname = \"b\"\ncommand = {}\n\
             [[probe]]\npath = \"/\"\n[[scenario]]\nname = \"first\"\nconnections = 4\nwarm_up = false\n",
            command(&["--json", "--spin-us", "100"]),
            command(&["--json", "--spin-us", "200"]),
        ),
    );
    let race = kit.deadheat(["race", ".", "--record", "r.jsonl", "--epochs", "3", "--measure", "1s"]);
    let outcome = race.args(["--warmup", "100ms"]).json_to("race.json").run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    assert_valid(&json);
    let mut most_windows = 0;
    for (number, epoch) in json["record"]["epochs"].as_array().unwrap().iter().enumerate() {
        let rounds = epoch["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 1, "{rounds:?}");
        for contender in 0..2 {
            let slices = rounds[0]["slices"].as_array().unwrap().iter();
            let own: Vec<&Value> = slices.filter(|slice| slice["contender"] == contender).collect();
            let number_of = |slice: &Value, key: &str| slice[key].as_f64().unwrap();
            let begun = |slice: &Value| number_of(slice, "start_ns");
            let length = |slice: &Value| number_of(slice, "elapsed_ns");
            // A core that stands still between windows leaves time for fewer.
            assert!((1..=5).contains(&own.len()), "{own:?}");
            most_windows = most_windows.max(own.len());
            assert!(own.iter().all(|slice| length(slice) >= 0.25e9), "{own:?}");
            assert!(own.windows(2).all(|two| begun(two[1]) >= begun(two[0]) + length(two[0])), "{own:?}");
            let total: f64 = own.iter().map(|slice| length(slice)).sum();
            let mean =
                own.iter().map(|slice| number_of(slice, "rate_per_s") * length(slice)).sum::<f64>() / total;
            let result = &json["scenarios"][0]["results"][contender]["epochs"][number];
            // There is no value if the machine was so disturbed that deadheat left out the round.
            let told = result["throughput_rps"].as_f64().unwrap_or(mean);
            assert!((told / mean - 1.0).abs() < 1e-9, "{told} {mean}");
            let all: f64 = own.iter().map(|slice| number_of(slice, "completions")).sum();
            let part = &epoch["contenders"][contender];
            assert_eq!(part["completions"].as_f64().unwrap(), all);
            assert_eq!(
                [&part["warmup_ns"], &part["warmup_requests"]],
                [0, 0],
                "no frozen contender was woken before its first second"
            );
        }
    }
    assert!(most_windows > 1, "no contender has two windows in any epoch");
    kit.assert_nothing_left();
}

/// A contender that burns CPU time while idle burns none while it is frozen.
#[test]
fn idle_contenders_are_frozen() {
    let (kit, _turn) = (kit(), turn());
    let outcome = kit
        .race()
        .contender("plain", &server_line(&["--json"]))
        .contender("burner", &server_line(&["--json", "--burn-idle"]))
        .args(SHORT_RACE)
        .args(["--record", "r.jsonl"])
        .run();
    let json = outcome.json();
    let frozen = |epoch: &Value| {
        let part = &epoch["contenders"][1];
        let (cpu, loaded) = (part["usage"]["cpu_ns"].as_f64().unwrap(), part["loaded_ns"].as_f64().unwrap());
        // On one core it can use no more CPU time than its own slices last, plus a margin for thawing and freezing.
        // If it were not frozen during the other contender's slices, it would use about twice as much.
        let rounds = epoch["rounds"].as_array().unwrap().len() as f64;
        cpu < loaded * 1.2 + rounds * 3e6
    };
    let mut epochs = json["record"]["epochs"].as_array().unwrap().iter();
    // Beside other programs, deadheat may wait for a core between a thaw and a slice while the contender burns. Then one epoch is enough.
    let shown = if is_disturbed(&json["scenarios"][0]) { epochs.any(frozen) } else { epochs.all(frozen) };
    assert!(shown, "{json}");
    kit.assert_nothing_left();
}

/// Slow answers change the comparison of the percentile that they reach, and not that of the median.
#[test]
fn a_common_rate_compares_percentiles_and_cpu() {
    let (kit, _turn) = (kit(), turn());
    let race = kit
        .race()
        .contender("plain", &server_line(&["--json", "--delay-ms", "1", "--slow-ms", "4", "0.2"]))
        .contender("tail", &server_line(&["--json", "--delay-ms", "1", "--slow-ms", "40", "0.2"]))
        .args(["--rate", "2000", "-c", "64", "--metric", "p50,p90,cpu", "--seed", "7", "--warmup", "300ms"])
        .args(["--slice", "100ms", "--measure", "1s", "--epochs", "3..3", "--record", "r.jsonl"]);
    let outcome = race.run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    assert_valid(&json);
    let scenario = &json["scenarios"][0];
    let metrics: Vec<&str> = scenario["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["metric"].as_str().unwrap())
        .collect();
    assert_eq!(metrics, ["p50", "p90", "cpu"]);
    // Only undisturbed rounds keep their latencies. Without such rounds there is no ratio.
    let ratio = |index: usize| scenario["comparisons"][index]["ratio"].as_f64();
    if let (Some(median), Some(tail)) = (ratio(0), ratio(1)) {
        assert!(tail > 2.0, "40 ms against 4 ms: {tail}");
        assert!(median < 2.0, "{median}");
    }
    for result in scenario["results"].as_array().unwrap() {
        let offered = result["offered_rps"].as_f64().unwrap();
        assert!((1_800.0..2_200.0).contains(&offered), "{offered}");
    }
    let seeds: Vec<&Value> =
        json["record"]["epochs"][0]["rounds"][0]["slices"].as_array().unwrap().iter().collect();
    assert_eq!(seeds[0]["completions"], seeds[1]["completions"], "the same arrivals for both");
    outcome.assert_stdout_has("open load, 2,000 requests/s, Poisson");
}

/// One contender answers 2.5 times as fast as the other, so its peak rate is about 2.5 times as high.
#[test]
fn the_peak_under_an_objective_is_found() {
    let (kit, _turn) = (kit(), turn());
    let race = kit
        .race()
        .contender("slow", &server_line(&["--json", "--spin-us", "1000"]))
        .contender("quick", &server_line(&["--json", "--spin-us", "400"]))
        .args([
            "--slo",
            "p50 < 20ms",
            "--cpu-latency",
            "any",
            "-c",
            "16",
            "--warmup",
            "300ms",
            "--slice",
            "150ms",
            "--epochs",
            "3..3",
        ]);
    let outcome = race.run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    assert_valid(&json);
    let pair = &json["scenarios"][0]["comparisons"][0];
    // There is no ratio if other programs disturbed trial after trial.
    if let Some(ratio) = pair["ratio"].as_f64() {
        assert!((1.5..4.0).contains(&ratio), "{ratio}");
    }
    let mut longest_warm_up_ns = 0;
    for epoch in json["record"]["epochs"].as_array().unwrap() {
        for part in epoch["contenders"].as_array().unwrap() {
            let (end, trials) =
                (part["peak"]["end"].as_str().unwrap(), part["peak"]["trials"].as_u64().unwrap());
            assert!(
                end == "found" && trials >= 10 || ["gave-up", "generator"].contains(&end),
                "{end} after {trials} trials"
            );
            assert!(part["host"]["swapped_in_pages"].is_u64(), "what the machine counted is kept: {part}");
            longest_warm_up_ns = longest_warm_up_ns.max(part["warmup_ns"].as_u64().unwrap());
        }
        let trial = &epoch["rounds"][0]["slices"][0]["trial"];
        assert!(trial["rate_per_s"].as_f64().unwrap() > 0.0 && trial["end"].is_string(), "{trial}");
    }
    // A machine that stands still between two slices leaves time for less of both.
    assert!(longest_warm_up_ns > 550_000_000, "300 ms, and 300 ms to wake it: {longest_warm_up_ns}");
    kit.assert_nothing_left();
}

#[test]
fn a_race_does_not_end_at_a_look_while_a_contender_climbs() {
    let (kit, _turn) = (kit(), turn());
    // A contender reads the latency limit that the kernel applies during the race.
    let device = std::path::Path::new("/dev/cpu_dma_latency");
    let held = kit.path().join("held");
    let reading = format!("od -An -td4 -N4 {} > {}; ", device.display(), held.display());
    let race = kit
        .race()
        .contender("warm", &format!("{reading}{}", server_line(&["--spin-us", "200"])))
        .contender("cold", &server_line(&["--spin-us", "200", "--ease", "600"]));
    let outcome = race
        .args(["--warmup", "50ms", "--measure", "400ms", "--epochs", "4..5", "--cpu-latency", "3us"])
        .args(["--slice", "20ms"])
        .run();
    let json = outcome.json();
    assert_eq!(json["record"]["plan"]["method"]["cpu_latency_us"], 3);
    if std::fs::File::options().write(true).open(device).is_ok() {
        assert_eq!(std::fs::read_to_string(held).unwrap().trim(), "3", "the limit that the kernel applies");
    } else {
        eprintln!("skipped: {} cannot be written here; needs root", device.display());
    }
    let scenario = &json["scenarios"][0];
    kit.assert_nothing_left();
    // A scenario that other programs disturbed proves nothing.
    if is_disturbed(scenario) {
        return;
    }
    let climbs = scenario["findings"].as_array().unwrap().iter().find(|one| one["code"] == "no-steady-state");
    assert!(climbs.is_some_and(|one| one["contender"] == "cold"), "{scenario}");
    let pair = &scenario["comparisons"][0];
    assert_eq!((scenario["epochs"].as_u64(), pair["verdict"].as_str()), (Some(5), Some("invalid")), "{pair}");
}

#[test]
fn a_sweep_is_raced_point_by_point_and_shown_in_one_table() {
    let (kit, _turn) = (kit(), turn());
    // Both compute, so that what a request costs hardly depends on what else the machine does.
    let of = |spin_us: &str| server_line(&["--json", "--spin-us", spin_us]);
    let (one, other) = (of("400"), of("8000"));
    kit.file(
        "study.toml",
        format!(
            "[[contender]]\nname = \"a\"\ncommand = {}\n[[contender]]\nname = \"b\"\ncommand = {}\n\
             [[probe]]\npath = \"/x\"\n[[scenario]]\nname = \"more\"\nsweep = {{ connections = [1, 8] }}\n",
            Value::from(one),
            Value::from(other)
        ),
    );
    let outcome = kit
        .deadheat(["race", ".", "--record", "r.jsonl"])
        .args(&SHORT_RACE[..10])
        .args(["--metric", "throughput,cpu"])
        .json_to("race.json")
        .run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    assert_valid(&json);
    let names: Vec<&str> =
        json["scenarios"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["more/connections=1", "more/connections=8"]);
    assert_eq!(json["sweeps"][0]["points"][1], serde_json::json!([8.0, "more/connections=8"]));
    for scenario in undisturbed(&kit, "r.jsonl")["scenarios"].as_array().unwrap() {
        let pair = &scenario["comparisons"][1];
        assert_eq!(
            (&pair["metric"], &pair["verdict"]),
            (&Value::from("cpu"), &Value::from("slower")),
            "{pair}"
        );
        let figure = &scenario["results"][0]["figures"][0];
        assert!(figure["metric"] == "throughput" && figure["value"].as_f64().unwrap() > 0.0, "{figure}");
    }
    outcome.assert_stdout_has("more: closed load, over connections").assert_stdout_has("b against a: ");
}

#[test]
fn what_the_machine_counts_is_in_the_record() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json", "--spin-us", "50"]);
    let race = kit.race().contender("a", &server).contender("b", &server);
    let outcome = race.args(SHORT_RACE).run();
    let here = |file: &str, name: &str| {
        std::fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|word| word == name))
    };
    let json = outcome.json();
    let epochs = json["record"]["epochs"].as_array().unwrap();
    assert!(!epochs.is_empty(), "{outcome}");
    for epoch in epochs {
        let kept = epoch["rounds"].as_array().unwrap().iter().any(|round| round["dropped"].is_null());
        for part in epoch["contenders"].as_array().unwrap() {
            for (key, file, name) in [
                ("listen_overflows", "/proc/net/netstat", "ListenOverflows"),
                ("retransmitted_segments", "/proc/net/snmp", "RetransSegs"),
                ("swapped_in_pages", "/proc/vmstat", "pswpin"),
                ("cpu_pressure_ns", "/proc/pressure/cpu", "some"),
            ] {
                assert_eq!(part["host"][key].is_u64(), here(file, name), "{key}: {part}");
            }
            assert_eq!(part["in_flight_ns"].as_u64().unwrap() > 0, kept, "{part}");
        }
    }
    let findings = json["scenarios"][0]["findings"].as_array().unwrap();
    assert!(findings.iter().all(|one| one["code"] != "littles-law"), "{outcome}");
}
