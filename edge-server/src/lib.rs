//! The visitor's path: the one public listener.
//!
//! Routes by `Host`: sites are served here from memory, forms are shown and take their submissions here, and
//! the rest goes on to the inner services. Nothing on a warm site's path asks Postgres.

mod assets;
mod changes;
mod config;
mod edge;
mod files;
mod forms;
mod front;
mod lookups;
mod pages;
mod proxy;
mod ranges;
mod sending;
mod short;
mod showing;
mod sites;
mod submissions;
mod uploads;
mod visitor;

use anyhow::Context;
use service::{Lifecycle, Listeners, Readiness, Shutdown};

pub use config::{Config, DEFAULTS};
pub use edge::Edge;

/// Runs the service until `shutdown`.
///
/// # Errors
/// A setting can't be used, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let readiness = Readiness::new(&shutdown);
    let edge = Edge::new(&config).context("edge-server")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    lifecycle.spawn("visitors", service::http::serve(listeners.main, front::router(&edge), shutdown.clone()));
    lifecycle.spawn("changes", changes::follow(edge, readiness.register("changes"), shutdown.clone()));
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}
