// Contender `node-better-sqlite3`: Node's own HTTP server and the better-sqlite3 package.

import Database from "better-sqlite3";
import { answering, PRAGMAS } from "../shared/answer.mjs";
import { serve } from "../shared/node-http.mjs";

const database = new Database(process.env.METADATA_DB, { readonly: true, timeout: 5_000 });
for (const pragma of PRAGMAS) database.pragma(pragma);

serve(
  answering((sql) => database.prepare(sql)),
  process.env.PORT,
);
