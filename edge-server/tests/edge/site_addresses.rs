//! Addresses of a deployed site: every file at its own path, and pages at theirs.

use http::{Method, StatusCode};

use crate::client::TestResponse;
use crate::fixtures::Account;
use crate::harness::Edge;

const HTML: &str = "text/html";

/// Asserts what addresses answer: `200 text`, `404 text` or `308 location`.
async fn assert_answers(edge: &Edge, site: &Account<'_>, expected: &[(&str, &str)]) {
    for (path, answer) in expected {
        // The first answer is loaded, the second one cached.
        for _miss_and_hit in 0..2 {
            let response = edge.visitor.get(&site.host, path).await;
            let location = response.header("location");
            let shown = if location.is_empty() { response.text() } else { location };
            assert_eq!(format!("{} {shown}", response.status.as_u16()), *answer, "{path}");
        }
    }
}

async fn send(edge: &Edge, site: &Account<'_>, path: &str, headers: &[(&str, &str)]) -> TestResponse {
    edge.visitor.send(Method::GET, &site.host, path, headers, "").await
}

#[tokio::test]
async fn every_file_answers_at_its_own_path_whatever_its_name() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.serve_files(&[
        ("_x/.y/Z+1 (2).css", "text/css", b"a"),
        ("v1.2.html", HTML, b"b"),
        ("日本語.html", HTML, "日本".as_bytes()),
        ("Größe & Co.txt", "text/plain", b"c"),
        ("a:b@c/$d,e=f;g.js", "text/javascript", b"d"),
        (".well-known/security.txt", "text/plain", b"e"),
        ("100%.txt", "text/plain", b"f"),
        ("CNAME", "application/octet-stream", b"g"),
    ])
    .await;
    let answers = [
        ("/_x/.y/Z+1%20(2).css", "200 a"),
        ("/v1.2.html", "200 b"),
        ("/v1.2", "200 b"),
        ("/%E6%97%A5%E6%9C%AC%E8%AA%9E.html", "200 日本"),
        ("/%e6%97%a5%e6%9c%ac%e8%aa%9e", "200 日本"),
        ("/Gr%C3%B6%C3%9Fe%20%26%20Co.txt", "200 c"),
        // The same letter, written as two characters.
        ("/Gro%CC%88%C3%9Fe%20&%20Co.txt", "200 c"),
        ("/a:b@c/$d,e=f;g.js", "200 d"),
        ("/a%3Ab%40c//$d%2Ce=f%3Bg.js", "200 d"),
        ("/.well-known/security.txt", "200 e"),
        ("/100%25.txt", "200 f"),
        ("/CNAME?x", "200 g"),
        ("/cname", "404 There is no page at this address.\n"),
    ];
    assert_answers(&edge, &site, &answers).await;
}

#[tokio::test]
async fn html_answers_with_and_without_its_extension() {
    let edge = Edge::start().await;
    let (paged, filed) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    let files = ["index.html", "about.html", "docs/index.html", "both.html", "both/index.html", "Team.html"];
    for (number, path) in files.into_iter().enumerate() {
        paged.deployed_page(&format!("page-{number}"), path, path).await;
    }
    let rows: Vec<_> = files.map(|path| (path, HTML, path.as_bytes())).to_vec();
    filed.serve_files(&rows).await;
    let missing = "404 There is no page at this address.\n";
    let answers = [
        ("/", "200 index.html"),
        ("/index.html", "200 index.html"),
        ("/index", "200 index.html"),
        ("/about", "200 about.html"),
        ("/about.html", "200 about.html"),
        ("/about/?a=b", "308 /about?a=b"),
        ("/about.html/", "308 /about.html"),
        ("/docs?a", "308 /docs/?a"),
        ("/docs/", "200 docs/index.html"),
        ("/docs/index.html", "200 docs/index.html"),
        ("/both", "200 both.html"),
        ("/both/", "200 both/index.html"),
        ("/Team", "200 Team.html"),
        ("/team", missing),
        ("/none/", missing),
        ("/about.htm", missing),
        ("//docs", "308 /docs/"),
        ("//about", "200 about.html"),
        ("/./about", "200 about.html"),
        ("/x/../about", missing),
        ("/x%2F..%2fabout", missing),
    ];
    assert_answers(&edge, &paged, &answers).await;
    assert_answers(&edge, &filed, &answers).await;
    // The address of a page that has another path leads there.
    assert_answers(&edge, &paged, &[("/page-5?a=b", "308 /Team.html?a=b"), ("/page-5/", "308 /Team.html")])
        .await;
}

#[tokio::test]
async fn the_nearest_404_page_answers_below_its_folder() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("404", "404.html", "top").await;
    site.serve_files(&[("en/404.html", HTML, b"english"), ("en/a.css", "text/css", b"x")]).await;
    let answers = [
        ("/none", "404 top"),
        ("/de/none", "404 top"),
        ("/en/none", "404 english"),
        ("/en/deep/none.js", "404 english"),
        ("/en/", "404 english"),
        ("/x%2fy", "404 top"),
        ("/404", "200 top"),
        ("/en/404.html", "200 english"),
        ("/en/a.css", "200 x"),
    ];
    assert_answers(&edge, &site, &answers).await;
    for path in ["/none", "/en/none"] {
        let response = send(&edge, &site, path, &[("if-none-match", "*")]).await;
        assert_eq!((response.status, response.header("etag")), (StatusCode::NOT_FOUND, ""), "{path}");
        assert_eq!(response.header("cache-control"), "no-store");
        assert_eq!(response.header("x-robots-tag"), "noindex", "the account is unclaimed");
        let head = edge.visitor.send(Method::HEAD, &site.host, path, &[], "").await;
        assert_eq!((head.status, head.body.len()), (StatusCode::NOT_FOUND, 0));
    }
}

#[tokio::test]
async fn fallbacks_answer_addresses_without_a_file() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "app").await;
    site.page("about", "made").await;
    site.serve_files(&[("404.html", HTML, b"lost"), ("a.js", "text/javascript", b"x")]).await;
    site.set_rules("", "", true).await;
    let answers = [
        ("/", "200 app"),
        ("/deep/link", "200 app"),
        ("/deep/link/?a=b", "200 app"),
        ("/a.js", "200 x"),
        ("/about", "200 made"),
        ("/about/", "308 /about"),
        ("/robots.txt", "200 User-agent: *\nAllow: /\n"),
        ("/_wr/none", "404 There is no page at this address.\n"),
        ("/.well-known/acme-challenge/x", "404 There is no page at this address.\n"),
    ];
    assert_answers(&edge, &site, &answers).await;
    assert_eq!(edge.visitor.get(&site.host, "/deep/link").await.header("x-cache"), "hit");

    site.serve_files(&[("200.html", HTML, b"fallback"), ("404.html", HTML, b"lost")]).await;
    site.publish_deploy().await;
    edge.get_until(&site.host, "/deep/link", |response| response.text() == "fallback").await;
    assert_answers(&edge, &site, &[("/none.js", "200 fallback"), ("/", "200 app")]).await;
}

#[tokio::test]
async fn a_file_can_not_take_an_address_of_the_platform() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.serve_files(&[
        ("_wr/script.js", "text/javascript", b"stolen"),
        ("_wr/x.html", HTML, b"stolen"),
        (".well-known/acme-challenge/token", "text/plain", b"stolen"),
        (".well-known/pki-validation/token", "text/plain", b"stolen"),
    ])
    .await;
    site.set_rules("/* /_wr/x.html 200", "", false).await;
    for path in [
        "/_wr/script.js",
        "/%5Fwr/script.js",
        "//_wr/script.js",
        "/_wr/x",
        "/_wr",
        "/.well-known/acme-challenge/token",
        "/%2Ewell-known//acme-challenge/token",
        "/.well-known/pki-validation/token",
    ] {
        let response = edge.visitor.get(&site.host, path).await;
        assert!(!response.text().contains("stolen"), "{path}");
    }
}

#[tokio::test]
async fn html_without_a_page_is_served_like_a_page() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.track("site_abc").await;
    let body = "<p>much the same</p>".repeat(200);
    let html = format!("<head></head>{body}");
    site.serve_files(&[("docs/a.html", HTML, html.as_bytes())]).await;
    let shown =
        format!("<head><script defer src=\"/_wr/script.js\" data-site=\"site_abc\"></script></head>{body}");
    let first = edge.visitor.get(&site.host, "/docs/a").await;
    assert_eq!((first.text(), first.header("x-cache")), (shown.as_str(), "miss"));
    assert_eq!(first.header("content-type"), "text/html; charset=utf-8");
    assert_eq!((first.header("x-robots-tag"), first.header("origin-agent-cluster")), ("noindex", "?1"));
    let known = send(&edge, &site, "/docs/a", &[("if-none-match", first.header("etag"))]).await;
    assert_eq!((known.status, known.header("x-cache")), (StatusCode::NOT_MODIFIED, "hit"));
    let encoded = async || send(&edge, &site, "/docs/a", &[("accept-encoding", "br")]).await;
    sandbox::test::until(async || encoded().await.header("content-encoding") == "br").await;
    assert!(encoded().await.body.len() < body.len() / 5);
}

#[tokio::test]
async fn large_html_is_streamed_as_it_is() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.track("site_abc").await;
    let html = format!("<head></head>{}", "x".repeat(4 << 20));
    site.serve_files(&[("a.html", HTML, html.as_bytes())]).await;
    let response = edge.visitor.get(&site.host, "/a").await;
    assert_eq!(
        (response.status, response.header("content-type")),
        (StatusCode::OK, "text/html; charset=utf-8")
    );
    assert!(response.text() == html);
}

#[tokio::test]
async fn an_edited_page_changes_at_all_of_its_addresses() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    let index = site.deployed_page("docs", "docs/index.html", "old").await;
    let lost = site.deployed_page("not-found", "404.html", "old 404").await;
    site.serve_files(&[]).await;
    site.set_rules("/guide/* /docs/ 200\n/q/* a=b /docs/index.html 200", "", false).await;
    let own = ["/docs/", "/docs/index.html", "/docs/index", "//docs/", "/guide/x", "/guide/", "/q/x?a=b"];
    let missing = ["/none", "/docs/none", "/x/y"];
    for (path, text) in
        own.map(|path| (path, "200 old")).into_iter().chain(missing.map(|p| (p, "404 old 404")))
    {
        assert_answers(&edge, &site, &[(path, text)]).await;
    }
    assert_answers(&edge, &site, &[("/docs", "308 /docs/"), ("/404", "200 old 404")]).await;

    site.edit(index, "new").await;
    site.edit(lost, "new 404").await;
    site.publish_file_change("docs", "docs/index.html").await;
    site.publish_file_change("not-found", "404.html").await;
    edge.wait_until_signals_handled().await;
    for path in own {
        assert_answers(&edge, &site, &[(path, "200 new")]).await;
    }
    for path in missing {
        assert_answers(&edge, &site, &[(path, "404 new 404")]).await;
    }

    edge.run("update pages set is_published = false").await;
    edge.run("update pages set is_published = true where slug = 'probe'").await;
    site.publish_file_change("docs", "docs/index.html").await;
    site.publish_file_change("not-found", "404.html").await;
    edge.wait_until_signals_handled().await;
    for path in own.into_iter().chain(missing).chain(["/docs", "/404"]) {
        assert_answers(&edge, &site, &[(path, "404 There is no page at this address.\n")]).await;
    }

    edge.run("update pages set is_published = true where slug = 'not-found'").await;
    site.publish_file_change("not-found", "404.html").await;
    edge.wait_until_signals_handled().await;
    for path in missing {
        assert_answers(&edge, &site, &[(path, "404 new 404")]).await;
    }
}

#[tokio::test]
async fn a_page_made_by_the_api_is_replaced_by_a_deployed_file() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("about", "made").await;
    assert_answers(&edge, &site, &[("/about", "200 made"), ("/about.html", "308 /about")]).await;
    site.serve_files(&[("about.html", HTML, b"deployed")]).await;
    site.publish_deploy().await;
    edge.get_until(&site.host, "/about", |response| response.text() == "deployed").await;
    assert_answers(&edge, &site, &[("/about.html", "200 deployed")]).await;
}

#[tokio::test]
async fn a_site_answers_with_nothing_of_another_site() {
    let edge = Edge::start().await;
    let (site, other) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    other.deployed_page("index", "index.html", "other").await;
    other.deployed_page("404", "404.html", "other").await;
    other.page("about", "other").await;
    other.serve_files(&[("a.js", "text/javascript", b"other"), ("b.html", HTML, b"other")]).await;
    other.set_rules("/x /y 302\n/* /index.html 200", "/*\n X-Frame-Options: DENY", true).await;
    site.serve_files(&[("c.txt", "text/plain", b"own")]).await;
    for path in ["/", "/index.html", "/404", "/about", "/a.js", "/b", "/b.html", "/x", "/none"] {
        assert_eq!(
            edge.visitor.get(&other.host, path).await.header("x-frame-options") == "DENY",
            path != "/x"
        );
        let response = edge.visitor.get(&site.host, path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
        assert_eq!(response.header("x-frame-options"), "");
        assert!(!response.text().contains("other"), "{path}");
    }
    assert_answers(&edge, &site, &[("/c.txt", "200 own")]).await;
    assert_eq!(edge.visitor.get(&other.host, "/c.txt").await.text(), "other", "its own fallback");
}

#[tokio::test]
async fn a_short_url_of_a_deployed_page_resolves_references_from_its_path() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("docs-a", "Docs/a b.html", "<p>x").await;
    site.serve_files(&[]).await;
    site.set_rules("/Docs/* /y 302!", "/*\n Service-Worker-Allowed: /", false).await;
    let response = edge.visitor.get("localhost", "/p/docs-a").await;
    let base = format!("<base href=\"http://{}:{}/Docs/a%20b.html\"><p>x", site.host, edge.port());
    assert_eq!(response.text(), base);
    assert_eq!(response.header("service-worker-allowed"), "", "the base host is not the site's");
}

#[tokio::test]
async fn the_sitemap_lists_html_without_a_page_too() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("made", "x").await;
    site.deployed_page("docs", "docs/index.html", "x").await;
    site.deployed_page("not-found", "404.html", "x").await;
    site.serve_files(&[
        ("A b.html", HTML, b"x"),
        ("en/404.html", HTML, b"x"),
        ("200.html", HTML, b"x"),
        ("a.js", "text/javascript", b"x"),
        ("docs/index.html", HTML, b"x"),
    ])
    .await;
    let origin = format!("http://{}:{}", site.host, edge.port());
    let map = edge.visitor.get(&site.host, "/sitemap.xml").await;
    let found: Vec<&str> =
        map.text().split("<loc>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(found, [format!("{origin}/docs/"), format!("{origin}/made"), format!("{origin}/A%20b")]);
}
