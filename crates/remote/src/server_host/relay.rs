//! ssh for a command on a server host: the user's own ssh runs on the controlling side.
//!
//! Owns: the program that stands in for ssh there, and its socket. Must not know: which hosts are reached; the controlling side decides
//! whether it starts an ssh at all.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deadheat_host::command::quoted;

use super::agent::say;
use super::message::{ServerReply, SshInput, SshOutput};
use crate::channel::lock;
use crate::frame::encode;
use crate::input::{Input, Waited};
use crate::writer::Writer;

/// The hidden command that stands in for ssh. Its arguments are those of ssh, and its current folder has the socket.
pub const RELAY_COMMAND: &str = "relay";

/// The socket, in the work folder. It is opened by this relative path, because the length of a socket's path is limited.
const SOCKET: &str = "ssh.sock";
/// The program, in the work folder.
const SCRIPT: &str = "ssh";
/// How long a pipe is waited for at a time.
const LONG: Duration = Duration::from_secs(3600);

/// The end of the agent: connections of programs that stand in for ssh.
#[derive(Debug)]
pub(crate) struct Relays {
    program: PathBuf,
    open: Arc<Mutex<HashMap<u32, Writer>>>,
}

impl Relays {
    /// Makes the socket and the program in this folder, which only this user can enter, and waits for connections.
    pub(crate) fn listen(folder: &Path, deadheat: &Path, writer: &Writer) -> io::Result<Self> {
        // Bound by way of the folder's descriptor: also there, the path may be too long for a socket.
        let handle = fs::File::open(folder)?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", std::os::fd::AsRawFd::as_raw_fd(&handle));
        let listener = UnixListener::bind(short)?;
        let program = folder.join(SCRIPT);
        let words = [folder, deadheat].map(|path| quoted(&path.to_string_lossy()));
        let script = format!("#!/bin/sh\ncd {} && exec {} {RELAY_COMMAND} \"$@\"\n", words[0], words[1]);
        fs::write(&program, script)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
        let open = Arc::<Mutex<HashMap<u32, Writer>>>::default();
        let (accepted, writer) = (Arc::clone(&open), writer.clone());
        let accept = move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                let Ok(stream) = stream else { return };
                let Ok(back) = stream.try_clone().and_then(|back| Writer::start(back, None)) else {
                    continue;
                };
                lock(&accepted).insert(number, back);
                let (accepted, writer) = (Arc::clone(&accepted), writer.clone());
                std::thread::spawn(move || {
                    read_requests(number, stream, &writer);
                    lock(&accepted).remove(&number);
                    say(&writer, &ServerReply::Ssh { number, input: SshInput::Gone });
                });
            }
        };
        std::thread::Builder::new().name("ssh".into()).spawn(accept)?;
        Ok(Self { program, open })
    }

    /// The program that stands in for ssh.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Passes on what an ssh says.
    pub(crate) fn pass(&self, number: u32, output: &SshOutput) {
        if let (Some(writer), Ok(frame)) = (lock(&self.open).get(&number), encode(output)) {
            writer.send(frame);
        }
    }
}

/// Passes on what a program that stands in for ssh says, until it ends.
fn read_requests(number: u32, stream: UnixStream, writer: &Writer) {
    let mut input = Input::new(OwnedFd::from(stream));
    loop {
        match input.message::<SshInput>() {
            Ok(Some(input)) => say(writer, &ServerReply::Ssh { number, input }),
            Ok(None) => match input.wait(LONG) {
                Ok(Waited::Bytes | Waited::Nothing) => {}
                Ok(Waited::End) | Err(_) => return,
            },
            Err(_) => return,
        }
    }
}

/// Stands in for ssh with these arguments. Returns the exit status.
///
/// # Errors
/// The agent cannot be reached, or standard input or output fails.
pub fn relay(arguments: &[OsString]) -> io::Result<u8> {
    let stream = UnixStream::connect(SOCKET)?;
    let arguments = arguments.iter().map(|one| one.to_string_lossy().into_owned()).collect();
    let mut to = stream.try_clone()?;
    to.write_all(&framed(&SshInput::Start(arguments))?)?;
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        // When the agent has gone, the other direction ends, and with it this process.
        while let Ok(count @ 1..) = io::stdin().read(&mut piece) {
            let Ok(frame) = framed(&SshInput::Bytes(piece[..count].to_vec())) else { return };
            if to.write_all(&frame).is_err() {
                return;
            }
        }
        let _ = framed(&SshInput::End).map(|frame| to.write_all(&frame));
    });
    let mut input = Input::new(OwnedFd::from(stream));
    loop {
        match input.message::<SshOutput>().map_err(io::Error::other)? {
            Some(SshOutput::Output(bytes)) => {
                let mut output = io::stdout().lock();
                output.write_all(&bytes)?;
                output.flush()?;
            }
            Some(SshOutput::Errors(bytes)) => io::stderr().write_all(&bytes)?,
            Some(SshOutput::Ended(status)) => return Ok(status),
            None => {
                if input.wait(LONG)? == Waited::End {
                    return Err(io::Error::other("the agent has ended"));
                }
            }
        }
    }
}

fn framed(message: &SshInput) -> io::Result<Vec<u8>> {
    encode(message).map_err(io::Error::other)
}
