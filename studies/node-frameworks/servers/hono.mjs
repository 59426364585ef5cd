// Contender `hono`: on its adapter for Node.js. Its own content type has no charset, so the answer names the type.

import process from "node:process";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { untimed } from "./untimed.mjs";

const headers = { "Content-Type": "application/json; charset=utf-8" };

const app = new Hono();
app.get("/", (context) => context.json({ hello: "world" }, 200, headers));
app.notFound((context) => context.json({ error: "not found" }, 404, headers));
untimed(serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT) }));
