//! Outages of ClickHouse, Redis and Postgres.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use chrono::TimeDelta;
use sandbox::test::until;

use crate::browser::{Browser, is_no_content, page_view};
use crate::fault_proxy::FaultProxy;
use crate::fixture::{Collector, Fixture};

async fn send_many(collector: &Collector, site_token: &str, numbers: std::ops::Range<u8>) {
    send_to(collector.address, site_token, numbers).await;
}

async fn send_to(collector: SocketAddr, site_token: &str, numbers: std::ops::Range<u8>) {
    let mut browser = Browser::connect(collector).await.unwrap();
    for number in numbers {
        let ip = IpAddr::from([203, 0, 113, number]);
        let response = browser.send(&page_view(site_token, &format!("/{number}"), ip)).await.unwrap();
        assert!(is_no_content(&response), "{response}");
    }
}

fn once_each(numbers: std::ops::Range<u8>) -> BTreeMap<String, u64> {
    numbers.map(|number| (format!("/{number}"), 1)).collect()
}

#[tokio::test]
async fn events_wait_on_disk_during_an_outage_of_clickhouse() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.disconnect();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..50).await;
    until(async || proxy.closed_connections() > 0).await;
    send_many(&collector, &fixture.site_token, 50..100).await;
    // Shutdown does not wait for ClickHouse, and a new process sends the leftovers.
    collector.stop().await;
    assert_eq!(fixture.page_views().await, 0);
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 100..150).await;

    proxy.restore();
    until(async || fixture.page_views().await >= 150).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await, once_each(0..150));
}

#[tokio::test]
async fn an_insert_with_a_lost_response_is_counted_once() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.drop_insert_responses();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..50).await;
    until(async || proxy.closed_connections() >= 2).await;
    assert!(fixture.page_views().await > 0, "ClickHouse has stored the insert without acknowledging it");

    proxy.restore();
    until(async || fixture.page_views().await >= 50).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await, once_each(0..50));
}

#[tokio::test]
async fn without_redis_events_are_accepted_and_rate_limited() {
    let mut fixture = Fixture::new().await;
    // The port is closed again.
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fixture.set(&format!("redis.url=redis://{unused}"));
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..20).await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for _ in 0..100 {
        let view = page_view(&fixture.site_token, "/again", [198, 51, 100, 1].into());
        assert!(is_no_content(&browser.send(&view).await.unwrap()));
    }
    drop(browser);
    collector.stop().await;
    let stored = fixture.count_by_path().await;
    // The minute may have changed once in between.
    assert!((30..=60).contains(&stored["/again"]), "{}", stored["/again"]);
    assert_eq!(stored.len(), 21);
}

#[tokio::test]
async fn a_cached_site_is_counted_during_an_outage_of_postgres() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(fixture.database_host()).await;
    fixture.route_postgres_through(&proxy);
    fixture.set("collector.site_max_age=1ms");
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..1).await;
    until(async || fixture.page_views().await == 1).await;

    proxy.disconnect();
    send_many(&collector, &fixture.site_token, 1..4).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await, once_each(0..4));
}

#[tokio::test]
async fn events_of_an_unresolved_site_are_counted_after_the_outage_of_postgres() {
    let mut fixture = Fixture::new().await;
    let other = "site_not_in_the_cache";
    let other_id = fixture.insert_site(other).await;
    let proxy = FaultProxy::in_front_of(fixture.database_host()).await;
    fixture.route_postgres_through(&proxy);
    let collector = fixture.start().await;
    // This loads the salt of the day.
    send_many(&collector, &fixture.site_token, 0..1).await;

    proxy.disconnect();
    send_many(&collector, other, 1..3).await;
    send_many(&collector, "site_unknown", 3..4).await;
    send_many(&collector, &fixture.site_token, 4..5).await;
    until(async || fixture.page_views().await == 2).await;
    proxy.restore();
    let count = async || fixture.page_views_of(other_id, Fixture::all_time()).await;
    until(async || count().await == 2).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await.into_keys().collect::<Vec<_>>(), ["/0", "/1", "/2", "/4"]);
    let (events, visits) = fixture.sums_of_events_and_visits().await;
    assert_eq!(events, visits);
}

#[tokio::test]
async fn waiting_events_of_a_deleted_site_are_left_out() {
    let mut fixture = Fixture::new().await;
    let other = "site_that_stays";
    fixture.insert_site(other).await;
    let proxy = FaultProxy::in_front_of(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.disconnect();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..5).await;
    send_many(&collector, other, 5..8).await;
    collector.stop().await;
    let delete = format!("delete from analytics_sites where id = '{}'", fixture.site_id);
    store::execute_raw(&fixture.database.db, &delete).await.unwrap();
    // New events are stored unchecked if Postgres does not answer in time, as on a busy machine.
    fixture.age_segments(TimeDelta::minutes(5));

    proxy.restore();
    let collector = fixture.start().await;
    until(async || fixture.count_by_path().await.len() == 3).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await, once_each(5..8));
}

#[tokio::test]
async fn an_outage_of_postgres_delays_neither_requests_nor_new_segments() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(fixture.database_host()).await;
    fixture.route_postgres_through(&proxy);
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..1).await;

    proxy.refuse_connections();
    let started = std::time::Instant::now();
    // Each event is of another site that is not cached, so that segments are held.
    for number in 1..40 {
        send_many(&collector, &format!("site_not_cached_{number}"), number..number + 1).await;
    }
    let waited = started.elapsed();
    assert!(waited < std::time::Duration::from_secs(20), "{waited:?}: lookups waited one after the other");
    send_many(&collector, &fixture.site_token, 40..41).await;
    until(async || fixture.page_views().await == 2).await;
    collector.stop().await;
    fixture.set(&format!("store.url={}", fixture.database.url));
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 41..42).await;
    until(async || fixture.page_views().await == 3).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await.into_keys().collect::<Vec<_>>(), ["/0", "/40", "/41"]);
}

#[tokio::test]
async fn a_segment_with_a_forgotten_token_is_counted_once() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.drop_insert_responses();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..20).await;
    until(async || fixture.page_views().await > 0).await;
    collector.stop().await;

    // As if 20,000 inserts had happened in between.
    fixture.query("ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 0").await;
    proxy.restore();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 20..30).await;
    until(async || fixture.page_views().await >= 30).await;
    collector.stop().await;
    assert_eq!(fixture.count_by_path().await, once_each(0..30));
    let (events, visits) = fixture.sums_of_events_and_visits().await;
    assert_eq!(events, visits);
}

#[tokio::test]
async fn held_events_are_charged_once_when_their_segment_is_sent_twice() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(fixture.database_host()).await;
    fixture.route_postgres_through(&proxy);
    let collector = fixture.start().await;
    let other = "site_not_in_the_cache";
    fixture.insert_site(other).await;
    send_many(&collector, &fixture.site_token, 0..1).await;
    proxy.disconnect();
    send_many(&collector, other, 1..4).await;
    until(async || fixture.page_views().await == 1).await;
    collector.stop().await;
    proxy.restore();

    // As after a kill between the charge and the deletion of the segment: the same folder is sent twice.
    let segments = fixture.read_segments();
    for _ in 0..2 {
        let collector = fixture.start().await;
        until(async || fixture.count_by_path().await.len() == 4).await;
        collector.stop().await;
        fixture.restore_segments(&segments);
    }
    assert_eq!(fixture.count_by_path().await, once_each(0..4));
    assert_eq!(fixture.charged_events(other).await, 3);
}

#[tokio::test]
async fn metrics_count_an_event_once_over_all_attempts_of_its_segment() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::in_front_of(fixture.database_host()).await;
    fixture.route_postgres_through(&proxy);
    let collector = fixture.start_process().await;
    let other = "site_not_in_the_cache";
    fixture.insert_site(other).await;
    send_to(collector.address, &fixture.site_token, 0..1).await;
    until(async || fixture.page_views().await == 1).await;

    // Events are inserted, but recomputing their visits fails.
    let (break_visits, restore_visits) =
        ("RENAME TABLE sessions TO sessions_away", "RENAME TABLE sessions_away TO sessions");
    let wait_for_failures = async || {
        let before = collector.counter("collector_inserts_failed_total").await;
        until(async || collector.counter("collector_inserts_failed_total").await >= before + 3).await;
    };
    proxy.disconnect();
    fixture.query(break_visits).await;
    send_to(collector.address, other, 1..3).await;
    send_to(collector.address, "site_unknown", 3..4).await;
    send_to(collector.address, &fixture.site_token, 4..5).await;
    wait_for_failures().await;
    fixture.query(restore_visits).await;
    until(async || fixture.sums_of_events_and_visits().await.1.starts_with('2')).await;
    fixture.query(break_visits).await;
    proxy.restore();
    wait_for_failures().await;
    // Then charging the stored events fails.
    store::execute_raw(&fixture.database.db, "alter table held_charges rename to away").await.unwrap();
    fixture.query(restore_visits).await;
    let deliveries = async || collector.counter("collector_visits_recompute_seconds_count").await;
    let before = deliveries().await;
    until(async || deliveries().await >= before + 3).await;
    store::execute_raw(&fixture.database.db, "alter table away rename to held_charges").await.unwrap();
    until(async || fixture.read_segments().is_empty()).await;
    let counted = [
        collector.counter("collector_events_accepted_total").await,
        collector.counter("collector_events_inserted_total").await,
        collector.counter("collector_events_dropped_total{reason=\"unknown_site\"}").await,
    ];
    assert_eq!(counted, [5, 4, 1]);
    collector.kill().await;
    assert_eq!(fixture.count_by_path().await.into_keys().collect::<Vec<_>>(), ["/0", "/1", "/2", "/4"]);
}
