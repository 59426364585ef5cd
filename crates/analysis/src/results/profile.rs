//! What diagnostic passes say about CPU time: how much each function takes of a request, and which functions take more of it in one contender than
//! in another.
//!
//! Owns the division by requests and the comparison of functions. Must not know how stacks were sampled or how profiles are shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use deadheat_record::{Function, ProfilePass, Record, Stacks};

use crate::report::{CalledGain, FunctionGain, Gains, ProfileResult};
use crate::series;

/// The number of functions that are named.
const MOST_FUNCTIONS: usize = 5;
/// A gain counts if it is at least this many times its standard error. Among the hundreds of functions of a program, chance alone reaches 3.
const CLEAR: f64 = 4.0;
/// Beginnings of the names of functions through which V8 passes from JavaScript to the function that JavaScript calls. The names of its built-in
/// functions begin with `Builtins_` in the program, and without it in the list of compiled code.
const STEPS: [&str; 6] = [
    "CEntry",
    "Call",
    "Construct",
    "Interpreter",
    "v8::internal::Builtin_HandleApiCall",
    "v8::internal::(anonymous namespace)::HandleApiCallHelper",
];

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
    let nothing = Spent::default();
    let (before_ns, after_ns) = (sample_ns(baseline), sample_ns(contender));
    let total_ns = contender.used.cpu_ns as f64 / contender.requests as f64;
    let mut functions: Vec<FunctionGain> = keys
        .into_iter()
        .filter_map(|key| {
            let (then, now) = (before.get(key).unwrap_or(&nothing), after.get(key).unwrap_or(&nothing));
            let [then_ns, now_ns] = [then.samples() * before_ns, now.samples() * after_ns];
            let gained_ns = now_ns - then_ns;
            let error_ns = (then_ns * before_ns + now_ns * after_ns).sqrt();
            let own_gained_ns = now.own * after_ns - then.own * before_ns;
            let called = now.called.iter().map(|(name, samples)| CalledGain {
                function: name.clone(),
                gained_ns: samples * after_ns - then.called.get(name).unwrap_or(&0.0) * before_ns,
            });
            let most = called.max_by(|one, other| one.gained_ns.total_cmp(&other.gained_ns));
            (gained_ns > CLEAR * error_ns).then(|| FunctionGain {
                function: key.0.clone(),
                file: now.file.clone(),
                line: now.line,
                baseline_ns: then_ns,
                contender_ns: now_ns,
                gained_ns,
                share: gained_ns / total_ns,
                own_gained_ns,
                called: most.filter(|most| most.gained_ns > own_gained_ns),
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

/// The samples that count for a function, with its place in the source.
#[derive(Default)]
struct Spent {
    /// In the function itself.
    own: f64,
    /// In code that is not the contender's own: by the name of the function that this one called.
    called: BTreeMap<String, f64>,
    file: Option<String>,
    line: Option<u32>,
}

impl Spent {
    fn samples(&self) -> f64 {
        self.own + self.called.values().sum::<f64>()
    }
}

/// Divides the samples among the functions, each sample to one: to the innermost function of the contender's own code in its stack. If there is
/// none, to the function that ran.
fn per_function(pass: &ProfilePass) -> BTreeMap<Key, Spent> {
    let Stacks { functions, calls, samples, .. } = &pass.stacks;
    let mut all: BTreeMap<Key, Spent> = BTreeMap::new();
    // What is not yet counted of the samples in each function itself, and of all.
    let mut left: Vec<f64> = functions.iter().map(|one| one.own as f64).collect();
    let mut left_of_all = *samples as f64;
    for (call, itself) in own_calls(functions, calls).into_iter().zip(itself(calls)) {
        let Some(OwnCall { function, ran, called }) = call else { continue };
        let spent = all.entry(key(&functions[function])).or_default();
        match called {
            None => spent.own += itself,
            Some(called) => *spent.called.entry(functions[called].name.clone()).or_default() += itself,
        }
        left[ran] = (left[ran] - itself).max(0.0);
        left_of_all -= itself;
    }
    // The tree of calls omits small entries, whose samples count for their callers above. So what is left of all is less than the sum over functions.
    let sum: f64 = left.iter().sum();
    let share = if sum > 0.0 { (left_of_all / sum).clamp(0.0, 1.0) } else { 0.0 };
    for (function, left) in functions.iter().zip(left) {
        if left > 0.0 {
            all.entry(key(function)).or_default().own += left * share;
        }
        if let Some(spent) = all.get_mut(&key(function)) {
            spent.file = spent.file.take().or_else(|| function.file.clone());
            spent.line = spent.line.or(function.line);
        }
    }
    all
}

/// For each entry of a tree of calls, the number of samples in its function itself.
fn itself(calls: &[(Option<usize>, usize, u64)]) -> Vec<f64> {
    let mut itself: Vec<u64> = calls.iter().map(|(_, _, samples)| *samples).collect();
    for (caller, _, samples) in calls {
        if let Some(above) = caller.and_then(|caller| itself.get_mut(caller)) {
            *above = above.saturating_sub(*samples);
        }
    }
    itself.into_iter().map(|samples| samples as f64).collect()
}

/// A call of or from the contender's own code. Functions are given by their index.
#[derive(Clone, Copy)]
struct OwnCall {
    /// The innermost function of the contender's own code.
    function: usize,
    /// The function that runs.
    ran: usize,
    /// What the contender's own code called, if it is not the one that runs.
    called: Option<usize>,
}

/// Whether V8 passes through this function to call another one.
fn is_step(name: &str) -> bool {
    let name = name.strip_prefix("Builtins_").unwrap_or(name);
    STEPS.iter().any(|start| name.starts_with(start))
}

/// For each entry of a tree of calls, the contender's own code in it; none if there is none.
fn own_calls(functions: &[Function], calls: &[(Option<usize>, usize, u64)]) -> Vec<Option<OwnCall>> {
    let mut all: Vec<Option<OwnCall>> = Vec::new();
    for (caller, ran, _) in calls {
        let ran = *ran;
        let above = caller.and_then(|caller| all.get(caller).copied().flatten());
        all.push(functions.get(ran).and_then(|function| match (function.library, above) {
            (false, _) => Some(OwnCall { function: ran, ran, called: None }),
            (true, Some(above)) => {
                let called = above.called.filter(|called| !is_step(&functions[*called].name));
                Some(OwnCall { ran, called: Some(called.unwrap_or(ran)), ..above })
            }
            (true, None) => None,
        }));
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
    use deadheat_record::ProfileUsage;

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

    /// A profile with functions of libraries, which are those with a name in capitals.
    fn mixed(
        contender: &str,
        functions: &[(&str, u64)],
        calls: &[(Option<usize>, usize, u64)],
    ) -> ProfilePass {
        let mut pass = pass(contender, functions, calls);
        for one in &mut pass.stacks.functions {
            one.library = one.name.starts_with(char::is_uppercase);
        }
        pass
    }

    #[test]
    fn time_in_libraries_counts_for_the_function_of_the_contenders_own_code_that_called_them() {
        let functions = [("serve", 400), ("PARSE", 1_000), ("COPY", 600), ("COLLECT", 500)];
        let before = mixed(
            "a",
            &functions,
            &[(None, 0, 2_000), (Some(0), 1, 1_600), (Some(1), 2, 600), (None, 3, 500)],
        );
        // `planted` parses too, and `COPY` is called by both.
        let functions =
            [("serve", 400), ("PARSE", 3_500), ("COPY", 2_100), ("COLLECT", 900), ("planted", 100)];
        let after = mixed(
            "b",
            &functions,
            &[
                (None, 0, 6_100),
                (Some(0), 1, 1_600),
                (Some(1), 2, 600),
                (Some(0), 4, 4_100),
                (Some(3), 1, 4_000),
                (Some(4), 2, 1_500),
                (None, 3, 900),
            ],
        );
        let found = between(&before, &after);
        let names: Vec<(&str, f64)> =
            found.functions.iter().map(|one| (one.function.as_str(), one.gained_ns)).collect();
        assert_eq!(names, [("planted", 41_000.0), ("COLLECT", 4_000.0)], "each sample counts once");
        assert_eq!(found.gained_ns, 45_000.0);
        let planted = &found.functions[0];
        let called = planted.called.as_ref().unwrap();
        assert_eq!(
            (called.function.as_str(), called.gained_ns, planted.own_gained_ns),
            ("PARSE", 40_000.0, 1_000.0)
        );
        assert_eq!((&found.functions[1].called, found.functions[1].own_gained_ns), (&None, 4_000.0));
    }

    #[test]
    fn what_v8_passes_through_is_not_what_the_code_called() {
        for step in ["Builtins_CEntry_Return1", "CEntry_Return1_ArgvOnStack_BuiltinExit"] {
            let functions = [("planted", 10), (step, 5), ("Builtin_JsonParse", 400), ("Heap", 100)];
            let calls = [(None, 0, 515), (Some(0), 1, 505), (Some(1), 2, 500), (Some(2), 3, 100)];
            let found = between(&pass("a", &[], &[]), &mixed("b", &functions, &calls));
            let called = found.functions[0].called.as_ref().unwrap();
            assert_eq!((called.function.as_str(), called.gained_ns), ("Builtin_JsonParse", 5_000.0));
        }
    }

    #[test]
    fn samples_of_omitted_calls_count_once() {
        // 100 samples of `COPY` below `PARSE` and 50 of `other` have no entry.
        let functions = [("serve", 400), ("PARSE", 500), ("COPY", 100), ("other", 50)];
        let pass = mixed("a", &functions, &[(None, 0, 1_000), (Some(0), 1, 600)]);
        let all = per_function(&pass);
        let samples = |name: &str| all.get(&(name.to_owned(), None)).map_or(0.0, Spent::samples);
        assert_eq!(samples("serve"), 1_000.0);
        assert!((all.values().map(Spent::samples).sum::<f64>() - 1_050.0).abs() < 1e-9);
        let broken = mixed("a", &functions, &[(Some(7), 0, 10), (None, 99, 10)]);
        assert!(per_function(&broken).len() <= functions.len(), "a damaged tree does no harm");
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
            key(&Function { name: name.into(), file: Some(file.into()), line, ..Function::default() })
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
