// What all sections are given, and the small things that they all need.
import type { Comparison, Metric, RaceDocument, Scenario, ScenarioPlan } from "./document";
import { h, plain, unique } from "./dom";
import { figureElement, type Figure, type LegendEntry } from "./figure";
import { metricInfo } from "./format";
import { Series } from "./theme";

export class Context {
  readonly series: Series;
  readonly names: string[];

  constructor(readonly document: RaceDocument) {
    this.names = document.record.plan.contenders.map((one) => one.name);
    this.series = new Series(this.names);
  }

  get margin(): number {
    return this.document.record.plan.method.margin;
  }

  /** Ratios that count as equivalent. */
  get band(): [number, number] {
    return [1 / (1 + this.margin), 1 + this.margin];
  }

  legend(names: string[]): LegendEntry[] {
    return names.map((name) => ({ label: name, color: () => this.series.color(name), symbol: this.series.symbol(name) }));
  }

  /** What was planned of a scenario. */
  planned(name: string): ScenarioPlan | undefined {
    return this.document.record.plan.scenarios.find((one) => one.name === name);
  }

  /** Scenarios in which something was measured. */
  get measured(): Scenario[] {
    return this.document.scenarios.filter((one) => one.epochs > 0);
  }

  /** Metrics that are compared anywhere, in the order in which scenarios name them. */
  get metrics(): Metric[] {
    const all = this.measured.flatMap((one) => one.comparisons.map((comparison) => comparison.metric));
    return [...new Set(all)];
  }
}

export const pairName = (one: Comparison): string => `${one.contender} / ${one.baseline}`;

export const metricTitle = (metric: Metric): string => metricInfo(metric).title;

export function section(id: string, title: string, intro: string | null, ...children: (Node | null | undefined)[]): HTMLElement | null {
  const present = children.filter((one): one is Node => Boolean(one));
  if (present.length === 0) return null;
  const heading = unique(`${id}-title`);
  return h("section", { id, "aria-labelledby": heading, "data-section": id },
    h("h2", { id: heading }, title),
    intro ? h("p", { class: "intro" }, intro) : null,
    ...present);
}

export const figure = (one: Figure): HTMLElement => figureElement(one);

/** A heading under the name of its scenario; where there is one alone, nothing needs to be said of it. */
export const titled = (context: Context, scenario: Scenario, title: string): string =>
  (context.measured.length > 1 ? `${plain(scenario.name)}: ${title}` : title);
