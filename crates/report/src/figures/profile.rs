//! Where contenders spend CPU time: which functions gained most, and flame graphs.
//!
//! Owns: these figures. Must not know: how stacks are sampled.

use std::collections::BTreeMap;

use deadheat_analysis::number::{percent, time_ns, whole};
use deadheat_analysis::{Call, FunctionGain, Gains, ProfileResult, calls};
use deadheat_record::{Function, ProfilePass};

use super::model::{Cell, Color, Drawing, Figure, Flame, Flames, Key, Section, Table};
use super::{Scope, Set};
use crate::profile;

/// The share of the width below which a call is not drawn.
const LEAST_WIDTH: f64 = 0.001;
/// A difference below this strength of its colour is drawn as none.
const LEAST_STRENGTH: f64 = 0.2;
/// The most levels that are drawn.
const MOST_LEVELS: u32 = 72;
/// The most functions in a table.
const MOST_ROWS: usize = 40;

/// The functions that gained most CPU time per request, and the counts per request, as tables.
pub(super) fn gains(scope: &Scope<'_>) -> Vec<Figure> {
    scope.each(|one| one.profiles.len()).iter().flat_map(|set| tables(set)).collect()
}

fn tables(set: &Set<'_>) -> Vec<Figure> {
    let scenario = set.scenarios[0];
    let figure = |kind: &'static str, table| {
        Figure::new((kind, Section::Functions), &scenario.name, "", None::<Drawing>, table)
    };
    let at = scenario.profiles.first().map_or_else(String::new, |one| format!(" at {}", profile::rate(one)));
    let gained = |one: &Gains| {
        let [baseline, contender] = [&one.baseline, &one.contender].map(|name| format!("#in {name}"));
        let share = format!("#of {}", one.contender);
        let columns = ["function", "place", &baseline, &contender, "#gained", &share, "most of it"];
        let rows = one.functions.iter().map(gain);
        let counted =
            if one.functions.is_empty() { String::new() } else { format!("; {}", profile::COUNTED) };
        let caption = set.title(&format!(
            "{} compared with {}: {}{at}{}{counted}",
            one.contender,
            one.baseline,
            profile::gained(one),
            profile::unexplained(one)
        ));
        figure("gains", Table::new(caption, &columns, rows))
    };
    let names: Vec<String> = scenario.profiles.iter().map(|one| format!("#{}", one.contender)).collect();
    let columns: Vec<&str> = std::iter::once("per request").chain(names.iter().map(String::as_str)).collect();
    let counts = profile::counts(&scenario.profiles).into_iter().map(|(title, values)| {
        let values = values.into_iter().map(|(text, value)| Cell::Number(text, value));
        std::iter::once(Cell::text(title)).chain(values).collect()
    });
    let lower = profile::lower_rate(scenario).map_or_else(String::new, |why| format!("; {why}"));
    let title = set.title(&format!("Counts per request in this pass{at}{lower}"));
    let counts = figure("counts", Table::new(title, &columns, counts));
    scenario.gains.iter().map(gained).chain([counts]).collect()
}

fn gain(one: &FunctionGain) -> Vec<Cell> {
    vec![
        Cell::text(&one.function),
        Cell::text(profile::place(one.file.as_deref(), one.line)),
        Cell::number(Some(one.baseline_ns), time_ns),
        Cell::number(Some(one.contender_ns), time_ns),
        Cell::number(Some(one.gained_ns), time_ns),
        Cell::number(Some(one.share), percent),
        Cell::text(profile::called(one)),
    ]
}

/// A flame graph for each comparison, and one for each contender.
pub(super) fn flames(scope: &Scope<'_>) -> Vec<Figure> {
    scope.each(|one| one.profiles.len()).iter().flat_map(|set| graphs(scope, set)).collect()
}

fn graphs(scope: &Scope<'_>, set: &Set<'_>) -> Vec<Figure> {
    let scenario = set.scenarios[0];
    let pass = |name: &str| scope.report.record.profiles_of(&scenario.name).find(|one| one.contender == name);
    let differences = scenario
        .gains
        .iter()
        .filter_map(|one| Some(difference(set, one, pass(&one.baseline)?, pass(&one.contender)?)));
    let single = |one: &ProfileResult| Some(contender(scope, set, one, pass(&one.contender)?));
    differences.chain(scenario.profiles.iter().filter_map(single)).collect()
}

/// What an area means, and how to look closer.
const HOW: &str = "The width is CPU time per request; a function stands above those that it calls.";

fn difference(set: &Set<'_>, gains: &Gains, baseline: &ProfilePass, pass: &ProfilePass) -> Figure {
    let calls = calls(pass, Some(baseline));
    let most = calls.iter().map(|one| (one.ns - one.baseline_ns).abs()).fold(f64::MIN_POSITIVE, f64::max);
    let flames = drawn(&calls, |one| {
        let change = one.ns - one.baseline_ns;
        let strength = (change.abs() / most).sqrt();
        let (color, strength) = match (strength < LEAST_STRENGTH, change > 0.0) {
            (true, _) => (Color::Neutral, LEAST_STRENGTH),
            (false, true) => (Color::Bad, strength),
            (false, false) => (Color::Good, strength),
        };
        let sign = if change > 0.0 { "+" } else { "-" };
        (color, strength, format!("{sign}{} against {}", time_ns(change.abs()), gains.baseline))
    });
    let title = format!("{} compared with {}", gains.contender, gains.baseline);
    Figure {
        note: format!("{HOW} Calls that are missing in {} have no width.", gains.contender),
        legend: [
            (format!("takes longer than in {}", gains.baseline), Color::Bad),
            (format!("takes less time than in {}", gains.baseline), Color::Good),
            ("about the same".to_owned(), Color::Neutral),
        ]
        .map(|(label, color)| Key { label, color })
        .into(),
        ..figure(set, "difference", &gains.contender, &title, flames, pass)
    }
}

fn contender(scope: &Scope<'_>, set: &Set<'_>, result: &ProfileResult, pass: &ProfilePass) -> Figure {
    let calls = calls(pass, None);
    let flames =
        drawn(&calls, |one| (scope.color(&pass.contender), shade(&one.function.name), String::new()));
    let only = if result.user_only { " The kernel's own code was not sampled." } else { "" };
    Figure {
        note: format!("{HOW} From {} stacks.{only}", whole(result.samples)),
        ..figure(set, "flames", &pass.contender, &format!("CPU time of {}", pass.contender), flames, pass)
    }
}

fn figure(
    set: &Set<'_>,
    kind: &'static str,
    of: &str,
    title: &str,
    flames: Flames,
    pass: &ProfilePass,
) -> Figure {
    let total: u64 = pass.stacks.samples.max(1);
    let each_ns = pass.used.cpu_ns as f64 / pass.requests.max(1) as f64;
    let mut functions: Vec<&Function> = pass.stacks.functions.iter().filter(|one| one.own > 0).collect();
    functions.sort_by_key(|one| std::cmp::Reverse(one.own));
    let row = |one: &&Function| {
        let share = one.own as f64 / total as f64;
        vec![
            Cell::text(&one.name),
            Cell::text(profile::place(one.file.as_deref(), one.line)),
            Cell::number(Some(share * each_ns), time_ns),
            Cell::number(Some(share), percent),
        ]
    };
    let caption = set.title(&format!("{title}: the functions themselves, without what they call"));
    let rows = functions.iter().take(MOST_ROWS).map(row);
    let table = Table::new(caption, &["function", "place", "#CPU time per request", "#share"], rows);
    let says = functions
        .iter()
        .take(5)
        .map(|one| format!("{}: {}", one.name, percent(one.own as f64 / total as f64)));
    let drawing = (!flames.frames.is_empty()).then_some(Drawing::Flames(flames));
    let subject = format!("{}-{of}", set.subject());
    Figure {
        says: says.collect(),
        ..Figure::new((kind, Section::Functions), subject, set.title(title), drawing, table)
    }
}

/// A strength that tells neighbours apart, the same for the same name.
fn shade(name: &str) -> f64 {
    let sum = name.bytes().fold(7_u32, |sum, one| sum.wrapping_mul(31).wrapping_add(u32::from(one)));
    0.35 + f64::from(sum % 64) / 100.0
}

/// The calls as rectangles. `look` gives the colour of a call, its strength from 0 to 1, and what is said of it after its time.
fn drawn(calls: &[Call<'_>], look: impl Fn(&Call<'_>) -> (Color, f64, String)) -> Flames {
    let mut below: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        below.entry(call.caller).or_default().push(at);
    }
    for siblings in below.values_mut() {
        siblings.sort_by(|one, other| calls[*one].function.cmp(calls[*other].function));
    }
    let roots = below.get(&None).cloned().unwrap_or_default();
    let total: f64 = roots.iter().map(|at| calls[*at].ns).sum();
    let (mut frames, mut open) = (Vec::new(), vec![(roots, 0.0, 0)]);
    while let Some((siblings, from, level)) = open.pop() {
        let mut from = from;
        for at in siblings {
            let call = &calls[at];
            let width = call.ns / total;
            if width >= LEAST_WIDTH {
                let (color, strength, more) = look(call);
                frames.push(Flame {
                    level,
                    from,
                    to: from + width,
                    color,
                    strength,
                    ..said(call, width, &more)
                });
                if let Some(inner) = below.get(&Some(at)).filter(|_| level + 1 < MOST_LEVELS) {
                    open.push((inner.clone(), from, level + 1));
                }
            }
            from += width;
        }
    }
    frames.sort_by(|one, other| one.level.cmp(&other.level).then(one.from.total_cmp(&other.from)));
    Flames { frames }
}

fn said(call: &Call<'_>, share: f64, more: &str) -> Flame {
    let place = profile::place(call.function.file.as_deref(), call.function.line);
    let parts = [place.as_str(), &format!("{} per request", time_ns(call.ns)), &percent(share), more];
    let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Flame {
        level: 0,
        from: 0.0,
        to: 0.0,
        color: Color::Neutral,
        strength: 0.0,
        label: call.function.name.clone(),
        said: said.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_stand_below_their_callers_and_narrow_ones_are_left_out() {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let all = ["main", "b", "a", "tiny"].map(function);
        let call = |at: usize, caller, ns| Call { function: &all[at], caller, ns, baseline_ns: 0.0 };
        let calls =
            [call(0, None, 100.0), call(1, Some(0), 30.0), call(2, Some(0), 50.0), call(3, Some(2), 0.05)];
        let flames = drawn(&calls, |_| (Color::Bad, 1.0, "more".into()));
        let placed: Vec<(u32, &str, f64, f64)> =
            flames.frames.iter().map(|one| (one.level, one.label.as_str(), one.from, one.to)).collect();
        assert_eq!(placed, [(0, "main", 0.0, 1.0), (1, "a", 0.0, 0.5), (1, "b", 0.5, 0.8)]);
        assert_eq!(flames.frames[1].said, "50.0 ns per request, 50 %, more");
        assert!(drawn(&[], |_| (Color::Bad, 1.0, String::new())).frames.is_empty());
    }

    #[test]
    fn neighbours_have_different_shades() {
        assert!((0.35..=1.0).contains(&shade("parse")) && shade("parse") != shade("serve"));
    }
}
