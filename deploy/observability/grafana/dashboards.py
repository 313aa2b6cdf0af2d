#!/usr/bin/env python3
"""Writes the dashboards of Grafana, and a table of their panels into ../README.md.

    deploy/observability/grafana/dashboards.py            writes dashboards/*.json, and the tables
    deploy/observability/grafana/dashboards.py --check    fails if they are not what this file describes

A panel is one line here and forty of JSON. Every expression has the matchers of the variables `job` and `instance`.
"""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "dashboards"
README = FOLDER.parents[1] / "README.md"
# The heading of the part of the README that is written here; it is the last one.
TABLES = "\n## Panels\n"
SERVICES = "edge-server|control-plane|collector|job-runner"
# Their metrics come from exporters, and from ClickHouse itself.
STORES = "postgres|redis|clickhouse|node"
UNITS = {
    "Bps": "bytes/s", "bytes": "bytes", "d": "days", "ops": "1/s", "percentunit": "%", "reqps": "1/s", "s": "seconds",
    "short": "number",
}
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
LOKI = {"type": "loki", "uid": "${logs}"}
WIDTH, HEIGHT, COLUMNS = 8, 8, 3
# The matchers of the dashboard's variables, in every selector.
OF = 'job=~"$job",instance=~"$instance"'


def of(metric, *matchers):
    """A selector of a metric with the variables of the dashboard."""
    return metric + "{" + ",".join([OF, *matchers]) + "}"


def rate(metric, *matchers, by=""):
    """Events per second, summed by labels."""
    return f"sum by ({by}) (rate({of(metric, *matchers)}[$__rate_interval]))"


def share(part, whole):
    """A part of a whole, zero while there is neither."""
    return f"{part} / ({whole} > 0) or vector(0)"


def quantile(q, metric, *matchers, by=""):
    """A quantile of a histogram."""
    labels = ", ".join(part for part in (by, "le") if part)
    return f"histogram_quantile({q}, {rate(metric + '_bucket', *matchers, by=labels)})"


def quantiles(metric, *matchers):
    return [(f"p{100 * q:g}", quantile(q, metric, *matchers)) for q in (0.5, 0.95, 0.99)]


def panel(title, description, unit, *targets, limit=None, kind="timeseries"):
    """One panel. `targets` are pairs of a legend and an expression; from `limit` on, a value is bad."""
    steps = [{"color": "green", "value": None}]
    if limit is not None:
        steps.append({"color": "red", "value": limit})
    custom = {"fillOpacity": 10, "thresholdsStyle": {"mode": "dashed" if limit is not None else "off"}}
    return {
        "title": title,
        "description": description,
        "type": kind,
        "datasource": PROMETHEUS,
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "min": 0,
                "thresholds": {"mode": "absolute", "steps": steps},
                "custom": custom if kind == "timeseries" else {},
            },
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
        if kind == "timeseries"
        else {"reduceOptions": {"calcs": ["lastNotNull"]}},
        "targets": [
            {"refId": chr(65 + number), "datasource": PROMETHEUS, "expr": expression, "legendFormat": legend}
            for number, (legend, expression) in enumerate(targets)
        ],
    }


def logs(title, description, services):
    """The warnings and errors of services. A line's `trace_id` links to its trace."""
    return {
        "title": title,
        "description": description,
        "type": "logs",
        "datasource": LOKI,
        "options": {"showTime": True, "wrapLogMessage": True, "enableLogDetails": True},
        "targets": [{"refId": "A", "datasource": LOKI, "expr": f'{{service_name=~"{services}"}} | severity_text =~ "WARN|ERROR"'}],
    }


def variable(name, query, label):
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": PROMETHEUS,
        "query": query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }


def source(name, kind, label):
    return {"name": name, "label": label, "type": "datasource", "query": kind}


def dashboard(uid, title, jobs, panels):
    placed = [
        one | {"id": number + 1, "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT}}
        for number, one in enumerate(panels)
    ]
    return {
        "uid": f"webruntime-{uid}",
        "title": f"Web Runtime: {title}",
        "tags": ["web-runtime"],
        "editable": False,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {
            "list": [
                source("datasource", "prometheus", "Metrics"),
                source("logs", "loki", "Logs"),
                variable("job", f'label_values(up{{job=~"{jobs}"}}, job)', "Service"),
                variable("instance", 'label_values(up{job=~"$job"}, instance)', "Replica"),
            ]
        },
        "panels": placed,
    }


HTTP = "http_server_request_duration_seconds"
SERVER_ERROR = 'http_response_status_code=~"5.."'
STATUS_5XX = 'status="5xx"'
CONTROL_PLANE = 'job="control-plane"'
IN_USE = 'state="in_use"'
FAILED = 'result="error"'


def fleet():
    return dashboard("fleet", "fleet", SERVICES, [
        panel("Ready replicas", "Replicas that may receive traffic. Zero of a service is an outage: alert ServiceUnavailable.", "short", ("{{job}}", f"sum by (job) ({of('webruntime_ready')})"), kind="stat"),
        panel("Failed checks", "Checks of readiness that fail, by name. Such a replica gets no traffic.", "short", ("{{job}} {{check}}", f"sum by (job, check) (1 - {of('webruntime_check_passed')})"), limit=1),
        panel("Versions", "Replicas by version. Two for longer than an upgrade: alert TwoVersions.", "short", ("{{job}} {{version}}", f"count by (job, version) ({of('webruntime_build_info')})"), kind="stat"),
        panel("Requests", "Requests per second of each service, and all responses of the edge.", "reqps", ("{{job}}", rate(HTTP + "_count", by="job")), ("edge, all hosts", rate("edge_responses_total"))),
        panel("Errors", "Share of responses with 5xx. More than 1 %: alerts EdgeErrors and ApiErrors.", "percentunit", ("{{job}}", f"{rate(HTTP + '_count', SERVER_ERROR, by='job')} / {rate(HTTP + '_count', by='job')}"), limit=0.01),
        panel("Duration", "The slowest of a hundred requests, by service.", "s", ("{{job}}", quantile(0.99, HTTP, by="job")), limit=2),
        panel("Slow routes", "The slowest of a hundred requests of the control plane, by route.", "s", ("{{http_route}}", f"topk(10, {quantile(0.99, HTTP, CONTROL_PLANE, by='http_route')})"), limit=2),
        panel("Busy routes", "Requests per second of the control plane, by route.", "reqps", ("{{http_route}}", f"topk(10, {rate(HTTP + '_count', CONTROL_PLANE, by='http_route')})")),
        panel("Restarts", "Starts within an hour. A replica that restarts again and again crashes or exceeds its memory.", "short", ("{{job}} {{instance}}", f"changes({of('process_start_time_seconds')}[1h])"), limit=2),
        panel("Processors", "Processors that a replica uses.", "short", ("{{job}} {{instance}}", f"rate({of('process_cpu_seconds_total')}[$__rate_interval])")),
        panel("Memory", "Resident memory of a replica. Compare with its limit in .env.", "bytes", ("{{job}} {{instance}}", of("process_resident_memory_bytes"))),
        panel("Open files", "Share of the open files that a replica may have. Connections are files.", "percentunit", ("{{job}} {{instance}}", f"{of('process_open_fds')} / {of('process_max_fds')}"), limit=0.8),
        panel("Clock", "How far the clock of a replica's machine is from that of Postgres, which all services follow. From a second on: alert ClockSkew.", "s", ("{{job}} {{instance}}", f"abs({of('webruntime_clock_offset_seconds')})"), limit=1),
        logs("Warnings and errors", "Of all services. Open a line to go to its trace.", SERVICES),
    ])


def edge():
    return dashboard("edge", "edge", "edge-server", [
        panel("Responses by status", "Responses per second by class of the status.", "reqps", ("{{status}}", rate("edge_responses_total", by="status"))),
        panel("Responses by host", "Responses per second: the API and forms (base), sites below our domain, custom domains, and hosts without a site.", "reqps", ("{{host}}", rate("edge_responses_total", by="host"))),
        panel("Server errors", "Share of 5xx responses by kind of host. More than 1 %: alert EdgeErrors.", "percentunit", ("{{host}}", f"{rate('edge_responses_total', STATUS_5XX, by='host')} / ({rate('edge_responses_total', by='host')} > 0)"), limit=0.01),
        panel("Pages from memory", "Share of pages served from memory. It falls after a restart and when the caches are too small.", "percentunit", ("hits", share(rate("edge_pages_served_total", 'from="hit"'), rate("edge_pages_served_total")))),
        panel("Pages by origin", "Pages per second from memory (hit), loaded (miss), and stale because Postgres does not answer.", "reqps", ("{{from}}", rate("edge_pages_served_total", by="from"))),
        panel("Duration of misses", "Time to find and render a page that was not in memory.", "s", *quantiles("edge_page_miss_seconds"), limit=0.5),
        panel("Open connections", "Open connections by listener.", "short", ("{{listener}} {{instance}}", of("edge_connections"))),
        panel("Connections of the limit", "Share of the connections that an edge may have. From 80 % on: alert EdgeConnections.", "percentunit", ("{{instance}}", f"sum by (job, instance) ({of('edge_connections')}) / on (job, instance) {of('edge_connections_max')}"), limit=0.8),
        panel("Lag of invalidations", "Age of a change when the edge drops what it cached. Usually milliseconds.", "s", *quantiles("edge_invalidation_lag_seconds"), limit=5),
        panel("Memory of caches", "About the memory of the entries of each cache.", "bytes", ("{{cache}}", f"sum by (cache) ({of('edge_cache_bytes')})")),
        panel("Evictions", "Entries that a full cache drops, per second. Many: raise the size of that cache.", "ops", ("{{cache}}", rate("edge_cache_evictions_total", by="cache"))),
        panel("Signs of spam", "Submissions with a sign of spam per second, by reason.", "ops", ("{{reason}}", rate("edge_submissions_flagged_total", by="reason"))),
        panel("Forms and API at the edge", "Requests per second on the base host, by route.", "reqps", ("{{http_route}} {{http_response_status_code}}", f"topk(10, {rate(HTTP + '_count', by='http_route, http_response_status_code')})")),
        panel("Duration on the base host", "Duration of requests to forms, uploads and what the edge proxies.", "s", *quantiles(HTTP), limit=2),
        panel("Uploads", "Bytes per second received by signed URLs.", "Bps", ("bytes", rate("edge_upload_received_bytes_total"))),
        panel("Dropped views", "Page views that could not be stored. The counters of pages are too low by these.", "short", ("{{instance}}", f"increase({of('edge_views_dropped_total')}[$__rate_interval])"), limit=1),
        logs("Warnings and errors", "Of the edges. Open a line to go to its trace.", "edge-server"),
    ])


def ingest():
    return dashboard("ingest", "events", "collector", [
        panel("Accepted", "Events per second that are safe on disk.", "ops", ("accepted", rate("collector_events_accepted_total"))),
        panel("Dropped", "Events per second that are not counted, by reason: bots, quotas, unknown sites.", "ops", ("{{reason}}", rate("collector_events_dropped_total", by="reason"))),
        panel("Inserted", "Events per second that ClickHouse has. Equals the accepted ones over time.", "ops", ("inserted", rate("collector_events_inserted_total"))),
        panel("Oldest segment", "Age of the oldest events that ClickHouse does not have. From 5 minutes on: alert SegmentsOld.", "s", ("{{instance}}", of("collector_segment_oldest_seconds")), limit=300),
        panel("Space for waiting events", "Share of segments.max_unsent_bytes. From 50 % on: alert SegmentsFull.", "percentunit", ("{{instance}}", f"{of('collector_segment_unsent_bytes')} / {of('collector_segment_max_bytes')}"), limit=0.5),
        panel("Free disk", "Free bytes of the file system with the folder of segments.", "bytes", ("{{instance}}", of("collector_segment_free_bytes"))),
        panel("Group commit", "Duration of one write and sync of a group of events: what a visitor waits for.", "s", *quantiles("collector_group_commit_seconds"), limit=0.1),
        panel("Insert of a segment", "Duration of the insert of one segment into ClickHouse.", "s", *quantiles("collector_segment_insert_seconds"), limit=10),
        panel("Visits", "Duration of the computation of the visits that a segment touches.", "s", *quantiles("collector_visits_recompute_seconds"), limit=10),
        panel("Failed and refused", "Failed inserts are repeated. Refused segments and damaged records need an operator.", "short", ("inserts failed", f"sum(increase({of('collector_inserts_failed_total')}[$__rate_interval]))"), ("segments refused", f"sum(increase({of('collector_segments_refused_total')}[$__rate_interval]))"), ("records damaged", f"sum(increase({of('collector_records_skipped_total')}[$__rate_interval]))"), limit=1),
        panel("Quotas", "Requests for a block of an account's monthly events, by result. `unanswered`: Postgres does not answer.", "ops", ("{{result}}", rate("collector_quota_blocks_leased_total", by="result"))),
        panel("Waiting for an earlier event", "Events that wait for an earlier one of the same page.", "short", ("{{instance}}", of("collector_events_waiting"))),
        panel("Lost salts", "Salts of visitor ids that Postgres had lost, restored from a copy and lost. Visitors count twice for each of the latter: alert SaltsLost.", "short", ("restored", f"sum(increase({of('collector_salts_restored_total')}[$__rate_interval]))"), ("lost", f"sum(increase({of('collector_salts_lost_total')}[$__rate_interval]))"), limit=1),
        logs("Warnings and errors", "Of the collectors. Open a line to go to its trace.", "collector"),
    ])


def deliveries():
    return dashboard("deliveries", "deliveries and automations", "job-runner", [
        panel("Due", "Rows that are due or being worked on, by queue.", "short", ("{{queue}}", f"max by (queue) ({of('job_runner_queue_due_rows')})")),
        panel("Oldest", "Time since the oldest row of a queue became due. Alerts: outbox 2 minutes, deliveries and runs 10.", "s", ("{{queue}}", f"max by (queue) ({of('job_runner_queue_oldest_seconds')})"), limit=120),
        panel("Attempts", "Attempts to deliver an event to a webhook per second, by result.", "ops", ("{{result}}", rate("job_runner_deliveries_attempted_total", by="result"))),
        panel("Delivered", "Share of attempts that a receiver accepted.", "percentunit", ("delivered", share(rate("job_runner_deliveries_attempted_total", 'result="delivered"'), rate("job_runner_deliveries_attempted_total")))),
        panel("Deliveries in progress", "Attempts that wait for a receiver. Slow receivers hold them.", "short", ("{{instance}}", of("job_runner_deliveries_in_progress"))),
        panel("Duration of deliveries", "Duration of an attempt to deliver an event.", "s", *quantiles("job_runner_delivery_seconds"), limit=10),
        panel("Duration of jobs", "The slowest of a hundred jobs of the queue, by kind: mails and purges.", "s", ("{{kind}}", quantile(0.99, "job_runner_job_seconds", by="kind"))),
        panel("Deactivated webhooks", "Webhooks deactivated because their receiver is gone or fails.", "short", ("{{reason}}", f"sum by (reason) (increase({of('job_runner_webhooks_deactivated_total')}[$__rate_interval]))")),
        panel("Mails", "Attempts to send a mail per second, by result.", "ops", ("{{kind}} {{result}}", rate("job_runner_mails_sent_total", by="kind, result"))),
        panel("Runs of automations", "Runs per second that ended, wait, or were skipped at the plan's limit.", "ops", ("{{status}}", rate("job_runner_automation_runs_completed_total", by="status"))),
        panel("Wait of runs", "Time from the moment that a run was due until it was claimed.", "s", *quantiles("job_runner_automation_run_queue_seconds"), limit=10),
        panel("Certificates", "Certificates by state.", "short", ("{{state}}", f"max by (state) ({of('job_runner_certificates')})")),
        panel("Certificates: days left", "Days until the first certificate ends, by state. `renewal_failing` below 21 and 7: alerts.", "d", ("{{state}}", f"min by (state) ({of('job_runner_certificates_min_left_days')})")),
        panel("Certificates that end soon", "Unexpired certificates that end within 7 and 21 days. They are renewed with a third of their life left.", "short", ("within {{within}}", f"max by (within) ({of('job_runner_certificates_expiring')})")),
        panel("Orders of certificates", "Attempts to order a certificate, by result.", "short", ("{{result}}", f"sum by (result) (increase({of('job_runner_certificates_ordered_total')}[$__rate_interval]))")),
        panel("Periodic work", "Pages published at their time, forms closed, domains checked, per second.", "ops", ("pages published", rate("job_runner_pages_published_total")), ("forms closed", rate("job_runner_forms_closed_total")), ("domains checked", rate("job_runner_domain_checks_total"))),
        panel("Deletions", "What retention and accounts that ended delete, per second.", "ops", ("trials", rate("job_runner_trials_purged_total")), ("sites' events", rate("job_runner_events_purged_total")), ("spam", rate("job_runner_spam_purged_total")), ("files", rate("job_runner_blobs_deleted_total")), ("runs", rate("job_runner_automation_runs_deleted_total"))),
        panel("Unreadable messages", "Rows of the outbox that this version can't read and has postponed.", "short", ("{{message}}", f"sum by (message) (increase({of('job_runner_unreadable_messages_postponed_total')}[$__rate_interval]))"), limit=1),
        logs("Warnings and errors", "Of the job-runners. Open a line to go to its trace.", "job-runner"),
    ])


def stores():
    requests = "webruntime_store_request_seconds"
    mounted = 'mountpoint!~"/(boot|run|snap)(/.*)?"'
    backup = of("webruntime_backup_last_success_timestamp_seconds")
    return dashboard("stores", "stores", f"{SERVICES}|{STORES}", [
        panel("Connections to Postgres", "Open connections of all pools, by service and state.", "short", ("{{job}} {{state}}", f"sum by (job, state) ({of('webruntime_postgres_connections')})")),
        panel("Pools in use", "Share of the connections that a replica may open. From 80 % on: alert PostgresPool.", "percentunit", ("{{job}} {{instance}}", f"sum by (job, instance) ({of('webruntime_postgres_connections', IN_USE)}) / on (job, instance) {of('webruntime_postgres_connections_max')}"), limit=0.8),
        panel("Wait for a connection", "The longest of a hundred waits for a connection to Postgres. From a second on: alert PostgresWait.", "s", ("{{job}}", quantile(0.99, "webruntime_postgres_acquire_seconds", by="job")), limit=1),
        panel("Requests", "Requests per second to Redis, ClickHouse and the blob store.", "reqps", ("{{store}}", rate(requests + "_count", by="store"))),
        panel("Failed requests", "Share of requests that fail, by store. From 5 % on: alert StoreErrors.", "percentunit", ("{{store}}", f"sum by (store) (rate({of(requests + '_count', FAILED)}[$__rate_interval])) / {rate(requests + '_count', by='store')} or 0 * {rate(requests + '_count', by='store')}"), limit=0.05),
        panel("Duration: Redis", "Duration of requests to Redis.", "s", *quantiles(requests, 'store="redis"'), limit=1),
        panel("Duration: ClickHouse", "Duration of requests to ClickHouse. Analytics over long times take seconds.", "s", *quantiles(requests, 'store="clickhouse"'), limit=10),
        panel("Duration: blobs", "Duration of requests to the blob store until the first byte.", "s", *quantiles(requests, 'store="blobs"'), limit=1),
        panel("Reconnects to Redis", "Connections to Redis that were lost and made again.", "short", ("{{job}}", f"sum by (job) (increase({of('webruntime_redis_reconnects_total')}[$__rate_interval]))"), limit=5),
        panel("Stores that answer", "Zero: alerts PostgresDown, RedisDown and ClickHouseDown.", "short", ("Postgres {{instance}}", of("pg_up")), ("Redis {{instance}}", of("redis_up")), ("ClickHouse {{instance}}", of("up", 'job="clickhouse"')), kind="stat"),
        panel("Postgres: connections", "Share of max_connections, of all clients. From 80 % on: alert PostgresConnections.", "percentunit", ("{{instance}}", f"sum by (instance) ({of('pg_stat_activity_count')}) / on (instance) {of('pg_settings_max_connections')}"), limit=0.8),
        panel("Postgres: transactions", "Transactions per second, committed and rolled back.", "ops", ("committed", rate("pg_stat_database_xact_commit")), ("rolled back", rate("pg_stat_database_xact_rollback"))),
        panel("Postgres: longest transaction", "Age of the oldest open transaction by state. A long one keeps dead rows.", "s", ("{{state}}", f"max by (state) ({of('pg_stat_activity_max_tx_duration')})"), limit=600),
        panel("Postgres: locks", "Locks that are held, by mode.", "short", ("{{mode}}", f"sum by (mode) ({of('pg_locks_count')})")),
        panel("Postgres: size", "Bytes of each database.", "bytes", ("{{datname}}", f"max by (datname) ({of('pg_database_size_bytes')})")),
        panel("Redis: memory", "Bytes of its data, and the limit from which on it refuses writes.", "bytes", ("used", of("redis_memory_used_bytes")), ("limit", of("redis_memory_max_bytes"))),
        panel("Redis: commands", "Commands per second.", "ops", ("{{instance}}", rate("redis_commands_processed_total", by="instance"))),
        panel("Redis: clients", "Connections of clients.", "short", ("{{instance}}", of("redis_connected_clients"))),
        panel("ClickHouse: parts", "Active parts of all tables, and the most of one partition. From 1,000 of a partition on, inserts are delayed.", "short", ("active {{instance}}", of("ClickHouseMetrics_PartsActive")), ("most of a partition {{instance}}", of("ClickHouseAsyncMetrics_MaxPartCountForPartition")), limit=1000),
        panel("ClickHouse: merges", "Merges and mutations that run.", "short", ("merges {{instance}}", of("ClickHouseMetrics_Merge")), ("mutations {{instance}}", of("ClickHouseMetrics_PartMutation"))),
        panel("ClickHouse: delayed inserts", "Inserts per second that wait or are refused, because a partition has too many parts: alert ClickHousePartsMany.", "ops", ("delayed", rate("ClickHouseProfileEvents_DelayedInserts")), ("refused", rate("ClickHouseProfileEvents_RejectedInserts"))),
        panel("ClickHouse: queries", "Queries per second, and those that fail.", "ops", ("all", rate("ClickHouseProfileEvents_Query")), ("failed", rate("ClickHouseProfileEvents_FailedQuery"))),
        panel("ClickHouse: memory", "Bytes that the server has allocated.", "bytes", ("{{instance}}", of("ClickHouseMetrics_MemoryTracking"))),
        panel("ClickHouse: read-only tables", "Tables whose replica has lost ClickHouse Keeper: alert ClickHouseReadOnly. Zero without a cluster.", "short", ("{{instance}}", of("ClickHouseMetrics_ReadonlyReplica")), limit=1),
        panel("ClickHouse: delay of replicas", "The largest delay behind another replica. From 5 minutes on: alert ClickHouseReplicaLate. Zero without a cluster.", "s", ("{{instance}}", of("ClickHouseAsyncMetrics_ReplicasMaxAbsoluteDelay")), limit=300),
        panel("Disk used", "Share of each disk in use. From 85 % on: alert DiskLow.", "percentunit", ("{{device}} {{instance}}", f"1 - min by (instance, device) ({of('node_filesystem_avail_bytes', mounted)} / ({of('node_filesystem_size_bytes')} > 0))"), limit=0.85),
        panel("Disk traffic", "Bytes per second that are read and written, by disk.", "Bps", ("{{device}} read", rate("node_disk_read_bytes_total", by="device")), ("{{device}} written", rate("node_disk_written_bytes_total", by="device"))),
        panel("Memory of the machine", "Share of the memory that no process can have.", "percentunit", ("{{instance}}", f"1 - {of('node_memory_MemAvailable_bytes')} / {of('node_memory_MemTotal_bytes')}"), limit=0.9),
        panel("Last backup", "Age of the last good backup of each part. From 26 hours on: alert BackupOld.", "s", ("{{part}}", f"time() - max by (part) ({backup})"), limit=93600, kind="stat"),
        panel("Size of the last backup", "Bytes of the last good backup of each part. A sudden change is a sign of a mistake.", "bytes", ("{{part}}", f"max by (part) ({of('webruntime_backup_last_bytes')})")),
        logs("Warnings about stores", "Lines of all services. Open one to go to its trace.", SERVICES),
    ])


def tables(dashboards):
    """The panels of each dashboard, as the README shows them."""
    for one in dashboards:
        yield f"\n### {one['title'].removeprefix('Web Runtime: ').capitalize()}\n\n| panel | unit | shows |\n| --- | --- | --- |\n"
        for panel in one["panels"]:
            unit = "lines" if panel["type"] == "logs" else UNITS[panel["fieldConfig"]["defaults"]["unit"]]
            yield f"| {panel['title']} | {unit} | {panel['description']} |\n"


def main():
    dashboards = {FOLDER / f"{build.__name__}.json": build() for build in (fleet, edge, ingest, deliveries, stores)}
    written = {path: json.dumps(one, indent=1) + "\n" for path, one in dashboards.items()}
    written[README] = README.read_text().partition(TABLES)[0] + TABLES + "".join(tables(dashboards.values()))
    wrong = [path for path, text in written.items() if not path.exists() or path.read_text() != text]
    if "--check" not in sys.argv[1:]:
        for path in wrong:
            path.write_text(written[path])
    elif wrong:
        names = ", ".join(path.name for path in wrong)
        sys.exit(f"Not what dashboards.py describes: {names}. Run deploy/observability/grafana/dashboards.py.")


if __name__ == "__main__":
    main()
