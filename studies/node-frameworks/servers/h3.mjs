// Contender `h3`: version 2, on srvx.

import process from "node:process";
import { H3, serve } from "h3";
import { untimed } from "./untimed.mjs";

const app = new H3();
app.get("/", () => ({ hello: "world" }));
app.all("/**", (event) => {
  event.res.status = 404;
  return { error: "not found" };
});
// Without the graceful shutdown, a signal ends it at once, as it ends the others.
const server = serve(app, {
  hostname: "127.0.0.1",
  port: Number(process.env.PORT),
  gracefulShutdown: false,
  silent: true,
});
untimed(server.node.server);
