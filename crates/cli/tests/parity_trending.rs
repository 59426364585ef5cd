//! Checks the wrong versions that the article published against the real contract of `studies/trending`.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use deadheat_testkit::{Kit, skip_loudly};

const DEVIATIONS: [(&str, &str, &str); 4] = [
    ("hex-token", "de-24", "$.token"),
    ("no-cache-header", "de-24", "header cache-control"),
    ("no-default-region", "", "$.region"),
    ("limit-over-50-is-24", "limit-51", "$.count"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A study with the probes and scenarios of the real contract. Its contenders are the correct version and each wrong one.
fn study(node: &Path) -> String {
    let real: toml::Table =
        std::fs::read_to_string(root().join("studies/trending/study.toml")).unwrap().parse().unwrap();
    let script = root().join("crates/cli/tests/fixtures/deviant/deviant.mjs");
    let contender = |deviation: &str| {
        toml::Table::from_iter([
            ("name".to_owned(), deviation.into()),
            ("command".to_owned(), format!("exec '{}' '{}'", node.display(), script.display()).into()),
            (
                "env".to_owned(),
                toml::Table::from_iter([
                    ("DEVIATION".to_owned(), deviation.into()),
                    ("TRENDING_DB".to_owned(), "{dataset}".into()),
                ])
                .into(),
            ),
        ])
    };
    let names = ["none", "none-again"].into_iter().chain(DEVIATIONS.iter().map(|(name, ..)| *name));
    let contenders: Vec<toml::Value> = names
        .map(|name| {
            let mut one = contender(name.trim_end_matches("-again"));
            one.insert("name".into(), name.into());
            one.into()
        })
        .collect();
    let mut study = toml::Table::new();
    for key in ["dataset", "probe"] {
        study.insert(key.into(), real[key].clone());
    }
    // Scenarios in which contenders measure themselves are left out: parity covers only answers to requests.
    let is_load = |scenario: &&toml::Value| scenario.get("measure").is_none();
    let scenarios: Vec<toml::Value> =
        real["scenario"].as_array().unwrap().iter().filter(is_load).cloned().collect();
    study.insert("scenario".into(), scenarios.into());
    study.insert("contender".into(), contenders.into());
    toml::to_string(&study).unwrap()
}

#[test]
fn each_deviation_of_the_article_is_found() {
    let node = root().join("studies/trending/node_modules/.bin/node");
    if !node.exists() {
        skip_loudly!("{} is missing: run `make setup`", node.display());
    }
    let kit = Kit::new(env!("CARGO_BIN_EXE_deadheat"));
    kit.file("dataset.py", std::fs::read(root().join("studies/trending/dataset.py")).unwrap());
    kit.file("study.toml", study(&node));
    let outcome = kit.deadheat(["check", ".", "--ready-timeout", "150s"]).run();
    outcome.assert_status(1).assert_stdout_has("2 of 6 contenders meet the contract");
    let said = &outcome.stdout;
    for (name, probe, path) in DEVIATIONS {
        let begin = said.find(name).unwrap_or_else(|| panic!("{name} is not named:\n{said}"));
        let rest = &said[begin..];
        assert!(rest.contains(probe) && rest.contains(path), "{name}: {probe} {path} is missing:\n{said}");
    }
    kit.assert_nothing_left();
}
