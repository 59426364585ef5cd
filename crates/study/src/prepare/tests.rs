//! Tests of the preparation, with real commands in temporary folders.

use std::fs;
use std::path::Path;
use std::time::Duration;

use deadheat_record::Plan;

use super::*;
use crate::choices::Choices;
use crate::file;
use crate::plan::{Places, Purpose, Setting, Topology, resolve};

/// A study of two contenders in a temporary folder, with `parts` added.
struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("study.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }

    fn study(&self) -> Study {
        file::load(self.path()).unwrap_or_else(|error| panic!("{}", error.render(false)))
    }

    fn plan(&self, study: &Study) -> Plan {
        let places = Places { cache: None, temporary: "/tmp".into(), memory: None, user: 0, process: 1 };
        let topology = Topology::read(Path::new("/nowhere"), &[0, 1]);
        let setting =
            Setting { topology, places, seed: 1, cpu_latency_us: None, in_ci: false, load_from: None };
        resolve(study, &[], &Choices::default(), Purpose::Check, &setting).unwrap().plan
    }

    /// Progress lines, the plan and findings, or the error's message.
    fn prepare(&self) -> Result<(Vec<String>, Plan, Vec<Finding>), String> {
        let study = self.study();
        let mut plan = self.plan(&study);
        let mut lines = Vec::new();
        let run: RunCommand<'_> = &|name, command, limit| match command.run_within(limit) {
            Ok(status) => Ok(status.map_or(Ran::TooLong(limit), Ran::Ended)),
            Err(error) => Err(StartError::Spawn { name: name.into(), reason: error.to_string() }),
        };
        let prepared = prepare(&study, &mut plan, run, BUILD_LIMIT, &mut |line| lines.push(line.to_owned()));
        prepared
            .map(|prepared| (lines, plan, prepared.findings))
            .map_err(|error| error.to_string().replace(&self.path().display().to_string(), "STUDY"))
    }
}

const PROBE: &str = "[[probe]]\npath = \"/\"\n";

fn with_dataset(command: &str) -> String {
    let dataset = format!("[dataset]\ncommand = {command:?}\ninputs = [\"in\"]\noutput = \"data.db\"\n");
    format!("{dataset}[[contender]]\ncommand = \"true\"\n{PROBE}")
}

#[test]
fn the_dataset_is_made_once() {
    let fixture = Fixture::new(&with_dataset("cat in > {output}; echo x >> made"));
    fixture.write("in", "one");
    let (lines, plan, _) = fixture.prepare().unwrap();
    assert_eq!(lines, ["making the dataset data.db ..."]);
    let output = plan.dataset.unwrap();
    assert_eq!(output, fixture.path().join("work/data.db"));
    assert_eq!(fs::read_to_string(&output).unwrap(), "one");
    assert!(fixture.prepare().unwrap().0.is_empty(), "nothing has changed");

    fixture.write("in", "two");
    assert_eq!(fixture.prepare().unwrap().0.len(), 1, "an input has changed");
    assert_eq!(fs::read_to_string(&output).unwrap(), "two");

    fs::remove_file(&output).unwrap();
    assert_eq!(fixture.prepare().unwrap().0.len(), 1, "the output is gone");
    assert_eq!(fs::read_to_string(fixture.path().join("made")).unwrap(), "x\nx\nx\n");
}

#[test]
fn a_failed_dataset_leaves_the_old_one() {
    let fixture = Fixture::new(&with_dataset("cat in > {output}; echo no rows >&2; test $(cat in) = good"));
    fixture.write("in", "good");
    let output = fixture.prepare().unwrap().1.dataset.unwrap();
    fixture.write("in", "bad");
    let error = fixture.prepare().unwrap_err();
    assert!(error.starts_with("the dataset data.db failed: `cat in > STUDY/work/new-"), "{error}");
    assert!(
        error.contains(
            "ended with exit status 1\n  its last lines (STUDY/work/logs/dataset.log):\n    | no rows\n"
        ),
        "{error}"
    );
    assert!(error.ends_with("fix the command of [dataset] in STUDY/study.toml, then try again"), "{error}");
    assert_eq!(fs::read_to_string(output).unwrap(), "good");
    let left = fs::read_dir(fixture.path().join("work")).unwrap().count();
    assert_eq!(left, 4, "data.db, its key, the logs and .gitignore");
}

#[test]
fn a_command_that_writes_elsewhere_is_told() {
    let fixture = Fixture::new(&with_dataset("cat in > elsewhere"));
    fixture.write("in", "x");
    let error = fixture.prepare().unwrap_err();
    assert!(error.contains("succeeded, but did not write its output\n  it printed nothing"), "{error}");
    assert!(error.contains("{output}"), "{error}");
}

#[test]
fn stale_side_files_do_not_outlive_their_database() {
    let fixture = Fixture::new(&with_dataset("cp in {output}"));
    fixture.write("in", "1");
    fixture.prepare().unwrap();
    fixture.write("work/data.db-wal", "old");
    fixture.write("in", "2");
    fixture.prepare().unwrap();
    assert!(!fixture.path().join("work/data.db-wal").exists());
}

#[test]
fn builds_run_in_the_contenders_folder_with_its_environment() {
    let contender = "[[contender]]\ncommand = \"true\"\nbuild = \"echo $A $WORK > built\"\n\
                     env = { A = \"{study}\", B = \"{port}\" }\nfolder = \"sub\"\n";
    let fixture = Fixture::new(&format!("{contender}{PROBE}"));
    fs::create_dir(fixture.path().join("sub")).unwrap();
    assert_eq!(fixture.prepare().unwrap().0, ["building true ..."]);
    let here = fixture.path().display();
    let built = fs::read_to_string(fixture.path().join("sub/built")).unwrap();
    assert_eq!(built, format!("{here} {here}/work\n"));
}

#[test]
fn a_failed_build_ends_it() {
    let contender = "[[contender]]\ncommand = \"true\"\nbuild = \"echo '\\u001b[31mno compiler'; exit 3\"\n";
    let error = Fixture::new(&format!("{contender}{PROBE}")).prepare().unwrap_err();
    assert!(
        error.contains("the build of true failed:") && error.contains("ended with exit status 3"),
        "{error}"
    );
    assert!(error.contains("| \u{fffd}[31mno compiler\n"), "{error}");
}

#[test]
fn versions_are_first_lines() {
    let contender = |name: &str, version: &str| {
        format!("[[contender]]\nname = \"{name}\"\ncommand = \"true\"\nversion = \"{version}\"\n")
    };
    let good = contender("good", "echo; echo v1.2; echo more");
    let bad = contender("bad", "exit 7");
    let (_, plan, findings) = Fixture::new(&format!("{good}{bad}{PROBE}")).prepare().unwrap();
    let versions: Vec<_> = plan.contenders.iter().map(|contender| contender.version.as_deref()).collect();
    assert_eq!(versions, [Some("v1.2"), None]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].contender.as_deref(), Some("bad"));
    assert_eq!(findings[0].message, "the version of bad is not known: `exit 7` ended with exit status 7");
}

#[test]
fn a_version_command_has_a_limit() {
    let contender = "[[contender]]\ncommand = \"true\"\nversion = \"sleep 60\"\n";
    let fixture = Fixture::new(&format!("{contender}{PROBE}"));
    let study = fixture.study();
    let plan = fixture.plan(&study);
    make_work(&plan.work).unwrap();
    let asked = version::ask("sleep 60", &plan.contenders[0], &plan, Duration::from_millis(50));
    assert_eq!(asked, Err("`sleep 60` took over 0.05 s".into()));
}

/// The changed versions (name, old, new), and the progress lines about versions that could not be found out.
fn asked_again(fixture: &Fixture, plan: &Plan, out: &[String]) -> (Vec<[String; 3]>, Vec<String>) {
    let mut lines = Vec::new();
    let mut tell = |line: &str| lines.push(line.to_owned());
    let changed = changed_versions(&fixture.study(), plan, out, &mut tell).unwrap();
    (changed.into_iter().map(|one| [one.name, one.then, one.now]).collect(), lines)
}

#[test]
fn versions_that_are_others_by_now_are_told() {
    let contender = |name: &str, command: &str, version: &str| {
        let env = "env = { V = \"{study}/v\" }\n";
        format!("[[contender]]\nname = \"{name}\"\ncommand = \"{command}\"\nversion = \"{version}\"\n{env}")
    };
    let text = |command: &str| {
        let [a, b] = ["a", "b"].map(|name| contender(name, command, "cat $V"));
        let [c, d] = [("c", "echo 3"), ("d", "cat w")].map(|(name, asked)| contender(name, "true", asked));
        format!("{a}{b}{c}{d}{PROBE}")
    };
    let fixture = Fixture::new(&text("true"));
    fixture.write("v", "1.0\n");
    fixture.write("w", "5\n");
    let plan = fixture.prepare().unwrap().1;
    assert_eq!(asked_again(&fixture, &plan, &[]), (Vec::new(), Vec::new()));

    fixture.write("v", "2.0\n");
    fs::remove_file(fixture.path().join("w")).unwrap();
    let out = ["b".to_owned()];
    let (changed, lines) = asked_again(&fixture, &plan, &out);
    assert_eq!(changed, [["a", "1.0", "2.0"].map(str::to_owned)]);
    assert_eq!(
        lines,
        ["note: deadheat cannot check whether d still has version 5: `cat w` ended with exit status 1"]
    );

    fixture.write("study.toml", &text("false"));
    let (changed, lines) = asked_again(&fixture, &plan, &out);
    assert!(changed.is_empty(), "of another command it is the version of another program: {changed:?}");
    let said = "note: deadheat cannot check whether a still has version 1.0: the study now starts it with another command";
    assert_eq!(lines[0], said);
}

#[test]
fn who_lacks_something_is_left_out() {
    let contender = |name: &str, needs: &str| {
        format!("[[contender]]\nname = \"{name}\"\ncommand = \"true\"\nneeds = [{needs}]\n")
    };
    let text = [
        contender("whole", "{ file = \"study.toml\" }, { program = \"sh\" }, { program = \"./here.sh\" }"),
        contender(
            "fileless",
            "{ file = \"none\", remedy = \"make none\" }, { file = \"no\", remedy = \"make none\" }",
        ),
        contender(
            "programless",
            "{ program = \"no-such-program\" }, { program = \"./plain\", remedy = \"chmod +x plain\" }",
        ),
    ];
    let fixture = Fixture::new(&format!("{}{PROBE}", text.concat()));
    fixture.write("plain", "");
    fixture.write("here.sh", "");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(fixture.path().join("here.sh"), executable).unwrap();
    let skipped = missing(&fixture.study(), Some("/usr/bin:/bin".as_ref()));
    let here = fixture.path().display();
    let told: Vec<String> =
        skipped.iter().map(|skipped| format!("{}: {}", skipped.name, skipped.why())).collect();
    assert_eq!(
        told,
        [
            format!("fileless: there is no {here}/none; there is no {here}/no: make none"),
            "programless: the program `no-such-program` is not in PATH; the program `./plain` is not in PATH: \
             install `no-such-program` and add its folder to PATH; chmod +x plain"
                .to_owned(),
        ]
    );
    assert_eq!(skipped[0].finding().code, "skipped");
}
