// The numbers behind a figure: those that came with it, or the record's own.
import type { Context } from "./context";
import { bytes, three, timeNs } from "./format";
import type { Figure, FigureCell } from "./model";
import type { Table } from "./table";

/** Rows that only repeat what the record holds, of a scenario, by the kinds of figures. */
const OF_RECORD: Record<string, (context: Context, scenario: string) => FigureCell[][]> = {
  "memory-time": ({ document: { record }, names }, scenario) => record.epochs.filter((one) => one.scenario === scenario).flatMap((epoch) =>
    epoch.contenders.flatMap(({ contender, usage }) => (usage?.memory ?? []).map(({ at_ns, pss_bytes }): FigureCell[] =>
      [names[contender] ?? "?", [String(epoch.number), epoch.number], [timeNs(at_ns), at_ns], [bytes(pss_bytes), pss_bytes]]))),
  "warm-up": ({ document: { record } }, scenario) => record.pilots.filter((one) => one.scenario === scenario).flatMap(({ window_ns, contenders }) =>
    contenders.flatMap((one) => one.window_rates_per_s.map((rate, at): FigureCell[] => {
      const from_s = (at * window_ns) / 1e9;
      return [one.contender, [three(from_s), from_s], [three(rate), rate]];
    }))),
  "edge-cache": ({ document: { scenarios } }, scenario) => scenarios.filter((one) => one.name === scenario).flatMap(({ results, edge_cache }) =>
    results.filter(({ contender }) => edge_cache?.users.some((user) => user.contender === contender)).flatMap((one) =>
      one.latency_curve.map(([q, ns]): FigureCell[] => [one.contender, [String(q), q], [timeNs(ns), ns]]))),
};

export function numbers(context: Context, { kind, subject, table }: Figure): Table {
  return { ...table, rows: table.rows ?? OF_RECORD[kind]?.(context, subject) ?? [] };
}
