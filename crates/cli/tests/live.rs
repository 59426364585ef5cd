//! What deadheat shows while a race runs: on terminals of 80 and 160 columns, and line by line in a log.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use deadheat_testkit::{Kit, SHORT_RACE, Terminal, server_line, turn};
use regex::Regex;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

/// Enough rows to keep the output from scrolling.
const ROWS: u16 = 300;
/// The contenders of each scenario: the first two take part in `boot`, all three in `steady`. The last name does not fit in 80 columns.
const MEASURED: [&str; 2] = ["first", "second"];
const LOADED: [&str; 3] = ["first", "second", "third-whose-name-is-too-long-for-the-columns-left-for-it"];
/// At least this many characters of a name are always visible.
const SEEN: usize = 5;
/// All possible verdicts.
const VERDICTS: [&str; 5] = ["faster", "slower", "equivalent", "inconclusive", "invalid"];

/// A study that measures two of its three contenders first, and then loads all of them.
fn kit() -> Kit {
    let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
    let contender = |name: &str| {
        let command = Value::from(server_line(&["--json"]));
        let place = MEASURED.iter().position(|one| *one == name);
        let measure = |place: usize| format!("echo '{{\"value\": {}, \"unit\": \"s\"}}'", place + 1);
        let measures =
            place.map(|place| format!("measures = {{ boot = {} }}\n", Value::from(measure(place))));
        format!("[[contender]]\nname = \"{name}\"\ncommand = {command}\n{}", measures.unwrap_or_default())
    };
    let rest = "[[probe]]\npath = \"/\"\n[[scenario]]\nname = \"boot\"\nmeasure = \"boot\"\n[[scenario]]\nname = \"steady\"\n";
    kit.file("study.toml", format!("name = \"shown\"\n{}{rest}", LOADED.map(contender).concat()));
    kit
}

/// Runs a command on a terminal with this number of columns and returns what it wrote.
fn on_terminal(kit: &Kit, columns: u16, words: &[&str]) -> Vec<u8> {
    let terminal = Terminal::new(columns, ROWS);
    let run = kit.deadheat(words).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
    let outcome = run.limit(Duration::from_secs(180)).on(&terminal).run();
    let written = terminal.written();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}\n{}", String::from_utf8_lossy(&written));
    written
}

/// The rows that a screen shows, without the empty rows at its end.
fn rows(parser: &vt100::Parser) -> Vec<String> {
    let (_, columns) = parser.screen().size();
    let mut rows: Vec<String> =
        parser.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    rows
}

/// Every complete screen: one before each move of the cursor back to the top, and the last one.
fn screens(written: &[u8], columns: u16) -> Vec<Vec<String>> {
    let back = Regex::new("\u{1b}\\[[0-9]+A").unwrap();
    let text = String::from_utf8(written.to_vec()).unwrap();
    let mut parser = vt100::Parser::new(ROWS, columns, 0);
    let (mut screens, mut done) = (Vec::new(), 0);
    for at in back.find_iter(&text).map(|found| found.start()).chain([text.len()]) {
        parser.process(&written[done..at]);
        screens.push(rows(&parser));
        done = at;
    }
    screens
}

/// The standing (the interim results of a scenario) as the screen shows it.
struct Standing {
    scenario: String,
    epochs: usize,
    /// Whether deadheat left out epochs because other programs disturbed them.
    left_out: bool,
    /// The rows below its heading.
    contenders: Vec<String>,
}

/// The standing on a screen, if there is one. All rows below its heading belong to it. Panics if there are two.
fn standing(screen: &[String]) -> Option<Standing> {
    let heading = Regex::new(r"^(\S+)  (\d+) of at most 3 epochs").unwrap();
    let mut found = screen.iter().enumerate().filter_map(|(row, text)| Some((row, heading.captures(text)?)));
    let (row, captures) = found.next()?;
    assert!(found.next().is_none(), "two standings:\n{}", screen.join("\n"));
    Some(Standing {
        scenario: captures[1].to_owned(),
        epochs: captures[2].parse().unwrap(),
        left_out: screen[row].contains(" left out"),
        contenders: screen[row + 1..].to_vec(),
    })
}

/// Checks that the standing has exactly one row for each contender of its scenario, in plan order. A row wider than the terminal would
/// continue on the next row and make the count wrong.
fn is_whole(standing: &Standing) {
    let names: &[&str] = if standing.scenario == "boot" { &MEASURED } else { &LOADED };
    let shown = standing.contenders.join("\n");
    assert_eq!(standing.contenders.len(), names.len(), "{}:\n{shown}", standing.scenario);
    for (row, name) in standing.contenders.iter().zip(names) {
        assert!(row.starts_with(&format!("  {}", &name[..SEEN])), "{}: {name}:\n{shown}", standing.scenario);
    }
    assert!(standing.contenders[0].contains("baseline"), "{shown}");
    let judged = standing.contenders.iter().any(|row| VERDICTS.iter().any(|verdict| row.ends_with(verdict)));
    assert_eq!(judged, standing.epochs == 3, "{} after {}:\n{shown}", standing.scenario, standing.epochs);
}

#[test]
fn a_terminal_shows_each_scenarios_own_standing_and_at_last_the_result_alone() {
    let (kit, _turn) = (kit(), turn());
    for columns in [80, 160] {
        let record = format!("{columns}.jsonl");
        let race = [&["race", ".", "--record", record.as_str()][..], &SHORT_RACE].concat();
        let mut screens = screens(&on_terminal(&kit, columns, &race), columns);
        let last = screens.pop().unwrap();
        let standings: Vec<Standing> = screens.iter().filter_map(|screen| standing(screen)).collect();
        standings.iter().for_each(is_whole);
        for scenario in ["boot", "steady"] {
            let mut of = standings.iter().filter(|one| one.scenario == scenario);
            assert_eq!(of.next().map(|first| first.epochs), Some(0), "{scenario} begins with nothing");
            assert!(of.any(|one| one.epochs > 0 || one.left_out), "{scenario} goes on");
        }
        assert!(standing(&last).is_none(), "{}", last.join("\n"));
        let report = on_terminal(&kit, columns, &["report", &record]);
        let mut parser = vt100::Parser::new(ROWS, 1_000, 0);
        parser.process(&report);
        let result = rows(&parser);
        assert!(result.iter().all(|row| row.width() <= usize::from(columns)), "{}", result.join("\n"));
        assert!(
            LOADED.iter().all(|name| result.iter().any(|row| row.contains(&name[..SEEN]))),
            "{}",
            result.join("\n")
        );
        assert!(last.ends_with(&result), "{}\n---\n{}", last.join("\n"), result.join("\n"));
        assert_eq!(last.iter().filter(|row| **row == result[0]).count(), 1, "{}", last.join("\n"));
    }
}

#[test]
fn a_log_names_in_every_scenario_who_is_in_it() {
    let (kit, _turn) = (kit(), turn());
    let outcome = kit.deadheat(["race", ".", "--record", "r.jsonl"]).args(SHORT_RACE).run();
    assert!(matches!(outcome.status(), Some(0 | 3)), "{outcome}");
    for (scenario, names) in [("boot", &MEASURED[..]), ("steady", &LOADED[..])] {
        let begins = format!("{scenario}: ");
        let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with(&begins)).collect();
        assert!(lines.len() >= 3, "one for each epoch\n{outcome}");
        for line in lines {
            let named = LOADED.map(|name| line.contains(name));
            assert_eq!(named, LOADED.map(|name| names.contains(&name)), "{line}");
        }
    }
}
