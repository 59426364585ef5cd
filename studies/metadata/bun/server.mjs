// Contender `bun`: Bun.serve and `bun:sqlite`.

import { Database } from "bun:sqlite";
import { answering, PRAGMAS, targetOf } from "../shared/answer.mjs";

const database = new Database(process.env.METADATA_DB, { readonly: true });
database.exec("PRAGMA busy_timeout = 5000");
for (const pragma of PRAGMAS) database.exec(`PRAGMA ${pragma}`);
// `prepare`, not `query`, which would keep statements.
const answer = answering((sql) => database.prepare(sql));

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env.PORT),
  idleTimeout: 0, // none: a contender may be frozen between two slices of load
  fetch(request) {
    const { status, headers, body } = answer(targetOf(request.url));
    return new Response(body, { status, headers });
  },
});
