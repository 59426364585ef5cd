//! Wraps text to the terminal's width, in one tone, alone or beside a label.

use crate::style::{Style, Tone};
use crate::text::{left, wrap};

/// Columns of the labels at the left.
pub(crate) const LABEL: usize = 13;

/// Wrapped text with every line indented; lines after the first are indented by two more.
pub(crate) fn indented(text: &str, indent: usize, tone: Tone, style: &Style) -> Vec<String> {
    let lines = wrap(&style.spell(text), style.width.saturating_sub(indent + 2));
    let line = |(index, line): (usize, &String)| {
        let margin = " ".repeat(if index == 0 { indent } else { indent + 2 });
        format!("{margin}{}", style.paint(tone, line))
    };
    lines.iter().enumerate().map(line).collect()
}

/// A label, and a text that is wrapped beside it.
pub(crate) fn labelled(label: &str, text: &str, style: &Style) -> Vec<String> {
    let mut lines = indented(text, LABEL, Tone::Plain, style);
    if let Some(first) = lines.first_mut() {
        *first = format!("{}{}", style.paint(Tone::Quiet, &left(label, LABEL)), first.trim_start());
    }
    lines
}
