//! Ranks as compact letters: contenders share a letter if no difference between them was found.
//!
//! Owns the insert-and-absorb algorithm and the naming of letters. It must not know verdicts: the caller says which
//! pairs differ (faster or slower, and nothing else).
//!
//! Source: Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons", Journal of
//! Computational and Graphical Statistics 13 (2004).

use std::collections::BTreeSet;
use thiserror::Error;

/// With more letters than this, redundant ones are removed before the next pair (Piepho's third step), which
/// bounds the work: for some sets of pairs, every insertion would otherwise double the number of letters.
const MANY: usize = 64;

/// Why letters cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LettersError {
    /// The order does not name each contender once.
    #[error(
        "the order names contender {contender} twice or beyond the {contenders} there are; name each from 0 once"
    )]
    Order {
        /// The invalid contender.
        contender: usize,
        /// The number of contenders: the length of the order.
        contenders: usize,
    },
    /// A pair names a contender that is not in the order, or the same contender twice.
    #[error("the pair ({first}, {second}) is not two different contenders of the {contenders} in the order")]
    Pair {
        /// First of the pair.
        first: usize,
        /// Second of the pair.
        second: usize,
        /// The number of contenders: the length of the order.
        contenders: usize,
    },
}

/// Letters for each contender, by its index: two contenders share a letter exactly if their pair is not in `told_apart`.
///
/// `order` lists all contenders, best first; the best has an `a`. `told_apart` holds the pairs with a verdict of faster
/// or slower, in any order; a pair that was never compared is not among them. After `z` come `A` to `Z`, then `a1` and
/// so on, so that letters written side by side remain readable.
///
/// # Errors
/// If the order is not a permutation of 0..k, or if a pair is not two different numbers from that range.
pub fn compact_letters(order: &[usize], told_apart: &[(usize, usize)]) -> Result<Vec<String>, LettersError> {
    let rank = ranks(order)?;
    let mut groups: Vec<BTreeSet<usize>> = vec![(0..order.len()).collect()];
    for &(first, second) in told_apart {
        let of = |contender: usize| rank.get(contender).copied();
        match (of(first), of(second)) {
            (Some(a), Some(b)) if a != b => insert(&mut groups, a, b),
            _ => return Err(LettersError::Pair { first, second, contenders: order.len() }),
        }
    }
    groups.sort();
    let letters = |place: usize| -> String {
        groups.iter().enumerate().filter(|(_, g)| g.contains(&place)).map(|(i, _)| label(i)).collect()
    };
    Ok(rank.into_iter().map(letters).collect())
}

/// The place of each contender in the order.
fn ranks(order: &[usize]) -> Result<Vec<usize>, LettersError> {
    let mut rank = vec![None; order.len()];
    for (place, &contender) in order.iter().enumerate() {
        match rank.get_mut(contender) {
            Some(slot @ None) => *slot = Some(place),
            _ => return Err(LettersError::Order { contender, contenders: order.len() }),
        }
    }
    Ok(rank.into_iter().flatten().collect())
}

/// Separates `a` and `b`: splits each group that holds both in two, then absorbs groups inside another.
fn insert(groups: &mut Vec<BTreeSet<usize>>, a: usize, b: usize) {
    let (both, mut kept): (Vec<_>, Vec<_>) = groups.drain(..).partition(|g| g.contains(&a) && g.contains(&b));
    for group in both {
        for gone in [a, b] {
            let mut part = group.clone();
            part.remove(&gone);
            kept.push(part);
        }
    }
    *groups = absorb(kept);
    if groups.len() > MANY {
        sweep(groups);
    }
}

fn absorb(mut groups: Vec<BTreeSet<usize>>) -> Vec<BTreeSet<usize>> {
    groups.sort_by_key(|g| std::cmp::Reverse(g.len()));
    let mut kept: Vec<BTreeSet<usize>> = Vec::with_capacity(groups.len());
    for group in groups {
        if !kept.iter().any(|k| group.is_subset(k)) {
            kept.push(group);
        }
    }
    kept
}

/// Removes redundant groups: those whose members and pairs of members all occur in the remaining groups.
fn sweep(groups: &mut Vec<BTreeSet<usize>>) {
    let mut i = groups.len();
    while i > 0 {
        i -= 1;
        let covered = |a: &usize, b: &usize| {
            groups.iter().enumerate().any(|(j, g)| j != i && g.contains(a) && g.contains(b))
        };
        if groups[i].iter().all(|a| groups[i].iter().all(|b| covered(a, b))) {
            groups.remove(i);
        }
    }
}

fn label(index: usize) -> String {
    const ALPHABET: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let letter = char::from(ALPHABET[index % ALPHABET.len()]);
    match index / ALPHABET.len() {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(letters: &str) -> BTreeSet<String> {
        let mut found: Vec<String> = Vec::new();
        for c in letters.chars() {
            match found.last_mut() {
                Some(last) if c.is_ascii_digit() => last.push(c),
                _ => found.push(c.to_string()),
            }
        }
        found.into_iter().collect()
    }

    #[test]
    fn nobody_told_apart_share_one_letter() {
        assert_eq!(compact_letters(&[2, 0, 1], &[]).unwrap(), ["a", "a", "a"]);
        assert!(compact_letters(&[], &[]).unwrap().is_empty());
    }

    #[test]
    fn everybody_told_apart_follow_the_order() {
        let pairs = [(0, 1), (0, 2), (1, 2)];
        assert_eq!(compact_letters(&[2, 0, 1], &pairs).unwrap(), ["b", "c", "a"]);
    }

    #[test]
    fn the_middle_one_shares_with_both_ends() {
        assert_eq!(compact_letters(&[0, 1, 2], &[(2, 0)]).unwrap(), ["a", "ab", "b"]);
    }

    #[test]
    fn a_chain_of_five_by_hand() {
        // Best to worst 0..4; contenders two or more places apart differ, except 1 and 3.
        let pairs = [(0, 2), (0, 3), (0, 4), (1, 4), (2, 4)];
        // Groups: {0,1} {1,2,3} {3,4}.
        assert_eq!(compact_letters(&[0, 1, 2, 3, 4], &pairs).unwrap(), ["a", "ab", "b", "bc", "c"]);
    }

    #[test]
    fn unequal_precision_can_skip_a_place() {
        // Only 0 and 2 differ, and 1 and 3: four groups of two.
        let found = compact_letters(&[0, 1, 2, 3], &[(0, 2), (1, 3)]).unwrap();
        assert_eq!(found, ["ab", "ac", "cd", "bd"]);
    }

    #[test]
    fn letters_go_on_after_z() {
        let order: Vec<usize> = (0..54).collect();
        let pairs: Vec<_> = order.iter().flat_map(|&a| (0..a).map(move |b| (a, b))).collect();
        let found = compact_letters(&order, &pairs).unwrap();
        assert_eq!([&found[0], &found[25], &found[26], &found[52], &found[53]], ["a", "z", "A", "a1", "b1"]);
    }

    #[test]
    fn disjoint_pairs_do_not_explode() {
        // Without the sweep there would be 2^20 letters.
        let order: Vec<usize> = (0..40).collect();
        let pairs: Vec<_> = (0..20).map(|i| (2 * i, 2 * i + 1)).collect();
        let sets: Vec<_> = compact_letters(&order, &pairs).unwrap().iter().map(|l| split(l)).collect();
        for a in 0..40 {
            for b in 0..a {
                assert_eq!(sets[a].is_disjoint(&sets[b]), pairs.contains(&(b, a)), "{a} {b}");
            }
        }
    }

    #[test]
    fn wrong_input_is_named() {
        assert_eq!(compact_letters(&[0, 0], &[]), Err(LettersError::Order { contender: 0, contenders: 2 }));
        let wrong = LettersError::Pair { first: 1, second: 7, contenders: 2 };
        assert_eq!(compact_letters(&[0, 1], &[(1, 7)]), Err(wrong));
        assert!(compact_letters(&[0, 1], &[(1, 1)]).is_err());
    }

    proptest! {
        #[test]
        fn a_letter_is_shared_exactly_if_not_told_apart(
            k in 1_usize..12,
            bits in prop::collection::vec(any::<bool>(), 66),
            keys in prop::collection::vec(any::<u32>(), 12),
        ) {
            let mut order: Vec<usize> = (0..k).collect();
            order.sort_by_key(|&i| keys[i]);
            let all = (0..k).flat_map(|a| (0..a).map(move |b| (a, b)));
            let pairs: Vec<_> = all.clone().zip(&bits).filter(|(_, told)| **told).map(|(pair, _)| pair).collect();
            let sets: Vec<_> = compact_letters(&order, &pairs).unwrap().iter().map(|l| split(l)).collect();
            prop_assert!(sets[order[0]].contains("a"));
            prop_assert!(sets.iter().all(|s| !s.is_empty()));
            for (a, b) in all {
                prop_assert_eq!(sets[a].is_disjoint(&sets[b]), pairs.contains(&(a, b)));
            }
        }
    }
}
