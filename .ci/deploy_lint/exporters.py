"""The metrics that the alerts and dashboards use and no service of this repository measures.

tests/nightly/observability.py compares each list with what the real program serves.
"""

# By the jobs of prometheus.yml.
EXPORTED = {
    "postgres": {
        "pg_database_size_bytes", "pg_locks_count", "pg_settings_max_connections", "pg_stat_activity_count", "pg_stat_activity_max_tx_duration",
        "pg_stat_database_xact_commit", "pg_stat_database_xact_rollback", "pg_up",
    },
    "redis": {"redis_commands_processed_total", "redis_connected_clients", "redis_memory_max_bytes", "redis_memory_used_bytes", "redis_up"},
    "clickhouse": {
        "ClickHouseMetrics_MemoryTracking", "ClickHouseMetrics_Merge", "ClickHouseMetrics_PartMutation", "ClickHouseMetrics_PartsActive",
        "ClickHouseMetrics_ReadonlyReplica", "ClickHouseProfileEvents_DelayedInserts", "ClickHouseProfileEvents_FailedQuery",
        "ClickHouseProfileEvents_Query", "ClickHouseProfileEvents_RejectedInserts",
    },
    "node": {
        "node_disk_read_bytes_total", "node_disk_written_bytes_total", "node_filesystem_avail_bytes", "node_filesystem_readonly",
        "node_filesystem_size_bytes", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes",
        # Files of other programs: `webruntime backup` writes webruntime_backup.prom into BACKUP_FOLDER.
        "webruntime_backup_last_bytes", "webruntime_backup_last_success_timestamp_seconds",
    },
}
# ClickHouse's server computes these in a background thread, which libchdb does not have. Its library has their names.
COMPUTED = {"ClickHouseAsyncMetrics_MaxPartCountForPartition", "ClickHouseAsyncMetrics_ReplicasMaxAbsoluteDelay"}
# Every scrape has these.
SCRAPED = {"up"}
METRICS = set().union(*EXPORTED.values()) | COMPUTED
