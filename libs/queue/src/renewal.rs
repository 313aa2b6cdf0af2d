//! Renews the leases of running jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::lease::Leases;
use crate::redis::RedisQueue;

/// Renews all leases every third of `lease_ttl`. Never returns.
pub(crate) async fn run(redis: Arc<RedisQueue>, leases: Leases, lease_ttl: Duration) {
    let mut ticks = tokio::time::interval(lease_ttl / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let keys = leases.all();
        if keys.is_empty() {
            continue;
        }
        match redis.renew(&keys, lease_ttl).await {
            Ok(0) => {}
            Ok(lost) => tracing::warn!(lost, "running jobs lost their lease and may run twice"),
            Err(error) => tracing::warn!(%error, "renewing leases failed and is retried"),
        }
    }
}
