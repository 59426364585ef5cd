//! The proof: many races whose outcome is known.
//!
//! Owns: which races, in which order, for how long at the most. Must not know: how verdicts are counted.

use std::time::Duration;

use deadheat_record::{Plant, Proof, ProofRace, ProofRow};

use super::arena::Arena;
use super::floor::{Contenders, pair, verdict};
use super::saturated::Calibration;
use crate::commands::Failure;
use crate::flags::DoctorFlags;
use deadheat_study::plan::AdHoc;
use deadheat_study::values::EpochRange;

/// Races of each kind, unless another number is asked for.
const RACES: u32 = 20;
/// How much more the contenders work that are planted.
const PLANTS: [f64; 2] = [0.03, 0.05];
const WARMUP: Duration = Duration::from_millis(500);
/// No epoch of a race starts that would end later: twelve epochs of built-in servers with some room.
const BUDGET: Duration = Duration::from_secs(75);
/// The same for a command of one's own, as a race has it.
const OWN_BUDGET: Duration = Duration::from_secs(180);

/// A kind of race.
pub(crate) struct Row {
    name: String,
    asked_ratio: f64,
    plant: Option<Plant>,
    pair: AdHoc,
}

/// The built-in server against itself, and against those that work more.
///
/// # Errors
/// When the plants cannot be measured.
pub(crate) fn built_in_rows(calibration: &Calibration, arena: &Arena<'_>) -> Result<Vec<Row>, Failure> {
    let steps = calibration.steps;
    let mut rows =
        vec![Row { name: "A/A".into(), asked_ratio: 1.0, plant: None, pair: pair(steps, steps, arena)? }];
    for share in PLANTS {
        let plant = calibration.plant(share, arena.pinning)?;
        rows.push(Row {
            name: format!("{:.0} % more work", share * 100.0),
            asked_ratio: 1.0 + share,
            pair: pair(steps, plant.contender_steps, arena)?,
            plant: Some(plant),
        });
    }
    Ok(rows)
}

/// A command of one's own against itself.
pub(crate) fn own_row(twice: &AdHoc) -> Vec<Row> {
    vec![Row { name: "A/A".into(), asked_ratio: 1.0, plant: None, pair: twice.clone() }]
}

/// Holds the races.
pub(crate) struct Prover<'a> {
    pub(crate) flags: &'a DoctorFlags,
    pub(crate) arena: &'a Arena<'a>,
    pub(crate) contenders: &'a Contenders,
    pub(crate) rows: Vec<Row>,
    pub(crate) seed: u64,
}

impl Prover<'_> {
    /// What will be done, with nothing done yet.
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

    /// Holds them all, the kinds by turns, so that a machine that changes changes for all of them. After each race `told`
    /// is called. Ends early when a person asks for it; what was finished is kept.
    ///
    /// # Errors
    /// When a race fails.
    pub(crate) fn prove(&self, proof: &mut Proof, told: &mut dyn FnMut(&Proof)) -> Result<(), Failure> {
        let mut choices = self.contenders.choices(self.flags, WARMUP);
        choices.method.budget = Some(self.budget());
        // Fewer epochs than a race has are for tests.
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
