//! The task that keeps the list of names with a certificate.

use std::time::Duration;

use service::{Rounds, Shutdown};

use crate::state::EdgeState;

/// Interval at which it is checked, in memory, whether the names must be read.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Reads the names with a certificate when that is due, until shutdown. Without TLS it does nothing.
pub(crate) async fn load_names(state: EdgeState, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    let Some(tls) = &state.tls else {
        shutdown.requested().await;
        return Ok(());
    };
    service::every(&rounds, service::ticks(INTERVAL), &shutdown, || tls.load_names()).await
}
