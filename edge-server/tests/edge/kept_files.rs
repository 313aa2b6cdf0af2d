//! Files of an earlier deploy that stay reachable for a day.

use http::StatusCode;

use crate::fixtures::now;
use crate::harness::Edge;

const SCRIPT: &str = "text/javascript";
const OLD: &str = "/assets/app-4f9a2b1c.js";

/// Makes the files in `assets/` old ones that end after this many minutes.
async fn keep(edge: &Edge, minutes: i32) {
    edge.run(&format!(
        "update deploy_files set expires_at = now() + interval '{minutes} minutes' where path like 'assets/%'"
    ))
    .await;
}

#[tokio::test]
async fn an_old_file_answers_before_rules_and_fallbacks_until_it_ends() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.deployed_page("index", "index.html", "home").await;
    site.serve_files(&[("assets/app-4f9a2b1c.js", SCRIPT, b"old")]).await;
    site.set_rules("/assets/* /gone 301\n", "", true).await;
    keep(&edge, 60).await;
    for _miss_and_hit in 0..2 {
        let response = edge.visitor.get(&site.host, OLD).await;
        assert_eq!((response.status, response.text()), (StatusCode::OK, "old"));
        assert_eq!(response.header("cache-control"), "public, max-age=31536000, immutable");
    }
    keep(&edge, 0).await;
    site.publish_deploy().await;
    edge.get_until(&site.host, OLD, |response| response.status == StatusCode::MOVED_PERMANENTLY).await;
    site.set_rules("", "", true).await;
    site.publish_deploy().await;
    let fallback = edge.get_until(&site.host, OLD, |response| response.status == StatusCode::OK).await;
    assert_eq!(fallback.text(), "home", "the file is not deleted yet, and not served any more");
}

#[tokio::test]
async fn a_resumed_site_serves_no_old_file_from_the_cache() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "home").await;
    site.serve_files(&[("assets/app-4f9a2b1c.js", SCRIPT, b"old"), ("new.js", SCRIPT, b"new")]).await;
    keep(&edge, 60).await;
    edge.run(&format!("update usage set storage_bytes = 6 where account_id = '{}'", site.id)).await;
    assert_eq!(edge.visitor.get(&site.host, OLD).await.text(), "old");

    let mut tx = store::begin(&edge.database.db).await.unwrap();
    store::accounts::suspend(&mut tx, site.id, None, now()).await.unwrap();
    store::commit(tx).await.unwrap();
    edge.relay_outbox().await;
    edge.get_until(&site.host, OLD, |response| response.status.as_u16() == 451).await;
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    store::accounts::resume(&mut tx, site.id, now()).await.unwrap();
    store::commit(tx).await.unwrap();
    edge.relay_outbox().await;
    let new = edge.get_until(&site.host, "/new.js", |response| response.status == StatusCode::OK).await;
    assert_eq!(new.text(), "new");
    assert_eq!(edge.visitor.get(&site.host, OLD).await.status, StatusCode::NOT_FOUND);
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let usage = store::usage::find_usage(&mut conn, site.id).await.unwrap().unwrap();
    assert_eq!(usage.storage_bytes, 3);
}
