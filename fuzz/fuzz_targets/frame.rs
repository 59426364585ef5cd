//! Any bytes as lines and messages of a channel between machines, whole and in pieces.
#![no_main]

use deadheat_remote::frame::{Decoder, FrameError, MAX_FRAME};
use deadheat_remote::message::{Order, Reply, agent_version, control_version};
use deadheat_remote::server_host::message::{ServerOrder, ServerReply, SshInput, SshOutput};
use serde::de::DeserializeOwned;

/// How many messages are in these bytes, which arrive in pieces of this size, and what is wrong with the first bad one.
fn read<T: DeserializeOwned>(bytes: &[u8], piece: usize) -> (usize, Option<FrameError>) {
    let (mut decoder, mut count) = (Decoder::default(), 0);
    for piece in bytes.chunks(piece.max(1)) {
        decoder.push(piece);
        loop {
            match decoder.message::<T>() {
                Ok(Some(_)) => count += 1,
                Ok(None) => break,
                Err(error) => return (count, Some(error)),
            }
        }
    }
    assert!(decoder.waiting() <= MAX_FRAME + 4);
    (count, None)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(read::<Order>(bytes, bytes.len()), read::<Order>(bytes, 7));
    assert_eq!(read::<Reply>(bytes, bytes.len()), read::<Reply>(bytes, 1));
    assert_eq!(read::<ServerOrder>(bytes, bytes.len()), read::<ServerOrder>(bytes, 7));
    assert_eq!(read::<ServerReply>(bytes, bytes.len()), read::<ServerReply>(bytes, 1));
    let _ = (read::<SshInput>(bytes, 7), read::<SshOutput>(bytes, 7));
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    while let Some(line) = decoder.line() {
        let _ = (agent_version(&line), control_version(&line));
    }
});
