//! The critical values for a referee, each computed once.
//!
//! Owns the simulated paths of the planned looks and of unplanned last looks. It must not know what is compared with the
//! values.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::StoppingRules;
use crate::boundary::{Paths, quadratic_spend, spent_by};
use crate::student::two_sided_quantile;

/// Critical values of |t| at planned looks, at an unplanned last look, and between looks.
#[derive(Debug)]
pub(super) struct Critical {
    alpha: f64,
    looks: Vec<usize>,
    max_epochs: usize,
    seed: u64,
    count: usize,
    paths: Paths,
    known: Mutex<Known>,
}

/// A cache of computed values: the same question always has the same answer.
#[derive(Debug, Default)]
struct Known {
    /// By the number of pairs that share alpha.
    planned: BTreeMap<usize, Vec<f64>>,
    /// Paths of the most recent unplanned last look, by its epochs.
    last_paths: Option<(usize, Paths)>,
    /// By epochs and the number of pairs that share alpha.
    last: BTreeMap<(usize, usize), f64>,
}

impl Critical {
    /// `rules` must be checked already; `count` is the number of simulated paths.
    pub(super) fn new(rules: &StoppingRules, count: usize) -> Self {
        Self {
            alpha: rules.alpha,
            looks: rules.looks.clone(),
            max_epochs: rules.max_epochs,
            seed: rules.seed,
            count,
            paths: Paths::simulate(&rules.looks, rules.seed, count, rules.alpha),
            known: Mutex::default(),
        }
    }

    /// The value at the planned look with this index, if `sharing` pairs share alpha.
    pub(super) fn planned(&self, look: usize, sharing: usize) -> f64 {
        self.planned_in(&mut self.lock(), sharing)[look]
    }

    /// The value at a last look after `n` epochs, which spends all alpha that the planned looks before it left.
    pub(super) fn last(&self, n: usize, sharing: usize) -> f64 {
        let known = &mut *self.lock();
        if let Some(&value) = known.last.get(&(n, sharing)) {
            return value;
        }
        let before: Vec<usize> = self.looks.iter().copied().take_while(|&look| look < n).collect();
        let left = before.last().map_or(1.0, |&look| 1.0 - spent_by(look, self.max_epochs));
        let increment = self.alpha / sharing as f64 * left;
        let value = if before.is_empty() {
            two_sided_quantile(increment, n - 1)
        } else {
            let earlier = self.planned_in(known, sharing)[..before.len()].to_vec();
            self.last_paths_in(known, before, n).last_boundary(&earlier, increment)
        };
        known.last.insert((n, sharing), value);
        value
    }

    /// The value between looks: the t quantile at the alpha that would be spent by `n` epochs. No verdict may depend on it.
    pub(super) fn provisional(&self, n: usize, sharing: usize) -> f64 {
        two_sided_quantile(self.alpha / sharing as f64 * spent_by(n, self.max_epochs), n - 1)
    }

    fn planned_in<'a>(&self, known: &'a mut Known, sharing: usize) -> &'a [f64] {
        known.planned.entry(sharing).or_insert_with(|| {
            let spend = quadratic_spend(&self.looks, self.max_epochs);
            self.paths.boundaries(self.alpha / sharing as f64, &spend).values().to_vec()
        })
    }

    fn last_paths_in<'a>(&self, known: &'a mut Known, mut looks: Vec<usize>, n: usize) -> &'a Paths {
        if known.last_paths.as_ref().is_some_and(|(of, _)| *of != n) {
            known.last_paths = None;
        }
        let draw = || {
            looks.push(n);
            (n, Paths::simulate(&looks, self.seed, self.count, self.alpha))
        };
        &known.last_paths.get_or_insert_with(draw).1
    }

    /// Ignores poisoning: entries are inserted whole, so that a panic elsewhere cannot have left a wrong value.
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_look_asks_less_than_the_planned_one_and_more_than_a_single_test() {
        let critical = Critical::new(&StoppingRules::default(), 200_000);
        for (look, n) in [6, 10, 15, 20, 25].into_iter().enumerate() {
            let last = critical.last(n, 1);
            assert!(last < critical.planned(look, 1), "{n}");
            assert!(last > two_sided_quantile(0.025, n - 1) - 1e-9, "{n}");
        }
        assert_eq!(critical.last(4, 1), two_sided_quantile(0.025, 3));
        assert_eq!(critical.last(4, 3), two_sided_quantile(0.025 / 3.0, 3));
    }

    #[test]
    fn the_same_question_has_the_same_answer() {
        let critical = Critical::new(&StoppingRules::default(), 100_000);
        let first = (critical.last(13, 1), critical.last(17, 2), critical.planned(3, 2));
        assert_eq!((critical.last(13, 1), critical.last(17, 2), critical.planned(3, 2)), first);
        let other = Critical::new(&StoppingRules::default(), 100_000);
        assert_eq!((other.last(13, 1), other.last(17, 2), other.planned(3, 2)), first);
    }
}
