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
const chrome = process.env.CHROMIUM ?? "/usr/bin/chromium";

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
  }

  async close() {
    await this.browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The page of a made-up record, or of a file with one, as the program writes it; `more` is put into its document. */
  page(kind, more) {
    const key = more ? `${kind}+${Object.keys(more)}` : kind;
    if (!this.files.has(key)) {
      const html = join(this.folder, `${this.files.size}.html`);
      const record = KINDS[kind] ? join(this.folder, `${kind}.json`) : kind;
      if (KINDS[kind]) writeFileSync(record, JSON.stringify(KINDS[kind]()));
      const begun = performance.now();
      execFileSync(program, ["report", record, "--html", html]);
      const written_ms = performance.now() - begun;
      const text = readFileSync(html, "utf8");
      const [head, json, foot] = parts(text);
      const document = { ...JSON.parse(json), ...more };
      if (more) writeFileSync(html, head + JSON.stringify(document).replace(/</g, "\\u003c") + foot);
      this.files.set(key, { html, document, json, written_ms });
    }
    return this.files.get(key);
  }

  /** Opens a saved SVG by itself, and says what is in it. */
  async picture(bytes) {
    const file = join(this.folder, "figure.svg");
    writeFileSync(file, bytes);
    const page = await this.browser.newPage();
    try {
      await page.goto(`file://${file}`);
      return await page.evaluate(() => ({
        name: document.documentElement.nodeName, title: document.querySelector("title")?.textContent,
        marks: document.querySelectorAll("path, circle, rect").length, texts: [...document.querySelectorAll("text")].map((one) => one.textContent),
        var: new XMLSerializer().serializeToString(document).includes("var("),
      }));
    } finally {
      await page.close();
    }
  }

  /** Opens, asks, closes; nothing may be complained of and nothing asked for but the file itself. */
  async on(kind, options, ask) {
    const opened = await this.open(kind, options);
    try {
      await ask(opened);
      assert.deepEqual(opened.seen.complaints, []);
      assert.deepEqual(opened.seen.requests.filter((url) => !/^(file|data|blob):/.test(url)), []);
      assert.equal(opened.seen.requests.filter((url) => url.startsWith("file:")).length, 1);
    } finally {
      await opened.close();
    }
  }

  /** Opens a page and keeps what it complains of and asks for. */
  async open(kind, { more, width = 1280, dark = false, downloads = false } = {}) {
    const made = this.page(kind, more);
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

/** What stands before, in, and after the element with the document. */
function parts(text) {
  const open = '<script type="application/json" id="document">';
  const from = text.indexOf(open) + open.length;
  const to = text.indexOf("</script>", from);
  return [text.slice(0, from), text.slice(from, to), text.slice(to)];
}

/** Where a value of an axis stands in a drawing, from what the drawing says of its scale. */
export function place(scale, value) {
  const [from, to] = scale.domain;
  const share = scale.type === "log" ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from);
  return scale.range[0] + share * (scale.range[1] - scale.range[0]);
}

/** Scales, circles and texts of the first figure of a kind. */
export const drawn = (page, kind) => page.evaluate((kind) => {
  const svg = document.querySelector(`[data-figure="${kind}"] svg`);
  const scale = (axis) => ({
    type: svg.getAttribute(`data-${axis}-type`), domain: JSON.parse(svg.getAttribute(`data-${axis}-domain`)), range: JSON.parse(svg.getAttribute(`data-${axis}-range`)),
  });
  // Symbols other than circles are paths that are moved to their place.
  const at = (one) => {
    const box = one.getBBox();
    return new DOMPoint(box.x + box.width / 2, box.y + box.height / 2).matrixTransform(one.getCTM()).matrixTransform(svg.getCTM().inverse()).x;
  };
  const marks = [...svg.querySelectorAll("title")].map((title) => ({ text: title.textContent, x: at(title.parentElement) }));
  return { x: scale("x"), y: scale("y"), marks };
}, kind);
