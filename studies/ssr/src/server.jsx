// All three JavaScript contenders: Express, Drizzle over mysql2, React's renderToString. Nothing in it knows its runtime.

import process from "node:process";
import { drizzle } from "drizzle-orm/mysql2";
import express from "express";
import { createPool } from "mysql2/promise";
import { renderToString } from "react-dom/server";
import { Page } from "./page.jsx";
import { averageAge, peopleOf } from "./people.js";
import { users } from "./schema.js";

const { PORT, SSR_DB_PORT } = process.env;

const pool = createPool({ host: "127.0.0.1", port: Number(SSR_DB_PORT), user: "ssr", database: "ssr" });
const database = drizzle({ client: pool });

const app = express();
app.get("/", async (request, response) => {
  const people = peopleOf(await database.select().from(users).orderBy(users.id));
  const html = renderToString(<Page people={people} average={averageAge(people)} />);
  response.type("html").send(`<!DOCTYPE html>${html}`);
});

// No timeouts: a contender may be frozen between two slices of load.
const server = app.listen(Number(PORT), "127.0.0.1");
server.keepAliveTimeout = 0;
server.headersTimeout = 0;
server.requestTimeout = 0;
server.timeout = 0;
