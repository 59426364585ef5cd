//! The cost of a request and of a contender: CPU time, memory, size. One dot for each epoch.
//!
//! Owns: which values go into these figures. Must not know: how usage is read.

use deadheat_analysis::number::{bytes, seldom, three_digits, time_ns};
use deadheat_analysis::{ContenderResult, EpochFigures, ScenarioResult};

use super::axis::{between, ends, labelled, tick};
use super::model::{
    Axis, Bar, Cell, Color, Dot, Dots, Drawing, Figure, Line, Panel, Plot, Point, Row, Section, Stroke, Table,
};
use super::time::{S, seconds};
use super::{Scope, Set, values};

const MIB: f64 = 1024.0 * 1024.0;

fn us(us: f64) -> String {
    time_ns(us * 1e3)
}

fn size(size: f64) -> String {
    bytes(size as u64)
}

/// One value of a cost in an epoch: its name, the title of its column, whether its dots are hollow.
type Part = (&'static str, &'static str, bool, fn(&EpochFigures) -> Option<f64>);

/// A cost that is measured in every epoch.
pub(super) struct Cost {
    pub(super) kind: &'static str,
    pub(super) section: Section,
    pub(super) title: &'static str,
    pub(super) note: &'static str,
    pub(super) label: &'static str,
    pub(super) parts: &'static [Part],
    /// The value over all epochs.
    pub(super) whole: fn(&ContenderResult) -> Option<f64>,
    pub(super) show: fn(f64) -> String,
    /// The unit in which its ticks are round.
    pub(super) unit: f64,
}

impl Cost {
    /// The figures of all selected scenarios.
    pub(super) fn figures(&self, scope: &Scope<'_>, wanted: impl Fn(&ScenarioResult) -> bool) -> Vec<Figure> {
        let rows = |one: &ScenarioResult| one.results.iter().filter(|result| self.has(result)).count();
        let sets = scope.sets(|one| if wanted(one) { rows(one) } else { 0 });
        sets.iter().map(|set| self.figure(scope, set)).collect()
    }

    fn has(&self, one: &ContenderResult) -> bool {
        let any = |epoch: &EpochFigures| self.parts.iter().any(|(.., value)| value(epoch).is_some());
        (self.whole)(one).is_some() && one.epochs.iter().any(any)
    }

    fn figure(&self, scope: &Scope<'_>, set: &Set<'_>) -> Figure {
        let groups = set.groups(|scenario| {
            let some = scenario.results.iter().filter(|one| self.has(one));
            some.map(|one| self.row(scope, one)).collect()
        });
        let x =
            Axis::from_zero(values(&groups), (self.unit, 7.0), self.label, |value| tick(&(self.show)(value)));
        let columns = ["contender", "scenario", "#epoch"].into_iter();
        let columns: Vec<&str> = columns.chain(self.parts.iter().map(|(_, column, ..)| *column)).collect();
        let cells = set.scenarios.iter().flat_map(|scenario| {
            scenario.results.iter().flat_map(move |one| {
                one.epochs.iter().map(move |epoch| {
                    let begin =
                        [Cell::text(&one.contender), Cell::text(&scenario.name), Cell::count(epoch.epoch)];
                    let values = self.parts.iter().map(|(.., value)| Cell::number(value(epoch), self.show));
                    begin.into_iter().chain(values).collect()
                })
            })
        });
        Figure {
            note: self.note.into(),
            ..Figure::new(
                (self.kind, self.section),
                set.subject(),
                set.title(self.title),
                Drawing::rows(x, groups),
                Table::new(format!("{}, epoch by epoch", self.title), &columns, cells),
            )
        }
    }

    fn row(&self, scope: &Scope<'_>, one: &ContenderResult) -> Row {
        let dots = one.epochs.iter().flat_map(|epoch| {
            self.parts.iter().filter_map(move |(name, _, hollow, value)| {
                let value = value(epoch)?;
                let said = format!("epoch {}, {name}: {}", epoch.epoch, (self.show)(value));
                Some(Dot { value, said, hollow: *hollow })
            })
        });
        let whole = (self.whole)(one);
        Row {
            aside: whole.map(self.show).unwrap_or_default(),
            dots: dots.collect(),
            mark: whole.map(|value| Dot::new(value, format!("all epochs: {}", (self.show)(value)))),
            ..Row::new(&one.contender, scope.color(&one.contender))
        }
    }
}

/// CPU time per request.
pub(super) fn cpu(scope: &Scope<'_>) -> Vec<Figure> {
    let cost = Cost {
        kind: "cpu",
        section: Section::Cpu,
        title: "CPU time per request",
        note: "One dot for each epoch, the first at the top; the line is the value over all epochs. Further right costs more.",
        label: "CPU time of the process tree per answer; lower is better",
        parts: &[("CPU per request", "#µs", false, |one| one.cpu_us_per_request)],
        whole: |one| one.cpu_us_per_request,
        show: us,
        unit: 1.0,
    };
    cost.figures(scope, |_| true)
}

/// Memory at the end of each epoch, and at its highest.
pub(super) fn memory(scope: &Scope<'_>) -> Vec<Figure> {
    let cost = Cost {
        kind: "memory",
        section: Section::Memory,
        title: "Memory",
        note: "Filled: at the end of an epoch. Hollow: the highest seen in it. The line is the value over all; further right takes more.",
        label: "proportional set size of the process tree; lower is better",
        parts: &[
            ("at its end", "#end, bytes", false, |one| one.rss_bytes.map(|size| size as f64)),
            ("at its highest", "#highest, bytes", true, |one| one.peak_rss_bytes.map(|size| size as f64)),
        ],
        whole: |one| one.rss_bytes.map(|size| size as f64),
        show: size,
        unit: MIB,
    };
    cost.figures(scope, |_| true)
}

/// CPU time per request in user mode and in the kernel, if the two were measured separately.
fn parts(one: &ContenderResult) -> Option<(f64, f64)> {
    one.user_us_per_request.zip(one.system_us_per_request)
}

/// The parts of CPU time.
pub(super) fn cpu_parts(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| scenario.results.iter().filter_map(parts).count());
    sets.iter().map(|set| of_parts(scope, set)).collect()
}

fn of_parts(scope: &Scope<'_>, set: &Set<'_>) -> Figure {
    let scenario = set.scenarios[0];
    let divided = || scenario.results.iter().filter_map(|one| Some((one, parts(one)?)));
    let row = |(one, (user, system)): (&ContenderResult, (f64, f64))| {
        let color = scope.color(&one.contender);
        let bar = |from, to, hollow, name: &str| {
            let said = format!("{name}: {}", us(to - from));
            Bar { from, to, color, hollow, said }
        };
        let bars = vec![bar(0.0, user, false, "user mode"), bar(user, user + system, true, "kernel")];
        Row { bars, ..Row::new(&one.contender, color) }
    };
    let groups = set.groups(|_| divided().map(row).collect());
    // Few virtual machines have a processor that counts instructions.
    let counted = divided().find(|(one, _)| one.instructions_per_request.is_some());
    let source = counted.map(|(one, _)| match one.instructions_source.as_deref() {
        Some("instructions:u") => "#user-mode instructions",
        _ => "#instructions",
    });
    let columns = ["contender", "#user mode", "#kernel"].into_iter().chain(source);
    let columns: Vec<&str> = columns.chain(["#switches", "#involuntary"]).collect();
    let cells = |(one, (user, system)): (&ContenderResult, (f64, f64))| {
        let times = [user, system].map(|time| Cell::number(Some(time), us));
        let instructions = source.map(|_| Cell::number(one.instructions_per_request, three_digits));
        let switches = [one.switches_per_request, one.involuntary_switches_per_request];
        let switches = switches.map(|value| Cell::number(value, seldom));
        [Cell::text(&one.contender)].into_iter().chain(times).chain(instructions).chain(switches).collect()
    };
    let also = if source.is_some() { "instructions " } else { "" };
    let caption = format!("{}: CPU time, {also}and context switches per request", scenario.name);
    let format = |value| tick(&us(value));
    let x =
        Axis::from_zero(values(&groups), (1.0, 6.0), "CPU time per request; longer bars cost more", format);
    let note = "Filled: in user mode. Hollow: in the kernel. The parts are counted by the ticks of the kernel's clock, the whole precisely.";
    let table = Table::new(caption, &columns, divided().map(cells));
    let (title, drawing) = (set.title("User mode and kernel"), Drawing::rows(x, groups));
    let figure = Figure::new(("cpu-parts", Section::Cpu), &scenario.name, title, drawing, table);
    Figure { note: note.into(), ..figure }
}

/// Memory from round to round.
pub(super) fn memory_over_time(scope: &Scope<'_>) -> Vec<Figure> {
    let sets = scope.each(|scenario| scope.report.record.epochs_of(&scenario.name).count());
    sets.iter().filter_map(|set| from_round_to_round(scope, set)).collect()
}

fn from_round_to_round(scope: &Scope<'_>, set: &Set<'_>) -> Option<Figure> {
    let scenario = set.scenarios[0];
    let mut lines: Vec<(usize, Line)> = Vec::new();
    for epoch in scope.report.record.epochs_of(&scenario.name) {
        for (place, name) in scope.contenders(|_, _| true) {
            let moments = epoch.of(place).into_iter().flat_map(|part| &part.usage.memory);
            let points = moments.map(|one| {
                let said = format!("{}: {}", time_ns(one.at_ns as f64), bytes(one.pss_bytes));
                Point::new(one.at_ns as f64 / S, one.pss_bytes as f64, said)
            });
            let (name, points) = (format!("{name}, epoch {}", epoch.number), points.collect());
            let color = Color::Series(place);
            lines.push((place, Line { name, color, stroke: Stroke::Thin, dots: Dots::None, points }));
        }
    }
    let panels = scope.panels(lines, &[]);
    let points = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let (from, to) = ends(points().map(|point| point.x))?;
    let to = if to > from { to } else { from + 1.0 };
    let ticks = labelled(between(from, to, 9.0), seconds);
    let x = Axis { label: "time in the epoch".into(), log: false, domain: (from, to), ticks };
    let format = |value| tick(&size(value));
    let y = Axis::from_zero(points().map(|point| point.y), (MIB, 3.0), "proportional set size", format);
    let says = |panel: &Panel| {
        let sizes = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.y);
        let (low, high) = ends(sizes).unwrap_or_default();
        format!("{}: {} to {}", panel.title.as_deref().unwrap_or_default(), size(low), size(high))
    };
    let says = panels.iter().map(says).collect();
    let note = "One line for each epoch. It is read between rounds, while everything is frozen. A line that still climbs at its end shows memory that is still growing.";
    let caption = format!("{}: memory from round to round", scenario.name);
    let table = Table::of_record(caption, &["contender", "#epoch", "#since its start", "#memory"]);
    let (title, drawing) = (set.title("Memory from round to round"), Drawing::Plot(Plot { x, y, panels }));
    let figure = Figure::new(("memory-time", Section::Memory), &scenario.name, title, drawing, table);
    Some(Figure { note: note.into(), says, ..figure })
}

/// The size of each contender's deployment, as the study states it. Only a table.
pub(super) fn artefacts(scope: &Scope<'_>) -> Vec<Figure> {
    let results = || scope.report.scenarios.iter().flat_map(|one| &one.results);
    let size_of = |(_, name): (usize, &str)| {
        let known = results().filter(|one| one.contender == name).find_map(|one| one.artefact_bytes)?;
        Some(vec![Cell::text(name), Cell::number(Some(known as f64), size)])
    };
    let rows: Vec<Vec<Cell>> = scope.contenders(|_, _| true).into_iter().filter_map(size_of).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let caption = "Size of the files that each is deployed as";
    let table = Table::new(caption, &["contender", "#size"], rows);
    let figure = Figure::new(("artefacts", Section::Memory), "", caption, None, table);
    vec![figure]
}
