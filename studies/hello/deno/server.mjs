// Contender `deno`: Deno.serve, one process.

import { answer, targetOf } from "../shared/answer.mjs";

Deno.serve(
  { hostname: "127.0.0.1", port: Number(Deno.env.get("PORT")), onListen() {} },
  (request) => {
    const { status, headers, body } = answer(targetOf(request.url));
    return new Response(body, { status, headers });
  },
);
