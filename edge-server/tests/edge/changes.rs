//! Cache invalidation: by signals, by age, and after signals that the edge cannot parse.

use contract::{Change, Signal};
use http::StatusCode;

use crate::harness::Edge;

#[tokio::test]
async fn a_signal_invalidates_the_cached_page() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    let missing = edge.visitor.get(&site.host, "/soon").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    edge.visitor.get(&site.host, "/").await;

    site.edit(page, "<p>new").await;
    site.page("soon", "<p>here").await;
    let cached = edge.visitor.get(&site.host, "/").await;
    assert_eq!(
        (cached.header("x-cache"), cached.text()),
        ("hit", "<p>old"),
        "no signal has been published yet"
    );
    for slug in ["index", "soon"] {
        let change = Change::Page { subdomain_id: site.subdomain_id, slug: slug.to_owned(), path: None };
        edge.bus.publish(&Signal::Changed(change)).await.unwrap();
    }
    let fresh = edge.get_until(&site.host, "/", |response| response.text() == "<p>new").await;
    assert_eq!(fresh.header("x-cache"), "miss");
    edge.get_until(&site.host, "/soon", |response| response.status == StatusCode::OK).await;
}

#[tokio::test]
async fn a_page_is_reloaded_after_its_max_age_without_a_signal() {
    let edge = Edge::with(&["cache.max_age=50ms"]).await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    edge.visitor.get(&site.host, "/").await;
    site.edit(page, "<p>new").await;
    edge.get_until(&site.host, "/", |response| response.text() == "<p>new").await;
}

#[tokio::test]
async fn an_unreadable_signal_marks_every_entry_stale() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    edge.visitor.get(&site.host, "/").await;
    site.edit(page, "<p>new").await;
    edge.publish_unreadable_signal().await;
    edge.get_until(&site.host, "/", |response| response.text() == "<p>new").await;
}

#[tokio::test]
async fn a_new_host_is_resolved_at_once() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    assert_eq!(edge.visitor.get("quiet-otter.localhost", "/").await.status, StatusCode::NOT_FOUND);
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    let change = Change::Host { host: site.name.clone() };
    edge.bus.publish(&Signal::Changed(change)).await.unwrap();
    edge.get_until(&site.host, "/", |response| response.status == StatusCode::OK).await;
}

#[tokio::test]
async fn an_edited_form_replaces_the_cached_one() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let form = edge.account("quiet-otter").await.form(crate::fixtures::one_text_field()).await;
    let path = format!("/f/{form}");
    assert!(edge.visitor.get("localhost", &path).await.text().contains(">Contact</bdi></h1>"));
    edge.run("update forms set name = 'Write to us'").await;
    edge.bus.publish(&Signal::Changed(Change::Form { form_id: form })).await.unwrap();
    edge.get_until("localhost", &path, |response| response.text().contains(">Write to us</bdi></h1>")).await;
}
