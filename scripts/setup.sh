#!/usr/bin/env bash
# Prepares a machine to build, test and race: system packages, Rust, and what the studies' contenders need.
#
#   scripts/setup.sh             asks for nothing, may be run again at any time, and is quick when there is nothing to do
#   scripts/setup.sh packages    only the system packages and Rust: all that building deadheat needs
#
# System packages are installed on Debian and Ubuntu, as root or by sudo without a password; on other systems the table
# at the end names what to install by hand. Exit status: 0 when deadheat can be built and tested, even if contenders
# are missing; 1 when a C compiler, make, Python 3 or cargo is missing; 2 for an unknown argument.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
studies=(trending metadata hello compiled ssr node-frameworks)
work=$(mktemp -d)
missing=$work/missing # rows of the closing table: what is missing, and what that costs
log=$work/log
essential_missing=
policy= # the policy-rc.d that must go when we end
# What rustup installs goes before an older cargo of the system, here as in the Makefile.
PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:/usr/local/go/bin:/usr/local/sbin:/usr/sbin

main() {
    trap clean_up EXIT
    trap 'exit 130' INT TERM
    case "$*" in
    '' | packages) ;;
    *)
        echo "setup: \`$*\` is not known; the only argument is \`packages\`" >&2
        exit 2
        ;;
    esac
    install_packages
    check_essentials
    if [ "${1:-}" != packages ]; then
        link_php
        link_mariadb
        # Side by side: they wait for downloads most of the time.
        beside install_npm_packages install_web_packages
        beside build_go_contenders build_plants install_go_client
        beside install_httpx
        wait
    fi
    report
}

# Runs these functions one after the other, beside what follows, with a log and a process group of their own.
beside() {
    set -m
    (
        log=$(mktemp -p "$work")
        for step in "$@"; do "$step"; done
    ) </dev/null &
    set +m
}

say() { printf 'setup: %-16s %s\n' "$1" "$2"; }
lacks() { printf '%-16s %s\n' "$1" "$2" >>"$missing"; }
has() { command -v "$1" >/dev/null 2>&1; }
newest() { compgen -c "$1" | grep -xE "$1[0-9.]*" | sort -V | tail -n 1; }

clean_up() {
    local group
    # npm does not always end for a mere TERM.
    for group in $(jobs -p); do kill -KILL -- "-$group"; done 2>/dev/null
    rm -rf "$work"
    if [ -n "$policy" ]; then
        as_root rm -f /usr/sbin/policy-rc.d
        if [ "$policy" = displaced ]; then as_root mv /usr/sbin/policy-rc.d.before-setup /usr/sbin/policy-rc.d; fi
    fi
}

# ---------------------------------------------------------------------------------------------- system packages

# PHP can do its part: the interpreter behind nginx, with SQLite by PDO.
php_is_ready() {
    local fpm
    fpm=$(newest php-fpm)
    # Not by `| grep -q`, which may end before all is written: with pipefail that would count as a failure.
    [ -n "$fpm" ] && [[ $'\n'$("$fpm" -m 2>/dev/null)$'\n' == *$'\n'pdo_sqlite$'\n'* ]]
}

go_is_ready() {
    local version
    version=$(go env GOVERSION 2>/dev/null | sed 's/^go//')
    [ -n "$version" ] && [ "$(printf '%s\n1.21\n' "$version" | sort -V | head -n 1)" = 1.21 ]
}

cargo_is_ready() {
    local version
    version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
    [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$version" "$rust" | sort -V | head -n 1)" = "$rust" ]
}

# Names on standard output the packages that would give what this machine has not.
wanted_packages() {
    has cc || echo gcc libc6-dev
    has c++ || echo g++
    has make || echo make
    has python3 || echo python3
    has curl || echo curl ca-certificates
    has git || echo git
    has ip || echo iproute2
    has ssh || echo openssh-client
    has sshd || echo openssh-server
    has podman || echo podman
    has dockerd || echo docker.io
    has runc || echo runc
    has wg || echo wireguard-tools
    has wireguard-go || echo wireguard-go
    cargo_is_ready || has rustup || echo rustup
    php_is_ready || echo php-fpm php-sqlite3
    has nginx || echo nginx
    has mariadbd || echo mariadb-server
    has sqlite3 || echo sqlite3
    has wrk || echo wrk
    has npm || echo nodejs npm
    python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
    python3 -c 'import yaml' 2>/dev/null || echo python3-yaml
    has chromium-headless-shell || echo chromium-headless-shell
    go_is_ready || echo golang-go
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_packages() {
    local packages package
    read -r -d '' -a packages < <(wanted_packages) || true
    if [ ${#packages[@]} = 0 ]; then
        say "system packages" ready
        return
    fi
    if ! has apt-get; then
        say "system packages" "no apt-get here: install by hand what the table names"
        return
    fi
    if ! as_root true 2>/dev/null; then
        say "system packages" "neither root nor sudo without a password: run \`sudo apt-get install ${packages[*]}\`"
        return
    fi
    hold_services
    as_root apt-get update -qq >"$log" 2>&1
    # One by one if not together: a package that this release does not have must not keep the others away.
    local refused=()
    apt_install "${packages[@]}" || for package in "${packages[@]}"; do apt_install "$package" || refused+=("$package"); done
    disable_services "${packages[@]}"
    if [ ${#refused[@]} -gt 0 ]; then
        say "system packages" "installed: ${packages[*]}; refused: ${refused[*]}"
    else
        say "system packages" "installed: ${packages[*]}"
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1
}

# Packages of services start them when they are installed. A policy that forbids it stands until we end.
hold_services() {
    if [ -e /usr/sbin/policy-rc.d ]; then
        as_root mv /usr/sbin/policy-rc.d /usr/sbin/policy-rc.d.before-setup && policy=displaced
    else
        policy=made
    fi
    printf '#!/bin/sh\nexit 101\n' | as_root tee /usr/sbin/policy-rc.d >/dev/null
    as_root chmod 755 /usr/sbin/policy-rc.d
}

# The services that came with what we just installed are not to start with the machine either.
disable_services() {
    has systemctl || return 0
    local unit package
    for package in "$@"; do
        case $package in
        nginx) as_root systemctl --quiet disable nginx.service >"$log" 2>&1 ;;
        docker.io) as_root systemctl --quiet disable docker.service docker.socket containerd.service >"$log" 2>&1 ;;
        mariadb-server) as_root systemctl --quiet disable mariadb.service >"$log" 2>&1 ;;
        openssh-server) as_root systemctl --quiet disable ssh.service ssh.socket >"$log" 2>&1 ;;
        php-fpm)
            for unit in /lib/systemd/system/php*-fpm.service; do
                as_root systemctl --quiet disable "${unit##*/}" >"$log" 2>&1
            done
            ;;
        esac
    done
    return 0
}

# ------------------------------------------------------------------------------------------------- what must be

check_essentials() {
    local tool
    for tool in cc make python3; do
        has "$tool" && continue
        essential_missing=yes
        lacks "$tool" "nothing can be built: install it with the system's packages"
    done
    has c++ || lacks c++ "the parsers are not fuzzed"
    has wrk || lacks wrk "the generator is not compared with wrk"
    has ip || lacks iproute2 "hosts for tests cannot be made, and what needs them is skipped"
    has ssh || lacks openssh-client "hosts for tests cannot be made, and what needs them is skipped"
    has sshd || lacks openssh-server "hosts for tests cannot be made, and what needs them is skipped"
    has podman || lacks podman "contenders in containers are not tested"
    has dockerd || lacks docker.io "contenders in containers of Docker are not tested"
    has chromium-headless-shell || lacks chromium-headless-shell "the report page is not tested in a browser"
    # Older releases of Debian and Ubuntu have no package of rustup, and a cargo that is too old.
    if ! cargo_is_ready && ! has rustup && has curl; then
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o "$work/rustup-init" 2>"$log" \
            && sh "$work/rustup-init" -y -q --profile minimal --default-toolchain none >"$log" 2>&1
    fi
    # A rustup without a toolchain has no working cargo; rust-toolchain.toml says which one it fetches.
    if has rustup && ! cargo_is_ready; then
        rustup toolchain install >"$log" 2>&1
    fi
    if cargo_is_ready; then
        say rust "$(cargo --version | cut -d' ' -f1,2)"
    else
        essential_missing=yes
        say rust "no cargo of version $rust or later"
        lacks cargo "nothing can be built: install rustup as https://rustup.rs says, then run this again"
    fi
}

# ------------------------------------------------------------------------------ clients that an audit measures

# The articles' load generators, written anew: nothing but an audit needs them.
install_httpx() {
    local clients=bench/clients venv=bench/clients/venv sum
    sum=$(cksum <$clients/requirements.txt)
    if [ "$(cat $venv/.installed 2>/dev/null)" = "$sum" ] ||
        { python3 -m venv --clear $venv && $venv/bin/pip install -q -r $clients/requirements.txt &&
            echo "$sum" >$venv/.installed; } >"$log" 2>&1; then
        say httpx "$($venv/bin/python -c 'import httpx; print(httpx.__version__)')"
    else
        rm -rf $venv
        say httpx "not installed: $(grep -m 1 -v '^$' "$log")"
        lacks httpx "an audit does not measure the articles' Python client"
    fi
}

install_go_client() {
    if go_is_ready && (cd bench/clients/go && go build -buildvcs=false -trimpath -o ../bin/http-load .) >"$log" 2>&1; then
        say "go client" ready
    else
        lacks go "an audit does not measure the articles' Go client"
    fi
}

# ----------------------------------------------------------------------------------- the studies' contenders

# Links with one name for every version, also for users whose PATH has no sbin.
link_php() {
    local study name target found=yes
    for study in studies/trending studies/metadata; do
        mkdir -p $study/php/bin
        for name in php-fpm nginx; do
            target=$(newest $name)
            if [ -n "$target" ] && { [ $name = nginx ] || php_is_ready; }; then
                ln -sfn "$(command -v "$target")" "$study/php/bin/$name"
            else
                rm -f "$study/php/bin/$name"
                found=
            fi
        done
    done
    if [ -n "$found" ]; then
        say php "$(studies/trending/php/serve.sh --version)"
    else
        say php "not ready"
        lacks "php-fpm, nginx" "the contender php is skipped"
    fi
}

# The study starts a server of its own, with its own data; the system's is never touched.
link_mariadb() {
    local folder=studies/ssr/mariadb/bin name found=yes
    mkdir -p $folder
    for name in mariadbd mariadb mariadb-install-db; do
        if has $name; then
            ln -sfn "$(command -v $name)" "$folder/$name"
        else
            rm -f "$folder/$name"
            found=
        fi
    done
    if [ -n "$found" ]; then
        say mariadb "$($folder/mariadbd --version | sed 's/.*Ver \([^ ]*\).*/\1/')"
    else
        say mariadb "not ready"
        lacks mariadb-server "the contenders of ssr are skipped"
    fi
}

# Installs what the lock file of a folder names. A download that stalls is waited for by npm without an end; begun anew it goes on with
# what is missing. What it says goes to the log.
npm_ci() {
    local status
    for _ in 1 2 3; do
        (cd "$1" && timeout --foreground 300 npm ci --loglevel=error --no-progress) >"$log" 2>&1 && return
        status=$?
        if [ "$status" != 124 ]; then return "$status"; fi
        echo "npm ci stalled in $1" >"$log"
    done
    return 124
}

install_npm_packages() {
    local study versions
    if ! has npm; then
        say npm "not here"
        lacks npm "the contenders bun, deno and node are skipped"
        return
    fi
    for study in "${studies[@]}"; do install_npm_packages_of "$study"; done
    npm_versions "studies/${studies[0]}/node_modules/.bin"
    say "npm packages" "$versions"
}

# What builds and tests the report page.
install_web_packages() {
    local stamp=web/node_modules/.installed sum
    sum=$(cd web && cksum package.json package-lock.json .npmrc)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
        if ! has npm; then
            lacks npm "the report page cannot be built or tested"
            return
        fi
        npm_ci web || {
            say web "npm ci failed: $(grep -m 1 -v '^$' "$log")"
            lacks "packages of web" "the report page cannot be built or tested"
            return
        }
        echo "$sum" >"$stamp"
    fi
    say web ready
}

# Reinstalled when the lock file or the list of packages changed, or when no runtime is there.
install_npm_packages_of() {
    local study=studies/$1 bin=studies/$1/node_modules/.bin stamp=studies/$1/node_modules/.installed sum
    sum=$(cd $study && cksum package.json package-lock.json .npmrc)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$sum" ] && { [ -x "$bin/bun" ] || [ -x "$bin/node" ]; }; then return; fi
    # better-sqlite3 asks for a newer Node than many a system has; the one installed beside it is what runs it.
    npm_ci "$study" || {
        say npm "npm ci failed in $study: $(grep -m 1 -v '^$' "$log")"
        lacks "npm: $1" "its contenders on bun, deno and node are skipped"
        return
    }
    link_deno "$study" "$bin"
    echo "$sum" >"$stamp"
}

# The package of the platform is used by itself, without the installer around it; so it has no link of its own.
link_deno() {
    local deno
    for deno in "$1"/node_modules/@deno/*/deno; do
        if [ -x "$deno" ]; then ln -sfn "../${deno#"$1/node_modules/"}" "$2/deno"; fi
    done
}

# Sets `versions`; a runtime that has no package for this machine, or does not run on it, goes to the table.
npm_versions() {
    local tool found
    versions=
    for tool in bun deno node; do
        if found=$("$1/$tool" --version 2>/dev/null); then
            found=${found%%$'\n'*}
            found=${found#deno }
            found=${found#v}
            versions+="${versions:+, }$tool ${found%% *}"
        else
            lacks "$tool" "its contenders are skipped: no package of it runs on this machine"
        fi
    done
}

# Built before each race as well; here, so that what is missing is told now and modules are fetched.
build_go_contenders() {
    local study
    if ! go_is_ready; then
        say go "1.21 or newer is not here"
        lacks "go 1.21+" "the contender go is skipped"
        return
    fi
    for study in trending metadata hello; do
        (cd studies/$study/go && CGO_ENABLED=1 go build -buildvcs=false -trimpath -tags sqlite_fts5 -o bin/$study-go .) \
            >"$log" 2>&1 && continue
        say go "the build of $study failed: $(tail -n 1 "$log")"
        lacks "go: $study" "its contender go is skipped"
    done
    say go "$(go env GOVERSION)"
}

# The server in Go of races whose right answer is defined beforehand.
build_plants() {
    go_is_ready || return
    if ! (cd bench/plants/go && CGO_ENABLED=1 go build -buildvcs=false -trimpath -tags sqlite_fts5 -o ../bin/plants-go .) >"$log" 2>&1; then
        say plants "the build failed: $(tail -n 1 "$log")"
        lacks "go: plants" "the servers of bench/plants are not tested"
    fi
}

# ------------------------------------------------------------------------------------------------------ the end

report() {
    if [ -s "$missing" ]; then
        printf '\n%-16s %s\n' missing "what that costs"
        cat "$missing"
    fi
    [ -z "$essential_missing" ]
}

main "$@"
