// Contender `koa`: without a router, as Koa comes. The one middleware looks at the path itself.

import process from "node:process";
import Koa from "koa";
import { untimed } from "./untimed.mjs";

const app = new Koa();
app.use((context) => {
  if (context.method === "GET" && context.path === "/") {
    context.body = { hello: "world" };
  } else {
    context.status = 404;
    context.body = { error: "not found" };
  }
});
untimed(app.listen(Number(process.env.PORT), "127.0.0.1"));
