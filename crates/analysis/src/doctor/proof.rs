//! Derives the rows of the proof from its races, and the findings on them.
//!
//! Owns the counting, and how many wrong verdicts are too many. Must not know how races are run.

use deadheat_record::{Finding, Proof, ProofRace, ProofRow, Severity, VerdictWord};
use deadheat_stats::average::median;
use deadheat_stats::spread::chance_of_at_least;

use crate::gates::table::{self, By};
use crate::judge;
use crate::number::percent;

/// The method promises at most this share of false claims.
const PROMISED: f64 = 0.05;
/// Counts of false claims that are less likely than this under the promise break it ([`BROKEN`]) or weaken it ([`WEAKENED`]).
const BROKEN: f64 = 0.01;
const WEAKENED: f64 = 0.05;
/// A plant counts as found if at least this share of the valid races finds it. With fewer than [`FEWEST`] valid races the proof does not
/// judge it.
const FOUND: f64 = 0.8;
const FEWEST: usize = 5;
/// The true plant may differ from the requested one by this share of it.
const OFF: f64 = 0.2;
/// Rounding error of floats: a plant must exceed the margin by more than this to lie outside it.
const ROUNDING: f64 = 1e-9;
/// A larger share of invalid races is a finding. If fewer than [`FEWEST`] valid races are left as well, the machine is unfit.
const INVALID: f64 = 0.2;

/// Fills in the rows' counts, medians and true ratios.
pub(super) fn count(proof: &mut Proof) {
    for (index, row) in proof.rows.iter_mut().enumerate() {
        let races: Vec<&ProofRace> = proof.results.iter().filter(|race| race.row == index).collect();
        let said = |word: VerdictWord| races.iter().filter(|race| race.verdict == word).count();
        row.races = races.len();
        row.faster = said(VerdictWord::Faster);
        row.slower = said(VerdictWord::Slower);
        row.equivalent = said(VerdictWord::Equivalent);
        row.inconclusive = said(VerdictWord::Inconclusive);
        row.invalid = said(VerdictWord::Invalid);
        let decided = |race: &&&ProofRace| judge::verdict(race.verdict).is_decided();
        row.median_verdict_s = median(races.iter().filter(decided).map(|race| race.took_s));
        row.true_ratio = median(races.iter().filter_map(|race| race.cpu_ratio));
    }
}

/// Findings of the proof on deadheat on this machine.
pub(super) fn findings(proof: &Proof) -> Vec<Finding> {
    proof.rows.iter().flat_map(|row| of_row(row, proof.margin, proof.alpha)).collect()
}

fn of_row(row: &ProofRow, margin: f64, alpha: f64) -> Vec<Finding> {
    let valid = row.races - row.invalid;
    let (wrong, chance) = false_claims(row, margin, alpha);
    let mut findings = Vec::new();
    let name = &row.name;
    let likely = chance_of_at_least(wrong, valid, chance);
    let said = || format!("{name}: {wrong} of {valid} races made a false claim");
    if likely < BROKEN {
        findings.push(table::FALSE_CLAIMS.finding(By::Doctor, Severity::Invalid, said()));
    } else if likely < WEAKENED {
        findings.push(table::FALSE_CLAIMS.warning(By::Doctor, said()));
    }
    if row.asked_ratio > 1.0 && valid >= FEWEST && (row.slower as f64) < FOUND * valid as f64 {
        let message = format!("{name}: only {} of {valid} races found it", row.slower);
        findings.push(table::PLANT_MISSED.warning(By::Doctor, message));
    }
    if let Some(off) = off(row) {
        let message = format!("{name}: the real difference was {}, by CPU time per request", percent(off));
        findings.push(table::PLANT_OFF.warning(By::Doctor, message));
    }
    if row.invalid as f64 > INVALID * row.races as f64 {
        let message = format!("{name}: {} of {} races were invalid", row.invalid, row.races);
        findings.push(match valid < FEWEST {
            true => table::INVALID_RACES.finding(By::Doctor, Severity::Invalid, message),
            false => table::INVALID_RACES.warning(By::Doctor, message),
        });
    }
    findings
}

/// How many of a row's races made a false claim, and the probability with which each may. If the plant lies outside the margin, a claim of
/// equivalence is false.
fn false_claims(row: &ProofRow, margin: f64, alpha: f64) -> (usize, f64) {
    if row.asked_ratio <= 1.0 {
        return (row.faster + row.slower, PROMISED);
    }
    let truth = row.true_ratio.unwrap_or(row.asked_ratio);
    if truth.ln() > margin.ln_1p() + ROUNDING {
        // Both claims err on the same side of the truth, so half of alpha would do; but the truth itself is only measured.
        return (row.faster + row.equivalent, alpha);
    }
    // A claim on the wrong side of a true difference is half of a race's error rate.
    (row.faster, alpha / 2.0)
}

/// The measured plant, if it differs too much from the requested one.
fn off(row: &ProofRow) -> Option<f64> {
    let (asked, truth) = (row.asked_ratio - 1.0, row.true_ratio? - 1.0);
    (asked > 0.0 && (truth - asked).abs() > OFF * asked).then_some(truth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(asked_ratio: f64, counts: [usize; 5], true_ratio: f64) -> ProofRow {
        let [faster, slower, equivalent, inconclusive, invalid] = counts;
        ProofRow {
            name: "row".into(),
            asked_ratio,
            plant: None,
            true_ratio: Some(true_ratio),
            races: counts.iter().sum(),
            faster,
            slower,
            equivalent,
            inconclusive,
            invalid,
            median_verdict_s: None,
        }
    }

    #[test]
    fn wrong_verdicts_count_by_how_unlikely_they_are() {
        let codes = |row: &ProofRow| -> Vec<(String, deadheat_record::Severity)> {
            of_row(row, 0.03, 0.025).into_iter().map(|one| (one.code, one.severity)).collect()
        };
        use deadheat_record::Severity::{Invalid, Warn};
        let one = |code: &str, severity| vec![(code.to_owned(), severity)];
        for (asked, counts, truth, expected) in [
            (1.0, [1, 2, 15, 2, 0], 1.0, vec![]),
            (1.0, [2, 2, 14, 2, 0], 1.0, one("false-claims", Warn)),
            (1.0, [3, 2, 15, 0, 0], 1.0, one("false-claims", Invalid)),
            (1.03, [0, 18, 1, 1, 0], 1.0303, vec![]),
            (1.03, [0, 10, 0, 10, 0], 1.03, one("plant-missed", Warn)),
            (1.03, [3, 17, 0, 0, 0], 1.03, one("false-claims", Invalid)),
            (1.05, [0, 20, 0, 0, 0], 1.035, one("plant-off", Warn)),
            (1.05, [0, 14, 0, 0, 6], 1.05, one("invalid-races", Warn)),
            (1.05, [0, 0, 0, 0, 0], 1.05, vec![]),
            (1.0, [0, 0, 3, 2, 15], 1.0, one("invalid-races", Warn)),
            (1.0, [0, 0, 3, 1, 16], 1.0, one("invalid-races", Invalid)),
            (1.03, [0, 0, 0, 0, 20], 1.03, one("invalid-races", Invalid)),
            (1.0, [0, 0, 2, 0, 0], 1.0, vec![]),
        ] {
            assert_eq!(codes(&row(asked, counts, truth)), expected, "{asked} {counts:?}");
        }
    }

    #[test]
    fn equivalence_is_a_false_claim_of_a_plant_outside_the_margin() {
        use deadheat_record::Severity::{Invalid, Warn};
        let false_claims = |row: &ProofRow| {
            let found = of_row(row, 0.03, 0.025);
            found.into_iter().find(|one| one.code == "false-claims").map(|one| one.severity)
        };
        // P(X >= 2), P(X >= 3) and P(X >= 4) of Binomial(20, 0.025) are 0.0882, 0.0130 and 0.0014.
        for (asked, counts, truth, expected) in [
            (1.05, [0, 18, 2, 0, 0], 1.05, None),
            (1.05, [0, 17, 3, 0, 0], 1.05, Some(Warn)),
            (1.05, [1, 17, 2, 0, 0], 1.05, Some(Warn)),
            (1.05, [0, 16, 4, 0, 0], 1.05, Some(Invalid)),
            // The measured plant decides, not the requested one. A plant exactly on the margin may get either verdict.
            (1.05, [0, 16, 4, 0, 0], 1.028, None),
            (1.03, [0, 16, 4, 0, 0], 1.034, Some(Invalid)),
            (1.03, [0, 16, 4, 0, 0], 1.03, None),
        ] {
            assert_eq!(false_claims(&row(asked, counts, truth)), expected, "{asked} {counts:?} {truth}");
        }
        let unread = ProofRow { true_ratio: None, ..row(1.05, [0, 16, 4, 0, 0], 1.0) };
        assert_eq!(false_claims(&unread), Some(Invalid));
    }
}
