#!/usr/bin/env bash
# All tests, when everything is compiled: those of single crates, of the page, and of the program. `make test` calls this. All run, also
# when one of them failed.
set -uo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Most tests mostly wait, so many run side by side.
export RUST_TEST_THREADS=$(($(nproc) + 14)) DEADHEAT_TEST_SERVER=$target/debug/deadheat-test-server

# A nice value counts only within a session, and a process that ends leaves its session's share of the processors (sched(7), "The
# autogroup feature"). At nice 19 it would then wait for seconds behind the session's other processes. So the session gets the same value.
if before=$(sed 's/.* //' /proc/self/autogroup 2> /dev/null) && [ "$(nice)" -gt "$before" ]; then
    trap 'echo "$before" > /proc/self/autogroup' EXIT
    nice > /proc/self/autogroup
fi

failed=()
# The page keeps the processors busy, and the crates mostly wait. What the page's tests say is shown when they are over.
page=$(mktemp)
web/test.sh > "$page" 2>&1 &
page_runs=$!
cargo test --workspace --exclude deadheat --locked --no-fail-fast || failed+=("the crates")
wait "$page_runs" || failed+=("the page")
cat "$page"
rm "$page"
cargo test --package deadheat --locked --no-fail-fast || failed+=("the program")
if [ ${#failed[@]} -gt 0 ]; then
    echo "tests failed: ${failed[*]}; what failed is named above" >&2
    exit 1
fi
