// What a figure is, as crates/report/src/figures writes it: values where they stand on an axis, texts ready to be read.

/** A contender's place in the plan, a part's place among the parts, or what is said of a value. */
export type Color = { series: number } | "good" | "bad" | "neutral";

export interface Axis {
  label: string;
  log: boolean;
  domain: [number, number];
  /** In ascending order; where there is little room, not all of them are labelled. */
  ticks: [at: number, label: string][];
}

/** What is said is read after the row's label, and after what each dot is, with its number. */
export type Dot = [value: number, said: string, hollow?: true];
export interface Bar { from: number; to: number; color: Color; hollow: boolean; said: string }

/** One row: bars, or an interval, or dots, the first at the top, with what they come to. */
export interface Row {
  label: string;
  aside: string;
  color: Color;
  interval: [number, number] | null;
  mark: Dot | null;
  each: string;
  dots: Dot[];
  bars: Bar[];
}

export interface Group { title: string | null; rows: Row[] }

export interface Rows { x: Axis; band: [number, number] | null; rule: number | null; groups: Group[] }

/** What is said is read after the line's name. A fourth is the bar's ends through it, or null where it was left out. */
export type Point = [x: number, y: number, said: string, more?: [number, number] | null];

export const STROKES = ["bold", "thin", "faint", "dashed"] as const;

/** A line without a name is not read. */
export interface Line {
  name: string;
  color: Color;
  stroke: "none" | (typeof STROKES)[number];
  dots: "none" | "each" | "fine" | { at: number[] };
  points: Point[];
}

export interface Panel { title: string | null; shaded: [number, number][]; lines: Line[] }

/** One panel is high; several stand one under the other, on the same axes. */
export interface Plot { x: Axis; y: Axis; panels: Panel[] }

/** One call: how many callers are above it, its ends as shares of the whole, how much of its colour is seen, its function and what is said of it. */
export type Flame = [level: number, from: number, to: number, color: Color, strength: number, label: string, said: string];

/** Level by level, from left to right. */
export interface Flames { frames: Flame[] }

export type Drawing = { rows: Rows } | { plot: Plot } | { flames: Flames };

/** What a cell shows; a number's text has its value beside it. */
export type FigureCell = string | [text: string, value: number | null];

export interface Figure {
  /** What kind of figure, for tests and styles. */
  kind: string;
  section: string;
  /** What it is of: a scenario, for example. */
  subject: string;
  title: string;
  note: string;
  legend: { label: string; color: Color }[];
  /** None where the table is enough. */
  drawing: Drawing | null;
  /** There are no rows where they only repeat the record. */
  table: { caption: string; columns: string[]; rows: FigureCell[][] | null };
}
