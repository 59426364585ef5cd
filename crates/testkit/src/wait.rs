//! Waiting for something to become true, with a limit.

use std::path::Path;
use std::time::{Duration, Instant};

/// Checks `condition` every few milliseconds. Returns true once it holds, or false after `limit`.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
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
