//! The periodic read of the names that have a certificate.

use std::time::Duration;

use service::{Rounds, Shutdown};

use crate::state::EdgeState;

/// Interval at which the names are read. Signals add new ones at once.
pub(crate) const INTERVAL: Duration = Duration::from_secs(15);

/// Reads the names with a certificate until shutdown. Without TLS it does nothing.
pub(crate) async fn load_names(state: EdgeState, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    let Some(tls) = &state.tls else {
        shutdown.requested().await;
        return Ok(());
    };
    service::every(&rounds, service::ticks(INTERVAL), &shutdown, || tls.load_names()).await
}
