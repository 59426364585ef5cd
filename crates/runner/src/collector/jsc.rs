//! JavaScriptCore's log of collections, `logGC`, as in Bun.
//!
//! Owns its format. Must not know files, processes, or what follows from pauses.
//!
//! A collection is written in parts (`Source/JavaScriptCore/heap/Heap.cpp` in WebKit):
//!
//! ```text
//! [GC<0x5a3ae79c118>: START M 1840kb => EdenCollection, ... v=416kb (C:416 M:0 P1:0) o=1 b=0 78+0 p=7.096129ms (max 7.096129)...]
//! [GC<0x5a3ae79c118>: M ... => 1271kb, p=3.701093ms (max 7.096129), cycle 11.889872ms END]
//! ```
//!
//! Each `p=` is the time from when JavaScript stops until it resumes. A collection that lets JavaScript run in between has several.
//! Several processes may write into the same line, so the reader looks for pauses anywhere in a line.

use deadheat_record::Pauses;

use super::ns_of_ms;

/// The start of every collection.
const HEAD: &str = "[GC<";

/// Reads a line. Returns whether a collector wrote in it.
pub(super) fn line(text: &str, pauses: &mut Pauses) -> bool {
    let mut known = text.contains(HEAD);
    for (at, _) in text.match_indices("p=") {
        let apart = !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
        if let Some(ns) = pause(&text[at + 2..]).filter(|_| apart) {
            pauses.add(ns);
            known = true;
        }
    }
    known
}

/// `0.93ms (max 1.2)`, in older versions `0.93 ms (max`.
fn pause(text: &str) -> Option<u64> {
    let (pause, rest) = text.split_once("ms")?;
    rest.starts_with(" (max ").then(|| ns_of_ms(pause.trim_end())).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::tests::each;
    use super::*;

    fn read(text: &str) -> Option<Vec<u64>> {
        each(line, text)
    }

    #[test]
    fn every_stop_of_a_collection_is_a_pause() {
        // Bun 1.4.5.
        let first = "[GC<0x5a3ae79c118>: START M 1840kb => EdenCollection, a=0kb hf=0.000 mu=0.600 v=0kb (C:0 M:0 P1:0) o=0 b=0 i#1:N<CsMsrShDMsm(0)SrbBcs> 594+0 v=416kb (C:416 M:0 P1:0) o=1 b=0 78+0 p=7.096129ms (max 7.096129)...]";
        assert_eq!(read(first), Some(vec![7_096_129]));
        let second = "[GC<0x5a3ae79c118>: M a=17kb hf=0.002 mu=0.599 v=881kb (C:681 M:0 P1:199) o=2 b=21 i#2:N<WsOJw>Pbc 0+21 v=884kb (C:682 M:0 P1:201) o=2 b=21 i#5:P<Msm(0)SrbCsMsrShDBcsCbDomoWsOJw>Pbc => 1271kb, p=3.701093ms (max 7.096129), cycle 11.889872ms END]";
        assert_eq!(read(second), Some(vec![3_701_093]));
        assert_eq!(read("[GC<0x7f>: C v=9kb p=2ms (max 2), cycle 20.5ms END]"), Some(vec![2_000_000]));
        assert_eq!(read("[GC: p=0.5 ms (max 2), cycle 20 ms END]"), Some(vec![500_000]));
        let woven = "[GC<0x7f>: START M 1kb [GC<0x80>: START M 2kb p=1ms (max 1), cycle p=3ms (max 3), cycle 4ms END]";
        assert_eq!(read(woven), Some(vec![1_000_000, 3_000_000]));
    }

    #[test]
    fn a_collector_is_heard_without_pauses_too() {
        assert_eq!(read("[GC<0x5a3ae79c118>: starting 0.049785ms]"), Some(vec![]));
        for text in
            ["", "GC END!", "http=3ms (max 4)", "p=ms (max 1)", "p=-1ms (max 1)", "p=1ms", "p=é1ms (max "]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
