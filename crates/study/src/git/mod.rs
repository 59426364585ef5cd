//! Two revisions of one repository as the two contenders of a race.
//!
//! Owns: which commits are meant, a folder with a checkout of each, builds that are kept for the next race, and the removal of all that.
//! The user's files, branches and index stay as they are: each checkout is a new repository that borrows the objects. Must not know: flags, the
//! method.

mod checkouts;
mod repository;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use deadheat_host::command::quoted;
use deadheat_record::{Listen, Revision};
use thiserror::Error;
use toml::Spanned;

use crate::choices::READ_PORT;
use crate::file::{Contender, NeedKind, Study, one_of, shown};
use crate::plan::Places;
use crate::prepare::{Progress, dataset_key};

use checkouts::Key;
pub use checkouts::{Checkouts, remove_leftovers};
use repository::Repository;

/// The revisions that `--git` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRange {
    /// The baseline's revision.
    pub base: String,
    /// The other revision. None: the working tree, with its uncommitted changes.
    pub head: Option<String>,
    /// Whether the baseline is the merge base of the two instead of `base` itself.
    pub since: bool,
}

impl FromStr for GitRange {
    type Err = String;

    /// Reads `BASE`, `BASE..HEAD` or `BASE...HEAD`, as `git diff` does. An empty side is `HEAD`.
    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| if text.is_empty() { "HEAD".to_owned() } else { text.to_owned() };
        let range = match (text.split_once("..."), text.split_once("..")) {
            (Some((base, head)), _) => Self { base: side(base), head: Some(side(head)), since: true },
            (None, Some((base, head))) => Self { base: side(base), head: Some(side(head)), since: false },
            (None, None) => Self { base: text.to_owned(), head: None, since: true },
        };
        let sides = || [Some(&range.base), range.head.as_ref()].into_iter().flatten();
        if sides().any(|side| side.trim().is_empty() || side.starts_with(['-', '.']) || side.contains("..")) {
            return Err(
                "write BASE..HEAD, or BASE to race the working tree against it; for example main".into()
            );
        }
        Ok(range)
    }
}

impl std::fmt::Display for GitRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.head {
            None => f.write_str(&self.base),
            Some(head) => write!(f, "{}{}{head}", self.base, if self.since { "..." } else { ".." }),
        }
    }
}

/// Why two revisions cannot be raced.
#[derive(Debug, Error)]
pub enum GitError {
    /// Git cannot be run.
    #[error("cannot run git: {0}\n  --git needs git; install it")]
    NoGit(io::Error),
    /// The folder is in no repository.
    #[error("--git: {} is in no git repository: {said}\n  run deadheat in a checkout of your service", folder.display())]
    NoRepository {
        /// The study's folder.
        folder: PathBuf,
        /// Git's message.
        said: String,
    },
    /// A revision is unknown.
    #[error("--git: there is no revision `{}` in {}{said}\n  {}", shown(name), repository.display(), hint(*shallow))]
    NoRevision {
        /// The revision as it was given.
        name: String,
        /// The top folder of the repository.
        repository: PathBuf,
        /// Git's message with its separator; may be empty.
        said: String,
        /// Whether the history is cut off.
        shallow: bool,
    },
    /// Two revisions have no common ancestor.
    #[error("--git: `{}` and `{}` have no common ancestor\n  {}", shown(base), shown(head), hint(*shallow))]
    NoMergeBase {
        /// One of them.
        base: String,
        /// The other.
        head: String,
        /// Whether the history is cut off.
        shallow: bool,
    },
    /// Both sides have the same files.
    #[error(
        "--git: {base} and {head} have the same files: there is nothing to compare\n  change something first; in any race, --control shows how much identical code differs"
    )]
    Same {
        /// The baseline.
        base: String,
        /// The other side.
        head: String,
    },
    /// The study has several contenders.
    #[error(
        "--git races one contender in two revisions, and this study has {count}\n  choose one with --only: {names}"
    )]
    SeveralContenders {
        /// How many.
        count: usize,
        /// Their names.
        names: String,
    },
    /// Both revisions would listen on the same port.
    #[error(
        "--git: {contender} always listens on port {port}, but both revisions run at the same time\n  {}",
        READ_PORT
    )]
    FixedPort {
        /// The contender.
        contender: String,
        /// Its port.
        port: u16,
    },
    /// The contender's folder is not part of the repository.
    #[error("--git: {contender} runs in {}, which is outside of the repository {}\n  move it into the repository, or race two commands", folder.display(), repository.display())]
    Outside {
        /// The contender.
        contender: String,
        /// Its folder.
        folder: PathBuf,
        /// The top folder of the repository.
        repository: PathBuf,
    },
    /// A revision does not have the contender's folder.
    #[error("--git: {revision} has no folder {}, in which {contender} runs\n  name a revision that has it", folder.display())]
    NoFolder {
        /// The revision.
        revision: String,
        /// The folder in the repository.
        folder: PathBuf,
        /// The contender.
        contender: String,
    },
    /// A submodule cannot be checked out.
    #[error("--git: submodule {} of {revision} {problem}\n  {remedy}", path.display())]
    Submodule {
        /// The revision.
        revision: String,
        /// The submodule's path in the repository.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// Git does not have the content of a file.
    #[error("--git: the content of {} of {revision} is not here\n  this is a partial clone; run: git fetch --refetch --filter=blob:limit=1g, or clone without --filter", path.display())]
    Missing {
        /// The revision.
        revision: String,
        /// The first such file.
        path: PathBuf,
    },
    /// A folder belongs to another user.
    #[error("--git: {} belongs to another user\n  remove it, or set XDG_CACHE_HOME to a folder of your own", .0.display())]
    Foreign(PathBuf),
    /// The record names other folders than this program uses.
    #[error("--git: the race ran in {}, and this user's checkouts are elsewhere\n  race again without --resume", .0.display())]
    Elsewhere(PathBuf),
    /// Files of Git LFS are missing.
    #[error("--git: {} of {revision} is only a pointer of Git LFS, without its content\n  install git-lfs, then run: git lfs install && git lfs fetch --all", path.display())]
    Lfs {
        /// The revision.
        revision: String,
        /// The first such file.
        path: PathBuf,
    },
    /// Another race of this repository runs.
    #[error("--git: another race of revisions of {} is running\n  wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// The build of a race that is resumed is no longer kept.
    #[error(
        "the build of {0} is no longer kept, so this race cannot be resumed\n  race again without --resume"
    )]
    NotKept(String),
    /// A git command failed.
    #[error("`git {command}` failed{said}\n  run it by hand to see more")]
    Failed {
        /// The subcommand and its arguments.
        command: String,
        /// Git's message with its separator; may be empty.
        said: String,
    },
    /// A file or folder of a checkout cannot be made.
    #[error("--git: cannot use {}: {source}\n  make room and make it writable, or set XDG_CACHE_HOME to another folder", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

fn hint(shallow: bool) -> &'static str {
    if shallow {
        "this clone has only the newest commits: git fetch --unshallow (in GitHub Actions: fetch-depth: 0)"
    } else {
        "`git log --oneline --all` shows what there is"
    }
}

/// One side of the race.
#[derive(Debug)]
struct Side {
    /// As it was given; `HEAD` for a working tree without changes.
    name: String,
    commit: String,
    subject: String,
    uncommitted: bool,
}

impl Side {
    /// The contender's name: what was given and the first seven digits of the commit.
    fn contender(&self) -> String {
        let short = &self.commit[..self.commit.len().min(SHORT)];
        if self.uncommitted {
            "working-tree".into()
        } else if self.commit.starts_with(&self.name.to_ascii_lowercase()) {
            short.into()
        } else {
            format!("{}@{short}", self.name)
        }
    }
}

/// The number of digits of a commit that are shown.
const SHORT: usize = 7;

/// The study with its contender in two revisions, and their checkouts, which are removed when they are dropped. Everything else of the study (contract,
/// scenarios, services, dataset) stays as it is in the working tree. `only` are the names that the user chose.
///
/// # Errors
/// The revisions cannot be found or checked out, or the study has no single contender in this repository.
pub fn revisions(
    study: Study,
    range: &GitRange,
    only: &[String],
    places: &Places,
    progress: Progress<'_>,
) -> Result<(Study, Checkouts), GitError> {
    let contender = chosen(&study, only)?;
    let repository = Repository::around(&study.folder)?;
    let mut checkouts = Checkouts::open(places, repository.top(), progress)?;
    let (base, head) = sides(&repository, range, &places.work(&study), &checkouts)?;
    if repository.tree(&base.commit, &checkouts.objects())?
        == repository.tree(&head.commit, &checkouts.objects())?
    {
        return Err(GitError::Same { base: base.contender(), head: head.contender() });
    }
    progress(&format!(
        "racing {} against {}; study, services and dataset are those of the working tree",
        described(&head),
        described(&base)
    ));
    let mut contenders = Vec::new();
    for (side, word) in [(base, "base"), (head, "head")] {
        contenders.push(in_revision(contender, &study, &repository, (side, word), &mut checkouts)?);
    }
    let study = Study { contenders, claims: Vec::new(), generators: Vec::new(), ..study };
    Ok((study, checkouts))
}

fn described(side: &Side) -> String {
    format!("{} ({})", side.contender(), shown(&side.subject))
}

fn chosen<'s>(study: &'s Study, only: &[String]) -> Result<&'s Contender, GitError> {
    let names = || study.contenders.iter().map(|one| one.name.get_ref().as_str());
    let named: Vec<&Contender> = match only {
        [] => study.contenders.iter().collect(),
        names => study.contenders.iter().filter(|one| names.contains(one.name.get_ref())).collect(),
    };
    match named[..] {
        [one] => match *one.listen.get_ref() {
            Listen::Port(port) => Err(GitError::FixedPort { contender: one.name.get_ref().clone(), port }),
            Listen::FreePort | Listen::Socket => Ok(one),
        },
        _ => Err(GitError::SeveralContenders { count: names().count(), names: one_of(names()) }),
    }
}

fn sides(
    repository: &Repository,
    range: &GitRange,
    work: &Path,
    checkouts: &Checkouts,
) -> Result<(Side, Side), GitError> {
    let head = match &range.head {
        Some(name) => repository.commit(name)?,
        None => repository.commit("HEAD")?,
    };
    let mut base = repository.commit(&range.base)?;
    if range.since {
        let head_name = range.head.as_deref().unwrap_or("HEAD");
        base = repository.merge_base((&range.base, &base), (head_name, &head))?;
    }
    let side = |name: &str, commit: String| {
        Ok(Side { name: name.into(), subject: repository.subject(&commit)?, commit, uncommitted: false })
    };
    let head = match &range.head {
        Some(name) => side(name, head)?,
        None => match repository.snapshot(&head, &checkouts.objects(), work)? {
            None => side("HEAD", head)?,
            Some(commit) => Side {
                name: "working tree".into(),
                commit,
                subject: "uncommitted changes".into(),
                uncommitted: true,
            },
        },
    };
    Ok((side(&range.base, base)?, head))
}

/// The contender as it is in a revision: the same commands and settings, with all paths in the checkout. An image that deadheat makes has another
/// name on each side, which `word` is a part of.
fn in_revision(
    contender: &Contender,
    study: &Study,
    repository: &Repository,
    (side, word): (Side, &str),
    checkouts: &mut Checkouts,
) -> Result<Contender, GitError> {
    let name = contender.name.get_ref();
    let inside = repository.inside(&contender.folder).ok_or_else(|| GitError::Outside {
        contender: name.clone(),
        folder: contender.folder.clone(),
        repository: repository.top().to_owned(),
    })?;
    let build = contender.build.as_ref().map(|command| command.get_ref().as_str());
    let env = plain(&contender.env);
    let reads = |text: &str| text.contains("{dataset}") || text.contains("DATASET");
    let is_read = build.into_iter().chain(env.values().copied()).any(reads);
    let dataset = study.dataset.as_ref().filter(|_| is_read);
    // If its inputs cannot be read, the dataset cannot be made, and that error is the one to show.
    let dataset = dataset.map(|one| dataset_key(one).unwrap_or_default());
    let key = Key::of(&side.commit, &inside, build, &env, dataset.as_deref());
    let made = checkouts.make(repository, &side, &key, build.is_some())?;
    let tree = made.path.join("tree");
    if !tree.join(&inside).is_dir() {
        return Err(GitError::NoFolder {
            revision: side.contender(),
            folder: inside,
            contender: name.clone(),
        });
    }
    let moved =
        |path: &Path| repository.inside(path).map_or_else(|| path.to_owned(), |inside| tree.join(inside));
    let mut needs = contender.needs.clone();
    for need in &mut needs {
        if let NeedKind::File(path) = &mut need.kind {
            *path = moved(path);
        }
    }
    // The names and paths of an image and its file are words of the commands.
    let in_side = |text: &str| match &contender.image {
        None => text.to_owned(),
        Some(image) => {
            let (file, name) = (moved(&image.file), format!("{}-{word}", image.name));
            let text = text.replace(&quoted(&image.name), &quoted(&name));
            text.replace(&quoted(&image.file.to_string_lossy()), &quoted(&file.to_string_lossy()))
        }
    };
    let spanned = |text: &Spanned<String>| Spanned::new(text.span(), in_side(text.get_ref()));
    let image_build = contender.image.as_ref().map(|image| in_side(&image.build));
    let new_build = match made.restored {
        // The folder is as the build left it, but the image may be that of a later race.
        true => image_build.map(|build| Spanned::new(contender.command.span(), build)),
        false => contender.build.as_ref().map(spanned),
    };
    let revision_name = side.contender();
    Ok(Contender {
        name: Spanned::new(contender.name.span(), revision_name),
        folder: tree.join(&inside),
        needs,
        artefacts: contender.artefacts.iter().map(|path| moved(path)).collect(),
        command: spanned(&contender.command),
        build: new_build,
        revision: Some(Revision {
            name: side.name,
            commit: side.commit,
            subject: side.subject,
            uncommitted: side.uncommitted,
            repository: repository.top().to_owned(),
            checkout: made.path.clone(),
            folder: moved(&study.folder),
            contender: name.clone(),
            build: build.map(in_side),
        }),
        ..contender.clone()
    })
}

fn plain(env: &BTreeMap<String, Spanned<String>>) -> BTreeMap<&str, &str> {
    env.iter().map(|(name, value)| (name.as_str(), value.get_ref().as_str())).collect()
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> GitError + '_ {
    move |source| GitError::Io { path: path.to_owned(), source }
}

fn make_folder(path: &Path) -> Result<(), GitError> {
    fs::create_dir_all(path).map_err(io_at(path))
}

#[cfg(test)]
mod tests;
