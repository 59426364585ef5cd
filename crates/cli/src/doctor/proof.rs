//! The proof: many races with a known outcome.
//!
//! Owns: which races, their order and their time limits. Must not know: how verdicts are counted.

use std::time::Duration;

use deadheat_record::{Plant, Proof, ProofRace, ProofRow};

use super::arena::Arena;
use super::floor::{Contenders, pair, verdict};
use super::saturated::Calibration;
use crate::commands::Failure;
use crate::flags::DoctorFlags;
use deadheat_study::plan::AdHoc;
use deadheat_study::values::EpochRange;

/// The default number of races of each kind.
const RACES: u32 = 20;
/// How much more work the planted contenders do.
const PLANTS: [f64; 2] = [0.03, 0.05];
const WARMUP: Duration = Duration::from_millis(500);
/// No epoch starts that would end after this time. Enough for twelve epochs of built-in servers, with some spare time.
const BUDGET: Duration = Duration::from_secs(75);
/// The same for a user's command, as in a race.
const OWN_BUDGET: Duration = Duration::from_secs(180);

/// A kind of race.
pub(crate) struct Row {
    name: String,
    asked_ratio: f64,
    plant: Option<Plant>,
    pair: AdHoc,
}

/// The built-in server against itself, and against servers that do more work.
///
/// # Errors
/// The plants cannot be measured.
pub(crate) fn built_in_rows(calibration: &Calibration, arena: &Arena<'_>) -> Result<Vec<Row>, Failure> {
    let steps = calibration.steps;
    let mut rows =
        vec![Row { name: "A/A".into(), asked_ratio: 1.0, plant: None, pair: pair(steps, steps, arena)? }];
    for share in PLANTS {
        let plant = calibration.plant(share, &arena.cores_here()?)?;
        rows.push(Row {
            name: format!("{:.0} % more work", share * 100.0),
            asked_ratio: 1.0 + share,
            pair: pair(steps, plant.contender_steps, arena)?,
            plant: Some(plant),
        });
    }
    Ok(rows)
}

/// The user's command against itself.
pub(crate) fn own_row(twice: &AdHoc) -> Vec<Row> {
    vec![Row { name: "A/A".into(), asked_ratio: 1.0, plant: None, pair: twice.clone() }]
}

/// Runs the races.
pub(crate) struct Prover<'a> {
    pub(crate) flags: &'a DoctorFlags,
    pub(crate) arena: &'a Arena<'a>,
    pub(crate) contenders: &'a Contenders,
    pub(crate) rows: Vec<Row>,
    pub(crate) seed: u64,
}

impl Prover<'_> {
    /// The proof before the first race.
    pub(crate) fn planned(&self) -> Proof {
        let races = self.flags.races.unwrap_or(RACES) as usize;
        let row = |row: &Row| ProofRow {
            name: row.name.clone(),
            asked_ratio: row.asked_ratio,
            plant: row.plant.clone(),
            true_ratio: None,
            races: 0,
            faster: 0,
            slower: 0,
            equivalent: 0,
            inconclusive: 0,
            invalid: 0,
            median_verdict_s: None,
        };
        Proof {
            races,
            most_s: (races * self.rows.len()) as f64 * self.budget().as_secs_f64(),
            margin: 0.0,
            alpha: 0.0,
            rows: self.rows.iter().map(row).collect(),
            results: Vec::new(),
        }
    }

    fn budget(&self) -> Duration {
        if matches!(self.contenders, Contenders::BuiltIn(_)) { BUDGET } else { OWN_BUDGET }
    }

    /// Runs all races. The kinds alternate, so that a change of the machine affects all kinds. Calls `told` after each race. Ends early if the user
    /// interrupts it, and keeps the finished races.
    ///
    /// # Errors
    /// A race fails.
    pub(crate) fn prove(&self, proof: &mut Proof, told: &mut dyn FnMut(&Proof)) -> Result<(), Failure> {
        let mut choices = self.contenders.choices(self.flags, WARMUP);
        choices.method.budget = Some(self.budget());
        let most = self.flags.epochs.map(|most| most as usize).filter(|most| *most < 12);
        choices.method.epochs = most.map(|most| EpochRange { fewest: most.min(4), most });
        for number in 0..proof.races {
            for (index, row) in self.rows.iter().enumerate() {
                let seed = self.seed.wrapping_add((number * self.rows.len() + index + 1) as u64);
                let ended = self.arena.race(&row.pair, &choices, seed, false)?;
                if ended.interrupted {
                    return Ok(());
                }
                (proof.margin, proof.alpha) = (ended.report.method().margin, ended.report.method().alpha);
                let found = ended.pair();
                let mut codes: Vec<String> =
                    ended.findings().into_iter().map(|finding| finding.code).collect();
                codes.sort();
                codes.dedup();
                proof.results.push(ProofRace {
                    row: index,
                    seed,
                    verdict: verdict(&ended),
                    ratio: found.and_then(|pair| pair.ratio),
                    low: found.and_then(|pair| pair.low),
                    high: found.and_then(|pair| pair.high),
                    epochs: found.map_or(0, |pair| pair.epochs),
                    took_s: ended.took_s,
                    cpu_ratio: cpu_ratio(ended.results()),
                    codes,
                });
                told(proof);
            }
        }
        Ok(())
    }
}

fn cpu_ratio(results: &[deadheat_analysis::ContenderResult]) -> Option<f64> {
    let [baseline, contender] = results else { return None };
    Some(contender.cpu_us_per_request? / baseline.cpu_us_per_request?).filter(|ratio| ratio.is_finite())
}
