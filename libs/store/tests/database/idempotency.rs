//! Of concurrent attempts at a call one gets the claim, and holds it until it ends, crashes or expires.

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::{TestDatabase, trial};
use store::idempotency::{Attempt, Claim, claim, delete_claim, delete_expired, renew, store_response};
use store::{Conn, Error};
use tokio::task::JoinSet;
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const STRANGER: Uuid = Uuid::from_u128(2);

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn attempt(id: u128) -> Attempt {
    Attempt { fingerprint: [7; 32], id: Uuid::from_u128(id) }
}

async fn database() -> TestDatabase {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    trial(&database, STRANGER, now()).await;
    database
}

/// Claims at a time, for 30 s, with responses stored for a day.
async fn claim_at(conn: &mut Conn, account: Uuid, id: u128, at: DateTime<Utc>) -> Result<Claim, Error> {
    let (lease, kept) = (TimeDelta::seconds(30), TimeDelta::days(1));
    claim(conn, account, attempt(id), at, at + lease, at - kept).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_attempts_gets_the_call_even_after_a_crashed_one() {
    let database = database().await;
    for round in 0..2 {
        let at = now() + TimeDelta::minutes(round);
        let claims = (0..100).map(|id| {
            let db = database.db.clone();
            async move {
                let mut conn = store::acquire(&db).await.unwrap();
                claim_at(&mut conn, ACCOUNT, id, at).await.unwrap()
            }
        });
        let claims = claims.collect::<JoinSet<_>>().join_all().await;
        assert_eq!(claims.iter().filter(|claim| **claim == Claim::Granted).count(), 1);
        assert_eq!(claims.iter().filter(|claim| **claim == Claim::InFlight).count(), 99);
    }
}

#[tokio::test]
async fn a_response_is_returned_for_a_day_to_its_account_only() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let late = now() + TimeDelta::days(1) - TimeDelta::milliseconds(1);
    assert_eq!(claim_at(&mut conn, ACCOUNT, 1, now()).await.unwrap(), Claim::Granted);
    assert!(store_response(&mut conn, ACCOUNT, attempt(1), b"sealed").await.unwrap());
    assert_eq!(claim_at(&mut conn, ACCOUNT, 2, late).await.unwrap(), Claim::Completed(b"sealed".into()));
    assert_eq!(claim_at(&mut conn, STRANGER, 3, late).await.unwrap(), Claim::Granted);
    let later = now() + TimeDelta::days(1);
    assert_eq!(claim_at(&mut conn, ACCOUNT, 4, later).await.unwrap(), Claim::Granted);
    assert_eq!(claim_at(&mut conn, ACCOUNT, 5, later).await.unwrap(), Claim::InFlight);
}

#[tokio::test]
async fn a_lost_claim_can_neither_store_nor_renew_nor_release() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let (soon, later) = (now() + TimeDelta::seconds(29), now() + TimeDelta::seconds(59));
    assert_eq!(claim_at(&mut conn, ACCOUNT, 1, now()).await.unwrap(), Claim::Granted);
    assert!(renew(&mut conn, ACCOUNT, attempt(1), soon + TimeDelta::seconds(30)).await.unwrap());
    assert_eq!(
        claim_at(&mut conn, ACCOUNT, 2, now() + TimeDelta::seconds(30)).await.unwrap(),
        Claim::InFlight
    );
    assert_eq!(claim_at(&mut conn, ACCOUNT, 2, later).await.unwrap(), Claim::Granted);

    assert!(!store_response(&mut conn, ACCOUNT, attempt(1), b"late").await.unwrap());
    assert!(!renew(&mut conn, ACCOUNT, attempt(1), later + TimeDelta::days(1)).await.unwrap());
    delete_claim(&mut conn, ACCOUNT, attempt(1)).await.unwrap();
    assert_eq!(claim_at(&mut conn, ACCOUNT, 3, later).await.unwrap(), Claim::InFlight);
    delete_claim(&mut conn, ACCOUNT, attempt(2)).await.unwrap();
    assert_eq!(claim_at(&mut conn, ACCOUNT, 3, later).await.unwrap(), Claim::Granted);
}

#[tokio::test]
async fn old_calls_are_deleted_in_batches_and_new_ones_stay() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    for number in 0..5 {
        let attempt = Attempt { fingerprint: [number; 32], id: Uuid::nil() };
        let at = now() + TimeDelta::hours(number.into());
        assert_eq!(claim(&mut conn, ACCOUNT, attempt, at, at, at).await.unwrap(), Claim::Granted);
    }
    let before = now() + TimeDelta::hours(3);
    let mut deleted = Vec::new();
    for _ in 0..3 {
        deleted.push(delete_expired(&mut conn, before, 2).await.unwrap());
    }
    assert_eq!(deleted, [2, 1, 0]);
}
