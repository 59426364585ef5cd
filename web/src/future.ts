// Parts of a document that not every record has. All are optional; a section without its part is not shown.
import type { Maybe } from "./document";

/** Fresh starts of each contender, from spawn to the first complete answer. */
export interface ColdStart { contender: string; times_ns: number[]; median_ns?: Maybe<number> }

/** What the same request costs with one part of the work added after another. */
export interface Ladder {
  scenario: string;
  /** In microseconds per request; parts in the order in which they were added. */
  contenders: { contender: string; parts: { name: string; us: number }[] }[];
}

/** A cache before the origin: what the user sees at a hit rate. Quantiles ascend, from 0 to 1, with nanoseconds. */
export interface EdgeCache {
  /** The hit rate that the study names, 0 to 1. */
  hit_rate: number;
  /** Latency of a hit, the same for all contenders. */
  hit_ns: number;
  contenders: { contender: string; quantiles: [number, number][] }[];
}

/** The examination of published claims: schema `deadheat.audit/1`. */
export interface Audit {
  claims: { source: string; contender?: Maybe<string>; metric: string; value: number }[];
  checks: { kind: string; row: Maybe<string>; contender: Maybe<string>; outcome: string; text: string }[];
  here: {
    claims: number[]; metric: string; row: Maybe<string>; contender: Maybe<string>; baseline: Maybe<string>;
    published: Maybe<[number, number]>; here: Maybe<number>; low: Maybe<number>; high: Maybe<number>;
    verdict: "reproduced" | "not-reproduced" | "contradicted" | "not-testable"; note: Maybe<string>;
  }[];
}

export interface Future {
  cold_start?: ColdStart[];
  ladder?: Ladder[];
  edge_cache?: EdgeCache;
  audit?: Audit;
}
