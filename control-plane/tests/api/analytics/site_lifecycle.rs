//! The lifecycle of an analytics site: creation, update, and deletion with its data.

use std::time::Duration;

use chrono::TimeDelta;
use contract::events::{Event, Returner};
use domain::analytics::{RawRetentionQuery, RawVisitsQuery, Zone, parse_retention_query, parse_visits_query};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;
use warehouse::QueryLimits;

use super::fixture::Fixture;

#[tokio::test]
async fn a_new_site_has_a_script_tag_and_settings() {
    let fixture = Fixture::start(&[]).await;
    let (status, created) =
        fixture.send(Method::POST, "/api/analytics/sites", &json!({"name": "Shop"})).await;
    assert_eq!(status, StatusCode::CREATED);
    let token = created["site"]["siteToken"].as_str().unwrap();
    let tag = format!(r#"<script defer src="http://localhost:8080/script.js" data-site="{token}"></script>"#);
    assert_eq!(created["scriptTag"], json!(tag));
    let site = &created["site"];
    assert_eq!(
        (&site["timezone"], &site["honourDnt"], &site["visitorIdLifetime"], &site["hashRouting"]),
        (&json!("UTC"), &json!(true), &json!("month"), &json!(false))
    );
    let path = format!("/api/analytics/sites/{}", site["id"].as_str().unwrap());
    let expected = json!({
        "name": "Other", "domain": "shop.example", "timezone": "Australia/Lord_Howe", "honourDnt": false,
        "visitorIdLifetime": "quarter", "hashRouting": true,
    });
    let (status, changed) = fixture.send(Method::PATCH, &path, &expected).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let (_, changed) = fixture.send(Method::PATCH, &path, &json!({"domain": "WWW.Shop.Example"})).await;
    assert_eq!(changed["domain"], "www.shop.example");
    let upper = json!({"name": "Upper", "domain": "Shop.Example"});
    let (_, upper) = fixture.send(Method::POST, "/api/analytics/sites", &upper).await;
    assert_eq!(upper["site"]["domain"], "shop.example");
    let (status, _) = fixture.send(Method::PATCH, &path, &json!({"domain": null})).await;
    assert_eq!(status, StatusCode::OK);
    let read = fixture.get(&path).await;
    for (field, value) in expected.as_object().unwrap() {
        let value = if field == "domain" { &Value::Null } else { value };
        assert_eq!(&read[field], value, "{field}");
    }
    assert_eq!((&read["eventCount"], &read["dropped"]), (&json!(0), &json!({})));
    let id = site["id"].as_str().unwrap();
    let drops = format!(
        "insert into event_drops (site_id, hour, reason, count)
         values ('{id}', date_trunc('hour', now()), 'bot', 3),
                ('{id}', date_trunc('hour', now()) - interval '2 hours', 'bot', 4),
                ('{id}', date_trunc('hour', now()) - interval '2 days', 'quota', 1)"
    );
    fixture.api.execute(&drops).await.unwrap();
    assert_eq!(fixture.get(&path).await["dropped"], json!({"bot": 7}));
}

#[tokio::test]
async fn the_script_tag_of_a_site_whose_fragments_are_pages_says_so() {
    let fixture = Fixture::start(&[]).await;
    let body = json!({"name": "App", "hashRouting": true});
    let (status, created) = fixture.send(Method::POST, "/api/analytics/sites", &body).await;
    assert_eq!((status, &created["site"]["hashRouting"]), (StatusCode::CREATED, &json!(true)), "{created}");
    assert!(created["scriptTag"].as_str().unwrap().ends_with("\" data-hash></script>"), "{created}");
}

#[tokio::test]
async fn a_deleted_site_disappears_and_its_rows_are_queued_for_purging() {
    let fixture = Fixture::start(&[]).await;
    let (deleted, stored) = (fixture.site("UTC").await, fixture.site("UTC").await);
    let now = Clock::system().now();
    let events: Vec<Event> = (0..40_u64)
        .map(|number| Event {
            id: Uuid::from_u128(number.into()),
            account_id: fixture.account_id,
            site_id: if number % 2 == 0 { deleted } else { stored },
            received_at: now - TimeDelta::minutes(1),
            name: "page_view".into(),
            visitor: number,
            returner: Some(Returner { id: number, day: now.date_naive(), epoch: now.date_naive() }),
            ..Event::default()
        })
        .collect();
    fixture.store(&events, 100).await;
    let path = format!("/api/analytics/sites/{deleted}");
    let (_, before) = fixture.send(Method::GET, "/api/account/usage", &Value::Null).await;
    let (status, response) = fixture.send(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((status, &response["deleted"]), (StatusCode::OK, &json!(true)), "{response}");
    let (_, after) = fixture.send(Method::GET, "/api/account/usage", &Value::Null).await;
    let used = |usage: &Value| usage["usage"]["projects"]["used"].as_i64().unwrap();
    assert_eq!(used(&after), used(&before) - 1);

    let body = json!({"siteId": deleted, "steps": [{"event": "a"}, {"event": "b"}]});
    for (method, path, body) in [
        (Method::GET, path.clone(), Value::Null),
        (Method::DELETE, path, Value::Null),
        (Method::GET, format!("/api/analytics/query?siteId={deleted}"), Value::Null),
        (Method::GET, format!("/api/analytics/realtime?siteId={deleted}"), Value::Null),
        (Method::GET, format!("/api/analytics/sessions?siteId={deleted}"), Value::Null),
        (Method::POST, "/api/analytics/funnel".to_owned(), body),
        (Method::POST, "/api/analytics/retention".to_owned(), json!({"siteId": deleted})),
    ] {
        assert_eq!(fixture.send(method, &path, &body).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let order = format!(
        "do $$ begin perform from event_purges where site_id = '{deleted}' and account_id = '{}';
         if not found then raise 'no purge'; end if; end $$",
        fixture.account_id
    );
    fixture.api.execute(&order).await.unwrap();

    // Runs the purge as the job would.
    assert_eq!(rows(&fixture, deleted).await, [20, 20, 20]);
    fixture.warehouse.delete_events(&[], &[deleted]).await.unwrap();
    assert_eq!(rows(&fixture, deleted).await, [0, 0, 0]);
    assert_eq!(rows(&fixture, stored).await, [20, 20, 20]);
}

/// Row counts of a site: events, visits, visitor ids.
async fn rows(fixture: &Fixture, site: Uuid) -> [u64; 3] {
    let limits =
        QueryLimits { timeout: Duration::from_secs(10), max_memory_bytes: 1 << 30, max_rows: 1_000_000 };
    let analytics = fixture.warehouse.analytics(site, limits, Clock::system().now());
    let now = Clock::system().now();
    let events = fixture.warehouse.count_events_by_site(&[site]).await.unwrap();
    let visits = RawVisitsQuery { min_pages: Some(0), ..RawVisitsQuery::default() };
    let visits = analytics.visits(&parse_visits_query(&visits, now, Zone::UTC).unwrap()).await.unwrap();
    let returns = parse_retention_query(&RawRetentionQuery::default(), now, Zone::UTC).unwrap();
    let (returns, _) = analytics.retention(&returns).await.unwrap();
    let new_visitors = returns.iter().filter(|one| one.joined == one.active).map(|one| one.count).sum();
    [events.get(&site).copied().unwrap_or_default(), visits.total, new_visitors]
}
