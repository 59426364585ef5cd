//! Chooses what to check in answers: everything that two answers before the load have in common.
//!
//! Owns: that choice. Must not know: connections (a function gets the answers), the load itself.

use deadheat_load::{Answer, BodyRule, StatusSet, holds_time};
use deadheat_record::Checked;

use super::wire::Wire;
use crate::flags::ExpectFlag;
use deadheat_study::choices::UsageError;
use deadheat_study::file::shown;

/// By default, at most this many different requests are sent before the load. Bodies of further requests are not checked.
pub(crate) const MOST_ASKED: usize = 100;

/// The checks of each request's answer, and how they were chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checks {
    /// One rule per request.
    pub(crate) bodies: Vec<BodyRule>,
    /// A summary in numbers and words.
    pub(crate) checked: Checked,
}

/// Gets answers with `ask`, unless `expect` makes this unnecessary. `None` if `stopped` becomes true before the end.
///
/// # Errors
/// A requested comparison is impossible, because its answer does not arrive. By default, such a request is not checked.
pub(crate) fn checks(
    wires: &[Wire],
    status: &StatusSet,
    expect: Option<ExpectFlag>,
    ask: &mut dyn FnMut(&Wire) -> Result<Answer, String>,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Checks>, UsageError> {
    let mut bodies = vec![BodyRule::Any; wires.len()];
    let mut why = match expect {
        Some(ExpectFlag::Any) => "--expect any".to_owned(),
        Some(ExpectFlag::Length) => "--expect length".into(),
        Some(ExpectFlag::Same) => "--expect same".into(),
        None if wires.len() > MOST_ASKED => {
            format!("the first {MOST_ASKED} were asked twice before the load")
        }
        None => "asked twice before the load".into(),
    };
    let asked = match expect {
        Some(ExpectFlag::Any) => 0,
        Some(ExpectFlag::Length | ExpectFlag::Same) => wires.len(),
        None => wires.len().min(MOST_ASKED),
    };
    for (wire, body) in wires.iter().zip(&mut bodies).take(asked) {
        if stopped() {
            return Ok(None);
        }
        match rule(wire, expect, ask) {
            Ok((rule, words)) => {
                *body = rule;
                if let (1, None, Some(words)) = (wires.len(), expect, words) {
                    why = words;
                }
            }
            Err(_) if stopped() => return Ok(None),
            Err(error) if expect.is_some() => {
                let problem = format!("{why}: no answer to {} {}: {error}", wire.method, shown(&wire.path));
                return Err(UsageError::new(problem, "look at the server, or leave --expect out"));
            }
            Err(error) => {
                why = format!("the request before the load failed: {error}");
                break;
            }
        }
    }
    let count = |right: fn(&BodyRule) -> bool| bodies.iter().filter(|body| right(body)).count() as u64;
    let checked = Checked {
        status: status.to_string(),
        same: count(|body| matches!(body, BodyRule::Digest { .. })),
        length: count(|body| matches!(body, BodyRule::Length(_))),
        any: count(|body| matches!(body, BodyRule::Any)),
        why,
    };
    Ok(Some(Checks { bodies, checked }))
}

/// The strictest rule for one request, and the reason for it, which is shown if this is the only request.
fn rule(
    wire: &Wire,
    expect: Option<ExpectFlag>,
    ask: &mut dyn FnMut(&Wire) -> Result<Answer, String>,
) -> Result<(BodyRule, Option<String>), String> {
    let first = ask(wire)?;
    let length = BodyRule::Length(first.body.len() as u64);
    match expect {
        Some(ExpectFlag::Same) => return Ok((BodyRule::exactly(&first.body), None)),
        Some(ExpectFlag::Length) => return Ok((length, None)),
        Some(ExpectFlag::Any) => return Ok((BodyRule::Any, None)),
        None => {}
    }
    if !wire.status.contains(first.status) {
        let words = format!("before the load it was answered with status {}", first.status);
        return Ok((BodyRule::Any, Some(words)));
    }
    let second = ask(wire)?;
    let encoding = first.header("content-encoding").map(String::from_utf8_lossy);
    let (rule, words) =
        if holds_time(&first.body, encoding.as_deref()) && first.body.len() == second.body.len() {
            (length, "answers before the load hold the time at which they were compressed")
        } else if first.body == second.body {
            (BodyRule::exactly(&first.body), "two answers before the load were the same")
        } else if first.body.len() == second.body.len() {
            (length, "two answers before the load differed, but not in length")
        } else {
            (BodyRule::Any, "two answers before the load differed in length")
        };
    Ok((rule, Some(words.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> Wire {
        let status = StatusSet::range(200..=399);
        Wire { method: "GET".into(), path: "/".into(), bytes: vec![], status, weight: 1.0 }
    }

    /// The result for `count` requests and these answers, in this order. `None` is a failure.
    fn found(count: usize, expect: Option<ExpectFlag>, answers: &[Option<(u16, &str)>]) -> (Checks, usize) {
        let mut asked = 0;
        let mut ask = |_: &Wire| {
            let answer = answers[asked % answers.len()];
            asked += 1;
            let (status, body) = answer.ok_or("no complete answer within 1s")?;
            let encoded = body.starts_with("zip").then(|| ("Content-Encoding".to_owned(), b"gzip".to_vec()));
            Ok(Answer { status, headers: encoded.into_iter().collect(), body: body.into(), keep_alive: true })
        };
        let wires = vec![wire(); count];
        let status = StatusSet::range(200..=399);
        let checks = checks(&wires, &status, expect, &mut ask, &|| false).unwrap().unwrap();
        (checks, asked)
    }

    #[test]
    fn as_strict_as_two_answers_agree() {
        let of = |answers: &[Option<(u16, &str)>]| {
            let (checks, asked) = found(1, None, answers);
            (checks.bodies[0], checks.checked.why, asked)
        };
        let same = "two answers before the load were the same".to_owned();
        assert_eq!(of(&[Some((200, "ab"))]), (BodyRule::exactly(b"ab"), same, 2));
        let (rule, why, _) = of(&[Some((200, "ab")), Some((200, "cd"))]);
        assert_eq!((rule, why.contains("not in length")), (BodyRule::Length(2), true));
        let (rule, why, _) = of(&[Some((200, "ab")), Some((200, "c"))]);
        assert_eq!((rule, why.ends_with("in length")), (BodyRule::Any, true));
        let (rule, why, _) = of(&[Some((200, "zip at 9:59"))]);
        assert_eq!((rule, why.contains("the time at which")), (BodyRule::Length(11), true));
        let (rule, why, asked) = of(&[Some((404, "ab"))]);
        assert_eq!((rule, why.contains("status 404"), asked), (BodyRule::Any, true, 1));
    }

    #[test]
    fn after_a_failure_nothing_more_is_asked() {
        let (checks, asked) = found(5, None, &[Some((200, "a")), Some((200, "a")), None]);
        assert_eq!((checks.checked.same, checks.checked.any, asked), (1, 4, 3));
        assert!(checks.checked.why.contains("no complete answer within 1s"), "{}", checks.checked.why);
    }

    #[test]
    fn what_was_asked_for_is_not_left_out() {
        let mut ask = |_: &Wire| -> Result<Answer, String> { Err("no complete answer within 1s".into()) };
        let checks = checks(&[wire()], &StatusSet::default(), Some(ExpectFlag::Same), &mut ask, &|| false);
        assert!(checks.unwrap_err().problem.starts_with("--expect same: no answer to GET /: "));
    }

    #[test]
    fn only_the_first_hundred_are_asked() {
        let (checks, asked) = found(150, None, &[Some((200, "a"))]);
        assert_eq!((checks.checked.same, checks.checked.any, asked), (100, 50, 200));
        let (checks, asked) = found(150, Some(ExpectFlag::Length), &[Some((200, "a"))]);
        assert_eq!((checks.checked.length, checks.checked.any, asked), (150, 0, 150));
    }

    #[test]
    fn what_was_typed_is_done() {
        let answers = [Some((200, "ab")), Some((200, "c"))];
        for (expect, rule, wanted) in [
            (ExpectFlag::Any, BodyRule::Any, 0),
            (ExpectFlag::Length, BodyRule::Length(2), 1),
            (ExpectFlag::Same, BodyRule::exactly(b"ab"), 1),
        ] {
            let (checks, asked) = found(1, Some(expect), &answers);
            assert_eq!((checks.bodies[0], asked), (rule, wanted));
            assert!(checks.checked.why.starts_with("--expect"));
        }
    }

    #[test]
    fn it_can_be_stopped() {
        let mut ask = |_: &Wire| -> Result<Answer, String> { panic!("asked") };
        assert_eq!(checks(&[wire()], &StatusSet::default(), None, &mut ask, &|| true), Ok(None));
    }
}
