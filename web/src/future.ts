// Parts of a document that not every record has. All are optional; a section without its part is not shown.
import type { Maybe } from "./document";

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
  audit?: Audit;
}
