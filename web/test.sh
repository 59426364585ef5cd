#!/usr/bin/env bash
# Checks that the committed page is what its source gives, then opens pages of made-up records in Chromium.
#
#   web/test.sh      after `cargo build`; the program is target/debug/deadheat, or what DEADHEAT names
#
# Exit status: 0 also when nothing could be run for want of npm's packages or of Chromium (with DEADHEAT_NO_SKIP=1 that is
# a failure); scripts/setup.sh installs both.
set -euo pipefail
cd "$(dirname "$0")"
if ! [ -d node_modules/esbuild ]; then
    echo "web: SKIPPED: its npm packages are not here; scripts/setup.sh installs them" >&2
    [ "${DEADHEAT_NO_SKIP:-0}" != 1 ]
    exit
fi
npm run --silent check
CHROMIUM=${CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium || true)}
export CHROMIUM
if ! [ -x "$CHROMIUM" ]; then
    echo "web: SKIPPED: the page is current, but there is no Chromium to test it in; install chromium-headless-shell" >&2
    [ "${DEADHEAT_NO_SKIP:-0}" != 1 ]
    exit
fi
npm run --silent test
