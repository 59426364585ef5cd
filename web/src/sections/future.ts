// Sections whose data not every record has: cold starts on their own, the ladder, the edge cache, the audit of claims.
import { figure, section, type Context } from "../context";
import { h, plain } from "../dom";
import type { Figure } from "../figure";
import { percent, three, tick, timeNs } from "../format";
import type { Audit, ColdStart, EdgeCache, Ladder } from "../future";
import { fitted, NARROW, Plot, plotted, textWidth, write } from "../plot";
import { rowChart } from "../rows";
import { tableElement } from "../table";
import { theme } from "../theme";
import { drawCurves } from "./latency";
import { coldStarts } from "./resources";
import { zeroTicks } from "./time";

export function coldStart(context: Context): HTMLElement | null {
  const { cold_start } = context.document;
  const own = cold_start?.some((one) => one.times_ns.length > 0) ? figure(starts(context, cold_start)) : coldStarts(context);
  return section("cold-start", "Cold start", null, own);
}

function starts(context: Context, all: ColdStart[]): Figure {
  const high = Math.max(...all.flatMap((one) => one.times_ns)) * 1.05;
  return {
    kind: "cold-start", level: 3, title: "Cold start", note: "One dot per fresh start, the first at the top.",
    draw: (width) => rowChart({
      groups: [{ rows: all.map((one) => ({
        label: plain(one.contender), aside: one.median_ns == null ? "" : timeNs(one.median_ns),
        color: context.series.color(one.contender), symbol: context.series.symbol(one.contender),
        dots: one.times_ns.map((ns, at) => ({ value: ns, text: `${plain(one.contender)}, start ${at + 1}: ${timeNs(ns)}` })),
        mark: one.median_ns == null ? undefined : { value: one.median_ns, text: `${plain(one.contender)}, median: ${timeNs(one.median_ns)}` },
      })) }],
      scale: {
        type: "linear", domain: [0, high], ticks: zeroTicks(high / 1e6, width < NARROW ? 4 : 7).map((ms) => ms * 1e6),
        format: (ns) => (ns === 0 ? "0" : tick(timeNs(ns))), label: "from spawn to the first complete answer; lower is better",
      },
    }, width),
    table: () => ({
      caption: "Cold start: every fresh start", columns: ["contender", "#start", "#time"],
      rows: all.flatMap((one) => one.times_ns.map((ns, at) =>
        [one.contender, { text: String(at + 1), value: at + 1 }, { text: timeNs(ns), value: ns }])),
    }),
  };
}

export function ladder(context: Context): HTMLElement | null {
  const all = (context.document.ladder ?? []).filter((one) => one.contenders.length > 0);
  return section("ladder", "Where the time goes",
    "The same server doing nothing, then one part of its work more at a time: what each part adds to a request.",
    ...all.map((one) => figure(stack(one))));
}

function stack(one: Ladder): Figure {
  const names = [...new Set(one.contenders.flatMap((each) => each.parts.map((part) => part.name)))];
  const tint = (part: string) => theme().series[names.indexOf(part) % theme().series.length]!;
  const parts = one.contenders.flatMap((each, row) => {
    let from = 0;
    return each.parts.map((part) => ({ ...part, contender: each.contender, row, from, to: (from += part.us) }));
  });
  const high = Math.max(...parts.map((part) => part.to)) * 1.05;
  const text = (part: (typeof parts)[number]) => `${plain(part.contender)}, ${plain(part.name)}: ${timeNs(part.us * 1e3)}`;
  return {
    kind: "ladder", level: 3, title: `${plain(one.scenario)}: parts of a request`,
    legend: names.map((name) => ({ label: name, color: () => tint(name), symbol: "square" })),
    draw: (width) => {
      const { ink, line, muted, paper } = theme();
      const narrow = width < NARROW;
      const left = narrow ? 4 : Math.min(width * 0.28, Math.max(...one.contenders.map((each) => textWidth(each.contender))) + 16);
      const [step, bar] = narrow ? [50, 24] : [36, 24];
      const top = (row: number) => row * step + (narrow ? 22 : 4);
      const bottom = one.contenders.length * step + 4;
      const { svg, x } = plotted({
        width, height: bottom + 42, marginTop: 0, marginBottom: 42, marginLeft: left, marginRight: 14,
        x: { type: "linear", domain: [0, high], label: null },
        y: { type: "linear", domain: [0, bottom], range: [0, bottom], axis: null },
        marks: [
          Plot.gridX(zeroTicks(high, 5), { stroke: line, strokeOpacity: 1 }),
          Plot.rect(parts, {
            x1: "from", x2: "to", y1: (part: { row: number }) => top(part.row), y2: (part: { row: number }) => top(part.row) + bar,
            fill: (part: { name: string }) => tint(part.name), stroke: paper, title: text, className: "parts",
          }),
          Plot.axisX(zeroTicks(high, narrow ? 4 : 6), { tickFormat: (us: number) => (us === 0 ? "0" : tick(timeNs(us * 1e3))), tickSize: 0, tickPadding: 8 }),
        ],
      });
      one.contenders.forEach((each, row) => narrow
        ? write(svg, 0, top(row) - 9, fitted(plain(each.contender), width), { fill: ink })
        : write(svg, left - 12, top(row) + bar / 2, fitted(plain(each.contender), left - 14), { fill: ink, anchor: "end" }));
      write(svg, left, bottom + 36, "time per request", { fill: muted });
      return { svg, points: parts.map((part) => ({ x: x((part.from + part.to) / 2), y: top(part.row) + bar / 2, text: text(part) })) };
    },
    table: () => ({
      caption: `${plain(one.scenario)}: parts of a request`, columns: ["contender", "part", "#µs"],
      rows: parts.map((part) => [part.contender, part.name, { text: three(part.us), value: part.us }]),
    }),
  };
}

/** The quantiles that a user sees of an origin behind a cache: hits are answered in `hit_ns`, the others by the origin. */
function behind(edge: EdgeCache, origin: [number, number][], hits: number): [number, number][] {
  const misses = 1 - hits;
  const hit: [number, number][] = hits > 0 ? [[0, edge.hit_ns], [hits, edge.hit_ns]] : [];
  if (misses <= 0) return [[0, edge.hit_ns], [0.999, edge.hit_ns]];
  return [...hit, ...origin.map(([q, ns]): [number, number] => [hits + misses * q, Math.max(ns, hits > 0 ? edge.hit_ns : ns)])];
}

function at(curve: [number, number][], q: number): number | null {
  return curve.find(([one]) => one >= q - 1e-12)?.[1] ?? null;
}

export function edgeCache(context: Context): HTMLElement | null {
  const edge = context.document.edge_cache;
  if (!edge || edge.contenders.length === 0) return null;
  let hits = edge.hit_rate;
  const curves = () => edge.contenders.map((one) => ({ name: one.contender, points: behind(edge, one.quantiles, hits) }));
  const numbers = () => tableElement({
    caption: "What users see at this hit rate", columns: ["contender", "#p50", "#p90", "#p99", "#p99.9"],
    rows: curves().map((one) => [one.name, ...[0.5, 0.9, 0.99, 0.999].map((q) => {
      const ns = at(one.points, q);
      return { text: ns == null ? "–" : timeNs(ns), value: ns };
    })]),
  }, "edge-cache");
  const drawn = figure({
    kind: "edge-cache", level: 3, title: "Latency behind an edge cache",
    note: `A model: hits take ${timeNs(edge.hit_ns)}, misses what the origin was measured to take.`,
    legend: context.legend(edge.contenders.map((one) => one.contender)),
    draw: (width) => drawCurves(context, curves(), width),
    table: () => ({
      caption: "Latency of the origin", columns: ["contender", "#quantile", "#time"],
      rows: edge.contenders.flatMap((one) => one.quantiles.map(([q, ns]) => [one.contender, { text: String(q), value: q }, { text: timeNs(ns), value: ns }])),
    }),
  }) as HTMLElement & { redraw?: () => void };
  const output = h("output", { for: "hit-rate" }, percent(hits));
  const holder = h("div", {}, numbers());
  const slider = h("input", {
    type: "range", id: "hit-rate", min: 0, max: 99.9, step: 0.1, value: (hits * 100).toFixed(1),
    input: () => {
      hits = Number(slider.value) / 100;
      output.textContent = percent(hits);
      slider.setAttribute("aria-valuetext", percent(hits));
      holder.replaceChildren(numbers());
      drawn.redraw?.();
    },
  });
  return section("edge-cache", "Behind an edge cache",
    "How much of a difference between origins is left for users when a cache before them answers most requests.",
    h("p", { class: "slider" }, h("label", { for: "hit-rate" }, "Hit rate"), slider, output), drawn, holder);
}

const SAID: Record<string, string> = {
  reproduced: "✓ reproduced", "not-reproduced": "– not reproduced", contradicted: "✕ contradicted", "not-testable": "? not testable here",
};

export function audit(context: Context): HTMLElement | null {
  const found: Audit | undefined = context.document.audit;
  if (!found) return null;
  const here = found.here.length > 0 && tableElement({
    caption: "Published figures and this machine",
    columns: ["claim", "source", "published", "here", "verdict", "note"],
    rows: found.here.map((one) => [
      [one.contender, one.baseline && `/ ${one.baseline}`, one.metric, one.row && `(${one.row})`].filter(Boolean).join(" "),
      [...new Set(one.claims.map((index) => found.claims[index]?.source ?? "?"))].join(", "),
      one.published ? [...new Set(one.published.map(three))].join(" to ") : "–",
      one.here == null ? "–" : three(one.here) + (one.low != null && one.high != null ? ` (${three(one.low)} to ${three(one.high)})` : ""),
      { text: SAID[one.verdict] ?? one.verdict, class: one.verdict }, one.note ?? "",
    ]),
  }, "claims");
  const checks = found.checks.length > 0 && tableElement({
    caption: "Published figures against each other", columns: ["about", "check", "outcome", "in words"],
    rows: found.checks.map((one) => [[one.contender, one.row].filter(Boolean).join(", ") || "all", one.kind, one.outcome, one.text]),
  }, "claims-checks");
  return section("audit", "Published claims", null, here || null, checks || null);
}
