//! Skips tests with a message. A test that silently does nothing is worse than none.

use std::io::Write;

/// Writes to standard error that a test was skipped and why. The test runner does not capture this message. The macro
/// [`skip_loudly!`](crate::skip_loudly) calls this and returns.
///
/// # Panics
/// When `DEADHEAT_NO_SKIP=1` is set: then everything that a test needs must be present.
pub fn skipped(place: &str, why: &str) {
    let forbidden = std::env::var("DEADHEAT_NO_SKIP").is_ok_and(|value| value == "1");
    assert!(!forbidden, "{place} wants to be skipped, which DEADHEAT_NO_SKIP=1 forbids: {why}");
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED {place}: {why}");
}

/// Skips the rest of the test: prints where and why, and returns. Fails when `DEADHEAT_NO_SKIP=1` is set.
/// Takes the arguments of `format!`. Use it in functions that return `()`.
#[macro_export]
macro_rules! skip_loudly {
    ($($why:tt)+) => {{
        $crate::skipped(concat!(module_path!(), " (", file!(), ":", line!(), ")"), &format!($($why)+));
        return;
    }};
}
