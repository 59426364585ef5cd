// Stacked bars: one row per contender, the parts of one figure one beside the other.
import { highest } from "./extent";
import type { Drawing } from "./figure";
import { fitted, NARROW, Plot, plotted, textWidth, write } from "./plot";
import { theme } from "./theme";

export interface BarPart { row: number; from: number; to: number; color: string; border?: string; hollow?: boolean; text: string }

export interface BarChart {
  /** One for each row. */
  labels: string[];
  parts: BarPart[];
  scale: { high: number; ticks(most: number): number[]; format(value: number): string; label: string };
}

const BAR = 24;

export function barChart({ labels, parts, scale }: BarChart, width: number): Drawing {
  const { ink, line, muted, paper } = theme();
  const narrow = width < NARROW;
  const left = narrow ? 4 : Math.min(width * 0.28, highest(labels.map(textWidth), 0) + 16);
  const step = narrow ? 50 : 36;
  const top = (row: number) => row * step + (narrow ? 22 : 4);
  const bottom = labels.length * step + 4;
  const ticks = scale.ticks(narrow ? 4 : 6);
  const { svg, x } = plotted({
    width, height: bottom + 42, marginTop: 0, marginBottom: 42, marginLeft: left, marginRight: 14,
    x: { type: "linear", domain: [0, scale.high], label: null },
    y: { type: "linear", domain: [0, bottom], range: [0, bottom], axis: null },
    marks: [
      Plot.gridX(ticks, { stroke: line, strokeOpacity: 1 }),
      Plot.rect(parts, {
        x1: "from", x2: "to", y1: (part: BarPart) => top(part.row), y2: (part: BarPart) => top(part.row) + BAR,
        fill: (part: BarPart) => (part.hollow ? paper : part.color), stroke: (part: BarPart) => part.border ?? part.color, strokeWidth: 1.5, title: "text", className: "parts",
      }),
      Plot.axisX(ticks, { tickFormat: scale.format, tickSize: 0, ticks: Infinity, tickPadding: 8 }),
    ],
  });
  labels.forEach((label, row) => narrow
    ? write(svg, 0, top(row) - 9, fitted(label, width), { fill: ink })
    : write(svg, left - 12, top(row) + BAR / 2, fitted(label, left - 14), { fill: ink, anchor: "end" }));
  write(svg, left, bottom + 36, scale.label, { fill: muted });
  return { svg, points: parts.map((part) => ({ x: x((part.from + part.to) / 2), y: top(part.row) + BAR / 2, text: part.text })) };
}
