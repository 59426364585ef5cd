//! Tells the user at once what is wrong with load hosts.
//!
//! Owns: what is said once, and when. Must not know: where it is shown.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use deadheat_remote::LoadHosts;

/// Interval between checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Says once that a load host is silent, and once that it is lost.
pub(crate) struct Trouble {
    hosts: Arc<LoadHosts>,
    /// What follows from a loss: `the load ends`.
    so: &'static str,
    silent: Vec<String>,
    lost: usize,
}

impl Trouble {
    /// With nothing said yet.
    pub(crate) fn with(hosts: Arc<LoadHosts>, so: &'static str) -> Self {
        Self { hosts, so, silent: Vec::new(), lost: 0 }
    }

    /// Whether a loss was said.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// What has not been said yet.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        let lost = self.hosts.lost();
        news.extend(lost.iter().skip(self.lost).map(|error| format!("{error}; {}", self.so)));
        self.lost = lost.len();
        let deadline_s = self.hosts.deadline().as_secs();
        for (name, silence) in self.hosts.silent() {
            if self.lost == 0 && !self.silent.iter().any(|one| one == name) {
                let silent_s = silence.as_secs_f64();
                news.push(format!(
                    "nothing was heard from load host {name} for {silent_s:.1} s; after {deadline_s} s it counts as lost"
                ));
                self.silent.push(name.to_owned());
            }
        }
        news
    }

    /// Passes all news to `say` as they come, until the result is dropped.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn tell_with(mut self, say: impl Fn(&str) + Send + 'static) -> std::io::Result<Telling> {
        let (end, ended) = channel::<()>();
        let body = move || {
            loop {
                let over = ended.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout);
                self.news().iter().for_each(|line| say(line));
                if over {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("trouble".into()).spawn(body)?;
        Ok(Telling { end: Some(end), thread: Some(thread) })
    }
}

/// Passes on news while it exists.
pub(crate) struct Telling {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
