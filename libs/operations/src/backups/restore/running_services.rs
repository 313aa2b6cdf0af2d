//! Refuses a restore while services run: they would write to what is replaced, and keep caches of what was.

use std::time::Duration;

use anyhow::{Result, bail};
use service::ticks;
use store::Db;
use store::backups::list_other_clients;
use tokio::time::Instant;

use super::super::installation::Installation;

const REDIS_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a connection may take to disappear.
const GRACE: Duration = Duration::from_secs(3);

/// Fails if a service listens to the invalidation channel in Redis, or if other programs are connected to Postgres. A store that
/// is not running has no clients.
pub(super) async fn check(installation: &Installation<'_>) -> Result<()> {
    let subscribers = async {
        let server = redis_connection::Primary::new(installation.redis)?;
        redis_connection::count_subscribers(
            &server,
            &cache::bus_channel(&installation.redis.prefix),
            REDIS_TIMEOUT,
        )
        .await
    };
    match subscribers.await {
        Ok(0) => {}
        Ok(count) => bail!(
            "{count} services are running: stop edges, control planes, collectors and job-runners before a restore, then run this again"
        ),
        Err(error) => (installation.report)(&format!("Redis can't tell whether services run: {error}")),
    }
    check_clients(installation.db).await
}

/// Fails if other programs stay connected to Postgres. One that just ended may be listed for a moment, as may this program's own
/// attempt to connect.
pub(super) async fn check_clients(db: &Db) -> Result<()> {
    if store::try_connect(db).await.is_err() {
        return Ok(());
    }
    let (began, mut ticks) = (Instant::now(), ticks(POLL_INTERVAL));
    let mut conn = store::acquire(db).await?;
    loop {
        ticks.tick().await;
        let clients = list_other_clients(&mut conn).await?;
        if clients.is_empty() {
            return Ok(());
        }
        if began.elapsed() >= GRACE {
            let clients: Vec<String> = clients
                .iter()
                .map(|client| format!("{} from {}", client.connections, client.address))
                .collect();
            bail!(
                "Postgres has connections of other programs ({}): stop the services before a restore",
                clients.join(", ")
            );
        }
    }
}
