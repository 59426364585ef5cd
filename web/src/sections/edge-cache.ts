// What users see behind an edge cache, at a hit rate that the reader chooses: a model.
import { figure, section, titled, type Context } from "../context";
import type { EdgeCache, EdgeUser, Scenario } from "../document";
import { h, plain } from "../dom";
import { percent, timeNs } from "../format";
import { tableElement } from "../table";
import { drawCurves, nines, WITHIN } from "./latency";

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
    caption: titled(context, scenario, `What users see at ${percent(hits)} hits`),
    columns: ["contender", ...USERS.map(([name]) => `#${name}`)],
    rows: curves().map((one) => [one.name, ...USERS.map(([, q, told]) => {
      const user = edge.users.find((each) => each.contender === one.name)!;
      const ns = hits === edge.hit_rate ? told(user) : at(one.points, q);
      return { text: ns == null ? "–" : timeNs(ns), value: ns };
    })]),
  }, `edge-cache-${plain(scenario.name)}`);
  const saturated = scenario.shape.kind === "closed" ? ", which are the latencies at saturation" : "";
  const drawn = figure({
    kind: "edge-cache", level: 3, title: titled(context, scenario, "Latency behind an edge cache"),
    note: `A model: hits take ${timeNs(edge.edge_latency_ns)}, misses that and what the origin was measured to take${saturated}.`,
    legend: context.legend(origins.map((one) => one.contender)),
    draw: (width) => drawCurves(context, curves(), width, `${WITHIN}; ${percent(hits)} hits`),
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
