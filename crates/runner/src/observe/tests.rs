//! Observations on fakes. Must not know: real processes.

use std::rc::Rc;

use super::*;
use crate::fakes::{Character, FakeClock, FakeGenerator, FakeHost, Silence, World};
use crate::parity::ProbeFiles;
use crate::race::tests::plan;

fn observed(world: &Rc<World>) -> Result<Observed, RaceError> {
    let folder = tempfile::tempdir().unwrap();
    let (host, generator, clock) =
        (FakeHost(Rc::clone(world)), FakeGenerator(Rc::clone(world)), FakeClock(Rc::clone(world)));
    let files = ProbeFiles::default();
    let place = Place { host: &host, generator: &generator, clock: &clock, files: &files };
    let stopped = || world.stopped();
    observe(&plan(folder.path(), &["a"]), folder.path().join("logs"), place, &stopped, &mut Silence)
}

#[test]
fn a_contender_is_asked_before_a_load_after_it_and_after_another_start() {
    let world = World::of(&[("a", Character::taking_us(100.0))]);
    let observed = observed(&world).unwrap();
    let starts = observed.probes[0].as_ref().unwrap();
    assert_eq!(starts.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2]);
    let rate = observed.load.unwrap().unwrap();
    assert!((9_500.0..10_500.0).contains(&rate), "{rate}");
    // The first question of each start is that of readiness.
    let calls: Vec<String> = world
        .calls
        .borrow()
        .iter()
        .filter(|call| !call.contains("freeze") && !call.contains("thaw"))
        .cloned()
        .collect();
    assert_eq!(
        calls,
        [
            "start a",
            "ask a",
            "ask a",
            "ask a",
            "ask a",
            "open a",
            "slice a 500",
            "slice a 1000",
            "ask a",
            "stop a",
            "start a",
            "ask a",
            "ask a",
            "ask a",
            "stop a"
        ]
    );
}

#[test]
fn a_contender_that_ends_under_load_is_told_and_an_interruption_is_no_error() {
    let dying = World::of(&[("a", Character { dies_in_slice: Some(1), ..Character::taking_us(100.0) })]);
    let error = observed(&dying).unwrap_err().to_string();
    assert!(error.contains("a ended with") && error.contains("under load"), "{error}");
    assert_eq!(dying.calls.borrow().last().unwrap(), "stop a");
    let interrupted = World::of(&[("a", Character::taking_us(100.0))]);
    interrupted.interrupted_in_slice.set(Some(1));
    assert!(observed(&interrupted).unwrap().interrupted);
    assert_eq!(interrupted.calls.borrow().last().unwrap(), "stop a");
    let silent = World::of(&[("a", Character { cannot_start: true, ..Character::taking_us(100.0) })]);
    assert!(matches!(observed(&silent), Err(RaceError::Start(StartError::Spawn { .. }))));
}
