// Made-up records with a fixed seed. The form is that of the example that crates/record keeps current.
//
//   node tests/generate.mjs large|hostile|small|older|several|whole > record.json
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { encoded } from "./histogram.mjs";

const example = JSON.parse(readFileSync(fileURLToPath(new URL("../../crates/record/tests/fixtures/example.json", import.meta.url)), "utf8"));
const copy = (value) => structuredClone(value);

/** Numbers of a fixed seed: mulberry32. */
function numbers(seed) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return { next, normal };
}

const CLOSED = { kind: "closed", connections: 64 };
/** Metrics of what has no load. */
const ALONE = { starts: ["cold_start"], measure: ["measure"] };
const QUIET = { steal_share: 0.001, foreign_share: 0.004 };
const OPEN = { kind: "open", connections: 64, rate_per_s: 2000, poisson: true };

/** A race; `names` of contenders, `shapes` by the names of scenarios. */
export function race({ names, shapes, epochs, rounds, requests, seed = 1, metrics = ["throughput", "p50", "cpu"] }) {
  const random = numbers(seed);
  const made = copy(example);
  const { record } = made;
  const [contender] = record.plan.contenders;
  const [scenario] = record.plan.scenarios;
  const [pilot] = record.pilots;
  const [epoch] = record.epochs;
  record.plan.contenders = names.map((name, at) => ({ ...copy(contender), name, command: `serve --as ${at}`, version: `v${at}.0` }));
  record.plan.scenarios = Object.entries(shapes).map(([name, shape]) => ({ ...copy(scenario), name, shape, metrics: ALONE[shape.kind] ?? metrics }));
  record.plan.method = { ...record.plan.method, baseline: names[0], rounds, looks: [...new Set([Math.min(6, epochs), epochs])] };
  record.pilots = Object.keys(shapes).filter((name) => !ALONE[shapes[name].kind]).map((name) => ({
    ...copy(pilot), scenario: name,
    contenders: names.map((one, at) => ({
      contender: one, cut_ns: 1_000_000_000,
      window_rates_per_s: Array.from({ length: 20 }, (_, window) => level(at) * (1 - 0.4 * Math.exp(-window / 3)) * Math.exp(0.02 * random.normal())),
    })),
  }));
  record.epochs = Object.entries(shapes).flatMap(([name, shape]) => Array.from({ length: shape.starts ?? epochs }, (_, at) => ({
    ...copy(epoch), scenario: name, number: at + 1, started_unix_ms: record.started_unix_ms + at * 9000, findings: [],
    rounds: ALONE[shape.kind] ? [{ slices: [], external: QUIET }] : roundsOf(names, rounds, random),
    contenders: names.map((_, index) => ({
      ...part(epoch.contenders[0], index, ALONE[shape.kind] ? 0 : requests, random),
      ...(shape.kind === "measure" ? { measured: 8e8 / 1.2 ** index * Math.exp(0.02 * random.normal()) } : {}),
    })),
  })));
  record.ended = Object.keys(shapes).map((name) => [name, "maximum"]);
  record.done = true;
  return { schema: made.schema, study: record.plan.study, seed: 1, machine: made.machine, contenders: [], parity: [], scenarios: [], findings: [], complete: true, record };
}

const level = (at) => 9000 * 1.11 ** at;

function roundsOf(names, count, random) {
  return Array.from({ length: count }, (_, round) => {
    const slices = names.map((_, contender) => {
      const rate = level(contender) * Math.exp(0.02 * random.normal());
      return {
        contender, start_ns: 2_600_000_000 + (round * names.length + contender) * 105_000_000, elapsed_ns: 100_000_000, rate_per_s: rate,
        completions: Math.round(rate / 10), load_cpu_ns: 41_000_000, load_run_delay_ns: 120_000, failed: 0,
      };
    });
    if (round % 2) slices.reverse();
    return { slices, external: QUIET, ...(round === 3 ? { dropped: "steal of 9 % of the round" } : {}) };
  });
}

function part(template, contender, requests, random) {
  const middle = 5e5 / 1.1 ** contender;
  const values = Array.from({ length: requests }, () => Math.round(middle * Math.exp(0.5 * random.normal()) + 2e4));
  const cpu_ns = Math.round(requests * 9e4 / 1.1 ** contender * Math.exp(0.01 * random.normal()));
  const pss_bytes = Math.round(6e7 * (1 + contender / 5) * Math.exp(0.02 * random.normal()));
  // It grows and falls back; without a load there are no rounds.
  const grown = requests > 0 ? [0.8, 0.9, 1.1, 1.2, 1.05, 1] : [];
  return {
    ...copy(template), contender, completions: requests, cold_start_ns: Math.round(4e7 * (1 + contender / 3) * Math.exp(0.05 * random.normal())),
    loaded_ns: 1_000_000_000, outcomes: { ...template.outcomes, ok: requests }, status: { 200: requests }, latency: encoded(values),
    usage: {
      ...template.usage, cpu_ns, user_ns: Math.round(cpu_ns * (0.7 - contender / 10)), system_ns: Math.round(cpu_ns * (0.25 + contender / 10)),
      voluntary_switches: Math.round(requests * 0.4), involuntary_switches: Math.round(requests * 0.01 * (contender + 1)),
      pss_bytes, peak_pss_bytes: Math.round(8e7 * (1 + contender / 5)),
      memory: grown.map((share, at) => ({ at_ns: 2_500_000_000 + at * 250_000_000, pss_bytes: Math.round(pss_bytes * share) })),
    },
    log: `logs/${contender}.log`,
  };
}

const SEVEN = ["node26", "node24", "bun", "deno", "go", "php", "limit"];

export const HOSTILE = [
  "<img src=x onerror=\"window.owned=1\">",
  "\u001b[31mred\u001b[0m \u202Egnp.exe\u202C",
  "</script><script>window.owned=1</script>",
  "=HYPERLINK(\"x\")|`a`\u200b",
];

export const KINDS = {
  small: () => race({ names: ["node", "bun"], shapes: { steady: CLOSED }, epochs: 6, rounds: 6, requests: 20_000 }),
  older: () => {
    const made = KINDS.small();
    const late = ["user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "memory"];
    for (const { usage } of made.record.epochs.flatMap((one) => one.contenders)) late.forEach((key) => delete usage[key]);
    return made;
  },
  several: () => race({ names: ["node", "bun", "go"], shapes: { steady: CLOSED, "common-rate": OPEN }, epochs: 6, rounds: 6, requests: 12_000, seed: 3 }),
  whole: () => {
    const made = race({
      names: ["node", "bun", "go"], epochs: 6, rounds: 6, requests: 12_000, seed: 4,
      shapes: { steady: CLOSED, "common-rate": OPEN, nothing: CLOSED, json: CLOSED, "cold-start": { kind: "starts", starts: 20 }, serialize: { kind: "measure", measure: "serialize" } },
    });
    const { plan } = made.record;
    plan.contenders.forEach((one, at) => Object.assign(one, { measures: { serialize: "measure" } }, at > 0 ? { artefact_bytes: 7_340_032 * at } : {}));
    const rungs = ["nothing", "json", "steady"];
    plan.scenarios.forEach((one) => { if (rungs.includes(one.name)) one.ladder = { of: "request", place: rungs.indexOf(one.name) + 1 }; });
    // The less there is to do the more is done; but `go` is slower with nothing to do than with JSON.
    const times = { nothing: [3, 3, 1.5], json: [2, 2, 2] };
    for (const { scenario, rounds } of made.record.epochs.filter((one) => times[one.scenario])) {
      for (const slice of rounds.flatMap((round) => round.slices)) slice.rate_per_s *= times[scenario][slice.contender];
    }
    plan.claims = [{ source: "https://example.org/post", metric: "edge_cache_hit_rate", value: 0.92 }];
    const random = numbers(5);
    const pass = (scenario, contender, kind, each_ns, steps = { count: 0, total_ns: 0, longest_ns: 0 }) => ({
      scenario, contender, kind, load_ns: 5_000_000_000, requests: 45_000, log: `logs/${contender}.log`,
      pauses: {
        count: each_ns.length + steps.count, total_ns: each_ns.reduce((sum, ns) => sum + ns, steps.total_ns),
        longest_ns: Math.max(0, ...each_ns, steps.longest_ns), each_ns, omitted: steps.count,
      },
    });
    const spread = (count, middle_ns) => Array.from({ length: count }, () => Math.round(middle_ns * Math.exp(0.6 * random.normal())));
    made.record.collectors = [
      pass("steady", "node", "v8", spread(60, 900_000), { count: 40, total_ns: 6_000_000, longest_ns: 400_000 }),
      pass("steady", "bun", "javascriptcore", spread(5, 2_000_000)), pass("steady", "go", "go", spread(80, 30_000)),
      pass("common-rate", "node", "v8", []),
    ];
    return made;
  },
  large: () => race({
    names: SEVEN, shapes: { steady: CLOSED, "common-rate": OPEN, small: CLOSED, big: CLOSED, "two-cores": CLOSED },
    epochs: 30, rounds: 20, requests: 3000, seed: 2,
  }),
  hostile: () => {
    const made = race({ names: HOSTILE, shapes: { "<b>&amp;</b>\u2028__DEADHEAT_TITLE__": OPEN }, epochs: 6, rounds: 4, requests: 2000, metrics: ["p50", "cpu"] });
    const { plan } = made.record;
    plan.study = "<svg onload=window.owned=1>__DEADHEAT_DOCUMENT__";
    plan.title = "</title><script>window.owned=1</script>\u202e";
    plan.contenders.forEach((one) => { one.command = `'</script>' ${one.name}`; });
    made.record.differences = [{
      contender: HOSTILE[0], probe: "item", path: "body", expected: "<a href=javascript:window.owned=1>x</a>", got: "\u001b]8;;http://x\u0007", against: "contract", when: "before",
    }];
    made.record.findings = [[null, { code: "x", severity: "warn", message: "<script>window.owned=1</script>", remedy: "\u2066\u202e" }]];
    return made;
  },
};

/** Parts of a document that not every record has. */
export const FUTURE = {
  audit: {
    claims: [{ source: "https://example.org/post", contender: "bun", metric: "throughput_rps", value: 52000 }],
    checks: [{ kind: "littles-law", row: null, contender: "bun", outcome: "contradicts", text: "64 connections at 1.1 ms give 58,000 requests/s, and 52,000 were published" }],
    here: [
      { claims: [0], metric: "throughput_rps", row: null, contender: "bun", baseline: "node", published: [2.1, 2.1], here: 1.11, low: 1.09, high: 1.13, verdict: "not-reproduced", note: null },
      { claims: [0], metric: "p99_ms", row: "c64", contender: "go", baseline: "node", published: [0.7, 0.7], here: 1.4, low: 1.3, high: 1.5, verdict: "contradicted", note: "at another rate" },
    ],
  },
  sweeps: [{ name: "connections", axis: "connections", points: [[16, "steady"], [64, "common-rate"]], fits: [
    { contender: "node", lambda: 900, sigma: 0.02, kappa: 0.0004, peak_at: 49, r2: 0.991, curve: Array.from({ length: 20 }, (_, n) => [16 * 4 ** (n / 19), 8200 + n * 45]) },
  ] }],
};

const [, script, kind] = process.argv;
if (script === fileURLToPath(import.meta.url)) process.stdout.write(JSON.stringify(KINDS[kind]()));
