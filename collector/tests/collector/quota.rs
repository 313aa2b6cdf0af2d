//! The monthly limit of an account is exact, with any number of collectors.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use domain::months::month_of;
use domain::plans::Plan;
use sandbox::test::until;
use store::monthly_usage::{charge_events, find_monthly_usage};
use tokio::task::JoinSet;

use crate::browser::{Browser, Request, is_no_content, page_view};
use crate::fault_proxy::FaultProxy;
use crate::fixture::{Fixture, now};

/// The limit of the free plan.
const LIMIT: i64 = 5_000;

/// Sends `views` page views from each of that many concurrent browsers, each with its own address.
async fn send_views(collector: SocketAddr, site_token: &str, browsers: u32, views: u32) {
    let visit = |number: u32| {
        let site_token = site_token.to_owned();
        async move {
            let mut browser = Browser::connect(collector).await.unwrap();
            let ip = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
            for view in 0..views {
                let response = browser.send(&page_view(&site_token, &format!("/{view}"), ip)).await.unwrap();
                assert!(is_no_content(&response), "{response}");
            }
        }
    };
    (0..browsers).map(visit).collect::<JoinSet<_>>().join_all().await;
}

/// Returns this month's used events by Postgres.
async fn used(fixture: &Fixture) -> i64 {
    let account_id = fixture.account_id().await;
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    find_monthly_usage(&mut conn, account_id, now()).await.unwrap().events
}

/// Charges all but this many of the plan's events.
async fn leave_events(fixture: &Fixture, left: i64) {
    let account_id = fixture.account_id().await;
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    charge_events(&mut conn, account_id, month_of(now()), LIMIT - left).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_collectors_store_exactly_the_remaining_events() {
    let mut fixture = Fixture::new().await;
    leave_events(&fixture, 50).await;
    // Long enough for a busy machine, so that nothing is accepted on credit.
    fixture.set("quota.lease_timeout=1m");
    let one = fixture.start().await;
    fixture.set_folder();
    let other = fixture.start().await;
    let watch = async {
        let mut max = 0;
        let mut ticks = tokio::time::interval(Duration::from_millis(2));
        loop {
            max = used(&fixture).await.max(max);
            assert!(max <= LIMIT, "{max} are leased");
            ticks.tick().await;
        }
    };
    let load = async {
        let token = &fixture.site_token;
        tokio::join!(send_views(one.address, token, 20, 5), send_views(other.address, token, 20, 5))
    };
    tokio::select! {
        () = watch => {}
        _ = load => {}
    }
    one.stop().await;
    other.stop().await;
    assert_eq!((fixture.page_views().await, used(&fixture).await), (50, LIMIT));
}

#[tokio::test]
async fn unused_leases_are_returned_at_shutdown_and_by_idle_accounts() {
    let mut fixture = Fixture::new().await;
    fixture.set("quota.idle_timeout=1h");
    let collector = fixture.start().await;
    send_views(collector.address, &fixture.site_token, 1, 3).await;
    until(async || used(&fixture).await > 3).await;
    collector.stop().await;
    assert_eq!(used(&fixture).await, 3);

    fixture.set("quota.idle_timeout=20ms");
    let collector = fixture.start().await;
    send_views(collector.address, &fixture.site_token, 1, 3).await;
    until(async || used(&fixture).await == 6).await;
    send_views(collector.address, &fixture.site_token, 1, 1).await;
    collector.stop().await;
    assert_eq!((fixture.page_views().await, used(&fixture).await), (7, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_collector_loses_at_most_one_block_and_no_event() {
    let mut fixture = Fixture::new().await;
    fixture.set("quota.block_size=20");
    fixture.set("quota.lease_timeout=1m");
    for round in 1..=5 {
        let collector = fixture.start_process().await;
        send_views(collector.address, &fixture.site_token, 8, 4).await;
        collector.kill().await;
        let lost = used(&fixture).await - round * 32;
        assert!((0..=round * 20).contains(&lost), "{lost} are lost after {round} kills");
    }
    let collector = fixture.start().await;
    until(async || fixture.page_views().await == 5 * 32).await;
    collector.stop().await;
}

#[tokio::test]
async fn an_event_over_the_limit_gets_204_and_is_counted_as_dropped() {
    let fixture = Fixture::new().await;
    leave_events(&fixture, 2).await;
    let collector = fixture.start_process().await;
    send_views(collector.address, &fixture.site_token, 1, 9).await;
    let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
    let metrics = Browser::connect(collector.ops).await.unwrap().send(&scrape).await.unwrap();
    assert!(metrics.contains("collector_events_dropped_total{reason=\"quota\"} 7"), "{metrics}");
    collector.kill().await;
}

#[tokio::test]
async fn an_upgrade_takes_effect_within_the_maximum_age_of_a_cached_site() {
    let mut fixture = Fixture::new().await;
    leave_events(&fixture, 1).await;
    fixture.set("collector.site_max_age=50ms");
    fixture.set("quota.retry_interval=1h");
    fixture.set("collector.events_per_minute=100000");
    let collector = fixture.start().await;
    send_views(collector.address, &fixture.site_token, 1, 5).await;
    until(async || fixture.page_views().await == 1).await;
    fixture.set_plan(Plan::Pro).await;
    until(async || {
        send_views(collector.address, &fixture.site_token, 1, 1).await;
        fixture.page_views().await > 1
    })
    .await;
    collector.stop().await;
}

#[tokio::test]
async fn events_during_an_outage_of_postgres_are_accepted_and_charged_afterwards() {
    let mut fixture = Fixture::new().await;
    leave_events(&fixture, 10).await;
    let proxy = FaultProxy::in_front_of(fixture.database_host()).await;
    fixture.route_postgres_through(&proxy);
    let collector = fixture.start().await;
    send_views(collector.address, &fixture.site_token, 1, 1).await;
    until(async || fixture.page_views().await == 1).await;

    proxy.disconnect();
    send_views(collector.address, &fixture.site_token, 1, 25).await;
    until(async || fixture.page_views().await == 26).await;
    proxy.restore();
    collector.stop().await;
    assert_eq!(used(&fixture).await, LIMIT - 10 + 26, "all are charged, beyond the limit");
}
