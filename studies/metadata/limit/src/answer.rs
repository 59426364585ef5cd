//! Answers: rows and nested JSON. Knows the database; of HTTP, status and headers only.

use std::borrow::Cow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Statement};
use serde::Deserialize;
use study_native::{Answer, Head, path_and_query, push_escaped, push_integer};

use crate::contract::{matching, parameter};

const VIDEO: &str =
    "SELECT id, title, channel, duration_s, published_at, thumb_json FROM videos WHERE id = ?";
const RELATED: &str = "SELECT id FROM video_related WHERE source_id = ? ORDER BY id LIMIT 8";
const SEARCH: &str = "SELECT v.id, v.title, v.channel, v.duration_s FROM videos_fts f JOIN videos v ON v.rowid = f.rowid \
                      WHERE videos_fts MATCH ? ORDER BY f.rank, v.id LIMIT 10";
const FOUND: Head = Head { status: "200 OK", headers: "content-type: application/json\r\n" };
const NOT_FOUND: Head = Head { status: "404 Not Found", ..FOUND };
const FAILED: Head = Head { status: "500 Internal Server Error", ..FOUND };

/// Why there is no answer: the database, or what is stored in it.
type Failure = Box<dyn std::error::Error>;

/// The statements of a lookup.
struct Lookup<'db> {
    video: Statement<'db>,
    related: Statement<'db>,
}

/// The prepared queries.
pub(crate) struct Metadata<'db> {
    database: &'db Connection,
    once: Lookup<'db>,
    search: Statement<'db>,
}

/// The stored pictures.
#[derive(Deserialize)]
struct Thumbnails<'a> {
    #[serde(borrow)]
    default: Thumbnail<'a>,
    #[serde(borrow)]
    medium: Thumbnail<'a>,
    #[serde(borrow)]
    high: Thumbnail<'a>,
    #[serde(borrow)]
    standard: Thumbnail<'a>,
    #[serde(borrow)]
    maxres: Thumbnail<'a>,
}

#[derive(Deserialize)]
struct Thumbnail<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    width: i64,
    height: i64,
}

impl<'db> Lookup<'db> {
    fn prepare(database: &'db Connection) -> rusqlite::Result<Self> {
        Ok(Self { video: database.prepare(VIDEO)?, related: database.prepare(RELATED)? })
    }

    /// Appends the answer for an id; says whether there is one.
    fn push(&mut self, id: &[u8], out: &mut Vec<u8>) -> Result<bool, Failure> {
        // No id is anything but ASCII.
        let Ok(id) = std::str::from_utf8(id) else { return Ok(false) };
        let mut rows = self.video.query([id])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        push_video(out, row)?;
        drop(rows);
        push_related(out, &mut self.related, id)?;
        Ok(true)
    }
}

impl<'db> Metadata<'db> {
    /// Prepares the queries on `database`.
    pub(crate) fn new(database: &'db Connection) -> rusqlite::Result<Self> {
        Ok(Self { database, once: Lookup::prepare(database)?, search: database.prepare(SEARCH)? })
    }

    fn push(&mut self, target: &[u8], out: &mut Vec<u8>) -> Result<bool, Failure> {
        let (path, query) = path_and_query(target);
        match path {
            b"/" => self.once.push(&parameter(query, b"id"), out),
            b"/anew" => Lookup::prepare(self.database)?.push(&parameter(query, b"id"), out),
            b"/search" => self.push_search(&parameter(query, b"q"), out).map(|()| true),
            _ => Ok(false),
        }
    }

    fn push_search(&mut self, query: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let words = matching(query);
        let mut items = Vec::new();
        let mut count = 0;
        if !words.is_empty() {
            let mut rows = self.search.query([words])?;
            while let Some(row) = rows.next()? {
                if count > 0 {
                    items.push(b',');
                }
                push_start(&mut items, row)?;
                items.extend_from_slice(b",\"duration_s\":");
                push_integer(&mut items, row.get_ref(3)?.as_i64()?);
                items.push(b'}');
                count += 1;
            }
        }
        out.extend_from_slice(b"{\"count\":");
        push_integer(out, count);
        out.extend_from_slice(b",\"items\":[");
        out.extend_from_slice(&items);
        out.extend_from_slice(b"]}");
        Ok(())
    }
}

impl Answer for Metadata<'_> {
    fn answer(&mut self, target: &[u8], body: &mut Vec<u8>) -> Head {
        let (head, text) = match self.push(target, body) {
            Ok(true) => return FOUND,
            Ok(false) => (NOT_FOUND, "null"),
            Err(_) => (FAILED, "{\"error\":\"database\"}"),
        };
        body.clear();
        body.extend_from_slice(text.as_bytes());
        head
    }
}

/// Appends `{"id":…,"title":…,"channel":…`, which both kinds of rows begin with.
fn push_start(out: &mut Vec<u8>, row: &Row<'_>) -> Result<(), Failure> {
    for (column, name) in ["{\"id\":\"", "\",\"title\":\"", "\",\"channel\":\""].into_iter().enumerate() {
        out.extend_from_slice(name.as_bytes());
        push_escaped(out, text(row, column)?);
    }
    out.push(b'"');
    Ok(())
}

fn push_video(out: &mut Vec<u8>, row: &Row<'_>) -> Result<(), Failure> {
    push_start(out, row)?;
    let seconds = row.get_ref(3)?.as_i64()?;
    out.extend_from_slice(b",\"duration\":{\"seconds\":");
    push_integer(out, seconds);
    out.extend_from_slice(b",\"text\":\"");
    push_duration(out, seconds);
    let at = text(row, 4)?;
    let digits =
        |from: usize, to: usize| -> Option<i64> { std::str::from_utf8(at.get(from..to)?).ok()?.parse().ok() };
    let (year, month) = digits(0, 4).zip(digits(5, 7)).ok_or("published_at is no time")?;
    out.extend_from_slice(b"\"},\"published\":{\"at\":\"");
    push_escaped(out, at);
    out.extend_from_slice(b"\",\"year\":");
    push_integer(out, year);
    out.extend_from_slice(b",\"month\":");
    push_integer(out, month);
    out.extend_from_slice(b"},\"thumbnails\":{");
    let all: Thumbnails<'_> = serde_json::from_slice(text(row, 5)?)?;
    let named = [
        ("\"default\":", &all.default),
        (",\"medium\":", &all.medium),
        (",\"high\":", &all.high),
        (",\"standard\":", &all.standard),
        (",\"maxres\":", &all.maxres),
    ];
    for (name, thumbnail) in named {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"{\"url\":\"");
        push_escaped(out, thumbnail.url.as_bytes());
        out.extend_from_slice(b"\",\"width\":");
        push_integer(out, thumbnail.width);
        out.extend_from_slice(b",\"height\":");
        push_integer(out, thumbnail.height);
        out.push(b'}');
    }
    out.push(b'}');
    Ok(())
}

fn push_related(out: &mut Vec<u8>, statement: &mut Statement<'_>, id: &str) -> Result<(), Failure> {
    let (mut ids, mut count) = (Vec::with_capacity(128), 0);
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        ids.extend_from_slice(if count > 0 { b",\"" } else { b"\"" });
        push_escaped(&mut ids, text(row, 0)?);
        ids.push(b'"');
        count += 1;
    }
    out.extend_from_slice(b",\"related\":{\"count\":");
    push_integer(out, count);
    out.extend_from_slice(b",\"ids\":[");
    out.extend_from_slice(&ids);
    out.extend_from_slice(b"]}}");
    Ok(())
}

/// `1:02:03`, or `2:03` below an hour.
fn push_duration(out: &mut Vec<u8>, seconds: i64) {
    let two = |out: &mut Vec<u8>, number: i64| {
        if number < 10 {
            out.push(b'0');
        }
        push_integer(out, number);
    };
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    if hours > 0 {
        push_integer(out, hours);
        out.push(b':');
        two(out, minutes);
    } else {
        push_integer(out, minutes);
    }
    out.push(b':');
    two(out, seconds % 60);
}

fn text<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row [u8], Failure> {
    match row.get_ref(column)? {
        ValueRef::Text(text) => Ok(text),
        other => Err(format!("column {column} is {}", other.data_type()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Connection {
        let database = Connection::open_in_memory().unwrap();
        let picture =
            |name: &str| format!("\"{name}\": {{\"url\": \"u/{name}\", \"width\": 2, \"height\": 1}}");
        let pictures = ["default", "medium", "high", "standard", "maxres"].map(picture).join(", ");
        database
            .execute_batch(&format!(
                "CREATE TABLE videos(id TEXT PRIMARY KEY, title TEXT, channel TEXT, duration_s INTEGER, published_at TEXT, thumb_json TEXT);
                 CREATE TABLE video_related(source_id TEXT, id TEXT);
                 CREATE VIRTUAL TABLE videos_fts USING fts5(title, channel, content='videos', content_rowid='rowid');
                 INSERT INTO videos VALUES ('a', 'The \"quiet\" bridge', 'k', 3723, '2019-03-04T05:06:07Z', '{{{pictures}}}');
                 INSERT INTO video_related VALUES ('a', 'c'), ('a', 'b'), ('x', 'y');
                 INSERT INTO videos_fts(videos_fts) VALUES ('rebuild');"
            ))
            .unwrap();
        database
    }

    fn asked(database: &Connection, target: &str) -> (&'static str, String) {
        let mut body = Vec::new();
        let head = Metadata::new(database).unwrap().answer(target.as_bytes(), &mut body);
        (head.status, String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_video_with_all_that_belongs_to_it() {
        let database = database();
        let (status, body) = asked(&database, "/?id=a");
        assert_eq!(status, FOUND.status);
        let begin = "{\"id\":\"a\",\"title\":\"The \\\"quiet\\\" bridge\",\"channel\":\"k\",\
                     \"duration\":{\"seconds\":3723,\"text\":\"1:02:03\"},\
                     \"published\":{\"at\":\"2019-03-04T05:06:07Z\",\"year\":2019,\"month\":3},\
                     \"thumbnails\":{\"default\":{\"url\":\"u/default\",\"width\":2,\"height\":1},";
        assert!(body.starts_with(begin), "{body}");
        assert!(body.ends_with("\"related\":{\"count\":2,\"ids\":[\"b\",\"c\"]}}"), "{body}");
        assert_eq!(asked(&database, "/anew?id=a"), (status, body));
        for none in ["/?id=b", "/", "/x?id=a", "/?id=%C3"] {
            assert_eq!(asked(&database, none), (NOT_FOUND.status, "null".to_owned()), "{none}");
        }
    }

    #[test]
    fn searches_need_all_words() {
        let database = database();
        let item =
            "{\"id\":\"a\",\"title\":\"The \\\"quiet\\\" bridge\",\"channel\":\"k\",\"duration_s\":3723}";
        let one = format!("{{\"count\":1,\"items\":[{item}]}}");
        let none = "{\"count\":0,\"items\":[]}".to_owned();
        for (query, body) in [("quiet+bridge", &one), ("BRIDGE", &one), ("quiet+river", &none), ("", &none)] {
            assert_eq!(
                asked(&database, &format!("/search?q={query}")),
                (FOUND.status, body.clone()),
                "{query}"
            );
        }
    }

    #[test]
    fn durations_below_an_hour_and_above() {
        for (seconds, text) in [(30, "0:30"), (754, "12:34"), (3_600, "1:00:00"), (36_005, "10:00:05")] {
            let mut out = Vec::new();
            push_duration(&mut out, seconds);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
