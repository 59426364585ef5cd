//! Tests of files of requests: valid files, and messages about mistakes.

use proptest::prelude::*;

use super::*;

const ORIGIN: &str = "http://127.0.0.1:8080";

fn plain(line: usize, target: &str, weight: f64) -> RequestSpec {
    let (target, headers) = (target.to_owned(), vec![]);
    RequestSpec { line, method: None, target, headers, body: None, weight, expect_status: None }
}

fn one(text: &str) -> RequestSpec {
    let mut requests = parse("f", text.as_bytes(), ORIGIN).unwrap();
    assert_eq!(requests.len(), 1, "{text}");
    requests.remove(0)
}

#[test]
fn paths_and_urls_are_read() {
    let text = "\u{feff}# a comment\n/a\r\n\n  # another\n/b?c=d\t3\nhttp://127.0.0.1:8080/e\t0.5\n\
                HTTP://127.0.0.1:8080\nhttp://127.0.0.1:8080?q=1 \t 0";
    let wanted = [
        plain(2, "/a", 1.0),
        plain(5, "/b?c=d", 3.0),
        plain(6, "/e", 0.5),
        plain(7, "/", 1.0),
        plain(8, "/?q=1", 0.0),
    ];
    assert_eq!(parse("f", text.as_bytes(), ORIGIN).unwrap(), wanted);
    for (origin, url) in [
        ("http://Example.org", "http://example.ORG:80/x"),
        ("https://h:443/", "https://h/x"),
        ("http://[::1]:9", "http://[::1]:9/x"),
    ] {
        let origin = Target::parse(origin).unwrap().origin();
        assert_eq!(parse("f", url.as_bytes(), &origin).unwrap(), [plain(1, "/x", 1.0)]);
    }
}

#[test]
fn whole_requests_are_read() {
    let text = r#" {"method":"POST","path":"/x","headers":{"A":"1","B":"2","A":"3"},"body":"é","weight":2,"expect_status":201} "#;
    let pairs = |list: &[(&str, &str)]| {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    let wanted = RequestSpec {
        line: 1,
        method: Some("POST".into()),
        target: "/x".into(),
        headers: pairs(&[("A", "1"), ("B", "2"), ("A", "3")]),
        body: Some("é".into()),
        weight: 2.0,
        expect_status: Some(StatusSet::range(201..=201)),
    };
    assert_eq!(one(text), wanted);
    let listed =
        one(r#"{"path":"http://127.0.0.1:8080/y","headers":[["A","1"],["A","2"]],"body_base64":"AP8="}"#);
    assert_eq!((listed.target.as_str(), listed.body), ("/y", Some(vec![0, 0xff])));
    assert_eq!(listed.headers, pairs(&[("A", "1"), ("A", "2")]));
    assert_eq!(one(r#"{"path":"/z"}"#), plain(1, "/z", 1.0));
    let statuses = one(r#"{"path":"/z","expect_status":"2xx,404"}"#).expect_status;
    assert_eq!(statuses.unwrap().to_string(), "2xx,404");
}

fn assert_refused(text: &str, line: usize, problem: &str, remedy: &str) {
    let error = parse("f", text.as_bytes(), ORIGIN).unwrap_err();
    assert!(error.problem.starts_with(&format!("f:{line}: {problem}")), "{text}: {error}");
    assert!(error.remedy.starts_with(remedy), "{text}: {error}");
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    for (text, line, problem, remedy) in [
        ("", 1, "there is no request in this file", "write a path"),
        ("# nothing\n\n", 3, "there is no request in this file", "write a path"),
        ("/a\t0\n/b\t0", 2, "all weights are 0", "give one"),
        (
            "/a\nGET /b",
            2,
            "found `GET /b`",
            "a line is a path such as /x, a URL of http://127.0.0.1:8080, or",
        ),
        ("127.0.0.1:8080/a?next=http://a/", 1, "found `127.0.0.1:8080/a?next=http://a/`", "a line is a path"),
        ("/a#b", 1, "found `/a#b`", "leave out what follows #"),
        ("/a b", 1, "the request target \"/a b\" is empty", "correct this request"),
        ("/a\tx", 1, "found `x`", "write a weight after the tab"),
        ("/a\t-1", 1, "found `-1`", "write a weight after the tab"),
        ("/a\tnan", 1, "found `nan`", "write a weight after the tab"),
        ("/a\t1\t2", 1, "found `1\\t2`", "write a weight after the tab"),
        (
            "http://127.0.0.1:8081/",
            1,
            "found `http://127.0.0.1:8081/` of another server",
            "all requests go to",
        ),
        (
            "https://127.0.0.1:8080/",
            1,
            "found `https://127.0.0.1:8080/` of another server",
            "all requests go",
        ),
        ("http://u@127.0.0.1:8080/", 1, "found `http://u@127.0.0.1:8080/` of another", "all requests go to"),
    ] {
        assert_refused(text, line, problem, remedy);
    }
    let error = parse("a\u{1b}.txt", b"/a\n\xff", ORIGIN).unwrap_err();
    assert_eq!(error.to_string(), "a\\u{1b}.txt:2: this line is not UTF-8\n  save the file as UTF-8");
}

#[test]
fn objects_that_cannot_be_read_are_named() {
    for (text, problem, remedy) in [
        ("[{\"path\":\"/\"}]", "found a list", "leave out the brackets"),
        ("{", "column 1: EOF while parsing an object", "a request is one object on one line"),
        ("{\"path\":\"/\"},", "column 13: trailing characters", "a request is one object on one line"),
        ("{}", "column 2: missing field `path`", "a request is one"),
        (
            "{\"path\":\"/\",\"paht\":1}",
            "column 18: unknown field `paht`, expected one of `method`, `path`, `headers`, `body`",
            "a request is one",
        ),
        ("{\"path\":1}", "column 9: invalid type: integer `1`, expected a string", "a request is one"),
        ("{\"path\":\"/\",\"headers\":5}", "column 23: invalid type: integer `5`, expected headers", "a re"),
        ("{\"path\":\"/\",\"headers\":[[\"a\"]]}", "column 28: invalid length 1", "a request is one"),
        ("{\"path\":\"/\",\"body\":{}}", "column 19: invalid type: map, expected a string", "a request"),
        ("{\"path\":\"/\",\"body\":\"\",\"body_base64\":\"\"}", "found both", "write one of them"),
        ("{\"path\":\"/\",\"body_base64\":\"?\"}", "`body_base64` is not base64", "write bytes in base64"),
        ("{\"path\":\"/\",\"weight\":-1}", "found the weight -1", "weights are 0 or more"),
        ("{\"path\":\"/\",\"expect_status\":99}", "column 30: at character 1 of the status", "a request"),
        (
            "{\"path\":\"/\",\"expect_status\":[]}",
            "column 30: invalid type: sequence, expected a status",
            "a r",
        ),
        ("{\"path\":\"/\",\"method\":\"G T\"}", "the method \"G T\" is not a token", "correct this request"),
        (
            "{\"path\":\"/\",\"headers\":{\"Content-Length\":\"1\"}}",
            "the header \"Content-Length\"",
            "correct",
        ),
        ("{\"path\":\"x\"}", "found `x`", "a line is a path"),
    ] {
        assert_refused(text, 1, problem, remedy);
    }
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(
        lines in prop::collection::vec("(/[a-z?]{0,3}(\t[0-9.]{0,3})?|#.|\\{\"path\":\"/.?\"\\}|.{0,6})", 0..6),
        junk in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = parse("f", &junk, ORIGIN);
        let text = lines.join("\n");
        if let Ok(requests) = parse("f", text.as_bytes(), ORIGIN) {
            for request in requests {
                let method = request.method.as_deref().unwrap_or("GET");
                prop_assert!(request_bytes(method, &request.target, "h", &request.headers, b"").is_ok());
                prop_assert!(request.weight >= 0.0 && request.target.starts_with('/'));
            }
        }
    }
}
