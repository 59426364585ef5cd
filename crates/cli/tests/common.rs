//! Helpers that several test files share: the program under test, and checks of a race that hold on a busy machine too.

use std::fs;
use std::path::Path;
use std::process::Command;

use deadheat_testkit::{Kit, Outcome, Running, Signal, descendants, kill_9};
use serde_json::Value;

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_deadheat");

/// Codes of findings that blame other programs on our cores, or the hypervisor.
const DISTURBANCES: [&str; 7] =
    ["dropped-rounds", "foreign-cpu", "steal", "stalls", "throttled", "run-delay", "peak-not-found"];

pub(crate) fn kit() -> Kit {
    Kit::new(BINARY)
}

/// Asserts that the race ran to its end and that its exit status matches its document. The race may be invalid only if the document says
/// that something disturbed the machine.
#[track_caller]
pub(crate) fn assert_measured(outcome: &Outcome, document: &Value) {
    let scenarios = document["scenarios"].as_array().unwrap();
    let invalid = |scenario: &&Value| {
        let pairs = scenario["comparisons"].as_array().unwrap();
        match pairs.is_empty() {
            true => findings(scenario, "invalid").next().is_some(),
            false => pairs.iter().any(|pair| pair["verdict"] == "invalid"),
        }
    };
    let unfit: Vec<&Value> = scenarios.iter().filter(invalid).collect();
    outcome.assert_status(if unfit.is_empty() { 0 } else { 3 });
    for scenario in unfit {
        assert!(
            is_disturbed(scenario),
            "invalid, and nothing disturbed it: {}\n{outcome}",
            scenario["findings"]
        );
    }
}

/// Whether the scenario is invalid because other programs used too much of the machine.
pub(crate) fn is_disturbed(scenario: &Value) -> bool {
    findings(scenario, "invalid").any(|code| DISTURBANCES.contains(&code))
}

/// Codes of a scenario's findings with this severity.
fn findings<'v>(scenario: &'v Value, severity: &str) -> impl Iterator<Item = &'v str> {
    let all = scenario["findings"].as_array().unwrap().iter();
    all.filter(move |one| one["severity"] == severity).filter_map(|one| one["code"].as_str())
}

#[track_caller]
pub(crate) fn assert_valid(document: &Value, schema: &str) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// The finished epochs in a record. There are none before its file exists.
pub(crate) fn epochs(record: &Path) -> usize {
    let is_epoch =
        |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|line| line["line"] == "epoch");
    std::fs::read_to_string(record).map_or(0, |text| text.lines().filter(is_epoch).count())
}

/// Removes the effects of other programs from a race's record. The servers then decide the verdict: they differ by more than any
/// disturbance.
pub(crate) fn undisturb(kit: &Kit, file: &str) {
    let without = |line: &str| -> Option<String> {
        let mut line: Value = serde_json::from_str(line).unwrap();
        // On a busy machine, later epochs replace unusable ones. Keep only the first three.
        if line["line"] == "finding" || line["number"].as_u64().is_some_and(|number| number > 3) {
            return None;
        }
        if line["line"] == "pilot" {
            line.as_object_mut().unwrap().remove("ceiling_rps");
        }
        if line["line"] == "epoch" {
            line["findings"] = Value::Array(vec![]);
            for round in line["rounds"].as_array_mut().unwrap() {
                round["external"]["steal_share"] = 0.0.into();
                round["external"]["foreign_share"] = 0.0.into();
                round.as_object_mut().unwrap().remove("dropped");
                for slice in round["slices"].as_array_mut().unwrap() {
                    slice["load_cpu_ns"] = 0.into();
                    slice["load_run_delay_ns"] = 0.into();
                }
            }
        }
        Some(format!("{line}\n"))
    };
    let text: String = kit.read(file).lines().filter_map(without).collect();
    kit.file(file, text);
}

/// The document of a record without its disturbances.
#[track_caller]
pub(crate) fn undisturbed(kit: &Kit, file: &str) -> Value {
    undisturb(kit, file);
    let shown = kit.deadheat(["report", file, "--json", "-"]).run();
    shown.assert_status(0);
    serde_json::from_str(&shown.stdout).unwrap()
}

/// Asserts that the second contender, a container, answered in each epoch, that its CPU time was read from this source, and that it was frozen by a signal
/// only where there are no groups.
#[track_caller]
pub(crate) fn assert_container_measured(document: &Value, source: &str) {
    let epochs = document["record"]["epochs"].as_array().unwrap();
    assert!(!epochs.is_empty(), "{}", document["record"]["findings"]);
    for epoch in epochs {
        let parts = epoch["contenders"].as_array().unwrap();
        let part = parts.iter().find(|part| part["contender"] == 1).unwrap();
        let (usage, answers) = (&part["usage"], part["completions"].as_u64().unwrap());
        assert!(answers > 0 && usage["cpu_ns"].as_u64() > Some(0), "{part}");
        assert!(usage["cpu_source"].as_str().unwrap().starts_with(source), "{usage}");
        // The engine's own processes, which take tens of megabytes, do not count.
        assert!(usage["pss_bytes"].as_u64().unwrap() < 20_000_000, "{usage}");
    }
    let findings = document["scenarios"][0]["findings"].as_array().unwrap();
    let by_signal = findings.iter().filter(|one| one["code"] == "frozen-by-signal").count();
    assert_eq!(by_signal, usize::from(source == "clock"), "{}", document["scenarios"][0]["findings"]);
}

/// Copies a program to `server` in this folder, and the libraries that it loads to where it looks for them: all that an image needs.
pub(crate) fn copy_with_libraries(program: &Path, root: &Path) {
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    copy(program, &root.join("server"));
    let libraries = Command::new("ldd").arg(program).output().unwrap();
    let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
    let paths =
        libraries.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    paths.for_each(|path| copy(Path::new(path), &root.join(path.trim_start_matches('/'))));
}

/// Kills a race and its keepers, so that nothing ends what it started. It stops the race first: the race cannot notice that its keepers end.
pub(crate) fn kill_with_keepers(mut race: Running) {
    race.signal(Signal::STOP);
    for one in descendants(race.pid()).iter().filter(|one| one.command.contains("__keeper")) {
        kill_9(one.pid);
    }
    race.kill_9();
}
