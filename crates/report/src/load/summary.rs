//! The result of a lone load: its options, its results, and what weakens the numbers.
//!
//! Owns: the order and the wording, and the escaping of text from outside. Must not know: how numbers are computed.

use deadheat_analysis::number::{bytes, percent, three_digits, time_ns, whole};
use deadheat_record::{ArrivalsWord, BEYOND, LoadHost, LoadRecord, LoadShape, LoadTimes, Outcomes, beyond};

use super::chart::Chart;
use crate::style::{Style, Tone};
use crate::terminal::{LABEL, finding_lines, labelled};
use crate::text::{columns, count, left, plain, right, shorten_end, wrap};

/// Columns of the names of times, and of each column of times.
const NAME: usize = 8;
const TIME: usize = 11;
/// Minimum width at which the drawing is next to the table.
const BESIDE_FROM: usize = 120;
const WIDEST_CHART: usize = 90;
/// Maximum number of mismatching answers that are shown. The others are only counted.
const SHOWN_MISMATCHES: usize = 2;
/// Maximum number of causes that are shown. The others are only counted.
const SHOWN_FAULTS: usize = 5;
/// Minimum share of the median latency at which the lag of a closed load is shown.
const LAG_SHOWN: f64 = 0.01;

/// The whole summary, in lines of at most the style's width.
pub fn summary(record: &LoadRecord, style: &Style) -> String {
    let mut lines = heading(record, style);
    lines.push(String::new());
    lines.extend(throughput(record, style));
    if record.completions > 0 {
        lines.push(String::new());
        lines.extend(times(record, style));
    }
    lines.push(String::new());
    lines.extend(answers(record, style));
    lines.extend(connections(record, style));
    lines.extend(generator(record, style));
    lines.extend(hosts(record, style));
    if !record.findings.is_empty() {
        lines.push(String::new());
        lines.extend(finding_lines(&record.findings, style));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn heading(record: &LoadRecord, style: &Style) -> Vec<String> {
    let mut parts = vec![match record.sent.distinct {
        1 => plain(&record.sent.method),
        distinct => format!("{} different requests, {}", whole(distinct), plain(&record.sent.order)),
    }];
    let connections = count(record.connections, "connection");
    match (record.shape, &record.rate, record.arrivals) {
        (LoadShape::Open, Some(rate), Some(ArrivalsWord::Recorded)) => {
            parts.push(format!("open: {}", plain(rate)));
            parts.push(format!("{connections}, at most {}", whole(record.max_connections)));
        }
        (LoadShape::Open, Some(rate), Some(arrivals)) => {
            let rate = match rate.parse() {
                Ok(rate) => format!("{} requests/s", three_digits(rate)),
                Err(_) => format!("rate {}", plain(rate)),
            };
            parts.push(format!("open: {rate}, {} arrivals", arrivals.word()));
            parts.push(format!("{connections}, at most {}", whole(record.max_connections)));
        }
        _ => parts.push(format!("closed: {connections}, each waits for its answer")),
    }
    let limits = &record.limits;
    parts.extend(limits.requests.map(|requests| count(requests, "request")));
    parts.extend(limits.duration_s.map(seconds));
    if limits.warmup_s > 0.0 {
        parts.push(format!("after {} of warm-up", seconds(limits.warmup_s)));
    }
    parts.push(format!("seed {}", record.seed));
    let about = style.spell(&parts.join(" · "));
    let mut lines =
        vec![style.paint(Tone::Strong, &shorten_end(&plain(&record.url), style.width, &style.spell("…")))];
    lines.extend(wrap(&about, style.width).iter().map(|line| style.paint(Tone::Quiet, line)));
    if record.interrupted {
        lines.push(style.paint(Tone::Caution, "interrupted: these are the results so far"));
    }
    lines
}

fn throughput(record: &LoadRecord, style: &Style) -> Vec<String> {
    let rate = record.throughput_rps.map_or_else(|| "-".into(), |rate| format!("{}/s", three_digits(rate)));
    let answers = format!("{} in {}", count(record.completions, "answer"), seconds(record.duration_s));
    let mut parts = vec![rate.clone(), answers];
    if let (Some(offered), Some(share)) = (record.offered_rps, record.achieved_share) {
        let kept = percent(share.min(1.0));
        parts.push(format!("{}/s due, of which the server kept up with {kept}", three_digits(offered)));
    }
    let mut lines = labelled("throughput", &style.spell(&parts.join(" · ")), style);
    if let Some(first) = lines.first_mut() {
        *first = first.replacen(&rate, &style.paint(Tone::Strong, &rate), 1);
    }
    if record.duration_s > 0.0 {
        let per_s = |total: u64| bytes((total as f64 / (record.duration_s + record.drain_s)) as u64);
        let (read, written) = (per_s(record.bytes_read), per_s(record.bytes_written));
        let text = format!("{read}/s received · {written}/s sent, heads included");
        lines.extend(labelled("transfer", &style.spell(&text), style));
    }
    lines
}

/// The table of times and the drawing of the latencies: side by side where there is room.
fn times(record: &LoadRecord, style: &Style) -> Vec<String> {
    let title = match record.shape {
        LoadShape::Open => "latency, from the time that each request was due",
        LoadShape::Closed => {
            "latency at saturation: what the server does at its limit, not what its users see"
        }
    };
    let mut lines =
        wrap(title, style.width).iter().map(|line| style.paint(Tone::Strong, line)).collect::<Vec<_>>();
    let table = table(record, style);
    let width = table.iter().map(|(plain, _)| columns(plain)).max().unwrap_or(0);
    let latency = &record.latency_ns;
    let marks: Vec<(&str, u64)> =
        [("p50", latency.p50), ("p99", latency.p99), ("p99.9", latency.p99_9), ("max", latency.max)]
            .iter()
            .filter_map(|(name, ns)| Some((*name, (*ns)?)))
            .collect();
    let beside = style.width >= BESIDE_FROM;
    let room = if beside { style.width.saturating_sub(width + 6) } else { style.width.saturating_sub(4) };
    let height = if beside { table.len().saturating_sub(3) } else { 5 };
    let chart = Chart { width: room.min(WIDEST_CHART), height }.lines(&record.hdr, &marks, style);
    if beside {
        lines.extend(table.iter().enumerate().map(|(index, (text, painted))| {
            let gap = " ".repeat(width - columns(text) + 4);
            format!("{painted}{gap}{}", chart.get(index).map_or("", String::as_str))
        }));
    } else {
        lines.extend(table.into_iter().map(|(_, painted)| painted));
        lines.push(String::new());
        lines.extend(chart.into_iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Each line without and with colours.
fn table(record: &LoadRecord, style: &Style) -> Vec<(String, String)> {
    let mut kinds = vec![("latency", &record.latency_ns)];
    let lag = record.send_lag_ns.max.unwrap_or(0) as f64;
    if record.shape == LoadShape::Open || lag > LAG_SHOWN * record.latency_ns.p50.unwrap_or(0) as f64 {
        kinds.extend([("service", &record.service_ns), ("send lag", &record.send_lag_ns)]);
    }
    if record.waited > 0 {
        kinds.push(("wait", &record.wait_ns));
    }
    let titles: String = kinds.iter().map(|(name, _)| right(name, TIME)).collect();
    let head = format!("  {}{titles}", left("", NAME));
    let mut lines = vec![(head.clone(), style.paint(Tone::Quiet, &head))];
    let names = ["min", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
    for name in names {
        let values: Vec<Option<u64>> = kinds.iter().map(|(_, times)| value(times, name)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let weak = if is_weak(name, record.completions) { "~" } else { "" };
        let cells: String = values
            .iter()
            .map(|ns| {
                right(&ns.map_or_else(|| "-".into(), |ns| format!("{weak}{}", time_ns(ns as f64))), TIME)
            })
            .collect();
        let cells = style.spell(&cells);
        let name = left(name, NAME);
        lines.push((format!("  {name}{cells}"), format!("  {}{cells}", style.paint(Tone::Quiet, &name))));
    }
    lines
}

fn value(times: &LoadTimes, name: &str) -> Option<u64> {
    if name == "mean" {
        return times.mean;
    }
    times.ascending().iter().find(|(one, _)| *one == name).and_then(|(_, value)| *value)
}

/// Whether a percentile rests on few requests beyond it.
fn is_weak(name: &str, count: u64) -> bool {
    let quantile = match name {
        "p50" => 0.5,
        "p75" => 0.75,
        "p90" => 0.9,
        "p95" => 0.95,
        "p99" => 0.99,
        _ => return false,
    };
    beyond(count as f64, quantile) < BEYOND
}

fn answers(record: &LoadRecord, style: &Style) -> Vec<String> {
    let kinds: Vec<String> = kinds(&record.outcomes)
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(kind, n)| format!("{} {kind}", whole(*n)))
        .collect();
    let sum = if kinds.is_empty() { "0".into() } else { kinds.join(" + ") };
    let mut lines = labelled("requests", &format!("{} = {sum}", whole(record.requests)), style);
    if !record.status.is_empty() {
        let codes: Vec<String> =
            record.status.iter().map(|(code, n)| format!("{code}: {}", whole(*n))).collect();
        lines.extend(labelled("status", &codes.join(", "), style));
    }
    lines.extend(labelled("checked", &checked(record), style));
    for fault in record.faults.iter().take(SHOWN_FAULTS) {
        let text = format!("{} {}: {}", whole(fault.count), plain(&fault.outcome), plain(&fault.cause));
        lines.extend(labelled("failed", &text, style));
    }
    for one in record.mismatches.iter().take(SHOWN_MISMATCHES) {
        let text = format!(
            "{}: {} expected; got status {}, {} bytes: {}",
            plain(&one.request),
            plain(&one.expected),
            one.status,
            whole(one.length),
            shorten_end(&plain(&one.body), style.width.saturating_sub(LABEL + 8), &style.spell("…"))
        );
        lines.extend(labelled("wrong", &text, style));
    }
    lines
}

/// Every way in which a request can end, with its count.
fn kinds(outcomes: &Outcomes) -> [(&'static str, u64); 9] {
    [
        ("ok", outcomes.ok),
        ("wrong status", outcomes.status),
        ("wrong body", outcomes.mismatch),
        ("not connected", outcomes.connect),
        ("broken while reading", outcomes.read),
        ("broken while writing", outcomes.write),
        ("timed out", outcomes.timeout),
        ("not HTTP", outcomes.protocol),
        ("cut at the end", outcomes.cut),
    ]
}

fn checked(record: &LoadRecord) -> String {
    let checked = &record.checked;
    let parts = [
        (checked.same, "the same body as before the load"),
        (checked.length, "a body as long as before the load"),
        (checked.any, "any body"),
    ];
    let several = record.sent.distinct > 1;
    let bodies: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(
            |(n, what)| if several { format!("{what} for {}", count(*n, "request")) } else { (*what).into() },
        )
        .collect();
    let why = if checked.why.is_empty() { String::new() } else { format!(" ({})", plain(&checked.why)) };
    format!("status {}; {}{why}", plain(&checked.status), bodies.join(", "))
}

fn connections(record: &LoadRecord, style: &Style) -> Vec<String> {
    let mut parts =
        vec![format!("at most {} in use, to {}", whole(record.connections_used), plain(&record.address))];
    let more = [
        (record.waited, "request", "waited for one"),
        (record.reconnects, "connection", "opened while loading"),
        (record.closed_by_server, "connection", "closed by the server"),
        (record.retried, "request", "sent a second time"),
    ];
    parts.extend(
        more.iter().filter(|(n, ..)| *n > 0).map(|(n, what, how)| format!("{} {how}", count(*n, what))),
    );
    labelled("connections", &parts.join("; "), style)
}

fn generator(record: &LoadRecord, style: &Style) -> Vec<String> {
    let generator = &record.generator;
    let cpus: Vec<String> = generator.cpus.iter().map(ToString::to_string).collect();
    let on = match cpus.len() {
        0 => String::new(),
        1 => format!(" on CPU {}", cpus[0]),
        _ => format!(" on CPUs {}", cpus.join(",")),
    };
    let mut parts =
        vec![format!("{}{on}, {}", count(generator.threads, "thread"), plain(&generator.backend))];
    parts.extend(generator.cpu_us_per_request.map(|us| format!("{} CPU per request", time_ns(us * 1e3))));
    let share = |share: Option<f64>, what: &str| share.map(|share| format!("{what} {}", percent(share)));
    parts.extend(share(generator.cpu_share, "busy"));
    parts.extend(share(generator.spin_share.filter(|share| *share > 0.0), "spinning"));
    parts.extend(share(generator.run_delay_share, "waiting for a CPU"));
    let mut lines = labelled("generator", &parts.join(", "), style);
    if let Some(ceiling) = &record.ceiling {
        let share = ceiling.share.map(|share| format!("; this load is {} of it", percent(share)));
        let text = format!(
            "{}/s against a server that does nothing{}",
            three_digits(ceiling.throughput_rps),
            share.unwrap_or_default()
        );
        lines.extend(labelled("ceiling", &text, style));
    }
    lines
}

/// What each load host did, and how close together they began.
fn hosts(record: &LoadRecord, style: &Style) -> Vec<String> {
    let mut lines: Vec<String> =
        record.hosts.iter().flat_map(|one| labelled("load host", &style.spell(&host(one)), style)).collect();
    if let Some(skew) = record.start_skew_ns {
        lines.extend(labelled("", &format!("all began within {}", time_ns(skew as f64)), style));
    }
    lines
}

fn host(host: &LoadHost) -> String {
    let name = plain(&host.name);
    if host.lost.is_some() {
        return format!("{name}: lost");
    }
    let rate = host.throughput_rps.map_or_else(|| "-".into(), |rate| format!("{}/s", three_digits(rate)));
    let mut parts = vec![
        format!("{name}: {}, {}", count(host.connections, "connection"), count(host.threads, "thread")),
        format!("{}, {rate}", count(host.completions, "answer")),
    ];
    parts.extend(host.cpu_share.map(|share| format!("busy {}", percent(share))));
    let trips = &host.round_trip_ns;
    if let (Some(p50), Some(p99)) = (trips.p50, trips.p99) {
        parts.push(format!("round trip p50 {}, p99 {}", time_ns(p50 as f64), time_ns(p99 as f64)));
    }
    parts.extend(host.start_delay_ns.map(|ns| format!("began {} late", time_ns(ns as f64))));
    parts.join(" · ")
}

/// `10 s`, `0.5 s`, `2.03 s`.
fn seconds(seconds: f64) -> String {
    if seconds.fract() == 0.0 { format!("{seconds:.0} s") } else { time_ns(seconds * 1e9) }
}
