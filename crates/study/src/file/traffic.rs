//! Reads the further settings of a load: lists of paths, popularity, a rate that changes, a cold start of the load, TLS.

use std::fs;

use deadheat_load::Rate;
use deadheat_record::{Replay, Traffic};
use toml::Spanned;

use super::complaint::Complaint;
use super::fields::Fields;
use super::replay::MOST_PER_S;
use super::values::path_problem;
use super::words::shown;

/// The largest accepted exponent of popularity.
const STEEPEST: f64 = 10.0;
/// The most paths of one probe. The record contains all of them.
const MOST_PATHS: usize = 20_000;

/// A rate as the file gives it: a number, or stages.
pub(super) enum Written {
    /// Requests per second.
    Steady(Spanned<f64>),
    /// The mean rate, and the stages whose mean it is.
    Stages(f64, String),
}

/// Reads `rate`. `None` if it is missing or invalid.
pub(super) fn rate(fields: &Fields<'_, '_>) -> Option<Written> {
    if fields.get("rate").is_some_and(|value| value.get_ref().is_str()) {
        return stages(fields, &fields.text("rate")?);
    }
    let rate = fields.number("rate")?;
    if *rate.get_ref() <= 0.0 || *rate.get_ref() > MOST_PER_S {
        let title =
            format!("`rate` of [[scenario]] must be above 0 and at most {MOST_PER_S} requests per second");
        fields.complain(Complaint::new(rate.span(), title, format!("found {}", rate.get_ref())));
    }
    Some(Written::Steady(rate))
}

fn stages(fields: &Fields<'_, '_>, text: &Spanned<String>) -> Option<Written> {
    let example = "for example: rate = \"1000:2s,5000:1s,1000:2s\"; each slice runs all stages";
    let rate = match text.get_ref().parse::<Rate>() {
        Ok(rate) => rate,
        Err(error) => {
            let complaint = Complaint::new(text.span(), error.to_string(), "this rate");
            fields.complain(complaint.help(example));
            return None;
        }
    };
    if rate.as_stages().iter().any(|stage| stage.duration.is_zero()) {
        let title =
            "every stage of a scenario's rate needs a duration: together they are the length of a slice";
        fields.complain(Complaint::new(text.span(), title, "the last stage has none").help(example));
        return None;
    }
    if rate.as_stages().iter().any(|stage| stage.from_per_s.max(stage.to_per_s) > MOST_PER_S) {
        let title = format!("`rate` of [[scenario]] is at most {MOST_PER_S} requests per second");
        fields.complain(Complaint::new(text.span(), title, "a stage with more").help(example));
        return None;
    }
    let duration = rate.as_stages().iter().map(|stage| stage.duration).sum();
    Some(Written::Stages(rate.mean_over(duration), text.get_ref().clone()))
}

/// Reads `zipf`, `warm_up` and `tls` of a scenario whose rate has these stages, and whose recorded requests have this order.
pub(super) fn traffic(fields: &Fields<'_, '_>, stages: Option<String>, replay: Option<Replay>) -> Traffic {
    let zipf = fields.number("zipf");
    if let Some(zipf) = zipf.as_ref().filter(|zipf| !(0.0..=STEEPEST).contains(zipf.get_ref())) {
        let title = format!("`zipf` of [[scenario]] must be from 0 (all alike) to {STEEPEST}");
        let complaint = Complaint::new(zipf.span(), title, format!("found {}", zipf.get_ref()));
        fields.complain(complaint.help("popularity of pages and files is often near 1: zipf = 1.0"));
    }
    let cold = fields.flag("warm_up").is_some_and(|warm_up| !warm_up.into_inner());
    let timed = matches!(replay, Some(Replay::Timing { .. })).then_some("order");
    let rated = ["rate", "slo"].into_iter().find(|key| fields.get(key).is_some()).or(timed);
    if let (true, Some(key)) = (cold, rated) {
        let title = format!(
            "`warm_up = false` asks how fast a contender is at first, at its full rate: `{key}` cannot be combined with it"
        );
        fields.complain(
            Complaint::new(fields.key_span(key), title, "another rate").help("keep one of the two"),
        );
    }
    let tls = fields.flag("tls").is_some_and(Spanned::into_inner);
    if tls && fields.get("measure").is_some() {
        let title = "a scenario with `measure` sends no requests, so `tls` has no effect";
        let complaint = Complaint::new(fields.key_span("tls"), title, "this has no effect");
        fields.complain(complaint.help("keep one of the two"));
    }
    Traffic { zipf: zipf.map(Spanned::into_inner), stages, cold, replay, tls }
}

/// Reads the file named by `paths_from`: one path per line. Skips empty lines and lines that begin with `#`.
pub(super) fn paths(fields: &Fields<'_, '_>) -> Vec<String> {
    let Some(file) = fields.text("paths_from") else { return Vec::new() };
    let complain = |title: String| {
        let complaint = Complaint::new(file.span(), title, "this file");
        fields.complain(complaint.help("a path on each line, such as /items?id=7; # begins a comment"));
    };
    let path = fields.reading().path(&file, "file", std::path::Path::is_file);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) if !path.is_file() => return Vec::new(),
        Err(error) => {
            complain(format!("cannot read `{}` as UTF-8 text: {error}", shown(file.get_ref())));
            return Vec::new();
        }
    };
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let paths: Vec<(usize, &str)> = lines.collect();
    for (at, path) in &paths {
        if let Some(problem) = path_problem(path) {
            complain(format!("line {} of `{}`: {problem}", at + 1, shown(file.get_ref())));
            return Vec::new();
        }
    }
    if paths.is_empty() || paths.len() > MOST_PATHS {
        complain(format!(
            "`{}` has {} paths; it takes 1 to {MOST_PATHS}",
            shown(file.get_ref()),
            paths.len()
        ));
        return Vec::new();
    }
    paths.into_iter().map(|(_, path)| path.to_owned()).collect()
}
