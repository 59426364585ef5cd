// The records that are kept beside the studies: the page of each opens from disk, complains of nothing and asks for nothing.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { Bench } from "./browser.mjs";
import { KINDS } from "./generate.mjs";

const studies = fileURLToPath(new URL("../../studies", import.meta.url));

/** As crates/cli/tests/kept.rs knows them. */
const kept = readdirSync(studies).flatMap((study) => {
  const folder = join(studies, study, "kept");
  return existsSync(folder) ? readdirSync(folder).filter((file) => /\.jsonl?(\.gz)?$/.test(file) && file !== "audit.json").map((file) => join(folder, file)) : [];
});

let bench;
before(async () => { bench = await Bench.open(); });
after(() => bench.close());

const opens = (record) => bench.on(record, {}, async ({ page, document }) => {
  const measured = document.scenarios.filter((one) => one.epochs > 0);
  assert.ok(measured.length > 0, `${record}: nothing was measured`);
  const said = await page.$$eval(".verdict .sentence", (all) => all.map((one) => one.textContent));
  assert.deepEqual(said, document.scenarios.map((one) => one.rankings[0].headline));
  const empty = await page.$$eval("figure", (all) => all.filter((one) => !one.querySelector(".canvas svg")).map((one) => one.id));
  assert.deepEqual(empty, [], "figures that were not drawn");
});

describe("kept records", () => {
  it("are there for every study", () => {
    const without = readdirSync(studies).filter((study) => existsSync(join(studies, study, "study.toml"))
      && !kept.some((file) => file.startsWith(join(studies, study, "kept"))));
    assert.deepEqual(without, []);
  });

  // In the form in which they are kept, with more kinds of scenarios than theirs.
  it("open, as one that was packed here", () => {
    const { record } = KINDS.several();
    const { epochs, ended, pilots, ...head } = record;
    const lines = [
      { line: "header", schema: "deadheat.record/1", version: head.version, started_unix_ms: head.started_unix_ms, plan: head.plan, machine: head.machine },
      ...pilots.map((one) => ({ line: "pilot", ...one })),
      ...epochs.map((one) => ({ line: "epoch", ...one })),
      ...ended.map(([scenario, end]) => ({ line: "scenario", scenario, end })),
      { line: "done" },
    ];
    const file = join(bench.folder, "several.jsonl.gz");
    writeFileSync(file, gzipSync(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
    return opens(file);
  });

  it("say which epochs count and how a scenario ended", () => bench.on(join(studies, "compiled/kept/race.jsonl.gz"), {}, async ({ page, document }) => {
    const { epochs } = document.scenarios.find((one) => one.name === "cold-start");
    const disturbed = document.record.epochs.filter((one) => one.scenario === "cold-start" && one.rounds.every((round) => round.dropped != null));
    assert.deepEqual([epochs, disturbed.map((one) => one.number)], [21, [7]]);
    const facts = await page.$eval('[data-scenario="cold-start"] .facts', (one) => one.textContent);
    assert.match(facts, /20 epochs, 1 more left out/);
    await page.$$eval("details.behind", (all) => {
      const order = all.find((one) => one.textContent.includes("The order in which everything ran"));
      [order.id, order.open] = ["opened", true];
    });
    await page.waitForSelector("#opened tbody tr");
    const rows = await page.$$eval("#opened tbody tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.filter((row) => row[0] === "cold-start" && row.at(-1) === "left out").map((row) => row[1]), ["7"]);
  }));

  const audited = (study, row) => {
    const folder = join(studies, study, "kept");
    const audit = JSON.parse(readFileSync(join(folder, "audit.json"), "utf8"));
    return bench.on(join(folder, "race.jsonl.gz"), { audit }, async ({ page }) => {
      const rows = await page.$$eval("#audit table tbody tr", (all) => all.map((one) => [...one.cells].map((cell) => cell.textContent).join(" | ")));
      assert.ok(rows.some((one) => row.test(one)), rows.join("\n"));
    });
  };
  it("name both scenarios of a published ratio", () => audited("metadata", /latency_p50_ratio .*prepare-per-request \/ lookup/));
  it("show on which side of 1 an interval ends", () => audited("ssr", /deno.* to 1\.00[1-9]/));

  for (const record of kept) it(`open: ${record.slice(studies.length + 1)}`, () => opens(record));
});
