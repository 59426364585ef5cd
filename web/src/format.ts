// Numbers as they are read: three significant digits, thousands apart, a unit. The same rules as in the terminal.
import type { Limits, Maybe, Metric, Result, Shape, Traffic, Verdict } from "./document";

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

/** How often something happens on average: three significant digits, but no decimal beyond the third. */
export function seldom(value: number): string {
  if (!(value > 0 && value < 0.1)) return three(value);
  return value < 0.0005 ? "under 0.001" : value.toFixed(3);
}

export const whole = (value: number): string => grouped(String(Math.round(value)));

function scaled(value: number, units: [number, string, number][]): string {
  const [, unit, size] = units.find(([limit]) => value * 1.0005 < limit) ?? units[units.length - 1]!;
  return `${three(value / size)} ${unit}`;
}

export const timeNs = (ns: number): string =>
  scaled(ns, [[1e3, "ns", 1], [1e6, "µs", 1e3], [1e9, "ms", 1e6], [Infinity, "s", 1e9]]);

/** As ticks have it: `20 ms` for `20.0 ms`. */
export const tick = (text: string): string => text.replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");

const K = 1024;
export const bytes = (size: number): string =>
  scaled(size, [[K, "B", 1], [K ** 2, "KiB", K], [K ** 3, "MiB", K ** 2], [Infinity, "GiB", K ** 3]]);

export function percent(share: number): string {
  const value = share * 100;
  const digits = Math.abs(value) >= 99.95 || Math.abs(value - Math.round(value)) < 1e-9 ? 0 : Math.abs(value) >= 0.995 ? 1 : 2;
  return `${value.toFixed(digits)} %`;
}

/** Two, or three for a narrow interval; and as many more as it takes for an end beside 1 not to be shown as 1. */
export function ratioDecimals(low: Maybe<number>, high: Maybe<number>): number {
  const hides = (end: Maybe<number>, decimals: number) => end != null && end !== 1 && Number(end.toFixed(decimals)) === 1;
  let decimals = low != null && high != null && high - low < 0.02 ? 3 : 2;
  while (decimals < 6 && (hides(low, decimals) || hides(high, decimals))) decimals += 1;
  return decimals;
}

export const ratio = (value: number, decimals: number): string =>
  value >= 9.995 ? three(value) : value.toFixed(decimals);

/** Ends beyond say no more than that much is possible: of two epochs, a race has powers of ten with dozens of digits. */
const MOST_RATIO = 9_999;

export function interval(low: Maybe<number>, high: Maybe<number>): string {
  const decimals = ratioDecimals(low, high);
  const end = (value: Maybe<number>) => (value == null ? "?" : value > MOST_RATIO ? "over 9,999" : ratio(value, decimals));
  return `${end(low)} to ${end(high)}`;
}

export const rps = (rate: number): string => `${three(rate)}/s`;

/** A quantile's name: p99.9. */
export const quantileName = (q: number): string => `p${Number((q * 100).toFixed(4))}`;

export const METRIC: Record<Metric, { title: string; unit: string; better: string; show(value: number): string }> = {
  throughput: { title: "Throughput", unit: "requests per second", better: "higher is better", show: rps },
  cpu: { title: "CPU time per request", unit: "microseconds", better: "lower is better", show: (us) => timeNs(us * 1e3) },
  p50: { title: "Median latency", unit: "nanoseconds", better: "lower is better", show: timeNs },
  p99: { title: "99th percentile of latency", unit: "nanoseconds", better: "lower is better", show: timeNs },
  peak: { title: "Peak rate under the objective", unit: "requests per second", better: "higher is better", show: rps },
  cold_start: { title: "Cold start", unit: "nanoseconds", better: "lower is better", show: timeNs },
  measure: { title: "Own measurement", unit: "nanoseconds", better: "lower is better", show: timeNs },
};

export const metricInfo = (metric: Metric) =>
  METRIC[metric] ?? { title: String(metric), unit: "", better: "", show: three };

export const MARK: Record<Verdict, string> = {
  faster: "▲", slower: "▼", equivalent: "=", inconclusive: "?", invalid: "✕",
};

export function shapeText(shape: Shape): string {
  if (shape.kind === "starts") return `${whole(shape.starts)} fresh starts of each, no load`;
  if (shape.kind === "measure") return `${shape.measure}, which each measures by itself, no load`;
  const { connections } = shape;
  const many = `${whole(connections)} connection${connections === 1 ? "" : "s"}`;
  switch (shape.kind) {
    case "closed": return `closed load, ${many}`;
    case "open": return `open load, ${three(shape.rate_per_s)} requests/s${shape.poisson ? ", Poisson" : ""}, at most ${many}`;
    case "peak": return `peak rate at ${quantileName(shape.objective.quantile)} under ${timeNs(shape.objective.limit_ns)}, at most ${many}`;
    default: return "";
  }
}

/** What a load has beside its shape. */
export function trafficText({ zipf, stages, cold, tls }: Traffic = {}): string {
  const words = [tls && "over TLS", zipf != null && `popularity by Zipf's law, exponent ${zipf}`, stages && `rate in stages: ${stages}`, cold && "nothing is warmed up"];
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

export const ENDED: Record<string, string> = {
  decided: "decided", maximum: "went to the most epochs", budget: "ended by its budget", stopped: "stopped early",
  unavailable: "contenders became unavailable", unfinished: "not finished",
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
