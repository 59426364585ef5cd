#!/usr/bin/env bash
# Contender `php-litespeed` of any study: OpenLiteSpeed with lsphp (LSAPI) and OPcache, both in the foreground, both ended with this shell.
# A study's own php/litespeed.sh calls it; the study is the folder above that of its index.php.
#
#   litespeed.sh STUDY/php VARIABLE              serve STUDY/php/index.php on 127.0.0.1:$PORT; the dataset's path is in VARIABLE
#   litespeed.sh STUDY/php VARIABLE --version    one line: the versions of both
#
# OpenLiteSpeed is looked for in $LSWS_HOME, or /usr/local/lsws. The one that is installed there is not touched: this one has a server
# root of its own, a private folder below $DEADHEAT_WORK (or a temporary one), which goes when they end.
set -euo pipefail

. "$(dirname "$0")/contender.sh"

home=${LSWS_HOME:-/usr/local/lsws}
lshttpd=$home/bin/lshttpd
lsphp=$home/fcgi-bin/lsphp
if [ ! -x "$lshttpd" ] || [ ! -x "$lsphp" ]; then
    echo "php/litespeed.sh: $lshttpd or $lsphp is missing: install OpenLiteSpeed with its lsphp" >&2
    exit 1
fi

if [ "${3:-}" = --version ]; then
    echo "$("$lsphp" -v | sed -n '1s/ (built.*//p') $("$lshttpd" -v | sed -n '1s/ (BUILD.*//p')"
    exit
fi

# Neither serves as root: then both are `nobody`, to whom the work folder may be closed.
as=()
user=$(id -un) group=$(id -gn)
if [ -n "$as_root" ]; then
    user=nobody group=$(id -gn nobody)
    as=(setpriv --reuid "$user" --regid "$group" --clear-groups)
    private_folder litespeed
else
    private_folder litespeed "${DEADHEAT_WORK:-}"
fi
for file in "$here/index.php" "$database"; do
    if ! "${as[@]}" test -r "$file"; then
        echo "php/litespeed.sh: $file cannot be read by user $user, who runs it" >&2
        exit 1
    fi
done

# Workers of lsphp have sessions of their own, and lshttpd starts a process for CGI: both are known by their parent alone, while it lives.
stop() {
    trap - TERM INT HUP EXIT
    local child below all=() _
    # Of the shell, also one that was started a moment ago and is not among `children` yet.
    for child in $(jobs -p); do
        below=()
        read -ra below <"/proc/$child/task/$child/children" || true
        all+=("$child" "${below[@]}")
    done 2>/dev/null
    for child in "${all[@]}"; do kill -TERM "$child" 2>/dev/null || true; done
    for _ in $(seq 100); do
        kill -0 "${all[@]}" 2>/dev/null || break
        sleep 0.02
    done
    for child in "${all[@]}"; do kill -KILL "$child" 2>/dev/null || true; done
    wait || true
    rm -rf "$run"
}

mkdir -p "$run"/{conf,logs,cgid,ini,swap}
# Names without a blank or a sign that a rewrite rule would read as its own.
ln -s "$database" "$run/dataset"

cat >"$run/ini/deadheat.ini" <<INI
expose_php = 0
opcache.enable = 1
opcache.validate_timestamps = 0
zlib.output_compression = 0
INI

echo 'html = text/html' >"$run/conf/mime.properties"

# No timeouts to speak of: a contender may be frozen between two slices of load. These are the most that it takes; a connection is
# closed after 32,767 requests.
cat >"$run/conf/httpd_config.conf" <<LSWS
serverName $study
user $user
group $group
autoRestart 0
httpdWorkers 1
disableWebAdmin 1
enableCoreDump 0
inMemBufSize 60M
swappingDir $run/swap
statDir $run/tmp
mime \$SERVER_ROOT/conf/mime.properties
indexFiles index.php

errorlog $run/logs/error.log {
  logLevel WARN
  debugLevel 0
  rollingSize 0
  enableStderrLog 0
}

tuning {
  maxConnections 10000
  connTimeout 10000
  keepAliveTimeout 10000
  maxKeepAliveReq 32767
  smartKeepAlive 0
  eventDispatcher best
  enableGzipCompress 0
  enableDynGzipCompress 0
  enableBrCompress 0
  quicEnable 0
}

fileAccessControl {
  followSymbolLink 1
  checkSymbolLink 0
}

perClientConnLimit {
  staticReqPerSec 0
  dynReqPerSec 0
  outBandwidth 0
  inBandwidth 0
  softLimit 100000
  hardLimit 100000
}

accessControl {
  allow ALL
}

extProcessor lsphp {
  type lsapi
  address uds:/$run/tmp/lsphp.sock
  maxConns $workers
  initTimeout 3600
  retryTimeout 0
  persistConn 1
  respBuffer 0
  autoStart 0
}

scriptHandler {
  add lsapi:lsphp php
}

virtualHost $study {
  vhRoot $here/
  configFile $run/conf/vhost.conf
  allowSymbolLink 1
  enableScript 1
  restrained 0
  setUIDMode 0
  maxKeepAliveReq 32767
}

listener all {
  address 127.0.0.1:$PORT
  secure 0
  map $study *
}
LSWS

# Every path is index.php's, which reads the one that was asked for.
cat >"$run/conf/vhost.conf" <<VHOST
docRoot $here/
enableGzip 0

rewrite {
  enable 1
  autoLoadHtaccess 0
  rules <<<RULES
RewriteRule .* /index.php [E=$variable:$run/dataset,L]
RULES
}
VHOST

# The folder itself stays this shell's, by which the next start knows what a killed one left.
if [ -n "$as_root" ]; then
    chmod 755 "$run"
    chown -hR "$user:$group" "$run"/*
fi

# lsphp has as many workers as connections to it, none of them ever ends, and it adds our settings to those that it is installed with.
env PHP_LSAPI_CHILDREN="$workers" LSAPI_EXTRA_CHILDREN=0 LSAPI_MAX_IDLE_CHILDREN="$workers" PHP_LSAPI_MAX_REQUESTS=2000000000 \
    LSAPI_MAX_IDLE=2000000000 LSAPI_MAX_PROCESS_TIME=2000000000 PHP_INI_SCAN_DIR=":$run/ini" \
    "${as[@]}" "$lsphp" -b "$run/tmp/lsphp.sock" &
children+=($!)
socket_of "${children[0]}" "$run/tmp/lsphp.sock"
# `-d`: in the foreground, one process. Its root is in LSWS_HOME.
env LSWS_HOME="$run" OLS_PID_FILE="$run/tmp/lshttpd.pid" "${as[@]}" "$lshttpd" -d &
children+=($!)

# Neither is of use without the other.
wait -n || true
echo "php/litespeed.sh: lsphp or lshttpd ended by itself" >&2
tail -n 20 "$run/logs/error.log" >&2 || true
exit 1
