//! Writes frames so that nobody who sends has to wait for a slow or dead network.
//!
//! Owns: the output, and the thread that waits for it. Must not know: what the frames say.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;

use crate::channel::lock;

/// A frame that is longer than this is written in pieces.
const PIECE: usize = 64 * 1024;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Sends frames in order. When all clones are dropped, the output is closed, also if it broke before.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    /// To the thread that waits for the output.
    sender: Sender<Vec<u8>>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Held while something is written.
    output: Mutex<File>,
    /// Frames that the thread has yet to write.
    queued: AtomicUsize,
}

/// Something to write at regular intervals.
pub(crate) struct Beat {
    pub(crate) every: Duration,
    pub(crate) frame: Box<dyn FnMut() -> Vec<u8> + Send>,
    /// Told of each piece of a long frame that the output took. No beat can go between, so the other side has nothing to answer.
    pub(crate) took: Box<dyn FnMut() + Send>,
}

impl Writer {
    /// Starts the thread. The output is a pipe or a socket that nobody else writes to.
    ///
    /// # Errors
    /// The system cannot start one.
    pub(crate) fn start(output: impl Into<OwnedFd>, mut beat: Option<Beat>) -> std::io::Result<Self> {
        let shared = Shared { output: Mutex::new(File::from(output.into())), queued: AtomicUsize::new(0) };
        let shared = Arc::new(shared);
        let (sender, frames) = channel::<Vec<u8>>();
        let waiting = Arc::clone(&shared);
        let body = move || {
            let mut due = Instant::now();
            loop {
                let next = match &mut beat {
                    None => frames.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(beat) => match due.checked_duration_since(Instant::now()) {
                        Some(left) if !left.is_zero() => frames.recv_timeout(left),
                        _ => {
                            due = Instant::now() + beat.every;
                            waiting.queued.fetch_add(1, Ordering::SeqCst);
                            Ok((beat.frame)())
                        }
                    },
                };
                let written: std::io::Result<()> = match next {
                    Ok(frame) => {
                        let mut output = lock(&waiting.output);
                        frame.chunks(PIECE).try_for_each(|piece| {
                            output.write_all(piece)?;
                            if let Some(beat) = beat.as_mut().filter(|_| frame.len() > PIECE) {
                                (beat.took)();
                            }
                            Ok(())
                        })
                    }
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                // The side that reads notices the end of the channel and says why.
                if written.is_err() {
                    return;
                }
                waiting.queued.fetch_sub(1, Ordering::SeqCst);
            }
        };
        std::thread::Builder::new().name("write-channel".into()).spawn(body)?;
        Ok(Self { sender, shared })
    }

    /// Writes a frame at once if the output takes it without a wait, else soon. After the channel has broken, it is dropped.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        if !self.shared.write_now(&frame) {
            self.shared.queued.fetch_add(1, Ordering::SeqCst);
            let _ = self.sender.send(frame);
        }
    }
}

impl Shared {
    /// Writes the frame if that needs no wait, which saves waking the thread. Says whether it did.
    fn write_now(&self, frame: &[u8]) -> bool {
        // Linux calls a pipe ready if a page of it is free, and a UNIX socket if most of its buffer is: both take so many bytes.
        if frame.len() > PIPE_BUF {
            return false;
        }
        let mut output = match self.output.try_lock() {
            Ok(output) => output,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        // Frames stay in order: what is queued goes first.
        if self.queued.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let mut ready = [PollFd::new(&*output, PollFlags::OUT)];
        let is_ready =
            matches!(poll(&mut ready, Some(&AT_ONCE)), Ok(1)) && ready[0].revents() == PollFlags::OUT;
        is_ready && output.write_all(frame).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, pipe};

    use super::*;

    #[test]
    fn an_idle_pipe_has_the_frame_when_send_returns() {
        let (from, to) = pipe().unwrap();
        let writer = Writer::start(to, None).unwrap();
        for _ in 0..100 {
            writer.send(b"order".to_vec());
            let mut ready = [PollFd::new(&from, PollFlags::IN)];
            assert_eq!(poll(&mut ready, Some(&AT_ONCE)), Ok(1));
            (&from).read_exact(&mut [0; 5]).unwrap();
        }
    }

    #[test]
    fn a_full_pipe_holds_nobody_up_and_frames_stay_in_order() {
        let (mut from, to) = pipe().unwrap();
        let writer = Writer::start(to, None).unwrap();
        // Far more than a pipe holds; some are too large to be written at once.
        let frames: Vec<Vec<u8>> = (0..200u8)
            .map(|number| vec![number; [7, PIPE_BUF, 3 * PIPE_BUF][usize::from(number) % 3]])
            .collect();
        for frame in &frames {
            writer.send(frame.clone());
        }
        drop(writer);
        let mut got = Vec::new();
        from.read_to_end(&mut got).unwrap();
        assert!(got == frames.concat(), "{} bytes of {}", got.len(), frames.concat().len());
    }

    #[test]
    fn frames_stay_in_order_while_the_reader_is_now_slow_and_now_fast() {
        let (mut from, to) = pipe().unwrap();
        let writer = Writer::start(to, None).unwrap();
        let frames: Vec<Vec<u8>> = (0..2_000u32).map(|number| number.to_be_bytes().repeat(512)).collect();
        let expected = frames.concat();
        let reader = std::thread::spawn(move || {
            let (mut got, mut piece) = (Vec::new(), vec![0; 256 * 1024]);
            while let Ok(count @ 1..) = from.read(&mut piece) {
                got.extend_from_slice(&piece[..count]);
                // Now and then the pipe fills up, and then it is emptied at once.
                if got.len() % 7 == 0 {
                    std::thread::sleep(Duration::from_micros(500));
                }
            }
            got
        });
        frames.into_iter().for_each(|frame| writer.send(frame));
        drop(writer);
        assert!(reader.join().unwrap() == expected);
    }

    #[test]
    fn a_reader_that_has_gone_holds_nobody_up() {
        let (from, to) = pipe().unwrap();
        let writer = Writer::start(to, None).unwrap();
        drop(from);
        for _ in 0..100 {
            writer.send(vec![0; 2 * PIPE_BUF]);
            writer.send(b"order".to_vec());
        }
    }

    /// A long order on a slow line takes longer than the other side may be silent.
    #[test]
    fn a_long_frame_is_told_piece_by_piece_and_a_short_one_is_not() {
        let (mut from, to) = pipe().unwrap();
        let (tell, told) = channel();
        let took = Box::new(move || {
            let _ = tell.send(());
        });
        let beat = Beat { every: Duration::from_secs(60), frame: Box::new(|| vec![b'b'; 8]), took };
        let writer = Writer::start(to, Some(beat)).unwrap();
        writer.send(vec![0; 10 * PIECE]);
        writer.send(vec![1; PIECE]);
        drop(writer);
        from.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(told.iter().count(), 10);
    }

    #[test]
    fn senders_and_beats_never_mix_their_bytes() {
        let (mut from, to) = pipe().unwrap();
        let frame = Box::new(|| vec![b'b'; 8]);
        let beat = Beat { every: Duration::from_millis(1), frame, took: Box::new(|| ()) };
        let writer = Writer::start(to, Some(beat)).unwrap();
        let senders: Vec<_> = (b'0'..b'4')
            .map(|name| {
                let writer = writer.clone();
                std::thread::spawn(move || {
                    for _ in 0..500 {
                        writer.send(vec![name; 8]);
                    }
                })
            })
            .collect();
        drop(writer);
        let mut got = Vec::new();
        from.read_to_end(&mut got).unwrap();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        let is_whole = |frame: &[u8]| frame.len() == 8 && frame.iter().all(|byte| *byte == frame[0]);
        assert!(got.chunks(8).all(is_whole));
        assert_eq!(got.iter().filter(|byte| byte.is_ascii_digit()).count(), 4 * 500 * 8);
    }
}
