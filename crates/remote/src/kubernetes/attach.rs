//! The way to a pod's agent by the API server's attach: a WebSocket on one side, two pipes on the other.
//!
//! Owns: the copying between them, and why it ended. Must not know: what the bytes mean.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::unix::pipe;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::cluster::{Cluster, Failure, LoadJob, words};
use super::error::ClusterError;
use super::job::CONTAINER;
use super::permissions::ATTACH;
use super::pod::{Over, Place, PodState};
use crate::channel::lock;
use crate::link::{Link, LinkEnd, keep, said};

/// A pod that runs may not be ready for an attach at once: it is tried again for so long.
const TRYING: Duration = Duration::from_secs(5);
const TRY_EVERY: Duration = Duration::from_millis(200);
/// The cluster needs a moment until it knows why a connection to a pod ended.
const KNOWING: Duration = Duration::from_millis(1_500);
const GLANCE: Duration = Duration::from_millis(100);
/// An agent whose input has ended has this long to end its output, and what it wrote before a connection broke to arrive.
const PARTING: Duration = Duration::from_millis(500);
/// Bytes that may be under way in each direction before the other side has to wait.
const BUFFER: usize = 64 * 1024;

/// Opens the way to the agent of a pod that runs.
pub(super) fn link(job: &LoadJob, place: &Place) -> Result<Link, ClusterError> {
    let runtime = job.runtime();
    let attached = runtime.block_on(attach(job.cluster(), place))?;
    let errors = Arc::new(Mutex::new(Vec::new()));
    let own = |error: io::Error| ClusterError::Own(error.to_string());
    let (their_input, output) = io::pipe().map_err(own)?;
    let (input, their_output) = io::pipe().map_err(own)?;
    let pipes = {
        let _inside = runtime.enter();
        pipe::Receiver::from_owned_fd(their_input.into())
            .and_then(|from| Ok((from, pipe::Sender::from_owned_fd(their_output.into())?)))
            .map_err(own)?
    };
    let task = runtime.spawn(carry(attached, pipes, Arc::clone(&errors)));
    let end = PodEnd {
        job: job.clone(),
        index: place.index,
        pod: place.pod.clone(),
        task: task.abort_handle(),
        closing: AtomicBool::new(false),
        errors,
    };
    let node = place.node.as_deref().unwrap_or("an unknown node");
    Ok(Link {
        name: format!("pod {} on {node}", place.index),
        output: output.into(),
        input: input.into(),
        program: None,
        end: Arc::new(end),
    })
}

async fn attach(cluster: &Cluster, place: &Place) -> Result<AttachedProcess, ClusterError> {
    let parameters = AttachParams::default()
        .container(CONTAINER)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .max_stdin_buf_size(BUFFER)
        .max_stdout_buf_size(BUFFER);
    let begun = Instant::now();
    loop {
        let failure = match cluster.call(cluster.pods.attach(&place.pod, &parameters)).await {
            Ok(attached) => return Ok(attached),
            Err(failure) => failure,
        };
        let forbidden = matches!(&failure, Failure::Status(status) if matches!(status.code, 401 | 403));
        if forbidden || begun.elapsed() > TRYING {
            return Err(cluster.error(failure, ATTACH));
        }
        if let Ok(Some(PodState::Over(over))) = cluster.state_of(place.index).await {
            let why = told(cluster, &place.pod, &over).await;
            return Err(ClusterError::Over { index: place.index, why });
        }
        sleep(TRY_EVERY).await;
    }
}

/// Why a pod is over, with the last lines of its log if it ended by itself.
async fn told(cluster: &Cluster, pod: &str, over: &Over) -> String {
    let log = match over {
        Over::Ended { .. } => cluster.log(pod).await,
        _ => String::new(),
    };
    words(over) + &said(b"", &log)
}

/// Copies until the pod's output ends, or until this side has closed its own and the pod had time to end its output.
async fn carry(
    mut attached: AttachedProcess,
    (mut from, mut to): (pipe::Receiver, pipe::Sender),
    errors: Arc<Mutex<Vec<u8>>>,
) {
    let streams = (attached.stdin(), attached.stdout(), attached.stderr(), attached.take_status());
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr), Some(status)) = streams else {
        return;
    };
    let listening = tokio::spawn(async move {
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = stderr.read(&mut piece).await {
            keep(&mut lock(&errors), &piece[..count]);
        }
    });
    let there = async {
        // An error of one direction ends the other one, too.
        let _ = copy(&mut from, &mut stdin).await;
        let _ = stdin.shutdown().await;
        sleep(PARTING).await;
    };
    let back = async {
        let _ = copy(&mut stdout, &mut to).await;
    };
    // The library does not end the streams when the connection breaks, but it then drops the sender of the status.
    let broken = async {
        let _ = status.await;
        sleep(PARTING).await;
    };
    tokio::select! {
        () = there => {}
        () = back => {}
        () = broken => {}
    }
    // For the same reason, standard error may never end.
    listening.abort();
}

/// What is known of the way to a pod.
#[derive(Debug)]
struct PodEnd {
    /// The Job lives at least as long as the last link to one of its pods.
    job: LoadJob,
    index: usize,
    pod: String,
    task: AbortHandle,
    /// Whether this side wants the end, so that there is nothing to find out.
    closing: AtomicBool,
    /// What the agent wrote to its standard error.
    errors: Arc<Mutex<Vec<u8>>>,
}

impl PodEnd {
    /// Why the pod is over, or why that is not known.
    async fn why(&self) -> String {
        let begun = Instant::now();
        loop {
            let found = self.job.cluster().state_of(self.index).await;
            match found {
                Ok(Some(PodState::Over(over))) => return told(self.job.cluster(), &self.pod, &over).await,
                Ok(None) => return "its pod is gone".into(),
                Ok(Some(_)) if begun.elapsed() > KNOWING => return "its connection broke".into(),
                Err(failure) if begun.elapsed() > KNOWING => {
                    return format!("its connection broke, and the API server does not answer ({failure})");
                }
                _ => sleep(GLANCE).await,
            }
        }
    }
}

impl LinkEnd for PodEnd {
    fn reason(&self, noise: &str) -> String {
        if self.closing.load(Ordering::Relaxed) {
            return "its channel closed".into();
        }
        let why = self.job.runtime().block_on(self.why());
        format!("{why}{}", self.said(noise))
    }

    fn said(&self, noise: &str) -> String {
        said(&lock(&self.errors), noise)
    }

    fn seen(&self) -> String {
        let state = async { tokio::time::timeout(KNOWING, self.job.cluster().state_of(self.index)).await };
        match self.job.runtime().block_on(state) {
            Ok(Ok(Some(PodState::Over(over)))) => format!("; {}", words(&over)),
            Ok(Ok(Some(_))) => {
                "; the cluster still counts its pod as running, so its node may be lost or cut off".into()
            }
            Ok(Ok(None)) => "; its pod is gone".into(),
            Ok(Err(failure)) => format!("; the API server does not answer either ({failure})"),
            Err(_) => "; the API server does not answer either".into(),
        }
    }

    fn remedy(&self) -> &'static str {
        "look at the pod with `kubectl describe`; the image must start deadheat, of this version, with the arguments that it gets"
    }

    fn cut(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.task.abort();
    }

    fn close(&self, patience: Duration) {
        self.closing.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while !self.task.is_finished() {
            if begun.elapsed() > patience {
                self.task.abort();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
