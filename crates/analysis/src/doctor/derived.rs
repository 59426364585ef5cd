//! Derives the smallest difference that a machine can resolve, from a race of a server against itself.
//!
//! Owns the way from a spread to epochs, minutes and a sentence, through the boundaries of a race. Must not know the machine.

use deadheat_record::{NoiseFloor, Resolution, Severity, VerdictWord};
use deadheat_stats::interval::{MOST_EPOCHS, POWER};
use deadheat_stats::{Referee, StoppingRules, power, spread};

use crate::number::{percent, whole};

/// The differences for which deadheat reports how long a race must be to detect them.
pub const DIFFERENCES: [f64; 5] = [0.01, 0.02, 0.03, 0.05, 0.1];

/// The confidence level of the range of the true spread.
const LEVEL: f64 = 0.9;
/// The sentence for an invalid race.
const NOT_KNOWN: &str =
    "which differences a race can detect here is not known: the server's race with itself is invalid";

/// When a race of two contenders can end under one of its profiles, and how long it takes.
#[derive(Debug, PartialEq)]
pub struct Profile {
    option: Option<&'static str>,
    looks: &'static [usize],
    /// The boundary at each look.
    critical: Vec<f64>,
    times: Times,
}

/// How long a race of two contenders takes, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// Time before the first epoch: the pilots, and the test with added work in the generator.
    pub before: f64,
    /// How much longer its epochs are than those of the noise floor.
    pub longer: f64,
    /// The time budget: the race ends before it exceeds this; infinite without a budget.
    pub budget: f64,
}

impl Profile {
    /// Creates a profile for a race started with `option` (none for the default race) that may end after the epochs in `looks`, ascending.
    /// `alpha` is in (0, 1), as for [`StoppingRules`].
    pub fn new(option: Option<&'static str>, looks: &'static [usize], times: Times, alpha: f64) -> Self {
        let usual = StoppingRules::default();
        let rules = StoppingRules::ending_at_the_last(looks, alpha, usual.margin);
        // With an invalid alpha there are no boundaries, and the profile never detects anything.
        let critical = Referee::new(rules).map_or_else(|_| Vec::new(), |referee| referee.boundaries(1));
        Self { option, looks, critical, times }
    }

    /// Duration in seconds of a whole race that ends after `epochs` epochs.
    fn race_s(&self, epochs: usize, epoch_s: f64) -> f64 {
        self.times.before + epochs as f64 * (epoch_s + self.times.longer)
    }
}

/// One difference, and the race that detects it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'p> {
    /// The part that is recorded.
    pub(super) resolution: Resolution,
    /// None if it takes more epochs than either profile has.
    profile: Option<&'p Profile>,
}

pub(super) fn sd_range(floor: &NoiseFloor) -> Option<(f64, f64)> {
    spread::sd_interval(floor.sd_log_ratio?, floor.epochs, LEVEL)
}

/// Whether the race of the server against itself says nothing about the machine.
pub fn is_invalid(floor: &NoiseFloor) -> bool {
    floor.verdict == VerdictWord::Invalid
        || floor.findings.iter().any(|finding| finding.severity == Severity::Invalid)
}

/// The race needed for each of the differences, the smallest difference first.
pub(super) fn rows<'p>(floor: &NoiseFloor, profiles: &'p [Profile; 2]) -> Vec<Row<'p>> {
    let Some(sd) = floor.sd_log_ratio else { return Vec::new() };
    DIFFERENCES.map(|difference| row(floor.epoch_s, sd, difference, profiles)).into()
}

/// The first look at which the default race, or otherwise the longer one, detects the difference with a probability of 90 %. A difference
/// below the default margin is tested with a margin equal to it, because a race ends once it finds equivalence.
fn row<'p>(epoch_s: f64, sd: f64, difference: f64, profiles: &'p [Profile; 2]) -> Row<'p> {
    let effect = difference.ln_1p() / sd;
    let margin = difference.min(StoppingRules::default().margin).ln_1p() / sd;
    let [_, longest] = profiles;
    let race = |profile: &'p Profile| {
        let Profile { looks, critical, times, .. } = profile;
        let chances = power::chances_by_look(looks, critical, effect, margin);
        let look = chances.iter().position(|chance| *chance >= POWER)?;
        let epochs = looks[look];
        (profile.race_s(epochs, epoch_s) <= times.budget).then_some((profile, epochs))
    };
    let found = profiles.iter().find_map(race);
    let profile = found.map(|(profile, _)| profile);
    let epochs = found.map(|(_, epochs)| epochs).or_else(|| beyond(effect, longest));
    let minutes = |epochs| profile.unwrap_or(longest).race_s(epochs, epoch_s) / 60.0;
    Row { resolution: Resolution { difference, epochs, minutes: epochs.map(minutes) }, profile }
}

/// The number of epochs that suffice if the longest profile has too few. It uses that profile's last boundary; a longer race has a lower one.
/// None above a million.
fn beyond(effect: f64, longest: &Profile) -> Option<usize> {
    let critical = *longest.critical.last()?;
    let enough = |epochs: usize| power::chance_beyond(critical, epochs, effect) >= POWER;
    let mut short = *longest.looks.last()?;
    let mut reached = 2 * short;
    while !enough(reached) {
        if reached > MOST_EPOCHS {
            return None;
        }
        short = reached;
        reached *= 2;
    }
    while reached - short > 1 {
        let middle = short + (reached - short) / 2;
        if enough(middle) { reached = middle } else { short = middle }
    }
    Some(reached).filter(|epochs| *epochs <= MOST_EPOCHS)
}

/// States the smallest difference that the default race detects, or otherwise what the longer race detects.
pub(super) fn sentence(floor: &NoiseFloor, rows: &[Row<'_>], profiles: &[Profile; 2]) -> String {
    if is_invalid(floor) {
        return NOT_KNOWN.into();
    }
    let by =
        |profile: &Profile| rows.iter().find(|row| row.profile.is_some_and(|own| std::ptr::eq(own, profile)));
    let [usual, longest] = profiles;
    by(usual).or_else(|| by(longest)).and_then(said).unwrap_or_else(|| match rows.last() {
        Some(largest) => format!(
            "on this machine, now, a race of {} epochs does not even detect {}",
            longest.looks.last().copied().unwrap_or(0),
            percent(largest.resolution.difference)
        ),
        None => "which differences a race can detect here is not known: too few epochs".into(),
    })
}

/// A difference, how long the race takes, and its options.
fn said(row: &Row<'_>) -> Option<String> {
    let Resolution { difference, minutes, .. } = row.resolution;
    let (minutes, what) = (minutes?, percent(difference));
    let shown = if minutes < 10.0 { format!("{minutes:.1}") } else { whole(minutes.round() as u64) };
    let narrow = difference < StoppingRules::default().margin;
    let margin = narrow.then(|| format!("--margin {}", what.replace(' ', "")));
    let options: Vec<String> = row.profile?.option.map(str::to_owned).into_iter().chain(margin).collect();
    let with = if options.is_empty() { String::new() } else { format!(", with {}", options.join(" ")) };
    Some(format!("on this machine, now, a race detects a difference of {what} in {shown} minutes{with}"))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    /// A valid race of a server against itself, with this spread between epochs and this length of an epoch.
    fn floor(sd: f64, epoch_s: f64) -> NoiseFloor {
        NoiseFloor {
            command: "serve".into(),
            built_in: true,
            epochs: 8,
            epoch_s,
            throughput_rps: None,
            cpu_us_per_request: None,
            ratio: Some(1.0),
            low: None,
            high: None,
            verdict: VerdictWord::Equivalent,
            alpha: 0.025,
            sd_log_ratio: Some(sd),
            sd_range: None,
            stilled_by: "freezer".into(),
            findings: Vec::new(),
        }
    }

    /// The quick profile and the full profile.
    static PROFILES: LazyLock<[Profile; 2]> = LazyLock::new(|| {
        let quick = Times { before: 12.0, longer: 0.0, budget: 180.0 };
        let full = Times { before: 44.0, longer: 2.0, budget: f64::INFINITY };
        [
            Profile::new(None, &[4, 6, 8, 10, 12], quick, 0.025),
            Profile::new(Some("--profile full"), &[6, 10, 15, 20, 25, 30], full, 0.025),
        ]
    });

    fn concluded(floor: &NoiseFloor) -> String {
        sentence(floor, &rows(floor, &PROFILES), &PROFILES)
    }

    #[test]
    fn the_sentence_names_the_least_that_the_usual_race_tells_apart() {
        for (sd, epoch_s, expected) in [
            (0.006, 6.2, "a race detects a difference of 1 % in 1.4 minutes, with --margin 1%"),
            (0.018, 6.2, "a race detects a difference of 3 % in 1.4 minutes"),
            // There are at most twelve epochs, even if more would fit in three minutes.
            (0.02, 0.2, "a race detects a difference of 3 % in 0.2 minutes"),
            // The budget ends after six epochs.
            (0.006, 25.0, "a race detects a difference of 2 % in 2.7 minutes, with --margin 2%"),
            (
                0.006,
                60.0,
                "a race detects a difference of 1 % in 16 minutes, with --profile full --margin 1%",
            ),
            (0.1, 6.0, "a race detects a difference of 10 % in 4.1 minutes, with --profile full"),
            (0.3, 6.0, "a race of 30 epochs does not even detect 10 %"),
        ] {
            let found = concluded(&floor(sd, epoch_s));
            assert_eq!(found, format!("on this machine, now, {expected}"), "{sd}, {epoch_s} s");
        }
    }

    #[test]
    fn of_an_invalid_race_and_of_one_without_a_spread_nothing_is_known() {
        let good = floor(0.006, 6.2);
        let invalid = NoiseFloor { verdict: VerdictWord::Invalid, ..good.clone() };
        let finding = deadheat_record::Finding::invalid("steal", "6 % stolen", "wait");
        let disturbed = NoiseFloor { findings: vec![finding], ..good.clone() };
        let short = NoiseFloor { sd_log_ratio: None, ..good };
        assert_eq!([concluded(&invalid), concluded(&disturbed)], [NOT_KNOWN; 2]);
        assert!(concluded(&short).contains("not known: too few epochs"));
    }

    #[test]
    fn epochs_are_a_look_at_which_nine_in_ten_are_told_apart() {
        for sd in [0.001, 0.004, 0.01, 0.03, 0.08] {
            for Row { resolution, profile } in rows(&floor(sd, 6.0), &PROFILES) {
                let epochs = resolution.epochs.unwrap();
                let Some(profile) = profile else {
                    assert!(epochs > 30, "{sd}: {resolution:?}");
                    continue;
                };
                let look = profile.looks.iter().position(|look| *look == epochs).unwrap();
                let alone =
                    power::chance_beyond(profile.critical[look], epochs, resolution.difference.ln_1p() / sd);
                assert!(alone >= POWER, "{sd}: {resolution:?}");
            }
        }
    }

    #[test]
    fn more_epochs_than_a_profile_has_are_counted_up_to_a_million() {
        let epochs = |effect: f64| beyond(effect, &PROFILES[1]);
        // Close to the number for a known spread and intervals that are 10 % wider in case epochs follow each other,
        // ((2.6 * 1.1 + 1.28) / 0.1)^2 = 1,714; the t distribution needs a few more.
        assert!(epochs(0.1).is_some_and(|epochs| (1_700..1_780).contains(&epochs)), "{:?}", epochs(0.1));
        let times = PROFILES[1].times;
        let never = Profile::new(None, PROFILES[1].looks, times, 0.7);
        assert_eq!((epochs(0.001), beyond(0.1, &never)), (None, None));
    }
}
