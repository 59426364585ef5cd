//! The page as React renders it. Knows no database and no HTTP.

use study_native::push_integer;

use crate::database::User;

/// Ages are those of this day: year, month, day.
const AS_OF: (i64, i64, i64) = (2025, 7, 1);
const HEAD: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charSet=\"utf-8\"/><title>Users</title></head><body><h1>Users</h1>\
                    <p>Average age: <!-- -->";
const TABLE: &str = "</p><table><thead><tr><th>Id</th><th>Name</th><th>Age</th></tr></thead><tbody>";
const END: &str = "</tbody></table></body></html>";

/// A page that is being made.
#[derive(Debug, Default)]
pub(crate) struct Page {
    rows: Vec<u8>,
    ages: i64,
    count: i64,
}

impl Page {
    /// Begins a new page.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        (self.ages, self.count) = (0, 0);
    }

    /// Adds a row of the table.
    pub(crate) fn add(&mut self, user: &User<'_>) {
        let age = age(user.born);
        (self.ages, self.count) = (self.ages + age, self.count + 1);
        self.rows.extend_from_slice(b"<tr><td>");
        push_integer(&mut self.rows, user.id);
        self.rows.extend_from_slice(b"</td><td>");
        push_html(&mut self.rows, user.first_name);
        self.rows.push(b' ');
        push_html(&mut self.rows, user.last_name);
        self.rows.extend_from_slice(b"</td><td>");
        push_integer(&mut self.rows, age);
        self.rows.extend_from_slice(b"</td></tr>");
    }

    /// Appends the whole page.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(HEAD.as_bytes());
        let count = self.count.max(1);
        // Hundredths, rounded to the nearest.
        let hundredths = (self.ages * 100 + count / 2) / count;
        push_integer(out, hundredths / 100);
        out.push(b'.');
        push_integer(out, hundredths / 10 % 10);
        push_integer(out, hundredths % 10);
        out.extend_from_slice(TABLE.as_bytes());
        out.extend_from_slice(&self.rows);
        out.extend_from_slice(END.as_bytes());
    }
}

fn age((year, month, day): (i64, i64, i64)) -> i64 {
    let is_before = (AS_OF.1, AS_OF.2) < (month, day);
    AS_OF.0 - year - i64::from(is_before)
}

/// Appends a text as React escapes it.
fn push_html(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"&quot;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'\'' => out.extend_from_slice(b"&#x27;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_change_on_birthdays() {
        for (born, years) in
            [((2000, 7, 1), 25), ((2000, 7, 2), 24), ((1988, 2, 29), 37), ((2000, 12, 1), 24)]
        {
            assert_eq!(age(born), years, "{born:?}");
        }
    }

    #[test]
    fn a_page_has_its_rows_escaped_and_the_mean_age() {
        let mut page = Page::default();
        page.add(&User { id: 9, first_name: b"x", last_name: b"y", born: (1900, 1, 1) });
        page.clear();
        for (id, born) in [(1, (2000, 7, 1)), (2, (2000, 7, 2)), (3, (2000, 7, 2))] {
            page.add(&User { id, first_name: b"A", last_name: b"<O'B> & \"C\"", born });
        }
        let mut out = Vec::new();
        page.push(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("<p>Average age: <!-- -->24.33</p>"), "{text}");
        let row = "<tr><td>1</td><td>A &lt;O&#x27;B&gt; &amp; &quot;C&quot;</td><td>25</td></tr>";
        assert!(text.contains(&format!("<tbody>{row}<tr><td>2")) && text.ends_with(END), "{text}");
    }
}
