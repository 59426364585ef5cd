//! Checks published values for consistency with each other. It runs nothing, and assumes nothing but what the source itself states.
//!
//! Owns the checks, their tolerances and their sentences. Must not know which machine it runs on.

use deadheat_record::{CheckKind, CheckOutcome, Claim, PublishedCheck};
use deadheat_stats::{Published, Sample, mean_bounds};

use super::figures::{Figure, Place, Run, figure, runs};
use crate::number::{exact, percent, three_digits};

/// The requests in flight of a closed load may differ from its connections by this share. So may ratios and counts from the values that they
/// are computed from.
const TOLERANCE: f64 = 0.02;

/// Every check that the claims allow: first run by run, then ratios and statements about several runs.
pub(super) fn checks(claims: &[Claim]) -> Vec<PublishedCheck> {
    let mut all: Vec<PublishedCheck> = Vec::new();
    for run in runs(claims) {
        all.extend(littles_law(&run));
        all.extend(connect_errors(&run));
        all.extend(requests(&run));
        all.extend(run_length(&run));
        all.extend(order(&run));
        all.extend(timeouts(&run));
    }
    all.extend(claims.iter().filter_map(|claim| ratio(claim, claims)));
    all.extend(claims.iter().filter_map(|claim| spread(claim, claims)));
    all
}

fn check(
    run: &Run<'_>,
    kind: CheckKind,
    outcome: CheckOutcome,
    figures: (Option<f64>, Option<f64>),
    text: String,
) -> PublishedCheck {
    PublishedCheck {
        kind,
        row: run.row.map(Into::into),
        contender: Some(run.contender.into()),
        outcome,
        found: figures.0,
        expected: figures.1,
        text,
    }
}

/// Little's law: throughput times mean latency is the number of requests in flight. A closed load has one request in flight on each
/// connection.
fn littles_law(run: &Run<'_>) -> Option<PublishedCheck> {
    let rate = run.own("throughput_rps")?;
    let latencies = run.latencies();
    let mean = latencies.iter().find(|(place, ..)| *place == Place::Mean);
    if latencies.is_empty() || run.setting("rate_rps").is_some() {
        return None;
    }
    let Some(connections) = run.setting("connections") else {
        let text =
            "the source states no number of connections to check throughput and latency against".into();
        return Some(check(run, CheckKind::LittlesLaw, CheckOutcome::Untestable, (None, None), text));
    };
    match mean {
        Some((_, mean, _)) => Some(in_flight(run, &rate, mean, &connections)),
        None => between(run, &rate, &latencies, &connections),
    }
}

fn in_flight(run: &Run<'_>, rate: &Figure, mean: &Figure, connections: &Figure) -> PublishedCheck {
    let flight = rate.is.times(mean.is);
    let (found, of) = (flight.value, connections.is.value);
    let product = format!("{} x {} = {} requests in flight", rate.shown, mean.shown, three_digits(found));
    let off = flight.off(connections.is);
    let (outcome, text) = if off.abs() <= TOLERANCE {
        (CheckOutcome::Sound, format!("{product}, on {} connections", connections.shown))
    } else if off > 0.0 {
        let why = "a connection has at most one request in flight, so throughput and mean are not of the same requests";
        (CheckOutcome::Contradicts, format!("{product}, on only {} connections: {why}", connections.shown))
    } else {
        let missing = of - found;
        let said = format!(
            "{product}, of {} connections: {}",
            connections.shown,
            unaccounted(run, flight, missing, of)
        );
        (CheckOutcome::Contradicts, said)
    };
    check(run, CheckKind::LittlesLaw, outcome, (Some(found), Some(of)), text)
}

/// Explains what may have happened to connections that had no counted request in flight.
fn unaccounted(run: &Run<'_>, flight: Published, missing: f64, of: f64) -> String {
    let share = percent(missing / of);
    let Some(failed) = run.setting("connect_errors").filter(|failed| failed.is.value > 0.0) else {
        return format!(
            "the other {} ({share}) waited for requests that were never counted, or were never open",
            three_digits(missing)
        );
    };
    let alive = Published::rounded(of - failed.is.value, 0.0);
    let off = flight.off(alive);
    let left = format!("{} of them failed, which leaves {}", failed.shown, exact(alive.value));
    if off.abs() <= TOLERANCE {
        format!("{left}: only these carried the load")
    } else {
        format!("{left}, still {} off", percent(off.abs()))
    }
}

/// Checks Little's law without a mean, using the bounds that the percentiles set for it.
fn between(
    run: &Run<'_>,
    rate: &Figure,
    latencies: &[(Place, Figure, &str)],
    connections: &Figure,
) -> Option<PublishedCheck> {
    let (low, high) = bounds(latencies)?;
    let (least, most) = (rate.is.low * low, high.map(|high| rate.is.high * high));
    let of = connections.is.value;
    let span = most.map_or_else(
        || format!("at least {} requests were in flight", three_digits(least)),
        |most| format!("between {} and {} requests were in flight", three_digits(least), three_digits(most)),
    );
    let possible = least <= of * (1.0 + TOLERANCE) && most.is_none_or(|most| most >= of * (1.0 - TOLERANCE));
    let (outcome, end) = if possible {
        (CheckOutcome::Sound, format!("which is possible on {} connections", connections.shown))
    } else {
        (CheckOutcome::Contradicts, format!("which is impossible on {} connections", connections.shown))
    };
    let text =
        format!("no mean is published; according to {} and the percentiles, {span}, {end}", rate.shown);
    let found = if possible { None } else { Some(if least > of { least } else { most.unwrap_or(least) }) };
    Some(check(run, CheckKind::LittlesLaw, outcome, (found, Some(of)), text))
}

/// The bounds of the mean, in seconds; none without a percentile.
fn bounds(latencies: &[(Place, Figure, &str)]) -> Option<(f64, Option<f64>)> {
    let of =
        |wanted: Place| latencies.iter().find(|(place, ..)| *place == wanted).map(|(_, figure, _)| figure.is);
    let quantiles: Vec<(f64, Published)> = latencies
        .iter()
        .filter_map(|(place, figure, _)| match place {
            Place::Quantile(share) => Some((*share, figure.is)),
            _ => None,
        })
        .collect();
    if quantiles.is_empty() {
        return None;
    }
    let ends = |end: fn(&Published) -> f64| -> Vec<(f64, f64)> {
        quantiles.iter().map(|(share, value)| (*share, end(value))).collect()
    };
    let (low, _) = mean_bounds(of(Place::Min).map(|min| min.low), &ends(|value| value.low), None);
    let (_, high) = mean_bounds(None, &ends(|value| value.high), of(Place::Max).map(|max| max.high));
    Some((low, high))
}

fn connect_errors(run: &Run<'_>) -> Option<PublishedCheck> {
    let failed = run.setting("connect_errors")?;
    let connections = run.setting("connections").filter(|connections| connections.is.value > 0.0)?;
    let share = failed.is.value / connections.is.value;
    let sound = share <= TOLERANCE;
    let outcome = if sound { CheckOutcome::Sound } else { CheckOutcome::Contradicts };
    let left = (connections.is.value - failed.is.value).max(0.0);
    let mut text =
        format!("{} of {} connections failed ({})", failed.shown, connections.shown, percent(share));
    if !sound {
        text += &format!(": it was a load of {} connections", exact(left));
    }
    let figures = (Some(failed.is.value), Some(connections.is.value));
    Some(check(run, CheckKind::ConnectErrors, outcome, figures, text))
}

fn requests(run: &Run<'_>) -> Option<PublishedCheck> {
    let (rate, duration) = (run.own("throughput_rps")?, run.setting("duration_s")?);
    let stated = run.setting("requests")?;
    let made = rate.is.times(duration.is);
    let sound = made.agrees(stated.is, TOLERANCE);
    let outcome = if sound { CheckOutcome::Sound } else { CheckOutcome::Contradicts };
    let text = format!(
        "{} x {} = {} requests, and {} are stated",
        rate.shown,
        duration.shown,
        exact(made.value.round()),
        stated.shown
    );
    Some(check(run, CheckKind::Requests, outcome, (Some(made.value), Some(stated.is.value)), text))
}

/// A run must be longer than the time for which the source says that a program is slow at first. A warm-up before the run covers part of that
/// time.
fn run_length(run: &Run<'_>) -> Option<PublishedCheck> {
    let rate = run.own("throughput_rps")?;
    let (length, how) = if let Some(requests) = run.setting("requests") {
        let length = requests.is.over(rate.is);
        let how =
            format!("{} requests at {} last {} s", requests.shown, rate.shown, three_digits(length.value));
        (length, how)
    } else {
        let duration = run.setting("duration_s")?;
        (duration.is, format!("the run lasts {}", duration.shown))
    };
    let (warm_up, whose) = run.warm_up()?;
    let (passed_s, how, less) = match run.setting("warmup_before_s") {
        Some(before) => (
            before.is.value + length.value,
            format!("{how} after {} of warm-up", before.shown),
            "together less",
        ),
        None => (length.value, how, "less"),
    };
    let sound = passed_s >= warm_up.is.high;
    let outcome = if sound { CheckOutcome::Sound } else { CheckOutcome::Contradicts };
    // Another contender's warm-up shows only that this one's may be as long.
    let (whose, sure) = match whose {
        "" => (String::new(), "is"),
        name if name == run.contender => (String::new(), "is"),
        name => (format!(" for {name}"), "may be"),
    };
    let text = if sound {
        format!("{how}, and the warm-up that is reported{whose} {}", warm_up.shown)
    } else {
        format!(
            "{how}, {less} than the warm-up of {} that is reported{whose}: it {sure} the warm-up that was measured",
            warm_up.shown
        )
    };
    Some(check(run, CheckKind::RunLength, outcome, (Some(passed_s), Some(warm_up.is.low)), text))
}

/// Percentiles must rise, extremes must enclose them, and the mean must lie where they allow.
fn order(run: &Run<'_>) -> Option<PublishedCheck> {
    let latencies = run.latencies();
    if latencies.len() < 2 {
        return None;
    }
    let rising: Vec<&(Place, Figure, &str)> =
        latencies.iter().filter(|(place, ..)| *place != Place::Mean).collect();
    let falls = rising.windows(2).find(|two| two[0].1.is.low > two[1].1.is.high);
    if let Some([(_, first, name), (_, second, other)]) = falls.map(|two| [two[0].clone(), two[1].clone()]) {
        let text = format!("{name} of {} lies above {other} of {}", first.shown, second.shown);
        let figures = (Some(first.is.value), Some(second.is.value));
        return Some(check(run, CheckKind::Order, CheckOutcome::Contradicts, figures, text));
    }
    let mean = latencies.iter().find(|(place, ..)| *place == Place::Mean);
    let ends =
        |wanted: Place| rising.iter().find(|(place, ..)| *place == wanted).map(|(_, figure, _)| figure.is);
    let (low, high) = bounds(&latencies).unwrap_or_else(|| {
        (ends(Place::Min).map_or(0.0, |min| min.low), ends(Place::Max).map(|max| max.high))
    });
    if let Some((_, mean, _)) =
        mean.filter(|(_, mean, _)| mean.is.high < low || high.is_some_and(|high| mean.is.low > high))
    {
        let nearest = if mean.is.high < low { low } else { high.unwrap_or(low) };
        let text = format!(
            "the mean of {} is impossible with these percentiles: it must be {} {} s",
            mean.shown,
            if mean.is.high < low { "at least" } else { "at most" },
            three_digits(nearest)
        );
        return Some(check(
            run,
            CheckKind::Order,
            CheckOutcome::Contradicts,
            (Some(mean.is.value), Some(nearest)),
            text,
        ));
    }
    let text = format!("its {} latencies are in order", latencies.len());
    Some(check(run, CheckKind::Order, CheckOutcome::Sound, (None, None), text))
}

/// A request that timed out has no latency, so the longest latencies are missing from the values.
fn timeouts(run: &Run<'_>) -> Option<PublishedCheck> {
    let timeouts = run.own("timeouts").filter(|timeouts| timeouts.is.value > 0.0)?;
    let latencies = run.latencies();
    let max = latencies.iter().find(|(place, ..)| *place == Place::Max);
    let at = max.map_or_else(String::new, |(_, max, _)| {
        format!(", and the maximum of {} is where counting ended", max.shown)
    });
    let text = format!(
        "requests that timed out: {}, so the latencies leave out the longest times{at}",
        timeouts.shown
    );
    Some(check(run, CheckKind::Timeouts, CheckOutcome::Weakened, (Some(timeouts.is.value), None), text))
}

/// Checks a stated ratio against the quotient of the values that it must be computed from.
fn ratio(claim: &Claim, claims: &[Claim]) -> Option<PublishedCheck> {
    let (of, stated) = (claim.metric.strip_suffix("_ratio")?, figure(claim)?);
    let contender = claim.contender.as_deref()?;
    // A ratio between scenarios is of the same contender, unless it names a baseline.
    let other = claim.baseline_scenario.as_deref();
    let baseline = claim.baseline.as_deref().or(other.map(|_| contender))?;
    let to = other.unwrap_or(baseline);
    let published = |who: &str, run: Option<&str>| {
        let made_of = |one: &&Claim| {
            let name =
                one.metric.strip_prefix(of).is_some_and(|rest| rest.starts_with('_') && rest != "_ratio");
            name && one.baseline.is_none() && one.contender.as_deref() == Some(who) && one.run() == run
        };
        claims.iter().find(made_of).and_then(figure).filter(|one| one.is.value > 0.0)
    };
    let made = |outcome, found, text| {
        let (row, contender) = (claim.run().map(Into::into), Some(contender.into()));
        let expected = Some(stated.is.value);
        Some(PublishedCheck { kind: CheckKind::Ratio, row, contender, outcome, found, expected, text })
    };
    let (Some(one), Some(other)) =
        (published(contender, claim.run()), published(baseline, other.or(claim.run())))
    else {
        let text = format!(
            "{of}: the source states {} times that of {to}, but not the figures behind it",
            stated.shown
        );
        return made(CheckOutcome::Untestable, None, text);
    };
    let quotient = one.is.over(other.is);
    let sound = quotient.agrees(stated.is, TOLERANCE);
    let outcome = if sound { CheckOutcome::Sound } else { CheckOutcome::Contradicts };
    let text = format!(
        "{of} over {to}: {} / {} = {}, and {} is stated",
        one.shown,
        other.shown,
        three_digits(quotient.value),
        stated.shown
    );
    made(outcome, Some(quotient.value), text)
}

/// Checks a stated coefficient of variation (`throughput_cv`) against that of the published runs (rows `ROW, run 1` and so on). Even a small
/// one covers only successive runs of one start, which all share the peculiarities of that start.
fn spread(claim: &Claim, claims: &[Claim]) -> Option<PublishedCheck> {
    let (of, stated) = (claim.metric.strip_suffix("_cv")?, figure(claim)?);
    let run = Run::of(claim, claims)?;
    let single = |one: &&Claim| {
        let row = one.row.as_deref().zip(claim.run());
        let name = one.metric.strip_prefix(of).is_some_and(|rest| rest.starts_with('_') && rest != "_cv");
        name && one.baseline.is_none()
            && one.contender == claim.contender
            && row.is_some_and(|(row, whole)| {
                row.strip_prefix(whole).is_some_and(|rest| rest.starts_with(", run "))
            })
    };
    let figures: Vec<f64> =
        claims.iter().filter(single).filter_map(figure).map(|figure| figure.is.value).collect();
    let limit = if stated.is.low > 0.0 {
        format!("{} to {}", percent(stated.is.low), percent(stated.is.high))
    } else {
        format!("less than {}", percent(stated.is.high))
    };
    let Some((sample, sd)) = Sample::of(&figures).and_then(|sample| Some((sample, sample.sd?))) else {
        let text = format!("{of}: the source states a variation of {limit}, but not the runs behind it");
        return Some(check(&run, CheckKind::Spread, CheckOutcome::Untestable, (None, None), text));
    };
    let cv = sd / sample.mean;
    let apart = cv < stated.is.low * (1.0 - TOLERANCE) || cv > stated.is.high * (1.0 + TOLERANCE);
    let outcome = if apart { CheckOutcome::Contradicts } else { CheckOutcome::Weakened };
    let length = run.setting("requests").filter(|_| of == "throughput");
    let length = length.map_or_else(String::new, |requests| {
        format!(" of {} s each", three_digits(requests.is.value / sample.mean))
    });
    let text = format!(
        "the {} runs vary by {}, and {limit} is stated: successive runs{length} of one start share its memory layout, its compiled code and the machine's state, so this shows how similar they are, but nothing about another start",
        sample.n,
        percent(cv)
    );
    Some(check(&run, CheckKind::Spread, outcome, (Some(cv), Some(stated.is.high)), text))
}
