//! Finds out whether all matches of a pattern have the same length, so that a body's length follows from its rules.
//!
//! Owns: reading a pattern's structure. Must not know: where in a body the pattern occurs.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The number of bytes in JSON that every match of the whole of `pattern` takes. None if it is not known: matches of several lengths are
/// possible, the pattern is not anchored at both ends, or it allows characters that only some encoders escape. `\d` and similar classes
/// match only ASCII here.
pub(crate) fn fixed_length(pattern: &str) -> Option<usize> {
    let hir = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern).ok()?;
    let ends = hir.properties();
    let whole = ends.look_set_prefix().contains(Look::Start) && ends.look_set_suffix().contains(Look::End);
    if whole { length(&hir) } else { None }
}

fn length(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(0),
        HirKind::Literal(literal) => literal.0.iter().all(|byte| is_plain(*byte)).then_some(literal.0.len()),
        HirKind::Class(Class::Bytes(class)) => {
            let mut bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            bytes.all(is_plain).then_some(1)
        }
        HirKind::Class(Class::Unicode(_)) => None,
        HirKind::Repetition(repeated) => {
            let times = usize::try_from(repeated.min).ok()?;
            (repeated.max == Some(repeated.min)).then_some(times.checked_mul(length(&repeated.sub)?)?)
        }
        HirKind::Capture(group) => length(&group.sub),
        HirKind::Concat(parts) => parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(length(part)?)),
        HirKind::Alternation(choices) => {
            let (first, rest) = choices.split_first()?;
            let one = length(first)?;
            rest.iter().all(|choice| length(choice) == Some(one)).then_some(one)
        }
    }
}

/// Whether every JSON encoder writes the byte unchanged.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" -_.:,;=~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_one_length_are_told_from_others() {
        for (pattern, expected) in [
            ("^[0-9a-f]{32}$", Some(32)),
            (r"^GB\.24\.\d{8}\.[A-Za-z0-9_-]{16}$", Some(31)),
            ("^(?:on |off)$", Some(3)),
            ("^$", Some(0)),
            ("^[0-9]+$", None),
            ("^[0-9]{1,2}$", None),
            ("^on|off$", None),
            ("^(on|off)$", None),
            ("[0-9]{4}", None),
            ("^[0-9]{4}", None),
            ("(?m)^[0-9]{4}$", None),
            ("^.{4}$", None),
            ("^[A-Za-z0-9+/]{4}$", None),
            ("^é$", None),
            ("^[0-9", None),
        ] {
            assert_eq!(fixed_length(pattern), expected, "{pattern}");
        }
    }
}
