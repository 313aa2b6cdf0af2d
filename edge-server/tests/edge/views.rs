//! Page views: counted at the edge, flushed in batches, and not lost while Postgres is down.

use http::{Method, StatusCode};
use sandbox::test::until;
use uuid::Uuid;

use crate::fixtures::Account;
use crate::harness::Edge;

async fn views(site: &Account<'_>, page: Uuid) -> i64 {
    site.pages().await.into_iter().find(|summary| summary.id == page).unwrap().views
}

#[tokio::test]
async fn page_responses_and_304s_count_as_views() {
    let edge = Edge::with(&["views.flush_interval=20ms"]).await;
    let site = edge.account("quiet-otter").await;
    let (page, other) = (site.page("index", "<p>x").await, site.page("404", "<p>lost").await);
    let etag = edge.visitor.get(&site.host, "/").await.header("etag").to_owned();
    for _ in 0..3 {
        edge.visitor.get(&site.host, "/").await;
    }
    let has_it = edge.visitor.send(Method::GET, &site.host, "/", &[("if-none-match", &etag)], "").await;
    assert_eq!(has_it.status, StatusCode::NOT_MODIFIED);
    edge.visitor.get("localhost", "/p/index").await;
    // None of these responses is a view of the page.
    edge.visitor.send(Method::HEAD, &site.host, "/", &[], "").await;
    edge.visitor.send(Method::HEAD, "localhost", "/p/index", &[], "").await;
    edge.visitor.get(&site.host, "/index.html").await;
    edge.visitor.get(&site.host, "/nothing").await;
    until(async || views(&site, page).await >= 6).await;
    // A last view shows that no other count was pending.
    edge.visitor.get(&site.host, "/").await;
    until(async || views(&site, page).await >= 7).await;
    assert_eq!((views(&site, page).await, views(&site, other).await), (7, 0));
}

#[tokio::test]
async fn views_are_buffered_while_postgres_is_down_and_flushed_later() {
    let edge = Edge::with(&["views.flush_interval=20ms"]).await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>x").await;
    edge.visitor.get(&site.host, "/").await;
    until(async || views(&site, page).await == 1).await;
    // Batches are flushed in order: once a later one is stored, the reply to the first cannot be lost.
    let later = site.page("later", "<p>y").await;
    edge.visitor.get(&site.host, "/later").await;
    until(async || views(&site, later).await == 1).await;
    edge.postgres.cut();
    for _ in 0..10 {
        assert_eq!(edge.visitor.get(&site.host, "/").await.text(), "<p>x");
    }
    assert_eq!(views(&site, page).await, 1);
    edge.postgres.restore().await;
    until(async || views(&site, page).await == 11).await;
}

#[tokio::test]
async fn shutdown_flushes_counted_views() {
    let edge = Edge::with(&["views.flush_interval=1h"]).await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>x").await;
    for _ in 0..5 {
        edge.visitor.get(&site.host, "/").await;
    }
    edge.stop();
    until(async || views(&site, page).await == 5).await;
}

#[tokio::test]
async fn views_of_a_deleted_page_do_not_affect_others() {
    let edge = Edge::with(&["views.flush_interval=1h"]).await;
    let site = edge.account("quiet-otter").await;
    let (gone, page) = (site.page("gone", "<p>x").await, site.page("index", "<p>x").await);
    edge.visitor.get(&site.host, "/gone").await;
    edge.visitor.get(&site.host, "/").await;
    site.delete(gone).await;
    edge.stop();
    until(async || views(&site, page).await == 1).await;
}
