#!/bin/bash
# Starts ClickHouse's own listeners, from the library libchdb. Its session stays in a query that never ends.
exec clickhouse-server --config-file /etc/clickhouse-server/config.xml --path /var/lib/clickhouse \
    --listen_host 0.0.0.0 --tcp_port 9000 --http_port 8123 \
    --query "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT sleepEachRow(1) FROM numbers(10000000000) FORMAT Null \
SETTINGS function_sleep_max_microseconds_per_block = 0, max_block_size = 1, max_execution_time = 0"
