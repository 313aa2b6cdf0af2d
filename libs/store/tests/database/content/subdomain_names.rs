//! Each subdomain name belongs to one account; a suggested name is free.

use chrono::{DateTime, TimeDelta, Utc};
use store::Conn;
use store::subdomain_names::{insert_suggested, reserve_name};
use store::subdomains::{find_subdomain, insert_subdomain};
use uuid::Uuid;

const OURS: Uuid = Uuid::from_u128(1);
const THEIRS: Uuid = Uuid::from_u128(2);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_003_200_000_000_000)
}

async fn suggested(conn: &mut Conn, names: &[&str]) -> (Option<String>, usize) {
    let mut attempts = 0;
    let suggest = || {
        attempts += 1;
        names[(attempts - 1) % names.len()].to_owned()
    };
    let name = insert_suggested(conn, OURS, Uuid::from_u128(10), now(), suggest).await.unwrap();
    (name, attempts)
}

#[tokio::test]
async fn the_first_suggested_name_that_is_neither_used_nor_recent_is_taken() {
    let database = sandbox::test::database().await;
    let mut conn = store::begin(&database.db).await.unwrap();
    for account in [OURS, THEIRS] {
        store::claims::insert_claimed(&mut conn, account, now()).await.unwrap();
    }
    let site = Uuid::from_u128(20);
    insert_subdomain(&mut conn, THEIRS, site, "taken", now()).await.unwrap();
    let given_up = "insert into former_names (name, account_id, subdomain_id, renamed_at, kept_until)
                    values ('given-up', $1, $2, $3, $3 + interval '1 day')";
    sqlx::query(given_up).bind(THEIRS).bind(site).bind(now()).execute(&mut *conn).await.unwrap();

    assert_eq!(suggested(&mut conn, &["taken"]).await, (None, 5), "after five attempts");
    let (name, attempts) = suggested(&mut conn, &["taken", "given-up", "free", "also-free"]).await;
    assert_eq!((name.as_deref(), attempts), (Some("free"), 3));
    let made = find_subdomain(&mut conn, OURS, None).await.unwrap().unwrap();
    assert_eq!((made.id, made.name.as_str()), (Uuid::from_u128(10), "free"));
    assert!(!reserve_name(&mut conn, THEIRS, "free", now()).await.unwrap());
    let later = now() + TimeDelta::days(2);
    assert!(reserve_name(&mut conn, OURS, "given-up", later).await.unwrap(), "its reservation has expired");
}
