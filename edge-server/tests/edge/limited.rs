//! Forms with a submission limit: their submissions are counted one at a time without blocking other forms.

use futures::future::join_all;
use http::StatusCode;
use serde_json::json;
use service::Rng;
use store::forms::Form;
use store::submissions::{NewSubmission, SubmissionOutcome, WriteContext, insert_submission};
use uuid::Uuid;

use crate::client::TestResponse;
use crate::fixtures::{Account, now, one_text_field, submit_path};
use crate::harness::Edge;

/// More than the edge has database connections.
const MANY: usize = 40;

/// A form with a limit of 1,000 submissions, already in the edge's cache.
async fn limited(edge: &Edge, account: &Account<'_>) -> Uuid {
    let form = account.form_with(one_text_field(), |form| form.max_submissions = Some(1_000)).await;
    assert_eq!(edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await.status, StatusCode::CREATED);
    form
}

/// Begins a submission without committing it. Other submissions to the form wait until the rollback.
async fn uncommitted_submission(edge: &Edge, account: &Account<'_>, form: Uuid) -> store::Tx {
    let mut tx = store::begin(&edge.database.db).await.unwrap();
    let form: Form = store::forms::find_form(&mut tx, account.id, form).await.unwrap().unwrap();
    let new_id = || Rng::system().uuid_v7(now());
    let answers = json!({"a": "slow"}).as_object().unwrap().clone();
    let (payload, extra) = (answers, serde_json::Map::new());
    let new = NewSubmission { id: new_id(), external_id: None, payload, extra, spam_reasons: Vec::new() };
    let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
    let stored = insert_submission(&mut tx, account.id, &form, &new, -1, &writer).await.unwrap();
    assert!(matches!(stored, SubmissionOutcome::Stored(_)), "{stored:?}");
    tx
}

async fn flood(edge: &Edge, form: Uuid) -> Vec<TestResponse> {
    let (path, answers) = (submit_path(form), json!({"a": "x"}));
    join_all((0..MANY).map(|_| edge.visitor.post(&path, &answers))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_a_locked_form_blocks_neither_other_forms_nor_pages() {
    // The edge has ten database connections.
    let edge = Edge::with(&["forms.lock_timeout=60s"]).await;
    let account = edge.account("quiet-otter").await;
    edge.run("update accounts set plan = 'scale'").await;
    let (held, other) = (limited(&edge, &account).await, limited(&edge, &account).await);
    let slow = uncommitted_submission(&edge, &account, held).await;
    let others = async {
        for number in 0..20 {
            let stored = edge.visitor.post(&submit_path(other), &json!({"a": "x"})).await;
            assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text());
            // An uncached page needs a database connection.
            let page = format!("page-{number}");
            account.page(&page, "<p>here").await;
            assert_eq!(edge.visitor.get(&account.host, &format!("/{page}")).await.text(), "<p>here");
            let form = account.form(one_text_field()).await;
            assert_eq!(edge.visitor.get("localhost", &format!("/f/{form}")).await.status, StatusCode::OK);
        }
        store::rollback(slow).await.unwrap();
    };
    // The flood gets its responses only after the other requests: otherwise this would deadlock.
    let (flooded, ()) = tokio::join!(flood(&edge, held), others);
    assert!(
        flooded.iter().all(|response| response.status == StatusCode::CREATED),
        "each submission succeeds after the rollback"
    );
    assert_eq!((account.count(held).await, account.count(other).await), (MANY as i64 + 1, 21));
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_over_the_lock_timeout_get_503_and_are_not_stored() {
    let edge = Edge::with(&["forms.lock_timeout=2s", "forms.max_connections_per_form=2"]).await;
    let account = edge.account("quiet-otter").await;
    edge.run("update accounts set plan = 'scale'").await;
    let held = limited(&edge, &account).await;
    let slow = uncommitted_submission(&edge, &account, held).await;
    for response in flood(&edge, held).await {
        response.problem(503, "unavailable");
        assert!(!response.header("retry-after").is_empty());
    }
    store::rollback(slow).await.unwrap();
    assert_eq!(account.count(held).await, 1);
    let late = edge.visitor.post(&submit_path(held), &json!({"a": "x"})).await;
    assert_eq!(late.status, StatusCode::CREATED, "{}", late.text());
}
