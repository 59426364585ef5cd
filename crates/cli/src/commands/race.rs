//! `deadheat race`: a study, commands, or a record to resume.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use deadheat_analysis::compare::{FailIf, other_machine};
use deadheat_analysis::experiment::sentence;
use deadheat_analysis::{AlphaLeft, Report, alpha_left};
use deadheat_host::cgroup::Hierarchy;
use deadheat_host::clock::SystemClock;
use deadheat_host::clock::unix_ms;
use deadheat_host::command::ShellCommand;
use deadheat_host::facts::machine;
use deadheat_host::link::{Entered, LinkError, Networks};
use deadheat_host::monitor::awake::usual_cpu_latency_us;
use deadheat_host::open_files::raise_open_files;
use deadheat_host::process::run::{RunId, leftovers};
use deadheat_host::{Host as _, LocalHost};
use deadheat_record::{
    Contender, Finding, Journal, Line, LoadFrom, Plan, Record, Severity, Source, VerdictWord,
};
use deadheat_report::terminal;
use deadheat_runner::{Finish, Linked, LoadGenerator, LocalGenerator, Place, ProbeFiles, Race, RaceError};
use jiff::Zoned;

use super::Failure;
use super::compare::{askable, reachable, status_of, told};
use super::output::{apart, keep_for_data, write, write_json};
use crate::console::{Console, lines_plain};
use crate::elsewhere::{Elsewhere, load_from, reach};
use crate::flags::Output;
use crate::flags::{Controlled, Input, RaceFlags};
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::live::{Live, Shown, logs_beside};
use crate::server_host;
use deadheat_study::choices::{Choices, UsageError};
use deadheat_study::file::{self as study, Study};
use deadheat_study::git::{Checkouts, remove_leftovers, revisions};
use deadheat_study::plan::{self, AdHoc, Places, Purpose, Resolved, Setting, Topology, record_path, resolve};
use deadheat_study::prepare::{self, BUILD_LIMIT, Changed, PrepareError, Prepared};
use deadheat_study::{rows, traffic};

/// Races and shows the result. `arguments` is the command line of `flags`.
pub(crate) fn race(flags: &RaceFlags, arguments: &[OsString], console: &mut Console) -> Result<u8, Failure> {
    let outputs = [("--json", flags.json.as_ref()), ("--html", flags.html.as_ref())];
    apart(flags.record.as_deref().into_iter().chain(flags.resume.as_deref()), &outputs)?;
    match server_host::of_race(flags)? {
        Some(host) => server_host::race(flags, &host, arguments, console),
        None => Ok(run(flags, console)?.0),
    }
}

/// Races and shows the result. Returns the exit status, the record and its path.
pub(super) fn run(flags: &RaceFlags, console: &mut Console) -> Result<(u8, Record, PathBuf), Failure> {
    keep_for_data([("--json", flags.json.as_ref()), ("--html", flags.html.as_ref())], console)?;
    raise_open_files()?;
    let (run, hierarchy) = (RunId::current(), Hierarchy::detect());
    let host = LocalHost { run: &run, hierarchy: &hierarchy };
    let mut leavings = Leavings::default();
    let stage = match flags.input()? {
        Input::Study(path) => {
            let study = study::load(&path)?;
            leavings.note(flags, &study);
            begun(study, flags, console, &host)?
        }
        Input::AdHoc(ad_hoc) => {
            let study = plan::study_of(&ad_hoc, &std::env::current_dir()?)?;
            leavings.note(flags, &study);
            begun(study, flags, console, &host)?
        }
        Input::Resume(path) => {
            if let Some(controlled) = &flags.controlled {
                leavings.folders = prepared_again(&path, controlled, console, &host)?;
            }
            resumed(&path, &flags.fail_if, console, &host, &mut None)?
        }
    };
    // A resumed race uses the work folder of the process that began it.
    leavings.works.extend(stage.record.plan.is_ad_hoc().then(|| stage.record.plan.work.clone()));
    let json = match &flags.json {
        Some(Output::File(path)) => writable(path, "--json")?,
        _ => None,
    };
    if let Some(Output::File(path)) = &flags.html {
        writable(path, "--html")?;
    }
    let path = stage.journal.path().to_owned();
    let named = flags.controlled.as_ref().map_or(&path, |controlled| &controlled.record);
    console.note(&format!("record: {}", lines_plain(&named.display().to_string())));
    let mut live = Live::new(&stage.record, console.progress, console.live, json.clone());
    let names = stage.record.plan.contenders.iter().map(|one| one.name.clone()).collect();
    let stopped = || stage.interrupt.asked();
    let telling = stage.elsewhere.as_ref().and_then(|elsewhere| elsewhere.tell_trouble(live.speaker()));
    let mut shown = Shown { live: &mut live, names };
    let linked = stage.networks.as_ref().map(|networks| Linked::new(networks, &stage.record.plan, host));
    let _among_servers = stage.networks.as_ref().map(enter).transpose()?;
    let generator = generator(stage.elsewhere.as_ref(), linked.as_ref());
    let mut race = Race {
        record: stage.record,
        journal: stage.journal,
        logs: logs_beside(&path),
        stopped: &stopped,
        observer: &mut shown,
        place: Place { host: &host, generator, clock: &SystemClock::start(), files: &stage.files },
        pause_after: flags.pause_after,
    };
    let finish = race.go();
    let record = race.record;
    drop(telling);
    let trouble = live.finish();
    let finish = finish.map_err(|error| lost_or(stage.elsewhere.as_ref(), error, named))?;
    if flags.controlled.is_some() {
        // The controlling side has the record, and shows the result.
        return Ok((server_host::status_of(&finish), record, path));
    }
    let status = concluded(flags, &record, &finish, trouble, &path, console)?;
    Ok((status, record, path))
}

/// Shows the result of a race whose record is at this path, and writes what was asked for. Returns the exit status. `trouble` is why the `--json` file
/// could not be updated during the race.
pub(crate) fn concluded(
    flags: &RaceFlags,
    record: &Record,
    finish: &Finish,
    trouble: Option<String>,
    path: &Path,
    console: &Console,
) -> Result<u8, Failure> {
    let mut report = Report::of(record)?;
    console.result(&terminal::render(&report, &console.output));
    report.conditions = told(&report, &flags.fail_if, console);
    let asked = status_of(&report.conditions);
    written(flags, &report, console)?;
    if let Some(trouble) = trouble {
        console.note(&lines_plain(&format!(
            "note: deadheat could not update the JSON file during the race: {trouble}"
        )));
    }
    let before_the_end = match finish {
        Finish::Interrupted => Some("interrupted"),
        Finish::Paused => Some("paused before the next look"),
        Finish::Done | Finish::TooFew => None,
    };
    if let Some(word) = before_the_end {
        let path = lines_plain(&path.display().to_string());
        console.note(&format!("{word}; continue with: deadheat race --resume {path}"));
    }
    Ok(status(finish, &report).max(asked))
}

/// What a race makes outside the study's folder and does not keep. Dropping it removes that.
#[derive(Default)]
struct Leavings {
    /// Of a race that was sent to this machine: all that is outside the folder of what was sent.
    folders: Vec<PathBuf>,
    /// Work folders of commands without a study. They stay if there are logs in them.
    works: Vec<PathBuf>,
}

impl Leavings {
    /// Notes the folders of this study.
    fn note(&mut self, flags: &RaceFlags, study: &Study) {
        let places = Places::of_process();
        let work = places.work(study);
        if flags.controlled.is_some() {
            let dataset = places.dataset(study, &work);
            self.folders.extend(dataset.and_then(|file| file.parent().map(Path::to_path_buf)));
            self.folders.push(work);
        } else if study.source == Source::AdHoc {
            self.works.push(work);
        }
    }
}

impl Drop for Leavings {
    fn drop(&mut self) {
        self.folders.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
        // Removes only folders without content.
        let empty = self.works.iter().flat_map(|work| [work.join("logs"), work.clone()]);
        empty.for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

/// Makes the dataset and the builds of a record once more: with the folder that was sent, they went from this machine when the race ended. Returns the
/// folders that the race makes.
fn prepared_again(
    path: &Path,
    controlled: &Controlled,
    console: &Console,
    host: &LocalHost<'_>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut plan = deadheat_record::read(path)?.plan;
    let dataset = plan.dataset.as_ref().and_then(|file| file.parent().map(Path::to_path_buf));
    let folders = dataset.into_iter().chain([plan.work.clone()]).collect();
    let study = match &controlled.server_host.study {
        Some(study) => study::load(&Path::new(".").join(study))?,
        None => {
            let raced: Vec<&Contender> = plan.contenders.iter().filter(|one| !one.control).collect();
            let ad_hoc = AdHoc {
                commands: raced.iter().map(|one| one.command.clone()).collect(),
                names: raced.iter().map(|one| one.name.clone()).collect(),
                build: controlled.server_host.build.clone(),
                path: "/".into(),
                method: "GET".into(),
                ..AdHoc::default()
            };
            plan::study_of(&ad_hoc, &plan.folder)?
        }
    };
    let interrupt = Interrupt::listen()?;
    let mut tell = |line: &str| console.note(&lines_plain(line));
    let run = |name: &str, command: &ShellCommand, limit| {
        host.run(name, command, &[], limit, &|| interrupt.asked())
    };
    prepare::prepare(&study, &mut plan, &run, BUILD_LIMIT, &mut tell)?;
    Ok(folders)
}

/// The failure of a race. If a load host was lost, the race can be continued.
fn lost_or(elsewhere: Option<&Elsewhere>, error: RaceError, path: &Path) -> Failure {
    match elsewhere {
        Some(elsewhere) if elsewhere.has_lost() => {
            let again = format!(
                "all finished epochs are in the record; continue with: deadheat race --resume {}",
                path.display()
            );
            Failure::HostLost(UsageError::new(error.to_string(), again))
        }
        _ => error.into(),
    }
}

/// Writes the requested JSON document and HTML page.
fn written(flags: &RaceFlags, report: &Report, console: &Console) -> Result<(), Failure> {
    write_json(flags.json.as_ref(), report, console)?;
    if let Some(to) = &flags.html {
        write(to, "--html", &deadheat_report::html(report, None)?, console)?;
    }
    Ok(())
}

/// The exit status before conditions: 0 measured; 1 measured, and a contender was excluded; 2 nothing could be raced; 3 invalid; 130 interrupted.
fn status(finish: &Finish, report: &Report) -> u8 {
    let record = &report.record;
    match finish {
        Finish::Interrupted => INTERRUPTED,
        Finish::TooFew if !record.differences.is_empty() || !record.epochs.is_empty() => 1,
        Finish::TooFew => 2,
        Finish::Done | Finish::Paused if is_invalid(report) => 3,
        Finish::Done | Finish::Paused => u8::from(!record.out.is_empty()),
    }
}

/// Whether a race has an invalid comparison, or a scenario with no contenders left to compare.
pub(super) fn is_invalid(report: &Report) -> bool {
    report.scenarios.iter().any(|result| {
        let unfit = |one: &Finding| one.severity == Severity::Invalid;
        match &result.comparisons[..] {
            [] => result.findings.iter().any(unfit),
            pairs => pairs.iter().any(|pair| pair.verdict == VerdictWord::Invalid),
        }
    })
}

/// The starting point of a race.
struct Stage {
    record: Record,
    journal: Journal,
    /// What the files of the plan's probes contain.
    files: ProbeFiles,
    /// Listens since before anything was started: Ctrl-C means an orderly end.
    interrupt: Interrupt,
    /// The machines from which the load comes, if they are others than this one.
    elsewhere: Option<Elsewhere>,
    /// The networks of a race with links.
    networks: Option<Networks>,
    /// The revisions of a race of revisions, until its end.
    _checkouts: Option<Checkouts>,
}

/// Makes the plan and does everything that is necessary once before contenders start.
pub(super) fn prepared(
    study: &Study,
    choices: &Choices,
    purpose: Purpose,
    load_from: Option<LoadFrom>,
    console: &Console,
    host: &LocalHost<'_>,
    interrupt: &Interrupt,
) -> Result<(Resolved, Prepared), Failure> {
    let skipped = prepare::missing(study, std::env::var_os("PATH").as_deref());
    let setting = Setting {
        topology: Topology::of_machine(),
        places: Places::of_process(),
        seed: plan::fresh_seed(),
        cpu_latency_us: usual_cpu_latency_us(),
        in_ci: std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false")),
        load_from,
    };
    let mut resolved = resolve(study, &skipped, choices, purpose, &setting)?;
    let mut tell = |line: &str| console.note(&lines_plain(line));
    let run = |name: &str, command: &ShellCommand, limit| {
        host.run(name, command, &[], limit, &|| interrupt.asked())
    };
    let limit = choices.load.build_timeout.unwrap_or(BUILD_LIMIT);
    let prepared = prepare::prepare(study, &mut resolved.plan, &run, limit, &mut tell)?;
    Ok((resolved, prepared))
}

/// Begins a race, or continues the record that `--continue` names.
fn begun(study: Study, flags: &RaceFlags, console: &Console, host: &LocalHost<'_>) -> Result<Stage, Failure> {
    let interrupt = Interrupt::listen()?;
    let mut tell = |line: &str| console.note(&lines_plain(line));
    let mut choices = flags.choices.clone();
    let (study, mut checkouts) = match &flags.git {
        None => (study, None),
        Some(range) => {
            let only = std::mem::take(&mut choices.selection.only);
            let revisions = revisions(study, range, &only, &Places::of_process(), &mut tell);
            // Ctrl-C also ends a git command that runs.
            let (study, checkouts) = match revisions {
                Err(_) if interrupt.asked() => return Err(PrepareError::Interrupted.into()),
                other => other?,
            };
            (study, Some(checkouts))
        }
    };
    let load_from = load_from(&flags.hosts, console)?;
    let (mut resolved, mut prepared) =
        prepared(&study, &choices, Purpose::Race, load_from, console, host, &interrupt)?;
    if let Some(checkouts) = &checkouts {
        let unbuilt: Vec<&str> = prepared.unbuilt.iter().map(|(name, _)| name.as_str()).collect();
        checkouts.keep_builds(&resolved.plan, &unbuilt, &mut tell);
    }
    if flags.pause_after.is_some() && flags.choices.method.budget.is_none() {
        // The end of a budget spends all of alpha, and an attempt leaves the rest of it to the next one.
        resolved.plan.method.budget_ns = None;
    }
    resolved.plan.server_host = flags.controlled.as_ref().map(|controlled| controlled.server_host.clone());
    askable(&resolved.plan, &flags.fail_if)?;
    reachable(&resolved.plan, &flags.fail_if)?;
    tell_left_out(&resolved, console);
    let mut begins_again = None;
    if let Some(path) = flags.attempt.as_deref().filter(|path| path.exists() && !deadheat_record::blank(path))
    {
        // Nothing is added to the record of a contender that was built before and is not there now.
        if let Some((_, error)) = prepared.unbuilt.pop() {
            return Err(error.into());
        }
        match attempted(path, &resolved.plan, flags, console, host, &mut checkouts)? {
            Attempt::GoesOn(stage) => return Ok(*stage),
            Attempt::BeginsAgain { alpha, why } => {
                resolved.plan.method.alpha = alpha;
                begins_again = Some(why);
            }
        }
    }
    let chosen = flags.attempt.as_ref().or(flags.record.as_ref());
    let path = chosen.cloned().unwrap_or_else(|| record_path(&resolved.plan.study, &Zoned::now()));
    let files = probe_files(&resolved.plan)?;
    let left = tell_leftovers(host.hierarchy, console);
    let elsewhere = reach(resolved.plan.load_from.as_ref(), &interrupt, console)?;
    if let Some(elsewhere) = &elsewhere {
        resolved.findings.extend(plan::lengthen_slices(&mut resolved.plan, elsewhere.order_cost()));
    }
    let networks = networks(&resolved.plan, host)?;
    if let Some(why) = begins_again {
        // Only now: without the new race, the old record stays where the next attempt finds it.
        move_aside(&path, &why, resolved.plan.method.alpha, console)?;
    }
    let journal = create(path, chosen.is_some())?;
    let mut stage = begin(resolved.plan, journal, files, interrupt, host, (elsewhere, networks, checkouts))?;
    let skipped = |finding: &Finding| finding.code == "skipped";
    let unbuilt = prepared.unbuilt.into_iter().map(|(name, error)| {
        console.note(&lines_plain(&format!("failed: {error}")));
        let (what, remedy) = (error.to_string(), "read its last lines above, or its log");
        let what = what.lines().next().unwrap_or_default().to_owned();
        (Finding::warn("build-failed", what, remedy).about(&name), name)
    });
    let (failed, mut out): (Vec<Finding>, Vec<String>) = unbuilt.unzip();
    let plan = &stage.record.plan;
    // The control is the baseline once more.
    out.extend(plan.control().filter(|_| out.contains(&plan.method.baseline)).map(|one| one.name.clone()));
    let findings = resolved.findings.into_iter().filter(|one| !skipped(one));
    let findings = findings.chain(prepared.findings).chain(left).chain(failed);
    let mut lines: Vec<Line> = findings.map(|finding| Line::Finding { scenario: None, finding }).collect();
    if !out.is_empty() {
        lines.push(Line::Parity { differences: Vec::new(), out, scenario: None });
    }
    for line in lines {
        stage.journal.append(&line)?;
        stage.record.apply(line);
    }
    Ok(stage)
}

/// Says which contenders and scenarios are left out, and why.
pub(super) fn tell_left_out(resolved: &Resolved, console: &Console) {
    for (name, why) in &resolved.plan.skipped {
        console.note(&lines_plain(&format!("skipped: {name}: {why}")));
    }
    resolved.findings.iter().filter(|one| one.code == plan::LEFT_OUT).for_each(|finding| {
        console.note(&lines_plain(&format!("note: {}\n  {}", finding.message, finding.remedy)));
    });
}

/// The networks of a plan with links, after each link was tried once. None without links.
pub(super) fn networks(plan: &Plan, host: &LocalHost<'_>) -> Result<Option<Networks>, Failure> {
    if !plan.has_links() {
        return Ok(None);
    }
    let networks = Networks::make().map_err(refused)?;
    networks.try_all(plan, host).map_err(refused)?;
    Ok(Some(networks))
}

/// What sends requests: the load hosts, or this process, over links if there are any.
pub(super) fn generator<'a>(
    elsewhere: Option<&'a Elsewhere>,
    linked: Option<&'a Linked<'a>>,
) -> &'a dyn LoadGenerator {
    match (elsewhere, linked) {
        (Some(elsewhere), _) => elsewhere,
        (None, Some(linked)) => linked,
        (None, None) => &LocalGenerator,
    }
}

/// Moves the calling thread to the contenders' network until the result is dropped.
pub(super) fn enter(networks: &Networks) -> Result<Entered<'_>, Failure> {
    networks.enter().map_err(refused)
}

fn refused(error: LinkError) -> Failure {
    UsageError::new(error.problem, error.remedy).into()
}

/// What becomes of the race of an earlier attempt.
enum Attempt {
    /// It continues, or it is over and is shown again.
    GoesOn(Box<Stage>),
    /// A new race takes its place, with this error rate. The old record has yet to move aside.
    BeginsAgain {
        /// What the earlier attempts left of alpha.
        alpha: f64,
        /// Why the old race cannot be continued.
        why: String,
    },
}

/// Decides what becomes of the record of an earlier attempt. All attempts together make a false claim with at most the error rate of the first:
/// - deadheat only shows a race that has its result;
/// - it continues an open race, with the looks that are left;
/// - where it cannot continue the race, a new one gets the alpha that the looks have not spent;
/// - if a scenario has its result and another one is open, the race can only be continued, and that may not be possible here.
fn attempted(
    path: &Path,
    plan: &Plan,
    flags: &RaceFlags,
    console: &Console,
    host: &LocalHost<'_>,
    checkouts: &mut Option<Checkouts>,
) -> Result<Attempt, Failure> {
    let shown = path.display();
    let record = deadheat_record::read(path)?;
    // Elsewhere, engines and folders have other names, and the race cannot be continued anyway.
    let is_here =
        other_machine(&record.machine, &machine(Path::new("/"), host.hierarchy, host.run)).is_none();
    of_this_race(path, &record.plan, plan, is_here)?;
    askable(&record.plan, &flags.fail_if)?;
    let (alpha, why) = match alpha_left(&record)? {
        AlphaLeft::Nothing => {
            if is_over(&record) {
                console
                    .note(&lines_plain(&format!("note: the race in {shown} is over; nothing is raced now")));
            }
            let stage = resumed(path, &flags.fail_if, console, host, checkouts);
            return Ok(Attempt::GoesOn(Box::new(stage.map_err(Failure::for_good)?)));
        }
        AlphaLeft::OfAnOpenRace(alpha) => match resumed(path, &flags.fail_if, console, host, checkouts) {
            Ok(stage) => return Ok(Attempt::GoesOn(Box::new(stage))),
            Err(Failure::Usage(refused)) => (alpha, refused.problem),
            Err(Failure::Git(refused)) => {
                (alpha, refused.to_string().lines().next().unwrap_or_default().to_owned())
            }
            Err(other) => return Err(other),
        },
        AlphaLeft::OfNoResult(alpha) => {
            (alpha, format!("{shown}: the race ended without a result that counts"))
        }
    };
    Ok(Attempt::BeginsAgain { alpha, why })
}

/// Moves the record of an earlier attempt aside, for a new race with this error rate.
fn move_aside(path: &Path, why: &str, alpha: f64, console: &Console) -> Result<(), Failure> {
    let aside = numbered_beside(path, 1).find(|one| !one.exists()).unwrap_or_default();
    std::fs::rename(path, &aside).map_err(|source| Failure::File {
        path: aside.clone(),
        option: "--continue",
        source,
    })?;
    console.note(&lines_plain(&format!(
        "note: {why}; a new race begins with the alpha that is left, {alpha:.4}; the old record is now {}",
        aside.display()
    )));
    Ok(())
}

/// Checks that a record is of the race that this command line describes. `is_here`: it is of this machine, so that the commands of contenders must be the same.
fn of_this_race(path: &Path, then: &Plan, now: &Plan, is_here: bool) -> Result<(), UsageError> {
    let facts = |plan: &Plan| {
        let contenders: Vec<&str> = plan.contenders.iter().map(|one| one.name.as_str()).collect();
        let scenarios: Vec<String> =
            plan.scenarios.iter().map(|one| format!("{} ({})", one.name, sentence(&one.shape))).collect();
        let commits = plan.contenders.iter().filter_map(|one| one.revision.as_ref());
        let commits: Vec<&str> = commits.map(|one| one.commit.as_str()).collect();
        let facts = [
            ("study", plan.study.clone()),
            ("contenders", contenders.join(", ")),
            ("commits", commits.join(", ")),
            ("scenarios", scenarios.join(", ")),
            ("looks", format!("{:?}", plan.method.looks)),
            ("margin", plan.method.margin.to_string()),
        ];
        let facts = facts.into_iter().map(|(what, value)| (what.to_owned(), value));
        let programs = plan.contenders.iter().filter(|_| is_here).flat_map(programs);
        facts.chain(programs).collect::<Vec<_>>()
    };
    let refused = |what: &str| {
        let problem = format!("--continue {}: this is the record of another race, {what}", path.display());
        Err(UsageError::new(problem, "name another file, or give the options of that race"))
    };
    let mut both = facts(then).into_iter().zip(facts(now));
    if let Some(((what, then), (_, now))) = both.find(|(then, now)| then != now) {
        return refused(&format!("with {what} {then}; here: {now}"));
    }
    for (then, now) in then.contenders.iter().zip(&now.contenders) {
        let all = then.env.iter().chain(&now.env).map(|(name, _)| name);
        // Values may be secret.
        let other: BTreeSet<&str> =
            all.filter(|name| then.env.get(*name) != now.env.get(*name)).map(String::as_str).collect();
        if !other.is_empty() {
            let names: Vec<&str> = other.into_iter().collect();
            return refused(&format!("with other values in the env of {}: {}", now.name, names.join(", ")));
        }
    }
    Ok(())
}

/// The commands that start and build a contender, as far as a plan has them.
fn programs(one: &Contender) -> [(String, String); 2] {
    let of_revision = one.revision.as_ref().and_then(|revision| revision.build.as_ref());
    let build = of_revision.or(one.rebuild.as_ref().map(|rebuild| &rebuild.command));
    [
        (format!("command of {}", one.name), one.command.clone()),
        (format!("build of {}", one.name), build.cloned().unwrap_or_else(|| "none".into())),
    ]
}

/// Names beside this one, from that number on: `race-2.jsonl`, `race-3.jsonl`.
pub(crate) fn numbered_beside(path: &Path, from: usize) -> impl Iterator<Item = PathBuf> + use<> {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or("jsonl").to_owned();
    let stem = path.with_extension("");
    (from..).map(move |number| PathBuf::from(format!("{}-{number}.{end}", stem.display())))
}

/// The refusal to overwrite the file of `--record`.
pub(crate) fn record_exists(record: &Path) -> UsageError {
    UsageError::new(
        format!("--record {}: the file already exists", record.display()),
        "choose a new file, or continue that record with --resume",
    )
}

/// Reads the files of a plan's probes.
pub(super) fn probe_files(plan: &Plan) -> Result<ProbeFiles, UsageError> {
    let refused = |error: String, remedy: String| UsageError::new(lines_plain(&error), remedy);
    Ok(ProbeFiles {
        recordings: traffic::recordings(plan)
            .map_err(|error| refused(error.to_string(), error.source.remedy()))?,
        rows: rows::of_plan(plan).map_err(|error| refused(error.to_string(), error.source.remedy()))?,
    })
}

/// Reports what earlier runs left behind. Returns findings for the record.
pub(super) fn tell_leftovers(hierarchy: &Hierarchy, console: &Console) -> Vec<Finding> {
    let mut left = leftovers(hierarchy);
    left.extend(remove_leftovers(&Places::of_process()));
    for finding in &left {
        console.note(&lines_plain(&format!("note: {}; {}", finding.message, finding.remedy)));
    }
    left
}

/// Makes the folder of records, with a file that tells git to ignore all of it. A folder that exists stays as it is. If the folder cannot be made,
/// writing the record reports why.
pub(crate) fn make_ignored(folder: &Path) {
    if fs::create_dir(folder).is_ok() {
        let _ = fs::write(folder.join(".gitignore"), "*\n");
    }
}

/// Creates the journal. A default name is made unique; a name that the user chose must be new.
fn create(path: PathBuf, chosen: bool) -> Result<Journal, Failure> {
    if let Some(folder) = path.parent().filter(|_| !chosen) {
        make_ignored(folder);
    }
    let mut others = numbered_beside(&path, 2);
    let mut here = path;
    loop {
        match Journal::create(&here) {
            Ok(journal) => return Ok(journal),
            Err(error) if error.already_exists() => {
                here = others.next().filter(|_| !chosen).ok_or_else(|| record_exists(&here))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn begin(
    plan: Plan,
    mut journal: Journal,
    files: ProbeFiles,
    interrupt: Interrupt,
    host: &LocalHost<'_>,
    (elsewhere, networks, checkouts): (Option<Elsewhere>, Option<Networks>, Option<Checkouts>),
) -> Result<Stage, Failure> {
    let machine = machine(Path::new("/"), host.hierarchy, host.run);
    let record = Record::new(env!("CARGO_PKG_VERSION").into(), unix_ms(), plan, machine);
    if let Err(error) = journal.append(&record.header()) {
        // The race has not begun: another attempt finds no file in its way.
        let _ = std::fs::remove_file(journal.path());
        return Err(error.into());
    }
    Ok(Stage { record, journal, files, interrupt, elsewhere, networks, _checkouts: checkouts })
}

/// Opens a record to resume. The JSON document of `--json` is also accepted: a journal is made from it. `held` are checkouts that this process
/// has already made.
fn resumed(
    path: &Path,
    conditions: &[FailIf],
    console: &Console,
    host: &LocalHost<'_>,
    held: &mut Option<Checkouts>,
) -> Result<Stage, Failure> {
    let mut record = deadheat_record::read(path)?;
    askable(&record.plan, conditions)?;
    // Checked before anything is opened for writing, so that a refused record stays unchanged.
    as_begun(path, &record, console, host)?;
    let files = if is_over(&record) { ProbeFiles::default() } else { probe_files(&record.plan)? };
    let interrupt = Interrupt::listen()?;
    let (elsewhere, networks) = if is_over(&record) {
        (None, None)
    } else {
        let elsewhere = reach(record.plan.load_from.as_ref(), &interrupt, console);
        (elsewhere.map_err(Failure::for_now)?, networks(&record.plan, host).map_err(Failure::for_now)?)
    };
    let checkouts = checkouts_of(path, &record, console, held)?;
    let mut journal = journal_of(path, &record)?;
    // Read again, because only now is it certain that no other process writes it.
    record = deadheat_record::read(journal.path())?;
    if !record.done {
        let left = tell_leftovers(host.hierarchy, console).into_iter();
        let findings = left.map(|finding| Line::Finding { scenario: None, finding });
        for line in std::iter::once(Line::Resumed { unix_ms: unix_ms() }).chain(findings) {
            journal.append(&line)?;
            record.apply(line);
        }
    }
    Ok(Stage { record, journal, files, interrupt, elsewhere, networks, _checkouts: checkouts })
}

/// Opens the journal of a record to continue it. A new one is made beside a document, a page or a packed record.
///
/// # Errors
/// When another race writes it, or it cannot be written.
pub(crate) fn journal_of(path: &Path, record: &Record) -> Result<Journal, Failure> {
    if is_journal(path) {
        return Ok(Journal::resume(path)?);
    }
    let mut journal = create(path.with_extension("jsonl"), false)?;
    for line in record.lines() {
        journal.append(&line)?;
    }
    Ok(journal)
}

/// The checkouts for a record that is continued: those in `held` if they are the record's, else new ones. None if the race is over.
fn checkouts_of(
    path: &Path,
    record: &Record,
    console: &Console,
    held: &mut Option<Checkouts>,
) -> Result<Option<Checkouts>, Failure> {
    if is_over(record) {
        return Ok(None);
    }
    if let Some(ours) = held.take_if(|held| held.are_of(&record.plan)) {
        return Ok(Some(ours));
    }
    if held.is_some() {
        let problem = format!("{}: the race was built in another folder or with other tools", path.display());
        return Err(UsageError::new(problem, "race again without --resume").into());
    }
    let mut tell = |line: &str| console.note(&lines_plain(line));
    Ok(Checkouts::again(&record.plan, &Places::of_process(), &mut tell)?)
}

/// Whether every scenario has ended.
pub(crate) fn is_over(record: &Record) -> bool {
    record.plan.scenarios.iter().all(|one| record.end_of(&one.name).is_some())
}

/// Checks that a race can continue as it began. An interval contains epochs of one machine and of one version of each contender. With another
/// machine or version, it would be another race.
fn as_begun(path: &Path, record: &Record, console: &Console, host: &LocalHost<'_>) -> Result<(), Failure> {
    let refused = |problem: String, remedy: &str| {
        Failure::from(UsageError::new(format!("{}: {problem}", path.display()), remedy))
    };
    let plan = &record.plan;
    // A finished race is only shown again, which works on any machine.
    if is_over(record) {
        return Ok(());
    }
    if let Some(dataset) = plan.dataset.as_ref().filter(|dataset| !dataset.exists()) {
        let problem = format!("the record's dataset {} is gone", dataset.display());
        return Err(refused(problem, "race the study again; that makes a new dataset"));
    }
    if let Some(other) = other_machine(&record.machine, &machine(Path::new("/"), host.hierarchy, host.run)) {
        let problem =
            format!("the race started on another machine, or on this one with other settings: {other}");
        let remedy =
            "race again without --resume, or continue on the machine where it began, with the same settings";
        return Err(refused(problem, remedy));
    }
    let changed = changed_versions(record, console)?;
    if changed.is_empty() {
        return Ok(());
    }
    let each: Vec<String> =
        changed.iter().map(|one| format!("{} ({} then, {} now)", one.name, one.then, one.now)).collect();
    let problem = format!("versions of contenders have changed since the race started: {}", each.join(", "));
    Err(refused(problem, "race again without --resume, or restore the versions that were raced"))
}

/// The record contains the output of version commands but not the commands, so they come from the study. If the study is no longer readable, no
/// version counts as changed.
fn changed_versions(record: &Record, console: &Console) -> Result<Vec<Changed>, Failure> {
    let (plan, out) = (&record.plan, &record.out);
    if !plan
        .contenders
        .iter()
        .any(|one| one.version.is_some() && one.revision.is_none() && !out.contains(&one.name))
    {
        return Ok(Vec::new());
    }
    let mut tell = |line: &str| console.note(&lines_plain(line));
    match study::load(&plan.folder) {
        Ok(study) => Ok(prepare::changed_versions(&study, plan, out, &mut tell)?),
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().next().unwrap_or_default();
            tell(&format!(
                "note: deadheat cannot check whether versions have changed since the record: {why}"
            ));
            Ok(Vec::new())
        }
    }
}

fn is_journal(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    serde_json::from_str::<serde_json::Value>(first).is_ok_and(|value| value.get("line").is_some())
}

/// Checks before a race that the file is writable, so that the race is not run in vain. Returns the path if the file can be replaced again and again; what
/// goes to a pipe or a device goes there once.
pub(crate) fn writable(path: &Path, option: &'static str) -> Result<Option<PathBuf>, Failure> {
    let bytes = path.as_os_str().as_encoded_bytes();
    match std::fs::metadata(path) {
        Err(_) if bytes.is_empty() || bytes.ends_with(b"/") => {
            let problem = format!("{option}: `{}` names no file", path.display());
            return Err(UsageError::new(problem, format!("for example: {option} result.json")).into());
        }
        Ok(found) if found.is_dir() => {
            return Err(Failure::File {
                path: path.into(),
                option,
                source: io::ErrorKind::IsADirectory.into(),
            });
        }
        Ok(found) if !found.is_file() => return Ok(None),
        Ok(_) | Err(_) => {}
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let test = folder.join(format!(".deadheat-{}.tmp", std::process::id()));
    std::fs::write(&test, "").and_then(|()| std::fs::remove_file(&test)).map_err(|source| Failure::File {
        path: path.into(),
        option,
        source,
    })?;
    Ok(Some(path.into()))
}
