//! V8's log of collections, `--trace-gc`.
//!
//! Owns its format. Must not know files, processes, or what follows from pauses.
//!
//! A collection is one line (`GCTracer::Print` in V8's `src/heap/gc-tracer.cc`):
//!
//! ```text
//! [PID:ISOLATE]     N ms: Scavenge 4.5 (5.5) -> 4.0 (6.2) MB, pooled: 0.0 MB, 3.24 / 0.00 ms (average mu = ...) ...;
//! [PID:ISOLATE]     N ms: Incremental Mark-Compact 202.5 (231.0) -> 39.4 (81.5) MB, pooled: 140.5 MB, 27.72 / 0.00 ms
//!     (+ 7.4 ms in 24 steps since start of marking, biggest step 5.8 ms, walltime since start of marking 64 ms) ...;
//! ```
//!
//! The figure before ` / ` is what V8 calls the observable pause: the time for which JavaScript stops. The figure after it is the part
//! spent in the embedder's callbacks. Marking in earlier steps stopped JavaScript at each step; the log reports only the number of steps,
//! their sum and the longest. Marking and sweeping on other threads beside JavaScript are not pauses.

use deadheat_record::Pauses;

use super::ns_of_ms;

/// Reads a line. Returns whether it reports one of V8's collections.
pub(super) fn line(text: &str, pauses: &mut Pauses) -> bool {
    let Some((pause_ns, rest)) = collection(text) else { return false };
    pauses.add(pause_ns);
    if let Some((count, total_ns, longest_ns)) = steps(rest) {
        pauses.add_sum(count, total_ns, longest_ns);
    }
    true
}

/// The pause, and the text after it.
fn collection(text: &str) -> Option<(u64, &str)> {
    let (head, rest) = text.split_once(" ms: ")?;
    let (process, since) = head.strip_prefix('[')?.split_once(']')?;
    let (pid, _) = process.split_once(':')?;
    let is_head = pid.parse::<u32>().is_ok() && since.trim_start().parse::<f64>().is_ok();
    // Every version prints sizes before the pause; only some print the pooled size.
    let (_, rest) = rest.split_once(" -> ").filter(|_| is_head)?;
    let (before, rest) = rest.split_once(" / ")?;
    let (external, rest) = rest.split_once(" ms")?;
    external.parse::<f64>().ok()?;
    let (_, pause) = before.rsplit_once(' ')?;
    Some((ns_of_ms(pause)?, rest))
}

/// Steps of marking: number, sum, longest.
fn steps(rest: &str) -> Option<(u64, u64, u64)> {
    let (total, rest) = rest.split_once("(+ ")?.1.split_once(" ms in ")?;
    let (count, rest) = rest.split_once(" steps")?;
    let (longest, _) = rest.split_once("biggest step ")?.1.split_once(" ms")?;
    let (total_ns, longest_ns) = (ns_of_ms(total)?, ns_of_ms(longest)?);
    // After rounding, the longest step may exceed the sum.
    Some((count.parse().ok()?, total_ns.max(longest_ns), longest_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Pauses> {
        let mut pauses = Pauses::default();
        line(text, &mut pauses).then_some(pauses)
    }

    fn one(ns: u64) -> Option<Pauses> {
        let mut pauses = Pauses::default();
        pauses.add(ns);
        Some(pauses)
    }

    #[test]
    fn a_line_tells_its_pause_in_every_version() {
        for text in [
            // Node.js 26.10 and 20.20, Deno 2.9, and older versions.
            "[19283:0x2b018000]      213 ms: Scavenge 5.8 (6.6) -> 5.3 (7.4) MB, pooled: 0.0 MB, 1.30 / 0.00 ms (average mu = 1.000, current mu = 1.000) allocation failure; ",
            "[31667:0x36840c40]     2600 ms: Scavenge 6.7 (9.5) -> 4.9 (9.5) MB, 1.30 / 0.00 ms  (average mu = 1.000, current mu = 1.000) task; ",
            "[19520:0x557cd1dba000]     2659 ms: Scavenge 8.7 (11.4) -> 7.0 (11.4) MB, pooled: 0.0 MB, 1.30 / 0.00 ms (average mu = 1.000, current mu = 1.000) allocation failure; ",
            "[3091:0x7fb5e4a79b70]       18 ms: Scavenge 2.6 (3.8) -> 2.2 (4.6) MB, 1.3 / 0.0 ms  (average mu = 1.000, current mu = 1.000) allocation failure",
            "[86424:0x163DC391000]   125633 ms: Scavenge (interleaved) 4084.3 (4091.7) -> 4081.4 (4100.2) MB, pooled: 0 MB, 1.30 / 0.00 ms  (average mu = 0.193, current mu = 0.142) allocation failure;",
            "[1:0x5555]       33 ms: Mark-sweep 2.6 (3.8) -> 2.2 (4.6) MB, 1.3 / 0 ms  last resort",
        ] {
            assert_eq!(read(text), one(1_300_000), "{text}");
        }
    }

    #[test]
    fn steps_of_marking_are_pauses_too() {
        // Node.js 26.10.
        let text = "[18315:0x1660b000]      755 ms: Incremental Mark-Compact 202.5 (231.0) -> 39.4 (81.5) MB, pooled: 140.5 MB, 27.72 / 0.00 ms (+ 7.4 ms in 24 steps since start of marking, biggest step 5.8 ms, walltime since start of marking 64 ms) (average mu = 0.921, current mu = 0.913) finalize incremental marking via task; GC in old space requested";
        let pauses = read(text).unwrap();
        assert_eq!((pauses.count, pauses.total_ns, pauses.longest_ns), (25, 35_120_000, 27_720_000));
        assert_eq!((&pauses.each_ns[..], pauses.omitted), (&[27_720_000][..], 24));
    }

    #[test]
    fn other_lines_are_none() {
        for text in [
            "",
            "listening on 127.0.0.1:81 after 12 ms: 1 -> 2 MB, 3 / 4 ms",
            "[3091:0x7fb5e4a79b70]       18 ms: Scavenge 2.6 (3.8) -> 2.2 (4.6) MB, nan / 0.0 ms",
            "[3091:0x7fb5e4a79b70]       18 ms: Scavenge 2.6 (3.8) -> 2.2 (4.6) MB, -1 / 0.0 ms",
            "[3091:0x7fb5e4a79b70]       18 ms: Scavenge 2.6 (3.8) -> 2.2 (4",
            "[3091:0x7fb5e4a79b70] Memory allocator,       used:   9532 KB, available: 2136036 KB",
            ".3 / 0.0 ms  (average mu = 1.000, current mu = 1.000) allocation failure",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
