//! The appearance of text: colours, width, characters.
//!
//! Owns: the few styles, so that each means the same everywhere. Must not know: what is shown.

use anstyle::{AnsiColor, Style as Ansi};

/// The capabilities of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colour may be written.
    pub color: bool,
    /// Width in columns.
    pub width: usize,
    /// Whether non-ASCII characters may be used for drawing.
    pub unicode: bool,
}

/// The role of a piece of text, which determines how it looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Plain text.
    #[default]
    Plain,
    /// Text to read first.
    Strong,
    /// Text that the reader may skip.
    Quiet,
    /// A verdict for the contender.
    Good,
    /// A verdict against the contender.
    Bad,
    /// Something that weakens a number.
    Caution,
    /// Something that makes a number invalid.
    Alarm,
}

impl Tone {
    /// A colour never carries meaning alone: the text contains a word for it. Yellow and cyan are not used, because they cannot be read on white.
    fn ansi(self) -> Ansi {
        let color = |color: AnsiColor| Ansi::new().fg_color(Some(color.into()));
        match self {
            Self::Plain => Ansi::new(),
            Self::Strong => Ansi::new().bold(),
            Self::Quiet => Ansi::new().dimmed(),
            Self::Good => color(AnsiColor::Green),
            Self::Bad => color(AnsiColor::Red),
            Self::Caution => color(AnsiColor::Magenta),
            Self::Alarm => color(AnsiColor::Red).bold(),
        }
    }
}

impl Style {
    /// The text in its tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.color || tone == Tone::Plain || text.is_empty() {
            return text.into();
        }
        let ansi = tone.ansi();
        format!("{ansi}{text}{ansi:#}")
    }

    /// deadheat's own text, in the characters that may be used.
    pub(crate) fn spell(&self, text: &str) -> String {
        if self.unicode {
            text.into()
        } else {
            text.replace('µ', "u").replace('…', "...").replace('·', "-").replace('±', "+-")
        }
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Color;

    use super::*;

    /// The default colours of xterm, which are the hardest to read on white among common terminals.
    const XTERM: [(AnsiColor, [u8; 3]); 6] = [
        (AnsiColor::Red, [0xcd, 0x00, 0x00]),
        (AnsiColor::Green, [0x00, 0xcd, 0x00]),
        (AnsiColor::Yellow, [0xcd, 0xcd, 0x00]),
        (AnsiColor::Blue, [0x00, 0x00, 0xee]),
        (AnsiColor::Magenta, [0xcd, 0x00, 0xcd]),
        (AnsiColor::Cyan, [0x00, 0xcd, 0xcd]),
    ];

    /// Relative luminance, from 0 to 1 (WCAG 2.2).
    fn luminance(color: [u8; 3]) -> f64 {
        let linear = color.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    /// The smaller of a colour's contrasts with white and with black; none for a colour that is not in [`XTERM`].
    fn least_contrast(color: Color) -> Option<f64> {
        let (_, found) = XTERM.into_iter().find(|(one, _)| Color::from(*one) == color)?;
        let light = luminance(found) + 0.05;
        Some((1.05 / light).min(light / 0.05))
    }

    #[test]
    fn every_tone_can_be_read_on_white_and_on_black() {
        let tones =
            [Tone::Plain, Tone::Strong, Tone::Quiet, Tone::Good, Tone::Bad, Tone::Caution, Tone::Alarm];
        for tone in tones {
            // A tone without a colour uses the terminal's default.
            let Some(color) = tone.ansi().get_fg_color() else { continue };
            assert!(least_contrast(color).is_some_and(|contrast| contrast > 2.0), "{tone:?}");
        }
        assert!(least_contrast(AnsiColor::Yellow.into()).is_some_and(|contrast| contrast < 1.8));
        assert!(least_contrast(AnsiColor::Cyan.into()).is_some_and(|contrast| contrast < 2.0));
    }

    #[test]
    fn without_colour_there_are_no_escapes() {
        let plain = Style { color: false, width: 80, unicode: true };
        assert_eq!(plain.paint(Tone::Alarm, "invalid"), "invalid");
        let colored = Style { color: true, ..plain };
        assert_eq!(colored.paint(Tone::Caution, "warning"), "\u{1b}[35mwarning\u{1b}[0m");
    }
}
