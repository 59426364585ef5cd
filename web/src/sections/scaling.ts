// Sweeps: how the rate grows with what is varied, and the law fitted to it.
import { figure, section, type Context } from "../context";
import type { Sweep } from "../document";
import { plain } from "../dom";
import { highest } from "../extent";
import type { Figure } from "../figure";
import { rps, three, whole } from "../format";
import { Plot, plotted, write } from "../plot";
import { theme } from "../theme";
import { zeroTicks } from "./time";

interface At { name: string; n: number; value: number; low: number | null; high: number | null }

export function scaling(context: Context): HTMLElement | null {
  const some = context.document.sweeps.map((sweep) => ({ sweep, at: measured(context, sweep) })).filter(({ at }) => at.length > 0);
  return section("scaling", "Scaling",
    "The same load again and again but for one setting. Bars are 95 % intervals over epochs; a curve is the Universal Scalability Law fitted to the points, which describes and decides nothing.",
    ...some.map(({ sweep, at }) => figure(one(context, sweep, at))));
}

function measured(context: Context, sweep: Sweep): At[] {
  return sweep.points.flatMap(([n, name]) => {
    const scenario = context.measured.find((each) => each.name === name);
    return (scenario?.results ?? []).flatMap((result): At[] => {
      const rate = result.figures.find((each) => each.metric === "throughput" || each.metric === "peak");
      return rate ? [{ name: result.contender, n, value: rate.value, low: rate.low ?? null, high: rate.high ?? null }] : [];
    });
  });
}

function one(context: Context, sweep: Sweep, at: At[]): Figure {
  const names = context.names.filter((name) => at.some((each) => each.name === name));
  const values = [...new Set(at.map((each) => each.n))].sort((a, b) => a - b);
  const curves = sweep.fits.flatMap((fit) => (fit.curve ?? []).map(([n, value]) => ({ name: fit.contender, n, value })));
  const high = highest([...at.map((each) => each.high ?? each.value), ...curves.map((each) => each.value)]) * 1.05;
  const color = (each: { name: string }) => context.series.color(each.name);
  const text = (each: At) => `${plain(each.name)} at ${whole(each.n)}: ${rps(each.value)}` +
    (each.low != null && each.high != null ? `, ${three(each.low)} to ${three(each.high)}` : "");
  return {
    kind: "scaling", level: 3, title: `${plain(sweep.name)}: rate over ${plain(sweep.axis)}`,
    note: sweep.fits.map((fit) => `${plain(fit.contender)}: contention ${three(fit.sigma)}, coherency ${three(fit.kappa)}` +
      `${fit.peak_at == null ? "" : `, highest near ${three(fit.peak_at)}`}${fit.r2 == null ? "" : `, r² ${fit.r2.toFixed(3)}`}`).join("; ") || undefined,
    legend: context.legend(names),
    draw: (width) => {
      const { line, muted } = theme();
      const { svg, x, y } = plotted({
        width, height: 340, marginTop: 12, marginBottom: 44, marginLeft: 66, marginRight: 16,
        x: { type: "log", base: 2, domain: [values[0]! / 1.15, values[values.length - 1]! * 1.15], label: null },
        y: { type: "linear", domain: [0, high], label: null },
        marks: [
          Plot.gridY(zeroTicks(high, 5), { stroke: line, strokeOpacity: 1 }),
          Plot.line(curves, { x: "n", y: "value", z: "name", stroke: color, strokeWidth: 1.5, strokeDasharray: "4 3", className: "laws" }),
          Plot.link(at.filter((each) => each.low != null && each.high != null), { x1: "n", x2: "n", y1: "low", y2: "high", stroke: color, strokeWidth: 2, className: "intervals" }),
          Plot.dot(at, { x: "n", y: "value", r: 4, fill: color, symbol: (each: At) => context.series.symbol(each.name), title: text, className: "points" }),
          Plot.axisX(values, { tickFormat: (n: number) => whole(n), tickSize: 0, ticks: Infinity, tickPadding: 8 }),
          Plot.axisY(zeroTicks(high, 5), { tickFormat: three, tickSize: 0, tickPadding: 6 }),
        ],
      });
      write(svg, 66, 334, `${plain(sweep.axis)}; requests per second`, { fill: muted });
      return { svg, points: at.map((each) => ({ x: x(each.n), y: y(each.value), text: text(each) })) };
    },
    table: () => ({
      caption: `${plain(sweep.name)}: rates over ${plain(sweep.axis)}`,
      columns: ["contender", `#${plain(sweep.axis)}`, "#requests/s", "#low", "#high"],
      rows: at.map((each) => [each.name, { text: whole(each.n), value: each.n }, ...[each.value, each.low, each.high].map((value) =>
        ({ text: value == null ? "–" : three(value), value }))]),
    }),
  };
}
