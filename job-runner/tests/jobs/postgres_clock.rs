//! What is due is decided by Postgres' clock, even if this machine's clock is wrong.

use sandbox::test::until;

use crate::fixture::account::{Account, now};
use crate::fixture::receiver::Receiver;

/// Sets Postgres' clock two days ahead of this machine's, for all new connections.
async fn advance_postgres(account: &Account) {
    account
        .change(
            "create function public.clock_timestamp() returns timestamptz language sql volatile as
                 $$ select pg_catalog.clock_timestamp() + interval '2 days' $$;
             do $$ begin
                 execute format('alter database %I set search_path = public, pg_catalog', current_database());
             end $$",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_and_schedules_follow_the_clock_of_postgres() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let leased = "update deliveries set next_attempt_at = now() + interval '1 day',
                                        leased_until = now() + interval '1 day', attempts = 1";
    account.change(leased).await;
    account.change("update accounts set claim_deadline = now() + interval '1 year'").await;
    advance_postgres(&account).await;
    let _running = account.run(&[]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert!(delivery.finished_at.unwrap() > now() + chrono::TimeDelta::days(1));
    assert_eq!(receiver.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_ends_by_the_clock_of_postgres() {
    let account = Account::new().await;
    advance_postgres(&account).await;
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    until(async || account.number("select count(*) from accounts").await == 0).await;
}
