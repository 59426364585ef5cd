// The verdict of each scenario in a sentence, and the figures of all contenders.
import { section, type Context } from "../context";
import type { Maybe, Result, Scenario } from "../document";
import { h, plain, unique } from "../dom";
import { bytes, ENDED, failures, limitsText, percent, three, timeNs, trafficText, whole } from "../format";
import { tableElement, type Cell, type Table } from "../table";

export function verdicts(context: Context): HTMLElement | null {
  return section("verdict", "Verdict", null, ...context.document.scenarios.map((one) => verdict(context, one)));
}

function verdict(context: Context, scenario: Scenario): HTMLElement {
  const [first, ...others] = scenario.rankings;
  const invalid = scenario.findings.filter((one) => one.severity === "invalid").length;
  const warnings = scenario.findings.length - invalid;
  const planned = context.planned(scenario.name);
  const limits = limitsText(planned?.limits);
  const counted = context.counted(scenario);
  const leftOut = scenario.epochs - counted;
  const facts = [
    context.load(scenario.name), trafficText(planned?.traffic), limits && `limited to ${limits}`,
    `${counted} epoch${counted === 1 ? "" : "s"}${leftOut > 0 ? `, ${leftOut} more left out` : ""}`, ENDED[scenario.ended] ?? scenario.ended,
  ].filter((one): one is string => Boolean(one)).map(plain).join(" · ");
  const findings = [invalid && `${invalid} that take${invalid === 1 ? "s" : ""} numbers away`, warnings && `${warnings} warning${warnings === 1 ? "" : "s"}`];
  return h("article", { class: "verdict", "data-scenario": plain(scenario.name) },
    h("h3", {}, plain(scenario.name)),
    h("p", { class: "facts" }, facts),
    h("p", { class: "sentence" }, plain(first?.headline || "nothing was compared")),
    others.length > 0 && h("ul", { class: "more" }, ...others.map((one) =>
      h("li", {}, h("b", {}, `${context.title(one.metric)}: `), plain(one.headline)))),
    invalid + warnings > 0 && h("p", { class: invalid ? "flag invalid" : "flag" },
      h("a", { href: "#gates" }, `Findings: ${findings.filter(Boolean).join(", ")}`)),
    scenario.results.length > 0 && tableElement(results(context, scenario), unique(`results-${scenario.name}`)));
}

const cell = <T extends number>(value: T | null | undefined, show: (value: T) => string): Cell =>
  value == null ? { text: "–", value: null } : { text: show(value), value };

type Column = [string, (result: Result) => Cell];

/** The columns of a scenario that puts nobody under load; none for one that does. */
function withoutLoad(kind: string, named: Column[]): Column[] | null {
  const mean = (metric: string) => (one: Result) => one.figures.find((figure) => figure.metric === metric)?.value;
  const times = (title: string, value: (one: Result) => Maybe<number>): Column => [title, (one) => cell(value(one), timeNs)];
  const within = (metric: string): Column => ["95 % interval", (one) => spread(one, metric, timeNs)];
  if (kind === "starts") {
    // The interval is that of the mean: beside the median alone it might not even hold it.
    return [
      ...named, times("#cold start, median", (one) => one.cold_start_ns), times("#geometric mean", mean("cold_start")), within("cold_start"),
      ["#starts", (one) => cell(one.cold_starts_ns?.length, whole)],
    ];
  }
  return kind === "measure" ? [...named, times("#measured", (one) => one.measured), within("measure")] : null;
}

function results(context: Context, scenario: Scenario): Table {
  const order = scenario.rankings[0]?.contenders.map((one) => one.contender) ?? [];
  const place = (result: Result) => (order.includes(result.contender) ? order.indexOf(result.contender) : order.length);
  const sorted = [...scenario.results].sort((a, b) => place(a) - place(b));
  const lettered = sorted.some((one) => one.letters) && sorted.length > 2;
  const closed = scenario.shape.kind === "closed";
  const peak = scenario.shape.kind === "peak";
  const at = closed ? ", at saturation" : "";
  const named: Column[] = [
    ["contender", (one) => one.contender],
    ...(lettered ? [["rank", (one: Result) => one.letters] as Column] : []),
  ];
  const columns: Column[] = withoutLoad(scenario.shape.kind, named) ?? [
    ...named,
    peak ? ["#peak, requests/s", (one) => cell(one.peak_rps, three)] : ["#requests/s", (one) => cell(one.throughput_rps, three)],
    ["95 % interval", (one) => spread(one, peak ? "peak" : "throughput")],
    ...(peak ? [] : [
      [`#p50${at}`, (one: Result) => cell(one.latency_ns.p50, timeNs)],
      [`#p99${at}`, (one: Result) => cell(one.latency_ns.p99, timeNs)],
    ] as Column[]),
    ["#CPU per request", (one) => cell(one.cpu_us_per_request, (us) => timeNs(us * 1e3))],
    ["#of its cores", (one) => cell(one.cpu_share, percent)],
    ["#memory", (one) => cell(one.rss_bytes, bytes)],
    ["failed", failures],
  ];
  const used = columns.filter(([title, show]) =>
    title !== "95 % interval" || sorted.some((one) => show(one) !== "–"));
  return {
    caption: `${plain(scenario.name)}: what each contender did${context.document.complete ? "" : ", so far"}`,
    columns: used.map(([title]) => title),
    rows: sorted.map((one) => used.map(([, show]) => show(one))),
  };
}

function spread(result: Result, metric: string, show = three): Cell {
  const figure = result.figures.find((one) => one.metric === metric);
  if (!figure || figure.low == null || figure.high == null) return "–";
  return `${show(figure.low)} to ${show(figure.high)}`;
}
