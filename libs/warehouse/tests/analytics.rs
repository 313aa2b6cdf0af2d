//! Queries about a site on a real ClickHouse engine: results, and cancellation.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::Event;
use domain::analytics::{Dimension, Filter, Metric, MetricQuery, Range, Sums, VisitsQuery};
use domain::visits::Rules;
use sandbox::test::{TestClickHouse, until};
use uuid::Uuid;
use warehouse::{QueryLimits, ReportQuery, Warehouse};

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

/// Returns a client for statements that the crate does not have.
fn client_of(clickhouse: &TestClickHouse) -> clickhouse::Client {
    clickhouse::Client::default()
        .with_url(&clickhouse.url)
        .with_user(&clickhouse.user)
        .with_password(&clickhouse.password)
        .with_database(&clickhouse.database)
}

/// Returns the amount of a metric, asked at `now`.
async fn total(warehouse: &Warehouse, site: Uuid, question: &MetricQuery, now: DateTime<Utc>) -> u64 {
    let site = warehouse.analytics(site, LIMITS, now);
    let totals = std::slice::from_ref(question);
    let report = site.report(ReportQuery { totals, ..ReportQuery::default() }).await;
    report.unwrap().totals[0].sums.amount
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
    let total = async |site, metric| total(&warehouse, site, &question(metric, range), range.end).await;
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
    let list = warehouse.analytics(SITE, LIMITS, noon()).visits(&query).await.unwrap();
    let pages: Vec<_> =
        list.visits.iter().map(|visit| (visit.visitor, visit.page_views, visit.pages.len())).collect();
    assert_eq!(pages, [(1, 1, 1), (2, 2, 2), (1, 1_100, 1_000)]);
    let first: Vec<_> = list.visits[2].pages.iter().map(|page| page.at).collect();
    assert_eq!(first, (0..1_000).map(later).collect::<Vec<_>>());
    assert_eq!(list.visits[0].pages[0].path, event(SITE, 1, later(7_200)).path);
}

#[tokio::test]
async fn cached_sums_of_settled_days_follow_what_is_stored() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let days = |count: i64| noon() + TimeDelta::days(count);
    let question = question(Metric::UniqueVisitors, Range { start: days(-9), end: days(3) });
    let visitors = async || total(&warehouse, SITE, &question, days(2)).await;
    store(&warehouse, &[event(SITE, 1, days(-3)), event(SITE, 2, days(0)), event(OTHER_SITE, 9, days(0))])
        .await;
    assert_eq!([visitors().await, visitors().await], [2, 2]);

    // An event that waited for days while ClickHouse was away.
    let late = [event(SITE, 3, days(-2))];
    warehouse.insert_events("late", &late).await.unwrap();
    warehouse.recompute_visits(&late, Rules::default()).await.unwrap();
    assert_eq!([visitors().await, visitors().await], [3, 3]);

    // A visit that continues after midnight, when the day it began on is settled.
    let page_views = MetricQuery { metric: Metric::PageViews, ..question.clone() };
    let evening = days(1) + TimeDelta::hours(11) + TimeDelta::minutes(50);
    let morning = evening + TimeDelta::minutes(20);
    let cross = [event(SITE, 4, evening), Event { previous: 4, ..event(SITE, 5, morning) }];
    for (token, one) in ["evening", "morning"].iter().zip(&cross) {
        warehouse.insert_events(token, std::slice::from_ref(one)).await.unwrap();
        warehouse.recompute_visits(std::slice::from_ref(one), Rules::default()).await.unwrap();
        assert_eq!(visitors().await, 4);
    }
    let by_visit = MetricQuery {
        filters: vec![Filter { dimension: Dimension::Channel, value: String::new() }],
        ..page_views.clone()
    };
    assert_eq!(total(&warehouse, SITE, &page_views, days(2)).await, 5);
    assert_eq!(total(&warehouse, SITE, &by_visit, days(2)).await, 5);

    warehouse.delete_events(&[], &[SITE]).await.unwrap();
    assert_eq!(visitors().await, 0);
    assert_eq!(total(&warehouse, SITE, &page_views, days(2)).await, 0);
}

#[tokio::test]
async fn a_dimension_of_very_many_values_has_its_top_values() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    // Each period has 210,000 paths, more than a statement returns. A few are viewed more often.
    let views = format!(
        "INSERT INTO events (site_id, received_at, visitor, name, path) \
         SELECT toUUID('{SITE}'), toDateTime64('2026-11-17 12:00:00', 3, 'UTC') + toIntervalDay(day), number, 'page_view', \
         concat('/', toString(if(number < 210000, number, number % (2 + day)))) \
         FROM numbers(210010) ARRAY JOIN [0, 1] AS day"
    );
    client_of(&clickhouse).query(&views).execute().await.unwrap();
    let day = |count: i64| noon() + TimeDelta::days(count);
    let range = Range { start: day(0), end: day(1) };
    let by_path = MetricQuery {
        compared: Some(Range { start: day(-1), end: day(0) }),
        breakdown: Some(Dimension::Url),
        limit: 4,
        ..question(Metric::PageViews, range)
    };
    let one = std::slice::from_ref(&by_path);
    for now in [day(0), day(10)] {
        let site = warehouse.analytics(SITE, LIMITS, now);
        let report =
            site.report(ReportQuery { totals: one, breakdowns: one, ..ReportQuery::default() }).await;
        let report = report.unwrap();
        let total = Sums { amount: 210_010, over: 0 };
        assert_eq!((report.totals[0].sums, report.totals[0].compared), (total, Some(total)));
        let rows: Vec<_> = report.breakdowns[0]
            .iter()
            .map(|row| (row.key.as_str(), row.sums.amount, row.compared.unwrap().amount))
            .collect();
        assert_eq!(rows, [("/0", 5, 6), ("/1", 4, 6), ("/2", 4, 1), ("/10", 1, 1)]);
    }
}

#[tokio::test]
async fn a_list_of_long_visits_has_all_their_pages() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let start = "toDateTime64('2026-11-18 12:00:00', 3, 'UTC')";
    let client = client_of(&clickhouse);
    for fill in [
        format!(
            "INSERT INTO events (site_id, received_at, visitor, name, path) SELECT toUUID('{SITE}'), \
             {start} + toIntervalSecond(intDiv(number, 210)), number % 210, 'page_view', '/' FROM numbers(210000)"
        ),
        format!(
            "INSERT INTO sessions (site_id, start, visitor, ended, page_views, version) SELECT toUUID('{SITE}'), \
             {start}, number, {start} + toIntervalSecond(999), 1000, 1 FROM numbers(210)"
        ),
    ] {
        client.query(&fill).execute().await.unwrap();
    }
    let range = Range { start: noon(), end: noon() + TimeDelta::hours(1) };
    let query = VisitsQuery { range, min_pages: 0, limit: 1_000, offset: 0, filters: vec![] };
    let list = warehouse.analytics(SITE, LIMITS, noon()).visits(&query).await.unwrap();
    assert_eq!(list.visits.len(), 210);
    assert!(list.visits.iter().all(|visit| visit.pages.len() == 1_000));
}

#[tokio::test]
async fn a_dropped_query_is_cancelled_in_clickhouse() {
    let clickhouse = sandbox::test::clickhouse().await;
    let warehouse = clickhouse.connect();
    let client = client_of(&clickhouse);
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
        total(&warehouse, SITE, &question(Metric::AvgTimeOnPage, range), noon()).await
    });
    until(async || running().await == 1).await;
    query.abort();
    assert!(query.await.unwrap_err().is_cancelled());
    until(async || running().await == 0).await;
}
