//! The requests of a load in wire format, and their order.
//!
//! Owns: how flags and a file of requests become bytes. Must not know: answers, connections, time.

use std::path::Path;

use deadheat_load::{
    BodyRule, Expectation, Prepared, Requests, RequestsError, StatusRule, StatusSet, request_bytes,
};

use super::request_file::{self, RequestSpec};
use super::target::Target;
use crate::flags::{OrderFlag, RequestFlags};
use deadheat_study::choices::UsageError;
use deadheat_study::file::shown;
use deadheat_study::values::Header;

/// The length of a random order, which then repeats. It takes 1 MiB, and it keeps every weight down to 1 in 10,000 accurate within a few per cent.
const POSITIONS: usize = 1 << 18;

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wire {
    /// The method, which is a token.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// The accepted status codes.
    pub(crate) status: StatusSet,
    /// How often it is sent relative to the others.
    pub(crate) weight: f64,
}

/// The order in which requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    /// There is only one.
    One,
    /// One after the other, repeatedly.
    Sequential,
    /// At random, by weight.
    Random,
    /// At random, by Zipf's law with this exponent.
    Zipf(f64),
}

impl Order {
    /// The words for the record.
    pub(crate) fn words(self) -> String {
        match self {
            Self::One => "one".into(),
            Self::Sequential => "sequential".into(),
            Self::Random => "random".into(),
            Self::Zipf(exponent) => format!("zipf {exponent}"),
        }
    }
}

/// The requests of a load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wires {
    /// At least one request.
    pub(crate) all: Vec<Wire>,
    pub(crate) order: Order,
    /// The default method for requests of the file.
    pub(crate) method: String,
}

impl Wires {
    /// Builds the requests. Reads the file of requests and the file of the body.
    pub(crate) fn of(flags: &RequestFlags, target: &Target, status: StatusSet) -> Result<Self, UsageError> {
        let method = flags.method.clone().unwrap_or_else(|| "GET".into());
        let body = match flags.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
            None => Vec::new(),
            Some((_, Some(path))) => read("--body", Path::new(path))?,
            Some((text, None)) => text.as_bytes().to_vec(),
        };
        let common = Common { method: &method, headers: &flags.headers, body: &body, target, status };
        let all = match &flags.requests_file {
            None => vec![common.wire(&RequestSpec {
                line: 0,
                method: None,
                target: target.path.clone(),
                headers: vec![],
                body: None,
                weight: 1.0,
                expect_status: None,
            })?],
            Some(path) => {
                let bytes = read("--requests-file", path)?;
                let specs = request_file::parse(&path.display().to_string(), &bytes, &target.origin());
                let specs = specs.map_err(|error| {
                    let file = shown(&error.file);
                    UsageError::new(format!("{file}:{}: {}", error.line, error.problem), error.remedy)
                })?;
                specs.iter().map(|spec| common.wire(spec)).collect::<Result<_, _>>()?
            }
        };
        let order = order(flags, &all)?;
        Ok(Self { all, order, method })
    }

    /// The requests for the engine: each with the rule for its body, in order.
    pub(crate) fn requests(&self, bodies: &[BodyRule], seed: u64) -> Result<Requests, UsageError> {
        let prepared = self.all.iter().zip(bodies).map(|(wire, body)| Prepared {
            bytes: wire.bytes.clone(),
            head: wire.method == "HEAD",
            expect: Expectation { status: StatusRule::Set(wire.status), body: *body },
        });
        let positions = POSITIONS.max(8 * self.all.len());
        let requests = match self.order {
            Order::One | Order::Sequential => Requests::in_turn(prepared.collect()),
            Order::Random => {
                let weights = self.all.iter().map(|wire| wire.weight);
                Requests::weighted(prepared.zip(weights).collect(), positions, seed)
            }
            Order::Zipf(exponent) => Requests::zipf(prepared.collect(), exponent, positions, seed),
        };
        requests.map_err(|error| {
            let option = if matches!(error, RequestsError::Exponent) { "--zipf" } else { "--requests-file" };
            UsageError::new(format!("{option}: {error}"), "for example: --zipf 1")
        })
    }
}

/// Default settings for requests of a file.
struct Common<'a> {
    method: &'a str,
    headers: &'a [Header],
    body: &'a [u8],
    target: &'a Target,
    status: StatusSet,
}

impl Common<'_> {
    fn wire(&self, spec: &RequestSpec) -> Result<Wire, UsageError> {
        let method = spec.method.as_deref().unwrap_or(self.method);
        let own =
            |header: &&Header| spec.headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case(&header.name));
        let common =
            self.headers.iter().filter(own).map(|header| (header.name.clone(), header.value.clone()));
        let headers: Vec<(String, String)> = common.chain(spec.headers.iter().cloned()).collect();
        let body = spec.body.as_deref().unwrap_or(self.body);
        let bytes = request_bytes(method, &spec.target, &self.target.authority(), &headers, body);
        let bytes = bytes
            .map_err(|error| UsageError::new(error.to_string(), "correct --method, --header or the URL"))?;
        Ok(Wire {
            method: method.to_owned(),
            path: spec.target.clone(),
            bytes,
            status: spec.expect_status.unwrap_or(self.status),
            weight: spec.weight,
        })
    }
}

fn order(flags: &RequestFlags, all: &[Wire]) -> Result<Order, UsageError> {
    let weighted = all.iter().any(|wire| wire.weight != all[0].weight);
    let clash = |option: &str| {
        let problem = format!("{option} cannot be combined with the weights in the file of requests");
        Err(UsageError::new(problem, format!("leave {option} or the weights out")))
    };
    match (flags.zipf, flags.order) {
        (Some(_), _) if weighted => clash("--zipf"),
        (Some(exponent), _) => Ok(Order::Zipf(exponent)),
        (None, Some(OrderFlag::Sequential)) if weighted => clash("--order sequential"),
        (None, Some(OrderFlag::Random)) => Ok(Order::Random),
        _ if weighted => Ok(Order::Random),
        _ => Ok(if all.len() == 1 { Order::One } else { Order::Sequential }),
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, UsageError> {
    std::fs::read(path).map_err(|error| {
        let problem = format!("{option} {}: {error}", shown(&path.display().to_string()));
        UsageError::new(problem, "name a file that can be read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wires(flags: &RequestFlags) -> Result<Wires, UsageError> {
        let target = Target::parse("http://127.0.0.1:8080/x").unwrap();
        Wires::of(flags, &target, StatusSet::range(200..=399))
    }

    fn of_file(text: &str, flags: RequestFlags) -> Result<Wires, UsageError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        wires(&RequestFlags { requests_file: Some(file.path().to_owned()), ..flags })
    }

    #[test]
    fn the_url_is_one_request() {
        let header = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
        let flags = RequestFlags {
            method: Some("POST".into()),
            headers: vec![header("a", "b")],
            body: Some("c=d".into()),
            ..RequestFlags::default()
        };
        let made = wires(&flags).unwrap();
        let text = String::from_utf8(made.all[0].bytes.clone()).unwrap();
        assert!(text.starts_with("POST /x HTTP/1.1\r\nHost: 127.0.0.1:8080\r\na: b\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 3\r\n\r\nc=d"), "{text}");
        assert_eq!((made.order, made.all.len()), (Order::One, 1));
        let host = RequestFlags { headers: vec![header("host", "x.test")], ..RequestFlags::default() };
        let text = String::from_utf8(wires(&host).unwrap().all[0].bytes.clone()).unwrap();
        assert!(text.contains("host: x.test\r\n") && !text.contains("127.0.0.1"), "{text}");
    }

    #[test]
    fn a_file_may_say_otherwise() {
        let flags = RequestFlags {
            headers: vec![Header { name: "A".into(), value: "1".into() }],
            ..RequestFlags::default()
        };
        let text =
            "/a\n{\"path\":\"/b\",\"method\":\"PUT\",\"headers\":{\"a\":\"2\"},\"expect_status\":201}\n";
        let made = of_file(text, flags).unwrap();
        let texts: Vec<String> =
            made.all.iter().map(|wire| String::from_utf8(wire.bytes.clone()).unwrap()).collect();
        assert!(texts[0].starts_with("GET /a ") && texts[0].contains("A: 1\r\n"), "{}", texts[0]);
        assert!(texts[1].starts_with("PUT /b ") && texts[1].contains("a: 2\r\n"), "{}", texts[1]);
        assert!(!texts[1].contains("A: 1"), "{}", texts[1]);
        assert!(made.all[1].status.contains(201) && !made.all[1].status.contains(200));
        assert_eq!(made.order, Order::Sequential);
    }

    #[test]
    fn the_order_follows_from_weights_and_options() {
        let none = RequestFlags::default;
        let with_order = |order| RequestFlags { order: Some(order), ..none() };
        let zipf = |exponent| RequestFlags { zipf: Some(exponent), ..none() };
        let order = |text: &str, flags| of_file(text, flags).map(|made| made.order);
        assert_eq!(order("/a\n/b\n", none()), Ok(Order::Sequential));
        assert_eq!(order("/a\t3\n/b\n", none()), Ok(Order::Random));
        assert_eq!(order("/a\t3\n/b\t3\n", none()), Ok(Order::Sequential));
        assert_eq!(order("/a\n/b\n", with_order(OrderFlag::Random)), Ok(Order::Random));
        assert_eq!(order("/a\n/b\n", zipf(1.1)), Ok(Order::Zipf(1.1)));
        for flags in [zipf(1.0), with_order(OrderFlag::Sequential)] {
            assert!(order("/a\t3\n/b\n", flags).unwrap_err().problem.contains("weights"));
        }
        for exponent in [-1.0, f64::NAN] {
            let made = of_file("/a\n/b\n", zipf(exponent)).unwrap();
            let error = made.requests(&[BodyRule::Any; 2], 1).unwrap_err();
            assert!(error.problem.starts_with("--zipf"), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let missing = RequestFlags { body: Some("@no/such/file".into()), ..RequestFlags::default() };
        assert!(wires(&missing).unwrap_err().problem.contains("--body no/such/file"));
        let error = of_file("/a\nb\n", RequestFlags::default()).unwrap_err();
        assert!(error.problem.contains(":2: found `b`"), "{error}");
        let method = RequestFlags { method: Some("GET IT".into()), ..RequestFlags::default() };
        assert!(wires(&method).unwrap_err().problem.contains("not a token"));
    }
}
