// Colours of figures, light and dark: told apart by people with any kind of colour vision, 3:1 and more on their paper.

import type { Color } from "./model";

export interface Theme {
  name: "light" | "dark";
  paper: string; ink: string; muted: string; line: string; band: string; warm: string;
  good: string; bad: string; neutral: string;
  series: string[];
}

const light: Theme = {
  name: "light",
  paper: "#ffffff", ink: "#1d1c1a", muted: "#5d5a54", line: "#dcd8d0", band: "#eceae4", warm: "#f3efe3",
  good: "#00695c", bad: "#b3400a", neutral: "#4d5563",
  series: ["#0b62a8", "#c2500c", "#00796b", "#9c3f87", "#806200", "#5a50c0", "#a3203f", "#5a6472"],
};

const dark: Theme = {
  name: "dark",
  paper: "#1b1c1f", ink: "#eae8e3", muted: "#aaa69e", line: "#37383d", band: "#2a2b30", warm: "#2b2820",
  good: "#4fd1b8", bad: "#ff9a62", neutral: "#b4bbc7",
  series: ["#63b3f5", "#ff9554", "#45cfb5", "#e691cd", "#dcbc4a", "#aaa0ff", "#ff8a9f", "#b4bdc9"],
};

const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "hexagon", "wye", "cross"] as const;

let chosen: "light" | "dark" | undefined;
let printing = false;
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];

export function theme(): Theme {
  if (printing) return light;
  return (chosen ?? (system.matches ? "dark" : "light")) === "dark" ? dark : light;
}

function changed(): void {
  document.documentElement.dataset.theme = theme().name;
  for (const listener of listeners) listener();
}

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

export function toggleTheme(): void {
  chosen = theme().name === "dark" ? "light" : "dark";
  changed();
}

/** Paper is white, whatever the screen is. */
export function watchTheme(): void {
  system.addEventListener("change", changed);
  const print = (on: boolean) => () => {
    printing = on;
    changed();
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));
  changed();
}

/** What a colour of a figure is now. */
export function paint(color: Color): string {
  const { series, ...others } = theme();
  return typeof color === "string" ? others[color] : series[color.series % series.length]!;
}

/** The symbol that goes with a colour: a contender's is told from the others without it, too. */
export function symbol(color: Color): (typeof SYMBOLS)[number] {
  if (typeof color === "string") return "circle";
  return SYMBOLS[(color.series + Math.floor(color.series / SYMBOLS.length)) % SYMBOLS.length]!;
}
