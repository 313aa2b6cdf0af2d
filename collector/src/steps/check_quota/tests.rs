//! The step and its lease task on a real Postgres, with a manual clock.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use domain::visitors::Lifetime;
use store::monthly_usage::{charge_events, find_monthly_usage};
use store::sites::SiteOwner;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::*;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const OWNER: Site = Site::Known(SiteOwner {
    site_id: Uuid::from_u128(7),
    account_id: ACCOUNT,
    plan: Plan::Free,
    zone: chrono_tz::Tz::UTC,
    honour_dnt: true,
    lifetime: Lifetime::Month,
});

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn november() -> DateTime<Utc> {
    at("2026-11-30T23:59:59Z")
}

fn event(arrived_at: DateTime<Utc>) -> IncomingEvent {
    IncomingEvent { occurred_at: arrived_at, arrived_at, ..IncomingEvent::default() }
}

fn config() -> Quota {
    let hour = Duration::from_secs(3_600);
    let lease_timeout = Duration::from_secs(60);
    Quota { block_size: 100, idle_timeout: hour, retry_interval: hour, lease_timeout }
}

async fn database() -> sandbox::test::TestDatabase {
    let database = sandbox::test::database().await;
    sandbox::test::trial(&database, ACCOUNT, november()).await;
    database
}

fn check_quota(db: &Db, clock: Clock) -> (CheckQuota, QuotaLeases) {
    CheckQuota::new(db.clone(), ReadPool::new(db.clone()), clock, config())
}

/// Counts an event and commits it.
async fn take(step: &CheckQuota, at: DateTime<Utc>) -> Result<(), Dropped> {
    step.step(&event(at), OWNER).await.map(|mut reservation| reservation.commit())
}

async fn used(db: &Db, at: DateTime<Utc>) -> i64 {
    let mut conn = store::acquire(db).await.unwrap();
    find_monthly_usage(&mut conn, ACCOUNT, at).await.unwrap().events
}

#[tokio::test]
async fn an_exhausted_month_is_followed_by_a_full_one() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    charge_events(&mut conn, ACCOUNT, month_of(november()), 5_000 - 3).await.unwrap();
    let clock = Clock::manual(november());
    let (step, leases) = check_quota(&database.db, clock.clone());
    let leases = tokio::spawn(leases.run());
    let mut outcomes = Vec::new();
    for _ in 0..4 {
        outcomes.push(take(&step, clock.now()).await);
    }
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Err(Dropped::Quota)]);

    clock.set(at("2026-12-01T00:00:00Z"));
    for _ in 0..2 {
        assert_eq!(take(&step, clock.now()).await, Ok(()));
    }
    assert!(used(&database.db, clock.now()).await > 2, "leased ahead");
    drop(step);
    leases.await.unwrap().unwrap();
    assert_eq!((used(&database.db, november()).await, used(&database.db, clock.now()).await), (5_000, 2));
}

#[tokio::test]
async fn the_unused_rest_of_november_is_returned_in_december() {
    let database = database().await;
    let clock = Clock::manual(november());
    let (step, leases) = check_quota(&database.db, clock.clone());
    let leases = tokio::spawn(leases.run());
    assert_eq!(take(&step, clock.now()).await, Ok(()));
    assert_eq!(used(&database.db, november()).await, 10);
    clock.set(at("2026-12-01T00:00:00Z"));
    assert_eq!(take(&step, clock.now()).await, Ok(()));
    drop(step);
    leases.await.unwrap().unwrap();
    assert_eq!((used(&database.db, november()).await, used(&database.db, clock.now()).await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_concurrent_events_are_counted_once_each_and_cancelled_ones_are_not() {
    let database = database().await;
    let (step, leases) = check_quota(&database.db, Clock::manual(november()));
    let (step, leases) = (Arc::new(step), tokio::spawn(leases.run()));
    let steps = (0..1_000).map(|_| {
        let step = Arc::clone(&step);
        async move { take(&step, november()).await }
    });
    assert!(steps.collect::<JoinSet<_>>().join_all().await.iter().all(Result::is_ok));
    // Of three more events, one's client disconnects, one cannot be written, and one counts.
    let [disconnected, mut unwritten, mut counted] = [
        step.step(&event(november()), OWNER).await.unwrap(),
        step.step(&event(november()), OWNER).await.unwrap(),
        step.step(&event(november()), OWNER).await.unwrap(),
    ];
    drop(disconnected);
    unwritten.commit();
    unwritten.cancel();
    drop(unwritten);
    counted.commit();
    drop(counted);
    drop(step);
    leases.await.unwrap().unwrap();
    assert_eq!(used(&database.db, november()).await, 1_001);
}
