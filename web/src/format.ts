// Numbers as they are read: three significant digits, thousands apart, a unit. The same rules as in the terminal.
import type { Limits, Maybe, Result, Traffic } from "./document";

const grouped = (digits: string): string => {
  const [whole = "", fraction] = digits.split(".");
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? apart : `${apart}.${fraction}`;
};

export function three(value: number): string {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "–";
  const rounded = Number(value.toPrecision(3));
  const before = Math.floor(Math.log10(Math.abs(rounded))) + 1;
  return grouped(rounded.toFixed(Math.min(9, Math.max(0, 3 - before))));
}

export const whole = (value: number): string => grouped(String(Math.round(value)));

function scaled(value: number, units: [number, string, number][]): string {
  const [, unit, size] = units.find(([limit]) => value * 1.0005 < limit) ?? units[units.length - 1]!;
  return `${three(value / size)} ${unit}`;
}

export const timeNs = (ns: number): string =>
  scaled(ns, [[1e3, "ns", 1], [1e6, "µs", 1e3], [1e9, "ms", 1e6], [Infinity, "s", 1e9]]);

const K = 1024;
export const bytes = (size: number): string =>
  scaled(size, [[K, "B", 1], [K ** 2, "KiB", K], [K ** 3, "MiB", K ** 2], [Infinity, "GiB", K ** 3]]);

export function percent(share: number): string {
  const value = share * 100;
  if (value > 9999) return "over 9,999 %";
  const digits = Math.abs(value) >= 99.95 || Math.abs(value - Math.round(value)) < 1e-9 ? 0 : Math.abs(value) >= 0.995 ? 1 : 2;
  if (value > 0 && Number(value.toFixed(digits)) === 0) return "under 0.01 %";
  return `${grouped(value.toFixed(digits))} %`;
}

/** A quantile's name: p99.9. */
export const quantileName = (q: number): string => `p${Number((q * 100).toFixed(3))}`;

/** What a load has beside its shape. */
export function trafficText({ zipf, stages, cold, tls, replay }: Traffic = {}): string {
  const words = [tls && "over TLS", zipf != null && `popularity by Zipf's law, exponent ${zipf}`, stages && `rate in stages: ${stages}`, cold && "nothing is warmed up", replay === "random" && "recorded requests in random order"];
  return words.filter(Boolean).join(", ");
}

/** What each contender is held to. */
export function limitsText({ cpus, cpuset = [], memory_bytes }: Limits = {}): string {
  const words = [
    cpus != null && `${cpus} core${cpus === 1 ? "" : "s"} of CPU time`,
    cpuset.length > 0 && `core${cpuset.length === 1 ? "" : "s"} ${cpuset.join(", ")} alone`,
    memory_bytes != null && `${bytes(memory_bytes)} of memory`,
  ];
  return words.filter(Boolean).join(", ");
}

/** A ratio with its interval. No end of it reads as 1 unless it is 1. */
export function quotient(value: number, low: Maybe<number>, high: Maybe<number>): string {
  if (low == null || high == null) return value.toFixed(2);
  const hides = (end: number, decimals: number) => end !== 1 && Number(end.toFixed(decimals)) === 1;
  // Small ratios keep two digits.
  const small = low > 0 && low < 0.1 && high <= low * 20;
  let decimals = small ? Math.min(9, 1 - Math.floor(Math.log10(low))) : high - low < 0.02 ? 3 : 2;
  while (decimals < 6 && (hides(low, decimals) || hides(high, decimals))) decimals += 1;
  const shown = (one: number) => (one >= 9.995 ? three(one) : one.toFixed(decimals));
  // In a wide interval, an end of powers of ten shows only that very large ratios are possible.
  const end = (one: number) => (one > 9999 && high > low * 20 ? "over 9,999" : shown(one));
  return `${shown(value)} (${end(low)} to ${end(high)})`;
}

export const ENDED: Record<string, string> = {
  decided: "decided", maximum: "maximum reached", budget: "ended by its budget", stopped: "stopped early",
  unavailable: "nothing to compare", unfinished: "not finished",
};

export const date = (ms: number): string =>
  new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short", timeZone: "UTC" }).format(ms) + " UTC";

/** To the second: epochs are short. */
export const moment = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** What was answered, of everything that was due. */
export function failures(result: Result): string {
  const bad = Object.entries(result.outcomes).filter(([kind, count]) => kind !== "ok" && count > 0);
  return bad.length ? bad.map(([kind, count]) => `${kind} ${whole(count)}`).join(", ") : "none";
}
