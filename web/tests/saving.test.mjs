// What leaves the page by its copy buttons: every figure as SVG and PNG, every table as Markdown and CSV, command and record.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Bench, unfold } from "./browser.mjs";
import { FUTURE } from "./generate.mjs";

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
  await (await figure.$(".menu summary")).click();
  await (await figure.$(`.items button:has-text("${label}")`)).click();
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
  for (let at = 0; at < data.length; at += 4) colors.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
  return { type: blob.type, width, height, corner: [...data.slice(0, 4)], colors: colors.size };
});

/** What a figure shows on the page. */
const shown = (figure) => figure.evaluate((one) => {
  const svg = one.querySelector(".canvas svg");
  const { width, height } = svg.viewBox.baseVal;
  return {
    kind: one.dataset.figure, title: one.querySelector("h3, h4").textContent, width, height,
    texts: [...svg.querySelectorAll("text")].map((text) => text.textContent), marks: svg.querySelectorAll("path, circle, rect").length,
  };
});

describe("figures", () => {
  it("are copied as SVG and PNG, all of them, as they are drawn", () => bench.on("whole", { more: FUTURE }, async ({ page }) => {
    await clipboard(page);
    const figures = await page.$$("figure");
    const kinds = new Set();
    for (const figure of figures) {
      const wanted = await shown(figure);
      kinds.add(wanted.kind);
      await pick(page, figure, "Copy SVG");
      const opened = await bench.picture(await page.evaluate(() => window.copied.at(-1)));
      assert.equal(opened.name, "svg");
      assert.equal(opened.title, wanted.title);
      assert.deepEqual(opened.texts, wanted.texts, wanted.title);
      assert.equal(opened.marks, wanted.marks + 1, `${wanted.title}: its own paper comes first`);
      assert.ok(wanted.marks > 2 && !opened.var, wanted.title);
      await pick(page, figure, "Copy PNG");
      const seen = await pixels(page);
      assert.deepEqual([seen.type, seen.width, seen.height], ["image/png", Math.ceil(wanted.width * 2), Math.ceil(wanted.height * 2)], wanted.title);
      assert.deepEqual(seen.corner, [255, 255, 255, 255], wanted.title);
      assert.ok(seen.colors > 10, `${wanted.title}: ${seen.colors} colours`);
    }
    for (const kind of ["ratios", "epochs", "latency", "time", "pilot", "cpu", "memory", "cold-start", "ladder", "scaling", "edge-cache"]) {
      assert.ok(kinds.has(kind), `${kind} is not among ${[...kinds]}`);
    }
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
  it("are copied as Markdown and CSV, all of them, cell by cell", () => bench.on("whole", { more: FUTURE }, async ({ page }) => {
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
