//! The visitor's path: the one public listener.
//!
//! Routes by `Host`: sites are served here from memory, forms are shown and take their submissions here, and
//! the rest goes on to the inner services. Nothing on a warm site's path asks Postgres.

mod assets;
mod challenges;
mod changes;
mod config;
mod door;
mod edge;
mod embed;
mod encodings;
mod files;
mod form_files;
mod forms;
mod front;
mod gathered;
mod hit;
mod hosts;
mod layouts;
mod listener;
mod memory;
mod paced;
mod pages;
mod proxy;
mod quick;
mod ranges;
mod rendered;
mod replies;
mod results;
mod seats;
mod sending;
mod serving;
mod short;
mod sitemaps;
mod sites;
mod submissions;
mod taken;
mod tracker;
mod uploads;
mod views;
mod visitor;

use anyhow::Context;
use service::{Lifecycle, Listeners, Readiness, Shutdown};
use store::lookups;

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
    lifecycle.spawn("visitors", {
        let (edge, rooms) = (edge.clone(), front::Rooms::new(&edge));
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
    lifecycle.spawn("changes", changes::follow(edge, readiness.register("changes"), shutdown.clone()));
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}
