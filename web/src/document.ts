// What the page reads of a record's document: schema `deadheat.record/1`, as crates/record writes it.

/** Its word in the record; the page has titles for all of them. */
export type Metric = string;
export type Maybe<T> = T | null | undefined;

export interface Quantiles {
  min: Maybe<number>; mean: Maybe<number>; p50: Maybe<number>; p75: Maybe<number>; p90: Maybe<number>;
  p95: Maybe<number>; p99: Maybe<number>; p99_9: Maybe<number>; p99_99: Maybe<number>; max: Maybe<number>;
}

export interface MetricFigure { metric: Metric; value: number; low: Maybe<number>; high: Maybe<number> }

export interface Result {
  contender: string;
  throughput_rps: Maybe<number>;
  peak_rps?: Maybe<number>;
  latency_ns: Quantiles;
  latency_curve: [number, number][];
  cpu_us_per_request: Maybe<number>;
  cpu_share: Maybe<number>;
  rss_bytes: Maybe<number>;
  cold_start_ns: Maybe<number>;
  /** Every start, where starts are what is compared. */
  cold_starts_ns?: number[];
  /** What its own command measured, in nanoseconds. */
  measured?: Maybe<number>;
  outcomes: Record<string, number>;
  figures: MetricFigure[];
  letters: string;
}

export interface Finding {
  code: string;
  severity: "warn" | "invalid";
  contender?: string;
  /** The metrics that it weakens; all of them where none is named. */
  metrics?: string[];
  message: string;
  remedy: string;
}

export interface GateReading {
  code: string;
  contender?: string;
  state: "pass" | "warn" | "invalid";
  reading: string;
}

export type Shape =
  | { kind: "closed"; connections: number }
  | { kind: "open"; connections: number; rate_per_s: number; poisson: boolean }
  | { kind: "peak"; connections: number; objective: { quantile: number; limit_ns: number } }
  | { kind: "starts"; starts: number }
  | { kind: "measure"; measure: string };

export interface EdgeUser { contender: string; p50_ns: number; p95_ns: number; p99_ns: number }

/** A model of users behind a cache: a hit takes `edge_latency_ns`, a miss that and what the origin takes. */
export interface EdgeCache { hit_rate: number; edge_latency_ns: number; users: EdgeUser[] }

export interface Ranking {
  metric: Metric;
  contenders: { contender: string; letters: string }[];
  headline: string;
}

/** What was read of a machine while contenders were loaded. */
export interface MachineReadings {
  steal_share: Maybe<number>; foreign_share: Maybe<number>; stalled_share: Maybe<number>; softirq_share: Maybe<number>;
  retransmitted_segments: Maybe<number>; dropped_packets: Maybe<number>;
}

/** One of the machines that the load came from. */
export interface LoadHost {
  name: string;
  connections: number;
  requests_share: Maybe<number>;
  round_trip_ns: { p50: Maybe<number>; p99: Maybe<number> };
  start_delay_p99_ns: Maybe<number>;
  readings: MachineReadings;
  epochs: { epoch: number; readings: MachineReadings }[];
}

export interface LoadHosts {
  hosts: LoadHost[];
  servers: MachineReadings;
  start_skew_p99_ns: Maybe<number>;
  link: Maybe<{ contender: string; epoch: number; host: Maybe<string>; bytes_per_s: number; bandwidth_bytes_per_s: number; share: number }>;
  duty: Maybe<number>;
}

export interface Scenario {
  name: string;
  shape: Shape;
  epochs: number;
  results: Result[];
  rankings: Ranking[];
  comparisons?: { epochs: number }[];
  findings: Finding[];
  gates: GateReading[];
  edge_cache?: Maybe<EdgeCache>;
  /** Only if the load came from other machines. */
  load_hosts?: Maybe<LoadHosts>;
  ended: string;
}

export interface Slice {
  contender: number;
  start_ns: number;
  elapsed_ns: number;
  rate_per_s: Maybe<number>;
  trial?: { rate_per_s: number; end: string };
}

export interface Epoch {
  scenario: string;
  number: number;
  started_unix_ms: number;
  took_ns: number;
  contenders: { contender: number; warmup_ns: number; warmup_requests: number; usage?: { memory?: { at_ns: number; pss_bytes: number }[] } }[];
  rounds: { slices: Slice[]; dropped?: Maybe<string> }[];
}

export interface Pilot {
  scenario: string;
  window_ns: number;
  warmup_ns: number;
  contenders: { contender: string; window_rates_per_s: number[]; cut_ns: Maybe<number> }[];
}

/** Where a contender or a service listens. */
export type Listen = "free-port" | "socket" | { port: number };

/** What a load has beside its shape. */
export interface Traffic { zipf?: Maybe<number>; stages?: Maybe<string>; cold?: boolean; tls?: boolean; replay?: Maybe<"random" | { timing: { speed: number } }> }

/** What each contender is held to. */
export interface Limits { cpus?: Maybe<number>; cpuset?: number[]; memory_bytes?: Maybe<number> }

/** The network that deadheat makes between load and contenders. Each applies in each direction. */
export interface Link { rate_bits_per_s?: Maybe<number>; delay_ns: number; jitter_ns: number; loss: number; tunnel?: Maybe<"wireguard"> }

export interface ScenarioPlan {
  name: string;
  shape: Shape;
  requests: { probe: string; weight: number }[];
  limits?: Limits;
  traffic?: Traffic;
  link?: Maybe<Link>;
  slices?: Maybe<{ slice_ns: number; rounds: number }>;
}

export interface Service {
  name: string;
  command: string;
  env: Record<string, string>;
  listen: Listen;
  ready?: Maybe<string>;
  ending?: Maybe<{ command?: Maybe<string>; signal?: Maybe<string>; grace_ns?: Maybe<number> }>;
}

export interface Plan {
  study: string;
  title?: string;
  contenders: { name: string; command: string; version?: string; env: Record<string, string>; measures?: Record<string, string> }[];
  services: Service[];
  probes: { name: string; method: string; path: string; paths?: string[] }[];
  scenarios: ScenarioPlan[];
  method: {
    profile: string; seed: number; baseline: string; all_pairs: boolean; alpha: number; margin: number;
    looks: number[]; slice_ns: number; settle_ns: number; rounds: number; timeout_ns: number;
  };
  pinning: { server_cpus: number[]; load_cpus: number[] };
  /** Only if the contenders ran on another machine. */
  server_host?: Maybe<{ host: string; control: string }>;
}

export interface RaceRecord {
  version: string;
  started_unix_ms: number;
  plan: Plan;
  differences: { contender: string; probe: string; path: string; expected: string; got: string; against: string; when: string }[];
  pilots: Pilot[];
  epochs: Epoch[];
  set_aside: Epoch[];
  anew: [string, number, string][];
  resumed_unix_ms: number[];
  done: boolean;
  /** What was measured of the scenarios' links. Pairs are: towards the contenders, and back. */
  links?: {
    scenario: string; round_trip_ns: number; plain_round_trip_ns: number; rate_bits_per_s?: Maybe<[number, number]>;
    sent: [number, number]; lost: [number, number]; tunnel?: Maybe<string>;
  }[];
}

export interface RaceDocument {
  schema: string;
  study: string;
  seed: number;
  machine: Record<string, unknown>;
  contenders: { name: string; version: Maybe<string>; command: string; status: string }[];
  parity: unknown[];
  scenarios: Scenario[];
  findings: Finding[];
  complete: boolean;
  reproduce: string;
  record: RaceRecord;
  audit?: Audit;
}

/** A published generator against a server that does nothing. */
export interface GeneratorAudit {
  name: string;
  command: string;
  runs_rps: number[];
  throughput_rps: Maybe<number>;
  low: Maybe<number>;
  high: Maybe<number>;
  /** Published throughputs that it cannot have driven here: indices of claims. */
  beyond: number[];
  text: string;
}

/** The examination of published claims: schema `deadheat.audit/1`. */
export interface Audit {
  claims: { source: string; contender?: Maybe<string>; row?: Maybe<string>; metric: string; value?: Maybe<number> }[];
  checks: { kind: string; row: Maybe<string>; contender: Maybe<string>; outcome: string; text: string }[];
  generators: GeneratorAudit[];
  here: {
    claims: number[]; metric: string; row: Maybe<string>; contender: Maybe<string>; baseline: Maybe<string>; scenario: Maybe<string>; baseline_scenario?: Maybe<string>;
    published: Maybe<[number, number]>; here: Maybe<number>; low: Maybe<number>; high: Maybe<number>;
    verdict: "reproduced" | "not-reproduced" | "contradicted" | "not-testable"; note: Maybe<string>;
  }[];
  findings: Finding[];
}
