// How long contenders take from their command to their first right answer.
import { figure, section, titled, type Context } from "../context";
import type { Scenario } from "../document";
import { plain } from "../dom";
import { highest } from "../extent";
import type { Figure } from "../figure";
import { tick, timeNs } from "../format";
import { NARROW } from "../plot";
import { rowChart } from "../rows";
import { coldStarts } from "./resources";
import { zeroTicks } from "./time";

export function coldStart(context: Context): HTMLElement | null {
  const fresh = (one: Scenario) => one.results.some((result) => result.cold_starts_ns?.length);
  return section("cold-start", "Cold start", null,
    ...context.measured.filter(fresh).map((one) => figure(starts(context, one))),
    coldStarts(context, (one) => !fresh(one)));
}

function starts(context: Context, scenario: Scenario): Figure {
  const all = scenario.results.map((one) => ({ ...one, times: one.cold_starts_ns ?? [] })).filter(({ times }) => times.length > 0);
  const high = highest(all.flatMap((one) => [...one.times, one.cold_start_ns ?? 0])) * 1.05;
  return {
    kind: "cold-start", level: 3, title: titled(context, scenario, "Every fresh start"), note: "One dot per fresh start, the first at the top.",
    draw: (width) => rowChart({
      groups: [{ rows: all.map((one) => ({
        label: plain(one.contender), aside: one.cold_start_ns == null ? "" : timeNs(one.cold_start_ns),
        color: context.series.color(one.contender), symbol: context.series.symbol(one.contender),
        dots: one.times.map((ns, at) => ({ value: ns, text: `${plain(one.contender)}, start ${at + 1}: ${timeNs(ns)}` })),
        mark: one.cold_start_ns == null ? undefined : { value: one.cold_start_ns, text: `${plain(one.contender)}, median: ${timeNs(one.cold_start_ns)}` },
      })) }],
      scale: {
        type: "linear", domain: [0, high], ticks: zeroTicks(high / 1e6, width < NARROW ? 4 : 7).map((ms) => ms * 1e6),
        format: (ns) => (ns === 0 ? "0" : tick(timeNs(ns))), label: "from its command to the first right answer; lower is better",
      },
    }, width),
    table: () => ({
      caption: "Cold start: every fresh start", columns: ["contender", "#start", "#time"],
      rows: all.flatMap((one) => one.times.map((ns, at) =>
        [one.contender, { text: String(at + 1), value: at + 1 }, { text: timeNs(ns), value: ns }])),
    }),
  };
}
