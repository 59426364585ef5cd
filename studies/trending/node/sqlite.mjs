// Contender `node26`: Node's own HTTP server and its built-in `node:sqlite`.

import { DatabaseSync } from "node:sqlite";
import { answering, QUERY } from "../shared/answer.mjs";
import { serve } from "../shared/node-http.mjs";

const database = new DatabaseSync(process.env.TRENDING_DB, { readOnly: true, timeout: 5_000 });
database.exec("PRAGMA query_only = 1");
const statement = database.prepare(QUERY);

serve(
  answering((region, limit) => statement.all(region, limit)),
  process.env.PORT,
);
