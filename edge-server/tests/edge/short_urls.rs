//! `/p/<slug>`: user HTML on the base host, sandboxed into its own origin.

use http::{Method, StatusCode};

use crate::harness::Edge;

#[tokio::test]
async fn user_html_on_the_base_host_is_sandboxed() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("hello", "<script>fetch('/api/account')</script>").await;
    let response = edge.visitor.get("localhost", "/p/hello").await;
    assert_eq!(response.status, StatusCode::OK);
    let policy = "sandbox allow-scripts allow-forms allow-popups allow-modals";
    assert_eq!(response.header("content-security-policy"), policy);
    assert_eq!(response.header("x-content-type-options"), "nosniff");
    assert_eq!(response.header("x-robots-tag"), "noindex", "an unclaimed page has noindex here too");
    let named = [("if-none-match", response.header("etag"))];
    let again = edge.visitor.send(Method::GET, "localhost", "/p/hello", &named, "").await;
    assert_eq!((again.status, again.header("content-security-policy")), (StatusCode::NOT_MODIFIED, policy));
}

#[tokio::test]
async fn the_first_page_of_a_slug_owns_the_bare_short_url() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (first, second) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    let held = first.page("hello", "<p>first").await;
    second.page("hello", "<p>second").await;
    let get = async |path: &str| edge.visitor.get("localhost", path).await;
    // Relative links of the page resolve on its own host.
    let port = edge.port();
    let shown = |host: &str, html: &str| format!("<base href=\"http://{host}:{port}/hello\">{html}");
    let (first_page, second_page) = (shown(&first.host, "<p>first"), shown(&second.host, "<p>second"));
    assert_eq!(get("/p/hello").await.text(), first_page);
    assert_eq!(get("/p/hello?site=loud-badger").await.text(), second_page);
    assert_eq!(get("/p/hello?site=quiet-otter").await.text(), first_page);

    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::pages::delete_page(&mut conn, first.id, held).await.unwrap();
    let change =
        contract::Change::Page { subdomain_id: first.subdomain_id, slug: "hello".to_owned(), path: None };
    edge.bus.publish(&contract::Signal::Changed(change)).await.unwrap();
    edge.get_until("localhost", "/p/hello", |response| response.status == StatusCode::NOT_FOUND).await;
    assert_eq!(
        get("/p/hello?site=loud-badger").await.text(),
        second_page,
        "the short URL does not pass to the second page"
    );
}

#[tokio::test]
async fn a_new_page_is_available_at_its_short_url_at_once() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    assert_eq!(edge.visitor.get("localhost", "/p/hello").await.status, StatusCode::NOT_FOUND);
    let site = edge.account("quiet-otter").await;
    site.page("hello", "<p>x").await;
    let change =
        contract::Change::Page { subdomain_id: site.subdomain_id, slug: "hello".to_owned(), path: None };
    edge.bus.publish(&contract::Signal::Changed(change)).await.unwrap();
    edge.get_until("localhost", "/p/hello", |response| response.status == StatusCode::OK).await;
}

#[tokio::test]
async fn short_urls_accept_tracking_parameters() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("hello", "<p>x").await;
    for query in
        ["?utm_source=a", "?fbclid=1&site=quiet-otter", "?&&=", "?site=quiet-otter&site=absent", "?%ff"]
    {
        let response = edge.visitor.get("localhost", &format!("/p/hello{query}")).await;
        assert_eq!(response.status, StatusCode::OK, "{query}");
    }
}

#[tokio::test]
async fn invalid_slugs_and_sites_answer_404() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("hello", "<p>x").await;
    for path in [
        "/p/",
        "/p/%00hello",
        "/p/hello%00",
        "/p/%ff",
        "/p/../api/account",
        "/p/%2e%2e/hello",
        "/p/HELLO",
        "/p/hello?site=%00",
        "/p/hello?site=",
        "/p/hello?site=QUIET-OTTER",
        "/p/hello?site=quiet-otter.localhost",
        "/p/hello?site=absent-here",
    ] {
        assert_eq!(edge.visitor.get("localhost", path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(edge.control_plane.all().is_empty());
}
