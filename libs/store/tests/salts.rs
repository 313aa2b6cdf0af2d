//! Concurrent collectors agree on salts, and salts are destroyed on time. Counts of dropped events add up and expire.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate, TimeDelta};
use sandbox::test::TestDatabase;
use store::dropped_events::{
    DroppedEvents, add_dropped_events, delete_dropped_events_before, list_dropped_events,
};
use store::retention_salts::{NewSalt, delete_ended_salts, get_site_salt};
use store::salts::{delete_salts_before, get_salt};
use uuid::Uuid;

fn day(number: u32) -> NaiveDate {
    NaiveDate::default() + chrono::Days::new(number.into())
}

/// Returns a database, and an account with an analytics site in it.
async fn with_site() -> (TestDatabase, Uuid, Uuid) {
    let database = sandbox::test::database().await;
    store::execute_raw(
        &database.db,
        "insert into accounts (id, name, created_at) values ('00000000-0000-0000-0000-000000000001', 'a', now());
         insert into analytics_sites (id, account_id, site_token, name, created_at)
         values ('00000000-0000-0000-0000-000000000007', '00000000-0000-0000-0000-000000000001', 't', 's', now())",
    )
    .await
    .unwrap();
    (database, Uuid::from_u128(1), Uuid::from_u128(7))
}

#[tokio::test]
async fn concurrent_collectors_get_the_same_salt() {
    let database = sandbox::test::database().await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..16_u8 {
        let db = database.db.clone();
        asking.spawn(async move {
            let mut conn = store::acquire(&db).await.unwrap();
            get_salt(&mut conn, day(1), &[number; 32]).await.unwrap()
        });
    }
    let salts: HashSet<_> = asking.join_all().await.into_iter().collect();
    assert_eq!(salts.len(), 1);
}

#[tokio::test]
async fn a_destroyed_salt_never_comes_back() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    for number in 1..=3 {
        get_salt(&mut conn, day(number), &[1; 32]).await.unwrap();
    }
    delete_salts_before(&mut conn, day(3)).await.unwrap();
    assert_eq!(get_salt(&mut conn, day(2), &[2; 32]).await.unwrap(), [2; 32]);
    assert_eq!(get_salt(&mut conn, day(3), &[2; 32]).await.unwrap(), [1; 32]);
}

#[tokio::test]
async fn a_sites_salt_is_shared_and_destroyed_by_the_next_one() {
    let (database, _, site) = with_site().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let noon = DateTime::from_timestamp(1_795_003_200, 0).unwrap();
    let fresh = |number: u32, byte: u8| NewSalt {
        epoch: day(number),
        ends_at: noon + TimeDelta::days(number.into()),
        salt: [byte; 32],
    };
    assert_eq!(get_site_salt(&mut conn, site, &fresh(1, 1)).await.unwrap(), Some([1; 32]));
    assert_eq!(get_site_salt(&mut conn, site, &fresh(1, 2)).await.unwrap(), Some([1; 32]));
    assert_eq!(get_site_salt(&mut conn, site, &fresh(3, 3)).await.unwrap(), Some([3; 32]));
    assert_eq!(
        get_site_salt(&mut conn, site, &fresh(1, 4)).await.unwrap(),
        Some([4; 32]),
        "the old one is destroyed"
    );
    delete_ended_salts(&mut conn, noon + TimeDelta::days(1)).await.unwrap();
    assert_eq!(get_site_salt(&mut conn, site, &fresh(1, 5)).await.unwrap(), Some([5; 32]));
    assert_eq!(
        get_site_salt(&mut conn, site, &fresh(3, 6)).await.unwrap(),
        Some([3; 32]),
        "its period has not ended"
    );
    assert_eq!(get_site_salt(&mut conn, Uuid::from_u128(8), &fresh(1, 1)).await.unwrap(), None);
}

#[tokio::test]
async fn dropped_events_add_up_by_reason_and_expire() {
    let (database, account, site) = with_site().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let hour = DateTime::from_timestamp(1_795_003_200, 0).unwrap();
    let drops = |site_id, hours, reason, count| DroppedEvents {
        site_id,
        hour: hour + TimeDelta::hours(hours),
        reason,
        count,
    };
    let counted = [
        drops(site, 0, "bot", 2),
        drops(site, 1, "bot", 3),
        drops(site, 1, "quota", 9),
        drops(Uuid::from_u128(9), 1, "bot", 1),
    ];
    for _ in 0..2 {
        add_dropped_events(&mut conn, &counted).await.unwrap();
    }
    let mut list = async |account, since| {
        let drops =
            list_dropped_events(&mut conn, account, site, hour + TimeDelta::hours(since)).await.unwrap();
        drops.into_iter().map(|drops| (drops.reason, drops.count)).collect::<Vec<_>>()
    };
    let row = |reason: &str, count| (reason.to_owned(), count);
    assert_eq!(list(account, -1).await, [row("quota", 18), row("bot", 10)]);
    assert_eq!(list(account, 0).await, [row("quota", 18), row("bot", 6)]);
    assert_eq!(list(Uuid::from_u128(2), -1).await, []);
    delete_dropped_events_before(&mut conn, hour + TimeDelta::hours(1)).await.unwrap();
    let drops = list_dropped_events(&mut conn, account, site, hour - TimeDelta::hours(1)).await.unwrap();
    assert_eq!(drops.iter().map(|drops| drops.count).sum::<i64>(), 24);
}
