//! Wraps text to the terminal's width, in one tone.

use crate::style::{Style, Tone};
use crate::text::wrap;

/// Wrapped text with every line indented; lines after the first are indented by two more.
pub(crate) fn indented(text: &str, indent: usize, tone: Tone, style: &Style) -> Vec<String> {
    let lines = wrap(&style.spell(text), style.width.saturating_sub(indent + 2));
    let line = |(index, line): (usize, &String)| {
        let margin = " ".repeat(if index == 0 { indent } else { indent + 2 });
        format!("{margin}{}", style.paint(tone, line))
    };
    lines.iter().enumerate().map(line).collect()
}
