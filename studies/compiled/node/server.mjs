// Contenders `node` and `node-sea`: Node's own HTTP server; as a script, and inside an executable of its own.

import { createServer } from "node:http";

const BODY = "Hello, World!";
const HEADERS = { "content-type": "text/plain; charset=utf-8", "content-length": Buffer.byteLength(BODY) };

const server = createServer((request, response) => {
  response.writeHead(200, HEADERS);
  response.end(BODY);
});
// No timeouts: a contender may be frozen between two slices of load.
server.keepAliveTimeout = 0;
server.headersTimeout = 0;
server.requestTimeout = 0;
server.timeout = 0;
server.listen({ host: "127.0.0.1", port: Number(process.env.PORT), backlog: 4096 });
