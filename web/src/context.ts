// What all sections are given, and the small things that they all need.
import type { Epoch, RaceDocument, Scenario, ScenarioPlan } from "./document";
import { h, plain, unique } from "./dom";
import type { Figure } from "./model";

/** What stands beside the document: figures, and words that other reports have as well. */
export interface Shown {
  figures: Figure[];
  titles: Record<string, string>;
  /** By scenario. */
  loads: Record<string, string>;
}

export class Context {
  readonly names: string[];

  constructor(readonly document: RaceDocument, private readonly shown: Shown) {
    this.names = document.record.plan.contenders.map((one) => one.name);
  }

  /** The figures of a section. */
  of(section: string): Figure[] {
    return this.shown.figures.filter((one) => one.section === section);
  }

  /** A metric as a heading. */
  title(metric: string): string {
    return this.shown.titles[metric] ?? metric;
  }

  /** What is done to contenders in a scenario, in words. */
  load(scenario: string): string {
    return this.shown.loads[scenario] ?? "";
  }

  get margin(): number {
    return this.document.record.plan.method.margin;
  }

  /** What was planned of a scenario. */
  planned(name: string): ScenarioPlan | undefined {
    return this.document.record.plan.scenarios.find((one) => one.name === name);
  }

  /** How many epochs of a scenario its verdicts rest on. */
  counted(scenario: Scenario): number {
    const compared = scenario.comparisons?.[0]?.epochs;
    return compared ?? this.document.record.epochs.filter((one) => one.scenario === scenario.name && !isLeftOut(one)).length;
  }

  /** Scenarios in which something was measured. */
  get measured(): Scenario[] {
    return this.document.scenarios.filter((one) => one.epochs > 0);
  }
}

/** Whether every round of an epoch was left out. */
export const isLeftOut = (epoch: Epoch): boolean => epoch.rounds.length > 0 && epoch.rounds.every((one) => one.dropped != null);

export function section(id: string, title: string, intro: string | null, ...children: (Node | null | undefined)[]): HTMLElement | null {
  const present = children.filter((one): one is Node => Boolean(one));
  if (present.length === 0) return null;
  const heading = unique(`${id}-title`);
  return h("section", { id, "aria-labelledby": heading, "data-section": id },
    h("h2", { id: heading }, title),
    intro ? h("p", { class: "intro" }, intro) : null,
    ...present);
}

/** A heading under the name of its scenario; where there is one alone, nothing needs to be said of it. */
export const titled = (context: Context, scenario: Scenario, title: string): string =>
  (context.measured.length > 1 ? `${plain(scenario.name)}: ${title}` : title);
