//! Deleting an unclaimed trial leaves no row in any table of any store, and a claimed account loses none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sandbox::test::TestStore as _;

use crate::fixture::account::Account;
use crate::fixture::populated_account::PopulatedAccount;

/// Waits until no row contains data of the account, and panics with the remaining rows after a minute.
async fn until_deleted(account: &PopulatedAccount<'_>) {
    // The short URL `/p/<slug>` of a deleted page is never assigned again, so its slug stays, and nothing else.
    let reserved = format!("({},)", account.text("short_addresses", "slug"));
    let (started, mut ticks) = (Instant::now(), tokio::time::interval(Duration::from_millis(50)));
    loop {
        let mut left = account.found().await;
        let addresses = left.remove("short_addresses").unwrap_or_default();
        // Identities and sessions belong to no account: they stay, without a reference to it.
        for table in ["identities", "sessions"] {
            let rows = left.entry(table.to_owned()).or_default();
            rows.retain(|row| row.contains(&account.id.to_string()));
        }
        // A restore from a backup deletes the account again, so its id and that of its site stay.
        let deletions = left.entry("deletions".to_owned()).or_default();
        let is_whole = |row: &String| row.contains(&format!(",{},,", account.id));
        let is_listed = deletions.iter().any(is_whole);
        deletions.retain(|row| !row.contains(&format!(",{},", account.id)));
        // The names of its subdomains are not assigned again for a while.
        let names = ["subdomains", "former_names"].map(|table| format!("({},", account.text(table, "name")));
        let resting = left.entry("resting_names".to_owned()).or_default();
        let rests = resting.iter().any(|row| row.starts_with(&names[0]));
        resting.retain(|row| !names.iter().any(|name| row.starts_with(name)));
        left.retain(|_, rows| !rows.is_empty());
        if left.is_empty() && is_listed && rests && addresses == [reserved.as_str()] {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "left: {left:#?} and {addresses:?}");
        ticks.tick().await;
    }
}

#[tokio::test]
async fn an_unclaimed_trial_is_deleted_completely_and_a_claimed_account_not_at_all() {
    let fixture = Account::new().await;
    let clickhouse = sandbox::test::clickhouse().await;
    let deleted = PopulatedAccount::new(&fixture.database, &clickhouse).await;
    let claimed = PopulatedAccount::new(&fixture.database, &clickhouse).await;
    let filled: BTreeSet<String> = deleted.found().await.into_keys().collect();
    let unfilled: Vec<_> = deleted.tables().difference(&filled).collect();
    assert!(unfilled.is_empty(), "these tables can hold account data and were not filled: {unfilled:?}");
    for table in ["delivery_attempts", "short_addresses", "usage", "event_purges"] {
        assert!(deleted.tables().contains(table), "{table} is not recognized as a table with account data");
    }
    assert!(filled.contains("clickhouse events"));
    // The claimed account must not be affected by the purges that were inserted into these tables.
    for purges in ["event_purges", "blob_purges"] {
        fixture.change(&format!("delete from {purges} where account_id = '{}'", claimed.id)).await;
    }
    // The inserted rows would have expired already.
    for table in ["uploads", "activity"] {
        fixture.change(&format!("update {table} set expires_at = now() + interval '1 hour'")).await;
    }
    let before = claimed.found().await;

    fixture.change(&format!("update accounts set claimed_at = now() where id = '{}'", claimed.id)).await;
    fixture
        .change(&format!(
            "update accounts set claim_deadline = now() where id in ('{}', '{}')",
            deleted.id, claimed.id
        ))
        .await;
    let settings = clickhouse.settings();
    let intervals = ["purge.poll_interval=20ms", "purge.second_pass_after=1s"];
    let set: Vec<&str> = settings.iter().map(String::as_str).chain(intervals).collect();
    let running = fixture.run(&set).await;
    until_deleted(&deleted).await;
    running.stop().await;

    let count = |found: &BTreeMap<String, Vec<String>>| -> BTreeMap<String, usize> {
        let mut rows: BTreeMap<_, _> =
            found.iter().map(|(table, rows)| (table.clone(), rows.len())).collect();
        // Its webhook was called meanwhile, and rows of the outbox and of triggers are only in transit.
        let moving = ["automation_triggers", "delivery_attempts", "outbox"];
        rows.retain(|table, _| !moving.contains(&table.as_str()));
        rows
    };
    assert_eq!(count(&claimed.found().await), count(&before));
}
