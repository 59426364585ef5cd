#!/usr/bin/env bash
# Service `database`: a MariaDB of this study's own, on 127.0.0.1:$PORT and a socket, ended by TERM.
#
#   PORT=3307 DEADHEAT_WORK=work mariadb/serve.sh
#
# Its data folder is made and seeded once, below $DEADHEAT_WORK/mariadb, and used again until seed.sql or the version changes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
PATH=$here/bin:$PATH:/usr/local/sbin:/usr/sbin
: "${PORT:?the port to serve on}" "${DEADHEAT_WORK:?the folder for its data}"
mkdir -p "$DEADHEAT_WORK/mariadb"
folder=$(realpath "$DEADHEAT_WORK/mariadb")

# One server for one data folder: whoever comes second must wait or use another one.
exec 9>"$folder/lock"
if ! flock -n 9; then
    echo "mariadb/serve.sh: another server uses $folder" >&2
    exit 1
fi

common=(--no-defaults --datadir="$folder/data" --skip-log-bin --performance-schema=OFF --character-set-server=utf8mb4
    --innodb-buffer-pool-size=64M --innodb-log-file-size=16M)
if [ "$(id -u)" = 0 ]; then common+=(--user=root); fi

key=$( (cksum <"$here/seed.sql"; cksum <"$here/serve.sh"; mariadbd --version) )
if [ "$(cat "$folder/key" 2>/dev/null)" != "$key" ]; then
    rm -rf "$folder/data" "$folder/key"
    # 9 stays open in none of them: a helper that outlives us must not hold the lock.
    mariadb-install-db "${common[@]}" --auth-root-authentication-method=normal --skip-test-db >"$folder/install.log" 2>&1 9>&- || {
        tail -n 20 "$folder/install.log" >&2
        exit 1
    }
    mariadbd "${common[@]}" --bootstrap --skip-networking <"$here/seed.sql" >>"$folder/install.log" 2>&1 9>&- || {
        tail -n 20 "$folder/install.log" >&2
        exit 1
    }
    echo "$key" >"$folder/key"
fi

exec mariadbd "${common[@]}" --bind-address=127.0.0.1 --port="$PORT" --socket="$folder/db.sock" --pid-file="$folder/db.pid" \
    --skip-name-resolve --max-connections=1000 --thread-cache-size=64 --wait-timeout=86400
