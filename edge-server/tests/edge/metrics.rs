//! What the edge measures. The instruments belong to the process, where other tests run as well: a test waits until a value has
//! grown by what it did.

use contract::Change;
use http::StatusCode;
use sandbox::test::until;
use service::metrics::render;

use crate::harness::Edge;

/// Returns the value of a series, or 0 without one.
fn value(series: &str) -> f64 {
    let text = render();
    text.lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
        .unwrap_or_default()
}

fn responses(host: &str, status: &str) -> f64 {
    value(&format!("edge_responses_total{{host=\"{host}\",status=\"{status}\"}}"))
}

#[tokio::test]
async fn responses_are_counted_by_kind_of_host_and_status() {
    for fast_path in ["connections.fast_path=true", "connections.fast_path=false"] {
        let edge = Edge::with(&[fast_path]).await;
        let site = edge.account("quiet-otter").await;
        site.page("index", "<p>x").await;
        let cases = [
            (site.host.as_str(), "/", StatusCode::OK, "subdomain", "2xx"),
            (site.host.as_str(), "/", StatusCode::OK, "subdomain", "2xx"),
            (site.host.as_str(), "/nothing", StatusCode::NOT_FOUND, "subdomain", "4xx"),
            ("localhost", "/", StatusCode::OK, "base", "2xx"),
            ("shop.example", "/", StatusCode::NOT_FOUND, "custom", "4xx"),
            ("nodot", "/", StatusCode::NOT_FOUND, "unknown", "4xx"),
        ];
        for (host, path, status, label, class) in cases {
            let before = responses(label, class);
            assert_eq!(edge.visitor.get(host, path).await.status, status, "{host}{path}");
            assert!(responses(label, class) > before, "{host}{path} is {label} and {class}");
        }
    }
}

#[tokio::test]
async fn a_miss_has_a_duration_and_its_entry_a_weight() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    let before = value("edge_page_miss_seconds_count");
    assert_eq!(edge.visitor.get(&site.host, "/").await.header("x-cache"), "miss");
    assert!(value("edge_page_miss_seconds_count") > before);
    for cache in ["answers", "hosts"] {
        assert!(value(&format!("edge_cache_bytes{{cache=\"{cache}\"}}")) > 0.0, "{cache}");
    }
}

#[tokio::test]
async fn an_entry_that_does_not_fit_counts_as_an_eviction() {
    let edge = Edge::with(&["cache.max_page_bytes=2000"]).await;
    let site = edge.account("quiet-otter").await;
    let series = "edge_cache_evictions_total{cache=\"answers\"}";
    let before = value(series);
    for slug in ["first", "second", "third", "fourth"] {
        site.page(slug, &"<p>x".repeat(300)).await;
        assert_eq!(edge.visitor.get(&site.host, &format!("/{slug}")).await.status, StatusCode::OK);
    }
    // A scrape completes the pending work of the caches.
    until(async || value("edge_cache_bytes{cache=\"answers\"}") >= 0.0 && value(series) > before).await;
}

#[tokio::test]
async fn open_connections_are_counted_below_their_limit() {
    let edge = Edge::start().await;
    assert_eq!(edge.visitor.get("localhost", "/").await.status, StatusCode::OK);
    let silent = tokio::net::TcpStream::connect(("127.0.0.1", edge.port())).await.unwrap();
    until(async || value("edge_connections{listener=\"http\"}") >= 1.0).await;
    assert!(value("edge_connections_max") >= 1.0);
    drop(silent);
}

#[tokio::test]
async fn an_applied_change_has_its_age_since_the_outbox() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let change = Change::Host { host: "quiet-otter".to_owned() };
    // No other change of these tests is as old.
    let written = crate::fixtures::now() - chrono::TimeDelta::seconds(45);
    store::outbox::insert_changes(&mut conn, &[change], written).await.unwrap();
    let older_than_20_seconds = || {
        value("edge_invalidation_lag_seconds_count")
            - value("edge_invalidation_lag_seconds_bucket{le=\"20\"}")
    };
    let before = older_than_20_seconds();
    assert_eq!(edge.relay_outbox().await, 1);
    until(async || older_than_20_seconds() > before).await;
}
