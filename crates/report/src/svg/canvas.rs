//! What all figures are drawn on: a white sheet of one width, the page's colours, axes with ticks of our choice.
//!
//! Owns: the drawing library's set-up. Must not know what is drawn.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ReportError;

pub(super) const WIDTH: u32 = 960;
pub(super) const INK: RGBColor = RGBColor(0x1d, 0x1c, 0x1a);
pub(super) const MUTED: RGBColor = RGBColor(0x5d, 0x5a, 0x54);
pub(super) const RULE: RGBColor = RGBColor(0xdc, 0xd8, 0xd0);
pub(super) const BAND: RGBColor = RGBColor(0xec, 0xea, 0xe4);
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
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// One figure of that height as the text of an SVG.
pub(super) fn figure(
    name: &str,
    height: u32,
    draw: impl Fn(&Area<'_>) -> Drawn,
) -> Result<String, ReportError> {
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

pub(super) fn styled(size: f64, color: RGBColor, at: HPos) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&color).pos(Pos::new(at, VPos::Center))
}
