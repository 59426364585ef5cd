//! Frames: a length of four bytes, most significant first, and a message of that many bytes (postcard).
//!
//! Owns: where a frame begins and ends, and its largest size. Must not know: what messages mean, nor how bytes travel.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest message, in bytes. Requests with their bodies and recorded times are the largest that deadheat sends.
pub const MAX_FRAME: usize = 64 << 20;

/// Bytes of a frame's length.
const HEAD: usize = 4;

/// Why there is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A message is larger than [`MAX_FRAME`].
    #[error("a message of {bytes} bytes is too large: at most {MAX_FRAME} can be sent")]
    TooLarge {
        /// Its size, or as much of it as is known.
        bytes: u64,
    },
    /// The bytes are no message, or a value cannot be sent; with the library's reason.
    #[error("a message is malformed: {0}")]
    Malformed(String),
}

impl From<postcard::Error> for FrameError {
    fn from(error: postcard::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// The frame of a message.
///
/// # Errors
/// [`FrameError`].
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut frame = postcard::to_extend(message, vec![0; HEAD])?;
    let length = frame.len() - HEAD;
    match u32::try_from(length) {
        Ok(short) if length <= MAX_FRAME => {
            frame[..HEAD].copy_from_slice(&short.to_be_bytes());
            Ok(frame)
        }
        _ => Err(FrameError::TooLarge { bytes: length as u64 }),
    }
}

/// Finds lines and messages in bytes that arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    received: Vec<u8>,
    /// How many of `received` were taken.
    taken: usize,
}

impl Decoder {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        // Before the buffer grows, what was taken is removed.
        self.received.drain(..self.taken);
        self.taken = 0;
        self.received.extend_from_slice(bytes);
    }

    /// The next line without its line break, if it is complete.
    pub fn line(&mut self) -> Option<String> {
        let rest = &self.received[self.taken..];
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&rest[..length]).trim_end_matches('\r').to_owned();
        self.taken += length + 1;
        Some(line)
    }

    /// The next message, if it is complete.
    ///
    /// # Errors
    /// The frame is too large, or its bytes are no such message. No later message can be read after that.
    pub fn message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let rest = &self.received[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_be_bytes(*head) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLarge { bytes: length as u64 });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let (message, surplus) = postcard::take_from_bytes(body)?;
        if !surplus.is_empty() {
            return Err(FrameError::Malformed(format!("{} bytes too many", surplus.len())));
        }
        self.taken += HEAD + length;
        Ok(Some(message))
    }

    /// How many bytes have arrived and were not taken.
    pub fn waiting(&self) -> usize {
        self.received.len() - self.taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Order, Reply};
    use crate::server_host::message::{ServerOrder, ServerReply, SshInput, SshOutput};

    /// All messages in these bytes, which arrive in pieces of this size, until the first error.
    fn messages<T: DeserializeOwned>(bytes: &[u8], piece: usize) -> (Vec<T>, Option<FrameError>) {
        let (mut decoder, mut found) = (Decoder::default(), Vec::new());
        for piece in bytes.chunks(piece) {
            decoder.push(piece);
            loop {
                match decoder.message() {
                    Ok(Some(message)) => found.push(message),
                    Ok(None) => break,
                    Err(error) => return (found, Some(error)),
                }
            }
        }
        (found, None)
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_by_both_sides() {
        // A text, because its bytes are copied at once.
        let large = "7".repeat(MAX_FRAME);
        assert!(matches!(encode(&large), Err(FrameError::TooLarge { bytes }) if bytes > MAX_FRAME as u64));
        let mut decoder = Decoder::default();
        decoder.push(&u32::MAX.to_be_bytes());
        let error = decoder.message::<Order>().unwrap_err();
        assert_eq!(error, FrameError::TooLarge { bytes: u64::from(u32::MAX) });
        assert!(error.to_string().contains("too large"));
    }

    #[test]
    fn bytes_after_a_message_are_an_error() {
        let mut frame = encode(&Order::Ping(3)).unwrap();
        frame.push(0);
        frame[HEAD - 1] += 1;
        let (found, error) = messages::<Order>(&frame, 100);
        assert!(found.is_empty() && error.unwrap().to_string().contains("1 bytes too many"));
    }

    #[test]
    fn lines_come_before_messages() {
        let mut bytes = b"one\r\ntwo\n".to_vec();
        bytes.extend(encode(&Order::Ping(3)).unwrap());
        let mut decoder = Decoder::default();
        for byte in bytes {
            decoder.push(&[byte]);
        }
        assert_eq!((decoder.line(), decoder.line()), (Some("one".into()), Some("two".into())));
        assert!(matches!(decoder.message(), Ok(Some(Order::Ping(3)))));
        assert_eq!((decoder.waiting(), decoder.line()), (0, None));
    }

    #[test]
    fn the_seeds_of_fuzzing_are_messages() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/frame");
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 10);
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let (orders, replies) = (messages::<Order>(&bytes, 100), messages::<Reply>(&bytes, 100));
            let sound = |count: usize, error: &Option<FrameError>| count > 0 && error.is_none();
            let any = sound(orders.0.len(), &orders.1) || sound(replies.0.len(), &replies.1);
            assert!(any, "{}: {orders:?} {replies:?}", file.display());
        }
    }

    proptest! {
        #[test]
        fn messages_survive_any_cutting(numbers in prop::collection::vec(any::<u64>(), 0..20), piece in 1..40usize) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| encode(&Order::Ping(*n)).unwrap()).collect();
            let (found, error) = messages::<Order>(&bytes, piece);
            let found: Vec<u64> = found.iter().filter_map(|one| match one { Order::Ping(n) => Some(*n), _ => None }).collect();
            prop_assert_eq!(found, numbers);
            prop_assert_eq!(error, None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), piece in 1..40usize) {
            let _ = messages::<Order>(&bytes, piece);
            let _ = messages::<Reply>(&bytes, piece);
            let _ = (messages::<ServerOrder>(&bytes, piece), messages::<ServerReply>(&bytes, piece));
            let _ = (messages::<SshInput>(&bytes, piece), messages::<SshOutput>(&bytes, piece));
        }

        /// As before, but the length is right, so that the message itself is read.
        #[test]
        fn any_message_is_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
            bytes.extend(&body);
            let _ = messages::<Order>(&bytes, 1000);
            let _ = messages::<Reply>(&bytes, 1000);
            let _ = (messages::<ServerOrder>(&bytes, 1000), messages::<ServerReply>(&bytes, 1000));
            let _ = (messages::<SshInput>(&bytes, 1000), messages::<SshOutput>(&bytes, 1000));
        }
    }
}
