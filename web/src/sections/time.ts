// Throughput over time: every slice of every round, with starts and warm-ups between them; and the pilot's warm-up.
import { figure, section, titled, type Context } from "../context";
import type { Epoch, Pilot, Scenario } from "../document";
import { plain, s } from "../dom";
import { highest, lowest } from "../extent";
import type { Drawing, Figure, Point } from "../figure";
import { rps, three, timeNs } from "../format";
import { fitted, Plot, plotted, write } from "../plot";
import { theme } from "../theme";

const S = 1e9;

interface Dot { contender: string; epoch: number; round: number; at_s: number; rate: number; dropped: boolean }
interface Stretch { from: number; to: number }
interface Timeline { dots: Dot[]; epochs: (Stretch & { number: number; load: number })[]; end: number }

export function time(context: Context): HTMLElement | null {
  const some = context.measured.map((one) => ({ scenario: one, line: timeline(context, one) })).filter(({ line }) => line.dots.length > 0);
  const pilots = context.document.record.pilots.filter((one) => one.contenders.some((each) => each.window_rates_per_s.length > 1));
  return section("time", "Throughput over time",
    "One dot is one slice: a short stretch of load on one contender while the others are frozen; a round has one for each. Between rounds of two epochs everything starts afresh and warms up (shaded), which does not count.",
    ...some.map(({ scenario, line }) => figure(ofScenario(context, scenario, line))),
    ...pilots.map((one) => figure(warmUp(context, one))));
}

/** The epochs of a scenario one behind the other, without what lay between them. */
function timeline(context: Context, scenario: Scenario): Timeline {
  const of = context.document.record.epochs.filter((one) => one.scenario === scenario.name);
  const line: Timeline = { dots: [], epochs: [], end: 0 };
  for (const epoch of of) {
    const starts = epoch.rounds.flatMap((round) => round.slices.map((slice) => slice.start_ns));
    const load = line.end + lowest(starts, epoch.took_ns) / S;
    line.epochs.push({ number: epoch.number, from: line.end, load, to: line.end + epoch.took_ns / S });
    for (const dot of dots(context, epoch, line.end)) line.dots.push(dot);
    line.end += epoch.took_ns / S;
  }
  return line;
}

function dots(context: Context, epoch: Epoch, from: number): Dot[] {
  return epoch.rounds.flatMap((round, at) => round.slices.flatMap((slice): Dot[] => slice.rate_per_s == null ? [] : [{
    contender: context.names[slice.contender] ?? String(slice.contender), epoch: epoch.number, round: at + 1,
    at_s: from + (slice.start_ns + slice.elapsed_ns / 2) / S, rate: slice.rate_per_s, dropped: Boolean(round.dropped),
  }]));
}

function ofScenario(context: Context, scenario: Scenario, line: Timeline): Figure {
  const names = scenario.results.map((one) => one.contender).filter((name) => line.dots.some((one) => one.contender === name));
  const dropped = line.dots.some((one) => one.dropped);
  return {
    kind: "time", level: 3,
    title: titled(context, scenario, "Rate of every slice"),
    note: dropped ? "Crosses are rounds that were left out for all contenders, because the machine was disturbed." : undefined,
    draw: (width) => drawTimeline(context, names, line, width),
    table: () => ({
      caption: `${plain(scenario.name)}: mean rate of each epoch's slices that count`,
      columns: ["contender", "#epoch", "#requests/s"],
      rows: scenario.results.flatMap((one) => one.epochs.map((epoch) => [
        one.contender, { text: String(epoch.epoch), value: epoch.epoch },
        { text: epoch.throughput_rps == null ? "–" : three(epoch.throughput_rps), value: epoch.throughput_rps ?? null },
      ])),
    }),
  };
}

const PANEL = 92;
const GAP = 26;

/** Round numbers from 0 to at least `high`, a few of them. */
export function zeroTicks(high: number, most: number): number[] {
  const power = 10 ** Math.floor(Math.log10(high || 1));
  const step = [0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5].map((one) => one * power).find((one) => high / one <= most) ?? power * 10;
  const ticks = [];
  for (let at = 0; at * step <= high * 1.0001; at += 1) ticks.push(Number((at * step).toPrecision(12)));
  return ticks;
}

/** One panel per contender, all on one scale: no colour is needed to tell them apart. */
function drawTimeline(context: Context, names: string[], line: Timeline, width: number): Drawing {
  const colors = theme();
  const left = 62;
  const high = highest(line.dots.map((one) => one.rate)) * 1.06;
  const height = names.length * (PANEL + GAP) + 40;
  const base = (name: string) => names.indexOf(name) * (PANEL + GAP) + GAP + PANEL;
  const up = (name: string, rate: number) => base(name) - (rate / high) * PANEL;
  const panels = names.flatMap((name) => line.epochs.map((epoch) => ({ name, ...epoch })));
  const ticks = zeroTicks(high, 3);
  const seen = line.dots.filter((one) => names.includes(one.contender));
  const { svg, x } = plotted({
    width, height, marginTop: 0, marginBottom: 40, marginLeft: left, marginRight: 6,
    x: { type: "linear", domain: [0, line.end], label: null },
    y: { type: "linear", domain: [0, height - 40], range: [0, height - 40], axis: null },
    marks: [
      Plot.rect(panels, {
        x1: "from", x2: "load", y1: (one: { name: string }) => base(one.name) - PANEL, y2: (one: { name: string }) => base(one.name),
        fill: colors.warm, className: "warm-up",
      }),
      Plot.link(names.flatMap((name) => ticks.map((rate) => ({ name, rate }))), {
        x1: 0, x2: line.end, y1: (one: { name: string; rate: number }) => up(one.name, one.rate), y2: (one: { name: string; rate: number }) => up(one.name, one.rate),
        stroke: colors.line,
      }),
      Plot.line(seen.filter((one) => !one.dropped), {
        x: "at_s", y: (one: Dot) => up(one.contender, one.rate), z: (one: Dot) => `${one.contender} ${one.epoch}`,
        stroke: (one: Dot) => context.series.color(one.contender), strokeOpacity: 0.45, strokeWidth: 1, className: "epochs",
      }),
      Plot.axisX({ tickFormat: (s: number) => `${s} s`, tickSize: 0, tickPadding: 8, ticks: Math.max(3, Math.floor(width / 110)) }),
    ],
  });
  const points = seen.map((one): Point => ({ x: x(one.at_s), y: up(one.contender, one.rate), text: () => said(one) }));
  svg.append(slices(context, names, seen, points));
  for (const name of names) {
    write(svg, left, base(name) - PANEL - 11, fitted(plain(name), width - left - 30), { fill: colors.ink, bold: true });
    for (const rate of ticks) write(svg, left - 8, up(name, rate), three(rate), { fill: colors.muted, anchor: "end", size: 11 });
  }
  write(svg, left, height - 6, "time in epochs; requests per second", { fill: colors.muted });
  return { svg, points };
}

const said = (one: Dot): string =>
  `${plain(one.contender)}, epoch ${one.epoch}, round ${one.round}: ${rps(one.rate)}${one.dropped ? ", left out" : ""}`;

/** More dots than this are smaller. */
const MANY = 2000;

/** One path for all dots of a contender, one for all crosses: a long race has hundreds of thousands of them. */
function slices(context: Context, names: string[], seen: Dot[], points: Point[]): SVGGElement {
  const steps = new Map(names.map((name): [string, string[]] => [name, []]));
  const crosses: string[] = [];
  seen.forEach((one, at) => {
    const [x, y] = [points[at]!.x.toFixed(1), points[at]!.y.toFixed(1)];
    if (one.dropped) crosses.push(`M${x},${y}m-2.5,-2.5l5,5m0,-5l-5,5`);
    else steps.get(one.contender)!.push(`M${x},${y}h.01`);
  });
  const across = seen.length > MANY ? 2.8 : 4.4;
  return s("g", { class: "slices", fill: "none" },
    ...names.map((name) => s("path", { d: steps.get(name)!.join(""), stroke: context.series.color(name), "stroke-width": across, "stroke-linecap": "round" })),
    crosses.length > 0 && s("path", { class: "left-out", d: crosses.join(""), stroke: theme().bad, "stroke-width": 1.5 }));
}

function warmUp(context: Context, pilot: Pilot): Figure {
  const names = pilot.contenders.filter((one) => one.window_rates_per_s.length > 1).map((one) => one.contender);
  const window_s = pilot.window_ns / S;
  const rows = pilot.contenders.flatMap((one) => one.window_rates_per_s.map((rate, at) =>
    ({ name: one.contender, rate, at, s: (at + 0.5) * window_s })));
  const high = highest(rows.map((one) => one.rate)) * 1.06;
  const end = highest(rows.map((one) => one.s)) + window_s / 2;
  const text = (one: (typeof rows)[number]) => `${plain(one.name)}, ${timeNs(one.s * S)}: ${rps(one.rate)}`;
  const color = (one: { name: string }) => context.series.color(one.name);
  return {
    kind: "pilot", level: 3,
    title: `${context.document.scenarios.length > 1 ? `${plain(pilot.scenario)}: ` : ""}Warm-up, as the pilot found it`,
    note: `Shaded: the ${timeNs(pilot.warmup_ns)} for which every contender is loaded before an epoch counts.`,
    legend: context.legend(names),
    draw: (width) => {
      const { line, warm, muted } = theme();
      const { svg, x, y } = plotted({
        width, height: 260, marginTop: 10, marginBottom: 42, marginLeft: 62, marginRight: 12,
        x: { type: "linear", domain: [0, Math.max(end, window_s)], label: null },
        y: { type: "linear", domain: [0, high], label: null },
        marks: [
          Plot.rect([0], { x1: 0, x2: Math.min(pilot.warmup_ns / S, end), y1: 0, y2: high, fill: warm, className: "warm-up" }),
          Plot.gridY(zeroTicks(high, 4), { stroke: line, strokeOpacity: 1 }),
          Plot.line(rows, { x: "s", y: "rate", z: "name", stroke: color, strokeWidth: 1.75 }),
          Plot.dot(rows, {
            x: "s", y: "rate", fill: color, r: 2.5, symbol: (one: { name: string }) => context.series.symbol(one.name), title: text, className: "windows",
          }),
          Plot.axisX({ tickFormat: (one: number) => `${one} s`, tickSize: 0, tickPadding: 8 }),
          Plot.axisY(zeroTicks(high, 4), { tickFormat: three, tickSize: 0, tickPadding: 6 }),
        ],
      });
      write(svg, 62, 254, "time under load; requests per second", { fill: muted });
      return { svg, points: rows.map((one) => ({ x: x(one.s), y: y(one.rate), text: text(one) })) };
    },
    table: () => ({
      caption: `${plain(pilot.scenario)}: rates in the pilot, in windows of ${timeNs(pilot.window_ns)}`,
      columns: ["contender", "#from, s", "#requests/s"],
      rows: rows.map((one) => [one.name, { text: three(one.at * window_s), value: one.at * window_s }, { text: three(one.rate), value: one.rate }]),
    }),
  };
}
