//! Command lines of `deadheat` as pages write them, and which options there are.
//!
//! Owns: finding them in a page, splitting them into words. Must not know what an option does.

use std::collections::{BTreeMap, BTreeSet};

use deadheat_testkit::Kit;
use regex::Regex;

use super::pages::Page;

/// Languages of blocks that hold commands.
const SHELLS: [&str; 4] = ["sh", "bash", "console", "yaml"];

/// What the program's own help says that there is.
pub(crate) struct Known {
    /// By subcommand; that of no subcommand is the empty word.
    options: BTreeMap<String, BTreeSet<String>>,
}

impl Known {
    /// Asks the program.
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
        for command in commands.iter().filter(|command| *command != "help") {
            let found = options(&help(&[command, "--help"]));
            assert!(found.contains("--help"), "{command}: {found:?}");
            all.insert(command.clone(), found);
        }
        Self { options: all }
    }

    /// What is wrong with the words after `deadheat`.
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

/// Every command line of a page, with its line's number: in blocks of code, in indented ones, in backticks.
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

/// The words that follow `deadheat` in a command, where it is one.
fn after_program(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let program = |word: &String| word == "deadheat" || word.ends_with("/release/deadheat");
    let at = words.iter().position(program)?;
    let rest = words[at + 1..].to_vec();
    // `deadheat` alone, and sentences, are no commands.
    let begins = |word: &String| word.starts_with('-') || word.bytes().all(|byte| byte.is_ascii_lowercase());
    rest.first().is_some_and(begins).then_some(rest)
}

/// The words of one simple command, as a shell splits them; up to a pipe, a redirection, a comment or its end.
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
