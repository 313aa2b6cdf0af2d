//! Orders beyond the authority's limits wait, and their certificates show until when.

use chrono::TimeDelta;
use sandbox::pebble::Options;
use sandbox::test::until;

use super::authority::Authority;
use crate::fixture::account::{Account, new_id, now};

const WAITING: &str =
    "select count(*) from certificates where error_code = 'acme_rate_limited' and chain is null";
const ISSUED: &str = "select count(*) from certificates where chain is not null";

async fn waits(authority: &Authority, names: &[String], period: TimeDelta, reason: &str) {
    let account = &authority.account;
    until(async || account.number(ISSUED).await == 3 && account.number(WAITING).await == 3).await;
    assert_eq!(account.number("select count(*) from acme_orders").await, 3);
    assert_eq!(authority.pebble.issued(), 3);
    let mut waiting = 0;
    for name in names {
        let certificate = authority.certificate(name).await.unwrap();
        if certificate.chain.is_none() {
            waiting += 1;
            let wait = certificate.next_attempt_at.unwrap() - now();
            assert!(wait > period - TimeDelta::minutes(2) && wait <= period, "{name}: {wait}");
            assert!(certificate.error.as_ref().unwrap().contains(reason), "{certificate:?}");
            assert_eq!(certificate.failed_attempts, 0, "waiting is no failure");
        }
    }
    assert_eq!(waiting, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_of_one_account_beyond_three_in_three_hours_wait_also_with_two_job_runners() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let names: Vec<String> = (0..6).map(|number| format!("limit-{number}.example")).collect();
    for name in &names {
        authority.verified_domain(name).await;
    }
    // An account may use half of them.
    let set = ["acme.limits.orders_per_3h=6"];
    let (_one, _other) = (authority.run(&set).await, authority.run(&set).await);
    waits(&authority, &names, TimeDelta::hours(3), "One account may order 3 certificates in 3 hours").await;
    // When the period of the oldest is over, one more is ordered.
    let earlier = "update acme_orders set created_at = created_at - interval '3 hours'
                   where created_at = (select min(created_at) from acme_orders)";
    authority.account.change(earlier).await;
    authority.account.change("update certificates set next_attempt_at = now() where chain is null").await;
    until(async || authority.account.number(ISSUED).await == 4).await;
    until(async || authority.account.number(WAITING).await == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_beyond_three_for_one_registered_domain_in_a_week_wait() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let names: Vec<String> = (0..6).map(|number| format!("host-{number}.shop.example")).collect();
    for name in &names {
        authority.verified_domain(name).await;
    }
    let _running = authority.run(&["acme.limits.certificates_per_domain_per_week=3"]).await;
    waits(&authority, &names, TimeDelta::days(7), "3 certificates for one domain in a week").await;
    authority.verified_domain("www.other.example").await;
    authority.issued("www.other.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_refused_three_times_in_an_hour_waits() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    authority.pebble.set_addresses("wrong.example", &["127.0.0.9"]).await.unwrap();
    authority.verified_domain("wrong.example").await;
    let set = ["acme.limits.failures_per_hour=3", "acme.challenges=[\"http-01\"]"];
    let _running = authority.run(&set).await;
    let waiting =
        |one: &super::authority::Certificate| one.error_code.as_deref() == Some("acme_rate_limited");
    let certificate = authority.certificate_when("wrong.example", waiting).await;
    assert_eq!(certificate.failed_attempts, 3);
    assert!(certificate.next_attempt_at.unwrap() - now() > TimeDelta::minutes(58));
    // The limit holds whatever makes the order due.
    authority.make_due("wrong.example").await;
    let soon = |one: &super::authority::Certificate| {
        one.next_attempt_at.is_some_and(|at| at > now() + TimeDelta::minutes(1))
    };
    assert_eq!(authority.certificate_when("wrong.example", soon).await.failed_attempts, 3);
}

/// Inserts another account and moves domains to it.
async fn move_to_another_account(authority: &Authority, names: &[String]) {
    let (id, database) = (new_id(), &authority.account.database);
    sandbox::test::trial(database, id, now()).await;
    let statement = format!(
        "insert into subdomains (id, account_id, name, created_at) values ('{id}', '{id}', 'other-site', now());
         update domains set account_id = '{id}', subdomain_id = '{id}' where domain in ('{}')",
        names.join("', '")
    );
    authority.account.change(&statement).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_with_many_domains_starves_neither_another_account_nor_a_renewal() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    authority.verified_domain("renewed.example").await;
    let set = ["acme.limits.orders_per_3h=6"];
    let running = authority.run(&set).await;
    let first = authority.issued("renewed.example").await;
    running.stop().await;
    authority.account.change("delete from acme_orders").await;
    let names = |who: &str| -> Vec<String> { (0..6).map(|nth| format!("{who}-{nth}.example")).collect() };
    let (greedy, modest) = (names("greedy"), names("modest"));
    for name in greedy.iter().chain(&modest) {
        authority.verified_domain(name).await;
    }
    move_to_another_account(&authority, &modest).await;

    let _running = authority.run(&set).await;
    let account = &authority.account;
    until(async || account.number(WAITING).await == 6).await;
    until(async || account.number(ISSUED).await == 7).await;
    let of = |who: &str| {
        format!("select count(*) from certificates where chain is not null and name like '{who}-%'")
    };
    for who in ["greedy", "modest"] {
        let issued = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(of(who)));
        assert_eq!(issued.fetch_one(&account.database.db).await.unwrap(), 3, "{who}");
    }
    // Nothing is left for first orders, and a renewal is made nevertheless.
    authority.make_due("renewed.example").await;
    let renewed = authority.certificate_when("renewed.example", |one| one.chain != first.chain).await;
    assert_eq!(renewed.error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_is_claimed_before_first_orders_that_are_due_for_longer() {
    let account = Account::new().await;
    let rows = "insert into certificates (name, next_attempt_at, chain, sealed_key, not_after, created_at)
                select 'first-' || n || '.example', now() - interval '2 hours', null, null::bytea, null::timestamptz, now()
                from generate_series(1, 3) n
                union all select 'renewed.example', now() - interval '1 minute', 'PEM', '\\x00'::bytea, now(), now()";
    account.change(rows).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let until = now() + TimeDelta::minutes(1);
    let claimed = store::certificates::claim_due(&mut conn, new_id(), now(), until, 1).await.unwrap();
    assert_eq!(claimed.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["renewed.example"]);
}
