//! What the parameters of a request mean, on bytes. Knows neither HTTP nor the database.

const DEFAULT_REGION: Region = Region { letters: [b'G', b'B'], length: 2 };
const DEFAULT_LIMIT: u32 = 24;
const LARGEST_LIMIT: u32 = 50;

/// One or two upper-case ASCII letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    letters: [u8; 2],
    length: usize,
}

impl Region {
    /// The letters as text.
    pub(crate) fn as_str(&self) -> &str {
        // Only ASCII letters are ever stored.
        std::str::from_utf8(&self.letters[..self.length]).unwrap_or_default()
    }
}

/// Region and limit as a query string gives them; the first of a repeated parameter counts.
pub(crate) fn parameters(query: &[u8]) -> (Region, u32) {
    let mut region = None;
    let mut limit = None;
    for pair in query.split(|&byte| byte == b'&') {
        let (name, value) = match pair.iter().position(|&byte| byte == b'=') {
            Some(equals) => (&pair[..equals], &pair[equals + 1..]),
            None => (pair, &[][..]),
        };
        match name {
            b"region" if region.is_none() => region = Some(region_of(value)),
            b"limit" if limit.is_none() => limit = Some(limit_of(value)),
            _ => {}
        }
    }
    (region.unwrap_or(DEFAULT_REGION), limit.unwrap_or(DEFAULT_LIMIT))
}

/// The first two ASCII letters in upper case, whatever stands between them; the default when there is none.
fn region_of(value: &[u8]) -> Region {
    let mut region = Region { letters: [0; 2], length: 0 };
    for letter in PercentDecoded(value).filter(u8::is_ascii_alphabetic).take(2) {
        region.letters[region.length] = letter.to_ascii_uppercase();
        region.length += 1;
    }
    if region.length == 0 { DEFAULT_REGION } else { region }
}

/// A plain decimal integer of 1 or more, clamped to the largest; everything else means the default.
fn limit_of(value: &[u8]) -> u32 {
    let mut limit = 0;
    for digit in PercentDecoded(value) {
        if !digit.is_ascii_digit() {
            return DEFAULT_LIMIT;
        }
        limit = (limit * 10 + u32::from(digit - b'0')).min(LARGEST_LIMIT);
    }
    if limit == 0 { DEFAULT_LIMIT } else { limit }
}

/// The bytes of a value; a percent sign that no two hexadecimal digits follow stands for itself.
struct PercentDecoded<'a>(&'a [u8]);

impl Iterator for PercentDecoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        if let (b'%', [high, low, after @ ..]) = (first, rest)
            && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
        {
            self.0 = after;
            return Some(high << 4 | low);
        }
        self.0 = rest;
        Some(first)
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn region_and_limit_of_good_and_bad_queries() {
        let cases: [(&str, &str, u32); 17] = [
            ("", "GB", 24),
            ("region=DE&limit=24", "DE", 24),
            ("region=&limit=", "GB", 24),
            ("region", "GB", 24),
            ("region=de-DE&limit=50", "DE", 50),
            ("region=d", "D", 24),
            ("region=1d2e3", "DE", 24),
            ("region=12", "GB", 24),
            ("region=%64%65&limit=%35", "DE", 5),
            ("region=%zzde&limit=%", "ZZ", 24),
            ("region=%C3%A9se", "SE", 24),
            ("limit=51", "GB", 50),
            ("limit=99999999999999999999999", "GB", 50),
            ("limit=007", "GB", 7),
            ("limit=0&limit=3", "GB", 24),
            ("limit=-1", "GB", 24),
            ("region=&region=DE&limit=1e9", "GB", 24),
        ];
        for (query, region, limit) in cases {
            let (got_region, got_limit) = parameters(query.as_bytes());
            assert_eq!((got_region.as_str(), got_limit), (region, limit), "{query}");
        }
    }
}
