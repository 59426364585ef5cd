//! The `deadheat` command lines on the pages, and the options that the program has.
//!
//! Owns: finding command lines in a page and splitting them into words. Must not know what an option does.

use std::collections::{BTreeMap, BTreeSet};

use deadheat_testkit::Kit;
use regex::Regex;

use super::pages::Page;

/// Languages of code blocks that contain commands.
const SHELLS: [&str; 4] = ["sh", "bash", "console", "yaml"];

/// The subcommands and options that the program's help lists.
pub(crate) struct Known {
    /// The options of each subcommand. The empty word has the options without a subcommand.
    options: BTreeMap<String, BTreeSet<String>>,
    /// The `--help` text of each subcommand, in the order in which the program lists them.
    helps: Vec<(String, String)>,
}

impl Known {
    /// Reads the help of the program and of each subcommand.
    pub(crate) fn ask() -> Self {
        let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
        let help = |words: &[&str]| kit.deadheat(words).run().assert_status(0).stdout.clone();
        let top = help(&["--help"]);
        let command = Regex::new(r"(?m)^  ([a-z]+) {2,}\S").unwrap();
        let commands: Vec<String> = command.captures_iter(&top).map(|one| one[1].to_owned()).collect();
        assert!(commands.len() > 7, "{commands:?}\n{top}");
        let options = |text: &str| -> BTreeSet<String> {
            let option = Regex::new(r"(?m)^ +(?:(-\w), )?(--[a-z][a-z-]*)").unwrap();
            let found = option.captures_iter(text);
            found.flat_map(|one| [one.get(1), one.get(2)]).flatten().map(|one| one.as_str().into()).collect()
        };
        let mut all = BTreeMap::from([(String::new(), options(&top))]);
        let mut helps = Vec::new();
        for command in commands.into_iter().filter(|command| command != "help") {
            let text = help(&[&command, "--help"]);
            let found = options(&text);
            assert!(found.contains("--help"), "{command}: {found:?}");
            all.insert(command.clone(), found);
            helps.push((command, text));
        }
        Self { options: all, helps }
    }

    /// The reference page: every subcommand with all its options.
    pub(crate) fn reference(&self) -> String {
        let one = |(command, help): &(String, String)| {
            let section = section(command, help);
            for option in
                self.options[command].iter().filter(|option| !matches!(option.as_str(), "-h" | "--help"))
            {
                let row = |line: &str| line.starts_with("| `") && line.contains(option.as_str());
                assert!(section.lines().any(row), "{command} {option}: no row\n{section}");
            }
            section
        };
        self.helps.iter().map(one).collect()
    }

    /// The first fault in the words after `deadheat`.
    pub(crate) fn fault(&self, words: &[String]) -> Option<String> {
        let command = words.first().filter(|word| !word.starts_with('-')).map_or("", String::as_str);
        let Some(options) = self.options.get(command) else {
            return Some(format!("there is no subcommand `{command}`"));
        };
        let option = |word: &&String| word.starts_with('-') && word.len() > 1;
        words.iter().filter(option).find_map(|word| {
            let name = match word.strip_prefix("--") {
                Some(long) => format!("--{}", long.split('=').next().unwrap_or(long)),
                None => word.chars().take(2).collect(),
            };
            (!options.contains(&name)).then(|| format!("`{command}` has no option {name}"))
        })
    }
}

/// One subcommand's `--help` as a section of a page: a table of its options, then the rest unchanged.
fn section(command: &str, help: &str) -> String {
    let item = Regex::new(
        r"^ {2,6}((?:-\w, )?--[a-z-]+(?: \[?<[^>]+>\]?|\[=<[^>]+>\])?|[<\[][^ ].*?[>\]](?:\.\.\.)?)(?: {2,}(.*))?$",
    )
    .unwrap();
    let (about, rest) = help.split_once("Usage: ").unwrap();
    let (usage, rest) = rest.split_once('\n').unwrap();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut lines = rest.lines().peekable();
    // The options end at the first unindented line that is not the heading of more options.
    while let Some(line) = lines.peek() {
        if let Some(found) = item.captures(line) {
            let help = found.get(2).map_or("", |help| help.as_str());
            rows.push((found[1].to_owned(), help.to_owned()));
        } else if let Some(more) = line.strip_prefix("        ") {
            let (_, help) = rows.last_mut().unwrap();
            let more = more.trim();
            // Each value of an option has its own line.
            *help += if help.is_empty() {
                ""
            } else if more.starts_with("- ") {
                "\n"
            } else {
                " "
            };
            *help += &more.split_whitespace().collect::<Vec<&str>>().join(" ");
        } else if !line.is_empty() && (!line.ends_with(':') || *line == "Examples:") {
            break;
        }
        lines.next();
    }
    let cell = |text: &str| text.trim().replace('|', "\\|").replace('<', "&lt;").replace("\n- ", "<br>");
    let row =
        |(name, help): &(String, String)| format!("| `{}` | {} |\n", name.replace('|', "\\|"), cell(help));
    let table: String = rows.iter().filter(|(name, _)| !name.ends_with("--help")).map(row).collect();
    let notes = lines.collect::<Vec<&str>>().join("\n");
    let notes =
        if notes.is_empty() { String::new() } else { format!("\n```text\n{}\n```\n", notes.trim_end()) };
    format!(
        "## deadheat {command}\n\n{}\n\n```text\n{usage}\n```\n\n| argument or option | what it does |\n|---|---|\n{table}{notes}\n",
        sentence(&about.trim().replace('\n', " "))
    )
}

/// Adds the full stop that help texts omit.
fn sentence(text: &str) -> String {
    if text.ends_with('?') { text.to_owned() } else { format!("{text}.") }
}

/// Every command line on a page with its line number: in code blocks, in indented lines and in backticks.
pub(crate) fn lines(page: &Page) -> Vec<(usize, Vec<String>)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for block in page.blocks().into_iter().filter(|block| SHELLS.contains(&block.language.as_str())) {
        let only_prompts = block.language == "console";
        let mut whole = String::new();
        for (at, line) in block.lines.iter().enumerate() {
            let prompt = line.strip_prefix("$ ");
            if only_prompts && prompt.is_none() && whole.is_empty() {
                continue;
            }
            whole += prompt.unwrap_or(line);
            if !whole.ends_with('\\') {
                found.push((block.line + at, std::mem::take(&mut whole)));
                continue;
            }
            whole.pop();
        }
    }
    let indented = page.text.lines().enumerate().filter(|(_, line)| line.starts_with("    "));
    found.extend(indented.map(|(at, line)| (at + 1, line.to_owned())));
    found.extend(page.spans().into_iter().filter(|(_, span)| span.starts_with("deadheat ")));
    let words = |(at, line): (usize, String)| Some((at, after_program(&line)?));
    found.into_iter().filter_map(words).collect()
}

/// The words after `deadheat`, if the line is a `deadheat` command.
fn after_program(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let program = |word: &String| word == "deadheat" || word.ends_with("/release/deadheat");
    let at = words.iter().position(program)?;
    let rest = words[at + 1..].to_vec();
    // `deadheat` alone is not a command, and neither is a sentence.
    let begins = |word: &String| word.starts_with('-') || word.bytes().all(|byte| byte.is_ascii_lowercase());
    rest.first().is_some_and(begins).then_some(rest)
}

/// Splits one simple command into words as a shell does, up to a pipe, a redirection, a comment or the end of the command.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) =
        (Vec::new(), None, None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None if matches!(c, '|' | '>' | '<' | ';' | '&') || c == '#' && word.is_none() => break,
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
