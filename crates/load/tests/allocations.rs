//! Invariant 2: measuring a slice allocates nothing per request.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod kit;

use deadheat_load::*;
use dhat::{HeapStats, Profiler};
use kit::*;

const BACKEND: Backend = Backend::Auto;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Blocks that this process allocates during a slice.
fn blocks(session: &mut Session, order: &SliceOrder) -> u64 {
    let before = HeapStats::get().total_blocks;
    let tally = session.slice(order).unwrap();
    check(&tally);
    assert_eq!(tally.outcomes.ok, tally.due, "{:?}", tally.faults);
    HeapStats::get().total_blocks - before
}

#[test]
fn ten_thousand_requests_allocate_no_more_than_one_thousand() {
    let _profiler = Profiler::builder().testing().build();
    let alike = Server::start(|stream, _| say(stream, HELLO));
    // Each answer differs from the one before and comes in two pieces, so that the generator must parse it.
    let changing = Server::start(|stream, n| {
        let digit = b'0' + (n % 10) as u8;
        std::io::Write::write_all(stream, b"HTTP/1.1 200 OK\r\nX: ").is_ok()
            && std::io::Write::write_all(stream, &[digit]).is_ok()
            && say(stream, "\r\nContent-Length: 5\r\n\r\nhello")
    });
    for backend in [Backend::Epoll, Backend::Uring] {
        for server in [&alike, &changing] {
            let mut session = Session::open(SessionConfig { backend, ..config(server.at(), 4) }).unwrap();
            let open = |requests| order(constant(20_000.0), Limit::requests(requests));
            let shapes: [&dyn Fn(u64) -> SliceOrder; 2] = [&closed, &open];
            for order in shapes {
                blocks(&mut session, &order(1_000));
                let few = blocks(&mut session, &order(1_000));
                let many = blocks(&mut session, &order(10_000));
                assert!(many < few + 200, "{backend:?}: {few} blocks for 1,000, {many} for 10,000");
            }
        }
    }
}
