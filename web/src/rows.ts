// Rows: one for each contender or pair, values along one axis, groups under headings.
import { plain } from "./dom";
import type { Row, Rows } from "./model";
import { fitted, NARROW, Plot, plotted, textWidth, widest, within, write, type Drawn } from "./plot";
import { paint, symbol, theme } from "./theme";

interface Placed { row: Row; top: number; middle: number; height: number; first: boolean }

const BAR = 24;

/** From top to bottom: where headings and rows stand, in pixels. */
function laidOut(chart: Rows, narrow: boolean): { rows: Placed[]; titles: { text: string; y: number }[]; bottom: number } {
  const rows: Placed[] = [];
  const titles: { text: string; y: number }[] = [];
  let y = 4;
  for (const group of chart.groups) {
    if (group.title !== null) {
      titles.push({ text: plain(group.title), y: y + 14 });
      y += 30;
    }
    for (const row of group.rows) {
      const { dots, bars } = row;
      const several = dots.length > 1 || bars.length > 0;
      const height = Math.max(30, dots.length > 1 ? Math.min(44, 14 + dots.length * 2.4) : 0);
      const label = narrow ? 20 : 0;
      rows.push({ row, top: y + label, middle: y + label + height / 2, height, first: row === group.rows[0] });
      y += height + label + (narrow ? 8 : several ? 10 : 0);
    }
    y += 6;
  }
  return { rows, titles, bottom: y + 2 };
}

/** What is read at a part of a row; of a dot also which one it is, where they are alike. */
const saidOf = ({ label, each }: Row, said: string, at?: number): string =>
  plain(`${label}, ${each && at !== undefined ? `${each} ${at + 1}: ` : ""}${said}`);

export function drawRows(chart: Rows, width: number): Drawn {
  const { ink, line, band, paper } = theme();
  const narrow = width < NARROW;
  const { rows, titles, bottom } = laidOut(chart, narrow);
  const asides = widest(rows.map(({ row }) => row.aside));
  const left = narrow ? 12 : Math.min(Math.max(40, widest(rows.map(({ row }) => plain(row.label)))) + 16, width * 0.28);
  const right = narrow ? 14 : asides > 0 ? Math.min(asides + 22, width * 0.34) : 20;
  // The first dot of a row stands at its top, the last at its bottom.
  const dotY = ({ top, height, row: { dots } }: Placed, at: number) => dots.length === 1 ? top + height / 2 : top + height * (0.2 + (0.6 * at) / (dots.length - 1));
  const dots = rows.flatMap((place) => place.row.dots.map(([value, said, hollow], at) =>
    ({ value, y: dotY(place, at), color: paint(place.row.color), symbol: symbol(place.row.color), hollow, text: saidOf(place.row, said, at) })));
  const bars = rows.flatMap(({ row, middle }) => row.bars.map((bar) => ({
    ...bar, middle, fill: bar.hollow ? paper : paint(bar.color), stroke: bar.hollow ? paint(bar.color) : paper, text: saidOf(row, bar.said),
  })));
  const marks = rows.flatMap((place) => place.row.mark
    ? [{ ...place, color: paint(place.row.color), value: place.row.mark[0], hollow: place.row.mark[2], text: saidOf(place.row, place.row.mark[1]) }] : []);
  const intervals = rows.flatMap(({ row, middle }) => (row.interval ? [{ middle, color: paint(row.color), low: row.interval[0], high: row.interval[1] }] : []));
  const { svg, x } = plotted(chart.x, { width, bottom, left, right }, [
    chart.band ? Plot.rect([chart.band], { x1: "0", x2: "1", y1: () => 0, y2: () => bottom, fill: band }) : null,
    Plot.gridX(within(chart.x).map(([at]) => at), { stroke: line, strokeOpacity: 1 }),
    Plot.ruleY(rows.filter((one) => one.row.dots.length > 1 && !one.first), { y: (one: Placed) => one.top - (narrow ? 26 : 6), stroke: line, strokeOpacity: 0.8 }),
    chart.rule === null ? null : Plot.ruleX([chart.rule], { stroke: ink, strokeWidth: 1.25 }),
    Plot.rect(bars, {
      x1: "from", x2: "to", y1: ({ middle }: { middle: number }) => middle - BAR / 2, y2: ({ middle }: { middle: number }) => middle + BAR / 2,
      fill: "fill", stroke: "stroke", strokeWidth: 1.5, title: "text", className: "parts",
    }),
    Plot.link(intervals, { x1: "low", x2: "high", y1: "middle", y2: "middle", stroke: "color", strokeWidth: 2.5, strokeLinecap: "round", className: "interval" }),
    Plot.link(marks.filter((one) => one.row.dots.length > 0), {
      x1: "value", x2: "value", y1: ({ top }: Placed) => top + 2, y2: ({ top, height }: Placed) => top + height - 2, stroke: "color", strokeWidth: 2, className: "summary",
    }),
    Plot.dot(marks.filter((one) => one.row.dots.length === 0), {
      x: "value", y: "middle", r: 5, stroke: "color", strokeWidth: 2, fill: (one: { hollow?: true; color: string }) => (one.hollow ? paper : one.color),
      title: "text", className: "value",
    }),
    Plot.dot(dots, {
      x: "value", y: "y", r: 3, stroke: "color", strokeWidth: 1.25, symbol: "symbol", title: "text", className: "dots",
      fill: (one: { hollow?: true; color: string }) => (one.hollow ? paper : one.color), fillOpacity: 0.75,
    }),
  ]);
  for (const { text, y } of titles) write(svg, 0, y, fitted(text, width * 0.9), { fill: ink, bold: true, size: 13 });
  for (const place of rows) annotate(svg, place, { narrow, left, width });
  const spots = rows.flatMap((place) => [
    ...marks.filter((one) => one.row === place.row).map(({ value, middle, text }) => ({ x: x(value), y: middle, text })),
    ...place.row.bars.map((bar) => ({ x: x((bar.from + bar.to) / 2), y: place.middle, text: saidOf(place.row, bar.said) })),
    ...place.row.dots.map(([value, said], at) => ({ x: x(value), y: dotY(place, at), text: saidOf(place.row, said, at) })),
  ]);
  return { svg, spots };
}

/** The row's label and its aside: beside it, or above it where there is no room. */
function annotate(svg: SVGSVGElement, { row, middle, top }: Placed, { narrow, left, width }: { narrow: boolean; left: number; width: number }): void {
  const { ink, muted } = theme();
  const [label, aside] = [plain(row.label), row.aside];
  if (narrow) write(svg, 0, top - 6, fitted(label, width - textWidth(aside) - 14), { fill: ink });
  else write(svg, left - 14, middle, fitted(label, left - 16), { fill: ink, anchor: "end" });
  if (aside) write(svg, width, narrow ? top - 6 : middle, aside, { fill: muted, anchor: "end" });
}
