//! The deletion of trials under difficult conditions: ClickHouse unavailable, late events, several job-runners, many rows.

use chrono::TimeDelta;
use contract::events::Event;
use sandbox::test::{TestClickHouse, TestStore as _, until};
use sqlx::Row;
use uuid::Uuid;

use crate::fixture::account::{Account, Running, new_id, now};

/// Short intervals, except that the second pass comes only when a test moves its time.
const SHORT_INTERVALS: [&str; 3] =
    ["purge.poll_interval=20ms", "purge.second_pass_after=1h", "purge.erase_interval=200ms"];

/// Starts a job-runner with this ClickHouse and waits until it has deleted events once.
async fn run_first_pass(account: &Account, clickhouse: &TestClickHouse) -> Running {
    let set = clickhouse.settings();
    let set: Vec<&str> = set.iter().map(String::as_str).chain(SHORT_INTERVALS).collect();
    let running = account.run(&set).await;
    until(async || account.count("event_purges where deleted_at is not null").await == 1).await;
    running
}

fn visit(account_id: Uuid, site_id: Uuid) -> Event {
    let event = serde_json::json!({
        "id": new_id(), "account_id": account_id, "site_id": site_id, "name": "page_view", "host": "a.example",
        "path": "/", "visitor": 1, "received_at": now().timestamp_millis(),
    });
    serde_json::from_value(event).unwrap()
}

impl Account {
    async fn expire(&self) {
        self.change("update accounts set claim_deadline = now() - interval '1 second'").await;
    }

    async fn count(&self, what: &str) -> i64 {
        let count = sqlx::AssertSqlSafe(format!("select count(*) from {what}"));
        sqlx::query(count).fetch_one(&self.database.db).await.unwrap().get(0)
    }

    async fn until_none(&self, what: &str) {
        until(async || self.count(what).await == 0).await;
    }
}

#[tokio::test]
async fn only_events_wait_for_an_unavailable_clickhouse() {
    let account = Account::new().await;
    let clickhouse = sandbox::test::clickhouse().await;
    let site = new_id();
    clickhouse.connect().insert_events("early", &[visit(account.id, site)]).await.unwrap();
    account.expire().await;

    let unavailable =
        ["warehouse.url=http://127.0.0.1:1", "purge.poll_interval=20ms", "purge.retry_interval=50ms"];
    let running = account.run(&unavailable).await;
    account.until_none("accounts").await;
    assert_eq!(account.count("event_purges where deleted_at is null").await, 1, "the purge waits");
    running.stop().await;

    let set = clickhouse.settings();
    let set: Vec<&str> = set.iter().map(String::as_str).chain(SHORT_INTERVALS).collect();
    let _running = account.run(&set).await;
    account.until_none("event_purges where deleted_at is null").await;
    assert!(clickhouse.connect().count_events_by_site(&[site]).await.unwrap().is_empty());
}

#[tokio::test]
async fn events_that_a_collector_buffered_are_deleted_too() {
    let account = Account::new().await;
    let clickhouse = sandbox::test::clickhouse().await;
    let (warehouse, site) = (clickhouse.connect(), new_id());
    let (neighbour, neighbours_site) = (new_id(), new_id());
    warehouse.insert_events("neighbour", &[visit(neighbour, neighbours_site)]).await.unwrap();
    account.expire().await;
    let _running = run_first_pass(&account, &clickhouse).await;

    warehouse.insert_events("late", &[visit(account.id, site)]).await.unwrap();
    account.change("update event_purges set due_at = now()").await;
    account.until_none("event_purges").await;
    let remaining = warehouse.count_events_by_site(&[site, neighbours_site]).await.unwrap();
    assert_eq!(remaining.into_iter().collect::<Vec<_>>(), [(neighbours_site, 1)]);
}

#[tokio::test]
async fn one_sites_events_are_deleted_without_its_accounts_other_events() {
    let account = Account::new().await;
    let clickhouse = sandbox::test::clickhouse().await;
    let (warehouse, site, other) = (clickhouse.connect(), new_id(), new_id());
    let visits = [visit(account.id, site), visit(account.id, other)];
    warehouse.insert_events("both", &visits).await.unwrap();
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::purges::insert_event_purge(&mut conn, account.id, Some(site), now()).await.unwrap();
    let _running = run_first_pass(&account, &clickhouse).await;
    let remaining = warehouse.count_events_by_site(&[site, other]).await.unwrap();
    assert_eq!(remaining.into_iter().collect::<Vec<_>>(), [(other, 1)]);
}

/// Returns the number of rows of a site in `events`, `sessions` and `returns`: the visible ones, or those on the disk.
async fn rows_of(clickhouse: &TestClickHouse, site: Uuid, on_disk: bool) -> [u64; 3] {
    let TestClickHouse { url, database, user, password } = clickhouse;
    let client = clickhouse::Client::default().with_url(url).with_database(database);
    let client = client.with_user(user).with_password(password);
    let mut counts = [0; 3];
    for (count, table) in counts.iter_mut().zip(["events", "sessions", "returns"]) {
        let query = client.query(&format!("SELECT count() FROM {table} WHERE site_id = ?")).bind(site);
        let mask = if on_disk { "0" } else { "1" };
        *count = query.with_setting("apply_deleted_mask", mask).fetch_one().await.unwrap();
    }
    counts
}

#[tokio::test]
async fn only_a_deleted_sites_rows_are_hidden_at_once_and_erased_later() {
    let account = Account::new().await;
    let clickhouse = sandbox::test::clickhouse().await;
    let (warehouse, site, other) = (clickhouse.connect(), new_id(), new_id());
    let visits: Vec<Event> = (0..50)
        .map(|visitor| {
            let today = now().date_naive();
            let returner = Some(contract::events::Returner { id: visitor, day: today, epoch: today });
            let site = if visitor < 30 { site } else { other };
            Event { visitor, returner, ..visit(account.id, site) }
        })
        .collect();
    warehouse.insert_events("all", &visits).await.unwrap();
    warehouse.insert_retention(&visits).await.unwrap();
    warehouse.recompute_visits(&visits, domain::visits::Rules::default()).await.unwrap();
    assert_eq!(rows_of(&clickhouse, site, false).await, [30; 3]);

    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::purges::insert_event_purge(&mut conn, account.id, Some(site), now()).await.unwrap();
    let _running = run_first_pass(&account, &clickhouse).await;
    assert_eq!(rows_of(&clickhouse, site, false).await, [0; 3]);
    assert_eq!(rows_of(&clickhouse, other, false).await, [20; 3]);

    // The time has passed in which a collector may buffer events.
    account.change("update event_purges set due_at = now()").await;
    account.until_none("event_purges").await;
    until(async || rows_of(&clickhouse, site, true).await == [0; 3]).await;
    assert_eq!(rows_of(&clickhouse, other, true).await, [20; 3]);
}

#[tokio::test]
async fn several_job_runners_delete_many_trials_and_a_large_one_once_each() {
    let account = Account::new().await;
    account
        .change(&format!(
            "insert into accounts (id, claim_deadline, created_at)
             select gen_random_uuid(), now(), now() from generate_series(1, 250);
             insert into forms (id, account_id, name, fields, created_at, updated_at)
             values ('{0}', '{0}', 'f', '[]', now(), now());
             insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
             select gen_random_uuid(), '{0}', '{0}', '{{}}', now(), now() from generate_series(1, 12000);",
            account.id
        ))
        .await;
    account.expire().await;
    let (one, other) = (account.run(&SHORT_INTERVALS).await, account.run(&SHORT_INTERVALS).await);
    account.until_none("accounts").await;
    assert_eq!(account.count("submissions").await, 0);
    assert_eq!(account.count("event_purges").await, 251);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_locked_trial_blocks_no_other() {
    let account = Account::new().await;
    account
        .change(
            "insert into accounts (id, claim_deadline, created_at) values (gen_random_uuid(), now(), now())",
        )
        .await;
    account.expire().await;
    let mut claim = store::begin(&account.database.db).await.unwrap();
    sqlx::query("select from accounts where id = $1 for update")
        .bind(account.id)
        .execute(&mut *claim)
        .await
        .unwrap();
    let _running = account.run(&SHORT_INTERVALS).await;
    until(async || account.count("accounts").await == 1).await;
    let deadline = now() + TimeDelta::days(1);
    sqlx::query("update accounts set claimed_at = $1").bind(deadline).execute(&mut *claim).await.unwrap();
    store::commit(claim).await.unwrap();
    // Once a later trial is deleted, the sweep has also seen the claimed one again.
    account
        .change(
            "insert into accounts (id, claim_deadline, created_at) values (gen_random_uuid(), now(), now())",
        )
        .await;
    account.until_none("accounts where claimed_at is null").await;
    assert_eq!(account.count(&format!("accounts where id = '{}'", account.id)).await, 1);
}
