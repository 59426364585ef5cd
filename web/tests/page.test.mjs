import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, it } from "node:test";
import { Bench, unfold } from "./browser.mjs";
import { AUDIT, HOSTILE } from "./generate.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let bench;
before(async () => { bench = await Bench.open(); });
after(() => bench.close());

const on = (kind, options, ask) => bench.on(kind, options, ask);

const SECTIONS = ["verdict", "ratios", "epochs", "latency", "time", "cpu", "memory", "collectors", "cold-start", "ladder", "scaling", "edge-cache", "audit", "parity", "gates", "machine", "reproduce", "record"];
const sections = (page) => page.$$eval("[data-section]", (all) => all.map((one) => one.dataset.section));
const without = (...names) => SECTIONS.filter((one) => !names.includes(one));

/** What a table shows, row by row; of several with the same beginning of their caption the first. */
const table = (page, caption) => page.evaluate((caption) => {
  const found = [...document.querySelectorAll("main table")].find((one) => one.querySelector("caption").textContent.startsWith(caption));
  return found && [...found.querySelectorAll("tbody tr")].map((row) => [...row.children].map((one) => one.textContent));
}, caption);

describe("the page", () => {
  it("has its sections in order, and none without data", () => on("small", {}, async ({ page }) => {
    assert.deepEqual(await sections(page), without("collectors", "ladder", "scaling", "edge-cache", "audit"));
    assert.equal(await page.$$eval("section", (all) => all.filter((one) => one.children.length < 2).length), 0);
  }));

  it("shows what not every record has", () => on("whole", { audit: AUDIT }, async ({ page }) => {
    assert.deepEqual(await sections(page), without("scaling"));
  }));

  it("shows sweeps", () => on("sweep", {}, async ({ page }) => {
    assert.deepEqual(await sections(page), without("collectors", "ladder", "edge-cache", "audit"));
  }));

  it("says the record's verdicts", () => on("several", {}, async ({ page, document }) => {
    const said = await page.$$eval(".verdict .sentence", (all) => all.map((one) => one.textContent));
    assert.deepEqual(said, document.scenarios.map((one) => one.rankings[0].headline));
    assert.ok(said.every((one) => one.length > 20));
    assert.match(await page.textContent("#reproduce pre"), /^deadheat race .*--seed 42/);
  }));

  it("holds the record, which the program reads again", () => on("small", { downloads: true }, async ({ page, json, document }) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#record .primary")]);
    assert.equal(readFileSync(await download.path(), "utf8"), json);
    assert.ok(bench.says(json).includes(document.scenarios[0].rankings[0].headline), "as it is said to who has no script");
  }));
});

describe("what numbers rest on", () => {
  it("an audit: claims in their scenarios, generators against their ceilings, findings", () => on("whole", { audit: AUDIT }, async ({ page }) => {
    assert.deepEqual(await table(page, "Published figures and this machine"), [
      ["bun / node throughput_rps", "https://example.org/post", "steady", "2.10", "1.11 (1.09 to 1.13)", "– not reproduced", ""],
      ["go / node latency_p99_ms (c64)", "https://example.org/post", "common-rate", "0.700", "1.40 (1.30 to 1.50)", "✕ contradicted", "at another rate"],
    ]);
    assert.deepEqual(await table(page, "Load generators"), [
      ["httpx", "python client.py --port {port}", "1,210, 1,230, 1,200", "1,210 (1,180 to 1,250)", "bun 52,000", "reaches 1,210/s here, and cannot have driven 52,000/s on a machine like this one"],
      ["wrk", "wrk -c 64", "–", "not measured", "none", "not measured: wrk is not installed"],
    ]);
    assert.deepEqual((await table(page, "Published figures against each other")).map((row) => row.slice(0, 3)), [["bun", "littles-law", "contradicts"]]);
    assert.match(await page.textContent("#audit .findings"), /generator-skipped.*wrk was not run.*→ install wrk/);
  }));

  it("services, environment and loads, in full", () => on("whole", {}, async ({ page }) => {
    assert.deepEqual(await table(page, "Services"), [["db", "mariadbd --port={port}", "port 3306", "mariadb-admin ping", "SIGQUIT, within 5.00 s"]]);
    assert.deepEqual(await table(page, "What was added to the environment"), [
      ["node", "NODE_ENV", "production"], ["bun", "MODE", "production"], ["go", "GOMAXPROCS", "1"], ["db", "TZ", "UTC"],
    ]);
    assert.deepEqual(await table(page, "Commands that contenders measure with"), ["node", "bun", "go"].map((name) => [name, "serialize", "measure"]));
    const item = "GET /items/1?full=1";
    assert.deepEqual(await table(page, "Loads"), [
      ["steady", "closed load, 64 connections", item, "–", "nothing", "6 of 100 ms"],
      ["common-rate", "open load, 2,000 requests/s, Poisson, at most 64 connections", item, "rate in stages: 1000:1s,3000:500ms", "nothing", "6 of 100 ms"],
      ["nothing", "closed load, 64 connections", item, "nothing is warmed up", "nothing", "6 of 100 ms"],
      [
        "json", "closed load, 64 connections", `75 % ${item}, 25 % GET /search?q=0 and 2 more paths`, "popularity by Zipf's law, exponent 1.1",
        "0.5 cores of CPU time, core 0 alone, 256 MiB of memory", "6 of 100 ms",
      ],
      ["cold-start", "each contender started 20 times, in turn", item, "–", "nothing", "one"],
      ["serialize", "serialize as each measures it itself, a fresh process each time", item, "–", "nothing", "one"],
    ]);
    assert.match(await page.textContent('[data-scenario="json"] .facts'), /Zipf's law, exponent 1\.1 · limited to 0\.5 cores of CPU time, core 0 alone, 256 MiB of memory · 6 epochs/);
  }));

  it("the order of every round of every epoch, in time order", () => on("whole", {}, async ({ page, document: { record } }) => {
    await unfold(page);
    const names = record.plan.contenders.map((one) => one.name);
    const told = (epoch) => epoch.rounds.map((round) => round.slices.map((one) => names[one.contender]).join(", "));
    const rows = await table(page, "Epochs in time order");
    const all = [...record.set_aside.map((epoch) => ({ epoch, counts: "set aside" })), ...record.epochs.map((epoch) => ({ epoch, counts: "counts" }))];
    assert.ok(record.set_aside.length === 2 && record.set_aside[1].started_unix_ms < record.epochs[0].started_unix_ms);
    const loads = all.filter(({ epoch }) => epoch.scenario !== "cold-start" && epoch.scenario !== "serialize");
    assert.deepEqual(rows.filter(([scenario]) => scenario !== "cold-start" && scenario !== "serialize"), loads.map(({ epoch, counts }, at) => {
      const orders = told(epoch);
      // All second rounds are mirrors, but that of the first epoch that counts.
      const named = at === 2 ? [1, 2, 3, 5] : [1, 3, 5];
      return [
        epoch.scenario, String(epoch.number), new Date(epoch.started_unix_ms).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC"), "8.70 s", "6",
        named.map((round) => `${round}: ${orders[round - 1]}`).join("; "), counts,
      ];
    }));
    assert.equal(rows.length, all.length);
    assert.ok(new Set(record.epochs.slice(0, 6).flatMap((one) => [0, 2, 4].map((round) => told(one)[round]))).size > 3, "orders are drawn anew");
  }));
});

describe("values and files", () => {
  it("reads values under the pointer and the arrow keys", () => on("small", {}, async ({ page, document }) => {
    const [one] = document.scenarios[0].comparisons;
    const canvas = page.locator('[data-figure="ratios"] .canvas').first();
    await canvas.focus();
    await page.keyboard.press("ArrowRight");
    const text = `${one.contender} / ${one.baseline}, ratio ${one.ratio.toFixed(2)}`;
    assert.ok((await canvas.locator(".tip").textContent()).startsWith(text));
    assert.ok((await canvas.locator("[aria-live]").textContent()).startsWith(text));
    await page.keyboard.press("Escape");
    assert.equal(await canvas.locator(".tip").isVisible(), false);
    const box = await canvas.locator("svg circle").first().boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    assert.ok((await canvas.locator(".tip").textContent()).startsWith(text));
  }));

  it("gives figures as SVG and PNG", () => on("whole", { audit: AUDIT, downloads: true }, async ({ page }) => {
    const figures = await page.$$("figure");
    assert.ok(figures.length > 12, String(figures.length));
    // What is in a file is what is copied, of every figure; see saving.test.mjs.
    for (const figure of [figures[0], figures.at(-1)]) {
      for (const kind of ["SVG", "PNG"]) {
        await (await figure.$(".menu summary")).click();
        const [download] = await Promise.all([page.waitForEvent("download"), (await figure.$(`.items button:has-text("Download ${kind}")`)).click()]);
        const bytes = readFileSync(await download.path());
        if (kind === "PNG") {
          assert.equal(bytes.subarray(1, 4).toString(), "PNG");
          assert.ok(bytes.readUInt32BE(16) > 1000 && bytes.length > 4000, "a picture of some size");
          continue;
        }
        const opened = await bench.picture(bytes);
        assert.equal(opened.name, "svg");
        assert.ok(opened.title && opened.marks > 2 && !opened.var, JSON.stringify(opened));
      }
    }
  }));

  it("gives tables as Markdown and CSV", () => on("small", { downloads: true }, async ({ page }) => {
    const table = page.locator(".verdict .table").first();
    const [download] = await Promise.all([page.waitForEvent("download"), table.getByText("Download CSV").click()]);
    const lines = readFileSync(await download.path(), "utf8").split("\r\n");
    assert.match(lines[0], /^contender,requests\/s,/);
    assert.match(lines[1], /^bun,\d{4,}\.\d+/);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await table.getByText("Copy Markdown").click();
    await page.waitForSelector(".notice.shown");
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^\| contender \| requests\/s \|.*\n\| --- \| --: \|/);
  }));
});

describe("for everybody", () => {
  it("is dark where that is preferred or asked for", () => on("small", { dark: true }, async ({ page }) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const ink = () => page.getAttribute('[data-figure="ratios"] svg', "color");
    const [dark, darkInk] = [await paper(), await ink()];
    await page.click(".theme");
    assert.notEqual(await paper(), dark);
    assert.notEqual(await ink(), darkInk);
    assert.match(dark, /rgb\((\d|[1-3]\d), /);
  }));

  for (const kind of ["whole", "sweep", "hostile"]) {
    it(`needs no sideways scrolling at 390 px: ${kind}`, () => on(kind, { audit: kind === "whole" ? AUDIT : undefined, width: 390 }, async ({ page }) => {
      await unfold(page);
      const wide = await page.evaluate(() => ({
        page: document.documentElement.scrollWidth,
        inner: [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > 391 && !one.closest(".unseen, thead")).map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`),
      }));
      assert.deepEqual(wide, { page: 390, inner: [] });
    }));
  }

  // Colours do not depend on the width, nor the layout on the colours.
  for (const [dark, width] of [[false, 1280], [true, 390]]) {
    it(`has nothing serious for axe: ${dark ? "dark" : "light"}, ${width} px`, () => on("whole", { audit: AUDIT, dark, width }, async ({ page }) => {
      await unfold(page);
      // Of rows with the same elements and classes, the longest is enough for axe, which looks at every cell for milliseconds.
      await page.$$eval("main table", (all) => all.forEach((table) => {
        const longest = new Map();
        table.querySelectorAll("tbody tr").forEach((row) => {
          const kind = [row, ...row.querySelectorAll("*")].map((one) => `${one.nodeName} ${one.className}`).join();
          const other = longest.get(kind);
          const keep = !other || row.textContent.length > other.textContent.length;
          (keep ? other : row)?.remove();
          if (keep) longest.set(kind, row);
        });
      }));
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
      assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`), []);
    }));
  }

  it("treats hostile names as text", () => on("hostile", {}, async ({ page }) => {
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.equal(await page.$$eval("img, iframe, object, embed, a[href^=javascript], [onerror], [onload]", (all) => all.length), 0);
    assert.equal(await page.$$eval("script", (all) => all.length), 3);
    await unfold(page);
    const text = await page.evaluate(() => document.body.innerText);
    assert.ok(text.includes(HOSTILE[0]), "shown as it is written");
    assert.ok(text.includes("\\u{1b}[31mred") && text.includes("\\u{202e}gnp.exe"), "made visible");
    const shown = await page.evaluate(() => [...document.querySelectorAll("main, header")].map((one) => one.textContent).join(""));
    assert.doesNotMatch(shown, /[\u0000-\u0009\u000b-\u001f\u200b\u202a-\u202e\u2066-\u2069]/);
  }));

  it("is written and usable soon, also with 7 contenders, 5 scenarios and 30 epochs", () => on("large", {}, async ({ page, made }) => {
    const { ready, drawn } = await page.evaluate(() => ({ ...document.documentElement.dataset }));
    const [ready_ms, size_mb] = [Number(ready), readFileSync(made.html).length / 1e6];
    console.log(`large record: page of ${size_mb.toFixed(1)} MB written in ${made.written_ms.toFixed(0)} ms, usable after ${ready} ms, every figure drawn after ${drawn} ms`);
    assert.ok(made.written_ms < 10_000 && ready_ms < 10_000, "a loose bound: machines differ");
    assert.equal(await page.$$eval(".verdict", (all) => all.length), 5);
  }));
});
