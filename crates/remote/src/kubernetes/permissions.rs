//! What deadheat may do in a namespace, so that it can load from there. `kubernetes/access.yaml` grants exactly this.

use std::fmt;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};

/// One verb on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permission {
    pub(super) verb: &'static str,
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) subresource: &'static str,
    /// Whether load is impossible without it. The others only make errors clearer.
    pub(super) needed: bool,
}

impl Permission {
    const fn new(
        verb: &'static str,
        group: &'static str,
        resource: &'static str,
        subresource: &'static str,
    ) -> Self {
        Self { verb, group, resource, subresource, needed: true }
    }

    const fn helpful(self) -> Self {
        Self { needed: false, ..self }
    }

    /// The question to the cluster whether the user has it.
    pub(super) fn review(self, namespace: &str) -> SelfSubjectAccessReview {
        let word = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
        let attributes = ResourceAttributes {
            namespace: word(namespace),
            verb: word(self.verb),
            group: word(self.group),
            resource: word(self.resource),
            subresource: word(self.subresource),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
    }
}

impl fmt::Display for Permission {
    /// `create jobs`, `get pods/attach`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.verb, self.resource)?;
        if self.subresource.is_empty() { Ok(()) } else { write!(out, "/{}", self.subresource) }
    }
}

pub(super) const CREATE_JOB: Permission = Permission::new("create", "batch", "jobs", "");
pub(super) const DELETE_JOB: Permission = Permission::new("delete", "batch", "jobs", "");
pub(super) const LIST_PODS: Permission = Permission::new("list", "", "pods", "");
/// An attach begins with the method GET. Since Kubernetes 1.35, `create` is needed as well, and old servers do not ask for it.
pub(super) const ATTACH: Permission = Permission::new("get", "", "pods", "attach");
const ATTACH_SINCE_1_35: Permission = Permission::new("create", "", "pods", "attach").helpful();
const READ_LOG: Permission = Permission::new("get", "", "pods", "log").helpful();
const LIST_EVENTS: Permission = Permission::new("list", "", "events", "").helpful();

/// All of them.
pub(super) const ALL: [Permission; 7] =
    [CREATE_JOB, DELETE_JOB, LIST_PODS, ATTACH, ATTACH_SINCE_1_35, READ_LOG, LIST_EVENTS];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The manifest grants what is used, and nothing else.
    #[test]
    fn the_manifest_grants_exactly_this() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kubernetes/access.yaml");
        let text = std::fs::read_to_string(path).unwrap();
        let role = text.split("---").find(|part| part.contains("kind: Role\n")).unwrap();
        let list = |line: &str, key: &str| -> Option<Vec<String>> {
            let inner = line.trim_start_matches("- ").strip_prefix(key)?.trim().strip_prefix('[')?;
            let words = inner.strip_suffix(']')?.split(',');
            Some(words.map(|word| word.trim().trim_matches('"').to_owned()).collect())
        };
        let (mut groups, mut resources, mut granted) = (vec![], vec![], BTreeSet::new());
        for line in role.lines().map(str::trim) {
            groups = list(line, "apiGroups:").unwrap_or(groups);
            resources = list(line, "resources:").unwrap_or(resources);
            for verb in list(line, "verbs:").unwrap_or_default() {
                for (group, resource) in groups.iter().flat_map(|one| resources.iter().map(move |r| (one, r)))
                {
                    granted.insert(format!("{group}: {verb} {resource}"));
                }
            }
        }
        let used: BTreeSet<String> = ALL.iter().map(|one| format!("{}: {one}", one.group)).collect();
        assert_eq!(granted, used);
    }

    #[test]
    fn the_question_names_verb_and_resource() {
        let review = serde_json::to_value(ATTACH.review("load")).unwrap();
        assert_eq!(
            review["spec"]["resourceAttributes"],
            serde_json::json!({"namespace": "load", "verb": "get", "resource": "pods", "subresource": "attach"})
        );
    }
}
