// Contender `restify`: without a name, so that it sends no `server` header. Its own content type has no charset.

import process from "node:process";
import restify from "restify";
import { untimed } from "./untimed.mjs";

const app = restify.createServer({ name: "" });
app.get("/", (_request, response, next) => {
  response.charSet("utf-8");
  response.send({ hello: "world" });
  return next();
});
app.on("NotFound", (_request, response, _error, done) => {
  response.charSet("utf-8");
  response.send(404, { error: "not found" });
  return done();
});
untimed(app.server);
app.listen(Number(process.env.PORT), "127.0.0.1");
