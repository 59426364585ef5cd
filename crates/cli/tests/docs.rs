//! Tests of the README and the book: examples run, options exist, links have targets, and tables name every code and key.
//!
//! In the pages, a comment before a block of code says how these tests use the block:
//!
//! - `<!-- run -->`, `<!-- run: 0 or 3 -->`: a shell runs each line that begins with `$ `, in one folder for the whole page. The command
//!   must exit with one of these statuses (default: 0), and its output must contain every other line. All numbers count as equal, except
//!   those of a kept record, which stay the same. `...` matches any text. A command that ends with `&` runs until the page ends. A free port replaces 8080.
//! - `<!-- run, given race.json -->`: the same, and the folder contains the document of a race in that file.
//! - `<!-- run: 0 or 3, needs node -->`: the same, but the test skips the block with a notice if that program is not installed.
//! - `<!-- file: study.toml -->`: the test writes the block to that file in the folder.
//! - `<!-- study -->`: the block is a study, or a part of one, and `deadheat` must accept it. The test adds missing contenders and probes.
//!
//! All other command lines must use existing subcommands and options.
#![allow(clippy::unwrap_used)]

#[path = "docs/commands.rs"]
mod commands;
#[path = "docs/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use deadheat_analysis::gates::table::{By, GATES};
use deadheat_record::{METRICS, MetricRow, Unit};
use deadheat_study::file::KEY_TABLES;
use deadheat_testkit::{Invocation, Kit, Outcome, Running, free_port, skipped, turn, wait_until};
use regex::Regex;
use serde_json::Value;

use commands::Known;
use pages::{Block, Page, STUDIES, all, anchor, book, cells, page, root};

/// The file that a mark asks for if its block needs a race, and the race in that file.
const GIVEN: &str = "race.json";
const EXAMPLE: &str = include_str!("../../record/tests/fixtures/example.json");

/// A command on a page, and the output that the page shows.
struct Example {
    line: usize,
    command: String,
    shown: Vec<String>,
}

fn examples(block: &Block) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for (at, line) in block.lines.iter().enumerate() {
        match (line.strip_prefix("$ "), examples.last_mut()) {
            (Some(command), _) => {
                examples.push(Example { line: block.line + at, command: command.into(), shown: Vec::new() });
            }
            (None, Some(last)) if last.command.ends_with('\\') && last.shown.is_empty() => {
                last.command += &format!("\n{line}");
            }
            (None, Some(last)) => last.shown.push(line.clone()),
            (None, None) => panic!("line {}: output before any command", block.line + at),
        }
    }
    examples
}

/// Makes lines of different runs comparable: replaces each number and its unit with `#`, and each gap with one space.
fn pattern(line: &str) -> String {
    let number = Regex::new(r"\b\d[\d,.]*( ?(ns|µs|us|ms|s|min|B|kB|MB|GB|KiB|MiB|GiB)\b)?").unwrap();
    let gap = Regex::new(r"\s+").unwrap();
    gap.replace_all(&number.replace_all(line.trim(), "#"), " ").into_owned()
}

/// As [`pattern`], with the numbers as they are.
fn in_full(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first line that the page shows but the output does not contain. Lines are compared as `pattern` gives them.
fn missing<'s>(shown: &'s [String], output: &str, pattern: fn(&str) -> String) -> Option<&'s str> {
    let output: Vec<String> = output.lines().map(pattern).collect();
    let has = |line: &str| {
        let parts: Vec<String> = line.split("...").map(pattern).collect();
        output.iter().any(|one| {
            let mut rest = one.as_str();
            parts
                .iter()
                .all(|part| rest.find(part.as_str()).map(|at| rest = &rest[at + part.len()..]).is_some())
        })
    };
    shown.iter().map(String::as_str).find(|line| !line.trim().is_empty() && !has(line))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A folder in which the examples of one page run one after another.
struct Walk<'p> {
    page: &'p Page,
    kit: Kit,
    port: u16,
    behind: Vec<Running>,
}

impl<'p> Walk<'p> {
    fn new(page: &'p Page) -> Self {
        Self { page, kit: Kit::new("/bin/sh"), port: free_port(), behind: Vec::new() }
    }

    /// Runs all examples of the page and returns the number of commands.
    fn all(mut self) -> usize {
        let mut count = 0;
        for block in self.page.blocks() {
            let Some(mark) = &block.mark else { continue };
            if let Some(name) = mark.strip_prefix("file:") {
                self.kit.file(name.trim(), block.lines.join("\n") + "\n");
            } else if let Some(rest) = mark.strip_prefix("run") {
                let (rest, program) = rest.split_once("needs ").unwrap_or((rest, ""));
                if !program.is_empty() && !is_installed(program.trim()) {
                    let place = format!("{}:{}", self.page.name, block.line);
                    skipped(&place, &format!("there is no {program}"));
                    continue;
                }
                if rest.contains(GIVEN) {
                    self.kit.file(GIVEN, EXAMPLE);
                }
                let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
                let mut allowed: Vec<i32> = numbers.map(|number| number.parse().unwrap()).collect();
                if allowed.is_empty() {
                    allowed.push(0);
                }
                let examples = examples(&block);
                assert!(!examples.is_empty(), "{}:{}: nothing to run", self.page.name, block.line);
                count += examples.len();
                examples.iter().for_each(|example| self.run(example, &allowed));
            }
        }
        count
    }

    fn run(&mut self, example: &Example, allowed: &[i32]) {
        let place = format!("{}:{}", self.page.name, example.line);
        let line = example.command.replace("8080", &self.port.to_string());
        if let Some(line) = line.strip_suffix('&') {
            self.behind.push(self.shell(line).limit(Duration::from_secs(600)).spawn());
            let listens = || TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            assert!(wait_until(Duration::from_secs(60), listens), "{place}: nobody listens");
            return;
        }
        let outcome: Outcome = self.shell(&line).limit(Duration::from_secs(150)).run();
        let status = outcome.status().unwrap_or(-1);
        assert!(allowed.contains(&status), "{place}: not {allowed:?}, but {outcome}");
        let output = format!("{}\n{}", outcome.stdout, outcome.stderr);
        let compared = if line.contains("/kept/") { in_full } else { pattern };
        if let Some(line) = missing(&example.shown, &output, compared) {
            panic!("{place}: it does not say\n{line}\n{outcome}");
        }
    }

    fn shell(&self, line: &str) -> Invocation<'_> {
        let folder = Path::new(env!("CARGO_BIN_EXE_deadheat")).parent().unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        // The page's folder contains `studies`, as a clone of the repository does.
        let studies = self.kit.path().join("studies");
        if !studies.exists() {
            std::os::unix::fs::symlink(root().join("studies"), studies).unwrap();
        }
        self.kit.deadheat(["-c", line]).env("PATH", path)
    }
}

#[test]
fn marked_examples_run_and_say_what_is_shown() {
    let pages: Vec<Page> = std::iter::once(page("README.md")).chain(book()).collect();
    let walked = |page: &Page| {
        let _turn = turn();
        (page.name.clone(), Walk::new(page).all())
    };
    // The pages run in parallel, each in a separate folder.
    let counts: Vec<(String, usize)> = std::thread::scope(|scope| {
        let walks: Vec<_> = pages.iter().map(|page| scope.spawn(|| walked(page))).collect();
        walks.into_iter().map(|walk| walk.join().unwrap()).collect()
    });
    let count: usize = counts.iter().map(|(_, count)| count).sum();
    assert!(count >= 12, "few examples are run: {counts:?}");
    for name in ["docs/src/compare-in-ci.md", "docs/src/reading-a-report.md"] {
        assert!(counts.iter().any(|(page, count)| page == name && *count > 1), "{name}: {counts:?}");
    }
}

#[test]
fn what_is_shown_is_looked_for() {
    let output = "  bun   14,500/s  p99 2.45 ms\nend";
    let shown = |line: &str| [line.to_owned()];
    for line in ["bun 1/s p99 850 ns", "bun ... p99", "end", ""] {
        assert_eq!(missing(&shown(line), output, pattern), None, "{line}");
    }
    for line in ["bun 1/s p50 3 ms", "node", "p99 ... bun"] {
        assert_eq!(missing(&shown(line), output, pattern), Some(line));
    }
    assert_eq!(missing(&shown("p99   2.45 ms"), output, in_full), None);
    assert_eq!(missing(&shown("p99 2.46 ms"), output, in_full), Some("p99 2.46 ms"));
}

#[test]
fn command_lines_have_options_that_there_are() {
    let known = Known::ask();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in all() {
        for (line, words) in commands::lines(&page) {
            count += 1;
            wrong
                .extend(known.fault(&words).map(|fault| format!("{}:{line}: {fault}: {words:?}", page.name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 60, "only {count} command lines were found");
    for bad in ["lod http://x", "load --nonsense x", "load -j x", "race --slo=1 --html x --ceiling"] {
        assert!(known.fault(&commands::words(bad)).is_some(), "{bad}");
    }
}

/// Both tell what the kept races found. When one is measured again, the other must not stay behind.
#[test]
fn the_page_of_a_study_begins_as_its_readme_does() {
    for study in STUDIES {
        let lead = |name: &str| page(name).text.split("\n\n").nth(1).unwrap().to_owned();
        let (readme, book) = (format!("studies/{study}/README.md"), format!("docs/src/studies/{study}.md"));
        assert_eq!(lead(&readme), lead(&book), "{readme} and {book}");
    }
}

#[test]
fn links_lead_somewhere() {
    let src = root().join("docs/src");
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in all() {
        for (line, link) in page.links().into_iter().filter(|(_, link)| !link.contains("://")) {
            count += 1;
            let (path, fragment) = link.split_once('#').map_or((link.as_str(), None), |(a, b)| (a, Some(b)));
            let target = match path {
                "" => page.path.clone(),
                path => page.path.parent().unwrap().join(path),
            };
            let mut fault = |why: &str| wrong.push(format!("{}:{line}: {link}: {why}", page.name));
            let Ok(target) = target.canonicalize() else {
                fault("there is no such file");
                continue;
            };
            // The built book contains only its own pages.
            if page.path.starts_with(&src) && !target.starts_with(&src) {
                fault("leads out of the book");
            }
            if let Some(fragment) = fragment {
                let name = target.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                let headings = pages::page(&name).headings();
                if !headings.iter().any(|heading| anchor(heading) == fragment) {
                    fault("there is no such heading");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "only {count} links were found");
}

#[test]
fn the_summary_names_every_page_once() {
    let summary = page("docs/src/SUMMARY.md");
    let mut named: Vec<String> =
        summary.links().into_iter().map(|(_, link)| format!("docs/src/{link}")).collect();
    named.sort();
    assert_eq!(named, book().into_iter().map(|page| page.name).collect::<Vec<_>>());
    let book: toml::Table = fs::read_to_string(root().join("docs/book.toml")).unwrap().parse().unwrap();
    assert_eq!(book["book"]["src"].as_str(), Some("src"));
}

/// A book cannot link to files outside it, so its pages name them in backticks. Those files must exist.
#[test]
fn files_that_are_named_exist() {
    let known = Regex::new(r"^(ci|crates|docs|studies|bench|web|scripts|fuzz)/[A-Za-z0-9_./-]+$").unwrap();
    // Set-up, a build or a race creates these files.
    let made =
        Regex::new(r"^(fuzz/(corpus|artifacts)|bench/clients/(venv|bin)|studies/[a-z-]+/work)").unwrap();
    let mut wrong = Vec::new();
    for page in all() {
        for (line, span) in page.spans() {
            if known.is_match(&span) && !made.is_match(&span) && !root().join(&span).exists() {
                wrong.push(format!("{}:{line}: there is no {span}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Completes a part of a study, runs `deadheat check` with a contender that no study has, and returns the error. deadheat reads the whole
/// study before it looks for the contender, and starts nothing.
fn answer_to_study(text: &str) -> String {
    let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
    let table: toml::Table = text.parse().unwrap();
    let mut text = text.to_owned();
    if !table.contains_key("contender") {
        text += "\n[[contender]]\ncommand = \"a\"\n\n[[contender]]\ncommand = \"b\"\n";
    }
    if !table.contains_key("probe") {
        text += "\n[[probe]]\npath = \"/\"\n";
    }
    for contender in table.get("contender").and_then(toml::Value::as_array).into_iter().flatten() {
        if let Some(folder) = contender.get("folder") {
            kit.file(Path::new("here").join(folder.as_str().unwrap()).join("server.mjs"), "");
        }
    }
    for input in table.get("dataset").and_then(|one| one.get("inputs")?.as_array()).into_iter().flatten() {
        kit.file(Path::new("here").join(input.as_str().unwrap()), "");
    }
    kit.file("here/study.toml", text);
    let outcome = kit.deadheat(["check", "here", "--only", NO_CONTENDER]).run();
    outcome.assert_status(2).stderr.clone()
}

const NO_CONTENDER: &str = "no-such-contender";

#[test]
fn studies_are_accepted() {
    let mut count = 0;
    for page in all() {
        for block in page.blocks().into_iter().filter(|block| block.mark.as_deref() == Some("study")) {
            count += 1;
            let answer = answer_to_study(&block.lines.join("\n"));
            assert!(answer.contains(NO_CONTENDER), "{}:{}: {answer}", page.name, block.line);
        }
    }
    assert!(count > 6, "only {count} studies were found");
    for wrong in
        ["[[scenario]]\nname = \"a\"\nrates = 5", "[[contender]]\ncommand = \"a\"\nservices = [\"none\"]"]
    {
        assert!(!answer_to_study(wrong).contains(NO_CONTENDER), "{wrong}");
    }
}

#[test]
fn blocks_of_toml_are_toml() {
    let mut count = 0;
    for page in all() {
        for block in page.blocks().into_iter().filter(|block| block.language == "toml") {
            count += 1;
            let text = block.lines.join("\n");
            let read = text.parse::<toml::Table>();
            assert!(read.is_ok(), "{}:{}: {read:?}", page.name, block.line);
        }
    }
    assert!(count > 2, "only {count} blocks of TOML were found");
}

/// The text of the generated part with this name, made from the program's tables.
fn made(name: &str) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let rows = |by: By| {
        GATES.iter().filter_map(move |gate| {
            let (warns, invalid) = gate.conditions(by)?;
            let remedies = gate.text(by)?.remedies.join("<br>");
            let [warns, invalid, remedies] = [warns, invalid, remedies].map(|text| cell(&text));
            Some(format!("| `{}` | {warns} | {invalid} | {remedies} |\n", gate.code).replace("|  |", "| |"))
        })
    };
    let findings = |by: By, worst: &str| {
        format!("| code | warns | {worst} | remedy |\n|---|---|---|---|\n{}", rows(by).collect::<String>())
    };
    match name {
        "findings of a race" => findings(By::Race, "invalid"),
        "findings of a load" => findings(By::Load, "invalid"),
        "findings of doctor" => findings(By::Doctor, "unfit"),
        "findings of a comparison" => findings(By::Compare, "invalid"),
        "metrics" => {
            let row = |row: &MetricRow| {
                let better = if row.more_is_better { "more" } else { "less" };
                let unit = match row.unit {
                    Unit::Rate => "per second",
                    Unit::Time => "nanoseconds",
                    Unit::CpuTime => "microseconds",
                    Unit::Size => "bytes",
                };
                format!("| `{}` | {} | {unit} | {better} |\n", row.word, row.help)
            };
            let rows: String = METRICS.iter().map(row).collect();
            format!("| metric | what it is | unit in JSON | better |\n|---|---|---|---|\n{rows}")
        }
        "commands" => Known::ask().reference(),
        keys if keys.starts_with("keys of ") => {
            let table = KEY_TABLES.iter().find(|table| keys == format!("keys of {}", table.name)).unwrap();
            let row = |(key, meaning): &(&str, &str)| format!("| `{key}` | {} |\n", cell(meaning));
            let rows: String = table.keys.iter().map(row).collect();
            format!("| key | meaning |\n|---|---|\n{rows}")
        }
        other => panic!("nothing makes a part named {other}"),
    }
}

/// Each page contains the text of [`made`] between `<!-- generated: NAME -->` and `<!-- end -->`. `UPDATE_DOCS=1` writes it there.
#[test]
fn what_the_programs_tables_make_is_current() {
    let part = Regex::new(r"(?s)<!-- generated: ([^>]+) -->\n(.*?)<!-- end -->").unwrap();
    let mut found = BTreeSet::new();
    for page in book() {
        let path = root().join(&page.name);
        let text = fs::read_to_string(&path).unwrap();
        let current = part.replace_all(&text, |one: &regex::Captures<'_>| {
            found.insert(one[1].to_owned());
            format!("<!-- generated: {0} -->\n\n{1}\n<!-- end -->", &one[1], made(&one[1]))
        });
        if std::env::var_os("UPDATE_DOCS").is_some() && current != text {
            fs::write(&path, current.as_bytes()).unwrap();
        } else {
            assert!(current == text, "{} is not current: UPDATE_DOCS=1 cargo test -p deadheat", page.name);
        }
    }
    assert_eq!(found.len(), 6 + KEY_TABLES.len(), "{found:?}");
}

#[test]
fn every_verdict_and_every_section_of_the_page_is_told() {
    let reading = page("docs/src/reading-a-report.md");
    let rows = reading.rows();
    for verdict in deadheat_record::VerdictWord::ALL.map(deadheat_record::VerdictWord::word) {
        assert!(rows.iter().any(|row| row[0] == format!("**{verdict}**")), "{verdict}");
    }
    let section = Regex::new(r#"(?:section|figures)\("[a-z-]+", "([^"]+)""#).unwrap();
    let folder = fs::read_dir(root().join("web/src/sections")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path()).chain([root().join("web/src/main.ts")]);
    let sources = files.map(|path| fs::read_to_string(path).unwrap());
    let titles: BTreeSet<String> = sources
        .flat_map(|text| section.captures_iter(&text).map(|one| one[1].to_owned()).collect::<Vec<_>>())
        .collect();
    assert!(titles.len() > 15, "{titles:?}");
    for title in titles {
        assert!(
            rows.iter().any(|row| row[0] == format!("**{title}**")),
            "the section {title} is not told of"
        );
    }
}

#[test]
fn every_key_of_the_contracts_is_told() {
    let contracts = page("docs/src/json.md");
    for name in ["load", "record", "compare", "doctor", "audit"] {
        let path = root().join(format!("crates/record/schema/{name}-1.schema.json"));
        let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let section = contracts.section(&format!("deadheat.{name}/1"));
        assert!(section.contains(&format!("`crates/record/schema/{name}-1.schema.json`")), "{name}");
        let keys: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let told: BTreeSet<String> = section
            .lines()
            .filter_map(cells)
            .filter_map(|row| Some(row[0].strip_prefix('`')?.strip_suffix('`')?.to_owned()))
            .collect();
        assert_eq!(keys.into_iter().cloned().collect::<BTreeSet<_>>(), told, "deadheat.{name}/1");
    }
}
