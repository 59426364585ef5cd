//! Sockets and epoll: keep-alive, pipelined requests answered in order, each connection on one thread. Knows no study.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType, sockopt};

use crate::date::HttpDate;
use crate::http::{self, Parsed};
use crate::json::push_integer;
use crate::{Answer, Head};

/// The largest request head, in bytes.
const INPUT_BYTES: usize = 16 * 1024;
/// With so many bytes of answers unsent, no further pipelined request is answered.
const OUTPUT_BYTES: usize = 256 * 1024;
const LISTENER: u64 = u64::MAX;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Serves on 127.0.0.1 with the calling thread alone.
///
/// # Errors
/// When the listening socket or epoll fails; else it never returns.
pub fn serve(port: u16, answer: &mut impl Answer) -> io::Result<()> {
    serve_listener(&listener(port)?, answer)
}

/// Serves on 127.0.0.1 with one thread for each core that the process may run on; the kernel spreads connections over
/// them. All of them listen before the first serves.
///
/// # Errors
/// As [`serve`], and when a thread's `answer` cannot be made.
pub fn serve_on_cores<A: Answer>(
    port: u16,
    make_answer: impl Fn() -> io::Result<A> + Sync,
) -> io::Result<()> {
    let threads = thread::available_parallelism()?.get();
    let listeners = (0..threads).map(|_| listener(port)).collect::<io::Result<Vec<_>>>()?;
    thread::scope(|scope| {
        let serving: Vec<_> = listeners
            .iter()
            .map(|listener| scope.spawn(|| serve_listener(listener, &mut make_answer()?)))
            .collect();
        serving.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a serving thread panicked")))
        })
    })
}

/// A socket that shares its port with the others of this process.
fn listener(port: u16) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

fn serve_listener(listener: &TcpListener, answer: &mut impl Answer) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut answers = Answers { answer, date: HttpDate::new(), body: Vec::with_capacity(64 * 1024) };
    let mut connections = Connections { epoll, slots: Vec::new() };
    let mut events = Vec::with_capacity(256);
    loop {
        match epoll::wait(&connections.epoll, spare_capacity(&mut events), None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        for event in events.drain(..) {
            match event.data.u64() {
                LISTENER => connections.accept(listener)?,
                slot => connections.advance(slot as usize, &mut answers)?,
            }
        }
    }
}

/// All open connections; a connection's slot is its number in epoll.
struct Connections {
    epoll: OwnedFd,
    slots: Vec<Option<Connection>>,
}

impl Connections {
    fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let slot = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            epoll::add(&self.epoll, &stream, EventData::new_u64(slot as u64), EventFlags::IN)?;
            self.slots[slot] = Some(Connection::new(stream));
        }
    }

    fn advance(&mut self, slot: usize, answers: &mut Answers<'_, impl Answer>) -> io::Result<()> {
        let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return Ok(()) };
        // An error of one connection, such as a reset by the client, ends that connection only.
        let Ok(Some(wanted)) = connection.advance(answers) else {
            self.slots[slot] = None;
            return Ok(());
        };
        if connection.wanted != wanted {
            connection.wanted = wanted;
            epoll::modify(&self.epoll, &connection.stream, EventData::new_u64(slot as u64), wanted)?;
        }
        Ok(())
    }
}

/// One connection: bytes read and not yet answered, answers not yet sent.
struct Connection {
    stream: TcpStream,
    wanted: EventFlags,
    input: Box<[u8; INPUT_BYTES]>,
    filled: usize,
    output: Vec<u8>,
    sent: usize,
    closing: bool,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            wanted: EventFlags::IN,
            input: Box::new([0; INPUT_BYTES]),
            filled: 0,
            output: Vec::new(),
            sent: 0,
            closing: false,
        }
    }

    /// Reads once, answers and sends what it can; says what to wait for next, or nothing when it is over.
    fn advance(&mut self, answers: &mut Answers<'_, impl Answer>) -> io::Result<Option<EventFlags>> {
        let mut has_read = false;
        loop {
            if !self.flush()? {
                return Ok(Some(EventFlags::OUT));
            }
            if self.closing {
                return Ok(None);
            }
            if self.answer_buffered(answers) {
                continue;
            }
            if has_read {
                return Ok(Some(EventFlags::IN));
            }
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Ok(None),
                Ok(read) => self.filled += read,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
            has_read = true;
        }
    }

    /// Answers the complete requests of the input; says whether there is something to send.
    fn answer_buffered(&mut self, answers: &mut Answers<'_, impl Answer>) -> bool {
        let mut used = 0;
        while !self.closing && self.output.len() < OUTPUT_BYTES {
            match http::parse(&self.input[used..self.filled]) {
                Parsed::Complete(request) => {
                    used += request.length;
                    self.closing = !request.keep_alive;
                    answers.push(request.target, request.keep_alive, &mut self.output);
                }
                Parsed::Incomplete if used > 0 || self.filled < INPUT_BYTES => break,
                Parsed::Incomplete | Parsed::Wrong => {
                    answers.push_refusal(&mut self.output);
                    self.closing = true;
                }
            }
        }
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
        !self.output.is_empty()
    }

    /// Sends what it can; says whether everything is sent.
    fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }
}

/// Whole answers, head and body.
struct Answers<'a, A> {
    answer: &'a mut A,
    date: HttpDate,
    body: Vec<u8>,
}

impl<A: Answer> Answers<'_, A> {
    /// Appends the answer to a request for `target`.
    fn push(&mut self, target: &[u8], keep_alive: bool, out: &mut Vec<u8>) {
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.body.clear();
        let Head { status, headers } = self.answer.answer(target, &mut self.body);
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(headers.as_bytes());
        if !keep_alive {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(self.date.at(unix_s));
        out.extend_from_slice(b"\r\ncontent-length: ");
        push_integer(out, self.body.len() as i64);
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&self.body);
    }

    /// Appends the answer to what is no request; the connection is closed after it.
    fn push_refusal(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    }
}
