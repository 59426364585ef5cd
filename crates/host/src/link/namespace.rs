//! Network namespaces without a name.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The namespace of the thread that opens this file.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace. It exists as long as this value or a process in it.
#[derive(Debug)]
pub(super) struct Namespace(File);

impl Namespace {
    /// A new one, in which nothing can be reached.
    pub(super) fn new() -> io::Result<Self> {
        let made = thread::Builder::new().name("namespace".into()).spawn(|| {
            #[expect(unsafe_code, reason = "the flag that makes this unsafe is another one")]
            // SAFETY: without `FILES`, file descriptors stay shared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Self::current()
        })?;
        made.join().unwrap_or_else(|_| Err(io::Error::other("a defect of deadheat")))
    }

    /// That of the calling thread.
    pub(super) fn current() -> io::Result<Self> {
        Ok(Self(File::open(OWN)?))
    }

    pub(super) fn borrow(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The calling thread, and what it starts from now on, is in this namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Runs `what` in this namespace. Threads and processes that it starts stay there; the calling thread comes back, also if `what` panics.
    pub(super) fn inside<T>(&self, what: impl FnOnce() -> T) -> io::Result<T> {
        struct Back(Namespace);
        impl Drop for Back {
            fn drop(&mut self) {
                // Nothing that follows would be where it belongs.
                if self.0.enter().is_err() {
                    std::process::abort();
                }
            }
        }
        let _back = Back(Self::current()?);
        self.enter()?;
        Ok(what())
    }
}
