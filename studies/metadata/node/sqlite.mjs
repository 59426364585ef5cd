// Contender `node26`: Node's own HTTP server and its built-in `node:sqlite`.

import { DatabaseSync } from "node:sqlite";
import { answering, PRAGMAS } from "../shared/answer.mjs";
import { serve } from "../shared/node-http.mjs";

const database = new DatabaseSync(process.env.METADATA_DB, { readOnly: true, timeout: 5_000 });
for (const pragma of PRAGMAS) database.exec(`PRAGMA ${pragma}`);

serve(
  answering((sql) => database.prepare(sql)),
  process.env.PORT,
);
