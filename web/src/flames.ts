// Flame graphs: calls as rectangles below their callers, as wide as the time that they take. One can be looked at more closely, and names searched.
import { h, plain, s } from "./dom";
import type { Flame, Flames } from "./model";
import { exposed, fitted, type Drawn, type Spot } from "./plot";
import { paint, theme } from "./theme";

const ROW = 20;
/** Below this width in pixels a rectangle has no name, and below the other it is not drawn. */
const NAMED = 34;
const SEEN = 0.5;
/** How much of its colour the strongest rectangle has: what is written on it can be read. */
const STRONGEST = 0.5;

/** What a drawing shows: the part below one call, and the names that are searched. */
export interface View { at: number | undefined; wanted: string }

const matches = (label: string, wanted: string): boolean => wanted !== "" && label.toLowerCase().includes(wanted.toLowerCase());

/** The share of the whole time that is spent in calls with a name that is searched, calls below calls counted once. */
function found(frames: Flame[], wanted: string): number {
  let share = 0;
  const counted: [number, number, number][] = [];
  for (const [level, from, to, , , label] of frames) {
    if (!matches(label, wanted)) continue;
    const middle = (from + to) / 2;
    if (counted.some(([above, left, right]) => above < level && left <= middle && middle <= right)) continue;
    counted.push([level, from, to]);
    share += to - from;
  }
  return share;
}

export function drawFlames({ frames }: Flames, width: number, { at, wanted }: View): Drawn {
  const { ink, paper } = theme();
  const whole = at === undefined ? undefined : frames[at];
  const [level, low, high] = whole ?? [0, 0, 1];
  const x = (share: number) => Math.min(1, Math.max(0, (share - low) / (high - low))) * width;
  const svg = s("svg", { class: "plot", width, "font-size": 12, "font-family": "system-ui, sans-serif" });
  const spots: Spot[] = [];
  let bottom = 0;
  frames.forEach(([depth, from, to, color, strength, label, said], index) => {
    const [left, right] = [x(from), x(to)];
    // A caller of the whole part is drawn over its whole width; what stands beside the part is not drawn.
    if (right - left < SEEN || (depth <= level && !(from <= low && to >= high))) return;
    const [y, wide] = [depth * ROW, right - left];
    bottom = Math.max(bottom, y + ROW);
    const name = plain(label);
    const hit = matches(label, wanted);
    svg.append(s("g", { "data-flame": index },
      s("rect", {
        x: left.toFixed(1), y, width: Math.max(SEEN, wide - 1).toFixed(1), height: ROW - 2, fill: paint(color),
        "fill-opacity": (strength * STRONGEST).toFixed(2), stroke: hit ? ink : null, "stroke-width": hit ? 2 : null,
      }),
      wide < NAMED ? null : s("text", { x: (left + 4).toFixed(1), y: y + ROW / 2 - 1, dy: "0.32em", fill: ink }, fitted(name, wide - 8))));
    spots.push({ x: (left + right) / 2, y: y + ROW / 2 - 1, half: [wide / 2, ROW / 2], text: `${name}, ${plain(said)}`, act: index });
  });
  svg.setAttribute("height", String(bottom));
  svg.setAttribute("viewBox", `0 0 ${width} ${bottom}`);
  svg.prepend(s("rect", { width, height: bottom, fill: paper }));
  exposed(svg, "x", "linear", [low, high], [0, width]);
  exposed(svg, "y", "linear", [0, bottom], [0, bottom]);
  return { svg, spots };
}

/** What is above a flame graph: the search, and the way back to the whole. */
export function flameTools({ frames }: Flames, id: string, view: View, redraw: () => void): { element: HTMLElement; zoom(at: number): void } {
  const share = h("output", { for: `${id}-search` });
  const search = h("input", { type: "search", id: `${id}-search`, placeholder: "function", input: () => {
    view.wanted = search.value.trim();
    share.textContent = view.wanted ? `${(found(frames, view.wanted) * 100).toFixed(1)} %` : "";
    redraw();
  } });
  const back = h("button", { type: "button", disabled: true, click: () => zoom(undefined) }, "Show all");
  const zoom = (at: number | undefined) => {
    view.at = at === view.at ? undefined : at;
    back.disabled = view.at === undefined;
    redraw();
  };
  return {
    element: h("p", { class: "tools flames" }, h("label", { for: search.id }, "Find"), search, share, back,
      h("span", {}, "Click a function, or press Enter on it, to see it over the whole width.")),
    zoom,
  };
}
