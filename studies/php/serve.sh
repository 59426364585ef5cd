#!/usr/bin/env bash
# Contender `php` of any study: php-fpm with OPcache behind nginx, both in the foreground, both ended with this shell.
# A study's own php/serve.sh calls it; the study is the folder above that of its index.php.
#
#   serve.sh STUDY/php VARIABLE                  serve STUDY/php/index.php on 127.0.0.1:$PORT; the dataset's path is in VARIABLE
#   serve.sh STUDY/php VARIABLE --version        one line: the versions of both
#
# Every file they need is in a private folder below $DEADHEAT_WORK (or a temporary one), which goes when they end.
set -euo pipefail

. "$(dirname "$0")/contender.sh"

# The link that the set-up made, else the newest that the system has.
program() {
    if [ -x "$here/bin/$1" ]; then
        echo "$here/bin/$1"
    else
        (PATH=$PATH:/usr/local/sbin:/usr/sbin; compgen -c "$1" | grep -xE "$1[0-9.]*" | sort -V | tail -n 1)
    fi
}
fpm=$(program php-fpm)
nginx=$(program nginx)
PATH=$PATH:/usr/local/sbin:/usr/sbin
if [ -z "$fpm" ] || [ -z "$nginx" ]; then
    echo "php/serve.sh: php-fpm or nginx is missing: run \`make setup\`" >&2
    exit 1
fi

if [ "${3:-}" = --version ]; then
    echo "$("$fpm" --version | sed -n '1s/ (.*//p') nginx $("$nginx" -v 2>&1 | sed 's|.*/||')"
    exit
fi
private_folder php "${DEADHEAT_WORK:-}"

cat >"$run/fpm.conf" <<FPM
[global]
pid = $run/fpm.pid
error_log = $run/fpm.log
log_level = warning
daemonize = no

[$study]
${as_root:+user = root
group = root}
listen = $run/fpm.sock
listen.backlog = 1024
pm = static
pm.max_children = $workers
pm.max_requests = 0
catch_workers_output = yes
FPM

cat >"$run/nginx.conf" <<NGINX
${as_root:+user root;}
daemon off;
worker_processes 1;
pid $run/nginx.pid;
error_log stderr warn;
events {
    worker_connections 4096;
}
http {
    access_log off;
    client_body_temp_path $run/tmp/body;
    fastcgi_temp_path $run/tmp/fastcgi;
    proxy_temp_path $run/tmp/proxy;
    scgi_temp_path $run/tmp/scgi;
    uwsgi_temp_path $run/tmp/uwsgi;

    # No timeouts to speak of: a contender may be frozen between two slices of load.
    keepalive_requests 1000000000;
    keepalive_timeout 24h;
    client_header_timeout 24h;
    send_timeout 24h;
    fastcgi_connect_timeout 1h;
    fastcgi_read_timeout 1h;
    fastcgi_send_timeout 1h;
    fastcgi_buffer_size 32k;
    fastcgi_buffers 8 32k;
    fastcgi_max_temp_file_size 0;

    server {
        listen 127.0.0.1:$PORT backlog=1024;
        location / {
            fastcgi_pass unix:$run/fpm.sock;
            fastcgi_param SCRIPT_FILENAME "$here/index.php";
            fastcgi_param REQUEST_METHOD \$request_method;
            fastcgi_param REQUEST_URI \$request_uri;
            fastcgi_param QUERY_STRING \$query_string;
            fastcgi_param $variable "$database";
        }
    }
}
NGINX

# php-fpm calls setsid(2), also in the foreground. The kernel would then share a core between its session and deadheat's, so that the
# threads that keep the core awake would cost it time. The leader of a process group cannot leave its session; `set -m` makes it one.
set -m
"$fpm" --nodaemonize ${as_root:+--allow-to-run-as-root} --fpm-config "$run/fpm.conf" \
    -d expose_php=0 -d opcache.enable=1 -d opcache.validate_timestamps=0 -d zlib.output_compression=0 &
children+=($!)
set +m
socket_of "${children[0]}" "$run/fpm.sock"
"$nginx" -e stderr -p "$run" -c "$run/nginx.conf" &
children+=($!)

# Neither is of use without the other.
wait -n || true
echo "php/serve.sh: php-fpm or nginx ended by itself" >&2
tail -n 20 "$run/fpm.log" >&2 || true
exit 1
