#!/usr/bin/env node
// How long the page of a large record takes: 7 contenders, 5 scenarios, 30 epochs, made up with a fixed seed. Each time beside one second.
//
//   node bench/page.mjs [TIMES]     after `cargo build --release` and `npm ci` in web/; 5 times unless told
//
// The program is target/release/deadheat, or what DEADHEAT names; the browser is /usr/bin/chromium-headless-shell, or what CHROMIUM names. Written is
// the whole command, from its start to its end. Loaded is from the start of the navigation to the frame in which every figure in view is
// drawn: once from the page's beginning, where there is none, and once from its first figures. The median and the extremes are shown.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KINDS } from "../web/tests/generate.mjs";

const { chromium } = createRequire(new URL("../web/package.json", import.meta.url))("playwright-core");
const program = process.env.DEADHEAT ?? fileURLToPath(new URL("../target/release/deadheat", import.meta.url));
const times = Number(process.argv[2] ?? 5);
const LIMIT_MS = 1000;

function written(record, page) {
  const begun = performance.now();
  execFileSync(program, ["report", record, "--html", page]);
  return performance.now() - begun;
}

/** Runs in the page, before it does: keeps when it could be used, and when the figures in view were drawn. */
function watch() {
  const look = () => {
    const { ready, drawn } = document.documentElement?.dataset ?? {};
    const inView = [...document.querySelectorAll("figure")].filter((one) => {
      const { top, bottom } = one.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    });
    const done = ready && document.readyState === "complete" && inView.every((one) => one.querySelector(".canvas svg"));
    if (done && !window.seen) window.seen = { figures: inView.length, ms: performance.now() };
    if (!window.seen || !drawn) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

async function loaded(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true });
  try {
    const page = await context.newPage();
    await page.addInitScript(watch);
    await page.goto(url);
    await page.waitForFunction(() => window.seen && document.documentElement.dataset.drawn, undefined, { timeout: 60_000 });
    return await page.evaluate(() => ({ ...window.seen, ready: Number(document.documentElement.dataset.ready), drawn: Number(document.documentElement.dataset.drawn) }));
  } finally {
    await context.close();
  }
}

/** `judged` where it is held against the second: who reads the first figures does not wait for the last. */
function say(what, all, judged = true) {
  const sorted = [...all].sort((one, other) => one - other);
  const [least, median, most] = [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].map((ms) => ms.toFixed(0));
  console.log(`${what.padEnd(46)} ${median.padStart(6)} ms (${least} to ${most})${judged ? `; ${Number(median) < LIMIT_MS ? "under" : "OVER"} ${LIMIT_MS} ms` : ""}`);
}

if (!existsSync(program)) throw new Error(`${program} is not there: cargo build --release, or name it with DEADHEAT`);
const folder = mkdtempSync(join(tmpdir(), "deadheat-page-"));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell", headless: true,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  const [record, page] = [join(folder, "large.json"), join(folder, "large.html")];
  writeFileSync(record, JSON.stringify(KINDS.large()));
  const write_ms = Array.from({ length: times }, () => written(record, page));
  const [top, ratios] = [[], []];
  for (let at = 0; at < times; at += 1) {
    top.push(await loaded(browser, `file://${page}`));
    ratios.push(await loaded(browser, `file://${page}#ratios`));
  }
  console.log(`7 contenders, 5 scenarios, 30 epochs; a record of ${(statSync(record).size / 1e6).toFixed(1)} MB, a page of ${(statSync(page).size / 1e6).toFixed(1)} MB; ${times} times each`);
  say("written", write_ms);
  say("usable", top.map((one) => one.ready));
  say("loaded, from its beginning", top.map((one) => one.ms));
  say(`loaded, from its first figures (${ratios[0].figures} in view)`, ratios.map((one) => one.ms));
  say("every figure drawn", top.map((one) => one.drawn), false);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
