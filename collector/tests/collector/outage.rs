//! ClickHouse, Redis and Postgres are away for a while.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use sandbox::test::until;

use crate::browser::{Browser, answered, page_view};
use crate::fault_proxy::FaultProxy;
use crate::fixture::{Collector, Fixture};

async fn send_many(collector: &Collector, site_token: &str, numbers: std::ops::Range<u8>) {
    send_to(collector.address, site_token, numbers).await;
}

async fn send_to(collector: SocketAddr, site_token: &str, numbers: std::ops::Range<u8>) {
    let mut browser = Browser::connect(collector).await.unwrap();
    for number in numbers {
        let ip = IpAddr::from([203, 0, 113, number]);
        let answer = browser.send(&page_view(site_token, &format!("/{number}"), ip)).await.unwrap();
        assert!(answered(&answer), "{answer}");
    }
}

fn once_each(numbers: std::ops::Range<u8>) -> BTreeMap<String, u64> {
    numbers.map(|number| (format!("/{number}"), 1)).collect()
}

#[tokio::test]
async fn events_wait_on_disk_while_clickhouse_is_away_and_follow_when_it_is_back() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.shut();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..50).await;
    until(async || proxy.cut() > 0).await;
    send_many(&collector, &fixture.site_token, 50..100).await;
    // Stopping doesn't wait for ClickHouse, and a new process takes over what is left.
    collector.stop().await;
    assert_eq!(fixture.page_views().await, 0);
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 100..150).await;

    proxy.open();
    until(async || fixture.page_views().await >= 150).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await, once_each(0..150));
}

#[tokio::test]
async fn what_clickhouse_stored_without_saying_so_is_counted_once() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.deafen();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..50).await;
    until(async || proxy.cut() >= 2).await;
    assert!(fixture.page_views().await > 0, "ClickHouse has stored what it could not acknowledge");

    proxy.open();
    until(async || fixture.page_views().await >= 50).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await, once_each(0..50));
}

#[tokio::test]
async fn without_redis_events_are_taken_and_still_limited() {
    let mut fixture = Fixture::new().await;
    // Nobody listens there any more.
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fixture.set(&format!("redis.url=redis://{unused}"));
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..20).await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for _ in 0..100 {
        let view = page_view(&fixture.site_token, "/again", [198, 51, 100, 1].into());
        assert!(answered(&browser.send(&view).await.unwrap()));
    }
    drop(browser);
    collector.stop().await;
    let stored = fixture.stored_paths().await;
    // The minute may have turned meanwhile, once.
    assert!((30..=60).contains(&stored["/again"]), "{}", stored["/again"]);
    assert_eq!(stored.len(), 21);
}

#[tokio::test]
async fn a_site_that_was_seen_is_counted_while_postgres_is_away() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(fixture.database_host()).await;
    fixture.set_database_behind(&proxy);
    fixture.set("collector.site_max_age=1ms");
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..1).await;
    until(async || fixture.page_views().await == 1).await;

    proxy.shut();
    send_many(&collector, &fixture.site_token, 1..4).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await, once_each(0..4));
}

#[tokio::test]
async fn the_first_events_of_a_site_that_come_while_postgres_is_away_are_counted_when_it_is_back() {
    let mut fixture = Fixture::new().await;
    let other = "site_nobody_has_asked_for_yet";
    let other_id = fixture.make_site(other).await;
    let proxy = FaultProxy::before(fixture.database_host()).await;
    fixture.set_database_behind(&proxy);
    let collector = fixture.start().await;
    // From now on it has the day's salt.
    send_many(&collector, &fixture.site_token, 0..1).await;

    proxy.shut();
    send_many(&collector, other, 1..3).await;
    send_many(&collector, "site_of_nobody", 3..4).await;
    send_many(&collector, &fixture.site_token, 4..5).await;
    until(async || fixture.page_views().await == 2).await;
    proxy.open();
    let count = async || fixture.page_views_of(other_id, Fixture::always()).await;
    until(async || count().await == 2).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await.into_keys().collect::<Vec<_>>(), ["/0", "/1", "/2", "/4"]);
    let (events, visits) = fixture.both_sums().await;
    assert_eq!(events, visits);
}

#[tokio::test]
async fn events_that_waited_while_their_site_was_deleted_are_left_out() {
    let mut fixture = Fixture::new().await;
    let other = "site_that_stays";
    fixture.make_site(other).await;
    let proxy = FaultProxy::before(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.shut();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..5).await;
    send_many(&collector, other, 5..8).await;
    collector.stop().await;
    let gone = format!("delete from analytics_sites where id = '{}'", fixture.site_id);
    store::execute_raw(&fixture.database.db, &gone).await.unwrap();

    proxy.open();
    let collector = fixture.start().await;
    until(async || fixture.stored_paths().await.len() == 3).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await, once_each(5..8));
}

#[tokio::test]
async fn a_postgres_that_is_away_holds_up_neither_who_sends_nor_what_is_new() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(fixture.database_host()).await;
    fixture.set_database_behind(&proxy);
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..1).await;

    proxy.refuse();
    let began = std::time::Instant::now();
    // Each of a site nobody has asked for yet, so that segments are held.
    for number in 1..40 {
        send_many(&collector, &format!("site_unheard_of_{number}"), number..number + 1).await;
    }
    let waited = began.elapsed();
    assert!(waited < std::time::Duration::from_secs(20), "{waited:?}: not one after the other");
    send_many(&collector, &fixture.site_token, 40..41).await;
    until(async || fixture.page_views().await == 2).await;
    collector.stop().await;
    fixture.set(&format!("store.url={}", fixture.database.url));
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 41..42).await;
    until(async || fixture.page_views().await == 3).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await.into_keys().collect::<Vec<_>>(), ["/0", "/40", "/41"]);
}

#[tokio::test]
async fn a_segment_whose_token_is_forgotten_is_still_counted_once() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(&fixture.clickhouse.url).await;
    fixture.set(&format!("warehouse.url={}", proxy.url));
    proxy.deafen();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 0..20).await;
    until(async || fixture.page_views().await > 0).await;
    collector.stop().await;

    // As if 20,000 inserts had come in between.
    fixture.ask("ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 0").await;
    proxy.open();
    let collector = fixture.start().await;
    send_many(&collector, &fixture.site_token, 20..30).await;
    until(async || fixture.page_views().await >= 30).await;
    collector.stop().await;
    assert_eq!(fixture.stored_paths().await, once_each(0..30));
    let (events, visits) = fixture.both_sums().await;
    assert_eq!(events, visits);
}

#[tokio::test]
async fn events_that_were_held_are_charged_once_however_often_they_are_sent() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(fixture.database_host()).await;
    fixture.set_database_behind(&proxy);
    let collector = fixture.start().await;
    let other = "site_nobody_has_asked_for_yet";
    fixture.make_site(other).await;
    send_many(&collector, &fixture.site_token, 0..1).await;
    proxy.shut();
    send_many(&collector, other, 1..4).await;
    until(async || fixture.page_views().await == 1).await;
    collector.stop().await;
    proxy.open();

    // A kill after it was charged and before the segment went: the same folder is sent twice.
    let kept = fixture.copy_of_segments();
    for _ in 0..2 {
        let collector = fixture.start().await;
        until(async || fixture.stored_paths().await.len() == 4).await;
        collector.stop().await;
        fixture.put_segments(&kept);
    }
    assert_eq!(fixture.stored_paths().await, once_each(0..4));
    assert_eq!(fixture.used_of(other).await, 3);
}

#[tokio::test]
async fn an_event_is_counted_once_however_often_its_segment_is_tried() {
    let mut fixture = Fixture::new().await;
    let proxy = FaultProxy::before(fixture.database_host()).await;
    fixture.set_database_behind(&proxy);
    let collector = fixture.start_process().await;
    let other = "site_nobody_has_asked_for_yet";
    fixture.make_site(other).await;
    send_to(collector.address, &fixture.site_token, 0..1).await;
    until(async || fixture.page_views().await == 1).await;

    // Events go in, and what is done with them then does not succeed.
    let (no_visits, visits) =
        ("RENAME TABLE sessions TO sessions_away", "RENAME TABLE sessions_away TO sessions");
    let fails = async || {
        let before = collector.counter("collector_inserts_failed_total").await;
        until(async || collector.counter("collector_inserts_failed_total").await >= before + 3).await;
    };
    proxy.shut();
    fixture.ask(no_visits).await;
    send_to(collector.address, other, 1..3).await;
    send_to(collector.address, "site_of_nobody", 3..4).await;
    send_to(collector.address, &fixture.site_token, 4..5).await;
    fails().await;
    fixture.ask(visits).await;
    until(async || fixture.both_sums().await.1.starts_with('2')).await;
    fixture.ask(no_visits).await;
    proxy.open();
    fails().await;
    // And then what is stored can't be charged.
    store::execute_raw(&fixture.database.db, "alter table held_charges rename to away").await.unwrap();
    fixture.ask(visits).await;
    let stored = async || collector.counter("collector_visits_recompute_seconds_count").await;
    let before = stored().await;
    until(async || stored().await >= before + 3).await;
    store::execute_raw(&fixture.database.db, "alter table away rename to held_charges").await.unwrap();
    until(async || fixture.copy_of_segments().is_empty()).await;
    let counted = [
        collector.counter("collector_events_accepted_total").await,
        collector.counter("collector_events_inserted_total").await,
        collector.counter("collector_events_dropped_total{reason=\"unknown_site\"}").await,
    ];
    assert_eq!(counted, [5, 4, 1]);
    collector.kill().await;
    assert_eq!(fixture.stored_paths().await.into_keys().collect::<Vec<_>>(), ["/0", "/1", "/2", "/4"]);
}
