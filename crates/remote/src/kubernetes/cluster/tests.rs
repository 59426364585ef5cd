//! A Job at a stand-in of the API server: what is sent, deletion, a whole load through attach, and each error.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use base64::Engine as _;
use serde_json::{Value, json};

use super::super::job::tests::settings;
use super::*;
use crate::channel::Patience;
use crate::hosts::LoadHosts;

const VERSION: &str = "0.1.0";

/// What the stand-in answers, and what it was asked.
#[derive(Default)]
struct Script {
    /// Permissions that the user does not have, as `create jobs`.
    denied: Vec<&'static str>,
    /// Refusals by method and end of the path.
    refused: Vec<(&'static str, &'static str, u16, Value)>,
    /// The status of each pod; by default it runs.
    status: Option<Value>,
    /// Pods appear.
    no_pods: bool,
    events: Vec<Value>,
    log: &'static str,
    /// The agents of pods end as soon as they are attached to.
    mute: bool,
    asked: Vec<(String, String, Value)>,
    jobs: BTreeMap<String, Value>,
}

/// A stand-in of the API server. It lives as long as the test program.
#[derive(Clone)]
struct Api(Arc<Mutex<Script>>, String);

impl Api {
    fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let api = Self(Arc::new(Mutex::new(script)), url);
        let serving = api.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (api, stream) = (serving.clone(), stream.unwrap());
                std::thread::spawn(move || api.serve(stream));
            }
        });
        api
    }

    fn job(&self, settings: JobSettings) -> LoadJob {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        LoadJob::with(settings, Config::new(self.1.parse().unwrap()), runtime).unwrap()
    }

    /// The error of a load from one pod.
    fn error(self, ready_timeout: Duration) -> String {
        let job = self.job(JobSettings { ready_timeout, ..settings(1) });
        let error = match job.start() {
            Err(error) => RemoteError::from(error),
            Ok(()) => LoadHosts::connect(job.workers(), VERSION, Patience::default()).unwrap_err(),
        };
        assert!(!error.is_loss() && !error.remedy().is_empty());
        job.end().unwrap();
        assert!(lock(&self.0).jobs.is_empty(), "the Job is gone");
        format!("{error}\n{}", error.remedy())
    }

    /// One request per connection.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let (method, path) = line.split_once(' ')?;
        let (method, path) = (method.to_owned(), path.split(' ').next()?.to_owned());
        let (mut length, mut key) = (0, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "sec-websocket-key" => key = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let plain = path.split('?').next()?.to_owned();
        let mut script = lock(&self.0);
        script.asked.push((method.clone(), path.clone(), body.clone()));
        let refused = script.refused.iter().find(|one| one.0 == method && plain.ends_with(one.1)).cloned();
        let (code, answer) = match (refused, key) {
            (Some((_, _, code, answer)), _) => (code, answer.to_string()),
            (None, Some(key)) => {
                let mute = script.mute;
                drop(script);
                return attached(reader, stream, &key, mute);
            }
            (None, None) => script.answer(&method, &plain, body),
        };
        drop(script);
        let mut stream = stream;
        let head = format!("HTTP/1.1 {code} x\r\ncontent-type: application/json\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {}\r\n\r\n{answer}", answer.len()).ok()
    }
}

impl Script {
    fn answer(&mut self, method: &str, path: &str, body: Value) -> (u16, String) {
        let missing = (
            404,
            json!({"status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"})
                .to_string(),
        );
        let last = path.rsplit('/').next().unwrap();
        if path.ends_with("/selfsubjectaccessreviews") {
            let of = &body["spec"]["resourceAttributes"];
            let sub = of["subresource"].as_str().map(|one| format!("/{one}")).unwrap_or_default();
            let name = format!("{} {}{sub}", of["verb"].as_str().unwrap(), of["resource"].as_str().unwrap());
            let mut answer = body.clone();
            answer["status"] = json!({"allowed": !self.denied.contains(&name.as_str())});
            return (201, answer.to_string());
        }
        match (method, last) {
            ("POST", "jobs") => {
                self.jobs.insert(body["metadata"]["name"].as_str().unwrap().into(), body.clone());
                (201, body.to_string())
            }
            ("DELETE", name) => match self.jobs.remove(name) {
                Some(job) => (200, job.to_string()),
                None => missing,
            },
            ("GET", "pods") => {
                let count =
                    self.jobs.values().next().map_or(0, |job| job["spec"]["completions"].as_u64().unwrap());
                let running = json!({"phase": "Running", "containerStatuses": [{"name": "agent", "image": "i",
                    "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}}]});
                let pods: Vec<Value> = (0..if self.no_pods { 0 } else { count })
                    .map(|index| {
                        json!({"metadata": {"name": format!("x-{index}"),
                                "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()}},
                            "spec": {"nodeName": format!("n{index}"), "containers": []},
                            "status": self.status.clone().unwrap_or_else(|| running.clone())})
                    })
                    .collect();
                (
                    200,
                    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods}).to_string(),
                )
            }
            ("GET", "events") => (
                200,
                json!({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": self.events})
                    .to_string(),
            ),
            ("GET", "log") => (200, self.log.to_owned()),
            _ => missing,
        }
    }
}

/// An agent behind a WebSocket, as an API server carries it: each message begins with the number of its channel.
fn attached(mut reader: BufReader<TcpStream>, mut stream: TcpStream, key: &str, mute: bool) -> Option<()> {
    let accept = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, accept.as_bytes());
    let accept = base64::engine::general_purpose::STANDARD.encode(digest.as_ref());
    write!(
        stream,
        "HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accept}\r\n\
                    sec-websocket-protocol: v5.channel.k8s.io\r\n\r\n"
    )
    .ok()?;
    if mute {
        return None;
    }
    let (input, mut to_agent) = std::io::pipe().unwrap();
    let (mut from_agent, output) = std::io::pipe().unwrap();
    std::thread::spawn(move || crate::serve(input, output, VERSION, None));
    let mut sending = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = from_agent.read(&mut piece) {
            let length = u16::try_from(count + 1).unwrap().to_be_bytes();
            let frame = [&[0x82, 126, length[0], length[1], 1], &piece[..count]].concat();
            if sending.write_all(&frame).is_err() {
                break;
            }
        }
        let _ = sending.shutdown(std::net::Shutdown::Both);
    });
    loop {
        let mut head = [0; 2];
        reader.read_exact(&mut head).ok()?;
        let mut length = u64::from(head[1] & 127);
        if length >= 126 {
            let mut long = vec![0; if length == 126 { 2 } else { 8 }];
            reader.read_exact(&mut long).ok()?;
            length = long.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        }
        let (mut mask, mut body) = ([0; 4], vec![0; usize::try_from(length).unwrap()]);
        reader.read_exact(&mut mask).ok()?;
        reader.read_exact(&mut body).ok()?;
        body.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        match (head[0] & 15, body.split_first()) {
            (8, _) | (2, Some((255, _))) => return None,
            (2, Some((0, rest))) => to_agent.write_all(rest).ok()?,
            _ => {}
        }
    }
}

#[test]
fn the_job_is_created_attached_to_and_deleted() {
    let api = Api::start(Script::default());
    let job = api.job(settings(3));
    job.start().unwrap();
    let hosts = LoadHosts::connect(job.workers(), VERSION, Patience::default()).unwrap();
    assert_eq!(hosts.names().collect::<Vec<_>>(), ["pod 0 on n0", "pod 1 on n1", "pod 2 on n2"]);
    assert!((0..3).all(|host| hosts.round_trips(host).count() > 0));
    let sent = lock(&api.0).jobs["deadheat-load-7"].clone();
    assert_eq!(sent, serde_json::to_value(settings(3).job()).unwrap());
    drop(hosts);
    job.end().unwrap();
    let script = lock(&api.0);
    assert!(script.jobs.is_empty());
    let (_, path, options) = script.asked.iter().find(|one| one.0 == "DELETE").unwrap();
    assert!(path.starts_with("/apis/batch/v1/namespaces/load/jobs/deadheat-load-7"), "{path}");
    assert_eq!(options["propagationPolicy"], "Background");
}

#[test]
fn a_dropped_job_is_deleted() {
    let api = Api::start(Script::default());
    let job = api.job(settings(1));
    job.start().unwrap();
    assert_eq!(lock(&api.0).jobs.len(), 1);
    drop(job);
    assert!(lock(&api.0).jobs.is_empty());
}

#[test]
fn a_pod_that_ends_is_lost_with_its_reason() {
    let api = Api::start(Script { mute: true, ..Script::default() });
    let job = api.job(settings(1));
    job.start().unwrap();
    let error = LoadHosts::connect(job.workers(), VERSION, Patience::default()).unwrap_err();
    assert!(error.to_string().contains("cannot reach the host pod 0 on n0: its connection broke"), "{error}");
    assert!(error.remedy().contains("kubectl describe"));
}

fn refusal(code: u16, message: &str, kind: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "x", "message": message,
        "details": {"kind": kind}})
}

#[test]
fn what_the_api_server_refuses_is_told() {
    let script = Script { denied: vec!["create jobs", "get pods/attach"], ..Script::default() };
    let api = Api::start(script);
    let text = api.clone().error(Duration::from_secs(60));
    assert!(text.contains("not permitted in the namespace load: create jobs, get pods/attach\n"), "{text}");
    assert!(text.contains("kubernetes/access.yaml"), "{text}");
    assert!(!lock(&api.0).asked.iter().any(|one| one.1.contains("/jobs")), "no Job was sent");
    for (method, path, code, message, kind, words) in [
        (
            "POST",
            "/jobs",
            403,
            "exceeded quota",
            "jobs",
            "the API server does not create jobs: exceeded quota",
        ),
        ("POST", "/jobs", 404, "no", "namespaces", "the cluster has no namespace load"),
        ("POST", "/jobs", 422, "spec.x: Invalid", "Job", "spec.x: Invalid"),
        ("POST", "/selfsubjectaccessreviews", 401, "Unauthorized", "", "does not accept the login"),
        ("GET", "/pods", 403, "pods is forbidden", "pods", "list pods: pods is forbidden"),
        ("GET", "/attach", 403, "cannot get", "pods", "get pods/attach: cannot get"),
    ] {
        let refused = vec![(method, path, code, refusal(code, message, kind))];
        let text = Api::start(Script { refused, ..Script::default() }).error(Duration::from_secs(60));
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn pods_that_do_not_run_are_told() {
    let waiting = |reason: &str| {
        json!({"phase": "Pending", "containerStatuses": [{"name": "agent", "image": "i", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"waiting": {"reason": reason, "message": "m\u{1b}[2J"}}}]})
    };
    let unschedulable = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    let ended = json!({"phase": "Failed", "containerStatuses": [{"name": "agent", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]});
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
    for (status, words) in [
        (
            waiting("ErrImagePull"),
            "pod 0: the image registry.example/deadheat:0.1.0 cannot be pulled: ErrImagePull: m",
        ),
        (waiting("CreateContainerError"), "its container cannot be started: CreateContainerError: m"),
        (unschedulable, "no node takes pod 0 (0 of 1 run): 0/3 nodes"),
        (ended, "was over before the load began: its container ended with exit status 2"),
        (evicted, "evicted its pod (low on memory)"),
        (json!({"phase": "Pending"}), "after 0 s, 0 of 1 pods run"),
    ] {
        let script = Script { status: Some(status), ..Script::default() };
        let text = Api::start(script).error(Duration::ZERO);
        assert!(text.contains(words) && !text.contains('\u{1b}'), "{text}");
    }
    let events = vec![
        json!({"metadata": {"name": "e"}, "involvedObject": {}, "reason": "FailedCreate", "message": "quota"}),
    ];
    let text =
        Api::start(Script { no_pods: true, events, ..Script::default() }).error(Duration::from_secs(60));
    assert!(text.contains("creates no pods for the Job deadheat-load-7: quota"), "{text}");
}

#[test]
fn an_api_server_that_is_not_there_is_told() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let api = Api(Arc::default(), format!("http://{nobody}"));
    let text = api.error(Duration::from_secs(60));
    assert!(text.contains(&format!("the API server http://{nobody}/ cannot be reached")), "{text}");
}
