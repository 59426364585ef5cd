//! Owns: the options of `init`, and what they ask of a service. Must not know: files of requests, the service, the study.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use deadheat_study::choices::{Choices, LoadChoices, UsageError};
use deadheat_study::draft::DraftRequest;
use deadheat_study::file::shown;
use deadheat_study::values::{self, Header};

use super::input::{Local, LocalPort};

const INIT_HELP: &str = "\
Examples:
  deadheat init 'npm start' --url 'http://127.0.0.1:{port}/api/items'
  deadheat init './server --port {port}' --url 'http://127.0.0.1:{port}/search?q=a'
  deadheat init 'npm start' --from openapi.yaml -H 'authorization: Bearer TOKEN'
  deadheat init 'npm start' --from access.log

deadheat starts the service twice, sends each request several times, loads the service for a moment, and writes what the answers have in common into study.toml. It tells the command its port in the environment variable PORT, and replaces {port} in the command. For a service that always listens on the same port, write that port in the URL.

Exit status: 0 the study is written; 2 it is not, and the message says why; 130 interrupted, and nothing is written.";

/// Options of `init`.
#[derive(Debug, Args)]
#[command(after_help = INIT_HELP)]
pub(crate) struct InitFlags {
    /// A shell command that starts the service and stays in the foreground
    #[arg(value_name = "CMD")]
    pub(crate) command: String,
    /// URL to request, http or https; {port} is the service's port; repeatable [default: http://127.0.0.1:{port}/]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Vec<String>,
    /// Take the requests from this OpenAPI 3 description, access log or HAR file; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Vec<PathBuf>,
    /// Header of every request, such as 'accept: text/html'; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = Header::parse)]
    pub(crate) headers: Vec<Header>,
    /// Method of the requests to each --url [default: GET]
    #[arg(short, long, value_name = "METHOD", conflicts_with = "from")]
    pub(crate) method: Option<String>,
    /// Body of the requests to each --url
    #[arg(short, long, value_name = "BODY", conflicts_with = "from")]
    pub(crate) body: Option<String>,
    /// Write the study to this file, or into this folder [default: study.toml]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the study if it exists, except for its `build` and `env`
    #[arg(long)]
    pub(crate) force: bool,
    /// Count a request as failed if its answer takes longer than this [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Give up on a service that gives no answer within this time [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) ready_timeout: Option<Duration>,
}

/// What the options ask of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether over TLS.
    pub(crate) tls: bool,
    /// The port on which the service always listens; none for the one that deadheat gives it.
    pub(crate) port: Option<u16>,
    /// The requests of `--url`.
    pub(crate) requests: Vec<DraftRequest>,
}

impl InitFlags {
    /// What the options ask of the service.
    ///
    /// # Errors
    /// The command is empty, a URL or the method is wrong, or two URLs contradict each other.
    pub(crate) fn asked(&self) -> Result<Asked, UsageError> {
        let example = "for example: deadheat init 'npm start' --url 'http://127.0.0.1:{port}/api/items'";
        if self.command.trim().is_empty() {
            return Err(UsageError::new("the command is empty", example));
        }
        let method = self.method.clone().unwrap_or_else(|| "GET".into());
        if let Err(problem) = values::method(&method) {
            let problem = format!("--method {}: {problem}", shown(&method));
            return Err(UsageError::new(problem, "for example: --method POST"));
        }
        Header::all_different(&self.headers)?;
        let usual = ["http://127.0.0.1:{port}/".to_owned()];
        let urls: &[String] = if self.url.is_empty() && self.from.is_empty() { &usual } else { &self.url };
        let mut asked = Asked { tls: false, port: None, requests: Vec::new() };
        let mut first: Option<(&str, bool, LocalPort)> = None;
        for url in urls {
            let Local { tls, port, path } = Local::parse(url)?;
            let Some(port) = port else {
                let remedy = "write {port} for the port that deadheat gives to the service, or the port on which it always listens";
                return Err(UsageError::new(format!("--url {}: its port is missing", shown(url)), remedy));
            };
            let (other, tls_before, port_before) = *first.get_or_insert((url, tls, port));
            if (tls, port) != (tls_before, port_before) {
                let problem =
                    format!("--url {} and --url {} are of different servers", shown(other), shown(url));
                return Err(UsageError::new(
                    problem,
                    "write the same scheme and port in both: one command starts one service",
                ));
            }
            asked.tls = tls;
            asked.port = match port {
                LocalPort::Given => None,
                LocalPort::Fixed(port) => Some(port),
            };
            let headers = self.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
            let request = DraftRequest {
                method: method.clone(),
                headers: headers.collect(),
                body: self.body.clone().unwrap_or_default(),
                ..DraftRequest::get(path)
            };
            if !asked.requests.contains(&request) {
                asked.requests.push(request);
            }
        }
        if !asked.tls && self.command.contains("{cert}") {
            let problem = format!("`{}` uses {{cert}}, but no URL is https", shown(&self.command));
            return Err(UsageError::new(
                problem,
                "deadheat makes a certificate only for https: --url 'https://127.0.0.1:{port}/'",
            ));
        }
        Ok(asked)
    }

    /// The same choices as a race would be told.
    pub(crate) fn choices(&self) -> Choices {
        let load = LoadChoices {
            timeout: self.timeout,
            ready_timeout: self.ready_timeout,
            ..LoadChoices::default()
        };
        Choices { load, ..Choices::default() }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn asked(arguments: &[&str]) -> Result<Asked, UsageError> {
        let cli = Cli::try_parse_from(["deadheat", "init"].iter().chain(arguments)).expect("a command line");
        let Command::Init(flags) = cli.command else { panic!("init") };
        flags.asked()
    }

    #[test]
    fn urls_become_requests_of_one_service() {
        let one = asked(&["npm start"]).unwrap();
        assert_eq!((one.tls, one.port, one.requests), (false, None, vec![DraftRequest::get("/")]));
        let two = asked(&[
            "x",
            "--url",
            "https://localhost:8443/a?b",
            "--url",
            "https://localhost:8443",
            "--url",
            "https://localhost:8443/",
        ]);
        let two = two.unwrap();
        assert_eq!((two.tls, two.port), (true, Some(8443)));
        assert_eq!(two.requests, [DraftRequest::get("/a?b"), DraftRequest::get("/")]);
        let post = asked(&["x", "-m", "POST", "-b", "{}", "-H", "a: b"]).unwrap();
        assert_eq!(post.requests[0].title(), "POST /");
        assert_eq!(post.requests[0].headers, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(asked(&["x", "--from", "a.yaml"]).unwrap().requests, []);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (arguments, part) in [
            (&[" "][..], "the command is empty"),
            (&["x", "--url", "http://127.0.0.1/"], "its port is missing"),
            (&["x", "--url", "http://127.0.0.1:0/"], "neither {port} nor a number"),
            (&["x", "--url", "http://127.0.0.1:{prot}/"], "neither {port} nor a number"),
            (&["x", "--url", "http://example.org:{port}/"], "not this machine's loopback"),
            (&["x", "--url", "http://127.0.0.1:1/", "--url", "http://127.0.0.1:2/"], "different servers"),
            (&["x", "-m", "a b"], "is not an HTTP method"),
            (&["x {cert}"], "no URL is https"),
        ] {
            let error = asked(arguments).expect_err(part);
            assert!(error.problem.contains(part) && !error.remedy.is_empty(), "{error}");
        }
    }
}
