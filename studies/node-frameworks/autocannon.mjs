// The load generator of the table, with the table's settings: 10 requests in flight on each connection, one thread.
//
//     node autocannon.mjs URL CONNECTIONS SECONDS
//
// Its last line is JSON: requests a second, and the requests that failed.

import process from "node:process";
import autocannon from "autocannon";

const [url, connections, seconds] = process.argv.slice(2);
const result = await autocannon({
  url,
  connections: Number(connections),
  pipelining: 10,
  duration: Number(seconds),
});
const failed = result.errors + result.timeouts + result.non2xx;
console.log(JSON.stringify({ throughput_rps: result.requests.average, failed }));
