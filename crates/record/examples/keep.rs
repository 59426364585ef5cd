//! Packs a race's record with gzip, to keep it beside its study. If you name scenarios, it keeps only those.
//! `cargo run -p deadheat-record --example keep -- RECORD studies/NAME/kept/RACE.jsonl.gz [SCENARIO...]`
//! Paths below the current folder become relative to that folder.
#![allow(clippy::print_stdout, reason = "an example's output is its purpose")]

use std::error::Error;
use std::path::Path;

use deadheat_record::{AnyRecord, read_any};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, scenarios @ ..] = arguments.as_slice() else {
        return Err("usage: keep RECORD FILE.jsonl.gz [SCENARIO...]".into());
    };
    let AnyRecord::Race(record) = read_any(Path::new(from))? else {
        return Err(format!("{from} is of a load, not of a race").into());
    };
    let names: Vec<String> = record.plan.scenarios.iter().map(|one| one.name.clone()).collect();
    if let Some(other) = scenarios.iter().find(|one| !names.contains(one)) {
        return Err(format!("{from} has no scenario {other}; it has {}", names.join(", ")).into());
    }
    let asked = if scenarios.is_empty() { names.as_slice() } else { scenarios };
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let record =
        record.seen_from(&std::env::current_dir()?).ok_or("not to be run in the root of all folders")?;
    let packed = record.only(&asked).packed()?;
    if let Some(folder) = Path::new(to).parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(to, &packed)?;
    println!("{to}: {} bytes, {}", packed.len(), asked.join(", "));
    Ok(())
}
