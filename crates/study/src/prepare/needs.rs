//! Checks what contenders need and this machine may lack. A contender with an unmet need is left out, with the reason and the remedy.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use deadheat_record::Finding;

use crate::file::{Contender, Need, NeedKind, Study, shown};

/// A contender that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// What is missing.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Skipped {
    /// Reason and remedy in one line.
    pub fn why(&self) -> String {
        format!("{}: {}", self.reason, self.remedy)
    }

    /// Converts it to a finding.
    pub fn finding(&self) -> Finding {
        Finding::warn("skipped", format!("{} is left out: {}", self.name, self.reason), &self.remedy)
            .about(&self.name)
    }
}

/// The contenders whose needs are not met. Programs are looked up in `path`, which has the format of PATH.
pub fn missing(study: &Study, path: Option<&OsStr>) -> Vec<Skipped> {
    let lacking = |contender: &Contender| {
        let unmet = contender.needs.iter().filter(|need| !is_met(need, &contender.folder, path));
        let unmet: Vec<&Need> = unmet.collect();
        (!unmet.is_empty()).then(|| skipped(contender, &unmet))
    };
    study.contenders.iter().filter_map(lacking).collect()
}

/// The unmet needs, with the remedies in one line. `None` if all needs are met.
pub fn unmet(needs: &[Need], folder: &Path, path: Option<&OsStr>) -> Option<String> {
    let unmet: Vec<&Need> = needs.iter().filter(|need| !is_met(need, folder, path)).collect();
    let told = unmet.iter().map(|need| format!("{}: {}", reason(need), need.remedy));
    (!unmet.is_empty()).then(|| shown_whole(&told.collect::<Vec<_>>().join("; ")))
}

fn skipped(contender: &Contender, unmet: &[&Need]) -> Skipped {
    let mut remedies: Vec<String> = Vec::new();
    for need in unmet {
        if !remedies.contains(&need.remedy) {
            remedies.push(need.remedy.clone());
        }
    }
    let reasons: Vec<String> = unmet.iter().map(|need| reason(need)).collect();
    Skipped {
        name: contender.name.get_ref().clone(),
        reason: reasons.join("; "),
        remedy: shown_whole(&remedies.join("; ")),
    }
}

fn reason(need: &Need) -> String {
    match &need.kind {
        NeedKind::File(path) => format!("there is no {}", shown_whole(&path.display().to_string())),
        NeedKind::Program(program) => format!("the program `{}` is not in PATH", shown(program)),
    }
}

fn shown_whole(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

fn is_met(need: &Need, folder: &Path, path: Option<&OsStr>) -> bool {
    match &need.kind {
        NeedKind::File(file) => file.exists(),
        NeedKind::Program(program) => is_program(program, folder, path),
    }
}

/// Finds a program like a shell in `folder`: looks a name up in PATH, and resolves a path relative to the folder.
fn is_program(program: &str, folder: &Path, path: Option<&OsStr>) -> bool {
    if program.contains('/') {
        return is_executable(&folder.join(program));
    }
    env::split_paths(path.unwrap_or_default()).any(|place| is_executable(&folder.join(place).join(program)))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
