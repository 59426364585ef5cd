# shellcheck shell=bash
# What the servers of studies/php have in common; each sources it with its own arguments. Owns: the study's names, the private
# folder, what a shell that was killed left of its own, the end of the children. It knows no server.
#
# Gives: here, variable, study, workers, as_root, children (their numbers go in there), and the functions below.

here=$(cd "$1" && pwd -P)
variable=$2
study=$(basename "$(dirname "$here")")
# shellcheck disable=SC2034 # read by those who source this
workers=${PHP_WORKERS:-4}
as_root=
# shellcheck disable=SC2034
if [ "$(id -u)" = 0 ]; then as_root=yes; fi
children=()

# private_folder NAME [WORK]: makes `run`, below WORK or else among the temporary ones, and sets `database`. It goes when this shell ends.
private_folder() {
    local name=$1 work=${2:+$(realpath -m "$2")} temporary=${TMPDIR:-/tmp} left lefts
    : "${PORT:?the port to serve on}" "${!variable:?$variable is the path of the dataset}"
    # shellcheck disable=SC2034
    database=$(realpath "${!variable}")

    # The folder's name ends with the number of this shell. One whose shell was killed outright could not be removed then, and is now.
    lefts=("$temporary/$study-$name."*)
    if [ -n "$work" ]; then lefts+=("$work/$name"-*); fi
    for left in "${lefts[@]}"; do
        if [[ -d $left && -O $left && ! -e /proc/${left##*-} ]]; then rm -rf "$left"; fi
    done

    # A socket's path has at most 107 bytes: too deep a work folder is not used.
    run=${work:+$work/$name-$PORT-$$}
    if [ -z "$run" ] || [ ${#run} -gt 90 ]; then
        run=$(mktemp -d --suffix="-$$" "$temporary/$study-$name.XXXXXX")
    fi
    mkdir -p "$run/tmp"
    chmod 700 "$run"
    trap stop EXIT
    trap 'exit 0' TERM INT HUP
}

stop() {
    trap - TERM INT HUP EXIT
    # One at a time, since one of them may have ended by itself.
    # Those of the shell: one that was started a moment ago is not among `children` yet, and would be waited for without an end.
    for child in $(jobs -p); do kill -TERM "$child" 2>/dev/null || true; done
    wait || true
    rm -rf "$run"
}

# socket_of CHILD SOCKET: returns when it is there, or its owner is not. A server in front would answer with an error until then, and a
# start counts as finished with the first answer.
socket_of() {
    local _
    for _ in $(seq 200); do
        if [ -S "$2" ] || ! kill -0 "$1" 2>/dev/null; then break; fi
        sleep 0.01
    done
}
