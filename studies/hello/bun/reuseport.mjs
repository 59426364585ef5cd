// Contender `bun-reuseport`: several processes that listen on one port; the kernel spreads the connections over them.

import { WORKERS } from "../shared/workers.mjs";

const workers = [];
let listening = 0;

for (let index = 0; index < WORKERS; index += 1) {
  workers.push(
    Bun.spawn([process.execPath, `${import.meta.dir}/server.mjs`], {
      env: { ...process.env, REUSE_PORT: "1" },
      stdio: ["ignore", "inherit", "inherit"],
      ipc() {
        listening += 1;
        if (listening === WORKERS) for (const worker of workers) worker.send("open");
      },
      // A cluster that lost a worker is another contender.
      onExit(worker, code, signal) {
        console.error(`worker ${worker.pid} ended with ${signal ?? code}`);
        process.exit(1);
      },
    }),
  );
}
