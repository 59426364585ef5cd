//! Stacks: addresses as the kernel gives them, and the tree of calls that they add up to.
//!
//! Owns: the form of a call chain, and which entries of a tree are kept. Must not know: what an address is called.

use std::collections::HashMap;

use deadheat_record::{Function, Stacks};
use perf_event::data::Record;

/// The numbers from here on are no addresses: each says where the addresses after it belong.
const FIRST_CONTEXT: u64 = -4_095_i64 as u64;
/// The addresses that follow are those of the kernel.
const KERNEL: u64 = -128_i64 as u64;
/// The addresses that follow are those of the program.
const USER: u64 = -512_i64 as u64;
/// An entry of the tree of calls is kept if it has at least this share of the samples.
const LEAST_SHARE: f64 = 0.000_5;

/// One stack of one process. Both parts begin with the innermost address.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RawStack {
    pub(super) pid: u32,
    pub(super) kernel: Vec<u64>,
    pub(super) user: Vec<u64>,
}

impl RawStack {
    fn of(pid: u32, chain: &[u64]) -> Self {
        let mut stack = Self { pid, ..Self::default() };
        let mut context = USER;
        for one in chain {
            match context {
                _ if *one >= FIRST_CONTEXT => context = *one,
                KERNEL => stack.kernel.push(*one),
                USER => stack.user.push(*one),
                _ => {}
            }
        }
        stack
    }
}

/// All stacks, with the number of their samples.
#[derive(Debug, Default)]
pub(super) struct RawStacks {
    pub(super) counts: HashMap<RawStack, u64>,
    pub(super) lost: u64,
}

impl RawStacks {
    /// Adds a record of the kernel.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        match record {
            Record::Sample(sample) => {
                let (Some(pid), Some(chain)) = (sample.pid(), sample.callchain()) else { return };
                *self.counts.entry(RawStack::of(pid, chain)).or_default() += 1;
            }
            Record::Lost(lost) => self.lost += lost.lost,
            Record::LostSamples(lost) => self.lost += lost.lost,
            _ => {}
        }
    }
}

/// Names the functions of a stack.
pub(super) trait Names {
    /// Reads what is known of all addresses of all stacks.
    fn prepare(&mut self, raw: &RawStacks);
    /// The functions of a stack, the outermost first. Empty for a stack without addresses.
    fn functions(&self, stack: &RawStack) -> Vec<Function>;
}

/// The tree of calls of all stacks.
pub(super) fn named(raw: &RawStacks, names: &mut dyn Names) -> Stacks {
    names.prepare(raw);
    let mut tree = Tree::default();
    // In a fixed order, so that the same stacks give the same tree.
    let mut all: Vec<(&RawStack, u64)> = raw.counts.iter().map(|(stack, count)| (stack, *count)).collect();
    all.sort_unstable();
    for (stack, count) in all {
        tree.add(names.functions(stack), count);
    }
    Stacks { lost: raw.lost, ..tree.kept() }
}

/// A growing tree of calls.
#[derive(Debug, Default)]
struct Tree {
    functions: Vec<Function>,
    places: HashMap<(String, Option<String>), usize>,
    calls: Vec<(Option<usize>, usize, u64)>,
    entries: HashMap<(Option<usize>, usize), usize>,
    samples: u64,
}

impl Tree {
    fn add(&mut self, stack: Vec<Function>, count: u64) {
        let (mut caller, mut innermost) = (None, None);
        for function in stack {
            let function = self.place(function);
            let new = self.calls.len();
            let entry = *self.entries.entry((caller, function)).or_insert(new);
            if entry == new {
                self.calls.push((caller, function, 0));
            }
            self.calls[entry].2 += count;
            (caller, innermost) = (Some(entry), Some(function));
        }
        if let Some(innermost) = innermost {
            self.functions[innermost].own += count;
            self.samples += count;
        }
    }

    fn place(&mut self, function: Function) -> usize {
        let key = (function.name.clone(), function.file.clone());
        *self.places.entry(key).or_insert_with(|| {
            self.functions.push(function);
            self.functions.len() - 1
        })
    }

    /// The tree within its limits. Every function keeps its own samples, also if its entries are omitted.
    fn kept(self) -> Stacks {
        let least = ((self.samples as f64 * LEAST_SHARE) as u64).max(1);
        let mut kept: Vec<usize> = (0..self.calls.len()).filter(|at| self.calls[*at].2 >= least).collect();
        // A caller has at least as many samples as what it calls, and comes before it.
        kept.sort_by_key(|at| (std::cmp::Reverse(self.calls[*at].2), *at));
        kept.truncate(Stacks::MOST_CALLS);
        kept.sort_unstable();
        let mut weights: Vec<u64> = self.functions.iter().map(|one| one.own).collect();
        kept.iter().for_each(|at| weights[self.calls[*at].1] += self.calls[*at].2);
        let (functions, places) = heaviest(self.functions, &weights);
        let new: HashMap<usize, usize> = kept.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let calls = kept.iter().map(|at| {
            let (caller, function, samples) = self.calls[*at];
            (caller.and_then(|caller| new.get(&caller).copied()), places[function], samples)
        });
        let unnamed = functions.iter().filter(|one| one.name == Stacks::UNNAMED).map(|one| one.own).sum();
        Stacks { samples: self.samples, unnamed, calls: calls.collect(), functions, ..Stacks::default() }
    }
}

/// The functions with the most weight, and the new place of every function. Those beyond the limit become one, in the last place.
fn heaviest(functions: Vec<Function>, weights: &[u64]) -> (Vec<Function>, Vec<usize>) {
    let mut order: Vec<usize> = (0..functions.len()).filter(|at| weights[*at] > 0).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(weights[*at]), *at));
    let many = order.len() > Stacks::MOST_FUNCTIONS;
    let single = if many { Stacks::MOST_FUNCTIONS - 1 } else { order.len() };
    let mut places = vec![single; functions.len()];
    let mut kept: Vec<Function> = order[..single].iter().map(|at| functions[*at].clone()).collect();
    order[..single].iter().enumerate().for_each(|(new, old)| places[*old] = new);
    if many {
        let own = order[single..].iter().map(|at| functions[*at].own).sum();
        kept.push(Function { name: Stacks::REST.into(), own, ..Function::default() });
    }
    (kept, places)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Names each address by its number.
    struct Numbers;

    impl Names for Numbers {
        fn prepare(&mut self, _: &RawStacks) {}
        fn functions(&self, stack: &RawStack) -> Vec<Function> {
            let all = stack.user.iter().rev().chain(stack.kernel.iter().rev());
            all.map(|one| Function { name: format!("f{one}"), ..Function::default() }).collect()
        }
    }

    fn raw(stacks: &[(&[u64], u64)]) -> RawStacks {
        let stack = |user: &[u64]| RawStack { pid: 1, kernel: Vec::new(), user: user.to_vec() };
        RawStacks { counts: stacks.iter().map(|(user, count)| (stack(user), *count)).collect(), lost: 3 }
    }

    #[test]
    fn a_chain_is_split_into_kernel_and_program() {
        let stack = RawStack::of(7, &[KERNEL, 9, 8, USER, 2, 1]);
        assert_eq!((stack.kernel, stack.user), (vec![9, 8], vec![2, 1]));
        let guest = -2_048_i64 as u64;
        assert_eq!(RawStack::of(7, &[guest, 5, USER, 2]).user, [2], "what belongs to a guest is left out");
    }

    #[test]
    fn stacks_add_up_to_a_tree_with_callers_first() {
        let stacks = named(&raw(&[(&[3, 2, 1], 5), (&[2, 1], 2), (&[3, 1], 1)]), &mut Numbers);
        let name = |at: usize| stacks.functions[at].name.as_str();
        let calls: Vec<(Option<usize>, &str, u64)> = stacks
            .calls
            .iter()
            .map(|(caller, function, samples)| (*caller, name(*function), *samples))
            .collect();
        assert_eq!(calls, [(None, "f1", 8), (Some(0), "f2", 7), (Some(0), "f3", 1), (Some(1), "f3", 5)]);
        let own: Vec<(&str, u64)> = stacks.functions.iter().map(|one| (one.name.as_str(), one.own)).collect();
        assert_eq!(own, [("f3", 6), ("f2", 2), ("f1", 0)], "the heaviest first");
        assert_eq!((stacks.samples, stacks.lost), (8, 3));
    }

    proptest! {
        #[test]
        fn within_the_limits_every_sample_is_counted_once(
            stacks in prop::collection::vec((prop::collection::vec(0_u64..3_000, 1..6), 1_u64..50), 1..400)
        ) {
            let all: Vec<(&[u64], u64)> = stacks.iter().map(|(stack, count)| (stack.as_slice(), *count)).collect();
            let raw = raw(&all);
            let total: u64 = raw.counts.values().sum();
            let tree = named(&raw, &mut Numbers);
            prop_assert_eq!(tree.samples, total);
            prop_assert_eq!(tree.functions.iter().map(|one| one.own).sum::<u64>(), total);
            prop_assert!(tree.functions.len() <= Stacks::MOST_FUNCTIONS && tree.calls.len() <= Stacks::MOST_CALLS);
            for (at, (caller, function, samples)) in tree.calls.iter().enumerate() {
                prop_assert!(*function < tree.functions.len());
                if let Some(caller) = caller {
                    prop_assert!(*caller < at && tree.calls[*caller].2 >= *samples);
                }
            }
        }
    }

    #[test]
    fn functions_beyond_the_limit_are_one() {
        let chains: Vec<[u64; 1]> = (0..5_000).map(|one| [one]).collect();
        let all: Vec<(&[u64], u64)> = chains.iter().map(|one| (&one[..], 2)).collect();
        let tree = named(&raw(&all), &mut Numbers);
        let last = tree.functions.last().unwrap();
        assert_eq!(tree.functions.len(), Stacks::MOST_FUNCTIONS);
        assert_eq!((last.name.as_str(), last.own), (Stacks::REST, 2 * (5_000 - 1_999)));
    }
}
