//! Compares the book's reference of `study.toml` with the reader: the reference describes exactly the keys that the reader accepts.
//!
//! Owns: that comparison. Must not know: the meaning of a key.

use std::collections::BTreeSet;

use deadheat_record::{Axis, StatusRule};

use super::{TABLES, collector, contract, generator, parts};

const REFERENCE: &str = include_str!("../../../../docs/src/writing-a-study.md");

/// The keys in the first cells of the tables below a heading.
fn told(heading: &str) -> BTreeSet<&'static str> {
    let mut lines = REFERENCE.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "the page has no heading {heading}");
    let section = lines.take_while(|line| !line.starts_with('#'));
    section.filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(key, _)| key)).collect()
}

#[test]
fn every_key_is_in_the_book() {
    let axes = Axis::ALL.map(Axis::word);
    for (heading, keys) in [
        ("### The study", TABLES),
        ("### `[dataset]`", parts::DATASET),
        ("### `[[service]]`", parts::SERVICE),
        ("### `[[contender]]`", parts::CONTENDER),
        ("### Entries of `needs`", parts::NEED),
        ("### Keys of `collector`", collector::COLLECTOR),
        ("### `[[probe]]`", contract::PROBE),
        ("### Entries of `volatile`", contract::VOLATILE),
        ("### `[[scenario]]`", contract::SCENARIO),
        ("### Entries of `requests`", contract::REQUEST),
        ("### Settings of `sweep`", &axes),
        ("### `[[claim]]`", contract::CLAIM),
        ("### `[[generator]]`", generator::GENERATOR),
    ] {
        let read: BTreeSet<&str> = keys.iter().copied().collect();
        assert_eq!(told(heading), read, "{heading}");
    }
}

#[test]
fn the_book_names_the_statuses_that_are_right_by_default() {
    let row = REFERENCE.lines().find(|line| line.starts_with("| `status` |")).unwrap();
    let range = StatusRule::SUCCESS;
    assert!(row.contains(&format!("Default: any of {} to {},", range.start(), range.end())), "{row}");
}
