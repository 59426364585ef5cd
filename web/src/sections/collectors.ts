// How long garbage collectors stopped each contender: from a pass of its own, with their logging on.
import { figure, section, titled, type Context } from "../context";
import type { Collector, Scenario } from "../document";
import { plain } from "../dom";
import { highest, lowest } from "../extent";
import type { Figure } from "../figure";
import { three, tick, timeNs, whole } from "../format";
import { logDomain, NARROW, ratioTicks } from "../plot";
import { rowChart } from "../rows";
import { tableElement, type Table } from "../table";

export function collectors(context: Context): HTMLElement | null {
  const shown = context.measured.flatMap((scenario) => {
    const all = scenario.collectors ?? [];
    if (all.length === 0) return [];
    const drawn = pauses(context, scenario, all);
    return [drawn ? figure(drawn) : tableElement(numbers(context, scenario, all), `collectors-${plain(scenario.name)}`)];
  });
  return section("collectors", "Collector pauses",
    "For how long garbage collectors stopped each contender under load. It was seen in a diagnostic pass after the verdict, in a start of its own with the collector's logging on: nothing else on this page was measured in it.",
    ...shown);
}

const perSecond = (one: Collector): string => (one.pauses === 0 ? "no pause" : `${timeNs(one.paused_ns_per_s)} per second`);

/** The pauses that were logged one by one; none where there was not one. */
function pauses(context: Context, scenario: Scenario, all: Collector[]): Figure | null {
  const of = (name: string) => (context.document.record.collectors ?? []).find((one) => one.scenario === scenario.name && one.contender === name)?.pauses;
  const rows = all.map((one) => ({ one, each: (of(one.contender)?.each_ns ?? []).filter((ns) => ns > 0), omitted: of(one.contender)?.omitted ?? 0 }));
  const values = rows.flatMap(({ one, each }) => [...each, ...(one.longest_ns > 0 ? [one.longest_ns] : [])]);
  if (values.length === 0) return null;
  const [low, high] = [lowest(values), highest(values)];
  // Wide enough for round ticks, however alike the pauses are.
  const middle = Math.sqrt(low * high);
  const domain = logDomain([low, high], [Math.min(low, middle / 2.5), Math.max(high, middle * 2.5)]);
  const omitted = rows.filter((row) => row.omitted > 0);
  return {
    kind: "collectors", level: 3, title: titled(context, scenario, "Every pause"),
    note: "One dot per pause, the first at the top; the line is the longest."
      + (omitted.length === 0 ? "" : ` Without a dot are ${omitted.map((row) => `${whole(row.omitted)} of ${row.one.contender}`).join(", ")}: steps of which the log has only the sum, and what is beyond the first 1,000.`),
    draw: (width) => rowChart({
      groups: [{ rows: rows.map(({ one, each }) => ({
        label: plain(one.contender), aside: perSecond(one),
        color: context.series.color(one.contender), symbol: context.series.symbol(one.contender),
        dots: each.map((ns, at) => ({ value: ns, text: `${plain(one.contender)}, pause ${at + 1}: ${timeNs(ns)}` })),
        mark: one.longest_ns > 0 ? { value: one.longest_ns, text: `${plain(one.contender)}, longest: ${timeNs(one.longest_ns)}` } : undefined,
      })) }],
      scale: {
        type: "log", domain, ticks: ratioTicks(domain, width < NARROW ? 4 : 8), format: (ns) => tick(timeNs(ns)),
        label: "length of a pause; shorter is better",
      },
    }, width),
    table: () => numbers(context, scenario, all),
  };
}

function numbers(context: Context, scenario: Scenario, all: Collector[]): Table {
  return {
    caption: titled(context, scenario, "Collector pauses"),
    columns: ["contender", "collector", "#pauses", "#pauses per second", "#paused per second", "#longest", "#requests/s, logging on"],
    rows: all.map((one) => [
      one.contender, one.kind, { text: whole(one.pauses), value: one.pauses }, { text: three(one.pauses_per_s), value: one.pauses_per_s },
      { text: timeNs(one.paused_ns_per_s), value: one.paused_ns_per_s }, { text: timeNs(one.longest_ns), value: one.longest_ns },
      { text: three(one.requests_per_s), value: one.requests_per_s },
    ]),
  };
}
