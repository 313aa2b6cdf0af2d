//! Everything that takes long, may fail and is tried again, or happens at a time.
//!
//! Postgres says what is to be done; Redis carries what is due now. The relay moves outbox rows to the
//! queue, sweeps find due work that a lost queue or a killed worker left behind, and [`work`] does it.
//! Deliveries to webhooks are claimed where they stand ([`deliveries`]).

mod archives;
mod closings;
mod config;
mod deliveries;
mod forgetting;
mod idempotency;
mod jobs;
mod mail;
mod publishing;
mod relay;
mod runner;
mod sweep;
mod work;

use anyhow::Context;
use service::{Lifecycle, Listeners, Readiness, Shutdown};

pub use config::{Config, DEFAULTS};
pub use runner::Runner;

/// Runs the service until `shutdown`.
///
/// # Errors
/// A setting can't be used, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let readiness = Readiness::new(&shutdown);
    let runner = Runner::new(&config).await.context("job-runner")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let check = readiness.register("postgres");
    lifecycle.spawn("relay", relay::run(runner.clone(), config.outbox.every, check, shutdown.clone()));
    let delivering = deliveries::run(runner.clone(), config.webhooks.clone(), shutdown.clone());
    lifecycle.spawn("deliveries", delivering);
    lifecycle.spawn("purge", sweep::purge(runner.clone(), shutdown.clone()));
    lifecycle.spawn("tidy", sweep::tidy(runner.clone(), shutdown.clone()));
    if runner.mailer.is_some() {
        lifecycle.spawn("mail", sweep::mail(runner.clone(), config.mail.clone(), shutdown.clone()));
    }
    let forgetting = idempotency::run(runner.clone(), config.idempotency.clone(), shutdown.clone());
    lifecycle.spawn("forgetting", forgetting);
    let publishing = publishing::run(runner.clone(), config.publishing.clone(), shutdown.clone());
    lifecycle.spawn("publishing", publishing);
    let closings = closings::run(runner.clone(), config.closings.clone(), shutdown.clone());
    lifecycle.spawn("closings", closings);
    let archives = archives::run(runner.clone(), config.archives.clone(), shutdown.clone());
    lifecycle.spawn("archives", archives);
    lifecycle.spawn("links", forgetting::links(runner.clone(), config.links.clone(), shutdown.clone()));
    let deleted = forgetting::deleted(runner.clone(), config.purge.erase_every, shutdown.clone());
    lifecycle.spawn("deleted rows", deleted);
    lifecycle.spawn("work", work::run(runner, shutdown.clone()));
    let greeting =
        axum::Router::new().fallback(async || "the job-runner takes no requests; see its ops port\n");
    lifecycle.spawn("greeting", service::http::serve(listeners.main, greeting, shutdown));
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}
