//! The order of contenders: random orders from a logged seed, and after each of them its mirror image.
//!
//! Owns: orders and seeds. Must not know: what a slice does.

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Derives the seed for one part of a race from the race's seed, so that a resumed race continues as it would have without a break.
pub(crate) fn derive_seed(seed: u64, scenario: usize, epoch: usize) -> u64 {
    // SplitMix64's finaliser (Steele, Lea, Flood 2014) over the three numbers.
    [scenario as u64 + 1, epoch as u64 + 1].into_iter().fold(seed, |state, part| {
        let mut z = state.wrapping_add(part.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// One random order of `members`.
pub(crate) fn shuffled(members: &[usize], seed: u64) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    shuffle(members, &mut random)
}

/// The orders of `rounds` rounds: each odd round is random, each even round is its mirror image.
pub(crate) fn rounds(members: &[usize], rounds: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut orders: Vec<Vec<usize>> = Vec::with_capacity(rounds as usize);
    for round in 0..rounds as usize {
        let order = if round % 2 == 0 {
            shuffle(members, &mut random)
        } else {
            orders[round - 1].iter().rev().copied().collect()
        };
        orders.push(order);
    }
    orders
}

/// The Fisher-Yates shuffle.
fn shuffle(members: &[usize], random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order = members.to_vec();
    for last in (1..order.len()).rev() {
        let other = random.random_range(0..=last);
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_round_holds_everybody_once_and_pairs_are_mirrored(count in 1_usize..9, pairs in 1_u32..20, seed: u64) {
            let members: Vec<usize> = (0..count).map(|index| index * 3).collect();
            let orders = rounds(&members, pairs * 2, seed);
            prop_assert_eq!(orders.len(), pairs as usize * 2);
            for pair in orders.chunks(2) {
                let mut sorted = pair[0].clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &members);
                let mirror: Vec<usize> = pair[0].iter().rev().copied().collect();
                prop_assert_eq!(&mirror, &pair[1]);
            }
        }
    }

    #[test]
    fn first_places_are_spread_evenly() {
        let orders = rounds(&[0, 1, 2], 6000, 7);
        let mut firsts = [0; 3];
        for order in &orders {
            firsts[order[0]] += 1;
        }
        assert!(firsts.iter().all(|count| (1800..2200).contains(count)), "{firsts:?}");
    }

    #[test]
    fn seeds_differ_by_epoch_and_scenario_and_are_repeatable() {
        let seeds = [derive_seed(1, 0, 0), derive_seed(1, 0, 1), derive_seed(1, 1, 0), derive_seed(2, 0, 0)];
        assert_eq!(seeds.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert_eq!(derive_seed(1, 0, 1), seeds[1]);
        assert_eq!(shuffled(&[1, 2, 3], 9), shuffled(&[1, 2, 3], 9));
    }
}
