// What every JavaScript contender answers. Knows no HTTP server.

import process from "node:process";

const NAME = process.env.HELLO_NAME;

const HEADERS = { "content-type": "application/json" };
const NOT_FOUND = { status: 404, headers: HEADERS, body: '{"error":"not found"}' };

/** Path and query of an absolute URL, for servers that hand over nothing else. */
export function targetOf(url) {
  return url.slice(url.indexOf("/", url.indexOf("//") + 2));
}

/** What `GET target` is answered; the text is written anew for each request. */
export function answer(target) {
  const mark = target.indexOf("?");
  if ((mark < 0 ? target : target.slice(0, mark)) !== "/json") return NOT_FOUND;
  return { status: 200, headers: HEADERS, body: JSON.stringify({ message: `Hello from ${NAME}` }) };
}
