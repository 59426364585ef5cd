// Node's HTTP server around an `answer`; both contenders that run on Node share it, only their drivers differ.

import { createServer } from "node:http";

/** Serves `answer` on 127.0.0.1. No timeouts: a contender may be frozen between two slices of load. */
export function serve(answer, port) {
  const server = createServer((request, response) => {
    const { status, headers, body } = answer(request.url);
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
  server.keepAliveTimeout = 0;
  server.headersTimeout = 0;
  server.requestTimeout = 0;
  server.timeout = 0;
  server.listen(Number(port), "127.0.0.1");
}
