// What was published, and what comes of it: on this machine, against its own generator, against itself.
import { section, type Context } from "../context";
import type { Audit, GeneratorAudit } from "../document";
import { h } from "../dom";
import { quotient, three } from "../format";
import { tableElement, type Cell } from "../table";
import { finding } from "./basis";

const SAID: Record<string, string> = {
  reproduced: "✓ reproduced", "not-reproduced": "– not reproduced", contradicted: "✕ contradicted", "not-testable": "? not testable here",
};

export function audit(context: Context): HTMLElement | null {
  const found: Audit | undefined = context.document.audit;
  if (!found) return null;
  const checks = found.checks.length > 0 && tableElement({
    caption: "Published figures against each other", columns: ["about", "check", "outcome", "in words"],
    rows: found.checks.map((one) => [[one.contender, one.row].filter(Boolean).join(", ") || "all", one.kind, one.outcome, one.text]),
  }, "claims-checks");
  const list = found.findings.length > 0 && h("ul", { class: "findings" }, ...found.findings.map((one) => finding("the audit", one)));
  return section("audit", "Published claims", null, here(found), generators(found), checks || null, list || null);
}

const spread = (value: number, low: number | null | undefined, high: number | null | undefined): string =>
  three(value) + (low != null && high != null ? ` (${three(low)} to ${three(high)})` : "");

function here(found: Audit): HTMLElement | null {
  if (found.here.length === 0) return null;
  return tableElement({
    caption: "Published figures and this machine",
    columns: ["claim", "source", "scenario", "published", "here", "verdict", "note"],
    rows: found.here.map((one) => [
      [one.contender, one.baseline && `/ ${one.baseline}`, one.metric, one.row && `(${one.row})`].filter(Boolean).join(" "),
      [...new Set(one.claims.map((index) => found.claims[index]?.source ?? "?"))].join(", "),
      [one.scenario, one.baseline_scenario].filter(Boolean).join(" / ") || "–",
      one.published ? [...new Set(one.published.map(three))].join(" to ") : "–",
      one.here == null ? "–" : (one.baseline ? quotient : spread)(one.here, one.low, one.high),
      { text: SAID[one.verdict] ?? one.verdict, class: one.verdict }, one.note ?? "",
    ]),
  }, "claims");
}

/** The generators that the published figures came from, against a server that does nothing: what they cannot have driven here. */
function generators(found: Audit): HTMLElement | null {
  if (found.generators.length === 0) return null;
  return tableElement({
    caption: "Load generators against a server that does nothing, in requests per second",
    columns: ["generator", "command", "each run", "reached", "published beyond it", "in words"],
    rows: found.generators.map((one): Cell[] => [
      one.name, one.command, one.runs_rps.map(three).join(", ") || "–",
      one.throughput_rps == null ? "not measured" : spread(one.throughput_rps, one.low, one.high),
      beyond(found, one), one.text,
    ]),
  }, "claims-generators");
}

/** The published throughputs that are more than a generator reaches here. */
function beyond(found: Audit, one: GeneratorAudit): Cell {
  const claims = one.beyond.map((index) => found.claims[index]);
  const named = claims.map((claim) => [claim?.contender, claim?.row && `(${claim.row})`, claim?.value != null && three(claim.value)].filter(Boolean).join(" "));
  return { text: named.join("; ") || "none", class: named.length > 0 ? "contradicted" : undefined };
}
