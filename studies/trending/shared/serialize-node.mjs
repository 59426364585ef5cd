// `serialize` for runtimes with Node's modules: node, bun, deno.

import { readFileSync } from "node:fs";
import { measure } from "./serialize.mjs";

measure(readFileSync(new URL("answer-24.json", import.meta.url), "utf8"), console.log);
