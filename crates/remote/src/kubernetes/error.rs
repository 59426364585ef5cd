//! Why a cluster cannot carry load, in words.

use crate::error::RemoteError;

/// Why a cluster cannot carry load. What the cluster says comes as it says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// This program was built without the libraries that speak to a cluster.
    #[error("this build of deadheat cannot send load from Kubernetes")]
    NotBuilt,
    /// It is not known which cluster is meant, or how to log in.
    #[error("the kubeconfig cannot be used: {reason}")]
    NoConfig {
        /// The reason.
        reason: String,
    },
    /// The API server does not answer the first request.
    #[error("the API server {url} cannot be reached: {reason}")]
    Unreachable {
        /// Its URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The API server answered before and does not any more.
    #[error("the API server {url} has not answered for {seconds} s: {reason}")]
    Gone {
        /// Its URL.
        url: String,
        /// For how long.
        seconds: u64,
        /// The last reason.
        reason: String,
    },
    /// The API server does not know the user.
    #[error("the API server {url} does not accept the login of the kubeconfig: {said}")]
    Unauthorized {
        /// Its URL.
        url: String,
        /// What it said.
        said: String,
    },
    /// The user may not do what is needed.
    #[error("not permitted in the namespace {namespace}: {missing}{said}")]
    Forbidden {
        /// The namespace.
        namespace: String,
        /// Verbs and resources, with commas between them: `create jobs, get pods/attach`.
        missing: String,
        /// What the API server said, after a colon; may be empty.
        said: String,
    },
    /// There is no such namespace.
    #[error("the cluster has no namespace {namespace}")]
    NoNamespace {
        /// Its name.
        namespace: String,
    },
    /// The API server refuses a request for another reason.
    #[error("the API server does not {what}: {said}")]
    Refused {
        /// What it was asked to do.
        what: String,
        /// What it said.
        said: String,
    },
    /// The cluster does not create the Job's pods.
    #[error("the cluster creates no pods for the Job {job}: {said}")]
    NoPods {
        /// The Job.
        job: String,
        /// What it said.
        said: String,
    },
    /// An image cannot be pulled.
    #[error("pod {index}: the image {image} cannot be pulled: {said}")]
    Image {
        /// The pod's index.
        index: usize,
        /// The image.
        image: String,
        /// What the cluster says.
        said: String,
    },
    /// A container cannot be started.
    #[error("pod {index}: its container cannot be started: {said}")]
    Container {
        /// The pod's index.
        index: usize,
        /// What the cluster says.
        said: String,
    },
    /// No node takes a pod.
    #[error("no node takes pod {index} ({running} of {workers} run): {said}")]
    Unschedulable {
        /// The pod's index.
        index: usize,
        /// How many run.
        running: usize,
        /// How many should run.
        workers: usize,
        /// What the scheduler says.
        said: String,
    },
    /// A pod was over before the load began.
    #[error("pod {index} was over before the load began: {why}")]
    Over {
        /// The pod's index.
        index: usize,
        /// Why, in words.
        why: String,
    },
    /// Not all pods run in time.
    #[error("after {seconds} s, {running} of {workers} pods run")]
    Late {
        /// The time that was allowed.
        seconds: u64,
        /// How many run.
        running: usize,
        /// How many should run.
        workers: usize,
    },
    /// A Job that must go is still there.
    #[error("the Job {job} in the namespace {namespace} could not be deleted: {reason}")]
    NotDeleted {
        /// The Job.
        job: String,
        /// The namespace.
        namespace: String,
        /// The reason.
        reason: String,
    },
    /// The load was given up meanwhile.
    #[error("the load was given up")]
    GivenUp,
    /// This machine cannot do its part.
    #[error("this machine cannot speak to the cluster: {0}")]
    Own(String),
}

impl ClusterError {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        let fixed = match self {
            Self::NotBuilt => "build it with: cargo build --release --features kubernetes",
            Self::NoConfig { .. } => {
                "make sure that `kubectl get pods` works; KUBECONFIG names the file, and its current context is used"
            }
            Self::Unreachable { .. } => {
                "look whether `kubectl cluster-info` works, and whether the current context is the right one"
            }
            Self::Gone { .. } => "look at the cluster and at the network to it, and repeat the load",
            Self::Unauthorized { .. } => "log in again, as for kubectl",
            Self::Forbidden { .. } => {
                "ask the cluster's administrator to apply kubernetes/access.yaml of deadheat's sources, which contains all that is needed"
            }
            Self::NoNamespace { namespace } => {
                return format!("create it (`kubectl create namespace {namespace}`), or name another one");
            }
            Self::Refused { .. } => {
                "correct the option that it names; for a quota or a policy of the namespace, ask its administrator"
            }
            Self::NoPods { .. } => {
                "correct what it names, such as a quota, or ask for fewer or smaller workers"
            }
            Self::Image { .. } => {
                "correct --image, push the image to its registry, or name the secret for it with --image-pull-secret"
            }
            Self::Container { .. } => "correct what it names, or build the image as the book says",
            Self::Unschedulable { .. } => {
                "ask for fewer workers (--load-workers) or smaller ones (--worker-cpu, --worker-memory), or wait longer (--ready-timeout)"
            }
            Self::Over { .. } => {
                "correct what it names; the image must start deadheat, of this version, with the arguments that it gets"
            }
            Self::Late { .. } => "wait longer (--ready-timeout), or look at the pods with `kubectl describe`",
            Self::NotDeleted { job, namespace, .. } => {
                return format!(
                    "its agents have ended, and the cluster deletes it a minute after that; if not: `kubectl delete job -n {namespace} {job}`"
                );
            }
            Self::GivenUp => "repeat the load",
            Self::Own(_) => "raise the limits of this process (ulimit -a), and repeat the load",
        };
        fixed.into()
    }
}

impl From<ClusterError> for RemoteError {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(Box::new(error))
    }
}
