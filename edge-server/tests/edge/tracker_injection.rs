//! Sites with analytics: their pages contain the tracker, and its requests reach the collector through the site's host.

use contract::Change;
use http::{Method, StatusCode};

use crate::harness::Edge;

const SCRIPT: &str = r#"<script defer src="/_wr/script.js" data-site="site_abc"></script>"#;

#[tokio::test]
async fn enabling_analytics_injects_the_tracker_at_once() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (site, other) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    for site in [&site, &other] {
        site.page("index", "<head><title>T</title></head><p>x").await;
        assert!(!edge.visitor.get(&site.host, "/").await.text().contains("<script"));
    }
    edge.run(&format!(
        "insert into analytics_sites (id, account_id, site_token, name, subdomain_id, created_at)
         values (gen_random_uuid(), '{}', 'site_abc', 'S', '{}', now())",
        site.id, site.subdomain_id
    ))
    .await;
    let change =
        || Change::AnalyticsSite { site_token: "site_abc".to_owned(), subdomain_id: Some(site.subdomain_id) };
    edge.publish_change(change()).await;
    let tracked = format!("<head>{SCRIPT}<title>T</title></head><p>x");
    edge.get_until(&site.host, "/", |response| response.text() == tracked).await;
    let base = format!("<base href=\"http://{}:{}/\">", site.host, edge.port());
    let on_base_host = format!("<head>{base}{SCRIPT}<title>T</title></head><p>x");
    assert_eq!(edge.visitor.get("localhost", "/p/index").await.text(), on_base_host);
    assert!(!edge.visitor.get(&other.host, "/").await.text().contains("<script"));

    edge.run("update analytics_sites set honour_dnt = false").await;
    edge.publish_change(change()).await;
    let ignoring_dnt = tracked.replace("></script>", " data-ignore-dnt></script>");
    edge.get_until(&site.host, "/", |response| response.text() == ignoring_dnt).await;

    edge.run("update analytics_sites set honour_dnt = true, hash_routing = true").await;
    edge.publish_change(change()).await;
    let by_hash = tracked.replace("></script>", " data-hash></script>");
    edge.get_until(&site.host, "/", |response| response.text() == by_hash).await;

    edge.run("delete from analytics_sites").await;
    edge.publish_change(change()).await;
    edge.get_until(&site.host, "/", |response| !response.text().contains("<script")).await;
}

#[tokio::test]
async fn tracker_requests_reach_the_collector_without_the_sites_cookies() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    for host in [site.host.as_str(), "localhost"] {
        for path in ["/_wr/script.js", "/_wr/t.js"] {
            let response = edge.visitor.get(host, path).await;
            assert_eq!(
                (response.status, response.text()),
                (StatusCode::OK, "from the inside"),
                "{host}{path}"
            );
        }
        let cookie = [("cookie", "of=the-site"), ("user-agent", "Firefox")];
        edge.visitor.send(Method::POST, host, "/_wr/collect", &cookie, "event").await;
        let received = edge.collector.last();
        assert_eq!((received.target.as_str(), &received.body[..]), ("/_wr/collect", &b"event"[..]), "{host}");
        assert_eq!(
            (received.header("x-client-ip"), received.header("user-agent")),
            ("127.0.0.1".into(), "Firefox".into())
        );
        assert!(host == "localhost" || received.header("cookie").is_empty());
    }
    let response = edge.visitor.get("localhost", "/script.js").await;
    assert_eq!((response.status, edge.collector.last().target.as_str()), (StatusCode::OK, "/script.js"));
    let received = edge.collector.all().len();
    for (host, path) in [
        ("absent.localhost", "/_wr/script.js"),
        (site.host.as_str(), "/_wr/other"),
        (&site.host, "/_wr/"),
        // On a site's host this path belongs to the site.
        (&site.host, "/script.js"),
    ] {
        assert_eq!(edge.visitor.get(host, path).await.status, StatusCode::NOT_FOUND, "{host}{path}");
    }
    assert_eq!(edge.collector.all().len(), received);
}
