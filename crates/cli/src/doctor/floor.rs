//! The noise floor: one server raced against itself.
//!
//! Owns: which server, for how long, and what is kept of the race. Must not know: conclusions from the result.

use std::time::Duration;

use deadheat_host::command::quoted;
use deadheat_record::{CgroupKind, NoiseFloor, VerdictWord};

use super::arena::{Arena, Ended};
use super::saturated::{Calibration, calibrate};
use crate::commands::Failure;
use crate::flags::DoctorFlags;
use deadheat_study::choices::{Choices, MethodChoices};
use deadheat_study::plan::AdHoc;
use deadheat_study::values::EpochRange;

/// The default number of epochs.
const EPOCHS: usize = 8;
/// The built-in server compiles nothing at run time. This is the time that its connections and the processor's clock rate need.
const WARMUP: Duration = Duration::from_secs(1);

/// The servers in these races.
pub(crate) enum Contenders {
    /// The built-in server, with this work for each answer.
    BuiltIn(Calibration),
    /// The user's command, twice.
    Own(AdHoc),
}

impl Contenders {
    /// The user's command, or by default the built-in server after its calibration.
    ///
    /// # Errors
    /// The command is invalid, or the built-in server cannot be measured.
    pub(crate) fn of(flags: &DoctorFlags, arena: &Arena<'_>) -> Result<Self, Failure> {
        match flags.own_server()? {
            Some(twice) => Ok(Self::Own(twice)),
            None => Ok(Self::BuiltIn(calibrate(&arena.cores_here()?, flags.measured())?)),
        }
    }

    /// The two commands that start the same server.
    ///
    /// # Errors
    /// The path of this program is unknown.
    pub(crate) fn twice(&self, arena: &Arena<'_>) -> std::io::Result<AdHoc> {
        match self {
            Self::Own(twice) => Ok(twice.clone()),
            Self::BuiltIn(calibration) => pair(calibration.steps, calibration.steps, arena),
        }
    }

    /// The options of such a race. The built-in server needs no pilot, because its warm-up is fixed.
    pub(crate) fn choices(&self, flags: &DoctorFlags, warmup: Duration) -> Choices {
        let warmup = match self {
            Self::BuiltIn(_) => Some(flags.warmup.unwrap_or(warmup)),
            Self::Own(_) => flags.warmup,
        };
        let method =
            MethodChoices { warmup, measure: flags.measure, slice: flags.slice, ..MethodChoices::default() };
        Choices { method, machine: flags.machine.clone(), ..Choices::default() }
    }
}

/// Commands for two built-in servers with this number of steps for each answer. Each has a thread on each of the servers' cores.
pub(super) fn pair(baseline: u64, contender: u64, arena: &Arena<'_>) -> std::io::Result<AdHoc> {
    let program = std::env::current_exe()?;
    let threads = arena.pinning.server_cpus.len().max(1);
    let host = match arena.elsewhere {
        None => String::new(),
        Some(elsewhere) => format!(" --host {}", elsewhere.from().server_address),
    };
    let command = |steps: u64| {
        format!(
            "exec {} null --port {{port}}{host} --backend epoll --threads {threads} --spin-steps {steps}",
            quoted(&program.to_string_lossy())
        )
    };
    Ok(AdHoc::pair([command(baseline), command(contender)], "/".into()))
}

/// Races a server against itself. `None` if it was interrupted before the second epoch. On a machine so noisy that every round is excluded, the
/// result has no spread, and the race says why.
///
/// # Errors
/// The race fails.
pub(crate) fn noise_floor(
    flags: &DoctorFlags,
    contenders: &Contenders,
    arena: &Arena<'_>,
    seed: u64,
) -> Result<Option<NoiseFloor>, Failure> {
    let epochs = flags.epochs.map_or(EPOCHS, |epochs| epochs as usize);
    let mut choices = contenders.choices(flags, WARMUP);
    choices.method.epochs = Some(EpochRange { fewest: epochs, most: epochs });
    // Enough time for a slow command. The built-in server takes at most a minute.
    choices.method.budget = Some(Duration::from_secs(600));
    let twice = contenders.twice(arena)?;
    let ended = arena.race(&twice, &choices, seed, true)?;
    let pair = ended.pair();
    let epochs = pair.map_or(0, |pair| pair.epochs);
    if ended.interrupted && epochs < 2 {
        return Ok(None);
    }
    let first = ended.results().first();
    Ok(Some(NoiseFloor {
        command: twice.commands[0].clone(),
        built_in: matches!(contenders, Contenders::BuiltIn(_)),
        epochs,
        epoch_s: ended.epoch_s(),
        throughput_rps: first.and_then(|result| result.throughput_rps),
        cpu_us_per_request: first.and_then(|result| result.cpu_us_per_request),
        ratio: pair.and_then(|pair| pair.ratio),
        low: pair.and_then(|pair| pair.low),
        high: pair.and_then(|pair| pair.high),
        verdict: verdict(&ended),
        alpha: ended.record.plan.method.alpha,
        sd_log_ratio: pair.and_then(|pair| pair.sd_log_ratio),
        sd_range: None,
        stilled_by: if arena.machine.cgroup == CgroupKind::None { "signals" } else { "freezer" }.into(),
        findings: ended.findings(),
    }))
}

/// The verdict of the race; inconclusive if it was interrupted.
pub(super) fn verdict(ended: &Ended) -> VerdictWord {
    ended.pair().map_or(VerdictWord::Inconclusive, |pair| pair.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_the_shell() {
        let path = "/a b/it's; $(x)";
        let script = format!("printf %s {}", quoted(path));
        let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), path);
    }
}
