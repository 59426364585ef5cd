// What a request and a contender cost: CPU time, memory, cold starts; one dot per epoch.
import { figure, section, type Context } from "../context";
import type { EpochFigures, Maybe, Result, Scenario } from "../document";
import { plain } from "../dom";
import { highest } from "../extent";
import type { Figure } from "../figure";
import { bytes, tick, timeNs } from "../format";
import { NARROW } from "../plot";
import { rowChart, type Group, type RowDot } from "../rows";
import { tableElement, type Cell } from "../table";
import { zeroTicks } from "./time";
import { cpuParts, memoryOverTime } from "./usage";

interface Measure {
  kind: string;
  title: string;
  label: string;
  unit: string;
  note?: string;
  dots(epoch: EpochFigures): { value: Maybe<number>; name: string; hollow?: boolean }[];
  summary(result: Result): Maybe<number>;
  show(value: number): string;
  /** Size of the unit in which ticks are round. */
  round: number;
}

const MEASURES: Record<"cpu" | "memory" | "cold", Measure> = {
  cpu: {
    kind: "cpu", title: "CPU time per request", label: "CPU time of the process tree per answer; lower is better", unit: "µs",
    dots: (one) => [{ value: one.cpu_us_per_request, name: "CPU per request" }],
    summary: (one) => one.cpu_us_per_request, show: (us) => timeNs(us * 1e3), round: 1,
  },
  memory: {
    kind: "memory", title: "Memory", label: "proportional set size of the process tree; lower is better", unit: "bytes",
    note: "Filled: at the end of an epoch. Hollow: the highest seen in it.",
    dots: (one) => [
      { value: one.rss_bytes, name: "at its end" }, { value: one.peak_rss_bytes, name: "at its highest", hollow: true },
    ],
    summary: (one) => one.rss_bytes, show: bytes, round: 1024 ** 2,
  },
  cold: {
    kind: "cold-start", title: "Cold start", label: "from its command to the first right answer; lower is better", unit: "ns",
    note: "Every epoch starts every contender afresh, others beside it.",
    dots: (one) => [{ value: one.cold_start_ns, name: "cold start" }],
    summary: (one) => one.cold_start_ns, show: timeNs, round: 1e6,
  },
};

export const cpu = (context: Context): HTMLElement | null =>
  section("cpu", "CPU per request", null, chart(context, MEASURES.cpu), ...cpuParts(context));
export const memory = (context: Context): HTMLElement | null =>
  section("memory", "Memory", null, chart(context, MEASURES.memory), ...memoryOverTime(context), artefacts(context));
/** The cold starts of the epochs of some scenarios. */
export const coldStarts = (context: Context, of: (scenario: Scenario) => boolean): HTMLElement | null =>
  chart(context, MEASURES.cold, of);

/** What the study says that each contender is deployed as. */
function artefacts(context: Context): HTMLElement | null {
  const sizes = new Map(context.document.scenarios.flatMap((one) => one.results).map((one) => [one.contender, one.artefact_bytes]));
  const known = [...sizes].flatMap(([name, size]): Cell[][] => size == null ? [] : [[name, { text: bytes(size), value: size }]]);
  if (known.length === 0) return null;
  return tableElement({ caption: "Size of the files that each is deployed as", columns: ["contender", "#size"], rows: known }, "artefacts");
}

const MOST_ROWS = 40;

function chart(context: Context, measure: Measure, of: (scenario: Scenario) => boolean = () => true): HTMLElement | null {
  const has = (one: Result) => measure.summary(one) != null && one.epochs.some((epoch) => measure.dots(epoch).some(({ value }) => value != null));
  const scenarios = context.measured.filter((one) => of(one) && one.results.some(has));
  const rows = scenarios.reduce((sum, one) => sum + one.results.length, 0);
  if (rows === 0) return null;
  const sets = rows > MOST_ROWS ? scenarios.map((one) => [one]) : [scenarios];
  const figures = sets.map((set): Figure => {
    const titled = context.measured.length > 1;
    const groups = set.map((scenario): Group => ({
      title: titled ? plain(scenario.name) : undefined,
      rows: scenario.results.filter(has).map((one) => {
        const summary = measure.summary(one);
        const dots = one.epochs.flatMap((epoch) => measure.dots(epoch).flatMap(({ value, name, hollow }): RowDot[] => value == null ? [] : [
          { value, hollow, text: `${plain(one.contender)}, epoch ${epoch.epoch}, ${name}: ${measure.show(value)}` }]));
        return {
          label: plain(one.contender), aside: summary == null ? "" : measure.show(summary),
          color: context.series.color(one.contender), symbol: context.series.symbol(one.contender), dots,
          mark: summary == null ? undefined : { value: summary, text: `${plain(one.contender)}, all epochs: ${measure.show(summary)}` },
        };
      }),
    }));
    const high = highest(groups.flatMap((group) => group.rows.flatMap((row) => [row.mark?.value ?? 0, ...row.dots.map((dot) => dot.value)]))) * 1.05;
    // Symbols and colours are the theme's at the time of drawing.
    const painted = () => groups.map((group) => ({ ...group, rows: group.rows.map((row) => ({ ...row, color: context.series.color(named(context, row.label)) })) }));
    return {
      kind: measure.kind, level: 3, title: measure.title + (set.length < scenarios.length ? ` in ${plain(set[0]!.name)}` : ""), note: measure.note,
      draw: (width) => rowChart({
        groups: painted(), height: 26,
        scale: {
          type: "linear", domain: [0, high || 1], ticks: zeroTicks(high / measure.round, width < NARROW ? 4 : 7).map((one) => one * measure.round),
          format: (value) => (value === 0 ? "0" : tick(measure.show(value))), label: measure.label,
        },
      }, width),
      table: () => ({
        caption: `${measure.title}, epoch by epoch`,
        columns: ["contender", "scenario", "#epoch", ...(measure.kind === "memory" ? ["#end, bytes", "#highest, bytes"] : [`#${measure.unit}`])],
        rows: set.flatMap((scenario) => scenario.results.flatMap((one) => one.epochs.map((epoch): Cell[] => [
          one.contender, scenario.name, { text: String(epoch.epoch), value: epoch.epoch },
          ...measure.dots(epoch).map(({ value }): Cell => ({ text: value == null ? "–" : measure.show(value), value: value ?? null })),
        ]))),
      }),
    };
  });
  const [only, ...more] = figures.map(figure);
  if (!only) return null;
  if (more.length === 0) return only;
  const all = document.createElement("div");
  all.append(only, ...more);
  return all;
}

const named = (context: Context, label: string): string => context.names.find((one) => plain(one) === label) ?? label;
