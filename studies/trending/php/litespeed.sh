#!/usr/bin/env bash
# Contender `php-litespeed`: see studies/php/litespeed.sh. `--version` tells what it runs.
here=$(cd "$(dirname "$0")" && pwd -P)
exec "$here/../../php/litespeed.sh" "$here" TRENDING_DB "$@"
