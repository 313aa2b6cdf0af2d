//! Rejections: invalid queries name their fields, expensive ones are limited, and none hangs.

use chrono::TimeDelta;
use contract::events::Event;
use http::{Method, StatusCode};
use sandbox::test::with_timeout;
use serde_json::{Value, json};
use service::Clock;
use tokio::io::AsyncReadExt as _;
use uuid::Uuid;

use super::fixture::Fixture;

#[tokio::test]
async fn an_invalid_query_is_rejected_field_by_field() {
    let fixture = Fixture::start(&[]).await;
    let site = fixture.site("UTC").await;
    let rejected = async |method: Method, path: String, body: Value| {
        let (status, problem) = fixture.send(method, &path, &body).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("validation_failed")),
            "{path} {body}"
        );
        let fields = problem["fieldErrors"].as_array().unwrap().iter();
        fields.map(|one| one["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    for (query, fields) in [
        ("metric=clicks", "metric"),
        ("period=8d", "period"),
        ("period=custom", "from to"),
        ("period=custom&from=2026-01-02&to=2026-01-01", "from"),
        ("period=custom&from=2026-02-30&to=2026-03-01", "from"),
        ("groupBy=year", "groupBy"),
        ("groupBy=hour&period=custom&from=2000-01-01&to=2026-01-01", "groupBy"),
        ("breakdownBy=language", "breakdownBy"),
        ("filters=x", "filters"),
        ("filters=%7B%22colour%22:%22red%22%7D", "filters.colour"),
        ("filters.colour=red", "filters.colour"),
        ("filters[colour]=red", "filters.colour"),
        ("filters[country]=DE&filters.country=DE", "filters.country"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=ten", "limit"),
        ("compare=maybe", "compare"),
        ("metric=a&groupBy=b&breakdownBy=c&limit=-1", "metric groupBy breakdownBy limit"),
    ] {
        let path = format!("/api/analytics/query?siteId={site}&{query}");
        assert_eq!(rejected(Method::GET, path, Value::Null).await, fields, "{query}");
    }
    for (query, fields) in [
        ("period=30d", "period"),
        ("period=custom&from=2026-01-01&to=2026-01-08", "to"),
        ("limit=101", "limit"),
        ("offset=-1", "offset"),
        ("minPages=-1", "minPages"),
        ("filter.browser=x", "filter.browser"),
    ] {
        let path = format!("/api/analytics/sessions?siteId={site}&{query}");
        assert_eq!(rejected(Method::GET, path, Value::Null).await, fields, "{query}");
    }
    let step = json!({"event": "page_view"});
    for (steps, fields) in [
        (json!([step]), "steps"),
        (json!(vec![&step; 6]), "steps"),
        (json!([step, {"event": ""}]), "steps[1].event"),
        (json!([step, {"event": "a", "filters": {"colour": "red"}}]), "steps[1].filters.colour"),
        (json!([step, {"event": "a", "filters": {"url": 1}}]), "steps[1].filters.url"),
    ] {
        let body = json!({"siteId": site, "steps": steps});
        assert_eq!(rejected(Method::POST, "/api/analytics/funnel".into(), body).await, fields, "{steps}");
    }
    for (step, limit, fields) in [
        (json!(1), json!(10), "step"),
        (json!(3), json!(101), "step limit"),
        (json!(null), json!(10), "step"),
    ] {
        let body = json!({"siteId": site, "steps": [&json!({"event": "a"}), &json!({"event": "b"})], "step": step, "limit": limit});
        let path = "/api/analytics/funnel/drop-off".to_owned();
        assert_eq!(rejected(Method::POST, path, body).await, fields, "{step} {limit}");
    }
    // Only the first few of very many errors are reported.
    let many: serde_json::Map<_, _> = (0..14).map(|number| (format!("f{number:02}"), json!("x"))).collect();
    let body = json!({"siteId": site, "steps": vec![json!({"event": "a", "filters": many}); 5]});
    let received = rejected(Method::POST, "/api/analytics/funnel".into(), body).await;
    assert_eq!(received.split(' ').count(), 20, "{received}");
    for (member, value, fields) in [
        ("granularity", json!("year"), "granularity"),
        ("firstEvent", json!(""), "firstEvent"),
        ("returnEvent", json!("engagement"), "returnEvent"),
        ("period", json!("custom"), "from to"),
    ] {
        let mut body = json!({"siteId": site});
        body[member] = value;
        assert_eq!(rejected(Method::POST, "/api/analytics/retention".into(), body).await, fields);
    }
    let path = "/api/analytics/query".to_owned();
    assert_eq!(rejected(Method::GET, path, Value::Null).await, "siteId");
    let id = format!("/api/analytics/sites/{site}");
    for (body, fields) in [
        (json!({"timezone": "Berlin"}), "timezone"),
        (json!({"visitorIdLifetime": "year"}), "visitorIdLifetime"),
        (json!({"honourDnt": "yes"}), "honourDnt"),
        (json!({"name": " ", "domain": "a b"}), "name domain"),
    ] {
        assert_eq!(rejected(Method::PATCH, id.clone(), body).await, fields);
    }
}

#[tokio::test]
async fn a_query_over_too_many_rows_is_rejected_with_advice() {
    let limited = ["analytics.max_rows=500"];
    let fixture = Fixture::start(&limited).await;
    let site = fixture.site("UTC").await;
    let now = Clock::system().now();
    let events: Vec<Event> = (0..2_000_u64)
        .map(|number| Event {
            id: Uuid::from_u128(number.into()),
            account_id: fixture.account_id,
            site_id: site,
            received_at: now - TimeDelta::seconds(1),
            name: "page_view".into(),
            visitor: number,
            ..Event::default()
        })
        .collect();
    fixture.store(&events, 10_000).await;
    let path = format!("/api/analytics/query?siteId={site}&breakdownBy=url");
    let (status, problem) = fixture.send(Method::GET, &path, &Value::Null).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::BAD_REQUEST, &json!("validation_failed")),
        "{problem}"
    );
    assert_eq!(problem["fieldErrors"][0]["field"], "period");
}

#[tokio::test]
async fn a_query_without_a_permit_gets_503() {
    let fixture = Fixture::start(&["analytics.max_concurrent=0", "analytics.queue_timeout=10ms"]).await;
    let site = fixture.site("UTC").await;
    let path = format!("/api/analytics/realtime?siteId={site}");
    let (status, problem) = fixture.send(Method::GET, &path, &Value::Null).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable")),
        "{problem}"
    );
    assert!(problem["hint"].is_string(), "{problem}");
}

#[tokio::test]
async fn a_site_is_listed_without_counts_while_the_warehouse_is_unavailable_or_busy() {
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unavailable_url = format!("warehouse.url=http://{closed_port}");
    for set in
        [vec![unavailable_url.as_str()], vec!["analytics.max_concurrent=0", "analytics.queue_timeout=10ms"]]
    {
        let fixture = Fixture::start(&set).await;
        let site = fixture.site("Asia/Kathmandu").await;
        let read = fixture.get(&format!("/api/analytics/sites/{site}")).await;
        let listed = fixture.get("/api/analytics/sites").await;
        for received in [&read, &listed["sites"][0]] {
            assert_eq!(
                (&received["id"], &received["eventCount"]),
                (&json!(site), &Value::Null),
                "{set:?}: {received}"
            );
            assert_eq!(received["timezone"], "Asia/Kathmandu");
        }
        assert_eq!(read["dropped"], json!({}));
        let path = format!("/api/analytics/realtime?siteId={site}");
        let (status, _) = fixture.send(Method::GET, &path, &Value::Null).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn a_disconnect_cancels_the_query_and_releases_its_permit() {
    // A warehouse that accepts queries and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("warehouse.url=http://{}", silent.local_addr().unwrap());
    let fixture =
        Fixture::start(&[&url, "analytics.max_concurrent_per_account=1", "analytics.queue_timeout=10ms"])
            .await;
    let site = fixture.site("UTC").await;
    let path = format!("/api/analytics/realtime?siteId={site}");
    for _ in 0..2 {
        let mut pending = Box::pin(fixture.send(Method::GET, &path, &Value::Null));
        let (mut connection, _) = tokio::select! {
            (status, response) = &mut pending => panic!("{status}: {response}"),
            accepted = silent.accept() => accepted.unwrap(),
        };
        let (status, _) = tokio::select! {
            (status, response) = &mut pending => panic!("{status}: {response}"),
            second = fixture.send(Method::GET, &path, &Value::Null) => second,
        };
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        drop(pending);
        let mut request = Vec::new();
        with_timeout(connection.read_to_end(&mut request)).await.unwrap();
        assert!(String::from_utf8_lossy(&request).contains("readonly=2"));
    }
}
