//! Owns: receive buffers that the kernel picks from a ring shared with it. The kernel writes to this memory, so the
//! owner must keep the buffers until nothing is in flight. Must not know what is received.
#![allow(
    unsafe_code,
    reason = "what is handed to the kernel must be vouched for; each use says why it holds"
)]

use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; 4096]);

/// A group of buffers of one size.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The ring: an entry of 16 bytes for each buffer, on separate pages.
    ring: Vec<Page>,
    memory: Vec<Page>,
    count: u16,
    size: usize,
    tail: u16,
}

impl Buffers {
    /// Registers `count` (a power of two) buffers of `size` bytes (a multiple of 4,096). Keep them until the ring has
    /// nothing in flight or they are unregistered.
    pub(crate) fn new(ring: &mut IoUring, group: u16, count: u16, size: usize) -> std::io::Result<Buffers> {
        let page = Page([0; 4096]);
        let entries = usize::from(count) * size_of::<BufRingEntry>();
        let mut buffers = Buffers {
            ring: vec![page; entries.div_ceil(size_of::<Page>())],
            memory: vec![page; usize::from(count) * size / size_of::<Page>()],
            count,
            size,
            tail: 0,
        };
        let address = buffers.ring.as_ptr() as u64;
        // SAFETY: the pages are aligned, large enough for the entries, never moved, and outlive the registration (every
        // caller of `new` must ensure that).
        unsafe { ring.submitter().register_buf_ring_with_flags(address, count, group, 0) }?;
        (0..count).for_each(|id| buffers.give(id));
        buffers.publish();
        Ok(buffers)
    }

    /// Gives a buffer to the kernel; it takes effect with the next [`Buffers::publish`].
    #[inline]
    pub(crate) fn give(&mut self, id: u16) {
        assert!(id < self.count);
        let place = usize::from(self.tail & (self.count - 1));
        let start = usize::from(id) * self.size;
        // SAFETY: `place` is below the count, so the ring has room for it. The kernel does not read the entry before
        // the tail advances. The buffer's address lies within `memory`, because its ID is below the count.
        unsafe {
            let entry = &mut *self.ring.as_mut_ptr().cast::<BufRingEntry>().add(place);
            entry.set_addr(self.memory.as_mut_ptr().cast::<u8>().add(start) as u64);
            entry.set_len(self.size as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes the buffers given since the last call visible to the kernel.
    #[inline]
    pub(crate) fn publish(&self) {
        // SAFETY: the tail lies within the ring's first entry, is aligned for 16 bits, and only this process writes it.
        unsafe {
            let tail = BufRingEntry::tail(self.ring.as_ptr().cast()) as *const AtomicU16;
            (*tail).store(self.tail, Ordering::Release);
        }
    }

    /// The first `length` bytes of a buffer that the kernel has filled and that was not given back yet.
    #[inline]
    pub(crate) fn filled(&self, id: u16, length: usize) -> &[u8] {
        let start = usize::from(id) * self.size;
        assert!(id < self.count && length <= self.size);
        // SAFETY: the range lies within `memory`, and the kernel writes to the buffer only after it is given again.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast::<u8>().add(start), length) }
    }
}
