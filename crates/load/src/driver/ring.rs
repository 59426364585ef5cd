//! Owns: what every user of io_uring does alike: its errors, a flag of what it sends, and its end. Must not know what the operations do.

use io_uring::IoUring;
use io_uring::types::{CancelBuilder, Timespec};
use rustix::io::Errno;

/// `MSG_WAITALL`: a send of less than everything counts as failed. The kernel waits for room first, unless the send
/// must give up at once.
pub(crate) const WAITALL: u32 = 0x100;

/// The error in the result of an operation.
#[inline]
pub(crate) fn errno(result: i32) -> Errno {
    Errno::from_raw_os_error(-result)
}

/// The error of a call.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// What came of handing over and waiting. If the time is over, or the kernel lacks time, room or memory for now, the
/// next call goes on.
#[inline]
pub(crate) fn entered(result: std::io::Result<usize>) -> Result<(), Errno> {
    match result.map_err(|error| errno_of(&error)) {
        Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Hands over what is queued, then cancels everything in flight and takes the buffers back. Returns whether the kernel
/// certainly uses no more memory: only then may it be freed.
pub(crate) fn cancel_all(ring: &IoUring, group: u16) -> bool {
    let _ = ring.submit();
    let limit = Timespec::new().sec(5);
    let cancelled = ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any());
    let nothing_left = match cancelled {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    let unregistered = ring.submitter().unregister_buf_ring(group).is_ok();
    nothing_left && unregistered
}
