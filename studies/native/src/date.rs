//! The `date` header's text (RFC 9110, section 5.6.7), made once a second.

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// The text of the second it was last asked for.
pub(crate) struct HttpDate {
    unix_s: u64,
    text: [u8; 29],
}

impl HttpDate {
    /// Starts with the epoch's first second.
    pub(crate) fn new() -> Self {
        Self { unix_s: 0, text: text_of(0) }
    }

    /// The text of `unix_s`, seconds since 1970.
    pub(crate) fn at(&mut self, unix_s: u64) -> &[u8; 29] {
        if self.unix_s != unix_s {
            *self = Self { unix_s, text: text_of(unix_s) };
        }
        &self.text
    }
}

/// Days to a date of the Gregorian calendar after Howard Hinnant's `civil_from_days`.
fn text_of(unix_s: u64) -> [u8; 29] {
    let days = unix_s / 86_400;
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);

    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(DAYS[(days % 7) as usize]);
    text[8..11].copy_from_slice(MONTHS[month as usize]);
    for (at, value) in [
        (5, day),
        (12, year / 100),
        (14, year % 100),
        (17, unix_s / 3_600 % 24),
        (20, unix_s / 60 % 60),
        (23, unix_s % 60),
    ] {
        text[at] = b'0' + (value / 10) as u8;
        text[at + 1] = b'0' + (value % 10) as u8;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::HttpDate;

    /// Expectations from `date -u -R -d @SECONDS`.
    #[test]
    fn known_dates() {
        let mut date = HttpDate::new();
        for (unix_s, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_827_696, "Tue, 29 Feb 2000 12:34:56 GMT"),
            (1_740_787_199, "Fri, 28 Feb 2025 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date.at(unix_s), text.as_bytes(), "{unix_s}");
        }
    }
}
