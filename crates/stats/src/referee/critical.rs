//! The critical values for a referee, each computed once.
//!
//! Owns which looks spend how much of alpha: planned ones, and an unplanned last one. It must not know what is compared with the
//! values.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::StoppingRules;
use crate::boundary::{SequentialT, quadratic_spend, spent_by};
use crate::moderated;
use crate::student::upper_quantile;

/// Critical values of |t| at planned looks, at an unplanned last look, and between looks.
#[derive(Debug)]
pub(super) struct Critical {
    alpha: f64,
    looks: Vec<usize>,
    max_epochs: usize,
    /// Degrees of freedom with which pairs know each other's spread.
    degrees: f64,
    /// The law of t where a pair knows only its own spread.
    own: SequentialT,
    /// The law of t where pairs know each other's.
    shared: SequentialT,
    /// The same question always has the same answer.
    answers: Mutex<Answers>,
}

/// Critical values by the looks taken and the number of pairs that share alpha.
type Answers = BTreeMap<(Vec<usize>, usize), Vec<f64>>;

impl Critical {
    /// `rules` must be checked already; `degrees`: see [`moderated::degrees`].
    pub(super) fn new(rules: &StoppingRules, degrees: f64) -> Self {
        Self {
            alpha: rules.alpha,
            looks: rules.looks.clone(),
            max_epochs: rules.max_epochs,
            degrees,
            own: SequentialT::new(2, rules.max_epochs, 0.0),
            shared: SequentialT::new(2, rules.max_epochs.min(moderated::ENOUGH - 1), degrees),
            answers: Mutex::default(),
        }
    }

    /// The value at the planned look with this index, if `sharing` pairs share alpha.
    pub(super) fn planned(&self, look: usize, sharing: usize) -> f64 {
        self.values(&self.looks, sharing)[look]
    }

    /// The value at a last look after `n` epochs, which spends all alpha that the planned looks before it left.
    pub(super) fn last(&self, n: usize, sharing: usize) -> f64 {
        let mut looks: Vec<usize> = self.looks.iter().copied().take_while(|&look| look < n).collect();
        looks.push(n);
        self.values(&looks, sharing)[looks.len() - 1]
    }

    /// The value between looks: the t quantile at the alpha that would be spent by `n` epochs. No verdict may depend on it.
    pub(super) fn provisional(&self, n: usize, sharing: usize) -> f64 {
        let alpha = self.alpha / sharing as f64 * spent_by(n, self.max_epochs);
        upper_quantile(alpha / 2.0, moderated::known(n, self.degrees) + n as f64 - 1.0)
    }

    /// The values at these looks. The last look spends all that is left.
    fn values(&self, looks: &[usize], sharing: usize) -> Vec<f64> {
        // Ignores poisoning: entries are inserted whole, so that a panic elsewhere cannot have left a wrong value.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let compute = || {
            let spend = quadratic_spend(looks, self.max_epochs, self.alpha / sharing as f64);
            // Later looks count as if no earlier one under another law had stopped a race, so that all together spend alpha at most.
            let early = looks.iter().take_while(|n| moderated::known(**n, self.degrees) > 0.0).count();
            let mut values = self.shared.boundaries(&looks[..early], &spend[..early]);
            values.extend(self.own.boundaries(&looks[early..], &spend[early..]));
            values
        };
        answers.entry((looks.to_vec(), sharing)).or_insert_with(compute).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_look_asks_less_than_the_planned_one_and_more_than_a_single_test() {
        let critical = Critical::new(&StoppingRules::default(), 0.0);
        for (look, n) in [6, 10, 15, 20, 25].into_iter().enumerate() {
            let last = critical.last(n, 1);
            assert!(last < critical.planned(look, 1), "{n}");
            assert!(last > upper_quantile(0.0125, n as f64 - 1.0) - 1e-9, "{n}");
        }
        assert_eq!(critical.last(4, 1), upper_quantile(0.0125, 3.0));
        assert_eq!(critical.last(4, 3), upper_quantile(0.0125 / 3.0, 3.0));
    }

    /// Holm's step-down depends on this.
    #[test]
    fn smaller_shares_of_alpha_never_narrow_a_boundary() {
        for degrees in [0.0, 0.5, 4.0] {
            let rules = StoppingRules::ending_at_the_last(&[4, 6, 8, 10, 12], 0.025, 0.03);
            let critical = Critical::new(&rules, degrees);
            let values = |sharing| (0..5).map(|look| critical.planned(look, sharing)).collect::<Vec<_>>();
            for sharing in 1..40 {
                let (fewer, more) = (values(sharing), values(sharing + 1));
                assert!(
                    fewer.iter().zip(&more).all(|(fewer, more)| fewer <= more),
                    "{degrees}: {fewer:?} {more:?}"
                );
            }
        }
    }

    #[test]
    fn pairs_that_know_each_others_spread_need_less_evidence_early() {
        let [alone, seven] = [0.0, 4.0].map(|degrees| Critical::new(&StoppingRules::default(), degrees));
        assert!(seven.planned(0, 1) < 0.75 * alone.planned(0, 1));
        // Later looks use a pair's own spread, and count as if no race had stopped at the first.
        for look in 1..6 {
            assert!((1.0..1.03).contains(&(seven.planned(look, 1) / alone.planned(look, 1))), "{look}");
        }
    }
}
