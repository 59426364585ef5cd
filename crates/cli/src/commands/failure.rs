//! Why a command failed, and the exit status for it.

use std::path::PathBuf;

use deadheat_analysis::AnalysisError;
use deadheat_load::with_causes;
use deadheat_record::{ReadError, WriteError};
use deadheat_report::ReportError;
use deadheat_runner::RaceError;

use crate::console::lines_plain;
use crate::interrupt::INTERRUPTED;
use deadheat_study::choices::UsageError;
use deadheat_study::file::StudyError;
use deadheat_study::git::GitError;
use deadheat_study::prepare::PrepareError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Wrong usage.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// A load host was lost before anything was measured.
    #[error(transparent)]
    HostLost(UsageError),
    /// Load hosts cannot be reached, or networks cannot be made. The race can be continued when they can.
    #[error(transparent)]
    NotNow(UsageError),
    /// A race can be continued elsewhere and not here, and no new one may begin.
    #[error(transparent)]
    NotHere(UsageError),
    /// The study cannot be read.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Two revisions cannot be raced.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Dataset, builds or versions failed.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The race failed.
    #[error(transparent)]
    Race(#[from] RaceError),
    /// A record cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A record cannot be made into a report.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A report cannot be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A file cannot be written.
    #[error("cannot write {}: {source}\n  choose another place with {option} FILE", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The option that names the file.
        option: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Standard output or the system failed.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl Failure {
    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            _ if self.is_interruption() => INTERRUPTED,
            Self::HostLost(_) | Self::NotHere(_) => 3,
            _ => 2,
        }
    }

    /// Marks a failure to reach load hosts or to make networks: a later attempt may continue the race.
    pub(crate) fn for_now(self) -> Self {
        match self {
            Self::Usage(error) => Self::NotNow(error),
            other => other,
        }
    }

    /// What a refusal to continue a race is if no new race may begin, because a scenario has its result.
    pub(crate) fn for_good(self) -> Self {
        let problem = match self {
            Self::Usage(error) => error.problem,
            Self::Git(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            other => return other,
        };
        Self::NotHere(UsageError::new(
            format!("{problem}; a scenario of this race has its result, so no new race may begin"),
            "it can only be finished on a machine like the first one, with the same settings, versions and files",
        ))
    }

    fn is_interruption(&self) -> bool {
        matches!(self, Self::Prepare(PrepareError::Interrupted))
    }

    /// The whole message with all causes, ready for display.
    pub(crate) fn render(&self, styled: bool) -> String {
        if let Self::Study(error) = self {
            return error.render(styled);
        }
        if self.is_interruption() {
            return self.to_string();
        }
        lines_plain(&format!("error: {}", with_causes(self)))
    }
}
