//! The options with which a race of commands accepts the differences that it found.
//!
//! Owns: which option accepts which difference. Must not know how differences are found or shown.

use deadheat_record::{Difference, JsonPath, Record};

use super::reproduce::quoted;

/// Options of `deadheat race` that accept all differences of a record, as they are typed. None if there are no differences, if an option
/// cannot accept one of them (another status, or no answer), and for a study, whose contract says what may differ.
pub fn accepting(record: &Record) -> Option<String> {
    options(&record.differences).filter(|_| record.plan.is_ad_hoc())
}

fn options(differences: &[Difference]) -> Option<String> {
    let mut options: Vec<String> = Vec::new();
    let paths: Vec<&str> = differences.iter().map(|one| one.path.as_str()).collect();
    for one in differences {
        let same = |other: &&Difference| (&one.contender, &one.probe) == (&other.contender, &other.probe);
        // Answers under load that differ are counted, and some are kept: what differs in those is listed too.
        let shown = |other: &Difference| other.contender == one.contender && other.path != one.path;
        let option = match one.path.split_once(' ') {
            Some(("header", name)) if one.against != "contract" => format!("--ignore-header {name}"),
            // The list may not be complete.
            _ if one.path.starts_with('$') && differences.iter().filter(same).count() >= Difference::MOST => {
                WHOLE.into()
            }
            _ if one.path.starts_with('$') => format!("--ignore-json {}", quoted(&alike(&one.path, &paths))),
            _ if one.path.starts_with("body") => WHOLE.into(),
            _ if one.path == "answers" && differences.iter().any(shown) => continue,
            _ => return None,
        };
        if !options.contains(&option) {
            options.push(option);
        }
    }
    if options.iter().any(|one| one == WHOLE) {
        return Some(WHOLE.into());
    }
    (!options.is_empty()).then(|| options.join(" "))
}

/// Accepts any difference but that of the status.
const WHOLE: &str = "--parity status";

/// The path, with `[*]` for its positions in lists if it stands for several of these paths.
fn alike(path: &str, paths: &[&str]) -> String {
    let any = |path: &str| JsonPath::parse(path).ok().map(|path| path.of_every_element());
    let own = any(path);
    let several = paths.iter().any(|one| *one != path && any(one) == own);
    own.filter(|_| several).unwrap_or_else(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(places: &[&str]) -> Option<String> {
        let one = |path: &&str| Difference {
            contender: "b".into(),
            probe: "url".into(),
            path: (*path).into(),
            expected: "1".into(),
            got: "2".into(),
            against: "a".into(),
            when: "before".into(),
        };
        options(&places.iter().map(one).collect::<Vec<_>>())
    }

    #[test]
    fn every_place_has_its_option() {
        for (places, option) in [
            (&["header content-type"][..], "--ignore-header content-type"),
            (&["$.time", "$.time"], "--ignore-json '$.time'"),
            (&["$[\"odd name\"]"], "--ignore-json '$[\"odd name\"]'"),
            (&["$.a[0].t"], "--ignore-json '$.a[0].t'"),
            (&["$.a[0].t", "$.a[7].t", "$.n"], "--ignore-json '$.a[*].t' --ignore-json '$.n'"),
            (&["answers", "$.n"], "--ignore-json '$.n'"),
            (&["header content-type", "body, byte 7"], "--parity status"),
            (&["$.a"; Difference::MOST], "--parity status"),
        ] {
            assert_eq!(accepted(places).as_deref(), Some(option), "{places:?}");
        }
    }

    #[test]
    fn no_option_accepts_a_failure() {
        for places in
            [&[][..], &["status"], &["answer"], &["$.time", "status"], &["answers"], &["answers", "answers"]]
        {
            assert_eq!(accepted(places), None, "{places:?}");
        }
    }
}
