// Contender `deno`: Deno.serve, a script.

const HEADERS = { "content-type": "text/plain; charset=utf-8" };

Deno.serve(
  { hostname: "127.0.0.1", port: Number(Deno.env.get("PORT")), onListen() {} },
  () => new Response("Hello, World!", { headers: HEADERS }),
);
