// What leaves the page by its copy buttons: every figure as SVG and PNG, every table as Markdown and CSV, command and record.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Bench, unfold } from "./browser.mjs";
import { AUDIT } from "./generate.mjs";

let bench;
before(async () => { bench = await Bench.open(); });
after(() => bench.close());

/** From here on the page keeps what it would hand to the system's clipboard, or is refused. */
const clipboard = (page, refuses = false) => page.evaluate((refuses) => {
  window.copied = [];
  const keep = async (what) => {
    if (refuses) throw new DOMException("not here", "NotAllowedError");
    window.copied.push(what);
  };
  Object.defineProperty(navigator.clipboard, "writeText", { value: keep });
  Object.defineProperty(navigator.clipboard, "write", { value: ([item]) => keep(item) });
}, refuses);

/** Chooses from a figure's menu, and waits until something was copied. */
async function pick(page, figure, label) {
  const before = await page.evaluate(() => window.copied.length);
  await figure.evaluate((one, label) => {
    one.querySelector(".menu summary").click();
    [...one.querySelectorAll(".items button")].find((button) => button.textContent === label).click();
  }, label);
  await page.waitForFunction((before) => window.copied.length > before, before);
}

/** The picture that was copied last: its size, the colour of its corner, how many colours it has. */
const pixels = (page) => page.evaluate(async () => {
  const blob = await window.copied.at(-1).getType("image/png");
  const picture = await createImageBitmap(blob);
  const { width, height } = picture;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(picture, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4 * 7) colors.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  return { type: blob.type, width, height, corner: [...data.slice(0, 4)], colors: colors.size };
});

/** What a figure shows on the page. */
const shown = (figure) => figure.evaluate((one) => {
  const svg = one.querySelector(".canvas svg");
  const { width, height } = svg.viewBox.baseVal;
  const swatches = [...one.querySelectorAll(".swatch")].map((swatch) => swatch.style.getPropertyValue("--swatch"));
  return {
    kind: one.dataset.figure, title: one.querySelector("h3, h4").textContent, note: one.querySelector(".note")?.textContent, width, height, swatches,
    legend: [...one.querySelectorAll(".legend li")].map((item) => item.textContent),
    texts: [...svg.querySelectorAll("text")].map((text) => text.textContent), marks: svg.querySelectorAll("path, circle, rect").length,
  };
});

/** A copy is the drawing, under the title, the note and the legend that stand beside it on the page. */
async function copied(page, figure, { width, png }) {
  const wanted = await shown(figure);
  await pick(page, figure, "Copy SVG");
  const opened = await bench.picture(await page.evaluate(() => window.copied.at(-1)));
  assert.equal(opened.name, "svg");
  assert.equal(opened.title, wanted.title);
  assert.deepEqual(opened.texts, wanted.texts, wanted.title);
  assert.equal(opened.marks, wanted.marks + 1, `${wanted.title}: its own paper comes first`);
  assert.ok(wanted.marks > 2 && !opened.var, wanted.title);
  const words = opened.head.slice(0, opened.head.length - wanted.legend.length);
  assert.equal(words.join(" "), [wanted.title, wanted.note].filter(Boolean).join(" "));
  // A name that is wider than the figure is cut in its middle.
  opened.head.slice(words.length).forEach((name, at) => {
    const [begin, end = ""] = name.split("…");
    assert.ok(name === wanted.legend[at] || (width < 1000 && begin.length > 15 && wanted.legend[at].startsWith(begin) && wanted.legend[at].endsWith(end)), `${wanted.title}: ${name} is not ${wanted.legend[at]}`);
  });
  assert.deepEqual(opened.swatches, wanted.swatches, wanted.title);
  assert.deepEqual(opened.cut, [], `${wanted.title}: cut off`);
  assert.ok(opened.width > wanted.width && opened.height > wanted.height + 20 * (words.length + Math.min(1, wanted.legend.length)), wanted.title);
  if (!png) return wanted;
  await pick(page, figure, "Copy PNG");
  const seen = await pixels(page);
  assert.deepEqual([seen.type, seen.width, seen.height], ["image/png", 2 * opened.width, 2 * opened.height], wanted.title);
  assert.deepEqual(seen.corner, [255, 255, 255, 255], wanted.title);
  assert.ok(seen.colors > 10, `${wanted.title}: ${seen.colors} colours`);
  return wanted;
}

/** Kinds of figures with one colour for each contender or part, which only a legend tells apart. */
const COLOURED = ["latency", "latency-ratio", "latency-pairs", "warm-up", "ladder", "scaling", "edge-cache"];

describe("figures", () => {
  for (const [kind, width] of [["whole", 1280], ["sweep", 1280], ["whole", 390], ["hostile", 390]]) {
    it(`are copied as SVG and PNG, all of them, with what is said beside them: ${kind}, ${width} px`, () => bench.on(kind, { width }, async ({ page }) => {
      await clipboard(page);
      const kinds = new Set();
      const figures = await page.$$("figure");
      // On a narrow page the first of each kind stands for the others.
      for (const figure of figures) {
        const kind = await figure.evaluate((one) => one.dataset.figure);
        if (width < 1000 && kinds.has(kind)) continue;
        // One picture of each kind is painted: that takes the most time.
        const { legend } = await copied(page, figure, { width, png: !kinds.has(kind) });
        assert.equal(legend.length > 1, COLOURED.includes(kind), kind);
        kinds.add(kind);
      }
      const wanted = {
        whole: ["ratios", "epochs", "latency", "latency-ratio", "latency-pairs", "time", "warm-up", "cpu", "cpu-parts", "memory", "memory-time", "collectors", "cold-start", "ladder", "edge-cache", "edge-users"],
        sweep: ["latency", "warm-up", "scaling"], hostile: ["latency", "warm-up", "time"],
      }[kind];
      for (const one of wanted) assert.ok(kinds.has(one), `${one} is not among ${[...kinds]}`);
    }));
  }

  it("say the hit rate that was chosen", () => bench.on("whole", {}, async ({ page }) => {
    await clipboard(page);
    await page.fill("#hit-rate", "61.5");
    const figure = await page.$('[data-figure="edge-cache"]');
    await pick(page, figure, "Copy SVG");
    const { texts } = await bench.picture(await page.evaluate(() => window.copied.at(-1)));
    assert.ok(texts.some((one) => one.endsWith("61.5 % hits")), texts.join(" | "));
  }));

  it("are copied dark from a dark page", () => bench.on("small", { dark: true }, async ({ page }) => {
    await clipboard(page);
    const figure = await page.$('[data-figure="ratios"]');
    await pick(page, figure, "Copy SVG");
    assert.match(await page.evaluate(() => window.copied.at(-1)), /<rect [^>]*fill="#1b1c1f"/);
    await pick(page, figure, "Copy PNG");
    assert.deepEqual((await pixels(page)).corner, [0x1b, 0x1c, 0x1f, 255]);
  }));

  it("reach the system's clipboard", () => bench.on("small", {}, async ({ page }) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const figure = await page.$('[data-figure="ratios"]');
    await (await figure.$(".menu summary")).click();
    await (await figure.$('.items button:has-text("Copy PNG")')).click();
    await page.waitForSelector(".notice.shown");
    assert.equal(await page.textContent(".notice"), "PNG copied");
    const types = await page.evaluate(async () => (await navigator.clipboard.read()).flatMap((item) => item.types));
    assert.deepEqual(types, ["image/png"]);
  }));

  it("say so where the browser refuses", () => bench.on("small", {}, async ({ page }) => {
    await clipboard(page, true);
    const figure = await page.$('[data-figure="ratios"]');
    for (const [kind, said] of [["SVG", /^SVG could not be copied/], ["PNG", /^Copy PNG: the browser does not allow it/]]) {
      await (await figure.$(".menu summary")).click();
      await (await figure.$(`.items button:has-text("Copy ${kind}")`)).click();
      await page.waitForFunction((kind) => document.querySelector(".notice")?.textContent.includes(kind), kind);
      assert.match(await page.textContent(".notice"), said);
    }
  }));
});

/** What every table shows, and what its buttons copy. */
async function tables(page) {
  await unfold(page);
  await clipboard(page);
  return page.evaluate(() => [...document.querySelectorAll("main .table")].map((table) => {
    const copied = (label) => {
      const button = [...table.querySelectorAll(".tools button")].find((one) => one.textContent === label);
      button.click();
      return window.copied.pop();
    };
    return {
      caption: table.querySelector("caption").textContent,
      columns: [...table.querySelectorAll("thead th")].map((one) => ({ text: one.textContent, number: one.classList.contains("number") })),
      rows: [...table.querySelectorAll("tbody tr")].map((row) =>
        [...row.children].map((one) => ({ text: one.textContent, value: one.dataset.value }))),
      markdown: copied("Copy Markdown"), csv: copied("Copy CSV"),
    };
  }));
}

const spelt = (text) => text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));

/** The cells of a table in Markdown; what stands in a cell cannot hold a bar. */
const cells = (line) => line.slice(2, -2).split(" | ").map(spelt);

/** CSV by the letter of RFC 4180. */
function parsed(csv) {
  const rows = [[]];
  let at = 0;
  while (at < csv.length) {
    const quoted = csv[at] === '"';
    const [found] = (quoted ? /^"((?:[^"]|"")*)"/ : /^[^",\r\n]*/).exec(csv.slice(at));
    rows.at(-1).push(quoted ? found.slice(1, -1).replaceAll('""', '"') : found);
    at += found.length;
    if (csv.startsWith("\r\n", at)) {
      rows.push([]);
      at += 2;
    } else {
      assert.equal(csv[at], ",", csv.slice(at, at + 40));
      at += 1;
    }
  }
  assert.deepEqual(rows.pop(), []);
  return rows;
}

describe("tables", () => {
  it("are copied as Markdown and CSV, all of them, cell by cell", () => bench.on("whole", { audit: AUDIT }, async ({ page }) => {
    const all = await tables(page);
    assert.ok(all.length > 25, `${all.length} tables`);
    for (const { caption, columns, rows, markdown, csv } of all) {
      const [head, line, ...body] = markdown.trimEnd().split("\n");
      assert.deepEqual(cells(head), columns.map((one) => one.text), caption);
      assert.deepEqual(cells(line), columns.map((one) => (one.number ? "--:" : "---")), caption);
      assert.deepEqual(body.map(cells), rows.map((row) => row.map((cell) => cell.text)), caption);
      const [titles, ...values] = parsed(csv);
      assert.deepEqual(titles, columns.map((one) => one.text), caption);
      assert.equal(values.length, rows.length, caption);
      values.forEach((row, at) => row.forEach((found, column) => {
        const { text, value } = rows[at][column];
        // A cell without a value shows a dash, which no spreadsheet should read.
        const wanted = value ?? (text === "–" && found === "" ? "" : text);
        assert.equal(/^[=+\-@]/.test(wanted) && value === undefined ? found.slice(1) : found, wanted, `${caption}: ${columns[column].text}`);
      }));
    }
  }));

  it("hold no formula, whatever names are", () => bench.on("hostile", {}, async ({ page }) => {
    const all = await tables(page);
    const fields = all.flatMap(({ csv }) => parsed(csv).flat());
    assert.deepEqual(fields.filter((one) => /^[=+@\t\r]/.test(one) || /^-(?![\d.])/.test(one)), []);
    assert.ok(fields.some((one) => one.startsWith("'=HYPERLINK")), "the name is there");
    assert.deepEqual(fields.filter((one) => /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(one)), [], "nothing that acts");
    assert.ok(fields.includes("'\\n=1+1\\u{1b}[2J"), "a line end before a formula does not hide it");
    assert.ok(all.every(({ markdown }) => !/[<>]/.test(markdown)), "no HTML in Markdown");
    const wide = all.filter(({ columns, markdown }) => markdown.trimEnd().split("\n").some((line) => cells(line).length !== columns.length));
    assert.deepEqual(wide.map((one) => one.caption), []);
  }));
});

describe("the rest", () => {
  it("is copied as it stands in the document", () => bench.on("small", {}, async ({ page, document, json }) => {
    await clipboard(page);
    await page.click('#reproduce button:has-text("Copy command")');
    await page.click('#record button:has-text("Copy the record")');
    assert.deepEqual(await page.evaluate(() => window.copied), [document.reproduce, json]);
  }));
});
