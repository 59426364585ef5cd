#!/usr/bin/env bash
# Builds deadheat from the repository that this script is in, unless the program is there already, and prints its path.
#
#   ci/install.sh FOLDER      the program becomes FOLDER/bin/deadheat
#   ci/install.sh --key       print a word that changes when the source does, for the key of a cache
#
# It needs cargo, with rustup or in the version that rust-toolchain.toml names.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
    --key)
        cd "$root"
        find Cargo.toml Cargo.lock rust-toolchain.toml crates -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c -16
        exit
        ;;
    '' | -*)
        echo 'usage: ci/install.sh FOLDER, or ci/install.sh --key' >&2
        exit 2
        ;;
esac
if ! [ -x "$1/bin/deadheat" ]; then
    (cd "$root" && cargo install --locked --quiet --path crates/cli --root "$1") >&2
fi
echo "$1/bin/deadheat"
