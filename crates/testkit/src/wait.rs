//! Waiting for something to become true, with a limit.

use std::path::Path;
use std::time::{Duration, Instant};

/// The longest pause between two looks at a condition. Many tests wait side by side: shorter pauses would cost the races their time.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Checks `condition`, soon at first and then every 20 ms. Returns true once it holds, or false after `limit`.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// How many complete lines (ended by a newline) the file has; 0 when there is no such file.
///
/// # Panics
/// When the file exists and cannot be read.
pub fn line_count(path: &Path) -> usize {
    match std::fs::read(path) {
        Ok(bytes) => bytes.iter().filter(|&&byte| byte == b'\n').count(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Waits until the file has at least `lines` complete lines; false when `limit` has passed first.
pub fn wait_for_lines(path: &Path, lines: usize, limit: Duration) -> bool {
    wait_until(limit, || line_count(path) >= lines)
}
