//! Owns: the tests of the request reader: each must hold for bytes in pieces of any size.

use proptest::prelude::*;

use super::*;

/// What the reader finds when the bytes come in pieces of these lengths, cycled.
fn read(bytes: &[u8], pieces: &[usize]) -> Vec<Read> {
    let (mut reader, mut found, mut rest) = (Reader::new(), Vec::new(), bytes);
    for length in pieces.iter().cycle() {
        let (mut piece, more) = rest.split_at((*length).min(rest.len()));
        rest = more;
        while let Some(one) = reader.next(&mut piece) {
            found.push(one);
        }
        assert!(piece.is_empty());
        assert!(reader.line.len() <= LONGEST_LINE);
        if rest.is_empty() {
            return found;
        }
    }
    found
}

fn request(head: bool, close: bool, body: bool) -> Read {
    Read::Request(Request { head, close, body })
}

fn check(bytes: &[u8], expected: &[Read]) {
    for pieces in [&[usize::MAX][..], &[1], &[2, 7], &[64]] {
        assert_eq!(read(bytes, pieces), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn requests_are_read_in_any_pieces() {
    let get = request(false, false, false);
    let cases: [(&str, &[Read]); 12] = [
        ("GET / HTTP/1.1\r\n\r\n", &[get]),
        ("\r\n\nGET /a?b=c HTTP/1.1\nhost: x\n\nGET / HTTP/1.1\r\na:\r\n\r\n", &[get, get]),
        ("HEAD / HTTP/1.1\r\n\r\n", &[request(true, false, false)]),
        (
            "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
            &[request(false, false, true), get],
        ),
        ("POST / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", &[get]),
        ("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhello", &[]),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nt: 1\r\n\r\n\
             GET / HTTP/1.1\r\n\r\n",
            &[request(false, false, true), get],
        ),
        (
            "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
            &[Read::Waits, request(false, false, true)],
        ),
        (
            "GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            &[request(false, true, false)],
        ),
        (
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            &[request(false, true, false)],
        ),
        ("GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", &[get]),
        ("GET / HTTP/1.1\r\nHos", &[]),
    ];
    for (bytes, expected) in cases {
        check(bytes.as_bytes(), expected);
    }
}

#[test]
fn nonsense_is_malformed_once_and_nothing_is_read_after_it() {
    for text in [
        "hello\r\n",
        "GET /\r\n",
        "GET  / HTTP/1.1\r\n",
        "GET / HTTP/1.1 x\r\n",
        "GET / HTTP/2.0\r\n",
        "GET / HTTP/1.11\r\n",
        "G@T / HTTP/1.1\r\n",
        "GET /\u{1} HTTP/1.1\r\n",
        "\u{16}\u{3}\u{1}\u{2}\n",
        "GET / HTTP/1.1\r\nno colon\r\n",
        "GET / HTTP/1.1\r\n: x\r\n",
        "GET / HTTP/1.1\r\na : x\r\n",
        "GET / HTTP/1.1\r\na: x\r\n folded\r\n",
        "GET / HTTP/1.1\r\na: x\u{0}y\r\n",
        "GET / HTTP/1.1\r\na: x\ry\r\n",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n",
        "GET / HTTP/1.1\r\nContent-Length: +1\r\n",
        "GET / HTTP/1.1\r\nContent-Length: a\r\n",
        "GET / HTTP/1.1\r\nContent-Length:\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
    ] {
        check(format!("{text}\r\nGET / HTTP/1.1\r\n\r\n").as_bytes(), &[Read::Malformed]);
    }
}

#[test]
fn heads_have_an_end() {
    let line = format!("a: {}\r\n", "x".repeat(LONGEST_LINE - 10));
    let long = format!("GET / HTTP/1.1\r\n{}", line.repeat(9));
    check(long.as_bytes(), &[Read::TooLarge]);
    check(&vec![b'x'; LONGEST_LINE + 1], &[Read::TooLarge]);
    check(
        format!("GET / HTTP/1.1\r\nx{line}a: 123456789\r\n\r\n").as_bytes(),
        &[request(false, false, false)],
    );
    check(format!("GET / HTTP/1.1\r\n{line}0123456789{line}\r\n").as_bytes(), &[Read::TooLarge]);
    let trailers = "a: b\r\n".repeat(LONGEST_HEAD / 6 + 1);
    let chunked = format!("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}");
    check(chunked.as_bytes(), &[Read::TooLarge]);
    // Many short requests must not count as one long head.
    let many = "GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3_000);
    check(many.as_bytes(), &vec![request(false, false, false); 3_000]);
}

proptest! {
    #[test]
    fn pieces_do_not_matter(text in "(GET|HEAD|x) / HTTP/1[.][01]\r\n(a: b\r\n|content-length: [0-9]\r\n|\
                            transfer-encoding: chunked\r\n){0,3}\r\n([0-3x]\r?\n?){0,9}", pieces in prop::collection::vec(1_usize..9, 1..5)) {
        prop_assert_eq!(read(text.as_bytes(), &pieces), read(text.as_bytes(), &[usize::MAX]));
    }
}
