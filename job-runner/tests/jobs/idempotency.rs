//! Stored responses of idempotent calls are deleted after a day, not before.

use chrono::TimeDelta;
use sandbox::test::until;
use store::idempotency::{Attempt, Claim, claim, store_response};
use uuid::Uuid;

use crate::fixture::account::{Account, now};

fn call(number: u8) -> Attempt {
    Attempt { fingerprint: [number; 32], id: Uuid::from_u128(number.into()) }
}

#[tokio::test]
async fn a_response_is_deleted_after_a_day() {
    let account = Account::new().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let (old, young) = (call(1), call(2));
    for (call, hours) in [(old, 25), (young, 23)] {
        let at = now() - TimeDelta::hours(hours);
        assert_eq!(claim(&mut conn, account.id, call, at, at, at).await.unwrap(), Claim::Granted);
        assert!(store_response(&mut conn, account.id, call, b"sealed").await.unwrap());
    }
    let _running = account.run(&["idempotency.cleanup_interval=20ms"]).await;
    let long_ago = now() - TimeDelta::days(365);
    until(async || {
        let claim = claim(&mut conn, account.id, old, now(), now(), long_ago).await.unwrap();
        claim == Claim::Granted
    })
    .await;
    let claim = claim(&mut conn, account.id, young, now(), now(), long_ago).await.unwrap();
    assert_eq!(claim, Claim::Completed(b"sealed".into()));
}
