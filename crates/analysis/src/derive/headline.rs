//! A scenario's verdict as a sentence.
//!
//! Owns its wording. Must not know terminals: it leaves names unescaped.

use deadheat_record::{Finding, Metric, Severity, VerdictWord};

use crate::number::{furthest, interval, percent, ratio_within};
use crate::report::{Comparison, Ended, Ranking, ScenarioResult};

/// What the sentences of a race depend on, besides its results.
#[derive(Clone, Copy)]
pub(crate) struct Wording<'r> {
    /// Ratios this close to 1 count as equivalent.
    pub margin: f64,
    /// The contender that is the baseline once more.
    pub control: Option<&'r str>,
    /// Whether the contenders are revisions of one program. Then every sentence is about the one that is compared with the baseline, even if the
    /// baseline is faster: the reader asks what the change did.
    pub revisions: bool,
    /// Why the scenario ended.
    pub ended: Ended,
}

/// The sentence on one metric, from its ranking.
pub(crate) fn of(
    scenario: &ScenarioResult,
    ranking: &Ranking,
    wording: Wording<'_>,
    race_findings: &[Finding],
) -> String {
    let metric = ranking.metric;
    let (of_control, comparisons): (Vec<&Comparison>, Vec<&Comparison>) = scenario
        .comparisons
        .iter()
        .filter(|one| one.metric == metric)
        .partition(|one| Some(one.contender.as_str()) == wording.control);
    if scenario.epochs == 0 {
        return "nothing was measured".into();
    }
    if comparisons.is_empty() {
        let is_control = |name: &str| Some(name) == wording.control;
        return match scenario.results.iter().filter(|one| !is_control(&one.contender)).count() {
            0 | 1 => "no other contender to compare with".into(),
            _ if metric == Metric::Peak => "not compared: not every peak was found".into(),
            _ => "not compared: too few requests".into(),
        };
    }
    if comparisons.iter().all(|one| one.verdict == VerdictWord::Invalid) {
        return format!(
            "no verdict: the measurement is invalid ({})",
            invalid_codes(scenario, metric, race_findings)
        );
    }
    let table = Table { ranking, comparisons: &comparisons, wording };
    let sentence = match comparisons.as_slice() {
        [only] => pair(only, wording),
        _ if ranking.contenders.iter().all(|one| !one.letters.is_empty()) => table.ranked(),
        _ => table.against_baseline(),
    };
    let invalid = comparisons.iter().filter(|one| one.verdict == VerdictWord::Invalid).count();
    let sentence = match invalid {
        0 => sentence,
        n => format!(
            "{sentence}; {n} of {} comparisons invalid ({})",
            comparisons.len(),
            invalid_codes(scenario, metric, race_findings)
        ),
    };
    let most = of_control.first().and_then(|one| furthest(one.low, one.high));
    let sentence = match most {
        Some(most) => format!("{sentence}; identical code differed by at most {}", percent(most)),
        None => sentence,
    };
    if wording.ended == Ended::Unfinished {
        return format!("so far: {sentence}");
    }
    sentence
}

fn invalid_codes(scenario: &ScenarioResult, metric: Metric, race_findings: &[Finding]) -> String {
    let all = scenario.findings.iter().chain(race_findings);
    let mut codes: Vec<&str> = Vec::new();
    let invalid = |one: &&Finding| one.severity == Severity::Invalid && one.is_of(Some(metric));
    for finding in all.filter(invalid) {
        if !codes.contains(&finding.code.as_str()) {
            codes.push(&finding.code);
        }
    }
    codes.join(", ")
}

/// One pair, with any verdict.
fn pair(one: &Comparison, wording: Wording<'_>) -> String {
    let (contender, baseline, margin) = (&one.contender, &one.baseline, wording.margin);
    let aside = aside(one, wording);
    match one.verdict {
        VerdictWord::Faster => format!("{contender} {}{aside}", against(one, baseline, false)),
        VerdictWord::Slower if wording.revisions => {
            let (_, than) = one.metric.row().verdict;
            let (value, interval) = (value(one, false), interval(one.low, one.high));
            format!("{contender} is slower: {value}x {than} {baseline} ({interval}){aside}")
        }
        VerdictWord::Slower => format!("{baseline} {}{aside}", against(one, contender, true)),
        VerdictWord::Equivalent => format!(
            "dead heat: {contender} and {baseline} are within {} of each other ({})",
            percent(margin),
            figures(one, false)
        ),
        VerdictWord::Inconclusive => {
            format!("can't tell {contender} and {baseline} apart: {}", unclear(one, wording))
        }
        VerdictWord::Invalid => {
            format!("no verdict on {contender} and {baseline}: the measurement is invalid")
        }
    }
}

/// `is 1.52x as fast as node (1.49 to 1.55)`, from the winner's point of view; `turned` if the baseline is the winner.
fn against(one: &Comparison, loser: &str, turned: bool) -> String {
    let (low, high) = ends(one, turned);
    let shown = value(one, turned);
    let interval = interval(low, high);
    let (is, than) = one.metric.row().verdict;
    format!("{is} {shown}x {than} {loser} ({interval})")
}

/// The words for a negligible difference; empty for any other.
fn aside(one: &Comparison, wording: Wording<'_>) -> String {
    let within = one.negligible.then(|| percent(wording.margin));
    within.map_or_else(String::new, |margin| format!(", a negligible difference (within {margin})"))
}

fn unclear(one: &Comparison, wording: Wording<'_>) -> String {
    if one.low.is_none() {
        return "too few epochs".into();
    }
    let seen = one.could_have_detected(wording.ended);
    let seen = seen.map(|seen| format!("; this race could have detected {}", percent(seen - 1.0)));
    figures(one, false) + &seen.unwrap_or_default()
}

/// `1.01x, 0.99 to 1.02`.
fn figures(one: &Comparison, turned: bool) -> String {
    let (low, high) = ends(one, turned);
    format!("{}x, {}", value(one, turned), interval(low, high))
}

fn value(one: &Comparison, turned: bool) -> String {
    let (low, high) = ends(one, turned);
    let value = one.ratio.map(|value| if turned { 1.0 / value } else { value });
    value.map_or_else(|| "?".into(), |value| ratio_within(value, low, high))
}

/// The interval; of baseline over contender if `turned`.
fn ends(one: &Comparison, turned: bool) -> (Option<f64>, Option<f64>) {
    let inverse = |end: Option<f64>| end.filter(|end| *end > 0.0).map(|end| 1.0 / end);
    if turned { (inverse(one.high), inverse(one.low)) } else { (one.low, one.high) }
}

/// All comparisons of a scenario in one metric.
struct Table<'a> {
    ranking: &'a Ranking,
    comparisons: &'a [&'a Comparison],
    wording: Wording<'a>,
}

impl Table<'_> {
    /// Names, best first.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.ranking.contenders.iter().map(|one| one.contender.as_str())
    }

    /// For scenarios in which every pair was compared: names the contenders that share the first letter.
    fn ranked(&self) -> String {
        let first = self.ranking.contenders.iter().filter(|one| one.letters.starts_with('a'));
        let several: Vec<&str> = first.map(|one| one.contender.as_str()).collect();
        let all = self.ranking.contenders.len();
        if let [winner] = several[..] {
            let next = self.names().nth(1).unwrap_or_default();
            let of_two = self.comparisons.iter().find(|one| is_of(one, winner, next));
            let then = of_two.map(|one| against(one, next, one.contender != winner)).unwrap_or_default();
            let aside = of_two.map(|one| aside(one, self.wording)).unwrap_or_default();
            return format!("{winner} is first of {all}: it {then}, the next{aside}");
        }
        let among = |one: &&&Comparison| {
            several.contains(&one.baseline.as_str()) && several.contains(&one.contender.as_str())
        };
        let tied = self.comparisons.iter().filter(among).all(|one| one.verdict == VerdictWord::Equivalent);
        if tied {
            format!(
                "dead heat for first of {all}: {} are within {}",
                several.join(", "),
                percent(self.wording.margin)
            )
        } else {
            format!("can't tell which of {all} is first: no clear difference between {}", several.join(", "))
        }
    }

    /// For scenarios that compare only with the baseline: the best contender, and a count of the others.
    fn against_baseline(&self) -> String {
        let of = |name: &str| self.comparisons.iter().find(|one| one.contender == name);
        let Some(best) = self.names().find_map(of) else {
            return "no other contender to compare with".into();
        };
        let others: Vec<&&Comparison> =
            self.comparisons.iter().filter(|one| one.contender != best.contender).collect();
        let counted = [
            VerdictWord::Faster,
            VerdictWord::Equivalent,
            VerdictWord::Slower,
            VerdictWord::Inconclusive,
            VerdictWord::Invalid,
        ];
        let counts: Vec<String> = counted
            .iter()
            .map(|verdict| (others.iter().filter(|one| one.verdict == *verdict).count(), verdict))
            .filter(|(count, _)| *count > 0)
            .map(|(count, verdict)| format!("{count} {}", verdict.word()))
            .collect();
        format!("{}; of the other {}: {}", pair(best, self.wording), others.len(), counts.join(", "))
    }
}

fn is_of(one: &Comparison, a: &str, b: &str) -> bool {
    (one.baseline == a && one.contender == b) || (one.baseline == b && one.contender == a)
}
