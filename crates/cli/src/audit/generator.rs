//! Runs one external generator several times against the built-in null server.
//!
//! Owns: the course of the runs, and the division of the cores. Must not know: what was published.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use deadheat_host::affinity;
use deadheat_load::{Address, NullConfig, NullServer};
use deadheat_record::{GeneratorAudit, Pinning};
use deadheat_stats::Sample;

use super::output::throughput;
use deadheat_host::command::{ShellCommand, in_words, log_name};
use deadheat_study::file::Generator;
use deadheat_study::prepare::unmet;

/// The number of runs for an interval.
const RUNS: usize = 5;
/// A run that exceeds its duration by this time is stopped. The margin is large because a run may first have to load an interpreter.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval's two-sided error rate.
const ALPHA: f64 = 0.05;

/// The environment of the runs.
pub(crate) struct Place<'p> {
    /// The cores of the null server and of the generator.
    pub(crate) pinning: &'p Pinning,
    /// The study's folder and its work folder.
    pub(crate) folder: &'p Path,
    pub(crate) work: &'p Path,
    /// The default number of connections.
    pub(crate) connections: u32,
    /// Whether the user interrupted the audit.
    pub(crate) stopped: &'p (dyn Fn() -> bool + Sync),
}

/// Runs the generator. If it cannot run, `skipped` says why.
pub(crate) fn measure(generator: &Generator, place: &Place<'_>) -> GeneratorAudit {
    let mut audit = GeneratorAudit {
        name: generator.name.get_ref().clone(),
        command: generator.command.get_ref().clone(),
        published: generator.published,
        connections: generator.connections.unwrap_or(place.connections),
        duration_s: generator.duration_s,
        cpus: place.pinning.load_cpus.clone(),
        runs_rps: Vec::new(),
        throughput_rps: None,
        low: None,
        high: None,
        server_share: None,
        skipped: None,
        beyond: Vec::new(),
        text: String::new(),
    };
    audit.skipped = unmet(&generator.needs, &generator.folder, std::env::var_os("PATH").as_deref());
    if audit.skipped.is_none()
        && let Err(why) = runs(generator, place, &mut audit)
    {
        audit.skipped = Some(why);
    }
    if audit.runs_rps.len() < RUNS {
        // What some runs reached is no result of all of them.
        (audit.runs_rps, audit.server_share) = (Vec::new(), None);
    }
    let logs: Vec<f64> = audit.runs_rps.iter().map(|rate| rate.ln()).collect();
    let sample = Sample::of(&logs);
    audit.throughput_rps = sample.map(|sample| sample.mean.exp());
    let interval = sample.and_then(|sample| sample.t_interval(ALPHA));
    (audit.low, audit.high) = interval.map_or((None, None), |interval| interval.as_ratios());
    audit
}

fn runs(generator: &Generator, place: &Place<'_>, audit: &mut GeneratorAudit) -> Result<(), String> {
    let cpus = &place.pinning.server_cpus;
    let server = NullServer::start(NullConfig {
        threads: cpus.len().max(1),
        cpus: cpus.clone(),
        body_bytes: generator.body_bytes as usize,
        ..NullConfig::default()
    });
    let server = server.map_err(|error| format!("the null server does not start: {error}"))?;
    let Address::Tcp(address) = server.address() else { return Err("the null server has no port".into()) };
    let values = BTreeMap::from([
        ("study".to_owned(), place.folder.display().to_string()),
        ("work".to_owned(), place.work.display().to_string()),
        ("url".to_owned(), format!("http://{address}/")),
        ("port".to_owned(), address.port().to_string()),
        ("connections".to_owned(), audit.connections.to_string()),
        ("duration".to_owned(), generator.duration_s.to_string()),
    ]);
    let log = place.work.join("logs").join(log_name("generator", &audit.name));
    let order = ShellCommand::new(generator.command.get_ref(), &generator.folder, [], &values, log);
    audit.command = order.shown();
    let mut shares = Vec::new();
    while audit.runs_rps.len() < RUNS && !(place.stopped)() {
        let before = server.cpu_ns();
        let rate = one_run(&order, generator, place);
        if (place.stopped)() {
            break;
        }
        audit.runs_rps.push(rate?);
        let spent_ns = server.cpu_ns().zip(before).map(|(after, before)| after.saturating_sub(before));
        shares.extend(spent_ns.map(|ns| share_of(ns, generator.duration_s, cpus.len())));
    }
    audit.server_share = Sample::of(&shares).map(|sample| sample.mean);
    Ok(())
}

/// The share of these cores that the CPU time is, over the duration of the load (0 cores: one thread on any core). The time for the generator's
/// start does not count.
fn share_of(cpu_ns: u64, duration_s: f64, cores: usize) -> f64 {
    (cpu_ns as f64 / 1e9 / duration_s / cores.max(1) as f64).min(1.0)
}

/// One run on the generator's cores. A thread pinned to them starts it, and child processes inherit the pinning.
fn one_run(order: &ShellCommand, generator: &Generator, place: &Place<'_>) -> Result<f64, String> {
    let (cpus, stopped) = (&place.pinning.load_cpus, place.stopped);
    let limit = Duration::from_secs_f64(generator.duration_s) + PATIENCE;
    let bound = std::thread::scope(|scope| {
        let thread = scope.spawn(|| affinity::pin(cpus).and_then(|()| order.run_until(limit, &|| stopped())));
        thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the run was broken off")))
    });
    let why = match bound {
        Err(error) => format!("`{}` could not be run: {error}", order.shown()),
        Ok(None) => format!("`{}` did not end within {} s", order.shown(), limit.as_secs()),
        Ok(Some(status)) if !status.success() => {
            format!("`{}` ended with {}{}", order.shown(), in_words(status), order.tail())
        }
        Ok(Some(_)) => match throughput(&order.output(), generator.reads) {
            Some(rate) => return Ok(rate),
            None => format!("`{}` printed no throughput that can be read{}", order.shown(), order.tail()),
        },
    };
    Err(why)
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn a_share_is_of_all_cores_and_never_more_than_all() {
        assert_eq!((share_of(1_500_000_000, 3.0, 1), share_of(1_500_000_000, 3.0, 2)), (0.5, 0.25));
        assert_eq!((share_of(3_300_000_000, 3.0, 1), share_of(0, 3.0, 0)), (1.0, 0.0));
    }
}
