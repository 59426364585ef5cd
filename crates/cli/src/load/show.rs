//! A load while it runs: two lines drawn over again on a terminal, a line every few seconds elsewhere.
//!
//! Owns: what is kept of the engine's progress for showing, and when. Must not know: how lines are written (the report
//! does).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use deadheat_load::{Progress, ProgressHandle};
use deadheat_report::Style;
use deadheat_report::load::live::{LoadState, Phase, lines, plain_line};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console::Console;

/// How often it is drawn anew, or a line is written.
const DRAWN: Duration = Duration::from_millis(200);
const WRITTEN: Duration = Duration::from_secs(3);
/// Rate and percentiles are those of the last so much time, or since the last line that was written.
const WINDOW: Duration = Duration::from_secs(1);

/// What a stretch of load is, and when it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    pub(super) phase: Phase,
    pub(super) duration: Option<Duration>,
    pub(super) requests: Option<u64>,
}

/// Shows how a load stands.
pub(crate) struct Show {
    style: Style,
    bar: Option<ProgressBar>,
    watch: Option<Watch>,
}

/// One stretch of load that is watched.
struct Watch {
    goal: Goal,
    progress: ProgressHandle,
    begun: Instant,
    next: Instant,
    first: Progress,
    /// The last readings, the oldest first; never empty.
    past: VecDeque<(Instant, Progress)>,
}

impl Show {
    /// Draws over again if the console can.
    pub(crate) fn new(console: &Console) -> Self {
        let bar = console.live.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(plain) = ProgressStyle::with_template("{msg}") {
                bar.set_style(plain);
            }
            bar
        });
        Self { style: console.progress, bar, watch: None }
    }

    /// A stretch of load begins.
    pub(super) fn begin(&mut self, goal: &Goal, progress: &ProgressHandle, now: Instant) {
        let first = progress.read();
        let past = VecDeque::from([(now, first.clone())]);
        let next = now + self.interval();
        self.watch = Some(Watch { goal: *goal, progress: progress.clone(), begun: now, next, first, past });
    }

    /// Nothing more is begun.
    pub(super) fn ends(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.goal.phase = Phase::Drain;
            watch.next = Instant::now();
        }
    }

    /// Shows how it stands, if it is time for that.
    pub(super) fn glance(&mut self, now: Instant) {
        let interval = self.interval();
        let Some(watch) = self.watch.as_mut().filter(|watch| now >= watch.next) else { return };
        watch.next = now + interval;
        let state = watch.state(now);
        match &self.bar {
            Some(bar) => {
                // The terminal's own ^C moves the cursor down by a line, and what is then left behind is the first one.
                bar.set_message(format!("\n{}", lines(&state, &self.style).join("\n")));
                bar.tick();
            }
            None => write_line(&plain_line(&state)),
        }
    }

    /// Takes the drawing away, so that the result stands alone.
    pub(crate) fn finish(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn interval(&self) -> Duration {
        if self.bar.is_some() { DRAWN } else { WRITTEN }
    }
}

impl Watch {
    fn state(&mut self, now: Instant) -> LoadState {
        let reading = self.progress.read();
        // The oldest reading that is kept is the youngest from before the window.
        while self.past.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            self.past.pop_front();
        }
        let (since, earlier) = self.past.front().map_or((self.begun, &self.first), |(at, one)| (*at, one));
        let recent = reading.since(earlier);
        let whole = reading.since(&self.first);
        let elapsed = now.duration_since(self.begun);
        let late = self.goal.duration.is_some_and(|duration| elapsed > duration);
        let state = LoadState {
            phase: if late { Phase::Drain } else { self.goal.phase },
            elapsed_s: elapsed.as_secs_f64(),
            total_s: self.goal.duration.map(|duration| duration.as_secs_f64()),
            requests: self.goal.requests.map(|total| ((whole.completions + whole.errors).min(total), total)),
            rate_per_s: recent.completions as f64 / now.duration_since(since).as_secs_f64().max(1e-3),
            p50_ns: recent.quantile_ns(0.5),
            p99_ns: recent.quantile_ns(0.99),
            errors: whole.errors,
            connections: reading.connections,
        };
        self.past.push_back((now, reading));
        state
    }
}

fn write_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
