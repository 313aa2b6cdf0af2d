//! Current visitors.

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::Event;
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;

use super::fixture::Fixture;

fn event(fixture: &Fixture, site: Uuid, visitor: u64, at: DateTime<Utc>, name: &str) -> Event {
    Event {
        id: Uuid::from_u128(u128::from(visitor) << 64 | u128::from(at.timestamp_millis().unsigned_abs())),
        account_id: fixture.account_id,
        site_id: site,
        received_at: at,
        name: name.into(),
        path: format!("/{}", visitor % 2),
        visitor,
        channel: "Email".into(),
        ..Event::default()
    }
}

fn values(series: &Value) -> Vec<u64> {
    series.as_array().unwrap().iter().map(|one| one["value"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn visitors_active_in_the_last_five_minutes_are_counted() {
    let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let fixture = Fixture::start_with_clock(&[], Clock::manual(now)).await;
    let site = fixture.site("Asia/Kathmandu").await;
    let (minute, moment) = (TimeDelta::minutes(1), TimeDelta::milliseconds(1));
    let events = [
        event(&fixture, site, 1, now - moment, "page_view"),
        event(&fixture, site, 2, now - minute * 3, "sign up"),
        event(&fixture, site, 3, now - minute * 5, "page_view"),
        event(&fixture, site, 4, now - minute * 5 - moment, "page_view"),
        event(&fixture, site, 5, now - minute * 10 - moment, "page_view"),
        event(&fixture, Uuid::from_u128(9), 6, now - minute, "page_view"),
        // A server event belongs to no visitor.
        event(&fixture, site, 7, now - minute, "engagement"),
    ];
    fixture.store(&events, 100).await;
    let realtime = fixture.get(&format!("/api/analytics/realtime?siteId={site}")).await;
    assert_eq!(realtime["activeVisitors"], 3);

    let request = format!("/api/analytics/query?siteId={site}&metric=active_visitors&period=custom");
    let response =
        fixture.get(&format!("{request}&from=2020-01-01&to=2020-01-02&compare=true&groupBy=day")).await;
    assert_eq!((&response["total"], &response["comparison"]["total"]), (&json!(3), &json!(1)), "{response}");
    assert_eq!(response["comparison"]["changePercent"], 200.0);
    assert_eq!(values(&response["series"]), [0, 0]);

    let request = format!("/api/analytics/query?siteId={site}&metric=active_visitors&period=7d&groupBy=day");
    let response = fixture.get(&format!("{request}&breakdownBy=url&filters.channel=Email")).await;
    assert_eq!(
        response["breakdown"],
        json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]),
        "{response}"
    );
    assert_eq!(values(&response["series"]).iter().sum::<u64>(), 3, "{response}");
}

#[tokio::test]
async fn a_visitor_around_midnight_is_counted_once() {
    let midnight = DateTime::from_timestamp(1_800_057_600, 0).unwrap();
    let minutes = TimeDelta::minutes;
    let clock = Clock::manual(midnight + minutes(2));
    let fixture = Fixture::start_with_clock(&[], clock.clone()).await;
    let site = fixture.site("UTC").await;
    // Visitor ids rotate at midnight; in the first half hour an event also carries the previous id.
    let renamed =
        |visitor, previous, at| Event { previous, ..event(&fixture, site, visitor, at, "page_view") };
    let events = [
        renamed(1, 0, midnight - minutes(1)),
        renamed(11, 1, midnight + minutes(1)),
        renamed(12, 2, midnight + minutes(1)),
        renamed(3, 0, midnight - minutes(1)),
        renamed(21, 20, midnight + minutes(28)),
        renamed(21, 0, midnight + minutes(31)),
    ];
    fixture.store(&events[..4], 100).await;
    let realtime = format!("/api/analytics/realtime?siteId={site}");
    assert_eq!(fixture.get(&realtime).await["activeVisitors"], 3);
    let request = format!("/api/analytics/query?siteId={site}&period=custom&from=2027-01-15&to=2027-01-16");
    let active = format!("{request}&metric=active_visitors&breakdownBy=url&groupBy=hour");
    for filter in ["", "&filters.channel=Email"] {
        let response = fixture.get(&format!("{active}{filter}")).await;
        let pages = json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]);
        assert_eq!((&response["total"], &response["breakdown"]), (&json!(3), &pages), "{response}");
        // An hourly bucket counts every visitor of the hour.
        assert_eq!(values(&response["series"])[23..25], [2, 2], "{response}");
    }

    let response = fixture.get(&format!("{request}&metric=unique_visitors&breakdownBy=url")).await;
    let pages = json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]);
    assert_eq!((&response["total"], &response["breakdown"]), (&json!(3), &pages), "{response}");
    let response = fixture.get(&format!("{request}&metric=unique_visitors&filters.url=/1&groupBy=day")).await;
    assert_eq!((&response["total"], values(&response["series"])), (&json!(2), vec![2, 1]), "{response}");

    fixture.store(&events[4..], 100).await;
    clock.set(midnight + minutes(32));
    assert_eq!(fixture.get(&realtime).await["activeVisitors"], 1);
}
