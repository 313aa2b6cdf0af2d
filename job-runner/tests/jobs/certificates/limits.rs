//! Orders beyond the authority's limits wait, and their certificates show until when.

use chrono::TimeDelta;
use sandbox::pebble::Options;
use sandbox::test::until;

use super::authority::Authority;
use crate::fixture::account::now;

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
async fn orders_beyond_three_in_three_hours_wait_also_with_two_job_runners() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let names: Vec<String> = (0..6).map(|number| format!("limit-{number}.example")).collect();
    for name in &names {
        authority.verified_domain(name).await;
    }
    let set = ["acme.limits.orders_per_3h=3"];
    let (_one, _other) = (authority.run(&set).await, authority.run(&set).await);
    waits(&authority, &names, TimeDelta::hours(3), "3 orders in 3 hours").await;
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
}
