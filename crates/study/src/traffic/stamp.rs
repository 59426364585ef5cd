//! When a request was sent, as logs write it.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;
use jiff::{Timestamp, civil};

/// A point in time, and how exactly it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    /// Nanoseconds since 1970, at the beginning of the unit.
    pub(super) ns: i64,
    /// The unit of the last digit, in nanoseconds.
    pub(super) unit_ns: i64,
}

const SECOND_NS: i64 = 1_000_000_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Stamp {
    /// Reads a time in the given format of `strptime`, or in a usual one: `25/Nov/2026:17:58:55 +0000`, RFC 3339, or a number of seconds,
    /// milliseconds, microseconds or nanoseconds since 1970. A time without a time zone is in UTC.
    pub(super) fn parse(text: &str, format: Option<&str>) -> Option<Stamp> {
        let text = text.trim();
        match format {
            Some(format) => in_format(text, format),
            None => number(text).or_else(|| common(text)).or_else(|| iso(text)),
        }
    }
}

/// The unit of a number with this many digits after the point.
fn unit_ns(digits: usize) -> i64 {
    SECOND_NS / 10_i64.pow(digits.min(9) as u32)
}

fn number(text: &str) -> Option<Stamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 19 || !digits(whole) || !digits(fraction) {
        return None;
    }
    // Until the year 5138, a number of seconds has at most 11 digits.
    let scale_ns = match whole.len() {
        ..=11 => SECOND_NS,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        _ => 1,
    };
    let mut part_ns = scale_ns;
    let mut ns = whole.parse::<i64>().ok()?.checked_mul(scale_ns)?;
    for digit in fraction.bytes().take(9) {
        part_ns /= 10;
        ns = ns.checked_add(i64::from(digit - b'0') * part_ns)?;
    }
    Some(Stamp { ns, unit_ns: part_ns.max(1) })
}

/// The time of the common log format, `25/Nov/2026:17:58:55 +0000`, also with a fraction of the second.
fn common(text: &str) -> Option<Stamp> {
    let (time, zone) = text.rsplit_once(' ').unwrap_or((text, "+0000"));
    let mut date = time.splitn(3, '/');
    let (day, month, rest) = (date.next()?, date.next()?, date.next()?);
    let month = MONTHS.iter().position(|one| one.eq_ignore_ascii_case(month))? + 1;
    let mut parts = rest.splitn(4, ':');
    let mut whole = |most: usize| parts.next().filter(|text| text.len() <= most)?.parse::<i16>().ok();
    let (year, hour, minute) = (whole(4)?, whole(2)?, whole(2)?);
    let second = rest.rsplit(':').next()?;
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    // A leap second counts as the one before it.
    let second = second.parse::<i8>().ok().filter(|second| *second <= 60)?.min(59);
    let day = day.parse::<i8>().ok()?;
    let at = DateTime::new(year, month as i8, day, hour as i8, minute as i8, second, 0).ok()?;
    stamp(at, offset(zone)?, fraction)
}

/// The offset of a zone such as `+0130`.
fn offset(zone: &str) -> Option<Offset> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = (digits[..2].parse::<i32>().ok()?, digits[2..].parse::<i32>().ok()?);
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

fn stamp(at: DateTime, offset: Offset, fraction: &str) -> Option<Stamp> {
    let second = offset.to_timestamp(at).ok()?.as_second();
    let mut ns = second.checked_mul(SECOND_NS)?;
    for (index, digit) in fraction.bytes().take(9).enumerate() {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        ns = ns.checked_add(i64::from(digit) * unit_ns(index + 1))?;
    }
    Some(Stamp { ns, unit_ns: unit_ns(fraction.len()) })
}

fn iso(text: &str) -> Option<Stamp> {
    let text = text.replace(',', ".");
    let timestamp = match text.parse::<Timestamp>() {
        Ok(timestamp) => timestamp,
        Err(_) => Offset::UTC.to_timestamp(text.parse::<civil::DateTime>().ok()?).ok()?,
    };
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    of(timestamp, unit_ns(digits))
}

fn of(timestamp: Timestamp, unit_ns: i64) -> Option<Stamp> {
    Some(Stamp { ns: i64::try_from(timestamp.as_nanosecond()).ok()?, unit_ns })
}

/// Whether a format of `strptime` reads parts of a second: `%f`, `%.f`, `%3f`, `%.6f`, `%N`, `%9N`.
fn has_fraction(format: &str) -> bool {
    let directives = format.replace("%%", "");
    directives.split('%').skip(1).any(|directive| {
        let width = directive.strip_prefix('.').unwrap_or(directive);
        width.trim_start_matches(|one: char| one.is_ascii_digit()).starts_with(['f', 'N'])
    })
}

fn in_format(text: &str, format: &str) -> Option<Stamp> {
    let time = strtime::parse(format, text).ok()?;
    let timestamp = match time.to_timestamp() {
        Ok(timestamp) => timestamp,
        Err(_) => Offset::UTC.to_timestamp(time.to_datetime().ok()?).ok()?,
    };
    let fraction = text.rsplit(['.', ',']).next().filter(|_| has_fraction(format)).unwrap_or("");
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    of(timestamp, unit_ns(digits))
}
