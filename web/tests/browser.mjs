// Pages for the tests: records made here, pages made by the program, opened from disk in Debian's Chromium without a network.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { KINDS } from "./generate.mjs";

const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL("../../target", import.meta.url));
const program = process.env.DEADHEAT ?? join(target, "debug/deadheat");
const chrome = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";

export class Bench {
  static async open() {
    assert.ok(existsSync(program), `${program} is not there: cargo build first, or name it with DEADHEAT`);
    const browser = await chromium.launch({
      executablePath: chrome, headless: true,
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    });
    return new Bench(browser, mkdtempSync(join(tmpdir(), "deadheat-page-")));
  }

  constructor(browser, folder) {
    this.browser = browser;
    this.folder = folder;
    this.files = new Map();
    this.left = new Map();
    this.made = 0;
  }

  async close() {
    await this.browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /**
   * The page of a made-up record, or of a file with one, as the program writes it; `audit` is shown beside it. `edit` changes the document
   * and the figures in the page, which is then no longer what the program wrote.
   */
  page(kind, { audit, edit } = {}) {
    const key = `${kind}${audit ? " audited" : ""}`;
    if (edit) return this.#edited(this.page(kind, { audit }), edit);
    if (!this.files.has(key)) {
      const html = this.#file("html");
      const record = KINDS[kind] ? this.#file("json", KINDS[kind]()) : kind;
      const flags = audit ? ["--audit", this.#file("json", audit)] : [];
      const begun = performance.now();
      execFileSync(program, ["report", record, "--html", html, ...flags]);
      const written_ms = performance.now() - begun;
      const [, json, , figures] = parts(readFileSync(html, "utf8"));
      this.files.set(key, { html, document: JSON.parse(json), json, figures, written_ms });
    }
    return this.files.get(key);
  }

  #edited({ html, json, figures: drawn }, edit) {
    const [document, shown] = [JSON.parse(json), JSON.parse(drawn)];
    edit(document, shown.figures);
    const [head, , middle, , foot] = parts(readFileSync(html, "utf8"));
    const changed = this.#file("html");
    const written = (data) => JSON.stringify(data).replace(/</g, "\\u003c");
    writeFileSync(changed, head + written(document) + middle + written(shown) + foot);
    return { html: changed, document, json, written_ms: 0 };
  }

  #file(ending, content) {
    const file = join(this.folder, `${this.made += 1}.${ending}`);
    if (content !== undefined) writeFileSync(file, JSON.stringify(content));
    return file;
  }

  /** What the program says of a record in a terminal. */
  says(text) {
    const file = join(this.folder, "said.json");
    writeFileSync(file, text);
    return execFileSync(program, ["report", file], { encoding: "utf8" });
  }

  /** Opens a saved SVG by itself, and says what is in it; what stands above the drawing is told apart. */
  async picture(bytes) {
    const file = join(this.folder, "figure.svg");
    writeFileSync(file, bytes);
    this.gallery ??= await this.browser.newPage();
    await this.gallery.goto(`file://${file}`);
    return this.gallery.evaluate(() => {
        const svg = document.documentElement;
        const head = document.querySelector(".head");
        const outside = [...document.querySelectorAll("path, circle, rect, text")].filter((one) => !head.contains(one));
        const texts = (all) => [...all].filter((one) => one.nodeName === "text").map((one) => one.textContent);
        const paper = document.querySelector("rect").getBoundingClientRect();
        const beyond = [...document.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()])
          .filter(([, box]) => box.left < paper.left - 1 || box.right > paper.right + 1 || box.top < paper.top - 1 || box.bottom > paper.bottom + 1);
        return {
          name: svg.nodeName, title: document.querySelector("title")?.textContent,
          width: Number(svg.getAttribute("width")), height: Number(svg.getAttribute("height")),
          marks: outside.filter((one) => one.nodeName !== "text").length, texts: texts(outside),
          head: texts(head.children), swatches: [...head.querySelectorAll("polygon, circle")].map((one) => one.getAttribute("fill")),
          cut: beyond.map(([text]) => text), var: new XMLSerializer().serializeToString(document).includes("var("),
        };
      });
  }

  /** Opens, asks, closes; nothing may be complained of and nothing asked for but the file itself. */
  async on(kind, options, ask) {
    const opened = await this.open(kind, options);
    try {
      await this.#asked(opened, ask);
    } finally {
      await opened.close();
    }
  }

  /** As `on`, for tests that look at figures and change none: all those of a kind look at one page, whose tables a test may have opened. */
  async at(kind, ask) {
    if (!this.left.has(kind)) this.left.set(kind, await this.open(kind));
    const opened = this.left.get(kind);
    await this.#asked(opened, ask).finally(() => opened.seen.complaints.splice(0));
  }

  async #asked(opened, ask) {
    await ask(opened);
    assert.deepEqual(opened.seen.complaints, []);
    assert.deepEqual(opened.seen.requests.filter((url) => !/^(file|data|blob):/.test(url)), []);
    assert.equal(opened.seen.requests.filter((url) => url.startsWith("file:")).length, 1);
  }

  /** Opens a page and keeps what it complains of and asks for. */
  async open(kind, { audit, edit, width = 1280, dark = false, downloads = false } = {}) {
    const made = this.page(kind, { audit, edit });
    const context = await this.browser.newContext({
      viewport: { width, height: 900 }, colorScheme: dark ? "dark" : "light", offline: true, acceptDownloads: downloads,
    });
    const page = await context.newPage();
    const seen = { complaints: [], requests: [] };
    page.on("console", (message) => seen.complaints.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => seen.complaints.push(String(error)));
    page.on("request", (request) => seen.requests.push(request.url()));
    await page.goto(`file://${made.html}`);
    await page.waitForFunction(() => document.documentElement.dataset.drawn);
    return { page, seen, document: made.document, json: made.json, made, close: () => context.close() };
  }
}

/** Opens everything that can be opened; tables are made then. */
export async function unfold(page) {
  await page.$$eval("details", (all) => all.forEach((one) => { one.open = true; }));
  await page.waitForFunction(() => [...document.querySelectorAll("details.behind")].every((one) => one.querySelector("table")));
}

/** What stands before, in, and after the elements with the document and with the figures. */
function parts(text) {
  const ends = ["document", "figures"].flatMap((id) => {
    const open = `<script type="application/json" id="${id}">`;
    const from = text.indexOf(open) + open.length;
    return [from, text.indexOf("</script>", from)];
  });
  return [0, ...ends].map((from, at) => text.slice(from, ends[at]));
}

/** Where a value of an axis stands in a drawing, from what the drawing says of its scale. */
export function place(scale, value) {
  const [from, to] = scale.domain;
  const share = scale.type === "log" ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from);
  return scale.range[0] + share * (scale.range[1] - scale.range[0]);
}

/**
 * A figure of a kind, by default the first: its scales, and where its titled marks, its written texts and the points of its paths
 * stand, by the classes of their groups.
 */
export const drawn = (page, kind, which = 0) => page.evaluate(([kind, which]) => {
  const svg = document.querySelectorAll(`[data-figure="${kind}"] .canvas svg`)[which];
  const scale = (axis) => ({
    type: svg.getAttribute(`data-${axis}-type`), domain: JSON.parse(svg.getAttribute(`data-${axis}-domain`)), range: JSON.parse(svg.getAttribute(`data-${axis}-range`)),
  });
  const number = (one, name) => Number(one.getAttribute(name));
  const inside = (one, x, y) => {
    const point = new DOMPoint(x, y).matrixTransform(one.getCTM()).matrixTransform(svg.getCTM().inverse());
    return { x: point.x, y: point.y };
  };
  // Symbols other than circles are paths around 0 that are moved to their place.
  const at = (one) => {
    if (one.nodeName === "circle") return inside(one, number(one, "cx"), number(one, "cy"));
    if (one.nodeName === "path") return inside(one, 0, 0);
    const box = one.getBBox();
    return inside(one, box.x + box.width / 2, box.y + box.height / 2);
  };
  const lines = (name) => [...svg.querySelectorAll(`.${name} path`)].map((path) =>
    [...path.getAttribute("d").matchAll(/[ML](-?[\d.]+),(-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]));
  const names = [...new Set([...svg.querySelectorAll("g[class]")].flatMap((one) => [...one.classList]))];
  return {
    x: scale("x"), y: scale("y"),
    marks: [...svg.querySelectorAll("title")].map((title) => ({ text: title.textContent, ...at(title.parentElement) })),
    texts: [...svg.querySelectorAll("text[x]")].map((one) => ({ text: one.textContent, x: number(one, "x"), y: number(one, "y") })),
    lines: Object.fromEntries(names.map((name) => [name, lines(name)])),
    boxes: Object.fromEntries(names.map((name) => [name, [...svg.querySelectorAll(`.${name} rect`)].map((one) =>
      ({ from: number(one, "x"), to: number(one, "x") + number(one, "width") }))])),
  };
}, [kind, which]);

/** What is read at a figure, by a key or after so many of them, and where it stands. */
export async function read(page, kind, key, times = 1) {
  const canvas = page.locator(`[data-figure="${kind}"] .canvas`).first();
  await canvas.focus();
  for (let time = 0; time < times; time += 1) await page.keyboard.press(key);
  return canvas.evaluate((one) => {
    const [x, y] = one.querySelector(".ring").style.transform.match(/-?[\d.]+/g).map(Number);
    return { text: one.querySelector(".tip").textContent, aloud: one.querySelector("[aria-live]").textContent, x, y };
  });
}
