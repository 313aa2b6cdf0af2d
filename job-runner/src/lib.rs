//! Work that is slow, is retried, or happens at a scheduled time.
//!
//! Postgres is the source of truth for due work; Redis holds only the jobs that are due now. The relay moves outbox rows
//! to the queue, sweeps find due work that an emptied queue or a killed worker left behind, and [`dispatch`] runs jobs.
//! Webhook deliveries are claimed directly in Postgres ([`deliveries`]).

mod config;
mod deliveries;
mod dispatch;
mod expiry;
mod form_closing;
mod jobs;
mod mail;
mod publishing;
mod relay;
mod retention;
mod state;
mod sweep;

use anyhow::Context;
use service::{Lifecycle, Listeners, Readiness, Shutdown};
use state::JobState;

pub use config::{Config, DEFAULTS};

/// Runs the service until `shutdown`. Fails if a setting is invalid or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let readiness = Readiness::new(&shutdown);
    let state = JobState::new(&config).await.context("job-runner")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let check = readiness.register("postgres");
    lifecycle.spawn("relay", relay::run(state.clone(), config.outbox.poll_interval, check, shutdown.clone()));
    lifecycle.spawn("deliveries", deliveries::run(state.clone(), config.webhooks, shutdown.clone()));
    lifecycle.spawn("purge", sweep::purge(state.clone(), shutdown.clone()));
    lifecycle.spawn("garbage_collection", sweep::collect_garbage(state.clone(), shutdown.clone()));
    lifecycle.spawn("orphan_scan", sweep::delete_orphans(state.clone(), shutdown.clone()));
    if state.mailer.is_some() {
        lifecycle.spawn("mail", sweep::mail(state.clone(), config.mail, shutdown.clone()));
    }
    lifecycle.spawn("idempotency", expiry::idempotency(state.clone(), config.idempotency, shutdown.clone()));
    lifecycle.spawn("publishing", publishing::run(state.clone(), config.publishing, shutdown.clone()));
    lifecycle.spawn("form_closing", form_closing::run(state.clone(), config.form_closing, shutdown.clone()));
    lifecycle.spawn("archives", expiry::archives(state.clone(), config.archives, shutdown.clone()));
    let links = retention::visitor_id_links(state.clone(), config.visitor_id_links, shutdown.clone());
    lifecycle.spawn("visitor_id_links", links);
    let erasing = retention::erase_deleted(state.clone(), config.purge.erase_interval, shutdown.clone());
    lifecycle.spawn("erase_deleted", erasing);
    lifecycle.spawn("dispatch", dispatch::run(state, shutdown.clone()));
    let fallback =
        axum::Router::new().fallback(async || "the job-runner serves no requests; see its ops port\n");
    lifecycle.spawn("listener", service::http::serve(listeners.main, fallback, shutdown));
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::SHUTDOWN_TIMEOUT).await?;
    Ok(())
}
