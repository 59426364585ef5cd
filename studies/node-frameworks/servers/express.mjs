// Contender `express`: without `etag` and `x-powered-by`, so that it sends the same headers as the others.

import process from "node:process";
import express from "express";
import { untimed } from "./untimed.mjs";

const app = express();
app.disable("etag");
app.disable("x-powered-by");
app.get("/", (_request, response) => {
  response.json({ hello: "world" });
});
app.use((_request, response) => {
  response.status(404).json({ error: "not found" });
});
untimed(app.listen(Number(process.env.PORT), "127.0.0.1"));
