//! Rules of this repository: which crate may depend on which, and which files may use `unsafe`.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Each crate, with the crates of this workspace that it may depend on.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([
        ("stats", vec![]),
        ("load", vec![]),
        ("record", vec![]),
        ("analysis", vec!["record", "stats"]),
        ("host", vec!["load", "record"]),
        ("remote", vec!["host", "load"]),
        ("study", vec!["host", "load", "record"]),
        ("runner", vec!["analysis", "host", "load", "record", "stats"]),
        ("report", vec!["analysis", "record"]),
        ("cli", vec!["analysis", "host", "load", "record", "remote", "report", "runner", "stats", "study"]),
        ("testkit", vec![]),
    ])
}

#[test]
fn crates_depend_only_where_the_architecture_allows() {
    let crates: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        crates,
        allowed().keys().map(|name| (*name).to_owned()).collect(),
        "ARCHITECTURE.md lists the crates"
    );
    for (name, allowed) in allowed() {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = manifest.get(section).and_then(toml::Value::as_table) else { continue };
            for ours in table.keys().filter_map(|key| key.strip_prefix("deadheat-")) {
                let fine = allowed.contains(&ours) || (section == "dev-dependencies" && ours == "testkit");
                assert!(fine, "crates/{name} may not have deadheat-{ours} among its {section}");
            }
        }
    }
}

/// Every Rust file in `crates` and `studies`, except in folders that git ignores.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("studies")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !matches!(name.as_str(), "node_modules" | "target" | "work") {
                folders.push(path);
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 80, "the files are looked for in the wrong place");
    found
}

/// The files that may use `unsafe`. They call io_uring, whose crate leaves memory safety to its callers, and unshare(2), whose crate does the same for
/// flags that deadheat does not use.
const UNSAFE: [&str; 4] = [
    "crates/host/src/link/namespace.rs",
    "crates/load/src/driver/buffers.rs",
    "crates/load/src/driver/uring.rs",
    "crates/load/src/null/uring.rs",
];

#[test]
fn files_say_what_they_own_and_none_but_a_few_is_unsafe() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{}: a file opens with what it owns", path.display());
        let blocks =
            ["{", "fn", "impl", "extern", "trait"].map(|word| format!("{} {word}", concat!("un", "safe")));
        let found = blocks.iter().find(|block| text.contains(block.as_str()));
        let may = UNSAFE.iter().any(|file| path.ends_with(file));
        assert_eq!(found.is_some(), may, "{}: {found:?}", path.display());
        // Each use of `unsafe` has a comment that explains why it is sound.
        let uses = text.matches(blocks[0].as_str()).count();
        assert!(text.matches("// SAFETY:").count() >= uses, "{}: SAFETY missing", path.display());
    }
}

/// Examples in comments are tests, except in crates that say that they have none.
#[test]
fn no_example_in_a_comment_goes_untested() {
    let mut silent = 0;
    for name in allowed().keys() {
        let folder = root().join("crates").join(name);
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let tested = manifest.get("lib").and_then(|lib| lib.get("doctest")?.as_bool());
        if tested != Some(false) {
            continue;
        }
        silent += 1;
        for path in sources().iter().filter(|path| path.starts_with(folder.join("src"))) {
            let text = fs::read_to_string(path).unwrap();
            let comments = text.lines().map(str::trim_start);
            let fences = comments.filter(|line| line.starts_with("/// ```") || line.starts_with("//! ```"));
            let untested = fences.step_by(2).find(|fence| !fence.ends_with("```text"));
            assert_eq!(untested, None, "{}: remove `doctest = false` from its Cargo.toml", path.display());
        }
    }
    assert!(silent > 0);
}

#[test]
fn the_readme_names_only_commands_that_there_are() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets = readme
        .lines()
        .filter_map(|line| line.trim().strip_prefix("make "))
        .map(|rest| rest.split_whitespace().next().unwrap().to_owned());
    let targets: Vec<String> = targets.collect();
    assert!(targets.contains(&"race".to_owned()) && targets.contains(&"test".to_owned()));
    for target in targets {
        assert!(makefile.contains(&format!("\n{target}:")), "the Makefile has no {target}");
    }
}

/// If a crate has one test program for all its test files, cargo does not run a file that the program does not name.
#[test]
fn every_file_of_tests_is_run() {
    for name in allowed().keys() {
        let folder = root().join("crates").join(name);
        let manifest: toml::Table = fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        if manifest["package"].get("autotests").and_then(toml::Value::as_bool) != Some(false) {
            continue;
        }
        let programs = manifest["test"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap());
        let programs: Vec<&str> = programs.filter_map(|path| path.strip_prefix("tests/")).collect();
        let texts: String = programs
            .iter()
            .map(|path| fs::read_to_string(folder.join("tests").join(path)).unwrap())
            .collect();
        for entry in fs::read_dir(folder.join("tests")).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let Some(module) = file.strip_suffix(".rs") else { continue };
            let named =
                texts.contains(&format!("\nmod {module};\n")) || texts.contains(&format!("\"{file}\""));
            assert!(
                named || programs.contains(&file.as_str()),
                "crates/{name}/tests/{file} is in no test program"
            );
        }
    }
}
