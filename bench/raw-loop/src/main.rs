//! Owns: two loops that send fixed bytes and count what comes back, by the same means as the engine's drivers. They read
//! nothing of the answers, check nothing and time nothing: what they reach is the most that the engine could. Each
//! connection has one request under way. Must not know the engine.
#![allow(
    unsafe_code,
    reason = "what is handed to the kernel must be vouched for; each use says why it holds"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, Fixed};
use io_uring::{IoUring, SubmissionQueue, Submitter, cqueue, opcode};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use rustix::thread::CpuSet;
use rustix::time::ClockId;

const USAGE: &str =
    "raw-loop [--backend io_uring|epoll] [--connections 64] [--duration 2s] [--cpu N] http://IP:PORT/PATH";

// The drivers' own figures.
const SUBMISSIONS: u32 = 512;
const COMPLETIONS: u32 = 4096;
const BUFFERS: u16 = 128;
const BUFFER_SIZE: usize = 8 * 1024;
const MSG_WAITALL: u32 = 0x100;
/// The mark of a send; a receive's is its connection.
const SEND: u64 = 1 << 32;

type Fallible<T> = Result<T, Box<dyn Error>>;

struct Options {
    uring: bool,
    connections: usize,
    duration: Duration,
    cpu: Option<usize>,
    address: SocketAddr,
    path: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("raw-loop: {error}\n  {USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Fallible<()> {
    let options = options(std::env::args().skip(1))?;
    if let Some(cpu) = options.cpu {
        if cpu >= CpuSet::MAX_CPU {
            return Err(format!("no CPU {cpu}").into());
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        rustix::thread::sched_setaffinity(None, &set)?;
    }
    let Options { address, path, .. } = &options;
    // Byte by byte what the engine sends.
    let version = env!("CARGO_PKG_VERSION");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: deadheat/{version}\r\nAccept: */*\r\n\r\n"
    );
    let length = answer_length(*address, request.as_bytes())?;
    let sockets: Result<Vec<TcpStream>, std::io::Error> =
        (0..options.connections).map(|_| connect(*address)).collect();
    let (request, sockets) = (request.as_bytes(), sockets?);
    let before_ns = cpu_ns();
    let (done, took) = match options.uring {
        true => by_uring(&sockets, request, length, options.duration)?,
        false => by_epoll(&sockets, request, length, options.duration)?,
    };
    let cpu_us = (cpu_ns() - before_ns) as f64 / 1e3 / done.max(1) as f64;
    let name = if options.uring { "io_uring" } else { "epoll" };
    println!(
        "{{\"backend\": \"{name}\", \"rate\": {:.1}, \"cpu_us_per_request\": {cpu_us:.3}, \"requests\": {done}}}",
        done as f64 / took.as_secs_f64()
    );
    Ok(())
}

fn options(mut words: impl Iterator<Item = String>) -> Fallible<Options> {
    let (mut uring, mut connections, mut duration, mut cpu, mut url) = (true, 64, 2.0, None, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--backend" => {
                uring = match value()?.as_str() {
                    "io_uring" => true,
                    "epoll" => false,
                    other => return Err(format!("no such backend: {other}").into()),
                }
            }
            "--connections" => connections = value()?.parse()?,
            "--duration" => duration = value()?.trim_end_matches('s').parse()?,
            "--cpu" => cpu = Some(value()?.parse()?),
            _ => url = Some(word),
        }
    }
    let url = url.ok_or("no URL")?;
    let rest = url.strip_prefix("http://").ok_or("the URL begins with http://")?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let fits = (1..=1024).contains(&connections);
    if !fits {
        return Err("1 to 1024 connections".into());
    }
    let duration = Duration::try_from_secs_f64(duration)?;
    Ok(Options { uring, connections, duration, cpu, address: address.parse()?, path: format!("/{path}") })
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    // Where reno may not be chosen, the system's own stays.
    let _ = sockopt::set_tcp_congestion(&socket, "reno");
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// How many bytes one answer has.
fn answer_length(address: SocketAddr, request: &[u8]) -> Fallible<usize> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.write_all(request)?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0].to_ascii_lowercase());
    }
    let text = String::from_utf8_lossy(&head);
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Ok(head.len() + length.ok_or("the answer has no Content-Length")?.trim().parse::<usize>()?)
}

fn cpu_ns() -> u64 {
    let spent = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

/// How many answers came, and in which time.
fn by_epoll(
    sockets: &[TcpStream],
    request: &[u8],
    length: usize,
    duration: Duration,
) -> Fallible<(u64, Duration)> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let begun = Instant::now();
    for (index, socket) in sockets.iter().enumerate() {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&poll, socket, EventData::new_u64(index as u64), flags)?;
        rustix::net::send(socket, request, SendFlags::NOSIGNAL)?;
    }
    let none = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
    let (mut events, mut buffer) = (vec![none; 256], vec![0; 64 * 1024]);
    let (mut came, mut done) = (vec![0; sockets.len()], 0);
    loop {
        let ready = epoll::wait(&poll, &mut events[..], None)?;
        for event in &events[..ready] {
            let index = event.data.u64() as usize;
            loop {
                match rustix::net::recv(&sockets[index], &mut buffer[..], RecvFlags::empty()) {
                    Ok((0, _)) => return Err("the server has closed a connection".into()),
                    Ok((count, _)) => came[index] += count,
                    Err(Errno::AGAIN) => break,
                    Err(error) => return Err(error.into()),
                }
                if came[index] >= length {
                    (came[index], done) = (0, done + 1);
                    rustix::net::send(&sockets[index], request, SendFlags::NOSIGNAL)?;
                    break;
                }
            }
        }
        if begun.elapsed() >= duration {
            return Ok((done, begun.elapsed()));
        }
    }
}

/// How many answers came, and in which time.
fn by_uring(
    sockets: &[TcpStream],
    request: &[u8],
    length: usize,
    duration: Duration,
) -> Fallible<(u64, Duration)> {
    let mut buffers = Buffers::new();
    let mut ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)?;
    let files: Vec<i32> = sockets.iter().map(|socket| socket.as_raw_fd()).collect();
    ring.submitter().register_files(&files)?;
    let _ = ring.submitter().register_ring_fd();
    buffers.register(&ring)?;
    let flags = (SendFlags::NOSIGNAL.bits() | MSG_WAITALL) as i32;
    let receive =
        |index: usize| opcode::RecvMulti::new(Fixed(index as u32), 0).build().user_data(index as u64);
    let send = |index: usize| {
        let send =
            opcode::Send::new(Fixed(index as u32), request.as_ptr(), request.len() as u32).flags(flags);
        send.build().user_data(SEND).flags(Flags::SKIP_SUCCESS)
    };
    let (mut came, mut done) = (vec![0; sockets.len()], 0);
    let begun = Instant::now();
    let (submitter, mut queue, mut completions) = ring.split();
    for index in 0..sockets.len() {
        push(&submitter, &mut queue, &receive(index))?;
        push(&submitter, &mut queue, &send(index))?;
    }
    while begun.elapsed() < duration {
        queue.sync();
        submitter.submit_and_wait(1)?;
        queue.sync();
        completions.sync();
        for entry in &mut completions {
            if let Some(id) = cqueue::buffer_select(entry.flags()) {
                buffers.give(id);
            }
            let index = entry.user_data() as usize;
            match entry.result() {
                _ if entry.user_data() == SEND => return Err("a request could not be sent".into()),
                count @ 1.. => came[index] += count as usize,
                0 => return Err("the server has closed a connection".into()),
                _ if Errno::from_raw_os_error(-entry.result()) == Errno::NOBUFS => {}
                number => return Err(Errno::from_raw_os_error(-number).into()),
            }
            if !cqueue::more(entry.flags()) {
                push(&submitter, &mut queue, &receive(index))?;
            }
            if came[index] >= length {
                (came[index], done) = (0, done + 1);
                push(&submitter, &mut queue, &send(index))?;
            }
        }
        buffers.publish();
    }
    Ok((done, begun.elapsed()))
}

fn push(submitter: &Submitter<'_>, queue: &mut SubmissionQueue<'_>, entry: &Entry) -> std::io::Result<()> {
    // SAFETY: the operations made here use no memory but the request, which its caller keeps until the ring is gone and
    // the process ends, and the buffers, which are never freed.
    while unsafe { queue.push(entry) }.is_err() {
        queue.sync();
        submitter.submit()?;
        queue.sync();
    }
    Ok(())
}

#[repr(C, align(4096))]
#[derive(Clone, Copy)]
struct Page([u8; 4096]);

/// Buffers that the kernel picks from, by a ring that both sides know. They are never freed.
struct Buffers {
    ring: &'static mut [Page],
    memory: &'static mut [Page],
    tail: u16,
}

impl Buffers {
    fn new() -> Buffers {
        let pages = |bytes: usize| vec![Page([0; 4096]); bytes.div_ceil(4096)].leak();
        let entries = usize::from(BUFFERS) * size_of::<BufRingEntry>();
        Buffers { ring: pages(entries), memory: pages(usize::from(BUFFERS) * BUFFER_SIZE), tail: 0 }
    }

    fn register(&mut self, ring: &IoUring) -> std::io::Result<()> {
        // SAFETY: the pages are aligned, large enough for the entries, never moved and never freed.
        unsafe { ring.submitter().register_buf_ring_with_flags(self.ring.as_ptr() as u64, BUFFERS, 0, 0) }?;
        (0..BUFFERS).for_each(|id| self.give(id));
        self.publish();
        Ok(())
    }

    fn give(&mut self, id: u16) {
        assert!(id < BUFFERS);
        let place = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: place and id are below BUFFERS, for which there is room in the ring and in the memory; the kernel does not
        // read the entry before the tail moves on.
        unsafe {
            let entry = &mut *self.ring.as_mut_ptr().cast::<BufRingEntry>().add(place);
            entry.set_addr(self.memory.as_mut_ptr().cast::<u8>().add(usize::from(id) * BUFFER_SIZE) as u64);
            entry.set_len(BUFFER_SIZE as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies within the ring's first entry, is aligned for 16 bits, and is written by us alone.
        unsafe {
            let tail = BufRingEntry::tail(self.ring.as_ptr().cast()) as *const AtomicU16;
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}
