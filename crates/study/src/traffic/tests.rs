//! Tests of all formats: what becomes a request, what is left out and why, and that no bytes do harm.

use proptest::prelude::*;

use super::*;

fn read_with(text: &str, reading: LogReading) -> Result<RecordedTraffic, TrafficError> {
    read(text.as_bytes(), &reading)
}

fn plain(text: &str) -> RecordedTraffic {
    read_with(text, LogReading::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The requests in their order, as `METHOD target`.
fn sent(traffic: &RecordedTraffic) -> Vec<String> {
    let recording = &traffic.recording;
    let requests = recording.order.iter().map(|&index| &recording.requests[index as usize]);
    requests.map(|request| format!("{} {}", request.method, request.target)).collect()
}

fn left_out(traffic: &RecordedTraffic) -> Vec<(&str, u64)> {
    traffic.contents.left_out.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

/// A line of a combined log with this request, status and second.
fn combined_line(request: &str, status: u16, second: u32) -> String {
    let time = format!("25/Nov/2026:17:58:{second:02} +0000");
    format!("127.0.0.1 - - [{time}] \"{request}\" {status} 612 \"-\" \"curl/8\"\n")
}

fn allowing(methods: &[&str]) -> LogReading {
    LogReading {
        allow_methods: methods.iter().map(|&method| method.into()).collect(),
        ..LogReading::default()
    }
}

#[test]
fn lines_of_nginx_and_apache_are_read() {
    for (line, wanted) in [
        (r#"127.0.0.1 - - [25/Nov/2026:17:58:55 +0000] "GET /a?b=c HTTP/1.1" 200 5 "-" "x""#, "GET /a?b=c"),
        (r#"2001:db8::1 - - [25/Nov/2026:17:58:55 +0000] "GET /six HTTP/2.0" 200 5 "-" "x""#, "GET /six"),
        (r#"::1 - a [b] c [25/Nov/2026:17:58:55 +0000] "HEAD /user HTTP/1.1" 304 0"#, "HEAD /user"),
        (r#"example.org:443 10.0.0.1 - - [25/Nov/2026:17:58:55 +0130] "GET / HTTP/1.0" 200 -"#, "GET /"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET http://h.test:80/p?q#f HTTP/1.1" 200 5"#, "GET /p?q"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET https://h.test HTTP/1.1" 200 5"#, "GET /"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET /frag#ment HTTP/1.1" 200 5"#, "GET /frag"),
        (
            r#"h - - [25/Nov/2026:17:58:55 +0000] "GET /\x22q\x22/\xC3\xA4 HTTP/1.1" 200 5"#,
            "GET /\"q\"/%C3%A4",
        ),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET /say\"hi\\there HTTP/1.1" 200 5"#, "GET /say\"hi\\there"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET /with space HTTP/1.1" 200 5"#, "GET /with%20space"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET /old" 200 5"#, "GET /old"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "GET /%7Eme/%2f HTTP/1.1" 200 5"#, "GET /%7Eme/%2f"),
        ("h - - [25/Nov/2026:17:58:55 +0000] \"GET /é HTTP/1.1\" 200 5", "GET /%C3%A9"),
        (r#"h - - [25/Nov/2026:17:58:55 +0000] "OPTIONS /x HTTP/1.1" - 5"#, "OPTIONS /x"),
    ] {
        assert_eq!(sent(&plain(line)), [wanted], "{line}");
        assert_eq!(recognise(line.as_bytes()), Some(LogFormat::Combined), "{line}");
    }
}

#[test]
fn what_is_not_sent_is_counted_by_reason() {
    let lines = [
        combined_line("GET /ok HTTP/1.1", 200, 1),
        combined_line("POST /form HTTP/1.1", 201, 1),
        combined_line("GET /gone HTTP/1.1", 404, 2),
        combined_line("GET /broken HTTP/1.1", 502, 2),
        combined_line("-", 400, 3),
        combined_line(r"\x16\x03\x01\x02", 400, 3),
        combined_line("OPTIONS * HTTP/1.1", 200, 3),
        combined_line("PROPFIND /dav HTTP/1.1", 207, 3),
    ]
    .concat();
    let traffic = plain(&lines);
    assert_eq!(sent(&traffic), ["GET /ok"]);
    let wanted = [
        ("answered with another status than 200-399", 2),
        ("method POST is not in allow_methods", 1),
        ("method PROPFIND is not in allow_methods", 1),
        ("no HTTP request", 2),
        ("no path is requested", 1),
    ];
    assert_eq!(left_out(&traffic), wanted);
    let words = traffic.left_out().unwrap();
    assert!(words.starts_with("7 of 8 lines are not sent (2: answered with"), "{words}");
    let reading = LogReading { statuses: Some("200-399,404".into()), ..allowing(&["POST"]) };
    assert_eq!(sent(&read_with(&lines, reading).unwrap()), ["GET /ok", "POST /form", "GET /gone"]);
    assert_eq!(plain(&combined_line("GET / HTTP/1.1", 200, 1)).left_out(), None);
}

#[test]
fn equal_requests_are_kept_once_and_ordered_by_time() {
    let lines = [("/a", 5), ("/b", 3), ("/a", 4), ("/c", 9)];
    let text: String =
        lines.iter().map(|(path, at)| combined_line(&format!("GET {path} HTTP/1.1"), 200, *at)).collect();
    let traffic = plain(&format!("\u{feff}{}\r\n\n", text.replace('\n', "\r\n")));
    assert_eq!(sent(&traffic), ["GET /b", "GET /a", "GET /a", "GET /c"]);
    assert_eq!((traffic.recording.requests.len(), &traffic.recording.lines[..]), (3, &[1, 2, 4][..]));
    assert_eq!(traffic.recording.counts(), [2, 1, 1]);
    let times = traffic.recording.times.unwrap();
    let second = |position| (times.at_ns(position) as f64 / 1e9).floor();
    assert!(second(1) <= 1.0 && second(3) >= 5.0 && second(3) <= 6.0, "{times:?}");
    let LogContents { lines, requests, distinct, span_ns, .. } = traffic.contents;
    assert_eq!((lines, requests, distinct, span_ns.is_some()), (4, 4, 3, true));
}

#[test]
fn whole_seconds_do_not_become_bursts() {
    let text: String =
        (0..4000).map(|index| combined_line("GET / HTTP/1.1", 200, 10 + index / 1000)).collect();
    let times = plain(&text).recording.times.unwrap();
    assert_eq!(times.len(), 4000);
    let mut per_tenth = [0; 41];
    (0..4000).for_each(|position| per_tenth[(times.at_ns(position) / 100_000_000) as usize] += 1);
    // Each tenth of a second gets 100 on average, with a standard deviation of 9.5.
    assert!(per_tenth[..39].iter().all(|count| (50..150).contains(count)), "{per_tenth:?}");
    assert_eq!(plain(&text).recording.times.unwrap(), times, "the same each time");
}

#[test]
fn times_are_read_in_the_usual_forms() {
    use super::stamp::Stamp;
    // 2026-11-25T17:58:55Z.
    let second = 1_795_629_535_i64;
    for (text, ns, unit_ns) in [
        ("25/Nov/2026:17:58:55 +0000", 0, 1_000_000_000),
        ("25/Nov/2026:19:28:55 +0130", 0, 1_000_000_000),
        ("25/Nov/2026:12:58:55 -0500", 0, 1_000_000_000),
        ("25/Nov/2026:17:58:55.250 +0000", 250_000_000, 1_000_000),
        ("2026-11-25T17:58:55+00:00", 0, 1_000_000_000),
        ("2026-11-25T17:58:55.25Z", 250_000_000, 10_000_000),
        ("2026-11-25 17:58:55,250", 250_000_000, 1_000_000),
        ("1795629535", 0, 1_000_000_000),
        ("1795629535.25", 250_000_000, 10_000_000),
        ("1795629535250", 250_000_000, 1_000_000),
        ("1795629535250001", 250_001_000, 1_000),
        ("1795629535250000001", 250_000_001, 1),
    ] {
        let wanted = Stamp { ns: second * 1_000_000_000 + ns, unit_ns };
        assert_eq!(Stamp::parse(text, None), Some(wanted), "{text}");
    }
    for text in [
        "",
        "-",
        "yesterday",
        "31/Feb/2026:00:00:00 +0000",
        "25/Nov/2026",
        "25/Nov/2026:25:00:00 +0000",
        "1e9",
    ] {
        assert_eq!(Stamp::parse(text, None), None, "{text}");
    }
    let format = Some("%d.%m.%Y %H:%M:%S");
    let wanted = Stamp { ns: second * 1_000_000_000, unit_ns: 1_000_000_000 };
    assert_eq!(Stamp::parse("25.11.2026 17:58:55", format), Some(wanted));
    assert_eq!(Stamp::parse("25/Nov/2026:17:58:55 +0000", format), None);
    for fraction in ["%.f", "%.3f", ".%f", ".%3f", ".%N"] {
        let format = format!("%Y-%m-%d %H:%M:%S{fraction}");
        let wanted = Stamp { ns: second * 1_000_000_000 + 250_000_000, unit_ns: 1_000_000 };
        assert_eq!(Stamp::parse("2026-11-25 17:58:55.250", Some(&format)), Some(wanted), "{format}");
    }
}

/// A number of JSON loses the zeros at its end.
#[test]
fn times_that_are_numbers_stay_exact() {
    let lines: String =
        (0..100).map(|at| format!("{{\"path\":\"/{at}\",\"ts\":1795629535.{:03}}}\n", at * 10)).collect();
    let traffic = read_with(&lines, json()).unwrap();
    let wanted: Vec<String> = (0..100).map(|at| format!("GET /{at}")).collect();
    assert_eq!(sent(&traffic), wanted, "in their order");
    assert!(traffic.contents.span_ns.is_some_and(|ns| ns.abs_diff(990_000_000) < 2_000_000));
}

#[test]
fn a_host_that_no_line_names_is_no_match() {
    let only = |host: &str| LogReading { host: Some(host.into()), ..LogReading::default() };
    let error = read_with(&combined_line("GET /a HTTP/1.1", 200, 1), only("a.test")).unwrap_err().to_string();
    assert!(error.contains("does not say to which host"), "{error}");
    let front = ["a.test:80 h - - ", "b.test:80 h - - ", "a.test:443 ::1 - some one "];
    let lines = front.map(|front| {
        format!("{front}[25/Nov/2026:17:58:55 +0000] \"GET /{} HTTP/1.1\" 200 5\n", &front[..1])
    });
    let traffic = read_with(&lines.concat(), only("a.test")).unwrap();
    assert_eq!(
        (sent(&traffic), left_out(&traffic)),
        (vec!["GET /a".into(); 2], vec![("sent to another host", 1)])
    );
    let traffic = read_with(&lines.concat(), only("a.test:443")).unwrap();
    assert_eq!(sent(&traffic), ["GET /a"], "as it stands in the log");
}

#[test]
fn what_a_log_says_stays_out_of_the_record() {
    let good: String = (0..40).map(|_| combined_line("GET / HTTP/1.1", 200, 1)).collect();
    let words = plain(&format!("{good}10.1.2.3 alice secret\n")).left_out().unwrap();
    assert_eq!(words, "1 of 41 lines are not sent (1: broken); the first broken lines: 41");
}

#[test]
fn json_lines_with_an_object_called_log_are_no_har_file() {
    let line = "{\"log\":{\"level\":\"info\"},\"path\":\"/a\"}\n";
    assert_eq!(recognise(line.repeat(2).as_bytes()), None);
    assert_eq!(recognise(b"{ \"log\": { \"entries\": ["), Some(LogFormat::Har), "the file goes on");
    assert_eq!(recognise(line.as_bytes()), Some(LogFormat::Har));
}

#[test]
fn a_long_line_of_brackets_is_read_at_once() {
    let line = "[".repeat(1 << 19) + &"x".repeat(1 << 18) + "]";
    let begin = std::time::Instant::now();
    assert!(read_with(&line, LogReading::default()).is_err());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn names_of_headers_tell_credentials() {
    for name in [
        "Authorization",
        "X-AuthToken",
        "x-access-token",
        "X-JWT-Assertion",
        "X-WP-Nonce",
        "x-sessionid",
        "X-ApiKey",
    ] {
        assert!(is_credential(name), "{name}");
    }
    for name in ["X-Author", "Accept", "X-Request-Id", "Idempotency-Key", "x-keyboard"] {
        assert!(!is_credential(name), "{name}");
    }
}

#[test]
fn a_few_broken_lines_are_shown_and_many_are_refused() {
    let good: String = (0..40).map(|_| combined_line("GET / HTTP/1.1", 200, 1)).collect();
    let four = "one\n127.0.0.1 - - [now] \"GET / HTTP/1.1\" 200 1\n\u{1b}[31m red\nfour\n";
    let traffic = plain(&format!("{good}{four}"));
    assert_eq!((traffic.contents.lines, traffic.contents.broken), (44, 4));
    let shown: Vec<(u64, &str)> = traffic.broken.iter().map(|one| (one.line, one.text.as_str())).collect();
    assert_eq!(shown[0], (41, "one"));
    assert!(shown.len() == 3 && !shown[2].1.contains('\u{1b}'), "{shown:?}");
    assert!(traffic.broken[1].problem.contains("its time `now` cannot be read"), "{:?}", traffic.broken);
    let error = read_with(&format!("{good}{four}five\n"), LogReading::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("5 of 45 lines are broken:\n    line 41: there is no [time]"),
        "{error}"
    );
    assert!(error.remedy().contains("pattern"), "{}", error.remedy());
}

#[test]
fn a_file_without_requests_says_what_was_left_out() {
    let error = read_with(&combined_line("POST / HTTP/1.1", 200, 1), LogReading::default()).unwrap_err();
    let wanted = "no request is left of 1 lines (1: method POST is not in allow_methods)";
    assert_eq!(error.to_string(), wanted);
    assert!(error.remedy().contains("allow_methods"), "{}", error.remedy());
    let nothing = read_with("\n\n", LogReading::default()).unwrap_err();
    assert_eq!(nothing.to_string(), "no request is left of 0 lines");
    assert!(matches!(read(&[0x1f, 0x8b, 8, 0][..], &LogReading::default()), Err(TrafficError::Compressed)));
}

fn json() -> LogReading {
    LogReading { format: Some(LogFormat::Json), ..LogReading::default() }
}

#[test]
fn json_lines_are_read_by_usual_names_and_by_given_ones() {
    for (line, wanted) in [
        (
            r#"{"request":"GET /nginx HTTP/1.1","status":200,"time_iso8601":"2026-11-25T17:58:55+00:00"}"#,
            "GET /nginx",
        ),
        (r#"{"method":"HEAD","uri":"/u","args":"a=b","status":"204","ts":1795629535.5}"#, "HEAD /u?a=b"),
        (r#"{"request":{"method":"GET","uri":"/caddy?x"},"status":200,"ts":1795629535.5}"#, "GET /caddy?x"),
        (
            r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://h.test/cloud","status":200}}"#,
            "GET /cloud",
        ),
        (r#"{"path":"/only"}"#, "GET /only"),
        (r#"{"method":"get","url":"/small"}"#, "GET /small"),
        (r#"{"RequestMethod":"GET","RequestPath":"/traefik","DownstreamStatus":200}"#, "GET /traefik"),
    ] {
        assert_eq!(sent(&read_with(line, json()).unwrap()), [wanted], "{line}");
    }
    let fields = [("path", "req.url"), ("time", "at"), ("method", "verb"), ("body", "sent")];
    let fields = fields.iter().map(|(field, name)| ((*field).into(), (*name).into())).collect();
    let reading = LogReading { fields, ..allowing(&["PUT"]) };
    let lines = r#"{"req":{"url":"/a"},"verb":"PUT","at":"1795629535.5","sent":"x=ä"}
{"req":{"url":"/b"},"verb":"GET","at":1795629537}"#;
    let traffic = read_with(lines, reading).unwrap();
    assert_eq!(sent(&traffic), ["PUT /a", "GET /b"]);
    assert_eq!(traffic.recording.requests[0].body, "x=ä".as_bytes());
    assert!(traffic.contents.span_ns.is_some_and(|ns| (1_000_000_000..3_000_000_000).contains(&ns)));
    for broken in ["[]", "{", r#"{"status":200}"#, r#"{"path":"/","status":"ok"}"#, "\u{0}"] {
        assert!(matches!(read_with(broken, json()), Err(TrafficError::Broken { .. })), "{broken}");
    }
}

#[test]
fn without_all_times_there_is_no_timing() {
    let lines = "{\"path\":\"/a\",\"time\":1}\n{\"path\":\"/b\"}\n{\"path\":\"/c\",\"time\":9}\n";
    let traffic = read_with(lines, json()).unwrap();
    assert_eq!((traffic.recording.times.is_none(), traffic.contents.untimed), (true, 1));
    assert_eq!(sent(&traffic), ["GET /a", "GET /b", "GET /c"], "in the order of the file");
    let same = "{\"path\":\"/a\",\"time\":1795629535250000001}\n".repeat(3);
    let traffic = read_with(&same, json()).unwrap();
    assert_eq!((traffic.recording.times.is_none(), traffic.contents.untimed), (true, 0));
}

#[test]
fn a_pattern_of_ones_own_reads_any_line() {
    let pattern = |text: &str| LogReading {
        pattern: Some(text.into()),
        time_format: Some("%H:%M:%S %d.%m.%Y".into()),
        ..LogReading::default()
    };
    let whole = r"^(?<time>\S+ \S+) (?<status>\d+) (?<method>[A-Z]+) (?<host>[^/]+)(?<path>\S+)$";
    let text = "17:58:55 25.11.2026 200 GET h.test/a?b\n17:58:56 25.11.2026 200 GET other.test:80/c\n";
    assert_eq!(sent(&read_with(text, pattern(whole)).unwrap()), ["GET /a?b", "GET /c"]);
    let one_host = LogReading { host: Some("OTHER.test".into()), ..pattern(whole) };
    let traffic = read_with(text, one_host).unwrap();
    assert_eq!(
        (sent(&traffic), left_out(&traffic)),
        (vec!["GET /c".to_owned()], vec![("sent to another host", 1)])
    );
    let with_body = r#"^(?<method>\w+) (?<path>\S+) (?<status>\S+) "(?<body>[^"]*)"$"#;
    let traffic = read_with(
        "get /a - \"-\"\nGET /b 200 \"x\"\n",
        LogReading { time_format: None, ..pattern(with_body) },
    );
    let traffic = traffic.unwrap();
    assert_eq!(sent(&traffic), ["GET /a", "GET /b"]);
    assert_eq!(traffic.recording.requests.iter().map(|one| one.body.len()).collect::<Vec<_>>(), [0, 1]);
    for (wrong, part) in
        [("(", "regex parse error"), ("(?<url>x)", "no field `url`"), ("(?<time>x)", "neither")]
    {
        let error = read_with(text, pattern(wrong)).unwrap_err();
        assert!(error.to_string().contains(part), "{wrong}: {error}");
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let fields = || [("path".to_owned(), "p".to_owned())].into();
    let har = |reading| LogReading { format: Some(LogFormat::Har), ..reading };
    for (reading, part) in [
        (har(LogReading { fields: fields(), ..LogReading::default() }), "`fields` cannot be combined"),
        (
            har(LogReading { pattern: Some("x".into()), ..LogReading::default() }),
            "`pattern` cannot be combined",
        ),
        (LogReading { format: Some(LogFormat::Pattern), ..LogReading::default() }, "needs a pattern"),
        (
            LogReading { fields: [("url".to_owned(), "u".to_owned())].into(), ..LogReading::default() },
            "no field `url`",
        ),
        (
            LogReading { statuses: Some("ok".into()), ..LogReading::default() },
            "character 1 of the status codes",
        ),
    ] {
        let error = read_with("x", reading).unwrap_err();
        assert!(error.to_string().contains(part) && !error.remedy().is_empty(), "{error}");
    }
}

const HAR: &str = r#"{
  "log": { "version": "1.2", "entries": [
    { "startedDateTime": "2026-11-25T17:58:55.000Z", "response": { "status": 200 }, "request": {
        "method": "GET", "url": "https://shop.test/a?b=c#d", "headers": [
          { "name": ":authority", "value": "shop.test" }, { "name": "Host", "value": "shop.test" },
          { "name": "Cookie", "value": "id=7" }, { "name": "Authorization", "value": "Bearer x" },
          { "name": "accept", "value": "text/html" }, { "name": "Connection", "value": "keep-alive" } ] } },
    { "startedDateTime": "2026-11-25T17:58:55.300Z", "response": { "status": 201 }, "request": {
        "method": "POST", "url": "https://shop.test/cart", "headers": [], "bodySize": 7,
        "postData": { "mimeType": "application/json", "text": "{\"n\":1}" } } },
    { "startedDateTime": "2026-11-25T17:58:55.400Z", "response": { "status": 201 }, "request": {
        "method": "POST", "url": "https://shop.test/form",
        "postData": { "mimeType": "application/x-www-form-urlencoded", "params": [
          { "name": "a", "value": "1 2" }, { "name": "b", "value": "x&y" } ] } } },
    { "startedDateTime": "2026-11-25T17:58:55.500Z", "response": { "status": 200 },
      "request": { "method": "GET", "url": "https://cdn.test/lib.js" } },
    { "startedDateTime": "2026-11-25T17:58:55.600Z", "response": { "status": 101 },
      "request": { "method": "GET", "url": "https://shop.test/socket" } },
    { "startedDateTime": "2026-11-25T17:58:55.600Z", "_resourceType": "websocket", "response": { "status": 0 },
      "request": { "method": "GET", "url": "wss://shop.test/socket" } },
    { "startedDateTime": "2026-11-25T17:58:55.700Z", "response": { "status": 0 },
      "request": { "method": "GET", "url": "https://shop.test/blocked" } },
    { "startedDateTime": "2026-11-25T17:58:55.700Z", "response": { "status": 200 },
      "request": { "method": "GET", "url": "data:image/png;base64,AA" } },
    { "startedDateTime": "2026-11-25T17:58:55.700Z", "response": { "status": 200 },
      "request": { "method": "POST", "url": "https://shop.test/upload", "bodySize": 9 } },
    { "startedDateTime": "2026-11-25T17:58:55.900Z", "response": { "status": 200 },
      "request": { "method": "GET", "url": "https://shop.test/last" } }
  ] } }"#;

#[test]
fn har_files_are_read_with_bodies_and_headers_and_without_credentials() {
    let traffic = read_with(HAR, allowing(&["POST"])).unwrap();
    assert_eq!(traffic.format, LogFormat::Har);
    assert_eq!(sent(&traffic), ["GET /a?b=c", "POST /cart", "POST /form", "GET /last"]);
    let headers = |traffic: &RecordedTraffic| traffic.recording.requests[0].headers.clone();
    assert_eq!(headers(&traffic), [("accept".to_owned(), "text/html".to_owned())]);
    let bodies: Vec<&[u8]> = traffic.recording.requests.iter().map(|request| &request.body[..]).collect();
    assert_eq!(bodies[1..3], [&b"{\"n\":1}"[..], b"a=1+2&b=x%26y"]);
    let wanted = [
        ("a websocket", 2),
        ("failed when it was recorded", 1),
        ("not http or https", 1),
        ("sent to another host", 1),
        ("the body is not in the file", 1),
    ];
    assert_eq!(left_out(&traffic), wanted);
    let span_ns = traffic.contents.span_ns.unwrap();
    assert!((899_000_000..902_000_000).contains(&span_ns), "{span_ns}");
    let with = read_with(HAR, LogReading { credentials: true, ..LogReading::default() }).unwrap();
    let names: Vec<String> = headers(&with).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Cookie", "Authorization", "accept"]);
    let cdn = LogReading { host: Some("cdn.test".into()), ..LogReading::default() };
    assert_eq!(sent(&read_with(HAR, cdn).unwrap()), ["GET /lib.js"]);
}

#[test]
fn headers_that_may_hold_credentials_are_known_by_their_names() {
    let private = ["Authorization", "proxy-authorization", "cookie2", "X-Amz-Security-Token", "X-CSRF-Token"];
    for name in private.into_iter().chain(["x-api-key", "X-Session-Id", "X-Client-Secret"]) {
        assert!(is_credential(name), "{name}");
    }
    for name in
        ["accept", "user-agent", "X-Author", "X-Tenant", "x-forwarded-for", "Idempotency-Key", "x-keyword"]
    {
        assert!(!is_credential(name), "{name}");
    }
}

#[test]
fn a_har_file_that_is_none_is_refused() {
    let har = || LogReading { format: Some(LogFormat::Har), ..LogReading::default() };
    for (text, part) in [
        ("{\"log\":{\"entries\":[{\"request\":{}}]}}", "1 of 1 lines are broken"),
        ("{\"log\":{\"entries\":[]}}", "no request is left of 0 lines"),
        ("{\"log\":{", "not a HAR file"),
        ("[]", "not a HAR file"),
    ] {
        let error = read_with(text, har()).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    let docker = br#"{"log":"GET /","stream":"stdout"}"#;
    assert_eq!(recognise(docker), None);
    assert_eq!(recognise(b"{\"path\":\"/x\"}"), None);
    assert_eq!(recognise(b"/x\t3\n/y"), None);
}

#[test]
fn the_digest_is_that_of_the_whole_file() {
    let text = combined_line("GET / HTTP/1.1", 200, 1);
    let wanted: String = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(plain(&text).contents.sha256, wanted);
    let wanted: String = Sha256::digest(HAR.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(plain(HAR).contents.sha256, wanted);
}

#[test]
fn a_line_without_end_takes_no_memory() {
    let endless = io::Read::take(io::repeat(b'x'), 5 << 20);
    let mut input = BufReader::new(endless.chain(&b"\nshort\n"[..]));
    let mut buffer = Vec::new();
    assert_eq!(next_line(&mut input, &mut buffer).unwrap(), Some(false));
    assert_eq!(buffer.len(), LONGEST_LINE);
    assert_eq!((next_line(&mut input, &mut buffer).unwrap(), &buffer[..]), (Some(true), &b"short"[..]));
    assert_eq!(next_line(&mut input, &mut buffer).unwrap(), None);
}

/// Readings of all formats.
fn readings() -> Vec<LogReading> {
    let formats = [LogFormat::Combined, LogFormat::Json, LogFormat::Har];
    let mut all: Vec<LogReading> =
        formats.map(|format| LogReading { format: Some(format), ..allowing(&["POST"]) }).into();
    let pattern = Some(r"(?<method>\S+) (?<path>\S+) (?<time>\S+)".to_owned());
    all.push(LogReading { pattern, ..LogReading::default() });
    all.push(LogReading::default());
    all
}

/// Everything that a reading promises.
fn holds(traffic: &RecordedTraffic) {
    let RecordedTraffic { recording, contents, broken, .. } = traffic;
    let left_out: u64 = contents.left_out.values().sum();
    assert_eq!(contents.lines, contents.requests + contents.broken + left_out);
    assert_eq!(recording.order.len() as u64, contents.requests);
    assert_eq!(recording.requests.len(), recording.lines.len());
    assert!(contents.broken * 10 <= contents.lines && broken.len() <= 3);
    assert!(recording.counts().iter().all(|count| *count > 0));
    for request in &recording.requests {
        let deadheat_load::RecordedRequest { method, target, headers, body } = request;
        deadheat_load::request_bytes(method, target, "h", headers, body).unwrap();
    }
}

proptest! {
    #[test]
    fn any_bytes_lead_to_requests_or_to_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for reading in readings() {
            if let Ok(traffic) = read(&bytes[..], &reading) {
                holds(&traffic);
            }
        }
    }

    #[test]
    fn damaged_logs_lead_to_requests_or_to_an_error(
        cuts in prop::collection::vec((0..4000usize, any::<u8>()), 0..12),
    ) {
        let lines: String = (0..30).map(|at| combined_line(r"GET /\x22a HTTP/1.1", 200, at)).collect();
        let objects = "{\"method\":\"GET\",\"path\":\"/x\",\"time\":1795629535,\"status\":200}\n".repeat(20);
        for text in [lines, objects, HAR.to_owned()] {
            let mut bytes = text.into_bytes();
            for (at, byte) in &cuts {
                let length = bytes.len();
                bytes[at % length] = *byte;
            }
            for reading in readings() {
                if let Ok(traffic) = read(&bytes[..], &reading) {
                    holds(&traffic);
                }
            }
        }
    }

    #[test]
    fn any_target_is_sent_as_visible_characters(target in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Some((path, _)) = request_line::path(&target) {
            prop_assert!(path.starts_with('/') && path.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && byte != b'#'));
        }
    }
}
