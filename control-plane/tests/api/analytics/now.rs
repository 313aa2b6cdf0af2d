//! Who is there right now.

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::Event;
use serde_json::json;
use service::Clock;
use uuid::Uuid;

use super::stand::Stand;

fn event(stand: &Stand, site: Uuid, visitor: u64, at: DateTime<Utc>, name: &str) -> Event {
    Event {
        id: Uuid::from_u128(u128::from(visitor)),
        account_id: stand.account_id,
        site_id: site,
        received_at: at,
        name: name.into(),
        path: format!("/{}", visitor % 2),
        visitor,
        channel: "Email".into(),
        ..Event::default()
    }
}

#[tokio::test]
async fn who_did_something_in_the_last_five_minutes_is_there() {
    let stand = Stand::start(&[]).await;
    let site = stand.site("Asia/Kathmandu").await;
    let now = Clock::system().now();
    let ago = |minutes: i64| now - TimeDelta::minutes(minutes);
    let events = [
        event(&stand, site, 1, ago(1), "page_view"),
        event(&stand, site, 2, ago(3), "sign up"),
        event(&stand, site, 3, ago(4), "page_view"),
        event(&stand, site, 4, ago(7), "page_view"),
        event(&stand, site, 5, ago(40), "page_view"),
        event(&stand, Uuid::from_u128(9), 6, ago(1), "page_view"),
        // It belongs to nothing, and nobody does it.
        event(&stand, site, 7, ago(1), "engagement"),
    ];
    stand.store(&events, 100).await;
    let realtime = stand.get(&format!("/api/analytics/realtime?siteId={site}")).await;
    assert_eq!(realtime["activeVisitors"], 3);

    let asked = format!("/api/analytics/query?siteId={site}&metric=active_visitors&period=custom");
    let answer = stand.get(&format!("{asked}&from=2020-01-01&to=2020-01-02&compare=true&groupBy=day")).await;
    assert_eq!((&answer["total"], &answer["comparison"]["total"]), (&json!(3), &json!(1)), "{answer}");
    assert_eq!(answer["comparison"]["changePercent"], 200.0);
    let days = answer["series"].as_array().unwrap();
    assert_eq!(days.iter().map(|day| day["value"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 0]);

    let asked = format!("/api/analytics/query?siteId={site}&metric=active_visitors&period=7d&groupBy=day");
    let answer = stand.get(&format!("{asked}&breakdownBy=url&filters.channel=Email")).await;
    assert_eq!(
        answer["breakdown"],
        json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]),
        "{answer}"
    );
    let seen: u64 =
        answer["series"].as_array().unwrap().iter().map(|day| day["value"].as_u64().unwrap()).sum();
    assert_eq!(seen, 3, "{answer}");
}
