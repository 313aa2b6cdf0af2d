//! Postgres is down: cached responses are served stale, and everything else fails with 503. Redis is down: deleted and
//! suspended pages are gone within seconds all the same.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use sandbox::test::KillableRedis;
use serde_json::json;

use crate::fixtures::{one_text_field, submit_path};
use crate::harness::Edge;

#[tokio::test]
async fn a_cached_page_is_served_stale_without_postgres() {
    let edge = Edge::with(&["cache.max_age=50ms"]).await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>warm").await;
    site.page("never-asked-for", "<p>cold").await;
    edge.visitor.get(&site.host, "/").await;
    edge.visitor.get("localhost", "/p/index").await;

    edge.postgres.cut();
    let stale = edge.get_until(&site.host, "/", |response| response.header("x-cache") == "stale").await;
    assert_eq!((stale.status, stale.text()), (StatusCode::OK, "<p>warm"));
    let short = edge.visitor.get("localhost", "/p/index").await;
    let shown = format!("<base href=\"http://{}:{}/\"><p>warm", site.host, edge.port());
    assert_eq!((short.text(), short.header("x-cache")), (shown.as_str(), "stale"));
    assert!(
        short.header("content-security-policy").starts_with("sandbox"),
        "a stale response is sandboxed too"
    );
    let named = [("if-none-match", stale.header("etag"))];
    let again = edge.visitor.send(Method::GET, &site.host, "/", &named, "").await;
    assert_eq!((again.status, again.header("x-cache")), (StatusCode::NOT_MODIFIED, "stale"));

    let cold = edge.visitor.get(&site.host, "/never-asked-for").await;
    assert_eq!(cold.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!((cold.header("retry-after"), cold.header("cache-control")), ("2", "no-store"));

    site.edit(page, "<p>after").await;
    edge.postgres.restore().await;
    edge.get_until(&site.host, "/", |response| response.text() == "<p>after").await;
    edge.get_until(&site.host, "/never-asked-for", |response| response.status == StatusCode::OK).await;
}

#[tokio::test]
async fn cached_pages_are_served_fast_without_postgres() {
    let edge = Edge::with(&["cache.max_age=1ms"]).await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>warm").await;
    edge.visitor.get(&site.host, "/").await;
    edge.postgres.cut();
    edge.get_until(&site.host, "/", |response| response.header("x-cache") == "stale").await;
    let (started, mut waited) = (Instant::now(), 0);
    for _ in 0..200 {
        let sent_at = Instant::now();
        assert_eq!(edge.visitor.get(&site.host, "/").await.text(), "<p>warm");
        waited += u64::from(sent_at.elapsed() > Duration::from_secs(1));
    }
    // One request every few seconds waits for the retry that checks whether Postgres is back.
    let took = started.elapsed();
    assert!(waited <= 1 + took.as_secs() / 3, "{waited} of 200 requests waited; total {took:?}");
}

#[tokio::test]
async fn a_submission_without_postgres_reports_that_nothing_changed() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    assert_eq!(edge.visitor.post(&path, &json!({"a": "x"})).await.status, StatusCode::CREATED);
    edge.postgres.cut();
    let response = edge.visitor.post(&path, &json!({"a": "y"})).await;
    let problem = response.problem(503, "unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("nothing was changed"), "{problem}");
    assert_eq!(response.header("access-control-allow-origin"), "*");
    edge.postgres.restore().await;
    assert_eq!(account.submissions(form).await, [json!({"a": "x"})], "the rejected submission is not stored");
}

#[tokio::test]
async fn the_edge_starts_and_answers_without_postgres_and_redis() {
    let nowhere = ["store.url=postgres://x@127.0.0.1:1/x", "redis.url=redis://127.0.0.1:1"];
    let edge = Edge::with(&nowhere).await;
    assert_eq!(edge.visitor.get("localhost", "/").await.status, StatusCode::OK);
    let site = edge.visitor.get("quiet-otter.localhost", "/").await;
    assert_eq!(site.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(edge.visitor.get("localhost", "/api/account").await.text(), "from the inside");
}

#[tokio::test]
async fn pages_deleted_or_suspended_while_redis_is_down_are_gone_within_two_seconds() {
    let mut redis = KillableRedis::start().await;
    let edge = Edge::with(&[&format!("redis.url={}", redis.url())]).await;
    edge.wait_until_subscribed_to(redis.url()).await;
    let (kept, suspended) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    let page = kept.page("index", "<p>deleted").await;
    kept.page("other", "<p>other").await;
    suspended.page("index", "<p>suspended").await;
    edge.visitor.get(&suspended.host, "/").await;
    // While signals arrive, an entry may be older than a second.
    let mut hit_since = Instant::now();
    sandbox::test::with_timeout(async {
        while hit_since.elapsed() < Duration::from_millis(1_500) {
            if edge.visitor.get(&kept.host, "/").await.header("x-cache") != "hit" {
                hit_since = Instant::now();
            }
            crate::harness::short_pause().await;
        }
    })
    .await;
    redis.kill().await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::pages::delete_page(&mut conn, kept.id, page).await.unwrap();
    drop(conn);
    edge.run(&format!("update accounts set suspended_at = now() where id = '{}'", suspended.id)).await;
    let deleted_at = Instant::now();
    edge.get_until(&kept.host, "/", |response| response.status == StatusCode::NOT_FOUND).await;
    edge.get_until(&suspended.host, "/", |response| {
        response.status == StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    })
    .await;
    let elapsed = deleted_at.elapsed();
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    assert_eq!(edge.visitor.get(&kept.host, "/other").await.text(), "<p>other");
}
