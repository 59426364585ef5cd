//! JSON strings as `JSON.stringify` writes them: what must be escaped and nothing else.

/// Appends `text` without its quotes. The bytes are taken to be UTF-8, as SQLite stores them.
pub fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    // Without a branch per byte, so that it becomes vector instructions: most texts need no escape at all.
    if !text.iter().fold(false, |found, &byte| found | must_escape(byte)) {
        out.extend_from_slice(text);
        return;
    }
    for &byte in text {
        if must_escape(byte) { push_escape(out, byte) } else { out.push(byte) }
    }
}

fn must_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: [u8; 16] = *b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a decimal integer.
pub fn push_integer(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        // The remainder of a division by ten fits a byte.
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::{push_escaped, push_integer};

    #[test]
    fn only_what_must_be_escaped_is() {
        let mut out = Vec::new();
        push_escaped(&mut out, "a/b <é> & \"q\" \\ \t\n\r\u{8}\u{c}\u{1}\u{7f} 🥨".as_bytes());
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a/b <é> & \\\"q\\\" \\\\ \\t\\n\\r\\b\\f\\u0001\u{7f} 🥨");
    }

    #[test]
    fn integers_of_every_length() {
        for value in [0, 7, -1, 10, 9_170_000, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_integer(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
