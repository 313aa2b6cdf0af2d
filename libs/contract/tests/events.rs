//! An event of the previous release's collector can be read.

use chrono::{DateTime, NaiveDate};
use contract::events::{Event, Returner};
use uuid::Uuid;

fn bare() -> Event {
    Event {
        id: Uuid::from_u128(1),
        account_id: Uuid::from_u128(2),
        site_id: Uuid::from_u128(3),
        received_at: DateTime::from_timestamp_nanos(1_795_000_000_123_000_000),
        name: "page_view".into(),
        host: "shop.example".into(),
        path: "/".into(),
        visitor: u64::MAX,
        ..Event::default()
    }
}

fn day(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, day).unwrap_or_default()
}

fn full() -> Event {
    Event {
        title: "Shop".into(),
        referrer_host: "news.example".into(),
        utm_source: "newsletter".into(),
        utm_medium: "email".into(),
        utm_campaign: "spring".into(),
        previous: 7,
        returner: Some(Returner { id: 9, day: day(18), epoch: day(1) }),
        site_token: "site_a".into(),
        source: "News".into(),
        channel: "Referral".into(),
        country: "NP".into(),
        region: "Bagmati".into(),
        city: "Kathmandu".into(),
        device: "tablet".into(),
        browser: "Firefox".into(),
        os: "Android".into(),
        screen: "laptop".into(),
        props: vec![("plan".into(), "pro".into())],
        engagement_ms: 1_500,
        scroll_depth: Some(75),
        ..bare()
    }
}

#[test]
fn an_event_keeps_its_shape() {
    insta::assert_json_snapshot!(bare(), @r#"
    {
      "id": "00000000-0000-0000-0000-000000000001",
      "account_id": "00000000-0000-0000-0000-000000000002",
      "site_id": "00000000-0000-0000-0000-000000000003",
      "received_at": 1795000000123,
      "name": "page_view",
      "host": "shop.example",
      "path": "/",
      "visitor": 18446744073709551615
    }
    "#);
    insta::assert_json_snapshot!(full(), @r#"
    {
      "id": "00000000-0000-0000-0000-000000000001",
      "account_id": "00000000-0000-0000-0000-000000000002",
      "site_id": "00000000-0000-0000-0000-000000000003",
      "received_at": 1795000000123,
      "name": "page_view",
      "host": "shop.example",
      "path": "/",
      "visitor": 18446744073709551615,
      "previous": 7,
      "returner": {
        "id": 9,
        "day": "2026-11-18",
        "epoch": "2026-11-01"
      },
      "site_token": "site_a",
      "title": "Shop",
      "referrer_host": "news.example",
      "utm_source": "newsletter",
      "utm_medium": "email",
      "utm_campaign": "spring",
      "source": "News",
      "channel": "Referral",
      "country": "NP",
      "region": "Bagmati",
      "city": "Kathmandu",
      "device": "tablet",
      "browser": "Firefox",
      "os": "Android",
      "screen": "laptop",
      "props": [
        [
          "plan",
          "pro"
        ]
      ],
      "engagement_ms": 1500,
      "scroll_depth": 75
    }
    "#);
}

#[test]
fn an_event_round_trips() {
    for event in [bare(), full()] {
        let line = serde_json::to_vec(&event).unwrap();
        assert_eq!(serde_json::from_slice::<Event>(&line).unwrap(), event);
    }
}

#[test]
fn fields_of_a_newer_collector_do_not_stop_an_older_one() {
    let mut value = serde_json::to_value(bare()).unwrap();
    value["from_the_future"] = serde_json::json!([1]);
    assert_eq!(serde_json::from_value::<Event>(value).unwrap(), bare());
}
