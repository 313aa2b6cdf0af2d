//! Accepts tracking events from visitors' browsers and stores them, enriched, in ClickHouse.
//!
//! `intake` is the HTTP endpoint, `pipeline` the list of steps that each event goes through, and `segments` the
//! write-ahead log until ClickHouse has stored the event.

mod config;
mod dropped_events;
mod incoming_event;
mod intake;
mod metrics;
mod pipeline;
mod running_events;
mod segments;
mod steps;
pub mod stored_segments;
mod tracker;

use std::sync::Arc;
use std::time::Duration;

use cache::{Bus, ExpiringValues};
use contract::Signal;
use service::config::ExposeSecret;
use service::{Clock, Lifecycle, Listeners, Readiness, Rng, Rounds, Shutdown, clock_sync, schema};
use store::read_pool::ReadPool;
use web::EdgeTrust;

pub use config::{Collector, Config, DEFAULTS, Quota, Salts as SaltSettings, Secrets, Segments};
use dropped_events::DroppedEvents;
use intake::{EventTimes, IntakeState};
use pipeline::Pipeline;
use running_events::RunningEvents;
use segments::{Limits, Stores};
use steps::{
    CheckQuota, DeriveVisitorId, DropBots, FindSite, Locate, OrderEvents, ParseUserAgent, RateLimit, Salts,
    SealedCopies, Write,
};

/// Time for components to stop once the running requests have ended: the last inserts take up to 5 s.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs the collector until `shutdown`, then sends the remaining events if ClickHouse is available.
///
/// # Errors
/// A setting is invalid, the segment folder cannot be opened, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    service::metrics::declare(&[metrics::ALL, store::metrics::ALL, cache::metrics::ALL]);
    config.collector.check()?;
    let trust = EdgeTrust::new(config.secrets.edge_token.expose_secret())?;
    let (clock, rng) = (Clock::remote(), Rng::system());
    let readiness = Readiness::new(&shutdown);
    let db = store::connect(&config.store)?;
    let Config { redis, secrets, collector, segments, .. } = &config;
    // Visitors' addresses are hashed in Redis, with a key that all collectors share.
    let pepper = secrets.edge_token.expose_secret().as_bytes();
    let rate_limit = RateLimit::connect(redis, pepper, collector.events_per_minute)?;
    let bus = Bus::<Signal>::connect(redis, &redis.prefix)?;

    let limits = Limits {
        seal_after: segments.seal_after,
        max_segment_bytes: segments.max_bytes,
        max_unsent_bytes: segments.max_unsent_bytes,
    };
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (drain, stop) = (listeners.drain, lifecycle.stop());
    let (pool, rounds) = (db.clone(), Rounds::new(&readiness, "clock", clock_sync::INTERVAL));
    let read = async move || store::current_time(&pool).await;
    let synced = clock_sync::follow_from_start(clock.clone(), rounds, stop.clone(), read).await;
    lifecycle.spawn("clock", synced);
    let base = (clock.clone(), rng.clone(), stop.clone());
    let rules = collector.visit_rules();
    // Shared, so that while Postgres is unavailable only one caller waits for it.
    let lookups = ReadPool::connect(&config.store, collector.lookup_connections)?;
    let warehouse = warehouse::connect(&config.warehouse)?.reading_own_writes(&segments.insert_quorum)?;
    let (pool, check) = (db.clone(), readiness.register("schema"));
    let find = async move || store::find_schema_mismatch(&pool).await;
    lifecycle.spawn("schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let (checked, check) = (warehouse.clone(), readiness.register_store("warehouse_schema"));
    let find = async move || checked.find_schema_mismatch().await;
    lifecycle.spawn("warehouse schema", schema::check_at_start(check, shutdown.clone(), find).await?);
    let stores = Stores { warehouse, lookups: lookups.clone(), rules };
    let (journal, writer, shipper) = segments::open(&segments.folder, limits, stores, base, &readiness)?;

    let find_site = FindSite::new(lookups.clone(), collector.site_max_age);
    let (check_quota, quota_leases) =
        CheckQuota::new(db.clone(), lookups.clone(), clock.clone(), config.quota.clone());
    let copies =
        SealedCopies::new(ExpiringValues::connect(redis, &redis.prefix)?, config.salts.master_key()?);
    let salts = Salts::new(lookups, copies, clock.clone(), rng.clone(), readiness.register("salts"));
    let derive_visitor_id = DeriveVisitorId::new(salts);
    let dropped_events = DroppedEvents::new(db, clock.clone());
    let running = RunningEvents::new();
    let intake = IntakeState {
        running: running.clone(),
        pipeline: Arc::new(Pipeline {
            rate_limit: rate_limit.clone(),
            find_site: find_site.clone(),
            drop_bots: DropBots::new()?,
            order_events: OrderEvents::new(clock.clone()),
            check_quota,
            locate: Locate::new(&collector.location_files)?,
            parse_user_agent: ParseUserAgent::new()?,
            derive_visitor_id: derive_visitor_id.clone(),
            write: Write { journal, clock: clock.clone(), rng },
            dropped_events: dropped_events.clone(),
        }),
        trust: trust.clone(),
        event_times: EventTimes {
            clock: clock.clone(),
            trusted_token: collector.accept_event_time.then_some(trust),
        },
    };

    lifecycle.spawn("salts", derive_visitor_id.maintain_salts(stop.clone()));
    lifecycle.spawn("rate limit", rate_limit.share_counts(clock, stop.clone()));
    let flushes = Rounds::new(&readiness, "dropped events", collector.drop_flush_interval);
    lifecycle
        .spawn("dropped events", dropped_events.run(collector.drop_flush_interval, flushes, stop.clone()));
    lifecycle.spawn("site invalidation", find_site.listen(bus, stop));
    // These end one after the other: when the intake has ended, the journal is dropped and the writer ends, and then the
    // shipper.
    let requests = service::http::serve(listeners.main, intake::router(intake), shutdown, drain);
    let intake = async move {
        let ended = requests.await;
        // Those of clients that have disconnected.
        running.finish().await;
        ended
    };
    lifecycle.spawn_server("intake", drain, intake);
    lifecycle.spawn("quota", quota_leases.run());
    lifecycle.spawn("writer", run_on_own_thread(writer.run(), 0));
    lifecycle.spawn("shipper", run_on_own_thread(shipper.run(), SHIPPER_NICENESS));
    let drained = lifecycle.drained();
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, drained));
    Ok(lifecycle.run(SHUTDOWN_TIMEOUT).await?)
}

/// The shipper's `nice` value: requests take precedence over it.
const SHIPPER_NICENESS: i32 = 5;

/// Runs a task on a thread of its own, because it blocks on CPU or disk for milliseconds at a time and would delay
/// requests on the runtime's threads.
async fn run_on_own_thread(
    task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    niceness: i32,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        // Only Linux has a niceness per thread.
        #[cfg(target_os = "linux")]
        let _previous = rustix::process::nice(niceness);
        runtime.block_on(task)
    })
    .await?
}
