//! Checks the embedded report page against its source in `web/`, without Node: the page contains a digest of its source.
//! `web/test.sh` builds the page to check that this source produces it.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../assets/report.html");
/// The text before the digest in the page, and the text after it.
const META: (&str, &str) = ("<meta name=\"source\" content=\"", "\">");

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file of `web/` that the build reads, as listed in `web/build.mjs`.
fn sources() -> Vec<String> {
    let mut paths = ["build.mjs", "package-lock.json", "tsconfig.json"].map(str::to_owned).to_vec();
    let mut folders = vec!["src".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(web().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if [".ts", ".css", ".html"].iter().any(|end| path.ends_with(end)) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
}

#[test]
fn the_page_is_built_from_the_source_that_is_there() {
    let paths = sources();
    assert!(paths.len() > 20, "the source is looked for in the wrong place: {paths:?}");
    let line = |path: &String| format!("{}  {path}\n", hex(&fs::read(web().join(path)).unwrap()));
    let source = hex(paths.iter().map(line).collect::<String>().as_bytes());
    let named =
        PAGE.split_once(META.0).and_then(|(_, rest)| rest.split_once(META.1)).map(|(digest, _)| digest);
    assert_eq!(
        named,
        Some(source.as_str()),
        "crates/report/assets/report.html was built from another source than web/ has now: run `make web` and commit what it writes"
    );
}
