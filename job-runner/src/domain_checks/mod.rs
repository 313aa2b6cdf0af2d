//! Checks the DNS of custom domains: soon after they are added, then less and less often, and a few times a day for as long as
//! they stand. Due checks are claimed in Postgres under a lease, so a killed job-runner costs the lease and no check.

mod proxies;
pub(crate) mod settings;

use std::time::Duration;

use chrono::TimeDelta;
use contract::{Change, Signal};
use domain::domains::{ErrorCode, Found, compare};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use service::{Rounds, Shutdown, every, ticks};
use store::domains::{CheckContext, LeasedCheck};
use tokio::sync::Semaphore;

use self::proxies::is_proxied;
use crate::metrics;
use crate::state::JobState;

/// Longer than a check may take. It begins with the check: no more checks are claimed than begin at once.
const LEASE: TimeDelta = TimeDelta::seconds(30);
/// Checks under way at once, and of them those of one account: the slow DNS of its domains must not delay those of others.
const CONCURRENT: usize = 64;
const MAX_PER_ACCOUNT: i64 = 8;
/// Interval at which checks that became due are claimed while others are under way.
const CLAIM_INTERVAL: Duration = Duration::from_millis(500);
/// Results stored at once. Checks wait for DNS without a connection, and all together must not take the connections that other
/// tasks need.
const STORING: usize = 8;
/// Interval at which certificates of deleted domains are deleted, and how many at once.
pub(crate) const CLEANUP_INTERVAL: Duration = Duration::from_mins(10);
const ORPHANS: i64 = 100;

pub(crate) async fn run(
    state: JobState,
    poll_interval: Duration,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    every(&rounds, ticks(poll_interval), &shutdown, || check_due(&state, &rounds)).await
}

/// Deletes certificates of domains that were deleted together with their account, now and then.
pub(crate) async fn run_cleanup(state: JobState, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    every(&rounds, ticks(CLEANUP_INTERVAL), &shutdown, || delete_orphans(&state)).await
}

/// Checks domains until none is due. One that fails is due again after its lease and blocks no other.
async fn check_due(state: &JobState, rounds: &Rounds) -> Result<(), store::Error> {
    let storing = Semaphore::new(STORING);
    let mut checks = FuturesUnordered::new();
    let mut ticks = ticks(CLAIM_INTERVAL);
    loop {
        for due in claim(state, CONCURRENT - checks.len()).await? {
            checks.push(check_one(state, due, &storing));
        }
        if checks.is_empty() {
            return Ok(());
        }
        tokio::select! {
            _ = checks.next() => {}
            _ = ticks.tick() => {}
        }
        // One claim for all checks that ended meanwhile.
        while checks.next().now_or_never().flatten().is_some() {}
        rounds.progress();
    }
}

async fn claim(state: &JobState, slots: usize) -> Result<Vec<LeasedCheck>, store::Error> {
    let Ok(slots @ 1..) = i64::try_from(slots) else { return Ok(Vec::new()) };
    let now = state.clock.now();
    let mut conn = store::acquire(&state.db).await?;
    store::domains::lease_due_checks(&mut conn, now, now + LEASE, slots, MAX_PER_ACCOUNT).await
}

async fn check_one(state: &JobState, due: LeasedCheck, storing: &Semaphore) {
    let domain = due.domain.clone();
    if let Err(error) = check(state, due, storing).await {
        tracing::warn!(%error, domain, "storing a check of a domain failed; it is repeated after its lease");
    }
}

async fn check(state: &JobState, due: LeasedCheck, storing: &Semaphore) -> Result<(), store::Error> {
    let checks = &state.domain_checks;
    let now = state.clock.now();
    let cname = checks.routing.cname(&due.subdomain);
    let target = checks.routing.target(&cname);
    let mut found = checks.resolver.find(&due.domain, &target).await;
    // Only a domain with its proof may make the service send a request.
    let problem = compare(&due.domain, &due.challenge, &target, Some(&found)).problem;
    if matches!(problem, Some(ErrorCode::AddressWrong | ErrorCode::CnameWrong)) {
        found.is_proxied = is_proxied(&state.outbound, format!("https://{}/", due.domain)).await;
    }
    let _permit = storing.acquire().await;
    store_check(state, &due, &found, now).await
}

async fn store_check(
    state: &JobState,
    due: &LeasedCheck,
    found: &Found,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<(), store::Error> {
    let checks = &state.domain_checks;
    let context = CheckContext {
        now,
        routing: &checks.routing,
        schedule: &checks.schedule,
        fraction: state.rng.fraction(),
        scheduled: Some(due.id),
    };
    let mut tx = store::begin(&state.db).await?;
    let changes = store::domains::store_check(&mut tx, &due.domain, found, &context).await?;
    let signals = store::outbox::insert_orders(&mut tx, &[], &changes, None, now).await?;
    store::commit(tx).await?;
    metrics::DOMAIN_CHECKS.add(1, &[]);
    publish(state, &signals).await;
    Ok(())
}

async fn delete_orphans(state: &JobState) -> Result<(), store::Error> {
    let own = [state.base_host.clone()];
    let now = state.clock.now();
    let mut tx = store::begin(&state.db).await?;
    let names = store::domains::delete_orphaned_certificates(&mut tx, &own, ORPHANS).await?;
    let changes: Vec<_> = names.into_iter().map(|name| Change::Certificate { name }).collect();
    let signals = store::outbox::insert_orders(&mut tx, &[], &changes, None, now).await?;
    store::commit(tx).await?;
    publish(state, &signals).await;
    Ok(())
}

/// Publishes signals that the outbox holds too.
async fn publish(state: &JobState, signals: &[Signal]) {
    for signal in signals {
        if let Err(error) = state.bus.publish(signal).await {
            tracing::warn!(%error, "publishing a signal failed; the outbox delivers it");
        }
    }
}
