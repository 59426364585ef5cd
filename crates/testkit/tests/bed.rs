//! Hosts for tests: they reach one another, links and machines fail as told, and nothing outlives a bed.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use deadheat_testkit::{Bed, Host, Kit, bed_or_skip, is_alive, kill_9, wait_until};

const LIMIT: Duration = Duration::from_secs(60);
/// How long to wait for something that must not arrive.
const MOMENT: Duration = Duration::from_millis(300);

#[track_caller]
fn succeeded(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The files that belong to a bed: its folder and the names of its namespaces.
fn traces(name: &str) -> Vec<PathBuf> {
    let folders = [PathBuf::from("/run/netns"), std::env::temp_dir()];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let belongs =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{name}-"));
    entries.map(|entry| entry.path()).filter(belongs).collect()
}

/// Starts a program on the host that outlives its session, and returns its process id.
fn start_detached(bed: &Bed, host: &Host) -> u32 {
    let line = "setsid sleep 600 > /dev/null 2>&1 < /dev/null & echo $!";
    let output = bed.inside("ssh").args([&host.ssh_target(), line]).output().unwrap();
    let pid = succeeded(&output).trim().parse().unwrap();
    assert!(wait_until(LIMIT, || host.processes().iter().any(|process| process.command == "sleep 600")));
    pid
}

/// A server on the host that sends back what it gets, and a connection to it from "here".
fn echo(bed: &Bed, host: &Host) -> TcpStream {
    let listener = host.run_inside(|| TcpListener::bind((host.address(), 0)).unwrap());
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut other = connection.try_clone().unwrap();
        let _ = std::io::copy(&mut connection, &mut other);
    });
    bed.run_inside(|| TcpStream::connect_timeout(&address, LIMIT).unwrap())
}

/// Whether a byte comes within `limit`. Fails when the connection ends.
#[track_caller]
fn byte_comes(connection: &mut TcpStream, limit: Duration) -> bool {
    connection.set_read_timeout(Some(limit)).unwrap();
    match connection.read_exact(&mut [0]) {
        Ok(()) => true,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
        Err(error) => panic!("the connection ended: {error}"),
    }
}

#[test]
fn hosts_reach_one_another_by_ssh() {
    let bed = bed_or_skip!(3);
    let [first, second, third] = bed.hosts() else { panic!("three hosts") };
    assert_eq!((third.name(), third.ssh_target().as_str()), ("h3", "root@h3"));
    // By hand, with the configuration alone; by the name; by the address; from one host to the next.
    let mut plain = bed.inside("/usr/bin/ssh");
    if !Path::new("/usr/bin/ssh").exists() {
        plain = bed.inside("ssh");
    }
    let script = "pwd; echo $SSH_CONNECTION | cut -d' ' -f3; cat";
    let mut child = plain
        .arg("-F")
        .arg(bed.ssh_config())
        .args(["h1", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"what is sent\n").unwrap();
    let expected = format!("{}\n{}\nwhat is sent\n", first.home().display(), first.address());
    assert_eq!(succeeded(&child.wait_with_output().unwrap()), expected);
    let home = |text: String| PathBuf::from(text.trim());
    let output = bed.inside("ssh").args([&second.address().to_string(), "echo ~"]).output().unwrap();
    assert_eq!(home(succeeded(&output)), second.home());
    let output = second.exec("ssh").args(["h3", "pwd"]).output().unwrap();
    assert_eq!(home(succeeded(&output)), third.home());
    fs::write(bed.folder().join("note"), "by sftp").unwrap();
    succeeded(&bed.inside("scp").arg("-q").arg(bed.folder().join("note")).arg("h3:").output().unwrap());
    assert_eq!(fs::read_to_string(third.home().join("note")).unwrap(), "by sftp");
    let status = bed.inside("ssh").args(["h1", "exit 7"]).status().unwrap();
    assert_eq!(status.code(), Some(7), "the status of a command comes back");
    // A host's loopback is its own, and so is "here".
    let listener = first.run_inside(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    assert!(first.run_inside(|| TcpStream::connect(address)).is_ok());
    assert!(second.run_inside(|| TcpStream::connect(address)).is_err());
    assert!(bed.run_inside(|| TcpStream::connect(address)).is_err());
    assert!(wait_until(LIMIT, || bed.hosts().iter().all(|host| host.processes().is_empty())));
}

#[test]
fn a_kit_runs_its_binary_inside() {
    let bed = bed_or_skip!(1);
    let kit = Kit::new("/bin/sh");
    let outcome = kit.deadheat_inside(&bed, ["-c", "ssh h1 'echo $DEADHEAT_TESTKIT_HOST'; pwd"]).run();
    outcome.assert_status(0);
    assert_eq!(outcome.stdout, format!("h1\n{}\n", kit.path().display()));
}

#[test]
fn a_cut_link_is_silent_until_it_is_mended() {
    let bed = bed_or_skip!(2);
    let (cut, other) = (bed.host(1), bed.host(2));
    let (mut to_cut, mut to_other) = (echo(&bed, cut), echo(&bed, other));
    to_cut.write_all(b"a").unwrap();
    assert!(byte_comes(&mut to_cut, LIMIT));
    cut.cut_link();
    to_cut.write_all(b"b").unwrap();
    to_other.write_all(b"b").unwrap();
    assert!(byte_comes(&mut to_other, LIMIT), "the other host's link is not cut");
    assert!(!byte_comes(&mut to_cut, MOMENT), "a byte came through a cut link");
    let ssh = SocketAddr::from((cut.address(), 22));
    assert!(bed.run_inside(|| TcpStream::connect_timeout(&ssh, MOMENT)).is_err());
    cut.mend_link();
    assert!(byte_comes(&mut to_cut, LIMIT), "the connection goes on");
    succeeded(&bed.inside("ssh").args(["h1", "true"]).output().unwrap());
}

#[test]
fn a_shaped_link_has_its_rate_in_both_directions() {
    const BYTES: usize = 400_000;
    const RATE_BITS_PER_S: u64 = 16_000_000;
    let bed = bed_or_skip!(1);
    let host = bed.host(1);
    let transfer = |to_host: bool| {
        let listener = host.run_inside(|| TcpListener::bind((host.address(), 0)).unwrap());
        let address = listener.local_addr().unwrap();
        let here = bed.run_inside(|| TcpStream::connect_timeout(&address, LIMIT).unwrap());
        let there = listener.accept().unwrap().0;
        let (mut sender, mut receiver) = if to_host { (here, there) } else { (there, here) };
        let begun = Instant::now();
        let sending = thread::spawn(move || {
            sender.write_all(&vec![1; BYTES]).unwrap();
            sender.shutdown(Shutdown::Write).unwrap();
            sender
        });
        assert_eq!(std::io::copy(&mut receiver, &mut std::io::sink()).unwrap(), BYTES as u64);
        drop(sending.join().unwrap());
        begun.elapsed().as_secs_f64()
    };
    host.shape_link(RATE_BITS_PER_S);
    let shortest_s = BYTES as f64 * 8.0 / RATE_BITS_PER_S as f64;
    for to_host in [true, false] {
        let took_s = transfer(to_host);
        // The burst passes at once, and headers count. The upper limit only says that the link carries traffic at about this rate.
        assert!(took_s > 0.85 * shortest_s, "{took_s} s, to the host: {to_host}");
        assert!(took_s < 10.0 * shortest_s, "{took_s} s, to the host: {to_host}");
    }
    host.unshape_link();
    host.shape_link(1_000_000_000);
    let fast_s = transfer(true);
    assert!(fast_s < shortest_s, "{fast_s} s over a link of another rate");
}

#[test]
fn a_killed_sshd_ends_sessions_and_not_what_they_started() {
    let bed = bed_or_skip!(2);
    let host = bed.host(1);
    let detached = start_detached(&bed, host);
    let session = bed.inside("ssh").args(["h1", "exec sleep 500"]).stderr(Stdio::piped()).spawn().unwrap();
    let commands = || host.processes().into_iter().map(|process| process.command).collect::<Vec<_>>();
    assert!(wait_until(LIMIT, || commands().contains(&"sleep 500".to_owned())), "{:?}", commands());
    assert!(commands().iter().any(|command| command.starts_with("sshd")), "{:?}", commands());
    host.kill_sshd();
    assert_eq!(session.wait_with_output().unwrap().status.code(), Some(255), "ssh has lost its connection");
    assert!(is_alive(detached));
    let mut left = commands();
    left.sort();
    assert_eq!(left, ["sleep 500", "sleep 600"]);
    let refused = bed.run_inside(|| TcpStream::connect((host.address(), 22))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    succeeded(&bed.inside("ssh").args(["h2", "true"]).output().unwrap());
}

#[test]
fn a_host_without_power_is_silent_and_empty() {
    let bed = bed_or_skip!(2);
    let host = bed.host(1);
    let detached = start_detached(&bed, host);
    let listener = host.exec("sleep").arg("700").spawn().unwrap();
    let mut connection = bed.run_inside(|| TcpStream::connect((host.address(), 22)).unwrap());
    assert!(byte_comes(&mut connection, LIMIT), "the greeting of sshd begins");
    let group = Path::new("/sys/fs/cgroup/freezer").join(format!("deadheat-{detached}-{}", bed.name()));
    if fs::create_dir(&group).is_ok() {
        fs::write(group.join("cgroup.procs"), detached.to_string()).unwrap();
        fs::write(group.join("freezer.state"), "FROZEN").unwrap();
    }
    host.power_off();
    assert_eq!((host.processes(), is_alive(detached)), (vec![], false));
    assert!(!group.exists(), "{}", group.display());
    assert_eq!(listener.wait_with_output().unwrap().status.code(), None, "it was killed");
    let mut rest = [0; 200];
    connection.set_read_timeout(Some(MOMENT)).unwrap();
    let silence = loop {
        match connection.read(&mut rest) {
            Ok(0) => panic!("the connection ended"),
            Ok(_) => {} // the rest of the greeting
            Err(error) => break error,
        }
    };
    assert!(matches!(silence.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
    succeeded(&bed.inside("ssh").args(["h2", "true"]).output().unwrap());
}

#[test]
fn nothing_is_left_of_a_bed() {
    let mut seen = None;
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let bed = bed_or_skip!(2);
        let detached = start_detached(&bed, bed.host(2));
        let here = bed.inside("sleep").arg("800").spawn().unwrap();
        // Before that, the program that enters the network runs, and is not in it yet.
        let name = format!("/proc/{}/comm", here.id());
        assert!(wait_until(LIMIT, || fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")));
        assert_eq!(traces(bed.name()).len(), 2 + 3, "two hosts, switch, here, folder");
        seen = Some((bed.name().to_owned(), detached, here));
        panic!("a test that fails");
    }));
    let Some((name, detached, mut here)) = seen else {
        assert!(failed.is_ok(), "neither skipped nor made");
        return;
    };
    assert!(failed.is_err());
    assert_eq!(traces(&name), Vec::<PathBuf>::new());
    assert!(!is_alive(detached));
    assert_eq!(here.wait().unwrap().code(), None, "it was killed");
}

/// The names of the variables that tell [`makes_a_bed_and_waits_to_be_killed`] where to write.
const TELL: &str = "DEADHEAT_TESTKIT_TELL";

#[test]
#[ignore = "the test below starts and kills it"]
fn makes_a_bed_and_waits_to_be_killed() {
    let Some(file) = std::env::var_os(TELL) else { return };
    let bed = Bed::new(2);
    let detached = start_detached(&bed, bed.host(1));
    fs::write(file, format!("{} {detached}\n", bed.name())).unwrap();
    thread::sleep(LIMIT);
}

#[test]
fn a_bed_removes_what_a_killed_one_left() {
    // Makes sure that this machine can have one.
    drop(bed_or_skip!(1));
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bed::makes_a_bed_and_waits_to_be_killed", "--ignored"])
        .env(TELL, &told)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(&told).unwrap_or_default();
    let is_there = wait_until(LIMIT, || read().ends_with('\n'));
    let text = read();
    let (name, detached) = text.trim().split_once(' ').unwrap_or_default();
    let detached = detached.parse().unwrap_or(u32::MAX);
    let before = (traces(name).len(), is_alive(detached));
    kill_9(owner.id());
    owner.wait().unwrap();
    assert!(is_there, "the other test makes no bed");
    assert_eq!(before, (2 + 3, true), "others remove nothing while the owner lives");
    // A test beside this one may have been faster.
    let next = Bed::new(1);
    assert_eq!(traces(name), Vec::<PathBuf>::new());
    assert!(!is_alive(detached));
    assert!(!traces(next.name()).is_empty());
}
