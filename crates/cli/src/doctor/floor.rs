//! The noise floor: one server raced against itself.
//!
//! Owns: which server, how long, and what is kept of the race. Must not know: what follows from it.

use std::path::Path;
use std::time::Duration;

use deadheat_record::{CgroupKind, NoiseFloor, VerdictWord};

use super::arena::{Arena, Ended};
use super::saturated::{Calibration, calibrate};
use crate::commands::Failure;
use crate::flags::DoctorFlags;
use deadheat_study::choices::{Choices, MethodChoices};
use deadheat_study::plan::AdHoc;
use deadheat_study::values::EpochRange;

/// Epochs of the race, unless others are asked for.
const EPOCHS: usize = 8;
/// The built-in server has nothing to compile; this is what its connections and the processor's clock need.
const WARMUP: Duration = Duration::from_secs(1);

/// The servers that are raced against each other.
pub(crate) enum Contenders {
    /// The built-in one, which works so much for each answer.
    BuiltIn(Calibration),
    /// A command that was given, twice.
    Own(AdHoc),
}

impl Contenders {
    /// The command that was given, or else the built-in server, which is calibrated first.
    ///
    /// # Errors
    /// When the command makes no sense, or the built-in server cannot be measured.
    pub(crate) fn of(flags: &DoctorFlags, arena: &Arena<'_>) -> Result<Self, Failure> {
        match flags.own_server()? {
            Some(twice) => Ok(Self::Own(twice)),
            None => Ok(Self::BuiltIn(calibrate(arena.pinning)?)),
        }
    }

    /// The two commands of a server against itself.
    ///
    /// # Errors
    /// When this program does not know where it is.
    pub(crate) fn twice(&self, arena: &Arena<'_>) -> std::io::Result<AdHoc> {
        match self {
            Self::Own(twice) => Ok(twice.clone()),
            Self::BuiltIn(calibration) => pair(calibration.steps, calibration.steps, arena),
        }
    }

    /// How a race of them is held; the built-in server needs no pilot to find its warm-up.
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

/// Two built-in servers whose answers work so many steps, a thread on each of the servers' cores.
pub(super) fn pair(baseline: u64, contender: u64, arena: &Arena<'_>) -> std::io::Result<AdHoc> {
    let program = std::env::current_exe()?;
    let threads = arena.pinning.server_cpus.len().max(1);
    let command = |steps: u64| {
        format!(
            "exec {} null --port {{port}} --backend epoll --threads {threads} --spin-steps {steps}",
            quoted(&program)
        )
    };
    Ok(AdHoc::pair([command(baseline), command(contender)], "/".into()))
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// Races a server against itself. None when it was interrupted before the second epoch; on a machine so noisy that every
/// round was left out, it has no spread, and the race says why.
///
/// # Errors
/// When the race fails.
pub(crate) fn noise_floor(
    flags: &DoctorFlags,
    contenders: &Contenders,
    arena: &Arena<'_>,
    seed: u64,
) -> Result<Option<NoiseFloor>, Failure> {
    let epochs = flags.epochs.map_or(EPOCHS, |epochs| epochs as usize);
    let mut choices = contenders.choices(flags, WARMUP);
    choices.method.epochs = Some(EpochRange { fewest: epochs, most: epochs });
    // A command of one's own may take its time; the built-in server takes a minute at the most.
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

/// What the race says; of one that was interrupted, that nothing can be said.
pub(super) fn verdict(ended: &Ended) -> VerdictWord {
    ended.pair().map_or(VerdictWord::Inconclusive, |pair| pair.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_the_shell() {
        let path = "/a b/it's; $(x)";
        let script = format!("printf %s {}", quoted(Path::new(path)));
        let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), path);
    }
}
