//! Reads a scenario's `link`: the network between load and contenders.

use std::time::Duration;

use deadheat_record::{Link, Tunnel};

use super::complaint::Complaint;
use super::fields::Fields;
use super::keys;
use super::words::{nearest, one_of, shown};
use crate::values::duration_or_none;

/// Rates, in bits per second. Below the lowest, measuring the link takes minutes.
const LOWEST_RATE: u64 = 1_000_000;
const HIGHEST_RATE: u64 = 100_000_000_000;
/// A round trip takes twice as long, and deadheat waits at most 10 s for a connection.
const LONGEST_DELAY: Duration = Duration::from_secs(4);
/// With more losses than this, too few round trips arrive at the first attempt to measure the link's delay.
const MOST_LOSS: f64 = 0.15;
/// Units of a rate, by their letters. They are those of tc(8).
const UNITS: [(&str, f64); 4] = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];
/// What a rate, a delay and a loss may be.
pub(super) const RATES: &str = "write a number and kbit, mbit or gbit, from 1mbit to 100gbit: \"100mbit\"";
pub(super) const DELAYS: &str = "write a time of at most 4 s, such as \"5ms\" or \"500us\"";
const LOSSES: &str = "write a percentage from 0% to 15%, such as \"0.1%\"";
const EXAMPLE: &str = "link = { rate = \"100mbit\", delay = \"5ms\" }";

/// Reads `link`. None if it is missing or invalid.
pub(super) fn link(fields: &Fields<'_, '_>) -> Option<Link> {
    let table = fields.members("link", "a table, such as { rate = \"100mbit\", delay = \"5ms\" }")?;
    let inner = fields.inner(table, fields.key_span("link"), &keys::LINK);
    let link = Link {
        rate_bits_per_s: value(&inner, "rate", RATES, rate),
        delay_ns: value(&inner, "delay", DELAYS, delay_ns).unwrap_or(0),
        jitter_ns: value(&inner, "jitter", DELAYS, delay_ns).unwrap_or(0),
        loss: value(&inner, "loss", LOSSES, loss).unwrap_or(0.0),
        tunnel: tunnel(&inner),
    };
    let swept_ns = least_swept_delay_ns(fields);
    if link.jitter_ns > swept_ns.unwrap_or(link.delay_ns) {
        let (title, help) = match swept_ns {
            None => ("`jitter` is longer than `delay`", "for example: delay = \"5ms\", jitter = \"1ms\""),
            Some(_) => (
                "`jitter` is longer than the shortest delay of the sweep",
                "shorten it, or begin the sweep with a longer delay",
            ),
        };
        let why = "some packets would arrive before they are sent";
        inner.complain(Complaint::new(inner.key_span("jitter"), title, why).help(help));
    }
    let is_empty = keys::LINK.words().all(|key| inner.get(key).is_none());
    if is_empty && fields.get("sweep").is_none() {
        let complaint = Complaint::new(fields.key_span("link"), "`link` asks for nothing", "no setting here");
        fields.complain(complaint.help(format!("for example: {EXAMPLE}; or leave it out")));
    }
    Some(link)
}

/// The shortest delay of a sweep over delays. None without such a sweep, or if it cannot be read, which its own reader complains about.
fn least_swept_delay_ns(fields: &Fields<'_, '_>) -> Option<u64> {
    let sweep = fields.get("sweep")?.get_ref().as_table()?;
    let delays = sweep.get("link")?.get_ref().as_table()?.get("delay")?.get_ref().as_array()?;
    delays.iter().filter_map(|one| delay_ns(one.get_ref().as_str()?)).min()
}

/// Reads a text with a unit, and complains if `read` does not understand it.
fn value<T>(
    fields: &Fields<'_, '_>,
    key: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = fields.text(key)?;
    let value = read(text.get_ref());
    if value.is_none() {
        let title = format!("`{}` is not a {key} of a link", shown(text.get_ref()));
        fields.complain(Complaint::new(text.span(), title, "this value").help(expected));
    }
    value
}

/// Bits per second of a text such as `100mbit`.
pub(super) fn rate(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, *factor)))?;
    let rate = number.trim().parse::<f64>().ok()? * factor;
    (LOWEST_RATE as f64..=HIGHEST_RATE as f64).contains(&rate).then(|| rate.round() as u64)
}

/// Nanoseconds of a text such as `5ms`.
pub(super) fn delay_ns(text: &str) -> Option<u64> {
    let time = duration_or_none(text).ok().filter(|time| *time <= LONGEST_DELAY)?;
    u64::try_from(time.as_nanos()).ok()
}

/// The share of a text such as `0.1%`.
fn loss(text: &str) -> Option<f64> {
    let share = text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0;
    (0.0..=MOST_LOSS).contains(&share).then_some(share)
}

fn tunnel(fields: &Fields<'_, '_>) -> Option<Tunnel> {
    let word = fields.text("tunnel")?;
    let all = [Tunnel::Wireguard.word()];
    if word.get_ref() == Tunnel::Wireguard.word() {
        return Some(Tunnel::Wireguard);
    }
    let title = format!("`{}` is not a tunnel of a link", shown(word.get_ref()));
    let complaint = Complaint::new(word.span(), title, "this word").meant(nearest(word.get_ref(), all));
    fields.complain(complaint.help(format!("write {}", one_of(all))));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_delays_and_losses_have_units_and_limits() {
        for (text, expected) in [
            ("100mbit", Some(100_000_000)),
            ("1.5Gbit", Some(1_500_000_000)),
            ("2000 kbit", Some(2_000_000)),
            ("1000000bit", Some(1_000_000)),
            ("100", None),
            ("100MB", None),
            ("999kbit", None),
            ("101gbit", None),
            ("-5mbit", None),
            ("nanmbit", None),
            ("mbit", None),
        ] {
            assert_eq!(rate(text), expected, "{text}");
        }
        assert_eq!(delay_ns("5ms"), Some(5_000_000));
        assert!(delay_ns("5").is_none() && delay_ns("5s").is_none() && delay_ns("0ms") == Some(0));
        assert_eq!(loss("0.1%"), Some(0.001));
        assert!(["0.1", "16%", "-1%", "nan%"].iter().all(|text| loss(text).is_none()));
    }
}
