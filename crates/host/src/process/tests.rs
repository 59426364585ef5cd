//! Owns: tests of single starts, with keepers that do nothing. Must not know: the schedule.

use std::os::fd::OwnedFd;

use super::*;
use crate::clock::SystemClock;

#[test]
fn what_a_keeper_could_not_end_is_told() {
    let heard = |left: &[i32]| {
        let (first, _started) = mpsc::channel();
        let said = [Message::Exited { raw: 9 }, Message::Gone { left: left.into() }]
            .map(|message| serde_json::to_string(&message).unwrap());
        let exited = Mutex::new(None);
        let immortal = listen_to(said.join("\n").as_bytes(), &exited, &first);
        assert_eq!(exited.into_inner().unwrap().map(in_words).as_deref(), Some("signal 9"));
        immortal
    };
    assert_eq!(heard(&[]), None);
    let run = RunId::current();
    run.left_behind().note("bun", &heard(&[71, 72]).unwrap());
    let told = run.take_left_behind();
    assert_eq!((told.len(), told[0].code.as_str()), (1, "not-ended"));
    assert!(told[0].remedy.contains("kill -9 71 72"), "{told:?}");
    assert_eq!(run.take_left_behind(), []);
}

/// A process that began this long ago and still runs, with a keeper that does nothing.
fn begun(ago: Duration) -> LocalProcess {
    kept_by(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap(), ago)
}

/// The same with this keeper.
fn kept_by(mut keeper: Child, ago: Duration) -> LocalProcess {
    LocalProcess {
        name: "bun".into(),
        address: Address::Unix("/nowhere/at/all".into()),
        log: "/nowhere/at/all.log".into(),
        stdin: keeper.stdin.take(),
        keeper,
        group: None,
        id_file: None,
        is_dockers: false,
        inner: OnceLock::new(),
        watcher: OnceLock::new(),
        cpus: Vec::new(),
        proxies: OnceLock::new(),
        instructions: None,
        profiler: Err(ProfileError::NotStarted),
        listener: None,
        exited: Arc::default(),
        begun_ns: now_ns() - ago.as_nanos() as u64,
        most_cpu_ns: AtomicU64::new(0),
    }
}

#[test]
fn a_start_is_timed_from_when_its_process_began() {
    let (old, tries) = (Duration::from_secs(5), std::cell::Cell::new(0));
    let answers = |_| {
        tries.set(tries.get() + 1);
        if tries.get() < 3 { Err("refused".to_owned()) } else { Ok(7) }
    };
    let (value, took) =
        wait_ready(&begun(old), &SystemClock::start(), 2 * old, &|| false, &mut |_| {}, answers, |_| None)
            .unwrap();
    assert_eq!((value, tries.get()), (7, 3));
    assert!(took >= old, "{took:?}");
    let late = wait_ready(
        &begun(old),
        &SystemClock::start(),
        old,
        &|| false,
        &mut |_| {},
        |_| Err::<(), _>("refused".to_owned()),
        |()| None,
    );
    assert!(matches!(late, Err(StartError::NotReady { last, .. }) if last == "refused; it has no process"));
}

/// A person need not wait for the end of the patience to learn of a fixed port.
#[test]
fn a_fixed_port_is_noticed_while_its_server_is_waited_for() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let noticed_after = |age: Duration, address: Address| {
        // Its `sleep` has the listener as its standard output.
        let mut shell = Command::new("sh");
        shell.arg("-c").arg("sleep 60 & read line; kill $!").stdin(Stdio::piped());
        shell.stdout(OwnedFd::from(listener.try_clone().unwrap()));
        let mut process = kept_by(shell.spawn().unwrap(), age);
        process.address = address;
        while process.processes().is_empty() {
            std::thread::yield_now();
        }
        let (mut said, mut tries) = (Vec::new(), 0);
        let ask = |_| {
            tries += 1;
            if tries < 4 { Err("refused".to_owned()) } else { Ok(()) }
        };
        let (clock, patience) = (SystemClock::start(), Duration::MAX);
        let mut notice = |text: &str| said.push(text.to_owned());
        wait_ready(&process, &clock, patience, &|| false, &mut notice, ask, |()| None).unwrap();
        said
    };
    let other = Address::Tcp(([127, 0, 0, 1], 1).into());
    let said = noticed_after(LISTENS_BY, other.clone());
    assert_eq!(said, [format!("it listens on port {port}, not on 1 (PORT)")]);
    assert_eq!(noticed_after(LISTENS_BY / 2, other), Vec::<String>::new());
    let same = Address::Tcp(listener.local_addr().unwrap());
    assert_eq!(noticed_after(LISTENS_BY, same), Vec::<String>::new());
}

#[test]
fn a_wrong_answer_is_none_yet() {
    let (old, mut asked) = (Duration::from_secs(5), 0);
    let statuses = |_| {
        asked += 1;
        Ok([404, 500, 200, 404][asked - 1])
    };
    let wrong = |status: &u16| (*status != 200).then(|| format!("status {status} instead of 200"));
    let (status, _) =
        wait_ready(&begun(old), &SystemClock::start(), 2 * old, &|| false, &mut |_| {}, statuses, wrong)
            .unwrap();
    assert_eq!((status, asked), (200, 3));
    let never =
        wait_ready(&begun(old), &SystemClock::start(), old, &|| false, &mut |_| {}, |_| Ok(404), wrong)
            .unwrap_err()
            .to_string();
    assert!(never.starts_with("bun gave no right answer within 5 s: status 404 instead of 200"), "{never}");
}

/// A start of 20 ms or more is measured to 1 %, and the first half minute takes at most a few thousand attempts.
#[test]
fn tries_are_dense_where_starts_are_fast_and_few_where_they_are_slow() {
    let (mut age, mut tries) = (Duration::from_millis(1), 0);
    while age < Duration::from_secs(30) {
        let pause = pause(age);
        assert!(age < Duration::from_millis(20) || pause <= age / 100, "{pause:?} at {age:?}");
        assert!(pause >= Duration::from_micros(200), "{pause:?} at {age:?}");
        age += pause;
        tries += 1;
    }
    assert!(tries < 7_000, "{tries}");
}

#[test]
fn placeholders_are_replaced_and_nothing_else() {
    let values = BTreeMap::from([("port".into(), "81".into()), ("db.port".into(), "90".into())]);
    assert_eq!(
        fill("a {port} ${PORT} {db.port} {x} '{print $1}'", &values),
        "a 81 ${PORT} 90 {x} '{print $1}'"
    );
    assert_eq!(fill("${port} {{port}} {port", &values), "${port} {81} {port");
}

#[test]
fn a_contenders_own_variables_win_over_deadheats() {
    let values = BTreeMap::from([("port".into(), "81".into()), ("key".into(), String::new())]);
    let own = [("KEY", "mine at {port}"), ("PORT", "3000")];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let own: &BTreeMap<String, String> = &own;
    let all: BTreeMap<String, String> = environment(own, &values).into_iter().collect();
    assert_eq!((all["KEY"].as_str(), all["PORT"].as_str()), ("mine at 81", "81"));
}

#[test]
fn a_silent_log_is_said_to_be_silent() {
    assert!(tail(Path::new("/nowhere/at/all")).contains("printed nothing"));
}

#[test]
fn only_the_last_lines_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::write(&log, (0..50).map(|n| format!("line {n}\n")).collect::<String>()).unwrap();
    let text = tail(&log);
    assert!(text.contains("line 49") && text.contains("line 38") && !text.contains("line 37"));
}

#[test]
fn an_engine_is_told_where_containers_go() {
    use crate::cgroup::{Cgroup, Hierarchy};
    use crate::process::container::Place;

    let mounts = "cgroup /c/freezer cgroup rw,freezer 0 0\ncgroup2 /u cgroup2 rw 0 0\n";
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("c/freezer/job")).unwrap();
    let here = Hierarchy::parse(mounts, "6:freezer:/job\n", root.path());
    let one = Cgroup::V1 { freezer: "/f".into(), cpuacct: "/c".into(), more: Vec::new() };
    let folder = root.path().join("u/user/g");
    std::fs::create_dir_all(&folder).unwrap();
    let two = Cgroup::V2 { folder: folder.clone() };
    let told = |command: &str, group: Option<&Cgroup>, place: Place| {
        let order = KeeperOrder {
            id_file: Some("/id".into()),
            command: command.into(),
            folder: "/".into(),
            env: vec![],
            log: "/log".into(),
            cpus: vec![0, 3],
            group: "deadheat-1".into(),
            room: None,
            limits: Limits::default(),
            ending: Ending::default(),
            remove_maps: false,
            grace_ms: 0,
        };
        let told = keeper::told(&order, &here, group, |_, _| place);
        let options = told.variables.into_iter().map(|(_, option)| option).collect::<Vec<_>>().join(" ");
        (options, told.apart)
    };
    let (podman, docker, below) = ("podman run x", "docker run x", Place::Below);
    for (command, group, place, options, apart) in [
        (
            podman,
            &one,
            below,
            "--cgroup-manager=cgroupfs --cgroup-parent=/job/deadheat-1 --cpuset-cpus=0,3",
            false,
        ),
        (docker, &one, below, "--cgroup-parent=/job/deadheat-1 --cpuset-cpus=0,3", false),
        (podman, &two, below, "--cgroups=split", false),
        (docker, &two, below, "--cgroup-parent=/user/g", true),
        (docker, &two, Place::System, "/id --cgroup-parent=system.slice --cpuset-cpus=0,3", false),
    ] {
        assert_eq!(told(command, Some(group), place), (options.to_owned(), apart), "{command} {group:?}");
    }
    for (command, group) in [(podman, None), ("node x", Some(&one))] {
        assert_eq!(told(command, group, below), (String::new(), false), "{command}");
    }
    std::fs::write(folder.join("cgroup.controllers"), "cpu cpuset\n").unwrap();
    assert_eq!(told(podman, Some(&two), below).0, "--cgroups=split --cpuset-cpus=0,3");
    assert_eq!(told(docker, Some(&two), below).0, "--cgroup-parent=/user/g --cpuset-cpus=0,3");
    assert_eq!(told("docker run --cpuset-cpus 1 x", Some(&two), below).0, "--cgroup-parent=/user/g");
}
