// The drawing that most figures share: one row per contender or pair, values along one axis, groups under headings.
import { highest } from "./extent";
import type { Drawing, Point } from "./figure";
import { axisLines, fitted, NARROW, Plot, plotted, textWidth, write } from "./plot";
import { theme } from "./theme";

export interface RowDot { value: number; text: string; hollow?: boolean }

export interface Row {
  label: string;
  /** Stands at the row's end: the figure in words. */
  aside?: string;
  color: string;
  symbol?: string;
  /** In time order: earlier ones stand higher. */
  dots: RowDot[];
  interval?: { low: number; high: number };
  mark?: RowDot;
}

export interface Group { title?: string; rows: Row[] }

export interface RowChart {
  groups: Group[];
  scale: { type: "linear" | "log"; domain: [number, number]; ticks: number[]; format(value: number): string; label: string };
  band?: [number, number];
  rule?: number;
  /** Height of a row without what its dots need. */
  height?: number;
}

interface Placed { row: Row; top: number; middle: number; height: number; first: boolean }

/** From top to bottom: where headings and rows stand, in pixels. */
function laidOut(chart: RowChart, narrow: boolean): { rows: Placed[]; titles: { text: string; y: number }[]; height: number } {
  const rows: Placed[] = [];
  const titles: { text: string; y: number }[] = [];
  let y = 4;
  for (const group of chart.groups) {
    if (group.title !== undefined) {
      titles.push({ text: group.title, y: y + 14 });
      y += 30;
    }
    for (const row of group.rows) {
      const height = Math.max(chart.height ?? 26, row.dots.length > 1 ? Math.min(44, 14 + row.dots.length * 2.4) : 0);
      const label = narrow ? 20 : 0;
      rows.push({ row, top: y + label, middle: y + label + height / 2, height, first: row === group.rows[0] });
      y += height + label + (narrow ? 8 : row.dots.length > 1 ? 12 : 0);
    }
    y += 6;
  }
  return { rows, titles, height: y };
}

export function rowChart(chart: RowChart, width: number): Drawing {
  const { ink, muted, line, band, paper } = theme();
  const narrow = width < NARROW;
  const { rows, titles, height } = laidOut(chart, narrow);
  const labels = highest(rows.map(({ row }) => textWidth(row.label)), 40);
  const asides = highest(rows.map(({ row }) => textWidth(row.aside ?? "")), 0);
  const left = narrow ? 12 : Math.min(labels + 16, width * 0.28);
  const right = narrow ? 14 : asides > 0 ? Math.min(asides + 22, width * 0.34) : 20;
  // The first dot of a row stands at its top, the last at its bottom.
  const dotY = ({ top, height }: Placed, at: number, of: number) =>
    of === 1 ? top + height / 2 : top + height * (0.2 + (0.6 * at) / (of - 1));
  const dots = rows.flatMap((place) => place.row.dots.map((dot, at) => ({
    ...dot, y: dotY(place, at, place.row.dots.length), color: place.row.color, symbol: place.row.symbol ?? "circle",
  })));
  const marks = rows.filter(({ row }) => row.mark);
  const dotted = rows.filter(({ row }) => row.dots.length > 1);
  const bottom = height + 2;
  const axis = axisLines(chart.scale.label, width - 24);
  const foot = 26 + axis.length * 16;
  const { svg, x } = plotted({
    width, height: height + 2 + foot, marginTop: 0, marginBottom: foot, marginLeft: left, marginRight: right,
    x: { type: chart.scale.type, domain: chart.scale.domain, label: null },
    y: { type: "linear", domain: [0, bottom], range: [0, bottom], axis: null },
    marks: [
      chart.band ? Plot.rect([chart.band], { x1: "0", x2: "1", y1: () => 0, y2: () => bottom, fill: band }) : null,
      Plot.gridX(chart.scale.ticks, { stroke: line, strokeOpacity: 1 }),
      Plot.ruleY(dotted.filter((one) => !one.first), { y: (one: Placed) => one.top - (narrow ? 26 : 6), stroke: line, strokeOpacity: 0.8 }),
      chart.rule === undefined ? null : Plot.ruleX([chart.rule], { stroke: ink, strokeWidth: 1.25 }),
      Plot.link(rows.filter(({ row }) => row.interval), {
        x1: (one: Placed) => one.row.interval!.low, x2: (one: Placed) => one.row.interval!.high,
        y1: (one: Placed) => one.middle, y2: (one: Placed) => one.middle,
        stroke: (one: Placed) => one.row.color, strokeWidth: 2.5, strokeLinecap: "round", className: "interval",
      }),
      Plot.link(marks.filter(({ row }) => row.dots.length > 0), {
        x1: (one: Placed) => one.row.mark!.value, x2: (one: Placed) => one.row.mark!.value,
        y1: (one: Placed) => one.top + 2, y2: (one: Placed) => one.top + one.height - 2,
        stroke: (one: Placed) => one.row.color, strokeWidth: 2, className: "summary",
      }),
      Plot.dot(marks.filter(({ row }) => row.dots.length === 0), {
        x: (one: Placed) => one.row.mark!.value, y: "middle", r: 5, stroke: (one: Placed) => one.row.color, strokeWidth: 2,
        fill: (one: Placed) => (one.row.mark!.hollow ? paper : one.row.color),
        title: (one: Placed) => one.row.mark!.text, className: "value",
      }),
      Plot.dot(dots, {
        x: "value", y: "y", r: 3, stroke: "color", strokeWidth: 1.25, symbol: "symbol", title: "text", className: "epochs",
        fill: (one: { hollow?: boolean; color: string }) => (one.hollow ? paper : one.color),
        fillOpacity: 0.75,
      }),
      Plot.axisX(chart.scale.ticks, { tickFormat: chart.scale.format, tickSize: 0, ticks: Infinity, tickPadding: 8 }),
    ],
  });
  for (const { text, y } of titles) write(svg, narrow ? 0 : 0, y, fitted(text, width * 0.9), { fill: ink, bold: true, size: 13 });
  for (const place of rows) annotate(svg, place, { narrow, left, width, muted, ink });
  axis.forEach((line, at) => write(svg, left, height + 37 + at * 16, line, { fill: muted }));
  const points: Point[] = rows.flatMap((place) => [
    ...(place.row.mark ? [{ x: x(place.row.mark.value), y: place.middle, text: place.row.mark.text }] : []),
    ...place.row.dots.map((dot, at) => ({ x: x(dot.value), y: dotY(place, at, place.row.dots.length), text: dot.text })),
  ]);
  return { svg, points };
}

interface Side { narrow: boolean; left: number; width: number; muted: string; ink: string }

function annotate(svg: SVGSVGElement, { row, middle, top }: Placed, { narrow, left, width, muted, ink }: Side): void {
  const aside = row.aside ?? "";
  if (narrow) {
    write(svg, 0, top - 6, fitted(row.label, width - textWidth(aside) - 14), { fill: ink });
    if (aside) write(svg, width, top - 6, aside, { fill: muted, anchor: "end" });
    return;
  }
  write(svg, left - 14, middle, fitted(row.label, left - 16), { fill: ink, anchor: "end" });
  if (aside) write(svg, width, middle, aside, { fill: muted, anchor: "end" });
}
