// The machines that the load of each scenario came from, and the network to them.
import type { Context } from "../context";
import type { LoadHosts, MachineReadings } from "../document";
import { h, plain, unique } from "../dom";
import { bytes, percent, timeNs, whole } from "../format";
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
