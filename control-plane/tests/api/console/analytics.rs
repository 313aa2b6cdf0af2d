//! Figures, visits, funnels and retention on their pages.

use chrono::TimeDelta;
use contract::events::{Event, Returner};
use domain::visits::Rules;
use http::{Method, StatusCode};
use sandbox::test::TestStore as _;
use serde_json::json;
use service::Clock;
use uuid::Uuid;
use warehouse::Warehouse;

use super::visitor::Visitor;
use crate::harness::Api;

/// What a stranger may send as a path.
const HOSTILE: &str = "/<script>alert(1)</script>";

struct Scene {
    api: Api,
    warehouse: Warehouse,
}

impl Scene {
    async fn start() -> Self {
        let clickhouse = sandbox::test::clickhouse().await;
        let mut settings = clickhouse.settings();
        settings.push("analytics.timeout=60s".to_owned());
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        Self { api: Api::start(&settings).await, warehouse: clickhouse.connect() }
    }

    async fn site(&self, key: &str) -> Uuid {
        let body = json!({ "name": "<b>engine</b>" });
        let (status, made) = self.api.send(Method::POST, "/api/analytics/sites", Some(key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["site"]["id"].as_str().unwrap().parse().unwrap()
    }

    /// Stores visits of now: each visitor views these pages a second apart.
    async fn visits(&self, account_id: Uuid, site_id: Uuid, visits: &[&[&str]]) {
        let now = Clock::system().now();
        let mut events = Vec::new();
        for (number, pages) in visits.iter().enumerate() {
            let visitor = number as u64 + 1;
            for (second, path) in pages.iter().enumerate() {
                let second = second as u64;
                events.push(Event {
                    id: Uuid::from_u128(u128::from(visitor) << 64 | u128::from(second)),
                    account_id,
                    site_id,
                    received_at: now - TimeDelta::seconds(60 - i64::try_from(second).unwrap()),
                    name: "page_view".into(),
                    path: (*path).into(),
                    referrer_host: if second == 0 { "google.com".into() } else { String::new() },
                    country: "DE".into(),
                    device: "desktop".into(),
                    visitor,
                    returner: Some(Returner { id: visitor, day: now.date_naive(), epoch: now.date_naive() }),
                    ..Event::default()
                });
            }
        }
        self.warehouse.insert_events("batch", &events).await.unwrap();
        self.warehouse.insert_retention(&events).await.unwrap();
        self.warehouse.recompute_visits(&events, Rules::default()).await.unwrap();
    }
}

#[tokio::test]
async fn figures_panels_visits_funnels_and_retention_show_the_same_visits() {
    let scene = Scene::start().await;
    let ada = Visitor::sign_in(&scene.api).await;
    let site = scene.site(&ada.key).await;
    let root = format!("/console/analytics/{site}");
    let (pricing, docs): (&[&str], &[&str]) = (&["/", "/pricing", "/done"], &["/", HOSTILE]);
    scene.visits(ada.account_id, site, &[pricing, pricing, docs, &["/"]]).await;
    let drops = format!(
        "insert into event_drops (site_id, hour, reason, count) values ('{site}', date_trunc('hour', now()), 'bot', 7)"
    );
    scene.api.execute(&drops).await.unwrap();

    let page = ada.get(&root).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.html);
    page.contains("&lt;b&gt;engine").contains("google.com").contains("Bots, by their user agent");
    page.contains("4 visitors, and none in the 30 days before.")
        .contains("Most of it: Referrer google.com, 4 more visitors.");
    page.contains("nothing before").contains("&lt;script&gt;alert(1)");
    assert!(!page.html.contains(HOSTILE));
    let all = ada.get(&format!("{root}?all=pages&compare=off&metric=bounce_rate")).await;
    all.contains("/pricing").contains("Compare with before");
    assert!(!all.html.contains("nothing before"));

    let visits = ada.get(&format!("{root}/visits")).await;
    assert_eq!(visits.status, StatusCode::OK, "{}", visits.html);
    visits.contains("from google.com").contains("1 to 4 of 4").contains("→");
    let long = ada.get(&format!("{root}/visits?minPages=2&device=desktop")).await;
    long.contains("1 to 3 of 3").contains("Device is");
    ada.get(&format!("{root}/visits?minPages=5")).await.contains("No visit in these days");

    let suggested = ada.get(&format!("{root}/funnels")).await;
    suggested.contains("Your most visited pages").contains("value=\"/\"");
    let asked = format!(
        "{root}/funnels?steps[0].value=/&steps[1].kind=page&steps[1].value=/pricing&steps[4].value=/done&period=7d"
    );
    let funnel = ada.get(&asked).await;
    assert_eq!(funnel.status, StatusCode::OK, "{}", funnel.html);
    funnel.contains("2 of 4 visits went all the way: 50 %.").contains("Most left before step 2: 2.");

    let left = format!("{asked}&dropOff=2");
    assert!(funnel.html.contains("dropOff=2#drop-off"), "{}", funnel.html);
    let left = ada.get(&left).await;
    assert_eq!(left.status, StatusCode::OK, "{}", left.html);
    left.contains("2 visits did the step before and not this one. 1 viewed no further page.")
        .contains("&lt;script&gt;alert(1)")
        .contains("aria-current");
    assert!(!left.html.contains(HOSTILE));
    assert!(!ada.get(&format!("{asked}&dropOff=9")).await.html.contains("Left before step 9"));

    let retention = ada.get(&format!("{root}/retention?granularity=day")).await;
    assert_eq!(retention.status, StatusCode::OK, "{}", retention.html);
    retention
        .contains("Hatched: the day is not over")
        .contains("100 %")
        .contains("for one month of the calendar");
}

#[tokio::test]
async fn a_refused_funnel_says_why_at_its_step() {
    let scene = Scene::start().await;
    let ada = Visitor::sign_in(&scene.api).await;
    let root = format!("/console/analytics/{}", scene.site(&ada.key).await);
    let one = ada.get(&format!("{root}/funnels?steps[1].value=/a")).await;
    assert_eq!(one.status, StatusCode::BAD_REQUEST);
    one.contains("href=\"#field-steps\"").contains("value=\"/a\"");
    let long = "x".repeat(2_000);
    let query = format!("steps[1].value=/a&steps[3].kind=event&steps[3].value={long}");
    let refused = ada.get(&format!("{root}/funnels?{query}")).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("href=\"#field-steps[3].value\"").contains("id=\"error-steps[3].value\"");
    refused.contains("aria-invalid=\"true\"");
    ada.get(&format!("{root}/funnels")).await.contains("No page has two visits to compare yet");
    let refused = ada.get(&format!("{root}/retention?firstEvent=engagement")).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("href=\"#field-firstEvent\"").contains("value=\"engagement\"");
    let wide = ada.get(&format!("{root}/visits?period=custom&from=2026-01-01&to=2026-02-01")).await;
    wide.contains("at most 7 days");
}

#[tokio::test]
async fn pages_of_another_account_s_site_are_not_found() {
    let scene = Scene::start().await;
    let (ada, eve) = (Visitor::sign_in(&scene.api).await, Visitor::sign_in(&scene.api).await);
    let site = scene.site(&ada.key).await;
    scene.visits(ada.account_id, site, &[&["/secret", "/more"]]).await;
    for view in ["", "/visits", "/funnels?steps[0].value=/secret&steps[1].value=/more", "/retention"] {
        let page = eve.get(&format!("/console/analytics/{site}{view}")).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{view}");
        assert!(
            !page.html.contains("engine") && page.html.matches("<h1").count() == 1,
            "{view}: {}",
            page.html
        );
    }
}
