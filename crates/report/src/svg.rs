//! Figures as SVG files.
//!
//! Owns: the names of the files, and what is above a drawing. Must not know: what figures show (`figures`), or files. Names are data: control
//! characters are made visible, and the rest is escaped.

mod canvas;
mod flames;
mod plot;
mod rows;

use std::collections::BTreeSet;

use deadheat_analysis::Report;

use crate::ReportError;
use crate::figures::{Drawing, Figure, Rows, Scope};
use crate::html::escaped;
use crate::text::{plain, wrap};
use canvas::{Canvas, Drawn, INK, MUTED, WIDTH, paint, wide};

/// All figures for which a document has data: the name of a file, and its content.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn svg(report: &Report) -> Result<Vec<(String, String)>, ReportError> {
    let mut taken = BTreeSet::new();
    let mut files = Vec::new();
    for figure in Scope::files(report).figures() {
        let Some(drawing) = &figure.drawing else { continue };
        let name = file(&format!("{}-{}", figure.kind, figure.subject), &mut taken);
        let problem = |error: Box<dyn std::error::Error>| ReportError::Figure {
            figure: name.clone(),
            problem: error.to_string(),
        };
        let text = text(&figure, drawing).map_err(problem)?;
        files.push((name, text));
    }
    Ok(files)
}

/// A name for a file that describes its content and is unique among the figures.
fn file(words: &str, taken: &mut BTreeSet<String>) -> String {
    let harmless = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_lowercase() } else { '-' };
    let stem: String = words.chars().map(harmless).take(80).collect();
    let name = (1..).map(|n| if n == 1 { format!("{stem}.svg") } else { format!("{stem}-{n}.svg") });
    let free = name.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// The head of a drawing: each line of the note, each name of the legend with its position.
struct Head<'f> {
    note: Vec<String>,
    legend: Vec<(i32, i32, &'f str, canvas::Paint)>,
    height: i32,
}

const SIDE: i32 = 20;
const LINE: i32 = 20;

impl<'f> Head<'f> {
    fn of(figure: &'f Figure) -> Self {
        let note = match figure.note.as_str() {
            "" => Vec::new(),
            note => wrap(&plain(note), 125),
        };
        let mut y = 48 + LINE * note.len() as i32;
        let mut legend = Vec::new();
        let mut x = SIDE;
        // A single entry needs no legend.
        for key in figure.legend.iter().filter(|_| figure.legend.len() > 1) {
            let width = wide(&key.label, 16.0) + 40;
            if x > SIDE && x + width > WIDTH - SIDE {
                (x, y) = (SIDE, y + 24);
            }
            legend.push((x, y + 8, key.label.as_str(), paint(key.color)));
            x += width;
        }
        let height = y + if legend.is_empty() { 0 } else { 30 };
        Self { note, legend, height }
    }

    fn draw(&self, title: &str, canvas: &Canvas<'_>) -> Drawn {
        canvas.write(title, 90, 20.0, INK, canvas::LEFT, (SIDE, 26))?;
        for (at, line) in self.note.iter().enumerate() {
            canvas.write(line, 140, 15.0, MUTED, canvas::LEFT, (SIDE, 52 + LINE * at as i32))?;
        }
        for (x, y, name, paint) in &self.legend {
            canvas.fill((*x, y - 5), (x + 10, y + 5), *paint)?;
            canvas.write(name, 60, 16.0, INK, canvas::LEFT, (x + 18, *y))?;
        }
        Ok(())
    }
}

/// The text of an SVG, with its title and its description.
fn text(figure: &Figure, drawing: &Drawing) -> Result<String, Box<dyn std::error::Error>> {
    let head = Head::of(figure);
    let height = head.height
        + match drawing {
            Drawing::Rows(rows) => rows::height(rows),
            Drawing::Plot(plot) => plot::height(plot),
            Drawing::Flames(flames) => flames::height(flames),
        };
    let drawn = canvas::drawn(height, |canvas| {
        head.draw(&figure.title, canvas)?;
        match drawing {
            Drawing::Rows(rows) => rows::draw(canvas, rows, head.height),
            Drawing::Plot(plot) => plot::draw(canvas, plot, head.height),
            Drawing::Flames(flames) => flames::draw(canvas, flames, head.height),
        }
    })?;
    let Some((open, rest)) = drawn.split_once(">\n") else { return Ok(drawn) };
    let says = match drawing {
        Drawing::Rows(rows) => said(rows),
        Drawing::Plot(_) | Drawing::Flames(_) => figure.says.clone(),
    };
    let [title, says] = [&figure.title, &says.join("; ")].map(|text| escaped(&plain(text)));
    Ok(format!("{open} role=\"img\">\n<title>{title}</title>\n<desc>{says}</desc>\n{rest}"))
}

/// Every row in words, or each of its bars.
fn said(rows: &Rows) -> Vec<String> {
    let mut all = Vec::new();
    for group in &rows.groups {
        let before = group.title.as_ref().map_or_else(String::new, |title| format!("{title}, "));
        for row in &group.rows {
            if row.bars.is_empty() {
                all.push(format!("{before}{}: {}", row.label, row.aside));
            }
            all.extend(row.bars.iter().map(|bar| format!("{before}{}, {}", row.label, bar.said)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_harmless_names_of_their_own() {
        let mut taken = BTreeSet::new();
        assert_eq!(file("ratios-../x y", &mut taken), "ratios----x-y.svg");
        assert_eq!(file("ratios-../x y", &mut taken), "ratios----x-y-2.svg");
    }
}
