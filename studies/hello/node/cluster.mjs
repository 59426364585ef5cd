// Contender `node-cluster`: the same server in several processes. The first process accepts all connections and hands them
// out in turn (`node:cluster`, SCHED_RR). None answers before all listen, so that none misses its connections.

import cluster from "node:cluster";
import { WORKERS } from "../shared/workers.mjs";
import { serve } from "./http.mjs";

if (cluster.isPrimary) {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  let listening = 0;
  cluster.on("listening", () => {
    listening += 1;
    if (listening < WORKERS) return;
    for (const worker of Object.values(cluster.workers)) worker.send("open");
  });
  // A cluster that lost a worker is another contender.
  cluster.on("exit", (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended with ${signal ?? code}`);
    process.exit(1);
  });
  for (let index = 0; index < WORKERS; index += 1) cluster.fork();
} else {
  serve(new Promise((resolve) => process.once("message", resolve)));
}
