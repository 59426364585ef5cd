// The page on paper: no controls, everything within its edges, light whatever the screen is.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Bench, unfold } from "./browser.mjs";
import { AUDIT } from "./generate.mjs";

let bench;
before(async () => { bench = await Bench.open(); });
after(() => bench.close());

/** A4 at 96 dots per inch within margins of 1 cm: how wide a browser lays a page out. */
const WIDTH = 718;

/** Lays the page out as print does: other styles and a narrower page, and nothing is drawn anew. */
async function onPaper(page) {
  await page.emulateMedia({ media: "print" });
  await page.evaluate((width) => { document.documentElement.style.width = `${width}px`; }, WIDTH);
}

const seen = (page) => page.evaluate(() => {
  const visible = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).length;
  return {
    controls: visible("button, summary, input, nav, nav a, .tip, .notice, .skip"),
    tables: visible("main table"), figures: visible("figure svg"), verdicts: visible(".verdict .sentence"),
  };
});

/** Captions of the tables that can be read. */
const captions = (page) => page.$$eval("main table", (all) => all.filter((one) => one.checkVisibility()).map((one) => one.querySelector("caption").textContent));

/** What no reader of a printed report can open. */
const NEEDED = [/^steady: what every gate read$/, /^common-rate: what every gate read$/, /^Epochs in time order/];

describe("on paper", () => {
  it("has no controls, and has its tables", () => bench.on("whole", { audit: AUDIT }, async ({ page }) => {
    const before = await seen(page);
    assert.ok(before.controls > 60, `${before.controls} on the screen`);
    await onPaper(page);
    assert.deepEqual(await seen(page), { ...before, controls: 0 });
    assert.ok(before.tables > 8 && before.figures > 12 && before.verdicts === 6, JSON.stringify(before));
  }));

  it("has every table that was open, too", () => bench.on("whole", { audit: AUDIT }, async ({ page }) => {
    const closed = await seen(page);
    await unfold(page);
    const before = await seen(page);
    assert.ok(before.tables > closed.tables + 20, `${before.tables} after ${closed.tables}`);
    await onPaper(page);
    assert.deepEqual(await seen(page), { ...before, controls: 0 });
  }));

  it("has readings of gates and order of epochs, opened for it and closed again", () => bench.on("several", {}, async ({ page }) => {
    const has = (all) => NEEDED.map((one) => all.some((caption) => one.test(caption)));
    assert.deepEqual(has(await captions(page)), [false, false, false]);
    // One that somebody opened stays open.
    await page.$eval("#gates details", (one) => { one.open = true; });
    await page.evaluate(() => {
      addEventListener("beforeprint", () => {
        window.onPaper = [...document.querySelectorAll("main table")].filter((one) => one.checkVisibility()).map((one) => one.querySelector("caption").textContent);
      });
    });
    await page.pdf({ format: "A4" });
    assert.deepEqual(has(await page.evaluate(() => window.onPaper)), [true, true, true]);
    assert.deepEqual(has(await captions(page)), [true, false, false]);
    assert.ok(await page.$$eval("details.behind", (all) => all.filter((one) => one.open).length) === 1);
  }));

  for (const kind of ["whole", "hostile", "wide"]) {
    it(`cuts nothing off, whatever is open: ${kind}`, () => bench.on(kind, { audit: kind === "whole" ? AUDIT : undefined }, async ({ page }) => {
      await unfold(page);
      await onPaper(page);
      const cut = await page.evaluate((width) => {
        const name = (one) => `${one.tagName} ${one.getAttribute("class") ?? ""} ${one.textContent.slice(0, 40)}`;
        const shown = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility() && !one.closest(".unseen"));
        const wide = shown("main *, header *, footer *").filter((one) => {
          const box = one.getBoundingClientRect();
          return box.right > width + 1 || box.left < -1;
        });
        // What scrolls on a screen is cut on paper.
        const hidden = shown(".table, pre").filter((one) => one.scrollWidth > one.clientWidth + 1);
        return { wide: wide.map(name), hidden: hidden.map(name) };
      }, WIDTH);
      assert.deepEqual(cut, { wide: [], hidden: [] });
    }));
  }

  it("becomes a PDF, light also from a dark page, which stays dark", () => bench.on("small", { dark: true }, async ({ page }) => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.evaluate(() => {
      window.printed = [];
      addEventListener("beforeprint", () => {
        const svg = document.querySelector('[data-figure="ratios"] svg');
        window.printed.push([document.documentElement.dataset.theme, svg.getAttribute("color")]);
      });
    });
    assert.equal(await theme(), "dark");
    const pdf = await page.pdf({ format: "A4" });
    assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
    const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;
    assert.ok(pages >= 3 && pdf.length > 40_000, `${pages} pages, ${pdf.length} bytes`);
    assert.deepEqual(await page.evaluate(() => window.printed), [["light", "#1d1c1a"]]);
    assert.equal(await theme(), "dark");
  }));
});
