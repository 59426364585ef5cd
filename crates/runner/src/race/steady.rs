//! Checks whether contenders are as fast at the end of an epoch as at its beginning, and what the race does if not.
//!
//! Owns: the time of the check, and the longer warm-up. Must not know the test itself.

use deadheat_analysis::judge::climbing;
use deadheat_record::{Epoch, Finding, Line, ScenarioPlan};
use deadheat_stats::FEWEST_SLOPES;

use super::{Race, ScenarioError, ScenarioRun};
use crate::events::Event;

/// The race checks the warm-up after this many epochs that count. It does not count rounds: the speed of the machine itself varies over seconds, for
/// all contenders alike.
const WARMUP_CHECK: usize = FEWEST_SLOPES;

impl Race<'_> {
    /// Whether the race must continue after a decision, because a contender still seems to climb and later epochs can show whether it
    /// does. Four epochs on a noisy machine can look like a climb. The race continues to its next look, and does not stop as soon as the
    /// contender seems steady: a check after every epoch finds a contender steady sooner or later by chance. Verdicts stay as they were
    /// at their looks, so continuing costs time but no certainty. `counted`: the epochs that count.
    pub(super) fn is_unsettled(&self, run: &ScenarioRun<'_>, counted: usize) -> bool {
        let last = run.launcher.plan.method_of(run.scenario).looks.last().copied().unwrap_or(0);
        (WARMUP_CHECK..last).contains(&counted)
            && may_climb(run.scenario)
            && !climbing(&self.record, &run.scenario.name).is_empty()
    }

    /// Checks the warm-up once, after the first epochs and before any look. If a contender still climbs, the warm-up doubles and the scenario starts
    /// again.
    pub(super) fn check_warmup(&mut self, run: &ScenarioRun<'_>) -> Result<(), ScenarioError> {
        let name = &run.scenario.name;
        // Epochs with fewer than two rounds that count tell nothing.
        let kept = |epoch: &Epoch| epoch.rounds.iter().filter(|round| round.dropped.is_none()).count();
        let usable: Vec<bool> = self.record.epochs_of(name).map(|epoch| kept(epoch) > 1).collect();
        let count = usable.iter().filter(|usable| **usable).count();
        let early = count == WARMUP_CHECK && usable.last() == Some(&true);
        // Nor does a race over hours begin anew.
        let method = &run.launcher.plan.method;
        let chosen = method.pilot_ns == 0 || method.over_ns > 0 || !may_climb(run.scenario);
        // A look before this epoch has spent alpha, and a race that begins anew would spend it twice.
        let has_looked = method.looks.first().is_some_and(|look| *look < WARMUP_CHECK);
        if !early || chosen || has_looked || self.record.anew.iter().any(|(one, ..)| one == name) {
            return Ok(());
        }
        let climbing = climbing(&self.record, name);
        let (Some((contender, change)), Some(warmup_ns)) = (climbing.first(), self.record.warmup_ns(name))
        else {
            return Ok(());
        };
        let (before, warmup_ns) = (warmup_ns, (warmup_ns * 2).min(run.launcher.plan.method.warmup_ns.1));
        if warmup_ns <= before {
            return Ok(());
        }
        let reason = format!("{contender} still got {:.1} % faster within an epoch", change * 100.0);
        let aside = self.record.epochs_of(name).count();
        let finding = Finding::warn(
            "warm-up-lengthened",
            format!(
                "{reason}: {aside} epochs do not count, and from now on every start is warmed up for {:.1} s",
                warmup_ns as f64 / 1e9
            ),
            "nothing needs to be done; --profile full warms up for longer from the beginning",
        );
        let doing = format!("{reason}: starting again with a longer warm-up");
        self.write(Line::Anew { scenario: name.clone(), warmup_ns, reason })?;
        self.observer.event(&Event::Racing { record: &self.record, scenario: name });
        self.observer.event(&Event::Doing(&doing));
        Ok(self.write(Line::Finding { scenario: Some(name.clone()), finding })?)
    }
}

/// Whether a climb means anything in this scenario. Trials run at many different rates, starts and measures have no rounds, and a cold
/// contender is expected to climb.
fn may_climb(scenario: &ScenarioPlan) -> bool {
    scenario.shape.is_steady() && !scenario.traffic.cold
}
