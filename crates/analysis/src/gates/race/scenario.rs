//! The gates themselves, one function each: each takes a reading and describes it.
//!
//! A message begins with the value that was read, so that the messages of several contenders fit on one line. Must not know limits and
//! remedies (the table owns them).

use deadheat_record::{End, Epoch, Finding, Method, Metric, Outcomes, Record, Severity, Slice};
use deadheat_stats::average::mean;
use deadheat_stats::{PairJudgement, TwoGroups, Verdict, Welch};

use super::scene::Scene;
use super::{generator, link};
use crate::gates::reading::{Reading, unanswered_by_kind};
use crate::gates::table::{self, By};
use crate::judge::climb;
use crate::number::{furthest, percent, whole};
use crate::report::ContenderResult;
use crate::series::{self, Contest};

/// Level at which the ratios of a contender must differ between the two groups of its rates.
const BIMODAL_ALPHA: f64 = 0.001;

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
        // In a search, trials at too high a rate fail individually, because of errors or a busy generator.
        let searched = scene.plan.shape.objective().is_some();
        let of_rates = [
            not_server_bound(scene, result),
            generator_saturated(scene, result),
            errors(scene, result),
            no_steady_state(scene, result),
            bimodal_starts(scene, result),
        ];
        let of_any = [mismatch(result, searched), no_keep_alive(scene, result)].into_iter().flatten();
        let of_link = scene
            .record
            .plan
            .index_of(&result.contender)
            .map(|contender| link::of_contender(scene, contender));
        let of_any = of_any.chain(generator::of_any(scene, result)).chain(of_link.into_iter().flatten());
        let of_rates = of_rates.into_iter().flatten().chain(generator::of_contender(scene, result));
        let of_rates = of_rates.filter(|_| !searched);
        let of_search = generator::of_search(scene, result).filter(|_| searched);
        let all = of_rates.chain(of_search).chain(of_any);
        all.map(|reading| reading.about(&result.contender)).collect::<Vec<_>>()
    });
    let of_pairs = intermittent(scene).into_iter().chain(serial_correlation(scene));
    let of_pairs = of_pairs.chain(control(scene));
    let of_load = generator::of_scenario(scene)
        .into_iter()
        .chain(link::of_scenario(scene))
        .chain(link::link_differs(scene));
    let of_load = of_load.chain(parity_relaxed(scene));
    of_scenario.into_iter().flatten().chain(of_load).chain(of_contenders).chain(of_pairs).collect()
}

/// Contenders or generator have no reserved cores.
pub(super) fn not_pinned(record: &Record) -> Option<Finding> {
    let pinning = &record.plan.pinning;
    let shared = pinning.server_cpus.is_empty() || pinning.load_cpus.is_empty();
    (shared && record.plan.load_from.is_none()).then(|| {
        table::NOT_PINNED.warning(
            By::Race,
            "contenders and generator share cores and take time from each other; a contender that answers slowly also pays for waking the generator, and one that answers fast does not, so their ratio is too large",
        )
    })
}

/// Reads the number of epochs that count: an epoch in which nothing could be compared does not count towards a look.
fn few_epochs(scene: &Scene<'_>) -> Option<Reading> {
    let first = *scene.record.plan.method_of(scene.plan).looks.first()?;
    let epochs = scene.judged.counted(scene.record, &scene.plan.name);
    let left_out = match scene.epochs.len().saturating_sub(epochs) {
        0 => String::new(),
        more => format!(", {more} more left out"),
    };
    let message = match epochs {
        none @ (0 | 1) if none < first => format!(
            "{none} of the {first} epochs that the first look needs {} measured{left_out}: nothing can be compared",
            if none == 1 { "was" } else { "were" }
        ),
        few if few < first => format!(
            "{few} of the {first} epochs that the first look needs were measured{left_out}: only large differences can be detected"
        ),
        enough => format!("{enough} epochs measured{left_out}; the first look needs {first}"),
    };
    let case = match scene.record.end_of(&scene.plan.name) {
        None => 0,
        Some(End::Budget) => 1,
        Some(_) if scene.epochs.iter().any(|epoch| epoch.is_disturbed()) => 2,
        Some(_) => 3,
    };
    let severity = (epochs < first).then_some(Severity::Warn);
    Some(table::FEW_EPOCHS.say(By::Race, severity, message).case(case))
}

/// Applies only to a closed load on reserved cores: an open load requests no more than its rate.
fn not_server_bound(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    // Over a link, the link may be what limits the rate: that is what such a scenario asks.
    let asks = scene.plan.shape.is_closed() && scene.plan.link.is_none();
    let share = result.cpu_share.filter(|_| asks)?;
    let idle = !scene.at_limit(result);
    let so = if idle { ": something else limits the rate" } else { "" };
    let services = result
        .services_share
        .map_or_else(String::new, |services| format!(" by itself and {} by its services", percent(services)));
    Some(table::NOT_SERVER_BOUND.say(
        By::Race,
        idle.then_some(Severity::Warn),
        format!("{} of its cores used{services} at full load{so}", percent(share)),
    ))
}

/// The share of its threads' time that the generator used while it loaded this contender. Under a closed load, a contender at its limit sets
/// the rate itself, however busy the generator is.
fn generator_saturated(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let contender = scene.record.plan.index_of(&result.contender)?;
    let (threads, cores) = (scene.load_threads(), scene.record.plan.pinning.load_cpus.len());
    let slices = scene.slices(contender);
    // Polling for the next due time is not work: the generator stops it as soon as a request is due.
    let worked_ns = |slice: &Slice| slice.load_cpu_ns.saturating_sub(slice.load_spin_ns.unwrap_or(0));
    let (used_ns, elapsed_ns) =
        slices.fold((0, 0), |(used, elapsed), slice| (used + worked_ns(slice), elapsed + slice.elapsed_ns));
    let share = used_ns as f64 / (elapsed_ns as f64 * threads as f64);
    // Under an open load the rate is fixed, and a generator that cannot keep up affects every latency.
    let closed = scene.plan.shape.is_closed();
    if !share.is_finite() || closed && result.cpu_share.is_none() {
        return None;
    }
    let held_up = closed && scene.at_limit(result);
    let of = if threads == cores { "the generator's cores" } else { "the time of the generator's threads" };
    let so = match (closed, held_up) {
        (true, true) => ", while the contender was at its limit",
        (true, false) => " while the contender had time to spare",
        (false, _) => ": latencies include its own delays",
    };
    let message = format!("{} of {of} used{so}", percent(share));
    let reading = table::GENERATOR_SATURATED.read(By::Race, share, message);
    let reading = reading.case(usize::from(threads < cores));
    Some(if held_up { reading.harmless() } else { reading })
}

/// In a search, an answer with another status fails its trial: a server may refuse what is too much.
fn mismatch(result: &ContenderResult, searched: bool) -> Option<Reading> {
    let (all, total) = (result.outcomes, result.outcomes.total());
    let wrong = if searched { all.mismatch } else { all.wrong() };
    Some(table::MISMATCH.read(
        By::Race,
        wrong as f64 / total.max(1) as f64,
        format!("{} of {} answers under load were not as expected", whole(wrong), whole(total)),
    ))
}

/// A few errors invalidate no value, except percentiles whose tail they are.
fn errors(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let total = result.outcomes.total();
    // A race cuts requests off at the end of each slice, which is no failure.
    let (failed, kinds) = unanswered_by_kind(&Outcomes { cut: 0, ..result.outcomes });
    let kinds = if failed == 0 { String::new() } else { format!(" ({kinds})") };
    let tail = unanswered_tail(scene, scene.record.plan.index_of(&result.contender)?);
    let more = tail.as_ref().map_or("", |(_, more)| more.as_str());
    let reading = Some(table::ERRORS.read(
        By::Race,
        failed as f64 / total.max(1) as f64,
        format!("{} of {} requests failed{kinds}{more}", whole(failed), whole(total)),
    ))?;
    match tail.filter(|_| reading.severity != Some(Severity::Invalid)) {
        Some((metrics, _)) => Some(Reading { severity: Some(Severity::Invalid), metrics, ..reading }),
        None => Some(reading),
    }
}

/// The percentiles that, in any epoch, fall among requests that never got an answer, including those cut off at the end of a slice. Their
/// latency is unknown. With a description of the place.
fn unanswered_tail(scene: &Scene<'_>, contender: usize) -> Option<(Vec<Metric>, String)> {
    let share = |epoch: &&Epoch| Some((series::unanswered_share(epoch, contender).ok()?, epoch.number));
    let (worst, number) =
        scene.epochs.iter().filter_map(share).max_by(|one, other| one.0.total_cmp(&other.0))?;
    let is_read =
        |metric: Metric| metric.row().always_shown || scene.record.plan.metrics(scene.plan).contains(&metric);
    let lost = |metric: &Metric| is_read(*metric) && metric.quantile().is_some_and(|at| worst > 1.0 - at);
    let metrics: Vec<Metric> = Metric::OF_LOADS.into_iter().filter(lost).collect();
    let more =
        format!("; {} of epoch {number} got no answer, more than lie beyond a percentile", percent(worst));
    (!metrics.is_empty()).then_some((metrics, more))
}

/// Reads all rounds: rounds with much stolen time are dropped, so the kept ones never show how noisy the machine is.
fn steal(scene: &Scene<'_>) -> Option<Reading> {
    let share = mean(scene.rounds().map(|round| round.external.steal_share))?;
    Some(table::STEAL.read(
        By::Race,
        share,
        format!("{} of the time of the race's cores taken by the hypervisor", percent(share)),
    ))
}

/// Reads all rounds, as [`steal`] does.
fn foreign_cpu(scene: &Scene<'_>) -> Option<Reading> {
    let share = mean(scene.rounds().filter_map(|round| round.external.foreign_share))?;
    Some(table::FOREIGN_CPU.read(
        By::Race,
        share,
        format!("{} of the time of the race's cores used by other programs", percent(share)),
    ))
}

fn dropped_rounds(scene: &Scene<'_>) -> Option<Reading> {
    let all = scene.rounds().count();
    let dropped = scene.rounds().filter(|round| round.dropped.is_some()).count();
    let share = dropped as f64 / all.max(1) as f64;
    let tail = scene.plan.shape.rate_per_s().and_then(|_| scene.record.plan.highest_quantile(scene.plan));
    let gate = if tail.is_some() { &table::DROPPED_ROUNDS_OF_TAILS } else { &table::DROPPED_ROUNDS };
    let so = if share > gate.invalid { ": the machine is too noisy" } else { "" };
    let message = format!("{dropped} of {all} rounds left out because of disturbances{so}");
    Some(gate.read(By::Race, share, message))
}

fn no_steady_state(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    // A cold scenario measures the first seconds on purpose.
    if scene.plan.traffic.cold {
        return None;
    }
    let contender = scene.record.plan.index_of(&result.contender)?;
    let climb = climb(scene.record, &scene.plan.name, contender)?;
    let word = if climb.change < 0.0 { "slower" } else { "faster" };
    let (severity, case, so) = match (climb.climbs, climb.falls) {
        (true, _) => (Some(Severity::Invalid), 0, ": not yet warm"),
        (_, true) => (Some(Severity::Warn), 1, ": it keeps getting slower"),
        _ => (None, 0, ""),
    };
    // With a fixed rate, CPU time shows the change instead.
    let by = if scene.plan.shape.rate_per_s().is_some() { ", by its CPU time," } else { "" };
    let message = format!(
        "{} {word}{by} at the end of an epoch than at its beginning{so}",
        percent(climb.change.abs())
    );
    Some(table::NO_STEADY_STATE.say(By::Race, severity, message).case(case))
}

/// The contender's own rates must come in two groups, because a ratio does not say which side changed. Its ratios to the other contenders
/// must differ between the same groups, because a machine that changes its speed changes all rates.
fn bimodal_starts(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    let contender = scene.record.plan.index_of(&result.contender)?;
    let racing: Vec<usize> =
        scene.results.iter().filter_map(|one| scene.record.plan.index_of(&one.contender)).collect();
    let paces = series::epoch_paces(scene.record, &scene.plan.name, &racing);
    let at = racing.iter().position(|one| *one == contender)?;
    let own: Vec<f64> = paces.iter().map(|epoch| epoch[at].ln()).collect();
    let others = |epoch: &[f64]| {
        mean(epoch.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, pace)| pace.ln()))
    };
    let ratios: Vec<f64> =
        paces.iter().zip(&own).map(|(epoch, own)| others(epoch).map_or(0.0, |mean| own - mean)).collect();
    let own = TwoGroups::of(&own)?;
    let of = |upper: bool| -> Vec<f64> {
        own.upper.iter().zip(&ratios).filter(|(at, _)| **at == upper).map(|(_, ratio)| *ratio).collect()
    };
    let ratios = Welch::of(&of(false), &of(true))?;
    let differ = (own.high - own.low).exp_m1();
    let least = differ.min(ratios.difference.exp_m1());
    if ratios.interval(BIMODAL_ALPHA).low <= 0.0 || least <= scene.record.plan.method.margin {
        return None;
    }
    let fast = own.upper.iter().filter(|upper| **upper).count();
    let message = format!(
        "{} faster in {fast} of {} epochs than in the others, with nothing between: its starts are of two kinds",
        percent(differ),
        own.upper.len()
    );
    Some(table::BIMODAL_STARTS.say(By::Race, Some(Severity::Warn), message))
}

fn too_noisy(scene: &Scene<'_>) -> Option<Reading> {
    let noisy = scene.judged.judgement.as_ref()?.too_noisy?;
    let margin = percent(scene.record.plan.method.margin);
    let of_several =
        scene.judged.contests.get(noisy.pair).filter(|_| scene.record.plan.metrics(scene.plan).len() > 1);
    let metric = of_several.map_or_else(String::new, |contest| format!(" in {}", contest.metric.word()));
    let most = scene.record.plan.method_of(scene.plan).looks.last().copied().unwrap_or(0);
    let seen = noisy.detectable_ratio.map_or_else(
        || "no difference".into(),
        |ratio| match percent(ratio - 1.0) {
            over if over.starts_with("over ") => format!("only differences {over}"),
            least => format!("differences of {least} or more"),
        },
    );
    let needed = match noisy.epochs_needed {
        Some(epochs) => format!(", and {margin} would take {}", whole(epochs as u64)),
        None => String::new(),
    };
    let message = format!(
        "too noisy for {margin}{metric} here; judging by the first look, {most} epochs can detect {seen}{needed}"
    );
    let more_helps = noisy.epochs_needed.is_some_and(|epochs| epochs <= Method::MOST_EPOCHS);
    Some(table::TOO_NOISY.say(By::Race, Some(Severity::Warn), message).case(usize::from(!more_helps)))
}

/// Does not apply if requests ask to close their connections: then every answer ends one.
fn no_keep_alive(scene: &Scene<'_>, result: &ContenderResult) -> Option<Reading> {
    if scene.record.plan.connects_anew(scene.plan) {
        return None;
    }
    let contender = scene.record.plan.index_of(&result.contender)?;
    let parts = scene.parts(contender).into_iter();
    let (closed, completions) =
        parts.fold((0, 0), |(closed, all), part| (closed + part.closed_by_server, all + part.completions));
    let share = closed as f64 / completions.max(1) as f64;
    Some(table::NO_KEEP_ALIVE.read(
        By::Race,
        share,
        format!("{} of its answers end the connection: its rate includes connecting again", percent(share)),
    ))
}

/// Only for commands without a study: a study's contract says on purpose what is compared.
fn parity_relaxed(scene: &Scene<'_>) -> Option<Reading> {
    let plan = &scene.record.plan;
    let probe = plan.probes.first().filter(|_| plan.is_ad_hoc())?;
    let places =
        probe.body.ignored.iter().map(|path| if path == "$" { "the whole body" } else { path.as_str() });
    let mut ignored: Vec<&str> = probe.headers_that_may_differ().collect();
    ignored.extend(places);
    let message =
        format!("answers may differ in {}: the contenders may do different work", ignored.join(", "));
    (!ignored.is_empty()).then(|| table::PARITY_RELAXED.say(By::Race, Some(Severity::Warn), message))
}

fn intermittent(scene: &Scene<'_>) -> Vec<Reading> {
    let slow = pairs(scene).filter(|(_, judged)| judged.intermittent || judged.stalled);
    slow.map(|(contest, judged)| {
        let name = |index: usize| &scene.record.plan.contenders[index].name;
        let shown =
            |ratio: Option<f64>| ratio.map_or_else(|| "?".into(), |ratio| crate::number::ratio(ratio, 3));
        let (trimmed, total) = (shown(judged.ratio), shown(judged.total_ratio));
        let against = name(contest.baseline);
        let message = match judged.stalled {
            true => format!(
                "ratio {trimmed} against {against}: in some epochs, one of the two answered nothing in over a fifth of the rounds, and these count"
            ),
            false => format!(
                "ratio {trimmed} without the slowest and the fastest fifth of rounds, {total} with all, against {against}"
            ),
        };
        table::INTERMITTENT_SLOW_SLICES
            .say(By::Race, Some(Severity::Warn), message)
            .about(name(contest.contender))
    })
    .collect()
}

/// If epochs follow each other, there is less information than their number suggests. The intervals allow for the mean over the pairs. The gate tests all
/// pairs together and reports the one with the strongest correlation.
fn serial_correlation(scene: &Scene<'_>) -> Option<Reading> {
    let read = pairs(scene).filter_map(|(contest, judged)| Some((contest, judged.serial?)));
    let (contest, serial) = read.max_by(|one, other| one.1.z.total_cmp(&other.1.z))?;
    let name = |index: usize| &scene.record.plan.contenders[index].name;
    let follow = serial.is_significant(pairs(scene).count());
    let so = if follow { ": intervals allow for the mean of all pairs, and are wider" } else { "" };
    let message = format!(
        "{:.2} is the correlation between the ratios to {} of successive epochs, {:.1} standard errors above 0{so}",
        serial.lag1,
        name(contest.baseline),
        serial.z
    );
    Some(
        table::SERIAL_CORRELATION
            .say(By::Race, follow.then_some(Severity::Warn), message)
            .about(name(contest.contender)),
    )
}

/// The baseline against itself: a difference between the two is one that the race makes by itself.
fn control(scene: &Scene<'_>) -> Vec<Reading> {
    let contenders = &scene.record.plan.contenders;
    let baseline = &scene.record.plan.method.baseline;
    let is_control = |contest: &Contest| {
        contenders[contest.contender].control && contenders[contest.baseline].name == *baseline
    };
    let of_control = pairs(scene).filter(|(contest, _)| is_control(contest));
    of_control
        .filter_map(|(contest, judged)| {
            let most = furthest(judged.low, judged.high)?;
            let severity = match judged.verdict {
                Verdict::Faster | Verdict::Slower if judged.negligible => Some(Severity::Warn),
                Verdict::Faster | Verdict::Slower => Some(Severity::Invalid),
                _ => None,
            };
            let message = format!("{} at most between {baseline} and itself", percent(most));
            Some(Reading {
                metrics: vec![contest.metric],
                ..table::CONTROL_DIFFERS.say(By::Race, severity, message)
            })
        })
        .collect()
}

/// Every contest with its judgement.
fn pairs<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = (&'a Contest, &'a PairJudgement)> {
    scene.judged.contests.iter().zip(scene.judged.judgement.iter().flat_map(|all| &all.pairs))
}
