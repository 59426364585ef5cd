//! Measures the generator's ceiling against a server that does nothing.
//!
//! Owns: that measurement, which resembles the load as closely as possible: the same connections, threads, CPUs, requests and checks. Must not
//! know: how the ceiling is judged.

use std::sync::Arc;
use std::time::Duration;

use deadheat_load::{BodyRule, NullConfig, NullServer, Session, SliceOrder, with_causes};

use super::checks::Checks;
use super::plan::LoadPlan;
use super::run::{Connected, config};
use deadheat_study::choices::UsageError;

/// How long a ceiling is warmed up, and how long it is then measured.
pub(crate) const WARMUP: Duration = Duration::from_millis(300);
pub(crate) const MEASURED: Duration = Duration::from_millis(1_700);

/// The ceiling in answers per second. `cpus` are those that this process may use. The null server gets the ones that the generator does not use, if
/// there are any.
///
/// # Errors
/// The ceiling cannot be measured.
/// When it cannot be measured.
pub(crate) fn ceiling(plan: &LoadPlan, checks: &Checks, cpus: &[usize]) -> Result<f64, UsageError> {
    let failed = |error: &dyn std::error::Error| {
        UsageError::new(
            format!("--ceiling could not be measured: {}", with_causes(error)),
            "leave --ceiling out",
        )
    };
    let others: Vec<usize> = cpus.iter().copied().filter(|cpu| !plan.cpus.contains(cpu)).collect();
    let shared = others.is_empty();
    let server = NullServer::start(NullConfig {
        body_bytes: length(checks),
        threads: plan.threads,
        cpus: if plan.cpus.is_empty() { Vec::new() } else { others },
        backend: plan.backend,
        ..NullConfig::default()
    });
    let server = server.map_err(|error| failed(&error))?;
    let here = Connected { address: server.address().clone(), tls: None, hosts: None };
    let answer = here.ask(&plan.wires.all[0], plan.timeout, &|| false);
    let answer = answer.map_err(|reason| failed(&std::io::Error::other(reason)))?;
    // Checks that cost the generator time in the load also apply here: a digest if the load uses one.
    let bodies: Vec<BodyRule> = checks
        .bodies
        .iter()
        .zip(&plan.wires.all)
        .map(|(body, wire)| body.as_costly(&answer.body, wire.method == "HEAD"))
        .collect();
    let requests = Arc::new(plan.wires.requests(&bodies, plan.seed)?);
    let plan = LoadPlan { max_connections: plan.connections, ..plan.clone() };
    let mut config = config(&plan, &here, requests);
    // A worker that shares its CPU with the null server must sleep. Otherwise it takes half of the CPU time that the server needs.
    config.spin &= !shared;
    let mut session = Session::open(config).map_err(|error| failed(&error))?;
    session.slice(&SliceOrder::closed(WARMUP)).map_err(|error| failed(&error))?;
    let tally = session.slice(&SliceOrder::closed(MEASURED)).map_err(|error| failed(&error))?;
    tally
        .throughput_per_s()
        .ok_or_else(|| UsageError::new("--ceiling: the null server gave no answer", "leave --ceiling out"))
}

/// The typical length of a body in the load, if known.
fn length(checks: &Checks) -> usize {
    let lengths = checks.bodies.iter().filter_map(|body| match body {
        BodyRule::Any => None,
        BodyRule::Length(length) | BodyRule::Digest { length, .. } => Some(*length),
    });
    let (count, sum) = lengths.fold((0, 0), |(count, sum), length| (count + 1, sum + length));
    sum.checked_div(count).map_or(NullConfig::default().body_bytes, |mean| mean as usize)
}
