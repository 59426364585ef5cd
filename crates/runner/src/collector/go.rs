//! The log of Go's collector, `GODEBUG=gctrace=1`.
//!
//! Owns its format. Must not know files, processes, or what follows from pauses.
//!
//! A collection is one line (documentation of package `runtime`, Environment Variables):
//!
//! ```text
//! gc 5 @0.456s 0%: 0.38+1.7+0.004 ms clock, 0.77+0.022/1.6/0.058+0.008 ms cpu, 3->3->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P
//! ```
//!
//! The three clock times are those of its phases: sweep termination, concurrent mark and scan, and mark termination. The first and the
//! last stop the world, so each line reports two pauses.

use deadheat_record::Pauses;

use super::ns_of_ms;

/// Reads a line. Returns whether it reports a collection.
pub(super) fn line(text: &str, pauses: &mut Pauses) -> bool {
    let Some(both) = collection(text) else { return false };
    both.into_iter().for_each(|ns| pauses.add(ns));
    true
}

fn collection(text: &str) -> Option<[u64; 2]> {
    let (number, rest) = text.strip_prefix("gc ")?.split_once(" @")?;
    number.parse::<u64>().ok()?;
    let (clock, _) = rest.split_once(": ")?.1.split_once(" ms clock")?;
    let mut phases = clock.split('+');
    let (sweep, _, mark) = (phases.next()?, phases.next()?, phases.next()?);
    if phases.next().is_some() {
        return None;
    }
    Some([ns_of_ms(sweep)?, ns_of_ms(mark)?])
}

#[cfg(test)]
mod tests {
    use super::super::tests::each;
    use super::*;

    fn read(text: &str) -> Option<Vec<u64>> {
        each(line, text)
    }

    #[test]
    fn the_world_stops_twice_in_a_collection() {
        // Go 1.26.8.
        let text = "gc 5 @0.456s 0%: 0.38+1.7+0.004 ms clock, 0.77+0.022/1.6/0.058+0.008 ms cpu, 3->3->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P";
        assert_eq!(read(text), Some(vec![380_000, 4_000]));
        let forced = "gc 12 @10.1s 0%: 1+2+3 ms clock, 1+0/1/1+1 ms cpu, 1->1->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)";
        assert_eq!(read(forced), Some(vec![1_000_000, 3_000_000]));
    }

    #[test]
    fn other_lines_are_none() {
        for text in [
            "",
            "gc 3 @0.024s 1%: 0.022+1.0 ms clock",
            "gc 3 @0.024s 1%: 0.022+1.0+0.008+1 ms clock",
            "gc x @0.024s 1%: 0.022+1.0+0.008 ms clock",
            "gc 3 @0.024s 1%: 0.022+1.0+inf ms clock",
            "scvg: 8 KB released",
            "2026/11/21 gc 3 @0.024s 1%: 0.022+1.0+0.008 ms clock",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
