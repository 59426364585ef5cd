// A figure's legend: beside the drawing on the page, and inside of it where the figure goes alone.
import { h, plain, s } from "./dom";
import { fitted, textWidth, write } from "./plot";
import { theme } from "./theme";

export interface LegendEntry { label: string; color(): string; symbol?: string }

/** Outlines of swatches, like the marks of the same name, in a square of 100; what is not here is a circle. */
const OUTLINES: Record<string, string> = {
  square: "0 0, 100 0, 100 100, 0 100",
  triangle: "50 0, 100 100, 0 100",
  diamond: "50 0, 100 50, 50 100, 0 50",
  star: "50 0, 62 36, 100 36, 69 58, 81 95, 50 72, 19 95, 31 58, 0 36, 38 36",
  hexagon: "50 0, 95 25, 95 75, 50 100, 5 75, 5 25",
  wye: "0 10, 30 0, 50 35, 70 0, 100 10, 65 55, 65 100, 35 100, 35 55",
  cross: "35 0, 65 0, 65 35, 100 35, 100 65, 65 65, 65 100, 35 100, 35 65, 0 65, 0 35, 35 35",
};

export function legendElement(entries: LegendEntry[]): { element: HTMLElement; paint(): void } {
  const items = entries.map((entry) => {
    const symbol = entry.symbol ?? "circle";
    const swatch = h("span", { class: `swatch ${symbol}`, "aria-hidden": "true" });
    const outline = OUTLINES[symbol];
    if (outline) swatch.style.clipPath = `polygon(${outline.replace(/\d+/g, "$&%")})`;
    return { entry, swatch, item: h("li", {}, swatch, plain(entry.label)) };
  });
  return {
    element: h("ul", { class: "legend" }, ...items.map(({ item }) => item)),
    paint: () => items.forEach(({ entry, swatch }) => swatch.style.setProperty("--swatch", entry.color())),
  };
}

const LINE = 19;
const SWATCH = 10;

/** Draws the entries from `top` downwards, as many in a line as there is room for; says how high that is. */
export function drawLegend(into: SVGElement, entries: LegendEntry[], top: number, width: number): number {
  let [x, y] = [0, top];
  for (const entry of entries) {
    const text = fitted(plain(entry.label), width - SWATCH - 6);
    const wide = SWATCH + 6 + textWidth(text);
    if (x > 0 && x + wide > width) [x, y] = [0, y + LINE];
    const outline = OUTLINES[entry.symbol ?? "circle"];
    const fill = entry.color();
    into.append(outline
      ? s("polygon", { points: outline, fill, transform: `translate(${x.toFixed(1)} ${y + 4}) scale(${SWATCH / 100})` })
      : s("circle", { cx: (x + SWATCH / 2).toFixed(1), cy: y + 4 + SWATCH / 2, r: SWATCH / 2, fill }));
    write(into, x + SWATCH + 6, y + 4 + SWATCH / 2, text, { fill: theme().ink });
    x += wide + 18;
  }
  return y + LINE - top;
}
