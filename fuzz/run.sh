#!/usr/bin/env bash
# Fuzzes the parsers: the seeds first, then what libFuzzer makes of them.
#
#   fuzz/run.sh [SECONDS [TARGET...]]     each target for SECONDS (20); TARGETs: answer, frame, rate
#
# Works on the stable toolchain and without cargo-fuzz; libFuzzer itself needs a C++ compiler. What was found in earlier
# runs is kept in the build folder and used again. An input that breaks something is written to fuzz/artifacts/TARGET.
# Exit status: 0 when nothing was found, or nothing could be run for want of a C++ compiler (with DEADHEAT_NO_SKIP=1
# that is a failure); 1 otherwise.
set -euo pipefail
build=$(realpath -m "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}")/fuzz
cd "$(dirname "$0")"
seconds=${1:-20}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(answer frame rate)
host=$(rustc -vV | sed -n 's/^host: //p')

if ! command -v c++ >/dev/null; then
    echo "fuzz: SKIPPED: no C++ compiler here; install g++" >&2
    [ "${DEADHEAT_NO_SKIP:-0}" != 1 ]
    exit
fi

# The flags of cargo-fuzz without a sanitizer: there is no unsafe code to watch. Naming the target keeps them away from
# build scripts.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
RUSTFLAGS=$coverage cargo build --release --locked --quiet --target "$host" --target-dir "$build"

# Fuzzes one target, and says what came of it.
fuzz() {
    local target=$1 log=$build/$1.log runs
    mkdir -p "$build/corpus/$target" "artifacts/$target"
    if "$build/$host/release/$target" "$build/corpus/$target" "corpus/$target" -dict="$target.dict" \
        -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "fuzz: $target: nothing found in $runs runs, $(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
    else
        tail -n 40 "$log" >&2
        echo "fuzz: $target: FOUND something; the input is in fuzz/artifacts/$target" >&2
        return 1
    fi
}

# All targets side by side.
running=()
for target in "${targets[@]}"; do
    fuzz "$target" &
    running+=($!)
done
found=0
for one in "${running[@]}"; do wait "$one" || found=1; done
exit $found
