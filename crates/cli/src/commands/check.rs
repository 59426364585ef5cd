//! `deadheat check`: checks parity only.

use std::ffi::OsString;

use deadheat_host::LocalHost;
use deadheat_host::cgroup::Hierarchy;
use deadheat_host::clock::SystemClock;
use deadheat_host::open_files::raise_open_files;
use deadheat_host::process::run::RunId;
use deadheat_report::terminal;
use deadheat_runner::{Event, Linked, Observer, Place};

use super::Failure;
use super::race::{enter, generator, networks, prepared, probe_files, tell_left_out, tell_leftovers};
use crate::console::{Console, lines_plain};
use crate::elsewhere::{load_from, reach};
use crate::flags::CheckFlags;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::live::waiting;
use crate::server_host;
use deadheat_study::choices::UsageError;
use deadheat_study::file as study;
use deadheat_study::plan::Purpose;

/// Starts every contender once, compares all answers and reports differences. The exit status is 1 if there are any.
pub(crate) fn check(
    flags: &CheckFlags,
    arguments: &[OsString],
    console: &mut Console,
) -> Result<u8, Failure> {
    if let Some(host) = &flags.hosts.server.server_host {
        return server_host::check(flags, host, arguments, console);
    }
    raise_open_files()?;
    let study = study::load(&flags.study)?;
    let (run, hierarchy) = (RunId::current(), Hierarchy::detect());
    let (host, interrupt) = (LocalHost { run: &run, hierarchy: &hierarchy }, Interrupt::listen()?);
    let load_from = load_from(&flags.hosts, console)?;
    let (resolved, _) =
        prepared(&study, &flags.choices(), Purpose::Check, load_from, console, &host, &interrupt)?;
    tell_left_out(&resolved, console);
    let plan = resolved.plan;
    let files = probe_files(&plan)?;
    tell_leftovers(&hierarchy, console);
    let elsewhere = reach(plan.load_from.as_ref(), &interrupt, console)?;
    // A check asks for answers, not for speed: contenders are where a race has them, and the link is as fast as can be.
    let networks = networks(&plan, &host)?;
    let linked = networks.as_ref().map(|networks| Linked::new(networks, &plan, host));
    let _among_servers = networks.as_ref().map(enter).transpose()?;
    let generator = generator(elsewhere.as_ref(), linked.as_ref());
    let logs = plan.work.join("logs");
    let stopped = || interrupt.asked();
    let place = Place { host: &host, generator, clock: &SystemClock::start(), files: &files };
    let checked = deadheat_runner::check(&plan, logs, place, &stopped, &mut Notes(console))?;
    if checked.interrupted {
        return Ok(INTERRUPTED);
    }
    if let Some(lost) = generator.lost() {
        return Err(Failure::HostLost(UsageError::new(lost.message, lost.remedy)));
    }
    if !checked.differences.is_empty() {
        console.result(&terminal::parity(&checked.differences, &console.output));
    }
    let different: std::collections::BTreeSet<&str> =
        checked.differences.iter().map(|difference| difference.contender.as_str()).collect();
    let good = checked.compared.len() - different.len();
    console.result(&format!(
        "{good} of {} contenders meet the contract and agree on {}\n",
        plan.contenders.len(),
        if checked.probes == 1 { "1 probe".into() } else { format!("{} probes", checked.probes) }
    ));
    let passed = checked.differences.is_empty() && checked.failed.is_empty();
    Ok(u8::from(!passed))
}

/// Reports failures during a check.
struct Notes<'a>(&'a Console);

impl Observer for Notes<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Waiting { contender, reason } => self.0.note(&waiting(contender, reason)),
            Event::Out { reason, .. } => self.0.note(&lines_plain(&format!("failed: {reason}"))),
            Event::Finding(finding) => {
                self.0.note(&lines_plain(&format!("note: {}\n  {}", finding.message, finding.remedy)));
            }
            _ => {}
        }
    }
}
