//! What all figures are drawn on: a white sheet of one width, the page's colours, axes with ticks of our choice.
//!
//! Owns: the drawing library's set-up, and that no text in a figure acts on a reader. Must not know what is drawn.

use std::error::Error;
use std::ops::Range;

use deadheat_analysis::Report;
use deadheat_analysis::number::three_digits;
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ReportError;
use crate::html::escaped;
use crate::text::{plain, shorten_end};

/// Pixels from left to right.
pub(super) const WIDTH: i32 = 960;
pub(super) const INK: RGBColor = RGBColor(0x1d, 0x1c, 0x1a);
pub(super) const MUTED: RGBColor = RGBColor(0x5d, 0x5a, 0x54);
pub(super) const RULE: RGBColor = RGBColor(0xdc, 0xd8, 0xd0);
pub(super) const BAND: RGBColor = RGBColor(0xec, 0xea, 0xe4);
pub(super) const WARM: RGBColor = RGBColor(0xf3, 0xef, 0xe3);
pub(super) const BAD: RGBColor = RGBColor(0xb3, 0x40, 0x0a);
/// Told apart by people with any kind of colour vision; those of the page.
pub(super) const SERIES: [RGBColor; 8] = [
    RGBColor(0x0b, 0x62, 0xa8),
    RGBColor(0xc2, 0x50, 0x0c),
    RGBColor(0x00, 0x79, 0x6b),
    RGBColor(0x9c, 0x3f, 0x87),
    RGBColor(0x80, 0x62, 0x00),
    RGBColor(0x5a, 0x50, 0xc0),
    RGBColor(0xa3, 0x20, 0x3f),
    RGBColor(0x5a, 0x64, 0x72),
];

/// The colour of what stands at that place.
pub(super) fn color(place: usize) -> RGBColor {
    SERIES[place % SERIES.len()]
}

/// A contender's colour: that of its place in the plan.
pub(super) fn color_of(report: &Report, contender: &str) -> RGBColor {
    color(report.record.plan.contenders.iter().position(|one| one.name == contender).unwrap_or(0))
}

/// An axis with ticks of our choice.
pub(super) struct Axis {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Axis {
    pub(super) fn of(range: Range<f64>, ticks: impl IntoIterator<Item = f64>) -> Self {
        let within = |tick: &f64| (range.start - 1e-9..=range.end + 1e-9).contains(tick);
        Self { ticks: ticks.into_iter().filter(within).collect(), range }
    }

    /// From 0 to 1 without ticks: for what is laid out in pixels.
    pub(super) fn bare() -> Self {
        Self { range: 0.0..1.0, ticks: Vec::new() }
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

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn Error>>;
pub(super) type Draw<'d> = Box<dyn Fn(&Area<'_>) -> Drawn + 'd>;

type Chart<'a, 'b, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Y>>;

/// Draws the axis of values from left to right, with rules at its ticks; what stands above them is laid out by the figure.
pub(super) fn across<Y>(chart: &mut Chart<'_, '_, Y>, ticks: usize, format: &dyn Fn(&f64) -> String) -> Drawn
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(ticks)
        .x_label_style(styled(15.0, MUTED, HPos::Center))
        .x_label_formatter(format)
        .draw()?;
    Ok(())
}

/// Draws the axes of rates over something else, so many ticks from left to right and upwards.
pub(super) fn rates_over(
    chart: &mut Chart<'_, '_, Axis>,
    (right, up): (usize, usize),
    format: &dyn Fn(&f64) -> String,
) -> Drawn {
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RULE)
        .axis_style(RULE)
        .x_labels(right)
        .y_labels(up)
        .label_style(styled(15.0, MUTED, HPos::Center))
        .y_label_style(styled(15.0, MUTED, HPos::Right))
        .x_label_formatter(format)
        .y_label_formatter(&|rate| three_digits(*rate))
        .draw()?;
    Ok(())
}

/// A figure that is still to be drawn.
pub(super) struct Figure<'d> {
    /// What its file is called, before that is made harmless.
    pub(super) stem: String,
    /// Its heading.
    pub(super) title: String,
    /// What it shows in words, for those who do not see it: an entry for each row or line.
    pub(super) says: Vec<String>,
    /// In pixels, the heading's included.
    pub(super) height: i32,
    /// Draws all but the heading.
    pub(super) draw: Draw<'d>,
}

impl Figure<'_> {
    /// The text of an SVG.
    pub(super) fn text(&self, name: &str) -> Result<String, ReportError> {
        let mut text = String::new();
        self.drawn(&mut text)
            .map_err(|error| ReportError::Figure { figure: name.into(), problem: error.to_string() })?;
        Ok(self.told(&text))
    }

    fn drawn(&self, text: &mut String) -> Drawn {
        let size = (WIDTH.unsigned_abs(), self.height.unsigned_abs());
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        write(&area, &self.title, 90, &styled(20.0, INK, HPos::Left), (20, 26))?;
        (self.draw)(&area)?;
        area.present()?;
        Ok(())
    }

    /// The drawing with its title and its description.
    fn told(&self, drawn: &str) -> String {
        let Some((open, rest)) = drawn.split_once(">\n") else { return drawn.into() };
        let [title, says] = [&self.title, &self.says.join("; ")].map(|text| escaped(&plain(text)));
        format!("{open} role=\"img\">\n<title>{title}</title>\n<desc>{says}</desc>\n{rest}")
    }
}

pub(super) fn styled(size: f64, color: RGBColor, at: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&color).pos(Pos::new(at, VPos::Center))
}

/// Writes a text, cut to so many columns. Whatever comes from outside goes through here.
pub(super) fn write(
    area: &Area<'_>,
    text: &str,
    columns: usize,
    style: &TextStyle<'_>,
    place: (i32, i32),
) -> Drawn {
    area.draw_text(&shorten_end(&plain(text), columns, "…"), style, place)?;
    Ok(())
}

/// A contender's panel, and what stands above it.
const PANEL: i32 = 92;
const GAP: i32 = 28;
const HEADING: i32 = 42;

/// A panel for each contender, one under the other, all of them on one scale from 0 to `high`.
pub(super) struct Panels<'a, 'b> {
    pub(super) area: &'a Area<'b>,
    /// Pixels from the left.
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) high: f64,
}

impl Panels<'_, '_> {
    /// Pixels of so many, the figure's heading included.
    pub(super) fn height(panels: usize) -> i32 {
        HEADING + (PANEL + GAP) * panels as i32
    }

    /// From the top of a panel to its zero.
    pub(super) fn span(row: usize) -> (i32, i32) {
        let base = Self::height(row + 1);
        (base - PANEL, base)
    }

    /// Where a value stands in a panel.
    pub(super) fn up(&self, row: usize, value: f64) -> i32 {
        Self::span(row).1 - (f64::from(PANEL) * value / self.high).round() as i32
    }

    pub(super) fn name(&self, row: usize, name: &str) -> Drawn {
        let above = Self::span(row).0 - 12;
        write(self.area, name, 60, &styled(16.0, INK, HPos::Left), (self.left, above))
    }

    /// Rules at values, each with its label.
    pub(super) fn rules(&self, row: usize, ticks: &[f64], format: &dyn Fn(f64) -> String) -> Drawn {
        for value in ticks {
            let y = self.up(row, *value);
            self.area.draw(&PathElement::new([(self.left, y), (self.right, y)], RULE))?;
            let label = styled(14.0, MUTED, HPos::Right);
            write(self.area, &format(*value), 12, &label, (self.left - 8, y))?;
        }
        Ok(())
    }
}

/// Names with their colours, right of a plot from the top down.
pub(super) fn legend<'n>(area: &Area<'_>, entries: impl IntoIterator<Item = (&'n str, RGBColor)>) -> Drawn {
    for (row, (name, paint)) in entries.into_iter().enumerate() {
        let y = 66 + 24 * row as i32;
        area.draw(&Rectangle::new([(WIDTH - 206, y - 5), (WIDTH - 194, y + 5)], paint.filled()))?;
        write(area, name, 24, &styled(16.0, INK, HPos::Left), (WIDTH - 186, y))?;
    }
    Ok(())
}

/// The least round step that cuts a length into at most so many parts.
fn round_step(length: f64, most: f64) -> f64 {
    let power = 10_f64.powf(length.log10().floor());
    let steps = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0].map(|step| step * power);
    steps.into_iter().find(|step| length / step <= most).unwrap_or(power * 10.0)
}

/// Round numbers from 0 to at most `high`, at most about `most` of them.
pub(super) fn zero_ticks(high: f64, most: f64) -> Vec<f64> {
    if !(high > 0.0 && high.is_finite()) {
        return vec![0.0];
    }
    let step = round_step(high, most);
    (0..).map(|at| f64::from(at) * step).take_while(|tick| *tick <= high * 1.0001).collect()
}

/// Round numbers between two, at most about `most` of them and at least a third as many.
pub(super) fn between(low: f64, high: f64, most: f64) -> Vec<f64> {
    let step = round_step(high - low, most);
    let first = (low / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|tick| *tick <= high).collect()
}

/// What stands at a power of ten, and evenly between two on a logarithmic axis.
pub(super) const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// The multiples of each power of ten that lie between two numbers.
pub(super) fn of_powers(low: f64, high: f64, multiples: &[f64]) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers.flat_map(|power| multiples.iter().map(move |one| one * 10_f64.powi(power)));
    all.filter(|one| (low..=high).contains(one)).collect()
}

/// Round numbers between two on a logarithmic axis: 1, 2 and 5 of each power of ten; where those are fewer than three, all of 1 to
/// 9; and where those are, too, round steps. Both ends are positive, the higher one at least 1.2 times the lower one.
pub(super) fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    const ALL: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    for multiples in [&ROUND[..], &ALL[..]] {
        let ticks = of_powers(low, high, multiples);
        if ticks.len() >= 3 {
            return ticks;
        }
    }
    between(low, high, 7.0)
}

/// As ticks have it: `20 ms` for `20.0 ms`.
pub(super) fn tick(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let short =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{short} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use deadheat_analysis::number::time_ns;

    #[test]
    fn ticks_from_zero_are_round_and_few() {
        assert_eq!(zero_ticks(17_300.0, 3.0), [0.0, 10_000.0]);
        assert_eq!(zero_ticks(85.8, 7.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(zero_ticks(0.0, 7.0), [0.0]);
        assert_eq!(
            ["20.0 ms", "1.25 s", "100 ms", "0", "11,400"].map(tick),
            ["20 ms", "1.25 s", "100 ms", "0", "11,400"]
        );
    }

    #[test]
    fn ticks_of_a_logarithmic_axis_are_as_round_as_there_is_room() {
        let shown = |low, high| log_ticks(low, high).iter().map(|ns| tick(&time_ns(*ns))).collect::<Vec<_>>();
        assert_eq!(shown(0.9e6, 1.1e7), ["1 ms", "2 ms", "5 ms", "10 ms"]);
        assert_eq!(shown(5.1e6, 9.9e6), ["6 ms", "7 ms", "8 ms", "9 ms"]);
        assert_eq!(shown(3.3e6, 9.0e6), ["4 ms", "5 ms", "6 ms", "7 ms", "8 ms", "9 ms"]);
        assert_eq!(shown(5.1e6, 6.2e6), ["5.2 ms", "5.4 ms", "5.6 ms", "5.8 ms", "6 ms", "6.2 ms"]);
    }

    proptest! {
        /// What a figure leaves free around its times makes the higher end at least 1.21 times the lower one.
        #[test]
        fn a_logarithmic_axis_has_labels(low in 0.9..1e11_f64, decades in 0.083..9.0_f64) {
            let high = low * 10_f64.powf(decades);
            let ticks = log_ticks(low, high);
            prop_assert!(ticks.len() >= 3 && ticks.len() <= 3 * 10, "{ticks:?}");
            prop_assert!(ticks.iter().all(|one| (low..=high).contains(one)), "{ticks:?}");
            let labels: Vec<String> = ticks.iter().map(|ns| tick(&time_ns(*ns))).collect();
            prop_assert!(labels.windows(2).all(|two| two[0] != two[1]), "{labels:?}");
        }
    }
}
