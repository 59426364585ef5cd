//! Compares the published throughputs with a generator's ceiling.
//!
//! Owns the sentence. Must not know how the ceiling was measured.

use deadheat_record::{Claim, GeneratorAudit};

use super::figures::{figure, published_count};
use crate::number::{exact, interval_of, percent, three_digits};

/// A server that uses at least this share of its cores is the limit itself, not the generator.
const SATURATED: f64 = 0.90;

/// Compares the published throughputs with the ceiling and states the conclusion.
pub(super) fn concluded(mut audit: GeneratorAudit, claims: &[Claim]) -> GeneratorAudit {
    audit.beyond.clear();
    let Some(reached) = audit.throughput_rps else {
        let why = audit.skipped.as_deref().unwrap_or("it was interrupted");
        audit.text = format!("not measured: {why}");
        return audit;
    };
    let said = measured(&audit, reached);
    if let Some(share) = audit.server_share.filter(|share| *share >= SATURATED) {
        audit.text = format!(
            "{said}; the null server was the limit ({} of its cores), so this does not show what the generator can do",
            percent(share)
        );
        return audit;
    }
    let rates: Vec<(usize, f64)> = claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| claim.metric == "throughput_rps" && claim.baseline.is_none())
        .filter_map(|(at, claim)| Some((at, figure(claim)?.is.low)))
        .collect();
    let granted = granted(&audit, claims);
    let most = audit.high.unwrap_or(reached) * granted.map_or(1.0, |(_, times)| times);
    if audit.published {
        audit.beyond = rates.iter().filter(|(_, rate)| *rate > most).map(|(at, _)| *at).collect();
    }
    audit.text = format!("{said}{}{}", conclusion(&audit, reached, &rates), aside(&audit, granted));
    audit
}

/// The published number of threads, and the factor that the audit grants for them if the generator has fewer cores here: it assumes that each
/// published thread can do as much as one of these cores.
fn granted(audit: &GeneratorAudit, claims: &[Claim]) -> Option<(u32, f64)> {
    let threads = published_count(claims, "generator_threads").filter(|_| audit.published)?;
    let times = f64::from(threads) / audit.cpus.len() as f64;
    (times.is_finite() && times > 1.0).then_some((threads, times))
}

/// States the factor, so that readers do not overestimate the conclusion before it.
fn aside(audit: &GeneratorAudit, granted: Option<(u32, f64)>) -> String {
    let Some((threads, times)) = granted else { return String::new() };
    let so = if audit.beyond.is_empty() { "" } else { ", which is not enough" };
    format!(
        " (for the article's {threads} threads, deadheat allows {} times as much{so})",
        three_digits(times)
    )
}

fn measured(audit: &GeneratorAudit, reached: f64) -> String {
    let runs = audit.runs_rps.len();
    let spread = audit
        .low
        .zip(audit.high)
        .map_or_else(|| "1 run".to_owned(), |(low, high)| format!("{}, {runs} runs", interval_of(low, high)));
    let cpus: Vec<String> = audit.cpus.iter().map(usize::to_string).collect();
    let place = match cpus.len() {
        0 => String::new(),
        1 => format!(" on core {}", cpus[0]),
        _ => format!(" on cores {}", cpus.join(",")),
    };
    format!(
        "reaches {}/s ({spread}) here with {} connections against a server that does nothing{place}",
        three_digits(reached),
        audit.connections
    )
}

fn conclusion(audit: &GeneratorAudit, reached: f64, rates: &[(usize, f64)]) -> String {
    if !audit.published {
        return "; no published figure was measured with it".into();
    }
    let beyond = || rates.iter().filter(|(at, _)| audit.beyond.contains(at)).map(|(_, rate)| *rate);
    let (least, most) = (beyond().fold(f64::INFINITY, f64::min), beyond().fold(0.0, f64::max));
    let shown = |rate: f64| exact(rate.round());
    match audit.beyond.len() {
        0 if rates.is_empty() => "; no throughput was published".into(),
        0 => "; none of the published throughputs is beyond it".into(),
        1 => format!(
            ", and cannot have driven {}/s on a machine like this one: that is {} times as much",
            shown(most),
            three_digits(most / reached)
        ),
        count => format!(
            ", and cannot have driven {count} of {} published throughputs on a machine like this one: {} to {}/s, {} to {} \
             times as much",
            rates.len(),
            shown(least),
            shown(most),
            three_digits(least / reached),
            three_digits(most / reached)
        ),
    }
}
