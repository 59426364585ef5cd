//! Drafts a `study.toml` from what a service answered.
//!
//! Owns: what a draft contains, its comments, and that the study reader accepts it, whatever the strings in it are. Must not know: how the
//! service is started and asked, where the file goes.

mod contract;
mod openapi;
mod pattern;
mod quote;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use deadheat_record::{Experiment, Metric};

pub use contract::{Body, Changing, Contract};
pub use openapi::OpenApiError;
pub use sources::{Found, SourceError, requests_of};

use crate::plan::{QUICK, in_reach};
use contract::grouped;
use quote::{in_comment, quoted, value};

/// Programs that start a service on Node.js.
const NODE_PROGRAMS: [&str; 5] = ["node", "npm", "npx", "yarn", "pnpm"];
/// How a study sets NODE_ENV.
const NODE_ENV: &str =
    "env = { NODE_ENV = \"production\" } # without this, it runs as in development, which is often slower";
/// What a study lacks that sets other variables.
const ADD_NODE_ENV: &str =
    "Without NODE_ENV = \"production\" in `env`, it runs as in development, which is often slower.";
/// When a study needs a build.
const BUILD_NOTE: &str = "# races of versions (--git) need it: what git ignores is not part of a version";
/// The names of the two scenarios.
const CLOSED: &str = "steady";
const OPEN: &str = "users";
/// The largest weight of a request in a study.
const MOST_WEIGHT: u32 = 1_000_000;
/// The open scenario sends at most this share of the answers per second that the closed load saw.
const SHARE: f64 = 0.3;
/// No service answers as many requests per second.
const HIGHEST: f64 = 1e9;
/// Rates are one of these times a power of ten.
const ROUND: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 8.0];

/// Everything that a draft is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The study's name; made usable if it is not.
    pub name: String,
    /// The service.
    pub contender: DraftContender,
    /// Whether it is asked over TLS.
    pub tls: bool,
    /// The requests, at least one.
    pub probes: Vec<DraftProbe>,
    /// What the closed load saw, if there was one.
    pub load: Option<SeenLoad>,
    /// Requests that are not in the draft: what, and why.
    pub left_out: Vec<LeftOut>,
}

/// The service that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftContender {
    /// A shell command.
    pub command: String,
    /// Whether the environment, which it inherits, sets NODE_ENV.
    pub node_env_is_set: bool,
    /// A shell command that builds it, from the study that the draft replaces.
    pub build: Option<String>,
    /// A command that usually builds a service with the files of this one.
    pub usual_build: Option<String>,
    /// Variables added to its environment, from the study that the draft replaces.
    pub env: BTreeMap<String, String>,
    /// The folder in which it runs, unless that is the study's folder.
    pub folder: Option<String>,
    /// The port on which it always listens. None: the port that deadheat gives it.
    pub port: Option<u16>,
}

/// Whether a command starts a program on Node.js.
pub fn is_on_node(command: &str) -> bool {
    let mut programs = command.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    programs.any(|program| NODE_PROGRAMS.contains(&program))
}

impl DraftContender {
    /// The line that sets its environment, if there is anything to set.
    fn env(&self, out: &mut Lines) {
        let name = |name: &str| {
            let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if is_bare { name.to_owned() } else { quoted(name) }
        };
        if !self.env.is_empty() {
            let each: Vec<String> =
                self.env.iter().map(|(key, value)| format!("{} = {}", name(key), quoted(value))).collect();
            out.key("env", &format!("{{ {} }}", each.join(", ")));
        }
    }

    /// Whether it is a program on Node.js, and nothing says in which environment: then many packages do the additional work that helps during development.
    fn lacks_node_env(&self) -> bool {
        let is_set = self.node_env_is_set || self.env.contains_key("NODE_ENV");
        is_on_node(&self.command) && !is_set && !self.command.contains("NODE_ENV=")
    }
}

/// One request, and what its answers had in common.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftProbe {
    /// The request.
    pub request: DraftRequest,
    /// What the answers have in common. None before the service was asked.
    pub seen: Option<Contract>,
}

/// A request to the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftRequest {
    /// The method.
    pub method: String,
    /// Path and query, percent-encoded.
    pub path: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// Its share of the requests, at least 1.
    pub weight: u32,
    /// Where it comes from, for a comment.
    pub origin: Option<String>,
}

impl DraftRequest {
    /// `GET` without headers or body.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".into(),
            path: path.into(),
            headers: Vec::new(),
            body: String::new(),
            weight: 1,
            origin: None,
        }
    }

    /// The request in a few words: `GET /api/items`.
    pub fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// What a closed load saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeenLoad {
    /// Answers per second.
    pub rate_per_s: f64,
    /// Number of connections.
    pub connections: u32,
}

/// A request that is not in the draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The request, such as `GET /items/{id}`.
    pub what: String,
    /// The reason, and what to do about it.
    pub why: String,
}

impl Draft {
    /// The contender's name.
    pub fn contender_name(&self) -> String {
        let name = crate::file::default_name(&self.contender.command);
        usable_name(&name, "service")
    }

    /// The rate of the open scenario, and the metrics that can be compared at it. None without a closed load, and if the service is too slow for
    /// any percentile.
    pub fn open_rate(&self) -> Option<(f64, &'static [Metric])> {
        const CHOICES: [&[Metric]; 3] =
            [&[Metric::P50, Metric::P99], &[Metric::P50, Metric::P90], &[Metric::P50]];
        let load = self.load?;
        let rate_per_s = round_down((load.rate_per_s * SHARE).min(crate::file::MOST_PER_S))?;
        let shape = Experiment::Open { connections: load.connections, rate_per_s, poisson: true };
        let reached = |metrics: &&[Metric]| {
            let slices = QUICK.slices(&shape, metrics, None, None);
            metrics.iter().all(|metric| in_reach(OPEN, &shape, &[*metric], Some(slices)).is_ok())
        };
        CHOICES.into_iter().find(reached).map(|metrics| (rate_per_s, metrics))
    }

    /// The text of `study.toml`.
    pub fn text(&self) -> String {
        let mut out = Lines::default();
        self.head(&mut out);
        self.contender(&mut out);
        let names = probe_names(self.probes.iter().map(|probe| &probe.request));
        for (probe, name) in self.probes.iter().zip(&names) {
            probe.text(name, &mut out);
        }
        self.left_out(&mut out);
        self.scenarios(&names, &mut out);
        out.0
    }

    fn head(&self, out: &mut Lines) {
        out.comment("Written by `deadheat init`. Change whatever you like; then:");
        out.comment("  deadheat check STUDY    checks that all contenders answer as this file says");
        out.comment("  deadheat race STUDY     races them");
        out.comment(
            "STUDY is this file or its folder. The book explains every key: \"Writing your own study\".",
        );
        out.key("name", &quoted(&usable_name(&self.name, "study")));
    }

    fn contender(&self, out: &mut Lines) {
        let DraftContender { command, build, usual_build, env, folder, port, .. } = &self.contender;
        let name = self.contender_name();
        out.empty();
        match port {
            None => out.comment(
                "The server must listen on the port that it finds in PORT, or at {port} in the command.",
            ),
            Some(port) => {
                out.comment(&format!("The server always listens on port {port}. Contenders run at the same time, so another one needs"));
                out.comment("another port. If it can read its port from PORT or {port}, remove `port`.");
            }
        }
        if self.tls {
            out.comment("It must use the certificate and key whose files it finds in CERT and KEY, or at {cert} and {key}.");
        }
        out.line("[[contender]]");
        out.key("name", &quoted(&name));
        out.key("command", &quoted(command));
        match (self.contender.lacks_node_env(), env.is_empty()) {
            (true, true) => out.comment(NODE_ENV),
            (true, false) => out.comment(ADD_NODE_ENV),
            (false, _) => {}
        }
        if build.is_some() || !env.is_empty() {
            out.comment("From the file that this one replaces.");
        }
        self.contender.env(out);
        match (build, usual_build) {
            (Some(build), _) => out.key("build", &quoted(build)),
            (None, Some(usual)) => out.comment(&format!("build = {} {BUILD_NOTE}", quoted(usual))),
            (None, None) => {}
        }
        if let Some(folder) = folder {
            out.key("folder", &quoted(folder));
        }
        if let Some(port) = port {
            out.key("port", &port.to_string());
        }
        out.empty();
        out.comment("A race of two versions (--git) needs no second contender. To race another framework, runtime or setting,");
        out.comment("remove the `# ` from the lines below, and change the command.");
        let other = if name == "other" { "another" } else { "other" };
        let mut second = Lines::default();
        second.line("[[contender]]");
        second.key("name", &quoted(other));
        second.key("command", &quoted(command));
        self.contender.env(&mut second);
        if let Some(folder) = folder {
            second.key("folder", &quoted(folder));
        }
        if let Some(port) = port {
            second.key("port", &port.checked_add(1).unwrap_or(1024).to_string());
        }
        second.0.lines().for_each(|line| out.comment(line));
    }

    fn left_out(&self, out: &mut Lines) {
        if self.left_out.is_empty() {
            return;
        }
        out.empty();
        out.comment("Not in this study:");
        for LeftOut { what, why } in &self.left_out {
            out.comment(&format!("- {}: {}", in_comment(what), in_comment(why)));
        }
    }

    fn scenarios(&self, names: &[String], out: &mut Lines) {
        let connections = self.load.map_or(crate::file::CONNECTIONS, |load| load.connections);
        out.empty();
        out.comment(&format!(
            "Closed load: each of {connections} connections waits for its answer. It compares throughput."
        ));
        out.line("[[scenario]]");
        out.key("name", &quoted(CLOSED));
        out.key("connections", &connections.to_string());
        self.load_settings(names, out);
        let Some(load) = self.load else { return };
        let seen = grouped(significant(load.rate_per_s) as usize);
        out.empty();
        out.comment(
            "Open load: requests are due at this rate, however fast the answers come. It compares latency.",
        );
        let Some((rate, metrics)) = self.open_rate() else {
            out.comment(&format!("The service gave about {seen} answers per second with {connections} connections, which is too slow to compare"));
            out.comment(
                "latencies at a lower rate. For a faster service, remove the `# ` and choose a rate:",
            );
            for line in ["[[scenario]]", "name = \"users\"", "rate = 100"] {
                out.comment(line);
            }
            return;
        };
        out.comment(&format!("deadheat saw about {seen} answers per second with {connections} connections. The rate is at most 30 % of that, so that"));
        out.comment("slower contenders can keep up too.");
        out.line("[[scenario]]");
        out.key("name", &quoted(OPEN));
        out.key("rate", &rate.to_string());
        let open = Experiment::Open { connections, rate_per_s: rate, poisson: true };
        if metrics != open.usual_metrics() {
            out.comment("At this rate, p99 would need a longer race.");
            let words: Vec<String> = metrics.iter().map(|metric| quoted(metric.word())).collect();
            out.key("metrics", &format!("[{}]", words.join(", ")));
        }
        self.load_settings(names, out);
    }

    /// What both scenarios have: weights and TLS.
    fn load_settings(&self, names: &[String], out: &mut Lines) {
        if self.probes.iter().any(|probe| probe.request.weight != 1) {
            out.line("requests = [");
            for (probe, name) in self.probes.iter().zip(names) {
                out.line(&format!(
                    "  {{ probe = {}, weight = {} }},",
                    quoted(name),
                    probe.request.weight.clamp(1, MOST_WEIGHT)
                ));
            }
            out.line("]");
        }
        if self.tls {
            out.key("tls", "true");
        }
    }
}

impl DraftProbe {
    fn text(&self, name: &str, out: &mut Lines) {
        let request = &self.request;
        out.empty();
        if let Some(origin) = &request.origin {
            out.comment(&in_comment(origin));
        }
        if let Some(seen) = &self.seen {
            let starts = if seen.starts == 1 { "start" } else { "starts" };
            out.comment(&format!(
                "{} answers in {} {starts}: {}",
                seen.answers,
                seen.starts,
                in_comment(&seen.summary())
            ));
        }
        out.line("[[probe]]");
        out.key("name", &quoted(name));
        if request.method != "GET" {
            out.key("method", &quoted(&request.method));
        }
        out.key("path", &quoted(&request.path));
        if !request.headers.is_empty() {
            out.key("request_headers", &inline(&request.headers));
        }
        if !request.body.is_empty() {
            out.key("request_body", &quoted(&request.body));
        }
        if let Some(seen) = &self.seen {
            contract(seen, out);
        }
    }
}

/// What every contender must answer.
fn contract(seen: &Contract, out: &mut Lines) {
    match seen.statuses.as_slice() {
        [status] => out.key("status", &status.to_string()),
        several => {
            let words: Vec<String> = several.iter().map(u16::to_string).collect();
            out.key("status", &format!("[{}]", words.join(", ")));
        }
    }
    if !seen.headers.is_empty() {
        out.key("headers", &inline(&seen.headers));
    }
    if seen.content_type_changes {
        out.comment("The content type changed from answer to answer.");
        out.key("agree_headers", "[]");
    }
    match &seen.body {
        Body::Empty => {}
        Body::Same { text: Some(text) } => out.key("body", &quoted(text)),
        Body::Same { text: None } => {
            out.comment("The body was the same in every answer. All contenders must give the same bytes.");
        }
        Body::Different => {
            out.comment(
                "The body changed from answer to answer and is not JSON, so contenders need not agree in it.",
            );
            out.key("agree", "false");
        }
        Body::Json { values, changing } => {
            if !changing.is_empty() {
                out.comment(
                    "These values changed. They may differ between contenders, but must match a pattern.",
                );
                out.line("volatile = [");
                for one in changing {
                    let when =
                        if one.own { "changed with each start" } else { "changed from answer to answer" };
                    out.line(&format!("  # {when}, for example: {}", in_comment(&one.example)));
                    let own = if one.own { ", own = true" } else { "" };
                    let (path, pattern) = (quoted(&one.path), quoted(&one.pattern));
                    out.line(&format!("  {{ path = {path}, pattern = {pattern}{own} }},"));
                }
                out.line("]");
            }
            // This table comes last, because TOML would count the keys after it as part of it. Each value has its own line.
            if !values.is_empty() {
                out.comment(
                    "These values were always the same. Remove those that depend on data that may change.",
                );
                out.line("[probe.json]");
                for (path, one) in values {
                    out.key(&quoted(path), &value(one));
                }
            }
        }
    }
}

/// An inline table.
fn inline(pairs: &[(String, String)]) -> String {
    let mut seen = BTreeSet::new();
    let unique = pairs.iter().filter(|(name, _)| seen.insert(name.to_ascii_lowercase()));
    let each: Vec<String> =
        unique.map(|(name, text)| format!("{} = {}", quoted(name), quoted(text))).collect();
    format!("{{ {} }}", each.join(", "))
}

/// The text of the file.
#[derive(Debug, Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn key(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {value}"));
    }

    /// `text` must have no control characters.
    fn comment(&mut self, text: &str) {
        self.line(&format!("# {text}"));
    }

    fn empty(&mut self) {
        self.line("");
    }
}

/// The greatest round number that is not above `rate`. None for a rate that no service has.
fn round_down(rate: f64) -> Option<f64> {
    if !(0.0..HIGHEST).contains(&rate) || rate == 0.0 {
        return None;
    }
    let power = rate.log10().floor() as i32;
    // Dividing by a whole power keeps small rates exact: 0.5 is 5 / 10, and not 5 * 0.1.
    let scaled =
        |digit: f64| if power < 0 { digit / 10_f64.powi(-power) } else { digit * 10_f64.powi(power) };
    ROUND.iter().rev().map(|digit| scaled(*digit)).find(|round| *round <= rate)
}

/// A rate with two significant digits.
fn significant(rate: f64) -> f64 {
    if rate < 10.0 {
        return rate.round();
    }
    let unit = 10_f64.powi(rate.log10().floor() as i32 - 1);
    (rate / unit).round() * unit
}

/// A name that a study may have: letters, digits and a few other characters of `wanted`, else `otherwise`.
fn usable_name(wanted: &str, otherwise: &str) -> String {
    let plain =
        |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '@' | '+') { c } else { '-' };
    let name: String = wanted.chars().map(plain).take(50).collect();
    let name = name.trim_matches([' ', '-', '.']);
    if name.is_empty() { otherwise.into() } else { name.into() }
}

/// Short, different names for these requests: `/api/items?limit=2` becomes `api/items`.
fn probe_names<'r>(requests: impl Iterator<Item = &'r DraftRequest>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for request in requests {
        let path = request.path.split('?').next().unwrap_or_default().trim_matches('/');
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/') { c } else { '-' };
        let name: String = path.chars().map(plain).take(40).collect();
        let name = if name.is_empty() { "root".to_owned() } else { name };
        let name = if request.method == "GET" {
            name
        } else {
            format!("{} {name}", usable_name(&request.method, "request"))
        };
        let numbered = (2..).map(|number| format!("{name} {number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|one| !names.contains(one));
        names.extend(free);
    }
    names
}

#[cfg(test)]
mod tests;
