//! Records that the studies keep in `studies/NAME/kept/`. Each one must be small, every command must still read it, and the pages must
//! show what the program writes about it.
//!
//! The pages are the study's `README.md`, its page in the book, and the project's `README.md`. The Markdown of `kept/RACE.jsonl.gz`,
//! without its title, is between `<!-- table: begin RACE -->` and `<!-- table: end -->`. A study with one record can omit RACE, and
//! `begin RACE SCENARIO...` shows only these scenarios. The project's `README.md` writes `STUDY/RACE` and shows a shorter table.
//!
//! `kept/audit.json` is the study's audit, made from one of these records, and `docs/src/audits/NAME.md` shows it.
//! `UPDATE_TABLES=1` writes the tables and the audit pages.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use deadheat_testkit::Kit;

const MOST_BYTES: u64 = 1_200_000;
/// The study's audit, which is not a record.
const AUDIT: &str = "audit.json";
const ENDINGS: [&str; 4] = [".jsonl.gz", ".jsonl", ".json.gz", ".json"];
/// The start of a block whose study keeps no record.
const NONE_YET: &str = "Not raced yet";
const END: &str = "<!-- table: end -->";
const AUDITS: &str = "deadheat audit studies/NAME --record studies/NAME/kept/RACE.jsonl.gz --json studies/NAME/kept/audit.json";
const MEND: &str = "UPDATE_TABLES=1 cargo test -p deadheat --test program kept";
const EXAMPLE: &str = include_str!("../../record/tests/fixtures/example.json");

fn kit() -> Kit {
    Kit::new(env!("CARGO_BIN_EXE_deadheat"))
}

/// A kept record, and the name that blocks use for it.
struct Kept {
    name: String,
    path: PathBuf,
}

/// A page with its lines. On this page, each record name of the study begins with `prefix`.
struct Page {
    path: PathBuf,
    prefix: String,
    lines: Vec<String>,
}

/// A block of a page: the record that it names, its scenarios (empty: all), and the range of lines between its marks.
struct Block {
    name: Option<String>,
    scenarios: Vec<String>,
    from: usize,
    to: usize,
}

impl Page {
    fn read((path, prefix): (PathBuf, String)) -> Option<Self> {
        let lines = fs::read_to_string(&path).ok()?.lines().map(str::to_owned).collect();
        Some(Self { path, prefix, lines })
    }

    /// The blocks from last to first, so that replacing one does not move those that follow.
    fn blocks(&self) -> Vec<Block> {
        let begins = self.lines.iter().enumerate().filter_map(|(at, line)| {
            let mark = line.trim().strip_prefix("<!-- table: begin")?.strip_suffix("-->")?;
            let mut words = mark.split_whitespace().map(str::to_owned);
            let (name, scenarios) = (words.next(), words.collect());
            let name = match name {
                Some(name) => Some(name.strip_prefix(&self.prefix)?.to_owned()),
                None if self.prefix.is_empty() => None,
                None => return None,
            };
            let length = self.lines[at..].iter().position(|line| line.trim() == END);
            let to = at
                + length.unwrap_or_else(|| panic!("{}:{}: a table has no end", self.path.display(), at + 1));
            Some(Block { name, scenarios, from: at + 1, to })
        });
        let mut blocks: Vec<Block> = begins.collect();
        blocks.reverse();
        blocks
    }

    fn shown(&self, block: &Block) -> String {
        self.lines[block.from..block.to].join("\n")
    }
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Lists every fault in the studies' pages below `root`. With `update`, it first writes the tables.
fn wrong(root: &Path, update: bool) -> Vec<String> {
    let studies = sorted(&root.join("studies")).into_iter().filter(|path| path.join("study.toml").exists());
    let studies: Vec<PathBuf> = studies.collect();
    let mut wrong: Vec<String> = studies.iter().flat_map(|study| wrong_with(root, study, update)).collect();
    let page = Page::read((root.join("README.md"), String::new()));
    let known = |block: &Block| {
        let name = block.name.as_deref().unwrap_or_default();
        studies.iter().any(|study| name.split_once('/').is_some_and(|(one, _)| study.ends_with(one)))
    };
    for (page, block) in
        page.iter().flat_map(|page| page.blocks().into_iter().map(move |block| (page, block)))
    {
        if !known(&block) {
            let place = format!("{}:{}", page.path.display(), block.from);
            wrong.push(format!("{place}: whose table? write <!-- table: begin STUDY/RACE -->"));
        }
    }
    wrong
}

fn wrong_with(root: &Path, study: &Path, update: bool) -> Vec<String> {
    let (mut wrong, mut records) = (Vec::new(), Vec::new());
    for path in sorted(&study.join("kept")).into_iter().filter(|path| !path.ends_with(AUDIT)) {
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        match ENDINGS.iter().find_map(|ending| file.strip_suffix(ending)) {
            Some(name) => records.push(Kept { name: name.to_owned(), path }),
            None => {
                wrong.push(format!("{}: not a record; they end in {}", path.display(), ENDINGS.join(", ")))
            }
        }
    }
    let name = study.file_name().unwrap().to_str().unwrap();
    let own = [study.join("README.md"), root.join("docs/src/studies").join(format!("{name}.md"))];
    let places = own.map(|path| (path, String::new())).into_iter();
    let places = places.chain([(root.join("README.md"), format!("{name}/"))]);
    let mut pages: Vec<Page> = places.filter_map(Page::read).collect();
    let mut seen = vec![false; records.len()];
    for page in &mut pages {
        for block in page.blocks() {
            let place = format!("{}:{}", page.path.display(), block.from);
            match record_of(&block, &records, &page.shown(&block)) {
                Err(problem) => wrong.push(format!("{place}: {problem}")),
                Ok(None) => {}
                Ok(Some(at)) => {
                    seen[at] = true;
                    let path = records[at].path.display();
                    let whole = table(&records[at], &block.scenarios);
                    match if page.prefix.is_empty() { whole } else { whole.map(|text| in_short(&text)) } {
                        Err(problem) => wrong.push(format!("{place}: {problem}")),
                        Ok(table) if update => {
                            drop(page.lines.splice(block.from..block.to, table.lines().map(str::to_owned)));
                            fs::write(&page.path, page.lines.join("\n") + "\n").unwrap();
                        }
                        Ok(table) if page.shown(&block) == table => {}
                        Ok(_) => wrong.push(format!(
                            "{place}: not what the program writes of {path}; {MEND} writes it"
                        )),
                    }
                }
            }
        }
    }
    for (record, seen) in records.iter().zip(seen) {
        let path = record.path.display();
        if !seen {
            wrong.push(format!(
                "{path}: no page shows it; write <!-- table: begin {} --> and {END}",
                record.name
            ));
        }
        if fs::metadata(&record.path).unwrap().len() > MOST_BYTES {
            wrong.push(format!("{path}: over {MOST_BYTES} bytes; keep fewer scenarios (CONTRIBUTING.md)"));
        }
    }
    wrong
}

/// The record that a block shows, or `None` if its study keeps none and the block starts with [`NONE_YET`].
fn record_of(block: &Block, records: &[Kept], shown: &str) -> Result<Option<usize>, String> {
    match (&block.name, records) {
        (Some(name), _) => {
            let at = records.iter().position(|record| record.name == *name);
            at.map(Some).ok_or_else(|| format!("no record {name} is kept; keep one, or take its table away"))
        }
        (None, []) if shown.starts_with(NONE_YET) => Ok(None),
        (None, []) => Err("a table without a record; keep one, or say that there is none".into()),
        (None, [_]) => Ok(Some(0)),
        (None, _) => Err("several records are kept; name one of them".into()),
    }
}

/// The Markdown, without its title, that a page must show for these scenarios of a record (empty: all).
fn table(record: &Kept, scenarios: &[String]) -> Result<String, String> {
    let (kit, mut path) = (kit(), record.path.clone());
    if !scenarios.is_empty() {
        let whole = deadheat_record::read(&record.path).map_err(|error| error.to_string())?;
        let names: Vec<&str> = whole.plan.scenarios.iter().map(|one| one.name.as_str()).collect();
        if let Some(other) = scenarios.iter().find(|one| !names.contains(&one.as_str())) {
            return Err(format!("{} has no scenario {other}; it has {}", path.display(), names.join(", ")));
        }
        let asked: Vec<&str> = scenarios.iter().map(String::as_str).collect();
        path = kit.file("part.jsonl.gz", whole.only(&asked).packed().unwrap());
    }
    let outcome = kit.deadheat(["report", path.to_str().unwrap(), "--markdown", "-"]).run();
    if outcome.status() != Some(0) {
        return Err(format!("{}: deadheat report: {}", record.path.display(), outcome.stderr));
    }
    let (_, rest) = outcome.stdout.split_once('\n').unwrap_or_default();
    Ok(rest.trim().to_owned())
}

/// The part above the folded details, and the footer that says where and when the measurement took place.
fn in_short(table: &str) -> String {
    let before =
        table.lines().take_while(|line| !line.starts_with("<details>") && !line.starts_with("<sub>"));
    let foot = table.lines().filter(|line| line.starts_with("<sub>"));
    before.chain(foot).collect::<Vec<_>>().join("\n")
}

fn read_in_every_way(record: &Path) -> Result<(), String> {
    let (kit, path) = (kit(), record.to_str().unwrap());
    let run = |arguments: &[&str]| {
        let outcome = kit.deadheat(arguments).run();
        if outcome.status() == Some(0) {
            Ok(outcome.stdout)
        } else {
            Err(format!("{path}: deadheat {}: {}", arguments[0], outcome.stderr))
        }
    };
    run(&["report", path])?;
    run(&[
        "report",
        path,
        "--html",
        "page.html",
        "--svg",
        "figures",
        "--csv",
        "tables",
        "--markdown",
        "x.md",
    ])?;
    // deadheat refuses to compare a record with itself, and exits with 3.
    let twice = kit.deadheat(["compare", path, path]).run();
    if twice.status() != Some(3) || !twice.stdout.contains("invalid same-record") {
        return Err(format!("{path}: deadheat compare: {}{}", twice.stdout, twice.stderr));
    }
    let figures = sorted(&kit.path().join("figures"));
    if !kit.read("page.html").contains("id=\"document\">{\"schema\":") || figures.len() < 4 {
        return Err(format!("{path}: its page or its figures are missing: {figures:?}"));
    }
    Ok(())
}

#[test]
fn pages_show_what_the_program_writes_of_kept_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let update = std::env::var_os("UPDATE_TABLES").is_some();
    let found = wrong(&root, update);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn kept_records_are_read_in_every_way() {
    let records = shipped().into_iter().flat_map(|study| sorted(&study.join("kept")));
    let found: Vec<String> = records
        .filter(|path| !path.ends_with(AUDIT))
        .filter_map(|path| read_in_every_way(&path).err())
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let studies = sorted(&root.join("studies"));
    studies.into_iter().filter(|path| path.join("study.toml").exists()).collect()
}

#[test]
fn every_study_that_ships_keeps_what_it_found() {
    let studies = shipped();
    assert_eq!(studies.len(), 6);
    for study in studies {
        let kept = sorted(&study.join("kept"));
        assert!(kept.iter().any(|path| !path.ends_with(AUDIT)), "{}: no record is kept", study.display());
    }
}

/// The book shows the whole kept audit, and auditing the kept record again gives the same results.
#[test]
fn the_book_shows_the_audit_of_every_study() {
    for study in shipped() {
        let name = study.file_name().unwrap().to_str().unwrap();
        let kept = deadheat_record::read_audit(&study.join("kept").join(AUDIT)).unwrap();
        let page = study.join("../../docs/src/audits").join(format!("{name}.md"));
        let text = deadheat_report::audit::markdown(&kept);
        if std::env::var_os("UPDATE_TABLES").is_some() {
            fs::create_dir_all(page.parent().unwrap()).unwrap();
            fs::write(&page, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&page).unwrap_or_default() == text,
            "{name}.md is another one; {MEND} writes it"
        );
        let record = study.join("../..").join(kept.record.as_ref().unwrap());
        assert!(record.starts_with(study.join("../../studies")), "{name}: made of {}", record.display());
        let [study, record] = [&study, &record].map(|path| path.to_str().unwrap());
        let again =
            kit().deadheat(["audit", study, "--record", record, "--no-generators", "--json", "-"]).run();
        let again: deadheat_record::AuditRecord = serde_json::from_str(&again.stdout).unwrap();
        let part = |one: &deadheat_record::AuditRecord| serde_json::json!({ "claims": one.claims, "checks": one.checks, "here": one.here });
        assert!(part(&again) == part(&kept), "{name}: the study or the program has changed since; {AUDITS}");
    }
}

/// A temporary study. The shipped studies may have no records yet, and these tests also need pages with faults.
struct Shelf {
    kit: Kit,
}

impl Shelf {
    fn new() -> Self {
        let shelf = Self { kit: kit() };
        shelf.kit.file("studies/one/study.toml", "");
        shelf.kit.file("docs/src/studies/one.md", "# one\n");
        shelf.page("<!-- table: begin -->\nNot raced yet.\n<!-- table: end -->\n");
        shelf
    }

    fn page(&self, blocks: &str) {
        self.kit.file("studies/one/README.md", format!("# one\n\nBefore.\n\n{blocks}\nAfter.\n"));
    }

    fn readme(&self) -> String {
        self.kit.read("studies/one/README.md")
    }

    /// Asserts that there is exactly one fault, and that its message contains this text.
    fn assert_wrong(&self, message: &str) {
        let found = wrong(self.kit.path(), false);
        assert!(found.len() == 1 && found[0].contains(message), "not {message:?}: {found:#?}");
    }

    fn assert_fine(&self) {
        assert_eq!(wrong(self.kit.path(), false), Vec::<String>::new());
    }

    fn update(&self) {
        assert_eq!(wrong(self.kit.path(), true), Vec::<String>::new());
    }
}

/// The example in the form in which studies keep records: compressed with gzip.
fn packed() -> Vec<u8> {
    let kit = kit();
    let record = deadheat_record::read(&kit.file("race.json", EXAMPLE)).unwrap();
    record.only(&["closed-64"]).packed().unwrap()
}

#[test]
fn a_record_without_a_table_and_a_table_without_a_record_are_found() {
    let shelf = Shelf::new();
    shelf.assert_fine();
    shelf.page("<!-- table: begin -->\n| bun | 17,300 |\n<!-- table: end -->\n");
    shelf.assert_wrong("README.md:5: a table without a record");
    shelf.page("<!-- table: begin steady -->\nNot raced yet.\n<!-- table: end -->\n");
    shelf.assert_wrong("README.md:5: no record steady is kept");
    shelf.kit.file("studies/one/kept/steady.jsonl.gz", packed());
    shelf.assert_wrong("UPDATE_TABLES=1");
    shelf.page("<!-- table: begin steady closed-9 -->\n<!-- table: end -->\n");
    shelf.assert_wrong("has no scenario closed-9; it has closed-64");
    shelf.page("No table.\n");
    shelf.assert_wrong("steady.jsonl.gz: no page shows it");
}

#[test]
fn a_table_is_written_and_a_digit_that_was_changed_is_found() {
    let shelf = Shelf::new();
    shelf.kit.file("studies/one/kept/steady.jsonl.gz", packed());
    shelf.assert_wrong("UPDATE_TABLES=1");
    shelf.update();
    shelf.assert_fine();
    let readme = shelf.readme();
    assert!(readme.starts_with("# one\n\nBefore.\n\n<!-- table: begin -->\n### `closed-64`\n"), "{readme}");
    assert!(readme.ends_with("</details>\n<!-- table: end -->\n\nAfter.\n"), "{readme}");
    let changed = readme.replacen("| `bun` | 1", "| `bun` | 2", 1);
    assert_ne!(changed, readme);
    shelf.kit.file("studies/one/README.md", changed);
    shelf.assert_wrong("README.md:5: not what the program writes of");
    shelf.update();
    assert_eq!(shelf.readme(), readme);
    // The project's README may also show a record by its full name. The check covers that table and rejects unknown names.
    shelf.kit.file("README.md", "<!-- table: begin one/steady -->\n<!-- table: end -->\n");
    shelf.assert_wrong("README.md:1: not what the program writes of");
    shelf.update();
    shelf.assert_fine();
    let readme = shelf.kit.read("README.md");
    assert!(
        readme.contains("| `bun` | 17,") && readme.contains("<sub>") && !readme.contains("<details>"),
        "{readme}"
    );
    for other in ["two/steady", "steady", ""] {
        shelf.kit.file("README.md", format!("<!-- table: begin {other} -->\n<!-- table: end -->\n"));
        shelf.assert_wrong("README.md:1: whose table?");
    }
    shelf.kit.file("README.md", "");
    // The study's page in the book may show the record too.
    shelf.kit.file("docs/src/studies/one.md", "# one\n\n<!-- table: begin steady -->\n<!-- table: end -->\n");
    shelf.assert_wrong("one.md:3: not what the program writes of");
    shelf.update();
    shelf.assert_fine();
}

#[test]
fn several_records_are_named_and_what_is_no_small_record_is_found() {
    let shelf = Shelf::new();
    shelf.kit.file("studies/one/kept/steady.jsonl.gz", packed());
    shelf.kit.file("studies/one/kept/other.json", EXAMPLE);
    let found = wrong(shelf.kit.path(), false);
    assert!(found.len() == 3 && found[0].contains("name one of them"), "{found:#?}");
    let both = ["steady", "other"].map(|name| format!("<!-- table: begin {name} -->\n<!-- table: end -->\n"));
    shelf.page(&both.join("\n"));
    shelf.update();
    shelf.assert_fine();
    assert_eq!(shelf.readme().matches("### `closed-64`").count(), 2);
    shelf.kit.file("studies/one/kept/other.json", format!("{EXAMPLE}{}", " ".repeat(MOST_BYTES as usize)));
    shelf.assert_wrong(&format!("other.json: over {MOST_BYTES} bytes"));
    shelf.kit.file("studies/one/kept/other.json", &EXAMPLE[..EXAMPLE.len() / 2]);
    shelf.assert_wrong("other.json: deadheat report: ");
    shelf.kit.file("studies/one/kept/other.json", EXAMPLE);
    shelf.kit.file("studies/one/kept/notes.txt", "x");
    shelf.assert_wrong("notes.txt: not a record");
}
