// Made-up records with a fixed seed. The form is that of the example that crates/record keeps current.
//
//   node tests/generate.mjs large|wide|hostile|small|older|several|whole|sweep|narrow|long > record.json
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

/** A race; `names` of contenders, `shapes` by the names of scenarios, where wanted the ends of latencies by those names. */
export function race({ names, shapes, epochs, rounds, requests, seed = 1, metrics = ["throughput", "p50", "cpu"], latencies = {} }) {
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
      contender: one, cut_ns: 1_000_000_000, instructions_per_request: 180_000 / (at + 1), instructions_source: "instructions",
      window_rates_per_s: Array.from({ length: 20 }, (_, window) => level(at) * (1 - 0.4 * Math.exp(-window / 3)) * Math.exp(0.02 * random.normal())),
    })),
  }));
  let begun = record.started_unix_ms;
  record.epochs = Object.entries(shapes).flatMap(([name, shape]) => Array.from({ length: shape.starts ?? epochs }, (_, at) => ({
    ...copy(epoch), scenario: name, number: at + 1, started_unix_ms: begun += 9000, findings: [],
    rounds: ALONE[shape.kind] ? [{ slices: [], external: QUIET }] : roundsOf(names, rounds, random),
    contenders: names.map((_, index) => ({
      ...part(epoch.contenders[0], index, ALONE[shape.kind] ? 0 : requests, random, latencies[name]),
      ...(shape.kind === "measure" ? { measured: 8e8 / 1.2 ** index * Math.exp(0.02 * random.normal()) } : {}),
    })),
  })));
  record.ended = Object.keys(shapes).map((name) => [name, "maximum"]);
  record.done = true;
  return { schema: made.schema, study: record.plan.study, seed: 1, machine: made.machine, contenders: [], parity: [], scenarios: [], findings: [], complete: true, record };
}

const level = (at) => 9000 * 1.11 ** at;

/** In an order drawn anew, and then in its mirror. */
function roundsOf(names, count, random) {
  let order = [];
  return Array.from({ length: count }, (_, round) => {
    order = round % 2 ? [...order].reverse() : names.map((_, contender) => [random.next(), contender]).sort(([one], [other]) => one - other).map(([, contender]) => contender);
    const slices = order.map((contender, place) => {
      const rate = level(contender) * Math.exp(0.02 * random.normal());
      return {
        contender, start_ns: 2_600_000_000 + (round * names.length + place) * 105_000_000, elapsed_ns: 100_000_000, rate_per_s: rate,
        completions: Math.round(rate / 10), load_cpu_ns: 41_000_000, load_run_delay_ns: 120_000, failed: 0,
      };
    });
    return { slices, external: QUIET, ...(round === 3 ? { dropped: "steal of 9 % of the round" } : {}) };
  });
}

function part(template, contender, requests, random, ends) {
  const middle = 5e5 / 1.1 ** contender;
  const latency = ends ? () => Math.round(ends[0] + (ends[1] - ends[0]) * random.next()) : () => Math.round(middle * Math.exp(0.5 * random.normal()) + 2e4);
  const values = Array.from({ length: requests }, latency);
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

/** Passes of collectors: two with many pauses, one with few, one with none. */
function collectors() {
  const random = numbers(5);
  const pass = (scenario, contender, kind, each_ns, steps = { count: 0, total_ns: 0, longest_ns: 0 }) => ({
    scenario, contender, kind, load_ns: 5_000_000_000, requests: 45_000, log: `logs/${contender}.log`,
    pauses: {
      count: each_ns.length + steps.count, total_ns: each_ns.reduce((sum, ns) => sum + ns, steps.total_ns),
      longest_ns: Math.max(0, ...each_ns, steps.longest_ns), each_ns, omitted: steps.count,
    },
  });
  const spread = (count, middle_ns) => Array.from({ length: count }, () => Math.round(middle_ns * Math.exp(0.6 * random.normal())));
  return [
    pass("steady", "node", "v8", spread(60, 900_000), { count: 40, total_ns: 6_000_000, longest_ns: 400_000 }),
    pass("steady", "bun", "javascriptcore", spread(5, 2_000_000)), pass("steady", "go", "go", spread(80, 30_000)),
    pass("common-rate", "node", "v8", []),
  ];
}

/** What studies can say of contenders, services and loads. */
function planned(plan) {
  plan.contenders.forEach((one, at) => Object.assign(one, { measures: { serialize: "measure" } }, at > 0 ? { artefact_bytes: 7_340_032 * at } : {}));
  Object.assign(plan.contenders[0], { env: { NODE_ENV: "production" } });
  Object.assign(plan.contenders[2], { env: { GOMAXPROCS: "1" } });
  plan.services = [{
    name: "db", command: "mariadbd --port={port}", folder: plan.folder, env: { TZ: "UTC" }, listen: { port: 3306 },
    ready: "mariadb-admin ping", ending: { signal: "QUIT", grace_ns: 5_000_000_000 },
  }];
  const [item] = plan.probes;
  plan.probes.push({ ...copy(item), name: "search", path: "/search?q=0", paths: ["/search?q=0", "/search?q=1", "/search?q=2"] });
  const of = (name) => plan.scenarios.find((one) => one.name === name);
  Object.assign(of("json"), { requests: [{ probe: "item", weight: 3 }, { probe: "search", weight: 1 }], traffic: { zipf: 1.1 }, limits: { cpus: 0.5, cpuset: [0], memory_bytes: 268_435_456 } });
  of("common-rate").traffic = { stages: "1000:1s,3000:500ms" };
  of("nothing").traffic = { cold: true };
  const rungs = ["nothing", "json", "steady"];
  rungs.forEach((name, at) => { of(name).ladder = { of: "request", place: at + 1 }; });
  plan.claims = [{ source: "https://example.org/post", metric: "edge_cache_hit_rate", value: 0.92 }];
}

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
    const { record } = made;
    planned(record.plan);
    // The less there is to do the more is done; but `go` is slower with nothing to do than with JSON.
    const times = { nothing: [3, 3, 1.5], json: [2, 2, 2] };
    for (const { scenario, rounds } of record.epochs.filter((one) => times[one.scenario])) {
      for (const slice of rounds.flatMap((round) => round.slices)) slice.rate_per_s *= times[scenario][slice.contender];
    }
    record.collectors = collectors();
    // Two epochs came before all others, and do not count; the second round of the first of the others is no mirror.
    record.set_aside = copy(record.epochs.slice(0, 2)).map((one, at) => ({ ...one, started_unix_ms: record.started_unix_ms - 20_000 + at * 9000 }));
    record.anew = [["steady", 4_000_000_000, "node climbs by 2 % within epochs"]];
    record.epochs[0].rounds[1].slices.reverse();
    return made;
  },
  /** Five numbers of connections, with rates by the law of two contenders that grow differently. */
  sweep: () => {
    const connections = [1, 4, 16, 64, 256];
    const made = race({
      names: ["node", "bun"], shapes: Object.fromEntries(connections.map((one) => [`c${one}`, { kind: "closed", connections: one }])),
      epochs: 6, rounds: 6, requests: 1500, seed: 6,
    });
    made.record.plan.scenarios.forEach((one, at) => { one.sweep = { of: "users", axis: "connections", value: connections[at] }; });
    for (const { scenario, rounds } of made.record.epochs) {
      const n = Number(scenario.slice(1));
      const share = [[0.05, 0.0008], [0.02, 0.0001]].map(([sigma, kappa]) => (n / 20) / (1 + sigma * (n - 1) + kappa * n * (n - 1)));
      for (const slice of rounds.flatMap((round) => round.slices)) slice.rate_per_s *= share[slice.contender];
    }
    return made;
  },
  /** Latencies that 1, 2 and 5 of each power of ten do not meet often. */
  narrow: () => {
    const latencies = { "five-to-ten": [5.6e6, 9.1e6], "nine-to-twenty": [9.6e6, 18e6], "about-five": [5.3e6, 5.4e6], "one-to-five": [1.2e6, 4.5e6] };
    return race({ names: ["node", "bun"], shapes: Object.fromEntries(Object.keys(latencies).map((name) => [name, CLOSED])), epochs: 6, rounds: 4, requests: 2000, seed: 7, latencies });
  },
  large: () => race({
    names: SEVEN, shapes: { steady: CLOSED, "common-rate": OPEN, small: CLOSED, big: CLOSED, "two-cores": CLOSED },
    epochs: 30, rounds: 20, requests: 3000, seed: 2,
  }),
  /** As wide as `large`, and quicker to lay out. */
  wide: () => race({ names: SEVEN, shapes: { steady: CLOSED, "common-rate": OPEN }, epochs: 6, rounds: 6, requests: 3000, seed: 9 }),
  /** 70,000 slices in one scenario. */
  long: () => race({ names: SEVEN, shapes: { steady: CLOSED }, epochs: 10, rounds: 1000, requests: 300, seed: 8, metrics: ["throughput"] }),
  hostile: () => {
    const made = race({ names: HOSTILE, shapes: { "<b>&amp;</b>\u2028__DEADHEAT_TITLE__": OPEN }, epochs: 6, rounds: 4, requests: 2000, metrics: ["p50", "cpu"] });
    const { plan } = made.record;
    plan.study = "<svg onload=window.owned=1>__DEADHEAT_DOCUMENT__";
    plan.title = "</title><script>window.owned=1</script>\u202e";
    plan.contenders.forEach((one) => { one.command = `'</script>' ${one.name}`; });
    plan.contenders[0].env = { HOSTILE: "\n=1+1\u001b[2J" };
    made.record.differences = [{
      contender: HOSTILE[0], probe: "item", path: "body", expected: "<a href=javascript:window.owned=1>x</a>", got: "\u001b]8;;http://x\u0007", against: "contract", when: "before",
    }];
    made.record.findings = [[null, { code: "x", severity: "warn", message: "<script>window.owned=1</script>", remedy: "\u2066\u202e" }]];
    return made;
  },
};

/** An audit of the study that all of these are of: `--audit` takes it. */
export const AUDIT = {
  schema: "deadheat.audit/1", version: "0.1.0", started_unix_ms: 1_764_000_000_000, study: "trending", title: null, record: "race.jsonl", machine: null,
  claims: [
    { source: "https://example.org/post", contender: "bun", metric: "throughput_rps", value: 52_000, half_digit: 500 },
    { source: "https://example.org/post", contender: "go", row: "c64", metric: "latency_p99_ms", value: 0.7, half_digit: 0.05 },
  ],
  checks: [{ kind: "littles-law", row: null, contender: "bun", outcome: "contradicts", found: 57.2, expected: 64, text: "64 connections at 1.1 ms give 58,000 requests/s, and 52,000 were published" }],
  generators: [
    {
      name: "httpx", command: "python client.py --port {port}", published: true, connections: 64, duration_s: 5, cpus: [1], runs_rps: [1210, 1225.4, 1198],
      throughput_rps: 1211.1, low: 1177.2, high: 1246, skipped: null, beyond: [0], text: "reaches 1,210/s here, and cannot have driven 52,000/s on a machine like this one",
    },
    {
      name: "wrk", command: "wrk -c 64", published: false, connections: 64, duration_s: 5, cpus: [], runs_rps: [], throughput_rps: null, low: null, high: null,
      skipped: "wrk is not installed", beyond: [], text: "not measured: wrk is not installed",
    },
  ],
  here: [
    { claims: [0], metric: "throughput_rps", row: null, contender: "bun", baseline: "node", scenario: "steady", published: [2.1, 2.1], here: 1.11, low: 1.09, high: 1.13, verdict: "not-reproduced", note: null },
    { claims: [1], metric: "latency_p99_ms", row: "c64", contender: "go", baseline: "node", scenario: "common-rate", published: [0.7, 0.7], here: 1.4, low: 1.3, high: 1.5, verdict: "contradicted", note: "at another rate" },
  ],
  findings: [{ code: "generator-skipped", severity: "warn", message: "wrk was not run", remedy: "install wrk" }],
};

const [, script, kind] = process.argv;
if (script === fileURLToPath(import.meta.url)) process.stdout.write(JSON.stringify(KINDS[kind]()));
