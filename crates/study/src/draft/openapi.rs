//! Takes requests from an OpenAPI 3 description.
//!
//! Owns: which operations can be requested, and with which values of their parameters. Must not know: whether a service answers them.

use std::borrow::Cow;

use deadheat_record::{is_unreserved, percent_encoded};
use serde_json::Value;

use super::{DraftRequest, Found, LeftOut};
use crate::file::path_problem;
use deadheat_load::is_token;

/// The most requests that are taken from a description.
const MOST_REQUESTS: usize = 30;
/// Operations that may change data.
const CHANGING: [&str; 4] = ["post", "put", "patch", "delete"];
/// Headers that other parts of a description describe.
const OTHERWISE: [&str; 3] = ["accept", "content-type", "authorization"];
/// The most references that follow one another.
const MOST_REFERENCES: usize = 20;

/// Why a file is not a description that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiError {
    /// It is neither YAML nor JSON.
    #[error("it is neither YAML nor JSON: {0}")]
    Syntax(String),
    /// It has another version.
    #[error("it is a description of version {0}, and deadheat reads version 3 only; convert it first")]
    Version(String),
    /// It has no version.
    #[error("it has no `openapi: 3...`, so it is not an OpenAPI description")]
    NotOpenApi,
    /// It has no operations.
    #[error("it has no `paths`")]
    NoPaths,
}

/// Reads a description in YAML or JSON. It may have no request.
///
/// # Errors
/// See [`OpenApiError`].
pub(super) fn described(text: &str) -> Result<Found, OpenApiError> {
    let document: Value = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(_) => {
            // As in YAML 1.2, `y` and `no` are texts.
            let options = serde_saphyr::options! { strict_booleans: true };
            let read = serde_saphyr::from_str_with_options(text, options);
            read.map_err(|error| OpenApiError::Syntax(error.to_string()))?
        }
    };
    let version = |key: &str| document.get(key).map(|version| value_text(version).unwrap_or_default());
    match (version("openapi"), version("swagger")) {
        (Some(version), _) if version.starts_with("3.") || version == "3" => {}
        (Some(version), _) | (None, Some(version)) => return Err(OpenApiError::Version(version)),
        (None, None) => return Err(OpenApiError::NotOpenApi),
    }
    let paths = document.get("paths").and_then(Value::as_object).ok_or(OpenApiError::NoPaths)?;
    let description = Description { document: &document };
    let mut described = Found { requests: Vec::new(), left_out: Vec::new() };
    let mut changing = 0;
    let mut further = 0;
    for (path, item) in paths.iter().filter(|(path, _)| path.starts_with('/')) {
        let Some(item) = description.resolved(item) else {
            let why = "it is in another file, or missing; join the files of the description first";
            described.left_out.push(LeftOut { what: path.clone(), why: why.into() });
            continue;
        };
        changing += CHANGING.iter().filter(|method| item.get(**method).is_some()).count();
        let Some(operation) = item.get("get") else { continue };
        if described.requests.len() >= MOST_REQUESTS {
            further += 1;
            continue;
        }
        match description.request(path, item, operation) {
            Ok(request) => described.requests.push(request),
            Err(why) => described.left_out.push(LeftOut { what: format!("GET {path}"), why }),
        }
    }
    if further > 0 {
        let what = format!("{further} further GET operations");
        let why = format!("a draft takes the first {MOST_REQUESTS}; write a [[probe]] for others");
        described.left_out.push(LeftOut { what, why });
    }
    if changing > 0 {
        let what = if changing == 1 { "1 operation".into() } else { format!("{changing} operations") };
        let why = "POST, PUT, PATCH and DELETE may change data; write a [[probe]] for those that do not";
        described.left_out.push(LeftOut { what, why: why.into() });
    }
    Ok(described)
}

struct Description<'d> {
    document: &'d Value,
}

impl<'d> Description<'d> {
    /// The value itself, or what its `$ref` leads to. None if that is not in this document.
    fn resolved(&self, value: &'d Value) -> Option<&'d Value> {
        let mut value = value;
        for _ in 0..MOST_REFERENCES {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else { return Some(value) };
            value = self.document.pointer(&decoded(reference.strip_prefix('#')?))?;
        }
        None
    }

    /// The request of a GET operation, or why there is none.
    fn request(&self, path: &str, item: &'d Value, operation: &'d Value) -> Result<DraftRequest, String> {
        let mut filled = path.to_owned();
        let mut query: Vec<String> = Vec::new();
        let mut headers = Vec::new();
        for parameter in self.parameters(item, operation)? {
            let text = |key: &str| parameter.get(key).and_then(Value::as_str);
            let (Some(name), Some(place)) = (text("name"), text("in")) else { continue };
            let is_required = place == "path" || parameter.get("required") == Some(&Value::Bool(true));
            let (value, is_example) = match self.value(parameter) {
                Some(found) => found,
                None if is_required => {
                    return Err(format!("its {place} parameter `{name}` has no value; give it an `example`"));
                }
                None => continue,
            };
            // The service has the default of a parameter that is not sent.
            if !is_required && !is_example {
                continue;
            }
            let cannot = || {
                format!(
                    "the example of its {place} parameter `{name}` is not a text, a number or a list of them"
                )
            };
            let values = match texts(value) {
                Some(values) => values,
                None if is_required => return Err(cannot()),
                None => continue,
            };
            match place {
                "path" => {
                    let encoded: Vec<String> = values.iter().map(|value| encoded(value)).collect();
                    filled = filled.replace(&format!("{{{name}}}"), &encoded.join(","));
                }
                "query" if parameter.get("explode") == Some(&Value::Bool(false)) => {
                    let each: Vec<String> = values.iter().map(|value| encoded(value)).collect();
                    query.push(format!("{}={}", encoded(name), each.join(",")));
                }
                "query" => {
                    query.extend(values.iter().map(|value| format!("{}={}", encoded(name), encoded(value))));
                }
                "header" if OTHERWISE.contains(&name.to_ascii_lowercase().as_str()) => {}
                "header" => {
                    let value = values.join(",");
                    if !is_token(name.as_bytes()) || value.chars().any(char::is_control) {
                        return Err(format!("its header `{name}` cannot be sent"));
                    }
                    headers.push((name.to_owned(), value));
                }
                _ if !is_required => {}
                _ => {
                    return Err(format!(
                        "it needs the cookie `{name}`; write a [[probe]] with that cookie in request_headers"
                    ));
                }
            }
        }
        if let Some((_, name)) = filled.split_once('{').filter(|(_, rest)| rest.contains('}')) {
            let name = name.split('}').next().unwrap_or_default();
            return Err(format!("its path has {{{name}}}, which is not among its parameters"));
        }
        let base = self.base(item, operation)?;
        let joined = format!(
            "{base}{}{}{}",
            sendable(&filled),
            if query.is_empty() { "" } else { "?" },
            query.join("&")
        );
        match path_problem(&joined) {
            Some(problem) => Err(format!("its path cannot be requested: {problem}")),
            None => Ok(DraftRequest { headers, ..DraftRequest::get(joined) }),
        }
    }

    /// The parameters of an operation, and those of its path that it does not have itself.
    fn parameters(&self, item: &'d Value, operation: &'d Value) -> Result<Vec<&'d Value>, String> {
        let mut found: Vec<&'d Value> = Vec::new();
        let lists = [operation, item].map(|owner| owner.get("parameters").and_then(Value::as_array));
        for parameter in lists.into_iter().flatten().flatten() {
            let parameter =
                self.resolved(parameter).ok_or("one of its parameters is in another file, or missing")?;
            let same = |other: &&Value| ["name", "in"].iter().all(|key| other.get(key) == parameter.get(key));
            if !found.iter().any(same) {
                found.push(parameter);
            }
        }
        Ok(found)
    }

    /// A value of a parameter, and whether it is an example, not a default or the first of all possible values.
    fn value(&self, parameter: &'d Value) -> Option<(&'d Value, bool)> {
        let content =
            parameter.get("content").and_then(Value::as_object).and_then(|kinds| kinds.values().next());
        let schema = [Some(parameter), content].into_iter().flatten().find_map(|one| one.get("schema"));
        let schema = schema.and_then(|schema| self.resolved(schema));
        let owners = [Some(parameter), content];
        let own = owners
            .into_iter()
            .flatten()
            .find_map(|one| one.get("example").or_else(|| self.first_example(one)));
        let of_schema = |key: &str| schema.and_then(|schema| schema.get(key));
        let first = |list: Option<&'d Value>| list.and_then(Value::as_array).and_then(|list| list.first());
        let example = own.or_else(|| of_schema("example")).or_else(|| first(of_schema("examples")));
        let other = of_schema("const").or_else(|| of_schema("default")).or_else(|| first(of_schema("enum")));
        let items = || {
            let items = self.resolved(of_schema("items")?)?;
            items.get("example").or_else(|| items.get("default")).or_else(|| first(items.get("enum")))
        };
        example.map(|value| (value, true)).or_else(|| other.or_else(items).map(|value| (value, false)))
    }

    /// The value of the first of a parameter's `examples`.
    fn first_example(&self, owner: &'d Value) -> Option<&'d Value> {
        let first = owner.get("examples")?.as_object()?.values().next()?;
        self.resolved(first)?.get("value")
    }

    /// The path in the URL of the first server, without a slash at its end.
    fn base(&self, item: &'d Value, operation: &'d Value) -> Result<String, String> {
        let servers = [operation, item, self.document].into_iter().find_map(|owner| owner.get("servers"));
        let Some(server) = servers.and_then(Value::as_array).and_then(|servers| servers.first()) else {
            return Ok(String::new());
        };
        let mut url = server.get("url").and_then(Value::as_str).unwrap_or("/").to_owned();
        for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten() {
            let value = variable.get("default").and_then(value_text).unwrap_or_default();
            url = url.replace(&format!("{{{name}}}"), &value);
        }
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
            None => url.as_str(),
        };
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        if path.contains('{') {
            return Err(format!("the path of its server, `{path}`, has a variable without a default"));
        }
        Ok(if path.is_empty() || path.starts_with('/') {
            sendable(path)
        } else {
            sendable(&format!("/{path}"))
        })
    }
}

/// A text, number or truth value as text.
fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// One or more texts: the elements of a list.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value.as_array() {
        Some(list) => list.iter().map(value_text).collect(),
        None => value_text(value).map(|text| vec![text]),
    }
}

/// Replaces `%7B` and the like by the characters that they stand for, as in the fragment of a URL.
fn decoded(text: &str) -> Cow<'_, str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    if bytes == text.as_bytes() {
        Cow::Borrowed(text)
    } else {
        String::from_utf8_lossy(&bytes).into_owned().into()
    }
}

/// Percent-encodes everything but letters, digits and `-._~`.
fn encoded(text: &str) -> String {
    percent_encoded(text.as_bytes(), is_unreserved)
}

/// Percent-encodes what can never be in a path.
fn sendable(path: &str) -> String {
    percent_encoded(path.as_bytes(), |byte| (0x21..0x7f).contains(&byte) && !b"#?\"<>".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = r##"
openapi: 3.0.3
info: { title: Store, version: "1" }
servers:
  - url: "https://{host}/api/{version}/"
    variables: { host: { default: example.org }, version: { default: v2 } }
paths:
  /items:
    parameters:
      - { name: limit, in: query, required: true, schema: { type: integer, default: 20 } }
      - { name: sort, in: query, schema: { type: string, enum: [name, price] } }
    get:
      parameters:
        - { name: q, in: query, example: "a b&c" }
        - { name: tag, in: query, example: [x, y] }
        - { name: only, in: query, explode: false, example: [1, 2] }
    post: {}
    delete: {}
  /items/{id}:
    get:
      parameters: [{ $ref: "#/components/parameters/Id" }]
  /items/{id}/price:
    get:
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
  /search:
    get:
      parameters:
        - { name: filter, in: query, required: true, example: { a: 1 } }
  /me:
    get:
      parameters:
        - { name: X-Tenant, in: header, required: true, examples: { one: { value: acme } } }
        - { name: Accept, in: header, required: true, example: text/html }
  /session:
    get:
      parameters: [{ name: sid, in: cookie, required: true, example: x }]
  /theme:
    get:
      parameters:
        - { name: theme, in: cookie, example: dark }
        - { name: filter, in: query, example: { a: 1 } }
        - { $ref: "#/paths/~1items~1%7Bid%7D~1x/parameters/0" }
  /items/{id}/x:
    parameters: [{ name: n, in: query, example: 3 }]
  /files: { $ref: "./files.yaml" }
  /odd/{name}:
    get: {}
  /elsewhere:
    get:
      parameters: [{ $ref: "other.yaml#/x" }]
  x-note: {}
components:
  parameters:
    Id: { name: id, in: path, required: true, schema: { $ref: "#/components/schemas/Id" } }
  schemas:
    Id: { type: string, example: "ü/1" }
"##;

    #[test]
    fn operations_become_requests_with_the_values_of_their_parameters() {
        let store = described(STORE).unwrap();
        let requests: Vec<(&str, usize)> =
            store.requests.iter().map(|one| (one.path.as_str(), one.headers.len())).collect();
        assert_eq!(
            requests,
            [
                ("/api/v2/items?q=a%20b%26c&tag=x&tag=y&only=1,2&limit=20", 0),
                ("/api/v2/items/%C3%BC%2F1", 0),
                ("/api/v2/me", 1),
                ("/api/v2/theme?n=3", 0)
            ]
        );
        let left_out: Vec<String> =
            store.left_out.iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
        let starts = [
            "GET /items/{id}/price: its path parameter `id` has no value; give it an `example`",
            "GET /search: the example of its query parameter `filter` is not a text",
            "GET /session: it needs the cookie `sid`",
            "/files: it is in another file, or missing; join",
            "GET /odd/{name}: its path has {name}, which is not among its parameters",
            "GET /elsewhere: one of its parameters is in another file",
            "2 operations: POST, PUT, PATCH and DELETE may change data",
        ];
        assert_eq!(left_out.len(), starts.len(), "{left_out:#?}");
        for (one, start) in left_out.iter().zip(starts) {
            assert!(one.starts_with(start), "{one}");
        }
    }

    #[test]
    fn json_is_read_too_and_other_files_are_refused() {
        let json = r#"{"openapi": "3.1.0", "paths": {"/a": {"get": {}}, "/b": {"get": {"parameters": [
            {"name": "n", "in": "query", "required": true, "schema": {"examples": [7]}}]}}}}"#;
        let paths: Vec<String> = described(json).unwrap().requests.into_iter().map(|one| one.path).collect();
        assert_eq!(paths, ["/a", "/b?n=7"]);
        for (text, part) in [
            ("swagger: '2.0'\npaths: {}", "version 2.0"),
            ("openapi: 4.0.0", "version 4.0.0"),
            ("openapi: 3.0.0", "no `paths`"),
            ("a: b", "not an OpenAPI description"),
            ("[1, 2]", "not an OpenAPI description"),
            ("a: [", "neither YAML nor JSON"),
        ] {
            let error = described(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(described("openapi: 3.0.0\npaths: {}").unwrap().requests, []);
    }

    #[test]
    fn long_descriptions_are_cut() {
        let paths: Vec<String> = (0..40).map(|number| format!("\"/p{number}\": {{\"get\": {{}}}}")).collect();
        let text = format!("{{\"openapi\": \"3.0.0\", \"paths\": {{{}}}}}", paths.join(", "));
        let all = described(&text).unwrap();
        assert_eq!(all.requests.len(), MOST_REQUESTS);
        assert!(all.left_out[0].what.starts_with("10 further"), "{:?}", all.left_out);
    }

    #[test]
    fn references_in_a_circle_end() {
        let text = "openapi: 3.0.0\npaths: { /a: { $ref: '#/paths/~1a' } }";
        assert_eq!(described(text).unwrap().requests, []);
    }
}
