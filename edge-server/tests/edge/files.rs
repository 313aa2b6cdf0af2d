//! Files of deployed sites, served at their paths on the site's host.

use contract::{Change, Signal};
use http::{Method, StatusCode};

use crate::harness::Edge;

#[tokio::test]
async fn files_are_served_at_their_paths() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>page").await;
    site.serve_files(&[
        ("assets/a b.js", "text/javascript", b"let a"),
        ("feed.xml", "text/xml", b"<rss/>"),
        ("data.json", "application/json", b"{}"),
        ("img/a.png", "image/png", b"\x89PNG"),
    ])
    .await;
    for (path, kind, body, shared) in [
        ("/assets/a%20b.js", "text/javascript; charset=utf-8", "let a", true),
        ("/feed.xml", "text/xml; charset=utf-8", "<rss/>", false),
        ("/data.json?v=1", "application/json; charset=utf-8", "{}", false),
    ] {
        let response = edge.visitor.get(&site.host, path).await;
        assert_eq!(
            (response.status, response.header("content-type"), response.text()),
            (StatusCode::OK, kind, body),
            "{path}"
        );
        assert_eq!(response.header("cache-control"), "public, max-age=0, must-revalidate");
        assert_eq!(response.header("access-control-allow-origin") == "*", shared, "{path}");
        assert_eq!(response.header("x-robots-tag"), "noindex", "the account is unclaimed");
        let again = [("if-none-match", response.header("etag"))];
        let again = edge.visitor.send(Method::GET, &site.host, path, &again, "").await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    }
    let part = edge.visitor.send(Method::GET, &site.host, "/feed.xml", &[("range", "bytes=1-3")], "").await;
    assert_eq!((part.status, part.text()), (StatusCode::PARTIAL_CONTENT, "rss"));
    assert_eq!(edge.visitor.get(&site.host, "/").await.text(), "<p>page");
    for nothing in ["/assets/", "/none.js", "/../feed.xml"] {
        assert_eq!(edge.visitor.get(&site.host, nothing).await.status, StatusCode::NOT_FOUND, "{nothing}");
    }
    let other = edge.account("other-otter").await;
    assert_eq!(edge.visitor.get(&other.host, "/feed.xml").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn only_images_and_fonts_have_a_content_address() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    let [image, script] = site
        .serve_files(&[("img/a.png", "image/png", b"\x89PNG"), ("a.js", "text/javascript", b"let a")])
        .await
        .try_into()
        .unwrap();
    let response = edge.visitor.get("assets.localhost", &format!("/{image}/a.png")).await;
    assert_eq!((response.status, response.header("content-type")), (StatusCode::OK, "image/png"));
    let response = edge.visitor.get("assets.localhost", &format!("/{script}/a.js")).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_first_account_to_deploy_a_file_does_not_decide_its_type_for_others() {
    let edge = Edge::start().await;
    let (attacker, owner) = (edge.account("sly-otter").await, edge.account("quiet-otter").await);
    let logo: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg'></svg>";
    let [digest] = attacker.serve_files(&[("vite.svg.png", "image/png", logo)]).await.try_into().unwrap();
    let type_of = async |name: &str| {
        let response = edge.visitor.get("assets.localhost", &format!("/{digest}/{name}")).await;
        (response.status.as_u16(), response.header("content-type").to_owned())
    };
    assert_eq!(type_of("vite.svg.png").await, (200, "image/png".to_owned()));
    assert_eq!(type_of("vite.svg").await, (200, "image/svg+xml".to_owned()), "before the owner deploys it");
    owner.serve_files(&[("vite.svg", "image/svg+xml", logo)]).await;
    assert_eq!(type_of("vite.svg").await, (200, "image/svg+xml".to_owned()));
    assert_eq!(type_of("vite.svg.png").await, (200, "image/png".to_owned()), "it stays as published");
    for name in ["vite.html", "vite.js", "vite"] {
        assert_eq!(type_of(name).await.0, 404, "{name}");
    }
}

#[tokio::test]
async fn a_new_deploy_replaces_cached_files() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.serve_files(&[("a.js", "text/javascript", b"one")]).await;
    assert_eq!(edge.visitor.get(&site.host, "/a.js").await.text(), "one");
    assert_eq!(edge.visitor.get(&site.host, "/b.js").await.status, StatusCode::NOT_FOUND);
    site.serve_files(&[("b.js", "text/javascript", b"two")]).await;
    edge.bus.publish(&Signal::Changed(Change::Site { subdomain_id: site.subdomain_id })).await.unwrap();
    edge.get_until(&site.host, "/b.js", |response| response.status == StatusCode::OK).await;
    assert_eq!(edge.visitor.get(&site.host, "/a.js").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn files_of_a_suspended_site_are_not_served() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.serve_files(&[("a.js", "text/javascript", b"one")]).await;
    edge.visitor.get(&site.host, "/a.js").await;
    edge.run("update accounts set suspended_at = now()").await;
    edge.bus.publish(&Signal::Changed(Change::Host { host: site.name.clone() })).await.unwrap();
    edge.get_until(&site.host, "/a.js", |response| response.status.as_u16() == 451).await;
}
