//! Ratios around 1: with their intervals, and epoch by epoch.
//!
//! Owns how a comparison is drawn. Must not know how it came about.

use std::ops::Range;

use deadheat_analysis::number::{ends_nearby, interval, ratio, ratio_decimals};
use deadheat_analysis::{Comparison, Report, ScenarioResult};
use deadheat_record::{Metric, VerdictWord};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::canvas::{
    Area, Axis, BAND, Drawn, Figure, INK, MUTED, ROUND, SERIES, WIDTH, across, of_powers, styled, write,
};
use super::rows::{Dot, Group, Row, Rows, Scale};
use crate::terminal::verdict;

/// The comparisons of a scenario in one metric, as far as there is anything to draw.
struct Pairs<'d> {
    scenario: &'d ScenarioResult,
    metric: Metric,
    all: Vec<&'d Comparison>,
    margin: f64,
}

/// Two figures for each metric of a scenario: intervals, and every epoch.
pub(super) fn of<'d>(report: &'d Report, scenario: &'d ScenarioResult) -> Vec<Figure<'d>> {
    let margin = report.record.plan.method.margin;
    let in_metric = |metric: Metric| {
        let drawable = |one: &&Comparison| one.metric == metric && one.ratio.is_some_and(positive);
        Pairs { scenario, metric, all: scenario.comparisons.iter().filter(drawable).collect(), margin }
    };
    let metrics = scenario.rankings.iter().map(|ranking| in_metric(ranking.metric));
    let figures = |pairs: Pairs<'d>| {
        let epochs = pairs.epochs();
        [Some(pairs.intervals()), epochs].into_iter().flatten()
    };
    metrics.filter(|pairs| !pairs.all.is_empty()).flat_map(figures).collect()
}

fn positive(ratio: f64) -> bool {
    ratio > 0.0 && ratio.is_finite()
}

impl<'d> Pairs<'d> {
    fn title(&self, rest: &str) -> String {
        format!("{}: {}, {rest}", self.scenario.name, self.metric.row().column)
    }

    fn stem(&self, kind: &str) -> String {
        format!("{kind}-{}-{}", self.scenario.name, self.metric.word())
    }

    /// Ratios that count as equivalent.
    fn band(&self) -> Range<f64> {
        1.0 / (1.0 + self.margin)..1.0 + self.margin
    }

    /// The ends of an axis on which all these ratios and the band can be seen.
    fn range(&self, ratios: impl Iterator<Item = f64>) -> Range<f64> {
        let band = self.band();
        let (low, high) = ratios
            .filter(|one| positive(*one))
            .fold((band.start, band.end), |(low, high), one| (low.min(one), high.max(one)));
        low / 1.02..high * 1.02
    }

    fn intervals(self) -> Figure<'d> {
        Figure {
            stem: self.stem("ratios"),
            title: self.title("contender / baseline"),
            says: self.all.iter().map(|one| format!("{}: {}", name(one), said(one))).collect(),
            height: 118 + 52 * self.all.len() as i32,
            draw: Box::new(move |area: &Area<'_>| self.draw(area)),
        }
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let ends = |one: &&Comparison| ends_nearby(one.low, one.ratio, one.high);
        let range =
            self.range(self.all.iter().flat_map(|one| ends(one).chain(one.epoch_ratios.iter().copied())));
        let ticks = ticks(&range);
        let plot = area.margin(48, 12, 20, 20);
        let rows = self.all.len() as f64;
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(34)
            .margin_left(210)
            .margin_right(250)
            .build_cartesian_2d(
                Axis::of(range.start.ln()..range.end.ln(), ticks.iter().map(|tick| tick.ln())),
                rows..0.0,
            )?;
        let band = self.band();
        let corners = [(band.start.ln(), 0.0), (band.end.ln(), rows)];
        chart.draw_series([Rectangle::new(corners, BAND.filled())])?;
        across(&mut chart, ticks.len(), &|at| ratio(at.exp(), 2))?;
        chart.draw_series([PathElement::new([(0.0, 0.0), (0.0, rows)], INK)])?;
        for (row, one) in self.all.iter().enumerate() {
            let (y, paint) = (row as f64 + 0.36, color(one));
            let epochs = one.epoch_ratios.iter().filter(|each| positive(**each));
            let dot = |each: &f64| Circle::new((each.ln(), y + 0.34), 3, paint.mix(0.55).filled());
            chart.draw_series(epochs.map(dot))?;
            if let (Some(low), Some(high)) = (one.low, one.high) {
                // One that has no room reaches the edge.
                let [low, high] = [low, high].map(|end| end.clamp(range.start, range.end).ln());
                chart.draw_series([PathElement::new([(low, y), (high, y)], paint.stroke_width(3))])?;
            }
            if let Some(ratio) = one.ratio {
                chart.draw_series([Circle::new((ratio.ln(), y), 6, paint.filled())])?;
            }
            let (_, middle) = chart.backend_coord(&(0.0, y + 0.1));
            write(area, &name(one), 28, &styled(16.0, INK, HPos::Right), (222, middle))?;
            write(area, &said(one), 40, &styled(16.0, MUTED, HPos::Left), (WIDTH - 258, middle))?;
        }
        Ok(())
    }

    /// One dot for each epoch, the first at the top; none where no epoch has a ratio of its own.
    fn epochs(&self) -> Option<Figure<'d>> {
        let row = |one: &&Comparison| Row {
            label: name(one),
            aside: format!("{}, {} epochs", value(one), one.epoch_ratios.len()),
            paint: color(one),
            dots: one.epoch_ratios.iter().copied().filter(|each| positive(*each)).map(Dot::filled).collect(),
            mark: one.ratio,
        };
        let range =
            self.range(self.all.iter().flat_map(|one| one.epoch_ratios.iter().copied().chain(one.ratio)));
        let rows = Rows {
            groups: vec![Group { title: String::new(), rows: self.all.iter().map(row).collect() }],
            scale: Scale {
                log: true,
                ticks: ticks(&range),
                range,
                format: |at| ratio(at, 2),
                label: "ratio of each epoch, contender / baseline, the first epoch at the top; the line is that of all",
            },
            band: Some(self.band()),
            rule: Some(1.0),
        };
        let any = rows.groups.iter().flat_map(|group| &group.rows).any(|row| !row.dots.is_empty());
        any.then(|| Figure {
            stem: self.stem("epochs"),
            title: self.title("epoch by epoch"),
            says: rows.says(),
            height: rows.height(),
            draw: Box::new(move |area: &Area<'_>| rows.draw(area)),
        })
    }
}

fn color(one: &Comparison) -> RGBColor {
    match one.verdict {
        _ if one.negligible => SERIES[7],
        VerdictWord::Faster => SERIES[2],
        VerdictWord::Slower => SERIES[1],
        VerdictWord::Equivalent | VerdictWord::Inconclusive | VerdictWord::Invalid => SERIES[7],
    }
}

fn name(one: &Comparison) -> String {
    format!("{} / {}", one.contender, one.baseline)
}

fn value(one: &Comparison) -> String {
    let decimals = ratio_decimals(one.low, one.high);
    one.ratio.map_or_else(String::new, |value| ratio(value, decimals))
}

/// The ratio, its interval, the verdict.
fn said(one: &Comparison) -> String {
    format!("{} ({}) {}", value(one), interval(one.low, one.high), verdict(one.verdict).0)
}

/// Round ratios within a range, some six of them.
fn ticks(range: &Range<f64>) -> Vec<f64> {
    let (low, high) = (range.start, range.end);
    if high / low > 4.0 {
        return of_powers(low, high, &ROUND);
    }
    let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    let step = steps.into_iter().find(|step| (high - low) / step <= 7.0).unwrap_or(1.0);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|one| *one <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let shown = |range| ticks(&range).iter().map(|one| ratio(*one, 2)).collect::<Vec<_>>();
        assert_eq!(shown(0.93..1.12), ["0.95", "1.00", "1.05", "1.10"]);
        assert_eq!(shown(0.4..12.0), ["0.50", "1.00", "2.00", "5.00", "10.0"]);
    }
}
