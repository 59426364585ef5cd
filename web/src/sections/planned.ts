// What was to be run: contenders and services with their commands and environment, and every load in full.
import type { Context } from "../context";
import type { Listen, Plan, ScenarioPlan, Service } from "../document";
import { limitsText, percent, timeNs, trafficText, whole } from "../format";
import { behind, tableElement, type Cell, type Table } from "../table";

export function planned(context: Context): HTMLElement[] {
  const { plan } = context.document.record;
  return [
    ...table({
      caption: "Contenders", columns: ["contender", "version", "command", "status"],
      rows: context.document.contenders.map((one) => [one.name, one.version ?? "–", one.command || "–", one.status]),
    }, "contenders"),
    ...table({ caption: "Services, which are not raced", columns: ["service", "command", "listens on", "ready once", "ended by"], rows: plan.services.map(service) }, "services"),
    ...table({ caption: "What was added to the environment", columns: ["of", "variable", "value"], rows: environment(plan) }, "environment"),
    ...table({ caption: "Commands that contenders measure with", columns: ["contender", "measure", "command"], rows: measures(plan) }, "measures"),
    ...table({
      caption: "Loads", columns: ["scenario", "load", "requests", "beside its shape", "limited to", "rounds per epoch"],
      rows: plan.scenarios.map((one) => load(context, plan, one)),
    }, "loads"),
  ];
}

/** More rows than this are not shown until they are asked for. */
const MOST_ROWS = 12;

function table(one: Table, name: string): HTMLElement[] {
  if (one.rows.length === 0) return [];
  return [one.rows.length > MOST_ROWS ? behind(`${one.caption} (${one.rows.length})`, () => one, name, { paper: true }) : tableElement(one, name)];
}

const listens = (one: Listen): string =>
  (one === "free-port" ? "a free port" : one === "socket" ? "a unix socket" : `port ${one.port}`);

function service(one: Service): Cell[] {
  const { command, signal, grace_ns } = one.ending ?? {};
  const end = (command ?? `SIG${signal ?? "TERM"}`) + (grace_ns == null ? "" : `, within ${timeNs(grace_ns)}`);
  return [one.name, one.command, listens(one.listen), one.ready ?? "it accepts a connection", end];
}

const environment = (plan: Plan): Cell[][] =>
  [...plan.contenders, ...plan.services].flatMap((one) => Object.entries(one.env).map(([name, value]) => [one.name, name, value]));

const measures = (plan: Plan): Cell[][] =>
  plan.contenders.flatMap((one) => Object.entries(one.measures ?? {}).map(([name, command]) => [one.name, name, command]));

function load(context: Context, plan: Plan, one: ScenarioPlan): Cell[] {
  const { slice_ns, rounds } = one.slices ?? plan.method;
  const loaded = one.shape.kind !== "starts" && one.shape.kind !== "measure";
  return [
    one.name, context.load(one.name), mix(plan, one), trafficText(one.traffic) || "–", limitsText(one.limits) || "nothing",
    loaded ? `${whole(rounds)} of ${timeNs(slice_ns)}` : "one",
  ];
}

/** The requests of a scenario; where there are several, each with its share. */
function mix(plan: Plan, { requests }: ScenarioPlan): string {
  const all = requests.reduce((sum, one) => sum + one.weight, 0);
  return requests.map(({ probe, weight }) => {
    const asked = plan.probes.find((one) => one.name === probe);
    const many = asked?.paths && asked.paths.length > 1 ? ` and ${whole(asked.paths.length - 1)} more paths` : "";
    const share = requests.length > 1 && all > 0 ? `${percent(weight / all)} ` : "";
    return share + (asked ? `${asked.method} ${asked.path}${many}` : probe);
  }).join(", ") || "–";
}
