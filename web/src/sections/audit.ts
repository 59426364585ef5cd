// What was published, and what this machine says of it.
import { section, type Context } from "../context";
import type { Audit } from "../document";
import { three } from "../format";
import { tableElement } from "../table";

const SAID: Record<string, string> = {
  reproduced: "✓ reproduced", "not-reproduced": "– not reproduced", contradicted: "✕ contradicted", "not-testable": "? not testable here",
};

export function audit(context: Context): HTMLElement | null {
  const found: Audit | undefined = context.document.audit;
  if (!found) return null;
  const here = found.here.length > 0 && tableElement({
    caption: "Published figures and this machine",
    columns: ["claim", "source", "published", "here", "verdict", "note"],
    rows: found.here.map((one) => [
      [one.contender, one.baseline && `/ ${one.baseline}`, one.metric, one.row && `(${one.row})`].filter(Boolean).join(" "),
      [...new Set(one.claims.map((index) => found.claims[index]?.source ?? "?"))].join(", "),
      one.published ? [...new Set(one.published.map(three))].join(" to ") : "–",
      one.here == null ? "–" : three(one.here) + (one.low != null && one.high != null ? ` (${three(one.low)} to ${three(one.high)})` : ""),
      { text: SAID[one.verdict] ?? one.verdict, class: one.verdict }, one.note ?? "",
    ]),
  }, "claims");
  const checks = found.checks.length > 0 && tableElement({
    caption: "Published figures against each other", columns: ["about", "check", "outcome", "in words"],
    rows: found.checks.map((one) => [[one.contender, one.row].filter(Boolean).join(", ") || "all", one.kind, one.outcome, one.text]),
  }, "claims-checks");
  return section("audit", "Published claims", null, here || null, checks || null);
}
