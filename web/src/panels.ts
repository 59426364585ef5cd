// Plots: lines and dots over something else, in one panel or in several of the same scale, one under the other.
import { plain, s } from "./dom";
import { STROKES, type Line, type Panel, type Plot as Model, type Point } from "./model";
import { along, exposed, fitted, NARROW, Plot, plotted, widest, within, write, type Drawn, type Spot } from "./plot";
import { paint, symbol, theme } from "./theme";

/** A point, where it stands from the top down. */
interface Placed { line: Line; panel: Panel; at: number; point: Point; x: number; y: number }

const WIDTHS: Record<Line["stroke"], Plot.MarkOptions> = {
  none: {}, bold: { strokeWidth: 2 }, thin: { strokeWidth: 1 }, faint: { strokeWidth: 1, strokeOpacity: 0.45 }, dashed: { strokeWidth: 1.5, strokeDasharray: "4 3" },
};

export function drawPlot(plot: Model, width: number): Drawn {
  const { ink, line, muted, warm } = theme();
  const [narrow, several] = [width < NARROW, plot.panels.length > 1];
  const above = plot.panels.some((one) => one.title !== null) ? 26 : 14;
  const high = several ? 92 : narrow ? 256 : 336;
  const bottom = (above + high) * plot.panels.length;
  const levels = within(plot.y);
  const left = Math.ceil(widest(levels.map(([, label]) => label))) + 14;
  const bold = several ? [] : plot.panels.flatMap((one) => one.lines).filter((one) => one.stroke === "bold");
  const names = narrow || bold.length < 2 ? 0 : Math.min(190, widest(bold.map((one) => plain(one.name))) + 24);
  const up = plot.panels.map((_, at) => along(plot.y, (above + high) * (at + 1), (above + high) * at + above));
  const placed = plot.panels.flatMap((panel, place) => panel.lines.flatMap((line) =>
    line.points.map((point, at): Placed => ({ line, panel, at, point, x: point[0], y: up[place]!(point[1]) }))));
  const rules = up.flatMap((y) => levels.map(([value]) => y(value)));
  const shaded = plot.panels.flatMap(({ shaded }, place) => shaded.map(([from, to]) => ({ from, to, place })));
  const ends = placed.flatMap((one) => (one.point[3] ? [{ ...one, low: up[0]!(one.point[3][0]), high: up[0]!(one.point[3][1]) }] : []));
  const color = (one: Placed) => paint(one.line.color);
  const { svg, x } = plotted({ ...plot.x, label: [plot.x.label, plot.y.label].filter(Boolean).join("; ") }, { width, bottom, left, right: names || 10 }, [
    Plot.rect(shaded, {
      x1: "from", x2: "to", y1: ({ place }: { place: number }) => (above + high) * place + above, y2: ({ place }: { place: number }) => (above + high) * (place + 1),
      fill: warm, className: "shaded",
    }),
    several ? null : Plot.ruleX(within(plot.x).map(([at]) => at), { y1: above, y2: bottom, stroke: line }),
    Plot.ruleY(rules, { stroke: line }),
    ...STROKES.map((stroke) => Plot.line(placed.filter((one) => one.line.stroke === stroke && one.point[3] !== null), {
      x: "x", y: "y", z: "line", stroke: color, ...WIDTHS[stroke], className: stroke,
    })),
    Plot.link(ends, { x1: "x", x2: "x", y1: "low", y2: "high", stroke: color, strokeWidth: 2, className: "ends" }),
    Plot.dot(placed.filter(dotted), { x: "x", y: "y", r: 3, fill: color, symbol: (one: Placed) => symbol(one.line.color), title: said, className: "points" }),
  ]);
  if (!several) exposed(svg, "y", plot.y.log ? "log" : "linear", plot.y.domain, [bottom, above]);
  const read = placed.filter((one) => one.line.name !== "");
  const spots = read.map((one): Spot => ({ x: x(one.x), y: one.y, text: () => said(one) }));
  if (placed.some((one) => one.line.dots === "fine")) svg.append(fine(plot.panels, placed, x));
  plot.panels.forEach(({ title }, place) => {
    if (title !== null) write(svg, left, up[place]!(plot.y.domain[1]) - 11, fitted(plain(title), width - left - 30), { fill: ink, bold: true });
    for (const [value, label] of levels) write(svg, left - 8, up[place]!(value), label, { fill: muted, anchor: "end", size: several ? 11 : 12 });
  });
  if (names > 0) nameEnds(svg, bold, (point) => ({ x: x(point[0]), y: up[0]!(point[1]) }), { left: width - names + 14, wide: names - 16, bottom });
  return { svg, spots };
}

const said = ({ line, point }: Placed): string => plain(`${line.name}, ${point[2]}`);

const dotted = ({ line: { dots }, at }: Placed): boolean => (typeof dots === "string" ? dots === "each" : dots.at.includes(at));

/** More dots than this are smaller. */
const MANY = 2000;

/** One path for all dots of a panel, one for all crosses: a long race has hundreds of thousands of them. */
function fine(panels: Panel[], placed: Placed[], x: (value: number) => number): SVGGElement {
  const dots = new Map(panels.map((one): [Panel, string[]] => [one, []]));
  const crosses: string[] = [];
  for (const one of placed) {
    if (one.line.dots !== "fine") continue;
    const at = `M${x(one.x).toFixed(1)},${one.y.toFixed(1)}`;
    if (one.point[3] === null) crosses.push(`${at}m-2.5,-2.5l5,5m0,-5l-5,5`);
    else dots.get(one.panel)!.push(`${at}h.01`);
  }
  const across = placed.length > MANY ? 2.8 : 4.4;
  return s("g", { class: "fine", fill: "none" },
    ...panels.map((one) => s("path", { d: dots.get(one)!.join(""), stroke: paint(one.lines[0]!.color), "stroke-width": across, "stroke-linecap": "round" })),
    crosses.length > 0 && s("path", { class: "left-out", d: crosses.join(""), stroke: theme().bad, "stroke-width": 1.5 }));
}

/** Where a line ends, and the height at which its name stands. */
interface End { line: Line; x: number; y: number; at: number }

const LABEL_PX = 15;

/** Moves names apart that would stand on each other; they keep their order, and stay on the drawing. */
function apart(wanted: End[], bottom: number): End[] {
  const sorted = [...wanted].sort((a, b) => a.y - b.y);
  const step = Math.min(LABEL_PX, (bottom - LABEL_PX) / Math.max(1, sorted.length - 1));
  sorted.forEach((end, at) => { if (at > 0) end.at = Math.max(end.at, sorted[at - 1]!.at + step); });
  sorted.reverse().forEach((end, at) => { end.at = Math.min(end.at, at > 0 ? sorted[at - 1]!.at - step : bottom); });
  return sorted;
}

/** Each line's name at the right, with dots from where the line ends: nothing is known of it there. */
function nameEnds(
  svg: SVGSVGElement, lines: Line[], place: (point: Point) => { x: number; y: number }, { left, wide, bottom }: { left: number; wide: number; bottom: number },
): void {
  const ends = lines.map((line): End => {
    const { x, y } = place(line.points[line.points.length - 1]!);
    return { line, x, y, at: y };
  });
  for (const end of apart(ends, bottom)) {
    const path = `M${end.x.toFixed(1)},${end.y.toFixed(1)}L${(left - 10).toFixed(1)},${end.at.toFixed(1)}h6`;
    svg.append(s("path", { d: path, fill: "none", stroke: paint(end.line.color), "stroke-width": 1, "stroke-dasharray": "1 4" }));
    write(svg, left, end.at, fitted(plain(end.line.name), wide), { fill: theme().ink });
  }
}
