//! Compares the computed chance that a race finds a difference with simulated races that the referee judges.
//!
//! Owns the comparison. It must not know how a chance is computed.

use deadheat_stats::power::chances_by_look;
use deadheat_stats::{Direction, EpochRatio, Hypothesis, Next, Progress, Referee, StoppingRules, Verdict};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

const RACES: usize = 3000;

/// The verdict of one simulated race, which ends at the first look that decides it or at the last look.
fn verdict(referee: &Referee, truth: f64, sd: f64, rng: &mut ChaCha8Rng) -> Verdict {
    let mut epochs: Vec<EpochRatio> = Vec::new();
    let mut wanted = referee.rules().looks[0];
    loop {
        while epochs.len() < wanted {
            let z: f64 = StandardNormal.sample(rng);
            epochs.push(EpochRatio::single(truth + sd * z).unwrap());
        }
        let one = Hypothesis { pair: (0, 1), metric: 0, epochs: &epochs, direction: Direction::MoreIsBetter };
        let judgement = referee.judge(&[one], Progress::Running).unwrap();
        match judgement.next {
            Next::GoOn { next_look } => wanted = next_look,
            _ => return judgement.pairs[0].verdict,
        }
    }
}

/// The computed lower bound for the chance to find the difference by the last look, and the share of simulated races that find it.
fn told_apart(referee: &Referee, truth: f64, sd: f64) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(60);
    let told = (0..RACES).filter(|_| verdict(referee, truth, sd, &mut rng) == Verdict::Faster).count();
    let (rules, critical) = (referee.rules(), referee.boundaries(1));
    let chances = chances_by_look(&rules.looks, &critical, truth / sd, rules.margin_ln() / sd);
    (*chances.last().unwrap(), told as f64 / RACES as f64)
}

#[test]
fn what_boundaries_can_tell_apart_races_do() {
    let full = Referee::new(StoppingRules::default()).unwrap();
    let quick = Referee::new(StoppingRules::ending_at_the_last(&[4, 6, 8, 10, 12], 0.025, 0.03)).unwrap();
    for (referee, difference, sd) in [(&quick, 0.05_f64, 0.04), (&full, 0.03, 0.04), (&full, 0.1, 0.117)] {
        let (least, found) = told_apart(referee, difference.ln_1p(), sd);
        // Allows three standard errors of the share. The bound itself is up to 4 % too low.
        let error = 3.0 * (least * (1.0 - least) / RACES as f64).sqrt();
        assert!(least <= found + error && least >= found - error - 0.04, "{difference}: {least} {found}");
    }
    // Most races with a difference of 1 % end early, because they find equivalence within 3 %.
    let (least, found) = told_apart(&quick, 0.01_f64.ln_1p(), 0.006);
    assert!(least <= found && found < 0.6, "{least} {found}");
}
