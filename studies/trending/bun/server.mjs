// Contender `bun`: Bun.serve and `bun:sqlite`.

import { Database } from "bun:sqlite";
import { answering, QUERY, targetOf } from "../shared/answer.mjs";

const database = new Database(process.env.TRENDING_DB, { readonly: true });
database.exec("PRAGMA busy_timeout = 5000");
database.exec("PRAGMA query_only = 1");
const statement = database.prepare(QUERY);
const answer = answering((region, limit) => statement.all(region, limit));

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env.PORT),
  idleTimeout: 0, // none: a contender may be frozen between two slices of load
  fetch(request) {
    const { status, headers, body } = answer(targetOf(request.url));
    return new Response(body, { status, headers });
  },
});
