//! The client of ClickHouse, its timeouts and its settings for reads and writes.

use std::time::Duration;

use clickhouse::Client;
use clickhouse::query::Query;
use instruments::MeasuredStore;

use crate::config::Config;
use crate::error::Error;
use crate::tls;

/// Timeout of short queries.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of inserts and of queries that prepare them.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of statements that rewrite parts of a table.
pub(crate) const REWRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// The server's own time limit. It is below [`STORE_TIMEOUT`], so that no abandoned statement keeps running.
const SERVER_TIMEOUT: Duration = Duration::from_secs(50);
/// Memory limit of one statement on the server.
const MAX_SERVER_MEMORY_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Size limit of one statement, which may list thousands of ids.
const MAX_STATEMENT_BYTES: u64 = 16 * 1024 * 1024;

/// ClickHouse as the system uses it. Cheap to clone; connects on first use.
#[derive(Clone)]
pub struct Warehouse {
    pub(crate) client: Client,
    pub(crate) database: String,
    /// Empty for a single server.
    pub(crate) cluster: String,
}

/// Creates a warehouse that connects on first use, so that a service can start while ClickHouse is unavailable. Fails only if
/// a setting is invalid.
pub fn connect(config: &Config) -> Result<Warehouse, Error> {
    let client = tls::client(config)?.with_url(&config.url).with_user(&config.user);
    // Some proxies reject the header of an empty password.
    let client = if config.password.is_empty() { client } else { client.with_password(&config.password) };
    let client = client.with_database(&config.database);
    let client = match config.cluster.as_str() {
        "" => client,
        // All rows of a site are on one shard, so a query about it, subqueries included, needs only that shard. An
        // insert is acknowledged once the shard has stored it.
        _ => client
            .with_setting("distributed_product_mode", "local")
            .with_setting("optimize_skip_unused_shards", "1")
            .with_setting("distributed_foreground_insert", "1"),
    };
    Ok(Warehouse { client, database: config.database.clone(), cluster: config.cluster.clone() })
}

impl Warehouse {
    /// Checks that ClickHouse is available.
    pub async fn ping(&self) -> Result<(), Error> {
        // Another database than ours, which may not exist yet while the server is available.
        let server = self.client.clone().with_database("default");
        with_timeout(QUERY_TIMEOUT, server.query("SELECT 1").fetch_one::<u8>()).await?;
        Ok(())
    }

    /// A query of the write path, with time and memory limits on the server.
    pub(crate) fn bounded_query(&self, sql: &str) -> Query {
        self.client
            .query(sql)
            .with_setting("max_execution_time", SERVER_TIMEOUT.as_secs().to_string())
            .with_setting("max_memory_usage", MAX_SERVER_MEMORY_BYTES.to_string())
            .with_setting("max_query_size", MAX_STATEMENT_BYTES.to_string())
            // No user waits for it, and several threads would use more CPU time in total.
            .with_setting("max_threads", "1")
    }

    /// ` ON CLUSTER '…'` for statements that all servers must execute; empty for a single server.
    pub(crate) fn on_cluster(&self) -> String {
        if self.cluster.is_empty() { String::new() } else { format!(" ON CLUSTER '{}'", self.cluster) }
    }

    /// The name of the table that holds the rows; on a cluster `table` itself is distributed.
    pub(crate) fn local_table(&self, table: &str) -> String {
        if self.cluster.is_empty() { table.to_owned() } else { format!("{table}_local") }
    }
}

/// Makes a query read-only. The server cancels it after `timeout` and when its client disconnects; the latter requires
/// `readonly`, which is 2 because 1 permits no further settings.
pub(crate) fn read_only(query: Query, timeout: Duration) -> Query {
    query
        .with_setting("readonly", "2")
        .with_setting("cancel_http_readonly_queries_on_client_close", "1")
        .with_setting("max_execution_time", timeout.as_secs_f64().to_string())
}

/// Measures a request, and fails with [`clickhouse::error::Error::TimedOut`] after `timeout`.
pub(crate) async fn with_timeout<T>(
    timeout: Duration,
    work: impl Future<Output = Result<T, clickhouse::error::Error>>,
) -> Result<T, Error> {
    let request = async {
        let result = tokio::time::timeout(timeout, work).await;
        result.unwrap_or(Err(clickhouse::error::Error::TimedOut))
    };
    Ok(MeasuredStore::ClickHouse.measure(request, Result::is_ok).await?)
}
