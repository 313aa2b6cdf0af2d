//! Redirects and headers that a site sets for itself.

use http::{Method, StatusCode};

use crate::client::TestResponse;
use crate::fixtures::Account;
use crate::harness::Edge;

const HTML: &str = "text/html";

async fn get(edge: &Edge, site: &Account<'_>, path: &str) -> TestResponse {
    edge.visitor.get(&site.host, path).await
}

/// Asserts what addresses answer: `200 text` or `302 location`. The second answer comes from the cache.
async fn assert_answers(edge: &Edge, site: &Account<'_>, expected: &[(&str, &str)]) {
    for (path, answer) in expected {
        for _miss_and_hit in 0..2 {
            let response = get(edge, site, path).await;
            let location = response.header("location");
            let shown = if location.is_empty() { response.text() } else { location };
            assert_eq!(format!("{} {shown}", response.status.as_u16()), *answer, "{path}");
        }
    }
}

#[tokio::test]
async fn rules_apply_in_the_order_of_their_lines_around_files() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[
        ("a.html", HTML, b"a"),
        ("data.json", "application/json", b"{}"),
        ("404.html", HTML, b"lost"),
    ])
    .await;
    let rules = "/a /never 301\n/old/* /a?from=:splat 302\n/forced /a 307!\n/index /a 301!\n\
        /store id=7 /a 302\n/store /data.json 200\n/ lang=de /de 302!\n/gone/* /a 404\n/json /data.json 404\n\
        /out/* https://example.com/:splat 308\n/deep/* / 200\n/none /missing 200\n";
    site.set_rules(rules, "", false).await;
    let answers = [
        ("/a", "200 a"),
        ("/old/x", "302 /a?from=x"),
        ("/old/x?b=c", "302 /a?from=x"),
        ("/forced", "307 /a"),
        ("/forced?b=c", "307 /a?b=c"),
        ("/forced/?b=c&d", "307 /a?b=c&d"),
        ("/index", "301 /a"),
        ("/store", "200 {}"),
        ("/store?id=7", "302 /a"),
        ("/store?id=8", "200 {}"),
        ("/store?id=7&x=y", "302 /a?x=y"),
        ("/", "200 home"),
        ("/?lang=en", "200 home"),
        ("/?lang=de", "302 /de"),
        ("/gone/x", "404 a"),
        ("/json", "404 {}"),
        ("/out/a/b.html?c", "308 https://example.com/a/b.html?c"),
        ("/deep/x/y", "200 home"),
        ("/deep/x/y?z", "200 home"),
        ("/none", "404 lost"),
    ];
    assert_answers(&edge, &site, &answers).await;
    let moved = get(&edge, &site, "/forced").await;
    assert_eq!((moved.header("cache-control"), moved.text()), ("no-cache", ""));
    let head = edge.visitor.send(Method::HEAD, &site.host, "/out/x", &[], "").await;
    assert_eq!((head.status.as_u16(), head.header("location")), (308, "https://example.com/x"));
    let posted = edge.visitor.send(Method::POST, &site.host, "/forced", &[], "").await;
    assert_eq!(posted.status, StatusCode::METHOD_NOT_ALLOWED);
    let missing = edge.visitor.send(Method::GET, &site.host, "/json", &[("range", "bytes=0-0")], "").await;
    assert_eq!((missing.status.as_u16(), missing.text(), missing.header("etag")), (404, "{}", ""));
}

#[tokio::test]
async fn an_open_redirect_or_injected_header_can_not_be_made_from_a_request() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.serve_files(&[("evil.example/index.html", HTML, b"x"), ("x/index.html", HTML, b"x")]).await;
    let rules = "/r/* /:splat 302\n/s/:a /:a/b 302\n/q u=:u /:u 302\n/t/* https://example.com/:splat 302\n";
    site.set_rules(rules, "/*\n Link: </a.css>", false).await;
    let sent = [
        "/r//evil.example",
        "/r///evil.example/x",
        "/r/%2f%2fevil.example",
        "/r/%2F/evil.example",
        "/r/%5cevil.example",
        "/r/%5C%5Cevil.example",
        "/r/%09/evil.example",
        "/r/https://evil.example",
        "/r/@evil.example",
        "/r/.evil.example",
        "/r/%0d%0aSet-Cookie:%20a=b",
        "/r/x?%0d%0aSet-Cookie:%20a=b",
        "/s/%0d%0aSet-Cookie:a=b",
        "/s/%2fevil.example",
        "/q?u=//evil.example",
        "/q?u=%2f%2fevil.example",
        "/q?u=\\evil.example",
        "/q?u=%0d%0aSet-Cookie:a=b",
        "/t/@evil.example",
        "/t/.evil.example",
        "/t//evil.example",
        "//evil.example",
        "//evil.example/%2e%2e",
        "///evil.example?a=//b",
        "/x?%0d%0aSet-Cookie:%20a=b",
        "/x?a=\u{7f}",
    ];
    for path in sent {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", site.host);
        for _miss_and_hit in 0..2 {
            let answer = edge.visitor.raw(request.as_bytes()).await;
            let head = answer.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
            assert!(!head.lines().any(|line| line.starts_with("set-cookie")), "{path}: {head}");
            let location = head.lines().find_map(|line| line.strip_prefix("location: "));
            let Some(location) = location else { continue };
            let base = url::Url::parse(&format!("http://{}/", site.host)).unwrap();
            let host = base.join(location).unwrap().host_str().unwrap().to_owned();
            let expected = if path.starts_with("/t/") { "example.com" } else { site.host.as_str() };
            assert_eq!(host, expected, "{path}: {location}");
        }
    }
}

#[tokio::test]
async fn a_site_sets_headers_of_its_pages_and_files() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[
        ("a.js", "text/javascript", b"let a"),
        ("b.html", HTML, b"b"),
        ("404.html", HTML, b"lost"),
    ])
    .await;
    let headers = "/*\n  X-Frame-Options: DENY\n  Content-Security-Policy: default-src 'self'\n\
        Cache-Control: public, max-age=60\n  Access-Control-Allow-Origin: https://a.example\n\
        X-Robots-Tag: all, nofollow\n/b\n  Cross-Origin-Opener-Policy: same-origin\n/a.js\n  ! X-Frame-Options\n";
    site.set_rules("/r /b 302", headers, false).await;
    for (path, frames, opener) in
        [("/", "DENY", ""), ("/a.js", "", ""), ("/b", "DENY", "same-origin"), ("/b.html", "DENY", "")]
    {
        for miss_and_hit in 0..2 {
            let response = get(&edge, &site, path).await;
            let shown = |name: &str| response.header(name).to_owned();
            assert_eq!(response.status, StatusCode::OK, "{path}");
            assert_eq!(shown("x-frame-options"), frames, "{path} {miss_and_hit}");
            assert_eq!(shown("cross-origin-opener-policy"), opener, "{path}");
            assert_eq!(shown("content-security-policy"), "default-src 'self'", "{path}");
            assert_eq!(shown("access-control-allow-origin"), "https://a.example", "{path}");
            assert_eq!(shown("x-robots-tag"), "noindex, nofollow", "never weaker than ours");
            assert_eq!(shown("x-content-type-options"), "nosniff", "{path}");
            for name in ["cache-control", "x-robots-tag", "content-type", "etag", "x-content-type-options"] {
                assert_eq!(response.headers.get_all(name).iter().count(), 1, "{path} {name}");
            }
            let known = [("if-none-match", response.header("etag"))];
            let known = edge.visitor.send(Method::GET, &site.host, path, &known, "").await;
            assert_eq!(known.status, StatusCode::NOT_MODIFIED, "{path}");
            for response in [&response, &known] {
                assert_eq!(response.header("cache-control"), "public, max-age=60", "{path}");
            }
            assert_eq!(known.header("content-security-policy"), "default-src 'self'", "{path}");
        }
    }
    let lost = get(&edge, &site, "/none").await;
    assert_eq!((lost.header("x-frame-options"), lost.header("cache-control")), ("DENY", "no-store"));
    for path in ["/r", "/_wr/x", "/.well-known/acme-challenge/x", "/sitemap.xml"] {
        let response = get(&edge, &site, path).await;
        assert_eq!(response.header("x-frame-options"), "", "{path}");
    }
}

#[tokio::test]
async fn a_header_outside_the_allow_list_can_not_be_injected() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[("a.js", "text/javascript", b"let a")]).await;
    let headers = "/*\n  Set-Cookie: a=b\n  Strict-Transport-Security: max-age=1\n  Alt-Svc: h3=\":1\"\n\
        Clear-Site-Data: \"*\"\n  Content-Type: text/plain\n  Content-Encoding: br\n  Content-Length: 1\n\
        Transfer-Encoding: chunked\n  Location: /x\n  Refresh: 1\n  NEL: {}\n  Basic-Auth: a:b\n  ETag: \"x\"\n\
        X-Content-Type-Options: x\n  Vary: *\n  Link: a\r\n  Link: a\rSet-Cookie: b\n  Referrer-Policy: origin\n";
    site.set_rules("", headers, false).await;
    for path in ["/", "/", "/a.js", "/a.js"] {
        let response = get(&edge, &site, path).await;
        assert_eq!((response.status, response.header("referrer-policy")), (StatusCode::OK, "origin"));
        assert_eq!(response.header("link"), "a", "{path}");
        for name in [
            "set-cookie",
            "strict-transport-security",
            "alt-svc",
            "clear-site-data",
            "content-encoding",
            "location",
            "refresh",
            "nel",
            "basic-auth",
        ] {
            assert_eq!(response.header(name), "", "{path} {name}");
        }
        assert_ne!(response.header("content-type"), "text/plain");
        assert_eq!(response.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn the_rules_of_a_new_deploy_apply_at_once_on_all_hosts() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    edge.run(&format!(
        "insert into domains (id, account_id, subdomain_id, domain, status, dns_status, verified_at, challenge, created_at)
         values (gen_random_uuid(), '{}', '{}', 'otter.example', 'active', 'verified', now(), 'x', now())",
        site.id, site.subdomain_id
    ))
    .await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[("a.js", "text/javascript", b"old")]).await;
    site.set_rules("/x /old 302", "/*\n Link: old", false).await;
    for host in [site.host.as_str(), "otter.example"] {
        assert_eq!(edge.visitor.get(host, "/x").await.header("location"), "/old");
        assert_eq!(edge.visitor.get(host, "/").await.header("link"), "old");
        assert_eq!(edge.visitor.get(host, "/a.js").await.text(), "old");
    }
    site.serve_files(&[("a.js", "text/javascript", b"new")]).await;
    site.set_rules("/x /new 302\n/ /welcome 302!", "", false).await;
    site.publish_deploy().await;
    edge.wait_until_signals_handled().await;
    for host in [site.host.as_str(), "otter.example"] {
        assert_eq!(edge.visitor.get(host, "/x").await.header("location"), "/new");
        assert_eq!(edge.visitor.get(host, "/").await.header("location"), "/welcome");
        let script = edge.visitor.get(host, "/a.js").await;
        assert_eq!((script.text(), script.header("link")), ("new", ""));
    }
}

#[tokio::test]
async fn a_claimed_site_loses_the_noindex_of_its_own_headers_too() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[("a.js", "text/javascript", b"x")]).await;
    site.set_rules("", "/*\n X-Robots-Tag: nofollow", false).await;
    for path in ["/", "/a.js"] {
        assert_eq!(get(&edge, &site, path).await.header("x-robots-tag"), "noindex, nofollow");
    }
    edge.run("update accounts set claimed_at = now()").await;
    edge.publish_change(contract::Change::Host { host: site.name.clone() }).await;
    for path in ["/", "/a.js"] {
        edge.get_until(&site.host, path, |response| response.header("x-robots-tag") == "nofollow").await;
    }
}

#[tokio::test]
async fn rules_that_this_version_can_not_read_leave_the_files_served() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.serve_files(&[("a.js", "text/javascript", b"x")]).await;
    edge.run(
        r#"update deploys set rules = '{"redirects": [{"line": 1, "from": "x", "to": "", "status": 9}]}'"#,
    )
    .await;
    assert_answers(&edge, &site, &[("/a.js", "200 x")]).await;
}

#[tokio::test]
async fn a_page_that_is_published_answers_at_once_where_rules_lead_to_it() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[("a.html", HTML, b"a")]).await;
    let rules = "/go/* /new 200\n/forced /new 200!\n/made lang=de /a 302!\n";
    site.set_rules(rules, "", false).await;
    let missing = ["/go/x", "/forced", "/made?lang=en", "/new"];
    for _miss_and_hit in 0..2 {
        for path in missing {
            assert_eq!(get(&edge, &site, path).await.status, StatusCode::NOT_FOUND, "{path}");
        }
    }
    site.deployed_page("new", "new.html", "new").await;
    site.publish_file_change("new", "new.html").await;
    site.page("made", "made").await;
    site.publish_page_change("made").await;
    edge.wait_until_signals_handled().await;
    let answers = [
        ("/go/x", "200 new"),
        ("/forced", "200 new"),
        ("/made?lang=en", "200 made"),
        ("/made?lang=de", "302 /a"),
    ];
    assert_answers(&edge, &site, &answers).await;

    edge.run("update pages set is_published = false where slug = 'new'").await;
    site.publish_file_change("new", "new.html").await;
    edge.wait_until_signals_handled().await;
    assert_eq!(get(&edge, &site, "/go/x").await.status, StatusCode::NOT_FOUND);
    edge.run("update pages set is_published = true where slug = 'new'").await;
    site.publish_file_change("new", "new.html").await;
    edge.wait_until_signals_handled().await;
    assert_answers(&edge, &site, &answers).await;
}
