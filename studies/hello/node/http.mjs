// Node's HTTP server around the answer; the single process and the workers of the cluster share it.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { answer } from "../shared/answer.mjs";

const { CERT, KEY } = process.env;

/** Serves on HOST:PORT, with TLS when CERT and KEY name files; `opened` is waited for before the first answer. No timeouts: contenders are frozen at times. */
export function serve(opened) {
  let waiting = opened !== undefined;
  opened?.then(() => (waiting = false));
  const respond = (request, response) => {
    const { status, headers, body } = answer(request.url);
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
    response.end(body);
  };
  const listener = (request, response) => {
    if (waiting) opened.then(() => respond(request, response));
    else respond(request, response);
  };
  const server =
    CERT && KEY
      ? createSecureServer({ cert: readFileSync(CERT), key: readFileSync(KEY) }, listener)
      : createServer(listener);
  server.keepAliveTimeout = 0;
  server.headersTimeout = 0;
  server.requestTimeout = 0;
  server.timeout = 0;
  server.listen({ host: process.env.HOST ?? "127.0.0.1", port: Number(process.env.PORT), backlog: 4096 });
}
