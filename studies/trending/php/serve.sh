#!/usr/bin/env bash
# Contender `php`: see studies/php/serve.sh. `--version` tells what it runs.
here=$(cd "$(dirname "$0")" && pwd -P)
exec "$here/../../php/serve.sh" "$here" TRENDING_DB "$@"
