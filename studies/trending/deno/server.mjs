// Contender `deno`: Deno.serve and `node:sqlite` as Deno provides it.

import { DatabaseSync } from "node:sqlite";
import { answering, QUERY, targetOf } from "../shared/answer.mjs";

const database = new DatabaseSync(Deno.env.get("TRENDING_DB"), { readOnly: true, timeout: 5_000 });
database.exec("PRAGMA query_only = 1");
const statement = database.prepare(QUERY);
const answer = answering((region, limit) => statement.all(region, limit));

Deno.serve(
  { hostname: "127.0.0.1", port: Number(Deno.env.get("PORT")), onListen() {} },
  (request) => {
    const { status, headers, body } = answer(targetOf(request.url));
    return new Response(body, { status, headers });
  },
);
