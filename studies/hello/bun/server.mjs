// Contender `bun`: Bun.serve, one process. Under `bun-reuseport` several of these share one port.

import { answer, targetOf } from "../shared/answer.mjs";

const { CERT, KEY } = process.env;
const isWorker = process.env.REUSE_PORT === "1";
// None answers before all listen, so that none misses its connections.
let waiting = isWorker;
const opened = new Promise((resolve) => isWorker && process.once("message", resolve));
opened.then(() => (waiting = false));

function respond(request) {
  const { status, headers, body } = answer(targetOf(request.url));
  return new Response(body, { status, headers });
}

Bun.serve({
  hostname: process.env.HOST ?? "127.0.0.1",
  port: Number(process.env.PORT),
  reusePort: isWorker,
  tls: CERT && KEY ? { cert: Bun.file(CERT), key: Bun.file(KEY) } : undefined,
  idleTimeout: 0, // none: a contender may be frozen between two slices of load
  fetch: (request) => (waiting ? opened.then(() => respond(request)) : respond(request)),
});
if (isWorker) process.send("listening");
