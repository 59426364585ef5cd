//! Races whose contenders run on another machine: with a stand-in for ssh, and with hosts that are network namespaces.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deadheat_testkit::{
    Host, Invocation, Kit, Process, SHORT_RACE, Signal, Terminal, bed_or_skip, kill_9, processes_with_env,
    server_line, skip_loudly, turn, wait_until,
};
use serde_json::Value;

use crate::common::{self, assert_measured, kit};

/// A stand-in for ssh: it starts the command in a shell of this machine. Each host has a separate home folder. It notes the hosts that were reached.
fn stand_in(kit: &Kit) -> PathBuf {
    stand_in_with(kit, "")
}

fn stand_in_with(kit: &Kit, before: &str) -> PathBuf {
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\n\
         [ \"$2\" != nowhere ] || {{ echo 'ssh: connect to host nowhere port 22: No route to host' >&2; exit 255; }}\n\
         unset XDG_CACHE_HOME\nHOME='{root}'/home-$2; export HOME; mkdir -p \"$HOME\"; echo \"$2\" >> '{root}/reached'\n\
         {before}\nON_HOST=\"$2\" exec sh -c \"$3\"\n",
        root = kit.path().display()
    );
    let path = kit.file("ssh", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A study of two servers in `mine`. A contender is started by a script of the study, and a file comes from its build.
fn study(kit: &Kit) {
    let server = server_line(&["--json"]);
    let script = kit.file(
        "mine/bin/start",
        format!("#!/bin/sh\n[ -f built ] && exec {server} --host \"${{HOST:-127.0.0.1}}\"\n"),
    );
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("bin/start", kit.path().join("mine/start")).unwrap();
    kit.file("mine/.gitignore", "built\nnode_modules\n");
    kit.file("mine/node_modules/large", "not sent");
    kit.file("mine/data.txt", "one\n");
    let contender = |name: &str, command: &str| {
        format!(
            "[[contender]]\nname = \"{name}\"\ncommand = \"{command}\"\nbuild = \"touch built\"\nversion = \"cat data.txt\"\n"
        )
    };
    let study = format!(
        "title = \"A study\"\n\n[dataset]\ncommand = \"cp data.txt $OUTPUT\"\ninputs = [\"data.txt\"]\noutput = \"data.db\"\n\n\
         [[probe]]\nname = \"root\"\npath = \"/\"\n\n{}\n{}",
        contender("one", "./start"),
        contender("other", "test -f {dataset} && ./bin/start")
    );
    kit.file("mine/study.toml", study);
}

fn on_target<'k>(kit: &'k Kit, command: &str) -> Invocation<'k> {
    let ssh = stand_in(kit);
    kit.deadheat([command, "--server-host", "ssh://me@target"]).env("DEADHEAT_SSH", ssh)
}

/// What is left in the folder of work folders of a host.
fn work_folders(home: &Path) -> Vec<PathBuf> {
    let folder = home.join(".cache/deadheat/races");
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn assert_clean(kit: &Kit) {
    kit.assert_nothing_left();
    let home = kit.path().join("home-target");
    assert_eq!(work_folders(&home), Vec::<PathBuf>::new());
    let cache: Vec<_> =
        fs::read_dir(home.join(".cache/deadheat")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert!(cache.iter().all(|name| name == "agents" || name == "races"), "{cache:?}");
}

#[test]
fn a_study_is_raced_on_another_machine_and_its_record_comes_back() {
    let (kit, _turn) = (kit(), turn());
    study(&kit);
    let race = on_target(&kit, "race").arg("mine").args(SHORT_RACE).args(["--record", "r.jsonl"]);
    let outcome = race.json_to("race.json").run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    outcome
        .assert_stderr_has("reaching me@target by ssh")
        .assert_stderr_has("4 files")
        .assert_stderr_has("not what git ignores: node_modules (--send-ignored sends it)")
        .assert_stderr_has("building one ...")
        .assert_stderr_has("record: r.jsonl")
        .assert_stdout_has("other");
    let plan = &json["record"]["plan"];
    assert_eq!((&plan["study"], &plan["contenders"][0]["version"]), (&"mine".into(), &"one".into()));
    let host = &plan["server_host"];
    assert_eq!((&host["host"], &host["study"]), (&"ssh://me@target".into(), &"".into()));
    assert_eq!(host["sent"], kit.path().join("mine").canonicalize().unwrap().to_str().unwrap());
    assert!(plan["folder"].as_str().unwrap().contains("home-target/.cache/deadheat/races/"), "{plan}");
    assert!(
        json["reproduce"].as_str().unwrap().contains("--server-host ssh://me@target"),
        "{}",
        json["reproduce"]
    );
    assert!(
        !kit.path().join("mine/built").exists() && !kit.path().join("mine/work").exists(),
        "built there, not here"
    );
    let logs: Vec<_> = fs::read_dir(kit.path().join("r.logs")).unwrap().collect();
    assert!(!logs.is_empty(), "logs come back");
    assert_clean(&kit);
    // The record is an ordinary one, and a race that is over needs no other machine.
    let shown = kit.deadheat(["race", "--resume", "r.jsonl"]).env("DEADHEAT_SSH", "/no/such/ssh").run();
    shown.assert_stdout_has("other");
}

#[test]
fn commands_run_in_the_current_folder_that_was_sent() {
    let (kit, _turn) = (kit(), turn());
    let server = server_line(&["--json"]);
    kit.file("here/a.sh", format!("exec {server}\n"));
    let race = on_target(&kit, "race").directory(kit.path().join("here")).args(SHORT_RACE);
    let race = race.args(["--build", "touch built", "-n", "one", "-n", "other"]);
    let command = "test -f built && exec sh a.sh";
    let outcome = race.args([command, command]).json_to("race.json").run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    assert_eq!(json["record"]["plan"]["server_host"]["build"], "touch built");
    let records: Vec<_> = fs::read_dir(kit.path().join("here/deadheat-records")).unwrap().collect();
    assert!(records.len() >= 2, "the record is where that of any race is: {records:?}");
    assert!(!kit.path().join("here/built").exists());
    assert_clean(&kit);
}

#[test]
fn the_load_comes_from_a_host_that_only_this_side_can_reach() {
    let (kit, _turn) = (kit(), turn());
    let race = on_target(&kit, "race").args(["--load-host", "ssh://a", "--server-address", "127.0.0.1"]);
    let server = server_line(&["--json"]);
    let race = race.args(SHORT_RACE).args(["-n", "one", "-n", "other", &server, &server]);
    let outcome = race.json_to("race.json").run();
    let json = outcome.json();
    assert_measured(&outcome, &json);
    let plan = &json["record"]["plan"];
    assert_eq!(plan["load_from"]["hosts"], serde_json::json!(["ssh://a"]));
    outcome.assert_stderr_has("reaching me@target, a by ssh");
    let reached = kit.read("reached");
    // Once to see that it is there, and once for the race.
    assert_eq!(reached.lines().collect::<Vec<_>>(), ["a", "target", "a"]);
    let homes = |name: &str| kit.path().join(name).join(".cache/deadheat/agents").is_dir();
    assert!(homes("home-target") && homes("home-a"));
    assert_clean(&kit);
}

#[test]
fn a_race_on_a_terminal_looks_as_it_does_here() {
    let (kit, _turn, terminal) = (kit(), turn(), Terminal::new(70, 30));
    let server = server_line(&["--json"]);
    let race = on_target(&kit, "race").args(SHORT_RACE).args(["-n", "one", "-n", "other", &server, &server]);
    let outcome = race.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").on(&terminal).run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    let written = String::from_utf8(terminal.written()).unwrap();
    assert!(written.contains("\u{1b}["), "it is redrawn in place: {written:?}");
    let round = written.find("round 1 of").unwrap_or_else(|| panic!("{written:?}"));
    assert!(written[..round].contains("sending to me@target"), "{written:?}");
    assert_clean(&kit);
}

/// A race that would take long, on the target.
fn long_race(kit: &Kit) -> Invocation<'_> {
    study(kit);
    let race = on_target(kit, "race").arg("mine").args(&SHORT_RACE[2..]);
    race.args(["--epochs", "150", "--record", "r.jsonl"])
}

/// The processes on the target that run this hidden command.
fn on(kit: &Kit, command: &str) -> Vec<Process> {
    let ours = kit.leftovers();
    let named = processes_with_env("ON_HOST", "target");
    named.into_iter().filter(|one| ours.contains(one) && one.command.contains(command)).collect()
}

fn epochs(kit: &Kit) -> usize {
    let text = kit.read("r.jsonl");
    assert!(text.ends_with('\n'), "whole lines only");
    common::epochs(&kit.path().join("r.jsonl"))
}

#[track_caller]
fn assert_soon_clean(kit: &Kit, patience: Duration) {
    let home = kit.path().join("home-target");
    let clean = || kit.leftovers().is_empty() && work_folders(&home).is_empty();
    assert!(wait_until(patience, clean), "left: {:?} {:?}", kit.leftovers(), work_folders(&home));
}

#[test]
fn ctrl_c_ends_it_there_and_it_can_be_continued() {
    let (kit, _turn) = (kit(), turn());
    let mut running = long_race(&kit).spawn();
    running.wait_for("an epoch", || common::epochs(&kit.path().join("r.jsonl")) > 0);
    assert!(running.signal(Signal::INT));
    let outcome = running.wait();
    outcome.assert_status(130).assert_stderr_has("continue with: deadheat race --resume r.jsonl");
    outcome.assert_stdout_has("other");
    assert_clean(&kit);
    let before = epochs(&kit);
    assert!(before > 0);

    // From the document: a journal is made beside it.
    kit.deadheat(["report", "r.jsonl", "--json", "half.json"]).run().assert_status(0);
    let document = kit.read("half.json");
    let again = kit.deadheat(["race", "--resume", "half.json"]).env("DEADHEAT_SSH", kit.path().join("ssh"));
    let mut running = again.spawn();
    running.wait_for("another epoch", || common::epochs(&kit.path().join("half.jsonl")) > before);
    assert!(running.signal(Signal::INT));
    let outcome = running.wait();
    outcome.assert_status(130).assert_stderr_has("building one ...").assert_stderr_has("making the dataset");
    assert_clean(&kit);
    let lines: Vec<Value> =
        kit.read("half.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((epochs(&kit), kit.read("half.json")), (before, document), "both stay as they were");
    assert_eq!(lines.iter().filter(|line| line["line"] == "resumed").count(), 1);
    assert_eq!(lines.iter().filter(|line| line["line"] == "header").count(), 1);
    // What was raced has changed.
    kit.file("mine/data.txt", "two\n");
    let again = kit.deadheat(["race", "--resume", "r.jsonl"]).env("DEADHEAT_SSH", kit.path().join("ssh"));
    let outcome = again.run();
    outcome.assert_status(2).assert_stderr_has("versions of contenders have changed");
    assert_clean(&kit);
}

#[test]
fn nothing_is_left_there_when_this_side_or_the_agent_is_killed() {
    for killed in ["control", "agent", "race"] {
        let (kit, _turn) = (kit(), turn());
        let mut running = long_race(&kit).spawn();
        running.wait_for("an epoch", || common::epochs(&kit.path().join("r.jsonl")) > 0);
        let before = epochs(&kit);
        let begun = Instant::now();
        match killed {
            "control" => drop(running.kill_9()),
            process => {
                let hidden =
                    if process == "agent" { "deadheat server-agent" } else { "deadheat under-agent" };
                // A process that has just been forked looks like its parent.
                let mut found = Vec::new();
                let is_one = || {
                    found = on(&kit, hidden);
                    found.len() == 1
                };
                assert!(wait_until(Duration::from_secs(30), is_one), "{found:?}");
                assert!(kill_9(found[0].pid));
                let outcome = running.wait();
                outcome.assert_status(3).assert_stderr_has("continue with: deadheat race --resume r.jsonl");
                let said = if process == "agent" {
                    "the server host me@target was lost"
                } else {
                    "its process ended with signal 9"
                };
                outcome.assert_stderr_has(said);
            }
        }
        assert_soon_clean(&kit, Duration::from_secs(20));
        assert!(epochs(&kit) >= before, "{killed} after {:?}", begun.elapsed());
    }
}

#[test]
fn a_study_is_checked_on_another_machine() {
    let (kit, _turn) = (kit(), turn());
    study(&kit);
    let outcome = on_target(&kit, "check").arg("mine").run();
    outcome.assert_status(0).assert_stdout_has("2 of 2 contenders meet the contract");
    assert_clean(&kit);
    let from = ["--load-host", "ssh://me@load", "--server-address", "127.0.0.1"];
    let outcome = on_target(&kit, "check").arg("mine").args(from).run();
    outcome.assert_status(0).assert_stdout_has("2 of 2 contenders meet the contract");
    let reached = fs::read_to_string(kit.path().join("reached")).unwrap();
    let count = reached.lines().filter(|host| host.contains("load")).count();
    assert_eq!(count, 2, "before anything is sent, and by the check itself: {reached}");
    assert_clean(&kit);
    let outcome = on_target(&kit, "check").args(["mine", "--only", "one,nobody"]).run();
    outcome.assert_status(2).assert_stderr_has("nobody");
    assert_clean(&kit);
}

#[test]
fn another_machine_is_examined() {
    let (kit, _turn) = (kit(), turn());
    let outcome = on_target(&kit, "doctor").args(["--quick", "--json", "-"]).run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    assert_eq!(outcome.json()["schema"], "deadheat.doctor/1");
    outcome.assert_stderr_has("ceiling");
    assert_clean(&kit);
    on_target(&kit, "doctor")
        .args(["--json", "x.json"])
        .run()
        .assert_status(2)
        .assert_stderr_has("--json - > FILE");
}

#[test]
fn what_cannot_be_done_on_another_machine_is_told() {
    let kit = kit();
    study(&kit);
    let refused = |arguments: &[&str], said: &str| {
        let outcome = on_target(&kit, "race").args(arguments).run();
        outcome.assert_status(2).assert_stderr_has(said);
        assert!(!kit.path().join("deadheat-records").exists(), "no empty record: {outcome}");
    };
    refused(&["no/such/study"], "there is no study");
    refused(&["--git", "main", "mine"], "--git cannot be combined with --server-host");
    refused(&["--continue", "r.jsonl", "mine"], "--continue cannot be combined with --server-host");
    refused(&["--resume", "r.jsonl"], "--resume cannot be combined with options");
    refused(&["--send", "home", "mine"], "cannot send home");
    fs::create_dir(kit.path().join("empty")).unwrap();
    refused(&["--send", "empty", "mine"], "is not in this folder");
    refused(&["--load-host", "ssh://a", "mine"], "--server-address 10.0.0.5");
    kit.file("r.jsonl", "of the user");
    refused(&["--record", "r.jsonl", "mine"], "the file already exists");
    let outcome = kit.deadheat(["race", "--send", ".", "mine"]).run();
    outcome.assert_status(2).assert_stderr_has("--server-host");
    let nowhere = kit.deadheat(["race", "--server-host", "ssh://nowhere", "mine"]);
    let outcome = nowhere.env("DEADHEAT_SSH", kit.path().join("ssh")).run();
    outcome
        .assert_status(2)
        .assert_stderr_has("cannot reach the host nowhere")
        .assert_stderr_has("No route to host");
    // The command there reports its own failures.
    kit.file("mine/data.txt", "");
    refused(&["--only", "nobody", "mine"], "nobody");
    fs::write(
        kit.path().join("mine/study.toml"),
        kit.read("mine/study.toml").replace("touch built", "false"),
    )
    .unwrap();
    refused(&["mine"], "the build of one failed");
    assert_clean(&kit);
}

#[test]
fn a_host_that_cannot_store_the_study_says_so() {
    let (kit, _turn) = (kit(), turn());
    study(&kit);
    kit.file("home-target/.cache/deadheat/races", "a file in the place of a folder");
    let outcome = on_target(&kit, "race").arg("mine").run();
    outcome
        .assert_status(2)
        .assert_stderr_has("server host me@target: the folder")
        .assert_stderr_has("cannot be made");
    fs::remove_file(kit.path().join("home-target/.cache/deadheat/races")).unwrap();

    kit.file("mine/large", vec![7; 300_000]);
    if !rustix::process::geteuid().is_root() {
        skip_loudly!("a file system without room needs root");
    }
    let mount = "mkdir -p \"$HOME/.cache/deadheat/races\"; [ -n \"$FULL\" ] || FULL=1 exec unshare -m \"$0\" -- \"$2\" \"$3\"; \
                 mount -t tmpfs -o size=128k none \"$HOME/.cache/deadheat/races\"";
    let ssh = stand_in_with(&kit, mount);
    let race = kit.deadheat(["race", "--server-host", "ssh://target", "mine"]).env("DEADHEAT_SSH", ssh);
    let outcome = race.run();
    outcome
        .assert_status(2)
        .assert_stderr_has("mine/large cannot be written to")
        .assert_stderr_has("No space left");
    kit.assert_nothing_left();
}

/// A server host may have this side start an ssh to the load hosts of the race, and nothing else.
#[test]
fn a_server_host_gets_no_other_ssh() {
    let (kit, _turn) = (kit(), turn());
    let probe = "\"$DEADHEAT_SSH\" -o ProxyCommand='touch stolen' -- elsewhere true > said 2>&1; echo $? >> said; exit 1";
    kit.file("here/probe.sh", probe);
    let race = on_target(&kit, "race").directory(kit.path().join("here"));
    let race = race.args(["--load-host", "ssh://a", "--server-address", "127.0.0.1"]);
    let outcome = race.args(["--build", "sh probe.sh; cat said; false", "true", "false"]).run();
    outcome
        .assert_status(2)
        .assert_stderr_has("the controlling side does not start this")
        .assert_stderr_has("255");
    assert_eq!(kit.read("reached").lines().collect::<Vec<_>>(), ["a", "target"]);
    assert_clean(&kit);
}

/// Everything of deadheat and of its contenders on a host of a bed.
fn ours_on(host: &Host) -> Vec<Process> {
    let is_ours = |one: &Process| one.command.contains("deadheat") && !one.command.contains("sshd");
    host.processes().into_iter().filter(is_ours).collect()
}

#[test]
fn control_servers_and_load_are_three_machines() {
    let (bed, kit, _turn) = (bed_or_skip!(2), kit(), turn());
    study(&kit);
    let address = bed.host(1).address().to_string();
    let hosts = format!(
        "[[host]]\nssh = \"ssh://root@h1\"\nruns = \"contenders\"\naddress = \"{address}\"\n\n\
         [[host]]\nssh = \"ssh://root@h2\"\nruns = \"load\"\n"
    );
    let file = kit.path().join("mine/study.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "\n" + &hosts).unwrap();
    let race = kit.deadheat_inside(&bed, ["race", "mine"]).args(SHORT_RACE);
    let outcome = race.json_to("race.json").run();
    outcome
        .assert_stderr_has("options from the study: --load-host=ssh://root@h2 --server-host=ssh://root@h1");
    let json = outcome.json();
    assert_measured(&outcome, &json);
    let gone = || bed.hosts().iter().all(|host| ours_on(host).is_empty());
    assert!(
        wait_until(Duration::from_secs(10), gone),
        "{:?}",
        bed.hosts().iter().map(ours_on).collect::<Vec<_>>()
    );
    assert_eq!(work_folders(&bed.host(1).home()), Vec::<PathBuf>::new());
    let log = bed.host(2).sshd_log();
    assert!(!log.contains(&format!("from {address} port")), "the load host is reached from here only: {log}");
}

#[test]
fn nothing_is_left_on_a_host_that_is_cut_off() {
    for cut in [true, false] {
        let (bed, kit, _turn) = (bed_or_skip!(2), kit(), turn());
        study(&kit);
        let address = bed.host(1).address().to_string();
        let hosts = ["--server-host", "ssh://h1", "--load-host", "ssh://h2", "--server-address", &address];
        let race = kit.deadheat_inside(&bed, ["race", "mine", "--record", "r.jsonl"]).args(hosts);
        let mut running = race.args(&SHORT_RACE[2..]).args(["--epochs", "150"]).spawn();
        running.wait_for("an epoch", || common::epochs(&kit.path().join("r.jsonl")) > 0);
        let before = epochs(&kit);
        if cut {
            bed.host(1).cut_link();
        } else {
            bed.host(1).kill_sshd();
        }
        let begun = Instant::now();
        let clean = || {
            bed.hosts().iter().all(|host| ours_on(host).is_empty() && work_folders(&host.home()).is_empty())
        };
        // 10 s without a word, 5 s to end, and time for a busy machine.
        assert!(
            wait_until(Duration::from_secs(25), clean),
            "{:?}",
            bed.hosts().iter().map(ours_on).collect::<Vec<_>>()
        );
        let took = begun.elapsed();
        let outcome = running.wait();
        outcome
            .assert_status(3)
            .assert_stderr_has("the server host h1 was lost")
            .assert_stderr_has("--resume r.jsonl");
        assert_eq!(outcome.stderr.contains("nothing was heard from it for 10 s"), cut, "{took:?} {outcome}");
        assert!(epochs(&kit) >= before);
    }
}
