//! The parser of `--fail-if`: a condition in words.
//!
//! Owns the grammar and its errors. Must not know when a condition holds; that is `stats`'s.
//!
//! ```text
//! condition = [metric] claim
//! claim     = ("slower" | "faster") ["by" percent]
//!           | "maybe" ("slower" | "faster") "by" percent
//!           | "not" "equivalent"
//!           | "inconclusive"
//! percent   = number ["%" with or without a space before it]
//! metric    = a word of `deadheat_record::METRICS`
//! ```

use deadheat_analysis::compare::FailIf;
use deadheat_record::Metric;
use deadheat_stats::{Condition, ConditionKind};

/// The most that a condition may name: more than a hundredfold is a slip.
const MOST_PERCENT: f64 = 10_000.0;

const CLAIMS: &str = "slower, faster, maybe, not equivalent or inconclusive";

/// Reads a condition such as `p99 slower by 5%`.
pub(super) fn fail_if(text: &str) -> Result<FailIf, String> {
    let mut words = Words { left: text.split_whitespace().collect(), taken: 0 };
    let metric = words.metric();
    let (claim, maybe) = match words.next() {
        Some("slower") => (ConditionKind::Slower(words.by()?.unwrap_or(0.0)), false),
        Some("faster") => (ConditionKind::Faster(words.by()?.unwrap_or(0.0)), false),
        Some("maybe") => (words.maybe()?, true),
        Some("not") => match words.next() {
            Some("equivalent") => (ConditionKind::NotEquivalent, false),
            other => return Err(words.expected("equivalent", other)),
        },
        Some("inconclusive") => (ConditionKind::Inconclusive, false),
        other if metric.is_none() => {
            let metrics: Vec<&str> = Metric::all().map(Metric::word).collect();
            return Err(words.expected(
                &format!("{CLAIMS}, with or without a metric before it: {}", metrics.join(", ")),
                other,
            ));
        }
        other => return Err(words.expected(CLAIMS, other)),
    };
    match words.next() {
        None => {
            let condition = Condition { claim, maybe };
            Ok(FailIf { text: text.split_whitespace().collect::<Vec<_>>().join(" "), metric, condition })
        }
        other => Err(words.expected("the end of the condition", other)),
    }
}

/// The words that are left, and how many were taken.
struct Words<'a> {
    left: std::collections::VecDeque<&'a str>,
    taken: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.taken += 1;
        self.left.pop_front()
    }

    fn metric(&mut self) -> Option<Metric> {
        let metric = Metric::of_word(self.left.front()?)?;
        self.next();
        Some(metric)
    }

    /// `slower by 3%` after `maybe`: what cannot be excluded has a size.
    fn maybe(&mut self) -> Result<ConditionKind, String> {
        let claim: fn(f64) -> ConditionKind = match self.next() {
            Some("slower") => ConditionKind::Slower,
            Some("faster") => ConditionKind::Faster,
            other => return Err(self.expected("slower or faster", other)),
        };
        match self.by()? {
            Some(by) => Ok(claim(by)),
            None => {
                let found = self.next();
                Err(self.expected("by how much, such as `by 3%`", found))
            }
        }
    }

    /// `by 3%`, as a natural log.
    fn by(&mut self) -> Result<Option<f64>, String> {
        if self.left.front() != Some(&"by") {
            return Ok(None);
        }
        self.next();
        let word = self.next();
        let number = word.and_then(|word| match word.strip_suffix('%') {
            Some(number) => Some(number),
            None if self.left.front() == Some(&"%") => {
                self.next();
                Some(word)
            }
            None => None,
        });
        let percent = number.and_then(|number| number.parse::<f64>().ok());
        match percent.filter(|percent| *percent > 0.0 && *percent <= MOST_PERCENT) {
            Some(percent) => Ok(Some((percent / 100.0).ln_1p())),
            None => Err(self.expected("a percentage above 0, such as 3%", word)),
        }
    }

    /// What was expected where the last word was taken.
    fn expected(&self, what: &str, found: Option<&str>) -> String {
        match found {
            Some(found) => format!("word {} is `{found}`; expected {what}", self.taken),
            None => format!("the condition ends before word {}; expected {what}", self.taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> (Option<Metric>, ConditionKind, bool) {
        let one = fail_if(text).unwrap();
        (one.metric, one.condition.claim, one.condition.maybe)
    }

    #[test]
    fn conditions_are_read() {
        let three = 0.03_f64.ln_1p();
        assert_eq!(read("slower by 3%"), (None, ConditionKind::Slower(three), false));
        assert_eq!(read(" slower  by 3 % "), (None, ConditionKind::Slower(three), false));
        assert_eq!(read("slower"), (None, ConditionKind::Slower(0.0), false));
        assert_eq!(read("faster"), (None, ConditionKind::Faster(0.0), false));
        assert_eq!(read("faster by 250%"), (None, ConditionKind::Faster(2.5_f64.ln_1p()), false));
        assert_eq!(read("not equivalent"), (None, ConditionKind::NotEquivalent, false));
        assert_eq!(read("inconclusive"), (None, ConditionKind::Inconclusive, false));
        assert_eq!(read("maybe slower by 0.5%"), (None, ConditionKind::Slower(0.005_f64.ln_1p()), true));
        assert_eq!(read("p99 slower by 3%"), (Some(Metric::P99), ConditionKind::Slower(three), false));
        assert_eq!(read("cpu maybe slower by 3%"), (Some(Metric::Cpu), ConditionKind::Slower(three), true));
        assert_eq!(read("cold_start slower"), (Some(Metric::ColdStart), ConditionKind::Slower(0.0), false));
        assert_eq!(
            read("measure not equivalent"),
            (Some(Metric::Measure), ConditionKind::NotEquivalent, false)
        );
        assert_eq!(read("peak slower by 3%"), (Some(Metric::Peak), ConditionKind::Slower(three), false));
        assert_eq!(fail_if("p99   slower  by 3%").unwrap().text, "p99 slower by 3%");
    }

    #[test]
    fn errors_say_where_what_was_found_and_what_may_stand_there() {
        let cases = [
            ("", "the condition ends before word 1; expected slower, faster, maybe"),
            ("quicker", "word 1 is `quicker`; expected slower, faster"),
            ("p42 slower", "word 1 is `p42`"),
            ("p99", "the condition ends before word 2; expected slower"),
            ("p99 p50 slower", "word 2 is `p50`; expected slower"),
            ("slower by", "the condition ends before word 3; expected a percentage"),
            ("slower by 3", "word 3 is `3`; expected a percentage"),
            ("slower by -3%", "word 3 is `-3%`; expected a percentage"),
            ("slower by 0%", "word 3 is `0%`"),
            ("slower by nan%", "word 3 is `nan%`"),
            ("slower by inf%", "word 3 is `inf%`"),
            ("slower by 3% or so", "word 4 is `or`; expected the end"),
            ("slower 3%", "word 2 is `3%`; expected the end"),
            ("not slower", "word 2 is `slower`; expected equivalent"),
            ("not", "the condition ends before word 2; expected equivalent"),
            ("equivalent", "word 1 is `equivalent`; expected slower"),
            ("maybe", "the condition ends before word 2; expected slower or faster"),
            ("maybe slower", "the condition ends before word 3; expected by how much"),
            ("maybe slower 3%", "word 3 is `3%`; expected by how much"),
            ("maybe inconclusive", "word 2 is `inconclusive`; expected slower or faster"),
        ];
        for (text, expected) in cases {
            let error = fail_if(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let every =
            "a metric before it: throughput, cpu, p50, p90, p99, p99_9, memory, peak, cold_start, measure";
        assert!(fail_if("x").unwrap_err().ends_with(every));
    }

    proptest! {
        #[test]
        fn any_words_are_read_or_refused(
            words in prop::collection::vec("slower|faster|by|maybe|not|equivalent|inconclusive|p99|3%|3|%|\\PC{0,4}", 0..7),
        ) {
            let text = words.join(" ");
            if let Ok(one) = fail_if(&text) {
                // What was read reads the same again.
                prop_assert_eq!(fail_if(&one.text).unwrap(), one);
            }
        }
    }
}
