// Observable Plot as this page uses it: no style element of its own, colours as attributes, scales read back.
import * as Plot from "@observablehq/plot";
import { s, shortened } from "./dom";
import type { Axis } from "./model";
import { theme } from "./theme";

export { Plot };

/** A value that can be pointed at: where it stands in the drawing, and what is read there; long races have too many to write all of it. */
export interface Spot {
  x: number;
  y: number;
  text: string | (() => string);
  /** Half of its width and height, where it is not a point. */
  half?: [x: number, y: number];
  /** What Enter acts on. */
  act?: number;
}

export interface Drawn { svg: SVGSVGElement; spots: Spot[] }

/** What lies around a drawing, wherever it stands. */
const MARGIN = 14;

/** Below this width, names stand above what they name. */
export const NARROW = 620;

/** Says of a scale where values stand on it, for the tests. */
export function exposed(svg: SVGSVGElement, name: "x" | "y", type: string, domain: unknown, range: unknown): void {
  svg.setAttribute(`data-${name}-type`, type);
  svg.setAttribute(`data-${name}-domain`, JSON.stringify(domain));
  svg.setAttribute(`data-${name}-range`, JSON.stringify(range));
}

/**
 * A drawing whose values stand on an axis from left to right; from the top down it is laid out in pixels, `bottom` of them and `foot` for
 * the axis, whose label is written below it.
 */
export function plotted(
  axis: Axis, size: { width: number; bottom: number; left: number; right: number }, marks: Plot.Markish[],
): { svg: SVGSVGElement; x(value: number): number } {
  const { ink, muted } = theme();
  const { width, bottom, left, right } = size;
  const below = axisLines(axis.label, width - left);
  const foot = 28 + below.length * 16;
  const svg = Plot.plot({
    className: "plot", width, height: bottom + foot, marginTop: 0, marginBottom: foot, marginLeft: left, marginRight: right,
    x: { type: axis.log ? "log" : "linear", domain: axis.domain, label: null },
    y: { type: "linear", domain: [0, bottom], range: [0, bottom], axis: null },
    marks: [...marks, across(axis, width - left - right, right)],
  });
  if (!(svg instanceof SVGSVGElement)) throw new Error("a drawing is one SVG");
  svg.querySelectorAll("style").forEach((one) => one.remove());
  svg.setAttribute("font-size", "12");
  svg.setAttribute("color", ink);
  for (const label of svg.querySelectorAll("[aria-label$='axis tick label']")) label.setAttribute("fill", muted);
  const scale = svg.scale("x")!;
  exposed(svg, "x", String(scale.type), scale.domain, scale.range);
  exposed(svg, "y", "linear", [0, bottom], [0, bottom]);
  below.forEach((line, at) => write(svg, left, bottom + 36 + at * 16, line, { fill: muted }));
  return { svg, x: (value) => scale.apply(value) as number };
}

/** A function from values to pixels. */
export function along({ log, domain: [low, high] }: Axis, from: number, to: number): (value: number) => number {
  return (value) => from + (to - from) * (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
}

/** The ticks that lie on an axis. */
export const within = ({ ticks, domain: [low, high] }: Axis): [number, string][] =>
  ticks.filter(([at]) => at >= low - (high - low) * 1e-9 && at <= high + (high - low) * 1e-9);

/** Labels under an axis: as many as have room beside each other, the last within `right` pixels and the drawing's margin beyond the axis. */
function across(axis: Axis, wide: number, right: number): Plot.Markish {
  const x = along(axis, 0, wide);
  let free = -Infinity;
  const shown = within(axis).filter(([at, label]) => {
    const half = textWidth(label) / 2 + 6;
    if (x(at) - half < free || x(at) + half > wide + right + MARGIN) return false;
    free = x(at) + half;
    return true;
  });
  return Plot.axisX(shown.map(([at]) => at), { tickFormat: (_: number, at: number) => shown[at]![1], tickSize: 0, ticks: Infinity, tickPadding: 8 });
}

type Place = { fill: string; anchor?: "start" | "middle" | "end"; size?: number; bold?: boolean };

/** Writes on a drawing. */
export function write(on: SVGElement, x: number, y: number, text: string, { fill, anchor = "start", size = 12, bold }: Place): void {
  on.append(s("text", {
    x: x.toFixed(1), y: y.toFixed(1), dy: "0.32em", fill, "text-anchor": anchor, "font-size": size, "font-weight": bold ? 600 : null,
    "font-variant-numeric": "tabular-nums", stroke: theme().paper, "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke",
  }, text));
}

const ruler = document.createElement("canvas").getContext("2d");
if (ruler) ruler.font = "12px system-ui, sans-serif";

/** How wide a text of 12 px is, in pixels. */
export const textWidth = (text: string): number => ruler ? ruler.measureText(text).width : [...text].length * 7.5;

/** How wide the widest of some texts is. */
export const widest = (texts: string[]): number => texts.reduce((most, one) => Math.max(most, textWidth(one)), 0);

/** The text, cut in its middle so that it is no wider than `most` pixels. */
export function fitted(text: string, most: number): string {
  let length = [...text].length;
  let shown = text;
  while (length > 3 && textWidth(shown) > most) {
    length = Math.min(length - 1, Math.floor((length * most) / textWidth(shown)) + 1);
    shown = shortened(text, length);
  }
  return shown;
}

/** The text in lines of at most `most` pixels, `size` pixels high; what has no gaps is parted anywhere. */
export function wrapped(text: string, most: number, size = 12): string[] {
  const all: string[] = [];
  const fits = (one: string) => textWidth(one) * size <= most * 12;
  let line = "";
  for (const word of text.split(" ")) {
    if (line && fits(`${line} ${word}`)) {
      line += ` ${word}`;
      continue;
    }
    if (line) all.push(line);
    line = "";
    for (const letter of word) {
      if (line && !fits(line + letter)) {
        all.push(line);
        line = "";
      }
      line += letter;
    }
  }
  return line ? [...all, line] : all;
}

/** An axis's label in one line, or parted at its semicolons where it is wider than `most` pixels. */
const axisLines = (label: string, most: number): string[] => (textWidth(label) < most ? [label] : label.split("; "));
