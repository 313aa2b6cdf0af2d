//! Site pages: caching, ETags and HEAD.

use http::{Method, StatusCode};

use crate::harness::Edge;

#[tokio::test]
async fn the_first_request_misses_and_the_next_hits() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    let response = edge.visitor.get(&site.host, "/").await;
    assert_eq!((response.header("x-cache"), response.text()), ("miss", "<p>x"));
    let response = edge.visitor.get(&site.host, "/").await;
    assert_eq!((response.header("x-cache"), response.text()), ("hit", "<p>x"));
    assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(response.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn the_query_is_not_part_of_the_cache_key() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    edge.visitor.get(&site.host, "/").await;
    for query in ["/?utm_source=mail", "/?%00", "/?a=b&a=c", "/?"] {
        let response = edge.visitor.get(&site.host, query).await;
        assert_eq!((response.status, response.header("x-cache")), (StatusCode::OK, "hit"), "{query}");
    }
}

#[tokio::test]
async fn a_matching_etag_answers_304() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>x").await;
    let etag = edge.visitor.get(&site.host, "/").await.header("etag").to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'), "strong: {etag}");

    let weak = format!("W/{etag}");
    let among = format!("\"other\", {etag}");
    for named in [etag.as_str(), &weak, &among, "*"] {
        let headers = [("if-none-match", named)];
        let response = edge.visitor.send(Method::GET, &site.host, "/", &headers, "").await;
        assert_eq!((response.status, response.text()), (StatusCode::NOT_MODIFIED, ""), "{named}");
        assert_eq!(response.header("etag"), etag);
        assert_eq!(response.header("content-type"), "");
    }
    let two = [("if-none-match", "\"other\""), ("if-none-match", etag.as_str())];
    let response = edge.visitor.send(Method::GET, &site.host, "/", &two, "").await;
    assert_eq!(response.status, StatusCode::NOT_MODIFIED, "the second header has the matching ETag");

    site.edit(page, "<p>y").await;
    let change =
        contract::Change::Page { subdomain_id: site.subdomain_id, slug: "index".to_owned(), path: None };
    edge.bus.publish(&contract::Signal::Changed(change)).await.unwrap();
    edge.get_until(&site.host, "/", |response| response.text() == "<p>y").await;
    let old = [("if-none-match", etag.as_str())];
    let response = edge.visitor.send(Method::GET, &site.host, "/", &old, "").await;
    assert_eq!(
        (response.status, response.text()),
        (StatusCode::OK, "<p>y"),
        "the old ETag no longer matches"
    );
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>twelve by").await;
    let get = edge.visitor.get(&site.host, "/").await;
    let head = edge.visitor.send(Method::HEAD, &site.host, "/", &[], "").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    for name in ["content-length", "etag", "content-type", "cache-control"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    assert_eq!(head.header("content-length"), "12");
}

#[tokio::test]
async fn only_unclaimed_sites_send_noindex() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (trial, claimed) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    edge.run(&format!("update accounts set claimed_at = now() where id = '{}'", claimed.id)).await;
    for site in [&trial, &claimed] {
        site.page("index", "<p>x").await;
    }
    for _miss_and_hit in 0..2 {
        let on_trial = edge.visitor.get(&trial.host, "/").await;
        let on_claimed = edge.visitor.get(&claimed.host, "/").await;
        assert_eq!((on_trial.header("x-robots-tag"), on_claimed.header("x-robots-tag")), ("noindex", ""));
    }
}

#[tokio::test]
async fn an_unpublished_page_answers_404() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("draft", "<p>x").await;
    edge.run("update pages set is_published = false").await;
    assert_eq!(edge.visitor.get(&site.host, "/draft").await.status, StatusCode::NOT_FOUND);
    assert_eq!(edge.visitor.get("localhost", "/p/draft").await.status, StatusCode::NOT_FOUND);
}
