//! Processors that wake up soon: what is asked of the kernel's power management while contenders are measured.
//!
//! Owns: the request, what is usual, and its end. Must not know: what is measured meanwhile.
//!
//! A processor with nothing to do goes to sleep. On bare metal the deep states cost tens to hundreds of microseconds at the next request.
//! In a virtual machine sleeping gives the processor back to the host, and until the host gives it again others run on it: that is stolen
//! time, and chance. Kernel documentation, "PM Quality Of Service Interface": who holds `/dev/cpu_dma_latency` open says how long waking
//! up may take, and the kernel chooses its idle states by the shortest of all such limits.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::host::virtual_here;

/// Where the limit is given.
pub const CPU_LATENCY_DEVICE: &str = "/dev/cpu_dma_latency";
/// Virtual processors do not sleep at all.
const VIRTUAL_US: u32 = 0;
/// Others may use their shallow states, from which they are back in a few microseconds: a core that spins takes turbo from its
/// neighbours and room from its sibling.
const BARE_US: u32 = 10;

/// As long as it lives, idle processors wake up within the limit.
#[derive(Debug)]
pub struct Awake {
    /// The kernel forgets the limit once this is closed, also when we are killed.
    _held: File,
}

impl Awake {
    /// Asks that waking up takes at the most so many microseconds, on all processors.
    ///
    /// # Errors
    /// When the device is not there or may not be written.
    pub fn hold(latency_us: u32) -> io::Result<Self> {
        Self::at(Path::new(CPU_LATENCY_DEVICE), latency_us)
    }

    fn at(device: &Path, latency_us: u32) -> io::Result<Self> {
        let mut held = OpenOptions::new().write(true).open(device)?;
        held.write_all(&i32::try_from(latency_us).unwrap_or(i32::MAX).to_ne_bytes())?;
        Ok(Self { _held: held })
    }
}

/// The limit that suits this machine, in microseconds; none where it may not be given.
pub fn usual_cpu_latency_us() -> Option<u32> {
    // Opened and closed, it gives the kernel's own default, which no state breaks.
    OpenOptions::new().write(true).open(CPU_LATENCY_DEVICE).ok()?;
    Some(if virtual_here() { VIRTUAL_US } else { BARE_US })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_number_of_the_machines_own_order() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join("cpu_dma_latency");
        assert_eq!(Awake::at(&device, 0).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&device, "").unwrap();
        let _held = Awake::at(&device, 10).unwrap();
        assert_eq!(std::fs::read(&device).unwrap(), 10_i32.to_ne_bytes());
    }

    /// What the kernel holds is read from the device itself, as four bytes.
    #[test]
    fn the_kernel_holds_it_for_as_long_as_it_is_asked() {
        use std::io::Read;
        let read = || {
            let mut bytes = [0; 4];
            let mut device = File::open(CPU_LATENCY_DEVICE).ok()?;
            device.read_exact(&mut bytes).ok()?;
            Some(i32::from_ne_bytes(bytes))
        };
        let Some(before) = read().filter(|_| usual_cpu_latency_us().is_some()) else {
            eprintln!("skipped: {CPU_LATENCY_DEVICE} cannot be read and written here; needs root");
            return;
        };
        let held = Awake::hold(0).unwrap();
        assert_eq!(read(), Some(0));
        drop(held);
        // Others may race here as well.
        assert!(before == 0 || read() != Some(0), "given back");
    }
}
