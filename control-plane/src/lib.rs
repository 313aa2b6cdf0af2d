//! The management API: what an account configures, by key.
//!
//! A handler is read in its signature ([`call::Call`] says who may), checks with `domain`, asks `store` or
//! `warehouse`, and replies. What takes long is written to the outbox and done by the job-runner.

pub mod api;
mod app;
mod authentication;
mod authorization;
mod body_budget;
mod call;
mod config;
mod credential_cache;
mod deploys;
mod exports;
mod idempotency;
mod initial_subdomain;
mod large_json;
mod query_admission;
mod rate_limit;

pub mod signin;
mod uploads;

use anyhow::Context;
use axum::Router;
use service::{Lifecycle, Listeners, Readiness, Shutdown};

pub use app::App;
pub use config::{Config, DEFAULTS};

/// Runs the service until `shutdown`.
///
/// # Errors
/// A setting can't be used, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let readiness = Readiness::new(&shutdown);
    let app = App::new(&config).context("control-plane")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    lifecycle.spawn("api", service::http::serve(listeners.main, router(&app), shutdown.clone()));
    lifecycle.spawn(
        "postgres check",
        app.clone().watch_postgres(readiness.register("postgres"), shutdown.clone()),
    );
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}

/// The API's router, framed.
pub fn router(app: &App) -> Router {
    api::router(app)
}
