// Out of the page: clipboard and downloads of figures, tables and the record.
import { h, s } from "./dom";
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

/** A figure as a file of its own: white or dark paper, a title, no reference to this page. */
export function svgText(svg: SVGSVGElement, title: string): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  for (const name of ["class", "aria-hidden", "style"]) copy.removeAttribute(name);
  copy.setAttribute("color", theme().ink);
  copy.prepend(s("title", {}, title), s("rect", { width, height, fill: theme().paper, stroke: "none" }));
  return new XMLSerializer().serializeToString(copy);
}

async function png(svg: SVGSVGElement, title: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg, title))}`;
  await image.decode();
  const { width, height } = svg.viewBox.baseVal;
  const canvas = h("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  const context = canvas.getContext("2d");
  if (!context) throw new Error("no canvas");
  context.scale(2, 2);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((give, fail) =>
    canvas.toBlob((blob) => (blob ? give(blob) : fail(new Error("no picture"))), "image/png"));
}

/** The menu beside a figure. `current` gives the drawing as it is now. */
export function saveMenu(title: string, name: string, current: () => SVGSVGElement | undefined): HTMLElement {
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
    h("summary", { "aria-label": `Save figure: ${title}` }, "Save"),
    h("div", { class: "items" },
      item("Copy SVG", (svg) => copyText(svgText(svg, title), "SVG")),
      item("Copy PNG", async (svg) => {
        await navigator.clipboard.write([new ClipboardItem({ "image/png": png(svg, title) })]);
        say("PNG copied");
      }),
      item("Download SVG", (svg) => download(new Blob([svgText(svg, title)], { type: "image/svg+xml" }), `${name}.svg`)),
      item("Download PNG", async (svg) => download(await png(svg, title), `${name}.png`))));
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
