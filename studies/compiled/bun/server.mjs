// Contenders `bun` and `bun-compiled`: Bun.serve; as a script, and inside an executable of its own.

const HEADERS = { "content-type": "text/plain; charset=utf-8" };

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env.PORT),
  idleTimeout: 0, // none: a contender may be frozen between two slices of load
  fetch: () => new Response("Hello, World!", { headers: HEADERS }),
});
