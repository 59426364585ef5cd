//! How text may look: colours, width, characters.
//!
//! Owns the few styles that are used, so that they mean the same everywhere. Must not know what is shown.

use anstyle::{AnsiColor, Style as Ansi};

/// What the place can show that is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colour may be written.
    pub color: bool,
    /// Columns.
    pub width: usize,
    /// Whether characters beyond ASCII may be drawn with.
    pub unicode: bool,
}

/// What a piece of text is, from which follows how it looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// What is to be read first.
    Strong,
    /// What may be skipped.
    Quiet,
    /// A verdict for the contender.
    Good,
    /// A verdict against the contender.
    Bad,
    /// What weakens a number.
    Caution,
    /// What takes a number away.
    Alarm,
}

impl Style {
    /// The text in its tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.color || tone == Tone::Plain || text.is_empty() {
            return text.into();
        }
        let color = |color: AnsiColor| Ansi::new().fg_color(Some(color.into()));
        let ansi = match tone {
            Tone::Plain => Ansi::new(),
            Tone::Strong => Ansi::new().bold(),
            Tone::Quiet => Ansi::new().dimmed(),
            Tone::Good => color(AnsiColor::Green),
            Tone::Bad => color(AnsiColor::Red),
            Tone::Caution => color(AnsiColor::Yellow),
            Tone::Alarm => color(AnsiColor::Red).bold(),
        };
        format!("{ansi}{text}{ansi:#}")
    }

    /// Our own text in the characters that may be used.
    pub(crate) fn spell(&self, text: &str) -> String {
        if self.unicode {
            text.into()
        } else {
            text.replace('µ', "u").replace('…', "...").replace('·', "-").replace('±', "+-")
        }
    }
}
