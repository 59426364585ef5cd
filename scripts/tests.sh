#!/usr/bin/env bash
# All tests, when everything is compiled: those of the page beside those of single crates, for neither uses all cores, and then those that
# race. `make test` calls this.
set -uo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RUST_TEST_THREADS=$(($(nproc) + 8)) DEADHEAT_TEST_SERVER=$target/debug/deadheat-test-server

page=$(mktemp)
trap 'rm -f "$page"' EXIT
web/test.sh >"$page" 2>&1 &
web=$!
failed=()
cargo test --workspace --exclude deadheat --locked || failed+=("the crates")
wait "$web" || failed+=("the page")
cat "$page"
cargo test --package deadheat --locked || failed+=("the program")
if [ ${#failed[@]} -gt 0 ]; then
    echo "tests failed: ${failed[*]}; what failed is named above" >&2
    exit 1
fi
