//! Owns: how to scale a scenario that needs more cores than contenders have here. Must not know: the study's file.

use deadheat_record::{Finding, ScenarioPlan};

/// Reduces a quota to the number of cores on which contenders may run, of which a scenario may have its own, and reports this in a finding. Does nothing
/// if there are `0`: they are unknown.
pub(super) fn scale(scenario: &mut ScenarioPlan, cores: usize) -> Option<Finding> {
    let asked = scenario.limits.cpus?;
    let own = &scenario.limits.cpuset;
    let cores = if own.is_empty() { cores } else { own.len() };
    if cores == 0 || asked <= cores as f64 {
        return None;
    }
    (scenario.limits.cpus, scenario.limits.asked_cpus) = (Some(cores as f64), Some(asked));
    Some(Finding::warn(
        "fewer-cores",
        format!(
            "scenario `{}` asks for {asked} cores, but contenders have only {cores} here: it runs on {cores}, and its results do not apply to {asked} cores",
            scenario.name
        ),
        "race it on a machine with more cores, or give contenders more with --server-cpus",
    ))
}

#[cfg(test)]
mod tests {
    use deadheat_record::{Experiment, Limits};

    use super::*;

    fn scenario(cpus: Option<f64>, cpuset: Vec<usize>) -> ScenarioPlan {
        ScenarioPlan {
            name: "s".into(),
            shape: Experiment::Closed { connections: 1 },
            requests: Vec::new(),
            limits: Limits { cpus, cpuset, ..Limits::default() },
            metrics: Vec::new(),
            slices: None,
            sweep: None,
            ladder: None,
            link: None,
            traffic: deadheat_record::Traffic::default(),
        }
    }

    #[test]
    fn a_quota_is_scaled_to_the_cores_that_there_are() {
        let scaled = |cpus, cpuset: Vec<usize>, servers: usize| {
            let mut scenario = scenario(cpus, cpuset);
            let said = scale(&mut scenario, servers).map(|finding| finding.message);
            assert_eq!(scenario.limits.asked_cpus, cpus.filter(|_| said.is_some()), "what was asked is kept");
            (scenario.limits.cpus, said)
        };
        let (cpus, said) = scaled(Some(4.0), vec![], 1);
        assert_eq!(cpus, Some(1.0));
        assert!(said.unwrap().contains("asks for 4 cores, but contenders have only 1 here"));
        assert_eq!(scaled(Some(4.0), vec![2, 3], 8).0, Some(2.0));
        for fits in [
            scaled(Some(4.0), vec![], 4),
            scaled(Some(0.5), vec![], 1),
            scaled(Some(4.0), vec![], 0),
            scaled(None, vec![], 1),
        ] {
            assert_eq!(fits.1, None);
        }
    }
}
