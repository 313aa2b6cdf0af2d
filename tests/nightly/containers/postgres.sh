#!/bin/bash
# What the official image does at its first start: makes the data folder, the user and the database.
set -euo pipefail
export PATH=/usr/local/postgres/bin:$PATH
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    mkdir -p "$PGDATA"
    # shellcheck disable=SC2086
    initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256 $POSTGRES_INITDB_ARGS
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    pg_ctl --wait -o "-c listen_addresses= -c unix_socket_directories=/tmp" start
    psql --host=/tmp --username="$POSTGRES_USER" --dbname=postgres --command="create database $POSTGRES_DB"
    pg_ctl --wait --mode=fast stop
fi
exec "$@" -c "listen_addresses=*" -c unix_socket_directories=/tmp
