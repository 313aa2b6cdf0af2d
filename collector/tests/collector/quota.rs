//! An account's events of a month: all it may send are stored, and no more, however many collectors count.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use domain::months::month_of;
use domain::plans::Plan;
use sandbox::test::until;
use store::months::{charge_events, find_months};
use tokio::task::JoinSet;

use crate::browser::{Browser, Request, answered, page_view};
use crate::fault_proxy::FaultProxy;
use crate::fixture::{Fixture, now};

/// Of the free plan.
const LIMIT: i64 = 5_000;

/// Sends page views from that many browsers at once, each with an address of its own and `views` views.
async fn crowd(collector: SocketAddr, site_token: &str, browsers: u32, views: u32) {
    let visit = |number: u32| {
        let site_token = site_token.to_owned();
        async move {
            let mut browser = Browser::connect(collector).await.unwrap();
            let ip = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
            for view in 0..views {
                let answer = browser.send(&page_view(&site_token, &format!("/{view}"), ip)).await.unwrap();
                assert!(answered(&answer), "{answer}");
            }
        }
    };
    (0..browsers).map(visit).collect::<JoinSet<_>>().join_all().await;
}

/// Events of this month that Postgres counts as used.
async fn used(fixture: &Fixture) -> i64 {
    let account_id = fixture.account_id().await;
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    find_months(&mut conn, account_id, now()).await.unwrap().events
}

/// Leaves so many of the plan's events.
async fn leave(fixture: &Fixture, left: i64) {
    let account_id = fixture.account_id().await;
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    charge_events(&mut conn, account_id, month_of(now()), LIMIT - left).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_collectors_store_what_is_left_of_the_month_and_no_more() {
    let mut fixture = Fixture::new().await;
    leave(&fixture, 50).await;
    // However busy the machine is: nothing is taken on credit here.
    fixture.set("quota.lease_timeout=1m");
    let one = fixture.start().await;
    fixture.set_folder();
    let other = fixture.start().await;
    let watch = async {
        let mut most = 0;
        let mut look = tokio::time::interval(Duration::from_millis(2));
        loop {
            most = used(&fixture).await.max(most);
            assert!(most <= LIMIT, "{most} are leased");
            look.tick().await;
        }
    };
    let crowds = async {
        let token = &fixture.site_token;
        tokio::join!(crowd(one.address, token, 20, 5), crowd(other.address, token, 20, 5))
    };
    tokio::select! {
        () = watch => {}
        _ = crowds => {}
    }
    one.stop().await;
    other.stop().await;
    assert_eq!((fixture.page_views().await, used(&fixture).await), (50, LIMIT));
}

#[tokio::test]
async fn what_was_leased_and_not_used_is_given_back_at_shutdown_and_when_an_account_falls_silent() {
    let mut fixture = Fixture::new().await;
    let collector = fixture.start().await;
    crowd(collector.address, &fixture.site_token, 1, 3).await;
    assert!(used(&fixture).await > 3, "leased ahead");
    collector.stop().await;
    assert_eq!(used(&fixture).await, 3);

    fixture.set("quota.idle_timeout=20ms");
    let collector = fixture.start().await;
    crowd(collector.address, &fixture.site_token, 1, 3).await;
    until(async || used(&fixture).await == 6).await;
    crowd(collector.address, &fixture.site_token, 1, 1).await;
    collector.stop().await;
    assert_eq!((fixture.page_views().await, used(&fixture).await), (7, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_collector_loses_at_most_one_block_of_the_month_and_no_event() {
    let mut fixture = Fixture::new().await;
    fixture.set("quota.block_size=20");
    fixture.set("quota.lease_timeout=1m");
    for round in 1..=5 {
        let collector = fixture.start_process().await;
        crowd(collector.address, &fixture.site_token, 8, 4).await;
        collector.kill().await;
        let lost = used(&fixture).await - round * 32;
        assert!((0..=round * 20).contains(&lost), "{lost} are lost after {round} kills");
    }
    let collector = fixture.start().await;
    until(async || fixture.page_views().await == 5 * 32).await;
    collector.stop().await;
}

#[tokio::test]
async fn an_event_past_the_quota_is_answered_like_any_other_and_counted_as_dropped() {
    let fixture = Fixture::new().await;
    leave(&fixture, 2).await;
    let collector = fixture.start_process().await;
    crowd(collector.address, &fixture.site_token, 1, 9).await;
    let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
    let metrics = Browser::connect(collector.ops).await.unwrap().send(&scrape).await.unwrap();
    assert!(metrics.contains("collector_events_dropped_total{reason=\"quota\"} 7"), "{metrics}");
    collector.kill().await;
}

#[tokio::test]
async fn an_upgrade_lets_events_through_again_within_the_time_sites_are_remembered() {
    let mut fixture = Fixture::new().await;
    leave(&fixture, 1).await;
    fixture.set("collector.site_max_age=50ms");
    fixture.set("quota.retry_interval=1h");
    fixture.set("collector.events_per_minute=100000");
    let collector = fixture.start().await;
    crowd(collector.address, &fixture.site_token, 1, 5).await;
    until(async || fixture.page_views().await == 1).await;
    fixture.set_plan(Plan::Pro).await;
    until(async || {
        crowd(collector.address, &fixture.site_token, 1, 1).await;
        fixture.page_views().await > 1
    })
    .await;
    collector.stop().await;
}

#[tokio::test]
async fn while_postgres_is_away_everything_is_taken_and_counted_when_it_is_back() {
    let mut fixture = Fixture::new().await;
    leave(&fixture, 10).await;
    let proxy = FaultProxy::before(fixture.database_host()).await;
    fixture.set_database_behind(&proxy);
    let collector = fixture.start().await;
    crowd(collector.address, &fixture.site_token, 1, 1).await;
    until(async || fixture.page_views().await == 1).await;

    proxy.shut();
    crowd(collector.address, &fixture.site_token, 1, 25).await;
    until(async || fixture.page_views().await == 26).await;
    proxy.open();
    collector.stop().await;
    assert_eq!(used(&fixture).await, LIMIT - 10 + 26, "all are counted, past the limit");
}
