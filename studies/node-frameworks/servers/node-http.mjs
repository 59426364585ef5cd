// Contender `node-http`: Node's own server without a framework. All others stand on it.

import { createServer } from "node:http";
import process from "node:process";
import { untimed } from "./untimed.mjs";

const server = createServer((request, response) => {
  const query = request.url.indexOf("?");
  const path = query < 0 ? request.url : request.url.slice(0, query);
  response.setHeader("content-type", "application/json; charset=utf-8");
  if (request.method === "GET" && path === "/") {
    response.end(JSON.stringify({ hello: "world" }));
  } else {
    response.statusCode = 404;
    response.end(JSON.stringify({ error: "not found" }));
  }
});
untimed(server);
server.listen(Number(process.env.PORT), "127.0.0.1");
