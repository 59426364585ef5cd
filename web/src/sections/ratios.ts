// Ratios with their intervals around 1, and each epoch's ratio as a dot.
import { figure, metricTitle, pairName, section, type Context } from "../context";
import type { Comparison, Metric, Scenario } from "../document";
import { plain } from "../dom";
import type { Figure } from "../figure";
import { interval, MARK, metricInfo, percent, ratio, ratioDecimals } from "../format";
import { logDomain, NARROW, ratioTicks } from "../plot";
import { rowChart, type Group, type Row } from "../rows";
import type { Table } from "../table";
import { theme } from "../theme";

/** More rows than this are shown scenario by scenario. */
const MOST_ROWS = 40;

interface Set { metric: Metric; scenarios: Scenario[] }

const of = (scenario: Scenario, metric: Metric): Comparison[] =>
  scenario.comparisons.filter((one) => one.metric === metric && one.ratio != null);

/** What goes into one figure each. */
function sets(context: Context): Set[] {
  return context.metrics.flatMap((metric): Set[] => {
    const scenarios = context.measured.filter((one) => of(one, metric).length > 0);
    const rows = scenarios.reduce((sum, one) => sum + of(one, metric).length, 0);
    if (rows > MOST_ROWS) return scenarios.map((one) => ({ metric, scenarios: [one] }));
    return scenarios.length ? [{ metric, scenarios }] : [];
  });
}

function color(one: Comparison): string {
  const { good, bad, neutral } = theme();
  if (one.negligible) return neutral;
  return one.verdict === "faster" ? good : one.verdict === "slower" ? bad : neutral;
}

const value = (one: Comparison): string => ratio(one.ratio!, ratioDecimals(one.low, one.high));

const words = (one: Comparison): string =>
  `${MARK[one.verdict]} ${one.verdict}${one.negligible ? ", negligible" : ""}${one.provisional ? ", provisional" : ""}`;

export function ratios(context: Context): HTMLElement | null {
  const intro = `Each line is one contender divided by another: the dot is the ratio, the bar its interval, the shaded band the margin of ` +
    `${percent(context.margin)} within which two count as equivalent. A bar that stays clear of 1 tells the two apart.`;
  return section("ratios", "Ratios", intro, ...sets(context).map((one) => figure(forest(context, one))));
}

export function epochRatios(context: Context): HTMLElement | null {
  const some = sets(context).filter(({ metric, scenarios }) =>
    scenarios.some((one) => of(one, metric).some((comparison) => comparison.epoch_ratios.length > 0)));
  return section("epochs", "Every epoch",
    "An epoch is a fresh start of every contender, and the unit that everything above is counted in. One dot each, the first epoch at the top of its row.",
    ...some.map((one) => figure(epochs(context, one))));
}

function heading({ metric, scenarios }: Set, context: Context): string {
  const alone = scenarios.length === 1 && context.measured.length > 1 ? ` in ${plain(scenarios[0]!.name)}` : "";
  return metricTitle(metric) + alone;
}

function groups(set: Set, context: Context, row: (one: Comparison) => Row): Group[] {
  const titled = set.scenarios.length > 1 || (context.measured.length > 1 && set.scenarios.length > 1);
  return set.scenarios.map((one) => ({
    title: titled ? plain(one.name) : undefined,
    rows: of(one, set.metric).map(row),
  }));
}

function scale(domain: [number, number], metric: Metric, width: number) {
  const ticks = ratioTicks(domain, width < NARROW ? 5 : 9);
  const decimals = ticks.some((one) => Math.abs(one * 100 - Math.round(one * 100)) > 1e-6) ? 3 : 2;
  return {
    type: "log" as const, domain, ticks,
    format: (one: number) => (one >= 10 ? String(one) : one.toFixed(one < 0.1 ? 3 : decimals)),
    label: `ratio, ${metricInfo(metric).better}`,
  };
}

/** How many times farther from 1 than the ratio an end of its interval may be to be given room; one farther away reaches the edge. */
const FAR = 20;

function nearby({ ratio: middle, low, high }: Comparison): number[] {
  const near = (end: number | null | undefined): end is number => end != null && end <= middle! * FAR && end >= middle! / FAR;
  return [middle!, ...[low, high].filter(near)];
}

function forest(context: Context, set: Set): Figure {
  const all = set.scenarios.flatMap((one) => of(one, set.metric));
  const domain = logDomain(all.flatMap(nearby), [context.band[0] / 1.02, context.band[1] * 1.02]);
  const within = (end: number) => Math.min(domain[1], Math.max(domain[0], end));
  const row = (one: Comparison): Row => ({
    label: plain(pairName(one)),
    aside: `${value(one)}${one.low == null ? "" : ` (${interval(one.low, one.high)})`} ${words(one)}`,
    color: color(one),
    dots: [],
    interval: one.low != null && one.high != null ? { low: within(one.low), high: within(one.high) } : undefined,
    mark: {
      value: one.ratio!,
      hollow: one.verdict === "inconclusive" || one.verdict === "invalid",
      text: `${plain(pairName(one))}: ${value(one)}, interval ${interval(one.low, one.high)}, ${one.verdict}, ${one.epochs} epochs`,
    },
  });
  return {
    kind: "ratios", level: 3, title: heading(set, context),
    note: all.some((one) => one.verdict === "inconclusive" || one.verdict === "invalid") ? "Hollow: not told apart, or invalid." : undefined,
    draw: (width) => rowChart({
      groups: groups(set, context, row), band: context.band, rule: 1, scale: scale(domain, set.metric, width), height: 30,
    }, width),
    table: () => comparisons(set),
  };
}

function comparisons({ metric, scenarios }: Set): Table {
  return {
    caption: `${metricTitle(metric)}: ratios with their intervals`,
    columns: ["pair", "scenario", "#ratio", "#low", "#high", "verdict", "#epochs", "#alpha", "#could have seen"],
    rows: scenarios.flatMap((scenario) => of(scenario, metric).map((one) => {
      const decimals = ratioDecimals(one.low, one.high);
      const number = (value: number | null | undefined) => ({ text: value == null ? "–" : ratio(value, decimals), value: value ?? null });
      return [
        pairName(one), scenario.name, number(one.ratio), number(one.low), number(one.high), words(one),
        { text: String(one.epochs), value: one.epochs }, { text: String(Number(one.alpha.toPrecision(3))), value: one.alpha },
        { text: one.detectable_ratio == null ? "–" : percent(one.detectable_ratio - 1), value: one.detectable_ratio ?? null },
      ];
    })),
  };
}

function epochs(context: Context, set: Set): Figure {
  const all = set.scenarios.flatMap((one) => of(one, set.metric));
  const domain = logDomain(all.flatMap((one) => [one.ratio!, ...one.epoch_ratios]), [context.band[0] / 1.02, context.band[1] * 1.02]);
  const row = (one: Comparison): Row => ({
    label: plain(pairName(one)),
    aside: `${value(one)}, ${one.epoch_ratios.length} epochs`,
    color: color(one),
    dots: one.epoch_ratios.map((each, at) => ({ value: each, text: `${plain(pairName(one))}, epoch ${at + 1}: ${ratio(each, 3)}` })),
    mark: { value: one.ratio!, text: `${plain(pairName(one))}, all epochs: ${value(one)}` },
  });
  return {
    kind: "epochs", level: 3, title: `${heading(set, context)}, epoch by epoch`,
    draw: (width) => rowChart({
      groups: groups(set, context, row), band: context.band, rule: 1, scale: scale(domain, set.metric, width), height: 30,
    }, width),
    table: () => ({
      caption: `${metricTitle(set.metric)}: the ratio of each epoch`,
      columns: ["pair", "scenario", "#epoch", "#ratio"],
      rows: set.scenarios.flatMap((scenario) => of(scenario, set.metric).flatMap((one) => one.epoch_ratios.map((each, at) =>
        [pairName(one), scenario.name, { text: String(at + 1), value: at + 1 }, { text: ratio(each, 3), value: each }]))),
    }),
  };
}
