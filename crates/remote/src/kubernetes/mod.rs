//! Load from the pods of a Kubernetes Job: the Job, the way to each pod's agent, and why a pod cannot carry load.
//!
//! Owns: what is asked of the cluster's API server. Must not know: what the agents are told.
//!
//! The Job is an Indexed Job: pod 0, pod 1 and so on. Each pod runs `deadheat agent`, whose standard input and output the API server's
//! `attach` carries, so that nothing in the cluster listens on a port. A pod that is lost is not replaced. The cluster reports a lost pod
//! late or never (a node that is cut off counts as lost after 40 s), so silence is noticed by the channel's own pings, as on any host.
//!
//! The Job goes away in four ways: [`LoadJob::end`] deletes it. If this program is killed, its agents end with the connection, at the
//! latest when they have heard nothing for their deadline, and the cluster deletes the Job a minute later (`ttlSecondsAfterFinished`). If an
//! agent hangs or a pod never starts, the cluster ends the Job at its own deadline (`activeDeadlineSeconds`).

//! Without the feature `kubernetes`, this program cannot do any of it, and says so.

mod error;
mod settings;

#[cfg(not(feature = "kubernetes"))]
mod absent;
#[cfg(feature = "kubernetes")]
mod attach;
#[cfg(feature = "kubernetes")]
mod cluster;
#[cfg(feature = "kubernetes")]
mod job;
#[cfg(feature = "kubernetes")]
mod permissions;
#[cfg(feature = "kubernetes")]
mod pod;

#[cfg(not(feature = "kubernetes"))]
pub use absent::{LoadJob, Worker};
#[cfg(feature = "kubernetes")]
pub use cluster::{LoadJob, Worker};
pub use error::ClusterError;
pub use settings::JobSettings;
