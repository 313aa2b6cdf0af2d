//! Tracking events in, enriched rows into ClickHouse: the events' path.
//!
//! `intake` takes them from visitors' browsers, `pipeline` is the list of steps each goes through, and `segments`
//! keeps what was taken until ClickHouse has it.

mod config;
mod intake;
mod pipeline;
mod segments;
mod steps;
mod tracker;

use std::sync::Arc;
use std::time::Duration;

use cache::{Bus, Limiter};
use contract::Signal;
use service::config::ExposeSecret;
use service::{Clock, Lifecycle, Listeners, Readiness, Rng, Shutdown};
use web::EdgeTrust;

pub use config::{Collector, Config, DEFAULTS, Quota, Secrets, Segments};
use intake::{Intake, Times};
use pipeline::Pipeline;
use segments::Limits;
use steps::{CheckQuota, DropBots, FindSite, NameVisitor, RateLimit, Write};

/// What components get to end once asked: open requests 10 s, a last insert 5 s.
const GRACE: Duration = Duration::from_secs(20);

/// Takes events until `shutdown`, then sends on what it has, as far as ClickHouse is there.
///
/// # Errors
/// The folder of segments can't be had, an address can't be read, or a component died.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> anyhow::Result<()> {
    let (clock, rng) = (Clock::system(), Rng::system());
    let readiness = Readiness::new(&shutdown);
    let db = store::connect(&config.store)?;
    let Config { redis, secrets, collector, segments, .. } = &config;
    // Visitors' addresses stand hashed in Redis; the key is one that all collectors share.
    let limiter = Limiter::connect(&redis.url, &redis.prefix, secrets.edge_token.expose_secret().as_bytes())?;
    let bus = Bus::<Signal>::connect(&redis.url, &redis.prefix)?;

    let limits = Limits {
        seal_after: segments.seal_after,
        segment_bytes_max: segments.bytes_max,
        unsent_bytes_max: segments.unsent_bytes_max,
    };
    let chassis = (clock.clone(), rng.clone(), shutdown.clone());
    let warehouse = warehouse::connect(&config.warehouse);
    let (journal, writer, shipper) =
        segments::open(&segments.folder, limits, warehouse, chassis, &readiness)?;

    let find_site = FindSite::new(db.clone(), collector.sites_fresh);
    let (check_quota, quota_keeper) = CheckQuota::new(db.clone(), clock.clone(), config.quota.clone());
    let name_visitor = NameVisitor::new(db, clock.clone(), rng.clone(), readiness.register("salts"));
    let intake = Intake {
        pipeline: Arc::new(Pipeline {
            rate_limit: RateLimit::new(limiter, collector.events_per_minute),
            find_site: find_site.clone(),
            drop_bots: DropBots::new(),
            check_quota,
            name_visitor: name_visitor.clone(),
            write: Write { journal, clock: clock.clone(), rng },
        }),
        trust: EdgeTrust::new(secrets.edge_token.expose_secret()),
        times: Times { clock, accept_event_time: collector.accept_event_time },
    };

    let mut lifecycle = Lifecycle::new(shutdown.clone());
    lifecycle.spawn("salts", name_visitor.look_after_salts(shutdown.clone()));
    lifecycle.spawn("site news", find_site.listen(bus, shutdown.clone()));
    // These end one after the other: no more requests, then no more lines (and nothing left to count), then nothing
    // left to send.
    lifecycle.spawn("intake", service::http::serve(listeners.main, intake::router(intake), shutdown));
    lifecycle.spawn("quota", quota_keeper.run());
    lifecycle.spawn("writer", writer.run());
    lifecycle.spawn("shipper", shipper.run());
    let drained = lifecycle.drained();
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, drained));
    Ok(lifecycle.run(GRACE).await?)
}
