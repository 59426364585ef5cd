//! Owns: tests of a log's window, and a test that no log content breaks a reader.

use super::*;
use proptest::prelude::*;

const GO: &str = "gc 1 @0.1s 0%: 1+5+2 ms clock, 1+0/1/1+1 ms cpu, 1->1->0 MB, 4 MB goal, 2 P\n";

/// The pauses that a reader finds in a line; none if the line is not from its collector.
pub(super) fn each(reader: fn(&str, &mut Pauses) -> bool, line: &str) -> Option<Vec<u64>> {
    let mut pauses = Pauses::default();
    reader(line, &mut pauses).then_some(pauses.each_ns)
}

fn pauses(reading: &GcLog) -> (&[u64], u64, u64) {
    (&reading.pauses.each_ns, reading.pauses.total_ns, reading.pauses.longest_ns)
}

#[test]
fn a_line_belongs_where_it_begins() {
    let log = format!("up\n{GO}{GO}{GO}");
    let (first, length) = (3, GO.len() as u64);
    let count = |window: Range<u64>| {
        let reading = read(CollectorKind::Go, log.as_bytes(), &window);
        assert!(reading.heard);
        reading.pauses.count
    };
    assert_eq!(count(0..log.len() as u64), 6);
    assert_eq!(count(first..first + 1), 2, "its end comes after the load");
    assert_eq!(count(first + 1..first + length + 1), 2, "the first began before the load");
    assert_eq!(count(first + 1..first + length), 0, "logging is on, and there was no pause");
    let reading = read(CollectorKind::Go, log.as_bytes(), &(first..first + length));
    assert_eq!(pauses(&reading), (&[1_000_000, 2_000_000][..], 3_000_000, 2_000_000));
    assert!(!read(CollectorKind::V8, log.as_bytes(), &(0..100)).heard, "another's log says nothing");
}

#[test]
fn lines_of_many_processes_are_read_one_by_one() {
    let line = |pid: u32, ms: &str| {
        format!("[{pid}:0x7f]     18 ms: Scavenge 2.6 (3.8) -> 2.2 (4.6) MB, {ms} / 0.0 ms  (x) y;\n")
    };
    let torn = "[7:0x7f]     18 ms: Scav\u{0}enge\nerror: \u{fffd} -> 3 / 4 ms\n";
    let log = [&line(1, "1.0"), torn, &line(2, "0.5"), &line(1, "2.25")].concat();
    let reading = read(CollectorKind::V8, log.as_bytes(), &(0..log.len() as u64));
    assert_eq!(pauses(&reading), (&[1_000_000, 500_000, 2_250_000][..], 3_750_000, 2_250_000));
}

#[test]
fn times_are_milliseconds() {
    assert_eq!(
        [ns_of_ms("1.05"), ns_of_ms("0"), ns_of_ms("12")],
        [Some(1_050_000), Some(0), Some(12_000_000)]
    );
    for text in ["", "-1", "nan", "inf", "1e99", "1 ms", "0x1"] {
        assert_eq!(ns_of_ms(text), None, "{text}");
    }
}

/// Bytes that look much like a log.
fn log() -> impl Strategy<Value = Vec<u8>> {
    let parts = [
        "[1:0x7f]     18 ms: ",
        "Scavenge 2.6 (3.8) -> 2.2 (4.6) MB, ",
        "1.3 / 0.0 ms",
        "  (+ 5.5 ms in 2 steps",
        " biggest step 4.1 ms",
        "[GC<0x7f>: START M 1kb ",
        "p=",
        "0.5ms (max 2)",
        "gc 3 @0.1s 1%: ",
        "1+2+3 ms clock",
        "\n",
        "é",
        "1e999",
        "-",
        " ms: ",
        " -> ",
        " / ",
        "99999999999999999999 steps",
    ];
    let part = prop_oneof![
        4 => prop::sample::select(parts.to_vec()).prop_map(|part| part.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn nothing_in_a_log_breaks_a_reader(log in log(), from in 0_u64..500, length in 0_u64..500) {
        for kind in CollectorKind::ALL {
            let all = read(kind, &log, &(0..u64::MAX)).pauses;
            let part = read(kind, &log, &(from..from + length)).pauses;
            for pauses in [&all, &part] {
                prop_assert!(pauses.longest_ns <= pauses.total_ns);
                prop_assert_eq!(pauses.each_ns.len() as u64 + pauses.omitted, pauses.count);
            }
            prop_assert!(part.count <= all.count && part.total_ns <= all.total_ns);
        }
    }
}
