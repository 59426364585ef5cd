// How many processes a cluster has: one for each core that it may use, and two at the least, or it would be none.

import { availableParallelism } from "node:os";

export const WORKERS = Math.max(2, Number(process.env.WORKERS) || availableParallelism());
