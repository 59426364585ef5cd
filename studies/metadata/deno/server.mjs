// Contender `deno`: Deno.serve and `node:sqlite` as Deno provides it.

import { DatabaseSync } from "node:sqlite";
import { answering, PRAGMAS, targetOf } from "../shared/answer.mjs";

const database = new DatabaseSync(Deno.env.get("METADATA_DB"), { readOnly: true, timeout: 5_000 });
for (const pragma of PRAGMAS) database.exec(`PRAGMA ${pragma}`);
const answer = answering((sql) => database.prepare(sql));

Deno.serve(
  { hostname: "127.0.0.1", port: Number(Deno.env.get("PORT")), onListen() {} },
  (request) => {
    const { status, headers, body } = answer(targetOf(request.url));
    return new Response(body, { status, headers });
  },
);
