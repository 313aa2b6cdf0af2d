//! Content encodings: each compressed variant has the same content and its own ETag.

use std::io::read_to_string;

use http::{Method, StatusCode};

use crate::client::TestResponse;
use crate::harness::Edge;

const CHROME: &str = "gzip, deflate, br, zstd";

async fn get(edge: &Edge, host: &str, accept: &str) -> TestResponse {
    edge.visitor.send(Method::GET, host, "/", &[("accept-encoding", accept)], "").await
}

/// Waits until the current version has its compressed variants.
async fn until_compressed(edge: &Edge, host: &str) {
    sandbox::test::until(async || !get(edge, host, CHROME).await.header("content-encoding").is_empty()).await;
}

#[tokio::test]
async fn responses_use_an_encoding_the_client_accepts() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let html = "<p>a page with much the same in it</p>".repeat(200);
    site.page("index", &html).await;
    let first = get(&edge, &site.host, CHROME).await;
    assert_eq!(
        (first.header("content-encoding"), first.text()),
        ("", html.as_str()),
        "the first response does not wait for compression"
    );
    until_compressed(&edge, &site.host).await;

    let mut etags = vec![first.header("etag").to_owned()];
    for coding in ["gzip", "br", "zstd"] {
        let response = get(&edge, &site.host, coding).await;
        assert_eq!((response.status, response.header("content-encoding")), (StatusCode::OK, coding));
        assert_eq!((response.header("vary"), response.header("x-cache")), ("accept-encoding", "hit"));
        let body = &response.body[..];
        let read = match coding {
            "gzip" => read_to_string(flate2::read::GzDecoder::new(body)).unwrap(),
            "br" => read_to_string(brotli::Decompressor::new(body, 4_096)).unwrap(),
            _ => String::from_utf8(zstd::bulk::decompress(body, html.len()).unwrap()).unwrap(),
        };
        assert_eq!(read, html, "{coding}");
        assert!(body.len() < html.len() / 10, "{coding}");
        let named = [("accept-encoding", coding), ("if-none-match", response.header("etag"))];
        let again = edge.visitor.send(Method::GET, &site.host, "/", &named, "").await;
        assert_eq!((again.status, again.header("vary")), (StatusCode::NOT_MODIFIED, "accept-encoding"));
        assert_eq!(again.header("content-encoding"), "");
        let head = edge.visitor.send(Method::HEAD, &site.host, "/", &named[..1], "").await;
        assert_eq!(head.header("content-length"), body.len().to_string());
        etags.push(response.header("etag").to_owned());
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 4, "each variant needs its own strong ETag");
    for plain in ["", "identity", "deflate", "gzip;q=0"] {
        let response = get(&edge, &site.host, plain).await;
        assert_eq!((response.header("content-encoding"), response.text()), ("", html.as_str()), "{plain}");
        assert_eq!(response.header("vary"), "accept-encoding", "{plain}");
    }
}

#[tokio::test]
async fn editing_a_page_discards_its_encoded_variants() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", &"<p>old</p>".repeat(200)).await;
    get(&edge, &site.host, CHROME).await;
    until_compressed(&edge, &site.host).await;
    let new = "<p>new</p>".repeat(200);
    site.edit(page, &new).await;
    site.publish_page_change("index").await;
    edge.get_until(&site.host, "/", |response| response.text() == new).await;
    until_compressed(&edge, &site.host).await;
    let response = get(&edge, &site.host, "gzip").await;
    assert_eq!(read_to_string(flate2::read::GzDecoder::new(&response.body[..])).unwrap(), new);
}

#[tokio::test]
async fn revalidating_an_unchanged_page_keeps_its_encoded_variants() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", &"<p>same</p>".repeat(200)).await;
    get(&edge, &site.host, CHROME).await;
    until_compressed(&edge, &site.host).await;
    // An unreadable signal marks every cache entry as stale.
    edge.publish_unreadable_signal().await;
    edge.get_until(&site.host, "/", |response| response.header("x-cache") == "miss").await;
    assert_eq!(
        get(&edge, &site.host, "br").await.header("content-encoding"),
        "br",
        "an unchanged page keeps its variants"
    );
    site.edit(page, "<p>other").await;
    site.publish_page_change("index").await;
    edge.get_until(&site.host, "/", |response| response.text() == "<p>other").await;
}
