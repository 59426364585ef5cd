// Sections whose data not every record has: cold starts on their own, the ladder, the edge cache, the audit of claims.
import { figure, section, under, type Context } from "../context";
import type { EdgeCache, EdgeUser, Ladder, LadderStep, Scenario } from "../document";
import { h, plain } from "../dom";
import type { Figure } from "../figure";
import { percent, three, tick, timeNs } from "../format";
import type { Audit } from "../future";
import { fitted, NARROW, Plot, plotted, textWidth, write } from "../plot";
import { rowChart } from "../rows";
import { tableElement } from "../table";
import { theme } from "../theme";
import { drawCurves, nines } from "./latency";
import { coldStarts } from "./resources";
import { zeroTicks } from "./time";

export function coldStart(context: Context): HTMLElement | null {
  const some = context.measured.filter((one) => one.results.some((result) => result.cold_starts_ns?.length));
  const own = some.length > 0 ? some.map((one) => figure(starts(context, one))) : [coldStarts(context)];
  return section("cold-start", "Cold start", null, ...own);
}

function starts(context: Context, scenario: Scenario): Figure {
  const all = scenario.results.map((one) => ({ ...one, times: one.cold_starts_ns ?? [] })).filter(({ times }) => times.length > 0);
  const high = Math.max(...all.flatMap((one) => [...one.times, one.cold_start_ns ?? 0])) * 1.05;
  return {
    kind: "cold-start", level: 3, title: [under(context, scenario), "Every fresh start"].filter(Boolean).join(": "), note: "One dot per fresh start, the first at the top.",
    draw: (width) => rowChart({
      groups: [{ rows: all.map((one) => ({
        label: plain(one.contender), aside: one.cold_start_ns == null ? "" : timeNs(one.cold_start_ns),
        color: context.series.color(one.contender), symbol: context.series.symbol(one.contender),
        dots: one.times.map((ns, at) => ({ value: ns, text: `${plain(one.contender)}, start ${at + 1}: ${timeNs(ns)}` })),
        mark: one.cold_start_ns == null ? undefined : { value: one.cold_start_ns, text: `${plain(one.contender)}, median: ${timeNs(one.cold_start_ns)}` },
      })) }],
      scale: {
        type: "linear", domain: [0, high], ticks: zeroTicks(high / 1e6, width < NARROW ? 4 : 7).map((ms) => ms * 1e6),
        format: (ns) => (ns === 0 ? "0" : tick(timeNs(ns))), label: "from spawn to the first complete answer; lower is better",
      },
    }, width),
    table: () => ({
      caption: "Cold start: every fresh start", columns: ["contender", "#start", "#time"],
      rows: all.flatMap((one) => one.times.map((ns, at) =>
        [one.contender, { text: String(at + 1), value: at + 1 }, { text: timeNs(ns), value: ns }])),
    }),
  };
}

export function ladder(context: Context): HTMLElement | null {
  const all = (context.document.ladders ?? []).filter((one) => one.contenders.length > 0);
  return section("ladder", "Where the time goes",
    "The same server doing nothing, then one part of its work more at a time: what each part adds to a request. The time is that of the whole server: the inverse of its rate.",
    ...all.map((one) => figure(stack(one))));
}

const added = (step: LadderStep): string => (step.faster ? "0, is faster" : timeNs(step.added_us * 1e3));

function stack(one: Ladder): Figure {
  const names = one.rungs;
  const tint = (part: string) => theme().series[names.indexOf(part) % theme().series.length]!;
  const parts = one.contenders.flatMap((each, row) => {
    let from = 0;
    return each.steps.map((step) => ({ ...step, contender: each.contender, row, from, to: (from += step.added_us) }));
  });
  const faster = parts.filter((part) => part.faster);
  const high = Math.max(...parts.map((part) => part.to)) * 1.05;
  const text = (part: (typeof parts)[number]) => `${plain(part.contender)}, ${plain(part.scenario)}: ${added(part)}`;
  return {
    kind: "ladder", level: 3, title: `${plain(one.name)}: parts of a request`,
    note: faster.length === 0 ? undefined : `${faster.map((part) => `${part.scenario} of ${part.contender}`).join(", ")}: faster than the rung before, so that it adds nothing and the parts are more than the whole.`,
    legend: names.map((name) => ({ label: name, color: () => tint(name), symbol: "square" })),
    draw: (width) => {
      const { ink, line, muted, paper } = theme();
      const narrow = width < NARROW;
      const left = narrow ? 4 : Math.min(width * 0.28, Math.max(...one.contenders.map((each) => textWidth(each.contender))) + 16);
      const [step, bar] = narrow ? [50, 24] : [36, 24];
      const top = (row: number) => row * step + (narrow ? 22 : 4);
      const bottom = one.contenders.length * step + 4;
      const ticks = zeroTicks(high, narrow ? 4 : 6);
      const { svg, x } = plotted({
        width, height: bottom + 42, marginTop: 0, marginBottom: 42, marginLeft: left, marginRight: 14,
        x: { type: "linear", domain: [0, high], label: null },
        y: { type: "linear", domain: [0, bottom], range: [0, bottom], axis: null },
        marks: [
          Plot.gridX(ticks, { stroke: line, strokeOpacity: 1 }),
          Plot.rect(parts, {
            x1: "from", x2: "to", y1: (part: { row: number }) => top(part.row), y2: (part: { row: number }) => top(part.row) + bar,
            fill: (part: { scenario: string }) => tint(part.scenario), stroke: paper, title: text, className: "parts",
          }),
          Plot.axisX(ticks, { tickFormat: (us: number) => (us === 0 ? "0" : tick(timeNs(us * 1e3))), tickSize: 0, tickPadding: 8 }),
        ],
      });
      one.contenders.forEach((each, row) => narrow
        ? write(svg, 0, top(row) - 9, fitted(plain(each.contender), width), { fill: ink })
        : write(svg, left - 12, top(row) + bar / 2, fitted(plain(each.contender), left - 14), { fill: ink, anchor: "end" }));
      write(svg, left, bottom + 36, "time per request", { fill: muted });
      return { svg, points: parts.map((part) => ({ x: x((part.from + part.to) / 2), y: top(part.row) + bar / 2, text: text(part) })) };
    },
    table: () => ({
      caption: `${plain(one.name)}: parts of a request`, columns: ["contender", "rung", "#per request", "#adds"],
      rows: parts.map((part) => [
        part.contender, part.scenario, { text: timeNs(part.time_us * 1e3), value: part.time_us }, { text: added(part), value: part.added_us },
      ]),
    }),
  };
}

/** The quantiles of a user behind a cache: a hit takes the edge's time, a miss the edge's and the origin's. */
function behind(edge_ns: number, origin: [number, number][], hits: number): [number, number][] {
  const hit: [number, number][] = hits > 0 ? [[0, edge_ns], [hits, edge_ns]] : [];
  return [...hit, ...origin.map(([q, ns]): [number, number] => [hits + (1 - hits) * q, edge_ns + ns])];
}

/** The value of a curve at `q`, between its points as the figure draws it; none beyond its end. */
function at(curve: [number, number][], q: number): number | null {
  const next = curve.findIndex(([one]) => one >= q - 1e-12);
  if (next < 0) return null;
  const [[to, high], [from, low]] = [curve[next]!, curve[Math.max(0, next - 1)]!];
  const share = to > from ? (nines(q) - nines(from)) / (nines(to) - nines(from)) : 1;
  return Math.abs(to - q) < 1e-12 ? high : low * (high / low) ** share;
}

const USERS: [string, number, (user: EdgeUser) => number][] = [
  ["p50", 0.5, (one) => one.p50_ns], ["p95", 0.95, (one) => one.p95_ns], ["p99", 0.99, (one) => one.p99_ns],
];

interface Behind { element: Node[]; move(hits: number): void }

function behindCache(context: Context, scenario: Scenario, edge: EdgeCache): Behind {
  let hits = edge.hit_rate;
  const origins = scenario.results.filter((one) => one.latency_curve.length > 1 && edge.users.some((user) => user.contender === one.contender));
  const curves = () => origins.map((one) => ({ name: one.contender, points: behind(edge.edge_latency_ns, one.latency_curve, hits) }));
  const numbers = () => tableElement({
    caption: [under(context, scenario), "What users see at this hit rate"].filter(Boolean).join(": "),
    columns: ["contender", ...USERS.map(([name]) => `#${name}`)],
    rows: curves().map((one) => [one.name, ...USERS.map(([, q, told]) => {
      const user = edge.users.find((each) => each.contender === one.name)!;
      const ns = hits === edge.hit_rate ? told(user) : at(one.points, q);
      return { text: ns == null ? "–" : timeNs(ns), value: ns };
    })]),
  }, `edge-cache-${plain(scenario.name)}`);
  const saturated = scenario.shape.kind === "closed" ? ", which are the latencies at saturation" : "";
  const drawn = figure({
    kind: "edge-cache", level: 3, title: [under(context, scenario), "Latency behind an edge cache"].filter(Boolean).join(": "),
    note: `A model: hits take ${timeNs(edge.edge_latency_ns)}, misses that and what the origin was measured to take${saturated}.`,
    legend: context.legend(origins.map((one) => one.contender)),
    draw: (width) => drawCurves(context, curves(), width),
    table: () => ({
      caption: "Latency of the origin", columns: ["contender", "#quantile", "#time"],
      rows: origins.flatMap((one) => one.latency_curve.map(([q, ns]) => [one.contender, { text: String(q), value: q }, { text: timeNs(ns), value: ns }])),
    }),
  }) as HTMLElement & { redraw?: () => void };
  const holder = h("div", {}, numbers());
  return {
    element: [drawn, holder],
    move: (to) => {
      hits = to;
      holder.replaceChildren(numbers());
      drawn.redraw?.();
    },
  };
}

export function edgeCache(context: Context): HTMLElement | null {
  const some = context.measured.flatMap((one) => one.edge_cache?.users.length ? [{ scenario: one, edge: one.edge_cache }] : []);
  const [first] = some;
  if (!first) return null;
  const figures = some.map(({ scenario, edge }) => behindCache(context, scenario, edge));
  const told = first.edge.hit_rate;
  const output = h("output", { for: "hit-rate" }, percent(told));
  const slider = h("input", {
    type: "range", id: "hit-rate", min: 0, max: 99.9, step: 0.1, value: (told * 100).toFixed(1),
    input: () => {
      const wanted = Number(slider.value) / 100;
      const hits = Math.abs(wanted - told) < 0.0005 ? told : wanted;
      output.textContent = percent(hits);
      slider.setAttribute("aria-valuetext", percent(hits));
      for (const one of figures) one.move(hits);
    },
  });
  return section("edge-cache", "Behind an edge cache",
    "How much of a difference between origins is left for users when a cache before them answers most requests.",
    h("p", { class: "slider" }, h("label", { for: "hit-rate" }, "Hit rate"), slider, output), ...figures.flatMap((one) => one.element));
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
