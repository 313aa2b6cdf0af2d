//! Who is there right now.

use chrono::{DateTime, TimeDelta, Utc};
use contract::events::Event;
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;

use super::stand::Stand;

fn event(stand: &Stand, site: Uuid, visitor: u64, at: DateTime<Utc>, name: &str) -> Event {
    Event {
        id: Uuid::from_u128(u128::from(visitor) << 64 | u128::from(at.timestamp_millis().unsigned_abs())),
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

fn values(series: &Value) -> Vec<u64> {
    series.as_array().unwrap().iter().map(|one| one["value"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn who_did_something_in_the_last_five_minutes_is_there() {
    let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let stand = Stand::at(&[], Clock::manual(now)).await;
    let site = stand.site("Asia/Kathmandu").await;
    let (minute, moment) = (TimeDelta::minutes(1), TimeDelta::milliseconds(1));
    let events = [
        event(&stand, site, 1, now - moment, "page_view"),
        event(&stand, site, 2, now - minute * 3, "sign up"),
        event(&stand, site, 3, now - minute * 5, "page_view"),
        event(&stand, site, 4, now - minute * 5 - moment, "page_view"),
        event(&stand, site, 5, now - minute * 10 - moment, "page_view"),
        event(&stand, Uuid::from_u128(9), 6, now - minute, "page_view"),
        // It belongs to nothing, and nobody does it.
        event(&stand, site, 7, now - minute, "engagement"),
    ];
    stand.store(&events, 100).await;
    let realtime = stand.get(&format!("/api/analytics/realtime?siteId={site}")).await;
    assert_eq!(realtime["activeVisitors"], 3);

    let asked = format!("/api/analytics/query?siteId={site}&metric=active_visitors&period=custom");
    let answer = stand.get(&format!("{asked}&from=2020-01-01&to=2020-01-02&compare=true&groupBy=day")).await;
    assert_eq!((&answer["total"], &answer["comparison"]["total"]), (&json!(3), &json!(1)), "{answer}");
    assert_eq!(answer["comparison"]["changePercent"], 200.0);
    assert_eq!(values(&answer["series"]), [0, 0]);

    let asked = format!("/api/analytics/query?siteId={site}&metric=active_visitors&period=7d&groupBy=day");
    let answer = stand.get(&format!("{asked}&breakdownBy=url&filters.channel=Email")).await;
    assert_eq!(
        answer["breakdown"],
        json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]),
        "{answer}"
    );
    assert_eq!(values(&answer["series"]).iter().sum::<u64>(), 3, "{answer}");
}

#[tokio::test]
async fn whoever_is_there_around_midnight_is_counted_once() {
    let midnight = DateTime::from_timestamp(1_800_057_600, 0).unwrap();
    let minutes = TimeDelta::minutes;
    let clock = Clock::manual(midnight + minutes(2));
    let stand = Stand::at(&[], clock.clone()).await;
    let site = stand.site("UTC").await;
    // Ids are made anew at midnight; those of the first half hour name the one before.
    let renamed = |visitor, previous, at| Event { previous, ..event(&stand, site, visitor, at, "page_view") };
    let events = [
        renamed(1, 0, midnight - minutes(1)),
        renamed(11, 1, midnight + minutes(1)),
        renamed(12, 2, midnight + minutes(1)),
        renamed(3, 0, midnight - minutes(1)),
        renamed(21, 20, midnight + minutes(28)),
        renamed(21, 0, midnight + minutes(31)),
    ];
    stand.store(&events[..4], 100).await;
    let realtime = format!("/api/analytics/realtime?siteId={site}");
    assert_eq!(stand.get(&realtime).await["activeVisitors"], 3);
    let asked = format!("/api/analytics/query?siteId={site}&period=custom&from=2027-01-15&to=2027-01-16");
    let active = format!("{asked}&metric=active_visitors&breakdownBy=url&groupBy=hour");
    for filter in ["", "&filters.channel=Email"] {
        let answer = stand.get(&format!("{active}{filter}")).await;
        let pages = json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]);
        assert_eq!((&answer["total"], &answer["breakdown"]), (&json!(3), &pages), "{answer}");
        // In an hour each is there who was in it.
        assert_eq!(values(&answer["series"])[23..25], [2, 2], "{answer}");
    }

    let answer = stand.get(&format!("{asked}&metric=unique_visitors&breakdownBy=url")).await;
    let pages = json!([{"key": "/1", "value": 2}, {"key": "/0", "value": 1}]);
    assert_eq!((&answer["total"], &answer["breakdown"]), (&json!(3), &pages), "{answer}");
    let answer = stand.get(&format!("{asked}&metric=unique_visitors&filters.url=/1&groupBy=day")).await;
    assert_eq!((&answer["total"], values(&answer["series"])), (&json!(2), vec![2, 1]), "{answer}");

    stand.store(&events[4..], 100).await;
    clock.set(midnight + minutes(32));
    assert_eq!(stand.get(&realtime).await["activeVisitors"], 1);
}
