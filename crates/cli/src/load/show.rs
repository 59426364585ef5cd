//! Shows a load while it runs: two lines redrawn in place on a terminal, otherwise a line every few seconds.
//!
//! Owns: which progress of the engine is kept for display, and when to show it. Must not know: the format of the lines (the report does).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use deadheat_load::{Progress, ProgressHandle};
use deadheat_report::Style;
use deadheat_report::load::live::{LoadState, Phase, lines, plain_line};

use crate::console::{Console, Drawing, lines_plain};

/// The intervals of redrawing and of written lines.
const DRAWN: Duration = Duration::from_millis(200);
const WRITTEN: Duration = Duration::from_secs(3);
/// The period of the rate and the percentiles on a terminal. Written lines use the time since the last line.
const WINDOW: Duration = Duration::from_secs(1);

/// The kind of a stretch of load, and its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    pub(super) phase: Phase,
    pub(super) duration: Option<Duration>,
    pub(super) requests: Option<u64>,
}

/// Shows the progress of a load.
pub(crate) struct Show {
    style: Style,
    drawing: Drawing,
    watch: Option<Watch>,
}

/// A stretch of load that is being shown.
struct Watch {
    goal: Goal,
    progress: ProgressHandle,
    begun: Instant,
    next: Instant,
    first: Progress,
    /// The last readings, oldest first. Never empty.
    past: VecDeque<(Instant, Progress)>,
}

impl Show {
    /// Redraws in place if the console can.
    pub(crate) fn new(console: &Console) -> Self {
        Self { style: console.progress, drawing: Drawing::new(console.live), watch: None }
    }

    /// Starts a stretch of load.
    pub(super) fn begin(&mut self, goal: &Goal, progress: &ProgressHandle, now: Instant) {
        let first = progress.read();
        let past = VecDeque::from([(now, first.clone())]);
        let next = now + self.interval();
        self.watch = Some(Watch { goal: *goal, progress: progress.clone(), begun: now, next, first, past });
    }

    /// Marks the end of the load: no further request starts.
    pub(super) fn ends(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.goal.phase = Phase::Drain;
            watch.next = Instant::now();
        }
    }

    /// Shows the progress if it is due.
    pub(super) fn glance(&mut self, now: Instant) {
        let interval = self.interval();
        let Some(watch) = self.watch.as_mut().filter(|watch| now >= watch.next) else { return };
        watch.next = now + interval;
        let state = watch.state(now);
        if self.drawing.is_drawn() {
            // The terminal's echo of ^C moves the cursor down by one line, so the first line stays behind. Therefore the first line is empty.
            self.drawing.show(format!("\n{}", lines(&state, &self.style).join("\n")), true);
        } else {
            self.drawing.say(&plain_line(&state));
        }
    }

    /// Writes a line above the drawing.
    pub(super) fn say(&self, text: &str) {
        self.drawing.say(&lines_plain(text));
    }

    /// Removes the drawing, so that only the result remains.
    pub(crate) fn finish(self) {
        self.drawing.clear();
    }

    fn interval(&self) -> Duration {
        if self.drawing.is_drawn() { DRAWN } else { WRITTEN }
    }
}

impl Watch {
    fn state(&mut self, now: Instant) -> LoadState {
        let reading = self.progress.read();
        // Keep as the oldest reading the latest one from before the window.
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
