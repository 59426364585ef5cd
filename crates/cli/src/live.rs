//! Shows a race while it runs: redrawn in place on a terminal, otherwise as plain lines. Writes the `--json` file after every epoch.
//!
//! Owns: what is kept of events for display. Must not know: the format of the lines (the report does), how to measure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deadheat_analysis::{Report, ScenarioResult};
use deadheat_host::clock::unix_ms;
use deadheat_record::{Difference, Record};
use deadheat_report::live::{LiveRow, LiveState, lines, plain_line};
use deadheat_report::{Style, terminal};
use deadheat_runner::{Event, Observer, due_unix_ms, spent_ns};

use crate::commands::write_atomically;
use crate::console::{Drawing, lines_plain};

/// Shows a race.
pub(crate) struct Live {
    style: Style,
    drawing: Drawing,
    state: LiveState,
    json: Option<PathBuf>,
    trouble: Option<String>,
}

impl Live {
    /// `drawn`: whether lines can be redrawn in place. `json`: a file to keep up to date.
    pub(crate) fn new(record: &Record, style: Style, drawn: bool, json: Option<PathBuf>) -> Self {
        let scenarios = &record.plan.scenarios;
        let next = scenarios.iter().find(|one| record.end_of(&one.name).is_none()).or(scenarios.last());
        let drawing = Drawing::new(drawn);
        let mut live = Self { style, drawing, state: LiveState::default(), json, trouble: None };
        if let Some(scenario) = next {
            live.stand(record, &scenario.name);
        }
        live
    }

    /// Removes the drawing, so that only the result remains. Returns the error of the `--json` file, if any.
    pub(crate) fn finish(self) -> Option<String> {
        self.drawing.clear();
        self.trouble
    }

    /// Prints lines that stay, from any thread.
    pub(crate) fn speaker(&self) -> impl Fn(&str) + Send + 'static {
        let drawing = self.drawing.clone();
        move |text| drawing.say(text)
    }

    /// Prints a line that stays.
    pub(crate) fn say(&self, text: &str) {
        self.drawing.say(text);
    }

    /// Redraws the progress. With `must`, redraws immediately, because the lines may then stay for long.
    fn draw(&self, must: bool) {
        if self.drawing.is_drawn() {
            self.drawing.show(lines(&self.state, &self.style).join("\n"), must);
        }
    }

    /// Replaces the shown progress with that of this scenario.
    fn stand(&mut self, record: &Record, scenario: &str) {
        let Ok(report) = Report::of(record) else { return };
        let Some(one) = report.scenario(scenario) else { return };
        let (counted, baseline) = (report.counted(one), report.baseline(scenario));
        let looks = looks(record, scenario);
        let contenders = record.racing(scenario).into_iter().map(|index| &record.plan.contenders[index].name);
        self.state = LiveState {
            scenario: scenario.to_owned(),
            epochs: counted,
            left_out: report.left_out(one),
            next_look: looks.iter().copied().find(|look| *look > counted),
            max_epochs: looks.last().copied().unwrap_or(0),
            doing: std::mem::take(&mut self.state.doing),
            left_s: left(record, scenario, counted),
            margin: report.method().margin,
            rows: contenders
                .map(|name| row(one, baseline, name, looks.first().copied().unwrap_or(0)))
                .collect(),
        };
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
        self.trouble = write_json_so_far(path, record).err().or(self.trouble.take());
    }
}

/// Writes the document of a race that still runs.
///
/// # Errors
/// In words, with the path.
pub(crate) fn write_json_so_far(path: &Path, record: &Record) -> Result<(), String> {
    let written = Report::of(record)
        .map_err(|error| error.to_string())
        .and_then(|report| deadheat_report::json(&report).map_err(|error| error.to_string()))
        .and_then(|text| write_atomically(path, &text).map_err(|error| error.to_string()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The row of a contender in a scenario whose first look is after this number of epochs.
fn row(result: &ScenarioResult, baseline: Option<&str>, name: &str, first_look: usize) -> LiveRow {
    let own = result.result(name);
    let against =
        result.comparisons.iter().find(|pair| pair.contender == name && Some(&*pair.baseline) == baseline);
    // Before the first look, hardly any error rate is spent: the interval would be too wide to be useful.
    let looked = against.filter(|pair| pair.epochs >= first_look);
    LiveRow {
        name: name.to_owned(),
        rate_per_s: own.and_then(|one| one.throughput_rps),
        is_baseline: baseline == Some(name),
        ratio: against.and_then(|pair| pair.ratio),
        low: looked.and_then(|pair| pair.low),
        high: looked.and_then(|pair| pair.high),
        verdict: looked.map(|pair| pair.verdict),
    }
}

/// The numbers of epochs after which deadheat looks at a scenario.
fn looks(record: &Record, scenario: &str) -> Vec<usize> {
    record.plan.scenario(scenario).map(|one| record.plan.method_of(one).looks).unwrap_or_default()
}

/// The longest remaining time in seconds: the epochs up to the maximum at the slowest pace so far, within the budget. `counted` epochs already
/// count. A race that spreads its epochs waits before each of them.
fn left(record: &Record, scenario: &str, counted: usize) -> Option<u64> {
    let took: Vec<u64> = record.epochs_of(scenario).map(|epoch| epoch.took_ns).collect();
    let longest = took.iter().max()?;
    let epochs = looks(record, scenario).last()?.saturating_sub(counted);
    let most = epochs as u64 * longest;
    if let Some(last) = due_unix_ms(record, scenario, epochs as u64).filter(|_| epochs > 0) {
        return Some((last.saturating_sub(unix_ms()) + longest / 1_000_000).max(most / 1_000_000) / 1_000);
    }
    let budget = record
        .plan
        .method
        .budget_ns
        .map_or(u64::MAX, |budget| budget.saturating_sub(spent_ns(record, scenario)));
    Some(most.min(budget) / 1_000_000_000)
}

/// [`Live`] with the contenders' names by index.
pub(crate) struct Shown<'a> {
    /// The display.
    pub(crate) live: &'a mut Live,
    /// In the order of the plan.
    pub(crate) names: Vec<String>,
}

impl Observer for Shown<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let live = &mut *self.live;
        match event {
            Event::Racing { record, scenario } => {
                live.stand(record, scenario);
                live.state.doing.clear();
            }
            Event::Doing(what) => live.state.doing = (*what).to_owned(),
            Event::Waiting { contender, reason } => live.say(&waiting(contender, reason)),
            Event::Out { reason, .. } => live.say(&lines_plain(&format!("out of the race: {reason}"))),
            Event::Parity(differences) => live.parity(differences),
            Event::Finding(finding) => {
                let who = finding.contender.as_ref().map_or_else(String::new, |who| format!("{who}: "));
                live.say(&lines_plain(&format!("note: {who}{}\n  {}", finding.message, finding.remedy)));
            }
            Event::Pilot { scenario, warmup } => {
                if !live.drawing.is_drawn() {
                    live.say(&format!(
                        "{}: deadheat warms up every start for {}",
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
                if !live.drawing.is_drawn() {
                    live.say(&plain_line(&live.state));
                }
            }
            Event::Scenario { record, .. } => live.refresh_json(record),
        }
        live.draw(matches!(event, Event::Racing { .. } | Event::Epoch { .. }));
    }
}

/// Says why a contender does not answer yet.
pub(crate) fn waiting(contender: &str, reason: &str) -> String {
    lines_plain(&format!("note: {contender} does not answer yet: {reason}"))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// The folder for contenders' logs, next to the record: its name with `.logs`.
pub(crate) fn logs_beside(record: &Path) -> PathBuf {
    record.with_extension("logs")
}

#[cfg(test)]
mod tests {
    use deadheat_record::{
        ContenderEpoch, End, Epoch, Experiment, ExternalReading, Metric, Round, VerdictWord,
    };

    use super::*;

    fn example() -> Record {
        let example = include_str!("../../record/tests/fixtures/example.json");
        let mut record = serde_json::from_str::<Report>(example).unwrap().record;
        record.ended.clear();
        record.plan.method.looks = vec![3, 6];
        record
    }

    const STYLE: Style = Style { color: false, width: 120, unicode: true };

    /// An epoch does not count if all its rounds were disturbed. Another epoch replaces it.
    #[test]
    fn epochs_that_do_not_count_are_no_progress() {
        let mut record = example();
        let stands = |record: &Record| {
            let state = Live::new(record, STYLE, false, None).state;
            (state.epochs, state.left_out, state.next_look, state.left_s)
        };
        let took_s = record.epochs.iter().map(|epoch| epoch.took_ns).max().unwrap() / 1_000_000_000;
        assert_eq!(stands(&record), (6, 0, None, Some(0)));
        record.epochs[1].rounds.iter_mut().for_each(|round| round.dropped = Some("steal 9 %".into()));
        assert_eq!(stands(&record), (5, 1, Some(6), Some(took_s)));
    }

    /// The example's two contenders with three values each of a measure that a third contender lacks, followed by a load on all three.
    fn measured_then_loaded() -> Record {
        let mut record = example();
        let mut third = record.plan.contenders[0].clone();
        third.name = "go".into();
        for one in &mut record.plan.contenders {
            one.measures.insert("boot".into(), "./boot".into());
        }
        record.plan.contenders.push(third);
        let mut boot = record.plan.scenarios[0].clone();
        (boot.name, boot.shape) = ("boot".into(), Experiment::Measure { measure: "boot".into() });
        (boot.metrics, boot.slices) = (vec![Metric::Measure], None);
        record.plan.scenarios.insert(0, boot);
        let part = |contender: usize, number: usize| ContenderEpoch {
            contender,
            measured: Some(1e6 * (1.0 + contender as f64) + 100.0 * number as f64),
            ..ContenderEpoch::default()
        };
        let epoch = |number: usize| Epoch {
            scenario: "boot".into(),
            number,
            started_unix_ms: 0,
            took_ns: 2_000_000_000,
            contenders: vec![part(0, number), part(1, number)],
            rounds: vec![Round { slices: vec![], external: ExternalReading::default(), dropped: None }],
            load_hosts: None,
            findings: vec![],
        };
        record.epochs = (1..=3).map(epoch).collect();
        record
    }

    #[test]
    fn nothing_of_a_scenario_is_shown_under_the_name_of_the_next() {
        let mut record = measured_then_loaded();
        let mut live = Live::new(&record, STYLE, false, None);
        let shown = |live: &Live| {
            let rows = live.state.rows.iter().map(|row| (row.name.clone(), row.ratio.is_some(), row.verdict));
            (live.state.scenario.clone(), live.state.epochs, rows.collect::<Vec<_>>())
        };
        let row = |name: &str, verdict: Option<VerdictWord>| (name.to_owned(), verdict.is_some(), verdict);
        let measured = vec![row("node", None), row("bun", Some(VerdictWord::Slower))];
        assert_eq!(shown(&live), ("boot".into(), 3, measured));
        assert_eq!((live.state.next_look, live.state.left_s), (Some(6), Some(6)));
        record.ended.push(("boot".into(), End::Decided));
        live.state.doing = "round 3: bun (2 of 2)".into();
        let names = record.plan.contenders.iter().map(|one| one.name.clone()).collect();
        let mut observer = Shown { live: &mut live, names };
        observer.event(&Event::Racing { record: &record, scenario: "closed-64" });
        let rates = [(0, Some(9_000.0)), (2, Some(11_000.0))];
        observer.event(&Event::Round { round: 1, rounds: 4, epoch: 1, rates: &rates });
        let loaded = ["node", "bun", "go"].map(|name| row(name, None)).to_vec();
        assert_eq!(shown(&live), ("closed-64".into(), 0, loaded));
        assert_eq!((live.state.next_look, live.state.left_s), (Some(3), None));
        assert_eq!(live.state.doing, "round 1 of 4");
        let rates: Vec<Option<f64>> = live.state.rows.iter().map(|row| row.rate_per_s).collect();
        assert_eq!(rates, [Some(9_000.0), None, Some(11_000.0)]);
        assert_eq!(
            Live::new(&record, STYLE, false, None).state.rows.len(),
            3,
            "an interrupted race that continues"
        );
    }
}
