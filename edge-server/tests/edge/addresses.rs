//! Site URLs: redirects to canonical paths, 404 pages, robots.txt and sitemaps.

use http::{Method, StatusCode};

use crate::harness::Edge;

#[tokio::test]
async fn redirects_to_the_canonical_path_and_keeps_the_query() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>home").await;
    site.page("about", "<p>us").await;
    site.page("docs/start", "<p>start").await;
    for (path, location) in [
        ("/about/", "/about"),
        ("/about.html", "/about"),
        ("/about.html?a=b&c=%2F", "/about?a=b&c=%2F"),
        ("/%61bout/", "/about"),
        ("//about/", "/about"),
        ("/about//", "/about"),
        ("/docs/start/", "/docs/start"),
        ("/docs/start/index.html", "/docs/start"),
        ("/index", "/"),
        ("/index?x", "/?x"),
        ("/index.html", "/"),
    ] {
        let response = edge.visitor.get(&site.host, path).await;
        assert_eq!(
            (response.status, response.header("location")),
            (StatusCode::PERMANENT_REDIRECT, location),
            "{path}"
        );
        assert_eq!(response.header("cache-control"), "no-cache", "a later deploy may put a file there");
        let target = edge.visitor.get(&site.host, location).await;
        assert_eq!(target.status, StatusCode::OK, "{location}");
    }
    for path in ["/nothing/", "/nothing.html", "/docs/", "/docs/index.html", "/About/"] {
        assert_eq!(edge.visitor.get(&site.host, path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn an_exact_path_wins_over_a_redirect() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("docs", "<p>docs").await;
    assert_eq!(edge.visitor.get(&site.host, "/docs/index").await.header("location"), "/docs");
    site.page("guide", "<p>guide").await;
    site.page("guide/index", "<p>its index").await;
    assert_eq!(edge.visitor.get(&site.host, "/guide/index").await.text(), "<p>its index");
}

#[tokio::test]
async fn a_site_serves_its_own_404_page() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let plain = edge.visitor.get(&site.host, "/nothing").await;
    assert_eq!((plain.status, plain.header("cache-control")), (StatusCode::NOT_FOUND, "no-store"));
    assert_eq!(plain.header("content-type"), "text/plain; charset=utf-8");

    let page = site.page("404", "<p>lost?").await;
    site.publish_page_change("404").await;
    let own = edge.get_until(&site.host, "/nothing", |response| response.text() == "<p>lost?").await;
    assert_eq!((own.status, own.header("cache-control")), (StatusCode::NOT_FOUND, "no-store"));
    assert_eq!(own.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(edge.visitor.get(&site.host, "/nothing").await.header("x-cache"), "hit");
    let any = [("if-none-match", "*")];
    let missing = edge.visitor.send(Method::GET, &site.host, "/nothing", &any, "").await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND, "a missing page never matches an ETag");
    assert_eq!(
        edge.visitor.get(&site.host, "/404").await.status,
        StatusCode::OK,
        "the 404 page is a normal page at its own path"
    );

    site.delete(page).await;
    site.publish_page_change("404").await;
    edge.get_until(&site.host, "/nothing", |response| response.text() == plain.text()).await;
}

#[tokio::test]
async fn the_sitemap_lists_the_published_pages_of_a_claimed_site() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let origin = format!("http://quiet-otter.localhost:{}", edge.port());
    for slug in ["index", "about", "404", "draft"] {
        site.page(slug, "<p>x").await;
    }
    edge.run("update pages set is_published = false where slug = 'draft'").await;
    let trial = edge.visitor.get(&site.host, "/robots.txt").await;
    assert_eq!(trial.text(), "User-agent: *\nAllow: /\n", "crawlers must read a page to see its noindex");
    let map = edge.visitor.get(&site.host, "/sitemap.xml").await;
    assert_eq!((map.status, map.header("content-type")), (StatusCode::OK, "application/xml"));
    let found: Vec<&str> =
        map.text().split("<loc>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(found, [format!("{origin}/about"), format!("{origin}/")]);
    assert!(map.text().contains("<lastmod>20"), "{}", map.text());

    edge.run("update pages set is_published = true where slug = 'draft'").await;
    site.publish_page_change("draft").await;
    let draft = format!("<loc>{origin}/draft</loc>");
    edge.get_until(&site.host, "/sitemap.xml", |response| response.text().contains(&draft)).await;

    edge.run("update accounts set claimed_at = now()").await;
    edge.publish_change(contract::Change::Host { host: site.name.clone() }).await;
    let line = format!("\nSitemap: {origin}/sitemap.xml\n");
    edge.get_until(&site.host, "/robots.txt", |response| response.text().ends_with(&line)).await;
    assert_eq!(edge.visitor.get("absent-here.localhost", "/robots.txt").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn every_site_response_has_a_request_id_and_nosniff() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    for path in ["/", "/", "/nothing", "/index.html", "/robots.txt", "/sitemap.xml"] {
        let response = edge.visitor.get(&site.host, path).await;
        let id = response.header("x-request-id");
        assert!(id.len() == 32 && id.chars().all(|digit| digit.is_ascii_hexdigit()), "{path}: {id}");
        assert_eq!(response.header("x-content-type-options"), "nosniff", "{path}");
        let with = [("x-request-id", "a-word-of-mine")];
        let response = edge.visitor.send(Method::GET, &site.host, path, &with, "").await;
        assert_eq!(response.header("x-request-id"), "a-word-of-mine", "{path}");
        let forged = [("x-request-id", "two words")];
        let response = edge.visitor.send(Method::GET, &site.host, path, &forged, "").await;
        assert_ne!(response.header("x-request-id"), "two words", "{path}");
    }
    assert_eq!(edge.visitor.get(&site.host, "/").await.header("origin-agent-cluster"), "?1");
}
