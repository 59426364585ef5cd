// Contender `hono`: on its adapter for Node.js.

import process from "node:process";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { untimed } from "./untimed.mjs";

const app = new Hono();
app.get("/", (context) => context.json({ hello: "world" }));
app.notFound((context) => context.json({ error: "not found" }, 404));
untimed(serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT) }));
