//! JavaScriptCore's log of collections, `logGC`, as Bun has it.
//!
//! Owns its format. Must not know files, processes, or what follows from pauses.
//!
//! A collection is written piece by piece (`Source/JavaScriptCore/heap/Heap.cpp` in WebKit):
//!
//! ```text
//! [GC<0x7f0d20000048>: START M 4480kb => EdenCollection, v=0kb (N:0) o=0 b=12 i#0 0+0 v=812kb ... p=0.93ms (max 1.2)...]
//! [GC<0x7f0d20000048>: M v=931kb ... => 2240kb, p=0.41ms (max 1.2), cycle 1.9ms END]
//! ```
//!
//! Each `p=` is the time from a stop of JavaScript to its resumption. A collection that lets it run in between has several.
//! Several processes write into each other's lines, so that pauses are looked for wherever they stand in one.

use deadheat_record::Pauses;

use super::ns_of_ms;

/// What every collection begins with.
const HEAD: &str = "[GC<";

/// Takes in a line; whether a collector wrote in it.
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
    use super::*;

    fn read(text: &str) -> Option<Vec<u64>> {
        let mut pauses = Pauses::default();
        line(text, &mut pauses).then_some(pauses.each_ns)
    }

    #[test]
    fn every_stop_of_a_collection_is_a_pause() {
        let first =
            "[GC<0x7f>: START M 4480kb => EdenCollection, v=0kb (N:0) o=0 b=12 0+0 p=0.93ms (max 1.25)...]";
        assert_eq!(read(first), Some(vec![930_000]));
        assert_eq!(read("[GC<0x7f>: C v=9kb p=2ms (max 2), cycle 20.5ms END]"), Some(vec![2_000_000]));
        assert_eq!(read("[GC: p=0.5 ms (max 2), cycle 20 ms END]"), Some(vec![500_000]));
        let woven = "[GC<0x7f>: START M 1kb [GC<0x80>: START M 2kb p=1ms (max 1), cycle p=3ms (max 3), cycle 4ms END]";
        assert_eq!(read(woven), Some(vec![1_000_000, 3_000_000]));
    }

    #[test]
    fn a_collector_is_heard_without_pauses_too() {
        assert_eq!(read("[GC<0x7f0d20000048>: starting 0.031ms]"), Some(vec![]));
        for text in
            ["", "GC END!", "http=3ms (max 4)", "p=ms (max 1)", "p=-1ms (max 1)", "p=1ms", "p=é1ms (max "]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
