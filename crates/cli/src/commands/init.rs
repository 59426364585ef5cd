//! `deadheat init`: starts a service, asks it, and writes a study of what it answers.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use deadheat_host::LocalHost;
use deadheat_host::cgroup::Hierarchy;
use deadheat_host::clock::SystemClock;
use deadheat_host::open_files::raise_open_files;
use deadheat_host::process::StartError;
use deadheat_host::process::run::RunId;
use deadheat_load::Answer;
use deadheat_record::{StatusRule, placeholders};
use deadheat_report::plain;
use deadheat_runner::{Event, LocalGenerator, Observed, Observer, Place, ProbeFiles, RaceError, observe};
use deadheat_study::choices::UsageError;
use deadheat_study::draft::{
    Body, Contract, Draft, DraftContender, DraftProbe, DraftRequest, LeftOut, SeenLoad, is_on_node,
    requests_of,
};
use deadheat_study::file::{self as study, shown};
use deadheat_study::plan::{Places, Purpose, Setting, Topology, fresh_seed, resolve};
use deadheat_study::traffic::is_credential;

use super::Failure;
use super::race::tell_leftovers;
use super::write_atomically;
use crate::console::{Console, lines_plain};
use crate::flags::{Asked, InitFlags};
use crate::folder::Folder;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::live::waiting;

/// A message shows this many characters of a body.
const SHOWN_BODY: usize = 80;
/// The console lists at most this many places that change, for each request.
const SHOWN_PLACES: usize = 4;

/// Writes a study. The exit status is 130 if the user interrupts; nothing is written then.
pub(crate) fn init(flags: &InitFlags, console: &mut Console) -> Result<u8, Failure> {
    let asked = flags.asked()?;
    let file = target(flags.output.as_deref().unwrap_or(Path::new(".")), flags.force)?;
    let sources = Sources::of(flags, &asked)?;
    let drafted = draft_of(flags, &asked, &sources, &file)?;
    raise_open_files()?;
    let interrupt = Interrupt::listen()?;
    let Some(observed) = observed(&drafted, flags, &file, &interrupt, console)? else {
        console.note("interrupted; nothing is written");
        return Ok(INTERRUPTED);
    };
    let draft = judged(drafted, &sources, &observed)?;
    let text = draft.text();
    // The reader is the judge of what a study is.
    study::parse(&text, &file.display().to_string(), folder_of(&file))?;
    write(&file, &text, flags.force)?;
    console.result(&summary(&draft, &observed, &file));
    notes(&draft, console);
    Ok(0)
}

/// The path of the study, which does not exist yet or may be replaced.
fn target(output: &Path, force: bool) -> Result<PathBuf, UsageError> {
    let file = if output.is_dir() { output.join(study::FILE_NAME) } else { output.to_owned() };
    let folder = folder_of(&file);
    if !folder.is_dir() {
        let problem = format!("there is no folder {}", folder.display());
        return Err(UsageError::new(problem, "create it, or choose another place with --output FILE"));
    }
    if file.extension().is_none_or(|end| end != "toml") {
        let problem = format!("--output {}: the name of a study ends with .toml", file.display());
        return Err(UsageError::new(problem, "for example: --output study.toml"));
    }
    if !force && fs::symlink_metadata(&file).is_ok() {
        let problem = format!("{} exists already", file.display());
        return Err(UsageError::new(
            problem,
            "replace it with --force, or choose another place with --output FILE",
        ));
    }
    Ok(file)
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where the requests come from.
struct Sources {
    /// All requests, those of `--url` first.
    requests: Vec<DraftRequest>,
    /// The number of requests of `--url`.
    typed: usize,
    /// What the files contain and a study cannot request.
    left_out: Vec<LeftOut>,
}

impl Sources {
    /// The requests of `--url`, then those of each file.
    ///
    /// # Errors
    /// A file cannot be read, or nothing in it can be requested.
    fn of(flags: &InitFlags, asked: &Asked) -> Result<Self, UsageError> {
        let typed = asked.requests.len();
        let mut sources = Self { requests: asked.requests.clone(), typed, left_out: Vec::new() };
        for path in &flags.from {
            let wrong = |problem: String, remedy: String| {
                UsageError::new(format!("--from {}: {problem}", path.display()), remedy)
            };
            let content = fs::read(path).map_err(|error| {
                wrong(format!("cannot read it: {error}"), "name a file that can be read".into())
            })?;
            let found =
                requests_of(path, &content).map_err(|error| wrong(error.to_string(), error.remedy()))?;
            sources.left_out.extend(found.left_out);
            for request in found.requests {
                sources.add(request, flags);
            }
        }
        Ok(sources)
    }

    /// Adds a request with the headers of the command line, unless it is there already.
    fn add(&mut self, mut request: DraftRequest, flags: &InitFlags) {
        for header in &flags.headers {
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&header.name));
            request.headers.push((header.name.clone(), header.value.clone()));
        }
        if !self.requests.iter().any(|other| (&other.method, &other.path) == (&request.method, &request.path))
        {
            self.requests.push(request);
        }
    }
}

/// The draft before the service was asked.
fn draft_of(flags: &InitFlags, asked: &Asked, sources: &Sources, file: &Path) -> Result<Draft, Failure> {
    let here = std::env::current_dir()?;
    let folder = fs::canonicalize(folder_of(file))?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let probe = |request: &DraftRequest| DraftProbe { request: request.clone(), seen: None };
    let (build, env) = kept_of(file, &flags.command)?;
    Ok(Draft {
        name: name.unwrap_or_default(),
        contender: DraftContender {
            command: flags.command.clone(),
            node_env_is_set: std::env::var_os("NODE_ENV").is_some(),
            build,
            usual_build: usual_build(&here, &flags.command),
            env,
            folder: from_there(&folder, &fs::canonicalize(here)?),
            port: asked.port,
        },
        tls: asked.tls,
        probes: sources.requests.iter().map(probe).collect(),
        load: None,
        left_out: sources.left_out.clone(),
    })
}

/// Build and environment in the study that the draft replaces: those of the contender with the same command, or of the only contender. Whatever else
/// the user wrote into that file is replaced, as `--force` says.
///
/// # Errors
/// deadheat cannot read the file that is there as a study, and what the user wrote there would be lost.
fn kept_of(file: &Path, command: &str) -> Result<(Option<String>, BTreeMap<String, String>), Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => return Ok(Default::default()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Default::default()),
        other => other.ok(),
    };
    let study = text.and_then(|text| study::parse(&text, &file.display().to_string(), folder_of(file)).ok());
    let Some(study) = study else {
        let name = shown(&file.to_string_lossy());
        let problem = format!("deadheat cannot read {name} as a study, so --force does not replace it");
        let remedy = "correct it, so that its build and env are kept (deadheat check shows the mistake), or choose another place with --output FILE";
        return Err(UsageError::new(problem, remedy).into());
    };
    let same = study.contenders.iter().position(|one| one.command.get_ref() == command);
    let old =
        same.or((study.contenders.len() == 1).then_some(0)).and_then(|place| study.contenders.get(place));
    let Some(old) = old else { return Ok(Default::default()) };
    let each = old.env.iter().map(|(name, value)| (name.clone(), value.get_ref().clone()));
    // Other placeholders name what the draft does not have, such as a service.
    let env = each.filter(|(_, value)| placeholders(value).all(|(_, word)| word == "port")).collect();
    Ok((old.build.as_ref().map(|build| build.get_ref().clone()), env))
}

/// The command that usually builds a service that this command starts in this folder. None where that is not clear.
fn usual_build(folder: &Path, command: &str) -> Option<String> {
    const OF_PACKAGES: [(&str, &str); 4] = [
        ("package-lock.json", "npm ci"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn install --immutable"),
        ("bun.lock", "bun install --frozen-lockfile"),
    ];
    let is_there = |file: &str| folder.join(file).exists();
    let program = command.split_whitespace().find(|word| *word != "exec" && !word.contains('='))?;
    match program.strip_prefix("./").unwrap_or(program) {
        program if program == "bun" || is_on_node(command) => {
            OF_PACKAGES.into_iter().find(|(file, _)| is_there(file)).map(|(_, build)| build.to_owned())
        }
        path if path.starts_with("target/release/") => Some("cargo build --release --locked".into()),
        path if path.starts_with("target/debug/") => Some("cargo build --locked".into()),
        path if path != program && !path.contains('.') && is_there("go.mod") && is_there("main.go") => {
            Some(format!("go build -o {path} ."))
        }
        _ => None,
    }
}

/// The path from one folder to another: relative if one contains the other, else absolute. None if they are the same.
fn from_there(folder: &Path, other: &Path) -> Option<String> {
    if folder == other {
        return None;
    }
    let up = folder.strip_prefix(other).map(|inner| inner.components().map(|_| "..").collect::<PathBuf>());
    let down = other.strip_prefix(folder).map(Path::to_path_buf);
    let path = up.or(down).unwrap_or_else(|_| other.to_path_buf());
    Some(path.to_string_lossy().into_owned())
}

/// Starts the service and asks it. None if the user interrupts.
fn observed(
    draft: &Draft,
    flags: &InitFlags,
    file: &Path,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Observed>, Failure> {
    let folder = fs::canonicalize(folder_of(file))?;
    let study = study::parse(&draft.text(), &file.display().to_string(), &folder)?;
    let topology = Topology::of_machine();
    // The rate is that of a race, which divides the cores too.
    let (pinning, _) = topology.divide(None, None)?;
    let setting = Setting {
        load_from: None,
        topology,
        places: Places::of_process(),
        seed: fresh_seed(),
        cpu_latency_us: None,
        in_ci: false,
    };
    let mut plan = resolve(&study, &[], &flags.choices(), Purpose::Check, &setting)?.plan;
    let mut temporary = Folder::make("init")?;
    plan.work = temporary.path().join("work");
    plan.pinning = pinning;
    let hierarchy = Hierarchy::detect();
    tell_leftovers(&hierarchy, console);
    let place = Place {
        host: &LocalHost { run: &RunId::current(), hierarchy: &hierarchy },
        generator: &LocalGenerator,
        clock: &SystemClock::start(),
        files: &ProbeFiles::default(),
    };
    let stopped = || interrupt.asked();
    let done = observe(&plan, temporary.path().join("logs"), place, &stopped, &mut Notes(console));
    match done {
        Ok(observed) if observed.interrupted => Ok(None),
        Ok(observed) => Ok(Some(observed)),
        Err(error) => {
            // The message names a log in this folder.
            temporary.keep();
            Err(explained(error, draft))
        }
    }
}

/// Adds what to do if the service gave no answer.
fn explained(error: RaceError, draft: &Draft) -> Failure {
    let RaceError::Start(start) = &error else { return error.into() };
    let remedy = match (start, draft.contender.port) {
        (StartError::NotReady { .. }, None) => {
            "let it listen on the port in PORT, or write {port} into the command; if it always listens on the same port, \
             write that port in --url, such as 'http://127.0.0.1:3000/'; give a slow start more time with --ready-timeout"
        }
        (StartError::NotReady { .. }, Some(_)) => {
            "check the port in --url; give a slow start more time with --ready-timeout"
        }
        (StartError::NotRight { .. }, _) => "find out why it answers like this, or choose another --url",
        (StartError::Exited { .. }, _) => {
            "the command must start the service, and stay in the foreground until deadheat ends it"
        }
        _ => return error.into(),
    };
    UsageError::new(start.to_string(), remedy).into()
}

/// Shows progress and what the service left behind.
struct Notes<'a>(&'a Console);

impl Observer for Notes<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Doing(what) => self.0.note(&plain(what)),
            Event::Waiting { contender, reason } => self.0.note(&waiting(contender, reason)),
            Event::Finding(finding) => {
                self.0.note(&lines_plain(&format!("note: {}\n  {}", finding.message, finding.remedy)));
            }
            _ => {}
        }
    }
}

/// The draft with what was seen, and without requests that a race cannot use.
///
/// # Errors
/// No request is left.
fn judged(draft: Draft, sources: &Sources, observed: &Observed) -> Result<Draft, UsageError> {
    let mut probes = Vec::new();
    let mut left_out = draft.left_out;
    for (number, (probe, seen)) in draft.probes.into_iter().zip(&observed.probes).enumerate() {
        let typed = number < sources.typed;
        let usable = match seen {
            Ok(starts) => unusable(starts, typed).map_or_else(|| Ok(Contract::of(starts)), Err),
            Err(reason) => Err(reason.clone()),
        };
        match usable {
            Ok(seen) => probes.push(DraftProbe { seen, ..probe }),
            Err(why) => left_out.push(LeftOut { what: probe.request.title(), why }),
        }
    }
    if probes.is_empty() {
        let each: Vec<String> =
            left_out.iter().map(|one| format!("  {}: {}", shown(&one.what), one.why)).collect();
        let problem = format!("no request can be used, so no study is written:\n{}", each.join("\n"));
        return Err(UsageError::new(
            problem,
            "request the service by hand, and choose the requests with --url",
        ));
    }
    let load = match observed.load {
        Some(Ok(rate_per_s)) => Some(SeenLoad { rate_per_s, connections: study::CONNECTIONS }),
        _ => None,
    };
    Ok(Draft { probes, left_out, load, ..draft })
}

/// Why a race cannot use a request with these answers. `typed` says that the user named the request.
fn unusable(starts: &[Vec<Answer>], typed: bool) -> Option<String> {
    let with = |wrong: &dyn Fn(u16) -> bool| starts.iter().flatten().find(|answer| wrong(answer.status));
    if let Some(answer) = with(&|status| status >= 500) {
        return Some(format!("it answered {}{}", answer.status, excerpt(&answer.body)));
    }
    if with(&|status| status == 429).is_some() {
        return Some("it answered 429: switch off what limits the rate of requests".into());
    }
    if typed {
        return None;
    }
    let answer = with(&|status| status >= 400)?;
    let remedy = match answer.status {
        401 | 403 => "; give credentials with -H 'authorization: ...'",
        404 => "; write values that exist into the file",
        _ => "",
    };
    Some(format!("it answered {}{}{remedy}", answer.status, excerpt(&answer.body)))
}

/// The beginning of a body that is text, in parentheses.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = text.chars().take(SHOWN_BODY).collect();
    match (text.is_empty(), short.len() < text.len()) {
        (true, _) => String::new(),
        (false, true) => format!(" ({short}…)"),
        (false, false) => format!(" ({short})"),
    }
}

/// Writes the file. Without `force`, it replaces no file, even one that another program made while the service was asked.
fn write(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let written = if force {
        write_atomically(file, text)
    } else {
        let created = OpenOptions::new().write(true).create_new(true).open(file);
        created.and_then(|mut open| {
            let written = open.write_all(text.as_bytes());
            if written.is_err() {
                let _ = fs::remove_file(file);
            }
            written
        })
    };
    written.map_err(|source| Failure::File { path: file.into(), option: "--output", source })
}

/// What was found and written.
fn summary(draft: &Draft, observed: &Observed, file: &Path) -> String {
    let name = draft.contender_name();
    // A first answer with another status is waited for longer, so the time says little then.
    let is_ready = |seen: &Contract| seen.statuses.iter().all(|status| StatusRule::SUCCESS.contains(status));
    let first = draft.probes.first().and_then(|probe| probe.seen.as_ref());
    let mut lines = vec![match first.is_some_and(is_ready) {
        true => format!("{name} answers {:.1} s after its start:", observed.ready.as_secs_f64()),
        false => format!("{name} answers:"),
    }];
    for probe in &draft.probes {
        let Some(seen) = &probe.seen else { continue };
        lines.push(format!("  {}: {}{}", shown(&probe.request.title()), seen.summary(), changes(seen)));
    }
    if !draft.left_out.is_empty() {
        lines.push("left out:".into());
        lines.extend(draft.left_out.iter().map(|one| format!("  {}: {}", shown(&one.what), one.why)));
    }
    match (&observed.load, draft.load, draft.open_rate()) {
        (_, Some(load), Some((rate, _))) => lines.push(format!(
            "about {:.0} answers per second with {} connections; the open scenario has a rate of {rate}",
            load.rate_per_s, load.connections
        )),
        (_, Some(load), None) => lines.push(format!(
            "about {:.1} answers per second with {} connections, too slow for an open scenario",
            load.rate_per_s, load.connections
        )),
        (Some(Err(reason)), None, _) => {
            lines.push(format!("no open scenario, because the load failed: {reason}"))
        }
        _ => {}
    }
    let study = match (folder_of(file), file.file_name()) {
        (folder, Some(name)) if name == study::FILE_NAME => folder.display().to_string(),
        _ => file.display().to_string(),
    };
    lines.push(format!("wrote {}", file.display()));
    lines.push(format!("next: deadheat check {study}"));
    lines.push(match draft.contender.port {
        None => {
            let build = match (&draft.contender.build, &draft.contender.usual_build) {
                (None, Some(_)) => " (if it has to be built or installed, remove the `# ` before `build` in the file)",
                _ => "",
            };
            format!(
                "to race your changes against main, if it listens on PORT too{build}: deadheat race --git main {study}"
            )
        }
        Some(port) => format!(
            "to race your changes, let the service read its port from PORT or {{port}}: now it always listens on {port}"
        ),
    });
    lines.push(format!(
        "to race another implementation: add a [[contender]] to the file, and: deadheat race {study}"
    ));
    lines_plain(&lines.join("\n")) + "\n"
}

/// What changes between the answers, in a few words.
fn changes(seen: &Contract) -> String {
    let changing = match &seen.body {
        Body::Json { changing, .. } if !changing.is_empty() => changing,
        Body::Different => return "; the body changes".into(),
        _ => return String::new(),
    };
    let mut places: Vec<&str> = changing.iter().take(SHOWN_PLACES).map(|one| one.path.as_str()).collect();
    let more = changing.len() - places.len();
    let more = format!("{more} more");
    if changing.len() > places.len() {
        places.push(&more);
    }
    format!("; changes: {}", places.join(", "))
}

/// What a user may not expect.
fn notes(draft: &Draft, console: &Console) {
    let note = |text: String| console.note(&lines_plain(&format!("note: {text}")));
    if let Some(build) = &draft.contender.build {
        note(format!("the build is that of the replaced file: {}", shown(build)));
    }
    if !draft.contender.env.is_empty() {
        let names: Vec<String> = draft.contender.env.keys().map(|name| shown(name)).collect();
        note(format!("these variables of env are those of the replaced file: {}", names.join(", ")));
    }
    for probe in &draft.probes {
        let (Some(seen), title) = (&probe.seen, shown(&probe.request.title())) else { continue };
        if seen.statuses.iter().any(|status| (400..500).contains(status)) {
            note(format!(
                "{title} answers {}; is the URL right? The study expects this status",
                seen.summary()
            ));
        }
        if let Some((_, to)) = seen.headers.iter().find(|(name, _)| name == "location") {
            note(format!(
                "{title} leads to {}; deadheat follows no redirects, so name the target with --url to race that",
                shown(to)
            ));
        }
        if seen.body == Body::Different {
            note(format!("the body of {title} changes and is not JSON, so contenders need not agree in it"));
        }
        for (name, _) in &probe.request.headers {
            if is_credential(name) {
                note(format!(
                    "the file contains the value of the header `{}`; do not publish it",
                    shown(name)
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_folder_of_the_command_stays_short() {
        let of = |folder: &str, other: &str| from_there(Path::new(folder), Path::new(other));
        assert_eq!(of("/a/b", "/a/b"), None);
        assert_eq!(of("/a/b/c", "/a"), Some("../..".into()));
        assert_eq!(of("/a", "/a/b"), Some("b".into()));
        assert_eq!(of("/a", "/b"), Some("/b".into()));
    }

    #[test]
    fn the_usual_build_follows_from_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let build = |command: &str| usual_build(folder.path(), command);
        assert_eq!((build("./server"), build("npm start"), build("")), (None, None, None));
        for file in ["go.mod", "main.go", "package-lock.json"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        for (command, expected) in [
            ("LEVEL=1 exec ./bin/server -v", Some("go build -o bin/server .")),
            ("go run ./cmd/server", None),
            ("./run.sh", None),
            ("npm start", Some("npm ci")),
            ("exec node server.mjs", Some("npm ci")),
            ("./target/release/api", Some("cargo build --release --locked")),
        ] {
            assert_eq!(build(command).as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn an_existing_file_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let file = target(folder.path(), false).unwrap();
        assert_eq!(file, folder.path().join("study.toml"));
        write(&file, "a", false).unwrap();
        assert!(target(folder.path(), false).unwrap_err().problem.ends_with("exists already"));
        assert!(write(&file, "b", false).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "a");
        write(&target(folder.path(), true).unwrap(), "c", true).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "c");
        assert!(target(&folder.path().join("no/study.toml"), false).is_err());
        assert!(target(&folder.path().join("study.txt"), false).is_err());
    }

    #[test]
    fn answers_that_no_race_can_use_are_told() {
        let answer =
            |status, body: &str| Answer { status, headers: vec![], body: body.into(), keep_alive: true };
        let why = |status, typed| unusable(&[vec![answer(200, ""), answer(status, "a\n  b")]], typed);
        assert_eq!(why(500, true).unwrap(), "it answered 500 (a b)");
        assert!(why(429, true).unwrap().contains("limits the rate"));
        assert_eq!((why(404, true), why(204, false)), (None, None));
        assert!(why(404, false).unwrap().contains("values that exist"));
        assert!(why(401, false).unwrap().contains("-H"));
        assert_eq!(excerpt("x".repeat(100).as_bytes()).chars().count(), SHOWN_BODY + 4);
    }
}
