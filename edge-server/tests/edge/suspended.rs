//! Suspended accounts: their pages and forms answer 451 at once, and work again once resumed.

use http::StatusCode;
use serde_json::json;

use crate::fixtures::{Account, now, one_text_field, submit_path};
use crate::harness::Edge;

const SUSPENDED: StatusCode = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;

pub(crate) async fn suspend(edge: &Edge, account: &Account<'_>) {
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    assert!(store::accounts::suspend(&mut tx, account.id, Some("phishing"), now()).await.unwrap());
    store::commit(tx).await.unwrap();
    assert!(edge.relay_outbox().await > 0);
}

pub(crate) async fn resume(edge: &Edge, account: &Account<'_>) {
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    assert!(store::accounts::resume(&mut tx, account.id, now()).await.unwrap());
    store::commit(tx).await.unwrap();
    edge.relay_outbox().await;
}

#[tokio::test]
async fn cached_pages_and_forms_of_a_suspended_account_answer_451_until_resumed() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>bad").await;
    let form = site.form(one_text_field()).await;
    let (hosted, submit) = (format!("/f/{form}"), submit_path(form));
    let urls = [(site.host.as_str(), "/"), ("localhost", "/p/index"), ("localhost", hosted.as_str())];
    for (host, path) in urls {
        assert_eq!(edge.visitor.get(host, path).await.status, StatusCode::OK, "{path}");
    }

    suspend(&edge, &site).await;
    for (host, path) in urls {
        let response = edge.get_until(host, path, |response| response.status == SUSPENDED).await;
        assert!(response.text().contains("is suspended.") && !response.text().contains("bad"), "{path}");
        assert_eq!(response.header("cache-control"), "no-store", "{path}");
    }
    assert_eq!(
        edge.visitor.get(&site.host, "/nothing-here").await.status,
        SUSPENDED,
        "unknown paths return 451 too"
    );
    let posted = edge.visitor.post(&submit, &json!({"a": "x"})).await;
    posted.problem(451, "suspended");
    assert_eq!(site.count(form).await, 0, "no submission is stored");

    resume(&edge, &site).await;
    for (host, path) in urls {
        edge.get_until(host, path, |response| response.status == StatusCode::OK).await;
    }
    assert_eq!(edge.visitor.post(&submit, &json!({"a": "x"})).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_suspended_site_is_not_served_stale_without_postgres() {
    let edge = Edge::start().await;
    edge.wait_until_subscribed().await;
    let (site, other) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    site.page("index", "<p>bad").await;
    other.page("index", "<p>good").await;
    for host in [&site.host, &other.host] {
        assert_eq!(edge.visitor.get(host, "/").await.status, StatusCode::OK);
    }
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    store::accounts::suspend(&mut tx, site.id, None, now()).await.unwrap();
    store::commit(tx).await.unwrap();
    // Cuts only the edge's connections to Postgres; the outbox relay has its own.
    edge.postgres.cut();
    edge.relay_outbox().await;
    let is_unavailable =
        |response: &crate::client::TestResponse| response.status == StatusCode::SERVICE_UNAVAILABLE;
    edge.get_until(&site.host, "/", is_unavailable).await;
    assert_eq!(edge.visitor.get(&other.host, "/").await.text(), "<p>good");
    edge.postgres.restore().await;
    edge.get_until(&site.host, "/", |response| response.status == SUSPENDED).await;
}
