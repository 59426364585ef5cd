// A server whose slowdown is known: each variable of the environment adds one kind of work, and without any it only answers.
// `kinds.py` says which values are raced. go/main.go does the same.
//
//   SPIN=n           each request works n steps
//   QUERIES=n        each request makes n equal queries of SQLite
//   HOLD_MS=t        each request holds a lock for so long, without using the processor
//   RECORDS=n        each request writes n small records
//   FRESH=1          ... into new objects, the last requests' of which stay alive; otherwise into the same ones again
//   SYSCALLS=n       each request makes n equal system calls: 16 KB of random bytes from the kernel
//   STEPS=n          each request follows n links, each to the next line of a ring in memory
//   RING_KB=n        ... that is so large
//   START_MS=t       the server waits so long before it listens
//   TAIL=n, TAIL_MS=t  every n-th request waits so long, without using the processor
//   LEAK_BYTES=n     each request leaves so many bytes that are never released
//   WARMING=n        the k-th request works only 1 / (1 + k/n) of SPIN: the server never stops getting faster
//   SLOWING=n        the k-th request works 1 + k/n times SPIN: the server gets slower
//   STARTS=file      this start counts itself in the file, and every other start, on average, works
//   SLOW=n           ... n times SPIN
import { appendFileSync, openSync, readSync, statSync } from 'node:fs';
import { createServer } from 'node:http';

const option = (name, usual = 0) => Number(process.env[name] ?? usual);

// The work of a request is a list of functions. Their results are part of the answer, except 0.
const works = [];
let requests = 0;

const sleeper = new Int32Array(new SharedArrayBuffer(4));
// Stops the only thread that runs JavaScript, and so every other request: setTimeout is only precise to a millisecond.
const sleep = (ms) => Atomics.wait(sleeper, 0, 0, ms);

if (option('SPIN') > 0) {
  const steps = option('SPIN') * (slowStart() ? option('SLOW', 1) : 1);
  const warming = option('WARMING', Infinity);
  const slowing = option('SLOWING', Infinity);
  works.push(() => spin(Math.round((steps * (1 + requests / slowing)) / (1 + requests / warming))));
}

if (option('QUERIES') > 0) {
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, score INTEGER)');
  database.exec('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO items SELECT i, i * 7 FROM n');
  const query = database.prepare('SELECT sum(score) AS total FROM items WHERE score % 3 <> ?');
  const count = option('QUERIES');
  works.push(() => {
    let total = 0;
    for (let number = 0; number < count; number++) total = query.get(1).total;
    return total;
  });
}

if (option('HOLD_MS') > 0) {
  const ms = option('HOLD_MS');
  works.push(() => {
    sleep(ms);
    return 0;
  });
}

if (option('RECORDS') > 0) {
  const count = option('RECORDS');
  const fresh = option('FRESH') > 0;
  const blank = () => Array.from({ length: count }, () => ({ id: 0, score: 0, text: '', next: null }));
  const own = blank();
  const alive = Array.from({ length: 8 }, blank);
  works.push(() => {
    const records = fresh ? new Array(count) : own;
    let total = 0;
    let next = null;
    for (let id = 0; id < count; id++) {
      if (fresh) records[id] = { id, score: id * 7, text: 'text', next };
      else {
        const record = records[id];
        record.id = id;
        record.score = id * 7;
        record.text = 'text';
        record.next = next;
      }
      next = records[id];
      total += next.score;
    }
    if (fresh) alive[requests % alive.length] = records;
    return total;
  });
}

if (option('SYSCALLS') > 0) {
  const count = option('SYSCALLS');
  const file = openSync('/dev/urandom', 'r');
  const buffer = Buffer.alloc(16_384);
  works.push(() => {
    let read = 0;
    for (let number = 0; number < count; number++) read = readSync(file, buffer, 0, buffer.length, null);
    return read;
  });
}

if (option('STEPS') > 0) {
  const steps = option('STEPS');
  const ring = linked(option('RING_KB'));
  let at = 0;
  works.push(() => {
    for (let step = 0; step < steps; step++) at = ring[at];
    return at < 0 ? at : 0;
  });
}

if (option('LEAK_BYTES') > 0) {
  const bytes = option('LEAK_BYTES');
  const kept = [];
  let used = Infinity;
  // Outside of the collector's heap, in blocks whose pages take memory only when they are written.
  works.push(() => {
    if (used + bytes > 4_194_304) {
      kept.push(Buffer.allocUnsafeSlow(4_194_304));
      used = 0;
    }
    kept.at(-1).fill(1, used, used + bytes);
    used += bytes;
    return 0;
  });
}

// Whether this start is one of the slow ones. Of two starts that follow each other, 2k and 2k + 1, one is slow; which one, changes without
// a period (the sequence of Thue and Morse).
function slowStart() {
  const file = process.env.STARTS;
  if (!file) return false;
  appendFileSync(file, '.');
  let rest = statSync(file).size - 1;
  let odd = false;
  for (; rest > 0; rest = Math.floor(rest / 2)) odd = odd !== (rest % 2 === 1);
  return odd;
}

// xorshift. The answer must not depend on the number of steps.
function spin(steps) {
  let x = 1;
  for (let step = 0; step < steps; step++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return x === 0 ? 1 : 0;
}

// One number in each line of 64 bytes: the index of the line's successor, in an order that no prefetcher guesses (a linear congruential
// generator with a full period). The number of lines is a power of two.
function linked(kilobytes) {
  const lines = (kilobytes * 1024) / 64;
  const ring = new Int32Array(lines * 16);
  let line = 0;
  for (let number = 0; number < lines; number++) {
    const next = (Math.imul(line, 1_664_525) + 1_013_904_223) & (lines - 1);
    ring[line * 16] = next * 16;
    line = next;
  }
  return ring;
}

const tail = option('TAIL');
const tailMs = option('TAIL_MS');
if (option('START_MS') > 0) sleep(option('START_MS'));
createServer((_request, response) => {
  requests += 1;
  const results = [];
  for (const work of works) {
    const found = work();
    if (found !== 0) results.push(found);
  }
  response.setHeader('content-type', 'application/json');
  const body = JSON.stringify({ message: 'hello', results });
  if (tail > 0 && requests % tail === 0) setTimeout(() => response.end(body), tailMs);
  else response.end(body);
}).listen(Number(process.env.PORT), '127.0.0.1').keepAliveTimeout = 600_000;
