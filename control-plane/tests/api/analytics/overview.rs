//! The overview returns what single queries return, in three statements.

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use http::{Method, StatusCode};
use sandbox::test::TestStore as _;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::Fixture;
use super::statement_counter::StatementCounter;
use super::traffic::{Rng, SiteTraffic};

const METRICS: [&str; 6] =
    ["unique_visitors", "visits", "page_views", "views_per_visit", "bounce_rate", "avg_session_duration"];

async fn site_with_traffic(fixture: &Fixture, zone: &str, first: NaiveDate) -> Uuid {
    let id = fixture.site(zone).await;
    let zone: Tz = zone.parse().unwrap();
    let traffic = SiteTraffic { account_id: fixture.account_id, site_id: id, zone, visitors: 25 };
    let events: Vec<_> = traffic.days(first, 12, &mut Rng(5)).into_iter().map(|one| one.event).collect();
    fixture.store(&events, 5_000).await;
    id
}

/// Compares an overview with the queries of its parts.
async fn check(fixture: &Fixture, site: Uuid, days: [NaiveDate; 2], filters: &str, series: [&str; 2]) {
    let [from, to] = days;
    let query = async |parameters: &str| {
        fixture.get(&format!("/api/analytics/query?siteId={site}&period=custom{filters}&{parameters}")).await
    };
    let [metric, group_by] = series;
    let shared = format!("from={from}&to={to}&compare=true&limit=5");
    let overview = fixture
        .get(&format!(
            "/api/analytics/overview?siteId={site}&period=custom{filters}&{shared}&metric={metric}\
             &groupBy={group_by}&sources=channel&places=city"
        ))
        .await;
    for (figure, metric) in overview["figures"].as_array().unwrap().iter().zip(METRICS) {
        let alone = query(&format!("{shared}&metric={metric}")).await;
        let comparison = &alone["comparison"];
        let expected = json!({
            "metric": metric, "total": alone["total"], "previous": comparison["total"],
            "changePercent": comparison["changePercent"],
        });
        assert_eq!(figure, &expected, "{filters} {days:?}");
        assert_eq!((&overview["from"], &overview["to"]), (&alone["from"], &alone["to"]));
        let compared = json!({ "from": comparison["from"], "to": comparison["to"] });
        assert_eq!(overview["compared"], compared);
    }
    let length = to - from + TimeDelta::days(1);
    for (part, from, to) in [("current", from, to), ("previous", from - length, from - TimeDelta::days(1))] {
        let alone = query(&format!("from={from}&to={to}&metric={metric}&groupBy={group_by}")).await;
        assert_eq!(overview["series"][part], alone["series"], "{part}: {metric} {filters} {days:?}");
    }
    for (panel, dimension) in
        [("sources", "channel"), ("pages", "url"), ("places", "city"), ("devices", "device")]
    {
        let alone = query(&format!("{shared}&metric=unique_visitors&breakdownBy={dimension}")).await;
        let panel = &overview["panels"][panel];
        assert_eq!(panel["dimension"], dimension);
        assert_eq!(panel["rows"], alone["breakdown"], "{dimension} {filters} {days:?}");
    }
}

#[tokio::test]
async fn an_overview_agrees_with_the_queries_of_its_parts() {
    let fixture = Fixture::start(&[]).await;
    // The clock changes on the sixth day.
    let first: NaiveDate = "2025-03-25".parse().unwrap();
    let site = site_with_traffic(&fixture, "Europe/Berlin", first).await;
    let day = |number: i64| first + TimeDelta::days(number);
    let cases = [
        ("", [day(5), day(10)], ["visits", "day"]),
        ("&filters.country=DE", [day(4), day(5)], ["unique_visitors", "hour"]),
        ("&filters.url=/docs", [day(3), day(8)], ["bounce_rate", "day"]),
        ("&filters.channel=Email", [day(6), day(11)], ["page_views", "day"]),
        ("&filters.entry_page=/pricing&filters.url=/docs", [day(6), day(12)], ["page_views", "week"]),
        ("&filters.device=mobile&filters.utm_source=", [day(2), day(9)], ["avg_session_duration", "day"]),
        ("", [day(40), day(42)], ["views_per_visit", "month"]),
    ];
    for (filters, days, series) in cases {
        check(&fixture, site, days, filters, series).await;
    }
}

#[tokio::test]
async fn an_overview_is_at_most_three_statements() {
    let clickhouse = sandbox::test::clickhouse().await;
    let counter = StatementCounter::before(&clickhouse).await;
    let mut settings = clickhouse.settings();
    settings.retain(|setting| !setting.starts_with("warehouse.url="));
    settings.push(format!("warehouse.url={}", counter.url));
    let settings: Vec<_> = settings.iter().map(String::as_str).collect();
    let fixture = Fixture::start(&settings).await;
    let site = fixture.site("UTC").await;
    for filters in ["", "&filters.channel=Email", "&filters.url=/docs&filters.channel=Email"] {
        for compare in ["true", "false"] {
            counter.take();
            let path = format!("/api/analytics/overview?siteId={site}&period=90d&compare={compare}{filters}");
            let overview = fixture.get(&path).await;
            assert_eq!(counter.take(), 3, "{path}");
            // Settled days are cached.
            assert_eq!(fixture.get(&path).await["panels"], overview["panels"]);
            assert_eq!(counter.take(), 2, "{path}");
            assert_eq!(overview["series"]["current"].as_array().unwrap().len(), 90);
            assert_eq!(overview["series"]["previous"].is_array(), compare == "true");
        }
    }
    counter.take();
    fixture.get(&format!("/api/analytics/realtime?siteId={site}")).await;
    assert_eq!(counter.take(), 1, "the counter counts");
}

#[tokio::test]
async fn an_overview_tells_what_was_dropped_and_refuses_what_it_can_not_show() {
    let fixture = Fixture::start(&[]).await;
    let site = fixture.site("UTC").await;
    let drops = format!(
        "insert into event_drops (site_id, hour, reason, count) values ('{site}', date_trunc('hour', now()), 'bot', 3)"
    );
    fixture.api.execute(&drops).await.unwrap();
    let path = format!("/api/analytics/overview?siteId={site}");
    let overview = fixture.get(&path).await;
    assert_eq!(overview["dropped"], json!({"bot": 3}));
    assert_eq!(
        overview["figures"][3],
        json!({"metric": "views_per_visit", "total": null, "changePercent": null})
    );
    assert_eq!((&overview["compared"], &overview["series"]["groupBy"]), (&Value::Null, &json!("day")));
    for (parameters, field) in
        [("metric=active_visitors", "metric"), ("sources=url", "sources"), ("limit=0", "limit")]
    {
        let (status, problem) =
            fixture.send(Method::GET, &format!("{path}&{parameters}"), &Value::Null).await;
        assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!(field)));
    }
    let stranger = fixture.api.trial().await;
    let (status, _) = fixture.api.send(Method::GET, &path, Some(&stranger), &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
