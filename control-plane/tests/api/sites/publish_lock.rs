//! A publication holds the lock of the account's pages for few statements, because all its other writes wait meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::Value;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::owner::{Owner, zip_of};
use crate::harness::send_to;

/// Counts the statements that sqlx logs.
#[derive(Default)]
struct Statements(AtomicUsize);

impl Subscriber for Statements {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query"
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_site_of_many_pages_holds_the_lock_of_its_account_for_as_few_statements_as_a_small_one() {
    let owner = Owner::with_plan(Plan::Scale).await;
    let router = owner.api.replica(&["deploys.progress_interval=1h"]);
    let mut counts = Vec::new();
    // The first is not compared: while statements are logged for the first time, a test without a subscriber may turn them off.
    for (pages, text) in
        [(1, "new"), (20, "new"), (20, "changed"), (300, "new"), (300, "changed"), (300, "changed")]
    {
        let pages: Vec<(String, String)> =
            (0..pages).map(|at| (format!("{pages}-{at}.html"), format!("<p>{at} {text}"))).collect();
        let files: Vec<(&str, &[u8])> =
            pages.iter().map(|(name, html)| (name.as_str(), html.as_bytes())).collect();
        let id = owner.uploaded(&zip_of(&files)).await;
        let statements = Arc::new(Statements::default());
        let counting = tracing::subscriber::set_default(Arc::clone(&statements));
        let path = format!("/api/deploy/{id}/process");
        let (status, done) = send_to(&router, Method::POST, &path, Some(&owner.key), &Value::Null).await;
        drop(counting);
        assert_eq!(
            (status, done["pages"].as_array().map(Vec::len)),
            (StatusCode::OK, Some(pages.len())),
            "{done}"
        );
        counts.push(statements.0.load(Ordering::Relaxed));
    }
    let [_, few_new, few_changed, new, changed, same] = counts[..] else { panic!("{counts:?}") };
    assert!(few_new > 10, "the statements are counted: {counts:?}");
    assert!(new <= few_new + 10 && changed <= few_changed + 10 && same <= changed, "{counts:?}");
}
