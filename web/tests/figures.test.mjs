// Every figure is drawn with the record's numbers: marks stand where their values are, and say them with their units.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Bench, drawn, place, read, unfold } from "./browser.mjs";
import { quantile, rate, ratio, size, three, time } from "./words.mjs";

let bench;
before(async () => { bench = await Bench.open(); });
after(() => bench.close());

const at = (kind, ask) => bench.at(kind, ask);
const on = (kind, options, ask) => bench.on(kind, options, ask);
const near = (found, wanted, what) => assert.ok(Math.abs(found - wanted) < 1, `${what}: at ${found}, not at ${wanted}`);

/** Every mark stands where its values are, on the axes that are told of, and its text is the one wanted. */
function stands(figure, wanted) {
  assert.deepEqual(figure.marks.map(({ text }) => text), wanted.map(({ text }) => text));
  wanted.forEach((one, at) => {
    for (const axis of ["x", "y"]) if (axis in one) near(figure.marks[at][axis], place(figure[axis], one[axis]), `${one.text}, ${axis}`);
  });
}

/** A line goes through the values, in both axes or as `to` places them. */
function follows(figure, line, values, what, to = ([x, y]) => [place(figure.x, x), place(figure.y, y)]) {
  assert.equal(line.length, values.length, what);
  values.forEach((value, at) => to(value).forEach((wanted, axis) => near(line[at][axis], wanted, `${what}, point ${at}, ${"xy"[axis]}`)));
}

/** The scale of each panel, by the labels at its ticks: so many of them, from 0 upwards. */
function panels(figure, count, value) {
  const left = figure.texts.find((one) => one.text === "0").x;
  const labels = figure.texts.filter((one) => one.x === left);
  const each = labels.length / count;
  assert.ok(each >= 2 && Number.isInteger(each), `${labels.length} labels at ${count} panels`);
  return Array.from({ length: count }, (_, at) => {
    const [first, ...others] = labels.slice(at * each, (at + 1) * each);
    assert.equal(first.text, "0");
    const last = others.at(-1);
    const y = (one) => first.y - (one / value(last.text)) * (first.y - last.y);
    for (const one of others) near(one.y, y(value(one.text)), `label ${one.text}`);
    return y;
  });
}

/** What the table behind a figure holds for machines. */
async function numbers(page, kind) {
  await unfold(page);
  return page.$$eval(`[data-figure="${kind}"] table`, ([table]) => [...table.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("[data-value]")].map((one) => (one.dataset.value === "" ? null : Number(one.dataset.value)))));
}

const scenario = (document, name) => document.scenarios.find((one) => one.name === name);
const of = (document, metric) => document.scenarios.flatMap((one) => one.comparisons).filter((one) => one.metric === metric);
const nines = (q) => -Math.log10(1 - q);

describe("figures are drawn with the record's numbers", () => {
  it("ratios with intervals", () => at("several", async ({ page, document }) => {
    const all = of(document, "throughput");
    assert.equal(all.length, 6);
    const figure = await drawn(page, "ratios");
    stands(figure, all.map((one) => ({
      x: one.ratio, text: `${one.contender} / ${one.baseline}, ratio ${ratio(one).value}, interval ${ratio(one).interval}, ${one.verdict}, ${one.epochs} epochs`,
    })));
    all.forEach((one, at) => follows(figure, figure.lines.interval[at], [one.low, one.high], "interval", (end) => [place(figure.x, end)]));
    const cells = await numbers(page, "ratios");
    assert.deepEqual(cells.map((row) => row.slice(0, 3)), all.map((one) => [one.ratio, one.low, one.high]));
  }));

  it("each epoch's ratio", () => at("several", async ({ page, document }) => {
    const all = of(document, "throughput").flatMap((one) => one.epoch_ratios.map((x, at) => ({ x, text: `${one.contender} / ${one.baseline}, epoch ${at + 1}: ${x.toFixed(3)}` })));
    assert.equal(all.length, 36);
    stands(await drawn(page, "epochs"), all);
  }));

  it("CPU, memory and cold starts", () => at("several", async ({ page, document }) => {
    const results = document.scenarios.flatMap((one) => one.results);
    const epochs = results.flatMap((one) => one.epochs.map((epoch) => ({ ...epoch, who: `${one.contender}, epoch ${epoch.epoch}` })));
    stands(await drawn(page, "cpu"), epochs.map((one) => ({ x: one.cpu_us_per_request, text: `${one.who}, CPU per request: ${time(one.cpu_us_per_request * 1e3)}` })));
    stands(await drawn(page, "memory"), epochs.flatMap((one) => [
      { x: one.rss_bytes, text: `${one.who}, at its end: ${size(one.rss_bytes)}` },
      { x: one.peak_rss_bytes, text: `${one.who}, at its highest: ${size(one.peak_rss_bytes)}` },
    ]));
    stands(await drawn(page, "cold-start"), epochs.map((one) => ({ x: one.cold_start_ns, text: `${one.who}, cold start: ${time(one.cold_start_ns)}` })));
  }));

  it("user mode and kernel, one beside the other", () => at("several", async ({ page, document }) => {
    const { results } = document.scenarios[0];
    assert.ok(results.every((one) => Math.abs(one.user_us_per_request + one.system_us_per_request - one.cpu_us_per_request) < 1e-9));
    const parts = results.flatMap((one) => {
      const [user, system] = [one.user_us_per_request, one.system_us_per_request];
      return [
        { from: 0, to: user, text: `${one.contender}, user mode: ${time(user * 1e3)}` },
        { from: user, to: user + system, text: `${one.contender}, kernel: ${time(system * 1e3)}` },
      ];
    });
    const figure = await drawn(page, "cpu-parts");
    stands(figure, parts.map(({ from, to, text }) => ({ x: (from + to) / 2, text })));
    assert.equal(figure.boxes.parts.length, parts.length);
    parts.forEach((part, at) => {
      for (const end of ["from", "to"]) near(figure.boxes.parts[at][end], place(figure.x, part[end]), part.text);
    });
    assert.deepEqual(await numbers(page, "cpu-parts"), results.map((one) => [one.user_us_per_request, one.system_us_per_request, one.instructions_per_request, one.switches_per_request, one.involuntary_switches_per_request]));
  }));

  it("memory from round to round", () => at("several", async ({ page, document }) => {
    const epochs = document.record.epochs.filter((one) => one.scenario === "steady");
    const series = [0, 1, 2].flatMap((at) => epochs.map((epoch) => ({ at, epoch, memory: epoch.contenders[at].usage.memory })));
    assert.ok(series.length === 18 && series.every(({ memory }) => memory.length === 6));
    const figure = await drawn(page, "memory-time");
    const up = panels(figure, 3, (text) => Number(text.replace(" MiB", "")) * 2 ** 20);
    assert.equal(figure.lines.thin.length, series.length);
    series.forEach(({ at, epoch, memory }, n) => follows(figure, figure.lines.thin[n], memory, `epoch ${epoch.number} of ${at}`,
      (moment) => [place(figure.x, moment.at_ns / 1e9), up[at](moment.pss_bytes)]));
    const [first] = series[0].memory;
    const seen = await read(page, "memory-time", "Home");
    assert.equal(seen.text, `node, epoch 1, ${time(first.at_ns)}: ${size(first.pss_bytes)}`);
    near(seen.y, up[0](first.pss_bytes), "the ring");
    assert.deepEqual(await numbers(page, "memory-time"), epochs.flatMap((epoch) => epoch.contenders.flatMap((part) => part.usage.memory.map((one) => [epoch.number, one.at_ns, one.pss_bytes]))));
  }));

  it("no figures of what an older record does not have", () => on("older", {}, async ({ page }) => {
    const kinds = await page.$$eval("#cpu [data-figure], #memory [data-figure]", (all) => all.map((one) => one.dataset.figure));
    assert.deepEqual(kinds, ["cpu", "memory"]);
  }));

  it("every pause of a collector, and none", () => at("whole", async ({ page, document }) => {
    const passes = document.record.collectors.filter((one) => one.scenario === "steady");
    const all = passes.flatMap((one) => one.pauses.each_ns.map((x, at) => ({ x, text: `${one.contender}, pause ${at + 1}: ${time(x)}` })));
    assert.equal(all.length, 60 + 5 + 80);
    stands(await drawn(page, "collectors"), all);
    assert.match(await page.textContent('[data-figure="collectors"] .note'), /Not drawn: 40 of node, because/);
    await unfold(page);
    const rows = (selector) => page.$$eval(`${selector} tbody tr`, (all) => all.map((row) => [...row.querySelectorAll("[data-value]")].map((one) => Number(one.dataset.value))));
    const wanted = (name) => scenario(document, name).collectors.map((one) => [one.pauses, one.pauses_per_s, one.paused_ns_per_s, one.longest_ns, one.requests_per_s]);
    assert.deepEqual(await rows('[data-figure="collectors"]'), wanted("steady"));
    assert.equal(wanted("steady")[0][0], 100, "steps are pauses, too");
    assert.deepEqual(await rows("#collectors > .table"), wanted("common-rate"));
    assert.deepEqual(wanted("common-rate"), [[0, 0, 0, 0, 9000]], "a table is enough for no pause");
  }));

  it("fresh starts beside the starts of other loads, own measurements and sizes", () => at("whole", async ({ page, document }) => {
    const results = (name) => scenario(document, name).results;
    const fresh = results("cold-start").flatMap((one) => one.cold_starts_ns.map((x, at) => ({ x, text: `${one.contender}, start ${at + 1}: ${time(x)}` })));
    assert.equal(fresh.length, 60);
    stands(await drawn(page, "cold-start"), fresh);
    const others = ["steady", "common-rate", "nothing", "json"].flatMap(results).flatMap((one) => one.epochs.map(({ epoch, cold_start_ns: x }) => ({ x, text: `${one.contender}, epoch ${epoch}, cold start: ${time(x)}` })));
    assert.equal(others.length, 4 * 3 * 6);
    stands(await drawn(page, "cold-start", 1), others);
    const column = (name, label) => page.$$eval(`[data-scenario="${name}"] [data-label="${label}"]`, (cells) => cells.map((one) => Number(one.dataset.value)));
    assert.deepEqual(await column("cold-start", "cold start, median"), results("cold-start").map((one) => one.cold_start_ns));
    assert.deepEqual(await column("cold-start", "geometric mean"), results("cold-start").map((one) => one.figures[0].value));
    const measured = results("serialize").map((one) => one.measured).sort((a, b) => a - b);
    assert.ok(measured[0] > 5e8 && measured[2] < 9e8);
    assert.deepEqual(await column("serialize", "measured"), measured);
    assert.equal(await page.$$eval('[data-scenario="serialize"] [data-label="requests/s"]', (cells) => cells.length), 0);
    const sizes = await page.$$eval("#memory > .table tbody tr", (rows) => rows.map((one) => one.textContent));
    assert.deepEqual(sizes, ["bun7.00 MiB", "go14.0 MiB"]);
  }));

  it("what each rung of a ladder adds, one beside the other", () => at("whole", async ({ page, document }) => {
    const [{ rungs, contenders }] = document.ladders;
    assert.deepEqual(rungs, ["nothing", "json", "steady"]);
    const steps = contenders.flatMap((one) => {
      let from = 0;
      return one.steps.map((step) => ({ ...step, who: one.contender, from, to: (from += step.added_us) }));
    });
    assert.deepEqual(steps.map((one) => Boolean(one.faster)), [false, false, false, false, false, false, false, true, false]);
    const figure = await drawn(page, "ladder");
    stands(figure, steps.map((one) => ({ x: (one.from + one.to) / 2, text: `${one.who}, ${one.scenario}: ${one.faster ? "0, is faster" : time(one.added_us * 1e3)}` })));
    steps.forEach((one, at) => {
      for (const end of ["from", "to"]) near(figure.boxes.parts[at][end], place(figure.x, one[end]), `${one.who}, ${one.scenario}`);
    });
    assert.match(await page.textContent('[data-figure="ladder"] .note'), /^json of go: faster/);
  }));

  it("latency by percentile, cut where there are too few", () => at("several", async ({ page, document }) => {
    const { results } = document.scenarios[0];
    const named = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
    const points = results.flatMap((one) => one.latency_curve.map(([q, ns]) => ({ q, x: nines(q), y: ns, text: `${one.contender}, ${quantile(q)}: ${time(ns)}` })));
    const figure = await drawn(page, "latency");
    stands(figure, points.filter(({ q }) => named.some((one) => Math.abs(one - q) < 1e-9)));
    results.forEach((one, at) => follows(figure, figure.lines.bold[at], one.latency_curve.map(([q, ns]) => [nines(q), ns]), one.contender));
    for (const [key, point] of [["Home", points[0]], ["End", points.at(-1)]]) {
      const seen = await read(page, "latency", key);
      assert.deepEqual([seen.text, seen.aloud], [point.text, point.text]);
      near(seen.x, place(figure.x, point.x), point.text);
      near(seen.y, place(figure.y, point.y), point.text);
    }
    // 72,000 requests: 72 lie beyond p99.9, which is too few.
    assert.ok(figure.marks.some(({ text }) => text.includes("p99:")) && !figure.marks.some(({ text }) => text.includes("p99.9")));
    await unfold(page);
    const p99 = await page.$$eval('[data-figure="latency"] table', ([table]) => [...table.querySelectorAll("tbody tr")].map((row) => Number(row.querySelector('[data-label="p99"]').dataset.value)));
    assert.deepEqual(p99, results.map((one) => one.latency_ns.p99));
  }));

  it("some labels at every axis of times, each at its value", () => on("narrow", {}, async ({ page, document }) => {
    const unit = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };
    for (const [which, { name, results }] of document.scenarios.entries()) {
      const figure = await drawn(page, "latency", which);
      const ticks = figure.texts.filter((one) => /^[\d.]+ (ns|µs|ms|s)$/.test(one.text));
      assert.ok(ticks.length >= 3 && ticks.length < 10, `${name}: ${ticks.map((one) => one.text)}`);
      for (const { text, y } of ticks) {
        const [value, of] = text.split(" ");
        near(y, place(figure.y, Number(value) * unit[of]), `${name}, ${text}`);
      }
      const spread = results.flatMap((one) => [one.latency_ns.min, one.latency_ns.max]);
      assert.ok(Math.max(...spread) / Math.min(...spread) < 4, `${name} is narrow`);
    }
  }));

  it("throughput over time, with warm-up and rounds left out", () => at("several", async ({ page, document }) => {
    const { epochs, plan } = document.record;
    const names = plan.contenders.map((one) => one.name);
    const figure = await drawn(page, "time");
    const up = panels(figure, 3, (text) => Number(text.replaceAll(",", "")));
    const took = epochs[0].took_ns / 1e9;
    const seen = epochs.filter((one) => one.scenario === "steady").flatMap((epoch, before) => epoch.rounds.flatMap((round, at) => round.slices.map((slice) => ({
      ...slice, dropped: Boolean(round.dropped), x: place(figure.x, before * took + (slice.start_ns + slice.elapsed_ns / 2) / 1e9), y: up[slice.contender](slice.rate_per_s),
      text: `${names[slice.contender]}, epoch ${epoch.number}, round ${at + 1}: ${rate(slice.rate_per_s)}${round.dropped ? ", left out" : ""}`,
    })))).sort((one, other) => one.contender - other.contender);
    assert.deepEqual([seen.length, seen.filter((one) => one.dropped).length], [6 * 6 * 3, 6 * 3]);
    const [node, bun, go, out] = figure.lines.fine;
    [node, bun, go].forEach((line, at) => follows(figure, line, seen.filter((one) => one.contender === at && !one.dropped), names[at], (one) => [one.x, one.y]));
    follows(figure, out, seen.filter((one) => one.dropped), "left out", (one) => [one.x, one.y]);
    const warm = figure.boxes.shaded;
    assert.equal(warm.length, 6 * 3);
    warm.forEach(({ from, to }, at) => {
      near(from, place(figure.x, (at % 6) * took), "from the epoch's start");
      near(to, place(figure.x, (at % 6) * took + 2.6), "to its first slice");
    });
    for (const [key, times, at] of [["Home", 1, 0], ["ArrowRight", 10, 10], ["End", 1, seen.length - 1]]) {
      const found = await read(page, "time", key, times);
      assert.equal(found.text, seen[at].text);
      near(found.x, seen[at].x, found.text);
      near(found.y, seen[at].y, found.text);
    }
  }));

  it("the pilot's windows, and the warm-up that was found", () => at("several", async ({ page, document }) => {
    const [pilot] = document.record.pilots;
    const windows = pilot.contenders.flatMap((one) => one.window_rates_per_s.map((y, at) => {
      const x = (at + 0.5) * pilot.window_ns / 1e9;
      return { x, y, text: `${one.contender}, ${time(x * 1e9)}: ${rate(y)}` };
    }));
    assert.equal(windows.length, 60);
    const figure = await drawn(page, "warm-up");
    stands(figure, windows);
    const [{ from, to }] = figure.boxes.shaded;
    near(from, place(figure.x, 0), "warm-up");
    near(to, place(figure.x, pilot.warmup_ns / 1e9), "warm-up");
    for (const [key, at] of [["Home", 0], ["End", 59]]) {
      const seen = await read(page, "warm-up", key);
      assert.equal(seen.text, windows[at].text);
      near(seen.x, place(figure.x, windows[at].x), seen.text);
      near(seen.y, place(figure.y, windows[at].y), seen.text);
    }
    assert.deepEqual((await numbers(page, "warm-up")).map(([, value]) => value), windows.map(({ y }) => y));
  }));

  it("rates over a sweep, with intervals and the law", () => on("sweep", {}, async ({ page, document }) => {
    const [{ points: values, fits }] = document.sweeps;
    assert.deepEqual([values.map(([n]) => n), fits.map((one) => one.contender)], [[1, 4, 16, 64, 256], ["node", "bun"]]);
    const wanted = values.flatMap(([n, name]) => scenario(document, name).results.map((one) => {
      const { value, low, high } = one.figures.find(({ metric }) => metric === "throughput");
      return { who: one.contender, x: n, y: value, low, high, text: `${one.contender}, at ${n}: ${rate(value)}, ${three(low)} to ${three(high)}` };
    }));
    assert.ok(wanted.every(({ low, y, high }) => low < y && y < high));
    const figure = await drawn(page, "scaling");
    const points = ["node", "bun"].flatMap((name) => wanted.filter((one) => one.who === name));
    stands(figure, points);
    points.forEach(({ x, low, high, text }, at) => follows(figure, figure.lines.ends[at], [[x, low], [x, high]], text));
    fits.forEach((fit, at) => follows(figure, figure.lines.dashed[at], fit.curve, `the law of ${fit.contender}`));
    const seen = await read(page, "scaling", "ArrowRight", 2);
    assert.equal(seen.text, points[1].text);
    near(seen.y, place(figure.y, points[1].y), seen.text);
    const said = fits.map((fit) => `${fit.contender}: contention ${three(fit.sigma)}, coherency ${three(fit.kappa)}`);
    const note = await page.textContent('[data-figure="scaling"] .note');
    assert.ok(said.every((one) => note.includes(one)), `${note} says ${said}`);
    assert.deepEqual(await numbers(page, "scaling"), wanted.map(({ x, y, low, high }) => [x, y, low, high]));
  }));

  it("what users see behind an edge cache, at every hit rate", () => on("whole", {}, async ({ page, document }) => {
    const [{ edge_cache: edge, results }] = document.scenarios;
    assert.equal(await page.$$eval('[data-figure="edge-cache"]', (all) => all.length), 4, "one for each load");
    const model = (hits) => results.map(({ latency_curve: curve }) => [
      ...(hits > 0 ? [[0, edge.edge_latency_ns], [hits, edge.edge_latency_ns]] : []), ...curve.map(([q, ns]) => [hits + (1 - hits) * q, edge.edge_latency_ns + ns]),
    ].map(([q, ns]) => [nines(q), ns]));
    for (const [per_cent, said] of [["92", "92 % hits"], ["50", "50 % hits"], ["12.3", "12.3 % hits"], ["0", "0 % hits"]]) {
      if (per_cent !== "92") await page.fill("#hit-rate", per_cent);
      const figure = await drawn(page, "edge-cache");
      model(Number(per_cent) / 100).forEach((curve, at) => follows(figure, figure.lines.bold[at], curve, `${results[at].contender}, ${said}`));
      assert.ok(figure.texts.some(({ text }) => text.endsWith(said)), `the axis says ${said}`);
      assert.equal(await page.textContent("#edge-cache caption"), `steady: What users see at ${said}`);
    }
  }));

  it("the users' percentiles as the record has them, then as the model has them", () => on("whole", {}, async ({ page, document }) => {
    const [{ edge_cache: edge, results: [origin] }] = document.scenarios;
    const seen = () => page.$$eval("#edge-cache div > .table tbody tr:first-child td", (all) => all.slice(0, 3).map((one) => Number(one.dataset.value)));
    assert.equal(await page.inputValue("#hit-rate"), "92");
    const before = await seen();
    const [user] = edge.users;
    assert.deepEqual(before, [user.p50_ns, user.p95_ns, user.p99_ns], "the record's, at the record's rate");
    assert.equal(before[0], edge.edge_latency_ns, "with 92 % hits the median is a hit");
    await page.fill("#hit-rate", "91.9");
    const near = await seen();
    assert.ok(near.every((one, index) => one >= before[index] && one < before[index] * 1.02), `${near} is close to ${before}, and above`);
    await page.fill("#hit-rate", "0");
    assert.deepEqual(await seen(), ["p50", "p95", "p99"].map((q) => edge.edge_latency_ns + origin.latency_ns[q]), "all wait for the edge and the origin");
    assert.equal(await page.textContent("#edge-cache output"), "0 %");
  }));
});

describe("a figure", () => {
  it("of each kind stands in a section, or its table does", () => at("whole", async ({ page, made }) => {
    const shown = await page.$$eval("section figure", (all) => all.map((one) => one.dataset.figure));
    const all = JSON.parse(made.figures).figures;
    assert.deepEqual([...shown].sort(), all.filter((one) => one.drawing).map((one) => one.kind).sort());
    const captions = await page.$$eval("section > .table caption", (tables) => tables.map((one) => one.textContent));
    const alone = all.filter((one) => !one.drawing).map((one) => one.table.caption);
    assert.ok(alone.length === 2 && alone.every((one) => captions.includes(one)), `${alone} are not all among ${captions}`);
  }));

  it("that cannot be drawn says so, and stops no other", async () => {
    const opened = await bench.open("small", { edit: (_, figures) => { figures.find((one) => one.kind === "latency").drawing.plot.panels[0].lines[0].points[3] = null; } });
    try {
      const figures = await opened.page.$$eval("figure", (all) => all.map((one) => ({
        kind: one.dataset.figure, drawn: one.querySelector(".canvas svg") !== null, said: one.querySelector(".failed").checkVisibility() && one.querySelector(".failed").textContent,
      })));
      assert.deepEqual(figures.filter((one) => !one.drawn).map((one) => one.kind), ["latency"]);
      assert.ok(figures.length > 8 && figures.findIndex((one) => !one.drawn) < figures.length - 4, "others come after it");
      for (const { drawn, said } of figures) assert.ok(drawn ? said === false : said.startsWith("This figure could not be drawn: TypeError"), String(said));
      assert.ok(opened.seen.complaints.length === 1 && /TypeError/.test(opened.seen.complaints[0]), "the console knows why");
    } finally {
      await opened.close();
    }
  });

  it("that cannot even be thought of leaves the other sections", async () => {
    const opened = await bench.open("small", { edit: (_, figures) => { figures.find((one) => one.kind === "cpu").title = null; } });
    try {
      const [sections, said] = await opened.page.evaluate(() => [[...document.querySelectorAll("section")].map((one) => one.id), document.querySelector("section > .failed").textContent]);
      assert.match(said, /^What belongs here could not be shown: TypeError/);
      for (const id of ["verdict", "ratios", "latency", "gates", "machine", "record"]) assert.ok(sections.includes(id), `${id} is not among ${sections}`);
    } finally {
      await opened.close();
    }
  });

  it("has a dot for each of 70,000 slices", () => on("long", {}, async ({ page, made }) => {
    const dots = await page.$$eval('[data-figure="time"] .fine path', (all) => all.map((one) => one.getAttribute("d").split("M").length - 1));
    assert.deepEqual(dots, [...Array.from({ length: 7 }, () => 10 * 999), 10 * 7]);
    const empty = await page.$$eval("figure", (all) => all.filter((one) => !one.querySelector(".canvas svg")).map((one) => one.id));
    assert.deepEqual(empty, []);
    const slice = made.document.record.epochs[0].rounds[0].slices.find((one) => one.contender === 0);
    const seen = await read(page, "time", "Home");
    assert.equal(seen.text, `${made.document.record.plan.contenders[slice.contender].name}, epoch 1, round 1: ${rate(slice.rate_per_s)}`);
  }));
});
