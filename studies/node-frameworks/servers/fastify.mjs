// Contender `fastify`: a route with a response schema, from which Fastify makes a serialiser, as its documentation advises.

import process from "node:process";
import Fastify from "fastify";
import { untimed } from "./untimed.mjs";

const app = Fastify();
const answer = { type: "object", properties: { hello: { type: "string" } } };
app.get("/", { schema: { response: { 200: answer } } }, (_request, reply) => {
  reply.send({ hello: "world" });
});
app.setNotFoundHandler((_request, reply) => {
  reply.code(404).send({ error: "not found" });
});
untimed(app.server);
await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
