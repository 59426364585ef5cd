//! The measure `serialize` of the native contender: how long it takes to write the 24-item answer as JSON a million
//! times.
//!
//! Owns nothing but that. Must not know HTTP or SQLite.

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;
use std::{env, fs, io};

use serde::{Deserialize, Serialize};

const TIMES: usize = 1_000_000;

#[derive(Serialize, Deserialize)]
struct Answer {
    region: String,
    count: u64,
    token: String,
    items: Vec<Item>,
}

#[derive(Serialize, Deserialize)]
struct Item {
    id: String,
    title: String,
    channel: String,
    score: i64,
    thumbs: [String; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("the path of the answer is missing")?;
    let text = fs::read(path)?;
    let answer: Answer = serde_json::from_slice(&text)?;
    if serde_json::to_vec(&answer)? != text {
        return Err("the answer is not written as it was read".into());
    }
    let (begin, mut sum, mut out) = (Instant::now(), 0, Vec::new());
    for _ in 0..TIMES {
        out.clear();
        serde_json::to_writer(&mut out, black_box(&answer))?;
        sum += black_box(&out).len();
    }
    let seconds = begin.elapsed().as_secs_f64();
    if sum != text.len() * TIMES {
        return Err("not every turn wrote the answer".into());
    }
    writeln!(io::stdout(), "{{\"value\": {seconds}, \"unit\": \"s\"}}")?;
    Ok(())
}
