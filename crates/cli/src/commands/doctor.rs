//! `deadheat doctor`: checks whether this machine is fit for measuring, and how small a difference it can detect.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use deadheat_analysis::doctor::{conclude, conclude_floor};
use deadheat_host::LocalHost;
use deadheat_host::cgroup::Hierarchy;
use deadheat_host::clock::unix_ms;
use deadheat_host::facts::{machine, throttle_events};
use deadheat_host::monitor::awake::{Awake, CPU_LATENCY_DEVICE, usual_cpu_latency_us};
use deadheat_host::monitor::noise::watch_noise;
use deadheat_host::open_files::raise_open_files;
use deadheat_host::process::run::RunId;
use deadheat_record::{DOCTOR_SCHEMA, DoctorMode, DoctorRecord, Finding, Pinning, Proof};
use deadheat_report::doctor;
use deadheat_runner::LoadGenerator;

use super::Failure;
use super::output::write_json;
use super::race::{tell_leftovers, writable};
use crate::console::Console;
use crate::doctor::{
    Arena, Contenders, Prover, built_in_rows, ceiling, noise_floor, over_link, own_row, profiles,
};
use crate::elsewhere::{Elsewhere, load_from, reach};
use crate::flags::DoctorFlags;
use crate::flags::Output;
use crate::folder::Folder;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::server_host;
use deadheat_study::choices::UsageError;
use deadheat_study::plan::{self, Topology};

/// How long doctor watches for disturbances of the machine.
const WATCHED: Duration = Duration::from_secs(1);

/// Examines the machine and shows the result.
pub(crate) fn doctor(
    flags: &DoctorFlags,
    arguments: &[OsString],
    console: &mut Console,
) -> Result<u8, Failure> {
    flags.own_server()?;
    if let Some(host) = &flags.hosts.server.server_host {
        return server_host::doctor(flags, host, arguments, console);
    }
    if flags.json == Some(Output::Standard) {
        console.keep_output_for_data();
    }
    let topology = Topology::of_machine();
    let load_from = load_from(&flags.hosts, console)?;
    pinning(flags, load_from.is_some(), &topology)?;
    if let Some(Output::File(path)) = &flags.json {
        writable(path, "--json")?;
    }
    let (run, hierarchy, interrupt) = (RunId::current(), Hierarchy::detect(), Interrupt::listen()?);
    let start = Instant::now();
    let elsewhere = reach(load_from.as_ref(), &interrupt, console)?;
    let host = LocalHost { run: &run, hierarchy: &hierarchy };
    let throttled = throttle_events();
    let mut record = facts(flags, elsewhere.is_some(), &topology, &host, &interrupt, console)?;
    raise_open_files()?;
    let examined = examine(flags, elsewhere.as_ref(), &mut record, &topology, &host, &interrupt, console);
    // After an error, too, these are the results so far.
    record.interrupted = interrupt.asked() || examined.is_err();
    record.noise.throttled = throttle_events().zip(throttled).map(|(now, before)| now.saturating_sub(before));
    record.took_s = start.elapsed().as_secs_f64();
    conclude(&mut record);
    console.result(&doctor::summary(&record, &console.output));
    write_json(flags.json.as_ref(), &record, console)?;
    if let (Err(_), Some(lost)) = (&examined, elsewhere.as_ref().and_then(LoadGenerator::lost)) {
        return Err(Failure::HostLost(UsageError::new(lost.message, lost.remedy)));
    }
    examined?;
    Ok(match (record.interrupted, record.fit) {
        (true, _) => INTERRUPTED,
        (false, true) => 0,
        (false, false) => 3,
    })
}

/// The cores of the servers, and those of the generator if the load comes from this machine.
fn pinning(flags: &DoctorFlags, from_hosts: bool, topology: &Topology) -> Result<Pinning, UsageError> {
    let (server, load) = (flags.machine.server_cpus.as_ref(), flags.machine.load_cpus.as_ref());
    match from_hosts {
        true => topology.for_servers(server, load),
        false => Ok(topology.divide(server, load)?.0),
    }
}

/// Collects facts about the machine and its disturbances, before this program puts any load on it.
fn facts(
    flags: &DoctorFlags,
    from_hosts: bool,
    topology: &Topology,
    host: &LocalHost<'_>,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<DoctorRecord, Failure> {
    let pinning = pinning(flags, from_hosts, topology)?;
    let left = tell_leftovers(host.hierarchy, console);
    console.note("watching other programs and stolen CPU time, for one second each");
    let mode = match (flags.quick, flags.full) {
        (true, _) => DoctorMode::Quick,
        (_, true) => DoctorMode::Full,
        _ => DoctorMode::Usual,
    };
    Ok(DoctorRecord {
        schema: DOCTOR_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_ms: unix_ms(),
        took_s: 0.0,
        seed: flags.seed.unwrap_or_else(plan::fresh_seed),
        mode,
        machine: machine(Path::new("/"), host.hierarchy, host.run),
        pinning,
        noise: watch_noise(&topology.cpus(), host.hierarchy, WATCHED, &|| interrupt.asked()),
        ceiling: None,
        link: None,
        floor: None,
        resolution: Vec::new(),
        sentence: None,
        proof: None,
        findings: left,
        fit: true,
        interrupted: false,
    })
}

/// Measures as much as requested. If an error or an interruption stops it, the record contains the measurements up to then.
fn examine(
    flags: &DoctorFlags,
    elsewhere: Option<&Elsewhere>,
    record: &mut DoctorRecord,
    topology: &Topology,
    host: &LocalHost<'_>,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<(), Failure> {
    if interrupt.asked() {
        return Ok(());
    }
    let awake = keep_awake(flags, record);
    match elsewhere {
        None => {
            console.note("ceiling: loading the null server for two seconds");
            let (reached, io_uring) = ceiling(&record.pinning, flags.measured())?;
            record.ceiling = Some(reached);
            record.machine.details.io_uring = Some(io_uring);
        }
        Some(elsewhere) => {
            console.note("link and ceiling: the load hosts load the null server for a few seconds");
            let (reached, link, io_uring) = over_link(elsewhere, &record.pinning, flags.measured())?;
            (record.ceiling, record.link) = (Some(reached), Some(link));
            record.machine.details.io_uring = Some(io_uring);
        }
    }
    if record.mode == DoctorMode::Quick || interrupt.asked() {
        return Ok(());
    }
    let (machine, pinning) = (record.machine.clone(), record.pinning.clone());
    let folder = Folder::make("doctor")?;
    let mut arena =
        Arena { console, interrupt, host, machine: &machine, topology, pinning: &pinning, folder, elsewhere };
    // Races keep their cores awake themselves.
    drop(awake);
    let raced = races(flags, record, &arena);
    if raced.is_err() {
        // The error may name a log in it.
        arena.folder.keep();
    }
    raced
}

/// Races a server against itself, and those of the proof if they are asked for.
fn races(flags: &DoctorFlags, record: &mut DoctorRecord, arena: &Arena<'_>) -> Result<(), Failure> {
    let contenders = Contenders::of(flags, arena)?;
    arena.console.note("noise floor: a server raced against itself");
    record.floor = noise_floor(flags, &contenders, arena, record.seed)?;
    if let Some(alpha) = record.floor.as_ref().map(|floor| floor.alpha) {
        conclude_floor(record, &profiles(alpha));
    }
    if record.mode == DoctorMode::Full && !arena.interrupt.asked() {
        prove(flags, record, &contenders, arena)?;
    }
    Ok(())
}

/// Keeps cores awake as in a race. Reports if this is impossible.
fn keep_awake(flags: &DoctorFlags, record: &mut DoctorRecord) -> Option<Awake> {
    let why = match flags.machine.cpu_latency.map_or_else(usual_cpu_latency_us, |typed| typed.0) {
        Some(latency_us) => match Awake::hold(latency_us, &record.pinning.server_cpus) {
            Ok(awake) => return Some(awake),
            Err(error) => error.to_string(),
        },
        None if flags.machine.cpu_latency.is_some() => "--cpu-latency any allows it".to_owned(),
        None => format!("{CPU_LATENCY_DEVICE} may not be written"),
    };
    let message =
        format!("idle processors sleep ({why}): a contender below its limit pays for waking them up");
    let remedy = format!("race with --cpu-latency 0, run as root, or: sudo chmod a+w {CPU_LATENCY_DEVICE}");
    record.findings.push(Finding::warn("processors-sleep", message, remedy));
    None
}

/// Runs the races of the proof, with a line for each.
fn prove(
    flags: &DoctorFlags,
    record: &mut DoctorRecord,
    contenders: &Contenders,
    arena: &Arena<'_>,
) -> Result<(), Failure> {
    let rows = match contenders {
        Contenders::BuiltIn(calibration) => {
            arena.console.note("proof: measuring the planted difference");
            built_in_rows(calibration, arena)?
        }
        Contenders::Own(twice) => own_row(twice),
    };
    let prover = Prover { flags, arena, contenders, rows, seed: record.seed };
    let mut proof = prover.planned();
    let console = arena.console;
    console.note(&doctor::announcement(&proof));
    let done = prover.prove(&mut proof, &mut |proof| {
        if let Some(race) = proof.results.last() {
            console.note(&doctor::race_line(proof, race, proof.results.len(), &console.progress));
            keep(flags, record, proof, console);
        }
    });
    record.proof = Some(proof);
    done
}

/// Writes the results so far to the requested file, so that a forced exit after half an hour does not lose finished races.
fn keep(flags: &DoctorFlags, record: &DoctorRecord, proof: &Proof, console: &Console) {
    let Some(file @ Output::File(_)) = &flags.json else { return };
    let mut so_far = DoctorRecord { proof: Some(proof.clone()), interrupted: true, ..record.clone() };
    conclude(&mut so_far);
    // An error here is ignored. If it persists, it appears when the complete record is written at the end.
    let _ = write_json(Some(file), &so_far, console);
}
