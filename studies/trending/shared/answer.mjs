// What every JavaScript contender answers: parameters, query text, items, token, headers and body.
// Knows no HTTP server and no SQLite driver: the contender hands in `all(region, limit)`, which gives the rows.

import { createHmac } from "node:crypto";

export const QUERY =
  "SELECT id, title, channel, score, thumb_base FROM videos WHERE region = ? ORDER BY score DESC, id LIMIT ?";

export const KEY = "deadheat-trending";
export const DEFAULT_REGION = "GB";
export const DEFAULT_LIMIT = 24;
export const LARGEST_LIMIT = 50;

export const HEADERS = {
  "content-type": "application/json",
  "cache-control": "public, max-age=30, s-maxage=120",
};

export const NOT_FOUND = {
  status: 404,
  headers: { "content-type": "application/json" },
  body: '{"error":"not found"}',
};

/** The request target (`/path?query`) of an absolute URL, for servers that hand over nothing else. */
export function targetOf(url) {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

/** The first value of `name` in a query string, percent-decoded byte by byte; empty when it is missing. */
export function parameter(query, name) {
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

/** The first two ASCII letters in upper case, whatever stands between them; the default when there is none. */
export function regionOf(value) {
  const letters = value.replace(/[^a-z]/gi, "").slice(0, 2);
  return letters === "" ? DEFAULT_REGION : letters.toUpperCase();
}

/** A plain decimal integer of 1 or more, clamped to the largest; everything else means the default. */
export function limitOf(value) {
  if (!/^[0-9]+$/.test(value)) return DEFAULT_LIMIT;
  const limit = Number(value);
  return limit === 0 ? DEFAULT_LIMIT : Math.min(limit, LARGEST_LIMIT);
}

/** `region.count.minute` and the first 16 characters of its HMAC-SHA256 in base64url. */
export function tokenOf(region, count) {
  const message = `${region}.${count}.${Math.floor(Date.now() / 60_000)}`;
  return `${message}.${createHmac("sha256", KEY).update(message).digest("base64url").slice(0, 16)}`;
}

/** The items of the answer, made from the rows of `QUERY`. */
export function itemsOf(rows) {
  return rows.map(({ id, title, channel, score, thumb_base }) => ({
    id,
    title,
    channel,
    score,
    thumbs: [`${thumb_base}/hq.webp`, `${thumb_base}/sd.webp`],
  }));
}

/** What the rung `json` of the ladder serialises: as many items as an answer has, made once. */
const ITEMS = itemsOf(
  Array.from({ length: DEFAULT_LIMIT }, (_, n) => ({
    id: `ladder-${n}`,
    title: `A title that is as long as those of the dataset, number ${n} (full episode)`,
    channel: `Channel ${n}`,
    score: 100_000 - n,
    thumb_base: `https://thumbs.trending.example/videos/de/la/ladder-${n}/still-1/1280x720`,
  })),
);

const LADDER_HEADERS = { "content-type": "application/json" };

/** A rung of the ladder: the server alone, with JSON, or with the query as well. Without a token. */
export function rung(path, all) {
  if (path === "/ladder/nothing") return { status: 200, headers: LADDER_HEADERS, body: "{}" };
  if (path !== "/ladder/json" && path !== "/ladder/query") return NOT_FOUND;
  const items = path === "/ladder/json" ? ITEMS : itemsOf(all("DE", DEFAULT_LIMIT));
  const body = JSON.stringify({ region: "DE", count: items.length, token: "", items });
  return { status: 200, headers: LADDER_HEADERS, body };
}

/** A function from a request target to `{status, headers, body}`. */
export function answering(all) {
  return (target) => {
    const mark = target.indexOf("?");
    const path = mark < 0 ? target : target.slice(0, mark);
    if (path !== "/api/trending") return rung(path, all);
    const query = mark < 0 ? "" : target.slice(mark + 1);
    const region = regionOf(parameter(query, "region"));
    const items = itemsOf(all(region, limitOf(parameter(query, "limit"))));
    const count = items.length;
    const body = JSON.stringify({ region, count, token: tokenOf(region, count), items });
    return { status: 200, headers: HEADERS, body };
  };
}
