//! Describes experiments in words, the same in every report.
//!
//! Owns the sentences. They contain the names of measures unescaped: renderers escape them.

use deadheat_record::{Experiment, Link, LinkReading, ScenarioPlan, Tunnel};

use crate::number::{self, mbit, quantile, time_ns, whole};

/// The arrivals of an open load whose requests are evenly spaced.
const CONSTANT: &str = ", constant";

/// What a scenario does to each contender. Like [`sentence`], but it knows recorded timing.
pub fn of_scenario(scenario: &ScenarioPlan) -> String {
    let words = sentence(&scenario.shape);
    let words = match scenario.traffic.speed() {
        Some(1.0) => words.replacen(CONSTANT, ", timing as recorded", 1),
        Some(speed) => words.replacen(CONSTANT, &format!(", timing as recorded, {speed} times as fast"), 1),
        None => words,
    };
    words + &scenario.link.as_ref().map_or_else(String::new, |one| format!("; {}", link(one)))
}

/// A link in words: `link: 100 Mbit/s, 5 ms ± 1 ms each way, 0.1 % lost, WireGuard`.
pub fn link(link: &Link) -> String {
    let rate = link.rate_bits_per_s.map(|rate| format!("{} Mbit/s", as_written(rate as f64 / 1e6)));
    let jitter =
        if link.jitter_ns > 0 { format!(" ± {}", milliseconds(link.jitter_ns)) } else { String::new() };
    let delay = (link.delay_ns > 0).then(|| format!("{}{jitter} each way", milliseconds(link.delay_ns)));
    let loss = (link.loss > 0.0).then(|| format!("{} % lost", as_written(link.loss * 100.0)));
    let tunnel = link.tunnel.map(|Tunnel::Wireguard| "WireGuard".to_owned());
    let parts: Vec<String> = [rate, delay, loss, tunnel].into_iter().flatten().collect();
    format!("link: {}", if parts.is_empty() { "without limits".to_owned() } else { parts.join(", ") })
}

/// What was measured of a link, in words: `round trip 10.1 ms, 99.9 Mbit/s to the contenders and 100 Mbit/s back, 3 of 4,000 and 5 of 4,000
/// packets lost`.
pub fn measured(reading: &LinkReading) -> String {
    let rate = reading.rate_bits_per_s.map(|(there, back)| {
        format!("{} Mbit/s to the contenders and {} Mbit/s back", mbit(there), mbit(back))
    });
    let loss = (reading.lost != (0, 0)).then(|| {
        let [there, back] = [(reading.lost.0, reading.sent.0), (reading.lost.1, reading.sent.1)]
            .map(|(lost, sent)| format!("{} of {}", whole(lost), whole(sent)));
        format!("{there} and {back} packets lost")
    });
    let trip = format!("round trip {}", time_ns(reading.round_trip_ns as f64));
    let tunnel = reading.tunnel.as_ref().map(|program| format!("encrypted by {program}"));
    [Some(trip), rate, loss, tunnel].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn milliseconds(ns: u64) -> String {
    format!("{} ms", as_written(ns as f64 / 1e6))
}

/// A number as it was written, without digits that only come from dividing it.
fn as_written(value: f64) -> String {
    number::exact((value * 1e6).round() / 1e6)
}

/// A rate as it was typed; one that follows from a log or from stages has three digits.
fn typed_rate(per_s: f64) -> String {
    if (per_s * 1e3).fract() == 0.0 { as_written(per_s) } else { number::three_digits(per_s) }
}

/// A time as it was typed: `10 ms`, `12.5 µs`.
fn typed_ns(ns: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let (size, unit) = units.into_iter().find(|(size, _)| ns as f64 >= *size).unwrap_or((1.0, "ns"));
    format!("{} {unit}", as_written(ns as f64 / size))
}

/// The experiment with its number of connections: `closed load, 64 connections`.
pub fn sentence(experiment: &Experiment) -> String {
    let connections = whole(u64::from(experiment.connections()));
    let connections = match experiment {
        Experiment::Closed { connections: 1 } => ", 1 connection".into(),
        Experiment::Closed { .. } => format!(", {connections} connections"),
        Experiment::Open { connections: 1, .. } | Experiment::Peak { connections: 1, .. } => {
            ", at most 1 connection".into()
        }
        Experiment::Open { .. } | Experiment::Peak { .. } => format!(", at most {connections} connections"),
        Experiment::Starts { .. } | Experiment::Measure { .. } => String::new(),
    };
    without_connections(experiment) + &connections
}

/// The experiment without its number of connections.
pub fn without_connections(experiment: &Experiment) -> String {
    match experiment {
        Experiment::Closed { .. } => "closed load".into(),
        Experiment::Open { rate_per_s, poisson, .. } => {
            let arrivals = if *poisson { ", Poisson" } else { CONSTANT };
            format!("open load, {} requests/s{arrivals}", typed_rate(*rate_per_s))
        }
        Experiment::Peak { objective, .. } => {
            let (what, limit) = (quantile(objective.quantile), typed_ns(objective.limit_ns));
            format!("peak rate with {what} under {limit}")
        }
        Experiment::Starts { starts } => format!("each contender started {starts} times, in turn"),
        Experiment::Measure { measure } => {
            format!("{measure} as each measures it itself, a fresh process each time")
        }
    }
}
