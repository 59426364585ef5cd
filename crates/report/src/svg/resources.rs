//! What a request and a start cost: one dot for each epoch, or for each start.
//!
//! Owns which values go into a row. Must not know how rows are drawn.

use deadheat_analysis::number::time_ns;
use deadheat_analysis::{ContenderResult, Report, ScenarioResult};

use super::canvas::{Area, Figure, color_of, tick, zero_ticks};
use super::rows::{Dot, Group, Row, Rows, Scale};

/// CPU time per request, epoch by epoch.
pub(super) fn cpu(report: &Report, scenario: &ScenarioResult) -> Option<Figure<'static>> {
    let values = |one: &ContenderResult| {
        let epochs = one.epochs.iter().filter_map(|epoch| epoch.cpu_us_per_request);
        (epochs.collect::<Vec<f64>>(), one.cpu_us_per_request)
    };
    let measure = Measure {
        stem: "cpu",
        title: "CPU time per request",
        label: "CPU time of the process tree per answer, a dot for each epoch; lower is better",
        unit_ns: 1e3,
    };
    measure.figure(report, scenario, values)
}

/// Cold starts: every start of a scenario of fresh starts; without any such scenario, each epoch's own.
pub(super) fn cold_start(report: &Report, scenario: &ScenarioResult) -> Option<Figure<'static>> {
    let fresh = |one: &ScenarioResult| one.results.iter().any(|result| !result.cold_starts_ns.is_empty());
    let own = report.scenarios.iter().any(fresh);
    let values = |one: &ContenderResult| {
        let epochs = || one.epochs.iter().map(|epoch| epoch.cold_start_ns as f64).collect::<Vec<f64>>();
        let starts = || one.cold_starts_ns.iter().map(|ns| *ns as f64).collect::<Vec<f64>>();
        (if own { starts() } else { epochs() }, one.cold_start_ns.map(|ns| ns as f64))
    };
    let label = if own {
        "from its command to the first right answer, a dot for each fresh start; lower is better"
    } else {
        "from its command to the first right answer, a dot for each epoch; lower is better"
    };
    let measure = Measure { stem: "cold-start", title: "cold start", label, unit_ns: 1.0 };
    measure.figure(report, scenario, values)
}

/// What is measured in a time of some unit.
struct Measure {
    stem: &'static str,
    title: &'static str,
    label: &'static str,
    /// Nanoseconds of one of what the document has.
    unit_ns: f64,
}

impl Measure {
    /// `values` gives a contender's dots, and what they come to.
    fn figure(
        &self,
        report: &Report,
        scenario: &ScenarioResult,
        values: impl Fn(&ContenderResult) -> (Vec<f64>, Option<f64>),
    ) -> Option<Figure<'static>> {
        let row = |one: &ContenderResult| {
            let (dots, mark) = values(one);
            let mark = mark.map(|value| value * self.unit_ns);
            (!dots.is_empty() && mark.is_some()).then(|| Row {
                label: one.contender.clone(),
                aside: mark.map(time_ns).unwrap_or_default(),
                paint: color_of(report, &one.contender),
                dots: dots.into_iter().map(|value| Dot::filled(value * self.unit_ns)).collect(),
                mark,
            })
        };
        let rows: Vec<Row> = scenario.results.iter().filter_map(row).collect();
        let values = rows.iter().flat_map(|row| row.dots.iter().map(|dot| dot.value).chain(row.mark));
        let high = values.fold(0.0, f64::max) * 1.05;
        if rows.is_empty() || high <= 0.0 {
            return None;
        }
        let rows = Rows {
            groups: vec![Group { title: String::new(), rows }],
            scale: Scale {
                log: false,
                range: 0.0..high,
                ticks: zero_ticks(high, 7.0),
                format: |ns| if ns == 0.0 { "0".into() } else { tick(&time_ns(ns)) },
                label: self.label,
            },
            band: None,
            rule: None,
        };
        Some(Figure {
            stem: format!("{}-{}", self.stem, scenario.name),
            title: format!("{}: {}", scenario.name, self.title),
            says: rows.says(),
            height: rows.height(),
            draw: Box::new(move |area: &Area<'_>| rows.draw(area)),
        })
    }
}
