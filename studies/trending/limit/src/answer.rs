//! Answers: rows, JSON and token. Knows the database; of HTTP, status and headers only.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement};
use sha2::Sha256;
use study_native::{Answer, Head, path_and_query, push_escaped, push_integer};

use crate::contract;

const QUERY: &str = "SELECT id, title, channel, score, thumb_base FROM videos \
                     WHERE region = ? ORDER BY score DESC, id LIMIT ?";
const KEY: &[u8] = b"deadheat-trending";
const FOUND: Head = Head {
    status: "200 OK",
    headers: "content-type: application/json\r\ncache-control: public, max-age=30, s-maxage=120\r\n",
};
const NOT_FOUND: Head = Head { status: "404 Not Found", headers: "content-type: application/json\r\n" };
/// The rungs of the ladder: the server alone, with JSON, with the query as well; none has a token.
const RUNG: Head = Head { status: "200 OK", ..NOT_FOUND };
const FAILED: Head = Head { status: "500 Internal Server Error", ..NOT_FOUND };

/// The prepared query and what the token is signed with.
pub(crate) struct Trending<'db> {
    statement: Statement<'db>,
    mac: Hmac<Sha256>,
    items: Vec<u8>,
    ladder: Vec<Item>,
}

/// An item of the ladder's rung `json`: id, title, channel and thumbnails' base, as they were before they are escaped.
struct Item {
    texts: [String; 4],
    score: i64,
}

/// As many items as an answer has, made once.
fn ladder() -> Vec<Item> {
    let item = |n: i64| Item {
        texts: [
            format!("ladder-{n}"),
            format!("A title that is as long as those of the dataset, number {n} (full episode)"),
            format!("Channel {n}"),
            format!("https://thumbs.trending.example/videos/de/la/ladder-{n}/still-1/1280x720"),
        ],
        score: 100_000 - n,
    };
    (0..24).map(item).collect()
}

impl<'db> Trending<'db> {
    /// Prepares the query on `database`.
    pub(crate) fn new(database: &'db Connection) -> rusqlite::Result<Self> {
        let items = Vec::with_capacity(64 * 1024);
        Ok(Self { statement: database.prepare(QUERY)?, mac: keyed(), items, ladder: ladder() })
    }

    /// Appends the answer to a request with this query string, as of `unix_s` seconds since 1970.
    pub(crate) fn push(&mut self, query: &[u8], unix_s: u64, out: &mut Vec<u8>) -> rusqlite::Result<()> {
        let (region, limit) = contract::parameters(query);
        let count = self.collect_items(region.as_str(), limit)?;
        out.extend_from_slice(b"{\"region\":\"");
        out.extend_from_slice(region.as_str().as_bytes());
        out.extend_from_slice(b"\",\"count\":");
        push_integer(out, count);
        out.extend_from_slice(b",\"token\":\"");
        push_token(out, &self.mac, region.as_str(), count, unix_s);
        out.extend_from_slice(b"\",\"items\":[");
        out.extend_from_slice(&self.items);
        out.extend_from_slice(b"]}");
        Ok(())
    }

    /// Appends the answer of the rung `json`, or `query` where the items come from the database.
    fn push_ladder(&mut self, out: &mut Vec<u8>, queried: bool) -> rusqlite::Result<()> {
        let count = if queried {
            self.collect_items("DE", 24)?
        } else {
            self.items.clear();
            for (place, item) in self.ladder.iter().enumerate() {
                if place > 0 {
                    self.items.push(b',');
                }
                push_parts(&mut self.items, &item.texts.each_ref().map(String::as_bytes), item.score);
            }
            self.ladder.len() as i64
        };
        out.extend_from_slice(b"{\"region\":\"DE\",\"count\":");
        push_integer(out, count);
        out.extend_from_slice(b",\"token\":\"\",\"items\":[");
        out.extend_from_slice(&self.items);
        out.extend_from_slice(b"]}");
        Ok(())
    }

    /// Writes the items, with commas between them, to `self.items`; gives their number.
    fn collect_items(&mut self, region: &str, limit: u32) -> rusqlite::Result<i64> {
        self.items.clear();
        let mut rows = self.statement.query((region, limit))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            if count > 0 {
                self.items.push(b',');
            }
            push_item(&mut self.items, row)?;
            count += 1;
        }
        Ok(count)
    }
}

impl Answer for Trending<'_> {
    fn answer(&mut self, target: &[u8], body: &mut Vec<u8>) -> Head {
        let (path, query) = path_and_query(target);
        let unix_s = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (head, pushed) = match path {
            b"/api/trending" => (FOUND, self.push(query, unix_s(), body)),
            b"/ladder/nothing" => {
                body.extend_from_slice(b"{}");
                (RUNG, Ok(()))
            }
            b"/ladder/json" => (RUNG, self.push_ladder(body, false)),
            b"/ladder/query" => (RUNG, self.push_ladder(body, true)),
            _ => {
                body.extend_from_slice(b"{\"error\":\"not found\"}");
                (NOT_FOUND, Ok(()))
            }
        };
        if pushed.is_ok() {
            return head;
        }
        body.clear();
        body.extend_from_slice(b"{\"error\":\"database\"}");
        FAILED
    }
}

fn push_item(out: &mut Vec<u8>, row: &Row<'_>) -> rusqlite::Result<()> {
    let texts = [text(row, 0)?, text(row, 1)?, text(row, 2)?, text(row, 4)?];
    push_parts(out, &texts, row.get_ref(3)?.as_i64()?);
    Ok(())
}

/// Appends an item: id, title, channel and thumbnails' base, and its score.
fn push_parts(out: &mut Vec<u8>, [id, title, channel, thumb_base]: &[&[u8]; 4], score: i64) {
    out.extend_from_slice(b"{\"id\":\"");
    push_escaped(out, id);
    out.extend_from_slice(b"\",\"title\":\"");
    push_escaped(out, title);
    out.extend_from_slice(b"\",\"channel\":\"");
    push_escaped(out, channel);
    out.extend_from_slice(b"\",\"score\":");
    push_integer(out, score);
    out.extend_from_slice(b",\"thumbs\":[\"");
    let start = out.len();
    push_escaped(out, thumb_base);
    let thumb_base = start..out.len();
    out.extend_from_slice(b"/hq.webp\",\"");
    out.extend_from_within(thumb_base);
    out.extend_from_slice(b"/sd.webp\"]}");
}

fn text<'row>(row: &'row Row<'_>, column: usize) -> rusqlite::Result<&'row [u8]> {
    match row.get_ref(column)? {
        ValueRef::Text(text) => Ok(text),
        other => Err(rusqlite::Error::InvalidColumnType(column, "text".to_owned(), other.data_type())),
    }
}

fn keyed() -> Hmac<Sha256> {
    // HMAC takes a key of any length.
    Hmac::new_from_slice(KEY).unwrap_or_else(|_| unreachable!())
}

/// `region.count.minute` and the first 16 characters of its HMAC-SHA256 in base64url.
fn push_token(out: &mut Vec<u8>, mac: &Hmac<Sha256>, region: &str, count: i64, unix_s: u64) {
    let start = out.len();
    out.extend_from_slice(region.as_bytes());
    out.push(b'.');
    push_integer(out, count);
    out.push(b'.');
    push_integer(out, (unix_s / 60).cast_signed());
    let mut mac = mac.clone();
    mac.update(&out[start..]);
    let signature = mac.finalize().into_bytes();
    out.push(b'.');
    // Twelve bytes are sixteen characters.
    let end = out.len();
    out.resize(end + 16, 0);
    let written = URL_SAFE_NO_PAD.encode_slice(&signature[..12], &mut out[end..]);
    debug_assert_eq!(written.ok(), Some(16));
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{Trending, keyed, push_token};

    /// Expectation from `printf DE.24.29000000 | openssl dgst -sha256 -hmac deadheat-trending -binary | base64`.
    #[test]
    fn token_is_signed_with_the_study_key() {
        let mut out = Vec::new();
        push_token(&mut out, &keyed(), "DE", 24, 29_000_000 * 60 + 59);
        assert_eq!(String::from_utf8(out).unwrap(), "DE.24.29000000.FzU8j7Acpkoc4dvS");
    }

    #[test]
    fn items_by_score_then_id_with_the_region_asked_for() {
        let database = Connection::open_in_memory().unwrap();
        database
            .execute_batch(
                "CREATE TABLE videos(id TEXT, title TEXT, channel TEXT, region TEXT, score INTEGER, thumb_base TEXT);
                 INSERT INTO videos VALUES ('b', 'zwei', 'k', 'DE', 5, 'u/b'), ('a', '\"eins\"', 'k', 'DE', 5, 'u/a'),
                                           ('c', 'drei', 'k', 'DE', 9, 'u/c'), ('d', 'other', 'k', 'FR', 99, 'u/d');",
            )
            .unwrap();
        let mut out = Vec::new();
        Trending::new(&database).unwrap().push(b"region=de&limit=2", 0, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, items) = text.split_once(",\"items\":").unwrap();
        assert!(head.starts_with("{\"region\":\"DE\",\"count\":2,\"token\":\"DE.2.0."), "{head}");
        assert_eq!(
            items,
            "[{\"id\":\"c\",\"title\":\"drei\",\"channel\":\"k\",\"score\":9,\"thumbs\":[\"u/c/hq.webp\",\"u/c/sd.webp\"]},\
             {\"id\":\"a\",\"title\":\"\\\"eins\\\"\",\"channel\":\"k\",\"score\":5,\"thumbs\":[\"u/a/hq.webp\",\"u/a/sd.webp\"]}]}"
        );
    }
}
