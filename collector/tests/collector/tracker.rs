//! The tracker script and the endpoint it sends to.

use sandbox::test::until;

use crate::browser::{Browser, Request, page_view};
use crate::collect::{send, visitor};
use crate::fixture::Fixture;

const REQUESTS: [&str; 3] = ["GET /script.js", "GET /_wr/script.js", "GET /_wr/t.js"];

/// Returns the head in lowercase, and the body.
async fn get(
    browser: &mut Browser,
    line: &'static str,
    headers: Vec<(&'static str, String)>,
) -> (String, String) {
    let request = Request { line, headers, body: vec![] };
    let response = browser.send(&request).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn the_tracker_is_served_at_all_its_paths() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for line in REQUESTS {
        let (head, script) = get(&mut browser, line, vec![]).await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        for header in [
            "content-type: text/javascript; charset=utf-8",
            "cache-control: public, max-age=3600",
            "x-content-type-options: nosniff",
            "vary: accept-encoding",
            "access-control-allow-origin: *",
            "cross-origin-resource-policy: cross-origin",
        ] {
            assert_eq!(head.matches(header).count(), 1, "{header} in {head}");
        }
        // Its behavior is tested in a real browser.
        assert!(script.contains("/_wr/collect"), "{script}");
    }
    collector.stop().await;
}

#[tokio::test]
async fn a_matching_etag_gets_304() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    let (head, _) = get(&mut browser, REQUESTS[0], vec![]).await;
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let (head, body) = get(&mut browser, REQUESTS[1], vec![("if-none-match", etag.clone())]).await;
    assert!(head.starts_with("http/1.1 304") && head.contains(&format!("etag: {etag}")), "{head}");
    assert_eq!(body, "");
    let (head, _) = get(&mut browser, REQUESTS[0], vec![("if-none-match", "\"other\"".into())]).await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    collector.stop().await;
}

#[tokio::test]
async fn the_endpoint_of_the_tracker_counts_events() {
    let fixture = Fixture::new().await;
    let collector = fixture.start().await;
    let view = page_view(&fixture.site_token, "/", visitor(1));
    send(&collector, &Request { line: "POST /_wr/collect", ..view }).await;
    until(async || fixture.page_views().await == 1).await;
    collector.stop().await;
}
