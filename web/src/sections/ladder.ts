// A ladder: what each part of the work adds to a request.
import { barChart } from "../bars";
import { figure, section, type Context } from "../context";
import type { Ladder, LadderStep } from "../document";
import { plain } from "../dom";
import { highest } from "../extent";
import type { Figure } from "../figure";
import { tick, timeNs } from "../format";
import { theme } from "../theme";
import { zeroTicks } from "./time";

export function ladder(context: Context): HTMLElement | null {
  const all = (context.document.ladders ?? []).filter((one) => one.contenders.length > 0);
  return section("ladder", "Where the time goes",
    "The same server doing nothing, then one part of its work more at a time: what each part adds to a request. The time is that of the whole server: the inverse of its rate.",
    ...all.map((one) => figure(stack(one))));
}

const added = (step: LadderStep): string => (step.faster ? "0, is faster" : timeNs(step.added_us * 1e3));

/** What is said of rungs that are faster than the one before, though it asks less of a server. */
function falling(one: Ladder): string | undefined {
  const of = (rung: string) => one.contenders.filter((each) => each.steps.some((step) => step.scenario === rung && step.faster));
  const all = (rung: string) => one.contenders.length > 2 && of(rung).length === one.contenders.length;
  const some = one.rungs.filter((rung) => !all(rung)).flatMap((rung) => of(rung).map((each) => `${rung} of ${each.contender}`));
  const said = one.rungs.filter(all).map((rung) =>
    `${rung}: everybody is faster than on the rung before, which asks less of them, so that the machine was slower then: race the ladder again, alone.`);
  if (some.length > 0) said.push(`${some.join(", ")}: faster than the rung before, so that it adds nothing and the parts are more than the whole.`);
  return said.length > 0 ? said.join(" ") : undefined;
}

function stack(one: Ladder): Figure {
  const names = one.rungs;
  const tint = (part: string) => theme().series[names.indexOf(part) % theme().series.length]!;
  const parts = one.contenders.flatMap((each, row) => {
    let from = 0;
    return each.steps.map((step) => ({ ...step, contender: each.contender, row, from, to: (from += step.added_us) }));
  });
  const high = highest(parts.map((part) => part.to)) * 1.05;
  const text = (part: (typeof parts)[number]) => `${plain(part.contender)}, ${plain(part.scenario)}: ${added(part)}`;
  return {
    kind: "ladder", level: 3, title: `${plain(one.name)}: parts of a request`,
    note: falling(one),
    legend: names.map((name) => ({ label: name, color: () => tint(name), symbol: "square" })),
    draw: (width) => barChart({
      labels: one.contenders.map((each) => plain(each.contender)),
      parts: parts.map((part) => ({ row: part.row, from: part.from, to: part.to, color: tint(part.scenario), border: theme().paper, text: text(part) })),
      scale: { high, ticks: (most) => zeroTicks(high, most), format: (us) => (us === 0 ? "0" : tick(timeNs(us * 1e3))), label: "time per request" },
    }, width),
    table: () => ({
      caption: `${plain(one.name)}: parts of a request`, columns: ["contender", "rung", "#per request", "#adds"],
      rows: parts.map((part) => [
        part.contender, part.scenario, { text: timeNs(part.time_us * 1e3), value: part.time_us }, { text: added(part), value: part.added_us },
      ]),
    }),
  };
}
