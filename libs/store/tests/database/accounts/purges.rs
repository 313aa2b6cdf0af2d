//! The purge of trials: exactly one of claim and purge succeeds, large accounts are deleted in batches, and all changes
//! are published.

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Change, Signal};
use domain::Transient;
use serde_json::json;
use sqlx::Row;
use store::accounts::{NewTrial, find_account, insert_trial, list_cached_items};
use store::purges::{EventPurge, delete_account, delete_bulk, list_expired, lock_expired};
use store::subdomain_names::reserve_name;
use store::subdomains::insert_subdomain;
use store::{Conn, outbox, purges};
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const SITE: Uuid = Uuid::from_u128(100);

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_003_200_000_000_000)
}

/// A trial that may be claimed until noon.
async fn add_trial(conn: &mut Conn, id: Uuid) -> Result<(), store::Error> {
    let trial = NewTrial {
        id,
        claim_token_hash: [id.as_bytes()[15]; 32],
        claim_deadline: noon(),
        created_at: noon() - TimeDelta::days(1),
    };
    insert_trial(conn, &trial).await
}

#[tokio::test]
async fn a_trial_expires_at_its_deadline_unless_claimed() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    let before = noon() - TimeDelta::milliseconds(1);
    assert!(list_expired(&mut conn, before, 10).await.unwrap().is_empty());
    assert!(!lock_expired(&mut conn, ACCOUNT, before).await.unwrap());
    assert_eq!(list_expired(&mut conn, noon(), 10).await.unwrap(), [ACCOUNT]);
    store::execute_raw(&database.db, "update accounts set claimed_at = now()").await.unwrap();
    assert!(list_expired(&mut conn, noon(), 10).await.unwrap().is_empty());
    assert!(!lock_expired(&mut conn, ACCOUNT, noon()).await.unwrap());
}

#[tokio::test]
async fn a_purge_yields_to_a_claim_in_progress() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    let mut claim = store::begin(&database.db).await.unwrap();
    sqlx::query("select from accounts for update").execute(&mut *claim).await.unwrap();
    assert!(!lock_expired(&mut conn, ACCOUNT, noon()).await.unwrap(), "at once, without waiting");
    sqlx::query("update accounts set claimed_at = now()").execute(&mut *claim).await.unwrap();
    store::commit(claim).await.unwrap();
    assert!(!lock_expired(&mut conn, ACCOUNT, noon()).await.unwrap());
    assert!(find_account(&mut conn, ACCOUNT).await.unwrap().is_some());
}

#[tokio::test]
async fn a_claim_during_the_purge_finds_nothing() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    let mut purge = store::begin(&database.db).await.unwrap();
    assert!(lock_expired(&mut purge, ACCOUNT, noon()).await.unwrap());
    let claim = tokio::spawn({
        let db = database.db.clone();
        async move {
            let by_token = "update accounts set claimed_at = now() where claim_token_hash = $1";
            sqlx::query(by_token).bind([1_u8; 32].as_slice()).execute(&db).await.unwrap().rows_affected()
        }
    });
    // Only once the claim waits for the row does the test cover this case.
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    while sqlx::query(waiting).fetch_one(&mut *conn).await.unwrap().get::<i64, _>(0) == 0 {
        assert!(!claim.is_finished(), "it did not wait");
        tokio::task::yield_now().await;
    }
    // Not deleted yet, as with a large account: it can't be claimed all the same.
    store::commit(purge).await.unwrap();
    assert_eq!(claim.await.unwrap(), 0);
    assert!(lock_expired(&mut conn, ACCOUNT, noon()).await.unwrap(), "and the purge goes on");
}

#[tokio::test]
async fn a_purge_yields_to_a_submission_in_progress_and_the_next_one_finds_no_form() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    let seed = format!(
        "insert into forms (id, account_id, name, fields, created_at, updated_at)
         values ('{SITE}', '{ACCOUNT}', 'f', '[]', now(), now())"
    );
    store::execute_raw(&database.db, &seed).await.unwrap();
    let count = "update forms set submission_count = submission_count + 1";
    let mut submission = store::begin(&database.db).await.unwrap();
    // Even on a slow machine the visitor's transaction is not the one that detects the deadlock.
    sqlx::query("set local deadlock_timeout = '1min'").execute(&mut *submission).await.unwrap();
    assert_eq!(sqlx::query(count).execute(&mut *submission).await.unwrap().rows_affected(), 1);

    let mut purge = store::begin(&database.db).await.unwrap();
    assert!(lock_expired(&mut purge, ACCOUNT, noon()).await.unwrap());
    // From here on each holds the lock that the other needs next.
    let insert = format!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         values ('{SITE}', '{ACCOUNT}', '{SITE}', '{{}}', now(), now())"
    );
    let stored = tokio::spawn(async move {
        sqlx::query(sqlx::AssertSqlSafe(insert)).execute(&mut *submission).await?;
        store::commit(submission).await
    });
    let refused = delete_account(&mut purge, ACCOUNT, noon()).await.unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    drop(purge);
    stored.await.unwrap().unwrap();

    let mut purge = store::begin(&database.db).await.unwrap();
    assert!(lock_expired(&mut purge, ACCOUNT, noon()).await.unwrap());
    delete_account(&mut purge, ACCOUNT, noon()).await.unwrap();
    let late = sqlx::query(count).execute(&database.db);
    let (late, ended) = tokio::join!(late, store::commit(purge));
    ended.unwrap();
    assert_eq!(late.unwrap().rows_affected(), 0);
}

#[tokio::test]
async fn a_write_to_a_deleted_row_is_transient_and_its_retry_finds_nothing() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let refused = insert_subdomain(&mut conn, ACCOUNT, SITE, "quiet-otter", noon()).await.unwrap_err();
    assert!(refused.is_transient(), "{refused}");
}

#[tokio::test]
async fn large_accounts_are_deleted_in_bounded_batches() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    let seed = format!(
        "insert into forms (id, account_id, name, fields, created_at, updated_at)
         values ('{SITE}', '{ACCOUNT}', 'f', '[]', now(), now());
         insert into webhooks (id, account_id, sealed_url, events, all_forms, sealed_secret, created_at, updated_at)
         values ('{SITE}', '{ACCOUNT}', '', '{{}}', true, '', now(), now());
         insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         select gen_random_uuid(), '{ACCOUNT}', '{SITE}', '{{}}', now(), now() from generate_series(1, 25);
         insert into deliveries (id, account_id, webhook_id, submission_id, event, payload, next_attempt_at, created_at)
         select gen_random_uuid(), '{ACCOUNT}', '{SITE}', id, 'e', '{{}}', now(), now() from submissions;"
    );
    store::execute_raw(&database.db, &seed).await.unwrap();
    let mut bits = Vec::new();
    while bits.last().is_none_or(|bit| *bit == 20) {
        bits.push(delete_bulk(&mut conn, ACCOUNT, 20).await.unwrap());
    }
    assert_eq!(bits, [20, 20, 10]);
}

#[tokio::test]
async fn cached_items_of_a_deleted_account_are_published_most_urgent_first() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    insert_subdomain(&mut conn, ACCOUNT, SITE, "quiet-otter", noon()).await.unwrap();
    let seed = format!(
        "insert into former_names (name, account_id, subdomain_id, renamed_at, kept_until)
         values ('loud-badger', '{ACCOUNT}', '{SITE}', now(), now());
         insert into pages (id, account_id, subdomain_id, slug, title, html, created_at, updated_at)
         values ('{SITE}', '{ACCOUNT}', '{SITE}', 'index', '', '', now(), now());
         insert into forms (id, account_id, name, fields, created_at, updated_at)
         values ('{SITE}', '{ACCOUNT}', 'f', '[]', now(), now());
         insert into analytics_sites (id, account_id, site_token, name, created_at)
         values ('{SITE}', '{ACCOUNT}', 'site_x', '', now());"
    );
    store::execute_raw(&database.db, &seed).await.unwrap();
    let all = [
        json!({"change": "host", "host": "quiet-otter"}),
        json!({"change": "host", "host": "loud-badger"}),
        json!({"change": "account_files", "account_id": ACCOUNT}),
        json!({"change": "form", "form_id": SITE}),
        json!({"change": "analytics_site", "site_token": "site_x", "subdomain_id": null}),
        json!({"change": "page", "subdomain_id": SITE, "slug": "index"}),
    ];
    let shape = |change: &Change| serde_json::to_value(change).unwrap();
    let changes = list_cached_items(&mut conn, ACCOUNT).await.unwrap();
    assert_eq!(changes.iter().map(shape).collect::<Vec<_>>(), all);
    let unknown = Uuid::from_u128(2);
    let of_unknown = [Change::AccountFiles { account_id: unknown }];
    assert_eq!(list_cached_items(&mut conn, unknown).await.unwrap(), of_unknown, "of no other account");

    delete_account(&mut conn, ACCOUNT, noon()).await.unwrap();
    let published = outbox::lock_signals(&mut conn, noon(), 100).await.unwrap();
    let mut published = published.iter().map(|row| match &row.message {
        Some(Signal::Changed(change)) => shape(change),
        other => panic!("{other:?}"),
    });
    for change in all.into_iter().chain([json!({"change": "subdomain_gone", "subdomain_id": SITE})]) {
        assert_eq!(published.next(), Some(change));
    }
    assert_eq!(published.next(), None);
}

#[tokio::test]
async fn a_deleted_trials_subdomain_name_is_not_given_to_a_stranger_at_once() {
    let database = sandbox::test::database().await;
    let mut conn = store::begin(&database.db).await.unwrap();
    let (next, later) = (Uuid::from_u128(2), noon() + TimeDelta::days(30));
    add_trial(&mut conn, ACCOUNT).await.unwrap();
    add_trial(&mut conn, next).await.unwrap();
    insert_subdomain(&mut conn, ACCOUNT, SITE, "quiet-otter", noon()).await.unwrap();
    let renamed = "insert into former_names (name, account_id, subdomain_id, renamed_at, kept_until)
                   values ('loud-badger', $1, $2, $3, $3 + interval '1 day')";
    sqlx::query(renamed).bind(ACCOUNT).bind(SITE).bind(noon()).execute(&mut *conn).await.unwrap();
    purges::rest_names(&mut conn, ACCOUNT, noon(), later).await.unwrap();
    delete_account(&mut conn, ACCOUNT, noon()).await.unwrap();

    let before = |at: DateTime<Utc>| at - TimeDelta::seconds(1);
    for (name, kept_until) in [("quiet-otter", later), ("loud-badger", noon() + TimeDelta::days(1))] {
        assert!(!reserve_name(&mut conn, next, name, before(kept_until)).await.unwrap(), "{name}");
        assert!(reserve_name(&mut conn, next, name, kept_until).await.unwrap(), "{name}");
    }
    purges::rest_names(&mut conn, next, later, later).await.unwrap();
    let left = sqlx::query("select count(*) from resting_names").fetch_one(&mut *conn).await.unwrap();
    assert_eq!(left.get::<i64, _>(0), 0, "expired names take no space");
}

#[tokio::test]
async fn an_event_purge_ends_after_its_second_confirmation() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    purges::insert_event_purge(&mut conn, ACCOUNT, None, noon()).await.unwrap();
    purges::insert_event_purge(&mut conn, ACCOUNT, Some(SITE), noon()).await.unwrap();
    let minutes = |minutes: i64| noon() + TimeDelta::minutes(minutes);
    assert!(!purges::has_due_event_purge(&mut conn, minutes(-1)).await.unwrap());

    let first = purges::lease_event_purges(&mut conn, noon(), minutes(5), 10).await.unwrap();
    let of = |purge: &EventPurge| (purge.account_id, purge.site_id, purge.again);
    let mut kinds: Vec<_> = first.iter().map(of).collect();
    kinds.sort();
    assert_eq!(kinds, [(ACCOUNT, None, false), (ACCOUNT, Some(SITE), false)]);
    assert!(purges::lease_event_purges(&mut conn, minutes(4), minutes(9), 10).await.unwrap().is_empty());

    // The worker that leased them died: they are due again. Then ClickHouse confirms.
    let again = purges::lease_event_purges(&mut conn, minutes(5), minutes(10), 10).await.unwrap();
    assert_eq!(again.len(), 2);
    purges::finish_event_purges(&mut conn, &again, minutes(6), minutes(66)).await.unwrap();
    assert!(!purges::has_due_event_purge(&mut conn, minutes(65)).await.unwrap());
    let last = purges::lease_event_purges(&mut conn, minutes(66), minutes(71), 10).await.unwrap();
    assert!(last.len() == 2 && last.iter().all(|purge| purge.again));
    purges::finish_event_purges(&mut conn, &last, minutes(67), minutes(127)).await.unwrap();
    assert!(!purges::has_due_event_purge(&mut conn, minutes(1_000)).await.unwrap());
}

#[tokio::test]
async fn every_foreign_key_has_an_index() {
    let database = sandbox::test::database().await;
    // Single-column foreign keys without an index: deleting the referenced row would read the whole table.
    let slow = sqlx::query(
        "select c.conrelid::regclass::text || '.' || a.attname from pg_constraint c
         join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
         where c.contype = 'f' and not exists (
           select from pg_index i where i.indrelid = c.conrelid and i.indkey[0] = c.conkey[1])",
    )
    .fetch_all(&database.db)
    .await
    .unwrap();
    let slow: Vec<String> = slow.iter().map(|row| row.get(0)).collect();
    assert!(slow.is_empty(), "without an index: {slow:?}");
}
