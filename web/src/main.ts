// The page: reads the document that stands in it and shows it, section by section.
import { Context, section, type Shown } from "./context";
import type { RaceDocument } from "./document";
import { h, plain, unique } from "./dom";
import { drawFigures, figureElement } from "./figure";
import { date, percent } from "./format";
import { audit } from "./sections/audit";
import { gates, machine, parity, record, reproduce } from "./sections/basis";
import { edgeCache } from "./sections/edge-cache";
import { verdicts } from "./sections/verdicts";
import { theme, toggleTheme, watchTheme } from "./theme";

function head(context: Context): HTMLElement {
  const { document: found } = context;
  const { plan, version, started_unix_ms } = found.record;
  const where = [found.machine["cpu_model"], found.machine["cpus"] && `${String(found.machine["cpus"])} logical CPUs`, found.machine["hypervisor"], plan.server_host?.host]
    .filter((one): one is string => typeof one === "string" && one !== "").map(plain).join(", ");
  const button = h("button", { type: "button", class: "theme", click: () => {
    toggleTheme();
    label();
  } });
  const label = () => {
    button.textContent = theme().name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show this page ${theme().name === "dark" ? "light" : "dark"}`);
  };
  label();
  return h("header", {},
    h("div", { class: "bar" }, h("p", { class: "brand" }, "deadheat"), button),
    h("h1", {}, plain(plan.title ?? (plan.study === "ad-hoc" ? context.names.join(" vs ") : plan.study))),
    h("p", { class: "facts" }, [
      plan.title || plan.study !== "ad-hoc" ? plain(plan.study) : null, date(started_unix_ms), where,
      `margin ${percent(context.margin)}`, `deadheat ${plain(version)}`,
    ].filter(Boolean).join(" · ")),
    found.complete ? null : h("p", { class: "flag" }, "This race is incomplete: these are the results so far."));
}

function contents(sections: HTMLElement[]): HTMLElement {
  return h("nav", { "aria-label": "Sections of this page" }, h("ul", {}, ...sections.map((one) =>
    h("li", {}, h("a", { href: `#${one.id}` }, one.querySelector("h2")?.textContent ?? one.id)))));
}

type Section = (context: Context) => HTMLElement | null;

/** A section that has its figures alone. */
const figures = (id: string, title: string, intro: string | null = null): Section =>
  (context) => section(id, title, intro, ...context.of(id).map((one) => figureElement(context, one)));

const SECTIONS: Section[] = [
  verdicts,
  figures("ratios", "Ratios"),
  figures("epochs", "Every epoch", "An epoch is a fresh start of every contender, and the unit that everything above is counted in."),
  figures("latency", "Latency",
    "The share of all requests that were answered within a time, from the moment at which each was due. Every curve ends where fewer than 100 requests lie beyond it."),
  figures("time", "Throughput over time",
    "A slice is a short stretch of load on one contender while the others are frozen; a round has one for each. Between rounds of two epochs everything starts afresh and warms up."),
  figures("cpu", "CPU per request"),
  figures("memory", "Memory"),
  figures("collectors", "Collector pauses",
    "For how long garbage collectors stopped each contender under load. It was seen in a diagnostic pass after the verdict, in a start of its own with the collector's logging on: nothing else on this page was measured in it."),
  figures("functions", "CPU time by function",
    "Where contenders spend CPU time, and which functions take more of it in one than in the other. It was sampled in a diagnostic pass after the verdict, with each contender alone at the same rate: nothing else on this page was measured in it."),
  figures("cold-start", "Cold start"),
  figures("ladder", "Where the time goes",
    "The same server doing nothing, then one part of its work more at a time: what each part adds to a request. The time is that of the whole server: the inverse of its rate."),
  figures("scaling", "Scaling", "The same load again and again but for one setting."),
  edgeCache, audit, parity, gates, machine, reproduce,
];

/** A section; where it cannot be made, that is said in its place, and the others are shown nevertheless. */
function made(one: Section, context: Context): HTMLElement | null {
  try {
    return one(context);
  } catch (error) {
    console.error(error);
    return section(unique("not-shown"), "Not shown", null,
      h("p", { class: "failed", role: "alert" }, `What belongs here could not be shown: ${plain(String(error))}. It is in the record.`));
  }
}

function show(): void {
  const json = document.getElementById("document")?.textContent ?? "";
  const shown = document.getElementById("figures")?.textContent ?? "";
  const context = new Context(JSON.parse(json) as RaceDocument, JSON.parse(shown) as Shown);
  watchTheme();
  const sections = SECTIONS.map((one) => made(one, context));
  const all = [...sections, record(context, json)].filter((one): one is HTMLElement => one !== null);
  document.body.append(
    h("a", { class: "skip", href: "#main" }, "To the verdict"),
    head(context), contents(all),
    h("main", { id: "main", tabindex: "-1" }, ...all),
    h("footer", {}, h("p", {}, "Made by deadheat from the record alone. This page loads nothing from the network: it contains no address of another machine.")));
  const now = () => String(Math.round(performance.now()));
  drawFigures(() => { document.documentElement.dataset.drawn = now(); });
  document.documentElement.dataset.ready = now();
}

try {
  show();
} catch (error) {
  document.body.append(h("p", { class: "noscript", role: "alert" }, `This page could not be drawn: ${String(error)}. The record is in this file nevertheless.`));
  throw error;
}
