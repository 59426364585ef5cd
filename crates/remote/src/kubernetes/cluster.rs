//! The Job in the cluster: created, watched until all its pods run, and deleted.
//!
//! Owns: all requests to the API server but the attach. Must not know: what a pod's status means.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use deadheat_load::with_causes;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, LogParams, PostParams};
use kube::core::Status;
use kube::{Client, Config};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::attach;
use super::error::ClusterError;
use super::permissions::{self, CREATE_JOB, DELETE_JOB, LIST_PODS, Permission};
use super::pod::{Over, Place, PodState, Trouble, place, state};
use super::settings::JobSettings;
use crate::channel::lock;
use crate::error::RemoteError;
use crate::link::{Link, Reach};

/// How often the pods are looked at until all of them run.
const GLANCE: Duration = Duration::from_millis(250);
/// The longest that one request may take.
const CALL: Duration = Duration::from_secs(5);
/// An API server that has not answered for so long is gone.
const GONE: Duration = Duration::from_secs(30);
/// A connection to the API server must be there within this time.
const CONNECT: Duration = Duration::from_secs(5);
/// What is wrong with an image or a container may still pass for so long: a registry may fail once, and the cluster tries again after 10 s.
const PASSING: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 20 });
/// Pods that are missing for so long are asked about. The cluster tries again when it could not create one, first after 10 s.
const NO_PODS: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 20 });
/// What is wrong is told with at most so many characters of the cluster's text.
const MOST_SAID: usize = 600;

/// A Job whose pods carry load. Dropping the last handle deletes the Job.
#[derive(Clone)]
pub struct LoadJob(Arc<Handle>);

impl fmt::Debug for LoadJob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LoadJob({})", self.0.cluster.settings.name)
    }
}

struct Handle {
    cluster: Arc<Cluster>,
    runtime: Runtime,
}

/// What the threads that reach pods and the tasks of the runtime share.
pub(super) struct Cluster {
    pub(super) settings: JobSettings,
    pub(super) pods: Api<Pod>,
    url: String,
    client: Client,
    jobs: Api<Job>,
    events: Api<Event>,
    seen: Mutex<Seen>,
    changed: Condvar,
    job: tokio::sync::Mutex<Existence>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cluster({})", self.url)
    }
}

/// Whether there may be a Job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existence {
    NotYet,
    Perhaps,
    NoLonger,
}

/// What was seen of the pods.
#[derive(Debug, Default)]
struct Seen {
    /// Places of the pods whose agents run, by index.
    running: Vec<Option<Place>>,
    /// Why nothing will come of it.
    failed: Option<ClusterError>,
}

impl LoadJob {
    /// Reads the kubeconfig. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClusterError::NoConfig`].
    pub fn prepare(settings: JobSettings) -> Result<Self, ClusterError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("kubernetes")
            .enable_all()
            .build()
            .map_err(|error| ClusterError::Own(error.to_string()))?;
        let config = runtime.block_on(Config::infer());
        let config = config.map_err(|error| ClusterError::NoConfig { reason: with_causes(&error) })?;
        Self::with(settings, config, runtime)
    }

    /// At the API server of this configuration.
    fn with(settings: JobSettings, mut config: Config, runtime: Runtime) -> Result<Self, ClusterError> {
        config.connect_timeout = Some(CONNECT);
        // The channels of the agents have pings of their own.
        config.read_timeout = None;
        config.default_retry = false;
        let url = config.cluster_url.to_string();
        let client = {
            let _inside = runtime.enter();
            Client::try_from(config)
                .map_err(|error| ClusterError::NoConfig { reason: with_causes(&error) })?
        };
        let namespace = settings.namespace.clone();
        let cluster = Cluster {
            pods: Api::namespaced(client.clone(), &namespace),
            jobs: Api::namespaced(client.clone(), &namespace),
            events: Api::namespaced(client.clone(), &namespace),
            seen: Mutex::new(Seen { running: vec![None; settings.workers], failed: None }),
            changed: Condvar::new(),
            job: tokio::sync::Mutex::new(Existence::NotYet),
            settings,
            url,
            client,
        };
        Ok(Self(Arc::new(Handle { cluster: Arc::new(cluster), runtime })))
    }

    /// Asks whether all is permitted, creates the Job, and begins to look at its pods.
    ///
    /// # Errors
    /// The cluster refuses, or it cannot be reached.
    pub fn start(&self) -> Result<(), ClusterError> {
        self.0.runtime.block_on(self.0.cluster.create())?;
        self.0.runtime.spawn(Arc::clone(&self.0.cluster).watch());
        Ok(())
    }

    /// The Job's pods, in order of their index. Reaching one waits until it runs.
    pub fn workers(&self) -> Vec<Worker> {
        (0..self.0.cluster.settings.workers).map(|index| Worker { index, job: self.clone() }).collect()
    }

    /// Deletes the Job if there is one, and gives up what still waits for its pods.
    ///
    /// # Errors
    /// It could not be deleted, although that was tried for 30 s.
    pub fn end(&self) -> Result<(), ClusterError> {
        self.0.end()
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.0.cluster
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }
}

impl Handle {
    fn end(&self) -> Result<(), ClusterError> {
        self.cluster.fail(ClusterError::GivenUp);
        self.runtime.block_on(self.cluster.delete())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A caller that wants to know has called `end` before.
        let _ = self.end();
    }
}

/// A pod of a Job.
#[derive(Debug)]
pub struct Worker {
    index: usize,
    job: LoadJob,
}

impl Reach for Worker {
    fn name(&self) -> String {
        format!("pod {}", self.index)
    }

    fn reach(self) -> Result<Link, RemoteError> {
        let cluster = &self.job.0.cluster;
        let place = cluster.wait(self.index)?;
        attach::link(&self.job, &place).map_err(|error| {
            // The others need not wait any longer.
            cluster.fail(error.clone());
            error.into()
        })
    }
}

impl Cluster {
    /// Waits until the pod runs.
    fn wait(&self, index: usize) -> Result<Place, ClusterError> {
        let mut seen = lock(&self.seen);
        loop {
            if let Some(error) = &seen.failed {
                return Err(error.clone());
            }
            if let Some(place) = seen.running.get(index).cloned().flatten() {
                return Ok(place);
            }
            seen = self.changed.wait(seen).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Notes why nothing will come of it, unless that is known.
    fn fail(&self, error: ClusterError) {
        lock(&self.seen).failed.get_or_insert(error);
        self.changed.notify_all();
    }

    async fn create(&self) -> Result<(), ClusterError> {
        let may = self.permitted().await?;
        let mut job = self.job.lock().await;
        if *job == Existence::NoLonger {
            return Err(ClusterError::GivenUp);
        }
        // Also if the answer never comes.
        *job = Existence::Perhaps;
        let object = self.settings.job();
        match self.call(self.jobs.create(&PostParams::default(), &object)).await {
            Ok(_) => Ok(()),
            Err(failure) => {
                // After an error of the server, the Job may be there nevertheless.
                if matches!(&failure, Failure::Status(status) if !is_passing(status)) {
                    *job = Existence::NotYet;
                }
                Err(match failure {
                    // The user has the permission: a quota or a policy of the namespace refuses.
                    Failure::Status(status) if status.code == 403 && may => {
                        ClusterError::Refused { what: CREATE_JOB.to_string(), said: plain(&status.message) }
                    }
                    failure => self.error(failure, CREATE_JOB),
                })
            }
        }
    }

    /// Whether the cluster says that the user has all permissions that are needed. It need not answer that.
    ///
    /// # Errors
    /// It says that some are missing.
    async fn permitted(&self) -> Result<bool, ClusterError> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let mut missing = Vec::new();
        for permission in permissions::ALL.into_iter().filter(|one| one.needed) {
            let review = permission.review(&self.settings.namespace);
            match self.call(reviews.create(&PostParams::default(), &review)).await {
                Ok(review) if review.status.as_ref().is_some_and(|status| !status.allowed) => {
                    missing.push(permission.to_string());
                }
                Ok(_) => {}
                Err(Failure::Status(status)) if status.code == 401 => {
                    return Err(self.error(Failure::Status(status), permission));
                }
                // The cluster does not answer this question. It will refuse what is not permitted.
                Err(Failure::Status(_)) => return Ok(false),
                Err(Failure::Silence(reason)) => {
                    return Err(ClusterError::Unreachable { url: self.url.clone(), reason });
                }
            }
        }
        if missing.is_empty() {
            return Ok(true);
        }
        let (namespace, missing) = (self.settings.namespace.clone(), missing.join(", "));
        Err(ClusterError::Forbidden { namespace, missing, said: String::new() })
    }

    /// Looks at the pods until all of them run, or until it is clear that they will not.
    async fn watch(self: Arc<Self>) {
        let (begun, mut heard, mut passing) = (Instant::now(), Instant::now(), None);
        let mut missing = Some(begun);
        loop {
            if lock(&self.seen).failed.is_some() {
                return;
            }
            let trouble = match self.look().await {
                Ok(pods) => {
                    heard = Instant::now();
                    missing = missing.filter(|_| pods.len() < self.settings.workers);
                    match self.take(&pods) {
                        Ok(None) => None,
                        Ok(Some(trouble)) => Some(trouble),
                        Err(error) => return self.fail(error),
                    }
                }
                Err(Failure::Status(status)) if !is_passing(&status) => {
                    return self.fail(self.error(Failure::Status(status), LIST_PODS));
                }
                Err(failure) if heard.elapsed() > GONE => {
                    let (url, reason) = (self.url.clone(), failure.to_string());
                    return self.fail(ClusterError::Gone { url, seconds: GONE.as_secs(), reason });
                }
                Err(_) => None,
            };
            let running = self.running();
            if running == self.settings.workers {
                return;
            }
            match trouble {
                Some((index, Trouble::Unschedulable(said)))
                    if begun.elapsed() > self.settings.ready_timeout =>
                {
                    let workers = self.settings.workers;
                    return self.fail(ClusterError::Unschedulable {
                        index,
                        running,
                        workers,
                        said: plain(&said),
                    });
                }
                Some((_, Trouble::Unschedulable(_))) | None => passing = None,
                Some((index, trouble)) => {
                    let since = *passing.get_or_insert_with(Instant::now);
                    if since.elapsed() > PASSING || begun.elapsed() > self.settings.ready_timeout {
                        return self.fail(self.lasting(index, trouble));
                    }
                }
            }
            if missing.is_some_and(|since| since.elapsed() > NO_PODS)
                && let Some(error) = self.uncreated().await
            {
                return self.fail(error);
            }
            if begun.elapsed() > self.settings.ready_timeout {
                let seconds = self.settings.ready_timeout.as_secs();
                return self.fail(ClusterError::Late { seconds, running, workers: self.settings.workers });
            }
            sleep(GLANCE).await;
        }
    }

    /// Notes which pods run. Returns what is wrong with one that does not start.
    fn take(&self, pods: &[Pod]) -> Result<Option<(usize, Trouble)>, ClusterError> {
        let mut seen = lock(&self.seen);
        let mut found = None;
        for pod in pods {
            let Some(place) = place(pod).filter(|place| place.index < self.settings.workers) else {
                continue;
            };
            let index = place.index;
            match state(pod) {
                PodState::Starting => {}
                PodState::Running => seen.running[index] = Some(place),
                // Where no node has room for a pod, the image of another may be wrong as well, and more workers do not help that.
                PodState::Trouble(trouble) => match &found {
                    Some((_, Trouble::Unschedulable(_))) | None => found = Some((index, trouble)),
                    Some(_) => {}
                },
                // Its channel says the same of a pod that ran before.
                PodState::Over(_) if seen.running[index].is_some() => {}
                PodState::Over(over) => {
                    return Err(ClusterError::Over { index, why: plain(&over.to_string()) });
                }
            }
        }
        drop(seen);
        self.changed.notify_all();
        Ok(found)
    }

    fn lasting(&self, index: usize, trouble: Trouble) -> ClusterError {
        match trouble {
            Trouble::Image(said) => {
                ClusterError::Image { index, image: self.settings.image.clone(), said: plain(&said) }
            }
            Trouble::Container(said) | Trouble::Unschedulable(said) => {
                ClusterError::Container { index, said: plain(&said) }
            }
        }
    }

    fn running(&self) -> usize {
        lock(&self.seen).running.iter().flatten().count()
    }

    /// Why the cluster creates no pods, if it says so. A quota or a policy of the namespace may forbid them.
    async fn uncreated(&self) -> Option<ClusterError> {
        let job = self.settings.name.clone();
        let list =
            ListParams::default().fields(&format!("involvedObject.kind=Job,involvedObject.name={job}"));
        let events = self.call(self.events.list(&list)).await.ok()?;
        let failed = |event: &Event| event.reason.as_deref() == Some("FailedCreate");
        let event = events.items.into_iter().rev().find(failed)?;
        Some(ClusterError::NoPods { job, said: plain(&event.message.unwrap_or_default()) })
    }

    /// The Job's pods.
    async fn look(&self) -> Result<Vec<Pod>, Failure> {
        let list = ListParams::default().labels(&self.settings.selector());
        Ok(self.call(self.pods.list(&list)).await?.items)
    }

    /// What the pod with this index does; none if there is no such pod.
    pub(super) async fn state_of(&self, index: usize) -> Result<Option<PodState>, Failure> {
        let pods = self.look().await?;
        Ok(pods.iter().find(|pod| place(pod).is_some_and(|place| place.index == index)).map(state))
    }

    /// The last lines that a pod wrote, with what is wrong if they cannot be read.
    pub(super) async fn log(&self, pod: &str) -> String {
        let end = LogParams { tail_lines: Some(3), limit_bytes: Some(4096), ..LogParams::default() };
        self.call(self.pods.logs(pod, &end)).await.unwrap_or_default()
    }

    async fn delete(&self) -> Result<(), ClusterError> {
        let mut job = self.job.lock().await;
        if std::mem::replace(&mut *job, Existence::NoLonger) != Existence::Perhaps {
            return Ok(());
        }
        let begun = Instant::now();
        let not_deleted = |failure: Failure| ClusterError::NotDeleted {
            job: self.settings.name.clone(),
            namespace: self.settings.namespace.clone(),
            reason: match failure {
                Failure::Status(status) if status.code == 403 => {
                    self.error(Failure::Status(status), DELETE_JOB).to_string()
                }
                other => other.to_string(),
            },
        };
        loop {
            // In the background: the pods go after the Job.
            match self.call(self.jobs.delete(&self.settings.name, &DeleteParams::background())).await {
                Ok(_) => return Ok(()),
                Err(Failure::Status(status)) if status.code == 404 => return Ok(()),
                Err(Failure::Status(status)) if !is_passing(&status) => {
                    return Err(not_deleted(Failure::Status(status)));
                }
                Err(failure) if begun.elapsed() > GONE => return Err(not_deleted(failure)),
                Err(_) => sleep(GLANCE).await,
            }
        }
    }

    /// One request, and no longer than it may take.
    pub(super) async fn call<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Failure> {
        match timeout(CALL, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) => Err(Failure::Status(status)),
            Ok(Err(error)) => Err(Failure::Silence(plain(&with_causes(&error)))),
            Err(_) => Err(Failure::Silence(format!("no answer within {} s", CALL.as_secs()))),
        }
    }

    /// Why a request failed that needs this permission.
    pub(super) fn error(&self, failure: Failure, permission: Permission) -> ClusterError {
        let (url, namespace) = (self.url.clone(), self.settings.namespace.clone());
        let status = match failure {
            Failure::Status(status) => status,
            Failure::Silence(reason) => return ClusterError::Unreachable { url, reason },
        };
        let said = plain(&status.message);
        let kind = status.details.as_ref().map(|details| details.kind.as_str()).unwrap_or_default();
        match status.code {
            401 => ClusterError::Unauthorized { url, said },
            403 => ClusterError::Forbidden {
                namespace,
                missing: permission.to_string(),
                said: format!(": {said}"),
            },
            404 if kind == "namespaces" => ClusterError::NoNamespace { namespace },
            _ => ClusterError::Refused { what: permission.to_string(), said },
        }
    }
}

/// Why a request has no answer that helps.
#[derive(Debug)]
pub(super) enum Failure {
    /// The API server refuses.
    Status(Box<Status>),
    /// It does not answer; with the reason.
    Silence(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(out, "{}", plain(&status.message)),
            Self::Silence(reason) => write!(out, "{reason}"),
        }
    }
}

/// Whether a refusal passes: the server has a fault or too much to do.
fn is_passing(status: &Status) -> bool {
    status.code >= 500 || status.code == 429
}

/// Text of the cluster on one line, without control characters, and not too long.
pub(super) fn plain(text: &str) -> String {
    let mut plain: String =
        text.trim().chars().take(MOST_SAID).map(|one| if one.is_control() { ' ' } else { one }).collect();
    if text.trim().chars().nth(MOST_SAID).is_some() {
        plain.push_str("...");
    }
    plain
}

/// What is known of a pod that is over, in words.
pub(super) fn words(over: &Over) -> String {
    plain(&over.to_string())
}

#[cfg(test)]
mod tests;
