//! Runs one simulated race, or counts the results of many.
//!
//! Owns the loop between epochs and referee, which works as in the runner, and the counts. It must not know which noise a test uses or
//! which result it expects.

use std::sync::LazyLock;

use deadheat_stats::{
    Direction, ENDED_BY_ITSELF, EpochRatio, Hypothesis, Judgement, Next, PairJudgement, Progress, Referee,
    StoppingRules, Verdict, Welch,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::noise::{Noise, Source};

/// The looks of the full profile.
pub(crate) static FULL: LazyLock<Referee> = LazyLock::new(|| Referee::new(StoppingRules::default()).unwrap());
/// The looks of the quick profile.
pub(crate) static QUICK: LazyLock<Referee> = LazyLock::new(|| {
    Referee::new(StoppingRules { looks: vec![4, 6, 8, 10, 12], max_epochs: 12, ..StoppingRules::default() })
        .unwrap()
});

/// A race to simulate: its contenders (the first is the baseline), the pairs to compare, and the noise.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) noise: Noise,
    /// Standard deviation of a pair's log ratio between epochs.
    pub(crate) sd: f64,
    /// ln of each contender's true rate.
    pub(crate) truths: Vec<f64>,
    pub(crate) pairs: Vec<(usize, usize)>,
    /// By how much each contender varies more than `sd` says.
    pub(crate) spreads: Vec<f64>,
}

impl Setup {
    /// A baseline, and contenders with these true log ratios to it. Each contender is compared with the baseline only.
    pub(crate) fn against_baseline(noise: Noise, sd: f64, ratios: &[f64]) -> Self {
        let truths = [&[0.0], ratios].concat();
        let pairs = (1..truths.len()).map(|contender| (0, contender)).collect();
        let spreads = vec![1.0; truths.len()];
        Self { noise, sd, truths, pairs, spreads }
    }

    /// The same contenders, with every pair compared.
    pub(crate) fn all_pairs(noise: Noise, sd: f64, ratios: &[f64]) -> Self {
        let mut all = Self::against_baseline(noise, sd, ratios);
        let count = all.truths.len();
        all.pairs = (0..count).flat_map(|b| (b + 1..count).map(move |c| (b, c))).collect();
        all
    }

    /// The same with contenders that vary by these factors more.
    pub(crate) fn spread(self, spreads: &[f64]) -> Self {
        Self { spreads: spreads.to_vec(), ..self }
    }

    fn truth(&self, pair: usize) -> f64 {
        let (baseline, contender) = self.pairs[pair];
        self.truths[contender] - self.truths[baseline]
    }
}

/// Runs a race until the referee ends it at a look or the budget of epochs is used up. Returns the last judgement and the epochs of
/// each pair.
pub(crate) fn race(
    referee: &Referee,
    setup: &Setup,
    budget: usize,
    rng: &mut ChaCha8Rng,
) -> (Judgement, Vec<Vec<EpochRatio>>) {
    let mut source = Source::new(setup.noise, setup.sd, (&setup.truths, &setup.spreads), rng);
    let mut series: Vec<Vec<EpochRatio>> = vec![Vec::new(); setup.pairs.len()];
    let mut wanted = referee.rules().looks[0].min(budget);
    loop {
        while series[0].len() < wanted {
            let epoch = source.epoch(&setup.pairs, rng);
            series.iter_mut().zip(epoch).for_each(|(of_pair, one)| of_pair.push(one));
        }
        let direction = Direction::MoreIsBetter;
        let family: Vec<_> = series
            .iter()
            .zip(&setup.pairs)
            .map(|(epochs, &pair)| Hypothesis { pair, metric: 0, epochs, direction })
            .collect();
        let progress = if wanted == budget { Progress::Ended } else { Progress::Running };
        let judgement = referee.judge(&family, progress).unwrap();
        match judgement.next {
            Next::GoOn { next_look } => wanted = next_look.min(budget),
            _ => return (judgement, series),
        }
    }
}

/// Results of many races. All but `epochs` are percentages: of races, or of pairs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    /// Races that find a difference in a pair without one, or in the wrong direction.
    pub(crate) false_claims: f64,
    /// Of the pairs that differ, those whose difference the race finds, in the right direction.
    pub(crate) power: f64,
    /// Pairs called equivalent.
    pub(crate) equivalent: f64,
    /// Pairs that are inconclusive.
    pub(crate) inconclusive: f64,
    /// Pairs whose last interval contains the true ratio.
    pub(crate) covered: f64,
    /// Races in which all last intervals contain the true ratio.
    pub(crate) all_covered: f64,
    /// Mean half-width of the last intervals, as a difference of ratios.
    pub(crate) width: f64,
    /// Mean number of epochs.
    pub(crate) epochs: f64,
    /// Races with the warning `serial-correlation`: their epochs follow each other.
    pub(crate) follow: f64,
}

/// Simulates `pairs` pairs of identical races, each until the referee ends it, and compares the contenders of the two races through
/// their baselines. Returns the percentages of false claims at alpha and at `ENDED_BY_ITSELF` times alpha, and the mean number of
/// epochs in a race.
pub(crate) fn compared_apart(referee: &Referee, setup: &Setup, pairs: usize, seed: u64) -> [f64; 3] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut claims, mut epochs) = ([0; 2], 0);
    for _ in 0..pairs {
        let mut logs = || -> Vec<f64> {
            let (_, series) = race(referee, setup, referee.rules().max_epochs, &mut rng);
            series[0].iter().map(|epoch| epoch.trimmed()).collect()
        };
        let (old, new) = (logs(), logs());
        epochs += old.len() + new.len();
        let welch = Welch::of(&old, &new).unwrap();
        for (count, share) in claims.iter_mut().zip([1.0, ENDED_BY_ITSELF]) {
            *count += usize::from(welch.interval(share * referee.rules().alpha).excludes_zero());
        }
    }
    let [whole, share] = claims.map(|count| 100.0 * count as f64 / pairs as f64);
    [whole, share, epochs as f64 / pairs as f64 / 2.0]
}

/// Runs many races with the maximum number of epochs as the budget.
pub(crate) fn tally(referee: &Referee, setup: &Setup, races: usize, seed: u64) -> Tally {
    tally_within(referee, setup, races, seed, |_| referee.rules().max_epochs)
}

/// Runs many races. `budget` gives the budget of each, by its index.
pub(crate) fn tally_within(
    referee: &Referee,
    setup: &Setup,
    races: usize,
    seed: u64,
    budget: impl Fn(usize) -> usize,
) -> Tally {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let differing = (0..setup.pairs.len()).filter(|&pair| setup.truth(pair) != 0.0).count();
    let of_races = 100.0 / races as f64;
    let (of_pairs, of_differing) = (of_races / setup.pairs.len() as f64, of_races / differing.max(1) as f64);
    let mut sums = Tally::default();
    for index in 0..races {
        let (found, _) = race(referee, setup, budget(index), &mut rng);
        let (mut lie, mut missed) = (false, false);
        for (pair, judged) in found.pairs.iter().enumerate() {
            let truth = setup.truth(pair);
            let right = truth != 0.0 && judged.verdict == Direction::MoreIsBetter.of_difference(truth);
            lie |= judged.verdict.tells_apart() && !right;
            sums.power += if right { of_differing } else { 0.0 };
            match judged.verdict {
                Verdict::Equivalent => sums.equivalent += of_pairs,
                Verdict::Inconclusive => sums.inconclusive += of_pairs,
                _ => {}
            }
            let ratio = truth.exp();
            let holds =
                judged.low.is_some_and(|low| low <= ratio) && judged.high.is_none_or(|high| ratio <= high);
            sums.covered += if holds { of_pairs } else { 0.0 };
            missed |= !holds;
            let ends = judged.low.zip(judged.high);
            sums.width += ends.map_or(0.0, |(low, high)| of_pairs * ((high / low).sqrt() - 1.0));
        }
        sums.false_claims += if lie { of_races } else { 0.0 };
        sums.all_covered += if missed { 0.0 } else { of_races };
        // Like the report, this tests all pairs together.
        let follows =
            |judged: &PairJudgement| judged.serial.is_some_and(|one| one.is_significant(found.pairs.len()));
        sums.follow += if found.pairs.iter().any(follows) { of_races } else { 0.0 };
        sums.epochs += found.pairs[0].epochs as f64 / races as f64;
    }
    sums
}
