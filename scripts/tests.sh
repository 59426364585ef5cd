#!/usr/bin/env bash
# Compiles everything with clippy's lints while the machine is set up, then runs all tests: those of single crates, of the page, and of the
# program. `make test` calls this. All tests run, also when one of them failed.
set -uo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Most tests mostly wait, so many run side by side.
export RUST_TEST_THREADS=$(($(nproc) + 22)) DEADHEAT_TEST_SERVER=$target/debug/deadheat-test-server

# What runs beside the rest, each a process group of its own. It ends with this script, however that ends.
beside=() niced= said=$(mktemp -d)
at_the_end() {
    for group in "${beside[@]}"; do kill -- "-$group" 2> /dev/null; done
    rm -r "$said"
    [ -z "$niced" ] || echo "$before" > /proc/self/autogroup
}
trap at_the_end EXIT

# Much of the set-up waits for downloads, so the compiler need not wait for it.
set -m
scripts/setup.sh > "$said/setup" 2>&1 < /dev/null &
setup=$!
set +m
beside=("$setup")

# Tests build native contenders of studies as a user does, but ask them only for answers, which do not depend on how they are compiled.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

# Clippy compiles as rustc does, so linting needs no pass of its own over all libraries. cargo shows old warnings again.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver
cargo test --workspace --locked --quiet --no-run --color always 2>&1 | tee "$said/compiled"
status=${PIPESTATUS[0]} warnings=$(grep -c 'warning' "$said/compiled")
if [ "$status" -ne 0 ] || [ "$warnings" -gt 0 ]; then
    echo 'warnings count as errors here: no test was run' >&2
    exit 1
fi

wait "$setup"
status=$?
beside=()
cat "$said/setup"
[ "$status" = 0 ] || exit "$status"

# A nice value counts only within a session, and a process that ends leaves its session's share of the processors (sched(7), "The
# autogroup feature"). At nice 19 it would then wait for seconds behind the session's other processes. So the session gets the same value.
if before=$(sed 's/.* //' /proc/self/autogroup 2> /dev/null) && [ "$(nice)" -gt "$before" ]; then
    niced=yes
    nice > /proc/self/autogroup
fi

failed=()
# Tests of the program mostly wait, those of the crates and the page compute. What runs beside the program's tests is shown when it is over.
set -m
web/test.sh > "$said/page" 2>&1 < /dev/null &
page=$!
# With `--exclude deadheat`, dependencies have fewer features, and half of the workspace would be compiled again.
names='import json, sys; print(*{t["name"] for p in json.load(sys.stdin)["packages"] for t in p["targets"] if t["kind"] == ["test"]} - {"program", "gates"})'
of_crates=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c "$names" | sed -E 's/(\S+)/--test \1/g')
# shellcheck disable=SC2086
(
    cargo test --workspace --locked --no-fail-fast --lib --bins $of_crates
    first=$?
    cargo test --workspace --locked --no-fail-fast --doc && exit $first
) > "$said/crates" 2>&1 < /dev/null &
crates=$!
python3 ci/test/run.py > "$said/kit" 2>&1 < /dev/null &
kit=$!
set +m
beside=("$page" "$crates" "$kit")
wait "$page" || failed+=("the page")
cat "$said/page"
# By its name and not with --package: with fewer packages, dependencies have fewer features and would be compiled again.
cargo test --workspace --locked --no-fail-fast --test program || failed+=("the program")
wait "$crates" || failed+=("the crates")
cat "$said/crates"
wait "$kit" || failed+=("the CI kit")
cat "$said/kit"
beside=()
# Alone, because these watch what else the machine does.
cargo test --workspace --locked --no-fail-fast --test gates || failed+=("the gates")
if [ ${#failed[@]} -gt 0 ]; then
    echo "tests failed: ${failed[*]}; what failed is named above" >&2
    exit 1
fi
