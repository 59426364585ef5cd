//! Decodes the bodies of answers, so that parity compares what contenders send and not how they compress it.
//!
//! Owns: the content codings that deadheat can decode. Must not know: what the bodies mean.

use std::borrow::Cow;
use std::io::Read;

use deadheat_load::Answer;

/// A decoded body may have this many bytes. A small answer can decode to a very large one.
const MOST: u64 = 64 << 20;

/// The codings of an answer's body in the order in which they were applied, in lower case: `gzip`; none if the body is sent as it is.
pub(crate) fn of(answer: &Answer) -> Option<String> {
    let values = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let all: Vec<String> =
        values.map(|(_, value)| String::from_utf8_lossy(value).trim().to_ascii_lowercase()).collect();
    let all = all.join(", ");
    let codings: Vec<&str> = codings(&all).collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

fn codings(all: &str) -> impl DoubleEndedIterator<Item = &str> {
    all.split(',').map(str::trim).filter(|one| !one.is_empty() && *one != "identity")
}

/// The body without these codings, from [`of`]. It stays as it was sent if it is empty, as in the answer to `HEAD`, if a coding is unknown,
/// if it cannot be decoded, and if it would become too large.
pub(crate) fn decoded<'b>(encoding: Option<&str>, body: &'b [u8]) -> Cow<'b, [u8]> {
    let mut plain = Cow::Borrowed(body);
    for coding in codings(encoding.unwrap_or_default()).rev() {
        match without(coding, &plain) {
            Some(inner) if !body.is_empty() => plain = Cow::Owned(inner),
            _ => return Cow::Borrowed(body),
        }
    }
    plain
}

fn without(coding: &str, body: &[u8]) -> Option<Vec<u8>> {
    match coding {
        "gzip" | "x-gzip" => read(flate2::read::MultiGzDecoder::new(body)),
        // By the standard with a zlib header; some servers leave it out.
        "deflate" => read(flate2::read::ZlibDecoder::new(body))
            .or_else(|| read(flate2::read::DeflateDecoder::new(body))),
        "br" => read(brotli_decompressor::Decompressor::new(body, 4096)),
        "zstd" => {
            // A body may consist of several frames.
            let (mut rest, mut plain) = (body, Vec::new());
            while !rest.is_empty() {
                plain.extend(read(ruzstd::decoding::StreamingDecoder::new(&mut rest).ok()?)?);
                if plain.len() as u64 > MOST {
                    return None;
                }
            }
            Some(plain)
        }
        _ => None,
    }
}

fn read(from: impl Read) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    from.take(MOST + 1).read_to_end(&mut plain).ok()?;
    (plain.len() as u64 <= MOST).then_some(plain)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn answer(encodings: &[&str]) -> Answer {
        let header = |value: &&str| ("Content-Encoding".to_owned(), value.as_bytes().to_vec());
        let headers = encodings.iter().map(header).collect();
        Answer { status: 200, headers, body: Vec::new(), keep_alive: true }
    }

    fn gzipped(body: &[u8]) -> Vec<u8> {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        to.write_all(body).unwrap();
        to.finish().unwrap()
    }

    #[test]
    fn the_codings_are_read_from_all_headers() {
        for (headers, encoding) in [
            (&[][..], None),
            (&["identity"], None),
            (&["GZIP"], Some("gzip")),
            (&["gzip, br"], Some("gzip, br")),
            (&["gzip", " br "], Some("gzip, br")),
        ] {
            assert_eq!(of(&answer(headers)).as_deref(), encoding, "{headers:?}");
        }
    }

    /// The brotli is of Node.js, the zstd of the program `zstd`.
    #[test]
    fn every_coding_gives_the_text_back() {
        let text: &[u8] = b"dead heat, dead heat, dead heat\n";
        let brotli: &[u8] = b"\x1b\x1f\x00\xf8\x1d\x09\x36\x4e\x7c\x7d\xb8\x33\x54\x87\x91\xa1\xd1\x49\x10\x05\x96\x28\x2b\x45\x86\x8a\x00\xa6\x28\x9e\x00";
        let zstd: &[u8] = b"\x28\xb5\x2f\xfd\x04\x58\x95\x00\x00\x60\x64\x65\x61\x64\x20\x68\x65\x61\x74\x2c\x20\x0a\x01\x00\xa6\x8b\x17\xe5\x5c\x5e\x06";
        let twice = gzipped(&gzipped(text));
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(text).unwrap();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        deflate.write_all(text).unwrap();
        for (encoding, body) in [
            (None, text),
            (Some("gzip"), &gzipped(text)),
            (Some("gzip, gzip"), &twice),
            (Some("deflate"), &zlib.finish().unwrap()),
            (Some("deflate"), &deflate.finish().unwrap()),
            (Some("br"), brotli),
            (Some("zstd"), zstd),
        ] {
            assert_eq!(&*decoded(encoding, body), text, "{encoding:?}");
        }
        let frames = [zstd, zstd].concat();
        assert_eq!(&*decoded(Some("zstd"), &frames), [text, text].concat(), "all frames");
    }

    #[test]
    fn what_cannot_be_decoded_stays_as_it_was_sent() {
        for coding in ["gzip", "deflate", "br", "zstd", "compress", "br, compress"] {
            for body in [&b"plain text"[..], b""] {
                assert_eq!(&*decoded(Some(coding), body), body, "{coding}");
            }
        }
        let bomb = gzipped(&vec![0; MOST as usize + 1]);
        assert_eq!(&*decoded(Some("gzip"), &bomb), bomb);
    }
}
