// Contender `deno`: Deno.serve, one process.

import { answer, targetOf } from "../shared/answer.mjs";

const [certFile, keyFile] = [Deno.env.get("CERT"), Deno.env.get("KEY")];
const tls = certFile && keyFile ? { cert: Deno.readTextFileSync(certFile), key: Deno.readTextFileSync(keyFile) } : {};

Deno.serve(
  { hostname: "127.0.0.1", port: Number(Deno.env.get("PORT")), onListen() {}, ...tls },
  (request) => {
    const { status, headers, body } = answer(targetOf(request.url));
    return new Response(body, { status, headers });
  },
);
