//! Work that is slow, is retried, or happens at a scheduled time.
//!
//! Postgres is the source of truth for due work; Redis holds only the jobs that are due now. The relay moves outbox rows
//! to the queue, sweeps find due work that an emptied queue or a killed worker left behind, and [`dispatch`] runs jobs.
//! Webhook deliveries ([`deliveries`]) and runs of automations ([`automations`]) are claimed directly in Postgres.

mod acme;
mod automations;
mod clock_sync;
mod config;
mod deliveries;
mod dispatch;
mod domain_checks;
mod due_ids;
mod jobs;
mod mail;
mod metrics;
mod own_addresses;
mod periodic;
mod relay;
mod signalled_polls;
mod state;
mod unreadable;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use domain::addresses::Addresses;
use futures::FutureExt;
use futures::future::BoxFuture;
use periodic::{expiry, form_closing, publishing, queue_backlog, retention, sweep};
use service::{Lifecycle, Listeners, Readiness, Rounds, Shutdown, master_keys, schema};
use state::JobState;
use store::resealing::report_unreadable;
use tokio::sync::watch;

pub use config::{Config, DEFAULTS};

/// Runs the service until `shutdown`. Fails if a setting is invalid or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    service::metrics::declare(&[metrics::ALL, store::metrics::ALL, cache::metrics::ALL]);
    let readiness = Readiness::new(&shutdown);
    let state = JobState::new(&config).await.context("job-runner")?;
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (db, check) = (state.db.clone(), readiness.register("schema"));
    let find = async move || store::find_schema_mismatch(&db).await;
    lifecycle.spawn("schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let (warehouse, check) = (state.warehouse.clone(), readiness.register_store("warehouse_schema"));
    let find = async move || warehouse.find_schema_mismatch().await;
    lifecycle.spawn("warehouse schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let rounds = |task, interval| Rounds::new(&readiness, task, interval);
    let (synced, is_synced) = watch::channel(false);
    let watched = (rounds("clock", clock_sync::INTERVAL), readiness.register_store("postgres"));
    lifecycle.spawn("clock", clock_sync::run(state.clone(), synced, watched, shutdown.clone()));
    let mut certificates = certificate_components(&state, &config, &rounds, &shutdown).context("acme")?;
    let mut components = components(&state, config, &rounds, &shutdown);
    components.append(&mut certificates);
    for (name, component) in components {
        lifecycle.spawn(name, clock_sync::after_sync(is_synced.clone(), shutdown.clone(), component));
    }
    let keys_check = readiness.register_store("master_keys");
    let keys_rounds = rounds("master_key_check", master_keys::INTERVAL);
    let find_unreadable = async move || report_unreadable(&state.db, &state.master_key).await;
    let watching = master_keys::watch(keys_check, keys_rounds, shutdown.clone(), find_unreadable);
    lifecycle.spawn("master_key_check", watching);
    let fallback =
        axum::Router::new().fallback(async || "the job-runner serves no requests; see its ops port\n");
    // The other components don't wait for it: their work begins to end at once, and no request needs them.
    let listener = service::http::serve(listeners.main, fallback, shutdown, listeners.drain);
    lifecycle.spawn_server("listener", listeners.drain, listener);
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::SHUTDOWN_TIMEOUT).await?;
    Ok(())
}

type Component = (&'static str, BoxFuture<'static, anyhow::Result<()>>);

/// Returns every task that works on Postgres.
fn components(
    state: &JobState,
    config: Config,
    rounds: &dyn Fn(&'static str, Duration) -> Rounds,
    shutdown: &Shutdown,
) -> Vec<Component> {
    let (state, stop) = (|| state.clone(), || shutdown.clone());
    let (purge, garbage) = (&config.purge, &config.garbage_collection);
    let deliveries = deliveries::Watched {
        claims: rounds("deliveries", config.webhooks.poll_interval),
        completions: rounds("completions", config.webhooks.batch_window),
    };
    let automations = automations::Watched {
        claims: rounds("runs", config.automations.poll_interval),
        completions: rounds("run_completions", config.automations.poll_interval),
        leases: rounds("run_leases", automations::heartbeat(config.automations.lease_ttl)),
        triggers: rounds("run_triggers", config.automations.poll_interval),
        schedules: rounds("run_schedules", config.automations.poll_interval),
        retention: rounds("run_retention", config.automations.cleanup_interval),
    };
    let relaying = rounds("relay", config.outbox.poll_interval);
    let purging = rounds("purge", purge.poll_interval);
    let collecting = rounds("garbage_collection", garbage.poll_interval);
    let scanning = rounds("orphan_scan", garbage.orphan_scan_interval);
    let erasing = rounds("erase_deleted", purge.erase_interval);
    let idempotency = rounds("idempotency", config.idempotency.cleanup_interval);
    let publishing = rounds("publishing", config.publishing.poll_interval);
    let closing = rounds("form_closing", config.form_closing.poll_interval);
    let archives = rounds("archives", config.archives.cleanup_interval);
    let activity = rounds("activity", config.activity.poll_interval);
    let checking = rounds("domain_checks", config.domains.poll_interval);
    let orphans = rounds("orphaned_certificates", domain_checks::CLEANUP_INTERVAL);
    let links = rounds("visitor_id_links", config.visitor_id_links.cleanup_interval);
    let measuring = rounds("queue_backlog", queue_backlog::INTERVAL);
    let mut components: Vec<Component> = vec![
        ("relay", relay::run(state(), config.outbox.poll_interval, relaying, stop()).boxed()),
        ("deliveries", deliveries::run(state(), config.webhooks, deliveries, stop()).boxed()),
        ("automations", automations::run(state(), config.automations, automations, stop()).boxed()),
        ("purge", sweep::purge(state(), purging, stop()).boxed()),
        ("garbage_collection", sweep::collect_garbage(state(), collecting, stop()).boxed()),
        ("orphan_scan", sweep::delete_orphans(state(), scanning, stop()).boxed()),
        ("queue_backlog", queue_backlog::run(state(), measuring, stop()).boxed()),
        ("idempotency", expiry::idempotency(state(), config.idempotency, idempotency, stop()).boxed()),
        ("publishing", publishing::run(state(), config.publishing, publishing, stop()).boxed()),
        ("form_closing", form_closing::run(state(), config.form_closing, closing, stop()).boxed()),
        (
            "domain_checks",
            domain_checks::run(state(), config.domains.poll_interval, checking, stop()).boxed(),
        ),
        ("orphaned_certificates", domain_checks::run_cleanup(state(), orphans, stop()).boxed()),
        ("archives", expiry::archives(state(), config.archives, archives, stop()).boxed()),
        ("activity", expiry::activity(state(), config.activity, activity, stop()).boxed()),
        (
            "visitor_id_links",
            retention::visitor_id_links(state(), config.visitor_id_links, links, stop()).boxed(),
        ),
        ("erase_deleted", retention::erase_deleted(state(), erasing, stop()).boxed()),
        ("dispatch", dispatch::run(state(), stop()).boxed()),
    ];
    if state().mailer.is_some() {
        let mailing = rounds("mail", config.mail.poll_interval);
        components.push(("mail", sweep::mail(state(), config.mail, mailing, stop()).boxed()));
    }
    components
}

/// Returns the tasks that order certificates; none if that is off.
fn certificate_components(
    state: &JobState,
    config: &Config,
    rounds: &dyn Fn(&'static str, Duration) -> Rounds,
    shutdown: &Shutdown,
) -> anyhow::Result<Vec<Component>> {
    let settings = &config.acme;
    settings.check()?;
    let addresses = Addresses::new(&config.http.base_url, &config.http.sites_domain)?;
    let sites_domain = addresses.sites_domain();
    // No authority issues certificates for localhost or addresses.
    let base_host = domain::domains::read(addresses.base_host(), &[]).ok();
    let upkeep = acme::Upkeep::new(state, settings, base_host, sites_domain);
    let mut components: Vec<Component> = Vec::new();
    if settings.is_on() {
        let issuing = Arc::new(acme::Issuing::new(state, settings, upkeep.ordered_names(), sites_domain)?);
        let watched = rounds("renewal_info", settings.poll_interval);
        let reading = acme::run_renewal_info(Arc::clone(&issuing), watched, shutdown.clone());
        components.push(("renewal_info", reading.boxed()));
        let watched = rounds("certificates", settings.poll_interval);
        components.push(("certificates", acme::run(issuing, watched, shutdown.clone()).boxed()));
    }
    let watched = rounds("certificate_upkeep", acme::INTERVAL);
    components.push(("certificate_upkeep", upkeep.run(watched, shutdown.clone()).boxed()));
    Ok(components)
}
