//! Claiming and deleting an account, as visitors see it.

use chrono::TimeDelta;
use http::StatusCode;
use store::purges;

use crate::fixtures::{now, one_text_field};
use crate::harness::Edge;

#[tokio::test]
async fn claiming_an_account_removes_noindex() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    for (host, path) in [(site.host.as_str(), "/"), ("localhost", "/p/index")] {
        assert_eq!(edge.visitor.get(host, path).await.header("x-robots-tag"), "noindex");
    }
    edge.run("update accounts set claimed_at = now()").await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::accounts::publish_changes(&mut conn, site.id, now()).await.unwrap();
    edge.relay_outbox().await;
    for (host, path) in [(site.host.as_str(), "/"), ("localhost", "/p/index")] {
        edge.get_until(host, path, |response| response.header("x-robots-tag").is_empty()).await;
    }
}

#[tokio::test]
async fn deleting_an_account_evicts_its_cache_entries() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>gone").await;
    let form = site.form(one_text_field()).await;
    let hosted = format!("/f/{form}");
    let urls = [(site.host.as_str(), "/"), ("localhost", "/p/index"), ("localhost", hosted.as_str())];
    for (host, path) in urls {
        assert_eq!(edge.visitor.get(host, path).await.status, StatusCode::OK, "{path}");
    }
    let later = now() + TimeDelta::days(2);
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    assert!(purges::lock_expired(&mut tx, site.id, later).await.unwrap());
    purges::delete_account(&mut tx, site.id, now()).await.unwrap();
    store::commit(tx).await.unwrap();
    edge.relay_outbox().await;
    for (host, path) in urls {
        edge.get_until(host, path, |response| response.status == StatusCode::NOT_FOUND).await;
    }
    // Reuses the site's id, which never happens in production: a leftover cache entry would be served stale.
    let successor = edge.account("quiet-otter").await;
    edge.run(&format!(
        "update subdomains set id = '{}' where account_id = '{}'",
        site.subdomain_id, successor.id
    ))
    .await;
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    store::accounts::publish_changes(&mut conn, successor.id, now()).await.unwrap();
    edge.relay_outbox().await;
    // A page of another site shows when the edge has resolved the host again.
    edge.run(&format!("update pages set subdomain_id = '{}'", site.subdomain_id)).await;
    edge.get_until(&successor.host, "/probe", |response| response.status == StatusCode::OK).await;
    edge.postgres.cut();
    let response = edge.visitor.get(&successor.host, "/").await;
    assert_eq!((response.status, response.text().contains("gone")), (StatusCode::SERVICE_UNAVAILABLE, false));
}
