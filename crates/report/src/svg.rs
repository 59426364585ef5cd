//! Figures as SVG files: ratios with their intervals and epochs, latency by percentile.
//!
//! Owns: what is drawn, with which colours. Must not know files. Names are data: the drawing library escapes them, and
//! what would act on a reader is made visible before.

use std::collections::BTreeSet;
use std::ops::Range;

use deadheat_record::{Comparison, Document, Metric, ScenarioResult, VerdictWord};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ReportError;
use crate::number::{interval, quantile, ratio, ratio_decimals, time_ns};
use crate::terminal::{metric_title, verdict};
use crate::text::{plain, shorten_end};

const WIDTH: u32 = 960;
const INK: RGBColor = RGBColor(0x1d, 0x1c, 0x1a);
const MUTED: RGBColor = RGBColor(0x5d, 0x5a, 0x54);
const RULE: RGBColor = RGBColor(0xdc, 0xd8, 0xd0);
const BAND: RGBColor = RGBColor(0xec, 0xea, 0xe4);
/// Told apart by people with any kind of colour vision; those of the page.
const SERIES: [RGBColor; 8] = [
    RGBColor(0x0b, 0x62, 0xa8),
    RGBColor(0xc2, 0x50, 0x0c),
    RGBColor(0x00, 0x79, 0x6b),
    RGBColor(0x9c, 0x3f, 0x87),
    RGBColor(0x80, 0x62, 0x00),
    RGBColor(0x5a, 0x50, 0xc0),
    RGBColor(0xa3, 0x20, 0x3f),
    RGBColor(0x5a, 0x64, 0x72),
];

/// An axis with ticks of our choice.
struct Axis {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Axis {
    fn of(range: Range<f64>, ticks: impl IntoIterator<Item = f64>) -> Self {
        let within = |tick: &f64| (range.start - 1e-9..=range.end + 1e-9).contains(tick);
        Self { ticks: ticks.into_iter().filter(within).collect(), range }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

/// All figures that a document has something for: the name of a file, and what goes into it.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn svg(document: &Document) -> Result<Vec<(String, String)>, ReportError> {
    let mut figures = Vec::new();
    let mut taken = BTreeSet::new();
    let margin = document.record.plan.method.margin;
    for scenario in &document.scenarios {
        for ranking in &scenario.rankings {
            let metric = ranking.metric;
            let pairs: Vec<&Comparison> = scenario
                .comparisons
                .iter()
                .filter(|one| one.metric == metric && one.ratio.is_some())
                .collect();
            if !pairs.is_empty() {
                let name = file(&format!("ratios-{}-{}", scenario.name, metric.word()), &mut taken);
                let height = 118 + 52 * pairs.len() as u32;
                let draw = |area: &Area<'_>| ratios(area, scenario, metric, &pairs, margin);
                figures.push((name.clone(), figure(&name, height, draw)?));
            }
        }
        if scenario.results.iter().any(|one| one.latency_curve.len() > 1) {
            let name = file(&format!("latency-{}", scenario.name), &mut taken);
            let text = figure(&name, 520, |area| latency(area, document, scenario))?;
            figures.push((name, text));
        }
    }
    Ok(figures)
}

fn figure(name: &str, height: u32, draw: impl Fn(&Area<'_>) -> Drawn) -> Result<String, ReportError> {
    let mut text = String::new();
    let failed = |problem: String| ReportError::Figure { figure: name.into(), problem };
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE).map_err(|error| failed(error.to_string()))?;
        draw(&area).map_err(|error| failed(error.to_string()))?;
        area.present().map_err(|error| failed(error.to_string()))?;
    }
    Ok(text)
}

/// A name for a file that says what it holds, and that no other figure has.
fn file(words: &str, taken: &mut BTreeSet<String>) -> String {
    let harmless = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '-' };
    let stem: String = words.chars().map(harmless).take(80).collect();
    let name = (1..).map(|n| if n == 1 { format!("{stem}.svg") } else { format!("{stem}-{n}.svg") });
    let free = name.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

fn styled(size: f64, color: RGBColor, at: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&color).pos(Pos::new(at, VPos::Center))
}

fn color(one: &Comparison) -> RGBColor {
    match one.verdict {
        _ if one.negligible => SERIES[7],
        VerdictWord::Faster => SERIES[2],
        VerdictWord::Slower => SERIES[1],
        VerdictWord::Equivalent | VerdictWord::Inconclusive | VerdictWord::Invalid => SERIES[7],
    }
}

fn ratios(
    area: &Area<'_>,
    scenario: &ScenarioResult,
    metric: Metric,
    pairs: &[&Comparison],
    margin: f64,
) -> Drawn {
    let title = format!("{}: {}, contender / baseline", plain(&scenario.name), metric_title(metric));
    area.draw_text(&shorten_end(&title, 90, "…"), &styled(20.0, INK, HPos::Left), (20, 26))?;
    let known = |one: &&Comparison| [one.low, one.ratio, one.high].into_iter().flatten().collect::<Vec<_>>();
    let all: Vec<f64> =
        pairs.iter().flat_map(|one| known(one).into_iter().chain(one.epoch_ratios.iter().copied())).collect();
    let low = all.iter().copied().fold(1.0 / (1.0 + margin), f64::min) / 1.02;
    let high = all.iter().copied().fold(1.0 + margin, f64::max) * 1.02;
    let ticks = ticks(low, high);
    let plot = area.margin(48, 12, 20, 20);
    let rows = pairs.len() as f64;
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .margin_left(210)
        .margin_right(250)
        .build_cartesian_2d(Axis::of(low.ln()..high.ln(), ticks.iter().map(|tick| tick.ln())), rows..0.0)?;
    let band = [((1.0 / (1.0 + margin)).ln(), 0.0), ((1.0 + margin).ln(), rows)];
    chart.draw_series([Rectangle::new(band, BAND.filled())])?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(ticks.len())
        .x_label_style(styled(15.0, MUTED, HPos::Center))
        .x_label_formatter(&|at| ratio(at.exp(), 2))
        .draw()?;
    chart.draw_series([PathElement::new([(0.0, 0.0), (0.0, rows)], INK)])?;
    for (row, one) in pairs.iter().enumerate() {
        let (y, paint) = (row as f64 + 0.36, color(one));
        let epochs = one
            .epoch_ratios
            .iter()
            .map(|each| Circle::new((each.ln(), y + 0.34), 3, paint.mix(0.55).filled()));
        chart.draw_series(epochs)?;
        if let (Some(low), Some(high)) = (one.low, one.high) {
            chart.draw_series([PathElement::new([(low.ln(), y), (high.ln(), y)], paint.stroke_width(3))])?;
        }
        if let Some(ratio) = one.ratio {
            chart.draw_series([Circle::new((ratio.ln(), y), 6, paint.filled())])?;
        }
        let (_, middle) = chart.backend_coord(&(0.0, y + 0.1));
        label(area, one, middle)?;
    }
    Ok(())
}

/// What stands left and right of a row.
fn label(area: &Area<'_>, one: &Comparison, y: i32) -> Drawn {
    let pair = format!("{} / {}", plain(&one.contender), plain(&one.baseline));
    area.draw_text(&shorten_end(&pair, 28, "…"), &styled(16.0, INK, HPos::Right), (222, y))?;
    let decimals = ratio_decimals(one.low, one.high);
    let value = one.ratio.map_or_else(String::new, |value| ratio(value, decimals));
    let said = format!("{value} ({}) {}", interval(one.low, one.high), verdict(one.verdict).0);
    area.draw_text(&said, &styled(16.0, MUTED, HPos::Left), (WIDTH as i32 - 258, y))?;
    Ok(())
}

/// Round ratios from `low` to `high`, some six of them.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    if high / low > 4.0 {
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
        return all.filter(|one| (low..=high).contains(one)).collect();
    }
    let steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    let step = steps.into_iter().find(|step| (high - low) / step <= 7.0).unwrap_or(1.0);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|one| *one <= high).collect()
}

/// One nine is one step.
fn nines(at: f64) -> f64 {
    -(1.0 - at).log10()
}

fn latency(area: &Area<'_>, document: &Document, scenario: &ScenarioResult) -> Drawn {
    let title = format!("{}: latency by percentile", plain(&scenario.name));
    area.draw_text(&shorten_end(&title, 90, "…"), &styled(20.0, INK, HPos::Left), (20, 26))?;
    let curves: Vec<_> = scenario.results.iter().filter(|one| one.latency_curve.len() > 1).collect();
    let points = || curves.iter().flat_map(|one| &one.latency_curve);
    let last = points().map(|(at, _)| nines(*at)).fold(1.0, f64::max) * 1.02;
    let low = points().map(|(_, ns)| *ns.max(&1) as f64).fold(f64::INFINITY, f64::min) / 1.1;
    let high = points().map(|(_, ns)| *ns as f64).fold(1.0, f64::max) * 1.1;
    let shown: Vec<f64> =
        [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999].into_iter().filter(|at| nines(*at) <= last).collect();
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let times: Vec<f64> =
        powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit * 10_f64.powi(power)).log10())).collect();
    let plot = area.margin(48, 14, 20, 20);
    let mut chart = ChartBuilder::on(&plot)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .margin_right(200)
        .build_cartesian_2d(
            Axis::of(0.0..last, shown.iter().map(|at| nines(*at))),
            Axis::of(low.log10()..high.log10(), times),
        )?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(8)
        .y_labels(30)
        .label_style(styled(15.0, MUTED, HPos::Center))
        .y_label_style(styled(15.0, MUTED, HPos::Right))
        .x_label_formatter(&|at| quantile(1.0 - 10_f64.powf(-at)))
        .y_label_formatter(&|power| time_ns(10_f64.powf(*power)))
        .draw()?;
    for (row, one) in curves.iter().enumerate() {
        let place = document.record.plan.contenders.iter().position(|each| each.name == one.contender);
        let paint = SERIES[place.unwrap_or(row) % SERIES.len()];
        let line = one.latency_curve.iter().map(|(at, ns)| (nines(*at), (*ns.max(&1) as f64).log10()));
        chart.draw_series(LineSeries::new(line, paint.stroke_width(2)))?;
        let y = 66 + 24 * row as i32;
        area.draw(&Rectangle::new(
            [(WIDTH as i32 - 206, y - 5), (WIDTH as i32 - 194, y + 5)],
            paint.filled(),
        ))?;
        let name = shorten_end(&plain(&one.contender), 24, "…");
        area.draw_text(&name, &styled(16.0, INK, HPos::Left), (WIDTH as i32 - 186, y))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let shown = |low, high| ticks(low, high).iter().map(|one| ratio(*one, 2)).collect::<Vec<_>>();
        assert_eq!(shown(0.93, 1.12), ["0.95", "1.00", "1.05", "1.10"]);
        assert_eq!(shown(0.4, 12.0), ["0.50", "1.00", "2.00", "5.00", "10.0"]);
    }

    #[test]
    fn files_have_harmless_names_of_their_own() {
        let mut taken = BTreeSet::new();
        assert_eq!(file("ratios-../x y", &mut taken), "ratios----x-y.svg");
        assert_eq!(file("ratios-../x y", &mut taken), "ratios----x-y-2.svg");
    }
}
