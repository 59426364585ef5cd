//! What is asked of a cluster, as plain data.

use std::time::Duration;

/// What is asked of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSettings {
    /// The Job's name. No other Job of the namespace may have it.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// How many pods carry the load.
    pub workers: usize,
    /// The image, which starts deadheat with the arguments that it gets.
    pub image: String,
    /// The name of the secret with which the image is pulled.
    pub pull_secret: Option<String>,
    /// Processors of each pod, as the cluster writes them, such as `2` or `500m`.
    pub cpu: String,
    /// Memory of each pod, as the cluster writes it, such as `256Mi`.
    pub memory: String,
    /// All pods must run within this time.
    pub ready_timeout: Duration,
    /// The longest time that the load may take after that.
    pub longest: Duration,
    /// Time in which an agent may hand over its results after the cluster has ended its pod.
    pub grace: Duration,
}
