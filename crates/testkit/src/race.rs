//! Builds the command line of a race between commands.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use crate::invocation::{Invocation, Outcome, Running};
use crate::kit::Kit;

/// A race that has not started. Add the contenders first, then the options that the test is about. The race writes its record
/// to `race.json` in the kit's folder, where [`Outcome::json`] finds it.
#[derive(Debug)]
#[must_use = "nothing runs before `run` or `spawn`"]
pub struct Race<'k> {
    kit: &'k Kit,
    url: String,
    contenders: Vec<(String, String)>,
    options: Vec<OsString>,
    limit: Duration,
}

impl<'k> Race<'k> {
    pub(crate) fn new(kit: &'k Kit) -> Self {
        Self {
            kit,
            url: "http://127.0.0.1:{port}/".to_owned(),
            contenders: Vec::new(),
            options: Vec::new(),
            limit: Duration::from_secs(600),
        }
    }

    /// The URL of the requests, in which `{port}` is the contender's port. Default: `http://127.0.0.1:{port}/`.
    pub fn url(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Adds a contender: its name and its command, for example from [`server_line`](crate::server_line).
    pub fn contender(mut self, name: &str, command: &str) -> Self {
        self.contenders.push((name.to_owned(), command.to_owned()));
        self
    }

    /// Adds options, spelled as on the command line.
    pub fn args<I, A>(mut self, arguments: I) -> Self
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        self.options.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// How long the race may take. Default: 600 seconds.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The run of this race, for tests that need to set more than this type offers.
    pub fn invocation(self) -> Invocation<'k> {
        let mut run = self.kit.deadheat(["race", "--url", &self.url]).args(self.options);
        for (name, _) in &self.contenders {
            run = run.args(["-n", name]);
        }
        run.json_to("race.json").args(self.contenders.iter().map(|(_, command)| command)).limit(self.limit)
    }

    /// Starts it and waits for its end.
    ///
    /// # Panics
    /// As [`Invocation::run`].
    pub fn run(self) -> Outcome {
        self.invocation().run()
    }

    /// Starts it and returns at once.
    ///
    /// # Panics
    /// As [`Invocation::spawn`].
    pub fn spawn(self) -> Running {
        self.invocation().spawn()
    }
}
