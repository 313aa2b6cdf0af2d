//! Collectors agree on a day's salt, and it is gone when it should be.

use std::collections::HashSet;

use chrono::NaiveDate;
use store::salts::{delete_salts_before, get_salt};

fn day(number: u32) -> NaiveDate {
    NaiveDate::default() + chrono::Days::new(number.into())
}

#[tokio::test]
async fn collectors_that_ask_at_the_same_moment_get_the_same_salt() {
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
