//! Docker's containers as contenders, and control groups of version 2 as the kernel has them: with daemons that the tests start for themselves.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deadheat_testkit::{
    Invocation, Kit, Running, SHORT_RACE, cgroups_under, descendants, kill_9, leftover_cgroups,
    server_command, skip_loudly, turn, wait_until,
};
use serde_json::Value;

use crate::common::{BINARY, assert_container_measured, copy_with_libraries, kill_with_keepers, kit};

const IMAGE: &str = "deadheat-test:1";
/// Where the tree of version 2 is on a machine that has those of version 1 too.
const UNIFIED: &str = "/sys/fs/cgroup/unified";
/// How long a daemon may take for anything on a busy machine.
const PATIENCE: Duration = Duration::from_secs(150);

/// The control groups that a daemon, and deadheat beside it, see.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Groups {
    /// Those of this machine.
    AsHere,
    /// Those of version 2 only. All controllers are in use by version 1: groups can be frozen and read, but not limited.
    Two,
    /// The same, and systemd makes the groups of containers.
    Systemd,
}

/// A Docker daemon that has the image of the tests' server. It shares neither network nor mounts nor process numbers with the machine.
struct Daemon {
    folder: tempfile::TempDir,
    /// Its group of version 2, if it does not see the machine's.
    group: Option<PathBuf>,
    /// `unshare`. Its child is the first process of the namespaces, with which all others end.
    process: Child,
}

impl Daemon {
    /// Starts it, or says why this machine cannot.
    fn start(groups: Groups) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("a Docker daemon for tests needs root".into());
        }
        if groups == Groups::AsHere && !Path::new("/sys/fs/cgroup/freezer").exists() {
            return Err("no control groups of version 1".into());
        }
        if groups != Groups::AsHere && !Path::new(UNIFIED).join("cgroup.procs").exists() {
            return Err(format!("no control groups of version 2 in {UNIFIED}"));
        }
        let systemd = "/lib/systemd/systemd";
        let needed = ["dockerd", "docker", systemd];
        let needed = if groups == Groups::Systemd { &needed[..] } else { &needed[..2] };
        let runs = |program: &&&str| Command::new(program).arg("--version").output().is_ok();
        if let Some(missing) = needed.iter().find(|program| !runs(program)) {
            return Err(format!("{missing}, which scripts/setup.sh installs, is not there"));
        }
        // Short, because the paths of sockets are.
        let folder = tempfile::Builder::new().prefix("dh").tempdir_in("/tmp").unwrap();
        let at = folder.path().display();
        let dockerd = format!(
            "dockerd --iptables=false --ip-forward=false --data-root {at}/data --exec-root {at}/exec \
             --pidfile {at}/pid -H unix://{at}/docker.sock"
        );
        // Each daemon gets a new network namespace. In the machine's own, it would remove the bridge docker0 of another daemon.
        let mut namespaces = "--mount --net --pid --fork --kill-child".to_owned();
        let mut inside =
            "mount --make-rprivate / && mount -t proc proc /proc && ip link set lo up || exit 1\n".to_owned();
        let group = (groups != Groups::AsHere).then(|| {
            namespaces += " --cgroup --uts";
            inside += "umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit 1\n";
            Path::new(UNIFIED).join(format!("test-{}", folder.path().file_name().unwrap().display()))
        });
        if groups == Groups::Systemd {
            let units = folder.path().join("units");
            fs::create_dir(&units).unwrap();
            for target in ["default", "sysinit", "basic", "shutdown"] {
                let text = "[Unit]\nDescription=nothing\nDefaultDependencies=no\n";
                fs::write(units.join(format!("{target}.target")), text).unwrap();
            }
            let unit = format!(
                "[Service]\nEnvironment=PATH={}\nExecStart=sh -c 'exec {dockerd} --exec-opt native.cgroupdriver=systemd'\nStandardError=append:{at}/log\n",
                std::env::var("PATH").unwrap()
            );
            fs::write(units.join("docker.service"), unit).unwrap();
            inside += &format!(
                "mount -t tmpfs tmpfs /run || exit 1\nexport container=test SYSTEMD_UNIT_PATH={at}/units\n\
                 exec {systemd} --system --log-target=console --show-status=0\n"
            );
        } else {
            inside += &format!("{dockerd} &\nwait\n");
        }
        fs::write(folder.path().join("inside"), inside).unwrap();
        let mut outside = String::new();
        if let Some(group) = &group {
            fs::create_dir(group).map_err(|error| format!("{}: {error}", group.display()))?;
            outside = format!("echo $$ >{}/cgroup.procs || exit 1; ", group.display());
        }
        outside += &format!("exec setpriv --pdeathsig KILL unshare {namespaces} sh {at}/inside");
        let log = fs::File::options().create(true).append(true).open(folder.path().join("log")).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &outside]).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let process = shell.spawn().unwrap();
        let daemon = Self { folder, group, process };
        if groups == Groups::Systemd {
            daemon.wait_for("systemd", || {
                let mut start = daemon.inside();
                start.args(["systemctl", "start", "--no-block", "docker.service"]);
                start
            })?;
        }
        daemon.wait_for("dockerd", || daemon.docker(&["version"]))?;
        daemon.import();
        Ok(daemon)
    }

    /// Waits until a command succeeds.
    fn wait_for(&self, what: &str, command: impl Fn() -> Command) -> Result<(), String> {
        let succeeds = || command().stdin(Stdio::null()).output().is_ok_and(|output| output.status.success());
        if wait_until(PATIENCE, succeeds) {
            return Ok(());
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        Err(format!("{what} did not start here: {}", last.join("\n")))
    }

    fn import(&self) {
        let root = self.folder.path().join("root");
        copy_with_libraries(server_command(), &root);
        let docker = self.docker(&["import", "--change", "ENTRYPOINT [\"/server\"]", "-", IMAGE]);
        let mut shell = Command::new("sh");
        shell.args(["-c", "tar -C \"$0\" -c . | \"$@\""]).arg(&root).arg(docker.get_program());
        shell.args(docker.get_args()).env("DOCKER_HOST", self.address());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn address(&self) -> String {
        format!("unix://{}/docker.sock", self.folder.path().display())
    }

    fn docker(&self, arguments: &[&str]) -> Command {
        let mut docker = Command::new("docker");
        docker.args(arguments).env("DOCKER_HOST", self.address());
        docker
    }

    /// `nsenter` into its namespaces and its groups, with the command still missing.
    fn inside(&self) -> Command {
        let first = descendants(self.process.id()).first().map_or(0, |first| first.pid);
        let mut command = Command::new("sh");
        let user = self.group.as_ref().map(|group| group.join("user"));
        let enter =
            "[ -z \"$0\" ] || { mkdir -p \"$0\" && echo $$ >\"$0\"/cgroup.procs; }; exec nsenter \"$@\"";
        command.args(["-c", enter]).arg(user.unwrap_or_default());
        command.args([&format!("--target={first}"), "--net"]);
        if self.group.is_some() {
            command.args(["--mount", "--pid", "--cgroup", "--uts"]);
        }
        command.arg("--");
        command
    }

    /// deadheat, where it sees the same control groups as the daemon.
    fn deadheat<'k>(&self, kit: &'k Kit, arguments: &[&str]) -> Invocation<'k> {
        let mut inside = self.inside();
        if self.group.is_some() {
            // With one processor, deadheat pins nothing: groups cannot hold containers to processors here.
            inside.args(["sh", "-c", "cd \"$0\" && exec taskset 1 \"$@\""]).arg(kit.path());
        }
        inside.arg(BINARY).args(arguments);
        kit.command(inside).env("DOCKER_HOST", self.address()).args(["--ready-timeout", "150s"])
    }

    /// The names of deadheat's containers.
    fn containers(&self) -> Vec<String> {
        let words = ["ps", "--all", "--filter", "label=deadheat.run", "--format", "{{.Names}}"];
        let output = self.docker(&words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    /// Waits until a race has a container, and returns its name.
    fn wait_for_container(&self, race: &mut Running) -> String {
        let mut found = None;
        race.wait_for("a container", || {
            found = self.containers().pop();
            found.is_some()
        });
        found.unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let all = descendants(self.process.id());
        let _ = self.process.kill();
        let _ = self.process.wait();
        wait_until(PATIENCE, || all.iter().all(|one| !deadheat_testkit::is_alive(one.pid)));
        if let Some(group) = &self.group {
            cgroups_under(group, "").iter().rev().for_each(|inner| drop(fs::remove_dir(inner)));
            let _ = fs::remove_dir(group);
        }
    }
}

/// A study of a process and a container of the same server.
fn study(network: &str) -> String {
    let line = Value::from(deadheat_testkit::server_line(&["--json"]));
    format!(
        "[[contender]]\nname = \"process\"\ncommand = {line}\n\
         [[contender]]\nname = \"container\"\nimage = \"{IMAGE}\"\nengine = \"docker\"\ncommand = \"--json\"\n{network}\n\
         [[probe]]\npath = \"/x\"\n"
    )
}

fn race_a_container(groups: Groups, source: &str) -> Result<Daemon, String> {
    let daemon = Daemon::start(groups)?;
    let kit = kit();
    kit.file("study.toml", study(""));
    let race = daemon.deadheat(&kit, &["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE);
    let outcome = race.json_to("race.json").run();
    let json = outcome.json();
    let planned = &json["record"]["plan"]["contenders"][1];
    assert!(planned["container"]["engine"].as_str().unwrap().starts_with("docker "), "{planned}");
    assert_container_measured(&json, source);
    kit.assert_nothing_left();
    assert!(daemon.containers().is_empty(), "{:?}", daemon.containers());
    Ok(daemon)
}

#[test]
fn docker_containers_are_raced_and_removed_and_their_daemon_may_be_killed() {
    let _turn = turn();
    let daemon = match race_a_container(Groups::AsHere, "cpuacct") {
        Ok(daemon) => daemon,
        Err(why) => skip_loudly!("{why}"),
    };
    // Without its keepers, nothing ends the container.
    let kit = kit();
    kit.file("study.toml", study(""));
    let long = ["race", ".", "--epochs", "40", "--record", "r.jsonl"];
    let mut race = daemon.deadheat(&kit, &long).spawn();
    let name = daemon.wait_for_container(&mut race);
    kill_with_keepers(race);
    // A command of another test may see its group first, and end it.
    let outcome = daemon.deadheat(&kit, &["check", "."]).run();
    let was_removed = || !daemon.containers().contains(&name);
    assert!(
        wait_until(Duration::from_secs(20), was_removed),
        "{:?}\n{}",
        daemon.containers(),
        outcome.stderr
    );

    // A daemon that is killed leaves its containers running. Each ends with its contender.
    let kit = self::kit();
    kit.file("study.toml", study(""));
    let mut race = daemon.deadheat(&kit, &long).spawn();
    let name = daemon.wait_for_container(&mut race);
    let group = || leftover_cgroups(&name).iter().any(|group| cgroups_under(group, "").len() == 1);
    race.wait_for("its control group", group);
    let dockerd = descendants(daemon.process.id());
    let dockerd = dockerd.iter().find(|one| one.command.starts_with("dockerd")).unwrap();
    assert!(kill_9(dockerd.pid));
    race.wait().assert_stderr_has("out of the race: container ended with exit status");
    kit.assert_nothing_left();
    assert!(wait_until(PATIENCE, || leftover_cgroups(&name).is_empty()), "{:?}", leftover_cgroups(&name));
}

#[test]
fn with_control_groups_of_version_2_processes_and_containers_are_raced() {
    let _turn = turn();
    if let Err(why) = race_a_container(Groups::Two, "cpu.stat") {
        skip_loudly!("{why}");
    }
}

#[test]
fn containers_are_found_where_systemd_makes_their_control_groups() {
    let _turn = turn();
    if let Err(why) = race_a_container(Groups::Systemd, "cpu.stat") {
        skip_loudly!("{why}");
    }
}
