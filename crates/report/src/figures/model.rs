//! What a figure is: plain data that the page and the SVG files draw alike.
//!
//! Owns: how a figure is written for the page. Values stand where they are on an axis; texts that are read are made already. Names are as
//! the record has them: whoever draws makes what acts on a reader visible. Must not know what is shown, nor pixels.

use serde::{Serialize, Serializer};

/// The section of the page that a figure stands in.
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
    ColdStart,
    Ladder,
    Scaling,
    EdgeCache,
}

/// One figure.
#[derive(Serialize)]
pub(crate) struct Figure {
    /// What kind of figure: the beginning of a file's name, and a handle for styles and tests.
    pub(crate) kind: &'static str,
    pub(crate) section: Section,
    /// What it is of: the scenario's name, for example. The end of a file's name.
    pub(crate) subject: String,
    pub(crate) title: String,
    /// How it is read, and what to look at.
    pub(crate) note: String,
    /// What has which colour, where nothing else says it.
    pub(crate) legend: Vec<Key>,
    /// None where a table is enough.
    pub(crate) drawing: Option<Drawing>,
    /// What a plot shows in words, for those who do not see it; rows speak for themselves.
    #[serde(skip)]
    pub(crate) says: Vec<String>,
    /// The numbers behind it.
    pub(crate) table: Table,
}

impl Figure {
    /// One without a note and a legend.
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

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Color {
    /// A contender by its place in the plan, or a part by its place among the parts.
    Series(usize),
    Good,
    Bad,
    Neutral,
}

/// The two ways in which figures are laid out.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Drawing {
    Rows(Rows),
    Plot(Plot),
}

impl Drawing {
    pub(crate) fn rows(x: Axis, groups: Vec<Group>) -> Self {
        Self::Rows(Rows { x, band: None, rule: None, groups })
    }
}

/// An axis: its ends, its ticks with their labels, what is measured along it.
#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    /// Whether equal ratios are equal lengths.
    pub(crate) log: bool,
    pub(crate) domain: (f64, f64),
    /// In ascending order; where there is little room, not all of them are labelled.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// One row for each contender or pair, values from left to right, groups under headings.
#[derive(Serialize)]
pub(crate) struct Rows {
    pub(crate) x: Axis,
    /// Shaded: values that count as alike.
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

/// One row: bars, or an interval, or dots with what they come to.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) label: String,
    /// At its right: the figure in words.
    pub(crate) aside: String,
    pub(crate) color: Color,
    pub(crate) interval: Option<(f64, f64)>,
    /// What the dots come to: a line across the row; without dots a large dot.
    pub(crate) mark: Option<Dot>,
    /// What each dot is: it is read with the dot's number. Empty where dots say it themselves.
    pub(crate) each: &'static str,
    /// In time order: earlier ones stand higher.
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
    /// What is read there, after the row's label and a comma.
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
    /// What is read there, after the row's label and a comma.
    pub(crate) said: String,
}

/// Lines and dots over something else. One panel is high; several stand one under the other, on the same axes.
#[derive(Serialize)]
pub(crate) struct Plot {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) panels: Vec<Panel>,
}

#[derive(Serialize)]
pub(crate) struct Panel {
    pub(crate) title: Option<String>,
    /// Shaded from the one to the other, from left to right.
    pub(crate) shaded: Vec<(f64, f64)>,
    pub(crate) lines: Vec<Line>,
}

/// Points that belong together.
#[derive(Serialize)]
pub(crate) struct Line {
    /// Read before what is read at each point; a line without a name is not read at all.
    pub(crate) name: String,
    pub(crate) color: Color,
    pub(crate) stroke: Stroke,
    pub(crate) dots: Dots,
    pub(crate) points: Vec<Point>,
}

/// What joins the points of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stroke {
    None,
    /// The figure's main lines: there is room for the line's name at its end.
    Bold,
    Thin,
    /// Behind the dots, which are what is to be seen.
    Faint,
    /// Not measured.
    Dashed,
}

/// Which points of a line have a dot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dots {
    None,
    Each,
    /// Each has a small one: there are very many.
    Fine,
    /// Those at these places.
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

/// What a point has beside its place.
pub(crate) enum More {
    Nothing,
    /// A bar from the one to the other through it.
    Ends(f64, f64),
    /// It does not count: a cross, and the line passes it by.
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

/// A place in a drawing: no screen shows more than five digits of it.
struct Short(f64);

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Exact(format!("{:.4e}", self.0).parse().unwrap_or(self.0)).serialize(to)
    }
}

/// A number as it is, without `.0` where it is whole.
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
    /// Titles; `#` before one says that its column holds numbers.
    pub(crate) columns: Vec<String>,
    /// None where they only repeat the record, from which the page makes them: they would double its size.
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

/// What a cell shows; a number's text has its value beside it.
pub(crate) enum Cell {
    Text(String),
    Number(String, Option<f64>),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A dash where there is none.
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
