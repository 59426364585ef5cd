#!/usr/bin/env bash
# Builds deadheat from the repository that this script is in, unless the program is there already, and prints its path.
#
#   ci/install.sh FOLDER      the program becomes FOLDER/KEY/bin/deadheat
#   ci/install.sh --key       print KEY: a word that changes when the source or this system's C library does, for the key of a cache
#
# It needs cargo, with rustup or in the version that rust-toolchain.toml names.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
key() {
    cd "$root"
    {
        find Cargo.toml Cargo.lock rust-toolchain.toml crates -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        # A program that was built with a newer C library does not run with an older one.
        getconf GNU_LIBC_VERSION 2> /dev/null || true
    } | sha256sum | cut -c -16
}
case ${1:-} in
    --key)
        key
        exit
        ;;
    '' | -*)
        echo 'usage: ci/install.sh FOLDER, or ci/install.sh --key' >&2
        exit 2
        ;;
esac
folder=$(realpath -m "$1")/$(key)
# A cache may hold a program that does not run here.
if ! "$folder/bin/deadheat" --version > /dev/null 2>&1; then
    (cd "$root" && cargo install --locked --quiet --force --path crates/cli --root "$folder") >&2
fi
echo "$folder/bin/deadheat"
