//! Concurrent collectors agree on salts, salts are destroyed on time, and a lost one is told from a new one. Counts of dropped events add up and expire.

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate, TimeDelta};
use sandbox::test::TestDatabase;
use store::dropped_events::{
    DroppedEvents, add_dropped_events, delete_dropped_events_before, list_dropped_events,
};
use store::retention_salts::{Period, delete_ended_salts, find_site_salt, insert_site_salt};
use store::salts::{Insertion, delete_salts_before, find_salt, insert_salt};
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
async fn of_concurrent_collectors_one_inserts_its_salt_and_all_get_it() {
    let database = sandbox::test::database().await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..16_u8 {
        let db = database.db.clone();
        asking.spawn(async move {
            let mut conn = store::acquire(&db).await.unwrap();
            insert_salt(&mut conn, day(1), &[number; 32]).await.unwrap()
        });
    }
    let stored = asking.join_all().await;
    assert_eq!(stored.iter().map(|stored| stored.salt).collect::<HashSet<_>>().len(), 1);
    let inserted = stored.iter().filter(|stored| stored.insertion != Insertion::None);
    assert_eq!(inserted.map(|stored| stored.insertion).collect::<Vec<_>>(), [Insertion::First]);
}

#[tokio::test]
async fn a_destroyed_salt_never_comes_back_and_is_not_lost() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    for number in 1..=3 {
        insert_salt(&mut conn, day(number), &[1; 32]).await.unwrap();
    }
    delete_salts_before(&mut conn, day(3)).await.unwrap();
    assert_eq!(find_salt(&mut conn, day(2)).await.unwrap(), None);
    let late = insert_salt(&mut conn, day(2), &[2; 32]).await.unwrap();
    assert_eq!((late.salt, late.insertion), ([2; 32], Insertion::First));
    let stored = insert_salt(&mut conn, day(3), &[2; 32]).await.unwrap();
    assert_eq!((stored.salt, stored.insertion), ([1; 32], Insertion::None));
}

#[tokio::test]
async fn a_salt_that_a_crash_took_is_known_to_be_lost() {
    let (database, _, site_id) = with_site().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let period = Period { site_id, epoch: day(1), ends_at: DateTime::UNIX_EPOCH + TimeDelta::days(9) };
    insert_salt(&mut conn, day(1), &[1; 32]).await.unwrap();
    insert_site_salt(&mut conn, &period, &[1; 32]).await.unwrap().unwrap();
    // What Postgres does after a crash, because the tables are unlogged.
    store::execute_raw(&database.db, "truncate salts, retention_salts").await.unwrap();
    assert_eq!(find_salt(&mut conn, day(1)).await.unwrap(), None);
    assert_eq!(find_site_salt(&mut conn, &period).await.unwrap(), None);
    let day_salt = insert_salt(&mut conn, day(1), &[2; 32]).await.unwrap();
    let site_salt = insert_site_salt(&mut conn, &period, &[2; 32]).await.unwrap().unwrap();
    assert_eq!([day_salt.insertion, site_salt.insertion], [Insertion::AfterLoss; 2]);
    let next_day = insert_salt(&mut conn, day(2), &[3; 32]).await.unwrap();
    assert_eq!(next_day.insertion, Insertion::First, "midnight loses nothing");
}

#[tokio::test]
async fn the_tables_of_salts_are_unlogged() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let unlogged = sqlx::query_scalar::<_, String>(
        "select relname::text from pg_class where relpersistence = 'u' and relkind = 'r' order by 1",
    );
    assert_eq!(unlogged.fetch_all(&mut *conn).await.unwrap(), ["retention_salts", "salts"]);
}

#[tokio::test]
async fn a_sites_salt_is_shared_and_destroyed_by_the_next_one() {
    let (database, _, site_id) = with_site().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let noon = DateTime::from_timestamp(1_795_003_200, 0).unwrap();
    let mut get = async |site_id, number: u32, byte: u8| {
        let period = Period { site_id, epoch: day(number), ends_at: noon + TimeDelta::days(number.into()) };
        let stored = insert_site_salt(&mut conn, &period, &[byte; 32]).await.unwrap();
        let found = find_site_salt(&mut conn, &period).await.unwrap();
        assert_eq!(stored.map(|stored| stored.salt), found);
        stored.map(|stored| (stored.salt[0], stored.insertion))
    };
    assert_eq!(get(site_id, 1, 1).await, Some((1, Insertion::First)));
    assert_eq!(get(site_id, 1, 2).await, Some((1, Insertion::None)));
    assert_eq!(get(site_id, 3, 3).await, Some((3, Insertion::First)));
    assert_eq!(get(site_id, 1, 4).await, Some((4, Insertion::First)), "the old one is destroyed");
    assert_eq!(get(Uuid::from_u128(8), 1, 1).await, None);
    let mut other = store::acquire(&database.db).await.unwrap();
    delete_ended_salts(&mut other, noon + TimeDelta::days(1)).await.unwrap();
    assert_eq!(get(site_id, 1, 5).await, Some((5, Insertion::First)));
    assert_eq!(get(site_id, 3, 6).await, Some((3, Insertion::None)), "its period has not ended");
}

#[tokio::test]
async fn a_changed_lifetime_changes_the_end_of_a_salt() {
    let (database, _, site_id) = with_site().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let [early, late] = [1, 30].map(|days| DateTime::UNIX_EPOCH + TimeDelta::days(days));
    let period = Period { site_id, epoch: day(1), ends_at: late };
    insert_site_salt(&mut conn, &period, &[1; 32]).await.unwrap();
    let shorter = Period { ends_at: early, ..period };
    assert_eq!(find_site_salt(&mut conn, &shorter).await.unwrap(), Some([1; 32]));
    delete_ended_salts(&mut conn, early).await.unwrap();
    let next = insert_site_salt(&mut conn, &period, &[2; 32]).await.unwrap().unwrap();
    assert_eq!((next.salt, next.insertion), ([2; 32], Insertion::First));
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
