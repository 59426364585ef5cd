//! Values of options: durations, shares, core lists, ranges of epochs, headers. Each error says what is allowed.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use deadheat_host::affinity;
use deadheat_load::is_token;
use deadheat_record::{Method, Metric, Objective};

use crate::choices::{CpuLatency, UsageError};
use crate::file;

/// Parses the word of one of these metrics.
pub fn metric(all: &[Metric]) -> impl TypedValueParser<Value = Metric> + use<> {
    let value = |metric: &Metric| PossibleValue::new(metric.word()).help(metric.help());
    let words = PossibleValuesParser::new(all.iter().map(value));
    words.try_map(|word| Metric::of_word(&word).ok_or("there is no such metric"))
}

/// Parses a time with its unit: `10s`, `500ms`, `1.5m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_s = match unit {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("write a number with its unit: 500ms, 10s, 3m or 1h".into()),
    };
    let number: f64 =
        number.parse().map_err(|_| "write a number with its unit: 500ms, 10s, 3m or 1h".to_owned())?;
    let seconds = number * unit_s;
    let longest_s = 7.0 * 24.0 * 3600.0;
    if seconds < 1e-6 || seconds > longest_s {
        return Err("a time must be above 0 and at most a week, such as 10s".into());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Like [`duration`], but also accepts zero: `0s`, `0`.
pub fn duration_or_none(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|one: char| one.is_alphabetic());
    let is_nothing =
        number.parse() == Ok(0.0_f64) && (number == text || duration(&text.replacen(number, "1", 1)).is_ok());
    if is_nothing { Ok(Duration::ZERO) } else { duration(text) }
}

/// Parses the name of an HTTP method.
pub fn method(text: &str) -> Result<String, String> {
    if !is_token(text.as_bytes()) {
        return Err("this is not an HTTP method: write one such as POST".into());
    }
    match usual_method(text) {
        Some(upper) if upper != text => Err(format!("HTTP methods are case-sensitive: write {upper}")),
        _ => Ok(text.into()),
    }
}

/// The usual method with these letters, small or capital.
pub(crate) fn usual_method(text: &str) -> Option<&'static str> {
    let usual = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    usual.into_iter().find(|method| text.eq_ignore_ascii_case(method))
}

/// Parses a limit on the wake-up time of idle processors.
pub fn cpu_latency(text: &str) -> Result<CpuLatency, String> {
    if text == "any" {
        return Ok(CpuLatency(None));
    }
    let most = Duration::from_millis(1);
    let limit = if text == "0us" { Duration::ZERO } else { duration_or_none(text)? };
    if limit > most {
        return Err("write any, or a time from 0 to 1ms".into());
    }
    Ok(CpuLatency(Some(limit.as_micros() as u32)))
}

/// Parses the length of a slice.
pub fn slice(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(10)..=Duration::from_secs(60);
    duration(text).and_then(|slice| {
        let fits = allowed.contains(&slice);
        if fits { Ok(slice) } else { Err("a slice lasts from 10ms to 60s".into()) }
    })
}

/// Parses a margin of equivalence: `3%` or `0.03`.
pub fn margin(text: &str) -> Result<f64, String> {
    share(text, 0.5, "a margin must be above 0 and at most 50%: write 3% or 0.03")
}

/// Parses an error rate: `0.025` or `2.5%`.
pub fn alpha(text: &str) -> Result<f64, String> {
    share(text, 0.5, "an error rate must be above 0 and at most 0.5: write 0.025 or 2.5%")
}

fn share(text: &str, most: f64, allowed: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map(|number| number / unit).ok();
    share.filter(|share| *share > 0.0 && *share <= most).ok_or_else(|| allowed.into())
}

/// Parses a cache's hit rate: `0.92` or `92%`; 0 for no cache.
pub fn hit_rate(text: &str) -> Result<f64, String> {
    let none = text.trim_end_matches('%').parse::<f64>().is_ok_and(|number| number == 0.0);
    let rate = if none { Some(0.0) } else { share(text, 1.0, "").ok().filter(|share| *share < 1.0) };
    rate.ok_or_else(|| "a hit rate must be from 0 to below 1: write 0.92 or 92%".into())
}

/// Parses a rate in requests per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate =
        text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0 && *rate <= file::MOST_PER_S);
    rate.ok_or_else(|| {
        format!("write requests per second, above 0 and at most {}, such as 2000", file::MOST_PER_S)
    })
}

/// Parses an objective: `p99 < 10ms`.
pub fn objective(text: &str) -> Result<Objective, String> {
    file::objective(text)
}

/// Logical processors, sorted and without duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

impl CpuList {
    /// Parses a list in the kernel's notation: `0,2-4`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let cpus = affinity::cpu_list(text);
        cpus.map(Self).ok_or_else(|| "write core numbers and ranges, such as 0,2-4".into())
    }
}

/// The fewest and the most epochs of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochRange {
    /// The earliest epoch after which the race can be decided.
    pub fewest: usize,
    /// The last epoch of the race.
    pub most: usize,
}

impl EpochRange {
    /// Parses `6..30`, or `10` for exactly ten.
    pub fn parse(text: &str) -> Result<Self, String> {
        let allowed = "write the fewest and the most epochs, from 3 to 200: 6..30, or 10 for exactly ten";
        let (fewest, most) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| allowed.to_owned());
        let (fewest, most) = (number(fewest)?, number(most)?);
        let fits = 3 <= fewest && fewest <= most && most <= Method::MOST_EPOCHS;
        if fits { Ok(Self { fewest, most }) } else { Err(allowed.into()) }
    }
}

/// A request header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name as typed, which is a token.
    pub name: String,
    /// The value without surrounding spaces.
    pub value: String,
}

impl Header {
    /// Checks that no header is given twice: a study, whose requests these become, has one value for each name.
    ///
    /// # Errors
    /// The header that is there twice.
    pub fn all_different(headers: &[Self]) -> Result<(), UsageError> {
        let is_again = |at: &usize| {
            headers[..*at].iter().any(|other| other.name.eq_ignore_ascii_case(&headers[*at].name))
        };
        (0..headers.len()).find(is_again).map_or(Ok(()), |at| {
            let remedy = "write one -H with both values: cookies separated by `; `, other lists by `, `";
            Err(UsageError::new(
                format!("-H gives the header `{}` twice", file::shown(&headers[at].name)),
                remedy,
            ))
        })
    }

    /// Parses `name: value`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "write a header as 'name: value'".to_owned();
        let (name, value) = text.split_once(':').ok_or_else(wrong)?;
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let fits = deadheat_load::is_token(name.as_bytes()) && !value.chars().any(char::is_control);
        if fits { Ok(Self { name, value }) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in
            [("10s", 10_000), ("500ms", 500), ("3m", 180_000), ("1.5s", 1_500), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["10", "", "s", "10 s", "-1s", "1.2.3s", "0s", "10d", "1e3s", "9000h", "infs"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(slice("5ms").is_err() && slice("61s").is_err() && slice("10ms").is_ok());
    }

    #[test]
    fn processors_may_take_their_time_or_not() {
        let limit = |us| Ok(CpuLatency(us));
        for (text, us) in
            [("any", None), ("0", Some(0)), ("0us", Some(0)), ("10us", Some(10)), ("1ms", Some(1_000))]
        {
            assert_eq!(cpu_latency(text), limit(us), "{text}");
        }
        for text in ["", "10", "2ms", "-1us", "none"] {
            assert!(cpu_latency(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_told_in_either_form() {
        assert_eq!((margin("3%"), margin("0.03"), alpha("2.5%")), (Ok(0.03), Ok(0.03), Ok(0.025)));
        for text in ["3", "0", "-3%", "51%", "nan", "x", "%", ""] {
            assert!(margin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_hit_rate_is_a_share_below_one() {
        assert_eq!(
            (hit_rate("92%"), hit_rate("0.92"), hit_rate("0"), hit_rate("0%")),
            (Ok(0.92), Ok(0.92), Ok(0.0), Ok(0.0))
        );
        for text in ["92", "1", "100%", "1.0", "-0.5", "x", "", "%"] {
            assert!(hit_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cores_are_listed_as_the_kernel_does() {
        assert_eq!(CpuList::parse("0,2-4,3"), Ok(CpuList(vec![0, 2, 3, 4])));
        let error = CpuList::parse("4-2").unwrap_err();
        assert_eq!(error, "write core numbers and ranges, such as 0,2-4");
    }

    #[test]
    fn epochs_are_a_range_or_a_number() {
        assert_eq!(EpochRange::parse("6..30"), Ok(EpochRange { fewest: 6, most: 30 }));
        assert_eq!(EpochRange::parse("10"), Ok(EpochRange { fewest: 10, most: 10 }));
        for text in ["2..10", "10..6", "6..201", "..", "6..", "x", "6...9"] {
            assert!(EpochRange::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn headers_have_a_name_and_a_value() {
        let header = Header::parse("Accept:  text/html ").unwrap();
        assert_eq!((header.name.as_str(), header.value.as_str()), ("Accept", "text/html"));
        for text in ["accept", ": x", "a b: c", "a: b\r\nc: d"] {
            assert!(Header::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_above_zero() {
        assert_eq!(rate("2000"), Ok(2000.0));
        for text in ["0", "-1", "inf", "x"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
