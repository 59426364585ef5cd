//! Owns: the text form of a rate. Must not know what the rate is used for.
//!
//! A rate consists of stages separated by commas: `RATE[..RATE][:DURATION]`, such as `2000`, `100..5000:30s`,
//! `1k:10s,2k`. Only the last stage may have no duration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::rate::{HIGHEST_PER_S, Rate, RateError, Stage};

impl Rate {
    /// Parses a rate. A last stage that is a ramp without a duration lasts for the part of `run` that the other stages
    /// leave. `run` is the time over which requests will be offered.
    ///
    /// # Errors
    /// [`RateError::Syntax`] gives the position, what was found there and what is allowed; others as [`Rate::stages`].
    pub fn parse(text: &str, run: Option<Duration>) -> Result<Rate, RateError> {
        let mut reader = Reader { text, at: 0 };
        let mut stages = Vec::new();
        let mut left = run;
        loop {
            let stage = reader.stage(left)?;
            left = left.map(|left| left.saturating_sub(stage.duration));
            stages.push(stage);
            if reader.rest().is_empty() {
                return Rate::stages(stages);
            }
            reader.expect(",", "a comma and the next stage, or the end")?;
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// As [`Rate::parse`], for a run of unknown length.
    fn from_str(text: &str) -> Result<Rate, RateError> {
        Rate::parse(text, None)
    }
}

/// Writes the form that [`Rate::parse`] reads, with every duration in the largest unit that needs no fraction.
impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stage) in self.as_stages().iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}{}", stage.from_per_s)?;
            if !stage.is_steady() {
                write!(out, "..{}", stage.to_per_s)?;
            }
            if !stage.duration.is_zero() {
                let ns = stage.duration.as_nanos();
                let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
                let (size, unit) = units.into_iter().find(|(size, _)| ns % size == 0).unwrap_or((1, "ns"));
                write!(out, ":{}{unit}", ns / size)?;
            }
        }
        Ok(())
    }
}

const RATE: &str = "a rate from 0 to 1000000000 requests per second, such as 2000 or 20k";
const DURATION: &str = "a duration above 0 with its unit, such as 500ms, 10s, 3m or 1h";
const UNITS: [(&str, f64); 7] =
    [("min", 6e10), ("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)];

/// The longest stage, in nanoseconds: a hundred days.
const LONGEST_NS: f64 = 100.0 * 24.0 * 3.6e12;

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The error for text at `at` that is not what is `allowed` there.
    fn wrong(&self, at: usize, allowed: &'static str) -> RateError {
        let found = match self.text[at..].split(',').next() {
            Some("") if at == self.text.len() => "the end".to_owned(),
            Some("") => "\",\"".to_owned(),
            Some(found) => format!("{found:?}"),
            None => "the end".to_owned(),
        };
        RateError::Syntax { position: self.text[..at].chars().count() + 1, found, allowed }
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn expect(&mut self, word: &str, allowed: &'static str) -> Result<(), RateError> {
        if self.takes(word) { Ok(()) } else { Err(self.wrong(self.at, allowed)) }
    }

    /// Parses one stage. `left` is the time that the run leaves for a ramp without a duration.
    fn stage(&mut self, left: Option<Duration>) -> Result<Stage, RateError> {
        let start = self.at;
        let from_per_s = self.rate()?;
        let to_per_s = if self.takes("..") { self.rate()? } else { from_per_s };
        if self.takes(":") {
            return Ok(Stage { duration: self.duration()?, from_per_s, to_per_s });
        }
        if !self.rest().is_empty() {
            let allowed = if from_per_s == to_per_s && !self.text[start..self.at].contains("..") {
                "\"..\" and the rate at the stage's end, or \":\" and its duration; only the last stage may lack it"
            } else {
                "\":\" and the stage's duration; only the last stage may lack it"
            };
            return Err(self.wrong(self.at, allowed));
        }
        if from_per_s == to_per_s {
            return Ok(Stage { duration: Duration::ZERO, from_per_s, to_per_s });
        }
        match left {
            Some(duration) if !duration.is_zero() => Ok(Stage { duration, from_per_s, to_per_s }),
            Some(_) => {
                Err(self.wrong(start, "a ramp with a duration: the other stages leave nothing of the run"))
            }
            None => Err(self.wrong(self.at, "\":\" and the duration of the ramp, such as :30s")),
        }
    }

    fn rate(&mut self) -> Result<f64, RateError> {
        let start = self.at;
        let number = self.number();
        let exponent = if self.takes("k") { 3 } else { 0 };
        // Parsed together with the exponent, so that 1.1k is exactly 1100.
        let rate = number.and_then(|number| format!("{number}e{exponent}").parse::<f64>().ok());
        rate.filter(|rate| *rate <= HIGHEST_PER_S).ok_or_else(|| self.wrong(start, RATE))
    }

    fn duration(&mut self) -> Result<Duration, RateError> {
        let start = self.at;
        let number = self.number().and_then(|number| number.parse::<f64>().ok());
        let unit = UNITS.into_iter().find(|(unit, _)| self.takes(unit));
        let ns = number.zip(unit).map(|(number, (_, unit_ns))| (number * unit_ns).round());
        match ns.filter(|ns| (1.0..=LONGEST_NS).contains(ns)) {
            Some(ns) => Ok(Duration::from_nanos(ns as u64)),
            None => Err(self.wrong(start, DURATION)),
        }
    }

    /// Digits, optionally with a point and more digits.
    fn number(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let whole = digits(rest);
        let fraction = rest[whole..].strip_prefix('.').map_or(0, digits);
        let length = whole + if fraction > 0 { fraction + 1 } else { 0 };
        self.at += length;
        (whole > 0).then_some(&rest[..length])
    }
}
