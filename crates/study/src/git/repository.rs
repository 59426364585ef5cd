//! The user's repository, by the `git` program. deadheat changes no file, branch or index in it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

use deadheat_host::command::GIT_VARIABLES;

use super::{GitError, io_at};
use crate::file::shown;

/// Settings of a repository that decide what its files look like when they are checked out.
const SETTINGS: &str = r"^(core\.(autocrlf|eol|symlinks|filemode)|filter\..*|lfs\..*|remote\.origin\.url)$";
/// How a pointer of Git LFS begins.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// A repository with a working tree.
#[derive(Debug)]
pub(super) struct Repository {
    top: PathBuf,
    objects: PathBuf,
    shallow: Option<PathBuf>,
}

impl Repository {
    /// The repository that `folder` is in.
    pub(super) fn around(folder: &Path) -> Result<Self, GitError> {
        let output = finish(git(folder).args(["rev-parse", "--show-toplevel"]))?;
        if !output.status.success() {
            return Err(GitError::NoRepository { folder: folder.to_owned(), said: said(&output) });
        }
        let top = path_of(&output.stdout);
        let at = |name: &str| {
            let output = run(git(&top).args(["rev-parse", "--path-format=absolute", "--git-path", name]))?;
            Ok(path_of(&output))
        };
        let (objects, shallow) = (at("objects")?, at("shallow")?);
        Ok(Self { top, objects, shallow: Some(shallow).filter(|path| path.is_file()) })
    }

    /// Its top folder, without symbolic links.
    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// A path relative to the top folder; none if it is elsewhere.
    pub(super) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        whole.strip_prefix(&self.top).ok().map(Path::to_path_buf)
    }

    /// The full hash of a revision's commit.
    pub(super) fn commit(&self, name: &str) -> Result<String, GitError> {
        let commit = format!("{name}^{{commit}}");
        let output = finish(git(&self.top).args(["rev-parse", "--verify", "--end-of-options", &commit]))?;
        if output.status.success() {
            return Ok(text_of(&output.stdout));
        }
        Err(GitError::NoRevision {
            name: name.into(),
            repository: self.top.clone(),
            said: after_colon(&said(&output)),
            shallow: self.shallow.is_some(),
        })
    }

    /// The newest commit that is in the history of both; each is a name and its commit.
    pub(super) fn merge_base(&self, base: (&str, &str), head: (&str, &str)) -> Result<String, GitError> {
        let output = finish(git(&self.top).args(["merge-base", base.1, head.1]))?;
        if output.status.success() {
            return Ok(text_of(&output.stdout));
        }
        Err(GitError::NoMergeBase {
            base: base.0.into(),
            head: head.0.into(),
            shallow: self.shallow.is_some(),
        })
    }

    /// The first line of a commit's message.
    pub(super) fn subject(&self, commit: &str) -> Result<String, GitError> {
        Ok(text_of(&run(git(&self.top).args(["show", "--no-patch", "--format=%s", commit]))?))
    }

    /// The hash of all files of a commit, which may be among the objects in `more`.
    pub(super) fn tree(&self, commit: &str, more: &Path) -> Result<String, GitError> {
        let mut git = git(&self.top);
        git.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", in_a_list(more));
        Ok(text_of(&run(git.args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")]))?))
    }

    /// A commit of the working tree as it is, with all files that git does not ignore. Its objects are written to `objects`. None if nothing has
    /// changed since `head`. deadheat's own files are left out, unless git tracks them: the folder `work`, and records.
    pub(super) fn snapshot(
        &self,
        head: &str,
        objects: &Path,
        work: &Path,
    ) -> Result<Option<String>, GitError> {
        self.refuse_changed_submodules()?;
        super::make_folder(objects)?;
        // Objects are kept as long as they are used, and git does not touch the folder for objects that it has already.
        let now = fs::File::open(objects).and_then(|folder| folder.set_modified(SystemTime::now()));
        now.map_err(io_at(objects))?;
        let index = objects.with_file_name(format!("index-{}", std::process::id()));
        let made = self.snapshot_by(head, objects, &index, work);
        let _ = fs::remove_file(&index);
        made
    }

    fn snapshot_by(
        &self,
        head: &str,
        objects: &Path,
        index: &Path,
        work: &Path,
    ) -> Result<Option<String>, GitError> {
        let git = || {
            let mut git = git(&self.top);
            git.env("GIT_INDEX_FILE", index)
                .env("GIT_OBJECT_DIRECTORY", objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", in_a_list(&self.objects));
            git
        };
        // The user's index knows which files are unchanged, and which are left out of a sparse checkout.
        let own = path_of(&run(self::git(&self.top).args([
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "index",
        ]))?);
        let split = run(self::git(&self.top).args(["rev-parse", "--shared-index-path"]))?;
        if split.is_empty() && own.is_file() {
            copy_with_time(&own, index).map_err(io_at(index))?;
        } else {
            run(git().args(["read-tree", head]))?;
        }
        // The folder may be a link: what it is, and where it leads.
        let place = |work: &Path| Some(self.inside(work.parent()?)?.join(work.file_name()?));
        let work = [place(work), self.inside(work)].into_iter().flatten().map(|work| {
            let mut exclude = OsString::from(":(top,exclude,literal)");
            exclude.push(work);
            exclude
        });
        let records = OsString::from(":(top,exclude,glob)**/deadheat-records/**");
        run(git().args(["add", "--update", "--", ":/"]))?;
        run(git().args(["add", "--all", "--", ":/"]).arg(records).args(work))?;
        let tree = text_of(&run(git().arg("write-tree"))?);
        if tree == self.tree(head, objects)? {
            return Ok(None);
        }
        self.refuse_nested(&run(git().args(["diff-tree", "-r", "-z", "--diff-filter=A", head, &tree]))?)?;
        // The same changes make the same commit, so that its build is found again.
        let date = text_of(&run(self::git(&self.top).args(["show", "--no-patch", "--format=%cI", head]))?);
        let mut commit = git();
        for who in ["AUTHOR", "COMMITTER"] {
            commit
                .env(format!("GIT_{who}_NAME"), "deadheat")
                .env(format!("GIT_{who}_EMAIL"), "deadheat@localhost")
                .env(format!("GIT_{who}_DATE"), &date);
        }
        let message = ["commit-tree", "--no-gpg-sign", &tree, "-p", head, "-m", "uncommitted changes"];
        Ok(Some(text_of(&run(commit.args(message))?)))
    }

    /// An error if the working tree contains another repository that is no submodule: git would keep its commit, and not its files. `added` is
    /// what `git diff-tree -z` prints.
    fn refuse_nested(&self, added: &[u8]) -> Result<(), GitError> {
        // `:mode mode hash hash A`, then the path.
        let mut parts = added.split(|byte| *byte == 0);
        while let (Some(modes), Some(path)) = (parts.next(), parts.next()) {
            if modes.starts_with(b":000000 160000 ") {
                return Err(GitError::Submodule {
                    revision: "the working tree".into(),
                    path: path_of(path),
                    problem: "is a repository of its own that is not committed".into(),
                    remedy: "add it to .gitignore, or commit it as a submodule".into(),
                });
            }
        }
        Ok(())
    }

    fn refuse_changed_submodules(&self) -> Result<(), GitError> {
        let status = ["status", "--porcelain=v2", "-z", "--ignore-submodules=none", "--untracked-files=no"];
        let output = run(git(&self.top).args(status))?;
        let changed = output.split(|byte| *byte == 0).find_map(|line| {
            // `1 XY sub mH mI mW hH hI path`; sub is `S` and three letters: commit, modified, untracked.
            let fields: Vec<&[u8]> = line.splitn(9, |byte| *byte == b' ').collect();
            let changed = fields.len() == 9
                && fields[0] == b"1"
                && fields[2].starts_with(b"S")
                && (fields[2].contains(&b'M') || fields[2].contains(&b'U'));
            changed.then(|| path_of(fields[8]))
        });
        match changed {
            None => Ok(()),
            Some(path) => Err(GitError::Submodule {
                revision: "the working tree".into(),
                path,
                problem: "has changes that are not committed".into(),
                remedy: "commit them in the submodule".into(),
            }),
        }
    }

    /// Checks a commit out into the new folder `tree`, as a repository of its own that borrows this one's objects, and those in `more`.
    pub(super) fn check_out(
        &self,
        (revision, commit): (&str, &str),
        more: Option<&Path>,
        tree: &Path,
    ) -> Result<(), GitError> {
        super::make_folder(tree)?;
        let format = text_of(&run(git(&self.top).args(["rev-parse", "--show-object-format"]))?);
        let init = ["-c", "init.defaultBranch=main", "init", "--quiet", "--template="];
        run(git(tree).args(init).arg(format!("--object-format={format}")))?;
        let own = tree.join(".git");
        let alternates: Vec<u8> = [Some(self.objects.as_path()), more]
            .into_iter()
            .flatten()
            .flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\n"].concat())
            .collect();
        super::make_folder(&own.join("objects/info"))?;
        let file = own.join("objects/info/alternates");
        fs::write(&file, alternates).map_err(io_at(&file))?;
        if let Some(shallow) = &self.shallow {
            fs::copy(shallow, own.join("shallow")).map_err(io_at(&own))?;
        }
        self.pass_settings_to(tree)?;
        let how = ["-c", "advice.detachedHead=false", "-c", "core.hooksPath=/dev/null"];
        run(git(tree).args(how).args(["checkout", "--quiet", "--detach", commit]))?;
        refuse_missing(revision, tree)?;
        refuse_pointers(revision, tree)?;
        self.check_out_submodules(revision, tree)
    }

    fn pass_settings_to(&self, tree: &Path) -> Result<(), GitError> {
        // Status 1: there are none.
        let output = finish(git(&self.top).args(["config", "--local", "-z", "--get-regexp", SETTINGS]))?;
        let settings = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        for setting in settings {
            let setting = String::from_utf8_lossy(setting);
            let (name, value) = setting.split_once('\n').unwrap_or((&setting, "true"));
            run(git(tree).args(["config", "--add", name, value]))?;
        }
        // Content that was fetched is found without asking a server.
        let lfs =
            path_of(&run(git(&self.top).args(["rev-parse", "--path-format=absolute", "--git-path", "lfs"]))?);
        run(git(tree).args(["config", "lfs.storage"]).arg(lfs)).map(drop)
    }

    fn check_out_submodules(&self, revision: &str, tree: &Path) -> Result<(), GitError> {
        let staged = run(git(tree).args(["ls-files", "--stage", "-z"]))?;
        for entry in staged.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 ")) {
            // `mode hash stage<TAB>path`
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let commit = String::from_utf8_lossy(&entry[7..tab]);
            let commit = commit.split(' ').next().unwrap_or_default();
            let path = path_of(&entry[tab + 1..]);
            let refused = |problem: &str| GitError::Submodule {
                revision: revision.into(),
                path: path.clone(),
                problem: problem.into(),
                remedy: format!(
                    "in {}: git submodule update --init --recursive, and fetch the commits of both revisions",
                    self.top.display()
                ),
            };
            let source = self.top.join(&path);
            if !source.join(".git").exists() {
                return Err(refused("is not checked out here"));
            }
            let submodule = Self::around(&source)?;
            if submodule.commit(commit).is_err() {
                return Err(refused(&format!("has no commit {commit} here")));
            }
            submodule.check_out((revision, commit), None, &tree.join(&path))?;
        }
        Ok(())
    }
}

/// Copies an index. Git looks into a file again if it changed as late as the index did, so the copy keeps the index's time.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let changed = fs::metadata(from)?.modified()?;
    fs::File::options().write(true).open(to)?.set_modified(changed)
}

/// An error if a file could not be written: in a partial clone git goes on without contents that it cannot find.
fn refuse_missing(revision: &str, tree: &Path) -> Result<(), GitError> {
    let missing = run(git(tree).args(["ls-files", "--deleted", "-z"]))?;
    let first = missing.split(|byte| *byte == 0).find(|path| !path.is_empty()).map(path_of);
    first.map_or(Ok(()), |path| Err(GitError::Missing { revision: revision.into(), path }))
}

/// An error if a file of Git LFS has no content.
fn refuse_pointers(revision: &str, tree: &Path) -> Result<(), GitError> {
    let files = run(git(tree).args(["ls-files", "-z", ":(attr:filter=lfs)"]))?;
    let is_pointer = |path: &PathBuf| {
        use io::Read as _;
        let mut begin = [0; POINTER.len()];
        fs::File::open(tree.join(path)).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && begin == POINTER
    };
    let pointer =
        files.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(path_of).find(is_pointer);
    pointer.map_or(Ok(()), |path| Err(GitError::Lfs { revision: revision.into(), path }))
}

/// A git command in `folder` that is not influenced by the repository that deadheat was called from.
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "log.showSignature=false"]).stdin(Stdio::null());
    for name in GIT_VARIABLES {
        git.env_remove(name);
    }
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    git
}

fn finish(git: &mut Command) -> Result<Output, GitError> {
    git.output().map_err(GitError::NoGit)
}

/// What a command printed, if it succeeded.
fn run(git: &mut Command) -> Result<Vec<u8>, GitError> {
    let output = finish(git)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    // Without `-C`, the folder and the setting.
    let words: Vec<String> = git.get_args().skip(4).map(|word| word.to_string_lossy().into_owned()).collect();
    Err(GitError::Failed { command: shown(&words.join(" ")), said: after_colon(&said(&output)) })
}

/// The line of git's message that says what is wrong.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let fatal = text.lines().find(|line| line.starts_with("fatal: "));
    let line = fatal.or(text.lines().next()).map(str::trim).unwrap_or_default();
    shown(line.trim_start_matches("fatal: ").trim_start_matches("error: "))
}

fn after_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

fn text_of(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim_end_matches('\n').to_owned()
}

fn path_of(printed: &[u8]) -> PathBuf {
    let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
    PathBuf::from(OsString::from_vec(printed.to_vec()))
}

/// A path as an entry of a list that colons separate (gitenvironment, `GIT_ALTERNATE_OBJECT_DIRECTORIES`).
fn in_a_list(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.contains(&b':') && !bytes.starts_with(b"\"") {
        return path.into();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}
