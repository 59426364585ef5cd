// What every JavaScript contender answers: parameters, statements, nested JSON. Knows no HTTP server and no SQLite driver:
// the contender hands in `prepare(sql)`, whose statements have `get(value)` and `all(value)`.

const VIDEO = "SELECT id, title, channel, duration_s, published_at, thumb_json FROM videos WHERE id = ?";
const RELATED = "SELECT id FROM video_related WHERE source_id = ? ORDER BY id LIMIT 8";
const SEARCH =
  "SELECT v.id, v.title, v.channel, v.duration_s FROM videos_fts f JOIN videos v ON v.rowid = f.rowid" +
  " WHERE videos_fts MATCH ? ORDER BY f.rank, v.id LIMIT 10";

/** What each connection is set to. */
export const PRAGMAS = ["query_only = 1", "mmap_size = 268435456"];

const HEADERS = { "content-type": "application/json" };
const NOT_FOUND = { status: 404, headers: HEADERS, body: "null" };

/** The request target (`/path?query`) of an absolute URL, for servers that hand over nothing else. */
export function targetOf(url) {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

/** The first value of `name` in a query string, percent-decoded byte by byte; empty when it is missing. */
function parameter(query, name) {
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    if (equals === name.length && pair.startsWith(name)) return percentDecoded(pair.slice(equals + 1));
    if (pair === name) return "";
  }
  return "";
}

/** Bytes become characters U+0000 to U+00FF; a percent sign without two hexadecimal digits stands for itself. */
function percentDecoded(value) {
  if (!value.includes("%")) return value;
  return value.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}

/** `1:02:03`, or `2:03` below an hour. */
function durationText(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

function found(value) {
  return { status: 200, headers: HEADERS, body: JSON.stringify(value) };
}

function lookup({ video, related }, id) {
  const row = video.get(id);
  if (!row) return NOT_FOUND;
  const { title, channel, duration_s, published_at, thumb_json } = row;
  const ids = related.all(id).map((one) => one.id);
  return found({
    id: row.id,
    title,
    channel,
    duration: { seconds: duration_s, text: durationText(duration_s) },
    published: { at: published_at, year: Number(published_at.slice(0, 4)), month: Number(published_at.slice(5, 7)) },
    thumbnails: JSON.parse(thumb_json),
    related: { count: ids.length, ids },
  });
}

/** Words are runs of ASCII letters and digits; a row must have all of them. */
function searched(statement, query) {
  const words = query.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const rows = words.length > 0 ? statement.all(words.map((word) => `"${word}"`).join(" ")) : [];
  const items = rows.map(({ id, title, channel, duration_s }) => ({ id, title, channel, duration_s }));
  return found({ count: items.length, items });
}

/** A function from a request target to `{status, headers, body}`. */
export function answering(prepare) {
  const lookups = () => ({ video: prepare(VIDEO), related: prepare(RELATED) });
  const once = lookups();
  const search = prepare(SEARCH);
  return (target) => {
    const mark = target.indexOf("?");
    const path = mark < 0 ? target : target.slice(0, mark);
    const query = mark < 0 ? "" : target.slice(mark + 1);
    switch (path) {
      case "/":
        return lookup(once, parameter(query, "id"));
      case "/anew":
        return lookup(lookups(), parameter(query, "id"));
      case "/search":
        return searched(search, parameter(query, "q"));
      default:
        return NOT_FOUND;
    }
  };
}
