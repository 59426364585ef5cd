#!/usr/bin/env bash
# A race without a CI service, for cron or Jenkins: main as it was yesterday against main now. It prints the comment, and keeps record and page.
#
#   examples/nightly.sh REPOSITORY RESULTS
set -euo pipefail
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
repository=$1
results=$(realpath -m "$2")
cd "$repository"
git fetch --quiet origin main
head=$(git rev-parse FETCH_HEAD)
# Along main itself: a commit of a branch that was merged today may be older.
base=$(git rev-list -1 --first-parent --before='1 day ago' "$head")
if [ "$base" = "$head" ]; then
    echo 'main has not changed since yesterday'
    exit 0
fi
# One folder for each pair of revisions: the next call with the same pair continues its race.
folder=$results/$(git rev-parse --short "$base")-$(git rev-parse --short "$head")
status=0
DEADHEAT_BASE=$base DEADHEAT_HEAD=$head DEADHEAT_TIME=30m "$kit/race.sh" "$folder" bench --epochs=6..60 || status=$?
[ ! -e "$folder/comment.md" ] || cat "$folder/comment.md"
case $status in
    0) echo 'faster or equivalent' ;;
    1) echo 'slower: see race.html' ;;
    2) echo 'nothing was raced: see the message above' ;;
    3) echo 'no answer: the comment says why, and whether another call continues the race' ;;
esac
exit "$status"
