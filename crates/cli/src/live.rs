//! The race while it runs: drawn over again on a terminal, plain lines elsewhere; the `--json` file after every epoch.
//!
//! Owns: what is kept of events for showing. Must not know: how lines are written (the report does) or measured.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_record::{Difference, Record};
use deadheat_report::live::{LiveRow, LiveState, lines, plain_line};
use deadheat_report::{Style, terminal};
use deadheat_runner::{Event, Observer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::write_atomically;
use crate::console::lines_plain;

/// Shows a race.
pub(crate) struct Live {
    style: Style,
    bar: Option<ProgressBar>,
    state: LiveState,
    json: Option<PathBuf>,
    trouble: Option<String>,
}

impl Live {
    /// `drawn`: whether lines can be drawn over again. `json`: a file that is kept up to date.
    pub(crate) fn new(record: &Record, style: Style, drawn: bool, json: Option<PathBuf>) -> Self {
        let plan = &record.plan;
        let next = plan.scenarios.iter().find(|one| record.end_of(&one.name).is_none());
        let racing = next.or(plan.scenarios.last()).map(|one| record.racing(&one.name)).unwrap_or_default();
        let rows = racing.into_iter().map(|index| plan.contenders[index].name.clone()).map(|name| LiveRow {
            is_baseline: name == plan.method.baseline,
            name,
            ..LiveRow::default()
        });
        let looks = plan.scenarios.first().map(|one| plan.method_of(one).looks).unwrap_or_default();
        let state = LiveState {
            scenario: plan.scenarios.first().map(|one| one.name.clone()).unwrap_or_default(),
            epochs: 0,
            left_out: 0,
            next_look: looks.first().copied(),
            max_epochs: looks.last().copied().unwrap_or(0),
            doing: String::new(),
            left_s: None,
            margin: plan.method.margin,
            rows: rows.collect(),
        };
        let bar = drawn.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(plain) = ProgressStyle::with_template("{msg}") {
                bar.set_style(plain);
            }
            bar
        });
        let mut live = Self { style, bar, state, json, trouble: None };
        if let Some(scenario) = next {
            live.stand(record, &scenario.name);
        }
        live
    }

    /// Takes the drawing away, so that the result stands alone. Gives what went wrong with the `--json` file.
    pub(crate) fn finish(self) -> Option<String> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.trouble
    }

    /// Says something that stays.
    pub(crate) fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| write_line(text)),
            None => write_line(text),
        }
    }

    fn draw(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(lines(&self.state, &self.style).join("\n"));
            bar.tick();
        }
    }

    /// Takes over how a scenario stands.
    fn stand(&mut self, record: &Record, scenario: &str) {
        let Ok(view) = deadheat_report::view(record) else { return };
        let Some(one) = view.scenarios.iter().find(|one| one.result.name == scenario) else { return };
        let looks = looks(record, scenario);
        self.state.max_epochs = looks.last().copied().unwrap_or(0);
        self.state.scenario = scenario.to_owned();
        self.state.epochs = one.counted;
        self.state.left_out = one.left_out();
        self.state.next_look = looks.iter().copied().find(|look| *look > one.counted);
        self.state.left_s = left(record, scenario, one.counted);
        let baseline = one.baseline.clone();
        let racing = record.racing(scenario);
        let names = &record.plan.contenders;
        self.state.rows.retain(|row| racing.iter().any(|index| names[*index].name == row.name));
        for row in &mut self.state.rows {
            row.is_baseline = baseline.as_deref() == Some(&row.name);
            let result = one.result.results.iter().find(|result| result.contender == row.name);
            row.rate_per_s = result.and_then(|result| result.throughput_rps);
            let against = one
                .result
                .comparisons
                .iter()
                .find(|pair| pair.contender == row.name && Some(&pair.baseline) == baseline.as_ref());
            row.ratio = against.and_then(|pair| pair.ratio);
            // Before the first look hardly any error rate is spent: an interval would be as wide as it says nothing.
            let looked = against.filter(|pair| pair.epochs >= looks.first().copied().unwrap_or(0));
            row.low = looked.and_then(|pair| pair.low);
            row.high = looked.and_then(|pair| pair.high);
            row.verdict = looked.map(|pair| pair.verdict);
        }
    }

    fn parity(&self, differences: &[Difference]) {
        self.say(terminal::parity(differences, &self.style).trim_end());
    }

    fn rates(&mut self, record_rates: &[(usize, Option<f64>)], names: &[String]) {
        for (contender, rate) in record_rates {
            let row = self.state.rows.iter_mut().find(|row| Some(&row.name) == names.get(*contender));
            if let Some(row) = row.filter(|row| row.ratio.is_none()) {
                row.rate_per_s = rate.or(row.rate_per_s);
            }
        }
    }

    fn refresh_json(&mut self, record: &Record) {
        let Some(path) = &self.json else { return };
        let written = deadheat_report::document(record)
            .and_then(|document| deadheat_report::json(&document))
            .map_err(|error| error.to_string())
            .and_then(|text| write_atomically(path, &text).map_err(|error| error.to_string()));
        if let Err(error) = written {
            self.trouble = Some(format!("{}: {error}", path.display()));
        }
    }
}

/// After how many epochs a scenario is looked at.
fn looks(record: &Record, scenario: &str) -> Vec<usize> {
    record.plan.scenario(scenario).map(|one| record.plan.method_of(one).looks).unwrap_or_default()
}

/// Seconds that are left at the most: epochs to the maximum, of which so many count, at the pace so far, within the budget.
fn left(record: &Record, scenario: &str, counted: usize) -> Option<u64> {
    let took: Vec<u64> = record.epochs_of(scenario).map(|epoch| epoch.took_ns).collect();
    let longest = took.iter().max()?;
    let most = looks(record, scenario).last()?.saturating_sub(counted) as u64 * longest;
    let budget =
        record.plan.method.budget_ns.map_or(u64::MAX, |budget| budget.saturating_sub(took.iter().sum()));
    Some(most.min(budget) / 1_000_000_000)
}

fn write_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// [`Live`] with the contenders' names by index.
pub(crate) struct Shown<'a> {
    /// What is shown.
    pub(crate) live: &'a mut Live,
    /// In plan order.
    pub(crate) names: Vec<String>,
}

impl Observer for Shown<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let live = &mut *self.live;
        match event {
            Event::Doing(what) => live.state.doing = (*what).to_owned(),
            Event::Out { reason, .. } => live.say(&lines_plain(&format!("out of the race: {reason}"))),
            Event::Parity(differences) => live.parity(differences),
            Event::Finding(finding) => {
                let who = finding.contender.as_ref().map_or_else(String::new, |who| format!("{who}: "));
                live.say(&lines_plain(&format!("note: {who}{}\n  {}", finding.message, finding.remedy)));
            }
            Event::Pilot { scenario, warmup } => {
                live.state.scenario = (*scenario).to_owned();
                if live.bar.is_none() {
                    live.say(&format!(
                        "{}: every start is warmed up for {}",
                        lines_plain(scenario),
                        seconds(*warmup)
                    ));
                }
            }
            Event::Round { round, rounds, rates, .. } => {
                live.rates(rates, &self.names);
                live.state.doing = format!("round {round} of {rounds}");
            }
            Event::Epoch { record, scenario } => {
                live.stand(record, scenario);
                live.refresh_json(record);
                if live.bar.is_none() {
                    live.say(&plain_line(&live.state));
                }
            }
            Event::Scenario { record, .. } => live.refresh_json(record),
        }
        live.draw();
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// The folder for contenders' logs beside a record: its name with `.logs`.
pub(crate) fn logs_beside(record: &Path) -> PathBuf {
    record.with_extension("logs")
}

#[cfg(test)]
mod tests {
    use deadheat_record::Document;

    use super::*;

    /// An epoch whose rounds were all disturbed does not count, and another takes its place.
    #[test]
    fn epochs_that_do_not_count_are_no_progress() {
        let example = include_str!("../../record/tests/fixtures/example.json");
        let mut record = serde_json::from_str::<Document>(example).unwrap().record;
        record.ended.clear();
        record.plan.method.looks = vec![3, 6];
        let style = Style { color: false, width: 120, unicode: true };
        let stands = |record: &Record| {
            let state = Live::new(record, style, false, None).state;
            (state.epochs, state.left_out, state.next_look, state.left_s)
        };
        let took_s = record.epochs.iter().map(|epoch| epoch.took_ns).max().unwrap() / 1_000_000_000;
        assert_eq!(stands(&record), (6, 0, None, Some(0)));
        record.epochs[1].rounds.iter_mut().for_each(|round| round.dropped = Some("steal 9 %".into()));
        assert_eq!(stands(&record), (5, 1, Some(6), Some(took_s)));
    }
}
