//! Owns: tests with real processes that burn CPU time. They need no idle machine: they count samples relative to each other.

use super::*;
use crate::process::held_shell::{end, go_on, waiting};

#[test]
fn a_tree_is_sampled_and_its_functions_have_names() {
    // The parentheses make a second process.
    let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let mut shell = waiting(&format!("({burn}; :); {burn}"));
    let profiler = match Profiler::open(Pid::from_child(&shell)) {
        Ok(profiler) => profiler,
        Err(error) => {
            assert!(can_be_sampled().is_err(), "{error}");
            return end(shell);
        }
    };
    profiler.begin().unwrap();
    assert_eq!(profiler.begin(), Err(ProfileError::NotStarted), "only once");
    go_on(&mut shell);
    let nowhere = Path::new("/nonexistent");
    let stacks = profiler.end(nowhere).unwrap();
    assert_eq!(profiler.end(nowhere), Err(ProfileError::NotStarted));
    assert!(stacks.samples > 100, "{} samples", stacks.samples);
    assert_eq!(stacks.functions.iter().map(|one| one.own).sum::<u64>(), stacks.samples);
    let named = stacks.functions.iter().filter(|one| one.name != Stacks::UNNAMED && one.own > 0);
    assert!(named.count() > 3, "the C library has symbols: {:?}", stacks.functions);
    assert!(profiler.starts.lock().is_ok_and(|mut starts| {
        starts.read();
        starts.seen.len() >= 2
    }));
    end(shell);
}

#[test]
fn maps_of_the_tree_are_removed_and_no_others() {
    let mut shell = waiting(": > /tmp/perf-$$.map; sh -c ': > /tmp/perf-$$.map'");
    let pid = Pid::from_child(&shell);
    let Ok(profiler) = Profiler::open(pid) else { return end(shell) };
    let foreign = format!("/tmp/perf-{}.map", i32::MAX);
    fs::write(&foreign, "").unwrap();
    go_on(&mut shell);
    let map = perf_map_of(pid.as_raw_nonzero().get());
    assert!(map.exists());
    end(shell);
    profiler.remove_maps();
    let left = profiler.starts.lock().unwrap().seen.iter().filter(|pid| perf_map_of(**pid).exists()).count();
    assert_eq!((map.exists(), left, Path::new(&foreign).exists()), (false, 0, true));
    fs::remove_file(foreign).unwrap();
}
