//! Tests of the answer parser: a table of answers, and properties for random splits and random bytes.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::fuzzing::{Parsed, Seen, check_answer, check_written, parse};

fn complete(text: &str, head: bool) -> Parsed {
    let parsed = parse([text.as_bytes()], head);
    assert_eq!(parsed.end, Ok(true), "{text:?}");
    parsed
}

#[test]
fn complete_answers() {
    let long = "x".repeat(300);
    let long_answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n{long}");
    for (text, head, status, body, keep) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, 200, "hello", true),
        ("HTTP/1.1 200\r\ncontent-LENGTH:5\r\n\r\nhello", false, 200, "hello", true),
        ("HTTP/1.1 200 \r\nContent-Length: \t 0 \r\n\r\n", false, 200, "", true),
        ("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", false, 200, "x", true),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false, 200, "x", false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", false, 200, "x", true),
        ("HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 1\r\n\r\nx", false, 200, "x", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", true, 200, "", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, 200, "", true),
        ("HTTP/1.1 204 No Content\r\n\r\n", false, 204, "", true),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", false, 304, "", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            false,
            200,
            "abc",
            true,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n", false, 200, "", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip;chunked=1,,chunked\r\n\r\n0\r\n\r\n",
            false,
            200,
            "",
            true,
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \t\r\nx\r\n0\r\n\n", false, 200, "x", true),
        ("HTTP/1.1 999 \u{fc}\t!\r\nX:\ty\u{fc}\t\r\nContent-Length:00\n\n", false, 999, "", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;a=b\r\n0123456789\r\n01 ;x\r\nz\r\n000;q\r\nT: 1\r\n\r\n",
            false,
            200,
            "0123456789z",
            true,
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 9\r\n\r\n\
             HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno",
            false,
            404,
            "no",
            true,
        ),
        (long_answer.as_str(), false, 200, long.as_str(), true),
    ] {
        let parsed = complete(text, head);
        let got = (parsed.status, parsed.keep_alive, parsed.used);
        assert_eq!(got, (status, keep, text.len()), "{text:?}");
        assert_eq!(parsed.seen.body, body.as_bytes(), "{text:?}");
    }
}

#[test]
fn interim_headers_are_forgotten_and_names_are_kept() {
    let text =
        "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nX-A:  b c \r\nContent-Length: 0\r\n\r\n";
    let headers = complete(text, false).seen.headers;
    assert_eq!(headers, [(b"X-A".to_vec(), b"b c".to_vec()), (b"Content-Length".to_vec(), b"0".to_vec())]);
}

#[test]
fn surplus_is_left_over() {
    let parsed = complete("HTTP/1.1 204 No\r\n\r\nxyz", false);
    assert_eq!(parsed.used, 19);
}

#[test]
fn close_delimited_answers() {
    for text in [
        "HTTP/1.1 200 OK\r\n\r\nabc",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
    ] {
        let parsed = parse([text.as_bytes()], false);
        assert_eq!((parsed.end, parsed.until_close, parsed.keep_alive), (Ok(false), true, false), "{text:?}");
        assert_eq!(parsed.seen.body, b"abc");
    }
}

#[test]
fn incomplete_answers_do_not_end_with_close() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let parsed = parse([text.as_bytes()], false);
        assert_eq!((parsed.end, parsed.until_close), (Ok(false), false), "{text:?}");
    }
}

/// Checks that `text` is wrong in one piece and in many.
fn assert_wrong(text: &str, wrong: Wrong) {
    let shown = &text[..text.len().min(120)];
    assert_eq!(parse([text.as_bytes()], false).end, Err(wrong), "{shown:?}");
    assert_eq!(parse(text.as_bytes().chunks(1), false).end, Err(wrong), "{shown:?}");
}

#[test]
fn wrong_heads() {
    let header = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
    for (text, wrong) in [
        ("nonsense\r\n".to_owned(), Wrong::StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/2.0 200 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.2 200 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 20 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 2000 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 099 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1  200 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 200 O\0K\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 200 OK\r\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 200 O\rK\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 200\tOK\r\n".to_owned(), Wrong::StatusLine),
        ("http/1.1 200 OK\r\n".to_owned(), Wrong::StatusLine),
        ("HTTP/1.1 101 Switching\r\n\r\n".to_owned(), Wrong::Upgrade),
        (header("no colon"), Wrong::Header),
        (header(": empty"), Wrong::Header),
        (header("A : space"), Wrong::Header),
        (header("A: b\r\n folded"), Wrong::Header),
        (header("A: b\rc"), Wrong::Header),
        (header("A: b\0c"), Wrong::Header),
        (header("A: b\x7f"), Wrong::Header),
        (header("A: b\r"), Wrong::Header),
        (header("A\t: b"), Wrong::Header),
        (header("\tA: b"), Wrong::Header),
        (header("\u{fc}: b"), Wrong::Header),
        (header("A\0: b"), Wrong::Header),
        ("HTTP/1.1 200 OK\r\n\r\r\n".to_owned(), Wrong::Header),
        ("HTTP/1.1 100 C\r\n A: folded\r\n\r\n".to_owned(), Wrong::Header),
        (header("Content-Length: -1"), Wrong::ContentLength),
        (header("Content-Length: +1"), Wrong::ContentLength),
        (header("Content-Length:"), Wrong::ContentLength),
        (header("Content-Length: 1, 1"), Wrong::ContentLength),
        (header("Content-Length: 0x1"), Wrong::ContentLength),
        (header("Content-Length: 9007199254740993"), Wrong::ContentLength),
        (header("Content-Length: 99999999999999999999999"), Wrong::ContentLength),
        (header("Content-Length: 1\r\nContent-Length: 1"), Wrong::DuplicateLength),
        (header("Content-Length: 1\r\nContent-Length: 2"), Wrong::DuplicateLength),
        (header("Content-Length: 1\r\nTransfer-Encoding: chunked"), Wrong::LengthAndEncoding),
        (header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), Wrong::TransferEncoding),
        (header("Transfer-Encoding: ,"), Wrong::TransferEncoding),
        (header("Transfer-Encoding: chunked, chunked"), Wrong::TransferEncoding),
        (header("Transfer-Encoding: chunked, gzip"), Wrong::TransferEncoding),
        (header("Transfer-Encoding: chunked;q=1"), Wrong::TransferEncoding),
        (header("Transfer-Encoding: gzip, Chunked ; q"), Wrong::TransferEncoding),
        (header("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"), Wrong::TransferEncoding),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), Wrong::TransferEncoding),
        (header(&format!("A: {}", "x".repeat(HEAD_LIMIT))), Wrong::HeadTooLong),
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(3000), Wrong::HeadTooLong),
    ] {
        assert_wrong(&text, wrong);
    }
}

#[test]
fn wrong_chunks() {
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
    for (text, wrong) in [
        (chunked("\r\n"), Wrong::ChunkSize),
        (chunked("g\r\n"), Wrong::ChunkSize),
        (chunked("-1\r\n"), Wrong::ChunkSize),
        (chunked("1 1\r\n"), Wrong::ChunkSize),
        (chunked("ffffffffffffffff\r\n"), Wrong::ChunkSize),
        (chunked("10000000000000000\r\n"), Wrong::ChunkSize),
        (chunked("ffffffffffffff\r\n"), Wrong::ChunkSize),
        (chunked(&format!("1;{}\r\n", "x".repeat(CHUNK_LINE_LIMIT))), Wrong::ChunkSize),
        (chunked("1\nx\r\n"), Wrong::ChunkSize),
        (chunked("1;a=\0\r\n"), Wrong::ChunkSize),
        (chunked("1;a=\rb\r\n"), Wrong::ChunkSize),
        (chunked("1\r\r\n"), Wrong::ChunkSize),
        (chunked("1\x0c\r\n"), Wrong::ChunkSize),
        (chunked("0x1\r\n"), Wrong::ChunkSize),
        (chunked(&format!("1;{}", "x".repeat(CHUNK_LINE_LIMIT))), Wrong::ChunkSize),
        (chunked("20000000000001\r\n"), Wrong::ChunkSize),
        (chunked("1\r\nab\r\n"), Wrong::ChunkEnd),
        (chunked("1\r\na\n"), Wrong::ChunkEnd),
        (chunked("1\r\na\r\r\n"), Wrong::ChunkEnd),
        (chunked("0\r\n A: folded\r\n"), Wrong::Header),
        (chunked("0\r\nnot a trailer\r\n"), Wrong::Header),
        (chunked(&format!("0\r\n{}", "A: b\r\n".repeat(20_000))), Wrong::HeadTooLong),
    ] {
        assert_wrong(&text, wrong);
    }
}

#[test]
fn a_dripping_head_is_not_scanned_again_and_again() {
    let text = format!("HTTP/1.1 200 OK\r\nA: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(60_000));
    let (mut parser, mut seen, mut at) = (Parser::new(), Seen::default(), 0);
    for end in 1..=text.len() {
        let step = parser.advance(&text.as_bytes()[at..end], &mut seen).unwrap();
        at += step.consumed;
        // All bytes that were not consumed were searched for a line end.
        assert!(step.complete || parser.scanned == end - at);
    }
    assert_eq!(at, text.len());
}

#[test]
fn the_seeds_of_fuzzing_are_survived() {
    for (target, check) in [("answer", check_answer as fn(&[u8])), ("rate", check_written)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.len() >= 10, "{target}");
        files.iter().for_each(|file| check(&std::fs::read(file).unwrap()));
    }
}

/// Pieces of answers, valid and invalid, combined at random. They reach edge cases far more often than random bytes.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    const FRAGMENTS: [&[u8]; 32] = [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.0 404 \n",
        b"HTTP/1.1 100 C\r\n\r\n",
        b"HTTP/1.1 204 N\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip",
        b", chunked",
        b"Connection: close\r\n",
        b"X: y\r\n",
        b"\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b":",
        b";",
        b"3\r\nabc\r\n",
        b"2;e=f\r\nab\r\n",
        b"1\nx\n",
        b"0\r\n",
        b"0\r\n\r\n",
        b"abc",
        b"\0",
        b"\x7f",
        b"\xfc",
        b"f",
        b"ffffffffffffff",
        b"20000000000000",
    ];
    prop::collection::vec(prop::sample::select(FRAGMENTS.to_vec()), 0..14).prop_map(|list| list.concat())
}

/// How a valid answer ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ends {
    Length,
    Chunked {
        size: usize,
    },
    Close,
    /// Nothing follows the head, whatever the head says.
    Bodiless {
        status: u16,
        head: bool,
    },
}

#[derive(Debug, Clone)]
struct Sound {
    bytes: Vec<u8>,
    body: Vec<u8>,
    ends: Ends,
}

fn sound() -> impl Strategy<Value = Sound> {
    let ends = prop_oneof![
        Just(Ends::Length),
        (1..50usize).prop_map(|size| Ends::Chunked { size }),
        Just(Ends::Close),
        prop::sample::select(vec![(204, false), (304, false), (200, true), (404, true)])
            .prop_map(|(status, head)| Ends::Bodiless { status, head }),
    ];
    let header =
        "[A-Za-z0-9!#$%&'*+.^_`|~-]{1,20}:[ \t]{0,2}([!-~\u{80}-\u{ff}][ -~\t]{0,40}[!-~])?[ \t]{0,2}";
    let headers = prop::collection::vec((header, prop::sample::select(vec!["\r\n", "\n"])), 0..5);
    let headers = headers.prop_filter("would frame the answer", |list| {
        let framing = ["content-length", "transfer-encoding"];
        list.iter().all(|(line, _)| !framing.iter().any(|name| line.to_lowercase().starts_with(name)))
    });
    let body = prop::collection::vec(any::<u8>(), 0..400);
    (ends, headers, 0..3usize, body).prop_map(|(ends, headers, interim, body)| {
        let lines: String = headers.iter().map(|(line, end)| format!("{line}{end}")).collect();
        let status = if let Ends::Bodiless { status, .. } = ends { status } else { 200 };
        let interims = format!("HTTP/1.1 103 Early\r\n{lines}\r\n").repeat(interim);
        let mut bytes = format!("{interims}HTTP/1.1 {status} \r\n{lines}").into_bytes();
        match ends {
            Ends::Length | Ends::Bodiless { .. } => {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
            }
            Ends::Chunked { .. } => bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n"),
            Ends::Close => bytes.extend(b"\r\n"),
        }
        if let Ends::Chunked { size } = ends {
            for chunk in body.chunks(size) {
                bytes.extend(format!("{:x};e\r\n", chunk.len()).bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(format!("0\r\n{lines}\r\n").bytes());
        } else if !matches!(ends, Ends::Bodiless { .. }) {
            bytes.extend(&body);
        }
        Sound { bytes, body, ends }
    })
}

fn split_by(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same(
        bytes in prop_oneof![sound().prop_map(|sound| sound.bytes), fragments()],
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        head in any::<bool>(),
    ) {
        let whole = parse([bytes.as_slice()], head);
        let pieces = split_by(&bytes, &cuts);
        prop_assert_eq!(&parse(pieces.iter().map(Vec::as_slice), head), &whole);
        check_answer(&bytes);
    }

    #[test]
    fn sound_answers_are_understood(sound in sound()) {
        let Sound { bytes, body, ends } = sound;
        let head = matches!(ends, Ends::Bodiless { head: true, .. });
        let parsed = parse([bytes.as_slice()], head);
        prop_assert_eq!((parsed.end, parsed.used), (Ok(ends != Ends::Close), bytes.len()));
        prop_assert_eq!(parsed.until_close, ends == Ends::Close);
        let wanted = if matches!(ends, Ends::Bodiless { .. }) { vec![] } else { body };
        prop_assert_eq!(parsed.seen.body, wanted);
    }

    #[test]
    fn the_first_control_character_is_found(bytes in prop::collection::vec(
        prop_oneof![any::<u8>(), 0x1e..0x22u8, 0x7d..0x82u8, Just(0u8), Just(0xffu8), 0x20..0x7fu8, 0x20..0x7fu8],
        0..40,
    )) {
        let wanted = bytes.iter().position(|byte| byte.is_ascii_control());
        prop_assert_eq!(first_control(&bytes), wanted);
        prop_assert_eq!(first_control(&bytes[bytes.len() / 3..]).is_some(), bytes[bytes.len() / 3..].iter().any(u8::is_ascii_control));
    }

    #[test]
    fn garbage_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        check_answer(&bytes);
        check_answer(&[b"HTTP/1.1 200 OK\r\n".as_slice(), &bytes].concat());
    }
}
