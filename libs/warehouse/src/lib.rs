//! All of ClickHouse: every statement the system runs against it stands in this crate.
//!
//! Events come in as whole batches under a token, so that a batch sent twice is counted once; questions are
//! functions named after what they answer, the site first.

mod analytics;
mod config;
mod error;
mod events;
mod migrations;
mod retention;
mod sessions;

use std::time::Duration;

use clickhouse::Client;
use clickhouse::query::Query;

pub use analytics::{QueryLimits, SiteAnalytics, ViewedPage, VisitList, VisitSummary};
pub use config::Config;
pub use error::{Error, ExceededLimit};

/// A question that isn't answered by then is given up, here and on the server.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

/// ClickHouse, as far as the system uses it. Cheap to clone; connects when first used.
#[derive(Clone)]
pub struct Warehouse {
    client: Client,
    database: String,
    /// Empty without one.
    cluster: String,
}

/// A warehouse that connects when first used: a service starts while ClickHouse is away.
pub fn connect(config: &Config) -> Warehouse {
    let client = Client::default().with_url(&config.url).with_user(&config.user);
    // An empty password is no password: sent as a header, some front ends take it for a wrong one.
    let client = if config.password.is_empty() { client } else { client.with_password(&config.password) };
    let client = client.with_database(&config.database);
    let client = match config.cluster.as_str() {
        "" => client,
        // All of a site lies on one shard: who asks about it, and what is asked within, needs no other. What is
        // inserted is there when the answer comes.
        _ => client
            .with_setting("distributed_product_mode", "local")
            .with_setting("optimize_skip_unused_shards", "1")
            .with_setting("distributed_foreground_insert", "1"),
    };
    Warehouse { client, database: config.database.clone(), cluster: config.cluster.clone() }
}

impl Warehouse {
    /// Whether ClickHouse answers.
    ///
    /// # Errors
    /// It doesn't.
    pub async fn ping(&self) -> Result<(), Error> {
        // The database may not be there yet; that is no reason to call the server away.
        let server = self.client.clone().with_database("default");
        within(QUESTION_TIMEOUT, server.query("SELECT 1").fetch_one::<u8>()).await?;
        Ok(())
    }

    /// What says that a statement is for all servers of the cluster, if there is one.
    fn everywhere(&self) -> String {
        if self.cluster.is_empty() { String::new() } else { format!(" ON CLUSTER '{}'", self.cluster) }
    }

    /// The table in which a table's rows are.
    fn home_of(&self, table: &str) -> String {
        if self.cluster.is_empty() { table.to_owned() } else { format!("{table}_local") }
    }
}

/// A question, which the server gives up after `time`, and as soon as nobody waits for its answer any more. The latter it
/// does only for what is known to write nothing; `readonly` is 2, because 1 takes no further settings.
fn question(query: Query, time: Duration) -> Query {
    query
        .with_setting("readonly", "2")
        .with_setting("cancel_http_readonly_queries_on_client_close", "1")
        .with_setting("max_execution_time", time.as_secs_f64().to_string())
}

/// `work`, or [`clickhouse::error::Error::TimedOut`] if it isn't done in time.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, clickhouse::error::Error>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, work).await.unwrap_or(Err(clickhouse::error::Error::TimedOut));
    Ok(done?)
}
