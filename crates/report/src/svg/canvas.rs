//! The canvas of all figures: a white sheet of fixed width, the page's colours, positions along an axis.
//!
//! Owns: the drawing library, and the escaping of all text in figures. Must not know: what is drawn.

use std::error::Error;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figures::{Axis, Color};
use crate::text::{columns, plain, shorten_end};

/// Width in pixels.
pub(super) const WIDTH: i32 = 960;
pub(super) const INK: Paint = RGBColor(0x1d, 0x1c, 0x1a);
pub(super) const MUTED: Paint = RGBColor(0x5d, 0x5a, 0x54);
pub(super) const RULE: Paint = RGBColor(0xdc, 0xd8, 0xd0);
pub(super) const BAND: Paint = RGBColor(0xec, 0xea, 0xe4);
pub(super) const WARM: Paint = RGBColor(0xf3, 0xef, 0xe3);
pub(super) const BAD: Paint = RGBColor(0xb3, 0x40, 0x0a);
const GOOD: Paint = RGBColor(0x00, 0x69, 0x5c);
const NEUTRAL: Paint = RGBColor(0x4d, 0x55, 0x63);
/// The colours of the page. People with any kind of colour vision can distinguish them.
const SERIES: [Paint; 8] = [
    RGBColor(0x0b, 0x62, 0xa8),
    RGBColor(0xc2, 0x50, 0x0c),
    RGBColor(0x00, 0x79, 0x6b),
    RGBColor(0x9c, 0x3f, 0x87),
    RGBColor(0x80, 0x62, 0x00),
    RGBColor(0x5a, 0x50, 0xc0),
    RGBColor(0xa3, 0x20, 0x3f),
    RGBColor(0x5a, 0x64, 0x72),
];

pub(super) type Paint = RGBColor;
pub(super) type Drawn = Result<(), Box<dyn Error>>;
pub(super) type Place = (i32, i32);
pub(super) const LEFT: HPos = HPos::Left;
pub(super) const MIDDLE: HPos = HPos::Center;
pub(super) const RIGHT: HPos = HPos::Right;

pub(super) fn paint(color: Color) -> Paint {
    match color {
        Color::Series(place) => SERIES[place % SERIES.len()],
        Color::Good => GOOD,
        Color::Bad => BAD,
        Color::Neutral => NEUTRAL,
    }
}

/// Approximate width of a text in pixels: letters are about half as wide as high.
pub(super) fn wide(text: &str, size: f64) -> i32 {
    (columns(&plain(text)) as f64 * size * 0.52).ceil() as i32
}

/// The positions of an axis' values, in pixels.
pub(super) struct Along<'f> {
    axis: &'f Axis,
    pub(super) from: i32,
    pub(super) to: i32,
}

impl<'f> Along<'f> {
    pub(super) fn new(axis: &'f Axis, from: i32, to: i32) -> Self {
        Self { axis, from, to }
    }

    pub(super) fn at(&self, value: f64) -> i32 {
        let (low, high) = self.axis.domain;
        let share =
            if self.axis.log { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) };
        self.from + (f64::from(self.to - self.from) * share).round() as i32
    }

    /// The ticks that lie on it.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (i32, &'f str)> {
        let (low, high) = self.axis.domain;
        let room = (high - low) * 1e-9;
        let ticks = self.axis.ticks.iter().filter(move |(at, _)| (low - room..=high + room).contains(at));
        ticks.map(|(at, label)| (self.at(*at), label.as_str()))
    }

    /// Labels under a horizontal axis: as many as fit next to each other.
    pub(super) fn labels(&self, canvas: &Canvas<'_>, y: i32) -> Drawn {
        let mut free = i32::MIN;
        for (x, label) in self.ticks() {
            let half = wide(label, 15.0) / 2 + 3;
            let x = x.min(WIDTH - half);
            if x - half >= free {
                free = x + half;
                canvas.write(label, 20, 15.0, MUTED, MIDDLE, (x, y))?;
            }
        }
        Ok(())
    }
}

/// A sheet to draw on.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// The SVG of a drawing on a sheet of the given height.
pub(super) fn drawn(height: i32, draw: impl Fn(&Canvas<'_>) -> Drawn) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
        let canvas = Canvas { area: SVGBackend::with_string(&mut text, size).into_drawing_area() };
        canvas.area.fill(&WHITE)?;
        draw(&canvas)?;
        canvas.area.present()?;
    }
    Ok(text)
}

impl Canvas<'_> {
    /// Writes a text, shortened to the given number of columns. All text from outside passes through here.
    pub(super) fn write(
        &self,
        text: &str,
        most: usize,
        size: f64,
        paint: Paint,
        at: HPos,
        place: Place,
    ) -> Drawn {
        let style = ("sans-serif", size).into_font().color(&paint).pos(Pos::new(at, VPos::Center));
        self.area.draw_text(&shorten_end(&plain(text), most, "…"), &style, place)?;
        Ok(())
    }

    pub(super) fn fill(&self, from: Place, to: Place, paint: Paint) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], paint.filled()))?;
        Ok(())
    }

    pub(super) fn frame(&self, from: Place, to: Place, paint: Paint) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], paint.stroke_width(1)))?;
        Ok(())
    }

    /// A line through all places, with the given opacity and width in pixels.
    pub(super) fn line(&self, places: Vec<Place>, paint: Paint, opaque: f64, width: u32) -> Drawn {
        self.area.draw(&PathElement::new(places, paint.mix(opaque).stroke_width(width)))?;
        Ok(())
    }

    pub(super) fn dashes(&self, places: Vec<Place>, paint: Paint) -> Drawn {
        self.area.draw(&DashedPathElement::new(places, 5, 4, paint.stroke_width(1)))?;
        Ok(())
    }

    pub(super) fn dot(&self, place: Place, radius: i32, paint: Paint, opaque: f64) -> Drawn {
        self.area.draw(&Circle::new(place, radius, paint.mix(opaque).filled()))?;
        Ok(())
    }

    pub(super) fn ring(&self, place: Place, radius: i32, paint: Paint) -> Drawn {
        self.area.draw(&Circle::new(place, radius, WHITE.filled()))?;
        self.area.draw(&Circle::new(place, radius, paint.stroke_width(1)))?;
        Ok(())
    }

    pub(super) fn cross(&self, place: Place, paint: Paint) -> Drawn {
        self.area.draw(&Cross::new(place, 3, paint))?;
        Ok(())
    }
}
