//! The model of a figure: plain data that the page and the SVG files draw in the same way.
//!
//! Owns: how a figure is written for the page. Values are positions on an axis. Texts are ready to display. Names are as in the record, and the code
//! that draws them makes control characters visible. Must not know: what is shown, or pixels.

use serde::{Serialize, Serializer};

/// The section of the page that contains the figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Section {
    Ratios,
    Epochs,
    Latency,
    Time,
    Cpu,
    Memory,
    Collectors,
    Functions,
    ColdStart,
    Ladder,
    Scaling,
    EdgeCache,
}

/// One figure.
#[derive(Serialize)]
pub(crate) struct Figure {
    /// Kind of the figure: the beginning of a file's name, and an identifier for styles and tests.
    pub(crate) kind: &'static str,
    pub(crate) section: Section,
    /// Subject, for example the scenario's name: the end of a file's name.
    pub(crate) subject: String,
    pub(crate) title: String,
    /// How to read it, and what to look at.
    pub(crate) note: String,
    /// Meaning of the colours, if nothing else explains it.
    pub(crate) legend: Vec<Key>,
    /// None if a table is enough.
    pub(crate) drawing: Option<Drawing>,
    /// A description of a plot for screen readers. Rows need none.
    #[serde(skip)]
    pub(crate) says: Vec<String>,
    /// The numbers behind it.
    pub(crate) table: Table,
}

impl Figure {
    /// A figure without a note and a legend.
    pub(crate) fn new(
        (kind, section): (&'static str, Section),
        subject: impl Into<String>,
        title: impl Into<String>,
        drawing: impl Into<Option<Drawing>>,
        table: Table,
    ) -> Self {
        let (subject, title, drawing) = (subject.into(), title.into(), drawing.into());
        let (note, legend, says) = (String::new(), Vec::new(), Vec::new());
        Self { kind, section, subject, title, note, legend, drawing, says, table }
    }
}

/// An entry of a legend.
#[derive(Serialize)]
pub(crate) struct Key {
    pub(crate) label: String,
    pub(crate) color: Color,
}

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Color {
    /// A contender by its index in the plan, or a part by its index among the parts.
    Series(usize),
    Good,
    Bad,
    Neutral,
}

/// The three layouts of figures.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Drawing {
    Rows(Rows),
    Plot(Plot),
    Flames(Flames),
}

impl Drawing {
    pub(crate) fn rows(x: Axis, groups: Vec<Group>) -> Self {
        Self::Rows(Rows { x, band: None, rule: None, groups })
    }
}

/// Calls as rectangles: each stands below its caller, and is as wide as its share of all time (a flame graph).
#[derive(Serialize)]
pub(crate) struct Flames {
    /// Level by level, from left to right.
    pub(crate) frames: Vec<Flame>,
}

/// One call.
pub(crate) struct Flame {
    /// The number of callers above it.
    pub(crate) level: u32,
    /// Its left end, as a share of the whole width.
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) color: Color,
    /// How much of its colour is seen, 0 to 1.
    pub(crate) strength: f64,
    /// The name of the function.
    pub(crate) label: String,
    /// Text that screen readers read after the name.
    pub(crate) said: String,
}

impl Serialize for Flame {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let ends = (Short(self.from), Short(self.to));
        (self.level, ends.0, ends.1, self.color, Short(self.strength), &self.label, &self.said).serialize(to)
    }
}

/// An axis: its ends, its ticks with their labels, and its label.
#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    /// Whether the axis is logarithmic.
    pub(crate) log: bool,
    pub(crate) domain: (f64, f64),
    /// Ticks in ascending order. If there is little room, not all of them get a label.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// Rows, one for each contender or pair, with values from left to right, in groups under headings.
#[derive(Serialize)]
pub(crate) struct Rows {
    pub(crate) x: Axis,
    /// Shaded range: values that count as equal.
    pub(crate) band: Option<(f64, f64)>,
    /// A line through all rows.
    pub(crate) rule: Option<f64>,
    pub(crate) groups: Vec<Group>,
}

#[derive(Serialize)]
pub(crate) struct Group {
    pub(crate) title: Option<String>,
    pub(crate) rows: Vec<Row>,
}

/// One row: bars, or an interval, or dots with their summary.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) label: String,
    /// Text at the right: the figure in words.
    pub(crate) aside: String,
    pub(crate) color: Color,
    pub(crate) interval: Option<(f64, f64)>,
    /// The value that summarizes the dots, drawn as a line across the row; without dots, a large dot.
    pub(crate) mark: Option<Dot>,
    /// Meaning of a dot. Screen readers read it with the number of the dot. Empty if the dots describe themselves.
    pub(crate) each: &'static str,
    /// Dots in time order: earlier ones are higher.
    pub(crate) dots: Vec<Dot>,
    pub(crate) bars: Vec<Bar>,
}

impl Row {
    pub(crate) fn new(label: &str, color: Color) -> Self {
        let (label, aside) = (label.to_owned(), String::new());
        Self { label, aside, color, interval: None, mark: None, each: "", dots: Vec::new(), bars: Vec::new() }
    }
}

/// One value of a row.
pub(crate) struct Dot {
    pub(crate) value: f64,
    /// Text that screen readers read, after the row's label and a comma.
    pub(crate) said: String,
    pub(crate) hollow: bool,
}

impl Dot {
    pub(crate) fn new(value: f64, said: String) -> Self {
        Self { value, said, hollow: false }
    }
}

impl Serialize for Dot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value = Short(self.value);
        if self.hollow { (value, &self.said, true).serialize(to) } else { (value, &self.said).serialize(to) }
    }
}

/// A part of a row's bar.
#[derive(Serialize)]
pub(crate) struct Bar {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) color: Color,
    pub(crate) hollow: bool,
    /// Text that screen readers read, after the row's label and a comma.
    pub(crate) said: String,
}

/// Lines and dots over a shared axis. A single panel is high; several are stacked, with the same axes.
#[derive(Serialize)]
pub(crate) struct Plot {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) panels: Vec<Panel>,
}

#[derive(Serialize)]
pub(crate) struct Panel {
    pub(crate) title: Option<String>,
    /// Ranges to shade, from left to right.
    pub(crate) shaded: Vec<(f64, f64)>,
    pub(crate) lines: Vec<Line>,
}

/// Points of one line.
#[derive(Serialize)]
pub(crate) struct Line {
    /// Text that screen readers read before that of each point. A line without a name is not read.
    pub(crate) name: String,
    pub(crate) color: Color,
    pub(crate) stroke: Stroke,
    pub(crate) dots: Dots,
    pub(crate) points: Vec<Point>,
}

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stroke {
    None,
    /// A main line of the figure, with room for its name at its end.
    Bold,
    Thin,
    /// A line behind the dots, which matter more.
    Faint,
    /// Values that were not measured.
    Dashed,
}

/// The points of a line that have a dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dots {
    None,
    Each,
    /// Every point has a small dot, because there are many points.
    Fine,
    /// The points with these indices.
    At(Vec<usize>),
}

/// One point.
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) said: String,
    pub(crate) more: More,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64, said: String) -> Self {
        Self { x, y, said, more: More::Nothing }
    }
}

/// An addition to a point.
pub(crate) enum More {
    Nothing,
    /// A vertical bar between two values, through the point.
    Ends(f64, f64),
    /// The point does not count. It is drawn as a cross, and the line skips it.
    LeftOut,
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (x, y, said) = (Short(self.x), Short(self.y), &self.said);
        match self.more {
            More::Nothing => (x, y, said).serialize(to),
            More::Ends(low, high) => (x, y, said, (Short(low), Short(high))).serialize(to),
            More::LeftOut => (x, y, said, ()).serialize(to),
        }
    }
}

/// A position in a drawing, with at most five digits, which is enough for any screen.
struct Short(f64);

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Exact(format!("{:.4e}", self.0).parse().unwrap_or(self.0)).serialize(to)
    }
}

/// A number in full, without `.0` if it is whole.
struct Exact(f64);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let whole = self.0 as i64;
        if whole as f64 == self.0 && whole.unsigned_abs() < 1 << 53 {
            to.serialize_i64(whole)
        } else {
            to.serialize_f64(self.0)
        }
    }
}

/// Numbers in rows and columns.
#[derive(Serialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    /// Titles. A `#` at the start marks a column of numbers.
    pub(crate) columns: Vec<String>,
    /// None if they only repeat the record. The page then makes them from the record, because including them would double its size.
    pub(crate) rows: Option<Vec<Vec<Cell>>>,
}

impl Table {
    pub(crate) fn new(
        caption: impl Into<String>,
        columns: &[&str],
        rows: impl IntoIterator<Item = Vec<Cell>>,
    ) -> Self {
        Self { rows: Some(rows.into_iter().collect()), ..Self::of_record(caption, columns) }
    }

    pub(crate) fn of_record(caption: impl Into<String>, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&one| one.to_owned()).collect();
        Self { caption: caption.into(), columns, rows: None }
    }
}

/// The content of a cell; a number has a text and a value.
pub(crate) enum Cell {
    Text(String),
    Number(String, Option<f64>),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number, or a dash if there is none.
    pub(crate) fn number(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        Self::Number(value.map_or_else(|| "–".into(), show), value)
    }

    pub(crate) fn count(value: usize) -> Self {
        Self::Number(value.to_string(), Some(value as f64))
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(to),
            Self::Number(text, value) => (text, value.map(Exact)).serialize(to),
        }
    }
}
