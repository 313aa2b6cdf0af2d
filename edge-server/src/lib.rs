//! The visitor's path: the one public listener.
//!
//! Routes by `Host`: sites are served here from memory, forms are shown and take their submissions here, and
//! the rest goes on to the inner services. Nothing on a warm site's path asks Postgres.

mod client_ip;
mod config;
mod forms;
mod invalidation;
mod proxy;
mod sites;
mod state;
mod submissions;
mod transport;
mod uploads;

use anyhow::Context;
use service::{Lifecycle, Listeners, Readiness, Shutdown};
use store::read_pool;

pub use config::{Config, DEFAULTS};
use state::EdgeState;
use transport::{listener, router};

/// Runs the service until `shutdown`.
///
/// # Errors
/// A setting can't be used, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let readiness = Readiness::new(&shutdown);
    let edge = EdgeState::new(&config).context("edge-server")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    lifecycle.spawn("visitors", {
        let (edge, rooms) = (edge.clone(), router::HostRouter::new(&edge));
        let (limits, shutdown) = (config.connections, shutdown.clone());
        async move {
            listener::serve(listeners.main, edge.clone(), rooms, limits, shutdown).await?;
            // Nobody views anything any more.
            edge.views.flush().await;
            Ok(())
        }
    });
    lifecycle.spawn("views", {
        let (edge, shutdown) = (edge.clone(), shutdown.clone());
        async move { edge.views.flush_every(config.views.flush_every, shutdown).await }
    });
    lifecycle.spawn("changes", invalidation::listen(edge, readiness.register("changes"), shutdown.clone()));
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}
