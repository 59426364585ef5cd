// What CPU time and memory are made of: user mode and kernel, and one moment of an epoch after the other.
import { barChart, type BarPart } from "../bars";
import { figure, titled, type Context } from "../context";
import type { Result, Scenario } from "../document";
import { plain } from "../dom";
import { highest, lowest } from "../extent";
import type { Drawing, Figure } from "../figure";
import { bytes, seldom, three, tick, timeNs } from "../format";
import { fitted, Plot, plotted, write } from "../plot";
import { theme } from "../theme";
import { zeroTicks } from "./time";
import { cell } from "./verdicts";

const S = 1e9;
const MIB = 1024 ** 2;

const time = (us: number): string => timeNs(us * 1e3);

/** Those of a scenario whose CPU time is told apart. */
const divided = (scenario: Scenario): Result[] =>
  scenario.results.filter((one) => one.user_us_per_request != null && one.system_us_per_request != null);

/** CPU time per request in user mode and in the kernel: a figure for each scenario that has them. */
export const cpuParts = (context: Context): HTMLElement[] =>
  context.measured.filter((one) => divided(one).length > 0).map((one) => figure(parts(context, one)));

function parts(context: Context, scenario: Scenario): Figure {
  const results = divided(scenario);
  // Few virtual machines have a processor that counts them.
  const counted = results.find((one) => one.instructions_per_request != null)?.instructions_source;
  const counts = counted === "instructions:u" ? "#user-mode instructions" : "#instructions";
  const high = highest(results.map((one) => one.user_us_per_request! + one.system_us_per_request!), 0) * 1.05 || 1;
  const bars = (one: Result, row: number): BarPart[] => {
    const [user, system] = [one.user_us_per_request!, one.system_us_per_request!];
    const color = context.series.color(one.contender);
    return [
      { row, color, from: 0, to: user, text: `${plain(one.contender)}, user mode: ${time(user)}` },
      { row, color, from: user, to: user + system, hollow: true, text: `${plain(one.contender)}, kernel: ${time(system)}` },
    ];
  };
  return {
    kind: "cpu-parts", level: 3, title: titled(context, scenario, "User mode and kernel"),
    note: "Filled: in user mode. Hollow: in the kernel. The parts are counted by the ticks of the kernel's clock, the whole precisely.",
    draw: (width) => barChart({
      labels: results.map((one) => plain(one.contender)), parts: results.flatMap(bars),
      scale: { high, ticks: (most) => zeroTicks(high, most), format: (us) => (us === 0 ? "0" : tick(time(us))), label: "CPU time per request" },
    }, width),
    table: () => ({
      caption: `${plain(scenario.name)}: CPU time, ${counted ? "instructions " : ""}and context switches per request`,
      columns: ["contender", "#user mode", "#kernel", ...(counted ? [counts] : []), "#switches", "#involuntary"],
      rows: results.map((one) => [
        one.contender, cell(one.user_us_per_request, time), cell(one.system_us_per_request, time),
        ...(counted ? [cell(one.instructions_per_request, three)] : []),
        cell(one.switches_per_request, seldom), cell(one.involuntary_switches_per_request, seldom),
      ]),
    }),
  };
}

interface Moment { contender: string; epoch: number; at_ns: number; size: number }

/** Memory from round to round: a figure for each scenario that has it. */
export const memoryOverTime = (context: Context): HTMLElement[] =>
  context.measured.map((scenario) => ({ scenario, all: moments(context, scenario) })).filter(({ all }) => all.length > 0)
    .map(({ scenario, all }) => figure(overTime(context, scenario, all)));

function moments(context: Context, scenario: Scenario): Moment[] {
  const epochs = context.document.record.epochs.filter((one) => one.scenario === scenario.name);
  return epochs.flatMap((epoch) => epoch.contenders.flatMap((part) => (part.usage?.memory ?? []).map((one) => ({
    contender: context.names[part.contender] ?? String(part.contender), epoch: epoch.number, at_ns: one.at_ns, size: one.pss_bytes,
  }))));
}

function overTime(context: Context, scenario: Scenario, all: Moment[]): Figure {
  const names = context.names.filter((name) => all.some((one) => one.contender === name));
  return {
    kind: "memory-time", level: 3, title: titled(context, scenario, "Memory from round to round"),
    note: "One line for each epoch. It is read between rounds, while everything is frozen.",
    draw: (width) => drawMoments(context, names, all, width),
    table: () => ({
      caption: `${plain(scenario.name)}: memory from round to round`,
      columns: ["contender", "#epoch", "#since its start", "#memory"],
      rows: all.map((one) => [
        one.contender, { text: String(one.epoch), value: one.epoch }, cell(one.at_ns, timeNs), cell(one.size, bytes),
      ]),
    }),
  };
}

const PANEL = 92;
const GAP = 26;

/** One panel per contender, all on one scale: no colour is needed to tell them apart. */
function drawMoments(context: Context, names: string[], all: Moment[], width: number): Drawing {
  const { ink, line, muted } = theme();
  const left = 74;
  const high = highest(all.map((one) => one.size), 0) * 1.06 || 1;
  const times = all.map((one) => one.at_ns / S);
  const [from, to] = [lowest(times), highest(times)];
  const height = names.length * (PANEL + GAP) + 40;
  const base = (name: string) => names.indexOf(name) * (PANEL + GAP) + GAP + PANEL;
  const up = (name: string, size: number) => base(name) - (size / high) * PANEL;
  const ticks = zeroTicks(high / MIB, 3).map((one) => one * MIB);
  const rules = names.flatMap((name) => ticks.map((size) => up(name, size)));
  const { svg, x } = plotted({
    width, height, marginTop: 0, marginBottom: 40, marginLeft: left, marginRight: 10,
    x: { type: "linear", domain: [from, to > from ? to : from + 1], label: null },
    y: { type: "linear", domain: [0, height - 40], range: [0, height - 40], axis: null },
    marks: [
      Plot.ruleY(rules, { stroke: line }),
      Plot.line(all, {
        x: (one: Moment) => one.at_ns / S, y: (one: Moment) => up(one.contender, one.size), z: (one: Moment) => `${one.contender} ${one.epoch}`,
        stroke: (one: Moment) => context.series.color(one.contender), strokeWidth: 1, className: "epochs",
      }),
      Plot.axisX({ tickFormat: (s: number) => `${s} s`, tickSize: 0, tickPadding: 8, ticks: Math.max(3, Math.floor(width / 110)) }),
    ],
  });
  for (const name of names) {
    write(svg, left, base(name) - PANEL - 11, fitted(plain(name), width - left - 30), { fill: ink, bold: true });
    for (const size of ticks) write(svg, left - 8, up(name, size), size === 0 ? "0" : tick(bytes(size)), { fill: muted, anchor: "end", size: 11 });
  }
  write(svg, left, height - 6, "time in the epoch; proportional set size", { fill: muted });
  return {
    svg,
    points: all.map((one) => ({
      x: x(one.at_ns / S), y: up(one.contender, one.size),
      text: `${plain(one.contender)}, epoch ${one.epoch}, after ${timeNs(one.at_ns)}: ${bytes(one.size)}`,
    })),
  };
}
