// Contender `polka`: its router on Node's server. It leaves the answer to Node's own functions.

import process from "node:process";
import polka from "polka";
import { untimed } from "./untimed.mjs";

const app = polka({
  onNoMatch: (_request, response) => {
    response.statusCode = 404;
    response.setHeader("content-type", "application/json; charset=utf-8");
    response.end(JSON.stringify({ error: "not found" }));
  },
});
app.get("/", (_request, response) => {
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(JSON.stringify({ hello: "world" }));
});
app.listen(Number(process.env.PORT), "127.0.0.1");
untimed(app.server);
