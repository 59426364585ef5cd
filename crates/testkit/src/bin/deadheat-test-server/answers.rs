//! The bytes of each answer, right or wrong, as a function of the request and of the number of earlier answers.
//! This module knows no socket, and uses the clock only to burn time.

use std::hint::black_box;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::json;

use crate::options::Options;
use crate::request::Request;

/// The path of a login.
const LOGIN: &str = "/login";
const DEFAULT_BODY: &str = "hello from the test server\n";

/// What happens to the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum After {
    Keep,
    Close,
}

/// The answers of one server process, in order.
pub(crate) struct Answers<'a> {
    options: &'a Options,
    answered: u64,
    /// What a login answers: different in each process.
    token: String,
    /// The last plain answer and its request, kept so that the common case costs one copy.
    last: Option<(String, Vec<u8>)>,
}

/// How one answer deviates from the right one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Deviation {
    differs: bool,
    shorter: bool,
    status: u16,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(options: &'a Options) -> Self {
        let now_ns = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
        let seed = now_ns ^ u64::from(std::process::id());
        let token = format!("{:016x}{:016x}", mix(seed), mix(mix(seed)));
        Self { options, answered: 0, token, last: None }
    }

    /// How many requests have been answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    /// How long to hold back the answer that was just made.
    pub(crate) fn delay(&self) -> Duration {
        match self.options.slow {
            Some((slow, share)) if unit(self.answered) < share => slow,
            _ => self.options.delay(),
        }
    }

    /// Appends the answer to `request` to `out`.
    pub(crate) fn answer(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> After {
        let options = self.options;
        if options.never_answer {
            return After::Keep;
        }
        let dead = options.exit_after.is_some_and(|limit| self.answered >= limit);
        if options.close_without_answer || dead {
            return After::Close;
        }
        spin(options.spin.mul_f64(1.0 + options.ease.map_or(0.0, |half| self.still_cold(half))));
        black_box(work(options.work));
        self.answered += 1;
        if options.garbage {
            out.extend_from_slice(b"\x00\xff\x1b[31m this is not HTTP \xfe\r\n\r\n");
            return After::Close;
        }
        let close = options.close_each || options.truncate || request.close;
        let mut deviation = self.deviation();
        let is_login = options.login && request.target == LOGIN;
        if options.login && !is_login && request.authorization.strip_prefix("Bearer ") != Some(&self.token) {
            deviation.status = 401;
        }
        let plain = deviation == Deviation { differs: false, shorter: false, status: options.status };
        if !plain || close || options.counter_token || is_login {
            self.render(request, deviation, close, out);
            return if close { After::Close } else { After::Keep };
        }
        let key = format!("{} {}", request.method, request.target);
        match &self.last {
            Some((same, bytes)) if *same == key => out.extend_from_slice(bytes),
            _ => {
                let start = out.len();
                self.render(request, deviation, close, out);
                self.last = Some((key, out[start..].to_vec()));
            }
        }
        After::Keep
    }

    /// The extra time of the next answer while the server is cold, as a share of `spin`: 1 at first, a half after `half` answers.
    fn still_cold(&self, half: u64) -> f64 {
        half as f64 / (half + self.answered) as f64
    }

    /// How the answer that was just counted must deviate.
    fn deviation(&self) -> Deviation {
        let n = self.answered;
        let after = |limit: Option<u64>| limit.is_some_and(|limit| n > limit);
        let options = self.options;
        Deviation {
            differs: after(options.differ_under_load)
                || options.differ_every.is_some_and(|every| n.is_multiple_of(every)),
            shorter: after(options.shorter_under_load),
            status: match options.status_under_load {
                Some((limit, code)) if n > limit => code,
                _ => options.status,
            },
        }
    }

    fn render(&self, request: &Request<'_>, deviation: Deviation, close: bool, out: &mut Vec<u8>) {
        let mut body = self.body(request, deviation.differs);
        if deviation.shorter {
            body.truncate(body.len() / 2);
        }
        let bodiless = matches!(deviation.status, 204 | 304);
        let mut head = format!("HTTP/1.1 {} {}\r\n", deviation.status, reason(deviation.status));
        if !bodiless {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
            if !self.options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                let kind = if self.options.json { "application/json" } else { "text/plain; charset=utf-8" };
                head.push_str(&format!("content-type: {kind}\r\n"));
            }
        }
        for (name, value) in &self.options.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(if close { "connection: close\r\n\r\n" } else { "\r\n" });
        out.extend_from_slice(head.as_bytes());
        if !bodiless && request.method != "HEAD" {
            let sent = if self.options.truncate { body.len() / 2 } else { body.len() };
            out.extend_from_slice(&body[..sent]);
        }
    }

    fn body(&self, request: &Request<'_>, differs: bool) -> Vec<u8> {
        if self.options.login && request.target == LOGIN {
            return json!({ "access_token": self.token, "expires_in": 3600 }).to_string().into_bytes();
        }
        if self.options.json {
            let mut value = json!({
                "path": request.target,
                "method": request.method,
                "n": if differs { 2 } else { 1 },
                "ok": true,
                "items": ["a", "b", "c"],
            });
            if self.options.counter_token {
                value["token"] = json!(format!("{:016x}", mix(self.answered)));
            }
            return value.to_string().into_bytes();
        }
        let mut body = self.options.body.as_deref().unwrap_or(DEFAULT_BODY).as_bytes().to_vec();
        if differs {
            different(&mut body);
        }
        body
    }
}

/// Changes one byte: the last letter or digit if there is one, else the last byte.
fn different(body: &mut [u8]) {
    let at = body.iter().rposition(u8::is_ascii_alphanumeric).unwrap_or(body.len().saturating_sub(1));
    if let Some(byte) = body.get_mut(at) {
        *byte = if *byte == b'X' { b'Y' } else { b'X' };
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// Burns `duration` of CPU time in user mode. While others keep this thread waiting, next to nothing of it passes.
fn spin(duration: Duration) {
    const LONGEST_STEP: Duration = Duration::from_micros(2);
    let (mut burnt, mut last) = (Duration::ZERO, Instant::now());
    while burnt < duration {
        std::hint::spin_loop();
        let now = Instant::now();
        burnt += (now - last).min(LONGEST_STEP);
        last = now;
    }
}

/// Runs `rounds` rounds of an integer hash, each depending on the one before, so that the number of instructions is constant.
pub(crate) fn work(rounds: u64) -> u64 {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..rounds {
        state = mix(state);
    }
    state
}

/// A pseudo-random number from 0 to below 1 for each count, the same in each run of the server.
fn unit(count: u64) -> f64 {
    (mix(count) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The finaliser of SplitMix64: a bijection, so tokens made from a counter never repeat.
fn mix(value: u64) -> u64 {
    let a = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    c ^ (c >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Request<'static> =
        Request { method: "GET", target: "/x", authorization: "", close: false, length: 0 };

    fn answers(options: &Options, count: usize) -> Vec<String> {
        let mut answers = Answers::new(options);
        (0..count)
            .map(|_| {
                let mut out = Vec::new();
                answers.answer(&GET, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            })
            .collect()
    }

    fn good() -> Options {
        Options { status: 200, body: Some("abc".to_owned()), ..Options::default() }
    }

    #[test]
    fn a_good_answer_is_the_same_each_time() {
        let expected =
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-type: text/plain; charset=utf-8\r\n\r\nabc";
        assert_eq!(answers(&good(), 3), [expected; 3]);
    }

    #[test]
    fn answers_differ_when_told_and_keep_their_length() {
        let after = answers(&Options { differ_under_load: Some(2), ..good() }, 4);
        assert!(after[1].ends_with("\r\n\r\nabc") && after[2].ends_with("\r\n\r\nabX"));
        assert_eq!((after[0].len(), &after[3]), (after[2].len(), &after[2]));
        let every = answers(&Options { differ_every: Some(3), ..good() }, 6);
        let odd: Vec<bool> = every.iter().map(|answer| answer.ends_with("abX")).collect();
        assert_eq!(odd, [false, false, true, false, false, true]);
        let json = Options { status: 200, json: true, differ_under_load: Some(0), ..Options::default() };
        assert!(answers(&json, 1)[0].contains("\"n\":2"));
    }

    #[test]
    fn later_answers_can_be_shorter_or_of_another_status() {
        let shorter = answers(&Options { shorter_under_load: Some(1), ..good() }, 2);
        assert!(shorter[1].contains("content-length: 1\r\n") && shorter[1].ends_with("\r\n\r\na"));
        let failing = answers(&Options { status_under_load: Some((1, 503)), ..good() }, 2);
        assert!(failing[0].starts_with("HTTP/1.1 200 ") && failing[1].starts_with("HTTP/1.1 503 "));
    }

    #[test]
    fn tokens_change_and_keep_their_length() {
        let options = Options { status: 200, json: true, counter_token: true, ..Options::default() };
        let all = answers(&options, 50);
        let distinct: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), 50);
        assert!(all.iter().all(|answer| answer.len() == all[0].len()));
    }

    #[test]
    fn only_who_has_the_token_gets_an_answer() {
        let options = Options { login: true, json: true, body: None, ..good() };
        let mut answers = Answers::new(&options);
        let token = answers.token.clone();
        let mut answer = |target, authorization: &str| {
            let mut out = Vec::new();
            answers.answer(&Request { target, authorization, ..GET }, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        let login = answer("/login", "");
        assert!(login.starts_with("HTTP/1.1 200 ") && login.contains(&token), "{login}");
        for (authorization, status) in [("", 401), (&format!("Bearer {token}"), 200), ("Bearer x", 401)] {
            let told = answer("/x", authorization);
            assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{authorization}: {told}");
        }
    }

    #[test]
    fn a_share_of_the_answers_is_slow() {
        let (slow, delay) = (Duration::from_millis(9), Duration::from_millis(1));
        for share in [0.0, 0.02, 1.0] {
            let options = Options { slow: Some((slow, share)), delay: Some(delay), ..good() };
            let mut answers = Answers::new(&options);
            let count = (0..10_000).filter(|_| {
                answers.answer(&GET, &mut Vec::new());
                assert!([slow, delay].contains(&answers.delay()));
                answers.delay() == slow
            });
            let found = count.count() as f64 / 10_000.0;
            assert!((found - share).abs() < 0.005, "{share}: {found}");
        }
    }

    #[test]
    fn a_different_body_is_never_the_same_body() {
        for text in ["X", "Y", "  ", "ab\n", "\u{e9}"] {
            let mut body = text.as_bytes().to_vec();
            different(&mut body);
            assert_ne!(body, text.as_bytes());
        }
    }
}
