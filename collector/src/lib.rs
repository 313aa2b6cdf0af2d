//! Tracking events in, enriched rows into ClickHouse: the events' path.
//!
//! `intake` takes them from visitors' browsers, `pipeline` is the list of steps each goes through, and `segments`
//! keeps what was taken until ClickHouse has it.

mod config;
mod dropped_events;
mod intake;
mod pipeline;
mod segments;
mod steps;
mod tracker;

use std::sync::Arc;
use std::time::Duration;

use cache::Bus;
use contract::Signal;
use service::config::ExposeSecret;
use service::{Clock, Lifecycle, Listeners, Readiness, Rng, Shutdown};
use store::read_pool::ReadPool;
use web::EdgeTrust;

pub use config::{Collector, Config, DEFAULTS, Quota, Secrets, Segments};
use dropped_events::DroppedEvents;
use intake::{Intake, Times};
use pipeline::Pipeline;
use segments::{Limits, Stores};
use steps::{
    CheckQuota, DeriveVisitorId, DropBots, FindSite, Locate, ParseUserAgent, RateLimit, Salts, Write,
};

/// What components get to end once asked: open requests 10 s, a last insert 5 s.
const GRACE: Duration = Duration::from_secs(20);

/// Takes events until `shutdown`, then sends on what it has, as far as ClickHouse is there.
///
/// # Errors
/// A setting can't be used, the folder of segments can't be had, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    config.collector.check()?;
    let (clock, rng) = (Clock::system(), Rng::system());
    let readiness = Readiness::new(&shutdown);
    let db = store::connect(&config.store)?;
    let Config { redis, secrets, collector, segments, .. } = &config;
    // Visitors' addresses stand hashed in Redis; the key is one that all collectors share.
    let pepper = secrets.edge_token.expose_secret().as_bytes();
    let rate_limit = RateLimit::connect(redis, pepper, collector.events_per_minute)?;
    let bus = Bus::<Signal>::connect(&redis.url, &redis.prefix)?;

    let limits = Limits {
        seal_after: segments.seal_after,
        max_segment_bytes: segments.max_bytes,
        max_unsent_bytes: segments.max_unsent_bytes,
    };
    let chassis = (clock.clone(), rng.clone(), shutdown.clone());
    let rules = collector.rules();
    // One for all, so that a Postgres that is away makes one of them wait.
    let lookups = ReadPool::connect(&config.store, collector.lookup_connections)?;
    let warehouse = warehouse::connect(&config.warehouse);
    let stores = Stores { warehouse, lookups: lookups.clone(), rules };
    let (journal, writer, shipper) = segments::open(&segments.folder, limits, stores, chassis, &readiness)?;

    let find_site = FindSite::new(lookups.clone(), collector.site_max_age);
    let (check_quota, quota_keeper) =
        CheckQuota::new(db.clone(), lookups.clone(), clock.clone(), config.quota.clone());
    let salts = Salts::new(lookups, clock.clone(), rng.clone(), readiness.register("salts"));
    let derive_visitor_id = DeriveVisitorId::new(salts);
    let drops = DroppedEvents::new(db, clock.clone());
    let trust = EdgeTrust::new(secrets.edge_token.expose_secret());
    let intake = Intake {
        pipeline: Arc::new(Pipeline {
            rate_limit: rate_limit.clone(),
            find_site: find_site.clone(),
            drop_bots: DropBots::new()?,
            check_quota,
            locate: Locate::new(&collector.location_files)?,
            parse_user_agent: ParseUserAgent::new()?,
            derive_visitor_id: derive_visitor_id.clone(),
            write: Write { journal, clock: clock.clone(), rng },
            drops: drops.clone(),
        }),
        trust: trust.clone(),
        times: Times { clock: clock.clone(), trusted_token: collector.accept_event_time.then_some(trust) },
    };

    let mut lifecycle = Lifecycle::new(shutdown.clone());
    lifecycle.spawn("salts", derive_visitor_id.look_after_salts(shutdown.clone()));
    lifecycle.spawn("rate limit", rate_limit.tell(clock, shutdown.clone()));
    lifecycle.spawn("drops", drops.write(collector.drop_flush_interval, shutdown.clone()));
    lifecycle.spawn("site news", find_site.listen(bus, shutdown.clone()));
    // These end one after the other: no more requests, then no more lines (and nothing left to count), then nothing
    // left to send.
    lifecycle.spawn("intake", service::http::serve(listeners.main, intake::router(intake), shutdown));
    lifecycle.spawn("quota", quota_keeper.run());
    lifecycle.spawn("writer", on_a_thread_of_its_own(writer.run(), 0));
    lifecycle.spawn("shipper", on_a_thread_of_its_own(shipper.run(), NICENESS));
    let drained = lifecycle.drained();
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, drained));
    Ok(lifecycle.run(GRACE).await?)
}

/// How much of the processors the shipper leaves to whoever waits for an answer.
const NICENESS: i32 = 5;

/// Work that takes milliseconds of a processor or of a disk at a time keeps nobody waiting there who waits for an answer.
async fn on_a_thread_of_its_own(
    work: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    niceness: i32,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        // Elsewhere a thread has no niceness of its own.
        #[cfg(target_os = "linux")]
        let _as_before = rustix::process::nice(niceness);
        runtime.block_on(work)
    })
    .await?
}
