//! Owns: sets of status codes and their text form. Must not know the other checks of an answer.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A set of status codes from 100 to 599. It is small, of fixed size and without indirection, because every answer is
/// checked against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct StatusSet {
    bits: [u64; 8],
}

const FIRST: u16 = 100;
const LAST: u16 = 599;

/// Why a text is not a set of status codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {position} of the status codes: found {found:?}; allowed is {ALLOWED}")]
pub struct StatusSetError {
    /// Position in characters, from 1.
    pub position: usize,
    /// The text found there, up to the next comma.
    pub found: String,
}

const ALLOWED: &str = "a code from 100 to 599, a class such as 2xx, or a range such as 301-399";

impl StatusSet {
    /// The codes of a range, without those outside 100 to 599.
    pub fn range(codes: RangeInclusive<u16>) -> StatusSet {
        let mut set = StatusSet::default();
        for code in (*codes.start()).max(FIRST)..=(*codes.end()).min(LAST) {
            let bit = code - FIRST;
            set.bits[usize::from(bit / 64)] |= 1 << (bit % 64);
        }
        set
    }

    /// The union of both sets.
    pub fn or(mut self, other: StatusSet) -> StatusSet {
        self.bits.iter_mut().zip(other.bits).for_each(|(mine, theirs)| *mine |= theirs);
        self
    }

    /// Whether `status` is in the set.
    #[inline]
    pub fn contains(&self, status: u16) -> bool {
        let bit = status.wrapping_sub(FIRST);
        self.bits.get(usize::from(bit / 64)).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// The codes, ascending, as ranges that are not adjacent.
    pub fn ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
        for code in (FIRST..=LAST).filter(|code| self.contains(*code)) {
            match ranges.last_mut() {
                Some(last) if last.end() + 1 == code => *last = *last.start()..=code,
                _ => ranges.push(code..=code),
            }
        }
        ranges
    }
}

impl FromIterator<u16> for StatusSet {
    /// Ignores codes outside 100 to 599.
    fn from_iter<I: IntoIterator<Item = u16>>(codes: I) -> StatusSet {
        codes.into_iter().fold(StatusSet::default(), |set, code| set.or(StatusSet::range(code..=code)))
    }
}

/// Parses codes, classes and ranges separated by commas: `200,204,301-399,2xx`.
impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<StatusSet, StatusSetError> {
        let (mut set, mut position) = (StatusSet::default(), 1);
        for part in text.split(',') {
            let codes = codes(part).ok_or_else(|| StatusSetError { position, found: part.to_owned() })?;
            set = set.or(StatusSet::range(codes));
            position += part.chars().count() + 1;
        }
        Ok(set)
    }
}

fn codes(part: &str) -> Option<RangeInclusive<u16>> {
    if let [digit @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] = part.as_bytes() {
        let first = u16::from(digit - b'0') * 100;
        return Some(first..=first + 99);
    }
    let code = |text: &str| {
        let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let code: u16 = if digits { text.parse().ok()? } else { return None };
        (FIRST..=LAST).contains(&code).then_some(code)
    };
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let (first, last) = (code(first)?, code(last)?);
    (first <= last).then_some(first..=last)
}

/// Writes the shortest form that parses to the same set, ascending.
impl fmt::Display for StatusSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges().iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match (*range.start(), *range.end()) {
                (first, last) if first == last => write!(out, "{comma}{first}")?,
                (first, last) if first % 100 == 0 && last == first + 99 => {
                    write!(out, "{comma}{}xx", first / 100)?;
                }
                (first, last) => write!(out, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sets_are_read_and_written() {
        for (text, within, without, written) in [
            ("200", vec![200], vec![0, 99, 199, 201, 264, 328, 600, 999, u16::MAX], "200"),
            ("200,204,301-399,2xx", vec![200, 299, 301, 399], vec![199, 300, 400], "2xx,301-399"),
            ("2XX,3xx", vec![200, 300, 399], vec![199, 400], "200-399"),
            ("599,100", vec![100, 599], vec![101, 598, 600, 611, 612], "100,599"),
            ("404,404-406,405-409", vec![404, 409], vec![403, 410], "404-409"),
            ("1xx,5xx", vec![100, 199, 500, 599], vec![99, 200, 499, 600], "1xx,5xx"),
        ] {
            let set: StatusSet = text.parse().unwrap();
            assert!(within.iter().all(|code| set.contains(*code)), "{text}");
            assert!(!without.iter().any(|code| set.contains(*code)), "{text}");
            assert_eq!(set.to_string(), written);
        }
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for (text, position, found) in [
            ("", 1, ""),
            ("20", 1, "20"),
            ("2000", 1, "2000"),
            ("099", 1, "099"),
            ("600", 1, "600"),
            ("200,", 5, ""),
            ("200, 204", 5, " 204"),
            ("200,6xx", 5, "6xx"),
            ("ü,200", 1, "ü"),
            ("2xx,ü", 5, "ü"),
            ("204-200", 1, "204-200"),
            ("200-", 1, "200-"),
            ("200-2xx", 1, "200-2xx"),
            ("+20", 1, "+20"),
        ] {
            let wanted = StatusSetError { position, found: found.to_owned() };
            assert_eq!(text.parse::<StatusSet>(), Err(wanted), "{text}");
        }
        assert!("x".parse::<StatusSet>().unwrap_err().to_string().contains("found \"x\"; allowed is a code"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(codes in prop::collection::btree_set(100..600u16, 1..80)) {
            let set: StatusSet = codes.iter().copied().collect();
            prop_assert!((0..1000).all(|code| set.contains(code) == codes.contains(&code)));
            prop_assert_eq!(set.to_string().parse(), Ok(set));
        }
    }

    #[test]
    fn codes_that_are_none_are_left_out() {
        assert_eq!(StatusSet::from_iter([0, 99, 600, u16::MAX]), StatusSet::default());
        assert_eq!(StatusSet::range(0..=u16::MAX).to_string(), "100-599");
    }
}
