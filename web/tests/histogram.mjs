// HdrHistogram V2, compressed, base64: written here anew, so that what the program reads was not written by itself.
import { deflateSync } from "node:zlib";

const LOWEST = 512;
const HIGHEST = 3_600_000_000_000;
const DIGITS = 2;

const unit = Math.floor(Math.log2(LOWEST));
const half = Math.ceil(Math.log2(2 * 10 ** DIGITS)) - 1;
const subBuckets = 2 ** (half + 1);

/** The place of a value among the counts. */
function place(value) {
  const floor = Math.max(0, Math.floor(Math.log2(Math.max(value, 1))) - unit - half);
  const sub = Math.floor(value / 2 ** (floor + unit));
  return (floor + 1) * (subBuckets / 2) + (sub - subBuckets / 2);
}

function zigZag(out, value) {
  let rest = value >= 0n ? value << 1n : ((-value) << 1n) - 1n;
  for (let at = 0; at < 8 && rest >= 0x80n; at += 1) {
    out.push(Number((rest & 0x7fn) | 0x80n));
    rest >>= 7n;
  }
  out.push(Number(rest));
}

/** Encodes values in nanoseconds. */
export function encoded(values) {
  const counts = [];
  for (const value of values) {
    const at = place(value);
    counts[at] = (counts[at] ?? 0) + 1;
  }
  const payload = [];
  for (let at = 0; at < counts.length; at += 1) {
    if (counts[at]) {
      zigZag(payload, BigInt(counts[at]));
      continue;
    }
    let zeros = 0;
    while (at + zeros < counts.length && !counts[at + zeros]) zeros += 1;
    zigZag(payload, BigInt(-zeros));
    at += zeros - 1;
  }
  const head = Buffer.alloc(40);
  head.writeUInt32BE(0x1c849303 | 0x10, 0);
  head.writeInt32BE(payload.length, 4);
  head.writeInt32BE(0, 8);
  head.writeInt32BE(DIGITS, 12);
  head.writeBigUInt64BE(BigInt(LOWEST), 16);
  head.writeBigUInt64BE(BigInt(HIGHEST), 24);
  head.writeDoubleBE(1, 32);
  const packed = deflateSync(Buffer.concat([head, Buffer.from(payload)]));
  const outer = Buffer.alloc(8);
  outer.writeUInt32BE(0x1c849304 | 0x10, 0);
  outer.writeInt32BE(packed.length, 4);
  return Buffer.concat([outer, packed]).toString("base64");
}
