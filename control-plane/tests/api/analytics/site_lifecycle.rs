//! A site's life: made with its script tag, changed, deleted with all that was counted.

use std::time::Duration;

use chrono::TimeDelta;
use contract::events::{Event, Returner};
use domain::analytics::{AskedRetention, AskedVisits, Zone, read_retention, read_visits};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;
use warehouse::Limits;

use super::stand::Stand;

#[tokio::test]
async fn a_site_comes_with_a_script_tag_and_what_it_counts_by() {
    let stand = Stand::start(&[]).await;
    let (status, made) = stand.send(Method::POST, "/api/analytics/sites", &json!({"name": "Shop"})).await;
    assert_eq!(status, StatusCode::CREATED);
    let token = made["site"]["siteToken"].as_str().unwrap();
    let tag = format!(r#"<script defer src="http://localhost:8080/script.js" data-site="{token}"></script>"#);
    assert_eq!(made["scriptTag"], json!(tag));
    let site = &made["site"];
    assert_eq!(
        (&site["timezone"], &site["honourDnt"], &site["visitorIdLifetime"]),
        (&json!("UTC"), &json!(true), &json!("month"))
    );
    let path = format!("/api/analytics/sites/{}", site["id"].as_str().unwrap());
    let wanted = json!({
        "name": "Other", "domain": "shop.example", "timezone": "Australia/Lord_Howe", "honourDnt": false,
        "visitorIdLifetime": "quarter",
    });
    let (status, changed) = stand.send(Method::PATCH, &path, &wanted).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let (status, _) = stand.send(Method::PATCH, &path, &json!({"domain": null})).await;
    assert_eq!(status, StatusCode::OK);
    let read = stand.get(&path).await;
    for (field, value) in wanted.as_object().unwrap() {
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
    stand.api.execute(&drops).await.unwrap();
    assert_eq!(stand.get(&path).await["dropped"], json!({"bot": 7}));
}

#[tokio::test]
async fn a_deleted_site_is_gone_at_once_and_its_rows_are_to_be_purged() {
    let stand = Stand::start(&[]).await;
    let (gone, kept) = (stand.site("UTC").await, stand.site("UTC").await);
    let now = Clock::system().now();
    let events: Vec<Event> = (0..40_u64)
        .map(|number| Event {
            id: Uuid::from_u128(number.into()),
            account_id: stand.account_id,
            site_id: if number % 2 == 0 { gone } else { kept },
            received_at: now - TimeDelta::minutes(1),
            name: "page_view".into(),
            visitor: number,
            returner: Some(Returner { id: number, day: now.date_naive(), epoch: now.date_naive() }),
            ..Event::default()
        })
        .collect();
    stand.store(&events, 100).await;
    let path = format!("/api/analytics/sites/{gone}");
    let (_, before) = stand.send(Method::GET, "/api/account/usage", &Value::Null).await;
    let (status, answer) = stand.send(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((status, &answer["deleted"]), (StatusCode::OK, &json!(true)), "{answer}");
    let (_, after) = stand.send(Method::GET, "/api/account/usage", &Value::Null).await;
    let used = |usage: &Value| usage["usage"]["projects"]["used"].as_i64().unwrap();
    assert_eq!(used(&after), used(&before) - 1);

    let body = json!({"siteId": gone, "steps": [{"event": "a"}, {"event": "b"}]});
    for (method, path, body) in [
        (Method::GET, path.clone(), Value::Null),
        (Method::DELETE, path, Value::Null),
        (Method::GET, format!("/api/analytics/query?siteId={gone}"), Value::Null),
        (Method::GET, format!("/api/analytics/realtime?siteId={gone}"), Value::Null),
        (Method::GET, format!("/api/analytics/sessions?siteId={gone}"), Value::Null),
        (Method::POST, "/api/analytics/funnel".to_owned(), body),
        (Method::POST, "/api/analytics/retention".to_owned(), json!({"siteId": gone})),
    ] {
        assert_eq!(stand.send(method, &path, &body).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let order = format!(
        "do $$ begin perform from event_purges where site_id = '{gone}' and account_id = '{}';
         if not found then raise 'no purge'; end if; end $$",
        stand.account_id
    );
    stand.api.execute(&order).await.unwrap();

    // What the job does then.
    assert_eq!(rows(&stand, gone).await, [20, 20, 20]);
    stand.warehouse.delete_events(&[], &[gone]).await.unwrap();
    assert_eq!(rows(&stand, gone).await, [0, 0, 0]);
    assert_eq!(rows(&stand, kept).await, [20, 20, 20]);
}

/// What there is of a site: events, visits, visitors who may return.
async fn rows(stand: &Stand, site: Uuid) -> [u64; 3] {
    let limits = Limits { time: Duration::from_secs(10), memory_bytes: 1 << 30, rows: 1_000_000 };
    let questions = stand.warehouse.questions(site, limits);
    let now = Clock::system().now();
    let events = stand.warehouse.count_events_by_site(&[site]).await.unwrap();
    let visits = AskedVisits { min_pages: Some(0), ..AskedVisits::default() };
    let visits = questions.visits(&read_visits(&visits, now, Zone::UTC).unwrap()).await.unwrap();
    let returns = read_retention(&AskedRetention::default(), now, Zone::UTC).unwrap();
    let (returns, _) = questions.returns(&returns).await.unwrap();
    let came = returns.iter().filter(|one| one.came == one.there).map(|one| one.count).sum();
    [events.get(&site).copied().unwrap_or_default(), visits.total, came]
}
