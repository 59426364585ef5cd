//! How a scenario's requests reach contenders, in words.
//!
//! Owns: what is worth mentioning: TLS, and connections that serve only one request. Must not know: how it is laid out.

use deadheat_record::{Plan, ScenarioPlan};

/// `over TLS, a new connection for each request`; none for plain HTTP on persistent connections.
pub(crate) fn about(plan: &Plan, scenario: &ScenarioPlan) -> Option<String> {
    let tls = scenario.traffic.tls.then_some("over TLS");
    let anew = plan.connects_anew(scenario).then_some("a new connection for each request");
    let words: Vec<&str> = tls.into_iter().chain(anew).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_unusual_is_told() {
        let document = include_str!("../../record/tests/fixtures/example.json");
        let document: deadheat_analysis::Report = serde_json::from_str(document).unwrap();
        let mut plan = document.record.plan;
        let told = |plan: &Plan| about(plan, &plan.scenarios[0]);
        assert_eq!(told(&plan), None);
        plan.scenarios[0].traffic.tls = true;
        assert_eq!(told(&plan).as_deref(), Some("over TLS"));
        plan.probes.iter_mut().for_each(|probe| {
            probe.request_headers.insert("connection".into(), "close".into());
        });
        assert_eq!(told(&plan).as_deref(), Some("over TLS, a new connection for each request"));
    }
}
