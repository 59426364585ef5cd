// What users see behind an edge cache, at a hit rate that the reader chooses: a model.
import { section, titled, type Context } from "../context";
import type { EdgeCache, EdgeUser, Scenario } from "../document";
import { h, plain } from "../dom";
import { figureElement } from "../figure";
import { percent, quantileName, timeNs } from "../format";
import type { Figure, Plot, Point } from "../model";
import { tableElement } from "../table";

/** One nine is one step. */
const nines = (q: number): number => -Math.log10(1 - q);

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

/** The figure's plot, at another hit rate than the study's. */
function moved(plot: Plot, curves: Map<string, [number, number][]>, hits: number): Plot {
  const point = ([q, ns]: [number, number]): Point => [nines(q), Math.max(ns, 1), `${quantileName(q)}: ${timeNs(ns)}`];
  const panels = plot.panels.map((panel) => ({
    ...panel, lines: panel.lines.map((line) => ({ ...line, dots: "none" as const, points: curves.get(line.name)!.map(point) })),
  }));
  const ends = panels.flatMap((panel) => panel.lines.map((line) => line.points[line.points.length - 1]![0]));
  const label = plot.x.label.replace(/;.*$/, `; ${percent(hits)} hits`);
  return { ...plot, x: { ...plot.x, label, domain: [0, Math.max(1, ...ends) * 1.02] }, panels };
}

const USERS: [string, number, (user: EdgeUser) => number][] = [
  ["p50", 0.5, (one) => one.p50_ns], ["p95", 0.95, (one) => one.p95_ns], ["p99", 0.99, (one) => one.p99_ns],
];

interface Behind { element: Node[]; move(hits: number): void }

/** A figure of curves with a table of users, both at the hit rate that is chosen. */
function movable(context: Context, figure: Figure, scenario: Scenario, edge: EdgeCache): Behind {
  let hits = edge.hit_rate;
  const plot = figure.drawing && "plot" in figure.drawing ? figure.drawing.plot : undefined;
  const names = plot?.panels.flatMap((one) => one.lines.map((line) => line.name)) ?? [];
  const origins = scenario.results.filter((one) => names.includes(one.contender));
  const curves = () => new Map(origins.map((one) => [one.contender, behind(edge.edge_latency_ns, one.latency_curve, hits)]));
  const numbers = () => tableElement({
    caption: titled(context, scenario, `What users see at ${percent(hits)} hits`),
    columns: ["contender", ...USERS.map(([name]) => `#${name}`)],
    rows: [...curves()].map(([name, curve]) => [name, ...USERS.map(([, q, told]): [string, number | null] => {
      const user = edge.users.find((each) => each.contender === name)!;
      const ns = hits === edge.hit_rate ? told(user) : at(curve, q);
      return [ns == null ? "–" : timeNs(ns), ns];
    })]),
  }, `edge-cache-${plain(scenario.name)}`);
  const drawn = figureElement(context, figure, () => (plot && hits !== edge.hit_rate ? { plot: moved(plot, curves(), hits) } : figure.drawing));
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
  let told: number | undefined;
  const moving: Behind[] = [];
  const shown = context.of("edge-cache").flatMap((figure): Node[] => {
    const scenario = context.document.scenarios.find((one) => one.name === figure.subject);
    const edge = scenario?.edge_cache;
    if (figure.kind !== "edge-cache" || !scenario || !edge) return [figureElement(context, figure)];
    told ??= edge.hit_rate;
    const one = movable(context, figure, scenario, edge);
    moving.push(one);
    return one.element;
  });
  if (told === undefined) return null;
  const rate = told;
  const output = h("output", { for: "hit-rate" }, percent(rate));
  const slider = h("input", {
    type: "range", id: "hit-rate", min: 0, max: 99.9, step: 0.1, value: (rate * 100).toFixed(1),
    input: () => {
      const wanted = Number(slider.value) / 100;
      const hits = Math.abs(wanted - rate) < 0.0005 ? rate : wanted;
      output.textContent = percent(hits);
      slider.setAttribute("aria-valuetext", percent(hits));
      for (const one of moving) one.move(hits);
    },
  });
  return section("edge-cache", "Behind an edge cache",
    "How much of a difference between origins is left for users when a cache before them answers most requests.",
    h("p", { class: "slider" }, h("label", { for: "hit-rate" }, "Hit rate"), slider, output), ...shown);
}
