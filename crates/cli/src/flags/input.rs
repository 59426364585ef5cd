//! What `race` races: a study, commands, or the rest of an interrupted race. Combinations that make no sense end here.

use std::path::{Path, PathBuf};

use super::{AdHocFlags, ParityWord, RaceFlags, RaceHostFlags};
use crate::load::split_port;
use deadheat_record::{JsonPath, Probe};
use deadheat_study::choices::{Choices, UsageError};
use deadheat_study::file::{self as study, shown};
use deadheat_study::plan::AdHoc;
use deadheat_study::values::{self, Header};

/// What is raced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A folder with `study.toml`, or that file.
    Study(PathBuf),
    /// Commands on the command line.
    AdHoc(AdHoc),
    /// A race that was interrupted.
    Resume(PathBuf),
}

const GIT_EXAMPLE: &str = "for example: deadheat race --git main 'node server.js'";
const AD_HOC_EXAMPLE: &str =
    "for example: deadheat race --url 'http://127.0.0.1:{port}/' 'node a.mjs' 'bun b.ts'";

impl RaceFlags {
    /// What is raced; looks only at whether paths are studies.
    ///
    /// # Errors
    /// When the combination of arguments makes no sense.
    pub(crate) fn input(&self) -> Result<Input, UsageError> {
        if let Some(host) = self.allow_target.first() {
            let problem = format!("--allow-target {}: a race cannot load other hosts yet", shown(host));
            return Err(UsageError::new(
                problem,
                "remove it: deadheat starts the contenders on this machine, and loads them at 127.0.0.1",
            ));
        }
        if let Some(record) = &self.resume {
            return self.resumed(record);
        }
        let study = self.targets.iter().find(|target| is_study(target));
        if let (Some(name), Some(_)) = (&self.choices.selection.baseline, &self.git) {
            return Err(UsageError::new(
                format!("--baseline {}: with --git, the baseline is the first revision", shown(name)),
                "leave --baseline out",
            ));
        }
        match (study, self.targets.as_slice()) {
            (Some(study), [_]) => self.study(study),
            (Some(study), _) => Err(UsageError::new(
                format!("`{}` is a study, so it must be the only argument", shown(study)),
                "race one study at a time; choose its contenders with --only NAME,..",
            )),
            (None, []) if is_study(".") => self.study("."),
            (None, []) => Err(UsageError::new("there is nothing to race", self.example())),
            (None, [one]) if self.git.is_some() && !Path::new(one).is_dir() => {
                self.commands(&self.targets).map(Input::AdHoc)
            }
            (None, [one]) => Err(self.single(one)),
            (None, several) if self.git.is_some() => Err(UsageError::new(
                format!("--git races one command in two revisions, and there are {}", several.len()),
                GIT_EXAMPLE,
            )),
            (None, commands) => self.commands(commands).map(Input::AdHoc),
        }
    }

    fn resumed(&self, record: &Path) -> Result<Input, UsageError> {
        let alone = self.targets.is_empty() && self.ad_hoc == AdHocFlags::default() && self.git.is_none();
        if !alone {
            let problem =
                "--resume cannot be combined with a study, commands, --git or options about requests";
            return Err(UsageError::new(
                problem,
                "leave them out, because the record contains the plan: deadheat race --resume RECORD",
            ));
        }
        if self.choices != Choices::default()
            || self.record.is_some()
            || self.hosts != RaceHostFlags::default()
        {
            let problem = "--resume cannot be combined with options that change the plan or the record";
            return Err(UsageError::new(
                problem,
                "leave them out; only --json, --html, --fail-if and --pause-after may be added",
            ));
        }
        Ok(Input::Resume(record.to_owned()))
    }

    fn study(&self, study: &str) -> Result<Input, UsageError> {
        if self.ad_hoc != AdHocFlags::default() {
            let problem = format!(
                "`{}` is a study: --url, --name, --build, --method, --header, --body, --ignore-header, --ignore-json and --parity do not apply",
                shown(study)
            );
            return Err(UsageError::new(
                problem,
                "leave them out; the requests, and how answers may differ, are in its study.toml, in [[probe]]",
            ));
        }
        Ok(Input::Study(study.into()))
    }

    fn example(&self) -> &'static str {
        if self.git.is_some() { GIT_EXAMPLE } else { AD_HOC_EXAMPLE }
    }

    /// One argument that is no study.
    fn single(&self, one: &str) -> UsageError {
        if self.ad_hoc.url.is_some() || one.contains(char::is_whitespace) {
            let problem = format!("one command only, `{}`: there is nothing to compare it with", shown(one));
            return UsageError::new(problem, AD_HOC_EXAMPLE);
        }
        let path = Path::new(one);
        let problem = match (path.is_dir(), path.exists()) {
            (true, _) => format!("the folder `{}` has no study.toml", shown(one)),
            (false, true) => {
                format!("`{}` is not a study: a study is a folder with study.toml, or that file", shown(one))
            }
            (false, false) => format!("there is no study `{}`", shown(one)),
        };
        UsageError::new(problem, format!("name a folder with study.toml, or two commands; {AD_HOC_EXAMPLE}"))
    }

    fn commands(&self, commands: &[String]) -> Result<AdHoc, UsageError> {
        let names = &self.ad_hoc.names;
        if let Some(empty) = commands.iter().position(|command| command.trim().is_empty()) {
            let problem = format!("command {} of {} is empty", empty + 1, commands.len());
            return Err(UsageError::new(problem, AD_HOC_EXAMPLE));
        }
        if !names.is_empty() && names.len() != commands.len() {
            let of = if names.len() == 1 { "name" } else { "names" };
            let problem = format!("{} {of} (-n) for {} commands", names.len(), commands.len());
            return Err(UsageError::new(problem, "give -n once per command, in their order, or not at all"));
        }
        if !self.choices.selection.scenario.is_empty() {
            let problem = "--scenario chooses among a study's scenarios, and commands have only one";
            return Err(UsageError::new(problem, "leave --scenario out; -c and -r say how to load"));
        }
        let method = self.ad_hoc.method.clone().unwrap_or_else(|| "GET".into());
        if let Err(problem) = values::method(&method) {
            let problem = format!("--method {}: {problem}", shown(&method));
            return Err(UsageError::new(problem, "for example: --method POST"));
        }
        Header::all_different(&self.ad_hoc.headers)?;
        let url = self.ad_hoc.url.as_deref().unwrap_or("http://127.0.0.1:{port}/");
        let (tls, path) = requested(url)?;
        if let Some(command) = commands.iter().find(|command| !tls && command.contains("{cert}")) {
            let problem = format!("`{}` uses {{cert}}, but the URL is not https", shown(command));
            return Err(UsageError::new(
                problem,
                "deadheat makes a certificate only for a race over TLS: --url 'https://127.0.0.1:{port}/'",
            ));
        }
        Ok(AdHoc {
            commands: commands.to_vec(),
            names: names.clone(),
            build: self.ad_hoc.build.clone(),
            tls,
            path,
            method,
            headers: self.ad_hoc.headers.clone(),
            body: self.ad_hoc.body.clone(),
            ignore_headers: self.ad_hoc.ignored_headers()?,
            ignore_json: self.ad_hoc.ignored_json()?,
        })
    }
}

impl AdHocFlags {
    /// The headers that need not agree, in lower case.
    fn ignored_headers(&self) -> Result<Vec<String>, UsageError> {
        let compared = Probe::AGREE_HEADERS;
        let lower = |name: &String| match name.to_ascii_lowercase() {
            name if compared.contains(&name.as_str()) => Ok(name),
            other => Err(UsageError::new(
                format!("--ignore-header {}: this header is not compared anyway", shown(&other)),
                format!("leave it out; compared is: {}", compared.join(", ")),
            )),
        };
        let named = self.ignore_header.iter().map(lower).collect::<Result<_, _>>()?;
        let all = || compared.iter().map(|&name| name.to_owned()).collect();
        Ok(if self.parity == Some(ParityWord::Status) { all() } else { named })
    }

    /// The JSON paths at which answers may differ.
    fn ignored_json(&self) -> Result<Vec<String>, UsageError> {
        let checked = |path: &String| match JsonPath::parse(path) {
            Ok(_) => Ok(path.clone()),
            Err(error) => Err(UsageError::new(
                format!("--ignore-json {}: {error}", shown(path)),
                "write it like '$.items[0].id' or '$.items[*].id'; '$' is the whole body",
            )),
        };
        let named = self.ignore_json.iter().map(checked).collect::<Result<_, _>>()?;
        Ok(if self.parity == Some(ParityWord::Status) { vec!["$".into()] } else { named })
    }
}

/// Whether `path` is a folder with `study.toml`, or a TOML file.
fn is_study(path: &str) -> bool {
    let path = Path::new(path);
    path.join(study::FILE_NAME).is_file()
        || path.is_file() && path.extension().is_some_and(|end| end == "toml")
}

/// Whether a URL that every contender can be asked for, such as `https://127.0.0.1:{port}/x`, is https, and its path with its query.
pub(super) fn requested(url: &str) -> Result<(bool, String), UsageError> {
    let Local { tls, port, path } = Local::parse(url)?;
    if port == Some(LocalPort::Given) {
        return Ok((tls, path));
    }
    let problem = "{port} is missing: contenders run at the same time, each on its own port";
    let remedy = format!("{URL_EXAMPLE}; each command gets its port as {{port}} and in PORT");
    Err(UsageError::new(format!("--url {}: {problem}", shown(url)), remedy))
}

const URL_EXAMPLE: &str = "write it like 'http://127.0.0.1:{port}/x'";

/// The parts of a URL of a server that deadheat starts on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Local {
    /// Whether it is https.
    pub(super) tls: bool,
    /// The port. None if the URL has none.
    pub(super) port: Option<LocalPort>,
    /// Path and query. Begins with `/`.
    pub(super) path: String,
}

/// The port in a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalPort {
    /// `{port}`: the port that deadheat gives to the server.
    Given,
    /// The port on which the server always listens.
    Fixed(u16),
}

impl Local {
    /// Parses `--url`.
    ///
    /// # Errors
    /// It is not an HTTP URL of the loopback that can be requested.
    pub(super) fn parse(url: &str) -> Result<Self, UsageError> {
        let wrong = |problem: String, remedy: &str| {
            Err(UsageError::new(format!("--url {}: {problem}", shown(url)), remedy))
        };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let tls = scheme.eq_ignore_ascii_case("https");
        if !tls && !scheme.eq_ignore_ascii_case("http") {
            return wrong("it begins neither with http:// nor with https://".into(), URL_EXAMPLE);
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = split_port(authority);
        match host.to_ascii_lowercase().as_str() {
            "127.0.0.1" | "localhost" => {}
            host if host.starts_with('[') => {
                return wrong(
                    "contenders are loaded over IPv4".into(),
                    "write 127.0.0.1 instead of the IPv6 address",
                );
            }
            host => {
                let problem = format!("`{}` is not this machine's loopback", shown(host));
                return wrong(
                    problem,
                    "deadheat starts contenders on this machine; write http://127.0.0.1:{port}/",
                );
            }
        }
        let fixed = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).map(LocalPort::Fixed);
        let port = match port {
            None => None,
            Some("{port}") => Some(LocalPort::Given),
            Some(text) => match fixed(text) {
                Some(port) => Some(port),
                None => {
                    let problem =
                        format!("`{}` is neither {{port}} nor a number from 1 to 65535", shown(text));
                    return wrong(problem, URL_EXAMPLE);
                }
            },
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        match study::path_problem(&path) {
            Some(problem) => wrong(problem.into(), URL_EXAMPLE),
            None => Ok(Self { tls, port, path }),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn input(arguments: &[&str]) -> Result<Input, UsageError> {
        let cli = Cli::try_parse_from(["deadheat", "race"].iter().chain(arguments)).expect("a command line");
        let Command::Race(flags) = cli.command else { panic!("race") };
        flags.input()
    }

    fn problem(arguments: &[&str]) -> String {
        input(arguments).expect_err("wrong usage").problem
    }

    #[test]
    fn urls_lead_to_the_loopback_and_name_the_port() {
        for (url, tls, path) in [
            ("http://127.0.0.1:{port}/x", false, "/x"),
            ("http://localhost:{port}", false, "/"),
            ("HTTP://LocalHost:{port}/A?b=c", false, "/A?b=c"),
            ("http://127.0.0.1:{port}?q=1", false, "/?q=1"),
            ("https://127.0.0.1:{port}/x", true, "/x"),
            ("HTTPS://localhost:{port}", true, "/"),
        ] {
            assert_eq!(requested(url), Ok((tls, path.to_owned())), "{url}");
        }
        for (url, part) in [
            ("ftp://127.0.0.1:{port}/", "neither with http:// nor with https://"),
            ("https://example.org:{port}/", "not this machine's loopback"),
            ("http://[::1]:{port}/", "IPv4"),
            ("http://example.org:{port}/", "not this machine's loopback"),
            ("http://user@127.0.0.1:{port}/", "not this machine's loopback"),
            ("http://0.0.0.0:{port}/", "not this machine's loopback"),
            ("http://127.0.0.1:8080/", "{port} is missing"),
            ("http://127.0.0.1/", "{port} is missing"),
            ("127.0.0.1:{port}/", "neither with http:// nor with https://"),
            ("http://127.0.0.1:{port}/a b", "percent-encoded"),
            ("http://127.0.0.1:{port}/#x", "never reaches"),
        ] {
            let error = requested(url).expect_err(url);
            assert!(error.problem.contains(part), "{url}: {error}");
            assert!(!error.remedy.is_empty());
        }
    }

    #[test]
    fn commands_are_raced_without_a_study() {
        let Ok(Input::AdHoc(ad_hoc)) = input(&["node a.mjs", "bun b.ts", "-n", "a", "-n", "b"]) else {
            panic!("ad hoc")
        };
        assert_eq!(ad_hoc.commands, ["node a.mjs", "bun b.ts"]);
        assert_eq!((ad_hoc.path.as_str(), ad_hoc.method.as_str()), ("/", "GET"));
        assert_eq!((ad_hoc.ignore_headers, ad_hoc.ignore_json), (vec![], vec![]));
    }

    #[test]
    fn parity_is_relaxed_by_name() {
        let ignored = |words: &[&str]| match input(&[&["a", "b"], words].concat()) {
            Ok(Input::AdHoc(one)) => (one.ignore_headers, one.ignore_json),
            other => panic!("{other:?}"),
        };
        let both = ignored(&["--ignore-header", "Content-Type", "--ignore-json", "$.a[*].t"]);
        assert_eq!(both, (vec!["content-type".into()], vec!["$.a[*].t".into()]));
        let status = (vec!["content-type".into()], vec!["$".into()]);
        assert_eq!(ignored(&["--parity", "status"]), status);
        assert_eq!(ignored(&["--parity", "all"]), (vec![], vec![]));
        assert!(problem(&["a", "b", "--ignore-header", "date"]).contains("is not compared anyway"));
        for more in [&[][..], &["--parity", "status"]] {
            let words = [&["a", "b", "--ignore-json", "time"], more].concat();
            assert!(problem(&words).starts_with("--ignore-json time: "), "{words:?}");
        }
    }

    #[test]
    fn a_study_is_told_from_commands_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("study.toml"), "").unwrap();
        let path = folder.path().to_str().unwrap();
        assert_eq!(input(&[path]), Ok(Input::Study(path.into())));
        let file = format!("{path}/study.toml");
        assert_eq!(input(&[&file]), Ok(Input::Study(file.clone().into())));
        assert!(problem(&[path, "node a.mjs"]).contains("so it must be the only argument"));
        assert!(problem(&[path, "--url", "http://127.0.0.1:{port}/"]).contains("is a study"));
        assert!(problem(&[path, "-H", "a: b"]).contains("is a study"));
        assert!(problem(&[path, "--resume", "r.jsonl"]).contains("--resume cannot be combined with a study"));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().to_str().unwrap();
        assert!(problem(&[empty]).contains("has no study.toml"));
        assert!(problem(&["no/such/study"]).contains("there is no study"));
        assert!(problem(&["node a.mjs"]).contains("one command only"));
        assert!(problem(&["x", "--url", "http://127.0.0.1:{port}/"]).contains("one command only"));
        assert!(problem(&["a", "b", "-n", "x"]).contains("1 name (-n) for 2 commands"));
        assert!(problem(&["a", " "]).contains("command 2 of 2 is empty"));
        assert!(problem(&["a", "b", "--scenario", "x"]).contains("--scenario"));
        assert!(problem(&["a", "b", "-m", "a b"]).contains("is not an HTTP method"));
        assert!(problem(&["a {cert}", "b"]).contains("the URL is not https"));
        assert!(problem(&["a", "b", "--allow-target", "h"]).contains("cannot load other hosts yet"));
        assert!(problem(&["--resume", "r.jsonl", "--epochs", "6..9"]).contains("change the plan"));
        assert_eq!(input(&["--resume", "r.jsonl", "--json", "x"]), Ok(Input::Resume("r.jsonl".into())));
    }
}
