//! Containers as contenders: raced, ended in every way, and refused.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use deadheat_testkit::{
    Invocation, Kit, SHORT_RACE, Signal, kill_9, leftover_cgroups, server_command, skip_loudly, turn,
    wait_until,
};
use serde_json::Value;

use crate::common::{BINARY, assert_container_measured, copy_with_libraries, kill_with_keepers, kit};

/// The tests' image, or skips the rest of the test.
macro_rules! image_or_skip {
    () => {
        match image() {
            Ok(image) => image,
            Err(why) => skip_loudly!("{why}"),
        }
    };
}

/// The image of the tests' server, and the engine's settings; or why this machine cannot run containers.
fn image() -> &'static Result<Image, String> {
    static IMAGE: OnceLock<Result<Image, String>> = OnceLock::new();
    IMAGE.get_or_init(Image::make)
}

/// What the names of images and of their folders begin with. The number of the tests' process follows.
const IMAGES: &str = "localhost/deadheat-test-";
const FOLDERS: &str = "deadheat-image-";

/// Removes the images and folders of tests that are over. A process of tests does not know which of its tests is the last, so a later process does this.
fn remove_left_behind() {
    let is_over = |number: &str| number.parse().is_ok_and(|pid| !deadheat_testkit::is_alive(pid));
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_str().and_then(|name| name.strip_prefix(FOLDERS)).is_some_and(is_over) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let Ok(listed) = Command::new("podman").args(["images", "--format", "{{.Repository}}"]).output() else {
        return;
    };
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        if name.strip_prefix(IMAGES).is_some_and(is_over) {
            let _ = Command::new("podman").args(["rmi", "--force", name]).output();
        }
    }
}

struct Image {
    name: String,
    settings: PathBuf,
}

impl Image {
    fn make() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("containers for tests need root".into());
        }
        remove_left_behind();
        let folder = std::env::temp_dir().join(format!("{FOLDERS}{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let settings = folder.join("containers.conf");
        // Where limits on open files cannot be raised, the engine's usual ones fail; and not every runtime works with control groups of version 1.
        let text = "[engine]\nruntime = \"runc\"\nevents_logger = \"file\"\n\
                    [containers]\ndefault_ulimits = [\"nofile=20000:20000\", \"nproc=30000:30000\"]\n";
        fs::write(&settings, text).unwrap();
        let root = folder.join("root");
        copy_with_libraries(server_command(), &root);
        fs::write(folder.join("Containerfile"), "FROM scratch\nCOPY root/ /\nENTRYPOINT [\"/server\"]\n")
            .unwrap();
        let name = format!("{IMAGES}{}", std::process::id());
        let podman = |arguments: &[&str]| {
            let output = Command::new("podman")
                .args(arguments)
                .current_dir(&folder)
                .env("CONTAINERS_CONF", &settings)
                .output();
            let output =
                output.map_err(|error| format!("podman, which scripts/setup.sh installs: {error}"))?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(format!("podman {arguments:?}: {said}")) }
        };
        podman(&["build", "--quiet", "--tag", &name, "."])?;
        podman(&["run", "--rm", "--network", "host", &name, "--help"])?;
        Ok(Self { name, settings })
    }
}

/// Engines take their time on a busy machine.
const PATIENCE: [&str; 2] = ["--ready-timeout", "150s"];

/// Runs deadheat with the tests' settings of the engine.
fn deadheat<'k>(kit: &'k Kit, image: &Image, arguments: &[&str]) -> Invocation<'k> {
    kit.deadheat(arguments.iter().copied()).env("CONTAINERS_CONF", &image.settings)
}

/// A study of a process and a container of the same server, with this more in the container's table.
fn study(image: &Image, more: &str) -> String {
    let line = Value::from(deadheat_testkit::server_line(&["--json"]));
    format!(
        "[[contender]]\nname = \"process\"\ncommand = {line}\n\
         [[contender]]\nname = \"container\"\nimage = \"{}\"\n{more}\n[[probe]]\npath = \"/x\"\n",
        image.name
    )
}

/// The containers of this kit's races.
fn left(image: &Image) -> String {
    let mut podman = Command::new("podman");
    podman.args(["ps", "--all", "--filter", "label=deadheat.run", "--format"]);
    podman.args(["{{.Image}} {{.Names}}"]).env("CONTAINERS_CONF", &image.settings);
    let listed = podman.output().unwrap();
    String::from_utf8_lossy(&listed.stdout).into_owned()
}

#[test]
fn a_container_is_raced_against_a_process() {
    let image = image_or_skip!();
    let (kit, _turn) = (kit(), turn());
    kit.file("study.toml", study(image, "command = \"--json\"\nnetwork = \"host\""));
    let outcome = deadheat(&kit, image, &["race", ".", "--record", "r.jsonl"])
        .args(SHORT_RACE)
        .args(PATIENCE)
        .json_to("race.json")
        .run();
    let json = outcome.json();
    crate::common::assert_valid(&json, include_str!("../../record/schema/record-1.schema.json"));
    let planned = &json["record"]["plan"]["contenders"][1];
    let container = &planned["container"];
    assert_eq!(container["image"], image.name.as_str());
    assert!(container["engine"].as_str().unwrap().starts_with("podman "), "{container}");
    assert!(
        container["id"].as_str().unwrap().len() >= 64 && planned["artefact_bytes"].as_u64() > Some(100_000)
    );
    assert_container_measured(&json, "cpu");
    kit.assert_nothing_left();
}

#[test]
fn a_container_that_ignores_term_is_removed_and_a_bridge_leads_to_it_from_outside() {
    let image = image_or_skip!();
    let kit = kit();
    // Inside, the server may listen on its loopback only: a bridge does not lead there, and the check says that nothing answers.
    kit.file("study.toml", study(image, "command = \"--json\"\nnetwork = \"bridge\""));
    let outcome = deadheat(&kit, image, &["check", ".", "--ready-timeout", "2s"]).run();
    outcome.assert_status(1).assert_stderr_has("container ");
    kit.file("study.toml", study(image, "command = \"--json\""));
    let check = deadheat(&kit, image, &["check", "."]).args(PATIENCE).spawn();
    let name = format!("deadheat-{}-", check.pid());
    check.wait().assert_status(0);
    kit.assert_nothing_left();
    assert!(!left(image).contains(&name), "{}", left(image));
}

#[test]
fn what_cannot_be_raced_is_refused_with_the_remedy() {
    let image = image_or_skip!();
    let kit = kit();
    let nowhere = Image { name: "localhost/nowhere-at-all:1".into(), settings: image.settings.clone() };
    kit.file("study.toml", study(&nowhere, ""));
    let outcome = deadheat(&kit, image, &["check", "."]).run();
    outcome
        .assert_status(2)
        .assert_stderr_has("takes localhost/nowhere-at-all:1 for its image, which is not here");
    outcome.assert_stderr_has("podman pull localhost/nowhere-at-all:1");
    // Its program refuses an argument. The message shows what the program printed.
    kit.file("study.toml", study(image, "command = \"--no-such-option\""));
    let outcome = deadheat(&kit, image, &["check", "."]).run();
    outcome
        .assert_status(1)
        .assert_stderr_has("container ended with exit status")
        .assert_stderr_has("--no-such-option");
    let detached = format!("podman run -d {}", image.name);
    let outcome = deadheat(&kit, image, &["race", &detached, &detached, "--record", "r.jsonl"]).run();
    outcome.assert_status(2).assert_stderr_has("leave out -d and --detach");
    // An option's value is no image, although there could be one of that name.
    let named = format!("podman run --name {} --network host {}", image.name, image.name);
    let outcome = deadheat(&kit, image, &["race", &named, &named, "--record", "r.jsonl"]).run();
    outcome.assert_status(2).assert_stderr_has("leave out --name");
    kit.file("study.toml", study(image, "network = \"hots\"\nengine = \"podmann\"\nvolumes = [\"data\"]"));
    let outcome = deadheat(&kit, image, &["check", "."]).run();
    outcome.assert_status(2).assert_stderr_has("`hots` is not a network of containers");
    outcome.assert_stderr_has("did you mean `podman`?").assert_stderr_has("`data` is not a volume");
    kit.assert_nothing_left();
}

#[test]
fn a_container_whose_deadheat_and_keeper_were_killed_is_named_and_removed() {
    let image = image_or_skip!();
    let (kit, _turn) = (kit(), turn());
    // Two containers: a process that starts while its keeper is killed would be left, and named. On the host's network: an engine that is killed
    // leaves parts of any other.
    let container = format!("podman run --network host {} --json", image.name);
    let arguments =
        ["race", &container, &container, "--record", "r.jsonl", "--epochs", "40", "--margin", "0.1"];
    let mut race = deadheat(&kit, image, &arguments).args(PATIENCE).spawn();
    let pid = race.pid();
    let name = format!("deadheat-{pid}-");
    race.wait_for("a container", || left(image).contains(&name));
    kill_with_keepers(race);
    kit.file("study.toml", study(image, "command = \"--json\""));
    // A command of another test may see it first, and remove it.
    let outcome = deadheat(&kit, image, &["check", "."]).run();
    let was_removed = || !left(image).contains(&name);
    assert!(wait_until(Duration::from_secs(20), was_removed), "{}\n{}", left(image), outcome.stderr);
    let no_group = || leftover_cgroups(&name).is_empty();
    let groups = || (leftover_cgroups(&name), &outcome.stderr);
    assert!(wait_until(Duration::from_secs(5), no_group), "{:?}", groups());
}

#[test]
fn the_memory_of_a_scenario_limits_a_container_too() {
    let image = image_or_skip!();
    if !Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
        skip_loudly!("no control groups of version 1 for memory");
    }
    let (kit, _turn) = (kit(), turn());
    let scenario = "[[scenario]]\nname = \"small\"\nconnections = 4\nmemory = \"64MB\"\n";
    kit.file("study.toml", study(image, "command = \"--json\"") + scenario);
    let race = deadheat(&kit, image, &["race", ".", "--record", "r.jsonl", "--epochs", "40"]);
    let mut race = race.args(PATIENCE).spawn();
    let name = format!("deadheat-{}-", race.pid());
    // The group with the limit is the one that contains the container's.
    let limit = || {
        leftover_cgroups(&name)
            .into_iter()
            .filter(|group| group.starts_with("/sys/fs/cgroup/memory"))
            .find_map(|group| {
                let inner =
                    fs::read_dir(&group).ok()?.flatten().map(|one| one.file_name().into_string().unwrap());
                let has_container =
                    inner.into_iter().any(|name| name.starts_with("libpod-") && !name.contains("conmon"));
                let limit = fs::read_to_string(group.join("memory.limit_in_bytes")).ok()?;
                has_container.then(|| limit.trim().parse::<u64>().unwrap())
            })
    };
    let mut found = None;
    race.wait_for("a container in a group for memory", || {
        found = limit();
        found.is_some()
    });
    race.signal(Signal::INT);
    race.wait();
    assert!(found < Some(65_000_000), "{found:?}");
    kit.assert_nothing_left();
}

/// An ordinary user with an image. No other user sees this image.
struct Ordinary {
    home: tempfile::TempDir,
}

/// Marks what an engine leaves running for its user.
const ORDINARY: &str = "DEADHEAT_TEST_USER";

impl Ordinary {
    fn new(image: &Image) -> Self {
        let home = tempfile::tempdir().unwrap();
        let user = Self { home };
        let at = user.home.path();
        // Others may not look into every folder of root's.
        fs::copy(BINARY, at.join("deadheat")).unwrap();
        fs::copy(server_command(), at.join("server")).unwrap();
        copy_with_libraries(server_command(), &at.join("root"));
        fs::copy(&image.settings, at.join("containers.conf")).unwrap();
        let line = format!("{} --json --port {{port}}", at.join("server").display());
        let study = format!(
            "[[contender]]\nname = \"process\"\ncommand = \"{line}\"\n\
             [[contender]]\nname = \"container\"\nimage = \"localhost/x:1\"\ncommand = \"--json\"\n[[probe]]\npath = \"/x\"\n"
        );
        fs::write(at.join("study.toml"), study).unwrap();
        let give =
            "mkdir run && chown -R nobody . && chmod 755 . && tar --owner=0 --group=0 -C root -c . | \"$@\"";
        let import =
            ["podman", "import", "--quiet", "--change", "ENTRYPOINT [\"/server\"]", "-", "localhost/x:1"];
        let mut shell = Command::new("sh");
        shell.args(["-c", give, "sh"]).args(user.words()).args(import).current_dir(at).env(ORDINARY, at);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        user
    }

    /// What runs a command as this user.
    fn words(&self) -> Vec<String> {
        let at = self.home.path().display();
        let env = [
            format!("HOME={at}"),
            format!("XDG_RUNTIME_DIR={at}/run"),
            format!("CONTAINERS_CONF={at}/containers.conf"),
        ];
        let user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env"];
        user.map(str::to_owned).into_iter().chain(env).collect()
    }

    fn deadheat<'k>(&self, kit: &'k Kit, arguments: &[&str]) -> Invocation<'k> {
        let words = self.words();
        let mut env = Command::new(&words[0]);
        env.args(&words[1..]).arg(self.home.path().join("deadheat")).args(arguments).args(PATIENCE);
        kit.command(env).directory(self.home.path())
    }

    fn containers(&self) -> String {
        let words = self.words();
        let mut podman = Command::new(&words[0]);
        podman.args(&words[1..]).args(["podman", "ps", "--all", "--format", "{{.Status}}"]);
        let listed = podman.current_dir(self.home.path()).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).into_owned()
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        deadheat_testkit::kill_all_with_env(ORDINARY, &self.home.path().display().to_string());
    }
}

#[test]
fn without_root_a_container_is_told_from_its_engine_and_removed() {
    let image = image_or_skip!();
    let (kit, user, _turn) = (kit(), Ordinary::new(image), turn());
    let race = user.deadheat(&kit, &["race", ".", "--record", "a.jsonl"]).args(SHORT_RACE);
    let outcome = race.json_to(user.home.path().join("race.json")).run();
    let json = outcome.json();
    assert_container_measured(&json, "clock");
    kit.assert_nothing_left();
    assert_eq!(user.containers(), "");

    let mut race = user.deadheat(&kit, &["race", ".", "--record", "b.jsonl", "--epochs", "40"]).spawn();
    race.wait_for("a running container", || user.containers().contains("Up"));
    kill_with_keepers(race);
    let outcome = user.deadheat(&kit, &["check", "."]).run();
    outcome
        .assert_status(0)
        .assert_stderr_has("is left over from an earlier run of deadheat; it was removed");
    assert_eq!(user.containers(), "");
}

/// Prints how long it takes to freeze and thaw a container, and a process, between loads and under load. Needs control groups of version 1, and a quiet machine.
#[test]
#[ignore = "a measurement: see CONTRIBUTING.md"]
fn how_long_it_takes_to_freeze() {
    use deadheat_host::cgroup::Hierarchy;
    use std::time::Instant;

    const TIMES: usize = 1_000;
    let image = image_or_skip!();
    let (kit, _turn) = (kit(), deadheat_testkit::turn_alone());
    let groups = Hierarchy::detect().of_containers();
    let name = |what: &str| format!("freeze-{what}-{}", std::process::id());
    // As in a race: the contenders' processors stay awake, and another contender is frozen.
    let _awake = deadheat_host::monitor::awake::Awake::hold(0, &[0]);
    let other = groups.make(&name("other")).unwrap();
    other.freeze().unwrap();
    for is_container in [false, true] {
        let port = deadheat_testkit::free_port();
        let outer = groups.make(&name("server")).unwrap();
        let server = if is_container {
            let place = groups.place_of(&outer, &name("server")).unwrap();
            format!(
                "exec podman --cgroup-manager=cgroupfs run --rm --network=host --cgroup-parent=/{} --cpuset-cpus=0 {} --port {port}",
                place.display(),
                image.name
            )
        } else {
            let line = deadheat_testkit::server_line(&["--port", &port.to_string()]);
            format!("exec taskset 1 {}", line.replace("--port {port}", ""))
        };
        let enter = |folder: PathBuf| format!("echo $$ >{}/cgroup.procs; ", folder.display());
        let folders = groups.folders_named(&name("server")).into_iter().map(enter).collect::<String>();
        let mut shell = Command::new("sh");
        shell.args(["-c", &(folders + &server)]).env("CONTAINERS_CONF", &image.settings);
        let mut running = shell.spawn().unwrap();
        let address = ([127, 0, 0, 1], port).into();
        let answers = || deadheat_testkit::Client::connect_to(address).is_ok();
        assert!(wait_until(Duration::from_secs(60), answers));
        let group = outer.of_container(Path::new("/no/file")).unwrap_or_else(|| outer.clone());
        for is_busy in [false, true] {
            let url = format!("http://127.0.0.1:{port}/");
            let load = is_busy.then(|| kit.deadheat(["load", &url, "-d", "60s", "--load-cpus", "1"]).spawn());
            std::thread::sleep(Duration::from_secs(1));
            let (mut froze, mut thawed) = (Vec::new(), Vec::new());
            for _ in 0..TIMES {
                let begin = Instant::now();
                group.freeze().unwrap();
                froze.push(begin.elapsed());
                std::thread::sleep(Duration::from_millis(5));
                let begin = Instant::now();
                group.thaw().unwrap();
                thawed.push(begin.elapsed());
                std::thread::sleep(Duration::from_millis(10));
            }
            drop(load);
            for (what, mut all) in [("freeze", froze), ("thaw", thawed)] {
                all.sort();
                let (median, p99, most) = (all[TIMES / 2], all[TIMES * 99 / 100], all[TIMES - 1]);
                let who = if is_container { "container" } else { "process" };
                let state = if is_busy { "under load" } else { "without load" };
                println!("{who}, {what} {state}: median {median:?}, p99 {p99:?}, longest {most:?}");
            }
        }
        for pid in group.processes() {
            kill_9(pid.as_raw_nonzero().get() as u32);
        }
        running.wait().unwrap();
        groups.remove_of_containers(&name("server"));
    }
    other.thaw().unwrap();
    groups.remove_of_containers(&name("other"));
}
