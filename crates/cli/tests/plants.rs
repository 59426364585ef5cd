//! Runs the tests of `bench/plants`: races whose right answer is defined beforehand. Their table is complete, their servers answer alike.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use deadheat_testkit::skip_loudly;

#[test]
fn their_table_is_complete_and_their_servers_answer_alike() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for needed in ["studies/trending/node_modules/.bin/node", "bench/plants/bin/plants-go"] {
        if !root.join(needed).exists() {
            skip_loudly!("{needed} is missing: run `make setup`");
        }
    }
    // `-B`: no compiled files beside the sources.
    let tests =
        Command::new("python3").arg("-B").arg(root.join("bench/plants/test_plants.py")).output().unwrap();
    assert!(tests.status.success(), "{}", String::from_utf8_lossy(&tests.stderr));
}
