//! Postgres or Redis are silent, read-only or locked: requests end in time with a 503 that may be retried.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use sandbox::test::{SilentProxy, eventually};
use serde_json::{Value, json};

use crate::harness::{Api, send_to};

/// How long the network swallows bytes.
const SILENCE: Duration = Duration::from_secs(12);
/// Within this time after it, everything goes on.
const IN_TIME: Duration = Duration::from_secs(15);

fn page(slug: &str) -> Value {
    json!({"slug": slug, "title": "T", "html": "<p>x"})
}

#[tokio::test(flavor = "multi_thread")]
async fn page_writes_go_on_after_postgres_connections_died_without_a_reset() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (proxy, url) = SilentProxy::start(api.setting("store.url")).await;
    // Opening a connection ends as in production.
    let replica = api.replica(&[&format!("store.url={url}"), "store.acquire_timeout=5s"]);
    let write =
        async |slug: String| send_to(&replica, Method::POST, "/api/pages", Some(&key), &page(&slug)).await.0;
    assert_eq!(write("before".to_owned()).await, StatusCode::CREATED);
    proxy.swallow();
    let end = tokio::time::Instant::now() + SILENCE;
    let writes = (0..20).map(|number| write(format!("during-{number}")));
    let (statuses, ()) = tokio::join!(futures::future::join_all(writes), async {
        tokio::time::sleep_until(end).await;
        proxy.pass();
    });
    assert!(statuses.iter().all(|status| *status == StatusCode::SERVICE_UNAVAILABLE), "{statuses:?}");
    eventually(async || (write("after".to_owned()).await == StatusCode::CREATED).then_some(())).await;
    assert!(end.elapsed() < IN_TIME, "{:?}", end.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_redis_delays_no_page_write() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (proxy, url) = SilentProxy::start(api.setting("redis.url")).await;
    let replica = api.replica(&[&format!("redis.url={url}")]);
    let write = async |slug: &str| {
        let started = Instant::now();
        let (status, body) = send_to(&replica, Method::POST, "/api/pages", Some(&key), &page(slug)).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        started.elapsed()
    };
    write("before").await;
    proxy.swallow();
    let mut total = Duration::ZERO;
    for slug in ["one", "two", "three", "four", "five"] {
        total += write(slug).await;
    }
    // Each waits for 200 ms at most. It was two seconds each.
    assert!(total < Duration::from_secs(4), "{total:?}");
}

#[tokio::test]
async fn a_read_only_postgres_answers_503_and_still_reads() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    api.execute(
        "do $$ begin
             execute format('alter database %I set default_transaction_read_only = on', current_database());
         end $$",
    )
    .await
    .unwrap();
    let replica = api.replica(&[]);
    let (status, problem) = send_to(&replica, Method::POST, "/api/pages", Some(&key), &page("index")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable")));
    let (status, _) = send_to(&replica, Method::GET, "/api/pages", Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_write_that_waits_for_a_lock_answers_503_after_the_lock_timeout() {
    let api = Api::start(&["store.lock_timeout=200ms"]).await;
    let key = api.trial().await;
    let mut holder = api.begin().await;
    sqlx::query("lock table pages in exclusive mode").execute(&mut *holder).await.unwrap();
    let (status, problem) = api.send(Method::POST, "/api/pages", Some(&key), &page("index")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable")));
    assert!(problem["detail"].as_str().unwrap().contains("nothing was changed"), "{problem}");
    store::rollback(holder).await.unwrap();
    let (status, page) = api.send(Method::POST, "/api/pages", Some(&key), &page("index")).await;
    assert_eq!(status, StatusCode::CREATED, "{page}");
}
