//! The step and its keeper over a real Postgres, under a clock that is moved.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use domain::visitors::Lifetime;
use store::accounts::{NewTrial, insert_trial};
use store::months::{charge_events, find_months};
use store::sites::SiteOwner;
use tokio::task::JoinSet;

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

fn arrival(taken_at: DateTime<Utc>) -> IncomingEvent {
    IncomingEvent { at: taken_at, taken_at, ..IncomingEvent::default() }
}

fn rules() -> Quota {
    let (idle_timeout, retry_interval) = (Duration::from_secs(3_600), Duration::from_secs(3_600));
    Quota { block_size: 100, idle_timeout, retry_interval, lease_timeout: Duration::from_secs(60) }
}

async fn database() -> sandbox::test::TestDatabase {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let (id, claim_token_hash, created_at) = (ACCOUNT, [1; 32], november());
    let trial = NewTrial { id, claim_token_hash, claim_deadline: created_at, created_at };
    insert_trial(&mut conn, &trial).await.unwrap();
    database
}

fn quota(db: &Db, clock: Clock) -> (CheckQuota, QuotaLeases) {
    CheckQuota::new(db.clone(), LookUps::new(db.clone()), clock, rules())
}

/// Counts an event, for good.
async fn take(step: &CheckQuota, at: DateTime<Utc>) -> Result<(), Dropped> {
    step.step(&arrival(at), OWNER).await.map(|mut counted| counted.keep())
}

async fn used(db: &Db, at: DateTime<Utc>) -> i64 {
    let mut conn = store::acquire(db).await.unwrap();
    find_months(&mut conn, ACCOUNT, at).await.unwrap().events
}

#[tokio::test]
async fn at_the_months_end_its_rest_is_given_back_and_the_next_month_begins_anew() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    charge_events(&mut conn, ACCOUNT, month_of(november()), 5_000 - 3).await.unwrap();
    let clock = Clock::manual(november());
    let (step, keeper) = quota(&database.db, clock.clone());
    let keeping = tokio::spawn(keeper.run());
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
    keeping.await.unwrap().unwrap();
    assert_eq!((used(&database.db, november()).await, used(&database.db, clock.now()).await), (5_000, 2));
}

#[tokio::test]
async fn what_is_left_of_november_is_given_back_in_december() {
    let database = database().await;
    let clock = Clock::manual(november());
    let (step, keeper) = quota(&database.db, clock.clone());
    let keeping = tokio::spawn(keeper.run());
    assert_eq!(take(&step, clock.now()).await, Ok(()));
    assert_eq!(used(&database.db, november()).await, 10);
    clock.set(at("2026-12-01T00:00:00Z"));
    assert_eq!(take(&step, clock.now()).await, Ok(()));
    drop(step);
    keeping.await.unwrap().unwrap();
    assert_eq!((used(&database.db, november()).await, used(&database.db, clock.now()).await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_events_at_once_each_is_counted_once_and_one_that_came_to_nothing_is_not() {
    let database = database().await;
    let (step, keeper) = quota(&database.db, Clock::manual(november()));
    let (step, keeping) = (Arc::new(step), tokio::spawn(keeper.run()));
    let steps = (0..1_000).map(|_| {
        let step = Arc::clone(&step);
        async move { take(&step, november()).await }
    });
    assert!(steps.collect::<JoinSet<_>>().join_all().await.iter().all(Result::is_ok));
    // Of three more, one's sender hung up, one could not be written, and one counts.
    let [hung_up, mut unwritten, mut counted] = [
        step.step(&arrival(november()), OWNER).await.unwrap(),
        step.step(&arrival(november()), OWNER).await.unwrap(),
        step.step(&arrival(november()), OWNER).await.unwrap(),
    ];
    drop(hung_up);
    unwritten.keep();
    unwritten.give_back();
    drop(unwritten);
    counted.keep();
    drop(counted);
    drop(step);
    keeping.await.unwrap().unwrap();
    assert_eq!(used(&database.db, november()).await, 1_001);
}
