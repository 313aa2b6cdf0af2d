//! The client of ClickHouse, its timeouts and its settings for reads and writes.

use std::sync::Arc;
use std::time::Duration;

use clickhouse::Client;
use clickhouse::query::Query;
use instruments::MeasuredStore;

use crate::analytics::sums::cache::SumsCache;
use crate::config::Config;
use crate::error::Error;
use crate::servers::Servers;
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
/// With more sites than this in a condition, ClickHouse would ask all shards instead of only those that have them. A
/// statement has no room for as many.
const MAX_SITES_PER_STATEMENT: u64 = 1_000_000;

/// ClickHouse as the system uses it. Cheap to clone; connects on first use.
#[derive(Clone)]
pub struct Warehouse {
    pub(crate) client: Client,
    pub(crate) database: String,
    /// Empty for a single server.
    pub(crate) cluster: String,
    pub(crate) sums: SumsCache,
}

/// Creates a warehouse that connects on first use, so that a service can start while ClickHouse is unavailable. Fails only if
/// a setting is invalid.
pub fn connect(config: &Config) -> Result<Warehouse, Error> {
    let servers = Arc::new(Servers::parse(&config.url)?);
    check_cluster(&config.cluster, servers.count())?;
    let client = tls::client(config, &servers)?.with_url(servers.first()).with_user(&config.user);
    // Some proxies reject the header of an empty password.
    let client = if config.password.is_empty() { client } else { client.with_password(&config.password) };
    let client = client.with_database(&config.database);
    let client = match config.cluster.as_str() {
        "" => client,
        // All rows of a site are on one shard, so a query about it, subqueries included, needs only that shard, however
        // many sites a batch has. An insert is acknowledged once the shard has stored it.
        _ => client
            .with_setting("distributed_product_mode", "local")
            .with_setting("optimize_skip_unused_shards", "1")
            .with_setting("optimize_skip_unused_shards_limit", MAX_SITES_PER_STATEMENT.to_string())
            .with_setting("distributed_foreground_insert", "1"),
    };
    Ok(Warehouse {
        client,
        database: config.database.clone(),
        cluster: config.cluster.clone(),
        sums: SumsCache::new(),
    })
}

/// Refuses what would read from servers that don't share their rows, and names that can't stand in a statement.
fn check_cluster(cluster: &str, servers: usize) -> Result<(), Error> {
    if servers > 1 && cluster.is_empty() {
        return Err(Error::Setting(
            "warehouse.url names several servers, so warehouse.cluster must name their cluster: without it each \
             would have events of its own"
                .to_owned(),
        ));
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if cluster.chars().all(is_plain) {
        Ok(())
    } else {
        let reason = "may have letters, digits, `_`, `-` and `.` only";
        Err(Error::Setting(format!("warehouse.cluster {reason}, not {cluster:?}")))
    }
}

impl Warehouse {
    /// Returns a warehouse that reads what it has inserted, for the recomputation of visits: of a shard's replicas, the first
    /// that answers gets all statements, whichever server coordinates them, and however late it is with other inserts.
    ///
    /// `quorum` is the number of replicas that must have an insert before it is acknowledged: `""` for one, `"auto"` for more
    /// than half, or a number. Only with the number of a shard's replicas, all of them have each row that was acknowledged:
    /// `docs/0001-reading-own-writes.md`.
    ///
    /// # Errors
    /// The quorum is invalid, or there is no cluster.
    pub fn reading_own_writes(self, quorum: &str) -> Result<Self, Error> {
        if self.cluster.is_empty() {
            return match quorum {
                "" => Ok(self),
                _ => Err(Error::Setting(
                    "an insert quorum needs warehouse.cluster: one server has one replica".to_owned(),
                )),
            };
        }
        let client = ONE_REPLICA
            .into_iter()
            .fold(self.client, |client, (name, value)| client.with_setting(name, value));
        let client = match quorum {
            "" => client,
            _ if quorum == "auto" || quorum.parse::<u8>().is_ok_and(|replicas| replicas > 1) => client
                .with_setting("insert_quorum", quorum)
                .with_setting("insert_quorum_timeout", SERVER_TIMEOUT.as_millis().to_string()),
            _ => {
                let reason = "must be empty, \"auto\" or a number of replicas from 2";
                return Err(Error::Setting(format!("an insert quorum {reason}, not {quorum:?}")));
            }
        };
        Ok(Self { client, database: self.database, cluster: self.cluster, sums: self.sums })
    }

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

    /// A statement with [`Self::on_cluster`]. If a server has not executed it in time, the response names the server, which
    /// executes it when it is back.
    pub(crate) fn cluster_statement(&self, sql: &str, timeout: Duration) -> Query {
        let wait = timeout.saturating_sub(STORE_TIMEOUT - SERVER_TIMEOUT);
        self.client.query(sql).with_setting("distributed_ddl_task_timeout", wait.as_secs().to_string())
    }

    /// A table of each server's own, such as `system.mutations`: on a cluster, that of all servers. Fails while one of them is
    /// away.
    pub(crate) fn of_all_servers(&self, table: &str) -> String {
        if self.cluster.is_empty() {
            table.to_owned()
        } else {
            format!("clusterAllReplicas('{}', {table})", self.cluster)
        }
    }

    /// The name of the table that holds the rows; on a cluster `table` itself is distributed.
    pub(crate) fn local_table(&self, table: &str) -> String {
        if self.cluster.is_empty() { table.to_owned() } else { format!("{table}_local") }
    }
}

/// Settings with which all statements about a shard go to the first of its replicas that answers, however late it is.
pub(crate) const ONE_REPLICA: [(&str, &str); 3] = [
    ("load_balancing", "in_order"),
    ("prefer_localhost_replica", "0"),
    ("max_replica_delay_for_distributed_queries", "0"),
];

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

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, cluster: &str) -> Config {
        Config {
            url: url.to_owned(),
            database: "app".to_owned(),
            user: "app".to_owned(),
            password: String::new(),
            ca_file: "".into(),
            cluster: cluster.to_owned(),
        }
    }

    #[test]
    fn what_one_server_can_not_do_is_refused_with_the_reason() {
        let refused = |url: &str, cluster: &str| connect(&config(url, cluster)).err().unwrap().to_string();
        assert!(refused("http://a:8123,http://b:8123", "").contains("warehouse.cluster must name"));
        assert!(refused("http://a:8123,https://b:8123", "main").contains("hosts and ports only"));
        assert!(refused("a:8123", "").contains("must begin with http://"));
        assert!(refused("http://a:8123", "it's").contains("letters, digits"));
        assert!(connect(&config("http://a:8123, http://b:8123", "main")).is_ok());
    }

    #[test]
    fn a_quorum_needs_replicas() {
        let quorum = |cluster: &str, quorum: &str| {
            connect(&config("http://a:8123", cluster)).unwrap().reading_own_writes(quorum).map(|_| ())
        };
        for valid in ["", "auto", "2", "3"] {
            assert!(quorum("main", valid).is_ok(), "{valid}");
        }
        for invalid in ["1", "0", "all", "-2"] {
            assert!(quorum("main", invalid).unwrap_err().to_string().contains("from 2"), "{invalid}");
        }
        assert!(quorum("", "").is_ok());
        assert!(quorum("", "2").unwrap_err().to_string().contains("needs warehouse.cluster"));
    }
}
