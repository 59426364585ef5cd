//! An examination on a terminal: facts about the machine, its performance, its problems.
//!
//! Owns: the order and the wording, and the escaping of text from outside. Must not know: how numbers are computed.

use deadheat_analysis::doctor::{is_invalid, listed, named, virtual_machine};
use deadheat_analysis::number::{bytes, clock, interval, percent, ratio, three_digits, time_ns, whole};
use deadheat_record::{
    Bandwidth, CgroupKind, Clock, DoctorLink, DoctorLinkHost, DoctorMode, DoctorRecord, Machine,
    MachineDetails, Noise, NoiseFloor, Proof, ProofRace, ProofRow, Severity,
};

use crate::style::{Style, Tone};
use crate::terminal::{LABEL, finding_lines, indented, labelled, verdict_tone};
use crate::text::{count, left, plain, right};

/// The whole summary, in lines of at most the style's width.
pub fn summary(record: &DoctorRecord, style: &Style) -> String {
    let mut lines = heading(record, style);
    lines.push(String::new());
    for (label, text) in
        facts(&record.machine, record).iter().chain(&disturbance(&record.noise, &record.machine))
    {
        lines.extend(labelled(label, text, style));
    }
    lines.push(String::new());
    lines.extend(labelled("ceiling", &ceiling(record), style));
    for text in record.link.iter().flat_map(link) {
        lines.extend(labelled("link", &text, style));
    }
    if let Some(floor) = &record.floor {
        lines.extend(labelled("noise floor", &noise_floor(floor), style));
        if !is_invalid(floor) {
            lines.extend(resolution(record, style));
        }
    }
    if let Some(proof) = &record.proof {
        lines.push(String::new());
        lines.extend(proof_table(proof, style));
    }
    if !record.findings.is_empty() {
        lines.push(String::new());
        lines.extend(finding_lines(&record.findings, style));
    }
    if let Some(sentence) = &record.sentence {
        lines.push(String::new());
        lines.extend(indented(sentence, 0, Tone::Strong, style));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn heading(record: &DoctorRecord, style: &Style) -> Vec<String> {
    let found = |severity| record.findings.iter().filter(|finding| finding.severity == severity).count();
    let (invalid, warnings) = (found(Severity::Invalid), found(Severity::Warn));
    let (text, tone) = match (record.fit, warnings) {
        (false, _) => (
            format!("unfit for measuring: {invalid} of {} findings forbid it", invalid + warnings),
            Tone::Alarm,
        ),
        (true, _) if record.interrupted => {
            ("nothing seen so far forbids measuring".to_owned(), Tone::Caution)
        }
        (true, 0) => ("fit for measuring".to_owned(), Tone::Good),
        (true, n) => (format!("fit for measuring, with {}", count(n as u64, "warning")), Tone::Caution),
    };
    let mode = match record.mode {
        DoctorMode::Quick => "facts and ceiling (--quick)",
        DoctorMode::Usual => "facts, ceiling and noise floor",
        DoctorMode::Full => "facts, ceiling, noise floor and proof (--full)",
    };
    let about = format!("{mode}; took {}, seed {}", clock(record.took_s.round() as u64), record.seed);
    let mut lines = vec![style.paint(tone, &text)];
    lines.extend(indented(&about, 0, Tone::Quiet, style));
    if record.interrupted {
        lines.extend(indented("interrupted: these are the results so far", 0, Tone::Caution, style));
    }
    lines
}

/// Labels and texts. Features that the machine lacks are named too.
fn facts(machine: &Machine, record: &DoctorRecord) -> Vec<(&'static str, String)> {
    let details = &machine.details;
    let mut all = vec![
        ("processor", processor(machine)),
        ("cores", cores(record)),
        ("frequency", frequency(details)),
        ("machine", platform(machine, details)),
        (
            "clock",
            format!(
                "{}, {} to read",
                known(&machine.clock_source, "source unknown"),
                time_ns(record.noise.clock_read_ns)
            ),
        ),
        ("memory", memory(machine, details)),
        ("groups", groups(machine, details)),
        ("kernel", kernel(details)),
        ("limits", limits(details)),
    ];
    all.extend(protection(details).map(|text| ("protection", text)));
    all
}

fn known(text: &Option<String>, otherwise: &str) -> String {
    text.as_deref().map_or_else(|| otherwise.to_owned(), plain)
}

fn processor(machine: &Machine) -> String {
    let cores = machine.siblings.len();
    let threads = match cores {
        0 => "cores unknown".to_owned(),
        cores if cores == machine.cpus => "one thread on each core".into(),
        cores => format!("{cores} cores"),
    };
    let microcode = machine.details.microcode.as_ref();
    let microcode = microcode.map_or_else(String::new, |version| format!("; microcode {}", plain(version)));
    let model = known(&machine.cpu_model, "model unknown");
    format!("{model}: {} logical online, {threads}{microcode}", machine.cpus)
}

fn cores(record: &DoctorRecord) -> String {
    let allowed = record.machine.details.allowed_cpus.as_ref();
    let allowed = allowed
        .map_or_else(|| "allowed cores unknown".into(), |cpus| format!("{} may be used", listed(cpus)));
    let quota = record
        .machine
        .details
        .cpu_quota
        .map_or_else(String::new, |cores| format!(", {cores:.2} cores' time"));
    let pinning = &record.pinning;
    if pinning.server_cpus.is_empty() {
        return format!("{allowed}{quota}; servers and generator share them");
    }
    if pinning.load_cpus.is_empty() {
        return format!(
            "{allowed}{quota}: servers {}; the load comes from others",
            listed(&pinning.server_cpus)
        );
    }
    format!(
        "{allowed}{quota}: servers {}, generator {}",
        listed(&pinning.server_cpus),
        listed(&pinning.load_cpus)
    )
}

fn frequency(details: &MachineDetails) -> String {
    let governors: Vec<String> = details.governors.iter().flatten().map(|(name, _)| plain(name)).collect();
    let mut parts = vec![match (&details.frequency_driver, governors.is_empty()) {
        (None, true) => "no driver: the machine shows and sets no frequency".into(),
        (driver, true) => format!("{}, no governor", known(driver, "driver unknown")),
        (driver, false) => {
            format!("{}, governor {}", known(driver, "driver unknown"), governors.join(" and "))
        }
    }];
    parts.extend(details.energy_preference.as_ref().map(|word| format!("prefers {}", plain(word))));
    parts.push(match details.turbo {
        Some(true) => "turbo on".into(),
        Some(false) => "turbo off".into(),
        None => "turbo unknown".into(),
    });
    parts.push(match details.throttle_events {
        Some(0) => "never throttled".into(),
        Some(count) => format!("throttled {} times", whole(count)),
        None => "throttling unknown".into(),
    });
    parts.join("; ")
}

fn platform(machine: &Machine, details: &MachineDetails) -> String {
    let vendor = machine.hypervisor.as_deref();
    let what = vendor.map_or_else(|| "no hypervisor seen".into(), |vendor| plain(&virtual_machine(vendor)));
    let power = match details.on_battery {
        Some(true) => ", on battery",
        Some(false) => ", on mains",
        None => "",
    };
    let system = known(&machine.os, "distribution unknown");
    format!("{what}{power}; {system}, kernel {}", known(&machine.kernel, "unknown"))
}

fn memory(machine: &Machine, details: &MachineDetails) -> String {
    let size = |size: Option<u64>| size.map_or_else(|| "unknown".into(), bytes);
    let swap = match (details.swap_bytes, details.swap_used_bytes) {
        (Some(0), _) => "no swap".into(),
        (Some(all), Some(used)) => format!("swap {}, {} in use", bytes(all), bytes(used)),
        _ => "swap unknown".into(),
    };
    let nodes = match details.memory_nodes.as_ref().map(Vec::len) {
        None => "nodes unknown".into(),
        Some(1) => "1 node".into(),
        Some(nodes) => match details.numa_balancing {
            None => format!("{nodes} nodes"),
            Some(0) => format!("{nodes} nodes, not balanced"),
            Some(_) => format!("{nodes} nodes, balanced"),
        },
    };
    let pages = details.transparent_huge_pages.as_ref();
    let pages = pages.map_or_else(String::new, |word| format!("; transparent huge pages {}", plain(word)));
    format!(
        "{}, {} available; {swap}; {nodes}{pages}",
        size(machine.memory_bytes),
        size(details.memory_available_bytes)
    )
}

fn groups(machine: &Machine, details: &MachineDetails) -> String {
    let versions = match details.cgroup_versions.as_deref() {
        None => "unknown".into(),
        Some([]) => "none mounted".into(),
        Some([one]) => format!("version {one}"),
        Some(_) => "versions 1 and 2".to_owned(),
    };
    let usable = match details.cgroup_controllers.as_deref() {
        None | Some([]) => "no controller may be used".into(),
        Some(names) => plain(&names.join(", ")),
    };
    let still = match machine.cgroup {
        CgroupKind::V1 => "idle servers are frozen by version 1",
        CgroupKind::V2 => "idle servers are frozen by version 2",
        CgroupKind::None => "idle servers are stopped by signals",
    };
    format!("{versions}: {usable}; {still}")
}

fn kernel(details: &MachineDetails) -> String {
    let ring = match details.io_uring {
        Some(true) => "io_uring allowed",
        Some(false) => "io_uring refused",
        None => "io_uring not tried",
    };
    let counters = match details.hardware_counters {
        Some(true) => "processor counters",
        Some(false) => "no processor counters",
        None => "processor counters unknown",
    };
    let paranoid =
        details.perf_event_paranoid.map_or_else(String::new, |level| format!(" (paranoid {level})"));
    let pressure =
        if details.pressure == Some(true) { "CPU pressure readable" } else { "CPU pressure not readable" };
    format!("{ring}; {counters}{paranoid}; {pressure}")
}

fn limits(details: &MachineDetails) -> String {
    let files = match (details.open_files, details.open_files_most) {
        (_, Some(u64::MAX)) => "any number of open files".into(),
        (Some(now), Some(most)) if now < most => {
            format!("{} open files, raised to {}", whole(now), whole(most))
        }
        (_, Some(most)) => format!("{} open files", whole(most)),
        _ => "open files unknown".into(),
    };
    let ports = details
        .ports
        .map_or_else(|| "ports unknown".into(), |(first, last)| format!("ports {first} to {last}"));
    let backlog = details
        .listen_backlog
        .map_or_else(|| "backlog unknown".into(), |backlog| format!("backlog {}", whole(backlog)));
    format!("{files}; {ports}; {backlog}")
}

/// The kernel's mitigations of processor vulnerabilities, if they cost time; none if they are unknown.
fn protection(details: &MachineDetails) -> Option<String> {
    let addresses = details.address_randomization.map(|level| match level {
        0 => "addresses the same at each start",
        1 => "addresses random except for the heap",
        _ => "addresses random",
    });
    let mitigations = details.mitigations.as_ref().map(|all| {
        let affected = all.iter().filter(|(_, text)| *text != "Not affected");
        let (mitigated, open): (Vec<_>, Vec<_>) = affected.partition(|(_, text)| text.contains("Mitigation"));
        let names = |of: &[(&String, &String)]| {
            let names: Vec<String> = of.iter().map(|(name, _)| plain(name)).collect();
            if names.is_empty() { "none".into() } else { names.join(", ") }
        };
        let open = if open.is_empty() { String::new() } else { format!("; not mitigated: {}", names(&open)) };
        format!("mitigated: {}{open}", names(&mitigated))
    });
    let parts: Vec<String> = addresses.map(str::to_owned).into_iter().chain(mitigations).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn disturbance(noise: &Noise, machine: &Machine) -> Vec<(&'static str, String)> {
    let load = machine.load_average.map_or_else(|| "load unknown".into(), |load| format!("load {load}"));
    let foreign = noise
        .foreign_share
        .map_or_else(|| "others unknown".into(), |share| format!("others {}", percent(share)));
    let pressure =
        noise.cpu_pressure.map_or_else(String::new, |share| format!("; CPU pressure {}", percent(share)));
    let seconds = three_digits(noise.seconds);
    let stalls = noise
        .stalled_share
        .map_or_else(|| "stalls unknown".into(), |share| format!("stalls {}", percent(share)));
    let steal = percent(noise.steal_share);
    let now = format!("{load}; for {seconds} s: steal {steal}, {stalls}, {foreign}{pressure}");
    let busiest = match named(&noise.busiest) {
        none if none.is_empty() => "no process over 1 % of a core".to_owned(),
        some => plain(&some),
    };
    vec![("now", now), ("busiest", busiest)]
}

fn ceiling(record: &DoctorRecord) -> String {
    let Some(one) = &record.ceiling else { return "not measured".into() };
    let threads = count(one.threads, "thread");
    let busy = one.cpu_share.map_or_else(String::new, |share| format!(", {} busy", percent(share)));
    let backend = match one.backend.as_str() {
        "auto" => String::new(),
        name => format!("{}, ", plain(name)),
    };
    format!(
        "{} requests/s to a server that does nothing; {threads}{busy}, {} of CPU per request, {backend}{} connections",
        three_digits(one.throughput_rps),
        time_ns(one.cpu_us_per_request * 1e3),
        whole(one.connections)
    )
}

/// What follows the figures of a load host: `; clock tsc, 21.0 ns to read`.
fn of_clock(clock: &Clock) -> String {
    let source = clock.source.as_deref().unwrap_or("unknown");
    format!("; clock {}, {} to read", plain(source), time_ns(clock.read_ns))
}

/// A line for each load host, and one for all together if there are several.
fn link(link: &DoctorLink) -> Vec<String> {
    let per_s = |one: &Bandwidth| format!("{}/s", bytes(one.payload_bytes_per_s as u64));
    let host = |(host, bandwidth): (&DoctorLinkHost, &Bandwidth)| {
        let [min, p50, p99] = [host.min_ns, host.p50_ns, host.p99_ns].map(|ns| time_ns(ns as f64));
        format!(
            "{}: round trip {p50} (p50), {min} at least, {p99} (p99); receives {}{}",
            plain(&host.name),
            per_s(bandwidth),
            host.clock.as_ref().map(of_clock).unwrap_or_default()
        )
    };
    let hosts = link.hosts.iter().zip(&link.bandwidth.hosts).map(host);
    let together = (link.hosts.len() > 1)
        .then(|| format!("all at once: they receive {}", per_s(&link.bandwidth.together)));
    hosts.chain(together).collect()
}

fn noise_floor(floor: &NoiseFloor) -> String {
    let what = if floor.built_in {
        "the built-in server".to_owned()
    } else {
        format!("`{}`", plain(&floor.command))
    };
    let rate =
        floor.throughput_rps.map_or_else(String::new, |rate| format!(" ({} requests/s)", three_digits(rate)));
    let spread = match (floor.sd_log_ratio, floor.sd_range) {
        (Some(sd), Some((low, high))) => {
            format!("epochs vary by {} (90 % interval: {} to {})", percent(sd), percent(low), percent(high))
        }
        (Some(sd), None) => format!("epochs vary by {}", percent(sd)),
        _ => "too few epochs to tell".into(),
    };
    let Some(value) = floor.ratio else {
        return format!("{what} against itself{rate}: no epoch could be used");
    };
    let shown = ratio(value, 3);
    format!(
        "{what} against itself{rate}: {spread}; ratio {shown} ({}), {} epochs of {} s",
        interval(floor.low, floor.high),
        floor.epochs,
        three_digits(floor.epoch_s)
    )
}

fn resolution(record: &DoctorRecord, style: &Style) -> Vec<String> {
    if record.resolution.is_empty() {
        return Vec::new();
    }
    let line = |texts: [&str; 3]| {
        let [difference, epochs, time] = texts;
        format!("{}{}{}{}", " ".repeat(LABEL), right(difference, 10), right(epochs, 10), right(time, 10))
    };
    let mut lines = vec![style.paint(Tone::Quiet, &line(["to see", "epochs", "takes"]))];
    for one in &record.resolution {
        let epochs = one.epochs.map_or_else(|| "too many".into(), |epochs| whole(epochs as u64));
        let time = one.minutes.map_or_else(|| "-".into(), |minutes| clock((minutes * 60.0).round() as u64));
        lines.push(line([&percent(one.difference), &epochs, &time]));
    }
    lines
}

/// Columns of the proof's table after the name: races, the five verdicts, the time.
const COLUMNS: [(&str, usize); 7] = [
    ("races", 7),
    ("faster", 8),
    ("slower", 8),
    ("equiv.", 8),
    ("unclear", 9),
    ("invalid", 9),
    ("median", 8),
];
const NAME: usize = 17;

fn proof_table(proof: &Proof, style: &Style) -> Vec<String> {
    let about =
        format!("proof: races with a known result; margin {}, alpha {}", percent(proof.margin), proof.alpha);
    let mut lines = indented(&about, 0, Tone::Quiet, style);
    let titles: String = COLUMNS.iter().map(|(title, width)| right(title, *width)).collect();
    lines.push(style.paint(Tone::Quiet, &format!("{}{titles}", left("", NAME))));
    for row in &proof.rows {
        let counts = [row.races, row.faster, row.slower, row.equivalent, row.inconclusive, row.invalid];
        let time = row.median_verdict_s.map_or_else(|| "-".into(), |seconds| clock(seconds.round() as u64));
        let cells = counts.iter().map(|count| whole(*count as u64)).chain([time]);
        let cells: String = cells.zip(COLUMNS).map(|(cell, (_, width))| right(&cell, width)).collect();
        let name = crate::text::shorten_end(&plain(&row.name), NAME, &style.spell("…"));
        lines.push(format!("{}{cells}", left(&name, NAME)));
    }
    lines.extend(
        proof.rows.iter().filter_map(planted).flat_map(|text| indented(&text, 0, Tone::Quiet, style)),
    );
    lines
}

/// The requested and the actual ratio of a row with added work.
fn planted(row: &ProofRow) -> Option<String> {
    let plant = row.plant.as_ref()?;
    let more = |ratio: f64| percent(ratio - 1.0);
    let truth = row.true_ratio.map_or_else(|| "unknown".into(), more);
    let checked = plant.checked_ratio.map_or_else(String::new, |value| {
        let error = plant.checked_error.map_or_else(String::new, |error| format!(" ± {}", percent(error)));
        format!(", {}{error} measured in turns before the proof", more(value))
    });
    Some(format!(
        "{}: {} of {} requested; measured {truth} (CPU per request){checked}",
        plain(&row.name),
        more(row.asked_ratio),
        time_ns(plant.cost_ns)
    ))
}

/// Announces the races and the longest time that they can take.
pub fn announcement(proof: &Proof) -> String {
    let names: Vec<String> = proof.rows.iter().map(|row| plain(&row.name)).collect();
    format!(
        "proof: {} of each kind ({}), at most {}; Ctrl-C keeps the finished races",
        count(proof.races as u64, "race"),
        names.join(", "),
        clock(proof.most_s.round() as u64)
    )
}

/// One line for a finished race of the proof.
pub fn race_line(proof: &Proof, race: &ProofRace, done: usize, style: &Style) -> String {
    let name = proof.rows.get(race.row).map_or_else(String::new, |row| plain(&row.name));
    let ends = || interval(race.low, race.high);
    let shown =
        race.ratio.map_or_else(|| "no ratio".into(), |value| format!("{} ({})", ratio(value, 3), ends()));
    let all = proof.races * proof.rows.len();
    let codes =
        if race.codes.is_empty() { String::new() } else { format!("  {}", plain(&race.codes.join(" "))) };
    format!(
        "{} {}  {}  {shown}  {} epochs, {}{codes}",
        right(&format!("{done}/{all}"), 2 * all.to_string().len() + 1),
        left(&name, NAME),
        style.paint(verdict_tone(race.verdict), &left(race.verdict.word(), 12)),
        race.epochs,
        clock(race.took_s.round() as u64)
    )
}
