//! Owns: the bytes of one request and the rules for its answer. Must not know sockets, order or time.

use xxhash_rust::xxh3::xxh3_64;

use crate::status::StatusSet;

/// One request, ready to send, with the rules for its answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prepared {
    /// The whole request as sent, head and body.
    pub bytes: Vec<u8>,
    /// Whether this is a HEAD request, whose answer has no body whatever its headers say.
    pub head: bool,
    /// The rules that the answer must meet.
    pub expect: Expectation,
}

/// The rules for the answer to a request. The status is checked first, and the body only if the status is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Expectation {
    /// Which status codes are right.
    pub status: StatusRule,
    /// Which bodies are right.
    pub body: BodyRule,
}

impl Expectation {
    /// Any complete answer is right.
    pub const ANY: Expectation = Expectation { status: StatusRule::Any, body: BodyRule::Any };
}

/// Which status codes are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum StatusRule {
    /// Every code.
    Any,
    /// This code and no other.
    Exact(u16),
    /// The codes of this set.
    Set(StatusSet),
}

impl StatusRule {
    /// Whether `status` is right under this rule.
    pub fn admits(self, status: u16) -> bool {
        match self {
            StatusRule::Any => true,
            StatusRule::Exact(wanted) => wanted == status,
            StatusRule::Set(set) => set.contains(status),
        }
    }
}

/// Which bodies are right. Lengths are of the decoded body (without chunk framing), in bytes; an answer to HEAD has 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BodyRule {
    /// Any body; it is not hashed.
    Any,
    /// Any body of this many bytes; it is not hashed.
    Length(u64),
    /// The body with this length and this [`digest`].
    Digest {
        /// Bytes of the decoded body.
        length: u64,
        /// [`digest`] of the decoded body.
        xxh3: u64,
    },
}

impl BodyRule {
    /// The rule that only this body meets.
    pub fn exactly(body: &[u8]) -> BodyRule {
        BodyRule::Digest { length: body.len() as u64, xxh3: digest(body) }
    }

    /// The rule that costs as much to check, for a server that answers with `body`; `head` says that the request is a HEAD request.
    pub fn as_costly(self, body: &[u8], head: bool) -> BodyRule {
        match self {
            BodyRule::Digest { .. } => BodyRule::exactly(if head { b"" } else { body }),
            BodyRule::Any | BodyRule::Length(_) => BodyRule::Any,
        }
    }
}

/// The digest by which bodies are compared: XXH3, 64 bits, seed 0. It detects differences, but does not prove origin.
pub fn digest(body: &[u8]) -> u64 {
    xxh3_64(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_rules() {
        for (rule, status, right) in [
            (StatusRule::Any, 599, true),
            (StatusRule::Exact(404), 404, true),
            (StatusRule::Exact(404), 200, false),
            (StatusRule::Set([200, 404].into_iter().collect()), 404, true),
            (StatusRule::Set([200, 404].into_iter().collect()), 403, false),
        ] {
            assert_eq!(rule.admits(status), right, "{rule:?} {status}");
        }
    }

    #[test]
    fn a_rule_for_another_server_costs_as_much_to_check() {
        let costly = BodyRule::exactly(b"long");
        assert_eq!(costly.as_costly(b"x", false), BodyRule::exactly(b"x"));
        assert_eq!(costly.as_costly(b"x", true), BodyRule::exactly(b""));
        assert_eq!(BodyRule::Length(4).as_costly(b"x", false), BodyRule::Any);
    }

    #[test]
    fn digest_is_xxh3_with_seed_zero() {
        // The value for empty input in the reference implementation's test vectors.
        assert_eq!(digest(b""), 0x2D06_8005_38D3_94C2);
    }
}
