//! Former site names redirect to the current name until they expire.

use http::{Method, StatusCode};

use crate::fixtures::Account;
use crate::harness::Edge;

/// Renames a site and reserves its old name for the interval `kept`.
async fn rename(edge: &Edge, site: &Account<'_>, to: &str, kept: &str) {
    edge.run(&format!("update subdomains set name = '{to}' where id = '{}'", site.subdomain_id)).await;
    edge.run(&format!(
        "insert into former_names (name, account_id, subdomain_id, renamed_at, kept_until)
         values ('{}', '{}', '{}', now(), now() + interval '{kept}')",
        site.name, site.id, site.subdomain_id,
    ))
    .await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::accounts::publish_changes(&mut conn, site.id, crate::fixtures::now()).await.unwrap();
    edge.relay_outbox().await;
}

#[tokio::test]
async fn a_former_name_redirects_to_the_same_path() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>home").await;
    assert_eq!(edge.visitor.get(&site.host, "/").await.status, StatusCode::OK);
    assert_eq!(edge.visitor.get("loud-badger.localhost", "/").await.status, StatusCode::NOT_FOUND);
    rename(&edge, &site, "loud-badger", "30 days").await;

    let moved = |response: &crate::client::TestResponse| response.status == StatusCode::FOUND;
    edge.get_until(&site.host, "/", moved).await;
    let present = format!("http://loud-badger.localhost:{}", edge.port());
    for path in ["/", "/a/b?x=1&y=%2F", "//evil.example", "/%FF", "/?"] {
        let response = edge.visitor.get(&site.host, path).await;
        assert_eq!(response.status, StatusCode::FOUND, "{path}");
        assert_eq!(response.header("location"), format!("{present}{path}"));
        assert_eq!(response.header("cache-control"), "no-store", "{path}");
    }
    let head = edge.visitor.send(Method::HEAD, &site.host, "/", &[], "").await;
    assert_eq!((head.status, head.text()), (StatusCode::FOUND, ""));
    let posted = edge.visitor.send(Method::POST, &site.host, "/", &[], "").await;
    assert_eq!(posted.status, StatusCode::METHOD_NOT_ALLOWED);
    edge.get_until("loud-badger.localhost", "/", |response| response.text() == "<p>home").await;
}

#[tokio::test]
async fn a_short_url_with_a_former_site_name_still_works() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (first, site) = (edge.account("first-of-all").await, edge.account("quiet-otter").await);
    first.page("hello", "<p>first").await;
    site.page("hello", "<p>hello").await;
    site.page("held", "<p>held").await;
    let port = edge.port();
    let shown = |name, slug| format!("<base href=\"http://{name}.localhost:{port}/{slug}\"><p>{slug}");
    assert_eq!(edge.visitor.get("localhost", "/p/held").await.text(), shown("quiet-otter", "held"));
    rename(&edge, &site, "loud-badger", "30 days").await;
    for name in ["quiet-otter", "loud-badger"] {
        let response = edge.visitor.get("localhost", &format!("/p/hello?site={name}")).await;
        assert_eq!(response.text(), shown("loud-badger", "hello"), "{name}");
    }
    assert_eq!(edge.visitor.get("localhost", "/p/held").await.text(), shown("loud-badger", "held"));
}

#[tokio::test]
async fn an_expired_former_name_answers_404() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>home").await;
    rename(&edge, &site, "loud-badger", "-1 second").await;
    assert_eq!(edge.visitor.get(&site.host, "/").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_reassigned_name_serves_its_new_site() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    rename(&edge, &site, "loud-badger", "30 days").await;
    let successor = edge.account("quiet-otter").await;
    successor.page("index", "<p>heir").await;
    assert_eq!(edge.visitor.get(&successor.host, "/").await.text(), "<p>heir");
}

#[tokio::test]
async fn the_former_name_of_a_suspended_site_answers_451() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    rename(&edge, &site, "loud-badger", "30 days").await;
    edge.run("update accounts set suspended_at = now()").await;
    let response = edge.visitor.get(&site.host, "/").await;
    assert_eq!(response.status, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS);
}
