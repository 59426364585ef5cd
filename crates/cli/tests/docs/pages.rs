//! Markdown pages as the documentation tests read them: code blocks with their marks, links, headings and tables.
//!
//! Owns: reading the Markdown features that the pages use. Must not know what the tests check.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

pub(crate) struct Page {
    /// The path below the root, as messages show it.
    pub(crate) name: String,
    /// The absolute path.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// One fenced code block.
pub(crate) struct Block {
    /// The line number of its first line of code, counted from 1.
    pub(crate) line: usize,
    /// The word after the opening fence.
    pub(crate) language: String,
    /// The text of the comment before the block, without `<!--` and `-->`.
    pub(crate) mark: Option<String>,
    pub(crate) lines: Vec<String>,
}

/// The root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Reads the page at this path below the root.
pub(crate) fn page(name: &str) -> Page {
    let path = root().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    Page { name: name.into(), path, text }
}

/// Every page of the book except SUMMARY.md, sorted by name.
pub(crate) fn book() -> Vec<Page> {
    let mut names = Vec::new();
    let mut folders = vec!["docs/src".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") && !name.ends_with("/SUMMARY.md") {
                names.push(name);
            }
        }
    }
    names.sort();
    assert!(names.len() > 15, "the book is looked for in the wrong place: {names:?}");
    names.iter().map(|name| page(name)).collect()
}

/// The studies that ship.
pub(crate) const STUDIES: [&str; 6] = ["compiled", "hello", "metadata", "node-frameworks", "ssr", "trending"];

/// The book and the other documentation pages.
pub(crate) fn all() -> Vec<Page> {
    let beside = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/src/SUMMARY.md", "web/README.md"];
    let studies = STUDIES.iter().map(|study| page(&format!("studies/{study}/README.md")));
    beside.iter().map(|name| page(name)).chain(studies).chain(book()).collect()
}

impl Page {
    /// The fenced code blocks, in page order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut open, mut mark): (Vec<Block>, Option<Block>, Option<String>) =
            (Vec::new(), None, None);
        for (at, line) in self.text.lines().enumerate() {
            let comment = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
            match (line.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some(block)) => block.lines.push(line.into()),
                (Some(language), None) => {
                    let language = language.trim().to_owned();
                    open = Some(Block { line: at + 2, language, mark: mark.take(), lines: Vec::new() });
                }
                (None, None) if comment.is_some() => mark = comment.map(|comment| comment.trim().into()),
                (None, None) if line.trim().is_empty() => {}
                (None, None) => mark = None,
            }
        }
        assert!(open.is_none(), "{}: a block of code is not closed", self.name);
        blocks
    }

    /// The lines outside code blocks, with their numbers, counted from 1.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        let mut code = false;
        let lines = self.text.lines().enumerate().map(|(at, line)| (at + 1, line));
        lines
            .filter(|(_, line)| {
                let fence = line.starts_with("```");
                code ^= fence;
                !code && !fence && !line.starts_with("    ")
            })
            .collect()
    }

    /// The text of each code span in backticks, with its line number.
    pub(crate) fn spans(&self) -> Vec<(usize, String)> {
        let span = Regex::new("`([^`]+)`").unwrap();
        let found =
            |(at, line)| span.captures_iter(line).map(|one| (at, one[1].to_owned())).collect::<Vec<_>>();
        self.prose().into_iter().flat_map(found).collect()
    }

    /// The target of each link, with its line number.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let (link, span) = (Regex::new(r"\]\(([^)\s]+)\)").unwrap(), Regex::new("`[^`]*`").unwrap());
        let found = |(at, line): (usize, &str)| {
            // Only the text of a link can be code, not its target.
            let plain = span.replace_all(line, "code");
            link.captures_iter(&plain).map(|one| (at, one[1].to_owned())).collect::<Vec<_>>()
        };
        self.prose().into_iter().flat_map(found).collect()
    }

    /// The headings, without `#` and backticks.
    pub(crate) fn headings(&self) -> Vec<String> {
        let headings = self.prose().into_iter().filter(|(_, line)| line.starts_with('#'));
        headings.map(|(_, line)| line.trim_start_matches('#').trim().replace('`', "")).collect()
    }

    /// The cells of all table rows, including header rows and the rules below them.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        self.prose().into_iter().filter_map(|(_, line)| cells(line)).collect()
    }

    /// The text between a heading and the next one.
    pub(crate) fn section(&self, heading: &str) -> String {
        let is_heading = |line: &&str| line.starts_with('#');
        let mut lines = self.text.lines().skip_while(|line| {
            !is_heading(line) || line.trim_start_matches('#').trim().replace('`', "") != heading
        });
        assert!(lines.next().is_some(), "{} has no heading {heading}", self.name);
        lines.take_while(|line| !is_heading(line)).collect::<Vec<_>>().join("\n")
    }
}

/// The cells of a table row, or `None` for any other line.
pub(crate) fn cells(line: &str) -> Option<Vec<String>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let plain = row.replace(r"\|", "\u{1}");
    Some(plain.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect())
}

/// The name of a heading in a link.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    };
    heading.to_lowercase().chars().filter_map(kept).collect()
}
