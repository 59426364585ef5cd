//! The gates themselves, one function each: a reading, its limits, what is said and what to do.
//!
//! Owns the limits. A message begins with the figure that was read, so that those of several contenders can stand on
//! one line.

use deadheat_record::{End, Epoch, Finding, Method, Metric, Record, Severity, Slice};
use deadheat_stats::{FEWEST_SLOPES, PairJudgement};

use super::generator;
use super::scene::{Limits, NONE, Reading, Scene};
use crate::average::mean;
use crate::judge::climb;
use crate::number::{percent, whole};
use crate::report::ContenderResult;
use crate::series::{self, Contest};

const GENERATOR: Limits = Limits { warn: 0.70, invalid: 0.85 };
const WRONG: Limits = Limits { warn: 0.0, invalid: 0.001 };
const STEAL: Limits = Limits { warn: 0.01, invalid: 0.05 };
const FOREIGN: Limits = Limits { warn: 0.02, invalid: 0.10 };
const DROPPED: Limits = Limits { warn: 0.20, invalid: 0.20 };
const CLOSED: Limits = Limits { warn: 0.01, invalid: f64::INFINITY };
/// What helps against a machine that others use.
const DISTURBED: &str = "race again where less disturbs it; `deadheat doctor` shows what does";

/// All gates of a scenario.
pub(super) fn all(scene: &Scene<'_>) -> Vec<Reading> {
    if scene.epochs.is_empty() {
        return Vec::new();
    }
    if !scene.plan.shape.is_load() {
        let of_rounds =
            [few_epochs(scene), steal(scene), foreign_cpu(scene), dropped_rounds(scene), too_noisy(scene)];
        return of_rounds.into_iter().flatten().chain(generator::of_scenario(scene)).collect();
    }
    let of_scenario =
        [few_epochs(scene), steal(scene), foreign_cpu(scene), dropped_rounds(scene), too_noisy(scene)];
    let of_contenders = scene.results.iter().flat_map(|result| {
        // Trials at too high a rate are failed by errors and by a busy generator one by one.
        let searched = scene.plan.shape.objective().is_some();
        let of_rates = [
            not_server_bound(scene, result),
            generator_saturated(scene, result),
            errors(scene, result),
            no_steady_state(scene, result),
        ];
        let of_any = [mismatch(result), no_keep_alive(scene, result)].into_iter().flatten();
        let of_any = of_any.chain(generator::of_any(scene, result));
        let of_rates = of_rates.into_iter().flatten().chain(generator::of_contender(scene, result));
        let of_rates = of_rates.filter(|_| !searched);
        let of_search = generator::of_search(scene, result).filter(|_| searched);
        let all = of_rates.chain(of_search).chain(of_any);
        all.map(|reading| reading.about(&result.contender)).collect::<Vec<_>>()
    });
    let of_pairs = intermittent(scene).into_iter().chain(serial_correlation(scene));
    let of_load = generator::of_scenario(scene);
    of_scenario.into_iter().flatten().chain(of_load).chain(of_contenders).chain(of_pairs).collect()
}

/// Nobody has cores of its own.
pub(super) fn not_pinned(record: &Record) -> Option<Finding> {
    let pinning = &record.plan.pinning;
    (pinning.server_cpus.is_empty() || pinning.load_cpus.is_empty()).then(|| {
        Finding::warn(
            "not-pinned",
            "contenders and generator share their cores: each takes time from the other, the generator sleeps while it waits, and a contender \
             that answers slowly pays for waking it while one that answers fast does not, so that their ratio is too large",
            "give each cores of its own with --server-cpus and --load-cpus",
        )
    })
}

/// Of the epochs that count: one in which nothing could be compared is no epoch of a look.
fn few_epochs(scene: &Scene<'_>) -> Option<Reading> {
    let first = *scene.record.plan.method_of(scene.plan).looks.first()?;
    let epochs = scene.judged.counted(scene.record, &scene.plan.name);
    let left_out = match scene.epochs.len().saturating_sub(epochs) {
        0 => String::new(),
        more => format!(", {more} more left out"),
    };
    Some(Reading {
        severity: (epochs < first).then_some(Severity::Warn),
        code: "few-epochs",
        contender: None,
        metrics: Vec::new(),
        message: match epochs < first {
            true => format!(
                "{epochs} of the {first} epochs of a first look measured{left_out}: {} can be told apart",
                if epochs == 0 { "nothing" } else { "only large differences" }
            ),
            false => format!("{epochs} epochs measured{left_out}, and {first} are the least"),
        },
        // A scenario that ended is not gone on with.
        remedy: match scene.record.end_of(&scene.plan.name) {
            None => "go on with --resume",
            Some(End::Budget) => "give the race more time with --budget",
            Some(_) if scene.epochs.iter().any(|epoch| epoch.is_disturbed()) => DISTURBED,
            Some(_) => "mend first what else is found here, and race again",
        },
    })
}

/// Only for a closed load on cores of its own: an open load asks for no more than its rate.
fn not_server_bound(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let closed = scene.plan.shape.is_closed();
    let share = result.cpu_share.filter(|_| closed)?;
    let idle = !scene.at_limit(result);
    let so = if idle { ": something else limits the rate" } else { "" };
    let services = result
        .services_share
        .map_or_else(String::new, |services| format!(" by itself and {} by its services", percent(services)));
    Some(Reading {
        severity: idle.then_some(Severity::Warn),
        code: "not-server-bound",
        contender: None,
        metrics: Vec::new(),
        message: format!("{} of its cores used{services} at full load{so}", percent(share)),
        remedy: "raise the number of connections, or look for what it waits for: a lock, a disk, a database, one thread",
    })
}

/// How much of its threads' time the generator used while it loaded this contender. Under a closed load, a contender at its own
/// limit is what set the rate, however busy the generator was.
fn generator_saturated(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let contender = scene.index_of(&result.contender)?;
    let (threads, cores) = (scene.load_threads(), scene.record.plan.pinning.load_cpus.len());
    let slices = scene.slices(contender);
    // Looking out for the next due time is no work: it is left for a request that is due.
    let worked_ns = |slice: &Slice| slice.load_cpu_ns.saturating_sub(slice.load_spin_ns.unwrap_or(0));
    let (used_ns, elapsed_ns) =
        slices.fold((0, 0), |(used, elapsed), slice| (used + worked_ns(slice), elapsed + slice.elapsed_ns));
    let share = used_ns as f64 / (elapsed_ns as f64 * threads as f64);
    // Under an open load the rate is given, and a generator that cannot keep to it is in every latency.
    let closed = scene.plan.shape.is_closed();
    if !share.is_finite() || closed && result.cpu_share.is_none() {
        return None;
    }
    let held_up = closed && scene.at_limit(result);
    let of = if threads == cores { "the generator's cores" } else { "the time of the generator's threads" };
    let so = match (closed, held_up) {
        (true, true) => ", while the contender was at its limit",
        (true, false) => " while the contender had time to spare",
        (false, _) => ": latencies hold its own delays",
    };
    let remedy = if threads < cores {
        "raise the number of connections: the generator has no more threads than those"
    } else {
        "give the generator more cores with --load-cpus, or the contender fewer with --server-cpus"
    };
    let limits = if held_up { NONE } else { GENERATOR };
    limits.judge("generator-saturated", share, format!("{} of {of} used{so}", percent(share)), remedy)
}

fn mismatch(result: &ContenderResult) -> Option<Reading> {
    let (wrong, total) = (result.outcomes.wrong(), result.outcomes.total());
    WRONG.judge(
        "mismatch",
        wrong as f64 / total.max(1) as f64,
        format!("{} of {} answers under load not the expected ones", whole(wrong), whole(total)),
        "find out with `deadheat check` and the contender's log why it answers differently under load",
    )
}

/// A handful takes no number away, but percentiles where it is their tail.
fn errors(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let outcomes = &result.outcomes;
    let kinds = [
        ("connect", outcomes.connect),
        ("read", outcomes.read),
        ("write", outcomes.write),
        ("timeout", outcomes.timeout),
        ("protocol", outcomes.protocol),
    ];
    let failed: u64 = kinds.iter().map(|(_, count)| count).sum();
    let seen: Vec<String> =
        kinds.iter().filter(|(_, n)| *n > 0).map(|(kind, n)| format!("{kind} {}", whole(*n))).collect();
    let seen = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join(", ")) };
    let tail = unanswered_tail(scene, scene.index_of(&result.contender)?);
    let more = tail.as_ref().map_or("", |(_, more)| more.as_str());
    let reading = WRONG.judge(
        "errors",
        failed as f64 / outcomes.total().max(1) as f64,
        format!("{} of {} requests failed{seen}{more}", whole(failed), whole(outcomes.total())),
        "look into the contender's log; lower the number of connections or the rate until all are answered",
    )?;
    match tail.filter(|_| reading.severity != Some(Severity::Invalid)) {
        Some((metrics, _)) => Some(Reading { severity: Some(Severity::Invalid), metrics, ..reading }),
        None => Some(reading),
    }
}

/// The percentiles that lie among requests that never got an answer, those cut off at the end of a slice among them, in any epoch: how
/// long these would have taken nobody knows. With where that was.
fn unanswered_tail(scene: &Scene<'_>, contender: usize) -> Option<(Vec<Metric>, String)> {
    let share = |epoch: &&Epoch| {
        let unanswered = Some(series::unanswered(epoch, contender)).filter(|count| *count > 0)?;
        let answered = epoch.of(contender)?.latency.decode().ok()?.len();
        Some((unanswered as f64 / (answered + unanswered) as f64, epoch.number))
    };
    let (worst, number) =
        scene.epochs.iter().filter_map(share).max_by(|one, other| one.0.total_cmp(&other.0))?;
    let lost = |metric: &Metric| metric.quantile().is_some_and(|at| worst > 1.0 - at);
    let metrics: Vec<Metric> = Metric::OF_LOADS.into_iter().filter(lost).collect();
    let more =
        format!("; {} of epoch {number} got no answer, more than lie beyond a percentile", percent(worst));
    (!metrics.is_empty()).then_some((metrics, more))
}

/// Of all rounds: those with much of it are left out, so that those that were kept never show how noisy the machine is.
fn steal(scene: &Scene<'_>) -> Option<Reading> {
    let share = mean(scene.rounds().map(|round| round.external.steal_share))?;
    STEAL.judge(
        "steal",
        share,
        format!("{} of the time taken from our cores by the hypervisor", percent(share)),
        "use a machine that is not shared, or race at a quieter hour",
    )
}

/// Of all rounds, as [`steal`].
fn foreign_cpu(scene: &Scene<'_>) -> Option<Reading> {
    let share = mean(scene.rounds().filter_map(|round| round.external.foreign_share))?;
    FOREIGN.judge(
        "foreign-cpu",
        share,
        format!("{} of our cores' time used by other programs", percent(share)),
        "stop what else runs (`top` shows it), or choose other cores with --server-cpus and --load-cpus",
    )
}

fn dropped_rounds(scene: &Scene<'_>) -> Option<Reading> {
    let all = scene.rounds().count();
    let dropped = scene.rounds().filter(|round| round.dropped.is_some()).count();
    let share = dropped as f64 / all.max(1) as f64;
    let so = if share > DROPPED.warn { ": the machine is too noisy" } else { "" };
    DROPPED.judge(
        "dropped-rounds",
        share,
        format!("{dropped} of {all} rounds left out because of disturbances{so}"),
        "use a quieter machine; `deadheat doctor` shows what disturbs this one",
    )
}

fn no_steady_state(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    // Its first seconds are what such a scenario asks for.
    if scene.plan.traffic.cold {
        return None;
    }
    let contender = scene.index_of(&result.contender)?;
    let paces = series::paces(scene.record, &scene.plan.name, contender);
    if paces.iter().filter(|epoch| epoch.len() > 1).count() < FEWEST_SLOPES {
        return None;
    }
    let climb = climb(scene.record, &scene.plan.name, contender)?;
    let (word, so) = if climb.change < 0.0 { ("slower", "") } else { ("faster", ": not yet warm") };
    let so = if climb.climbs { so } else { "" };
    // Its rate is given.
    let by = if scene.plan.shape.rate_per_s().is_some() { ", by its CPU time," } else { "" };
    Some(Reading {
        severity: climb.climbs.then_some(Severity::Invalid),
        code: "no-steady-state",
        contender: None,
        metrics: Vec::new(),
        message: format!(
            "{} {word}{by} at the end of an epoch than at its beginning{so}",
            percent(climb.change.abs())
        ),
        remedy: "give it a longer warm-up, or find out what it keeps on doing (compiling, caching, growing)",
    })
}

fn too_noisy(scene: &Scene<'_>) -> Option<Reading> {
    let noisy = scene.judged.judgement.as_ref()?.too_noisy?;
    let margin = percent(scene.record.plan.method.margin);
    let of_several =
        scene.judged.contests.get(noisy.pair).filter(|_| scene.record.plan.metrics(scene.plan).len() > 1);
    let metric = of_several.map_or_else(String::new, |contest| format!(" in {}", contest.metric.word()));
    let seen = match noisy.detectable_ratio {
        Some(ratio) => format!("by its first look this race can tell apart {}", percent(ratio - 1.0)),
        None => "by its first look this race can tell nothing apart".into(),
    };
    let needed = match noisy.epochs_needed {
        Some(epochs) => format!(", and {margin} would take {} epochs", whole(epochs as u64)),
        None => String::new(),
    };
    Some(Reading {
        severity: Some(Severity::Warn),
        code: "too-noisy",
        contender: None,
        metrics: Vec::new(),
        message: format!("too noisy for {margin}{metric} here; {seen}{needed}"),
        remedy: match noisy.epochs_needed {
            Some(epochs) if epochs <= Method::MOST_EPOCHS => {
                "use a quieter machine, ask for a wider --margin, or allow more with --epochs and --budget"
            }
            _ => "use a quieter machine, or ask for a wider --margin",
        },
    })
}

/// Where requests themselves ask for the end of their connections, every answer ends one.
fn no_keep_alive(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    if scene.record.plan.connects_anew(scene.plan) {
        return None;
    }
    let contender = scene.index_of(&result.contender)?;
    let parts = scene.parts(contender).into_iter();
    let (closed, completions) =
        parts.fold((0, 0), |(closed, all), part| (closed + part.closed_by_server, all + part.completions));
    let share = closed as f64 / completions.max(1) as f64;
    CLOSED.judge(
        "no-keep-alive",
        share,
        format!("{} of its answers end the connection: its rate includes connecting again", percent(share)),
        "turn keep-alive on, or raise the contender's limit of requests per connection",
    )
}

fn intermittent(scene: &Scene<'_>) -> Vec<Reading> {
    let slow = pairs(scene).filter(|(_, judged)| judged.intermittent);
    slow.map(|(contest, judged)| {
        let name = |index: usize| &scene.record.plan.contenders[index].name;
        let shown =
            |ratio: Option<f64>| ratio.map_or_else(|| "?".into(), |ratio| crate::number::ratio(ratio, 3));
        let (trimmed, total) = (shown(judged.ratio), shown(judged.total_ratio));
        Reading {
            severity: Some(Severity::Warn),
            code: "intermittent-slow-slices",
            contender: Some(name(contest.contender).clone()),
            metrics: Vec::new(),
            message: format!(
                "ratio {trimmed} without the slowest and fastest fifth of rounds, {total} with all, against {}",
                name(contest.baseline)
            ),
            remedy: "look at the slices over time: one of the two stalls now and then (collector, timer, throttling)",
        }
    })
    .collect()
}

/// Epochs that follow each other are fewer than they look, so that the interval is too narrow. All pairs are asked together, and
/// the one that shows it most is told of.
fn serial_correlation(scene: &Scene<'_>) -> Option<Reading> {
    let read = pairs(scene).filter_map(|(contest, judged)| Some((contest, judged.serial?)));
    let (contest, serial) = read.max_by(|one, other| one.1.z.total_cmp(&other.1.z))?;
    let name = |index: usize| &scene.record.plan.contenders[index].name;
    let follow = serial.is_significant(pairs(scene).count());
    let so = if follow { ": the interval is too narrow" } else { "" };
    Some(Reading {
        severity: follow.then_some(Severity::Warn),
        code: "serial-correlation",
        contender: Some(name(contest.contender).clone()),
        metrics: Vec::new(),
        message: format!(
            "{:.2} is the correlation of an epoch's ratio to {} with that of the epoch before, {:.1} standard errors above none{so}",
            serial.lag1,
            name(contest.baseline),
            serial.z
        ),
        remedy: "race again at another hour or on a machine whose speed does not drift; take a verdict near its limit for nothing",
    })
}

/// Every contest, with what the judge says of it.
fn pairs<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = (&'a Contest, &'a PairJudgement)> {
    scene.judged.contests.iter().zip(scene.judged.judgement.iter().flat_map(|all| &all.pairs))
}
