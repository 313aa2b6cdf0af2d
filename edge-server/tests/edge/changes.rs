//! What has changed is seen at once: by a signal, or after the bus was away.

use contract::{Change, Signal};
use http::StatusCode;

use crate::harness::Edge;

#[tokio::test]
async fn a_signal_makes_the_next_visitor_see_the_new_page() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    let missing = edge.visitor.get(&site.host, "/soon").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    edge.visitor.get(&site.host, "/").await;

    site.edit(page, "<p>new").await;
    site.page("soon", "<p>here").await;
    let kept = edge.visitor.get(&site.host, "/").await;
    assert_eq!((kept.header("x-cache"), kept.text()), ("hit", "<p>old"), "nobody has said anything yet");
    for slug in ["index", "soon"] {
        let change = Change::Page { subdomain_id: site.subdomain_id, slug: slug.to_owned() };
        edge.bus.publish(&Signal::Changed(change)).await.unwrap();
    }
    let fresh = edge.get_until(&site.host, "/", |answer| answer.text() == "<p>new").await;
    assert_eq!(fresh.header("x-cache"), "miss");
    edge.get_until(&site.host, "/soon", |answer| answer.status == StatusCode::OK).await;
}

#[tokio::test]
async fn without_a_signal_a_page_is_asked_about_again_after_its_time() {
    let edge = Edge::with(&["cache.max_age=50ms"]).await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    edge.visitor.get(&site.host, "/").await;
    site.edit(page, "<p>new").await;
    edge.get_until(&site.host, "/", |answer| answer.text() == "<p>new").await;
}

#[tokio::test]
async fn a_signal_nobody_can_read_makes_the_edge_ask_about_everything() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    edge.visitor.get(&site.host, "/").await;
    site.edit(page, "<p>new").await;
    edge.publish_unreadable_signal().await;
    edge.get_until(&site.host, "/", |answer| answer.text() == "<p>new").await;
}

#[tokio::test]
async fn a_host_given_to_a_site_is_found_at_once() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    assert_eq!(edge.visitor.get("quiet-otter.localhost", "/").await.status, StatusCode::NOT_FOUND);
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    let change = Change::Host { host: site.name.clone() };
    edge.bus.publish(&Signal::Changed(change)).await.unwrap();
    edge.get_until(&site.host, "/", |answer| answer.status == StatusCode::OK).await;
}

#[tokio::test]
async fn an_edited_form_is_the_one_that_is_shown() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let form = edge.account("quiet-otter").await.form(crate::fixtures::one_text_field()).await;
    let path = format!("/f/{form}");
    assert!(edge.visitor.get("localhost", &path).await.text().contains(">Contact</bdi></h1>"));
    edge.run("update forms set name = 'Write to us'").await;
    edge.bus.publish(&Signal::Changed(Change::Form { form_id: form })).await.unwrap();
    edge.get_until("localhost", &path, |answer| answer.text().contains(">Write to us</bdi></h1>")).await;
}
