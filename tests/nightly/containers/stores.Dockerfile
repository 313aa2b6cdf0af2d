# The stores of deploy/compose/compose.yml, made from packages: they stand in for the images of public registries and take the
# same settings, files and volumes. The context has the unpacked packages; see images.py.

ARG BASE=web-runtime-nightly/debian:stores

FROM ${BASE} AS postgres
RUN groupadd --gid 999 pg && useradd --uid 999 --gid 999 pg && \
    install --directory --owner=pg --group=pg --mode=1777 /var/lib/postgresql
COPY postgres /usr/local/postgres
COPY --chmod=0755 postgres.sh /usr/local/bin/entrypoint
ENV PGDATA=/var/lib/postgresql/18/docker
# For clients in the container; the official image has its socket where they look for it.
ENV PGHOST=/tmp
VOLUME /var/lib/postgresql
STOPSIGNAL SIGINT
USER 999:999
ENTRYPOINT ["entrypoint"]

FROM ${BASE} AS redis
RUN install --directory --owner=redis --group=redis /data
VOLUME /data
WORKDIR /data
USER redis

FROM ${BASE} AS clickhouse
RUN groupadd --gid 101 clickhouse || true; useradd --uid 101 --gid 101 --non-unique clickhouse; \
    install --directory --owner=101 --group=101 /var/lib/clickhouse /etc/clickhouse-server/config.d /etc/clickhouse-server/users.d
COPY clickhouse/libchdb.so /usr/local/lib/libchdb.so
RUN ldconfig
COPY --chmod=0755 clickhouse/tini /usr/local/bin/tini
COPY --chmod=0755 clickhouse/server /usr/local/bin/clickhouse-server
COPY --chmod=0755 clickhouse.sh /usr/local/bin/entrypoint
COPY --chmod=0755 clickhouse_client.sh /usr/local/bin/clickhouse-client
COPY clickhouse.xml /etc/clickhouse-server/config.xml
COPY clickhouse_users.xml /etc/clickhouse-server/users.xml
VOLUME /var/lib/clickhouse
USER 101:101
WORKDIR /var/lib/clickhouse
# The library handles no signals, and the first process of a container ignores those without a handler.
ENTRYPOINT ["tini", "--", "entrypoint"]

FROM ${BASE} AS seaweedfs
RUN install --directory --owner=1000 --group=1000 /data
COPY --chmod=0755 seaweedfs/weed /usr/local/bin/weed
VOLUME /data
USER 1000:1000
WORKDIR /tmp
COPY --chmod=0755 seaweedfs.sh /usr/local/bin/entrypoint
ENTRYPOINT ["entrypoint"]

FROM ${BASE} AS haproxy
STOPSIGNAL SIGUSR1
USER haproxy
ENTRYPOINT ["haproxy"]
CMD ["-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
