// Contender `hapi`: without cookies, as in the table, and without cache and range headers, so that it sends the same headers as the others.

import process from "node:process";
import Hapi from "@hapi/hapi";
import { untimed } from "./untimed.mjs";

const server = Hapi.server({ host: "127.0.0.1", port: Number(process.env.PORT), debug: false });
const options = { cache: false, response: { ranges: false }, state: { parse: false } };
server.route({ method: "GET", path: "/", options, handler: () => ({ hello: "world" }) });
server.route({
  method: "*",
  path: "/{any*}",
  options,
  handler: (_request, h) => h.response({ error: "not found" }).code(404),
});
untimed(server.listener);
await server.start();
