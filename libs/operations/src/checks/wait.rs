//! Waits until the databases accept connections, as a job that starts beside them must.

use std::time::Duration;

use anyhow::{Context as _, Result};
use domain::Transient as _;
use service::ticks;
use store::Db;
use tokio::time::Instant;
use warehouse::Warehouse;

const INTERVAL: Duration = Duration::from_millis(500);

/// Waits for Postgres and ClickHouse for up to `limit`. Each reason to wait is passed to `report` once.
///
/// # Errors
///
/// A database still refuses connections, or the failure is one that waiting does not cure, such as a wrong password.
pub async fn wait_for_stores(
    db: &Db,
    warehouse: &Warehouse,
    limit: Duration,
    mut report: impl FnMut(&str),
) -> Result<()> {
    let deadline = Instant::now() + limit;
    let mut attempts = ticks(INTERVAL);
    let mut reported = String::new();
    loop {
        attempts.tick().await;
        let waiting_for = match store::try_connect(db).await {
            Err(error) if error.is_transient() => anyhow::Error::from(error).context("Postgres"),
            Err(error) => return Err(error).context("connecting to Postgres"),
            Ok(()) => match warehouse.ping().await {
                Err(error) => anyhow::Error::from(error).context("ClickHouse"),
                Ok(()) => return Ok(()),
            },
        };
        let text = format!("{waiting_for:#}");
        if Instant::now() >= deadline {
            return Err(waiting_for.context(format!("no connection within {limit:?}")));
        }
        if text != reported {
            report(&text);
            reported = text;
        }
    }
}
