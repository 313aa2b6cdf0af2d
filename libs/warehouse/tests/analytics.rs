//! Queries about a site on a real ClickHouse engine: results, and cancellation.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::Event;
use domain::analytics::{Metric, MetricQuery, Range, VisitsQuery};
use domain::visits::Rules;
use sandbox::test::until;
use uuid::Uuid;
use warehouse::{QueryLimits, Warehouse};

const SITE: Uuid = Uuid::from_u128(7);
const OTHER_SITE: Uuid = Uuid::from_u128(8);
const LIMITS: QueryLimits =
    QueryLimits { timeout: Duration::from_secs(600), max_memory_bytes: 2 << 30, max_rows: 1_000_000_000 };

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_003_200_000_000_000)
}

fn event(site: Uuid, visitor: u64, received_at: DateTime<Utc>) -> Event {
    Event {
        id: Uuid::from_u128(
            u128::from(visitor) << 64 | u128::from(received_at.timestamp_millis().unsigned_abs()),
        ),
        account_id: Uuid::from_u128(1),
        site_id: site,
        received_at,
        name: "page_view".into(),
        path: format!("/{}", received_at.timestamp()),
        visitor,
        ..Event::default()
    }
}

fn question(metric: Metric, range: Range) -> MetricQuery {
    MetricQuery {
        metric,
        range,
        counted: range,
        compared: None,
        buckets: vec![],
        compared_buckets: vec![],
        breakdown: None,
        filters: vec![],
        limit: 10,
    }
}

async fn store(warehouse: &Warehouse, events: &[Event]) {
    warehouse.insert_events("batch", events).await.unwrap();
    warehouse.recompute_visits(events, Rules::default()).await.unwrap();
}

#[tokio::test]
async fn counts_page_views_and_visitors_of_the_site_in_the_range() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let range = Range { start: noon() - TimeDelta::hours(1), end: noon() + TimeDelta::hours(1) };
    let batch = [
        event(SITE, 1, range.start),
        event(SITE, 1, noon()),
        event(SITE, 2, range.end - TimeDelta::milliseconds(1)),
        event(SITE, 4, range.end),
        event(SITE, 5, range.start - TimeDelta::milliseconds(1)),
        event(OTHER_SITE, 6, noon()),
        Event { name: "sign up".into(), ..event(SITE, 3, noon()) },
    ];
    store(&warehouse, &batch).await;
    let total = async |site, metric| {
        warehouse.analytics(site, LIMITS).total(&question(metric, range), range).await.unwrap().amount
    };
    assert_eq!(total(SITE, Metric::PageViews).await, 3);
    assert_eq!(total(SITE, Metric::UniqueVisitors).await, 3);
    assert_eq!(total(Uuid::from_u128(9), Metric::PageViews).await, 0);
}

#[tokio::test]
async fn lists_the_first_thousand_pages_of_each_visit() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let later = |seconds: i64| noon() + TimeDelta::seconds(seconds);
    let mut batch: Vec<Event> = (0..1_100).map(|second| event(SITE, 1, later(second))).collect();
    // The same visitor two hours later, and another visitor.
    batch.extend([event(SITE, 1, later(7_200)), event(SITE, 2, later(500)), event(SITE, 2, later(501))]);
    store(&warehouse, &batch).await;
    let range = Range { start: noon(), end: later(10_000) };
    let query = VisitsQuery { range, min_pages: 0, limit: 10, offset: 0, filters: vec![] };
    let list = warehouse.analytics(SITE, LIMITS).visits(&query).await.unwrap();
    let pages: Vec<_> =
        list.visits.iter().map(|visit| (visit.visitor, visit.page_views, visit.pages.len())).collect();
    assert_eq!(pages, [(1, 1, 1), (2, 2, 2), (1, 1_100, 1_000)]);
    let first: Vec<_> = list.visits[2].pages.iter().map(|page| page.at).collect();
    assert_eq!(first, (0..1_000).map(later).collect::<Vec<_>>());
    assert_eq!(list.visits[0].pages[0].path, event(SITE, 1, later(7_200)).path);
}

#[tokio::test]
async fn a_dropped_query_is_cancelled_in_clickhouse() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let client = clickhouse::Client::default()
        .with_url(&clickhouse.url)
        .with_user(&clickhouse.user)
        .with_password(&clickhouse.password)
        .with_database(&clickhouse.database);
    // Joins 200,000 reports of one visitor with 200,000 visits, which takes minutes.
    let of_one = "FROM numbers(200000)";
    let columns = format!(
        "toUUID('{SITE}'), toDateTime64('2026-11-18 12:00:00', 3, 'UTC') + toIntervalMillisecond(number), 1"
    );
    for fill in [
        format!(
            "INSERT INTO events (site_id, received_at, visitor, name, engagement_ms) SELECT {columns}, 'engagement', 1 {of_one}"
        ),
        format!(
            "INSERT INTO sessions (site_id, start, visitor, ended, version) SELECT {columns}, '2026-11-18 13:00:00', 1 {of_one}"
        ),
    ] {
        client.query(&fill).execute().await.unwrap();
    }
    let running = async || {
        let sql = format!(
            "SELECT count() FROM system.processes WHERE current_database = '{}' AND query LIKE '%FROM events%' \
             AND query NOT LIKE '%system.processes%'",
            clickhouse.database
        );
        client.query(&sql).fetch_one::<u64>().await.unwrap()
    };
    let range = Range { start: noon(), end: noon() + TimeDelta::hours(1) };
    let query = tokio::spawn(async move {
        warehouse.analytics(SITE, LIMITS).total(&question(Metric::AvgTimeOnPage, range), range).await
    });
    until(async || running().await == 1).await;
    query.abort();
    assert!(query.await.unwrap_err().is_cancelled());
    until(async || running().await == 0).await;
}
