//! Reads `study.toml` into typed data, and shows each mistake at its place.
//!
//! Owns: the format, its defaults, what is allowed where, and how mistakes are shown.
//! Must not know: flags, the plan's method, the machine. This module starts and writes nothing.

mod check;
mod collector;
mod complaint;
mod container;
mod contract;
mod fields;
mod generator;
mod host;
mod keys;
mod limits;
mod link;
mod model;
mod objective;
mod parts;
mod placeholder;
mod replay;
mod request_values;
mod scenario_reader;
mod services;
mod traffic;
mod values;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

pub use complaint::{Complaint, StudyError};
pub use contract::CONNECTIONS;
pub use keys::{KEY_TABLES, KeyTable};
pub use model::{
    Claim, Contender, Dataset, Generator, Host, Need, NeedKind, Probe, Reads, Runs, Scenario, Service, Study,
    Sweep,
};
pub use objective::objective;
pub(crate) use parts::default_name;
pub use replay::MOST_PER_S;
pub use values::path_problem;
pub use words::{nearest, one_of, shown, tamed};

use fields::{Fields, StudyReader};

/// The name of the file in a study's folder.
pub const FILE_NAME: &str = "study.toml";

/// The study file of `path`: the file itself, or `study.toml` in the folder.
pub fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

/// Reads and checks a study. `path` is a folder with a `study.toml`, or the file itself.
///
/// # Errors
/// The file cannot be read, or its content is wrong. The error contains all mistakes found.
pub fn load(path: &Path) -> Result<Study, StudyError> {
    let file = file_of(path);
    let unreadable = |source| StudyError::Unreadable { path: file.clone(), source };
    let bytes = fs::read(&file).map_err(unreadable)?;
    let absolute = std::path::absolute(&file).map_err(unreadable)?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let shown_path = file.display().to_string();
    let text = String::from_utf8(bytes).map_err(|error| StudyError::not_utf8(&shown_path, &error))?;
    parse(&text, &shown_path, folder)
}

/// Reads and checks the text of a study in `folder`. Complaints use `path` as the name of the file.
///
/// # Errors
/// As for [`load`].
pub fn parse(text: &str, path: &str, folder: &Path) -> Result<Study, StudyError> {
    let (document, syntax) = toml::de::DeTable::parse_recoverable(text);
    let reading = StudyReader::new(text, folder);
    if !syntax.is_empty() {
        syntax.iter().for_each(|error| reading.complain(Complaint::of_syntax(error, text)));
        return Err(reading.into_error(path));
    }
    let study = read(&document, &reading);
    check::check(&study, &reading);
    if reading.is_clean() { Ok(study) } else { Err(reading.into_error(path)) }
}

fn read(document: &toml::Spanned<toml::de::DeTable<'_>>, reading: &StudyReader<'_>) -> Study {
    let top = Fields::open(reading, document.get_ref(), 0..0, &keys::STUDY);
    let dataset = top.table("dataset", &keys::DATASET).map(|fields| parts::dataset(&fields));
    top.some_tables("contender", "command = \"node server.mjs\"");
    top.some_tables("probe", "path = \"/\"");
    let probes: Vec<Probe> = contract::probes(&top.tables("probe", &keys::PROBE));
    let scenarios = top.tables("scenario", &keys::SCENARIO);
    Study {
        name: parts::study_name(&top),
        source: deadheat_record::Source::Study(reading.folder().to_owned()),
        title: top.text("title").map(toml::Spanned::into_inner),
        machine_matches: top.flag("machine_matches").is_some_and(toml::Spanned::into_inner),
        folder: reading.folder().to_owned(),
        dataset,
        services: top.tables("service", &keys::SERVICE).iter().map(parts::service).collect(),
        contenders: top.tables("contender", &keys::CONTENDER).iter().map(parts::contender).collect(),
        scenarios: scenarios.iter().map(|fields| contract::scenario(fields, &probes)).collect(),
        probes,
        claims: top.tables("claim", &keys::CLAIM).iter().map(contract::claim).collect(),
        generators: top.tables("generator", &keys::GENERATOR).iter().map(generator::generator).collect(),
        hosts: host::hosts(&top.tables("host", &keys::HOST)),
    }
}
