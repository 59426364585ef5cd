// A server for races whose answer is known: the same work for every request, and SPIN steps more.
// Runs on Node and on Bun. TAIL: every so many requests one waits TAIL_MS before its answer. IDLE: a timer looks out for idleness, for
// three ticks of a millisecond without a request in which it could run (being frozen is not being idle). With IDLE=garbage, garbage
// is then made and collected.
import { createServer } from 'node:http';

const items = Array.from({ length: 200 }, (_, id) => ({ id, title: 'title ' + id, score: id * 7 }));
const spin = Number(process.env.SPIN ?? 0);
const tail = Number(process.env.TAIL ?? 0);
const tailMs = Number(process.env.TAIL_MS ?? 0);
let state = 1;
let requests = 0;
let quietTicks = 0;

if (process.env.IDLE) {
  setInterval(() => {
    quietTicks += 1;
    if (quietTicks < 3 || process.env.IDLE !== 'garbage') return;
    let kept = [];
    for (let object = 0; object < 50_000; object++) kept.push({ object, text: 'x' + object });
    kept = [];
    globalThis.Bun?.gc(true);
  }, 1);
}

// Marsaglia's xorshift, so that nothing can be left out.
function work(steps) {
  let word = state;
  for (let step = 0; step < steps; step++) {
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
  }
  state = word;
}

createServer((request, response) => {
  const body = JSON.stringify({ count: items.length, items });
  work(spin);
  response.setHeader('content-type', 'application/json');
  requests += 1;
  quietTicks = 0;
  if (tail > 0 && requests % tail === 0) setTimeout(() => response.end(body), tailMs);
  else response.end(body);
}).listen(Number(process.env.PORT), '127.0.0.1').keepAliveTimeout = 600_000;
