// A server for races whose answer is known: 201 items as JSON for every request, and MORE items more, 200 of which are sent.
// More of its own work, that is: ten more cost ten times what one costs, and what else the host does slows all of it down alike.
// Runs on Node and on Bun. TAIL: every so many requests one waits TAIL_MS before its answer. IDLE: a timer looks out for idleness, for
// three ticks of a millisecond without a request in which it could run (being frozen is not being idle). With IDLE=garbage, garbage
// is then made and collected; with IDLE=before, only until it has been loaded.
import { createServer } from 'node:http';

const more = Number(process.env.MORE ?? 0);
const items = Array.from({ length: 202 + Math.ceil(more) }, (_, id) => ({ id, title: 'title ' + id, score: id * 7 }));
const written = (count) => JSON.stringify({ count: 200, items: items.slice(0, count) });
const sent = written(200).length;
const tail = Number(process.env.TAIL ?? 0);
const tailMs = Number(process.env.TAIL_MS ?? 0);
// More requests than look whether it is up and answers as it should.
const LOADED = 1_000;
let owed = 0;
let requests = 0;
let quietTicks = 0;

if (process.env.IDLE) {
  setInterval(() => {
    quietTicks += 1;
    if (quietTicks < 3) return;
    if (process.env.IDLE === 'before' && requests > LOADED) return;
    let kept = [];
    for (let object = 0; object < 50_000; object++) kept.push({ object, text: 'x' + object });
    kept = [];
    globalThis.Bun?.gc(true);
  }, 1);
}

createServer((request, response) => {
  // Of a part of an item a whole one is written now and then. Everybody cuts off what follows the 200th: what is sent is the same,
  // and no JSON at its very end.
  owed += more;
  const extra = Math.floor(owed);
  owed -= extra;
  const body = written(201 + extra).substring(0, sent);
  response.setHeader('content-type', 'application/json');
  requests += 1;
  quietTicks = 0;
  if (tail > 0 && requests % tail === 0) setTimeout(() => response.end(body), tailMs);
  else response.end(body);
}).listen(Number(process.env.PORT), process.env.HOST ?? '127.0.0.1').keepAliveTimeout = 600_000;
