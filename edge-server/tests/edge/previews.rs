//! Previews: sites at hosts of their own, for which nothing of the live site counts, and which search engines don't index.

use contract::Change;
use http::{Method, StatusCode};
use sandbox::test::until;
use sha2::{Digest, Sha256};

use crate::client::TestResponse;
use crate::fixtures::Account;
use crate::harness::Edge;
use crate::suspended::{resume, suspend};

const HTML: &str = "text/html";
const TOKEN: &str = "mzxw6ytbmzxw6ytb";
/// Long enough to be sent compressed.
const SCRIPT: &[u8] = &[b'/'; 4_000];

/// Method, path and headers of a request, and the status of its response.
type Sent<'a> = (Method, &'a str, Vec<(&'a str, &'a str)>, u16);

fn status_and_text(response: &TestResponse) -> (u16, String) {
    (response.status.as_u16(), response.text().to_owned())
}

async fn answer(edge: &Edge, host: &str, path: &str) -> (u16, String) {
    status_and_text(&edge.visitor.get(host, path).await)
}

async fn until_status(edge: &Edge, host: &str, path: &str, status: StatusCode) {
    edge.get_until(host, path, |response| response.status == status).await;
}

/// The change of a preview that begins or ends.
fn of_host(host: &str) -> Change {
    Change::Host { host: host.strip_suffix(".localhost").unwrap().to_owned() }
}

/// A live site with pages and analytics, and another site in a preview of it.
async fn previewed(edge: &Edge) -> (Account<'_>, String) {
    let site = edge.account("quiet-otter").await;
    edge.run(&format!("update accounts set claimed_at = now() where id = '{}'", site.id)).await;
    site.track("site_abc").await;
    site.deployed_page("index", "index.html", "<p>live home").await;
    site.deployed_page("only-live", "only-live.html", "<p>only live").await;
    site.page("made", "<p>made by the API").await;
    site.serve_files(&[("a.js", "text/javascript", b"live()"), ("same.txt", "text/plain", b"live")]).await;
    let files: [(&str, &str, &[u8]); 7] = [
        ("index.html", HTML, b"<head></head><p>next home"),
        ("docs/index.html", HTML, b"<p>next docs"),
        ("about.html", HTML, b"<p>next about"),
        ("404.html", HTML, b"<p>next lost"),
        ("a.js", "text/javascript", SCRIPT),
        ("same.txt", "text/plain", b"next"),
        ("app-BdX3kf9a.css", "text/css", b"b{}"),
    ];
    let (deploy_id, host) = site.preview(TOKEN, &files).await;
    let headers =
        "/*\n X-Robots-Tag: all\n Referrer-Policy: no-referrer\n/about\n X-Robots-Tag: googlebot: index";
    let redirects = "/old /about 301\n/shown/* /about.html 200\n/out https://example.com/ 302";
    site.set_rules_of(&format!("select '{deploy_id}'::uuid"), redirects, headers, false).await;
    (site, host)
}

#[tokio::test]
async fn a_preview_shows_its_own_files_by_the_rules_of_a_live_site() {
    let edge = Edge::start().await;
    let (site, host) = previewed(&edge).await;
    // The second answer of each comes from the cache.
    for _miss_and_hit in 0..2 {
        for (path, status, text) in [
            ("/", 200, "<head></head><p>next home"),
            ("/index.html", 200, "<head></head><p>next home"),
            ("/docs/", 200, "<p>next docs"),
            ("/about", 200, "<p>next about"),
            ("/shown/x", 200, "<p>next about"),
            ("/same.txt", 200, "next"),
            ("/only-live", 404, "<p>next lost"),
            ("/only-live.html", 404, "<p>next lost"),
            ("/made", 404, "<p>next lost"),
            ("/none", 404, "<p>next lost"),
            ("/sitemap.xml", 404, "<p>next lost"),
        ] {
            assert_eq!(answer(&edge, &host, path).await, (status, text.to_owned()), "{path}");
        }
        for (path, status, location) in
            [("/docs", 308, "/docs/"), ("/old", 301, "/about"), ("/out", 302, "https://example.com/")]
        {
            let response = edge.visitor.get(&host, path).await;
            assert_eq!((response.status.as_u16(), response.header("location")), (status, location), "{path}");
        }
        for (path, text) in [("/only-live", "<p>only live"), ("/made", "<p>made by the API")] {
            let live = answer(&edge, &site.host, path).await;
            assert!(live.0 == 200 && live.1.starts_with(text), "{path}: {live:?}");
        }
        let live = answer(&edge, &site.host, "/").await;
        assert!(live.1.contains("data-site=\"site_abc\"") && live.1.starts_with("<p>live home"), "{live:?}");
        assert_eq!(answer(&edge, &site.host, "/same.txt").await, (200, "live".to_owned()));
        assert_eq!(answer(&edge, &site.host, "/about").await.0, 404, "the preview's page is not live");
    }
    let gzip = [("accept-encoding", "gzip")];
    until(async || {
        let response = edge.visitor.send(Method::GET, &host, "/a.js", &gzip, "").await;
        response.header("content-encoding") == "gzip"
    })
    .await;
    let sheet = edge.visitor.get(&host, "/app-BdX3kf9a.css").await;
    assert_eq!((sheet.text(), sheet.header("referrer-policy")), ("b{}", "no-referrer"));
}

#[tokio::test]
async fn every_response_of_a_preview_forbids_search_engines_to_index_it() {
    let edge = Edge::start().await;
    let (_, host) = previewed(&edge).await;
    let etag = edge.visitor.get(&host, "/same.txt").await.header("etag").to_owned();
    let page_etag = edge.visitor.get(&host, "/").await.header("etag").to_owned();
    let get = Method::GET;
    let requests: Vec<Sent<'_>> = vec![
        (get.clone(), "/", vec![], 200),
        (get.clone(), "/about", vec![], 200),
        (get.clone(), "/shown/x", vec![], 200),
        (Method::HEAD, "/", vec![], 200),
        (get.clone(), "/", vec![("if-none-match", &page_etag)], 304),
        (get.clone(), "/same.txt", vec![], 200),
        (get.clone(), "/same.txt", vec![("if-none-match", &etag)], 304),
        (get.clone(), "/same.txt", vec![("range", "bytes=0-1")], 206),
        (get.clone(), "/same.txt", vec![("range", "bytes=90-")], 416),
        (get.clone(), "/a.js", vec![("accept-encoding", "gzip, br")], 200),
        (get.clone(), "/docs", vec![], 308),
        (get.clone(), "/old", vec![], 301),
        (get.clone(), "/none", vec![], 404),
        (get.clone(), "/none.png", vec![], 404),
        (get.clone(), "/%ff", vec![], 404),
        (get.clone(), "/robots.txt", vec![], 200),
        (get.clone(), "/sitemap.xml", vec![], 404),
        (get.clone(), "/_wr/script.js", vec![], 404),
        (get, "/.well-known/acme-challenge/x", vec![], 404),
        (Method::POST, "/", vec![], 405),
        (Method::DELETE, "/about", vec![], 405),
    ];
    for _miss_and_hit in 0..2 {
        for (method, path, headers, status) in &requests {
            let response = edge.visitor.send(method.clone(), &host, path, headers, "").await;
            assert_eq!(response.status.as_u16(), *status, "{method} {path} {headers:?}");
            let robots: Vec<_> = response.headers.get_all("x-robots-tag").iter().collect();
            assert_eq!(robots, ["noindex"], "{method} {path} {headers:?}");
        }
    }
    let http2 = edge.visitor.over_http2().http2().await;
    assert_eq!(http2.get(&host, "/", &[]).await.header("x-robots-tag"), "noindex");
    assert_eq!(edge.visitor.get(&host, "/robots.txt").await.text(), "User-agent: *\nDisallow: /\n");
}

#[tokio::test]
async fn a_preview_has_no_tracker_and_counts_no_view() {
    let edge = Edge::with(&["views.flush_interval=20ms"]).await;
    let (site, host) = previewed(&edge).await;
    for path in ["/", "/index.html", "/about", "/shown/x", "/none"] {
        for _miss_and_hit in 0..2 {
            let response = edge.visitor.get(&host, path).await;
            assert!(!response.text().contains("script"), "{path}: {}", response.text());
        }
    }
    for (method, path) in [
        (Method::GET, "/_wr/script.js"),
        (Method::GET, "/_wr/t.js"),
        (Method::POST, "/_wr/collect"),
        (Method::OPTIONS, "/_wr/collect"),
    ] {
        let response = edge.visitor.send(method, &host, path, &[], "{}").await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(edge.collector.all().len(), 0, "the collector received nothing");
    let views = async || site.pages().await.iter().map(|page| page.views).sum::<i64>();
    edge.visitor.get(&site.host, "/").await;
    until(async || views().await > 0).await;
    assert_eq!(views().await, 1, "only that of the live site");
}

#[tokio::test]
async fn a_preview_is_found_only_by_its_token_and_its_own_site() {
    let edge = Edge::start().await;
    let (site, host) = previewed(&edge).await;
    let other = edge.account("loud-badger").await;
    let (_, others_host) = other.preview("aaaaaaaaaaaaaaaa", &[("index.html", HTML, b"<p>another's")]).await;
    assert_eq!(answer(&edge, &others_host, "/").await.1, "<p>another's");
    let upper = host.to_ascii_uppercase();
    assert_eq!(edge.visitor.get(&upper, "/same.txt").await.text(), "next");
    for wrong in [
        format!("{TOKEN}--loud-badger.localhost"),
        "aaaaaaaaaaaaaaaa--quiet-otter.localhost".to_owned(),
        "aaaaaaaaaaaaaaab--loud-badger.localhost".to_owned(),
        format!("{TOKEN}.localhost"),
        format!("{TOKEN}--.localhost"),
        format!("{TOKEN}---quiet-otter.localhost"),
        format!("{TOKEN}-quiet-otter.localhost"),
        format!("x{TOKEN}--quiet-otter.localhost"),
        format!("{TOKEN}--quiet-otter--quiet-otter.localhost"),
        format!("x.{TOKEN}--quiet-otter.localhost"),
        format!("{TOKEN}--assets.localhost"),
    ] {
        for _miss_and_hit in 0..2 {
            assert_eq!(edge.visitor.get(&wrong, "/").await.status, StatusCode::NOT_FOUND, "{wrong}");
        }
    }
    let short = format!("/p/index?site={TOKEN}--quiet-otter");
    assert_eq!(edge.visitor.get("localhost", &short).await.status, StatusCode::NOT_FOUND);
    assert_eq!(answer(&edge, &site.host, "/same.txt").await.1, "live");
}

#[tokio::test]
async fn the_previews_of_a_suspended_account_end_with_their_bytes() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (site, host) = previewed(&edge).await;
    let kept =
        "select count(*) from deploy_files f join deploys d on d.id = f.deploy_id where d.status = 'expired'";
    let bytes = format!("(select sum(size_bytes) from deploy_files) where account_id = '{}'", site.id);
    edge.run(&format!("update usage set storage_bytes = {bytes}")).await;
    assert_eq!(answer(&edge, &host, "/same.txt").await.1, "next");
    suspend(&edge, &site).await;
    until_status(&edge, &host, "/same.txt", StatusCode::NOT_FOUND).await;
    until_status(&edge, &site.host, "/same.txt", StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS).await;
    edge.run(&format!("do $$ begin assert ({kept}) = 0; end $$")).await;
    resume(&edge, &site).await;
    until_status(&edge, &site.host, "/same.txt", StatusCode::OK).await;
    assert_eq!(edge.visitor.get(&host, "/same.txt").await.status, StatusCode::NOT_FOUND);
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let usage = store::usage::find_usage(&mut conn, site.id).await.unwrap().unwrap();
    assert_eq!(usage.storage_bytes, 10, "those of the live site");
}

/// As after a suspension that missed it, because it was being made.
#[tokio::test]
async fn a_preview_of_an_account_that_is_suspended_answers_451() {
    let edge = Edge::start().await;
    let (site, host) = previewed(&edge).await;
    edge.run(&format!("update accounts set suspended_at = now() where id = '{}'", site.id)).await;
    for path in ["/same.txt", "/"] {
        let page = edge.visitor.get(&host, path).await;
        assert_eq!(page.status, StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS);
        assert_eq!((page.header("x-robots-tag"), page.header("cache-control")), ("noindex", "no-store"));
    }
}

#[tokio::test]
async fn the_host_of_a_preview_ends_with_it() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (_, host) = previewed(&edge).await;
    for ended in [
        "update deploys set preview_expires_at = now()",
        "update deploys set status = 'expired', preview_token = null",
        "update deploys set status = 'processed', preview_token = null, preview_expires_at = null",
    ] {
        assert_eq!(answer(&edge, &host, "/same.txt").await.1, "next", "{ended}");
        edge.run(&format!("{ended} where preview_token = '{TOKEN}'")).await;
        edge.publish_change(of_host(&host)).await;
        until_status(&edge, &host, "/same.txt", StatusCode::NOT_FOUND).await;
        assert_eq!(edge.visitor.get(&host, "/").await.header("x-robots-tag"), "noindex");
        edge.run(&format!(
            "update deploys set status = 'preview', preview_token = '{TOKEN}',
                                preview_expires_at = now() + interval '1 hour' where subdomain_id is not null"
        ))
        .await;
        edge.publish_change(of_host(&host)).await;
        until_status(&edge, &host, "/same.txt", StatusCode::OK).await;
    }
}

#[tokio::test]
async fn a_deleted_preview_is_not_served_from_the_cache_while_postgres_is_unreachable() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (_, host) = previewed(&edge).await;
    for path in ["/", "/same.txt", "/about"] {
        assert_eq!(edge.visitor.get(&host, path).await.status, StatusCode::OK, "{path}");
    }
    edge.run(&format!("delete from deploys where preview_token = '{TOKEN}'")).await;
    edge.postgres.cut();
    edge.publish_change(of_host(&host)).await;
    // Whether it has ended can't be known now.
    until_status(&edge, &host, "/same.txt", StatusCode::SERVICE_UNAVAILABLE).await;
    for path in ["/", "/about"] {
        let response = edge.visitor.get(&host, path).await;
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    edge.postgres.restore().await;
    until_status(&edge, &host, "/same.txt", StatusCode::NOT_FOUND).await;
    edge.postgres.cut();
    for path in ["/", "/same.txt", "/about"] {
        assert_eq!(edge.visitor.get(&host, path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_new_preview_leaves_the_cached_answers_of_the_live_site() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (site, host) = previewed(&edge).await;
    let live = [(site.host.as_str(), "/"), (site.host.as_str(), "/made"), ("localhost", "/p/made")];
    let others = [(host.as_str(), "/about")];
    for (host, path) in live.into_iter().chain(others) {
        edge.get_until(host, path, |response| response.header("x-cache") == "hit").await;
    }
    let image: [(&str, &str, &[u8]); 1] = [("new.png", "image/png", b"new image")];
    let address = format!("/{}/new.png", hex::encode(Sha256::digest(image[0].2)));
    assert_eq!(edge.visitor.get("assets.localhost", &address).await.status, StatusCode::NOT_FOUND);
    let (_, new) = site.preview("aaaaaaaaaaaaaaaa", &image).await;
    edge.publish_change(of_host(&new)).await;
    // The image was cached as absent.
    until_status(&edge, "assets.localhost", &address, StatusCode::OK).await;
    for (host, path) in live.into_iter().chain(others) {
        let response = edge.visitor.get(host, path).await;
        assert_eq!((response.status, response.header("x-cache")), (StatusCode::OK, "hit"), "{host} {path}");
    }
    assert_eq!(answer(&edge, &new, "/new.png").await.1, "new image");
}

#[tokio::test]
async fn a_renamed_site_takes_its_previews_along() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (site, host) = previewed(&edge).await;
    assert_eq!(answer(&edge, &host, "/same.txt").await.1, "next");
    let renamed = format!("{TOKEN}--loud-badger.localhost");
    assert_eq!(edge.visitor.get(&renamed, "/").await.status, StatusCode::NOT_FOUND);
    edge.run(&format!("update subdomains set name = 'loud-badger' where id = '{}'", site.subdomain_id)).await;
    for host in ["quiet-otter", "loud-badger"] {
        edge.publish_change(Change::Host { host: host.to_owned() }).await;
    }
    until_status(&edge, &host, "/same.txt", StatusCode::NOT_FOUND).await;
    until_status(&edge, &renamed, "/same.txt", StatusCode::OK).await;
}
