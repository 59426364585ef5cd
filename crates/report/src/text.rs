//! Text in columns: escaping of text from outside, counting, measuring, padding, shortening, wrapping.
//!
//! Owns: every decision about what a character may do to a terminal. Must not know: what a text means.

use std::fmt::Write as _;

pub(crate) use deadheat_analysis::number::count;
use deadheat_record::VerdictWord;
use unicode_width::UnicodeWidthChar as _;

/// The text with all characters escaped that a terminal would act on or not show: control characters, invisible ones, and those that change the
/// writing direction.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if acts(other) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", other as u32);
            }
            other => out.push(other),
        }
    }
    out
}

fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A verdict with what is said beside it: `faster, negligible`, `inconclusive, provisional`.
pub(crate) fn verdict(word: VerdictWord, negligible: bool, provisional: bool) -> String {
    let aside = match (negligible, provisional) {
        (true, _) => ", negligible",
        (_, true) => ", provisional",
        _ => "",
    };
    word.word().to_owned() + aside
}

/// The number of columns that the text takes, summed over its characters, so that cutting and measuring agree.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

/// The text with spaces behind it up to `width` columns.
pub(crate) fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// The text with spaces before it up to `width` columns.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// The text, shortened at its end to `width` columns; `mark` replaces the removed part.
pub(crate) fn shorten_end(text: &str, width: usize, mark: &str) -> String {
    if columns(text) <= width {
        return text.into();
    }
    head(text, width.saturating_sub(columns(mark))) + mark
}

/// The text, shortened in its middle to `width` columns; `mark` replaces the removed part.
pub(crate) fn shorten_middle(text: &str, width: usize, mark: &str) -> String {
    if columns(text) <= width {
        return text.into();
    }
    let room = width.saturating_sub(columns(mark));
    let end = tail(text, room / 2);
    head(text, room - columns(&end)) + mark + &end
}

fn head(text: &str, width: usize) -> String {
    let mut used = 0;
    text.chars().take_while(|c| step(&mut used, *c) <= width).collect()
}

fn tail(text: &str, width: usize) -> String {
    let mut used = 0;
    let kept: Vec<char> = text.chars().rev().take_while(|c| step(&mut used, *c) <= width).collect();
    kept.into_iter().rev().collect()
}

fn step(used: &mut usize, character: char) -> usize {
    *used += character.width().unwrap_or(0);
    *used
}

/// The text in lines of at most `width` columns, broken between words. A word that is wider is split.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    for word in words(text).iter().flat_map(|word| pieces(word, width)) {
        let line = lines.last().map_or(0, |line| columns(line));
        match lines.last_mut() {
            Some(last) if line == 0 => last.push_str(&word),
            Some(last) if line + 1 + columns(&word) <= width => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The text's words; a percent sign stays with its figure.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if word.starts_with('%') => *last += &format!(" {word}"),
            _ => words.push(word.into()),
        }
    }
    words
}

fn pieces(word: &str, width: usize) -> Vec<String> {
    let (mut out, mut rest) = (Vec::new(), word);
    while columns(rest) > width {
        let piece = head(rest, width);
        rest = &rest[piece.len()..];
        out.push(piece);
    }
    out.push(rest.into());
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_written_as_an_escape() {
        assert_eq!(plain("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(plain("x\u{202e}gpj.exe\u{2066}"), "x\\u{202e}gpj.exe\\u{2066}");
        assert_eq!(plain("a\r\n\tb\u{9b}31m\u{200b}"), "a\\r\\n\\tb\\u{9b}31m\\u{200b}");
        assert_eq!(plain("<img onerror=x> café 日本 µ"), "<img onerror=x> café 日本 µ");
    }

    #[test]
    fn shortened_at_the_end_or_in_the_middle() {
        assert_eq!(shorten_end("abcdefgh", 5, "…"), "abcd…");
        assert_eq!(shorten_middle("abcdefgh", 5, "…"), "ab…gh");
        assert_eq!(shorten_end("日本語", 4, "…"), "日…");
        assert_eq!(shorten_middle("abc", 3, "…"), "abc");
    }

    #[test]
    fn wrapped_between_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("at most 3 % more", 9), ["at most", "3 % more"]);
        assert_eq!(wrap("abcdefghijklmnop", 10), ["abcdefghij", "klmnop"]);
    }

    proptest! {
        #[test]
        fn nothing_is_wider_than_it_may_be(text in "\\PC{0,60}", width in 8..40_usize) {
            prop_assert!(wrap(&text, width).iter().all(|line| columns(line) <= width));
            prop_assert!(columns(&shorten_end(&text, width, "…")) <= width);
            prop_assert!(columns(&shorten_middle(&text, width, "…")) <= width);
        }

        #[test]
        fn no_control_character_gets_through(text in any::<String>()) {
            prop_assert!(!plain(&text).chars().any(acts));
        }
    }
}
