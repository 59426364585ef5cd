//! Turns commands of the command line into a study without a file: one probe, one load, one contender per command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use deadheat_record as record;
use deadheat_record::{BodyRule, Experiment, Limits, Listen, Source, StatusRule, Traffic};
use toml::Spanned;

use super::resolve::STEADY;
use crate::choices::UsageError;
use crate::file::{self, Contender, Probe, Scenario, Study, shown};
use crate::values::Header;

/// Commands of the command line and their request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdHoc {
    /// Shell commands; at least two, or one in a race of revisions.
    pub commands: Vec<String>,
    /// One per command, or empty.
    pub names: Vec<String>,
    /// Whether the URL is https.
    pub tls: bool,
    /// A shell command that runs once for each command before the race.
    pub build: Option<String>,
    /// Path and query of the URL.
    pub path: String,
    /// Request method.
    pub method: String,
    /// Request headers.
    pub headers: Vec<Header>,
    /// Request body, or `@FILE`.
    pub body: Option<String>,
    /// Answer headers in which contenders need not agree, in lower case.
    pub ignore_headers: Vec<String>,
    /// JSON paths at which answers may differ; `$` stands for the whole body.
    pub ignore_json: Vec<String>,
}

impl AdHoc {
    /// Two commands called `one` and `other` that are asked for `path` over plain HTTP.
    pub fn pair(commands: [String; 2], path: String) -> Self {
        Self {
            commands: commands.into(),
            names: vec!["one".into(), "other".into()],
            path,
            method: "GET".into(),
            ..Self::default()
        }
    }
}

/// The name of the only probe in the plan.
const PROBE_NAME: &str = "url";
/// The longest name derived from a command, in characters.
const NAME_LENGTH: usize = 40;

/// The study for these commands. They run in `folder`, which is absolute.
///
/// # Errors
/// The body's file cannot be read, or two contenders have the same name.
pub fn study_of(ad_hoc: &AdHoc, folder: &Path) -> Result<Study, UsageError> {
    let names = if ad_hoc.names.is_empty() { derived(&ad_hoc.commands) } else { given(&ad_hoc.names)? };
    let contenders = names
        .into_iter()
        .zip(&ad_hoc.commands)
        .map(|(name, command)| contender(name, command, ad_hoc.build.clone().map(typed), folder));
    Ok(Study {
        name: record::Plan::AD_HOC.into(),
        source: Source::AdHoc,
        title: None,
        folder: folder.to_owned(),
        dataset: None,
        services: Vec::new(),
        contenders: contenders.collect(),
        probes: vec![probe(ad_hoc, folder)?],
        scenarios: vec![scenario(ad_hoc.tls)],
        machine_matches: false,
        claims: Vec::new(),
        generators: Vec::new(),
        hosts: Vec::new(),
    })
}

fn typed<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn contender(name: String, command: &str, build: Option<Spanned<String>>, folder: &Path) -> Contender {
    Contender {
        name: typed(name),
        command: typed(command.to_owned()),
        folder: folder.to_owned(),
        env: BTreeMap::new(),
        needs: Vec::new(),
        version: None,
        measures: std::collections::BTreeMap::new(),
        artefacts: Vec::new(),
        collector: None,
        plain_http_only: false,
        build,
        image: None,
        revision: None,
        services: Vec::new(),
        listen: typed(Listen::FreePort),
    }
}

/// The same scenario as in a study without scenarios, over TLS if the URL is https.
fn scenario(tls: bool) -> Scenario {
    Scenario {
        name: typed(STEADY.into()),
        shape: Experiment::Closed { connections: file::CONNECTIONS },
        requests: None,
        link: None,
        limits: Limits::default(),
        metrics: Vec::new(),
        sweep: None,
        ladder: None,
        traffic: Traffic { tls, ..Traffic::default() },
    }
}

fn probe(ad_hoc: &AdHoc, folder: &Path) -> Result<Probe, UsageError> {
    let headers = ad_hoc.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    let agreeing = record::Probe::AGREE_HEADERS;
    let agreeing = agreeing.iter().filter(|&&name| !ad_hoc.ignore_headers.iter().any(|one| one == name));
    let contract = record::Probe {
        name: PROBE_NAME.into(),
        method: ad_hoc.method.clone(),
        path: ad_hoc.path.clone(),
        paths: Vec::new(),
        log: None,
        values: None,
        capture: BTreeMap::new(),
        request_headers: headers.collect(),
        request_body: body(ad_hoc, folder)?,
        status: StatusRule::Success,
        headers: BTreeMap::new(),
        agree_headers: agreeing.map(|&name| name.to_owned()).collect(),
        body: BodyRule {
            json: Vec::new(),
            volatile: Vec::new(),
            exact: None,
            agree: true,
            ignored: ad_hoc.ignore_json.clone(),
        },
        under_load: true,
    };
    Ok(Probe { name: typed(PROBE_NAME.into()), contract, from_log: false, from_rows: false, left_out: None })
}

fn body(ad_hoc: &AdHoc, folder: &Path) -> Result<String, UsageError> {
    let Some(body) = &ad_hoc.body else { return Ok(String::new()) };
    let Some(file) = body.strip_prefix('@') else { return Ok(body.clone()) };
    fs::read_to_string(folder.join(file)).map_err(|error| {
        let problem = format!("--body @{}: {error}", shown(file));
        UsageError::new(problem, "name a UTF-8 text file; a body that begins with @ must come from a file")
    })
}

fn given(names: &[String]) -> Result<Vec<String>, UsageError> {
    for (index, name) in names.iter().enumerate() {
        if name.trim().is_empty() || name.contains(',') || name.chars().any(char::is_control) {
            let problem = format!("`{}` cannot be a contender's name", shown(name));
            return Err(UsageError::new(
                problem,
                "choose a name that is not empty and contains neither commas nor control characters",
            ));
        }
        if names[..index].contains(name) {
            let problem = format!("two commands are called `{}`", shown(name));
            return Err(UsageError::new(problem, "give each -n a different name"));
        }
    }
    Ok(names.to_vec())
}

/// Names contenders after their commands, shortened. The second with the same name becomes `name #2`.
fn derived(commands: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for command in commands {
        let name = shortened(command);
        let numbered = (2..).map(|number| format!("{name} #{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|candidate| !names.contains(candidate));
        names.extend(free);
    }
    names
}

fn shortened(command: &str) -> String {
    let plain: String = command.chars().map(|c| if c == ',' || c.is_control() { ' ' } else { c }).collect();
    let name = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() <= NAME_LENGTH {
        return name;
    }
    let kept: String = name.chars().take(NAME_LENGTH - 1).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ad_hoc(commands: &[&str], names: &[&str]) -> AdHoc {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        AdHoc {
            commands: owned(commands),
            names: owned(names),
            path: "/x?y".into(),
            method: "GET".into(),
            ..AdHoc::default()
        }
    }

    fn names(commands: &[&str], given: &[&str]) -> Vec<String> {
        let study = study_of(&ad_hoc(commands, given), Path::new("/here")).unwrap();
        study.contenders.into_iter().map(|contender| contender.name.into_inner()).collect()
    }

    #[test]
    fn contenders_are_called_after_their_commands() {
        assert_eq!(names(&["node  a.mjs", "bun b.ts"], &[]), ["node a.mjs", "bun b.ts"]);
        assert_eq!(names(&["x", "x", "x"], &[]), ["x", "x #2", "x #3"]);
        assert_eq!(names(&["x #2", "x", "x"], &[]), ["x #2", "x", "x #3"]);
        assert_eq!(names(&["a --l=1,2\n", "b"], &[]), ["a --l=1 2", "b"]);
        assert_eq!(names(&["a", "b"], &["one", "two"]), ["one", "two"]);
        let long = "node --max-old-space-size=4096 a-server-with-a-long-name.mjs";
        assert_eq!(names(&[long, "b"], &[])[0], "node --max-old-space-size=4096 a-server…");
    }

    #[test]
    fn the_url_says_whether_they_are_asked_over_tls() {
        for tls in [false, true] {
            let study = study_of(&AdHoc { tls, ..ad_hoc(&["a", "b"], &[]) }, Path::new("/here")).unwrap();
            let scenarios: Vec<_> =
                study.scenarios.iter().map(|one| (one.name.get_ref().as_str(), one.traffic.tls)).collect();
            assert_eq!(scenarios, [("steady", tls)]);
        }
    }

    #[test]
    fn names_that_were_given_are_unique() {
        let error = study_of(&ad_hoc(&["a", "b"], &["x", "x"]), Path::new("/")).unwrap_err();
        assert_eq!(error.problem, "two commands are called `x`");
        assert!(study_of(&ad_hoc(&["a", "b"], &["x", "y,z"]), Path::new("/")).is_err());
    }

    #[test]
    fn the_body_may_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("body.json"), "{}").unwrap();
        let with = |body: &str| AdHoc { body: Some(body.into()), ..ad_hoc(&["a", "b"], &[]) };
        let sent = |body: &str| {
            study_of(&with(body), folder.path()).map(|study| study.probes[0].contract.request_body.clone())
        };
        assert_eq!(sent("@body.json"), Ok("{}".into()));
        assert_eq!(sent("text"), Ok("text".into()));
        assert!(sent("@none").unwrap_err().problem.starts_with("--body @none: "));
    }
}
