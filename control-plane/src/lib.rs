//! The management API, and the pages for signing in and claiming trials.
//!
//! A handler declares its required scope in its signature ([`call::Call`]), validates with `domain`, queries `store` or
//! `warehouse`, and replies. Long work is written to the outbox for the job-runner.

mod admission;
pub mod api;
mod app;
mod authentication;
mod authorization;
mod automations;
mod call;
mod catalog;
mod compression;
mod config;
mod credential_cache;
mod deploys;
mod domain_checks;
mod exports;
mod idempotency;
mod initial_subdomain;
mod large_bodies;
mod mcp;
mod next_steps;
mod query_admission;
mod rate_limit;
mod reference;

pub mod signin;
mod uploads;

use anyhow::Context;
use axum::Router;
use service::{Lifecycle, Listeners, Readiness, Rounds, Shutdown, clock_sync, master_keys, schema};
use store::resealing::report_unreadable;

pub use app::App;
pub use config::{Config, DEFAULTS};

/// Runs the service until `shutdown`, or until a component fails.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    service::metrics::declare(&[store::metrics::ALL, cache::metrics::ALL]);
    let readiness = Readiness::new(&shutdown);
    let app = App::new(&config).context("control-plane")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (db, check) = (app.db.clone(), readiness.register("schema"));
    let find = async move || store::find_schema_mismatch(&db).await;
    lifecycle.spawn("schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let (warehouse, check) = (app.warehouse.clone(), readiness.register_store("warehouse_schema"));
    let find = async move || warehouse.find_schema_mismatch().await;
    lifecycle.spawn("warehouse schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let (drain, stop) = (listeners.drain, lifecycle.stop());
    let (db, rounds) = (app.db.clone(), Rounds::new(&readiness, "clock", clock_sync::INTERVAL));
    let read = async move || store::current_time(&db).await;
    let synced = clock_sync::follow_from_start(app.clock.clone(), rounds, stop.clone(), read).await;
    lifecycle.spawn("clock", synced);
    let api = service::http::serve(listeners.main, router(&app), shutdown.clone(), drain);
    lifecycle.spawn_server("api", drain, api);
    // Requests don't wait for runs when the socket is closed: the next process can't start before they end.
    let waiters = app.run_waiters.clone();
    lifecycle.spawn("run waiters", async move { waiters.close_at(drain.over(&shutdown)).await });
    let (rate, clock) = (app.request_rate.clone(), app.clock.clone());
    lifecycle.spawn("request rate", rate.share_counts(clock, stop.clone()));
    let (check, rounds) =
        (readiness.register_store("postgres"), Rounds::new(&readiness, "postgres check", app::PING_INTERVAL));
    lifecycle.spawn("postgres check", app.clone().watch_postgres(check, rounds, stop.clone()));
    let keys_check = readiness.register_store("master_keys");
    let keys_rounds = Rounds::new(&readiness, "master key check", master_keys::INTERVAL);
    let find_unreadable = async move || report_unreadable(&app.db, &app.master_key).await;
    let watching = master_keys::watch(keys_check, keys_rounds, stop, find_unreadable);
    lifecycle.spawn("master key check", watching);
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}

/// Returns the router of the API and the sign-in pages.
pub fn router(app: &App) -> Router {
    api::router(app)
}
