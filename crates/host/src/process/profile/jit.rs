//! The code that runtimes compile while they run, as they describe it in files: perf maps (`/tmp/perf-PID.map`) and jit dumps.
//!
//! Owns: both formats. Must not know: how a runtime is made to write them, and what its names mean.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The map that `perf` and runtimes agree on for a process.
pub(super) fn perf_map_of(pid: i32) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

/// Names of address ranges. A later entry replaces earlier ones that it overlaps, because runtimes use freed memory again.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CodeMap {
    /// By first address: the address after the last one, and the name.
    ranges: BTreeMap<u64, (u64, String)>,
}

impl CodeMap {
    /// Adds the entries of a perf map: lines with the address and the size in hexadecimal digits, and a name. Other lines are skipped.
    pub(super) fn add_perf_map(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            let mut parts = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
            let (Some(from), Some(size)) = (number(), number()) else { continue };
            self.add(from, size, parts.next().unwrap_or_default());
        }
    }

    /// Adds the entries of a jit dump for the given process: see `jitdump-specification.txt` of `perf`. Reads up to the first incomplete record.
    pub(super) fn add_jit_dump(&mut self, dump: &[u8], pid: u32) {
        let Some(header) = header_of(dump).filter(|header| header.pid == pid) else { return };
        let mut at = header.length;
        while let (Some(kind), Some(size)) = (u32_at(dump, at), u32_at(dump, at + 4)) {
            let Some(record) = dump.get(at..at + size as usize).filter(|record| record.len() >= 16) else {
                return;
            };
            if kind == CODE_LOAD {
                self.add_load(record);
            }
            at += record.len();
        }
    }

    fn add_load(&mut self, record: &[u8]) {
        let number = |at| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let (Some(from), Some(size), Some(name)) = (number(24 + 8), number(24 + 16), record.get(24 + 32..))
        else {
            return;
        };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        self.add(from, size, &String::from_utf8_lossy(name));
    }

    fn add(&mut self, from: u64, size: u64, name: &str) {
        let Some(to) = from.checked_add(size).filter(|to| *to > from) else { return };
        let before = self.ranges.range(..to).rev().take_while(|(_, (end, _))| *end > from);
        let replaced: Vec<u64> = before.map(|(start, _)| *start).collect();
        replaced.iter().for_each(|start| drop(self.ranges.remove(start)));
        self.ranges.insert(from, (to, name.to_owned()));
    }

    /// Whether no code was compiled.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The name of the code at an address.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let (_, (to, name)) = self.ranges.range(..=address).next_back()?;
        (address < *to).then_some(name)
    }
}

/// The kind of a record that describes new code.
const CODE_LOAD: u32 = 0;
/// `JiTD`, as a number in the byte order of the machine that wrote the dump.
const MAGIC: u32 = 0x4A69_5444;

struct Header {
    length: usize,
    pid: u32,
}

fn header_of(dump: &[u8]) -> Option<Header> {
    let number = |at| u32_at(dump, at);
    (number(0)? == MAGIC).then_some(())?;
    Some(Header { length: number(8)? as usize, pid: number(20)? })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_perf_map_is_read_and_later_code_replaces_earlier() {
        let mut map = CodeMap::default();
        map.add_perf_map(b"1000 100 JS:~a /s.js:1:1\nno line\n0x1100 0x20 b\n1f00 ff\n1080 10 c d\nzz 1 e\nffffffffffffffff 2 f");
        let names = [0x0fff, 0x1000, 0x1080, 0x108f, 0x1090, 0x111f, 0x1120].map(|at| map.name(at));
        // The earlier code was freed as a whole, although only a part of its memory is in use again.
        assert_eq!(names, [None, None, Some("c d"), Some("c d"), None, Some("b"), None]);
    }

    /// A jit dump with one function, as JavaScriptCore writes it.
    fn dump(pid: u32) -> Vec<u8> {
        let mut dump = Vec::new();
        for word in [MAGIC, 1, 40, 62, 0, pid, 0, 0, 0, 0] {
            dump.extend(word.to_le_bytes());
        }
        let name = b"JSC-FTL: slow#Abc\0code";
        for (kind, size) in [(2_u32, 16_usize), (CODE_LOAD, 56 + name.len())] {
            dump.extend(kind.to_le_bytes());
            dump.extend((size as u32).to_le_bytes());
            dump.extend(0_u64.to_le_bytes());
        }
        dump.extend([pid.to_le_bytes(), pid.to_le_bytes()].concat());
        for number in [0x7000_u64, 0x7000, 0x80, 1] {
            dump.extend(number.to_le_bytes());
        }
        dump.extend(name);
        dump
    }

    #[test]
    fn a_jit_dump_is_read_if_it_is_that_of_the_process() {
        let mut map = CodeMap::default();
        map.add_jit_dump(&dump(7), 8);
        assert_eq!(map, CodeMap::default(), "another process");
        map.add_jit_dump(&dump(7), 7);
        assert_eq!(
            [0x6fff, 0x7000, 0x707f, 0x7080].map(|at| map.name(at).is_some()),
            [false, true, true, false]
        );
        assert_eq!(map.name(0x7000), Some("JSC-FTL: slow#Abc"));
    }

    proptest! {
        #[test]
        fn nothing_in_a_file_breaks_a_reader(mut dump in Just(dump(7)), cut in 0_usize..200, at in 0_usize..160, byte: u8, text: Vec<u8>) {
            let mut map = CodeMap::default();
            map.add_perf_map(&text);
            if let Some(one) = dump.get_mut(at) {
                *one = byte;
            }
            dump.truncate(cut);
            map.add_jit_dump(&dump, 7);
            map.add_jit_dump(&text, 7);
            let ends: Vec<(u64, u64)> = map.ranges.iter().map(|(from, (to, _))| (*from, *to)).collect();
            prop_assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "ranges do not overlap");
        }
    }
}
