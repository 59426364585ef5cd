//! The requests of a load in wire format, and their order.
//!
//! Owns: how flags and a file of requests become bytes. Must not know: answers, connections, time.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use deadheat_load::{
    BodyRule, Expectation, Prepared, Recording, Requests, RequestsError, StatusRule, StatusSet, request_bytes,
};

use super::request_file::{self, RequestSpec};
use super::target::Target;
use crate::flags::{LogFlags, OrderFlag, RequestFlags};
use deadheat_record::LogReading;
use deadheat_study::choices::UsageError;
use deadheat_study::file::shown;
use deadheat_study::traffic;
use deadheat_study::values::Header;

/// The length of a random order, which then repeats. It takes 1 MiB, and it keeps every weight down to 1 in 10,000 accurate within a few per cent.
const POSITIONS: usize = 1 << 18;

/// How much of a file deadheat looks at to recognise its format, in bytes.
const START: u64 = 1 << 16;

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
    /// When they were recorded, this many times as fast.
    Timing(f64),
}

impl Order {
    /// The words for the record.
    pub(crate) fn words(self) -> String {
        match self {
            Self::One => "one".into(),
            Self::Sequential => "sequential".into(),
            Self::Random => "random".into(),
            Self::Zipf(exponent) => format!("zipf {exponent}"),
            Self::Timing(_) => "timing".into(),
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
    /// The recorded traffic, if the file is a log: its requests are `all`.
    pub(crate) recording: Option<Arc<Recording>>,
    /// What of a log is not sent, in words.
    pub(crate) left_out: Option<String>,
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
        if let Some(path) = &flags.requests_file
            && let Some(reading) = log_reading(path, &flags.log)?
        {
            return Self::of_log(flags, path, &reading, &common);
        }
        if let Some(option) = flags.log.first_given() {
            let problem =
                format!("{option}: the file of requests is a list, and neither a log nor a HAR file");
            return Err(UsageError::new(
                problem,
                format!("leave {option} out, or name the format with --log-format"),
            ));
        }
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
                let specs = request_file::parse(&path.display().to_string(), &bytes, &target.origin())?;
                specs.iter().map(|spec| common.wire(spec)).collect::<Result<_, _>>()?
            }
        };
        let order = order(flags, &all)?;
        Ok(Self { all, order, method, recording: None, left_out: None })
    }

    /// The requests of a log or a HAR file.
    fn of_log(
        flags: &RequestFlags,
        path: &Path,
        reading: &LogReading,
        common: &Common<'_>,
    ) -> Result<Self, UsageError> {
        let given = [("--method", flags.method.is_some()), ("--body", flags.body.is_some())];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            let problem = format!("{option} cannot be combined with a log: its lines say what is requested");
            return Err(UsageError::new(problem, format!("leave {option} out")));
        }
        let read = traffic::read_file(path, reading);
        let read = read.map_err(|error| {
            let problem = format!("--requests-file {}: {}", shown(&path.display().to_string()), error.source);
            UsageError::new(problem, error.source.remedy())
        })?;
        let recording = read.recording.clone();
        let counts = recording.counts();
        let status = flags.log.log_status.map_or(common.status, |log| log.or(common.status));
        let wire = |(index, request): (usize, &deadheat_load::RecordedRequest)| {
            let spec = RequestSpec {
                line: usize::try_from(recording.lines[index]).unwrap_or(usize::MAX),
                method: Some(request.method.clone()),
                target: request.target.clone(),
                headers: request.headers.clone(),
                body: Some(request.body.clone()),
                weight: counts[index] as f64,
                expect_status: Some(status),
            };
            common.wire(&spec)
        };
        let all: Vec<Wire> = recording.requests.iter().enumerate().map(wire).collect::<Result<_, _>>()?;
        let order = match (flags.zipf, flags.order) {
            (Some(exponent), _) => Order::Zipf(exponent),
            (None, Some(OrderFlag::Random)) => Order::Random,
            (None, Some(OrderFlag::Timing)) => Order::Timing(flags.speed.unwrap_or(1.0)),
            (None, Some(OrderFlag::Sequential) | None) => Order::Sequential,
        };
        let untimed = read.contents.untimed;
        if matches!(order, Order::Timing(_)) && recording.times.is_none() {
            let problem = match untimed {
                0 => "--order timing: the requests were all sent at the same time".to_owned(),
                count => format!(
                    "--order timing: {count} of {} requests of the log do not say when they were sent",
                    read.contents.requests
                ),
            };
            let remedy = "name the field of the time with --log-field time=NAME, or leave --order out";
            return Err(UsageError::new(problem, remedy));
        }
        let (left_out, recording) = (read.left_out(), Some(Arc::new(recording)));
        Ok(Self { all, order, method: "GET".into(), recording, left_out })
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
            Order::One | Order::Sequential | Order::Timing(_) => match &self.recording {
                Some(recording) => Requests::ordered(prepared.collect(), recording.order.clone()),
                None => Requests::in_turn(prepared.collect()),
            },
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
        (None, Some(OrderFlag::Timing)) => Err(UsageError::new(
            "--order timing needs a log or a HAR file: a list does not say when requests were sent",
            "name such a file with --requests-file, or set a rate with --rate",
        )),
        _ if weighted => Ok(Order::Random),
        _ => Ok(if all.len() == 1 { Order::One } else { Order::Sequential }),
    }
}

/// How to read the file as a log or HAR file; none if it is a list of requests.
fn log_reading(path: &Path, flags: &LogFlags) -> Result<Option<LogReading>, UsageError> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let problem = format!("--requests-file {}: this is no ordinary file", path.display());
        return Err(UsageError::new(problem, "deadheat reads it more than once: write it to a file first"));
    }
    let mut start = Vec::new();
    let opened = std::fs::File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    opened.map_err(|error| unreadable("--requests-file", path, &error))?;
    let chosen = flags.log_format.is_some() || flags.log_pattern.is_some() || !flags.log_field.is_empty();
    let packed = start.starts_with(&[0x1f, 0x8b]);
    if !chosen && !packed && traffic::recognise(&start).is_none() {
        return Ok(None);
    }
    Ok(Some(LogReading {
        format: flags.log_format,
        fields: flags.log_field.iter().cloned().collect(),
        pattern: flags.log_pattern.clone(),
        time_format: flags.log_time.clone(),
        allow_methods: flags.allow_methods.clone(),
        statuses: flags.log_status.map(|statuses| statuses.to_string()),
        host: flags.log_host.clone(),
        credentials: flags.credentials,
    }))
}

impl LogFlags {
    /// The first of the options that only a log can have.
    fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--log-time", self.log_time.is_some()),
            ("--log-status", self.log_status.is_some()),
            ("--log-host", self.log_host.is_some()),
            ("--allow-methods", !self.allow_methods.is_empty()),
            ("--credentials", self.credentials),
        ];
        given.iter().find(|(_, given)| *given).map(|(option, _)| *option)
    }
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, UsageError> {
    std::fs::read(path).map_err(|error| unreadable(option, path, &error))
}

fn unreadable(option: &str, path: &Path, error: &std::io::Error) -> UsageError {
    let problem = format!("{option} {}: {error}", shown(&path.display().to_string()));
    UsageError::new(problem, "name a file that can be read")
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
