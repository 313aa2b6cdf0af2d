//! Group inserts: concurrent submissions to forms without limits share a transaction, each gets its own response, and
//! an edit of one form does not block the others.

use std::collections::BTreeSet;

use futures::future::join_all;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::fixtures::{Account, one_text_field, submit_path};
use crate::harness::Edge;

/// An account on a plan without a submission limit.
async fn unlimited<'a>(edge: &'a Edge, name: &str) -> Account<'a> {
    let account = edge.account(name).await;
    edge.run(&format!("update accounts set plan = 'scale' where id = '{}'", account.id)).await;
    account
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_submissions_are_stored_and_answered_individually() {
    let edge = Edge::start().await;
    let (account, other) = (unlimited(&edge, "quiet-otter").await, unlimited(&edge, "loud-badger").await);
    let forms = [
        account.form(one_text_field()).await,
        other.form(one_text_field()).await,
        account.form(one_text_field()).await,
    ];
    let sent = (0..300).map(|number| {
        let (visitor, form) = (edge.visitor.clone(), forms[number % 3]);
        async move {
            // Every tenth submission is invalid and must not affect the others.
            let name = if number % 10 == 9 { "b" } else { "a" };
            let response = visitor.post(&submit_path(form), &json!({name: number.to_string()})).await;
            let id = response.json()["submissionId"].as_str().and_then(|id| id.parse::<Uuid>().ok());
            (response.status, id)
        }
    });
    let responses = join_all(sent).await;
    for (number, (status, id)) in responses.iter().enumerate() {
        let wanted = if number % 10 == 9 { StatusCode::BAD_REQUEST } else { StatusCode::CREATED };
        assert_eq!((*status, id.is_some()), (wanted, wanted == StatusCode::CREATED), "{number}");
    }
    let ids: BTreeSet<Uuid> = responses.iter().filter_map(|(_, id)| *id).collect();
    assert_eq!(ids.len(), 270, "each response has its own id");
    let mut stored = BTreeSet::new();
    for (form, account) in forms.iter().zip([&account, &other, &account]) {
        let submissions = account.submissions(*form).await;
        assert_eq!((submissions.len(), account.count(*form).await), (90, 90));
        stored.extend(submissions.iter().map(|one| one["a"].as_str().unwrap().to_owned()));
    }
    let wanted = (0..300).filter(|number| number % 10 != 9).map(|number| number.to_string());
    assert_eq!(stored, wanted.collect::<BTreeSet<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_submissions_create_one_delivery_each() {
    let edge = Edge::start().await;
    let account = unlimited(&edge, "quiet-otter").await;
    let (form, other) = (account.form(one_text_field()).await, account.form(one_text_field()).await);
    let (of_all, of_one) =
        (account.webhook(None, &[]).await, account.webhook(Some(vec![form]), &["submission.created"]).await);
    let sent = (0..80).map(|number| {
        let (visitor, form) = (edge.visitor.clone(), [form, other][number % 2]);
        async move {
            let response = visitor.post(&submit_path(form), &json!({"a": number.to_string()})).await;
            assert_eq!(response.status, StatusCode::CREATED);
            response.json()["submissionId"].as_str().unwrap().parse::<Uuid>().unwrap()
        }
    });
    let ids = join_all(sent).await;
    let delivered = async |webhook| {
        let ids = account.deliveries(webhook).await.into_iter().filter_map(|one| one.submission_id);
        let mut ids: Vec<Uuid> = ids.collect();
        ids.sort_unstable();
        ids
    };
    let mut all = ids.clone();
    all.sort_unstable();
    let mut of_form: Vec<Uuid> = ids.into_iter().step_by(2).collect();
    of_form.sort_unstable();
    assert_eq!((delivered(of_all).await, delivered(of_one).await), (all, of_form));
}

#[tokio::test(flavor = "multi_thread")]
async fn batched_submissions_time_out_while_postgres_hangs() {
    let edge = Edge::with(&["forms.lock_timeout=2s"]).await;
    let account = unlimited(&edge, "quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let answers = json!({"a": "x"});
    assert_eq!(edge.visitor.post(&submit_path(form), &answers).await.status, StatusCode::CREATED);
    edge.postgres.stall();
    let path = submit_path(form);
    let waiting = (0..20).map(|_| edge.visitor.post(&path, &answers));
    for response in join_all(waiting).await {
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{}", response.text());
    }
    edge.postgres.resume();
    assert_eq!(edge.visitor.post(&submit_path(form), &answers).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn submissions_outside_a_batch_get_their_own_outcome() {
    let edge = Edge::start().await;
    let account = unlimited(&edge, "quiet-otter").await;
    let (linked, edited, deleted) = (
        account.form(one_text_field()).await,
        account.form(one_text_field()).await,
        account.form(one_text_field()).await,
    );
    let answers = json!({"a": "x"});
    for form in [linked, edited, deleted] {
        // Puts the form into the edge's cache. No signal announces the changes below.
        assert_eq!(edge.visitor.post(&submit_path(form), &answers).await.status, StatusCode::CREATED);
    }
    let webhook = account.webhook(Some(vec![linked]), &[]).await;
    assert_eq!(edge.visitor.post(&submit_path(linked), &answers).await.status, StatusCode::CREATED);
    assert_eq!(account.deliveries(webhook).await.len(), 1);
    let full = "max_submissions = 1, updated_at = updated_at + interval '1 second'";
    edge.run(&format!("update forms set {full} where id = '{edited}'")).await;
    edge.visitor.post(&submit_path(edited), &answers).await.problem(410, "form_full");
    edge.run(&format!("delete from forms where id = '{deleted}'")).await;
    edge.visitor.post(&submit_path(deleted), &answers).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn submissions_waiting_for_one_forms_edit_do_not_block_other_forms() {
    // More concurrent submissions than the ten database connections.
    let edge = Edge::with(&["forms.lock_timeout=3s"]).await;
    let account = unlimited(&edge, "quiet-otter").await;
    let limited = edge.account("loud-badger").await;
    let (edited, free, also_free) = (
        account.form(one_text_field()).await,
        account.form(one_text_field()).await,
        limited.form(one_text_field()).await,
    );
    let answers = json!({"a": "x"});
    let mut edit = store::begin(&edge.database.db).await.unwrap();
    store::forms::lock_form(&mut edit, account.id, edited).await.unwrap().unwrap();
    let waiting: Vec<_> = (0..30)
        .map(|_| {
            let (visitor, answers) = (edge.visitor.clone(), answers.clone());
            tokio::spawn(async move { visitor.post(&submit_path(edited), &answers).await })
        })
        .collect();
    for _ in 0..20 {
        for form in [free, also_free] {
            let stored = edge.visitor.post(&submit_path(form), &answers).await;
            assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text());
        }
    }
    for response in join_all(waiting).await {
        let response = response.unwrap();
        response.problem(503, "unavailable");
        assert!(!response.header("retry-after").is_empty());
    }
    assert_eq!(account.count(edited).await, 0);
    let late = tokio::spawn({
        let (visitor, answers) = (edge.visitor.clone(), answers.clone());
        async move { visitor.post(&submit_path(edited), &answers).await.status }
    });
    store::rollback(edit).await.unwrap();
    assert_eq!(
        late.await.unwrap(),
        StatusCode::CREATED,
        "a submission that starts near the end of the edit succeeds"
    );
}
