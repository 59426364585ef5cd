// Contender `0http`: its default router on Node's server. By default it handles each request in a later turn of the event loop.

import process from "node:process";
import cero from "0http";
import { untimed } from "./untimed.mjs";

const { router, server } = cero({
  defaultRoute: (_request, response) => {
    response.statusCode = 404;
    response.setHeader("content-type", "application/json; charset=utf-8");
    response.end(JSON.stringify({ error: "not found" }));
  },
});
router.get("/", (_request, response) => {
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(JSON.stringify({ hello: "world" }));
});
untimed(server);
server.listen(Number(process.env.PORT), "127.0.0.1");
