// Observable Plot as this page uses it: no style element of its own, colours as attributes, scales read back.
import * as Plot from "@observablehq/plot";
import { s, shortened } from "./dom";
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
export function write(svg: SVGSVGElement, x: number, y: number, text: string, { fill, anchor = "start", size = 12, bold }: Place): void {
  svg.append(s("text", {
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

/** A domain that holds all values, with a little room at its ends. */
export function logDomain(values: number[], around: [number, number]): [number, number] {
  const finite = values.filter((one) => Number.isFinite(one) && one > 0);
  const [low, high] = [Math.min(...finite, around[0]), Math.max(...finite, around[1])];
  const room = (high / low) ** 0.06;
  return [low / room, high * room];
}
