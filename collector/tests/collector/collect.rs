//! Which events are counted, and how they are enriched.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use sandbox::test::until;
use serde_json::{Value, json};

use crate::browser::{Browser, Request, event, is_no_content, page_view};
use crate::fixture::{Collector, Fixture, now};

pub(crate) fn visitor(number: u8) -> IpAddr {
    [203, 0, 113, number].into()
}

pub(crate) async fn send(collector: &Collector, request: &Request) {
    let mut browser = Browser::connect(collector.address).await.unwrap();
    let response = browser.send(request).await.unwrap();
    assert!(is_no_content(&response), "{response}");
}

#[tokio::test]
async fn a_page_view_is_answered_204_and_counted_within_two_seconds() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    send(&collector, &page_view(&fixture.site_token, "/", visitor(1))).await;
    let sent = Instant::now();
    until(async || fixture.page_views().await == 1).await;
    let took = sent.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(fixture.visitors().await, 1);
    collector.stop().await;
}

#[tokio::test]
async fn two_collectors_derive_the_same_visitor_id() {
    let fixture = Fixture::new().await;
    for _ in 0..2 {
        let collector = fixture.start().await;
        for path in ["/", "/about"] {
            send(&collector, &page_view(&fixture.site_token, path, visitor(1))).await;
        }
        send(&collector, &page_view(&fixture.site_token, "/", visitor(2))).await;
        collector.stop().await;
    }
    // Shutdown has sent everything.
    assert_eq!((fixture.page_views().await, fixture.visitors().await), (6, 2));
}

#[tokio::test]
async fn every_request_gets_204_and_dropped_events_are_counted_by_reason() {
    let fixture = Fixture::new().await;
    // A separate process, because metrics are global to a process.
    let collector = fixture.start_process().await;
    let good = || page_view(&fixture.site_token, "/", visitor(1));
    let raw = |body: &[u8]| Request { body: body.to_vec(), ..good() };
    let with = |key: &str, value: Value| {
        let mut body =
            json!({"siteToken": fixture.site_token, "name": "page_view", "url": "https://shop.example/"});
        body[key] = value;
        event(&body, visitor(1))
    };
    let dropped = [
        ("unreadable", vec![raw(b""), raw(b"{"), raw(&[0xff; 100])]),
        ("too_large", vec![raw(&[b'x'; 8 * 1024 + 1])]),
        ("unknown_site", vec![page_view("site_unknown", "/", visitor(1)), with("siteToken", Value::Null)]),
        ("bot", vec![good().with("user-agent", "Googlebot/2.1"), good().with("user-agent", "")]),
        ("url", vec![with("url", json!("file:///x"))]),
        ("name", vec![with("name", json!(" "))]),
        ("props", vec![with("props", json!({"nested": {}}))]),
        // A webhook that posts here through others, and so on.
        ("loop", vec![good().with("webruntime-depth", "5"), good().with("webruntime-depth", "99")]),
    ];
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for request in dropped.iter().flat_map(|(_, requests)| requests) {
        assert!(is_no_content(&browser.send(request).await.unwrap()));
        // The server closes the connection after a body that is too large.
        browser = Browser::connect(collector.address).await.unwrap();
    }
    assert!(is_no_content(&browser.send(&good().with("webruntime-depth", "4")).await.unwrap()));

    let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
    let metrics = Browser::connect(collector.ops).await.unwrap().send(&scrape).await.unwrap();
    for (reason, requests) in &dropped {
        let line = format!("collector_events_dropped_total{{reason=\"{reason}\"}} {}", requests.len());
        assert!(metrics.lines().any(|found| found == line), "no `{line}` in\n{metrics}");
    }
    assert!(metrics.lines().any(|found| found == "collector_events_accepted_total 1"), "{metrics}");
    let gauge = |name: &str| {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("no {name} in\n{metrics}"))
    };
    let limit = gauge("collector_segment_max_bytes");
    assert!(limit > gauge("collector_segment_unsent_bytes"), "{metrics}");
    assert!(gauge("collector_segment_free_bytes") > 0.0, "{metrics}");
    assert_eq!(gauge("collector_events_waiting"), 0.0, "{metrics}");
    assert!(gauge("collector_segment_oldest_seconds") >= 0.0, "{metrics}");
    until(async || fixture.page_views().await == 1).await;
    collector.kill().await;
}

#[tokio::test]
async fn custom_events_are_stored_but_are_no_page_views() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let body = json!({
        "siteToken": fixture.site_token, "name": "sign up", "url": "https://shop.example/", "props": {"plan": "pro"},
    });
    send(&collector, &event(&body, visitor(1))).await;
    collector.stop().await;
    assert_eq!((fixture.page_views().await, fixture.visitors().await), (0, 1));
}

#[tokio::test]
async fn one_address_is_limited_to_thirty_events_per_minute() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for _ in 0..100 {
        assert!(is_no_content(
            &browser.send(&page_view(&fixture.site_token, "/", visitor(1))).await.unwrap()
        ));
    }
    assert!(is_no_content(&browser.send(&page_view(&fixture.site_token, "/", visitor(2))).await.unwrap()));
    drop(browser);
    collector.stop().await;
    // The minute may have changed once in between.
    let counted = fixture.page_views().await;
    assert!((30 + 1..=60 + 1).contains(&counted), "{counted}");
}

#[tokio::test]
async fn a_client_ip_header_without_the_edge_token_is_ignored() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    for number in 0..5 {
        let forged = page_view(&fixture.site_token, "/", visitor(number)).with("x-edge-token", "guessed");
        send(&collector, &forged).await;
    }
    collector.stop().await;
    assert_eq!((fixture.page_views().await, fixture.visitors().await), (5, 1));
}

#[tokio::test]
async fn pages_of_any_origin_may_send() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    let preflight = Request {
        line: "OPTIONS /api/collect",
        headers: vec![
            ("origin", "https://shop.example".into()),
            ("access-control-request-method", "POST".into()),
            ("access-control-request-headers", "content-type".into()),
        ],
        body: vec![],
    };
    let response = browser.send(&preflight).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 20"), "{response}");
    for allowed in ["allow-origin: *", "allow-methods: POST", "allow-headers: content-type"] {
        assert!(response.contains(&format!("access-control-{allowed}")), "{response}");
    }
    let view = page_view(&fixture.site_token, "/", visitor(1)).with("origin", "https://shop.example");
    assert!(browser.send(&view).await.unwrap().contains("access-control-allow-origin: *"));
    drop(browser);
    collector.stop().await;
}

#[tokio::test]
async fn past_events_are_accepted_only_if_enabled() {
    let mut fixture = Fixture::new().await;
    let week_ago = now() - chrono::TimeDelta::days(7);
    let view = page_view(&fixture.site_token, "/", visitor(1)).with("x-event-time", &week_ago.to_rfc3339());
    let around = domain::analytics::Range {
        start: week_ago - chrono::TimeDelta::minutes(1),
        end: week_ago + chrono::TimeDelta::minutes(1),
    };
    for (allowed, counted) in [(false, 0), (true, 1)] {
        fixture.set(&format!("collector.accept_event_time={allowed}"));
        let collector = fixture.start().await;
        send(&collector, &view).await;
        collector.stop().await;
        assert_eq!(fixture.page_views_of(fixture.site_id, around).await, counted);
    }
}

#[tokio::test]
async fn do_not_track_drops_events_unless_the_owner_disabled_it() {
    let mut fixture = Fixture::new().await;
    fixture.set("collector.drop_flush_interval=20ms");
    fixture.set("collector.site_max_age=1ms");
    let collector = fixture.start().await;
    let view = |path: &str| page_view(&fixture.site_token, path, visitor(1));
    send(&collector, &view("/first")).await;
    for (header, value) in [("dnt", "1"), ("sec-gpc", "1")] {
        send(&collector, &view("/dnt").with(header, value)).await;
    }
    send(&collector, &view("/bot").with("user-agent", "Googlebot/2.1")).await;
    send(&collector, &view("/headless").with("sec-ch-ua", "\"HeadlessChrome\";v=\"142\"")).await;
    send(&collector, &view("/no-dnt").with("dnt", "0")).await;
    let account_id = fixture.account_id().await;
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    until(async || {
        let since = now() - chrono::TimeDelta::days(1);
        let drops = store::dropped_events::list_dropped_events(&mut conn, account_id, fixture.site_id, since)
            .await
            .unwrap();
        let drops: Vec<_> = drops.iter().map(|drops| (drops.reason.as_str(), drops.count)).collect();
        drops == [("bot", 2), ("do_not_track", 2)]
    })
    .await;

    let disable = "update analytics_sites set honour_dnt = false";
    store::execute_raw(&fixture.database.db, disable).await.unwrap();
    send(&collector, &view("/dnt-disabled").with("dnt", "1")).await;
    collector.stop().await;
    let stored: Vec<_> = fixture.count_by_path().await.into_keys().collect();
    assert_eq!(stored, ["/dnt-disabled", "/first", "/no-dnt"]);
}

#[tokio::test]
async fn a_visit_begins_with_the_page_view_whatever_arrives_first() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let of = |number: u8, page: u32, name: &str, sequence: u16| {
        let body = json!({
            "siteToken": fixture.site_token, "name": name, "url": format!("https://shop.example/{page}"),
            "group": page, "sequence": sequence,
            "referrer": if name == "page_view" && page == 1 { "https://www.google.de/" } else { "" },
        });
        event(&body, visitor(number))
    };
    // Two pages, the second right after the first.
    for (number, page) in (0..20).flat_map(|number| [(number, 1), (number, 2)]) {
        // Like a browser: three requests at once, in any order. `not_found` overtakes the view of its page.
        let (last, second, first) = (
            of(number, page, "signup", 2),
            of(number, page, "not_found", 1),
            of(number, page, "page_view", 0),
        );
        tokio::join!(send(&collector, &last), send(&collector, &second), send(&collector, &first));
    }
    collector.stop().await;
    let visits =
        fixture.query("SELECT count(), uniqExact(start), groupUniqArray(source) FROM sessions FINAL").await;
    assert!(visits.starts_with("20\t") && visits.ends_with("\t['Google']\n"), "{visits}");
    let orders = fixture.query(
        "SELECT DISTINCT arrayMap(one -> one.2, arraySort(groupArray((received_at, name)))) FROM events GROUP BY visitor, path",
    );
    assert_eq!(orders.await, "['page_view','not_found','signup']\n");
}

#[tokio::test]
async fn an_event_that_waits_survives_its_client_and_a_shutdown() {
    let mut fixture = Fixture::new().await;
    fixture.set("listen.drain=0s");
    // A separate process, because metrics are global to a process.
    let collector = fixture.start_process().await;
    let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
    let mut sent = 0;
    let waiting = loop {
        // Without its predecessor it waits for half a second; on a slow machine that is over before the metric is read.
        let body = json!({
            "siteToken": fixture.site_token, "name": "page_view", "url": "https://shop.example/",
            "group": sent, "sequence": 1,
        });
        let mut browser = Browser::connect(collector.address).await.unwrap();
        browser.begin(&event(&body, visitor(sent))).await.unwrap();
        sent += 1;
        let metrics = Browser::connect(collector.ops).await.unwrap().send(&scrape).await.unwrap();
        if metrics.lines().any(|line| line == "collector_events_waiting 1") {
            break browser;
        }
        assert!(is_no_content(&browser.read_response().await.unwrap()));
    };
    drop(waiting);
    collector.stop().await;
    assert_eq!(fixture.page_views().await, u64::from(sent));
}

#[tokio::test]
async fn events_and_their_visit_are_enriched() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let page_from_google = |path: &str| {
        let body = json!({
            "siteToken": fixture.site_token, "name": "page_view",
            "url": format!("https://shop.example{path}"), "referrer": "https://www.google.de/",
        });
        event(&body, visitor(1))
    };
    send(&collector, &page_from_google("/a?gclid=s3cret")).await;
    send(&collector, &page_from_google("/b")).await;
    collector.stop().await;
    let columns = "source, channel, browser, os, device";
    let events = fixture.query(&format!("SELECT path, {columns} FROM events ORDER BY path")).await;
    assert_eq!(
        events,
        "/a\tGoogle\tPaid Search\tFirefox\tLinux\tdesktop\n/b\tGoogle\tOrganic Search\tFirefox\tLinux\tdesktop\n"
    );
    let visits = fixture.query(&format!("SELECT entry_path, exit_path, {columns} FROM sessions FINAL")).await;
    assert_eq!(visits, "/a\t/b\tGoogle\tPaid Search\tFirefox\tLinux\tdesktop\n");
    let returns = fixture.query(
        "SELECT count(), uniqExact(returner), min(epoch) = toStartOfMonth(min(day)) FROM returns FINAL",
    );
    assert_eq!(returns.await, "1\t1\t1\n");
}
