// What the numbers rest on: parity, gates, machine, commands, order, how to run it again, the record itself.
import { isLeftOut, section, type Context } from "../context";
import type { Epoch, Finding } from "../document";
import { h, plain, unique } from "../dom";
import { bytes, date, moment, percent, timeNs, whole } from "../format";
import { copyText, download } from "../saving";
import { behind, tableElement } from "../table";
import { links, loadHosts } from "./load-hosts";
import { planned } from "./planned";

export function parity(context: Context): HTMLElement | null {
  const { differences, plan } = context.document.record;
  const probes = plan.probes.map((one) => `${one.method} ${one.path}`);
  const asked = `${probes.length} probe${probes.length === 1 ? "" : "s"}: ${probes.slice(0, 6).map(plain).join(", ")}${probes.length > 6 ? ", …" : ""}`;
  const relaxed = context.document.scenarios.flatMap((one) => one.findings).find((one) => one.code === "parity-relaxed");
  if (differences.length === 0) {
    const agreed = relaxed === undefined ? "in every check" : `in every check of what was compared; ${plain(relaxed.message)}`;
    return section("parity", "Parity", null,
      h("p", {}, `All contenders that were raced met the contract and agreed with each other, ${agreed} (${asked}).`));
  }
  return section("parity", "Parity", `Where contenders answered differently (${asked}).`, tableElement({
    caption: "Differences between answers", columns: ["contender", "probe", "where", "expected", "got", "against", "when"],
    rows: differences.map((one) => [one.contender, one.probe, one.path, one.expected, one.got, one.against, one.when]),
  }, "parity"));
}

const STATE = { pass: "✓ pass", warn: "! warning", invalid: "✕ invalid" } as const;

export function gates(context: Context): HTMLElement | null {
  const everywhere = context.document.scenarios;
  const findings: [string, Finding][] = [
    ...context.document.findings.map((one): [string, Finding] => ["the whole race", one]),
    ...everywhere.flatMap((scenario) => scenario.findings.map((one): [string, Finding] => [scenario.name, one])),
  ];
  const list = findings.length > 0
    ? h("ul", { class: "findings" }, ...findings.map(([where, one]) => finding(where, one)))
    : h("p", {}, "Nothing was found that weakens a number.");
  const tables = everywhere.filter((one) => one.gates.length > 0).map((scenario) => {
    const passed = scenario.gates.filter((one) => one.state === "pass").length;
    return behind(`${plain(scenario.name)}: ${passed} of ${scenario.gates.length} readings within their limits`, () => ({
      caption: `${plain(scenario.name)}: what every gate read`, columns: ["gate", "contender", "state", "reading"],
      rows: scenario.gates.map((one) => [one.code, one.contender ?? "all", { text: STATE[one.state], class: one.state }, one.reading]),
    }), unique(`gates-${scenario.name}`), { paper: true });
  });
  return section("gates", "Gates and findings",
    "A gate is a check on the generator, the machine or the answers. It passes, or it says what it found and what to do; what takes a number away leaves no verdict.",
    list, ...tables);
}

export function finding(where: string, one: Finding): HTMLElement {
  const about = [where, one.contender].filter((text): text is string => Boolean(text)).map(plain).join(", ");
  return h("li", { class: one.severity, "data-code": plain(one.code) },
    h("p", {}, h("b", {}, one.severity === "invalid" ? "✕ invalid" : "! warning"), " ", h("code", {}, plain(one.code)), ` · ${about}`),
    h("p", {}, plain(one.message)),
    h("p", { class: "remedy" }, `→ ${plain(one.remedy)}`));
}

type Row = [string, string | null | undefined];

function facts(caption: string, rows: Row[], name: string): HTMLElement {
  const known = rows.filter((row): row is [string, string] => row[1] != null && row[1] !== "");
  const table = tableElement({ caption, columns: ["what", "value"], rows: known }, name);
  table.classList.add("facts-table");
  return table;
}

/** Anything that a machine was read to be, as text. */
function text(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(text).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([key, one]) => `${key}: ${text(one)}`).join("; ");
  return String(value);
}

/** What a reader asks of a machine first. */
const MAIN = ["cpu_model", "cpus", "memory_bytes", "os", "kernel", "hypervisor", "clock_source", "governor", "load_average", "cgroup"];

export function machine(context: Context): HTMLElement | null {
  const { record } = context.document;
  const { method, pinning, server_host } = record.plan;
  const machine = context.document.machine;
  const known = (key: string, value: unknown): string =>
    /_bytes$/.test(key) && typeof value === "number" ? bytes(value) : text(value);
  const read = (keys: string[]) => keys.map((key): Row => [key.replace(/_bytes$/, "").replace(/_/g, " "), known(key, machine[key])]);
  const cores = (list: number[]) => (list.length ? list.join(", ") : "not pinned");
  return section("machine", "Machine, versions, method", null,
    ...planned(context),
    facts("Machine", read(MAIN), "machine"),
    h("details", { class: "behind" },
      h("summary", {}, "Everything that was read of the machine"), facts("Machine, all of it", read(Object.keys(machine)), "machine-all")),
    facts("Method", [
      ["deadheat", plain(record.version)],
      ["begun", date(record.started_unix_ms)],
      ...(server_host ? [["raced on", plain(server_host.host)], ["command typed on", plain(server_host.control)]] satisfies Row[] : []),
      ["continued", record.resumed_unix_ms.map(date).join("; ")],
      ["profile", method.profile],
      ["seed", String(method.seed)],
      ["error rate of each scenario", percent(method.alpha)],
      ["margin", percent(method.margin)],
      ["looks after epochs", method.looks.join(", ")],
      ["slices", `${timeNs(method.slice_ns)}, the first ${timeNs(method.settle_ns)} left out; ${method.rounds} rounds per epoch`],
      ["timeout of a request", timeNs(method.timeout_ns)],
      ["cores of contenders", cores(pinning.server_cpus)],
      ["cores of the generator", cores(pinning.load_cpus)],
    ], "method"),
    ...links(context),
    ...loadHosts(context),
    order(context));
}

function order(context: Context): HTMLElement | null {
  const { epochs, set_aside } = context.document.record;
  const all = [...epochs.map((epoch) => ({ epoch, counts: isLeftOut(epoch) ? "left out" : "counts" })), ...set_aside.map((epoch) => ({ epoch, counts: "set aside" }))]
    .sort((one, other) => one.epoch.started_unix_ms - other.epoch.started_unix_ms);
  if (all.length === 0) return null;
  return behind("The order in which everything ran", () => ({
    caption: "Epochs in time order. A round that is not named ran in the mirrored order of the one before",
    columns: ["scenario", "#epoch", "begun", "#took", "#rounds", "order of the rounds", "counts"],
    rows: all.map(({ epoch, counts }) => [
      epoch.scenario, { text: String(epoch.number), value: epoch.number },
      moment(epoch.started_unix_ms), { text: timeNs(epoch.took_ns), value: epoch.took_ns },
      { text: whole(epoch.rounds.length), value: epoch.rounds.length }, rounds(context, epoch) || "–", counts,
    ]),
  }), "order", { paper: true });
}

/** Who ran after whom in each round, but for those that are the mirror of the one before. */
function rounds(context: Context, epoch: Epoch): string {
  const orders = epoch.rounds.map((round) => [...new Set(round.slices.map((one) => one.contender))]);
  const mirrored = (at: number) => at % 2 === 1 && String(orders[at]) === String([...orders[at - 1]!].reverse());
  return orders.flatMap((order, at) => (order.length === 0 || mirrored(at) ? [] : [`${at + 1}: ${order.map((one) => context.names[one] ?? "?").join(", ")}`])).join("; ");
}

export function reproduce(context: Context): HTMLElement | null {
  const { reproduce: command } = context.document;
  if (!command) return null;
  return section("reproduce", "Reproduce this", "The same plan, with the same seed; in the folder in which it ran.",
    h("div", { class: "command" },
      h("pre", { tabindex: "0", role: "region", "aria-label": "Command" }, h("code", {}, plain(command))),
      h("p", { class: "tools" }, h("button", { type: "button", click: () => void copyText(command, "Command") }, "Copy command"))));
}

export function record(context: Context, json: string): HTMLElement | null {
  const name = `${context.document.study.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 60) || "deadheat"}.json`;
  return section("record", "The record",
    "Everything above is derived from this alone: what was planned, every slice that was measured, in time order. It is part of this file.",
    h("p", { class: "tools" },
      h("button", { type: "button", class: "primary", click: () => download(new Blob([json], { type: "application/json" }), name) }, `Download the record (${bytes(json.length)})`),
      h("button", { type: "button", click: () => void copyText(json, "Record") }, "Copy the record")),
    h("p", { class: "note" }, "deadheat report FILE shows it again in a terminal, as Markdown, CSV or SVG; deadheat compare holds two records against each other."));
}
