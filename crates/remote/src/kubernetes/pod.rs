//! What a pod's status says.
//!
//! Owns: the reading of it. Must not know: how it got here.

use std::fmt;

use k8s_openapi::api::core::v1::{ContainerState, Pod, PodCondition, PodStatus};

use super::job::{CONTAINER, INDEX};

/// What a pod does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodState {
    /// It is being started.
    Starting,
    /// It does not start, and that may change.
    Trouble(Trouble),
    /// Its agent runs.
    Running,
    /// It is over.
    Over(Over),
}

/// Why a pod does not start. The texts are those of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No node takes it.
    Unschedulable(String),
    /// Its image cannot be pulled.
    Image(String),
    /// Its container cannot be started.
    Container(String),
}

/// Why a pod is over. The texts are those of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    Evicted(String),
    OutOfMemory,
    Preempted(String),
    NodeLost(String),
    Deadline,
    Deleted,
    Ended { status: i32, signal: Option<i32>, said: String },
    Unknown(String),
}

impl fmt::Display for Over {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |out: &mut fmt::Formatter<'_>, what: &str, said: &str| match said {
            "" => write!(out, "{what}"),
            said => write!(out, "{what} ({said})"),
        };
        match self {
            Self::Evicted(said) => with(out, "the cluster evicted its pod", said),
            Self::OutOfMemory => {
                write!(
                    out,
                    "its container was killed because it used more memory than its limit (OOMKilled); \
                     raise --worker-memory"
                )
            }
            Self::Preempted(said) => {
                with(out, "the scheduler removed its pod for one with a higher priority", said)
            }
            Self::NodeLost(said) => with(out, "its node was lost or shut down", said),
            Self::Deadline => write!(out, "the Job was not over by its deadline, so the cluster ended it"),
            Self::Deleted => write!(out, "its pod was deleted"),
            Self::Ended { signal: Some(signal), said, .. } => {
                with(out, &format!("its container was killed by signal {signal}"), said)
            }
            Self::Ended { status, said, .. } => {
                with(out, &format!("its container ended with exit status {status}"), said)
            }
            Self::Unknown(said) => with(out, "its pod failed", said),
        }
    }
}

/// The pod's place in the Job, its name, and the node that it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) pod: String,
    pub(super) node: Option<String>,
}

/// Where a pod is; `None` for a pod without an index.
pub(super) fn place(pod: &Pod) -> Option<Place> {
    let index = pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok()?;
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    Some(Place { index, pod: pod.metadata.name.clone()?, node })
}

/// What a pod does.
pub(super) fn state(pod: &Pod) -> PodState {
    let Some(status) = &pod.status else { return PodState::Starting };
    let container = status.container_statuses.iter().flatten().find(|one| one.name == CONTAINER);
    let container = container.and_then(|one| one.state.as_ref());
    let phase = status.phase.as_deref().unwrap_or_default();
    if let Some(over) = over(pod, status, container, phase) {
        return PodState::Over(over);
    }
    if phase == "Running" && container.is_some_and(|one| one.running.is_some()) {
        return PodState::Running;
    }
    let waiting = container.and_then(|one| one.waiting.as_ref());
    let reason = waiting.and_then(|one| one.reason.as_deref()).unwrap_or_default();
    let said = || {
        let message = waiting.and_then(|one| one.message.as_deref()).unwrap_or_default();
        if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
    };
    match reason {
        "" | "ContainerCreating" | "PodInitializing" => {}
        "ErrImagePull"
        | "ImagePullBackOff"
        | "ErrImageNeverPull"
        | "InvalidImageName"
        | "ImageInspectError"
        | "RegistryUnavailable" => return PodState::Trouble(Trouble::Image(said())),
        _ => return PodState::Trouble(Trouble::Container(said())),
    }
    match condition(status, "PodScheduled") {
        Some(PodCondition { status, reason: Some(reason), message, .. })
            if status == "False" && reason == "Unschedulable" =>
        {
            PodState::Trouble(Trouble::Unschedulable(message.clone().unwrap_or_default()))
        }
        _ => PodState::Starting,
    }
}

/// Why the pod is over, if it is. What the cluster did to it comes before what that did to its container.
fn over(pod: &Pod, status: &PodStatus, container: Option<&ContainerState>, phase: &str) -> Option<Over> {
    let ended = container.and_then(|one| one.terminated.as_ref());
    let deleted = pod.metadata.deletion_timestamp.is_some();
    if ended.is_none() && !deleted && !matches!(phase, "Failed" | "Succeeded") {
        return None;
    }
    let said = status.message.clone().unwrap_or_default();
    match status.reason.as_deref() {
        Some("Evicted") => return Some(Over::Evicted(said)),
        Some("DeadlineExceeded") => return Some(Over::Deadline),
        Some("NodeLost" | "NodeShutdown" | "Terminated" | "NodeAffinity") => {
            return Some(Over::NodeLost(said));
        }
        Some("Preempting") => return Some(Over::Preempted(said)),
        _ => {}
    }
    let out_of_memory = ended.is_some_and(|one| one.reason.as_deref() == Some("OOMKilled"));
    if out_of_memory {
        return Some(Over::OutOfMemory);
    }
    if let Some(disruption) = condition(status, "DisruptionTarget").filter(|one| one.status == "True") {
        let said = disruption.message.clone().unwrap_or_default();
        return Some(match disruption.reason.as_deref() {
            Some("PreemptionByScheduler") => Over::Preempted(said),
            Some("DeletionByTaintManager" | "DeletionByPodGC") => Over::NodeLost(said),
            _ => Over::Evicted(said),
        });
    }
    if deleted {
        return Some(Over::Deleted);
    }
    Some(match ended {
        Some(ended) => Over::Ended {
            status: ended.exit_code,
            // A container that is killed has the status 128 and the number of the signal.
            signal: ended.signal.filter(|one| *one > 0).or(match ended.exit_code {
                137 => Some(9),
                143 => Some(15),
                _ => None,
            }),
            said: ended.message.clone().unwrap_or_default(),
        },
        None => Over::Unknown(if said.is_empty() { status.reason.clone().unwrap_or_default() } else { said }),
    })
}

fn condition<'s>(status: &'s PodStatus, kind: &str) -> Option<&'s PodCondition> {
    status.conditions.iter().flatten().find(|one| one.type_ == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(status: Value) -> PodState {
        let pod = json!({"metadata": {"name": "x"}, "status": status});
        state(&serde_json::from_value(pod).unwrap())
    }

    fn with_container(phase: &str, container: Value) -> Value {
        let one = json!({
            "name": "agent", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": container,
        });
        json!({"phase": phase, "containerStatuses": [one]})
    }

    #[test]
    fn a_pod_starts_and_runs() {
        assert_eq!(state(&Pod::default()), PodState::Starting);
        assert_eq!(read(json!({"phase": "Pending"})), PodState::Starting);
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "m"}});
        assert_eq!(read(with_container("Pending", waiting("ContainerCreating"))), PodState::Starting);
        assert_eq!(read(with_container("Running", json!({"running": {}}))), PodState::Running);
        assert_eq!(
            read(with_container("Pending", waiting("ImagePullBackOff"))),
            PodState::Trouble(Trouble::Image("ImagePullBackOff: m".into()))
        );
        assert_eq!(
            read(with_container("Pending", waiting("CreateContainerConfigError"))),
            PodState::Trouble(Trouble::Container("CreateContainerConfigError: m".into()))
        );
        let full = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
        assert_eq!(read(full), PodState::Trouble(Trouble::Unschedulable("0/3 nodes".into())));
    }

    #[test]
    fn why_a_pod_is_over_is_told_in_words() {
        let ended = |ended: Value| with_container("Failed", json!({"terminated": ended}));
        let disrupted = |reason: &str| {
            let mut status = ended(json!({"exitCode": 137, "reason": "Error"}));
            status["conditions"] =
                json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}]);
            status
        };
        for (status, words) in [
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
                "evicted its pod (low on memory)",
            ),
            (json!({"phase": "Failed", "reason": "DeadlineExceeded"}), "by its deadline"),
            (json!({"phase": "Failed", "reason": "NodeShutdown"}), "its node was lost or shut down"),
            (
                json!({"phase": "Failed", "reason": "UnexpectedAdmissionError"}),
                "its pod failed (UnexpectedAdmissionError)",
            ),
            (
                ended(json!({"exitCode": 137, "reason": "OOMKilled"})),
                "more memory than its limit (OOMKilled); raise --worker-memory",
            ),
            (ended(json!({"exitCode": 137, "reason": "Error"})), "killed by signal 9"),
            (ended(json!({"exitCode": 2, "reason": "Error"})), "exit status 2"),
            (
                ended(json!({"exitCode": 128, "reason": "StartError", "message": "no such file"})),
                "exit status 128 (no such file)",
            ),
            (disrupted("PreemptionByScheduler"), "higher priority (m)"),
            (disrupted("DeletionByTaintManager"), "its node was lost or shut down (m)"),
            (disrupted("EvictionByEvictionAPI"), "evicted its pod (m)"),
            // Its phase follows a moment later.
            (with_container("Running", json!({"terminated": {"exitCode": 0}})), "exit status 0"),
        ] {
            let PodState::Over(over) = read(status.clone()) else { panic!("{status}") };
            assert!(over.to_string().contains(words), "{over}: {words}");
        }
        let deleted = json!({"metadata": {"name": "x", "deletionTimestamp": "2026-11-26T12:00:00Z"},
            "status": {"phase": "Running"}});
        assert_eq!(state(&serde_json::from_value(deleted).unwrap()), PodState::Over(Over::Deleted));
    }

    #[test]
    fn a_pod_has_a_place() {
        let pod = json!({"metadata": {"name": "x-1-abc", "annotations": {INDEX: "1"}}, "spec": {"nodeName": "n", "containers": []}});
        let expected = Place { index: 1, pod: "x-1-abc".into(), node: Some("n".into()) };
        assert_eq!(place(&serde_json::from_value(pod).unwrap()), Some(expected));
        assert_eq!(place(&Pod::default()), None);
    }
}
