//! `deadheat load`: the load generator alone.

use std::sync::Arc;

use deadheat_host::affinity::is_narrowed;
use deadheat_host::clock::unix_ms;
use deadheat_host::open_files::raise_open_files;
use deadheat_record::LoadRecord;
use deadheat_remote::kubernetes::LoadJob;
use deadheat_remote::{Program, RemoteError};
use rustix::process::{Resource, getrlimit};

use super::Failure;
use super::output::write_json;
use super::race::writable;
use crate::console::{Console, lines_plain};
use crate::elsewhere::{self, tell_reached};
use crate::flags::{LoadFlags, Output};
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::load::{
    Connected, LoadError, LoadPlan, Loaded, Show, Surroundings, ceiling, checks, connect, load as run_load,
    record, start_pods,
};
use deadheat_study::choices::UsageError;
use deadheat_study::plan::{self, Topology};

/// Loads one server and shows the result.
pub(crate) fn load(flags: &LoadFlags, console: &mut Console) -> Result<u8, Failure> {
    if flags.json == Some(Output::Standard) {
        console.keep_output_for_data();
    }
    raise_open_files()?;
    let cpus = Topology::of_machine().cpus();
    let open_files = getrlimit(Resource::Nofile).current;
    let cpus_chosen = is_narrowed(&cpus);
    let here = Surroundings { seed: plan::fresh_seed(), cpus, cpus_chosen, open_files };
    let plan = LoadPlan::of(flags, &here)?;
    if let Some(Output::File(path)) = &flags.json {
        writable(path, "--json")?;
    }
    if let Some(left_out) = &plan.wires.left_out {
        console.note(&lines_plain(&format!("note: {left_out}")));
    }
    let interrupt = Interrupt::listen()?;
    let job = plan
        .pods
        .clone()
        .map(LoadJob::prepare)
        .transpose()
        .map_err(|error| failure(RemoteError::from(error).into()))?;
    let done = loaded(flags, &plan, job.as_ref(), &here, &interrupt, console);
    // Also after a failure. What was measured has been shown: the cluster may take its time.
    if let Some(Err(error)) = job.map(|job| job.end()) {
        console.note(&lines_plain(&format!("{error}\n  {}", error.remedy())));
    }
    done
}

/// Everything between the plan and the exit status.
fn loaded(
    flags: &LoadFlags,
    plan: &LoadPlan,
    job: Option<&LoadJob>,
    here: &Surroundings,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<u8, Failure> {
    let record = match connected(plan, job, interrupt, console)? {
        Some(server) => measured(plan, &server, here, interrupt, console)?,
        None => None,
    };
    let Some(record) = record else {
        console.note("interrupted before anything was measured");
        return Ok(INTERRUPTED);
    };
    console.result(&deadheat_report::load::summary(&record, &console.output));
    write_json(flags.json.as_ref(), &record, console)?;
    Ok(status(&record))
}

/// Reaches the load hosts, if there are any, and the server. `None` if interrupted before that.
fn connected(
    plan: &LoadPlan,
    job: Option<&LoadJob>,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Connected>, Failure> {
    let stopped = || interrupt.asked();
    let hosts = match (&plan.pods, job.cloned()) {
        (Some(pods), Some(job)) => {
            let (workers, word) = (pods.workers, if pods.workers == 1 { "pod" } else { "pods" });
            console.note(&format!(
                "starting {workers} {word}: Job {} in the namespace {}",
                pods.name, pods.namespace
            ));
            let hosts = start_pods(job, &stopped).map_err(|error| failure(error.into()))?;
            if let Some(hosts) = &hosts {
                let names: Vec<&str> = hosts.names().collect();
                console.note(&lines_plain(&format!("running: {}", names.join(", "))));
            }
            hosts
        }
        _ if plan.hosts.is_empty() => return Ok(connect(plan, None, &stopped)?),
        _ => {
            tell_reached(&plan.hosts, console);
            elsewhere::connect(&plan.hosts, &Program::running(env!("CARGO_PKG_VERSION"))?, &stopped)?
        }
    };
    let Some(hosts) = hosts.map(Arc::new) else { return Ok(None) };
    // If a load host is lost, its silence is not the server's.
    connect(plan, Some(Arc::clone(&hosts)), &stopped).map_err(|error| match hosts.lost().into_iter().next() {
        Some(lost) => failure(lost.into()),
        None => error.into(),
    })
}

/// All measurements, in order. `None` if interrupted before the measured load.
fn measured(
    plan: &LoadPlan,
    server: &Connected,
    here: &Surroundings,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<LoadRecord>, Failure> {
    let stopped = || interrupt.asked();
    let mut ask = |wire: &_| server.ask(wire, plan.timeout, &stopped);
    if plan.wires.all.len() > 1 {
        console.note("asking requests before the load, to know their answers");
    }
    let checks = checks(&plan.wires.all, &plan.status, plan.expect, &mut ask, &stopped);
    let checks = checks.map_err(|error| match server.lost() {
        Some(lost) => failure(lost.into()),
        None => error.into(),
    })?;
    let Some(checks) = checks else { return Ok(None) };
    let requests = Arc::new(plan.wires.requests(&checks.bodies, plan.seed)?);
    let ceiling_rps = match plan.ceiling {
        false => None,
        true => {
            console.note("ceiling: loading the null server for two seconds");
            Some(ceiling(plan, &checks, &here.cpus)?)
        }
    };
    let begun = lines_plain(&format!("loading {} at {}", plan.target.origin(), server.address));
    if !console.live {
        console.note(&begun);
    }
    let started_unix_ms = unix_ms();
    let mut show = Show::new(console);
    let loaded = run_load(plan, server, requests, interrupt, &mut show);
    show.finish();
    let Some(loaded): Option<Loaded> = loaded.map_err(failure)? else { return Ok(None) };
    let record = record(plan, server, &checks, &loaded, ceiling_rps, started_unix_ms);
    let mut record = record.map_err(std::io::Error::other)?;
    record.findings = deadheat_analysis::gates::load::findings(&record);
    Ok(Some(record))
}

fn failure(error: LoadError) -> Failure {
    match error {
        LoadError::Open(usage) => usage.into(),
        LoadError::Session(error) => std::io::Error::other(error).into(),
        LoadError::Host(error) => {
            let usage = UsageError::new(error.to_string(), error.remedy());
            if error.is_loss() { Failure::HostLost(usage) } else { usage.into() }
        }
    }
}

/// 0: all answers as expected; 1: some were missing or wrong; 3: a finding invalidates the numbers; 130: interrupted.
fn status(record: &LoadRecord) -> u8 {
    if record.interrupted {
        INTERRUPTED
    } else if record.is_invalid() {
        3
    } else {
        u8::from(record.outcomes.failed() > 0)
    }
}
