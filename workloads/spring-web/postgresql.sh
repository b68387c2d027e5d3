#!/bin/sh
# Starts a PostgreSQL of Debian's as a dependency of a trial: a new, empty cluster in its own /tmp,
# on 127.0.0.1:5432, for the user and database `owners`. With PGPASSWORD, that is the password.
set -eu
for bin in /usr/lib/postgresql/*/bin; do :; done
data=/tmp/postgresql
auth=trust
password=''
if [ -n "${PGPASSWORD:-}" ]; then
    auth=scram-sha-256
    password=--pwfile=/tmp/password
    printf '%s\n' "$PGPASSWORD" >/tmp/password
fi
"$bin/initdb" --pgdata="$data" --username=owners --auth="$auth" $password \
    --encoding=UTF8 --no-locale --no-sync
exec "$bin/postgres" -D "$data" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$data" \
    -c fsync=off "$@"
