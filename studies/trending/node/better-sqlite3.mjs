// Contender `node-better-sqlite3`: Node's own HTTP server and the better-sqlite3 package.

import Database from "better-sqlite3";
import { answering, QUERY } from "../shared/answer.mjs";
import { serve } from "../shared/node-http.mjs";

const database = new Database(process.env.TRENDING_DB, { readonly: true, timeout: 5_000 });
database.pragma("query_only = 1");
const statement = database.prepare(QUERY);

serve(
  answering((region, limit) => statement.all(region, limit)),
  process.env.PORT,
);
