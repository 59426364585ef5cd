//! The limit of open files for this process and its children: each connection takes one file on either side.
//!
//! Owns: the limit. Must not know: how many are needed.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system allows; contenders inherit it.
///
/// # Errors
/// When the system refuses; the limit is then unchanged.
pub fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return Ok(());
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_raised_to_the_highest_allowed() {
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(512), ..before }).unwrap();
        raise_open_files().unwrap();
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: before.maximum, ..before });
    }
}
