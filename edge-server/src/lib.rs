//! The edge: the only public listener.
//!
//! Routes requests by `Host`. Serves sites from memory, shows forms and stores their submissions, and proxies everything
//! else to the inner services. A cached page is served without a query.

mod client_ip;
mod config;
mod cors;
mod cpu_work;
mod database;
mod etag;
mod forms;
mod inner_services;
mod invalidation;
mod metrics;
mod page_request;
mod proxy;
mod request_id;
mod sites;
mod state;
mod submissions;
mod tls;
mod transport;
mod unread_body;
mod uploads;

use anyhow::Context;
use service::{Lifecycle, Listeners, Readiness, Rounds, Shutdown, clock_sync, schema};

pub use config::{Config, DEFAULTS};
use state::EdgeState;
use transport::listener::{self, PublicSockets};
use transport::router::HostRouter;

/// Runs the service until `shutdown`.
///
/// # Errors
/// A setting is invalid, or a component failed.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    service::metrics::declare(&[metrics::ALL, store::metrics::ALL, cache::metrics::ALL]);
    let limits = config.connections.clone();
    let limits = limits.within(service::open_files::raise_limit(config.connections.open_files()));
    let readiness = Readiness::new(&shutdown);
    let state = EdgeState::new(&config).context("edge-server")?;
    let has_https = listeners.https.is_some();
    if has_https && state.tls.is_none() {
        anyhow::bail!("listen.https needs secrets.master_key, which decrypts the keys of certificates");
    }
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (db, check) = (state.db.pool().clone(), readiness.register("schema"));
    let find = async move || store::find_schema_mismatch(&db).await;
    lifecycle.spawn("schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let (drain, stop) = (listeners.drain, lifecycle.stop());
    let (db, rounds) = (state.db.pool().clone(), Rounds::new(&readiness, "clock", clock_sync::INTERVAL));
    let read = async move || store::current_time(&db).await;
    let synced = clock_sync::follow_from_start(state.clock.clone(), rounds, stop.clone(), read).await;
    lifecycle.spawn("clock", synced);
    lifecycle.spawn_server("listener", drain, {
        let (state, router) = (state.clone(), HostRouter::new(&state));
        let shutdown = shutdown.clone();
        async move {
            let sockets = PublicSockets {
                main: listeners.main,
                https: listeners.https,
                proxy_protocol: listeners.proxy_protocol,
                https_proxy_protocol: listeners.https_proxy_protocol,
                drain,
            };
            listener::serve(sockets, state.clone(), router, limits, shutdown).await?;
            // All connections are closed, so no further views are counted.
            state.page_responder.views.flush().await;
            Ok(())
        }
    });
    lifecycle.spawn("page views", {
        let (state, stop, interval) = (state.clone(), stop.clone(), config.views.flush_interval);
        let rounds = Rounds::new(&readiness, "page views", interval);
        async move { state.page_responder.views.flush_every(interval, rounds, stop).await }
    });
    lifecycle.spawn("submission rates", {
        let (rate, clock) = (state.submission_rate.clone(), state.clock.clone());
        rate.share_counts(clock, stop.clone())
    });
    if has_https {
        let rounds = Rounds::new(&readiness, "ticket keys", tls::TICKET_KEY_INTERVAL);
        lifecycle.spawn("ticket keys", tls::rotate_ticket_keys(state.clone(), rounds, stop.clone()));
        let rounds = Rounds::new(&readiness, "certificate names", tls::NAMES_INTERVAL);
        lifecycle.spawn("certificate names", tls::load_names(state.clone(), rounds, stop.clone()));
    }
    let check = readiness.register("invalidation");
    lifecycle.spawn("invalidation", invalidation::listen(state, check, stop));
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    lifecycle.run(config::GRACE).await?;
    Ok(())
}
