//! Both drivers against sockets whose other end belongs to the test.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::*;
use crate::address::Address;

/// A driver with all slots connected, and the other ends.
fn connected<D: Driver>(slots: usize) -> (D, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::new(&Address::Tcp(listener.local_addr().unwrap())).unwrap();
    let mut driver = D::new(slots).unwrap();
    let ends = (0..slots).map(|slot| {
        driver.connect(slot, &target).unwrap();
        let end = listener.accept().unwrap().0;
        end.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(event(&mut driver), (slot, Event::Connected));
        end
    });
    let ends = ends.collect();
    (driver, ends)
}

/// Waits for the next event.
fn event<D: Driver>(driver: &mut D) -> (usize, Event) {
    for _ in 0..500 {
        if let Some(event) = driver.next() {
            return event;
        }
        driver.wait(Wake::Within(10_000_000)).unwrap();
    }
    panic!("nothing happened");
}

/// Takes all events until none is queued.
fn settle<D: Driver>(driver: &mut D) {
    for _ in 0..3 {
        driver.wait(Wake::Now).unwrap();
        while driver.next().is_some() {}
    }
}

fn two_sends_arrive_one_after_the_other<D: Driver>(fill: impl Fn(&mut D)) {
    let (mut driver, mut ends) = connected::<D>(2);
    settle(&mut driver);
    fill(&mut driver);
    assert_eq!(driver.send(0, b"first "), Ok(6));
    assert_eq!(driver.send(0, b"second"), Ok(6));
    driver.wait(Wake::Now).unwrap();
    let mut text = [0; 12];
    ends[0].read_exact(&mut text).unwrap();
    assert_eq!(String::from_utf8_lossy(&text), "first second");
}

#[test]
fn two_sends_in_a_batch_keep_their_bytes() {
    two_sends_arrive_one_after_the_other::<Epoll>(|_| {});
    two_sends_arrive_one_after_the_other::<Uring>(|_| {});
    // Filling the queue makes the driver hand over what was queued before.
    two_sends_arrive_one_after_the_other::<Uring>(Uring::fill);
}

fn nothing_is_lost_where_there_is_no_room<D: Driver>() {
    let (mut driver, mut ends) = connected::<D>(1);
    let (mut sent, mut room, mut pieces) = (Vec::new(), true, 0);
    // Sends pieces of different bytes while there is room; otherwise waits until there is room again.
    let mut send = |sent: &mut Vec<u8>, room: &mut bool, driver: &mut D| {
        if *room {
            let piece = [pieces as u8; 3_800];
            let taken = driver.send(0, &piece).unwrap();
            sent.extend_from_slice(&piece[..taken]);
            *room = taken == piece.len();
            pieces += 1;
        }
        driver.wait(Wake::Now).unwrap();
        while let Some((_, event)) = driver.next() {
            assert_eq!(event, Event::Writable);
            *room = true;
        }
    };
    // The kernel makes room late (it acknowledges late, and buffers grow): full is what stays full for a quarter of a
    // second.
    let mut full_since = Instant::now();
    while full_since.elapsed() < Duration::from_millis(250) {
        send(&mut sent, &mut room, &mut driver);
        if room {
            full_since = Instant::now();
            assert!(sent.len() < 100 << 20, "there is always room");
        }
    }
    let mut end = ends.remove(0);
    let reader = std::thread::spawn(move || {
        let mut seen = Vec::new();
        end.read_to_end(&mut seen).unwrap();
        seen
    });
    while !room {
        send(&mut sent, &mut room, &mut driver);
    }
    for _ in 0..100 {
        send(&mut sent, &mut room, &mut driver);
    }
    // A send that waits for room ends when there is room again.
    while !room {
        send(&mut sent, &mut room, &mut driver);
    }
    settle(&mut driver);
    driver.close(0);
    let seen = reader.join().unwrap();
    assert!(seen.len() >= sent.len() - 3_800, "{} of {} bytes", seen.len(), sent.len());
    assert!(seen == sent[..seen.len()], "bytes were torn");
}

#[test]
fn a_full_connection_tears_nothing() {
    nothing_is_lost_where_there_is_no_room::<Epoll>();
    nothing_is_lost_where_there_is_no_room::<Uring>();
}

fn what_is_handed_over_leaves_at_once<D: Driver>() {
    let (mut driver, mut ends) = connected::<D>(1);
    assert_eq!(driver.send(0, b"gone"), Ok(4));
    driver.hand_over().unwrap();
    let mut text = [0; 4];
    ends[0].read_exact(&mut text).unwrap();
    assert_eq!(&text, b"gone");
}

#[test]
fn handing_over_does_not_wait() {
    what_is_handed_over_leaves_at_once::<Epoll>();
    what_is_handed_over_leaves_at_once::<Uring>();
}
