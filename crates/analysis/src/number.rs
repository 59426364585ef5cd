//! Formats numbers for readers: three significant digits, thousands separators, a unit.
//!
//! Owns the rounding that messages and reports share. Must not know what a number means.

use deadheat_record::Unit;

/// Three significant digits: `11,400`, `57.0`, `0.123`, `0`.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "-".into() };
    }
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let before = rounded.abs().log10().floor() as i32 + 1;
    let decimals = (3 - before).clamp(0, 9) as usize;
    grouped(&format!("{rounded:.decimals$}"))
}

/// Bits per second as megabits per second, without the unit: `99.9`.
pub fn mbit(bits_per_s: u64) -> String {
    three_digits(bits_per_s as f64 / 1e6)
}

/// Formats the average frequency of something that may be rare: three significant digits, but at most three decimals. `5.00`, `0.017`, `under
/// 0.001`.
pub fn seldom(value: f64) -> String {
    match value {
        0.0005..0.1 => format!("{value:.3}"),
        _ if value > 0.0 && value < 0.1 => "under 0.001".into(),
        _ => three_digits(value),
    }
}

/// All digits of a number, with thousands separators: `80,333.19`, `0.1749`.
pub fn exact(value: f64) -> String {
    if value.is_finite() { grouped(&value.to_string()) } else { "-".into() }
}

/// A whole number with thousands separators.
pub fn whole(value: u64) -> String {
    grouped(&value.to_string())
}

/// A number of things: `1 error`, `1,024 connections`.
pub fn count(count: u64, word: &str) -> String {
    format!("{} {word}{}", whole(count), if count == 1 { "" } else { "s" })
}

fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) =
        rest.split_once('.').map_or((rest, ""), |(whole, _)| (whole, &rest[whole.len()..]));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// Units of time: the limit below which a value uses the unit, its name, its size in nanoseconds.
const TIMES: [(f64, &str, f64); 4] =
    [(1e3, "ns", 1.0), (1e6, "µs", 1e3), (1e9, "ms", 1e6), (f64::INFINITY, "s", 1e9)];

/// A duration: `850 ns`, `57.0 µs`, `3.70 ms`, `1.25 s`.
pub fn time_ns(ns: f64) -> String {
    scaled(ns, &TIMES)
}

/// Two parts of a duration, in the unit of the longer one: `36.2 + 20.7 µs`.
pub fn parts_ns(one: f64, other: f64) -> String {
    let (unit, size) = unit(one.max(other), &TIMES);
    format!("{} + {} {unit}", three_digits(one / size), three_digits(other / size))
}

/// A size: `61.0 MiB`.
pub fn bytes(bytes: u64) -> String {
    const K: f64 = 1024.0;
    let units =
        [(K, "B", 1.0), (K * K, "KiB", K), (K * K * K, "MiB", K * K), (f64::INFINITY, "GiB", K * K * K)];
    scaled(bytes as f64, &units)
}

/// The first unit whose limit the value does not reach after rounding: 999.9 µs becomes 1.00 ms, not 1,000 µs.
fn unit<'u>(value: f64, units: &[(f64, &'u str, f64)]) -> (&'u str, f64) {
    let fits = |(limit, _, _): &&(f64, &str, f64)| value * 1.0005 < *limit;
    units.iter().find(fits).map_or(("", 1.0), |(_, unit, size)| (*unit, *size))
}

fn scaled(value: f64, units: &[(f64, &str, f64)]) -> String {
    let (unit, size) = unit(value, units);
    format!("{} {unit}", three_digits(value / size))
}

/// A metric's value in the record's unit: a rate, a time or a size.
pub fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Rate => three_digits(value),
        Unit::Time | Unit::CpuTime => time_ns(value),
        Unit::Size => bytes(value as u64),
    }
}

/// How far an interval of ratios reaches from 1, on either side: 0.05 for 0.99 to 1.05, and for 0.9524 to 1.01. None without both ends.
pub fn furthest(low: Option<f64>, high: Option<f64>) -> Option<f64> {
    let (low, high) = low.zip(high).filter(|(low, _)| *low > 0.0)?;
    Some(high.max(1.0 / low) - 1.0)
}

/// Percentages above this show only that very large differences are possible, as ratios do above [`MOST_RATIO`].
const MOST_PERCENT: f64 = 9_999.0;

/// A share as a percentage: `71.2 %`, `0.12 %`, `over 9,999 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent > MOST_PERCENT {
        format!("over {}", whole(MOST_PERCENT as u64))
    } else if percent.abs() >= 99.95 || (percent - percent.round()).abs() < 1e-9 {
        grouped(&format!("{percent:.0}"))
    } else if percent.abs() >= 0.995 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.2}")
    };
    if text.trim_end_matches(['0', '.']).is_empty() && percent > 0.0 {
        "under 0.01 %".into()
    } else {
        text + " %"
    }
}

/// A quantile's name: `p99`, `p99.9`.
pub fn quantile(at: f64) -> String {
    let text = format!("{:.3}", at * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// With more decimals, the difference between a ratio and 1 does not matter to a reader.
const MOST_DECIMALS: usize = 6;
/// The most decimals of a small ratio.
const MOST_DECIMALS_OF_SMALL: usize = 9;

/// The number of decimals that distinguishes a ratio from the ends of its interval: two, or three for a narrow interval. It is larger if an
/// end close to 1 would otherwise be shown as 1, because the verdict depends on which side of 1 the end is, and for small ratios, so that
/// they keep two digits.
pub fn ratio_decimals(low: Option<f64>, high: Option<f64>) -> usize {
    let fewest = match (low, high) {
        (Some(low), Some(high)) if low > 0.0 && high <= low * FAR && low < 0.1 => {
            (1.0 - low.log10().floor()) as usize
        }
        (Some(low), Some(high)) if high - low < 0.02 => 3,
        _ => 2,
    };
    let hides = |end: f64, decimals: usize| end != 1.0 && format!("{end:.decimals$}").parse() == Ok(1.0);
    let shows = |decimals: &usize| ![low, high].into_iter().flatten().any(|end| hides(end, *decimals));
    (fewest..MOST_DECIMALS).find(shows).unwrap_or(MOST_DECIMALS.max(fewest.min(MOST_DECIMALS_OF_SMALL)))
}

/// A ratio: `1.52`, `0.985`, `12.3`, `1,520`.
pub fn ratio(value: f64, decimals: usize) -> String {
    if value >= 9.995 { three_digits(value) } else { format!("{value:.decimals$}") }
}

/// Ends of wide intervals above this show only that very large ratios are possible: with two epochs, a race can have powers of ten with dozens of digits.
const MOST_RATIO: f64 = 9_999.0;

/// A ratio's interval: `1.49 to 1.55`, `0.00 to over 9,999`; an unknown end is `?`.
pub fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let decimals = ratio_decimals(low, high);
    // Both ends are shown if they are close to each other: such a ratio is that large.
    let is_wide = low.zip(high).is_none_or(|(low, high)| high > low * FAR);
    let end = |value: Option<f64>| match value {
        None => "?".into(),
        Some(value) if value > MOST_RATIO && is_wide => "over 9,999".into(),
        Some(value) => ratio(value, decimals),
    };
    format!("{} to {}", end(low), end(high))
}

/// A ratio, with enough decimals to distinguish it from the ends of its interval: `0.956`.
pub fn ratio_within(value: f64, low: Option<f64>, high: Option<f64>) -> String {
    ratio(value, ratio_decimals(low, high))
}

/// A ratio with its interval: `0.956 (0.944 to 0.969)`. Without a lower end, only the ratio.
pub fn quotient(value: f64, low: Option<f64>, high: Option<f64>) -> String {
    let shown = ratio_within(value, low, high);
    if low.is_none() { shown } else { format!("{shown} ({})", interval(low, high)) }
}

/// A chart shows an end of an interval if it differs from the ratio by at most this factor.
const FAR: f64 = 20.0;

/// The ends of a ratio's interval that a chart has room for, and the ratio. An end that is farther away extends to the chart's edge.
pub fn ends_nearby(low: Option<f64>, ratio: Option<f64>, high: Option<f64>) -> impl Iterator<Item = f64> {
    let near = move |end: &f64| ratio.is_some_and(|ratio| *end <= ratio * FAR && *end >= ratio / FAR);
    [low, high].into_iter().flatten().filter(near).chain(ratio)
}

/// An interval of a value that is not a ratio: `498 to 512`.
pub fn interval_of(low: f64, high: f64) -> String {
    format!("{} to {}", three_digits(low), three_digits(high))
}

/// A remaining or elapsed time: `0:42`, `12:05`, `1:00:09`.
pub fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_whatever_the_size() {
        let shown = |value| three_digits(value);
        assert_eq!(
            [shown(11_437.0), shown(983_456.0), shown(1_234_567.0)],
            ["11,400", "983,000", "1,230,000"]
        );
        assert_eq!([shown(57.04), shown(5.7), shown(0.12345), shown(0.0)], ["57.0", "5.70", "0.123", "0"]);
        assert_eq!(
            [shown(999.6), shown(99.96), shown(9.996), shown(-1_234.0)],
            ["1,000", "100", "10.0", "-1,230"]
        );
        assert_eq!([shown(f64::NAN), shown(f64::INFINITY)], ["-", "-"]);
    }

    /// Uses exactly as many decimals as show on which side of 1 an end is.
    #[test]
    fn an_end_beside_1_is_not_shown_as_1() {
        let shown = |low, high| interval(Some(low), Some(high));
        assert_eq!([shown(1.004, 1.026), shown(1.01, 1.026)], ["1.004 to 1.026", "1.010 to 1.026"]);
        assert_eq!([shown(0.96, 0.998), shown(0.96, 0.99)], ["0.960 to 0.998", "0.96 to 0.99"]);
        assert_eq!([shown(1.0002, 1.0004), shown(1.0, 1.5)], ["1.0002 to 1.0004", "1.00 to 1.50"]);
        assert_eq!(shown(1.000_000_01, 1.3), "1.000000 to 1.300000");
    }

    #[test]
    fn what_is_seldom_has_no_more_digits_than_it_is_worth() {
        let shown = |value| seldom(value);
        assert_eq!([shown(5.0), shown(0.2931), shown(12_345.6)], ["5.00", "0.293", "12,300"]);
        assert_eq!([shown(0.0173), shown(0.001_52), shown(0.000_5)], ["0.017", "0.002", "0.001"]);
        assert_eq!([shown(0.000_49), shown(0.0), shown(f64::NAN)], ["under 0.001", "0", "-"]);
    }

    #[test]
    fn ends_that_could_be_anywhere_are_not_spelled_out() {
        assert_eq!(interval(Some(1e-40), Some(6.37e46)), "0.00 to over 9,999");
        assert_eq!(quotient(308_000.0, Some(300_000.0), Some(316_000.0)), "308,000 (300,000 to 316,000)");
        assert_eq!(quotient(0.000_32, Some(0.000_31), Some(0.000_34)), "0.00032 (0.00031 to 0.00034)");
        assert_eq!(quotient(0.05, Some(0.041), Some(0.062)), "0.050 (0.041 to 0.062)");
        assert_eq!([percent(15.0), percent(3_496.83), percent(9.0)], ["1,500 %", "over 9,999 %", "900 %"]);
        assert_eq!(interval(Some(0.4), None), "0.40 to ?");
        let nearby = |low, high| ends_nearby(Some(low), Some(2.0), Some(high)).collect::<Vec<_>>();
        assert_eq!((nearby(0.2, 30.0), nearby(1e-30, 1e30)), (vec![0.2, 30.0, 2.0], vec![2.0]));
        assert_eq!(ends_nearby(Some(1.0), None, Some(2.0)).count(), 0);
    }

    #[test]
    fn units_change_where_rounding_does() {
        let shown = |ns| time_ns(ns);
        assert_eq!(
            [shown(850.0), shown(57_040.0), shown(3.7e6), shown(1.25e9)],
            ["850 ns", "57.0 µs", "3.70 ms", "1.25 s"]
        );
        assert_eq!([shown(999_949.0), shown(0.0), shown(7.2e12)], ["1.00 ms", "0 ns", "7,200 s"]);
        assert_eq!([parts_ns(36_240.0, 912.0), parts_ns(0.0, 999_949.0)], ["36.2 + 0.912 µs", "0 + 1.00 ms"]);
        assert_eq!([bytes(0), bytes(61 << 20), bytes(3 << 30)], ["0 B", "61.0 MiB", "3.00 GiB"]);
    }

    #[test]
    fn quantiles() {
        assert_eq!([0.5, 0.99, 0.999, 0.9999].map(quantile), ["p50", "p99", "p99.9", "p99.99"]);
    }

    #[test]
    fn shares() {
        let shown = |share| percent(share);
        assert_eq!([shown(0.712), shown(0.03), shown(1.0), shown(0.0)], ["71.2 %", "3 %", "100 %", "0 %"]);
        assert_eq!([shown(0.0012), shown(0.000_001)], ["0.12 %", "under 0.01 %"]);
    }

    #[test]
    fn ratios_have_a_third_decimal_where_two_would_hide_the_interval() {
        assert_eq!(interval(Some(1.49), Some(1.55)), "1.49 to 1.55");
        assert_eq!(interval(Some(1.001), Some(1.0074)), "1.001 to 1.007");
        assert_eq!(interval(Some(12.34), None), "12.3 to ?");
        assert_eq!(quotient(0.956, Some(0.9501), Some(0.9619)), "0.956 (0.950 to 0.962)");
        assert_eq!([quotient(1.5, None, None), quotient(1.5, None, Some(2.0))], ["1.50", "1.50"]);
        assert_eq!([clock(42), clock(725), clock(3_609)], ["0:42", "12:05", "1:00:09"]);
    }
}
