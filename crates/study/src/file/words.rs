//! Shows and compares words. Strings of a study are data, so they are escaped; for a misspelled word, the nearest known word is suggested.

/// The number of characters of a string that are shown.
const SHOWN_LENGTH: usize = 60;

/// Prepares `text` for display: escapes control characters and changes of the writing direction, and shortens long texts.
pub fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN_LENGTH).map(escaped).collect();
    if text.chars().nth(SHOWN_LENGTH).is_some() {
        out.push('…');
    }
    out
}

fn escaped(character: char) -> String {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || turns { character.escape_default().collect() } else { character.into() }
}

/// The whole `text`, with control characters replaced.
pub fn tamed(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// The candidate that `word` probably means: at most a third of its letters differ, or only the case differs.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word = word.to_lowercase();
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The edit distance of two words. A swap of neighbours counts as one edit; `_`, `-` and a plural s do not count.
fn distance(word: &str, candidate: &str) -> usize {
    let plain = |word: &str| word.replace(['_', '-'], "");
    let (word, candidate) = (plain(word), plain(candidate));
    if word.strip_suffix('s') == Some(candidate.as_str()) {
        return 0;
    }
    strsim::damerau_levenshtein(&word, &candidate)
}

/// `a`, `b` or `c`, each in backticks.
pub fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{}`", shown(word))).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_do_not_reach_the_terminal() {
        assert_eq!(shown("a\u{1b}[31mb\n\u{202e}ü"), "a\\u{1b}[31mb\\n\\u{202e}ü");
        assert_eq!(shown(&"x".repeat(70)).chars().count(), 61);
        assert_eq!(tamed("a\u{1b}[31m\tb\n"), "a\u{fffd}[31m\u{fffd}b\u{fffd}");
    }

    #[test]
    fn the_nearest_word_is_near() {
        let words = ["command", "folder", "connections", "rate"];
        for (word, wanted) in [
            ("comand", Some("command")),
            ("Folder", Some("folder")),
            ("conections", Some("connections")),
            ("rates", Some("rate")),
            ("arte", Some("rate")),
            ("xyz", None),
            ("cwd", None),
        ] {
            assert_eq!(nearest(word, words), wanted, "{word}");
        }
        assert_eq!(nearest("under-load", ["under_load"]), Some("under_load"));
    }

    #[test]
    fn lists_read_like_a_sentence() {
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of([]), "none");
    }
}
