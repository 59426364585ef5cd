//! Hosts for tests of several machines: network namespaces of this machine, joined by a switch. An sshd listens on each.
//!
//! The hosts share this machine's processors, files, process ids and control groups. They have their own network, their own
//! login, and a home folder each. Everything about a bed carries the process id and start time of its owner, so that a later bed finds and
//! removes what a killed test left behind.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities};
use tempfile::TempDir;

use crate::network::{NAMES, Network, ip, kill_all, program, remove};
use crate::processes::{Process, start_time};
use crate::server::quote;
use crate::wait::wait_until;

/// What the names of namespaces and folders begin with. The owner's process id and start time and a number follow.
const PREFIX: &str = "deadheat-bed-";

/// How long a step may take that usually takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The programs that make a bed.
const PROGRAMS: [&str; 6] = ["ip", "tc", "nsenter", "ssh", "sshd", "ssh-keygen"];

/// Some hosts, the switch between them, and "here": a network for the commands that control the hosts. Dropping it kills everything that
/// runs in these networks and removes them.
///
/// ```no_run
/// use deadheat_testkit::bed_or_skip;
///
/// fn a_host_says_its_name() {
///     let bed = bed_or_skip!(2);
///     let output = bed.inside("ssh").args([bed.host(1).ssh_target(), "echo".into(), "hello".into()]).output().unwrap();
///     assert_eq!(output.stdout, b"hello\n");
/// }
/// ```
#[derive(Debug)]
pub struct Bed {
    name: String,
    folder: TempDir,
    switch: Network,
    here: Network,
    hosts: Vec<Host>,
}

/// Makes a [`Bed`] with this many hosts, or skips the rest of the test when this machine cannot have one. Use it in functions that return `()`.
#[macro_export]
macro_rules! bed_or_skip {
    ($hosts:expr) => {{
        if let Some(lacking) = $crate::Bed::lacking() {
            $crate::skip_loudly!("{lacking}");
        }
        $crate::Bed::new($hosts)
    }};
}

impl Bed {
    /// Why this machine cannot have a bed, if so.
    pub fn lacking() -> Option<String> {
        let needed = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        let is_root = rustix::process::geteuid().is_root();
        if !is_root || !capabilities(None).is_ok_and(|own| own.effective.contains(needed)) {
            return Some("hosts for tests need root, with CAP_NET_ADMIN and CAP_SYS_ADMIN".to_owned());
        }
        let missing: Vec<&str> = PROGRAMS.into_iter().filter(|name| program(name).is_none()).collect();
        (!missing.is_empty())
            .then(|| format!("hosts for tests need {}, which scripts/setup.sh installs", missing.join(", ")))
    }

    /// Makes hosts `h1` to `hN`, whose logins work when this returns. First it removes what beds of killed tests left behind.
    ///
    /// # Panics
    /// When this machine cannot have a bed ([`Bed::lacking`]), or when a step fails. What was made until then is removed.
    pub fn new(hosts: u8) -> Self {
        assert!((1..=200).contains(&hosts), "a bed has 1 to 200 hosts, and not {hosts}");
        if let Some(lacking) = Self::lacking() {
            panic!("{lacking}");
        }
        remove_leftovers();
        let name = new_name();
        let folder = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir();
        let folder = folder.expect("a temporary folder");
        let network = |part: &str| Network::named(format!("{name}-{part}"));
        let switch = network("switch");
        let host = |number: u8| {
            let host = format!("h{number}");
            Host {
                address: Ipv4Addr::new(10, 30, 0, number),
                network: network(&host),
                switch: switch.clone(),
                folder: folder.path().to_owned(),
                sshd: Mutex::new(None),
                name: host,
            }
        };
        let hosts = (1..=hosts).map(host).collect();
        let here = network("here");
        // Nothing but the folder exists yet. From here on, dropping the bed removes whatever there is, also when a step fails.
        let bed = Self { name, folder, switch, here, hosts };
        bed.make_files();
        let keys = bed.start_to_make_keys();
        bed.make_networks();
        keys.into_iter().for_each(must_succeed);
        bed.publish_keys();
        bed.hosts.iter().for_each(Host::start_sshd);
        bed.hosts.iter().for_each(Host::wait_for_sshd);
        bed.here.run(|| bed.hosts.iter().for_each(Host::must_accept));
        bed
    }

    /// What the names of this bed's namespaces (`/run/netns`) and of its folder begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All hosts: `h1`, `h2` and so on.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The host with this number, counted from 1.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn host(&self, number: usize) -> &Host {
        &self.hosts[number - 1]
    }

    /// The bed's own folder: keys, configurations, logs, and the hosts' home folders.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A configuration of ssh with an entry for each host, for `ssh -F`. It knows the hosts' keys and accepts no others, and never asks.
    pub fn ssh_config(&self) -> PathBuf {
        self.folder().join("ssh_config")
    }

    /// A program to be run "here", from where all hosts can be reached. `ssh`, `scp` and `sftp` use [`Bed::ssh_config`] there, because programs
    /// of these names come first in `PATH`.
    pub fn inside(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.here.command(program);
        command.env("PATH", path_with_ssh(self.folder()));
        command
    }

    /// Calls `act` on a thread that is "here". Sockets that it opens stay "here", so that the test may use them afterwards.
    ///
    /// # Panics
    /// When `act` does.
    pub fn run_inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        self.here.run(act)
    }

    fn networks(&self) -> Vec<&Network> {
        self.hosts.iter().map(|host| &host.network).chain([&self.here, &self.switch]).collect()
    }

    /// Writes everything that needs no key. The key exchange is one that costs little CPU time.
    fn make_files(&self) {
        let folder = self.folder();
        let mut config = String::new();
        for host in &self.hosts {
            writeln!(config, "Host {}\n    HostName {}", host.name, host.address).expect("text");
            fs::create_dir_all(host.home()).expect("a home folder");
            fs::write(host.file("sshd_config"), host.sshd_config()).expect("a configuration of sshd");
        }
        config += &format!(
            "Host *\n    User root\n    IdentityFile \"{folder}/user_key\"\n    IdentitiesOnly yes\n    IdentityAgent none\n    \
             UserKnownHostsFile \"{folder}/known_hosts\"\n    GlobalKnownHostsFile none\n    StrictHostKeyChecking yes\n    BatchMode yes\n    \
             KexAlgorithms curve25519-sha256\n",
            folder = folder.display()
        );
        fs::write(self.ssh_config(), config).expect("a configuration of ssh");
        fs::create_dir(folder.join("bin")).expect("a folder for programs");
        let config = self.ssh_config();
        for name in ["ssh", "scp", "sftp"] {
            let Some(program) = program(name) else { continue };
            let words = [&program, &config].map(|path| quote(path.to_str().expect("a path in UTF-8")));
            let file = folder.join("bin").join(name);
            fs::write(&file, format!("#!/bin/sh\nexec {} -F {} \"$@\"\n", words[0], words[1]))
                .expect("a program");
            fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("its permissions");
        }
        // sshd insists on this empty folder, which usually a service makes. It stays, because other servers may use it.
        fs::create_dir_all("/run/sshd").expect("/run/sshd");
    }

    /// One key for each host and one for the user, all made at the same time.
    fn start_to_make_keys(&self) -> Vec<(Command, Child)> {
        let files = self.hosts.iter().map(|host| host.file("host_key"));
        let make = |file: PathBuf| {
            let mut command = Command::new(program("ssh-keygen").expect("ssh-keygen"));
            command.args(["-q", "-t", "ed25519", "-N", "", "-C", "deadheat-bed", "-f"]).arg(file);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            (command, child)
        };
        files.chain([self.folder().join("user_key")]).map(make).collect()
    }

    /// The namespaces, and a pair of interfaces between the switch and each of the others.
    fn make_networks(&self) {
        let switch = self.switch.name();
        let ends = || {
            let hosts = self.hosts.iter().map(|host| (host.name.as_str(), host.address, &host.network));
            hosts.chain([("here", Ipv4Addr::new(10, 30, 0, 250), &self.here)])
        };
        let mut commands = String::new();
        for network in self.networks() {
            writeln!(commands, "netns add {}", network.name()).expect("text");
        }
        for (port, _, network) in ends() {
            let own = network.name();
            writeln!(commands, "link add eth0 netns {own} type veth peer name {port} netns {switch}")
                .expect("text");
        }
        ip(&commands);
        // No address: the switch only passes on what the others send.
        let mut commands = "link add bridge type bridge\nlink set bridge up\n".to_owned();
        for (port, ..) in ends() {
            writeln!(commands, "link set {port} master bridge up").expect("text");
        }
        self.switch.ip(&commands);
        for (_, address, network) in ends() {
            network.ip(&format!("link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\n"));
        }
    }

    /// Tells the user's side the hosts' keys, and the hosts the user's.
    fn publish_keys(&self) {
        let read = |file: PathBuf| fs::read_to_string(&file).expect("a key just made");
        let mut known = String::new();
        for host in &self.hosts {
            let key = read(host.file("host_key.pub"));
            write!(known, "{},{} {key}", host.name, host.address).expect("text");
        }
        let folder = self.folder();
        fs::write(folder.join("known_hosts"), known).expect("the hosts' keys");
        fs::copy(folder.join("user_key.pub"), folder.join("authorized_keys")).expect("the user's key");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let networks = self.networks();
        let mut complaints = Vec::new();
        match kill_all(&networks, |_| true) {
            Ok(()) => self.hosts.iter().for_each(Host::reap),
            Err(left) => complaints.push(format!("processes are left behind:\n{}", listed(&left))),
        }
        if let Err(left) = remove(&networks) {
            complaints.push(format!("namespaces are left behind: {}", left.join(", ")));
        }
        for complaint in complaints {
            // A second panic would abort all tests.
            if thread::panicking() {
                say(&complaint);
            } else {
                panic!("{complaint}");
            }
        }
    }
}

/// A host of a [`Bed`].
#[derive(Debug)]
pub struct Host {
    name: String,
    address: Ipv4Addr,
    network: Network,
    switch: Network,
    /// The bed's folder.
    folder: PathBuf,
    /// The listener, while it runs.
    sshd: Mutex<Option<Child>>,
}

impl Host {
    /// Its name: `h1`, `h2` and so on. Only ssh resolves it; everything else needs [`Host::address`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What ssh takes as the destination: `root@h1`.
    pub fn ssh_target(&self) -> String {
        format!("root@{}", self.name)
    }

    /// Its address, which only its bed knows.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The home folder of its logins. They begin there.
    pub fn home(&self) -> PathBuf {
        self.file("home")
    }

    /// What its sshd has written to its log.
    pub fn sshd_log(&self) -> String {
        let bytes = fs::read(self.file("sshd.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A program to be run on this host, without ssh: in its network and its home folder, with the environment of the test. `ssh` reaches the other hosts, as
    /// with [`Bed::inside`].
    pub fn exec(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.network.command(program);
        command.env("PATH", path_with_ssh(&self.folder)).env("HOME", self.home()).current_dir(self.home());
        command
    }

    /// Calls `act` on a thread that is in this host's network. Sockets that it opens stay there, so that the test may use them afterwards.
    ///
    /// # Panics
    /// When `act` does.
    pub fn run_inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        self.network.run(act)
    }

    /// Everything that runs on this host, except the sshd that listens. The sshd of each open session is included.
    pub fn processes(&self) -> Vec<Process> {
        let listener = self.sshd().as_ref().map(Child::id);
        let mut found = self.network.processes();
        found.retain(|process| Some(process.pid) != listener);
        found
    }

    /// Kills the sshd that listens, and those of all sessions. What the sessions started lives on.
    ///
    /// # Panics
    /// When they do not die.
    pub fn kill_sshd(&self) {
        let is_sshd = |pid: u32| {
            let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            // The sshd of a session has a longer name since OpenSSH 9.8.
            program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sshd"))
        };
        self.kill(is_sshd);
    }

    /// As if this host lost its power: it falls silent, and then all its processes are killed. Control groups of deadheat that they were in go, too.
    /// Others see no connection end.
    ///
    /// # Panics
    /// When the processes do not die.
    pub fn power_off(&self) {
        self.cut_link();
        self.kill(|_| true);
    }

    /// Cuts the host off the others, in both directions, by taking its port off the bridge. Nothing tells either side: interfaces stay up, and connections do
    /// not end.
    ///
    /// # Panics
    /// When `ip` fails.
    pub fn cut_link(&self) {
        self.switch.ip(&format!("link set {} nomaster\n", self.name));
    }

    /// Undoes [`Host::cut_link`].
    ///
    /// # Panics
    /// When `ip` fails.
    pub fn mend_link(&self) {
        self.switch.ip(&format!("link set {} master bridge\n", self.name));
    }

    /// Limits the host's link to this rate in bits per second, in each direction by itself. The link then holds at most what it
    /// sends in 100 ms, and drops the rest.
    ///
    /// # Panics
    /// When `tc` fails.
    pub fn shape_link(&self, rate_bits_per_s: u64) {
        // At least five packets, and what a fast link sends in 2 ms, so that the kernel's timers do not limit the rate.
        let burst_bytes = (rate_bits_per_s / 8 / 500).max(8192);
        let queue = format!("root tbf rate {rate_bits_per_s}bit burst {burst_bytes} latency 100ms");
        self.switch.tc(&format!("qdisc replace dev {} {queue}", self.name));
        self.network.tc(&format!("qdisc replace dev eth0 {queue}"));
    }

    /// Undoes [`Host::shape_link`].
    ///
    /// # Panics
    /// When `tc` fails, also when the link has no limit.
    pub fn unshape_link(&self) {
        self.switch.tc(&format!("qdisc delete dev {} root", self.name));
        self.network.tc("qdisc delete dev eth0 root");
    }

    /// A file of this host, in the bed's folder.
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(&self.name).join(name)
    }

    fn sshd(&self) -> MutexGuard<'_, Option<Child>> {
        self.sshd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sshd_config(&self) -> String {
        let path = |name: &str| self.file(name).display().to_string();
        // Without PAM, sshd refuses an account whose password is locked, as that of root is on some systems.
        let shadow = fs::read_to_string("/etc/shadow").unwrap_or_default();
        let pam = if shadow.lines().any(|line| line.starts_with("root:!")) { "yes" } else { "no" };
        // Each login is a session of its own. Where the kernel divides processors among sessions, it gets the priority that the tests have.
        let mut config = format!(
            r#"ListenAddress {address}
HostKey "{host_key}"
PidFile "{pid_file}"
AuthorizedKeysFile "{folder}/authorized_keys"
StrictModes no
PermitRootLogin prohibit-password
AuthenticationMethods publickey
UsePAM {pam}
UseDNS no
PrintMotd no
MaxStartups 200
LogLevel VERBOSE
SetEnv "HOME={home}" "DEADHEAT_TESTKIT_HOST={name}"
ForceCommand (nice > /proc/self/autogroup) 2> /dev/null; cd && if [ -n "$SSH_ORIGINAL_COMMAND" ]; then exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"; else exec "$SHELL" -l; fi
"#,
            address = self.address,
            host_key = path("host_key"),
            pid_file = path("sshd.pid"),
            folder = self.folder.display(),
            home = path("home"),
            name = self.name,
        );
        let sftp =
            ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];
        if let Some(sftp) = sftp.into_iter().find(|path| Path::new(path).exists()) {
            writeln!(config, "Subsystem sftp {sftp}").expect("text");
        }
        config
    }

    fn start_sshd(&self) {
        let log = File::create(self.file("sshd.log")).expect("a log");
        let mut command = self.network.command(program("sshd").expect("sshd"));
        command.arg("-D").arg("-e").arg("-f").arg(self.file("sshd_config"));
        command.env_clear().current_dir("/").stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a file descriptor")).stderr(log);
        *self.sshd() = Some(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
    }

    /// sshd writes its process id once it listens.
    fn wait_for_sshd(&self) {
        let pid_file = self.file("sshd.pid");
        let is_up = || fs::read_to_string(&pid_file).is_ok_and(|text| text.ends_with('\n'));
        let has_ended = || {
            let mut sshd = self.sshd();
            sshd.as_mut().is_none_or(|child| child.try_wait().expect("the state of a child").is_some())
        };
        wait_until(PATIENCE, || is_up() || has_ended());
        assert!(is_up(), "sshd of {} does not listen:\n{}", self.name, self.sshd_log());
    }

    /// The link carries packets and sshd accepts connections. To be called "here".
    fn must_accept(&self) {
        let connected = TcpStream::connect_timeout(&(self.address, 22).into(), PATIENCE);
        connected
            .unwrap_or_else(|error| panic!("{} cannot be reached: {error}\n{}", self.name, self.sshd_log()));
    }

    fn kill(&self, is_wanted: impl Fn(u32) -> bool) {
        if let Err(left) = kill_all(&[&self.network], is_wanted) {
            panic!("processes of {} do not die:\n{}", self.name, listed(&left));
        }
        self.reap();
    }

    /// Waits for the sshd that was killed. Otherwise it would stay as a zombie.
    fn reap(&self) {
        if let Some(mut child) = self.sshd().take() {
            let _ = child.wait();
        }
    }
}

/// `PATH` with a bed's own ssh in front.
fn path_with_ssh(folder: &Path) -> OsString {
    let mut path = folder.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Waits for the end of a program that was started before.
fn must_succeed((command, child): (Command, Child)) {
    let output = child.wait_with_output().expect("the end of a child");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
}

/// A name that no other bed of this machine has.
fn new_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let pid = std::process::id();
    let started = start_time(pid).expect("this process in /proc");
    format!("{PREFIX}{pid}-{started}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The bed that a namespace or folder of this name belongs to, if its owner no longer lives.
fn orphaned_bed(name: &str) -> Option<String> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(4, '-');
    let (pid, started, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    (start_time(pid) != Some(started)).then(|| format!("{PREFIX}{pid}-{started}-{number}"))
}

/// Removes what the beds of killed tests left behind, and names those beds. Others may do the same at the same time.
///
/// # Panics
/// When something is still there after some seconds.
fn remove_leftovers() {
    let mut said = BTreeSet::new();
    let mut left = Vec::new();
    wait_until(PATIENCE, || {
        let orphaned = |folder: &Path| -> Vec<(String, PathBuf)> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names =
                entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
            names.filter_map(|(name, path)| Some((orphaned_bed(&name)?, path))).collect()
        };
        let networks = orphaned(Path::new(NAMES));
        let folders = orphaned(&std::env::temp_dir());
        left = networks.iter().chain(&folders).map(|(_, path)| path.display().to_string()).collect();
        for (bed, _) in networks.iter().chain(&folders) {
            if said.insert(bed.clone()) {
                say(&format!("REMOVES {bed}: hosts of a test that was killed"));
            }
        }
        let networks: Vec<Network> = networks
            .iter()
            .filter_map(|(_, path)| Some(Network::named(path.file_name()?.to_str()?)))
            .collect();
        let networks: Vec<&Network> = networks.iter().collect();
        // What fails here is still there in the next attempt.
        let _ = kill_all(&networks, |_| true);
        let _ = remove(&networks);
        for (_, folder) in folders {
            let _ = fs::remove_dir_all(folder);
        }
        left.is_empty()
    });
    assert!(left.is_empty(), "hosts of a killed test cannot be removed: {}", left.join(", "));
}

fn listed(processes: &[Process]) -> String {
    let lines: Vec<String> = processes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Writes to standard error in a way that the test runner does not capture.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
