//! Writes results to standard output and everything else to standard error, each in its own style.
//!
//! Owns: whether colours and live drawing are possible, and every write. Must not know: the content of messages.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use deadheat_remote::server_host::message::{Stream, Terminal};
use deadheat_report::{Style, plain};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::commands::Failure;

/// The number of columns if the width is unknown.
const WIDTH: usize = 100;

/// Standard output and standard error.
pub(crate) struct Console {
    /// The style of results.
    pub(crate) output: Style,
    /// The style of progress and errors.
    pub(crate) progress: Style,
    /// Whether progress can be redrawn in place.
    pub(crate) live: bool,
    results_to_stderr: bool,
    /// The first error of standard output.
    broken: RefCell<Option<io::Error>>,
}

impl Console {
    /// Examines the terminal and the environment of the process, including `NO_COLOR`.
    pub(crate) fn of_process() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let unicode = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
            .is_none_or(|value| !matches!(value.as_str(), "C" | "POSIX"));
        let style = |terminal: bool, width: Option<usize>| Style {
            color: terminal && !dumb && !set("NO_COLOR"),
            // Some terminals say that they have no columns.
            width: width.filter(|columns| *columns > 0).map_or(WIDTH, |columns| columns.max(20)),
            unicode,
        };
        let (out, err) = (io::stdout(), io::stderr());
        Self {
            output: style(out.is_terminal(), columns(&out)),
            progress: style(err.is_terminal(), columns(&err)),
            live: err.is_terminal() && !dumb,
            results_to_stderr: false,
            broken: RefCell::default(),
        }
    }

    /// From now on, only [`Self::data`] writes to standard output.
    pub(crate) fn keep_output_for_data(&mut self) {
        self.results_to_stderr = true;
        self.output = self.progress;
    }

    /// Writes a result. See [`Self::broken`].
    pub(crate) fn result(&self, text: &str) {
        if self.results_to_stderr {
            self.note(text.trim_end_matches('\n'));
        } else {
            self.data(text);
        }
    }

    /// Writes data for another program. See [`Self::broken`].
    pub(crate) fn data(&self, text: &str) {
        self.write(text.as_bytes());
    }

    fn write(&self, bytes: &[u8]) {
        let mut output = io::stdout().lock();
        let written = output.write_all(bytes).and_then(|()| output.flush());
        // If the reader has closed the pipe, the rest is not needed.
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.broken.borrow_mut().get_or_insert(error);
        }
    }

    /// The first error of standard output, if there was one. It does not stop the command, because the record is what counts.
    pub(crate) fn broken(&self) -> Option<Failure> {
        let source = self.broken.take()?;
        let problem = format!("standard output is incomplete: {source}\n  write it to another place");
        Some(io::Error::new(source.kind(), problem).into())
    }

    /// Writes bytes of a command on another machine, which knows this terminal, as they are.
    pub(crate) fn pass(&self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Output if !self.results_to_stderr => self.write(bytes),
            // If standard error fails, too, there is no place for a message.
            Stream::Output | Stream::Errors => drop(io::stderr().lock().write_all(bytes)),
        }
    }

    /// The terminal to which output goes, if any of it goes to one.
    pub(crate) fn terminal(&self) -> Option<Terminal> {
        let (output, errors) = (io::stdout(), io::stderr());
        let size = |to: &dyn AsFd| rustix::termios::tcgetwinsize(to).ok();
        let terminal = Terminal {
            columns: 0,
            rows: 0,
            output: output.is_terminal() && !self.results_to_stderr,
            errors: errors.is_terminal(),
        };
        let size = if terminal.errors { size(&errors) } else { size(&output).filter(|_| terminal.output) };
        size.map(|size| Terminal { columns: size.ws_col, rows: size.ws_row, ..terminal })
    }

    /// Writes a line of progress.
    pub(crate) fn note(&self, line: &str) {
        write_line(line);
    }

    /// Shows a usage error or the requested help. Returns the exit status.
    pub(crate) fn usage(&self, error: &clap::Error) -> u8 {
        let _ = error.print();
        if error.use_stderr() { 2 } else { 0 }
    }

    /// Shows why a command failed, with all causes. Returns the exit status.
    pub(crate) fn failure(&self, failure: &Failure) -> u8 {
        let text = failure.render(self.progress.color);
        // External text may contain anything. Our own colours are added after it was escaped.
        let harmless = if self.progress.color { text } else { lines_plain(&text) };
        self.note(&harmless);
        failure.status()
    }
}

/// Progress that is redrawn in place, if the console can, and lines that stay.
#[derive(Clone)]
pub(crate) struct Drawing(Option<ProgressBar>);

impl Drawing {
    /// `drawn`: whether lines can be redrawn in place.
    pub(crate) fn new(drawn: bool) -> Self {
        Self(drawn.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(plain) = ProgressStyle::with_template("{msg}") {
                bar.set_style(plain);
            }
            bar
        }))
    }

    /// Whether progress is drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        self.0.is_some()
    }

    /// Draws this in place of what was drawn last, at most as often as is visible. With `must`, draws it in any case.
    pub(crate) fn show(&self, lines: String, must: bool) {
        if let Some(bar) = &self.0 {
            bar.set_message(lines);
            if must {
                bar.force_draw();
            }
        }
    }

    /// Writes lines that stay, above what is drawn.
    pub(crate) fn say(&self, text: &str) {
        match &self.0 {
            Some(bar) => bar.suspend(|| write_line(text)),
            None => write_line(text),
        }
    }

    /// Removes what is drawn, so that only the result remains.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn write_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Escapes a text of several lines, except for its line breaks.
pub(crate) fn lines_plain(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

fn columns(to: &impl AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(to).ok().map(|size| usize::from(size.ws_col))
}
