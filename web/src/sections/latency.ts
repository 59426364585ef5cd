// Latency by percentile, on an axis of nines: the tail has as much room as the rest.
import { figure, section, titled, type Context } from "../context";
import type { Scenario } from "../document";
import { plain, s } from "../dom";
import { highest, lowest } from "../extent";
import type { Drawing, Figure, Point } from "../figure";
import { quantileName, tick, timeNs } from "../format";
import { axisLines, fitted, logTicks, NARROW, Plot, plotted, textWidth, write } from "../plot";
import { theme } from "../theme";

/** One nine is one step. */
export const nines = (q: number): number => -Math.log10(1 - q);
const NAMED = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];
const TICKS = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

export interface Curve { name: string; points: [number, number][] }

export function latency(context: Context): HTMLElement | null {
  const some = context.measured.filter((one) => one.results.some((result) => result.latency_curve.length > 1));
  return section("latency", "Latency",
    "The share of all requests that were answered within a time, from the moment at which each was due. Every curve ends where fewer than 100 requests lie beyond it.",
    ...some.map((one) => figure(ofScenario(context, one))));
}

function ofScenario(context: Context, scenario: Scenario): Figure {
  const curves = scenario.results.filter((one) => one.latency_curve.length > 1)
    .map((one) => ({ name: one.contender, points: one.latency_curve }));
  const closed = scenario.shape.kind === "closed";
  return {
    kind: "latency", level: 3,
    title: titled(context, scenario, "Latency by percentile"),
    note: closed ? "Closed load: each connection waits for its answer, so that these are latencies at saturation, not those of a user." : undefined,
    legend: context.legend(curves.map((one) => one.name)),
    draw: (width) => drawCurves(context, curves, width),
    table: () => ({
      caption: `${plain(scenario.name)}: latency by percentile`,
      columns: ["contender", ...NAMED.map((q) => `#${quantileName(q)}`), "#max"],
      rows: scenario.results.map((one) => [
        one.contender,
        ...NAMED.map((q) => quantile(one.latency_curve, q)),
        { text: one.latency_ns.max == null ? "–" : timeNs(one.latency_ns.max), value: one.latency_ns.max ?? null },
      ]),
    }),
  };
}

function quantile(curve: [number, number][], q: number) {
  const found = curve.find(([at]) => Math.abs(at - q) < 1e-9);
  return { text: found ? timeNs(found[1]) : "–", value: found ? found[1] : null };
}

/** The ends of a logarithmic axis of times. */
function domainOf(values: number[]): [number, number] {
  const [low, high] = [lowest(values), highest(values)];
  const room = Math.max(1.08, (high / low) ** 0.05);
  return [low / room, high * room];
}

/** Where a curve ends, and the height at which its name stands. */
interface End { name: string; x: number; y: number; at: number }

const LABEL_PX = 15;

/** Moves names apart that would stand on each other; they keep their order, and stay on the drawing. */
function apart(wanted: End[], bottom: number): End[] {
  const sorted = [...wanted].sort((a, b) => a.y - b.y);
  const step = Math.min(LABEL_PX, (bottom - LABEL_PX) / Math.max(1, sorted.length - 1));
  sorted.forEach((end, at) => { if (at > 0) end.at = Math.max(end.at, sorted[at - 1]!.at + step); });
  sorted.reverse().forEach((end, at) => { end.at = Math.min(end.at, at > 0 ? sorted[at - 1]!.at - step : bottom); });
  return sorted;
}

/** Each curve's name at the right, with dots from where the curve ends: nothing is known of it there. */
function nameEnds(context: Context, svg: SVGSVGElement, ends: End[], { left, wide, bottom }: { left: number; wide: number; bottom: number }): void {
  for (const end of apart(ends, bottom)) {
    const line = `M${end.x.toFixed(1)},${end.y.toFixed(1)}L${(left - 10).toFixed(1)},${end.at.toFixed(1)}h6`;
    svg.append(s("path", { d: line, fill: "none", stroke: context.series.color(end.name), "stroke-width": 1, "stroke-dasharray": "1 4" }));
    write(svg, left, end.at, fitted(plain(end.name), wide), { fill: theme().ink });
  }
}

export const WITHIN = "share of requests answered within the time";

/** `label` says what the curves are shares of. */
export function drawCurves(context: Context, curves: Curve[], width: number, label = WITHIN): Drawing {
  const { line, muted } = theme();
  const narrow = width < NARROW;
  const wide = Math.min(190, highest(curves.map((one) => textWidth(one.name)), 0) + 24);
  const rows = curves.flatMap((one) => one.points.map(([q, ns]) => ({ name: one.name, q, ns: Math.max(ns, 1), x: nines(q) })));
  const last = highest(rows.map((one) => one.x), 1);
  const domain = domainOf(rows.map((one) => one.ns));
  const ticks = logTicks(domain);
  const named = rows.filter((one) => NAMED.some((q) => Math.abs(q - one.q) < 1e-9));
  const color = (one: { name: string }) => context.series.color(one.name);
  const shown = TICKS.filter((q) => nines(q) <= last + 0.05 && !(narrow && q === 0));
  const below = axisLines(label, width - 62);
  const foot = 28 + below.length * 16;
  const height = (narrow ? 256 : 336) + foot;
  const { svg, x, y } = plotted({
    width, height, marginTop: 14, marginBottom: foot, marginLeft: 62, marginRight: narrow ? 14 : wide,
    x: { type: "linear", domain: [0, last * 1.02], label: null },
    y: { type: "log", domain, label: null },
    marks: [
      Plot.gridX(shown.map(nines), { stroke: line, strokeOpacity: 1 }),
      Plot.gridY(ticks, { stroke: line, strokeOpacity: 1 }),
      Plot.line(rows, { x: "x", y: "ns", z: "name", stroke: color, strokeWidth: 2, className: "curves" }),
      Plot.dot(named, {
        x: "x", y: "ns", r: 3.5, fill: color, symbol: (one: { name: string }) => context.series.symbol(one.name), className: "percentiles",
        title: (one: { name: string; q: number; ns: number }) => `${plain(one.name)}, ${quantileName(one.q)}: ${timeNs(one.ns)}`,
      }),
      Plot.axisX(shown.map(nines), { tickFormat: (_: number, at: number) => `${Number((shown[at]! * 100).toFixed(4))} %`, tickSize: 0, tickPadding: 8 }),
      Plot.axisY(ticks, { tickFormat: (ns: number) => tick(timeNs(ns)), tickSize: 0, ticks: Infinity, tickPadding: 6 }),
    ],
  });
  below.forEach((line, at) => write(svg, 62, height - 6 - (below.length - 1 - at) * 16, line, { fill: muted }));
  if (!narrow) {
    const ends = curves.map(({ name, points }) => {
      const [q, ns] = points[points.length - 1]!;
      const height = y(Math.max(ns, 1));
      return { name, x: x(nines(q)), y: height, at: height };
    });
    nameEnds(context, svg, ends, { left: width - wide + 14, wide: wide - 16, bottom: height - foot });
  }
  const points: Point[] = rows.map((one) => ({
    x: x(one.x), y: y(one.ns), text: `${plain(one.name)}, ${quantileName(one.q)}: ${timeNs(one.ns)}`,
  }));
  return { svg, points };
}
