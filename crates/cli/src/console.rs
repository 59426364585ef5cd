//! Where words go: results to standard output, everything else to standard error, each in its own style.
//!
//! Owns: whether colours and live drawing are possible, and every write. Must not know: what is said.

use std::io::{self, IsTerminal, Write};

use deadheat_report::{Style, plain};

use crate::commands::Failure;

/// Columns where the width cannot be told.
const WIDTH: usize = 100;

/// Standard output and standard error.
pub(crate) struct Console {
    /// How results look.
    pub(crate) output: Style,
    /// How progress and errors look.
    pub(crate) progress: Style,
    /// Whether progress can be drawn over again.
    pub(crate) live: bool,
    results_to_stderr: bool,
}

impl Console {
    /// As the process's terminal and environment say; `NO_COLOR` is honoured.
    pub(crate) fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let unicode = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .is_none_or(|value| !matches!(value.as_str(), "C" | "POSIX"));
        let style = |terminal: bool, width: Option<usize>| Style {
            color: terminal && !dumb && !set("NO_COLOR"),
            width: width.filter(|columns| *columns >= 20).unwrap_or(WIDTH),
            unicode,
        };
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            output: style(out.is_terminal(), columns(&out)),
            progress: style(err.is_terminal(), columns(&err)),
            live: err.is_terminal() && !dumb,
            results_to_stderr: false,
        }
    }

    /// From here on nothing but [`Self::data`] is written to standard output.
    pub(crate) fn keep_output_for_data(&mut self) {
        self.results_to_stderr = true;
        self.output = self.progress;
    }

    /// Writes a result.
    pub(crate) fn result(&self, text: &str) {
        if self.results_to_stderr {
            self.note(text.trim_end_matches('\n'));
        } else {
            // A reader that went away wants no more of it.
            let _ = io::stdout().lock().write_all(text.as_bytes());
        }
    }

    /// Writes what another program reads.
    pub(crate) fn data(&self, text: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(text.as_bytes())?;
        output.flush()
    }

    /// Writes a line of progress.
    pub(crate) fn note(&self, line: &str) {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Shows wrong usage, or the help that was asked for. Returns the exit status.
    pub(crate) fn usage(&self, error: &clap::Error) -> u8 {
        let _ = error.print();
        if error.use_stderr() { 2 } else { 0 }
    }

    /// Shows why a command ended, with every cause. Returns the exit status.
    pub(crate) fn failure(&self, failure: &Failure) -> u8 {
        let text = failure.render(self.progress.color);
        // What comes from outside may hold anything; our own colours come after it was made harmless.
        let harmless = if self.progress.color { text } else { lines_plain(&text) };
        self.note(&harmless);
        failure.status()
    }
}

/// Text of several lines with everything but its line breaks made harmless.
pub(crate) fn lines_plain(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

fn columns(to: &impl std::os::fd::AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(to).ok().map(|size| usize::from(size.ws_col))
}
