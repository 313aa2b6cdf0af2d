//! Of a trial that nobody claimed nothing is left, in no table of any store; and of one that was, everything is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::filled::FilledAccount;
use crate::harness::{Account, of_clickhouse};

/// Looks until no row holds anything of the account; shows what is left if that doesn't come about.
async fn until_nothing_is_left_of(account: &FilledAccount<'_>) {
    // Nobody is to have the address `/p/<slug>` of what is gone: that it was given away is kept, and no more.
    let kept = format!("({},)", account.text("short_addresses", "slug"));
    let (began, mut turns) = (Instant::now(), tokio::time::interval(Duration::from_millis(50)));
    loop {
        let mut left = account.found().await;
        let addresses = left.remove("short_addresses").unwrap_or_default();
        // Who signs in is nobody's account: they and their session stay, and name it no more.
        for table in ["identities", "sessions"] {
            let rows = left.entry(table.to_owned()).or_default();
            rows.retain(|row| row.contains(&account.id.to_string()));
        }
        left.retain(|_, rows| !rows.is_empty());
        if left.is_empty() && addresses == [kept.as_str()] {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "left: {left:#?} and {addresses:?}");
        turns.tick().await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_an_unclaimed_trial_and_everything_of_a_claimed_one() {
    let stand = Account::new().await;
    let clickhouse = sandbox::test::clickhouse().await;
    let gone = FilledAccount::new(&stand.database, &clickhouse).await;
    let kept = FilledAccount::new(&stand.database, &clickhouse).await;
    let filled: BTreeSet<String> = gone.found().await.into_keys().collect();
    let unfilled: Vec<_> = gone.tables().difference(&filled).collect();
    assert!(unfilled.is_empty(), "these tables can hold account data and were not filled: {unfilled:?}");
    for table in ["delivery_attempts", "short_addresses", "usage", "event_purges"] {
        assert!(gone.tables().contains(table), "{table} is not recognised as one that holds account data");
    }
    assert!(filled.contains("clickhouse events"));
    // Purges of the kept one's events and bytes are all of it that shall be carried out.
    for purges in ["event_purges", "blob_purges"] {
        stand.change(&format!("delete from {purges} where account_id = '{}'", kept.id)).await;
    }
    // Filled just now, its upload would be over already.
    stand.change("update uploads set expires_at = now() + interval '1 hour'").await;
    let before = kept.found().await;

    stand.change(&format!("update accounts set claimed_at = now() where id = '{}'", kept.id)).await;
    stand
        .change(&format!(
            "update accounts set claim_deadline = now() where id in ('{}', '{}')",
            gone.id, kept.id
        ))
        .await;
    let [url, database, user, password] = of_clickhouse(&clickhouse);
    let set = [&url, &database, &user, &password, "purge.poll_interval=20ms", "purge.second_pass_after=1s"];
    let running = stand.run(&set.map(|setting| -> &str { setting })).await;
    until_nothing_is_left_of(&gone).await;
    running.stop().await;

    let count = |found: &BTreeMap<String, Vec<String>>| -> BTreeMap<String, usize> {
        let mut rows: BTreeMap<_, _> =
            found.iter().map(|(table, rows)| (table.clone(), rows.len())).collect();
        // It has a webhook, which was told of meanwhile, and what is left in the outbox is only underway.
        rows.retain(|table, _| !["delivery_attempts", "outbox"].contains(&table.as_str()));
        rows
    };
    assert_eq!(count(&kept.found().await), count(&before));
}
