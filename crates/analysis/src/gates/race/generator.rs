//! The gates on the generator, its ceiling and what the kernel counted, one function each.
//!
//! A message begins with the value that was read. Must not know limits and remedies (the table owns them), nor how findings are shown.

use deadheat_record::{
    BEYOND, CgroupKind, ContenderEpoch, EncodedHistogram, Epoch, HostReading, Metric, PilotContender,
    Severity, Throttling, Unit,
};
use deadheat_stats::average::mean;
use hdrhistogram::Histogram;

use super::link;
use super::scene::Scene;
use crate::gates::reading::Reading;
use crate::gates::table::{self, By};
use crate::number::{percent, three_digits, time_ns, whole};
use crate::report::ContenderResult;
use crate::results::throughput;
use crate::series;

/// Shortest slice for comparing CPU time at a fixed rate. In shorter slices, freezing by signals costs more than a hundredth of the CPU time.
const SHORT_SLICE_NS: u64 = 1_000_000_000;
/// Added work in the generator counts as changing the rate if the change exceeds the gate's limit by this many standard errors.
const STANDARD_ERRORS: f64 = 2.0;

/// Gates on the whole scenario.
pub(super) fn of_scenario(scene: &Scene<'_>) -> Vec<Reading> {
    [held_back(scene), swap(scene), frozen_by_signal(scene)].into_iter().flatten().collect()
}

/// Gates on one contender.
pub(super) fn of_contender(scene: &Scene<'_>, result: &ContenderResult) -> Vec<Reading> {
    let Some(contender) = scene.record.plan.index_of(&result.contender) else { return Vec::new() };
    let parts = scene.parts(contender);
    let gates = [
        send_lag(scene, &parts),
        offered_not_achieved(result),
        littles_law(scene, contender),
        run_delay(scene, contender, result, &parts),
        ceiling(scene, contender),
        handicap(scene, result),
        listen_overflows(&parts),
        retransmits(scene, contender, &parts),
    ];
    gates.into_iter().flatten().collect()
}

/// Gates on one contender that also apply to a peak search.
pub(super) fn of_any(scene: &Scene<'_>, result: &ContenderResult) -> impl Iterator<Item = Reading> {
    let gates = scene.record.plan.index_of(&result.contender).map(|contender| {
        let parts = scene.parts(contender);
        [throttled(scene, &parts), stalls(scene, contender)]
    });
    gates.into_iter().flatten().flatten()
}

/// Reads all slices of a contender, including those of rounds that were dropped because of a stall.
fn stalls(scene: &Scene<'_>, contender: usize) -> Option<Reading> {
    let beyond = 1.0 - scene.record.plan.highest_quantile(scene.plan)?;
    let read = scene
        .slices(contender)
        .filter_map(|slice| Some((slice.stalled_share? * slice.elapsed_ns as f64, slice.elapsed_ns)));
    let (stalled_ns, elapsed_ns) = read.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let share = (elapsed_ns > 0).then(|| stalled_ns / elapsed_ns as f64)?;
    let severity = (share > beyond / 2.0).then_some(Severity::Warn);
    let message = format!("{} of its time under load a core stood still", percent(share));
    Some(table::STALLS.say(By::Race, severity, message))
}

/// The gate on a search for one contender's peak. Trials at too high a rate fail individually, also if the generator is busy with them. But a
/// peak near the generator's own ceiling may be the generator's.
pub(super) fn of_search(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    ceiling(scene, scene.record.plan.index_of(&result.contender)?)
}

fn is_closed(scene: &Scene<'_>) -> bool {
    scene.plan.shape.is_closed()
}

/// How long the generator's threads were ready to run but did not, in the rounds that count. Under a closed load, a contender at its limit
/// sets the rate itself: a generator that sleeps between answers has a delay at every wake-up, even on a quiet core.
///
/// Under an open load the rate is fixed, and a delay costs latency. A generator that wakes up a few thousand times per second waits some
/// microseconds each time, most of all on virtual machines. So the gate allows, for each time that a thread came to run, a tenth of the
/// median latency, which is the limit at which a send lag becomes a finding. Only the delay beyond that counts. This allowance does not hide
/// single long waits: every request due in them has a send lag, which is measured for every request.
fn run_delay(
    scene: &Scene<'_>,
    contender: usize,
    result: &ContenderResult,
    parts: &[&ContenderEpoch],
) -> Option<Reading> {
    let held_up = is_closed(scene) && scene.at_limit(result);
    let slices = scene.epochs.iter().flat_map(|epoch| series::kept(epoch, contender));
    let read = slices
        .filter_map(|slice| Some((slice.load_run_delay_ns?, slice.load_runs.unwrap_or(0), slice.elapsed_ns)));
    let sum = |sum: (u64, u64, u64), one: (u64, u64, u64)| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2);
    let (delay_ns, runs, elapsed_ns) = read.fold((0, 0, 0), sum);
    let allowed_ns =
        if is_closed(scene) { 0.0 } else { runs as f64 * table::SEND_LAG.warn * median_latency_ns(parts)? };
    // There is no reading if no slice has its delay, or every round was dropped.
    let threads_ns = Some(elapsed_ns as f64 * scene.load_threads() as f64).filter(|ns| *ns > 0.0)?;
    let share = (delay_ns as f64 - allowed_ns).max(0.0) / threads_ns;
    let beyond = match (held_up, allowed_ns > 0.0) {
        (true, _) => ", while the contender was at its limit",
        (_, true) => ", not counting a tenth of the median latency at each wake-up",
        _ => "",
    };
    let message = format!("{} of its time the generator waited for a CPU{beyond}", percent(share));
    let reading = table::RUN_DELAY.read(By::Race, share, message);
    Some(if held_up { reading.harmless() } else { reading })
}

/// The lag that the generator itself caused. Time that a request waited for a connection is the server's doing. A lag of a tenth of the requests
/// invalidates the median, and a lag of a hundredth p99. If fewer are late, the median is still that of nine requests in ten.
fn send_lag(scene: &Scene<'_>, parts: &[&ContenderEpoch]) -> Option<Reading> {
    if is_closed(scene) {
        return None;
    }
    let latency = merged(parts.iter().map(|part| &part.latency))?;
    let [p50, p99] = [0.5, 0.99].map(|at| (latency.value_at_quantile(at) as f64).max(1.0));
    let [lag_p90, lag_p99] = Lag::of(parts, [0.9, 0.99])?;
    let invalid = |lag: Lag, latency_ns: f64| {
        lag.firm_ns > table::GRAIN_NS && lag.firm_ns / latency_ns > table::SEND_LAG.invalid
    };
    let said = |name: &str, lag: Lag, of: &str, latency_ns: f64| {
        let (lag, share) = (lag.ns, percent(lag.ns / latency_ns));
        let latency = time_ns(latency_ns);
        format!(
            "{} is the {name} of the generator's own send lag, {share} of the {of} of {latency}",
            time_ns(lag)
        )
    };
    let of_median = || said("p90", lag_p90, "median latency", p50);
    let (severity, metrics, message) = match (invalid(lag_p90, p50), invalid(lag_p99, p99)) {
        (true, true) => {
            let tail = percent(lag_p99.ns / p99);
            (Some(Severity::Invalid), Vec::new(), format!("{}; its p99 is {tail} of p99", of_median()))
        }
        (true, false) => {
            let others = Metric::OF_LOADS
                .into_iter()
                .filter(|one| !one.is_tail() && one.row().unit != Unit::Size)
                .collect();
            (Some(Severity::Invalid), others, of_median() + "; p99 stays valid")
        }
        (false, true) => (
            Some(Severity::Invalid),
            Metric::OF_LOADS.into_iter().filter(|one| one.is_tail()).collect(),
            said("p99", lag_p99, "p99", p99) + "; the rest stays valid",
        ),
        (false, false) => {
            let warns = lag_p99.ns > table::GRAIN_NS && lag_p99.ns / p50 > table::SEND_LAG.warn;
            (warns.then_some(Severity::Warn), Vec::new(), said("p99", lag_p99, "median latency", p50))
        }
    };
    Some(Reading { metrics, ..table::SEND_LAG.say(By::Race, severity, message) })
}

/// A percentile of the part of the send lag that the generator caused.
#[derive(Clone, Copy)]
struct Lag {
    ns: f64,
    /// The same, or the highest lower percentile that has [`BEYOND`] requests beyond it: a handful of requests must not invalidate a number.
    firm_ns: f64,
}

impl Lag {
    fn of(parts: &[&ContenderEpoch], quantiles: [f64; 2]) -> Option<[Self; 2]> {
        let of = |lag: &Histogram<u64>, at: f64| lag.value_at_quantile(at.max(0.0));
        let firm = |count: u64, at: f64| at.min(1.0 - BEYOND / count.max(1) as f64);
        if let Some(own) = merged(parts.iter().filter_map(|part| part.own_lag.as_ref())) {
            let at = |at| of(&own, at) as f64;
            return Some(quantiles.map(|one| Self { ns: at(one), firm_ns: at(firm(own.len(), one)) }));
        }
        // Older records do not have it: subtract the wait for a connection from the whole lag.
        let lag = merged(parts.iter().filter_map(|part| part.send_lag.as_ref()))?;
        let wait = merged(parts.iter().filter_map(|part| part.wait.as_ref()));
        let left = |at| of(&lag, at).saturating_sub(wait.as_ref().map_or(0, |wait| of(wait, at))) as f64;
        Some(quantiles.map(|one| Self { ns: left(one), firm_ns: left(firm(lag.len(), one)) }))
    }
}

fn median_latency_ns(parts: &[&ContenderEpoch]) -> Option<f64> {
    Some(merged(parts.iter().map(|part| &part.latency))?.value_at_quantile(0.5) as f64)
}

fn offered_not_achieved(result: &ContenderResult) -> Option<Reading> {
    let achieved = result.achieved_share?;
    let message =
        format!("{} is the share of due requests that the contender kept up with", percent(achieved));
    Some(table::OFFERED_NOT_ACHIEVED.read(By::Race, 1.0 - achieved, message))
}

/// Reads the worst epoch: the two ways of counting must agree in every epoch. Both count the requests of kept rounds, so the time is that of these rounds.
fn littles_law(scene: &Scene<'_>, contender: usize) -> Option<Reading> {
    let read = scene.epochs.iter().filter_map(|epoch| {
        let part = epoch.of(contender)?;
        let in_flight_ns = part.in_flight_ns.filter(|ns| *ns > 0)? as f64;
        let latency = part.latency.decode().ok().filter(|all| !all.is_empty())?;
        let latencies_ns = latency.mean() * latency.len() as f64;
        let kept_ns: u64 = series::kept(epoch, contender).map(|slice| slice.elapsed_ns).sum();
        let over_time = |ns: f64| ns / kept_ns.max(1) as f64;
        Some((
            (in_flight_ns - latencies_ns).abs() / in_flight_ns,
            over_time(in_flight_ns),
            over_time(latencies_ns),
        ))
    });
    let (apart, in_flight, product) = read.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let limit = if is_closed(scene) { table::LITTLES_LAW.invalid } else { table::LITTLE_OPEN };
    Some(table::LITTLES_LAW.say(
        By::Race,
        (apart > limit).then_some(Severity::Invalid),
        format!(
            "{} apart: requests in flight ({}) and throughput times latency ({})",
            percent(apart),
            three_digits(in_flight),
            three_digits(product)
        ),
    ))
}

/// Compares each session's rate, or the peak rate that it found, with the ceiling of that session, and reports the worst.
fn ceiling(scene: &Scene<'_>, contender: usize) -> Option<Reading> {
    let pilot = scene.record.pilots.iter().find(|pilot| pilot.scenario == scene.plan.name)?;
    let searched = scene.plan.shape.objective().is_some();
    let of_session = |ceiling: Option<f64>| {
        let ceiling = ceiling.filter(|rate| *rate > 0.0)?;
        let epochs =
            scene.epochs.iter().filter(|epoch| pilot.ceiling_at(epoch.started_unix_ms) == Some(ceiling));
        let rate =
            if searched { peak_in(epochs.copied(), contender) } else { rate_in(epochs.copied(), contender) };
        Some((rate? / ceiling, ceiling))
    };
    let later = pilot.later_ceilings.iter().map(|one| one.ceiling_rps);
    let sessions = std::iter::once(pilot.ceiling_rps).chain(later).filter_map(of_session);
    let (share, ceiling) = sessions.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(table::CEILING.read(
        By::Race,
        share,
        format!(
            "{} of the {}/s that the generator reaches here against a server that does nothing",
            percent(share),
            three_digits(ceiling)
        ),
    ))
}

/// A contender's rate over these epochs. If every round was dropped, the completions and time of all rounds serve instead.
fn rate_in<'a>(epochs: impl Iterator<Item = &'a Epoch> + Clone, contender: usize) -> Option<f64> {
    throughput(epochs.clone().map(|epoch| series::rates(epoch, contender))).or_else(|| {
        let parts = epochs.filter_map(|epoch| epoch.of(contender));
        let (count, ns) = parts.fold((0, 0), |sum, part| (sum.0 + part.completions, sum.1 + part.loaded_ns));
        (ns > 0).then(|| count as f64 * 1e9 / ns as f64)
    })
}

/// Mean over epochs of the peak rates that were found.
fn peak_in<'a>(epochs: impl Iterator<Item = &'a Epoch>, contender: usize) -> Option<f64> {
    mean(epochs.filter_map(|epoch| epoch.of(contender)?.peak?.found()))
}

/// The generator set the rate only if the contender is slower with the handicap, and by more than chance.
fn handicap(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let pilot = scene.record.pilots.iter().find(|pilot| pilot.scenario == scene.plan.name)?;
    let of_contender = |one: &&PilotContender| one.contender == result.contender;
    let handicap = pilot.contenders.iter().find(of_contender)?.handicap?;
    let slower = 1.0 - handicap.ratio;
    let critical = slower - STANDARD_ERRORS * handicap.standard_error > table::HANDICAP.warn;
    let word = if slower < 0.0 { "faster" } else { "slower" };
    let so = if critical { ": the generator is on the critical path" } else { "" };
    Some(table::HANDICAP.say(
        By::Race,
        critical.then_some(Severity::Warn),
        format!(
            "{} {word} when deadheat makes the generator work {} longer on every request{so}",
            percent(slower.abs()),
            time_ns(handicap.added_ns as f64)
        ),
    ))
}

/// Reads control groups that hold the contender alone. A quota that the scenario sets is read but is not a fault.
fn throttled(scene: &Scene<'_>, parts: &[&ContenderEpoch]) -> Option<Reading> {
    let all = parts.iter().filter_map(|part| part.throttled).reduce(Throttling::plus)?;
    let (counts, asked) = match scene.plan.limits.cpus {
        Some(_) => (false, "the scenario asks for"),
        None => (true, "the scenario did not ask for"),
    };
    let severity = (counts && all.periods > 0).then_some(Severity::Warn);
    Some(table::THROTTLED.say(
        By::Race,
        severity,
        format!(
            "{} times throttled for {} by a CPU quota that {asked}",
            whole(all.periods),
            time_ns(all.ns as f64)
        ),
    ))
}

/// Without control groups, signals freeze and thaw the contenders, and each of their threads runs for a moment to handle a signal. At a fixed
/// rate, a slice may have only a few hundred requests to share that. The limit and both sizes are those of `bench/everybody.py`.
fn frozen_by_signal(scene: &Scene<'_>) -> Option<Reading> {
    if scene.record.machine.cgroup != CgroupKind::None {
        return None;
    }
    let is_cpu = scene.judged.contests.iter().any(|contest| contest.metric == Metric::Cpu);
    let (metrics, size) = if scene.plan.shape.is_closed() {
        (vec![Metric::Throughput, Metric::Cpu], "ratios of unlike servers may be 3 % off")
    } else if is_cpu && scene.plan.shape.rate_per_s().is_some() {
        let size = "with many threads, the measured CPU time per request may be up to 5 % too high";
        (vec![Metric::Cpu], size)
    } else {
        return None;
    };
    let slice_ns = scene.record.plan.slices(scene.plan).slice_ns;
    let short = slice_ns < SHORT_SLICE_NS;
    let so = if short { format!(": {size}") } else { String::new() };
    Some(Reading {
        metrics,
        ..table::FROZEN_BY_SIGNAL.say(
            By::Race,
            short.then_some(Severity::Warn),
            format!("{} of load between two signals that freeze a contender{so}", time_ns(slice_ns as f64)),
        )
    })
}

/// Reads control groups that hold deadheat itself, including its generator.
fn held_back(scene: &Scene<'_>) -> Option<Reading> {
    let parts = || scene.epochs.iter().flat_map(|epoch| &epoch.contenders);
    let all = parts().filter_map(|part| part.host.throttled).reduce(Throttling::plus)?;
    let (whole_ns, of_what): (u64, &str) = if scene.plan.shape.is_load() {
        (parts().map(|part| part.loaded_ns).sum(), "load")
    } else {
        (scene.epochs.iter().map(|epoch| epoch.took_ns).sum(), "time")
    };
    let share = all.ns as f64 / whole_ns.max(1) as f64;
    // A throttled period counts even if its time is less than a nanosecond.
    let read = share.max(if all.periods > 0 { f64::MIN_POSITIVE } else { 0.0 });
    let message = format!(
        "{} times a CPU quota throttled deadheat itself, its generator and all contenders, for {} of the {of_what}",
        whole(all.periods),
        percent(share)
    );
    Some(table::THROTTLED.read(By::Race, read, message).case(1))
}

fn listen_overflows(parts: &[&ContenderEpoch]) -> Option<Reading> {
    let count =
        |reading: &HostReading| Some(reading.listen_overflows?.max(reading.listen_drops.unwrap_or(0)));
    let dropped = total(parts.iter().filter_map(|part| count(&part.host)))?;
    Some(table::LISTEN_OVERFLOWS.read(
        By::Race,
        dropped as f64,
        format!("{} connections found its listen backlog full while it was loaded", whole(dropped)),
    ))
}

/// Segments that the contenders' machine sent again, and those of load hosts if there are any.
fn retransmits(scene: &Scene<'_>, contender: usize, parts: &[&ContenderEpoch]) -> Option<Reading> {
    // Over a link that is full or loses packets, segments are sent again as they are in any real network.
    if scene.plan.link.is_some() {
        return None;
    }
    let here = total(parts.iter().filter_map(|part| part.host.retransmitted_segments));
    let machines = link::machines(scene, contender);
    let hosts = machines.iter().filter(|(name, _)| name.starts_with("load host"));
    let there = total(hosts.filter_map(|(_, read)| read.retransmitted_segments));
    let segments = total(here.into_iter().chain(there))?;
    let of_hosts =
        there.map_or_else(String::new, |there| format!(", {} of them by load hosts", whole(there)));
    let what = if segments == 1 { "TCP segment was" } else { "TCP segments were" };
    let message = format!("{} {what} sent again while it was loaded{of_hosts}", whole(segments));
    let reading = table::RETRANSMITS.read(By::Race, segments as f64, message);
    Some(reading.case(usize::from(scene.record.plan.load_from.is_some())))
}

fn swap(scene: &Scene<'_>) -> Option<Reading> {
    let parts = scene.epochs.iter().flat_map(|epoch| &epoch.contenders);
    let pages = |part: &ContenderEpoch| Some(part.host.swapped_in_pages? + part.host.swapped_out_pages?);
    let swapped = total(parts.filter_map(pages))?;
    Some(table::SWAP.read(
        By::Race,
        swapped as f64,
        format!("{} pages were swapped while contenders were measured", whole(swapped)),
    ))
}

/// The sum of the counts; none if no count could be read, which is not the same as 0.
fn total(counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.reduce(|sum, count| sum + count)
}

/// Merges the histograms; none if there are none or they are all empty.
pub(super) fn merged<'a>(all: impl IntoIterator<Item = &'a EncodedHistogram>) -> Option<Histogram<u64>> {
    EncodedHistogram::merge(all).ok().flatten().filter(|all| !all.is_empty())
}
