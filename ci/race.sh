#!/usr/bin/env bash
# Races, and writes what a CI job shows. Any CI system, or cron, can call it.
#
#   ci/race.sh DIR [ARGUMENT...]      the arguments are those of `deadheat race`: a study or commands, and options
#
# DIR gets race.jsonl (the record), race.html (the page), comment.md and conclusion.json. If DIR/race.jsonl exists, this script continues that race, or
# shows it if it is over: keep DIR between the attempts of one job, and nobody can repeat a race until its result is welcome. Without DEADHEAT_BASE, the
# record does not say which commit was raced: use a new DIR for each commit.
#
# Environment:
#   DEADHEAT            the program [default: deadheat]
#   DEADHEAT_BASE       race two revisions of the repository in this folder: this one is the baseline
#   DEADHEAT_HEAD       the other revision [default: HEAD]
#   DEADHEAT_TIME       pause after this time; the next attempt goes on [default: 10m]
#   DEADHEAT_FAIL_IF    one condition of --fail-if per line [default: slower by 3%]
#
# Exit status: 0 faster or equivalent; 1 a condition holds, or a contender could not be raced; 2 wrong usage or input; 3 the race does not answer the
# question (comment.md says why); 130 interrupted.
set -euo pipefail

if [ $# -lt 1 ] || [ "${1#-}" != "$1" ]; then
    echo 'usage: ci/race.sh DIR [ARGUMENT...]   (DIR: a folder for the results; arguments of `deadheat race`)' >&2
    exit 2
fi
dir=$1
shift
deadheat=${DEADHEAT:-deadheat}
command -v "$deadheat" > /dev/null || {
    echo "ci/race.sh: there is no program $deadheat; install deadheat, or name it in DEADHEAT" >&2
    exit 2
}
conditions=()
while IFS= read -r condition; do
    [ -z "$condition" ] || conditions+=(--fail-if "$condition")
done <<< "${DEADHEAT_FAIL_IF-slower by 3%}"
revisions=()
[ -z "${DEADHEAT_BASE:-}" ] || revisions=(--git "$DEADHEAT_BASE..${DEADHEAT_HEAD:-HEAD}")

mkdir -p "$dir"
# What an earlier attempt concluded must not pass for the result of this one.
rm -f "$dir/conclusion.json" "$dir/comment.md"
record=$dir/race.jsonl
# Tells whether this attempt adds to the record.
before=$(cksum "$record" 2> /dev/null || true)
status=0
"$deadheat" race "${revisions[@]}" "$@" --continue "$record" --pause-after "${DEADHEAT_TIME:-10m}" "${conditions[@]}" || status=$?
# Without a record, nothing was raced, and the message above says why.
[ -s "$record" ] || exit "$status"
case $status in
    0 | 1 | 3 | 130) ;;
    # A refusal, and the message above says why. The record of an earlier attempt does not answer for this one.
    *) [ "$(cksum "$record" 2> /dev/null || true)" != "$before" ] || exit "$status" ;;
esac
"$deadheat" report "$record" --html "$dir/race.html" --ci "$dir" "${conditions[@]}" || [ -s "$dir/conclusion.json" ] || exit 2
[ "$status" -ne 130 ] || exit 130
case $(sed -n 's/^ *"conclusion": "\([a-z]*\)",$/\1/p' "$dir/conclusion.json") in
    success) exit 0 ;;
    neutral) exit 3 ;;
    *) exit 1 ;;
esac
