//! Single exchanges, as probes use them.

use std::io::Read as _;
use std::net::TcpListener;
use std::time::Duration;

use crate::kit::*;
use deadheat_load::*;

fn ask(server: &Server, head: bool, millis: u64) -> Result<Answer, ExchangeError> {
    exchange(&server.at(), None, &get().bytes, head, Duration::from_millis(millis), 1000)
}

#[test]
fn the_whole_answer_is_kept() {
    let server = Server::start(|stream, _| {
        say(stream, "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 404 No\r\nX-Y: z\r\nx-y: \u{e9}\r\n")
            && say(stream, "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n")
            && say(stream, "3\r\nllo\r\n0\r\n\r\n")
    });
    let answer = ask(&server, false, 5000).unwrap();
    assert_eq!((answer.status, answer.body.as_slice(), answer.keep_alive), (404, b"hello".as_slice(), true));
    let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["X-Y", "x-y", "Transfer-Encoding"]);
    assert_eq!((answer.header("x-Y"), answer.header("A")), (Some(b"z".as_slice()), None));
}

#[test]
fn ends_are_told_apart() {
    let until_close = Server::start(|stream, _| say_last(stream, "HTTP/1.1 200 OK\r\n\r\nabc"));
    let answer = ask(&until_close, false, 5000).unwrap();
    assert_eq!((answer.body.as_slice(), answer.keep_alive), (b"abc".as_slice(), false));
    let head = Server::start(|stream, _| say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
    assert_eq!(ask(&head, true, 5000).unwrap().body, b"");
    let broken =
        Server::start(|stream, _| say_last(stream, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"));
    assert!(matches!(ask(&broken, false, 5000), Err(ExchangeError::Closed { received: 41 })));
    let silent = Server::start(|_, _| true);
    assert!(matches!(ask(&silent, false, 50), Err(ExchangeError::Timeout(_))));
    let wrong = Server::start(|stream, _| say(stream, "SSH-2.0-OpenSSH\r\n"));
    assert!(matches!(ask(&wrong, false, 5000), Err(ExchangeError::Wrong(Wrong::StatusLine))));
    let surplus = Server::start(|stream, _| say(stream, "HTTP/1.1 204 No\r\n\r\nabc"));
    assert!(matches!(ask(&surplus, false, 5000), Err(ExchangeError::Wrong(Wrong::Surplus))));
    let long =
        Server::start(|stream, _| say_last(stream, &format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(1001))));
    assert!(matches!(ask(&long, false, 5000), Err(ExchangeError::TooLong { max_body: 1000 })));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = exchange(&Address::Tcp(port), None, &get().bytes, false, Duration::from_secs(5), 1000);
    assert!(matches!(nobody, Err(ExchangeError::Connect { .. })));
}

/// The server sends back what it reads, and reads no more while nobody takes that.
#[test]
fn a_server_may_answer_while_it_reads() {
    const LENGTH: usize = 32 << 20;
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let length = head.len();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut vec![0; length]).unwrap();
        say(&mut stream, &format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"));
        let mut back = stream.try_clone().unwrap();
        std::io::copy(&mut stream.take(LENGTH as u64), &mut back).unwrap();
    });
    let request = [head.as_bytes(), &vec![b'x'; LENGTH]].concat();
    let answer = exchange(&address, None, &request, false, Duration::from_secs(60), LENGTH).unwrap();
    assert_eq!((answer.body.len(), answer.body.iter().all(|byte| *byte == b'x')), (LENGTH, true));
    server.join().unwrap();
}

#[test]
fn gzip_may_hold_a_time() {
    let body = |time: u8| [0x1f, 0x8b, 8, 0, time, 0, 0, 0, 0, 3];
    assert!(holds_time(&body(1), Some("gzip")) && holds_time(&body(1), Some("identity, GZip")));
    assert!(!holds_time(&body(0), Some("gzip")) && !holds_time(&body(1), Some("br")));
    assert!(!holds_time(&body(1), None) && !holds_time(b"short", Some("gzip")));
}
