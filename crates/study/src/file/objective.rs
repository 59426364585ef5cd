//! Reads an objective: `p99 < 10ms`.

use deadheat_record::Objective;

/// The allowed form, for messages.
pub(crate) const OBJECTIVE: &str = "write a percentile and its highest value, such as \"p99 < 10ms\"";

/// The range of percentiles, and the longest limit.
const QUANTILES: std::ops::RangeInclusive<f64> = 0.5..=0.9999;
const LONGEST_NS: f64 = 60e9;

/// Parses `p99 < 10ms`. `<=` means the same as `<`.
///
/// # Errors
/// The text is not an objective. The error describes the allowed form.
pub fn objective(text: &str) -> Result<Objective, String> {
    let wrong = || OBJECTIVE.to_owned();
    let (what, limit) = text.split_once('<').ok_or_else(wrong)?;
    let limit = limit.strip_prefix('=').unwrap_or(limit).trim();
    let percent = what.trim().strip_prefix('p').ok_or_else(wrong)?;
    let quantile = (number(percent).ok_or_else(wrong)? * 1e3).round() / 1e5;
    if !QUANTILES.contains(&quantile) {
        return Err(format!("{OBJECTIVE}; from p50 to p99.99"));
    }
    let unit_at = limit.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (value, unit) = limit.split_at(unit_at);
    let unit_ns = match unit.trim() {
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let limit_ns = number(value).ok_or_else(wrong)? * unit_ns;
    if !(1e3..=LONGEST_NS).contains(&limit_ns) {
        return Err(format!("{OBJECTIVE}; from 1us to 60s"));
    }
    Ok(Objective { quantile, limit_ns: limit_ns.round() as u64 })
}

fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read() {
        for (text, quantile, limit_ns) in [
            ("p99 < 10ms", 0.99, 10_000_000),
            ("p99<=10ms", 0.99, 10_000_000),
            (" p99.9 < 1.5 s ", 0.999, 1_500_000_000),
            ("p50 < 250us", 0.5, 250_000),
        ] {
            assert_eq!(objective(text), Ok(Objective { quantile, limit_ns }), "{text}");
        }
        for text in [
            "",
            "p99",
            "99 < 10ms",
            "p99 < 10",
            "p99 > 10ms",
            "p10 < 1ms",
            "p100 < 1ms",
            "p99 < 0ms",
            "p99 < 2m",
            "p9e1 < 1ms",
            "p99 < 1e3ms",
        ] {
            assert!(objective(text).is_err(), "{text}");
        }
    }
}
