//! The Job that is sent to the cluster.
//!
//! Owns: every field of it. Must not know: how it is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, LocalObjectReference, PodSecurityContext, PodSpec, PodTemplateSpec,
    ResourceRequirements, SeccompProfile, SecurityContext, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::settings::JobSettings;
use crate::agent::AGENT_COMMAND;

/// The container of each pod.
pub(super) const CONTAINER: &str = "agent";
/// The annotation with a pod's index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The label by which the pods of one Job are found.
const INSTANCE: &str = "app.kubernetes.io/instance";
/// The cluster deletes a Job that is over after this time, in seconds.
const TTL_S: i32 = 60;
/// The user and group of the agent: usually called nobody.
const NOBODY: i64 = 65_534;

impl JobSettings {
    /// What selects the Job's pods.
    pub(super) fn selector(&self) -> String {
        format!("{INSTANCE}={}", self.name)
    }

    /// The Job.
    pub(super) fn job(&self) -> Job {
        let labels = BTreeMap::from([
            ("app.kubernetes.io/name".to_owned(), "deadheat".to_owned()),
            (INSTANCE.to_owned(), self.name.clone()),
        ]);
        let metadata = |name| ObjectMeta { name, labels: Some(labels.clone()), ..ObjectMeta::default() };
        let workers = i32::try_from(self.workers).unwrap_or(i32::MAX);
        let spec = JobSpec {
            completion_mode: Some("Indexed".into()),
            completions: Some(workers),
            parallelism: Some(workers),
            // A pod that is lost is not replaced: the load has ended by then.
            backoff_limit: Some(0),
            active_deadline_seconds: Some(seconds(self.ready_timeout + self.longest)),
            ttl_seconds_after_finished: Some(TTL_S),
            template: PodTemplateSpec { metadata: Some(metadata(None)), spec: Some(self.pod(&labels)) },
            ..JobSpec::default()
        };
        Job { metadata: metadata(Some(self.name.clone())), spec: Some(spec), status: None }
    }

    fn pod(&self, labels: &BTreeMap<String, String>) -> PodSpec {
        // As many pods on each node as on any other, and none on nodes that accept none.
        let spread = TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".into(),
            when_unsatisfiable: "DoNotSchedule".into(),
            node_taints_policy: Some("Honor".into()),
            label_selector: Some(LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            }),
            ..TopologySpreadConstraint::default()
        };
        let secrets = self.pull_secret.clone().map(|name| vec![LocalObjectReference { name }]);
        PodSpec {
            restart_policy: Some("Never".into()),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            termination_grace_period_seconds: Some(seconds(self.grace)),
            image_pull_secrets: secrets,
            topology_spread_constraints: Some(vec![spread]),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(NOBODY),
                run_as_group: Some(NOBODY),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".into(),
                    ..SeccompProfile::default()
                }),
                ..PodSecurityContext::default()
            }),
            containers: vec![self.container()],
            ..PodSpec::default()
        }
    }

    fn container(&self) -> Container {
        // Requests are the limits: the class "guaranteed", which is evicted last and may be given processors of its own.
        let resources = BTreeMap::from([
            ("cpu".to_owned(), Quantity(self.cpu.clone())),
            ("memory".to_owned(), Quantity(self.memory.clone())),
        ]);
        Container {
            name: CONTAINER.into(),
            image: Some(self.image.clone()),
            args: Some(vec![AGENT_COMMAND.into()]),
            stdin: Some(true),
            // The agent's input ends with the connection, also if that breaks.
            stdin_once: Some(true),
            resources: Some(ResourceRequirements {
                limits: Some(resources.clone()),
                requests: Some(resources),
                ..ResourceRequirements::default()
            }),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(Capabilities {
                    drop: Some(vec!["ALL".into()]),
                    ..Capabilities::default()
                }),
                ..SecurityContext::default()
            }),
            ..Container::default()
        }
    }
}

/// At least one second, rounded up.
fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis().div_ceil(1000)).unwrap_or(i64::MAX).max(1)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in super::super) fn settings(workers: usize) -> JobSettings {
        JobSettings {
            name: "deadheat-load-7".into(),
            namespace: "load".into(),
            workers,
            image: "registry.example/deadheat:0.1.0".into(),
            pull_secret: Some("registry".into()),
            cpu: "2".into(),
            memory: "256Mi".into(),
            ready_timeout: Duration::from_secs(60),
            longest: Duration::from_millis(100_500),
            grace: Duration::from_secs(15),
        }
    }

    /// Field by field: what is sent is what a cluster's administrator allows.
    #[test]
    fn the_job_is_what_the_book_says() {
        let labels =
            json!({"app.kubernetes.io/name": "deadheat", "app.kubernetes.io/instance": "deadheat-load-7"});
        let resources = json!({"cpu": "2", "memory": "256Mi"});
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "deadheat-load-7", "labels": labels},
            "spec": {
                "completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimit": 0,
                "activeDeadlineSeconds": 161, "ttlSecondsAfterFinished": 60,
                "template": {"metadata": {"labels": labels}, "spec": {
                    "restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 15, "imagePullSecrets": [{"name": "registry"}],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                        "nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": labels},
                    }],
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65534, "runAsGroup": 65534,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "agent", "image": "registry.example/deadheat:0.1.0", "args": ["agent"],
                        "stdin": true, "stdinOnce": true,
                        "resources": {"limits": resources, "requests": resources},
                        "securityContext": {
                            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                }},
            },
        });
        assert_eq!(serde_json::to_value(settings(3).job()).unwrap(), expected);
        let open = JobSettings { pull_secret: None, ..settings(1) };
        let pod = serde_json::to_value(open.job()).unwrap()["spec"]["template"]["spec"].clone();
        assert!(pod.get("imagePullSecrets").is_none(), "{pod}");
    }
}
