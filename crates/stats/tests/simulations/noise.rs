//! How epochs scatter in the simulations: normal and independent, or in less well-behaved ways.
//!
//! Owns the noise models. It must not know what the referee makes of the epochs. In every model but one, the pair's log ratio has the
//! given standard deviation between epochs, so that the rows of a table compare shapes, not sizes. The exception is `Outliers`: its
//! slow epochs make the standard deviation 1.8 times as large.

use deadheat_stats::{EpochRatio, epoch_log_ratio};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StudentT};

/// Rounds in an epoch, in the models that have rounds.
const ROUNDS: usize = 20;
/// The fraction of a round's deviation that the next round inherits.
const WITHIN: f64 = 0.8;
/// The machine warms up: over an epoch, the log rates of all contenders climb by the same random amount, up to this much.
const COMMON_DRIFT: f64 = 0.05;
/// The standard deviation of a contender's own climb over an epoch.
const OWN_DRIFT: f64 = 0.02;
/// The chance that an epoch of a contender is slow, and how much slower it is, in standard deviations of a pair.
const OUTLIERS: (f64, f64) = (0.05, 5.0);
/// The fraction of an epoch's deviation that the next epoch inherits, in the model whose epochs are not independent.
const BETWEEN: f64 = 0.3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Noise {
    /// Independent normal epochs.
    Normal,
    /// Rounds within an epoch follow each other (AR(1)) and drift; epochs are independent.
    Rounds,
    /// Student's t with three degrees of freedom, for each contender.
    HeavyTails,
    /// Normal, but now and then a contender has a slow epoch.
    Outliers,
    /// Epochs are not independent, so an interval that assumes independence is too narrow.
    FollowingEpochs,
}

impl Noise {
    pub(crate) const INDEPENDENT: [Self; 4] = [Self::Normal, Self::Rounds, Self::HeavyTails, Self::Outliers];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Rounds => "AR(1) and drift within epochs",
            Self::HeavyTails => "heavy tails (t3)",
            Self::Outliers => "slow epochs (5 %, 5 s_d)",
            Self::FollowingEpochs => "AR(1) between epochs (0.3)",
        }
    }
}

/// Epochs of a race, one after another.
pub(crate) struct Source {
    noise: Noise,
    /// Standard deviation of each contender; where all are the same, that of a pair is sqrt(2) times as much.
    own_sds: Vec<f64>,
    /// ln of each contender's true rate; the first is the baseline.
    truths: Vec<f64>,
    /// Each contender's deviation in the previous epoch.
    before: Vec<f64>,
}

impl Source {
    pub(crate) fn new(
        noise: Noise,
        pair_sd: f64,
        (truths, spreads): (&[f64], &[f64]),
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let own_sds: Vec<f64> = spreads.iter().map(|spread| spread * pair_sd / 2.0_f64.sqrt()).collect();
        let before = own_sds.iter().map(|own_sd| own_sd * normal(rng)).collect();
        Self { noise, own_sds, truths: truths.to_vec(), before }
    }

    /// The next epoch's ratio for each pair of (baseline, contender).
    pub(crate) fn epoch(&mut self, pairs: &[(usize, usize)], rng: &mut ChaCha8Rng) -> Vec<EpochRatio> {
        if self.noise == Noise::Rounds {
            let drift = COMMON_DRIFT * rng.random::<f64>();
            let rates: Vec<Vec<f64>> = self
                .truths
                .iter()
                .zip(&self.own_sds)
                .map(|(truth, sd)| rounds(*truth, *sd, drift, rng))
                .collect();
            return pairs.iter().map(|&(b, c)| epoch_log_ratio(&rates[b], &rates[c]).unwrap()).collect();
        }
        let noise = self.noise;
        let each = self.before.iter_mut().zip(&self.own_sds);
        each.for_each(|(own, sd)| *own = deviation(noise, *sd, *own, rng));
        let ln_rate = |i: usize| self.truths[i] + self.before[i];
        pairs.iter().map(|&(b, c)| EpochRatio::single(ln_rate(c) - ln_rate(b)).unwrap()).collect()
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// A contender's deviation in an epoch, given its deviation `before` in the previous epoch.
fn deviation(noise: Noise, sd: f64, before: f64, rng: &mut ChaCha8Rng) -> f64 {
    match noise {
        Noise::HeavyTails => sd * StudentT::new(3.0).unwrap().sample(rng) / 3.0_f64.sqrt(),
        Noise::Outliers => {
            let slow = rng.random::<f64>() < OUTLIERS.0;
            sd * normal(rng) - if slow { OUTLIERS.1 * sd * 2.0_f64.sqrt() } else { 0.0 }
        }
        Noise::FollowingEpochs => BETWEEN * before + sd * (1.0 - BETWEEN * BETWEEN).sqrt() * normal(rng),
        Noise::Normal | Noise::Rounds => sd * normal(rng),
    }
}

/// Rates of an epoch's rounds. Half of the variance of their mean log comes from the epoch's own level, and half from rounds that are
/// correlated with each other.
fn rounds(truth: f64, sd: f64, common_drift: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
    // Variance of the mean of an AR(1) with variance one.
    let lags = (1..ROUNDS).map(|lag| 2.0 * (ROUNDS - lag) as f64 * WITHIN.powi(lag as i32));
    let of_mean = (ROUNDS as f64 + lags.sum::<f64>()) / (ROUNDS * ROUNDS) as f64;
    let round_sd = sd * (0.5 / of_mean).sqrt();
    let level = truth + sd * 0.5_f64.sqrt() * normal(rng);
    let drift = common_drift + OWN_DRIFT * normal(rng);
    let mut follows = normal(rng);
    let rate = |round: usize| {
        let along = round as f64 / (ROUNDS - 1) as f64 - 0.5;
        let rate = 10_000.0 * (level + drift * along + round_sd * follows).exp();
        follows = WITHIN * follows + (1.0 - WITHIN * WITHIN).sqrt() * normal(rng);
        rate
    };
    (0..ROUNDS).map(rate).collect()
}
