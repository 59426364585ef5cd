//! Profiles of the races of two contenders that may follow an examination, with their durations.
//!
//! Owns: how a profile gives the looks and times of a race. Must not know: how small a difference these races can detect.

use std::time::Duration;

use deadheat_analysis::doctor::{self, Times};
use deadheat_runner::LONGEST_HANDICAP;

use deadheat_study::choices::ProfileWord;
use deadheat_study::plan::Profile;

/// The default race and the longest race, with this alpha. The race of the noise floor uses the default profile.
pub(crate) fn profiles(alpha: f64) -> [doctor::Profile; 2] {
    let usual = Profile::of(ProfileWord::Quick);
    let one = |word, option| {
        let profile = Profile::of(word);
        // The two contenders are loaded one after the other.
        let both = |one: Duration| 2.0 * one.as_secs_f64();
        let budget = profile.budget_for(2, profile.measured, profile.looks);
        let times = Times {
            before: both(profile.pilot + LONGEST_HANDICAP),
            longer: both(profile.warmup.0 - usual.warmup.0),
            budget: budget.map_or(f64::INFINITY, |budget| budget.as_secs_f64()),
        };
        doctor::Profile::new(option, profile.looks, times, alpha)
    };
    [one(ProfileWord::Quick, None), one(ProfileWord::Full, Some("--profile full"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of the two contenders has a pilot and twenty slices for the handicap. With the full profile, each warms up for one more second.
    #[test]
    fn races_that_may_follow_are_those_of_the_profiles() {
        let quick = Times { before: 2.0 * (4.0 + 2.0), longer: 0.0, budget: 180.0 };
        let full = Times { before: 2.0 * (20.0 + 2.0), longer: 2.0, budget: f64::INFINITY };
        let looks = &[6, 10, 15, 20, 25, 30];
        let expected = [
            doctor::Profile::new(None, &[4, 6, 8, 10, 12], quick, 0.025),
            doctor::Profile::new(Some("--profile full"), looks, full, 0.025),
        ];
        assert_eq!(profiles(0.025), expected);
    }
}
