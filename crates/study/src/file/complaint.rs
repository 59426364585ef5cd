//! Mistakes in a study file, and how to show them: the place, a caret, what is allowed, a remedy.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::renderer::Style;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use thiserror::Error;

use super::words::{shown, tamed};

/// Why a study could not be read.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}\n  a study is a folder with a study.toml, or that file itself", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file was read, but its content is wrong.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

impl StudyError {
    pub(super) fn not_utf8(path: &str, error: &std::string::FromUtf8Error) -> Self {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let complaint = Complaint::new(valid..valid + '\u{fffd}'.len_utf8(), "this is not UTF-8", "here")
            .help("save the file as UTF-8");
        Self::Mistakes(Mistakes { path: path.into(), text, complaints: vec![complaint] })
    }

    /// The whole message. `styled` adds colours for a terminal.
    pub fn render(&self, styled: bool) -> String {
        match self {
            Self::Unreadable { .. } => format!("error: {self}"),
            Self::Mistakes(mistakes) => mistakes.render(styled),
        }
    }
}

/// All mistakes found in a study file, in their order in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) complaints: Vec<Complaint>,
}

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(false))
    }
}

impl Mistakes {
    /// The whole message. `styled` adds colours for a terminal.
    pub fn render(&self, styled: bool) -> String {
        // Help is bold, because the default, bright cyan, is illegible on white.
        let bold = Renderer::styled().help(Style::new().bold());
        let renderer = if styled { bold } else { Renderer::plain() };
        let path = tamed(&self.path);
        let each =
            self.complaints.iter().map(|complaint| renderer.render(&[complaint.group(&self.text, &path)]));
        let mut blocks: Vec<String> = each.collect();
        if self.complaints.len() > 1 {
            blocks.push(format!("{} mistakes in {path}", self.complaints.len()));
        }
        blocks.join("\n\n")
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    span: Range<usize>,
    title: String,
    label: String,
    also: Option<(Range<usize>, String)>,
    helps: Vec<String>,
}

impl Complaint {
    /// `title` says what is wrong. `label` appears next to the caret and says what was found there.
    pub(super) fn new(span: Range<usize>, title: impl Into<String>, label: impl Into<String>) -> Self {
        Self { span, title: title.into(), label: label.into(), also: None, helps: Vec::new() }
    }

    /// Adds another place that is related to the mistake.
    pub(super) fn also(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.also = Some((span, label.into()));
        self
    }

    /// Adds a line that says what is allowed or what to do.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// Adds the word that the author probably meant, if there is one.
    pub(super) fn meant(self, word: Option<&str>) -> Self {
        match word {
            Some(word) => self.help(format!("did you mean `{}`?", shown(word))),
            None => self,
        }
    }

    pub(super) fn of_syntax(error: &toml::de::Error, text: &str) -> Self {
        let span = error.span().unwrap_or(text.len()..text.len());
        let complaint = Self::new(span, "this is not TOML", shown(error.message()));
        if error.message().contains("duplicate key") {
            return complaint
                .help("write each key once per table; write one [[contender]] table for each contender");
        }
        complaint.help("put strings in quotes: name = \"text\", or 'text' to keep backslashes as they are")
    }

    /// The place of the mistake, in bytes of the file.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    fn group<'c>(&'c self, text: &'c str, path: &'c str) -> Group<'c> {
        let place = |span: &Range<usize>| within(span, text);
        let mut snippet = Snippet::source(text)
            .path(path)
            .annotation(AnnotationKind::Primary.span(place(&self.span)).label(&self.label));
        if let Some((span, label)) = &self.also {
            snippet = snippet.annotation(AnnotationKind::Context.span(place(span)).label(label));
        }
        let group = Level::ERROR.primary_title(&self.title).element(snippet);
        self.helps.iter().fold(group, |group, help| group.element(Level::HELP.message(help)))
    }
}

/// Limits the span to the text and to character boundaries. For several lines, only the first is underlined.
fn within(span: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    let line_end = text[start..end].find('\n').map_or(end, |length| start + length);
    start..line_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_can_be_read_on_white() {
        let text = "name = 1\n".to_owned();
        let complaint = Complaint::new(7..8, "this is not a text", "a number").help("names stand in quotes");
        let mistakes = Mistakes { path: "study.toml".into(), text, complaints: vec![complaint] };
        let shown = mistakes.render(true);
        assert!(shown.contains("\u{1b}[1mhelp"), "{shown:?}");
        // Yellow and cyan, normal and bright.
        assert!(!["[33m", "[36m", "[93m", "[96m"].iter().any(|color| shown.contains(color)), "{shown:?}");
        assert!(!mistakes.render(false).contains('\u{1b}'));
    }
}
