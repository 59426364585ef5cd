//! The command line of a race between commands, put together from contenders.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use crate::invocation::{Invocation, Outcome, Running};
use crate::kit::Kit;

/// A race that has not started: contenders first, then whatever options the test is about. It writes its record
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
            limit: Duration::from_secs(180),
        }
    }

    /// What is asked for; `{port}` stands for the contender's port. `http://127.0.0.1:{port}/` unless told.
    pub fn url(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// One more contender: its name and its command, such as [`server_line`](crate::server_line) makes.
    pub fn contender(mut self, name: &str, command: &str) -> Self {
        self.contenders.push((name.to_owned(), command.to_owned()));
        self
    }

    /// More options, as they are typed.
    pub fn args<I, A>(mut self, arguments: I) -> Self
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        self.options.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// How long the race may take; 180 seconds unless told.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The run as it stands, for tests that have more to say about it.
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
