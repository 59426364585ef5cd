//! Revisions of real repositories, with the real `git`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::*;
use crate::file;

/// A repository with a study in `services/api`, and a cache beside it.
struct Fixture {
    folder: tempfile::TempDir,
    name: &'static str,
}

const STUDY: &str = "\
[[contender]]
name = \"api\"
command = \"exec ./serve\"
folder = \"app\"
build = \"./make\"

[[probe]]
path = \"/\"
";

impl Fixture {
    fn new() -> Self {
        Self::named("repository")
    }

    /// In a folder with this name.
    fn named(name: &'static str) -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), name };
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture.write("services/api/study.toml", STUDY);
        fixture.write("services/api/app/serve", "one");
        fixture.write(".gitignore", "*.log\n");
        fixture.commit("first");
        fixture
    }

    fn repository(&self) -> PathBuf {
        let path = self.folder.path().join(self.name);
        fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap()
    }

    fn study_folder(&self) -> PathBuf {
        self.repository().join("services/api")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.repository().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, words: &[&str]) -> String {
        git_in(&self.repository(), words)
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    fn places(&self) -> Places {
        let cache = Some(self.folder.path().join("cache"));
        Places { cache, temporary: "/tmp".into(), memory: None, user: 0, process: 1 }
    }

    fn race(&self, range: &str) -> Result<(Study, Checkouts), String> {
        let study = file::load(&self.study_folder()).unwrap();
        revisions(study, &range.parse().unwrap(), &[], &self.places(), &mut |_| ())
            .map_err(|error| error.to_string())
    }

    /// What the two revisions serve, and their names.
    fn served(&self, range: &str) -> Vec<(String, String)> {
        let (study, _checkouts) = self.race(range).unwrap();
        let served = |one: &Contender| fs::read_to_string(one.folder.join("serve")).unwrap();
        study.contenders.iter().map(|one| (one.name.get_ref().clone(), served(one))).collect()
    }
}

fn git_in(folder: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
    let output = Command::new("git").arg("-C").arg(folder).args(who).args(words).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn names(served: &[(String, String)]) -> Vec<&str> {
    served.iter().map(|(name, _)| name.split('@').next().unwrap()).collect()
}

fn texts(served: &[(String, String)]) -> Vec<&str> {
    served.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn ranges_are_written_as_for_git_diff() {
    let parsed = |text: &str| text.parse::<GitRange>().map(|one| (one.base, one.head, one.since));
    assert_eq!(parsed("main"), Ok(("main".into(), None, true)));
    assert_eq!(parsed("a..b"), Ok(("a".into(), Some("b".into()), false)));
    assert_eq!(parsed("a..."), Ok(("a".into(), Some("HEAD".into()), true)));
    assert_eq!(parsed("..b"), Ok(("HEAD".into(), Some("b".into()), false)));
    for wrong in ["", " ", "-x", "a..-x", "a..b..c", "a....b"] {
        assert!(parsed(wrong).is_err(), "{wrong:?}");
    }
    for text in ["main", "a..b", "a...b"] {
        assert_eq!(text.parse::<GitRange>().unwrap().to_string(), text);
    }
}

#[test]
fn two_commits_become_two_contenders_at_paths_of_equal_length() {
    let fixture = Fixture::new();
    fixture.git(&["tag", "v1"]);
    fixture.write("services/api/app/serve", "two");
    fixture.commit("Serve two");
    let (study, checkouts) = fixture.race("v1..main").unwrap();
    let [base, head] = &study.contenders[..] else { panic!("two contenders") };
    let head_commit = fixture.git(&["rev-parse", "HEAD"]);
    assert_eq!(*head.name.get_ref(), format!("main@{}", &head_commit[..7]));
    let revision = head.revision.clone().unwrap();
    assert_eq!((revision.commit, revision.subject.as_str()), (head_commit, "Serve two"));
    assert_eq!((revision.contender.as_str(), revision.build.as_deref()), ("api", Some("./make")));
    assert!(base.folder.ends_with("tree/services/api/app"), "{}", base.folder.display());
    assert_eq!(base.folder.as_os_str().len(), head.folder.as_os_str().len());
    assert_eq!(revision.folder, revision.checkout.join("tree/services/api"));
    assert!(revision.checkout.join("work").is_dir());
    drop(checkouts);
    assert!(!revision.checkout.exists(), "it is removed at the end");
    assert_eq!(texts(&fixture.served("v1..main")), ["one", "two"]);
}

#[test]
fn the_working_tree_is_raced_as_it_is_and_left_alone() {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "--quiet", "-b", "feature"]);
    fixture.write("services/api/app/serve", "changed");
    fixture.write("services/api/app/new", "not yet added");
    fixture.write("services/api/app/ignored.log", "ignored");
    fixture.write("services/api/work/generated", "of deadheat");
    fixture.write("deadheat-records/x.jsonl", "of deadheat");
    let before = (fixture.git(&["status", "--porcelain"]), fixture.git(&["count-objects"]));
    let (study, _checkouts) = fixture.race("main").unwrap();
    let head = &study.contenders[1];
    assert_eq!(head.name.get_ref(), "working-tree");
    let has = |file: &str| head.folder.join(file).exists();
    assert!(has("new") && !has("ignored.log") && !has("../work/generated"));
    assert!(!head.revision.as_ref().unwrap().checkout.join("tree/deadheat-records").exists());
    assert_eq!(fs::read_to_string(head.folder.join("serve")).unwrap(), "changed");
    assert_eq!(fs::read_to_string(study.contenders[0].folder.join("serve")).unwrap(), "one");
    assert_eq!((fixture.git(&["status", "--porcelain"]), fixture.git(&["count-objects"])), before);
}

/// `work` and `deadheat-records` are ordinary names: what git tracks there belongs to the user.
#[test]
fn tracked_files_in_deadheats_own_folders_are_raced_as_they_are() {
    let fixture = Fixture::new();
    let files = ["work/lib.js", "services/api/work/lib.js", "deadheat-records/notes.md"];
    files.iter().for_each(|file| fixture.write(file, "before"));
    fixture.commit("a library");
    files.iter().for_each(|file| fixture.write(file, "after"));
    fixture.write("work/new.js", "new");
    let (study, _checkouts) = fixture.race("main").unwrap();
    let tree = study.contenders[1].revision.as_ref().unwrap().checkout.join("tree");
    for file in files {
        assert_eq!(fs::read_to_string(tree.join(file)).unwrap(), "after", "{file}");
    }
    assert_eq!(fs::read_to_string(tree.join("work/new.js")).unwrap(), "new");
}

/// The folder for deadheat's own files may be a link, to a place in the repository or outside.
#[test]
fn neither_a_linked_work_folder_nor_what_it_leads_to_is_raced() {
    for place in ["repository/generated", "elsewhere"] {
        let fixture = Fixture::new();
        let target = fixture.folder.path().join(place);
        fs::create_dir_all(&target).unwrap();
        fs::write(target.join("data.db"), "of deadheat").unwrap();
        std::os::unix::fs::symlink(&target, fixture.study_folder().join("work")).unwrap();
        let error = fixture.race("main").unwrap_err();
        assert!(error.contains("have the same files"), "{place}: {error}");
    }
}

#[test]
fn a_repository_may_have_any_path() {
    for name in ["a:b", "\"a:\\b\"", "#a"] {
        let fixture = Fixture::named(name);
        fixture.write("services/api/app/serve", "changed");
        assert_eq!(texts(&fixture.served("main")), ["one", "changed"], "{name}");
    }
}

#[test]
fn objects_of_uncommitted_changes_are_as_old_as_their_last_use() {
    let fixture = Fixture::new();
    fixture.write("services/api/app/serve", "changed");
    let objects = fixture.race("main").unwrap().1.objects();
    let age = || fs::metadata(&objects).unwrap().modified().unwrap().elapsed().unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let set = |past: Duration| {
        fs::File::open(&objects).unwrap().set_modified(SystemTime::now() - past).unwrap();
    };
    set(13 * day);
    assert!(age() > 12 * day);
    fixture.race("main").unwrap();
    assert!(age() < day, "they are in use");
    set(15 * day);
    assert!(remove_leftovers(&fixture.places()).is_empty() && !objects.exists(), "nobody uses them");
}

#[test]
fn one_revision_means_since_the_branches_parted() {
    let fixture = Fixture::new();
    fixture.git(&["checkout", "--quiet", "-b", "feature"]);
    fixture.write("services/api/app/serve", "feature");
    fixture.commit("feature");
    fixture.git(&["checkout", "--quiet", "main"]);
    fixture.write("services/api/app/serve", "main has moved");
    fixture.commit("moved");
    fixture.git(&["checkout", "--quiet", "feature"]);
    let served = fixture.served("main");
    assert_eq!((texts(&served), names(&served)), (vec!["one", "feature"], vec!["main", "HEAD"]));
    assert_eq!(texts(&fixture.served("main...feature")), ["one", "feature"]);
    assert_eq!(texts(&fixture.served("main..feature")), ["main has moved", "feature"]);
}

#[test]
fn a_build_is_kept_for_the_next_race_and_old_ones_go() {
    let fixture = Fixture::new();
    let kept = |range: &str| {
        let (study, checkouts) = fixture.race(range).unwrap();
        let builds = study.contenders.iter().filter(|one| one.build.is_some()).count();
        for one in &study.contenders {
            let revision = one.revision.as_ref().unwrap();
            fs::write(one.folder.join("built"), &revision.commit).unwrap();
            let kept = checkouts.keep(&revision.checkout).unwrap();
            assert_eq!(
                fs::read_to_string(kept.join("tree/services/api/app/built")).unwrap(),
                revision.commit
            );
        }
        builds
    };
    fixture.write("services/api/app/serve", "two");
    fixture.commit("two");
    assert_eq!(kept("HEAD~1..HEAD"), 2, "both are built");
    assert_eq!(kept("HEAD~1..HEAD"), 0, "both are restored");
    fixture.write("services/api/app/serve", "three");
    fixture.commit("three");
    assert_eq!(kept("HEAD~1..HEAD"), 1, "one is new");
}

/// With one name for both, both sides would run the image that was made last.
#[test]
fn each_revision_has_an_image_of_its_own() {
    let fixture = Fixture::new();
    let study =
        STUDY.replace("command = \"exec ./serve\"", "containerfile = \"Containerfile\"\nengine = \"podman\"");
    fixture.write("services/api/study.toml", &study);
    fixture.write("services/api/Containerfile", "FROM scratch");
    fixture.commit("two");
    fixture.write("services/api/app/serve", "three");
    fixture.commit("three");
    let race = || {
        let (study, checkouts) = fixture.race("HEAD~1..HEAD").unwrap();
        for (one, word) in study.contenders.iter().zip(["base", "head"]) {
            let revision = one.revision.as_ref().unwrap();
            let name = format!("'localhost/deadheat-api-api-{word}'");
            assert!(one.command.get_ref().ends_with(&name), "{}", one.command.get_ref());
            let build = one.build.as_ref().unwrap().get_ref();
            let file = revision.checkout.join("tree/services/api/Containerfile");
            let wanted = format!("podman build --quiet --tag {name} --file '{}' .", file.display());
            assert!(build.ends_with(&wanted), "{build}");
            checkouts.keep(&revision.checkout).unwrap();
        }
        study.contenders.into_iter().map(|one| one.build.unwrap().into_inner()).collect::<Vec<_>>()
    };
    assert!(race().iter().all(|build| build.contains("./make")));
    assert!(race().iter().all(|build| !build.contains("./make")), "only the image is made again");
}

#[test]
fn a_build_that_reads_the_dataset_is_made_again_when_the_dataset_changes() {
    let fixture = Fixture::new();
    let dataset = "[dataset]\ncommand = \"cp seed {output}\"\ninputs = [\"seed\"]\noutput = \"data\"\n";
    let study = |build: &str| format!("{}\n{dataset}", STUDY.replace("./make", build));
    fixture.write("services/api/seed", "1");
    fixture.write("services/api/app/serve", "two");
    fixture.commit("two");
    let builds = || {
        let (study, checkouts) = fixture.race("HEAD~1..HEAD").unwrap();
        for one in &study.contenders {
            checkouts.keep(&one.revision.as_ref().unwrap().checkout).unwrap();
        }
        study.contenders.iter().filter(|one| one.build.is_some()).count()
    };
    for (build, again) in [("./make", 0), ("./make {dataset}", 2), ("./make $DATASET", 2)] {
        fixture.write("services/api/study.toml", &study(build));
        fixture.write("services/api/seed", "1");
        assert_eq!((builds(), builds()), (2, 0), "{build}");
        fixture.write("services/api/seed", "2");
        assert_eq!((builds(), builds()), (again, 0), "{build}");
    }
}

#[test]
fn what_a_killed_race_left_is_named_and_removed() {
    let fixture = Fixture::new();
    fixture.write("services/api/app/serve", "two");
    fixture.commit("two");
    let (study, checkouts) = fixture.race("HEAD~1..HEAD").unwrap();
    let left: Vec<PathBuf> =
        study.contenders.iter().map(|one| one.revision.as_ref().unwrap().checkout.clone()).collect();
    assert!(remove_leftovers(&fixture.places()).is_empty(), "the race still runs");
    let again = fixture.race("HEAD~1..HEAD").unwrap_err();
    assert!(again.contains("another race of revisions"), "{again}");
    checkouts.forget();
    let findings = remove_leftovers(&fixture.places());
    assert_eq!(findings.len(), 2, "{findings:?}");
    for path in left {
        assert!(
            !path.exists() && findings.iter().any(|one| one.message.contains(&path.display().to_string()))
        );
    }
    assert!(fixture.race("HEAD~1..HEAD").is_ok());
}

#[test]
fn submodules_are_checked_out_or_refused() {
    let fixture = Fixture::new();
    let library = fixture.folder.path().join("library");
    fs::create_dir_all(&library).unwrap();
    git_in(&library, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(library.join("code"), "old").unwrap();
    git_in(&library, &["add", "--all"]);
    git_in(&library, &["commit", "--quiet", "-m", "old"]);
    fixture.git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "services/api/app/library"]);
    fixture.commit("with a library");
    let (study, checkouts) = {
        fixture.write("services/api/app/serve", "two");
        fixture.race("HEAD").unwrap()
    };
    for one in &study.contenders {
        assert_eq!(fs::read_to_string(one.folder.join("library/code")).unwrap(), "old");
    }
    drop(checkouts);

    fixture.write("services/api/app/library/code", "changed");
    let refused = fixture.race("HEAD").unwrap_err();
    assert!(refused.contains("services/api/app/library of the working tree has changes"), "{refused}");
    fixture.git(&["submodule", "--quiet", "deinit", "--force", "--all"]);
    let refused = fixture.race("HEAD").unwrap_err();
    assert!(
        refused.contains("is not checked out here") && refused.contains("git submodule update"),
        "{refused}"
    );
}

#[test]
fn what_cannot_be_raced_is_told() {
    let fixture = Fixture::new();
    fixture.git(&["commit", "--quiet", "--allow-empty", "-m", "nothing"]);
    fixture.git(&["checkout", "--quiet", "--orphan", "alone"]);
    fixture.commit("alone");
    fixture.git(&["checkout", "--quiet", "main"]);
    for (range, part) in [
        ("nowhere", "there is no revision `nowhere`"),
        ("main..nowhere", "there is no revision `nowhere`"),
        ("HEAD~1..HEAD", "have the same files"),
        ("main", "have the same files"),
        ("main...alone", "no common ancestor"),
    ] {
        let error = fixture.race(range).unwrap_err();
        assert!(error.contains(part) && error.contains("\n  "), "{range}: {error}");
    }
    fixture.git(&["mv", "services/api/app", "services/api/elsewhere"]);
    fixture.commit("moved");
    fixture.write("services/api/app/serve", "");
    let error = fixture.race("HEAD").unwrap_err();
    assert!(error.contains("has no folder services/api/app"), "{error}");

    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("study.toml"), STUDY.replace("folder = \"app\"\n", "")).unwrap();
    let study = file::load(outside.path()).unwrap();
    let range = "main".parse().unwrap();
    let error = revisions(study, &range, &[], &fixture.places(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("is in no git repository"), "{error}");
}

#[test]
fn a_pointer_of_large_file_storage_is_no_content() {
    let fixture = Fixture::new();
    fixture.write("services/api/app/.gitattributes", "*.bin filter=lfs -text\n");
    fixture.write(
        "services/api/app/data.bin",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    );
    fixture.git(&["-c", "filter.lfs.clean=cat", "-c", "filter.lfs.required=false", "add", "--all"]);
    fixture.git(&["-c", "filter.lfs.clean=cat", "commit", "--quiet", "-m", "large"]);
    fixture.write("services/api/app/serve", "two");
    let error = fixture.race("HEAD").unwrap_err();
    assert!(error.contains("data.bin") && error.contains("pointer of Git LFS"), "{error}");
}

#[test]
fn a_partial_clone_without_the_contents_is_refused() {
    let fixture = Fixture::new();
    fixture.write("services/api/app/serve", "two");
    fixture.commit("two");
    fixture.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = fixture.folder.path().join("clone");
    let source = format!("file://{}", fixture.repository().display());
    git_in(
        fixture.folder.path(),
        &["clone", "--quiet", "--filter=blob:none", &source, clone.to_str().unwrap()],
    );
    let study = file::load(&clone.join("services/api")).unwrap();
    let range = "HEAD~1..HEAD".parse().unwrap();
    let error = revisions(study, &range, &[], &fixture.places(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("services/api/app/serve") && error.contains("partial clone"), "{error}");
}

#[test]
fn a_repository_in_the_working_tree_is_not_taken_for_its_files() {
    let fixture = Fixture::new();
    fixture.write("services/api/app/serve", "two");
    fixture.write("services/api/app/nested/code", "of its own");
    let nested = fixture.repository().join("services/api/app/nested");
    git_in(&nested, &["init", "--quiet", "--initial-branch=main"]);
    git_in(&nested, &["add", "--all"]);
    git_in(&nested, &["commit", "--quiet", "-m", "own"]);
    let error = fixture.race("HEAD").unwrap_err();
    assert!(
        error.contains("services/api/app/nested") && error.contains("a repository of its own"),
        "{error}"
    );
}

#[test]
fn a_contender_with_a_port_of_its_own_is_refused() {
    let fixture = Fixture::new();
    fixture.write("services/api/study.toml", &STUDY.replace("[[probe]]", "port = 8081\n[[probe]]"));
    fixture.commit("a port");
    let error = fixture.race("HEAD~1..HEAD").unwrap_err();
    assert!(
        error.contains("always listens on port 8081") && error.contains("from PORT or {port}"),
        "{error}"
    );
}
