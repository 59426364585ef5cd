// Contender `h3`: version 2, on srvx. Its own content type is spelled in another way, so the answer names the type.

import process from "node:process";
import { H3, HTTPResponse, serve } from "h3";
import { untimed } from "./untimed.mjs";

const headers = { "content-type": "application/json; charset=utf-8" };
const missing = { status: 404, statusText: "Not Found", headers };

const app = new H3();
app.get("/", () => new HTTPResponse(JSON.stringify({ hello: "world" }), { headers }));
app.all("/**", () => new HTTPResponse(JSON.stringify({ error: "not found" }), missing));
// Without the graceful shutdown, a signal ends it at once, as it ends the others.
const server = serve(app, {
  hostname: "127.0.0.1",
  port: Number(process.env.PORT),
  gracefulShutdown: false,
  silent: true,
});
untimed(server.node.server);
