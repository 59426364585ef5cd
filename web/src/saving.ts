// Out of the page: clipboard and downloads of figures, tables and the record.
import { h, plain, s } from "./dom";
import { drawLegend, type LegendEntry } from "./legend";
import { wrapped, write } from "./plot";
import { theme } from "./theme";

let notice: HTMLElement | undefined;
let timer = 0;

/** Says something for a moment, also to screen readers. */
export function say(text: string): void {
  if (!notice) {
    notice = h("p", { class: "notice", role: "status" });
    document.body.append(notice);
  }
  notice.textContent = text;
  notice.classList.add("shown");
  clearTimeout(timer);
  timer = window.setTimeout(() => notice!.classList.remove("shown"), 2600);
}

export function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    say(`${what} could not be copied: the browser does not allow it here`);
  }
}

/** What is said of a figure on the page, and goes with it. */
export interface About { title: string; note?: string; legend?: LegendEntry[] }

const PAD = 16;
const TITLE = 15;
/** How much wider than the ruler's a bold letter is. */
const BOLD = 1.1;

/** Title, note and legend above a drawing, from 0 downwards; and how high they are. */
function heading({ title, note, legend = [] }: About, width: number): { head: SVGGElement; height: number } {
  const { ink, muted } = theme();
  const head = s("g", { class: "head" });
  let height = 0;
  for (const line of wrapped(plain(title), width / BOLD, TITLE)) {
    write(head, 0, height + 10, line, { fill: ink, size: TITLE, bold: true });
    height += 20;
  }
  for (const line of note ? wrapped(plain(note), width) : []) {
    write(head, 0, height + 9, line, { fill: muted });
    height += 17;
  }
  if (legend.length > 0) height += 5 + drawLegend(head, legend, height + 5, width);
  return { head, height: height + 8 };
}

/** A figure as a file of its own: on white or dark paper, under what the page says of it, without a reference to the page. */
function alone(svg: SVGSVGElement, about: About): { copy: SVGSVGElement; width: number; height: number } {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const drawn = svg.viewBox.baseVal;
  const said = heading(about, drawn.width);
  said.head.setAttribute("transform", `translate(0 ${-said.height})`);
  const [x, y] = [-PAD, -PAD - said.height];
  const [width, height] = [drawn.width + 2 * PAD, Math.ceil(drawn.height + said.height + 2 * PAD)];
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  for (const name of ["class", "aria-hidden", "style"]) copy.removeAttribute(name);
  copy.setAttribute("color", theme().ink);
  copy.prepend(s("title", {}, plain(about.title)), s("rect", { x, y, width, height, fill: theme().paper, stroke: "none" }), said.head);
  return { copy, width, height };
}

const text = (copy: SVGSVGElement): string => new XMLSerializer().serializeToString(copy);

const svgText = (svg: SVGSVGElement, about: About): string => text(alone(svg, about).copy);

async function png(svg: SVGSVGElement, about: About): Promise<Blob> {
  const { copy, width, height } = alone(svg, about);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text(copy))}`;
  await image.decode();
  const canvas = h("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  const context = canvas.getContext("2d");
  if (!context) throw new Error("no canvas");
  context.scale(2, 2);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((give, fail) =>
    canvas.toBlob((blob) => (blob ? give(blob) : fail(new Error("no picture"))), "image/png"));
}

/** The menu beside a figure. `current` gives the drawing as it is now. */
export function saveMenu(about: About, name: string, current: () => SVGSVGElement | undefined): HTMLElement {
  const menu = h("details", { class: "menu" });
  const item = (label: string, act: (svg: SVGSVGElement) => Promise<void> | void) =>
    h("button", {
      type: "button",
      click: async () => {
        const svg = current();
        menu.open = false;
        if (!svg) return;
        try {
          await act(svg);
        } catch {
          say(`${label}: the browser does not allow it here`);
        }
      },
    }, label);
  menu.append(
    h("summary", { "aria-label": `Save figure: ${about.title}` }, "Save"),
    h("div", { class: "items" },
      item("Copy SVG", (svg) => copyText(svgText(svg, about), "SVG")),
      item("Copy PNG", async (svg) => {
        await navigator.clipboard.write([new ClipboardItem({ "image/png": png(svg, about) })]);
        say("PNG copied");
      }),
      item("Download SVG", (svg) => download(new Blob([svgText(svg, about)], { type: "image/svg+xml" }), `${name}.svg`)),
      item("Download PNG", async (svg) => download(await png(svg, about), `${name}.png`))));
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      menu.open = false;
      menu.querySelector("summary")?.focus();
    }
  });
  menu.addEventListener("focusout", (event) => {
    if (!menu.contains(event.relatedTarget as Node | null)) menu.open = false;
  });
  return menu;
}
