// The network between load and contenders: links that deadheat made, and the machines that the load came from.
import type { Context } from "../context";
import type { LoadHosts, MachineReadings } from "../document";
import { h, plain, unique } from "../dom";
import { bytes, percent, three, timeNs, whole } from "../format";
import { behind, tableElement, type Cell } from "../table";

type Number = number | null | undefined;

const cell = (value: Number, shown: (value: number) => string): Cell => (value == null ? "–" : { text: shown(value), value });

const READ = ["#other programs", "#steal", "#longest stall", "#softirq", "#sent again", "#dropped"];

/** Two clocks of different precision may give a little less than nothing. */
const share = (value: number): string => percent(Math.max(value, 0));

const read = (one: MachineReadings): Cell[] => [
  cell(one.foreign_share, share), cell(one.steal_share, share), cell(one.stalled_share, share), cell(one.softirq_share, share),
  cell(one.retransmitted_segments, whole), cell(one.dropped_packets, whole),
];

/** A table for each scenario, and another with every epoch; nothing if the load came from the contenders' machine. */
export function loadHosts(context: Context): HTMLElement[] {
  return context.document.scenarios.flatMap(({ name, load_hosts: found }) => {
    if (!found) return [];
    const rows: Cell[][] = found.hosts.map((one) => [
      one.name, cell(one.connections, whole), cell(one.requests_share, share), cell(one.round_trip_ns.p50, timeNs),
      cell(one.round_trip_ns.p99, timeNs), cell(one.start_delay_p99_ns, timeNs), ...read(one.readings),
    ]);
    rows.push(["the contenders' machine", "–", "–", "–", "–", "–", ...read(found.servers)]);
    return [
      tableElement({
        caption: `${plain(name)}: the machines that took part`,
        columns: ["machine", "#connections", "#requests", "#round trip p50", "#p99", "#began late (p99)", ...READ], rows,
      }, unique(`load-hosts-${name}`)),
      h("p", { class: "note" }, together(found)),
      behind(`${plain(name)}: load hosts in every epoch`, () => ({
        caption: `${plain(name)}: what was read of each load host in every epoch`, columns: ["load host", "#epoch", ...READ],
        rows: found.hosts.flatMap((one) => one.epochs.map((epoch): Cell[] => [
          one.name, { text: whole(epoch.epoch), value: epoch.epoch }, ...read(epoch.readings),
        ])),
      }), unique(`load-hosts-epochs-${name}`), { paper: true }),
    ];
  });
}

function together({ start_skew_p99_ns: skew, link, duty }: LoadHosts): string {
  return [
    skew == null ? null : `Load hosts began at most ${timeNs(skew)} apart (p99).`,
    link == null ? null : `At most ${percent(link.share)} of the network's bandwidth of ${bytes(link.bandwidth_bytes_per_s)}/s was used.`,
    duty == null ? null : `Contenders were loaded for ${percent(duty)} of the time for which they ran.`,
  ].filter(Boolean).join(" ");
}

/** What was measured of the links before contenders were asked over them; nothing without links. */
export function links(context: Context): HTMLElement[] {
  const all = context.document.record.links ?? [];
  if (all.length === 0) return [];
  const rate = (bits: number | undefined): Cell => cell(bits, (value) => `${three(value / 1e6)} Mbit/s`);
  const lost = (count: number, sent: number): Cell => ({ text: `${whole(count)} of ${whole(sent)}`, value: count / Math.max(sent, 1) });
  return [tableElement({
    caption: "The links, measured before the race",
    columns: ["scenario", "#round trip", "#the same without limits", "#rate to the contenders", "#rate back", "#lost to the contenders", "#lost back", "encrypted by"],
    rows: all.map((one) => [
      one.scenario, cell(one.round_trip_ns, timeNs), cell(one.plain_round_trip_ns, timeNs), rate(one.rate_bits_per_s?.[0]), rate(one.rate_bits_per_s?.[1]),
      lost(one.lost[0], one.sent[0]), lost(one.lost[1], one.sent[1]), one.tunnel ?? "–",
    ]),
  }, "links")];
}
