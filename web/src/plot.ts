// Observable Plot as this page uses it: no style element of its own, colours as attributes, scales read back.
import * as Plot from "@observablehq/plot";
import { s, shortened } from "./dom";
import { highest, lowest } from "./extent";
import { theme } from "./theme";

export { Plot };

export interface Plotted {
  svg: SVGSVGElement;
  x(value: number): number;
  y(value: number): number;
}

/** Below this width, names stand above what they name. */
export const NARROW = 620;

/** A scale on which the page and its tests can look up where a value stands. */
function exposed(svg: SVGSVGElement, axis: "x" | "y", scale: Plot.Scale | undefined): (value: number) => number {
  if (!scale) return () => 0;
  svg.setAttribute(`data-${axis}-type`, String(scale.type));
  svg.setAttribute(`data-${axis}-domain`, JSON.stringify(scale.domain));
  svg.setAttribute(`data-${axis}-range`, JSON.stringify(scale.range));
  return (value) => scale.apply(value) as number;
}

export function plotted(options: Plot.PlotOptions): Plotted {
  const { ink, muted } = theme();
  const made = Plot.plot({ ...options, className: "plot" });
  if (!(made instanceof SVGSVGElement)) throw new Error("a drawing is one SVG");
  made.querySelectorAll("style").forEach((one) => one.remove());
  made.setAttribute("font-size", "12");
  made.setAttribute("color", ink);
  for (const label of made.querySelectorAll("[aria-label$='axis tick label'], [aria-label$='axis label']")) {
    label.setAttribute("fill", muted);
  }
  const x = exposed(made, "x", made.scale("x") as Plot.Scale | undefined);
  const y = exposed(made, "y", made.scale("y") as Plot.Scale | undefined);
  return { svg: made, x, y };
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

/** Ticks of a ratio's axis, on a logarithmic scale: round numbers near 1, powers and halves of ten far from it. */
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
export const axisLines = (label: string, most: number): string[] => (textWidth(label) < most ? [label] : label.split("; "));

export function ratioTicks([low, high]: [number, number], most: number): number[] {
  if (high / low > 4) {
    const all = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const digit of [1, 2, 5]) all.push(digit * 10 ** power);
    }
    const within = all.filter((one) => one >= low && one <= high);
    return within.length > most ? within.filter((one) => /^1/.test(one.toExponential())) : within;
  }
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const step = steps.find((one) => (high - low) / one <= most) ?? 1;
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at += 1) ticks.push(Number((at * step).toFixed(6)));
  return ticks;
}

/**
 * Ticks of a logarithmic axis: 1, 2 and 5 of each power of ten, or the powers alone where those are too many. Where fewer than three
 * lie in the domain: all digits of each power; then equal round steps.
 */
export function logTicks([low, high]: [number, number]): number[] {
  const within = (all: number[]) => all.filter((one) => one >= low && one <= high);
  const powers: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) powers.push(10 ** power);
  const of = (digits: number[]) => within(powers.flatMap((power) => digits.map((digit) => digit * power)));
  const few = of([1, 2, 5]);
  const tens = within(powers);
  if (few.length > 9 && tens.length > 2) return tens;
  if (few.length > 2) return few;
  const all = of([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  return all.length > 2 ? all : roundSteps(low, high);
}

/** Equal round steps, at least three and about as few as there can be. */
function roundSteps(low: number, high: number): number[] {
  const power = 10 ** Math.floor(Math.log10(high - low));
  const multiples = (step: number) => {
    const all: number[] = [];
    for (let at = Math.ceil(low / step); at * step <= high; at += 1) all.push(Number((at * step).toPrecision(12)));
    return all;
  };
  return [5, 2, 1, 0.5, 0.2].map((digit) => multiples(digit * power)).find((all) => all.length > 2) ?? [low, high];
}

/** A domain that holds all values, with a little room at its ends. */
export function logDomain(values: number[], around: [number, number]): [number, number] {
  const finite = values.filter((one) => Number.isFinite(one) && one > 0);
  const [low, high] = [lowest(finite, around[0]), highest(finite, around[1])];
  const room = (high / low) ** 0.06;
  return [low / room, high * room];
}
