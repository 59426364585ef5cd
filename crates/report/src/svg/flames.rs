//! Flame graphs: rectangles below each other.
//!
//! Owns: the position of rectangles on a sheet. Must not know: what they are calls of.

use super::SIDE;
use super::canvas::{Canvas, Drawn, INK, LEFT, Paint, WIDTH, paint};
use crate::figures::Flames;

const ROW: i32 = 20;
/// Below this width in pixels, a rectangle has no name.
const LEAST: i32 = 40;
/// The share of its colour that the strongest rectangle has: text on it is readable.
const STRONGEST: f64 = 0.5;

/// Pixels from the top of the outermost calls to the end of the innermost.
pub(super) fn height(flames: &Flames) -> i32 {
    let levels = flames.frames.iter().map(|one| one.level + 1).max().unwrap_or(0);
    ROW * i32::try_from(levels).unwrap_or(i32::MAX / ROW) + SIDE
}

pub(super) fn draw(canvas: &Canvas<'_>, flames: &Flames, top: i32) -> Drawn {
    let across = |share: f64| SIDE + (f64::from(WIDTH - 2 * SIDE) * share).round() as i32;
    for one in &flames.frames {
        let (from, to) = (across(one.from), across(one.to).max(across(one.from) + 1));
        let y = top + ROW * i32::try_from(one.level).unwrap_or(0);
        canvas.fill(
            (from, y),
            (to - 1, y + ROW - 2),
            on_white(paint(one.color), one.strength * STRONGEST),
        )?;
        if to - from >= LEAST {
            let letters = usize::try_from((to - from - 8) / 7).unwrap_or(0);
            canvas.write(&one.label, letters, 13.0, INK, LEFT, (from + 4, y + ROW / 2 - 1))?;
        }
    }
    Ok(())
}

/// A colour of which only a share is seen on white paper.
fn on_white(color: Paint, share: f64) -> Paint {
    let mix = |part: u8| (255.0 - (255.0 - f64::from(part)) * share).round() as u8;
    plotters::style::RGBColor(mix(color.0), mix(color.1), mix(color.2))
}
