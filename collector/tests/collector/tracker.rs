//! The script that counted pages load, and the address it sends to.

use sandbox::test::until;

use crate::browser::{Browser, Request, page_view};
use crate::collect::{send, visitor};
use crate::stand::Stand;

#[tokio::test]
async fn the_tracker_is_small_kept_for_an_hour_and_a_script() {
    let stand = Stand::new().await;
    let collector = stand.start().await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    let request = Request { line: "GET /_wr/t.js", headers: vec![], body: vec![] };
    let answer = browser.send(&request).await.unwrap();
    let (head, script) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let head = head.to_lowercase();
    for line in
        ["content-type: text/javascript; charset=utf-8", "max-age=3600", "x-content-type-options: nosniff"]
    {
        assert!(head.contains(line), "{head}");
    }
    assert!(script.len() <= 1_024, "{} bytes", script.len());
    // What it sends and where to; that it does so is for a browser to show.
    for part in ["sendBeacon", "/_wr/collect", "siteToken", "page_view"] {
        assert!(script.contains(part), "{part}");
    }
    collector.stop().await;
}

#[tokio::test]
async fn what_the_tracker_sends_is_counted() {
    let stand = Stand::new().await;
    let collector = stand.start().await;
    let view = page_view(&stand.site_token, "/", visitor(1));
    send(&collector, &Request { line: "POST /_wr/collect", ..view }).await;
    until(async || stand.page_views().await == 1).await;
    collector.stop().await;
}
