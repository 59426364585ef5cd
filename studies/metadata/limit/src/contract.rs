//! What the parameters of a request mean, on bytes. Knows neither HTTP nor the database.

use std::borrow::Cow;

/// The first value of `name` in a query string, percent-decoded; empty when it is missing.
pub(crate) fn parameter<'q>(query: &'q [u8], name: &[u8]) -> Cow<'q, [u8]> {
    for pair in query.split(|&byte| byte == b'&') {
        let (found, value) = match pair.iter().position(|&byte| byte == b'=') {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &[][..]),
        };
        if found == name {
            return percent_decoded(value);
        }
    }
    Cow::Borrowed(&[])
}

/// A percent sign that no two hexadecimal digits follow stands for itself.
fn percent_decoded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'%') {
        return Cow::Borrowed(value);
    }
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value);
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|two| first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let octet = digits.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        out.push(octet.unwrap_or(first));
        rest = if octet.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(out)
}

/// The words of a search as FTS5 reads them: runs of ASCII letters and digits, each in quotes; empty when there is none.
pub(crate) fn matching(query: &[u8]) -> String {
    let mut out = String::with_capacity(query.len() + 8);
    for word in query.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push('"');
        out.extend(word.iter().map(|&byte| char::from(byte)));
        out.push('"');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{matching, parameter};

    #[test]
    fn values_are_decoded_and_the_first_counts() {
        for (query, value) in [
            ("", ""),
            ("id=a&id=b", "a"),
            ("xid=a&id=b", "b"),
            ("id", ""),
            ("id=%61%zz%4", "a%zz%4"),
            ("id=&id=b", ""),
        ] {
            assert_eq!(parameter(query.as_bytes(), b"id"), value.as_bytes(), "{query}");
        }
    }

    #[test]
    fn words_are_quoted() {
        for (query, words) in [
            ("", ""),
            ("+-\"", ""),
            ("quiet+bridge", "\"quiet\" \"bridge\""),
            ("a\" OR b*", "\"a\" \"OR\" \"b\""),
        ] {
            assert_eq!(matching(query.as_bytes()), words, "{query}");
        }
    }
}
