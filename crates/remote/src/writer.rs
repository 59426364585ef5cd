//! Writes frames on a thread of its own, so that nobody who sends has to wait for a slow or dead network.
//!
//! Owns: that thread. Must not know: what the frames say.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Sends frames in order. When all clones are dropped, the output is closed.
#[derive(Debug, Clone)]
pub(crate) struct Writer(Sender<Vec<u8>>);

/// Something to write at regular intervals.
pub(crate) struct Beat {
    pub(crate) every: Duration,
    pub(crate) frame: Box<dyn FnMut() -> Vec<u8> + Send>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start one.
    pub(crate) fn start(
        mut output: impl Write + Send + 'static,
        mut beat: Option<Beat>,
    ) -> std::io::Result<Self> {
        let (sender, frames) = channel::<Vec<u8>>();
        let body = move || {
            let mut due = Instant::now();
            loop {
                let next = match &mut beat {
                    None => frames.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(beat) => match due.checked_duration_since(Instant::now()) {
                        Some(left) if !left.is_zero() => frames.recv_timeout(left),
                        _ => {
                            due = Instant::now() + beat.every;
                            Ok((beat.frame)())
                        }
                    },
                };
                let written = match next {
                    Ok(frame) => output.write_all(&frame).and_then(|()| output.flush()),
                    Err(RecvTimeoutError::Timeout) => Ok(()),
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                // The side that reads notices the end of the channel and says why.
                if written.is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("write-channel".into()).spawn(body)?;
        Ok(Self(sender))
    }

    /// Writes a frame soon. After the channel has broken, it is dropped.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        let _ = self.0.send(frame);
    }
}
