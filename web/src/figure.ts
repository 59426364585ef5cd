// A figure: its drawing, the values under the pointer or under the arrow keys, its menu, and the table behind it.
import type { Context } from "./context";
import { h, plain, unique } from "./dom";
import { numbers } from "./numbers";
import { drawFlames, flameTools, type View } from "./flames";
import { legendElement } from "./legend";
import type { Drawing, Figure } from "./model";
import { drawPlot } from "./panels";
import type { Drawn, Spot } from "./plot";
import { drawRows } from "./rows";
import { saveMenu } from "./saving";
import { behind, tableElement } from "./table";
import { onTheme, paint, symbol } from "./theme";

const drawers: (() => void)[] = [];
let frame = 0;

function redrawAll(): void {
  for (const draw of drawers) draw();
}

onTheme(redrawAll);
addEventListener("resize", () => {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(redrawAll);
});

const REACH = 36;

class Reader {
  #points: Spot[] = [];
  #at = -1;
  readonly #tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
  readonly #ring = h("div", { class: "ring", "aria-hidden": "true", hidden: true });
  readonly #said = h("p", { class: "unseen", "aria-live": "polite" });

  constructor(private readonly canvas: HTMLElement, private readonly act?: (at: number) => void) {
    canvas.append(this.#ring, this.#tip, this.#said);
    canvas.addEventListener("pointermove", (event) => this.#near(event));
    canvas.addEventListener("pointerdown", (event) => this.#near(event));
    canvas.addEventListener("pointerleave", () => this.#hide());
    canvas.addEventListener("blur", () => this.#hide());
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  set points(points: Spot[]) {
    this.#points = points;
    this.#hide();
    this.#at = -1;
  }

  #near(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [best, distance] = [-1, REACH * REACH];
    this.#points.forEach((point, at) => {
      const [wide, high] = point.half ?? [0, 0];
      const apart = Math.max(0, Math.abs(point.x - x) - wide) ** 2 + Math.max(0, Math.abs(point.y - y) - high) ** 2;
      if (apart < distance) [best, distance] = [at, apart];
    });
    if (best < 0) this.#hide();
    else this.#show(best, false);
  }

  #key(event: KeyboardEvent): void {
    const last = this.#points.length - 1;
    const steps: Record<string, number> = {
      ArrowRight: this.#at + 1, ArrowDown: this.#at + 1, ArrowLeft: this.#at - 1, ArrowUp: this.#at - 1, Home: 0, End: last,
    };
    if (event.key === "Escape") return this.#hide();
    const act = event.key === "Enter" ? this.#points[this.#at]?.act : undefined;
    if (act !== undefined) return this.act?.(act);
    const to = steps[event.key];
    if (to === undefined || last < 0 || event.target !== this.canvas) return;
    event.preventDefault();
    this.#show(Math.min(last, Math.max(0, to)), true);
  }

  #show(at: number, aloud: boolean): void {
    const point = this.#points[at]!;
    this.#at = at;
    this.#ring.hidden = this.#tip.hidden = false;
    this.#ring.style.transform = `translate(${point.x}px, ${point.y}px)`;
    const text = typeof point.text === "string" ? point.text : point.text();
    this.#tip.textContent = text;
    const room = this.canvas.clientWidth - this.#tip.offsetWidth;
    const left = Math.max(0, Math.min(room, point.x - this.#tip.offsetWidth / 2));
    const above = point.y - this.#tip.offsetHeight - 12;
    this.#tip.style.transform = `translate(${left}px, ${above < -8 ? point.y + 14 : above}px)`;
    if (aloud) this.#said.textContent = text;
  }

  #hide(): void {
    this.#ring.hidden = this.#tip.hidden = true;
  }
}

/** A figure, or its table where that is enough. `drawing` gives what there is to draw now, where that changes. */
export function figureElement(context: Context, figure: Figure, drawing = () => figure.drawing): HTMLElement & { redraw?: () => void } {
  const id = unique(`${figure.kind}-${figure.title}`);
  if (!figure.drawing) return tableElement(numbers(context, figure), id);
  const title = plain(figure.title);
  const [note, squares] = [plain(figure.note), !("plot" in figure.drawing)];
  const entries = figure.legend.map(({ label, color }) => ({ label, color: () => paint(color), symbol: squares ? "square" : symbol(color) }));
  const legend = entries.length > 1 ? legendElement(entries) : undefined;
  let drawn: Drawn | undefined;
  const canvas = h("div", {
    class: "canvas", tabindex: "0", role: "group",
    "aria-label": `${title}. Arrow keys read the values; the table below the figure has them all.`,
  });
  const view: View = { at: undefined, wanted: "" };
  const tools = "flames" in figure.drawing ? flameTools(figure.drawing.flames, id, view, () => redraw()) : undefined;
  const reader = new Reader(canvas, tools?.zoom);
  canvas.addEventListener("click", (event) => {
    const flame = event.target instanceof Element && event.target.closest("[data-flame]");
    if (flame) tools?.zoom(Number(flame.getAttribute("data-flame")));
  });
  const failed = h("p", { class: "failed", role: "alert", hidden: true });
  const redraw = () => {
    const width = Math.floor(canvas.clientWidth);
    if (width < 50) return;
    drawn?.svg.remove();
    drawn = drawnOrSaid(drawing()!, width, view, failed);
    reader.points = drawn?.spots ?? [];
    if (drawn) canvas.prepend(drawn.svg);
    legend?.paint();
  };
  drawers.push(redraw);
  const element = h("figure", { class: "figure", id, "data-figure": figure.kind },
    h("figcaption", {},
      h("h3", {}, title),
      saveMenu({ title, note, legend: legend && entries }, id, () => drawn?.svg),
      note ? h("p", { class: "note" }, note) : null),
    legend?.element,
    tools?.element,
    failed,
    canvas,
    behind("Numbers", () => numbers(context, figure), id, { unseen: title }));
  return Object.assign(element, { redraw });
}

/** The drawing; where there can be none, it is said in its place, and the other figures are drawn nevertheless. */
function drawnOrSaid(drawing: Drawing, width: number, view: View, failed: HTMLElement): Drawn | undefined {
  try {
    const drawn = "rows" in drawing ? drawRows(drawing.rows, width)
      : "plot" in drawing ? drawPlot(drawing.plot, width) : drawFlames(drawing.flames, width, view);
    drawn.svg.setAttribute("aria-hidden", "true");
    failed.hidden = true;
    return drawn;
  } catch (error) {
    console.error(error);
    failed.textContent = `This figure could not be drawn: ${plain(String(error))}. Its numbers are in the record.`;
    failed.hidden = false;
    return undefined;
  }
}

/** For so long the page may draw before it answers again. */
const FIRST_MS = 150;
const THEN_MS = 40;

/** Draws all figures that are in the page: the first ones now, the others while it can be used already. */
export function drawFigures(done: () => void): void {
  let next = 0;
  const some = (most_ms: number) => {
    const begun = performance.now();
    while (next < drawers.length && performance.now() - begun < most_ms) drawers[next++]!();
    if (next < drawers.length) setTimeout(() => some(THEN_MS));
    else done();
  };
  some(FIRST_MS);
}
