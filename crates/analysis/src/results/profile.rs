//! What diagnostic passes say about CPU time: how much each function takes of a request, and which functions take more of it in one contender than
//! in another.
//!
//! Owns the division by requests and the comparison of functions. Must not know how stacks were sampled or how profiles are shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use deadheat_record::{Function, ProfilePass, Record};

use crate::report::{FunctionGain, Gains, ProfileResult};
use crate::series;

/// The number of functions that are named.
const MOST_FUNCTIONS: usize = 5;
/// A gain counts if it is at least this many times its standard error. Among the hundreds of functions of a program, chance alone reaches 3.
const CLEAR: f64 = 4.0;

/// One entry per profiled contender, in plan order.
pub(crate) fn of(record: &Record, scenario: &str) -> Vec<ProfileResult> {
    let seen = |name: &str| record.profiles_of(scenario).find(|pass| pass.contender == name);
    record.plan.contenders.iter().filter_map(|one| result(seen(&one.name)?)).collect()
}

fn result(pass: &ProfilePass) -> Option<ProfileResult> {
    let each = |total: u64| total as f64 / pass.requests as f64;
    let used = &pass.used;
    (pass.requests > 0).then(|| ProfileResult {
        contender: pass.contender.clone(),
        rate_per_s: pass.rate_per_s,
        requests: pass.requests,
        samples: pass.stacks.samples,
        user_only: pass.stacks.user_only,
        cpu_ns_per_request: each(used.cpu_ns),
        system_calls_per_request: used.system_calls.map(each),
        page_faults_per_request: used.page_faults.map(each),
        switches_per_request: used.switches.map(each),
        sent_bytes_per_request: each(used.sent_bytes),
        received_bytes_per_request: each(used.received_bytes),
        memory_growth_bytes_per_request: used
            .memory_growth_bytes
            .map(|bytes| bytes as f64 / pass.requests as f64),
    })
}

/// One entry per profiled contender other than the one that the others are compared with: the baseline, or the first.
pub(crate) fn gains(record: &Record, scenario: &str) -> Vec<Gains> {
    let seen = |name: &str| record.profiles_of(scenario).find(|pass| pass.contender == name);
    let first = series::pairs(record, scenario).into_iter().next().map(|(baseline, _)| baseline);
    let first = first.and_then(|at| record.plan.contenders.get(at)).and_then(|one| seen(&one.name));
    let Some(first) = first.filter(|pass| pass.requests > 0) else { return Vec::new() };
    let others = record.plan.contenders.iter().filter(|one| one.name != first.contender);
    others
        .filter_map(|one| seen(&one.name))
        .filter(|pass| pass.requests > 0)
        .map(|one| between(first, one))
        .collect()
}

fn between(baseline: &ProfilePass, contender: &ProfilePass) -> Gains {
    let (before, after) = (per_function(baseline), per_function(contender));
    let keys: BTreeSet<&Key> = before.keys().chain(after.keys()).collect();
    let nothing = Own::default();
    let (before_ns, after_ns) = (sample_ns(baseline), sample_ns(contender));
    let total_ns = contender.used.cpu_ns as f64 / contender.requests as f64;
    let mut functions: Vec<FunctionGain> = keys
        .into_iter()
        .filter_map(|key| {
            let (then, now) = (before.get(key).unwrap_or(&nothing), after.get(key).unwrap_or(&nothing));
            let [then_ns, now_ns] = [then.samples * before_ns, now.samples * after_ns];
            let gained_ns = now_ns - then_ns;
            let error_ns = (then_ns * before_ns + now_ns * after_ns).sqrt();
            (gained_ns > CLEAR * error_ns).then(|| FunctionGain {
                function: key.0.clone(),
                file: now.file.clone(),
                line: now.line,
                baseline_ns: then_ns,
                contender_ns: now_ns,
                gained_ns,
                share: gained_ns / total_ns,
            })
        })
        .collect();
    functions.sort_by(|one, other| other.gained_ns.total_cmp(&one.gained_ns));
    functions.truncate(MOST_FUNCTIONS);
    let before_total_ns = baseline.used.cpu_ns as f64 / baseline.requests as f64;
    Gains {
        baseline: baseline.contender.clone(),
        contender: contender.contender.clone(),
        gained_ns: total_ns - before_total_ns,
        functions,
    }
}

/// CPU time for each request that one sample stands for, in nanoseconds; 0 without samples.
fn sample_ns(pass: &ProfilePass) -> f64 {
    if pass.stacks.samples == 0 || pass.requests == 0 {
        return 0.0;
    }
    pass.used.cpu_ns as f64 / pass.stacks.samples as f64 / pass.requests as f64
}

/// The identity of a function across contenders: its name, and the file if it was compiled from a source file. Lines move when code is edited, and
/// code without a name is in differently named files.
type Key = (String, Option<String>);

fn key(function: &Function) -> Key {
    (function.name.clone(), function.file.clone().filter(|_| function.line.is_some()))
}

/// Samples in a function, with its place in the source.
#[derive(Default)]
struct Own {
    samples: f64,
    file: Option<String>,
    line: Option<u32>,
}

fn per_function(pass: &ProfilePass) -> BTreeMap<Key, Own> {
    let mut all: BTreeMap<Key, Own> = BTreeMap::new();
    for function in pass.stacks.functions.iter().filter(|one| one.own > 0) {
        let own = all.entry(key(function)).or_default();
        own.samples += function.own as f64;
        own.file = own.file.take().or_else(|| function.file.clone());
        own.line = own.line.or(function.line);
    }
    all
}

/// One call in a contender's profile, with the CPU time of the same call in the baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'r> {
    /// The function.
    pub function: &'r Function,
    /// The index of its caller's entry; none for an outermost function. Callers come before what they call.
    pub caller: Option<usize>,
    /// CPU time per request of the function and everything that it called there, in nanoseconds.
    pub ns: f64,
    /// The same in the profile that this one is compared with; 0 if the call does not occur there.
    pub baseline_ns: f64,
}

/// The calls of a profile, and how long the same calls take in `baseline`. Calls are the same if their functions and those of all their callers
/// are.
pub fn calls<'r>(pass: &'r ProfilePass, baseline: Option<&ProfilePass>) -> Vec<Call<'r>> {
    let known = baseline.map(|pass| (known_calls(pass), sample_ns(pass)));
    let each_ns = sample_ns(pass);
    let mut calls: Vec<Call<'r>> = Vec::new();
    // The entry of the same call in the baseline, if there is one.
    let mut same: Vec<Option<usize>> = Vec::new();
    for (caller, function, samples) in &pass.stacks.calls {
        let Some(function) = pass.stacks.functions.get(*function) else { continue };
        let above = caller.and_then(|at| same.get(at).copied());
        let found = known.as_ref().and_then(|(known, ns)| {
            let above = if let Some(above) = above { Some(above?) } else { None };
            let (entry, samples) = known.get(&(above, key(function)))?;
            Some((*entry, *samples as f64 * ns))
        });
        same.push(found.map(|(entry, _)| entry));
        let baseline_ns = found.map_or(0.0, |(_, ns)| ns);
        calls.push(Call { function, caller: *caller, ns: *samples as f64 * each_ns, baseline_ns });
    }
    calls
}

/// The entries of a tree of calls by caller and function, each with its number and its samples.
type KnownCalls = HashMap<(Option<usize>, Key), (usize, u64)>;

fn known_calls(pass: &ProfilePass) -> KnownCalls {
    let mut known = KnownCalls::new();
    // Functions with the same key are one, and so are their entries: the number is that of the first.
    let mut first: Vec<usize> = Vec::new();
    for (at, (caller, function, samples)) in pass.stacks.calls.iter().enumerate() {
        let Some(function) = pass.stacks.functions.get(*function) else { continue };
        let caller = caller.and_then(|caller| first.get(caller).copied());
        let entry = known.entry((caller, key(function))).or_insert((at, 0));
        entry.1 += samples;
        first.push(entry.0);
    }
    known
}

#[cfg(test)]
mod tests {
    use deadheat_record::{ProfileUsage, Stacks};

    use super::*;

    /// A profile of 100 requests in which each sample is 1 us of CPU time. Functions are given with their own samples, calls as in a record.
    fn pass(
        contender: &str,
        functions: &[(&str, u64)],
        calls: &[(Option<usize>, usize, u64)],
    ) -> ProfilePass {
        let samples = functions.iter().map(|(_, own)| own).sum();
        let function =
            |(name, own): &(&str, u64)| Function { name: (*name).into(), own: *own, ..Function::default() };
        ProfilePass {
            scenario: "s".into(),
            contender: contender.into(),
            rate_per_s: 20.0,
            load_ns: 5_000_000_000,
            external: deadheat_record::ExternalReading::default(),
            requests: 100,
            used: ProfileUsage { cpu_ns: samples * 1_000, ..ProfileUsage::default() },
            stacks: Stacks {
                samples,
                functions: functions.iter().map(function).collect(),
                calls: calls.to_vec(),
                ..Stacks::default()
            },
        }
    }

    #[test]
    fn the_function_that_was_added_gained_most() {
        let before = pass("a", &[("serve", 4_000), ("parse", 1_000), ("gone", 700)], &[]);
        let after = pass("b", &[("serve", 4_100), ("slow", 2_000), ("parse", 1_900)], &[]);
        let found = between(&before, &after);
        let names: Vec<&str> = found.functions.iter().map(|one| one.function.as_str()).collect();
        assert_eq!(names, ["slow", "parse"], "chance explains the rest");
        let slow = &found.functions[0];
        assert_eq!((slow.baseline_ns, slow.contender_ns, slow.gained_ns), (0.0, 20_000.0, 20_000.0));
        assert_eq!((slow.share, found.gained_ns), (0.25, 23_000.0));
        assert!(between(&before, &before).functions.is_empty());
    }

    #[test]
    fn at_most_five_functions_are_named() {
        let names: Vec<String> = (0..9).map(|at| format!("f{at}")).collect();
        let all: Vec<(&str, u64)> =
            names.iter().zip(1..).map(|(name, at)| (name.as_str(), at * 100)).collect();
        let found = between(&pass("a", &[("serve", 100)], &[]), &pass("b", &all, &[]));
        let named: Vec<&str> = found.functions.iter().map(|one| one.function.as_str()).collect();
        assert_eq!(named, ["f8", "f7", "f6", "f5", "f4"]);
    }

    #[test]
    fn a_function_stays_the_same_on_another_line_and_code_without_a_name_in_another_file() {
        let place = |name: &str, file: &str, line| {
            key(&Function { name: name.into(), file: Some(file.into()), line, own: 1 })
        };
        assert_eq!(place("f", "s.mjs", Some(3)), place("f", "s.mjs", Some(90)));
        assert_ne!(place("f", "s.mjs", Some(3)), place("f", "other.mjs", Some(3)));
        assert_eq!(place(Stacks::UNNAMED, "old", None), place(Stacks::UNNAMED, "new", None));
    }

    #[test]
    fn calls_are_the_same_if_all_their_callers_are() {
        let functions = [("main", 0), ("serve", 10), ("parse", 30)];
        let before = pass("a", &functions, &[(None, 0, 40), (Some(0), 1, 40), (Some(1), 2, 30)]);
        let after =
            pass("b", &functions, &[(None, 0, 40), (Some(0), 2, 5), (Some(0), 1, 35), (Some(2), 2, 25)]);
        let times: Vec<(&str, f64, f64)> = calls(&after, Some(&before))
            .iter()
            .map(|one| (one.function.name.as_str(), one.ns, one.baseline_ns))
            .collect();
        let expected =
            [("main", 400.0, 400.0), ("parse", 50.0, 0.0), ("serve", 350.0, 400.0), ("parse", 250.0, 300.0)];
        assert_eq!(times, expected);
        assert!(calls(&after, None).iter().all(|one| one.baseline_ns == 0.0));
    }

    #[test]
    fn a_profile_without_samples_takes_no_time() {
        assert_eq!(sample_ns(&pass("a", &[], &[])), 0.0);
        assert!(between(&pass("a", &[], &[]), &pass("b", &[], &[])).functions.is_empty());
    }
}
